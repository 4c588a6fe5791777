//! `kill -9` in the middle of runs: the next process reads the last step that was reported, or a later one, and goes on.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fawn::runtime::{Answer, Assembly, Runtime, Wait};
use serde_json::{Value, json};

use crate::parts::{ScriptModel, answer, calls, parts, says, tool};

const CHILD: &str = "FAWN_CRASH_FOLDER";
const ROUNDS: u64 = 60;

fn runtime(folder: &Path) -> Runtime {
    let config = json!({
        "workers": 0,
        "database": {"backend": "sqlite", "sqlite_dir": folder},
    });
    Runtime::new(&config.to_string()).unwrap()
}

fn agent(runtime: &Runtime) -> Assembly {
    let replies = vec![
        calls(&[("f", "c1", json!({})), ("f", "c2", json!({}))]),
        says("done"),
    ];
    let mut parts = parts(ScriptModel::new(replies));
    parts.tools = vec![tool("f", |_| async { answer("result") })];
    runtime.compose(parts).unwrap()
}

/// What the killed process does: runs on one thread, each checkpoint told on stdout once it was reported.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(CHILD) else {
        return;
    };
    let runtime = runtime(Path::new(&folder));
    let agent = agent(&runtime);
    let thread = runtime.open_thread(r#"{"thread_id":"t"}"#).unwrap();
    let queue = runtime.new_queue("{}").unwrap();
    let mut out = std::io::stdout();
    for _ in 0..100_000 {
        let request = r#"{"input":{"messages":["more"]},"stream":[]}"#;
        runtime
            .start_run(&agent, &thread, Some(&queue), request)
            .unwrap();
        loop {
            let Ok(Answer::Done(batch)) = queue.take(Wait::Forever, 0) else {
                return;
            };
            let events: Vec<Value> = serde_json::from_str(&batch).unwrap();
            for event in &events {
                if event["type"] == "checkpoint" {
                    let id = event["data"]["checkpoint_id"].as_str().unwrap();
                    writeln!(out, "\nreported {id}").unwrap();
                    out.flush().unwrap();
                }
            }
            if events.iter().any(|event| event["type"] == "run_end") {
                break;
            }
        }
    }
}

#[test]
fn a_killed_process_loses_no_reported_step_and_the_next_one_goes_on() {
    let folder = std::env::temp_dir().join(format!("fawn-crash-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut reported_in_all = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child", "--nocapture"])
            .env(CHILD, &folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || -> Vec<String> {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines
                .filter_map(|line| Some(line.strip_prefix("reported ")?.to_owned()))
                .collect()
        });
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(round);
        std::thread::sleep(Duration::from_micros(15_000 + (random >> 33) % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let reported = reader.join().unwrap();
        reported_in_all += reported.len();

        let runtime = runtime(&folder);
        let thread = runtime.open_thread(r#"{"thread_id":"t"}"#).unwrap();
        if let Some(last) = reported.last() {
            let history: Vec<Value> =
                serde_json::from_str(&thread.history(r#"{"limit":8}"#).unwrap()).unwrap();
            let place = history
                .iter()
                .position(|one| one["checkpoint_id"] == **last);
            let place = place.unwrap_or_else(|| panic!("{last} was reported and is not there"));
            // A run that never waits stores all its steps before the host's thread is back to hear of them.
            assert!(place <= 4, "at most one run's steps are newer, not {place}");
        }
        // Going on needs no repair: open calls are run, stored ones are not.
        let run = runtime
            .start_run(&agent(&runtime), &thread, None, "{}")
            .unwrap();
        let Ok(Answer::Done(end)) = run.wait(Wait::Forever) else {
            panic!("no result")
        };
        // A process killed before its first step was stored leaves nothing to go on from.
        let is_empty = reported_in_all == 0 && end.contains("no messages to go on from");
        assert!(end.contains("\"success\"") || is_empty, "{end}");
        let state: Value =
            serde_json::from_str(&thread.state(r#"{"channels":["messages"]}"#).unwrap()).unwrap();
        let messages = state["values"]["messages"].as_array().unwrap();
        for (place, message) in messages.iter().enumerate() {
            let open = message["tool_calls"].as_array().map_or(0, Vec::len);
            let results = messages[place + 1..]
                .iter()
                .take_while(|m| m["type"] == "tool")
                .count();
            assert!(
                open == 0 || results == open,
                "message {place} of round {round}"
            );
        }
    }
    assert!(
        reported_in_all > 0,
        "no round lived long enough to report a step"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
