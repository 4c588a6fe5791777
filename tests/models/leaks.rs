//! What is gone leaves nothing behind, counted to the byte.

use std::sync::Arc;
use std::time::Duration;

use fawn::adapters::store::memory::MemoryStore;
use fawn::ports::checkpoint::DynCheckpointStore;
use fawn::runtime::{Answer, Runtime, Wait};
use futures_util::FutureExt;
use serde_json::{Value, json};

use crate::support::counting;

/// A runtime that does all its work on the OS thread that counts.
fn runtime() -> Runtime {
    runtime_with(Arc::new(MemoryStore::new()))
}

fn runtime_with(store: Arc<dyn DynCheckpointStore>) -> Runtime {
    let config = json!({
        "models": [
            {"name": "main", "provider": "scripted", "repeat": true,
             "replies": [{"tool_calls": [{"id": "c", "name": "write_todos", "args": {"todos": []}}]}, {"content": "done"}]},
        ],
        "tools": [{"name": "a", "parameters": {"type": "object"}}],
        "workers": 0,
    });
    Runtime::with_store(&config.to_string(), store).unwrap_or_else(|error| panic!("{error:?}"))
}

/// Does `job` until what is kept ready is ready, then counts what more of it leaves.
fn left_by(times: usize, mut job: impl FnMut()) -> isize {
    for _ in 0..500 {
        job();
    }
    let before = counting::held();
    for _ in 0..times {
        job();
    }
    counting::held() - before
}

fn request() -> String {
    json!({
        "factory": "lead",
        "tools": [{"name": "b"}],
        "configurable": {"is_plan_mode": true},
    })
    .to_string()
}

#[test]
fn ten_thousand_assemblies_leave_nothing_behind() {
    let runtime = runtime();
    let request = request();
    let left = left_by(10_000, || {
        runtime.new_assembly(&request).unwrap();
    });
    assert_eq!(left, 0, "bytes");
    let left = left_by(500, || {
        let assembly = runtime.new_assembly(&request).unwrap();
        assembly.descriptor().unwrap();
    });
    assert_eq!(left, 0, "bytes");
}

#[test]
fn refused_assemblies_leave_nothing_behind() {
    let runtime = runtime();
    let left = left_by(1000, || {
        for refused in [
            json!({"factory": "lead", "tools": [{"name": "b"}, {"name": "b"}]}),
            json!({"factory": "lead", "configurable": {"agent_name": "nobody"}}),
            json!({"factory": "direct", "model": "main", "middleware": ["nothing"]}),
        ] {
            assert!(runtime.new_assembly(&refused.to_string()).is_err());
        }
    });
    assert_eq!(left, 0, "bytes");
}

#[test]
fn runs_on_threads_that_are_deleted_leave_nothing_behind() {
    let store: Arc<dyn DynCheckpointStore> = Arc::new(MemoryStore::new());
    let runtime = runtime_with(store.clone());
    let assembly = runtime.new_assembly(&request()).unwrap();
    let queue = runtime.new_queue("{}").unwrap();
    let input = json!({"input": {"messages": [{"role": "user", "content": "hello"}]}}).to_string();
    let run = || {
        let thread = runtime.open_thread("{}").unwrap();
        let run = runtime
            .start_run(&assembly, &thread, Some(&queue), &input)
            .unwrap();
        loop {
            let Answer::Done(events) = queue.take(Wait::Forever, 256).unwrap() else {
                panic!("no events");
            };
            let events: Value = serde_json::from_str(&events).unwrap();
            let mut events = events.as_array().unwrap().iter();
            if events.any(|event| event["type"] == "run_end") {
                break;
            }
        }
        let Answer::Done(result) = run.wait(Wait::Forever).unwrap() else {
            panic!("no result");
        };
        let result: Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["status"], "success", "{result}");
        let deleted = store.delete(thread.id()).now_or_never();
        deleted.expect("the memory store answers at once").unwrap();
    };
    // Until every bounded map of the chain is full (HP-2, MW-TOD-6).
    left_by(5000, run);
    let left = left_by(20_000, run);
    // The list of open threads is cleared of closed ones now and then, so that it is longer at times.
    assert!(left < 128 * 1024, "{left} bytes of 20,000 runs");
}

/// 200 delegations that wait for a place hold at most 4 KiB each: what is gone when their runs are cancelled, which is all but
/// what the threads keep of the calls.
#[test]
fn a_delegation_that_waits_holds_at_most_four_kib() {
    const EACH: usize = 50;
    let task = |n: usize| {
        json!({"name": "task", "id": format!("t{n}"), "args": {
            "description": "Count", "prompt": "Count the files.", "subagent_type": "idle",
        }})
    };
    let config = json!({
        "workers": 0,
        "models": [
            {"name": "main", "provider": "scripted", "replies": [{"tool_calls": (0..EACH).map(task).collect::<Vec<_>>()}]},
            {"name": "worker", "provider": "scripted", "replies": [{"hang": true}]},
        ],
        "title": {"enabled": false},
        "subagents": {"custom_agents": {"idle": {"description": "Hangs", "system_prompt": "Hang.", "model": "worker"}}},
    });
    let runtime = Runtime::new(&config.to_string()).unwrap();
    let places = json!({"config": {"max_running": EACH, "max_queued": 1000, "queue_timeout_seconds": 86_400}, "max_total_per_run": EACH});
    let places = runtime.new_subagents(&places.to_string()).unwrap();
    let request = json!({
        "factory": "lead", "subagent_runtime": 1,
        "configurable": {"subagent_enabled": true, "thinking_enabled": false, "max_total_subagents": EACH},
    });
    let find = |_| Ok(places.clone());
    let agent = runtime
        .new_assembly_with(&request.to_string(), &find)
        .unwrap();
    let begin = |stands: &dyn Fn() -> bool| {
        let thread = runtime.open_thread("{}").unwrap();
        let queue = runtime.new_queue("{}").unwrap();
        let input =
            json!({"input": {"messages": [{"role": "user", "content": "go"}]}, "stream": []});
        let run = runtime.start_run(&agent, &thread, Some(&queue), &input.to_string());
        let run = run.unwrap();
        while !stands() {
            queue.take(Wait::For(Duration::from_millis(1)), 0).unwrap();
        }
        (thread, queue, run)
    };
    let snapshot = || places.capacity().snapshot();
    // The first takes all places, and the second is the first that waits.
    let working = begin(&|| snapshot().running == EACH as u64);
    let first = begin(&|| snapshot().queued == EACH as u64);
    let waiting: Vec<_> = (2..6)
        .map(|n| begin(&|| snapshot().queued == n * EACH as u64))
        .collect();
    let held = counting::held();
    let mut kept = Vec::new();
    for (thread, queue, run) in waiting {
        run.submit(r#"{"op": "cancel"}"#).unwrap();
        let Answer::Done(_) = run.wait(Wait::Forever).unwrap() else {
            panic!("no result");
        };
        drop(run);
        while let Answer::Done(_) = queue.take(Wait::For(Duration::ZERO), 0).unwrap() {}
        kept.push((thread, queue));
    }
    assert_eq!(snapshot().queued, EACH as u64);
    let each = (held - counting::held()) / (4 * EACH) as isize;
    assert!((1000..=4096).contains(&each), "{each} bytes");
    drop((working, first));
}
