//! Whole runs against aimock, a mock of the model wire that others wrote: streaming, parallel tools, tool turns, usage,
//! cancelling in mid-stream.

use std::time::{Duration, Instant};

use fawn::runtime::{Answer, Queue, Runtime, Thread, Wait};
use serde_json::{Value, json};

use crate::support::aimock::Aimock;

const LONG: Wait = Wait::For(Duration::from_secs(30));

struct Talk {
    runtime: Runtime,
    thread: Thread,
    queue: Queue,
    assembly: fawn::runtime::Assembly,
}

impl Talk {
    fn new(mock: &Aimock, stream: bool, workers: u32) -> Talk {
        let runtime = Runtime::new(&json!({ "workers": workers }).to_string()).unwrap();
        let config = json!({
            "model": {
                "provider": "openai", "model": "gpt-4o", "base_url": mock.base_url(),
                "api_key": "sk-test", "stream": stream,
            },
            "system_prompt": "Be brief.",
            "tools": [
                {"name": "get_weather", "parameters": {"type": "object", "required": ["city"]}},
                {"name": "add", "parameters": {"type": "object"}},
            ],
        });
        Talk {
            assembly: runtime.new_assembly(&config.to_string()).unwrap(),
            thread: runtime.open_thread("{}").unwrap(),
            queue: runtime.new_queue("{}").unwrap(),
            runtime,
        }
    }

    /// Says something, answers every tool call with its name, and gives the events.
    fn say(&self, text: &str, mut seen: impl FnMut(&Value, &fawn::runtime::Run)) -> Vec<Value> {
        let request = json!({"input": {"messages": [{"role": "user", "content": text}]}});
        let run = self
            .runtime
            .start_run(
                &self.assembly,
                &self.thread,
                Some(&self.queue),
                &request.to_string(),
            )
            .unwrap();
        let mut events: Vec<Value> = Vec::new();
        while events.last().is_none_or(|event| event["type"] != "run_end") {
            let Ok(Answer::Done(batch)) = self.queue.take(LONG, 0) else {
                panic!("no events")
            };
            for event in serde_json::from_str::<Vec<Value>>(&batch).unwrap() {
                if event["type"] == "host_call" {
                    let id = event["data"]["call_id"].as_u64().unwrap();
                    let answer = json!({"ok": {"content": event["data"]["name"]}});
                    self.runtime.finish(id, &answer.to_string()).unwrap();
                }
                seen(&event, &run);
                events.push(event);
            }
        }
        events
    }

    fn texts(&self) -> Vec<String> {
        let state: Value = serde_json::from_str(&self.thread.state("{}").unwrap()).unwrap();
        let messages = state["values"]["messages"].as_array().unwrap().clone();
        messages
            .iter()
            .map(|m| m["content"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn streamed(events: &[Value]) -> String {
    let deltas = events
        .iter()
        .filter(|event| event["type"] == "message_delta");
    deltas
        .filter_map(|event| event["data"]["text"].as_str())
        .collect()
}

/// Every way of driving, streaming and not.
fn every(mock: &Aimock, check: impl Fn(&Talk)) {
    for workers in [0, 2] {
        for stream in [true, false] {
            check(&Talk::new(mock, stream, workers));
        }
    }
}

#[test]
fn parallel_tool_calls_and_the_turn_after_their_results() {
    let Some(mock) = Aimock::start() else { return };
    every(&mock, |talk| {
        let events = talk.say("weather in Paris, and a sum", |_, _| {});
        let end = &events.last().unwrap()["data"];
        assert_eq!(end["status"], "success", "{end}");
        let calls: Vec<_> = events
            .iter()
            .filter(|event| event["type"] == "host_call")
            .map(|event| event["data"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(calls, ["get_weather", "add"]);
        assert_eq!(
            talk.texts()[1..],
            [
                "Let me look.",
                "get_weather",
                "add",
                "It is 12 °C in Paris, and the sum is 3."
            ]
        );
        let all: String = streamed(&events);
        assert_eq!(all, "Let me look.It is 12 °C in Paris, and the sum is 3.");
    });
}

#[test]
fn text_streams_and_usage_is_told() {
    let Some(mock) = Aimock::start() else { return };
    every(&mock, |talk| {
        let events = talk.say("say hello", |_, _| {});
        assert_eq!(streamed(&events), "Hello there, how can I help? Ça va 🙂");
        let events = talk.say("count tokens", |_, _| {});
        let usage = events
            .iter()
            .find(|event| event["type"] == "usage")
            .expect("usage");
        assert_eq!(usage["data"]["usage"]["total_tokens"], 25);
        assert_eq!(events.last().unwrap()["data"]["usage"]["input_tokens"], 21);
    });
}

#[test]
fn cancel_in_mid_stream_keeps_what_has_arrived() {
    let Some(mock) = Aimock::start() else { return };
    for workers in [0, 2] {
        let talk = Talk::new(&mock, true, workers);
        let mut cancelled: Option<Instant> = None;
        let events = talk.say("talk for long", |event, run| {
            if event["type"] == "message_delta" && cancelled.is_none() {
                cancelled = Some(Instant::now());
                run.submit(r#"{"op":"cancel"}"#).unwrap();
            }
        });
        // 40 sentences at 25 ms a piece take many seconds; the end must come long before.
        let took = cancelled.expect("a delta").elapsed();
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert_eq!(events.last().unwrap()["data"]["status"], "interrupted");
        let kept = talk.texts().pop().unwrap();
        assert!(!kept.is_empty() && "This is a very long answer. ".repeat(40).starts_with(&kept));
        assert_eq!(kept, streamed(&events));
        let next = talk.say("say hello", |_, _| {});
        assert_eq!(
            next.last().unwrap()["data"]["status"],
            "success",
            "the thread goes on"
        );
    }
}

#[test]
fn a_stream_without_its_end_mark_is_an_error_with_the_partial_text_kept() {
    let Some(mock) = Aimock::start() else { return };
    for workers in [0, 2] {
        for text in ["cut the stream", "drop the connection"] {
            let talk = Talk::new(&mock, true, workers);
            let events = talk.say(text, |_, _| {});
            let end = &events.last().unwrap()["data"];
            assert_eq!(end["status"], "error");
            let code = end["error"]["code"].as_str().unwrap();
            assert!(
                ["model_truncated", "model_connection"].contains(&code),
                "{end}"
            );
            let kept = talk.texts().pop().unwrap();
            let whole = "This answer is long enough to be ";
            assert!(
                kept.len() > 4 && (whole.starts_with(&kept) || kept.starts_with(whole)),
                "{kept:?}"
            );
        }
    }
}
