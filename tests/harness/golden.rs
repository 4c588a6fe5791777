//! Golden runs: the scenarios of `tests/golden`, run in deterministic mode, every answer and event compared.
//!
//! `tests/golden/README.md` has the format. `UPDATE=1` rewrites the expected files; read the difference in review. That
//! the other languages get the same is what `tests/bindings` tests.

use serde::Deserialize;
use serde_json::Value;

use crate::support::json_text::pretty;
use crate::support::player::{Printed, play};
use crate::support::scenario::{self, Scenario, step_lines};

/// Plays a scenario and gives its expected file: a JSON array with one entry a step, every value as the library wrote it.
fn outcome(scenario: &Scenario, workers: u32) -> String {
    let prelude = scenario.prelude(workers);
    let lines: Vec<String> = scenario.steps.iter().flat_map(step_lines).collect();
    let printed = play(&[prelude.as_slice(), &lines].concat().join("\n"));
    let (made, steps) = printed.split_at(prelude.len());
    assert!(made.iter().all(|lines| lines == &["ok"]), "{made:?}");
    let entries: Vec<String> = steps.iter().map(entry).collect();
    pretty(&format!("[{}]", entries.join(","))) + "\n"
}

/// One step's entry: the answer, `"ok"` where there is none, `{"error": object}`, or `{"events": […]}` of a run. What a
/// host is told between two events stands between them.
fn entry(printed: &Printed) -> String {
    let entries: Vec<String> = printed.iter().map(|line| line_entry(line)).collect();
    match printed.last().and_then(|line| line.strip_prefix("result ")) {
        None => entries.concat(),
        Some(result) if entries.len() == 1 => format!("{{\"result\":{result}}}"),
        Some(result) => {
            let events = &entries[..entries.len() - 1];
            let end = "\"type\":\"run_end\",";
            let last = events.last().expect("events");
            assert!(last.contains(end), "{last}");
            assert!(last.ends_with(&format!("\"data\":{result}}}")), "{result}");
            format!("{{\"events\":[{}]}}", events.join(","))
        }
    }
}

fn line_entry(line: &str) -> String {
    match line.split_once(' ') {
        None => format!("{line:?}"),
        Some(("error", object)) => format!("{{\"error\":{object}}}"),
        Some((_, text)) => text.to_owned(),
    }
}

/// Joins deltas of one message that follow each other and renumbers, since how many pieces wait when a take comes is the
/// one thing that OS threads decide.
fn joined(outcome: &str) -> Value {
    let mut outcome = {
        let mut text = serde_json::Deserializer::from_str(outcome);
        text.disable_recursion_limit(); // states may be as deep as input may be
        Value::deserialize(&mut text).expect("JSON")
    };
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
                && let Some((member, text)) = ["text", "reasoning"].iter().find_map(|member| {
                    let begin = last["data"][member].as_str()?;
                    Some((
                        member,
                        format!("{begin}{}", event["data"][member].as_str()?),
                    ))
                })
            {
                last["data"][member] = text.into();
                continue;
            }
            if event.get("seq").is_some() {
                event["seq"] = (joined.len() + 1).into();
            }
            joined.push(event);
        }
        *events = joined;
    }
    forget_workers(&mut outcome);
    outcome
}

/// How many threads drive is told by the stats, and differs on purpose.
fn forget_workers(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| name != "workers");
            members.values_mut().for_each(forget_workers);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_workers),
        _ => {}
    }
}

#[test]
fn every_scenario_gives_what_it_gave_before_in_both_ways_of_driving() {
    let scenarios = scenario::all();
    assert!(scenarios.len() >= 40, "only {}", scenarios.len());
    let mut wrong = Vec::new();
    for (name, scenario) in &scenarios {
        let driven = outcome(scenario, 0);
        let expected = scenario::folder().join(format!("{name}.expected.json"));
        if scenario.unrecorded.is_none() {
            if std::env::var_os("UPDATE").is_some_and(|update| update == "1") {
                std::fs::write(&expected, &driven).expect("written");
            } else if std::fs::read_to_string(&expected).ok().as_ref() != Some(&driven) {
                wrong.push(format!("{name}: {driven}"));
            }
        }
        if scenario.driven_only.is_none() {
            let with_workers = outcome(scenario, 2);
            if joined(&with_workers) != joined(&driven) {
                wrong.push(format!("{name}, with worker threads: {with_workers}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "changed (UPDATE=1 rewrites): {}",
        wrong.join("\n")
    );
}
