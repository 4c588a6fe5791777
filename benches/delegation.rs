//! What an empty delegation costs, from the `task` call to its result, beside a plain run of one model turn; and what waits for a
//! place.
//!
//! The models answer at once. One reply with several `task` calls and one with fewer differ by delegations alone, so that their
//! difference is what a delegation costs. Prints one JSON object a line; figures are medians.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::{Duration, Instant};

use fawn::runtime::{Answer, Assembly, Queue, Runtime, Subagents, Wait};
use serde_json::{Value, json};

#[allow(dead_code, reason = "what is held is all that is asked here")]
#[path = "../tests/support/counting.rs"]
mod counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const RUNS: usize = 2000;
/// Delegations of the long reply.
const SEVERAL: usize = 5;
/// Runs whose delegations wait, and how many each has.
const WAITING: (usize, usize) = (20, 50);

fn main() {
    let plain = timed(0);
    let one = timed(1);
    let several = timed(SEVERAL);
    let each = (several - one) / (SEVERAL - 1) as f64;
    for (case, micros) in [
        ("plain_run", plain),
        ("run_with_a_delegation", one),
        ("delegation", each),
    ] {
        println!(
            "{}",
            json!({"peer": "fawn", "case": case, "us": micros, "runs": RUNS})
        );
    }
    println!(
        "{}",
        json!({"peer": "fawn", "case": "delegation_over_plain_run", "ratio": each / plain})
    );
    waiting();
}

fn task(place: usize) -> Value {
    json!({"name": "task", "id": format!("t{place}"), "args": {"description": "Nothing", "prompt": "Do nothing.", "subagent_type": "idle"}})
}

fn runtime(lead: Value, worker: Value) -> Runtime {
    let config = json!({
        "workers": 0,
        "models": [
            {"name": "main", "provider": "scripted", "replies": lead},
            {"name": "worker", "provider": "scripted", "replies": worker},
        ],
        "title": {"enabled": false},
        "subagents": {"custom_agents": {"idle": {"description": "Does nothing", "system_prompt": "Say that it is done.", "model": "worker"}}},
    });
    Runtime::new(&config.to_string()).expect("a runtime")
}

fn agent(runtime: &Runtime, max_running: usize) -> (Assembly, Subagents) {
    let places = json!({"config": {"max_running": max_running, "max_queued": 10_000, "queue_timeout_seconds": 86_400}, "max_total_per_run": 50});
    let places = runtime.new_subagents(&places.to_string()).expect("places");
    let config = json!({
        "factory": "lead", "subagent_runtime": 1,
        "configurable": {"subagent_enabled": true, "thinking_enabled": false, "max_total_subagents": 50},
    });
    let agent = runtime.new_assembly_with(&config.to_string(), &|_| Ok(places.clone()));
    (agent.expect("an assembly"), places)
}

/// The median time of a run with so many delegations in its one reply with calls, in microseconds.
fn timed(delegations: usize) -> f64 {
    let mut lead = Vec::new();
    if delegations > 0 {
        lead.push(json!({"tool_calls": (0..delegations).map(task).collect::<Vec<_>>()}));
    }
    lead.push(json!({"content": "Done."}));
    let runtime = runtime(lead.into(), json!([{"content": "Done."}]));
    let (agent, _) = agent(&runtime, 64);
    let queue = runtime.new_queue("{}").expect("a queue");
    let mut samples: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            run(&runtime, &agent, &queue);
            begin.elapsed()
        })
        .collect();
    samples.sort();
    samples[samples.len() / 2].as_secs_f64() * 1e6
}

fn run(runtime: &Runtime, agent: &Assembly, queue: &Queue) {
    let thread = runtime.open_thread("{}").expect("a thread");
    let hello = r#"{"input":{"messages":[{"role":"user","content":"Go on."}]}}"#;
    let run = runtime
        .start_run(agent, &thread, Some(queue), hello)
        .expect("a run");
    loop {
        let Ok(Answer::Done(text)) = queue.take(Wait::Forever, 0) else {
            panic!("no events");
        };
        if text.contains("\"type\":\"run_end\"") {
            assert!(text.contains("\"status\":\"success\""), "{text}");
            break;
        }
    }
    drop(run);
}

/// What a delegation holds while it waits for a place: everything that is allocated, and what of that is gone when its run is
/// cancelled.
fn waiting() {
    let (runs, each) = WAITING;
    let lead = json!([{"tool_calls": (0..each).map(task).collect::<Vec<_>>()}]);
    let runtime = runtime(lead, json!([{"hang": true}]));
    // A reply may have as many delegations as can run at once, so the first run takes all places and the others wait.
    let (agent, places) = agent(&runtime, each);
    let mut held = vec![begun(&runtime, &agent)];
    let os_threads = os_threads();
    let before = counting::held();
    held.extend((1..=runs).map(|_| begun(&runtime, &agent)));
    while places.capacity().snapshot().queued < (runs * each) as u64 {
        // They tell of their beginning first, and then they stand in line.
        let (_, queue, _) = held.last().expect("runs");
        queue
            .take(Wait::For(Duration::from_millis(1)), 0)
            .expect("a turn");
    }
    let waiting = counting::held();
    let os_threads = self::os_threads() - os_threads;
    // Those that wait leave first, so that nobody takes the places that become free.
    let mut kept = Vec::new();
    for (thread, queue, run) in held.into_iter().rev() {
        run.submit(r#"{"op":"cancel"}"#).expect("an answer");
        drop(run);
        let mut has_ended = false;
        while !has_ended {
            let Ok(Answer::Done(text)) = queue.take(Wait::Forever, 0) else {
                panic!("no events");
            };
            has_ended = text.contains("\"type\":\"run_end\"");
        }
        kept.push((thread, queue));
        if kept.len() == runs {
            break;
        }
    }
    let each_of = |bytes: isize| bytes as f64 / (runs * each) as f64;
    println!(
        "{}",
        json!({
            "peer": "fawn", "case": "delegation_that_waits", "delegations": runs * each, "os_threads": os_threads,
            // With what the thread keeps of every call: the message, the ledger, the checkpoints.
            "bytes": each_of(waiting - before),
            "bytes_given_back": each_of(waiting - counting::held()),
        })
    );
}

type Held = (fawn::runtime::Thread, Queue, fawn::runtime::Run);

/// A run whose delegations wait.
fn begun(runtime: &Runtime, agent: &Assembly) -> Held {
    let thread = runtime.open_thread("{}").expect("a thread");
    let queue = runtime.new_queue("{}").expect("a queue");
    let hello = r#"{"input":{"messages":[{"role":"user","content":"Go on."}]},"stream":[]}"#;
    let run = runtime
        .start_run(agent, &thread, Some(&queue), hello)
        .expect("a run");
    let mut started = 0;
    while started < WAITING.1 {
        let Ok(Answer::Done(text)) = queue.take(Wait::Forever, 0) else {
            panic!("no events");
        };
        started += text.matches("\"type\":\"task_started\"").count();
    }
    (thread, queue, run)
}

fn os_threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}
