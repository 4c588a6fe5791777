//! Every fault that llmock has, and its verdict on how a run took them.
//!
//! With `retry_after_partial` there must be no finding at all. Without it what has reached the host is never asked for
//! again, so three findings remain; [`FINDINGS_WITHOUT_RETRY_AFTER_PARTIAL`] lists them with the reason.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fawn::protocol::error::ErrorCode;
use fawn::runtime::Answer;
use serde_json::{Value, json};

use crate::support::llmock::Llmock;
use crate::support::talk::{LONG, Talk, Told};

/// Providers and where llmock serves their wire format.
const PROVIDERS: [(&str, &str); 2] = [("openai", "/v1"), ("anthropic", "/anthropic")];

/// What llmock still finds when text that reached the host is final: the fault, the finding, and why it is none.
const FINDINGS_WITHOUT_RETRY_AFTER_PARTIAL: [(&str, &str, &str); 3] = [
    (
        "disconnect",
        "gave_up",
        "the host has the text; the run fails with model_truncated and keeps the part",
    ),
    (
        "truncate",
        "truncated_stream_accepted",
        "it is not accepted: the run fails with model_truncated and keeps the part",
    ),
    (
        "malformed",
        "malformed_chunk_ignored",
        "it is not ignored: the run fails with model_protocol and keeps the part",
    ),
];

const KINDS: [&str; 4] = ["disconnect", "truncate", "stall", "malformed"];

/// With time between two events, so that llmock sees when a client closes a stream before it has sent all of it.
const SLOWLY: &[&str] = &["--tool-mode=off", "--stream-chunk-delay-ms=10"];

/// Shorter than every stall and delay that is scripted here.
const TIMEOUT_MS: u64 = 1000;

fn model(provider: &str, base_url: String, members: Value) -> Value {
    let mut model = json!({
        "provider": provider, "model": "mock-1", "base_url": base_url, "api_key": "sk-test",
        "max_tokens": 200, "first_byte_timeout_ms": TIMEOUT_MS,
        "between_bytes_timeout_ms": TIMEOUT_MS,
        // llmock must see that waits grow, through its own noise on a busy machine.
        "retry_base_delay_ms": 400,
    });
    model
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    model
}

/// Runs `check` for every provider that this build has, with a way to talk to it.
fn every(mock: &Llmock, check: impl Fn(&dyn Fn(Value) -> Talk)) {
    for (provider, path) in PROVIDERS {
        let talk = |members: Value| {
            let model = model(provider, mock.url(path), members);
            let tool = json!({"name": "get_weather", "parameters": {
                "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
            }});
            Talk::configured(
                &json!({"workers": 0}),
                &json!({ "model": model, "tools": [tool] }),
            )
        };
        match talk(json!({})) {
            Err(error)
                if [ErrorCode::Unsupported, ErrorCode::UnknownVariant].contains(&error.code) =>
            {
                let _ = writeln!(
                    std::io::stderr(),
                    "skipped: llmock with {provider}, which this build does not have"
                );
            }
            Err(error) => panic!("{provider}: {error:?}"),
            Ok(_) => check(&|members| talk(members).unwrap()),
        }
    }
}

/// A run that answers tool calls. What it says has not been said before: llmock takes a request that it has seen fail for
/// a retry of that one.
fn say(talk: &Talk) -> Told {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let text = format!("hello number {}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let request = json!({"input": {"messages": [text]}});
    talk.say_with(request, |event, _| {
        if event["type"] == "host_call" {
            let args = &event["data"]["args"];
            assert!(args["city"].is_string(), "a broken call was run: {args}");
            let id = event["data"]["call_id"].as_u64().unwrap();
            talk.runtime.finish(id, r#"{"ok":"sunny"}"#).unwrap();
        }
    })
}

/// Retried or not, by status; the rest of the 4xx are the caller's fault.
fn passes(status: u64) -> bool {
    matches!(status, 408 | 409 | 425 | 429) || status >= 500
}

/// What one scripted fault led to.
struct Case {
    told: Told,
    findings: Vec<String>,
    attempts: u64,
}

/// A run against one fault. What llmock saw before stays in its journal, for its report.
fn meet(mock: &Llmock, talk: &Talk, behavior: &Value) -> Case {
    let (before, earlier) = mock.verdict();
    mock.script(behavior);
    let told = say(talk);
    let (mut findings, attempts) = mock.verdict();
    for name in before {
        let place = findings.iter().position(|finding| *finding == name);
        findings.remove(place.expect("findings stay"));
    }
    Case {
        told,
        findings,
        attempts: attempts - earlier,
    }
}

impl Case {
    fn is(&self, status: &str, attempts: u64, what: &str) {
        let end = self.told.end();
        assert_eq!(end["status"], status, "{what}: {end}");
        assert_eq!(self.attempts, attempts, "{what}");
        assert_eq!(self.findings, [""; 0], "{what}");
    }
}

fn assert_clean(mock: &Llmock) {
    let (is_clean, report) = mock.report();
    assert!(is_clean, "{report}");
}

#[test]
fn every_status_is_taken_as_it_should() {
    let Some(mock) = Llmock::start(&["--tool-mode", "off"]) else {
        return;
    };
    every(&mock, |talk| {
        let fast = talk(json!({"retry_base_delay_ms": 1}));
        for status in 400..600 {
            let case = meet(&mock, &fast, &json!({"type": "fail", "status": status}));
            let wanted = if passes(status) { "success" } else { "error" };
            case.is(wanted, 1 + u64::from(passes(status)), &status.to_string());
        }
        let talk = talk(json!({}));
        for status in [408, 429, 529] {
            let twice = json!({"type": "fail", "status": status, "times": 2});
            meet(&mock, &talk, &twice).is("success", 3, &twice.to_string());
        }
        for status in [429, 503] {
            let wait = json!({"type": "fail", "status": status, "times": 2, "retry_after": 0.4});
            let case = meet(&mock, &talk, &wait);
            case.is("success", 3, &wait.to_string());
            assert!(case.told.took >= Duration::from_millis(800));
        }
        let for_good = json!({"type": "fail", "status": 503, "times": 3});
        meet(&mock, &talk, &for_good).is("error", 3, "503 for good");
        assert_clean(&mock);
    });
}

#[test]
fn every_broken_stream_is_made_good_with_retry_after_partial() {
    let Some(mock) = Llmock::start(SLOWLY) else {
        return;
    };
    every(&mock, |talk| {
        let talk = talk(json!({"retry_after_partial": true}));
        for kind in KINDS {
            for (after, times) in [(0, 1), (1, 1), (3, 1), (5, 2)] {
                let fault = json!({
                    "type": "stream_fault", "kind": kind, "after_chunks": after, "stall_seconds": 5,
                    "times": times,
                });
                let case = meet(&mock, &talk, &fault);
                case.is("success", 1 + times, &fault.to_string());
                let message = &case.told.end()["message"];
                assert_eq!(case.told.shown(), message["content"], "{fault}");
                assert_eq!(case.told.of_type("message").len(), 1, "{fault}");
            }
        }
        assert_clean(&mock);
    });
}

#[test]
fn without_retry_after_partial_what_is_found_is_what_the_design_says() {
    let Some(mock) = Llmock::start(SLOWLY) else {
        return;
    };
    every(&mock, |talk| {
        for kind in KINDS {
            let talk = talk(json!({}));
            let fault = |after| json!({"type": "stream_fault", "kind": kind, "after_chunks": after, "stall_seconds": 5});
            // Before any text has come it is tried again, and nothing is found.
            meet(&mock, &talk, &fault(0)).is("success", 2, kind);
            // After some the part is kept, and the run fails with an error that says why.
            let Case {
                told,
                findings,
                attempts,
            } = meet(&mock, &talk, &fault(5));
            let expected = FINDINGS_WITHOUT_RETRY_AFTER_PARTIAL
                .iter()
                .filter(|(fault, ..)| *fault == kind)
                .map(|(_, finding, _)| (*finding).to_owned());
            assert_eq!(findings, expected.collect::<Vec<_>>(), "{kind}");
            assert_eq!(attempts, 1, "{kind}");
            let code = told.end()["error"]["code"].as_str().unwrap();
            let wanted = match kind {
                "disconnect" | "truncate" => "model_truncated",
                "stall" => "model_timeout",
                _ => "model_protocol",
            };
            assert_eq!(code, wanted, "{kind}: {}", told.end());
            let kept = talk.texts().pop().unwrap();
            assert!(!kept.is_empty() && kept == told.shown(), "{kind}: {kept}");
        }
    });
}

#[test]
fn slow_answers_are_timed_out_and_asked_for_again() {
    let Some(mock) = Llmock::start(&["--tool-mode", "off"]) else {
        return;
    };
    every(&mock, |talk| {
        for kind in ["delay", "slow_first_token"] {
            let case = meet(
                &mock,
                &talk(json!({})),
                &json!({"type": kind, "seconds": 2.5}),
            );
            case.is("success", 2, kind);
            assert_eq!(case.told.nexts(), ["retry"]);
            assert!(case.told.took < Duration::from_secs(4));
        }
        assert_clean(&mock);
    });
}

#[test]
fn broken_tool_calls_are_told_to_the_model_and_never_run() {
    let Some(mock) = Llmock::start(&[]) else {
        return;
    };
    every(&mock, |talk| {
        for kind in ["malformed_arguments", "unknown_tool"] {
            for stream in [true, false] {
                let talk = talk(json!({ "stream": stream }));
                let case = meet(&mock, &talk, &json!({"type": "tool_fault", "kind": kind}));
                assert_eq!(case.told.end()["status"], "success", "{kind}");
            }
        }
        assert_clean(&mock);
    });
}

/// Starts so many runs at once, each on a thread of its own, and waits for all of them to succeed.
fn run_at_once(talk: &Talk, runs: u32) {
    let running: Vec<_> = (0..runs)
        .map(|number| {
            let thread = talk.runtime.open_thread("{}").unwrap();
            let text =
                format!("number {number}, said with enough words for a reply of many chunks");
            let request = json!({"input": {"messages": [text]}}).to_string();
            talk.runtime
                .start_run(&talk.assembly, &thread, Some(&talk.queue), &request)
                .unwrap()
        })
        .collect();
    for run in running {
        let Ok(Answer::Done(result)) = run.wait(LONG) else {
            panic!("no result")
        };
        assert!(result.contains("\"status\":\"success\""), "{result}");
    }
}

#[test]
fn faults_at_random_are_ridden_out() {
    let options = [
        "--tool-mode=off",
        // It cuts streams within the first seven chunks and takes each for one without an end: no reply may be as short.
        "--response-style=echo",
        "--latency-ms=5",
        "--stream-chunk-delay-ms=10",
        "--error-rate=429=0.05",
        "--error-rate=503=0.05",
        "--stream-fault=disconnect=0.04",
        "--stream-fault=truncate=0.04",
        // No malformed chunks at random: one may be a ping, which nobody reads, and llmock would count it as passed over.
        "--stream-fault=stall=0.03",
        "--stream-stall-seconds=5",
    ];
    let Some(mock) = Llmock::start(&options) else {
        return;
    };
    every(&mock, |talk| {
        // Attempts of one call stay below the eleven that llmock calls a storm.
        let model =
            json!({"retry_after_partial": true, "max_retries": 9, "retry_cap_delay_ms": 4000});
        run_at_once(&talk(model), 40);
        assert_clean(&mock);
    });
}

#[test]
fn a_rate_limit_is_waited_for() {
    let Some(mock) = Llmock::start(&["--tool-mode=off", "--rpm=60"]) else {
        return;
    };
    every(&mock, |talk| {
        let talk = talk(json!({}));
        run_at_once(&talk, 60);
        // From here on there is one request a second.
        for _ in 0..4 {
            run_at_once(&talk, 1);
        }
        assert_clean(&mock);
    });
}

#[test]
fn a_prompt_that_is_too_long_is_one_attempt() {
    let Some(mock) = Llmock::start(&["--context-window", "300"]) else {
        return;
    };
    every(&mock, |talk| {
        mock.reset();
        let request = json!({"input": {"messages": ["word ".repeat(2000)]}});
        let told = talk(json!({})).say(request);
        assert_eq!(told.end()["error"]["code"], "model_request");
        assert_eq!(mock.verdict(), (Vec::new(), 1));
    });
}
