//! What a run costs: two model turns and one tool, in this process and through the C ABI's way of driving.
//!
//! Prints one JSON object a line: `{"peer":"fawn","case":…,"us_per_run":…}`. Figures are medians; compare them only with
//! what a peer does in the same go (`benches/peers/run.sh`).

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "../tests/support/parts.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared with the tests, which use more of it"
)]
mod parts;

use std::time::{Duration, Instant};

use fawn::runtime::{Answer, Assembly, Queue, Runtime, Thread, Wait};
use serde_json::{Value, json};

use parts::{ScriptModel, answer, parts as bare, tool};

const WARM: usize = 200;
const ROUNDS: usize = 9;
const RUNS: usize = 300;
const HELLO: &str =
    r#"{"input":{"messages":[{"role":"user","content":"What is the weather in Paris?"}]}}"#;

fn main() {
    for (case, config) in [
        ("run", r#"{"workers":0}"#),
        ("run_workers", r#"{"workers":2}"#),
    ] {
        let runtime = Runtime::new(config).expect("a runtime");
        let agent = in_process(&runtime);
        report(case, || {
            let thread = runtime.open_thread("{}").expect("a thread");
            finish(&runtime, &agent, &thread);
        });
    }
    if wanted("turns") {
        turns();
    }
    for (case, config) in [
        ("run_host_tool", r#"{"workers":0}"#),
        ("run_host_tool_workers", r#"{"workers":2}"#),
    ] {
        let runtime = Runtime::new(config).expect("a runtime");
        let agent = runtime
            .new_assembly(
                &json!({
                    "model": script(),
                    "tools": [{"name": "get_weather", "parameters": {"type": "object"}}],
                })
                .to_string(),
            )
            .expect("an assembly");
        let queue = runtime.new_queue("{}").expect("a queue");
        report(case, || {
            let thread = runtime.open_thread("{}").expect("a thread");
            runtime
                .start_run(&agent, &thread, Some(&queue), HELLO)
                .expect("a run");
            answer_calls(&runtime, &queue);
        });
    }
    updates();
    hop();
    if wanted("200_runs") {
        many();
    }
}

/// The same replies for every agent here; a thread of any length gets them by turns.
fn script() -> Value {
    json!({"provider": "scripted", "repeat": true, "replies": [
        {"tool_calls": [{"name": "get_weather", "args": {"city": "Paris"}}]},
        {"content": "It is 18 degrees and clear in Paris."},
    ]})
}

fn in_process(runtime: &Runtime) -> Assembly {
    let mut parts = bare(ScriptModel::new(Vec::new()));
    parts.model = runtime.model(&script().to_string()).expect("a model");
    parts.tools = vec![tool("get_weather", |_| async {
        answer("18 degrees, clear")
    })];
    parts.middleware = vec![fawn::middleware::dangling_tool_call::new()];
    runtime.compose(parts).expect("an assembly")
}

fn finish(runtime: &Runtime, agent: &Assembly, thread: &Thread) {
    let run = runtime
        .start_run(agent, thread, None, HELLO)
        .expect("a run");
    match run.wait(Wait::Forever) {
        Ok(Answer::Done(result)) => assert!(result.contains("\"success\""), "{result}"),
        other => panic!("no result: {other:?}"),
    }
}

/// Takes events and answers host calls until a run has ended.
fn answer_calls(runtime: &Runtime, queue: &Queue) {
    loop {
        let Ok(Answer::Done(text)) = queue.take(Wait::Forever, 0) else {
            panic!("no events")
        };
        // Found in the text, as the C example does with strstr, so that neither a JSON library nor a slow search is measured.
        let find = |needle: &str| memchr::memmem::find(text.as_bytes(), needle.as_bytes());
        if let Some(at) = find("\"call_id\":") {
            let digits: String = text[at + 10..]
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            let id = digits.parse().expect("a number");
            runtime
                .finish(id, r#"{"ok":{"content":"18 degrees, clear"}}"#)
                .expect("finished");
        }
        if find("\"type\":\"run_end\"").is_some() {
            return;
        }
    }
}

/// Whether the command line asks for this case, or for none in particular.
fn wanted(case: &str) -> bool {
    let mut names = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .peekable();
    names.peek().is_none() || names.any(|name| name == case)
}

/// Median time of one call, in microseconds.
fn median(mut once: impl FnMut()) -> f64 {
    for _ in 0..WARM {
        once();
    }
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..RUNS {
                once();
            }
            start.elapsed()
        })
        .collect();
    rounds.sort();
    rounds[ROUNDS / 2].as_secs_f64() * 1e6 / RUNS as f64
}

fn report(case: &str, once: impl FnMut()) {
    if wanted(case) {
        print(case, median(once));
    }
}

fn print(case: &str, us_per_run: f64) {
    let line: Value = json!({
        "peer": "fawn", "case": case, "us_per_run": (us_per_run * 10.0).round() / 10.0,
    });
    println!("{line}");
}

/// The first and the sixtieth run of one thread.
fn turns() {
    let runtime = Runtime::new(r#"{"workers":0}"#).expect("a runtime");
    let agent = in_process(&runtime);
    let (mut first, mut sixtieth) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        let thread = runtime.open_thread("{}").expect("a thread");
        for turn in 1..=60 {
            let start = Instant::now();
            finish(&runtime, &agent, &thread);
            match turn {
                1 => first.push(start.elapsed()),
                60 => sixtieth.push(start.elapsed()),
                _ => {}
            }
        }
    }
    for (case, mut times) in [("turn_1", first), ("turn_60", sixtieth)] {
        times.sort();
        print(case, times[times.len() / 2].as_secs_f64() * 1e6);
    }
}

/// One write of two messages with their JSON into threads of many lengths, checkpoint included.
fn updates() {
    if !wanted("update") {
        return;
    }
    for length in [100, 1_000, 10_000, 100_000] {
        let runtime = Runtime::new(r#"{"workers":0}"#).expect("a runtime");
        let thread = runtime.open_thread("{}").expect("a thread");
        let write = |count: usize| {
            let messages: Vec<Value> = (0..count)
                .map(|n| {
                    let role = ["user", "ai"][n % 2];
                    json!({"role": role, "content": "x".repeat(60)})
                })
                .collect();
            json!({"values": {"messages": messages}}).to_string()
        };
        thread.update(&write(length)).expect("written");
        let two = write(2);
        let mut times: Vec<f64> = (0..15)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..200 {
                    thread.update(&two).expect("written");
                }
                start.elapsed().as_secs_f64() * 1e6 / 200.0
            })
            .collect();
        times.sort_by(f64::total_cmp);
        print(&format!("update_{length}"), times[7]);
    }
}

/// A bare hop: what a condition variable costs between two threads, both ways. The yardstick of runs with workers.
fn hop() {
    use std::sync::mpsc::sync_channel;
    let (to, from_main) = sync_channel::<()>(1);
    let (back, from_other) = sync_channel::<()>(1);
    let other = std::thread::spawn(move || {
        while from_main.recv().is_ok() {
            if back.send(()).is_err() {
                return;
            }
        }
    });
    report("bare_hop_and_back", || {
        to.send(()).expect("the other thread lives");
        from_other.recv().expect("the other thread lives");
    });
    drop(to);
    other.join().expect("no panic");
}

/// 200 runs at once with a delay of 50 ms in each of their two model calls: 100 ms would be ideal.
fn many() {
    for (case, config) in [
        ("200_runs", r#"{"workers":0}"#),
        ("200_runs_workers", r#"{"workers":2}"#),
    ] {
        let runtime = Runtime::new(config).expect("a runtime");
        let model = runtime
            .model(
                &json!({"provider": "scripted", "repeat": true, "replies": [
                    {"tool_calls": [{"name": "get_weather", "args": {}}], "delay_ms": 50},
                    {"content": "Fine.", "delay_ms": 50},
                ]})
                .to_string(),
            )
            .expect("a model");
        let mut parts = bare(ScriptModel::new(Vec::new()));
        parts.model = model;
        parts.tools = vec![tool("get_weather", |_| async { answer("clear") })];
        let agent = runtime.compose(parts).expect("an assembly");
        let mut times: Vec<f64> = (0..7)
            .map(|_| {
                let start = Instant::now();
                let runs: Vec<_> = (0..200)
                    .map(|_| {
                        let thread = runtime.open_thread("{}").expect("a thread");
                        runtime
                            .start_run(&agent, &thread, None, HELLO)
                            .expect("a run")
                    })
                    .collect();
                for run in runs {
                    assert!(matches!(run.wait(Wait::Forever), Ok(Answer::Done(_))));
                }
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let line = json!({
            "peer": "fawn", "case": case, "ms": times[3] / 1e3, "of_ideal": times[3] / 100_000.0,
        });
        println!("{line}");
    }
}
