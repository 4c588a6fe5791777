//! Whole runs through the runtime's facade: events, host calls, cancellation, admission, durability.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fawn::protocol::error::{Error, ErrorCode};
use fawn::runtime::{Answer, Assembly, Queue, Run, Runtime, Thread, Wait};
use serde_json::{Value, json};

use crate::parts::{Log, Noting, ScriptModel, answer, calls, parts, says, tool};
use crate::support::request_invariant;

const DETERMINISTIC: &str =
    r#"{"testing":{"clock":"2026-01-01T00:00:00Z","ids":"sequential","workers":0}}"#;
/// Both ways of driving; every behaviour must be the same.
const BOTH: [&str; 2] = [r#"{"workers":0}"#, r#"{"workers":2}"#];
const LONG: Wait = Wait::For(Duration::from_secs(20));

fn runtime(config: &str) -> Runtime {
    Runtime::new(config).expect("a sound configuration")
}

fn thread(runtime: &Runtime, id: &str) -> Thread {
    runtime
        .open_thread(&json!({ "thread_id": id }).to_string())
        .expect("a thread")
}

fn queue(runtime: &Runtime) -> Queue {
    runtime.new_queue("{}").expect("a queue")
}

fn hello() -> Value {
    json!({"input": {"messages": [{"role": "user", "content": "hello", "id": "h1"}]}})
}

fn start(
    runtime: &Runtime,
    agent: &Assembly,
    thread: &Thread,
    queue: Option<&Queue>,
    request: &Value,
) -> Run {
    runtime
        .start_run(agent, thread, queue, &request.to_string())
        .expect("a run")
}

fn result(run: &Run) -> Value {
    match run.wait(LONG) {
        Ok(Answer::Done(text)) => serde_json::from_str(&text).expect("JSON"),
        other => panic!("no result: {other:?}"),
    }
}

/// Takes events up to and with the first `run_end`.
fn events(queue: &Queue) -> Vec<Value> {
    let mut all = Vec::new();
    while all
        .last()
        .is_none_or(|event: &Value| event["type"] != "run_end")
    {
        match queue.take(LONG, 0) {
            Ok(Answer::Done(text)) => {
                let batch: Vec<Value> = serde_json::from_str(&text).expect("a JSON array");
                all.extend(batch);
            }
            other => panic!("no events: {other:?}"),
        }
    }
    all
}

fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().expect("a type"))
        .collect()
}

fn state(thread: &Thread) -> Value {
    serde_json::from_str(&thread.state("{}").expect("a state")).expect("JSON")
}

fn texts(thread: &Thread) -> Vec<String> {
    let state = state(thread);
    let messages = state["values"]["messages"]
        .as_array()
        .expect("messages")
        .clone();
    messages
        .iter()
        .map(|m| {
            format!(
                "{}:{}",
                m["type"].as_str().unwrap(),
                m["content"].as_str().unwrap()
            )
        })
        .collect()
}

fn code(error: &Error) -> ErrorCode {
    error.code
}

fn weather_agent(runtime: &Runtime) -> Assembly {
    let config = json!({
        "model": {"provider": "host"},
        "tools": [{"name": "get_weather", "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        }}],
    });
    runtime
        .new_assembly(&config.to_string())
        .expect("an assembly")
}

/// Answers the host calls of a run until it ends; the model's replies come from `replies`, one by one.
fn answer_all(runtime: &Runtime, queue: &Queue, mut replies: Vec<Value>) -> Vec<Value> {
    replies.reverse();
    let mut all: Vec<Value> = Vec::new();
    while all.last().is_none_or(|event| event["type"] != "run_end") {
        let Ok(Answer::Done(text)) = queue.take(LONG, 0) else {
            panic!("no events")
        };
        let batch: Vec<Value> = serde_json::from_str(&text).unwrap();
        for event in &batch {
            if event["type"] == "host_call" {
                request_invariant::check_call(&event["data"]);
                let id = event["data"]["call_id"].as_u64().unwrap();
                let reply = match event["data"]["kind"].as_str() {
                    Some("model") => json!({"ok": replies.pop().expect("one more reply")}),
                    _ => json!({"ok": {"content": "18 degrees"}}),
                };
                let finished = runtime.finish(id, &reply.to_string());
                assert_eq!(finished, Ok(Answer::Done(())));
                assert_eq!(runtime.finish(id, &reply.to_string()), Ok(Answer::Gone));
            }
        }
        all.extend(batch);
    }
    all
}

#[test]
fn a_run_tells_what_happens_in_order_and_the_same_each_time() {
    let run_once = || {
        let runtime = runtime(DETERMINISTIC);
        let model = ScriptModel::new(vec![calls(&[("f", "c1", json!({}))]), says("done")]);
        let mut parts = parts(model);
        parts.tools = vec![tool("f", |_| async { answer("result") })];
        let agent = runtime.compose(parts).unwrap();
        let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
        let run = start(&runtime, &agent, &thread, Some(&queue), &hello());
        let events = events(&queue);
        assert_eq!(events.last().unwrap()["data"], result(&run));
        events
    };
    let first = run_once();
    assert_eq!(
        types(&first),
        [
            "run_start",
            "checkpoint",
            "message",
            "update",
            "checkpoint",
            "message",
            "update",
            "checkpoint",
            "message_delta",
            "message",
            "update",
            "checkpoint",
            "run_end"
        ]
    );
    let numbers: Vec<u64> = first
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=first.len() as u64).collect::<Vec<_>>());
    assert!(
        first
            .iter()
            .all(|event| event["at"] == "2026-01-01T00:00:00.000000Z")
    );
    let end = &first.last().unwrap()["data"];
    assert_eq!(
        (&end["status"], &end["steps"]),
        (&json!("success"), &json!(3))
    );
    assert_eq!(end["message"]["content"], "done");
    assert_eq!(
        first,
        run_once(),
        "deterministic mode repeats a run byte for byte"
    );
}

#[test]
fn the_host_answers_as_model_and_as_tool_in_both_ways_of_driving() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = weather_agent(&runtime);
        let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
        let run = start(&runtime, &agent, &thread, Some(&queue), &hello());
        let replies = vec![
            json!({"tool_calls": [{"name": "get_weather", "args": {"city": "Paris"}, "id": "c1"}]}),
            json!({"content": "It is warm.", "usage": {"input_tokens": 5, "output_tokens": 2}}),
        ];
        let events = answer_all(&runtime, &queue, replies);
        let end = result(&run);
        assert_eq!(end["status"], "success", "{end}");
        assert_eq!(end["usage"]["total_tokens"], 7);
        assert_eq!(
            texts(&thread),
            ["human:hello", "ai:", "tool:18 degrees", "ai:It is warm."]
        );
        let call = events
            .iter()
            .find(|e| e["data"]["kind"] == "tool")
            .expect("a tool call");
        assert_eq!(call["data"]["args"], json!({"city": "Paris"}));
        assert_eq!(call["data"]["name"], "get_weather");
    }
}

#[test]
fn a_model_of_the_host_streams_what_it_emits() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = runtime
            .new_assembly(r#"{"model":{"provider":"host"}}"#)
            .unwrap();
        let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
        start(&runtime, &agent, &thread, Some(&queue), &hello());
        let mut text = String::new();
        loop {
            let Ok(Answer::Done(batch)) = queue.take(LONG, 1) else {
                panic!("no events")
            };
            let event = &serde_json::from_str::<Vec<Value>>(&batch).unwrap()[0];
            match event["type"].as_str().unwrap() {
                "host_call" => {
                    let id = event["data"]["call_id"].as_u64().unwrap();
                    for piece in ["Hel", "lo", "!"] {
                        let piece = json!({ "text": piece }).to_string();
                        assert_eq!(runtime.emit(id, &piece), Ok(Answer::Done(())));
                    }
                    let bad = runtime
                        .emit(id, r#"{"txt":"x"}"#)
                        .expect_err("unknown member");
                    assert_eq!(
                        (code(&bad), bad.path.as_deref()),
                        (ErrorCode::UnknownMember, Some("/txt"))
                    );
                    let bad = runtime
                        .finish(id, r#"{"ok":{"content":5}}"#)
                        .expect_err("wrong type");
                    assert_eq!(
                        (code(&bad), bad.path.as_deref()),
                        (ErrorCode::WrongType, Some("/ok/content"))
                    );
                    let done = runtime.finish(id, r#"{"ok":{"content":"Hello!"}}"#);
                    assert_eq!(
                        done,
                        Ok(Answer::Done(())),
                        "a refused answer leaves the call open"
                    );
                }
                "message_delta" => text.push_str(event["data"]["text"].as_str().unwrap()),
                "run_end" => break,
                _ => {}
            }
        }
        assert_eq!(text, "Hello!");
    }
}

#[test]
fn tools_that_fail_are_answered_to_the_model_and_the_run_goes_on() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = weather_agent(&runtime);
        let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
        start(&runtime, &agent, &thread, Some(&queue), &hello());
        let call =
            |name: &str, args: Value, id: &str| json!({"name": name, "args": args, "id": id});
        let replies = vec![
            json!({"tool_calls": [
                call("get_weather", json!({"city": 7}), "c1"),
                call("no_such_tool", json!({}), "c2"),
                call("get_weather", json!("{not json"), "c3"),
            ]}),
            json!("I see."),
        ];
        let events = answer_all(&runtime, &queue, replies);
        let tools_asked = events
            .iter()
            .filter(|e| e["data"]["kind"] == "tool")
            .count();
        assert_eq!(tools_asked, 0, "no call reached the host");
        let texts = texts(&thread);
        assert!(texts[2].contains("/city"), "{texts:?}");
        assert!(
            texts[3].contains("no_such_tool") && texts[3].contains("get_weather"),
            "{texts:?}"
        );
        assert_eq!(texts.last().unwrap(), "ai:I see.");
    }
}

#[test]
fn a_panicking_tool_or_model_is_an_error_and_the_thread_can_be_used_again() {
    for config in BOTH {
        let runtime = runtime(config);
        let model = ScriptModel::new(vec![calls(&[("f", "c1", json!({}))]), says("done")]);
        let mut tool_panics = parts(model);
        tool_panics.tools = vec![tool("f", |_| async { panic!("inside the tool") })];
        let agent = runtime.compose(tool_panics).unwrap();
        let thread = thread(&runtime, "t");
        let end = result(&start(&runtime, &agent, &thread, None, &hello()));
        assert_eq!(end["status"], "success");
        assert!(texts(&thread)[2].contains("inside the tool"));

        let mut hook_panics = parts(ScriptModel::new(vec![says("done")]));
        hook_panics.middleware = vec![Noting::acting("p", &Log::default(), |_, _| {
            panic!("inside the hook")
        })];
        let broken = runtime.compose(hook_panics).unwrap();
        let end = result(&start(&runtime, &broken, &thread, None, &hello()));
        assert_eq!(
            (&end["status"], &end["error"]["code"]),
            (&json!("error"), &json!("panic"))
        );
        let end = result(&start(
            &runtime,
            &agent,
            &thread,
            None,
            &json!({"input": {"messages": ["again"]}}),
        ));
        assert_eq!(end["status"], "success");
    }
}

#[test]
fn cancel_reaches_a_waiting_model_and_a_waiting_tool_and_closes_the_host_call() {
    for config in BOTH {
        for tool_waits in [false, true] {
            let runtime = runtime(config);
            let agent = weather_agent(&runtime);
            let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
            let run = start(&runtime, &agent, &thread, Some(&queue), &hello());
            let mut open_call = 0;
            let mut ended = Value::Null;
            let mut cancelled_at = None;
            while ended.is_null() {
                let Ok(Answer::Done(batch)) = queue.take(LONG, 1) else {
                    panic!("no events")
                };
                let event = serde_json::from_str::<Vec<Value>>(&batch)
                    .unwrap()
                    .remove(0);
                match event["type"].as_str().unwrap() {
                    "host_call" => {
                        let id = event["data"]["call_id"].as_u64().unwrap();
                        if event["data"]["kind"] == "model" && tool_waits {
                            let call = json!({"ok": {"tool_calls": [
                                {"name": "get_weather", "args": {"city": "x"}, "id": "c1"}]}});
                            runtime.finish(id, &call.to_string()).unwrap();
                        } else {
                            if event["data"]["kind"] == "model" {
                                runtime.emit(id, r#"{"text":"half a "}"#).unwrap();
                                // Let the run take the text before it is cancelled.
                                let _ = queue.take(Wait::For(Duration::from_millis(50)), 0);
                            }
                            open_call = id;
                            cancelled_at = Some(Instant::now());
                            run.submit(r#"{"op":"cancel","reason":"enough"}"#).unwrap();
                        }
                    }
                    "run_end" => ended = event["data"].clone(),
                    _ => {}
                }
            }
            let took = cancelled_at.expect("cancelled").elapsed();
            assert!(took < Duration::from_secs(5), "{took:?}");
            assert_eq!(
                (&ended["status"], &ended["cancel_reason"]),
                (&json!("interrupted"), &json!("enough"))
            );
            assert_eq!(
                runtime.finish(open_call, r#"{"ok":"late"}"#),
                Ok(Answer::Gone)
            );
            let expected: &[&str] = if tool_waits {
                &["human:hello", "ai:"]
            } else {
                &["human:hello", "ai:half a "]
            };
            assert_eq!(texts(&thread), expected);
        }
    }
}

#[test]
fn a_host_call_past_its_deadline_is_cancelled_and_the_model_is_told() {
    for config in BOTH {
        let runtime = runtime(config);
        let model = json!({"provider": "host"});
        let agent = runtime
            .new_assembly(
                &json!({"model": model, "tools": [{"name": "slow", "deadline_ms": 30}]})
                    .to_string(),
            )
            .unwrap();
        let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
        start(&runtime, &agent, &thread, Some(&queue), &hello());
        let mut cancelled = None;
        let mut replies = vec![
            json!("late then"),
            json!({"tool_calls": [{"name": "slow", "id": "c1"}]}),
        ];
        loop {
            let Ok(Answer::Done(batch)) = queue.take(LONG, 1) else {
                panic!("no events")
            };
            let event = serde_json::from_str::<Vec<Value>>(&batch)
                .unwrap()
                .remove(0);
            match event["type"].as_str().unwrap() {
                "host_call" if event["data"]["kind"] == "model" => {
                    let id = event["data"]["call_id"].as_u64().unwrap();
                    let reply = json!({ "ok": replies.pop().unwrap() });
                    runtime.finish(id, &reply.to_string()).unwrap();
                }
                "host_call_cancelled" => cancelled = Some(event["data"].clone()),
                "run_end" => break,
                _ => {}
            }
        }
        assert_eq!(cancelled.expect("an event")["reason"], "deadline_exceeded");
        assert!(
            texts(&thread)[2].contains("no answer within"),
            "{:?}",
            texts(&thread)
        );
    }
}

#[test]
fn a_tools_answer_that_is_wrong_is_refused_and_the_call_stays_open() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = weather_agent(&runtime);
        let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
        start(&runtime, &agent, &thread, Some(&queue), &hello());
        let call =
            json!({"tool_calls": [{"name": "get_weather", "args": {"city": "x"}, "id": "c1"}]});
        let mut replies = vec![json!("done"), call];
        loop {
            let Ok(Answer::Done(batch)) = queue.take(LONG, 1) else {
                panic!("no events")
            };
            let event = serde_json::from_str::<Vec<Value>>(&batch)
                .unwrap()
                .remove(0);
            if event["type"] == "run_end" {
                break;
            }
            let Some(id) = event["data"]["call_id"].as_u64() else {
                continue;
            };
            if event["data"]["kind"] == "model" {
                let reply = json!({ "ok": replies.pop().unwrap() });
                runtime.finish(id, &reply.to_string()).unwrap();
                continue;
            }
            for (answer, code, path) in [
                (
                    json!({"content": "c", "update": {"nope": 1}}),
                    ErrorCode::UnknownChannel,
                    "/ok/update/nope",
                ),
                (
                    json!({"content": "c", "update": 5}),
                    ErrorCode::WrongType,
                    "/ok/update",
                ),
                (
                    json!({"content": "c", "end_run": "yes"}),
                    ErrorCode::WrongType,
                    "/ok/end_run",
                ),
                (
                    json!({"content": "c", "atrifact": 1}),
                    ErrorCode::UnknownMember,
                    "/ok/atrifact",
                ),
            ] {
                let error = runtime
                    .finish(id, &json!({ "ok": answer }).to_string())
                    .unwrap_err();
                assert_eq!((error.code, error.path.as_deref()), (code, Some(path)));
            }
            assert_eq!(
                runtime.finish(id, r#"{"ok":{"degrees":18}}"#),
                Ok(Answer::Done(()))
            );
        }
        assert_eq!(texts(&thread)[2], r#"tool:{"degrees":18}"#);
    }
}

#[test]
fn the_result_is_there_when_run_end_is_seen() {
    let runtime = runtime(r#"{"workers":2}"#);
    let agent = runtime
        .compose(parts(ScriptModel::new(vec![says("done")])))
        .unwrap();
    let queue = queue(&runtime);
    for n in 0..300 {
        let thread = thread(&runtime, &format!("t{n}"));
        let run = start(&runtime, &agent, &thread, Some(&queue), &hello());
        let _ = events(&queue);
        assert!(
            matches!(run.wait(Wait::For(Duration::ZERO)), Ok(Answer::Done(_))),
            "run {n}"
        );
        assert!(
            runtime.stats("[]").contains(r#""active":0"#),
            "{}",
            runtime.stats("[]")
        );
    }
    assert_eq!(
        runtime.shutdown(LONG),
        Answer::Done(r#"{"runs_cancelled":0}"#.to_owned())
    );
}

#[test]
fn one_run_per_thread_reject_and_interrupt() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = runtime
            .new_assembly(r#"{"model":{"provider":"host"}}"#)
            .unwrap();
        let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
        let first = start(&runtime, &agent, &thread, Some(&queue), &hello());
        let refused = runtime
            .start_run(&agent, &thread, Some(&queue), "{}")
            .err()
            .expect("busy");
        assert_eq!(
            (code(&refused), refused.retryable),
            (ErrorCode::ThreadBusy, true)
        );
        let refused = thread
            .update(r#"{"values":{"title":"x"}}"#)
            .expect_err("busy");
        assert_eq!(code(&refused), ErrorCode::ThreadBusy);
        let request = json!({"multitask_strategy": "interrupt", "input": {"messages": ["second"]}});
        let second = start(&runtime, &agent, &thread, Some(&queue), &request);
        // The first run may have asked before it was cancelled; its call is gone then.
        let mut ends = 0;
        while ends < 2 {
            let Ok(Answer::Done(batch)) = queue.take(LONG, 0) else {
                panic!("no events")
            };
            for event in serde_json::from_str::<Vec<Value>>(&batch).unwrap() {
                if event["type"] == "host_call" {
                    let id = event["data"]["call_id"].as_u64().unwrap();
                    runtime.finish(id, r#"{"ok":"fine"}"#).unwrap();
                }
                ends += usize::from(event["type"] == "run_end");
            }
        }
        assert_eq!(result(&first)["status"], "interrupted");
        assert_eq!(result(&second)["status"], "success");
        assert!(texts(&thread).contains(&"human:second".to_owned()));
    }
}

#[test]
fn bad_input_is_refused_at_once_with_its_path_and_changes_nothing() {
    let runtime = runtime(r#"{"workers":0}"#);
    let agent = runtime
        .compose(parts(ScriptModel::new(vec![says("done")])))
        .unwrap();
    let thread = thread(&runtime, "t");
    let refused = |request: Value| {
        let error = runtime
            .start_run(&agent, &thread, None, &request.to_string())
            .err();
        let error = error.unwrap_or_else(|| panic!("{request} was accepted"));
        (code(&error), error.path.unwrap_or_default())
    };
    assert_eq!(
        refused(json!({"inptu": {}})),
        (ErrorCode::UnknownMember, "/inptu".into())
    );
    assert_eq!(
        refused(json!({"input": {"massages": []}})),
        (ErrorCode::UnknownChannel, "/input/massages".into())
    );
    assert_eq!(
        refused(json!({"input": {"messages": ["ok", {"role": "alien", "content": "x"}]}})).0,
        ErrorCode::UnknownRole
    );
    assert_eq!(
        refused(json!({"stream": ["vlaues"]})).0,
        ErrorCode::UnknownVariant
    );
    assert_eq!(
        refused(json!({"recursion_limit": 0})),
        (ErrorCode::OutOfRange, "/recursion_limit".into())
    );
    assert_eq!(
        refused(json!({"checkpoint_id": "x"})).0,
        ErrorCode::Unsupported
    );
    let update = |text: &str| {
        let error = thread.update(text).expect_err(text);
        (code(&error), error.path.unwrap_or_default())
    };
    assert_eq!(
        update(
            r#"{"writes":[{"title":"x"},{"messages":[{"role":"remove","id":"9","content":""}]}]}"#
        ),
        (ErrorCode::UnknownMessageId, "/writes/1/messages/0".into())
    );
    assert_eq!(
        update(r#"{"values":{"messages":[{"role":"user"}]}}"#),
        (ErrorCode::MessageIncomplete, "/values/messages/0".into())
    );
    assert_eq!(
        update(r#"{"values":{"artifacts":["a"],"delegations":[{}]}}"#).0,
        ErrorCode::EntryMember
    );
    assert_eq!(state(&thread)["checkpoint_id"], Value::Null);
    assert_eq!(state(&thread)["values"]["messages"], json!([]));
}

#[test]
fn an_input_without_messages_on_a_thread_without_any_is_like_none() {
    for workers in BOTH {
        let runtime = runtime(workers);
        let agent = runtime
            .compose(parts(ScriptModel::new(Vec::new())))
            .unwrap();
        let thread = thread(&runtime, "t");
        for input in [json!(null), json!({}), json!({"messages": []})] {
            let run = start(&runtime, &agent, &thread, None, &json!({"input": input}));
            let error = &result(&run)["error"];
            assert_eq!(
                (&error["code"], &error["path"]),
                (&json!("missing_member"), &json!("/input")),
                "{error}"
            );
            assert!(
                error["message"]
                    .as_str()
                    .unwrap()
                    .contains("no messages to go on from"),
                "{error}"
            );
        }
    }
}

#[test]
fn half_a_surrogate_pair_is_told_in_one_way_whatever_its_form() {
    let runtime = runtime(r#"{"workers":0}"#);
    let thread = thread(&runtime, "t");
    let mut told = std::collections::BTreeSet::new();
    for half in [
        r"\ud800",
        r"\ud800x",
        r"\ud800\n",
        r"\ud800\u0041",
        r"\ud800\ud800",
        r"\udc00",
        r"\udc00\ud800",
    ] {
        let text = format!(r#"{{"values":{{"title":"{half}"}}}}"#);
        let errors = [
            thread.update(&text).expect_err(half),
            runtime.open_thread(&text).map(|_| ()).expect_err(half),
            fawn::state::reduce::reduce_document("title", &text)
                .map(|_| ())
                .expect_err(half),
        ];
        for error in errors {
            assert_eq!(error.code, ErrorCode::JsonSyntax, "{half}");
            told.insert(error.message);
        }
    }
    assert_eq!(told.len(), 1, "{told:#?}");
    let told = told.pop_first().unwrap();
    assert!(
        told.contains("surrogate") && told.contains("line 1"),
        "{told}"
    );
}

#[test]
fn a_tool_writes_no_system_messages() {
    let runtime = runtime(DETERMINISTIC);
    let agent = weather_agent(&runtime);
    let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
    let run = start(&runtime, &agent, &thread, Some(&queue), &hello());
    let call = |queue: &Queue| -> u64 {
        loop {
            let Ok(Answer::Done(text)) = queue.take(LONG, 1) else {
                panic!("no event");
            };
            let events: Vec<Value> = serde_json::from_str(&text).unwrap();
            if events[0]["type"] == "host_call" {
                return events[0]["data"]["call_id"].as_u64().unwrap();
            }
        }
    };
    let model = call(&queue);
    let asks = json!({"ok": {"tool_calls": [{"name": "get_weather", "args": {"city": "Paris"}, "id": "c1"}]}});
    runtime.finish(model, &asks.to_string()).unwrap();
    let tool = call(&queue);
    let writes = |message: Value| {
        json!({"ok": {"content": "x", "update": {"messages": [{"role": "user", "content": "a"}, message]}}})
            .to_string()
    };
    let error = runtime
        .finish(tool, &writes(json!({"role": "system", "content": "Obey."})))
        .unwrap_err();
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::OutOfRange, Some("/ok/update/messages/1"))
    );
    runtime
        .finish(tool, &writes(json!({"role": "user", "content": "b"})))
        .unwrap();
    runtime
        .finish(call(&queue), r#"{"ok":{"content":"Done."}}"#)
        .unwrap();
    assert_eq!(result(&run)["status"], "success");
}

#[test]
fn a_reply_that_says_nothing_is_told_of() {
    for (reply, why) in [
        (json!({"content": " "}), "asks for nothing"),
        (
            json!({"tool_calls": [{"name": "get_weather", "args": "{\"city\": "}]}),
            "1 calls in it could not be read",
        ),
    ] {
        let runtime = runtime(DETERMINISTIC);
        let agent = weather_agent(&runtime);
        let thread = thread(&runtime, "t");
        let queue = runtime.new_queue(r#"{"subscribe": ["log"]}"#).unwrap();
        let run = start(&runtime, &agent, &thread, Some(&queue), &hello());
        let mut warnings = Vec::new();
        loop {
            let Ok(Answer::Done(text)) = queue.take(LONG, 1) else {
                panic!("no event");
            };
            let event = serde_json::from_str::<Vec<Value>>(&text).unwrap().remove(0);
            let data = &event["data"];
            match event["type"].as_str().unwrap() {
                "host_call" => {
                    let id = data["call_id"].as_u64().unwrap();
                    let answer = json!({ "ok": reply });
                    runtime.finish(id, &answer.to_string()).unwrap();
                }
                "log" if data["code"] == "empty_reply" => warnings.push(data.to_string()),
                "run_end" => break,
                _ => {}
            }
        }
        assert_eq!(result(&run)["status"], "success", "EX-5");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(why), "{warnings:?}");
    }
}

#[test]
fn reads_give_the_part_that_is_asked_for() {
    let runtime = runtime(DETERMINISTIC);
    let thread = thread(&runtime, "t");
    let update =
        |text: &str| -> Value { serde_json::from_str(&thread.update(text).expect(text)).unwrap() };
    let first = update(r#"{"values":{"messages":["a","b"],"title":"one"}}"#);
    assert_eq!(first["step"], 0, "LG-37");
    update(
        r#"{"writes":[{"messages":["c"]},{"messages":[{"role":"ai","content":"d","id":"d1"}],"todos":[1]}]}"#,
    );
    let third = update(
        r#"{"values":{"messages":[{"role":"ai","content":"D","id":"d1"}]},"as_node":"editor"}"#,
    );
    let read = |query: Value| -> Value {
        serde_json::from_str(&thread.state(&query.to_string()).expect("a state")).unwrap()
    };
    let last = read(json!({"channels": ["messages"], "last_messages": 2}));
    let contents: Vec<_> = last["values"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(contents, ["c", "D"]);
    assert_eq!(last["values"].as_object().unwrap().len(), 1);
    assert_eq!(last["metadata"]["as_node"], "editor");

    let since = read(json!({"since": first["checkpoint_id"]}));
    let upserted: Vec<_> = since["messages"]["upserted"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(upserted, ["c", "D"]);
    assert_eq!(since["values"], json!({"todos": [1]}));

    let old = read(json!({"checkpoint_id": first["checkpoint_id"]}));
    assert_eq!(old["values"]["messages"].as_array().unwrap().len(), 2);
    assert_eq!(old["values"]["title"], "one");
    let history: Vec<Value> =
        serde_json::from_str(&thread.history(r#"{"limit":2}"#).unwrap()).unwrap();
    assert_eq!(history[0]["checkpoint_id"], third["checkpoint_id"]);
    assert_eq!(history.len(), 2);
    let unknown = thread.state(r#"{"checkpoint_id":"00000000-0000-6000-8000-000000000999"}"#);
    assert_eq!(
        unknown.expect_err("unknown").code,
        ErrorCode::UnknownCheckpoint
    );
}

#[test]
fn shutdown_cancels_runs_and_everything_afterwards_says_closed() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = runtime
            .new_assembly(r#"{"model":{"provider":"host"}}"#)
            .unwrap();
        let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
        let run = start(&runtime, &agent, &thread, Some(&queue), &hello());
        let Answer::Done(answer) = runtime.shutdown(LONG) else {
            panic!("not shut down")
        };
        assert_eq!(answer, r#"{"runs_cancelled":1}"#);
        assert_eq!(result(&run)["status"], "interrupted");
        let ends = events(&queue)
            .iter()
            .filter(|e| e["type"] == "run_end")
            .count();
        assert_eq!(ends, 1);
        assert_eq!(queue.take(Wait::Forever, 0), Ok(Answer::Closed));
        assert_eq!(
            runtime.new_queue("{}").err().map(|e| e.code),
            Some(ErrorCode::Closed)
        );
        assert_eq!(
            thread.state("{}").expect_err("closed").code,
            ErrorCode::Closed
        );
    }
}

#[test]
fn freeing_a_runtime_ends_what_waits_on_it() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = runtime
            .new_assembly(r#"{"model":{"provider":"host"}}"#)
            .unwrap();
        let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
        let run = start(&runtime, &agent, &thread, Some(&queue), &hello());
        let waiter = std::thread::spawn(move || run.wait(LONG));
        std::thread::sleep(Duration::from_millis(30));
        runtime.close();
        drop(runtime);
        let waited = waiter.join().expect("no panic");
        assert!(
            matches!(waited, Ok(Answer::Done(_) | Answer::Closed)),
            "{waited:?}"
        );
    }
}

#[test]
fn a_freed_queue_fails_its_host_calls_and_the_run_ends() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = runtime
            .new_assembly(r#"{"model":{"provider":"host"}}"#)
            .unwrap();
        let (thread, queue) = (thread(&runtime, "t"), queue(&runtime));
        let run = start(&runtime, &agent, &thread, Some(&queue), &hello());
        let _ = queue.take(LONG, 0);
        queue.close();
        let end = result(&run);
        assert_eq!(end["error"]["code"], "queue_closed", "{end}");
    }
}

#[test]
fn a_thread_in_sqlite_is_there_for_the_next_runtime() {
    let folder = std::env::temp_dir().join(format!("fawn-harness-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for workers in [0, 2] {
        let config = json!({
            "workers": workers,
            "database": {"backend": "sqlite", "sqlite_path": folder.join(format!("{workers}.db"))},
        });
        for round in 1..=2 {
            let runtime = runtime(&config.to_string());
            let model = ScriptModel::new(vec![says("one"), says("two")]);
            let agent = runtime.compose(parts(model)).unwrap();
            let thread = thread(&runtime, "t");
            assert_eq!(texts(&thread).len(), 2 * (round - 1));
            let request = json!({"input": {"messages": [format!("question {round}")]}});
            assert_eq!(
                result(&start(&runtime, &agent, &thread, None, &request))["status"],
                "success"
            );
            runtime.shutdown(LONG);
        }
        let runtime = runtime(&config.to_string());
        assert_eq!(
            texts(&thread(&runtime, "t")),
            ["human:question 1", "ai:one", "human:question 2", "ai:two"]
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn m18_parallel_tools_are_stored_in_call_order_whatever_order_they_finish_in() {
    for config in BOTH {
        let runtime = runtime(config);
        let list: Vec<(&str, &str, Value)> = vec![
            ("f", "c1", json!({"ms": 40})),
            ("f", "c2", json!({"ms": 10})),
            ("f", "c3", json!({"ms": 30})),
            ("f", "c4", json!({"ms": 20})),
        ];
        let mut parts = parts(ScriptModel::new(vec![calls(&list), says("done")]));
        parts.tools = vec![tool("f", |call| async move {
            let ms = call.args["ms"].as_u64().unwrap();
            tokio::time::sleep(Duration::from_millis(ms)).await;
            answer(&ms.to_string())
        })];
        let agent = runtime.compose(parts).unwrap();
        let thread = thread(&runtime, "t");
        let before = Instant::now();
        result(&start(&runtime, &agent, &thread, None, &hello()));
        assert_eq!(
            texts(&thread)[2..6],
            ["tool:40", "tool:10", "tool:30", "tool:20"]
        );
        assert!(
            before.elapsed() < Duration::from_millis(95),
            "they run at the same time"
        );
    }
}

#[test]
fn two_hundred_runs_at_once_end_with_results_of_their_own() {
    for config in BOTH {
        let runtime = runtime(config);
        let mut parts = parts(ScriptModel::new(vec![
            calls(&[("f", "c1", json!({}))]),
            says("done"),
        ]));
        parts.tools = vec![tool("f", |call| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            answer(&call.run.thread_id)
        })];
        let agent = Arc::new(runtime.compose(parts).unwrap());
        let runs: Vec<_> = (0..200)
            .map(|n| {
                let thread = thread(&runtime, &format!("t{n}"));
                let run = start(&runtime, &agent, &thread, None, &hello());
                (thread, run, n)
            })
            .collect();
        for (thread, run, n) in runs {
            assert_eq!(result(&run)["status"], "success");
            assert_eq!(texts(&thread)[2], format!("tool:t{n}"));
        }
    }
}

#[test]
fn warnings_reach_the_queues_that_subscribed_with_numbers_of_their_own() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = runtime
            .new_assembly(
                &json!({
                    "model": {"provider": "scripted", "replies": [
                        {"tool_calls": [
                            {"name": "no_such", "args": {}, "id": "a"},
                            {"name": "look", "args": {"city": 7}, "id": "b"},
                            {"name": "look", "args": {"city": "Oslo"}, "id": "c"},
                        ]},
                        {"content": "Done."},
                    ]},
                    "tools": [{"name": "look", "deadline_ms": 30, "parameters": {
                        "type": "object", "properties": {"city": {"type": "string"}},
                    }}],
                })
                .to_string(),
            )
            .expect("an assembly");
        let run_queue = queue(&runtime);
        let log = |options: &str| runtime.new_queue(options).expect("a queue");
        let logs = [
            log(r#"{"subscribe":["log"]}"#),
            log(r#"{"subscribe":["log"]}"#),
        ];
        let run = start(
            &runtime,
            &agent,
            &thread(&runtime, "t"),
            Some(&run_queue),
            &hello(),
        );
        let seen = events(&run_queue);
        assert!(!types(&seen).contains(&"log"), "only where asked for");
        assert_eq!(result(&run)["status"], "success");
        for queue in logs {
            let Ok(Answer::Done(text)) = queue.take(LONG, 0) else {
                panic!("no warnings")
            };
            let warnings: Vec<Value> = serde_json::from_str(&text).expect("JSON");
            let codes: Vec<&str> = warnings
                .iter()
                .map(|warning| warning["data"]["code"].as_str().expect("a code"))
                .collect();
            assert_eq!(
                codes,
                ["unknown_tool", "arguments_refused", "host_call_deadline"]
            );
            for (place, warning) in warnings.iter().enumerate() {
                assert_eq!(warning["seq"], place + 1);
                assert_eq!(warning["type"], "log");
                assert_eq!(
                    warning.get("run_id"),
                    None,
                    "it is not of the run's numbers"
                );
                assert_eq!(warning["data"]["run_id"], *run.id());
                assert_eq!(warning["data"]["thread_id"], "t");
            }
        }
    }
}

#[test]
fn a_tool_that_emits_more_than_is_taken_waits_for_room() {
    let runtime = runtime(r#"{"workers":1}"#);
    let agent = runtime
        .new_assembly(
            &json!({
                "model": {"provider": "scripted", "replies": [
                    {"tool_calls": [{"name": "chatty", "args": {}, "id": "a"}]},
                    {"content": "Done."},
                ]},
                "tools": [{"name": "chatty", "parameters": {"type": "object"}}],
            })
            .to_string(),
        )
        .expect("an assembly");
    let queue = runtime
        .new_queue(r#"{"high_mark_events":16}"#)
        .expect("a queue");
    let request = json!({"input": {"messages": ["go"]}, "stream": ["custom"]});
    start(
        &runtime,
        &agent,
        &thread(&runtime, "t"),
        Some(&queue),
        &request,
    );
    let mut seen = Vec::new();
    let call = loop {
        let Ok(Answer::Done(text)) = queue.take(LONG, 1) else {
            panic!("no event")
        };
        let event: Value = serde_json::from_str::<Vec<Value>>(&text).expect("JSON")[0].take();
        if event["type"] == "host_call" {
            break event["data"]["call_id"].as_u64().expect("an id");
        }
    };
    // 64 KiB each: what waits in the call has a bound of its own, and the host hears of it.
    let part = json!("x".repeat(1 << 16)).to_string();
    let mut accepted = 0;
    let refused = loop {
        match runtime.emit(call, &part) {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 10_000, "nothing holds the tool back");
    };
    assert_eq!((refused.code, refused.retryable), (ErrorCode::Behind, true));
    runtime
        .finish(call, r#"{"ok":"enough"}"#)
        .expect("finished");
    while seen.last().is_none_or(|kind| kind != "run_end") {
        match queue.take(LONG, 0) {
            Ok(Answer::Done(text)) => {
                let batch: Vec<Value> = serde_json::from_str(&text).expect("a JSON array");
                assert!(batch.len() < 64, "{} events waited", batch.len());
                seen.extend(
                    batch
                        .iter()
                        .map(|event| event["type"].as_str().expect("a type").to_owned()),
                );
            }
            other => panic!("no events: {other:?}"),
        }
    }
    let customs = seen.iter().filter(|kind| *kind == "custom").count();
    assert_eq!(customs, accepted, "what was taken is passed on");
}

#[test]
fn a_shutdown_tells_of_the_calls_that_it_ends_and_counts_over_all_its_calls() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = runtime
            .new_assembly(
                &json!({
                    "model": {"provider": "scripted", "replies": [{"tool_calls": [{"name": "slow", "args": {}, "id": "a"}]}]},
                    "tools": [{"name": "slow", "parameters": {"type": "object"}}],
                })
                .to_string(),
            )
            .expect("an assembly");
        let queue = queue(&runtime);
        start(
            &runtime,
            &agent,
            &thread(&runtime, "t"),
            Some(&queue),
            &hello(),
        );
        while !matches!(queue.take(LONG, 1), Ok(Answer::Done(text)) if text.contains("\"host_call\""))
        {
        }
        let mut answer = runtime.shutdown(Wait::For(Duration::ZERO));
        let deadline = Instant::now() + Duration::from_secs(20);
        while answer == Answer::TimedOut && Instant::now() < deadline {
            answer = runtime.shutdown(Wait::For(Duration::ZERO));
        }
        assert_eq!(
            answer,
            Answer::Done(r#"{"runs_cancelled":1}"#.to_owned()),
            "{config}"
        );
        let rest = events(&queue);
        assert_eq!(types(&rest), ["host_call_cancelled", "run_end"], "{config}");
        assert_eq!(rest[0]["data"]["reason"], "closed");
    }
}

#[test]
fn a_run_tells_which_it_is_and_whether_it_goes_on() {
    let runtime = runtime(DETERMINISTIC);
    let agent = runtime
        .compose(parts(ScriptModel::new(vec![says("Hi.")])))
        .expect("an assembly");
    let run = start(&runtime, &agent, &thread(&runtime, "t"), None, &hello());
    let status = || -> Value {
        serde_json::from_str(&run.submit(r#"{"op":"status"}"#).expect("a status")).expect("JSON")
    };
    let expected = |ended: bool| json!({"run_id": run.id(), "thread_id": "t", "ended": ended});
    assert_eq!(status(), expected(false));
    result(&run);
    assert_eq!(status(), expected(true));
    let refused = run.submit(r#"{"op":"status","why":1}"#).unwrap_err();
    assert_eq!(
        (refused.code, refused.path.as_deref()),
        (ErrorCode::UnknownMember, Some("/why"))
    );
}

#[test]
fn a_run_that_is_refused_for_its_id_leaves_the_run_on_its_thread_alone() {
    let runtime = runtime(r#"{"workers":1}"#);
    let agent = runtime
        .new_assembly(
            &json!({
                "model": {"provider": "scripted", "repeat": true, "replies": [{"tool_calls": [{"name": "wait", "args": {}, "id": "a"}]}]},
                "tools": [{"name": "wait", "parameters": {"type": "object"}}],
            })
            .to_string(),
        )
        .expect("an assembly");
    let queue = queue(&runtime);
    let mut named = hello();
    named["run_id"] = "one".into();
    let (here, there) = (thread(&runtime, "here"), thread(&runtime, "there"));
    let first = start(&runtime, &agent, &here, Some(&queue), &hello());
    start(&runtime, &agent, &there, Some(&queue), &named);
    named["multitask_strategy"] = "interrupt".into();
    let refused = runtime
        .start_run(&agent, &here, Some(&queue), &named.to_string())
        .err()
        .expect("a second run of this id");
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert!(matches!(
        first.wait(Wait::For(Duration::from_millis(50))),
        Ok(Answer::TimedOut)
    ));
}

#[test]
fn answers_that_were_taken_before_a_cancel_are_kept() {
    for config in BOTH {
        let runtime = runtime(config);
        let agent = runtime
            .new_assembly(
                &json!({
                    "model": {"provider": "scripted", "replies": [
                        {"tool_calls": [{"name": "f", "args": {}, "id": "a"}, {"name": "f", "args": {}, "id": "b"}]},
                        {"content": "Done."},
                    ]},
                    "tools": [{"name": "f", "parameters": {"type": "object"}}],
                })
                .to_string(),
            )
            .expect("an assembly");
        let queue = queue(&runtime);
        let here = thread(&runtime, "t");
        let run = start(&runtime, &agent, &here, Some(&queue), &hello());
        let mut calls = Vec::new();
        while calls.len() < 2 {
            let Ok(Answer::Done(text)) = queue.take(LONG, 1) else {
                panic!("no event")
            };
            let event: Value = serde_json::from_str::<Vec<Value>>(&text).expect("JSON")[0].take();
            if event["type"] == "host_call" {
                calls.push(event["data"]["call_id"].as_u64().expect("an id"));
            }
        }
        assert_eq!(
            runtime.finish(calls[1], r#"{"ok":"kept"}"#),
            Ok(Answer::Done(()))
        );
        run.submit(r#"{"op":"cancel"}"#).expect("cancelled");
        assert_eq!(result(&run)["status"], "interrupted");
        let messages = state(&here)["values"]["messages"].clone();
        let last = messages.as_array().expect("messages").last().expect("one");
        assert_eq!(
            (&last["tool_call_id"], &last["content"]),
            (&json!("b"), &json!("kept")),
            "{config}"
        );
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn a_thread_that_another_process_deleted_is_stale_once_and_then_begins_anew() {
    let folder = std::env::temp_dir().join(format!("fawn-deleted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let config = json!({
        "workers": 0,
        "database": {"backend": "sqlite", "sqlite_dir": folder.to_str()},
    })
    .to_string();
    // Two runtimes share nothing but the file, as two processes do.
    let (here, elsewhere) = (runtime(&config), runtime(&config));
    let write = r#"{"values":{"messages":[{"role":"user","content":"hi"}]}}"#;
    let kept = thread(&here, "t");
    kept.update(write).expect("written");
    elsewhere
        .submit(r#"{"op":"delete_thread","thread_id":"t"}"#)
        .expect("deleted");
    let refused = kept
        .update(write)
        .expect_err("the thread is not what it was");
    assert_eq!(
        (refused.code, refused.retryable),
        (ErrorCode::ThreadStale, true)
    );
    assert_eq!(state(&kept)["values"]["messages"], json!([]));
    kept.update(write).expect("written");

    // The same in a run.
    let agent = here
        .compose(parts(ScriptModel::new(vec![says("one"), says("two")])))
        .expect("an assembly");
    elsewhere
        .submit(r#"{"op":"delete_thread","thread_id":"t"}"#)
        .expect("deleted");
    let ended = result(&start(&here, &agent, &kept, None, &hello()));
    assert_eq!(ended["error"]["code"], "thread_stale");
    let ended = result(&start(&here, &agent, &kept, None, &hello()));
    assert_eq!(ended["status"], "success", "{ended}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// A run that needs its queue ends when that is freed, in place of asking models for nobody; a call that is open then stays so,
/// and a later run makes it.
#[test]
fn a_freed_queue_ends_a_run_that_waits_for_a_tool_and_a_later_one_makes_the_call() {
    let call_of = |queue: &Queue| loop {
        let Ok(Answer::Done(event)) = queue.take(LONG, 1) else {
            panic!("no events");
        };
        let event: Value = serde_json::from_str::<Vec<Value>>(&event)
            .unwrap()
            .remove(0);
        assert_ne!(event["type"], "run_end", "{event}");
        if event["type"] == "host_call" {
            return event["data"].clone();
        }
    };
    let reply = json!({"ok": {"tool_calls": [{"id": "c", "name": "get_weather", "args": {"city": "Oslo"}}]}});
    for config in BOTH {
        let runtime = runtime(config);
        let agent = weather_agent(&runtime);
        let (thread, first) = (thread(&runtime, "t"), queue(&runtime));
        let run = start(&runtime, &agent, &thread, Some(&first), &hello());
        let model = call_of(&first)["call_id"].as_u64().unwrap();
        let finished = runtime.finish(model, &reply.to_string());
        assert_eq!(finished, Ok(Answer::Done(())));
        let asked = call_of(&first);
        assert_eq!(asked["name"], "get_weather");
        first.close();
        let end = result(&run);
        assert_eq!(end["status"], "error", "{end}");
        assert_eq!(end["error"]["code"], "queue_closed", "{end}");

        let second = queue(&runtime);
        let run = start(&runtime, &agent, &thread, Some(&second), &json!({}));
        let again = call_of(&second);
        assert_eq!(
            (&again["name"], &again["idempotency_key"]),
            (&asked["name"], &asked["idempotency_key"])
        );
        let id = again["call_id"].as_u64().unwrap();
        runtime.finish(id, r#"{"ok": "18 degrees"}"#).unwrap();
        answer_all(&runtime, &second, vec![json!({"content": "Mild."})]);
        assert_eq!(result(&run)["status"], "success");
    }
}
