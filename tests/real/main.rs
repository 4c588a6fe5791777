//! Whole runs with a real model behind llama.cpp's server. `make test-real` sets up what it needs; without that every test
//! says that it was skipped.

#![allow(clippy::unwrap_used, reason = "a failed test says where")]

#[path = "../support/mod.rs"]
mod support;

mod server;

use std::io::Write;
use std::time::{Duration, Instant};

use fawn::protocol::error::ErrorCode;
use fawn::runtime::Answer;
use serde_json::{Value, json};

use server::{Model, RealModel};
use support::talk::{LONG, Talk, Told};

/// Providers of wire formats that the server speaks. Those that this build does not have are skipped with a message.
const PROVIDERS: [&str; 2] = ["openai", "anthropic"];

/// Runs `check` with each provider: it makes an agent of that provider out of members of its model.
fn every(model: &RealModel, check: impl Fn(&str, &dyn Fn(Value) -> Talk)) {
    for provider in PROVIDERS {
        let talk = |members: Value| {
            let mut config = json!({
                "provider": provider, "model": "local", "base_url": model.url("/v1"), "api_key": "none",
                "temperature": 0, "max_tokens": 120, "retry_base_delay_ms": 1,
            });
            config
                .as_object_mut()
                .unwrap()
                .extend(members.as_object().unwrap().clone());
            let with_tools = config
                .as_object_mut()
                .unwrap()
                .remove("tools")
                .is_some_and(|with| with == true);
            let tools = if with_tools { tools() } else { json!([]) };
            Talk::configured(
                &json!({"workers": 2}),
                &json!({ "model": config, "tools": tools }),
            )
        };
        match talk(json!({})) {
            Err(error)
                if [ErrorCode::Unsupported, ErrorCode::UnknownVariant].contains(&error.code) =>
            {
                let _ = writeln!(
                    std::io::stderr(),
                    "skipped: {provider}, which this build does not have"
                );
            }
            Err(error) => panic!("{provider}: {error:?}"),
            Ok(_) => check(provider, &|members| talk(members).unwrap()),
        }
    }
}

fn tools() -> Value {
    json!([
        {
            "name": "get_weather", "description": "Get current weather for a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
        {
            "name": "add", "description": "Add two integers",
            "parameters": {
                "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        },
    ])
}

fn ask(text: &str) -> Value {
    json!({"input": {"messages": [{"role": "user", "content": text}]}, "recursion_limit": 8})
}

/// A run whose tool calls are answered; also gives the calls.
fn say(talk: &Talk, text: &str) -> (Told, Vec<Value>) {
    let mut calls = Vec::new();
    let told = talk.say_with(ask(text), |event, _| {
        if event["type"] != "host_call" {
            return;
        }
        let data = &event["data"];
        let content = match data["name"].as_str().unwrap() {
            "get_weather" => json!({"city": data["args"]["city"], "temp_c": 18, "sky": "clear"}),
            _ => {
                let number = |name: &str| data["args"][name].as_i64().unwrap_or_default();
                json!(number("a") + number("b"))
            }
        };
        let answer = json!({"ok": {"content": content.to_string()}}).to_string();
        talk.runtime
            .finish(data["call_id"].as_u64().unwrap(), &answer)
            .unwrap();
        calls.push(json!([data["name"], data["args"]]));
    });
    (told, calls)
}

#[test]
fn a_model_calls_tools_and_answers_with_what_they_say() {
    let Some(model) = RealModel::start(Model::Tools, 1) else {
        return;
    };
    every(&model, |provider, talk| {
        for stream in [true, false] {
            let talk = |members: Value| {
                let mut members = members;
                members["stream"] = stream.into();
                members["tools"] = true.into();
                talk(members)
            };
            let case = format!("{provider}, stream {stream}");
            let (told, calls) = say(&talk(json!({})), "What is the weather in Paris right now?");
            assert_eq!(told.end()["status"], "success", "{case}: {}", told.end());
            assert_eq!(calls, [json!(["get_weather", {"city": "Paris"}])], "{case}");
            let answer = told.end()["message"]["content"].to_string();
            assert!(answer.contains("18"), "{case}: {answer}");
            assert_eq!(told.end()["steps"], 3, "{case}");
            let usage = &told.end()["usage"];
            assert!(
                usage["output_tokens"].as_u64() > Some(10),
                "{case}: {usage}"
            );

            let question = "What is 1234 plus 4321? Use the add tool.";
            let (told, calls) = say(&talk(json!({})), question);
            assert_eq!(told.end()["status"], "success", "{case}: {}", told.end());
            assert_eq!(calls, [json!(["add", {"a": 1234, "b": 4321}])], "{case}");
            let answer = told.end()["message"]["content"].to_string();
            assert!(answer.contains("5555"), "{case}: {answer}");
        }
    });
}

/// The server answers 500, and after it has begun to stream reports an error event, when its own parser does not understand
/// the model: for two cities at once, and for a question that needs no tool while there are some.
#[test]
fn errors_of_the_server_are_typed_and_tried_again_within_bounds() {
    let Some(model) = RealModel::start(Model::Tools, 1) else {
        return;
    };
    every(&model, |provider, talk| {
        for stream in [true, false] {
            for after_partial in [true, false] {
                let talk = talk(json!({
                    "stream": stream, "tools": true, "max_retries": 1,
                    "retry_after_partial": after_partial,
                }));
                let (told, calls) = say(&talk, "Say hello to me in French.");
                let case = format!("{provider}, stream {stream}, after {after_partial}: ");
                let case = format!("{case}{}", told.end());
                let error = &told.end()["error"];
                assert_eq!(error["code"], "model_server", "{case}");
                if !stream {
                    assert_eq!(error["http_status"], 500, "{case}");
                }
                let message = error["message"].as_str().unwrap();
                assert!(message.contains("expected peg-native format"), "{case}");
                assert!(calls.is_empty(), "{case}");
                assert_eq!(told.nexts(), ["retry", "none"], "{case}");
                assert_eq!(talk.texts().len(), 1, "{case}");
            }
        }
        // Pieces of a call have reached the host before the error: final, unless the host allows for more.
        for (after_partial, nexts) in [(false, &["none"][..]), (true, &["retry", "none"])] {
            let talk = talk(json!({
                "tools": true, "max_retries": 1, "retry_after_partial": after_partial,
            }));
            let (told, calls) = say(&talk, "What is the weather in Paris and in Tokyo?");
            if told.end()["status"] == "success" {
                // This wire format carries both calls whole.
                assert_eq!(calls.len(), 2, "{provider}: {}", told.end());
                continue;
            }
            assert_eq!(
                told.end()["error"]["code"],
                "model_server",
                "{}",
                told.end()
            );
            assert_eq!(told.nexts(), nexts, "{provider}");
            let resets = told.of_type("stream_reset").len();
            assert_eq!(resets, usize::from(after_partial), "{provider}");
            assert!(calls.is_empty(), "a broken call was run: {calls:?}");
        }
    });
}

#[test]
fn a_cancelled_run_frees_its_place_in_the_server() {
    let Some(model) = RealModel::start(Model::Small, 1) else {
        return;
    };
    every(&model, |provider, talk| {
        let talk = talk(json!({"max_tokens": 1000}));
        for round in 0..3 {
            let mut cancelled: Option<Instant> = None;
            let mut free = None;
            let told = talk.say_with(
                ask("Tell me a very long story about the sea."),
                |event, run| {
                    if event["type"] == "message_delta" && cancelled.is_none() {
                        assert!(model.is_busy());
                        cancelled = Some(Instant::now());
                        run.submit(r#"{"op":"cancel"}"#).unwrap();
                        while model.is_busy() {
                            assert!(cancelled.unwrap().elapsed() < Duration::from_secs(10));
                            std::thread::sleep(Duration::from_millis(10));
                        }
                        free = cancelled.map(|at| at.elapsed());
                    }
                },
            );
            assert_eq!(told.end()["status"], "interrupted");
            let free = free.expect("text has begun");
            let _ = writeln!(
                std::io::stderr(),
                "{provider}, round {round}: the server was free {free:?} after cancel"
            );
            assert!(free < Duration::from_millis(500), "{provider}: {free:?}");
            let kept = talk.texts().pop().unwrap();
            assert!(!kept.is_empty());
        }
    });
}

#[test]
fn four_runs_share_the_server() {
    let Some(model) = RealModel::start(Model::Small, 4) else {
        return;
    };
    every(&model, |provider, talk| {
        let talk = talk(json!({"max_tokens": 30}));
        let begun = Instant::now();
        let running: Vec<_> = ["Paris", "Oslo", "Rome", "Lima"]
            .into_iter()
            .map(|city| {
                let thread = talk.runtime.open_thread("{}").unwrap();
                let request = ask(&format!("Tell me about {city}.")).to_string();
                talk.runtime
                    .start_run(&talk.assembly, &thread, None, &request)
                    .unwrap()
            })
            .collect();
        let mut texts = Vec::new();
        for run in running {
            let Ok(Answer::Done(result)) = run.wait(LONG) else {
                panic!("no result")
            };
            let result: Value = serde_json::from_str(&result).unwrap();
            assert_eq!(result["status"], "success", "{provider}: {result}");
            texts.push(result["message"]["content"].as_str().unwrap().to_owned());
        }
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 4, "{provider}: each has its own: {texts:?}");
        let _ = writeln!(
            std::io::stderr(),
            "{provider}: four runs at once took {:?}",
            begun.elapsed()
        );
    });
}
