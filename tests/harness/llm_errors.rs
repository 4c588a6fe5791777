//! Models that fail for good, as the runs of a lead agent tell of them: the message, the result, the events; the circuit
//! breaker; and how many calls are in flight.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fawn::runtime::{Answer, Run, Runtime};
use serde_json::{Value, json};

use crate::support::http_server::{
    DONE, Server, Step, answer, chunked_stream, send, stop_event, stream_head, text_event, wait_ms,
};
use crate::support::talk::{LONG, Talk, Told};

const WORKERS: [u32; 2] = [0, 2];

/// A lead agent with this model; waits are short unless the sections say otherwise.
fn lead(workers: u32, model: Value, sections: Value) -> Talk {
    let mut model = model;
    model["name"] = "main".into();
    let mut runtime = json!({
        "workers": workers, "models": [model],
        "llm_call": {"retry_base_delay_ms": 1, "burst_retry_base_delay_ms": 2, "retry_cap_delay_ms": 5},
    });
    let members = runtime.as_object_mut().unwrap();
    members.extend(sections.as_object().unwrap().clone());
    Talk::configured(&runtime, &json!({"factory": "lead"})).unwrap_or_else(|e| panic!("{e:?}"))
}

fn scripted(replies: Value) -> Value {
    json!({"provider": "scripted", "replies": replies})
}

/// A script whose every reply fails like this.
fn failing(error: Value) -> Value {
    json!({"provider": "scripted", "repeat": true, "replies": [{ "error": error }]})
}

fn ai_messages(talk: &Talk) -> Vec<Value> {
    let state: Value = serde_json::from_str(&talk.thread.state("{}").unwrap()).unwrap();
    let messages = state["values"]["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["type"] == "ai")
        .cloned()
        .collect()
}

/// The reason, attempt and most attempts of each attempt that failed.
fn attempts(told: &Told) -> Vec<(String, u64, u64)> {
    let attempts = told.of_type("model_attempt");
    let number = |attempt: &Value, member: &str| attempt[member].as_u64().unwrap();
    attempts
        .iter()
        .map(|attempt| {
            let reason = attempt["reason"].as_str().unwrap().to_owned();
            (
                reason,
                number(attempt, "attempt"),
                number(attempt, "max_attempts"),
            )
        })
        .collect()
}

/// The run has failed with this code, and its only message is marked.
fn check_failed(told: &Told, talk: &Talk, code: &str, reason: &str) -> Value {
    let end = told.end();
    assert_eq!(
        (&end["status"], &end["error"]["code"]),
        (&json!("error"), &json!(code)),
        "{end}"
    );
    assert_eq!(end["message"], Value::Null);
    let ends = told.events.iter().filter(|e| e["type"] == "run_end");
    assert_eq!(ends.count(), 1);
    let last = ai_messages(talk).pop().unwrap();
    let kwargs = &last["additional_kwargs"];
    assert_eq!(kwargs["deerflow_error_fallback"], true);
    assert_eq!(kwargs["error_type"], code);
    assert_eq!(kwargs["error_reason"], reason);
    assert_eq!(kwargs["error_detail"], end["error"]["message"]);
    // What the host was told is what is stored, before the end.
    let nodes = told.of_type("message");
    let written: Vec<_> = nodes.iter().filter(|it| it["node"] == "model").collect();
    assert_eq!(written.last().unwrap()["message"]["id"], last["id"]);
    last
}

#[test]
fn llm_2_to_5_a_server_that_stays_down_is_tried_three_times_and_leaves_a_message() {
    for workers in WORKERS {
        let error = json!({"code": "model_server", "message": "the endpoint answered 500: oops", "status": 500});
        let talk = lead(workers, failing(error), json!({}));
        let told = talk.say(json!({}));
        let last = check_failed(&told, &talk, "model_server", "transient");
        let transient = |attempt| ("transient".to_owned(), attempt, 3);
        assert_eq!(attempts(&told), [transient(1), transient(2), transient(3)]);
        assert_eq!(told.nexts(), ["retry", "retry", "none"]);
        let text = last["content"].as_str().unwrap();
        assert!(text.starts_with("The model cannot be reached"), "{text}");
        assert_eq!(last["usage_metadata"], Value::Null);
        let end = told.end();
        assert_eq!(end["error"]["http_status"], 500);
        assert_eq!(end["error"]["retryable"], true);
        assert_eq!(
            (&end["steps"], &end["usage"]["total_tokens"]),
            (&json!(1), &json!(0))
        );
        assert!(told.of_type("usage").is_empty());
        // Its own words name the thread; nobody is asked about an error.
        let state: Value = serde_json::from_str(&talk.thread.state("{}").unwrap()).unwrap();
        assert_eq!(state["values"]["title"], "hello");
        assert_eq!(state["checkpoint_id"], end["checkpoint_id"]);
    }
}

#[test]
fn llm_3_a_wait_that_the_endpoint_asks_for_is_kept_as_it_is() {
    for workers in WORKERS {
        let model = scripted(json!([{
            "content": "fine", "fail_first": 1,
            "error": {"code": "model_rate_limit", "message": "slow down", "status": 429, "retry_after_ms": 120},
        }]));
        let talk = lead(workers, model, json!({}));
        let told = talk.say(json!({}));
        assert_eq!(told.end()["status"], "success");
        // Beyond the cap of 5 ms, and exactly so.
        assert_eq!(told.of_type("model_attempt")[0]["wait_ms"], 120);
        assert!(told.took >= Duration::from_millis(120));
        assert_eq!(attempts(&told), [("transient".to_owned(), 1, 3)]);
        assert_eq!(ai_messages(&talk).len(), 1);
    }
}

#[test]
fn llm_1_what_does_not_pass_is_asked_once() {
    for (error, code, reason) in [
        (
            json!({"code": "model_auth", "message": "bad key", "status": 401}),
            "model_auth",
            "auth",
        ),
        (
            json!({"code": "model_rate_limit", "message": "quota exceeded", "status": 429}),
            "model_rate_limit",
            "quota",
        ),
        (
            json!({"code": "model_request", "message": "账户余额不足", "status": 400}),
            "model_request",
            "quota",
        ),
        (
            json!({"code": "model_request", "message": "messages.2 is odd", "status": 400}),
            "model_request",
            "generic",
        ),
        (
            json!({"code": "model_host", "message": "out of paper"}),
            "model_host",
            "generic",
        ),
    ] {
        let talk = lead(0, failing(error), json!({}));
        let told = talk.say(json!({}));
        check_failed(&told, &talk, code, reason);
        assert_eq!(attempts(&told), [(reason.to_owned(), 1, 3)]);
    }
}

#[test]
fn llm_2_a_rate_that_grew_too_fast_gets_two_attempts_and_busy_words_of_a_gateway_three() {
    let burst =
        json!({"code": "model_rate_limit", "status": 429, "provider_code": "limit_burst_rate"});
    let talk = lead(0, failing(burst), json!({}));
    let told = talk.say(json!({}));
    check_failed(&told, &talk, "model_rate_limit", "burst_rate");
    assert_eq!(told.nexts(), ["retry", "none"]);
    let wait = told.of_type("model_attempt")[0]["wait_ms"]
        .as_u64()
        .unwrap();
    assert!((2..=5).contains(&wait), "{wait}");

    let busy =
        json!({"code": "model_request", "status": 400, "message": "upstream request failed"});
    let talk = lead(0, failing(busy), json!({}));
    let told = talk.say(json!({}));
    check_failed(&told, &talk, "model_request", "busy");
    assert_eq!(told.nexts(), ["retry", "retry", "none"]);
}

#[test]
fn what_had_arrived_of_a_reply_that_was_cut_stays_above_the_words() {
    for workers in WORKERS {
        let cut = scripted(json!([{"content": "Half of a rep", "chunks": 2, "cut": true}]));
        let talk = lead(workers, cut, json!({}));
        let told = talk.say(json!({}));
        let last = check_failed(&told, &talk, "model_truncated", "transient");
        let text = last["content"].as_str().unwrap();
        assert!(
            text.starts_with("Half of a rep\n\nThe answer broke off"),
            "{text}"
        );
        assert_eq!(last["response_metadata"]["finish_reason"], "error");
        assert_eq!(told.shown(), "Half of a rep");
        // The host has heard it, so that there was no other attempt.
        assert_eq!(told.nexts(), ["none"]);

        // Where nobody has heard it there is, and only the last part is kept.
        let cut = scripted(json!([{"content": "Half", "cut": true}]));
        let talk = lead(workers, cut, json!({}));
        let told = talk.say(json!({"stream": ["updates"]}));
        assert_eq!(told.nexts(), ["retry", "retry", "none"]);
        let text = ai_messages(&talk)[0]["content"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(text.starts_with("Half\n\nThe answer broke off"), "{text}");
    }
}

fn openai(server: &Server, members: Value) -> Value {
    let mut model = json!({
        "provider": "openai", "model": "m", "base_url": server.url("/v1"), "api_key": "sk-secret-1234567",
    });
    let more = members.as_object().unwrap().clone();
    model.as_object_mut().unwrap().extend(more);
    model
}

fn whole(text: &str) -> Vec<Step> {
    chunked_stream(&[&text_event(text), &stop_event(), DONE])
}

#[test]
fn over_http_bad_json_a_refused_key_and_a_limit_of_the_rate_are_told_without_secrets() {
    let garbled = chunked_stream(&["data: {\"choices\": [oops\n\n"]);
    let server = Server::start(vec![garbled.clone(), garbled.clone(), garbled, whole("x")]);
    let talk = lead(0, openai(&server, json!({})), json!({}));
    check_failed(&talk.say(json!({})), &talk, "model_protocol", "transient");
    assert_eq!(server.requests().len(), 3);

    let body = r#"{"error":{"message":"Incorrect API key provided: sk-secret-1234567","code":"invalid_api_key"}}"#;
    let server = Server::start(vec![answer(401, &[], body)]);
    let talk = lead(0, openai(&server, json!({})), json!({}));
    let told = talk.say(json!({}));
    let last = check_failed(&told, &talk, "model_auth", "auth");
    let detail = last["additional_kwargs"]["error_detail"].as_str().unwrap();
    assert!(detail.contains("[redacted]"), "{detail}");
    let all = json!([told.events, ai_messages(&talk)]).to_string();
    assert!(!all.contains("sk-secret"), "{all}");

    let limited = answer(
        429,
        &[("retry-after-ms", "40")],
        r#"{"error":{"message":"slow down"}}"#,
    );
    let server = Server::start(vec![limited, whole("fine")]);
    let talk = lead(0, openai(&server, json!({})), json!({}));
    let told = talk.say(json!({}));
    assert_eq!(told.end()["status"], "success");
    assert_eq!(told.of_type("model_attempt")[0]["wait_ms"], 40);
}

#[test]
fn llm_2_and_5_a_stream_that_falls_silent_gets_two_attempts_and_words_of_its_own() {
    let silent = vec![stream_head(), Step::AwaitClose];
    let server = Server::start(vec![silent]);
    let model = openai(&server, json!({"between_bytes_timeout_ms": 100}));
    let talk = lead(0, model, json!({}));
    let told = talk.say(json!({}));
    let last = check_failed(&told, &talk, "model_timeout", "transient");
    assert_eq!(told.nexts(), ["retry", "none"]);
    assert_eq!(server.requests().len(), 2);
    let text = last["content"].as_str().unwrap();
    assert!(text.contains("ask for less"), "{text}");

    // One that never begins is tried as often as any.
    let slow = vec![wait_ms(1_000), send("")];
    let server = Server::start(vec![slow]);
    let model = openai(&server, json!({"first_byte_timeout_ms": 50}));
    let talk = lead(0, model, json!({}));
    let told = talk.say(json!({}));
    let last = check_failed(&told, &talk, "model_timeout", "transient");
    assert_eq!(told.nexts(), ["retry", "retry", "none"]);
    assert!(!last["content"].as_str().unwrap().contains("ask for less"));
}

/// L7: what a model says about its retries wins over the section, which wins over the defaults of models.
#[test]
fn l7_a_model_s_own_word_on_retries_comes_first() {
    let down = json!({"code": "model_server"});
    let count = |model: Value, section: Value| {
        let talk = lead(0, model, json!({ "llm_call": section }));
        talk.say(json!({})).of_type("model_attempt").len()
    };
    let quick = |attempts: u32| json!({"retry_max_attempts": attempts, "retry_base_delay_ms": 0, "retry_cap_delay_ms": 0});
    assert_eq!(count(failing(down.clone()), quick(5)), 5);
    assert_eq!(count(failing(down.clone()), quick(1)), 1);
    let mut own = failing(down.clone());
    own["max_retries"] = json!(2);
    assert_eq!(count(own.clone(), quick(5)), 3, "as by default, but said");
    own["max_retries"] = json!(0);
    assert_eq!(count(own, quick(5)), 1);
    // The section says how long to wait where the model does not.
    let mut own = failing(down);
    own["retry_base_delay_ms"] = json!(7);
    let talk = lead(
        0,
        own,
        json!({"llm_call": {"retry_base_delay_ms": 60_000, "retry_max_attempts": 2}}),
    );
    let wait = talk.say(json!({})).of_type("model_attempt")[0]["wait_ms"].clone();
    assert!((7..=21).contains(&wait.as_u64().unwrap()), "{wait}");
}

#[test]
fn models_that_stand_in_are_asked_before_there_is_a_message() {
    let model = |replies: Value, fallbacks: Value| {
        let mut model = scripted(replies);
        model["fallbacks"] = fallbacks;
        model
    };
    let down = json!([{"error": {"code": "model_auth", "message": "bad key"}}]);
    let other = json!([{"provider": "scripted", "replies": [{"content": "From the other."}]}]);
    let talk = lead(0, model(down.clone(), other), json!({}));
    let told = talk.say(json!({}));
    assert_eq!(told.end()["status"], "success");
    assert_eq!(told.nexts(), ["fallback"]);
    assert_eq!(ai_messages(&talk)[0]["content"], "From the other.");

    let other = json!([failing(
        json!({"code": "model_server", "message": "down too"})
    )]);
    let talk = lead(0, model(down, other), json!({}));
    let told = talk.say(json!({}));
    check_failed(&told, &talk, "model_server", "transient");
    assert_eq!(told.nexts(), ["fallback", "retry", "retry", "none"]);
    assert!(told.end()["error"]["cause"].to_string().contains("bad key"));
}

#[test]
fn a_run_without_input_asks_again_and_the_next_message_goes_on() {
    for workers in WORKERS {
        // The script is told by the number of replies in the transcript, and the one that stands in is not shown.
        let server = Server::start(vec![
            answer(400, &[], "{}"),
            whole("There."),
            whole("More."),
        ]);
        let talk = lead(workers, openai(&server, json!({})), json!({}));
        check_failed(&talk.say(json!({})), &talk, "model_request", "generic");
        let run = talk
            .runtime
            .start_run(&talk.assembly, &talk.thread, Some(&talk.queue), "{}")
            .unwrap();
        let Ok(Answer::Done(end)) = run.wait(LONG) else {
            panic!("no result")
        };
        let end: Value = serde_json::from_str(&end).unwrap();
        assert_eq!(
            (&end["status"], &end["steps"]),
            (&json!("success"), &json!(1))
        );
        let asked = server.requests()[1].json();
        let last = asked["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        assert_eq!(last["role"], "user", "{asked}");
        assert_eq!(ai_messages(&talk).len(), 2, "nothing leaves the thread");
        drain(&talk);

        let told = talk.say(json!({}));
        assert_eq!(told.end()["status"], "success");
    }
}

fn drain(talk: &Talk) {
    while talk.next()["type"] != "run_end" {}
}

#[test]
fn agents_without_the_middleware_end_as_before_and_those_that_name_it_leave_a_message() {
    let model = failing(json!({"code": "model_server", "retryable": false}));
    let ai = |assembly: Value| {
        let talk = Talk::configured(&json!({"workers": 0}), &assembly).unwrap();
        let told = talk.say(json!({}));
        assert_eq!(told.end()["status"], "error");
        assert_eq!(told.end()["error"]["code"], "model_server");
        assert_eq!(attempts(&told), [("transient".to_owned(), 1, 3)]);
        ai_messages(&talk).len()
    };
    assert_eq!(ai(json!({ "model": model })), 0);
    assert_eq!(ai(json!({"factory": "direct", "model": model})), 0);
    let named = json!([{"name": "llm_error_handling", "failure_threshold": 3}]);
    assert_eq!(ai(json!({"model": model, "middleware": named})), 1);
    let extra = json!([{"name": "llm_error_handling", "after": "dangling_tool_call"}]);
    assert_eq!(
        ai(json!({"factory": "direct", "model": model, "extra_middleware": extra})),
        1
    );
    for (settings, path) in [
        (
            json!({"failure_threshold": 0}),
            "/middleware/0/failure_threshold",
        ),
        (json!({"retries": 1}), "/middleware/0/retries"),
    ] {
        let mut named = settings;
        named["name"] = "llm_error_handling".into();
        let assembly = json!({"model": model, "middleware": [named]});
        let error = Talk::configured(&json!({"workers": 0}), &assembly)
            .err()
            .unwrap();
        assert_eq!(error.path.as_deref(), Some(path));
    }
}

#[test]
fn trm_3_a_run_that_ends_without_a_word_is_an_error_with_its_own_code() {
    let looks = json!({"tool_calls": [{"name": "ask_clarification", "args": {"question": "Which?"}, "id": "c1"}]});
    let model = scripted(json!([looks, {"content": ""}, {"content": " "}]));
    let runtime = json!({"workers": 0, "models": [{"name": "main", "provider": "scripted", "replies": model["replies"]}]});
    // Nobody answers questions, so that the tool tells the model to go on.
    let assembly = json!({"factory": "lead", "context": {"disable_clarification": true}});
    let talk = Talk::configured(&runtime, &assembly).unwrap();
    let told = talk.say(json!({"context": {"disable_clarification": true}}));
    let end = told.end();
    assert_eq!(end["error"]["code"], "model_no_answer", "{end}");
    let last = ai_messages(&talk).pop().unwrap();
    assert_eq!(last["additional_kwargs"]["deerflow_error_fallback"], true);
    assert_eq!(
        last["additional_kwargs"]["error_reason"],
        end["error"]["message"]
    );
}

#[test]
fn llm_6_a_model_that_keeps_failing_is_left_in_peace_and_tried_again_later() {
    let server = Server::start(vec![
        answer(503, &[], "{}"),
        answer(503, &[], "{}"),
        answer(503, &[], "{}"),
        whole("Back again."),
    ]);
    let model = openai(&server, json!({"max_retries": 0}));
    let breaker = json!({"failure_threshold": 2, "recovery_timeout_sec": 1});
    let talk = lead(0, model, json!({ "circuit_breaker": breaker }));
    let logs = talk.runtime.new_queue(r#"{"subscribe": ["log"]}"#).unwrap();
    for _ in 0..2 {
        check_failed(&talk.say(json!({})), &talk, "model_server", "transient");
    }
    let opened = Instant::now();
    let Ok(Answer::Done(warnings)) = logs.take(LONG, 8) else {
        panic!("no warning")
    };
    assert!(warnings.contains("circuit_opened"), "{warnings}");

    let told = talk.say(json!({}));
    let end = told.end();
    assert_eq!(end["error"]["code"], "model_unavailable", "{end}");
    assert_eq!(end["error"]["retryable"], true);
    assert!(told.of_type("model_attempt").is_empty());
    assert_eq!(server.requests().len(), 2, "nobody was asked");
    let last = ai_messages(&talk).pop().unwrap();
    assert_eq!(
        last["additional_kwargs"]["error_type"],
        "CircuitBreakerOpen"
    );
    assert_eq!(last["additional_kwargs"]["error_reason"], "circuit_open");

    // Another assembly counts for itself.
    let other = talk.runtime.new_assembly(r#"{"factory": "lead"}"#).unwrap();
    let thread = talk.runtime.open_thread("{}").unwrap();
    let request = r#"{"input": {"messages": [{"role": "user", "content": "hi"}]}}"#;
    let run = talk
        .runtime
        .start_run(&other, &thread, None, request)
        .unwrap();
    let Ok(Answer::Done(end)) = run.wait(LONG) else {
        panic!("no result")
    };
    assert!(end.contains("model_server"), "{end}");
    assert_eq!(server.requests().len(), 3);

    std::thread::sleep(Duration::from_millis(1_050).saturating_sub(opened.elapsed()));
    assert_eq!(talk.say(json!({})).end()["status"], "success");
    assert_eq!(ai_messages(&talk).pop().unwrap()["content"], "Back again.");
}

#[test]
fn llm_8_a_run_that_is_cancelled_while_it_waits_writes_nothing_and_counts_for_nothing() {
    for workers in WORKERS {
        let server = Server::start(vec![answer(503, &[], "{}"), whole("fine")]);
        let model = openai(&server, json!({"retry_base_delay_ms": 60_000}));
        let sections = json!({
            "circuit_breaker": {"failure_threshold": 1},
            "llm_call": {"retry_cap_delay_ms": 60_000, "max_concurrent_calls": 1},
        });
        let talk = lead(workers, model, sections);
        let told = talk.say_with(json!({}), |event, run: &Run| {
            if event["type"] == "model_attempt" {
                run.submit(r#"{"op":"cancel"}"#).unwrap();
            }
        });
        assert_eq!(told.end()["status"], "interrupted");
        assert!(told.took < Duration::from_secs(5));
        assert!(ai_messages(&talk).is_empty());
        assert_eq!(talk.say(json!({})).end()["status"], "success");
    }
}

/// A lead agent whose model is the host, with places for `places` calls.
fn crowd(workers: u32, places: u64) -> Talk {
    let model = json!({"provider": "host", "model": "m", "max_retries": 1});
    let section =
        json!({"max_concurrent_calls": places, "retry_base_delay_ms": 0, "retry_cap_delay_ms": 0});
    lead(workers, model, json!({ "llm_call": section }))
}

fn start(talk: &Talk, number: usize) -> Run {
    let thread = json!({"thread_id": format!("t{number}")}).to_string();
    let thread = talk.runtime.open_thread(&thread).unwrap();
    let request = json!({
        "run_id": format!("r{number}"), "stream": [],
        "input": {"messages": [{"role": "user", "content": "hi"}]},
    });
    talk.runtime
        .start_run(
            &talk.assembly,
            &thread,
            Some(&talk.queue),
            &request.to_string(),
        )
        .unwrap()
}

#[test]
fn llm_7_calls_beyond_the_places_wait_in_the_order_of_their_coming() {
    let talk = crowd(0, 2);
    let runs: Vec<Run> = (0..6).map(|number| start(&talk, number)).collect();
    let mut open = VecDeque::new();
    let (mut order, mut ended) = (Vec::new(), 0);
    while ended < runs.len() {
        let event = talk.next();
        match event["type"].as_str().unwrap() {
            "host_call" => {
                order.push(event["run_id"].as_str().unwrap().to_owned());
                open.push_back(event["data"]["call_id"].as_u64().unwrap());
                assert!(open.len() <= 2, "{order:?}");
                if open.len() == 2 || order.len() == runs.len() {
                    answer_oldest(&talk.runtime, &mut open);
                }
            }
            "run_end" => {
                assert_eq!(event["data"]["status"], "success");
                ended += 1;
                if order.len() == runs.len() {
                    answer_oldest(&talk.runtime, &mut open);
                }
            }
            _ => {}
        }
    }
    assert_eq!(order, ["r0", "r1", "r2", "r3", "r4", "r5"]);
}

fn answer_oldest(runtime: &Runtime, open: &mut VecDeque<u64>) {
    if let Some(call) = open.pop_front() {
        runtime.finish(call, r#"{"ok": "Hello."}"#).unwrap();
    }
}

#[test]
fn llm_7_cancelled_runs_leave_their_places_whether_they_wait_or_are_answered() {
    for workers in WORKERS {
        let talk = crowd(workers, 1);
        let runs: Vec<Run> = (0..20).map(|number| start(&talk, number)).collect();
        // One is in its place, the others wait; all but every fifth are cancelled, the one in its place first.
        let first = loop {
            let event = talk.next();
            if event["type"] == "host_call" {
                break event["run_id"].as_str().unwrap()[1..]
                    .parse::<usize>()
                    .unwrap();
            }
        };
        runs[first].submit(r#"{"op":"cancel"}"#).unwrap();
        for (number, run) in runs.iter().enumerate() {
            if number % 5 != 0 {
                run.submit(r#"{"op":"cancel"}"#).unwrap();
            }
        }
        let (mut ended, mut answered) = (0, 0);
        while ended < runs.len() {
            let event = talk.next();
            match event["type"].as_str().unwrap() {
                "host_call" => {
                    let call = event["data"]["call_id"].as_u64().unwrap();
                    // A run that is being cancelled may have asked before.
                    if let Ok(Answer::Done(_)) = talk.runtime.finish(call, r#"{"ok": "Hello."}"#) {
                        answered += 1;
                    }
                }
                "run_end" => ended += 1,
                _ => {}
            }
        }
        assert!(answered >= 3, "{answered}");
        // The place is free: a run after all of them gets it.
        let _last = start(&talk, 99);
        loop {
            let event = talk.next();
            match event["type"].as_str().unwrap() {
                "host_call" => {
                    let call = event["data"]["call_id"].as_u64().unwrap();
                    talk.runtime.finish(call, r#"{"ok": "Hello."}"#).unwrap();
                }
                "run_end" => {
                    assert_eq!(event["data"]["status"], "success");
                    break;
                }
                _ => {}
            }
        }
    }
}

#[test]
fn llm_7_a_place_is_not_held_while_a_call_waits_to_be_tried_again() {
    let model = json!({"provider": "host", "model": "m", "retry_base_delay_ms": 60_000});
    let section = json!({"max_concurrent_calls": 1, "retry_cap_delay_ms": 60_000});
    let talk = lead(0, model, json!({ "llm_call": section }));
    let first = start(&talk, 0);
    let mut asked = Vec::new();
    let _second = loop {
        let event = talk.next();
        if event["type"] == "host_call" {
            let call = event["data"]["call_id"].as_u64().unwrap();
            let refusal = r#"{"error": {"message": "busy", "retryable": true}}"#;
            talk.runtime.finish(call, refusal).unwrap();
        }
        if event["type"] == "model_attempt" {
            break start(&talk, 1);
        }
    };
    while asked.is_empty() {
        let event = talk.next();
        if event["type"] == "host_call" {
            let call = event["data"]["call_id"].as_u64().unwrap();
            talk.runtime.finish(call, r#"{"ok": "Hello."}"#).unwrap();
            asked.push(event["run_id"].clone());
        }
    }
    assert_eq!(asked, ["r1"]);
    first.submit(r#"{"op":"cancel"}"#).unwrap();
}

#[test]
fn llm_7_another_number_than_the_first_is_a_warning() {
    let runtime = json!({
        "workers": 0, "models": [{"name": "main", "provider": "host", "model": "m"}],
        "llm_call": {"max_concurrent_calls": 2},
    });
    let runtime = Runtime::new(&runtime.to_string()).unwrap();
    let logs = runtime.new_queue(r#"{"subscribe": ["log"]}"#).unwrap();
    let app = |places: u64| {
        json!({
            "models": [{"name": "main", "provider": "host", "model": "m"}],
            "llm_call": {"max_concurrent_calls": places},
        })
    };
    for places in [2, 0, 3] {
        let request = json!({"factory": "lead", "app_config": app(places)});
        runtime.new_assembly(&request.to_string()).unwrap();
    }
    let Ok(Answer::Done(warnings)) = logs.take(LONG, 8) else {
        panic!("no warning")
    };
    let warnings: Vec<Value> = serde_json::from_str(&warnings).unwrap();
    let mut fixed = warnings
        .iter()
        .filter(|warning| warning["data"]["code"] == "concurrency_fixed");
    let text = fixed.next().unwrap()["data"]["message"].as_str().unwrap();
    assert!(text.contains("is 3, but 2"), "{text}");
    assert!(fixed.next().is_none());
}
