//! Golden runs: scenarios as data, run in deterministic mode, every answer and event compared.
//!
//! `tests/golden/<name>.json` is a scenario: configurations, then steps. `tests/golden/<name>.expected.json` is what came out,
//! one entry a step. `UPDATE=1` rewrites the expected files; read the difference in review. The format is plain enough for
//! any language to run:
//!
//! - `{"run": request, "answers": [answer, …]}`: starts a run, takes events to its end, answers the host calls in their order.
//!   An answer may be `{"emit": [piece, …], "finish": answer}`, or `"cancel"`, which cancels the run instead.
//! - `{"update" | "state" | "history": input}`: one call on the thread.

use std::path::{Path, PathBuf};

use fawn::protocol::error::Error;
use fawn::runtime::{Answer, Assembly, Queue, Runtime, Thread, Wait};
use serde_json::{Value, json};

struct Objects {
    runtime: Runtime,
    assembly: Assembly,
    thread: Thread,
    queue: Queue,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn outcome(answer: Result<String, Error>) -> Value {
    match answer {
        Ok(text) => serde_json::from_str(&text).expect("answers are JSON"),
        Err(error) => json!({ "error": error.payload() }),
    }
}

fn play(scenario: &Value, workers: u32) -> Value {
    let mut config = scenario["runtime"].clone();
    config["testing"]["workers"] = workers.into();
    let text = |member: &str| scenario[member].to_string();
    let runtime = Runtime::new(&config.to_string()).expect("a runtime");
    let objects = Objects {
        assembly: runtime
            .new_assembly(&text("assembly"))
            .expect("an assembly"),
        thread: runtime.open_thread(&text("thread")).expect("a thread"),
        queue: runtime.new_queue("{}").expect("a queue"),
        runtime,
    };
    let steps = scenario["steps"].as_array().expect("steps");
    steps.iter().map(|step| play_step(&objects, step)).collect()
}

fn play_step(objects: &Objects, step: &Value) -> Value {
    let Objects {
        runtime,
        assembly,
        thread,
        queue,
    } = objects;
    let (name, input) = step
        .as_object()
        .and_then(|step| step.iter().next())
        .expect("a step");
    let input = input.to_string();
    match name.as_str() {
        "update" => outcome(thread.update(&input)),
        "state" => outcome(thread.state(&input)),
        "history" => outcome(thread.history(&input)),
        "run" => {
            let run = match runtime.start_run(assembly, thread, Some(queue), &input) {
                Ok(run) => run,
                Err(error) => return outcome(Err(error)),
            };
            let mut answers = step["answers"]
                .as_array()
                .cloned()
                .unwrap_or_default()
                .into_iter();
            let mut events: Vec<Value> = Vec::new();
            while events.last().is_none_or(|event| event["type"] != "run_end") {
                let Ok(Answer::Done(batch)) = queue.take(Wait::Forever, 1) else {
                    panic!("the queue ended before the run")
                };
                let event = serde_json::from_str::<Vec<Value>>(&batch)
                    .expect("JSON")
                    .remove(0);
                if event["type"] == "host_call" {
                    let id = event["data"]["call_id"].as_u64().expect("a call id");
                    let answer = answers.next().expect("an answer for each host call");
                    if answer == "cancel" {
                        run.submit(r#"{"op":"cancel","reason":"golden"}"#)
                            .expect("cancelled");
                    } else if let Some(pieces) = answer.get("emit") {
                        for piece in pieces.as_array().expect("pieces") {
                            runtime.emit(id, &piece.to_string()).expect("emitted");
                        }
                        runtime
                            .finish(id, &answer["finish"].to_string())
                            .expect("finished");
                    } else {
                        runtime.finish(id, &answer.to_string()).expect("finished");
                    }
                }
                events.push(event);
            }
            json!({ "events": events })
        }
        other => panic!("unknown step {other}"),
    }
}

/// Joins deltas of one message that follow each other and renumbers, since how many pieces wait when a take comes is the
/// one thing that OS threads decide.
fn joined(outcome: &Value) -> Value {
    let mut outcome = outcome.clone();
    for step in outcome.as_array_mut().expect("steps") {
        let Some(events) = step.get_mut("events").and_then(Value::as_array_mut) else {
            continue;
        };
        let mut joined: Vec<Value> = Vec::new();
        for mut event in std::mem::take(events) {
            if let Some(last) = joined.last_mut()
                && event["type"] == "message_delta"
                && last["type"] == "message_delta"
                && last["data"]["message_id"] == event["data"]["message_id"]
                && let (Some(a), Some(b)) = (
                    last["data"]["text"].as_str(),
                    event["data"]["text"].as_str(),
                )
            {
                last["data"]["text"] = format!("{a}{b}").into();
                continue;
            }
            event["seq"] = (joined.len() + 1).into();
            joined.push(event);
        }
        *events = joined;
    }
    outcome
}

#[test]
fn every_scenario_gives_what_it_gave_before_in_both_ways_of_driving() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("tests/golden")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .filter(|name| !name.ends_with(".expected"))
        .collect();
    names.sort();
    assert!(names.len() >= 10, "only {names:?}");
    let mut wrong = Vec::new();
    for name in names {
        let read = |file: String| std::fs::read_to_string(folder().join(file));
        let scenario: Value =
            serde_json::from_str(&read(format!("{name}.json")).expect("a scenario"))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        let outcome = play(&scenario, 0);
        let text = serde_json::to_string_pretty(&outcome).expect("JSON") + "\n";
        let expected = format!("{name}.expected.json");
        if std::env::var_os("UPDATE").is_some_and(|update| update == "1") {
            std::fs::write(folder().join(&expected), &text).expect("written");
        } else if read(expected).ok().as_deref() != Some(text.as_str()) {
            wrong.push(format!("{name}: {text}"));
        }
        assert_eq!(
            joined(&play(&scenario, 2)),
            joined(&outcome),
            "{name}: worker threads and the host's thread must give the same"
        );
    }
    assert!(
        wrong.is_empty(),
        "changed (UPDATE=1 rewrites): {}",
        wrong.join("\n")
    );
}
