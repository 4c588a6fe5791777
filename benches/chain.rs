//! What the chain of a lead agent adds to a model turn: the same runs with the whole default chain and with a bare one.
//!
//! A run of one model turn and one of eleven, on threads of 20 and of 2,000 messages; the model and the tool's answer cost next
//! to nothing. Prints one JSON object a line. Figures are medians; compare them only with what a peer does in the same go
//! (`benches/peers/chain.sh`).

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::{Duration, Instant};

use fawn::runtime::{Answer, Assembly, Queue, Runtime, Wait};
use serde_json::{Value, json};

/// Model turns of the long run.
const TURNS: usize = 11;
/// Messages on a thread, and how many threads of that kind are timed.
const THREADS: [(usize, usize); 2] = [(20, 400), (2000, 60)];

fn main() {
    let bare = json!({
        "factory": "custom", "model": "MODEL", "system_prompt": "You look up orders.", "tools": [tool()],
        "middleware": ["dangling_tool_call"],
    });
    let whole =
        json!({"factory": "lead", "configurable": {"model_name": "MODEL", "is_plan_mode": true}});
    let mut added = Vec::new();
    for (messages, threads) in THREADS {
        let [bare, whole] = [&bare, &whole].map(|agent| {
            let [one, long] = [1, TURNS].map(|turns| median(agent, turns, messages, threads));
            // What a run costs once, and each of its turns.
            (one, (long - one) / (TURNS - 1) as f64)
        });
        if messages == 20 {
            report("fawn", "chain_turn", whole.1, threads);
            report("fawn (bare)", "chain_turn", bare.1, threads);
            report("fawn", "chain_run", whole.0, threads);
            report("fawn (bare)", "chain_run", bare.0, threads);
        }
        added.push((whole.0 - bare.0, whole.1 - bare.1));
        let (run, turn) = added[added.len() - 1];
        println!(
            "{}",
            json!({"peer": "fawn", "case": format!("chain_added_{messages}_messages"), "us_a_turn": turn, "us_a_run": run})
        );
    }
    let more = (THREADS[1].0 - THREADS[0].0) as f64;
    println!(
        "{}",
        json!({
            "peer": "fawn", "case": "chain_added_by_a_message",
            "ns_a_turn": (added[1].1 - added[0].1) * 1e3 / more,
            "ns_a_run": (added[1].0 - added[0].0) * 1e3 / more,
        })
    );
}

fn tool() -> Value {
    json!({
        "name": "look_up", "description": "Looks up an order.",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
    })
}

/// A runtime whose model calls the tool in every turn but the last.
fn runtime(turns: usize, before: usize) -> Runtime {
    // The scripted model answers by the number of its messages on the thread.
    let mut replies: Vec<Value> = (0..before)
        .map(|_| json!({"content": "never asked"}))
        .collect();
    replies.push(json!({"content": "The warm run's answer."}));
    replies
        .extend((1..turns).map(|n| json!({"tool_calls": [{"name": "look_up", "args": {"n": n}}]})));
    replies.push(json!({"content": "The order has been sent."}));
    let config = json!({
        "workers": 0,
        "models": [{"name": "MODEL", "provider": "scripted", "replies": replies}],
        "tools": [tool()],
        "title": {"enabled": false},
    });
    Runtime::new(&config.to_string()).expect("a runtime")
}

/// The median time of a run of so many turns, in microseconds.
fn median(agent: &Value, turns: usize, messages: usize, threads: usize) -> f64 {
    let runtime = runtime(turns, messages / 2);
    let agent = runtime
        .new_assembly(&agent.to_string())
        .expect("an assembly");
    let queue = runtime.new_queue("{}").expect("a queue");
    let mut samples: Vec<Duration> = (0..threads)
        .map(|_| timed(&runtime, &agent, &queue, messages))
        .collect();
    samples.sort();
    samples[samples.len() / 2].as_secs_f64() * 1e6
}

fn timed(runtime: &Runtime, agent: &Assembly, queue: &Queue, messages: usize) -> Duration {
    let thread = runtime.open_thread("{}").expect("a thread");
    let earlier: Vec<Value> = (0..messages)
        .map(|n| match n % 2 {
            0 => json!({"role": "user", "content": format!("Question {n}: where is my order, and when will it be here?")}),
            _ => json!({"role": "assistant", "content": format!("Answer {n}: it was sent on Monday and will be there on Friday.")}),
        })
        .collect();
    let update = json!({"values": {"messages": earlier}});
    thread.update(&update.to_string()).expect("an update");
    // What a thread costs once, such as the first date, is no part of a turn.
    run(runtime, agent, queue, &thread);
    let begin = Instant::now();
    run(runtime, agent, queue, &thread);
    begin.elapsed()
}

fn run(runtime: &Runtime, agent: &Assembly, queue: &Queue, thread: &fawn::runtime::Thread) {
    let hello = r#"{"input":{"messages":[{"role":"user","content":"And the other one?"}]}}"#;
    let run = runtime
        .start_run(agent, thread, Some(queue), hello)
        .expect("a run");
    loop {
        let Ok(Answer::Done(text)) = queue.take(Wait::Forever, 0) else {
            panic!("no events")
        };
        let find = |needle: &str| memchr::memmem::find(text.as_bytes(), needle.as_bytes());
        if let Some(at) = find("\"call_id\":") {
            let digits = text[at + 10..].chars().take_while(char::is_ascii_digit);
            let id = digits.collect::<String>().parse().expect("a number");
            let answer = r#"{"ok":{"content":"sent"}}"#;
            runtime.finish(id, answer).expect("finished");
        }
        if find("\"type\":\"run_end\"").is_some() {
            break;
        }
    }
    match run.wait(Wait::Forever) {
        // No broken run is ever measured as a fast one.
        Ok(Answer::Done(result)) => assert!(result.contains("\"success\""), "{result}"),
        other => panic!("no result: {other:?}"),
    }
}

fn report(peer: &str, case: &str, us: f64, samples: usize) {
    println!(
        "{}",
        json!({"peer": peer, "case": case, "us_per_run": us, "samples": samples})
    );
}
