//! Model calls that fail: what is tried again, how long it waits, what stands in, and that nothing of a failed attempt stays.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fawn::middleware::{Effect, Hook, HookOutput, Middleware, Question};
use fawn::runtime::{Answer, Runtime};
use serde_json::{Value, json};

use crate::parts::{Log, Noting, ScriptModel, parts, says};
use crate::support::http_server::{
    DONE, Server, Step, chunked_stream, json_answer, send, stop_event, stream_head, text_event,
};
use crate::support::talk::{LONG, Talk};

const WORKERS: [u32; 2] = [0, 2];

/// A model behind `server` with short waits, and other members as given.
fn openai(server: &Server, members: Value) -> Value {
    let mut model = json!({
        "provider": "openai", "model": "m", "base_url": server.url("/v1"), "retry_base_delay_ms": 5,
    });
    model
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    model
}

fn whole(text: &str) -> Vec<Step> {
    chunked_stream(&[&text_event(text), &stop_event(), DONE])
}

/// Text, then the connection ends without an end mark.
fn cut(text: &str) -> Vec<Step> {
    vec![stream_head(), send(&text_event(text))]
}

fn refuse(status: u16, headers: &[(&str, &str)]) -> Vec<Step> {
    crate::support::http_server::answer(status, headers, "{\"error\":{\"message\":\"no\"}}")
}

#[test]
fn what_may_pass_is_tried_again_and_what_cannot_is_not() {
    for workers in WORKERS {
        for status in [408, 409, 425, 429, 500, 501, 502, 503, 504, 529, 599] {
            let server = Server::start(vec![refuse(status, &[]), whole("fine")]);
            let talk = Talk::new(workers, openai(&server, json!({})));
            let told = talk.say(json!({}));
            assert_eq!(told.end()["status"], "success", "{status}");
            assert_eq!(server.requests().len(), 2, "{status}");
            let attempt = told.of_type("model_attempt").remove(0).clone();
            assert_eq!(attempt["error"]["http_status"], status);
            assert_eq!(talk.texts(), ["hello", "fine"]);
        }
        for status in [400, 401, 402, 403, 404, 405, 413, 415, 422, 301] {
            let server = Server::start(vec![refuse(status, &[]), whole("fine")]);
            let talk = Talk::new(workers, openai(&server, json!({})));
            let told = talk.say(json!({}));
            assert_eq!(told.end()["status"], "error", "{status}");
            assert_eq!(told.nexts(), ["none"]);
            assert_eq!(server.requests().len(), 1, "{status}");
            assert_eq!(talk.texts(), ["hello"]);
        }
    }
}

/// S9: an endpoint's own words reach the host at once.
#[test]
fn s9_a_refused_key_is_one_attempt_with_the_endpoints_words() {
    let body = r#"{"error":{"message":"bad key","type":"invalid_request_error"}}"#;
    let server = Server::start(vec![json_answer(401, body)]);
    let told = Talk::new(0, openai(&server, json!({}))).say(json!({}));
    assert_eq!(told.end()["error"]["code"], "model_auth");
    let message = told.end()["error"]["message"].as_str().unwrap();
    assert!(message.contains("bad key"), "{message}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_endpoint_has_the_last_word_on_whether_to_try_again() {
    let never = Server::start(vec![
        refuse(503, &[("x-should-retry", "false")]),
        whole("x"),
    ]);
    let told = Talk::new(0, openai(&never, json!({}))).say(json!({}));
    assert_eq!(told.end()["status"], "error");
    let always = Server::start(vec![refuse(400, &[("x-should-retry", "true")]), whole("x")]);
    let told = Talk::new(0, openai(&always, json!({}))).say(json!({}));
    assert_eq!(told.end()["status"], "success");
}

#[test]
fn a_wait_that_the_endpoint_asks_for_is_kept_in_all_three_forms() {
    // The date counts from the answer's own clock, two seconds behind it.
    let dates = [
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("retry-after", "Sun, 06 Nov 1994 08:49:39 GMT"),
    ];
    for (headers, wanted) in [
        (&[("retry-after", "1")][..], 1000),
        (&[("retry-after-ms", "300"), ("retry-after", "9")], 300),
        (&[("retry-after", "0.25")], 250),
        (&dates, 2000),
    ] {
        let server = Server::start(vec![refuse(429, headers), whole("fine")]);
        let told = Talk::new(0, openai(&server, json!({}))).say(json!({}));
        assert_eq!(told.end()["status"], "success");
        assert_eq!(told.of_type("model_attempt")[0]["wait_ms"], wanted);
        let wanted = Duration::from_millis(wanted);
        assert!(told.took >= wanted, "{:?} of {wanted:?}", told.took);
        assert!(told.took < wanted + Duration::from_secs(1));
    }
}

#[test]
fn a_wait_of_a_year_ends_the_call_at_once() {
    for workers in WORKERS {
        for headers in [
            [("retry-after", "31536000")],
            [("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")],
            [("retry-after-ms", "1e15")],
        ] {
            let server = Server::start(vec![refuse(429, &headers), whole("fine")]);
            let talk = Talk::new(workers, openai(&server, json!({})));
            let told = talk.say(json!({}));
            assert!(told.took < Duration::from_secs(2));
            let error = &told.end()["error"];
            assert_eq!(error["code"], "model_rate_limit");
            let cause = error["cause"][0].as_str().unwrap();
            assert!(cause.contains("max_retry_after_ms is 120000"), "{cause}");
            assert_eq!(server.requests().len(), 1);
        }
    }
}

#[test]
fn no_attempt_begins_after_the_deadline() {
    let server = Server::start(vec![refuse(503, &[])]);
    let members = json!({"max_retries": 100, "retry_base_delay_ms": 60, "retry_deadline_ms": 1000});
    let told = Talk::new(0, openai(&server, members)).say(json!({}));
    assert!(told.took < Duration::from_secs(1), "{:?}", told.took);
    // 60, 120, 240 and 480 less a quarter at most: four or five attempts fit.
    let count = server.requests().len();
    assert!((4..=5).contains(&count), "{count}");
    let cause = told.end()["error"]["cause"][0].as_str().unwrap();
    assert!(cause.contains("retry_deadline_ms is 1000"), "{cause}");
}

/// L8: bounded attempts, then a typed error; each is told of.
#[test]
fn l8_an_endpoint_that_falls_silent_is_given_up_after_three_attempts() {
    for workers in WORKERS {
        let silent = vec![stream_head(), Step::AwaitClose];
        let server = Server::start(vec![silent]);
        let members = json!({"between_bytes_timeout_ms": 200});
        let told = Talk::new(workers, openai(&server, members)).say(json!({}));
        assert!(told.took < Duration::from_secs(2), "{:?}", told.took);
        assert_eq!(told.end()["error"]["code"], "model_timeout");
        assert_eq!(told.nexts(), ["retry", "retry", "none"]);
        assert_eq!(server.requests().len(), 3);
    }
}

#[test]
fn a_connection_that_is_refused_or_breaks_is_tried_again() {
    // Accepted, and closed without a word; then in the middle of the head.
    for first in [vec![], vec![send("HTTP/1.1 200 OK\r\ncontent-")]] {
        let server = Server::start(vec![first, whole("fine")]);
        let told = Talk::new(0, openai(&server, json!({}))).say(json!({}));
        assert_eq!(told.end()["status"], "success", "{}", told.end());
        assert_eq!(told.nexts(), ["retry"]);
    }
    let model = json!({
        "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1", "retry_base_delay_ms": 1,
    });
    let told = Talk::new(0, model).say(json!({}));
    assert_eq!(told.end()["error"]["code"], "model_connection");
    assert_eq!(told.nexts(), ["retry", "retry", "none"]);
}

#[test]
fn nothing_of_a_failed_attempt_stays_and_none_costs_a_step() {
    for workers in WORKERS {
        let model = json!({
            "provider": "scripted", "retry_base_delay_ms": 1,
            "replies": [{"content": "fine", "fail_first": 2, "usage": {"input_tokens": 3, "output_tokens": 2}}],
        });
        let talk = Talk::new(workers, model);
        let told = talk.say(json!({"recursion_limit": 1}));
        assert_eq!(told.end()["status"], "success");
        assert_eq!(told.end()["steps"], 1);
        assert_eq!(told.end()["usage"]["total_tokens"], 5);
        assert_eq!(told.nexts(), ["retry", "retry"]);
        let numbers: Vec<_> = told
            .of_type("model_attempt")
            .iter()
            .map(|attempt| (attempt["attempt"].clone(), attempt["max_attempts"].clone()))
            .collect();
        assert_eq!(numbers, [(json!(1), json!(3)), (json!(2), json!(3))]);
        assert_eq!(told.of_type("usage").len(), 1);
        assert_eq!(told.of_type("message").len(), 1);
        assert_eq!(talk.texts(), ["hello", "fine"]);
    }
}

/// L11: what was streamed by an attempt that failed is either the end of it, or told to be void.
#[test]
fn l11_text_that_reached_the_host_is_kept_or_reset_but_never_doubled() {
    for workers in WORKERS {
        let exchanges = || vec![cut("Hello wor"), whole("Hello world")];
        let server = Server::start(exchanges());
        let talk = Talk::new(workers, openai(&server, json!({})));
        let told = talk.say(json!({}));
        assert_eq!(told.end()["error"]["code"], "model_truncated");
        assert_eq!(told.shown(), "Hello wor");
        assert_eq!(talk.texts(), ["hello", "Hello wor"]);
        assert!(told.of_type("stream_reset").is_empty());
        assert_eq!(server.requests().len(), 1);

        let server = Server::start(exchanges());
        let talk = Talk::new(
            workers,
            openai(&server, json!({"retry_after_partial": true})),
        );
        let told = talk.say(json!({}));
        assert_eq!(told.end()["status"], "success");
        assert_eq!(told.shown(), "Hello world");
        assert_eq!(talk.texts(), ["hello", "Hello world"]);
        let resets = told.of_type("stream_reset");
        assert_eq!(resets.len(), 1);
        assert_eq!(
            resets[0]["message_id"],
            told.of_type("message")[0]["message"]["id"]
        );
    }
}

#[test]
fn the_last_attempts_text_is_what_is_kept_when_all_are_cut() {
    let server = Server::start(vec![cut("one"), cut("two"), cut("three")]);
    let talk = Talk::new(0, openai(&server, json!({"retry_after_partial": true})));
    let told = talk.say(json!({}));
    assert_eq!(told.end()["error"]["code"], "model_truncated");
    assert_eq!(told.shown(), "three");
    assert_eq!(talk.texts(), ["hello", "three"]);
}

#[test]
fn text_that_nobody_heard_is_no_obstacle() {
    let server = Server::start(vec![cut("Hello wor"), whole("Hello world")]);
    let talk = Talk::new(0, openai(&server, json!({})));
    let told = talk.say(json!({"stream": ["updates"]}));
    assert_eq!(told.end()["status"], "success");
    assert!(told.of_type("stream_reset").is_empty());
    assert_eq!(talk.texts(), ["hello", "Hello world"]);
}

/// S31: each attempt starts from nothing.
#[test]
fn s31_calls_of_a_cut_attempt_do_not_get_into_the_next() {
    let piece = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\
                 \"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\n";
    let server = Server::start(vec![vec![stream_head(), send(piece)], whole("plain")]);
    let talk = Talk::new(0, openai(&server, json!({"retry_after_partial": true})));
    let told = talk.say(json!({}));
    assert_eq!(told.end()["status"], "success");
    assert_eq!(told.end()["message"]["tool_calls"], json!([]));
    assert_eq!(told.end()["message"]["invalid_tool_calls"], json!([]));
    assert_eq!(talk.texts(), ["hello", "plain"]);
}

/// L15 (d): cancelling reaches a wait between attempts.
#[test]
fn l15_cancel_ends_a_wait_at_once_and_no_attempt_follows() {
    for workers in WORKERS {
        for (first, kept) in [
            (refuse(503, &[("retry-after", "60")]), vec!["hello"]),
            // Reset text is void also when no attempt follows.
            (cut("Hello wor"), vec!["hello"]),
        ] {
            let server = Server::start(vec![first, whole("late")]);
            let members = json!({"retry_after_partial": true, "retry_base_delay_ms": 60_000, "retry_cap_delay_ms": 60_000});
            let talk = Talk::new(workers, openai(&server, members));
            let run = talk.start(json!({}));
            while talk.next()["type"] != "model_attempt" {}
            let begun = Instant::now();
            run.submit(r#"{"op":"cancel"}"#).unwrap();
            let end = loop {
                let event = talk.next();
                if event["type"] == "run_end" {
                    break event;
                }
            };
            assert!(begun.elapsed() < Duration::from_millis(100));
            assert_eq!(end["data"]["status"], "interrupted");
            assert_eq!(talk.texts(), kept);
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(server.requests().len(), 1);
        }
    }
}

#[test]
fn one_runs_wait_holds_back_no_other_run() {
    for workers in [0, 1] {
        let server = Server::start(vec![refuse(503, &[("retry-after", "60")])]);
        let talk = Talk::new(workers, openai(&server, json!({})));
        let waiting = talk.start(json!({}));
        while talk.next()["type"] != "model_attempt" {}
        let begun = Instant::now();
        let model = json!({"model": {"provider": "scripted", "replies": [{"content": "fine"}]}});
        let other = talk.runtime.new_assembly(&model.to_string()).unwrap();
        for _ in 0..50 {
            let thread = talk.runtime.open_thread("{}").unwrap();
            let request = json!({"input": {"messages": ["hello"]}}).to_string();
            let run = talk
                .runtime
                .start_run(&other, &thread, None, &request)
                .unwrap();
            let Ok(Answer::Done(result)) = run.wait(LONG) else {
                panic!("no result")
            };
            assert!(result.contains("\"success\""), "{result}");
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
        waiting.submit(r#"{"op":"cancel"}"#).unwrap();
        assert!(matches!(waiting.wait(LONG), Ok(Answer::Done(_))));
    }
}

#[test]
fn a_model_that_fails_for_good_is_replaced_and_the_message_says_by_which() {
    for workers in WORKERS {
        let first = Server::start(vec![refuse(503, &[])]);
        let refused = Server::start(vec![refuse(401, &[])]);
        let good = Server::start(vec![whole("fine")]);
        let models = json!([
            {"name": "main", "provider": "openai", "model": "big", "base_url": first.url("/v1"),
             "max_retries": 1, "retry_base_delay_ms": 1, "fallbacks": ["second"]},
            // Names may go in a circle.
            {"name": "second", "provider": "openai", "model": "big", "base_url": refused.url("/v1"),
             "fallbacks": ["main", openai(&good, json!({"model": "small"}))]},
        ]);
        let talk = Talk::with_models(workers, &models, json!("main"));
        let told = talk.say(json!({}));
        assert_eq!(told.end()["status"], "success", "{}", told.end());
        let metadata = &told.end()["message"]["response_metadata"];
        assert_eq!(metadata["answered_by"], "small");
        assert_eq!(told.nexts(), ["retry", "fallback", "fallback"]);
        let attempts = told.of_type("model_attempt");
        let models: Vec<_> = attempts.iter().map(|a| a["model"].clone()).collect();
        assert_eq!(models, ["main", "main", "second"]);
        assert_eq!(attempts[1]["next_model"], "second");
        assert_eq!(attempts[2]["next_model"], "small");
        assert_eq!(talk.texts(), ["hello", "fine"]);
        let counts = [&first, &refused, &good].map(|server| server.requests().len());
        assert_eq!(counts, [2, 1, 1]);
        // The first model is asked first again.
        let told = talk.say(json!({}));
        assert_eq!(told.end()["status"], "success");
        assert_eq!(first.requests().len(), 4);
    }
}

#[test]
fn the_last_error_tells_of_all_models_that_failed() {
    let limited = Server::start(vec![refuse(429, &[("retry-after", "31536000")])]);
    let refused = Server::start(vec![refuse(401, &[])]);
    let mut model = openai(&limited, json!({}));
    model["fallbacks"] = json!([openai(&refused, json!({"model": "other"}))]);
    let talk = Talk::new(0, model);
    let told = talk.say(json!({}));
    let error = &told.end()["error"];
    assert_eq!(error["code"], "model_auth");
    assert_eq!(error["http_status"], 401);
    let cause = error["cause"][0].as_str().unwrap();
    assert!(
        cause.starts_with("m before it: model_rate_limit: "),
        "{cause}"
    );
    assert!(cause.contains("max_retry_after_ms"), "{cause}");
    assert_eq!(talk.texts(), ["hello"]);
}

#[test]
fn no_model_stands_in_for_text_that_has_reached_the_host() {
    let broken = Server::start(vec![cut("Hello wor")]);
    let good = Server::start(vec![whole("fine")]);
    for (after_partial, texts) in [(false, ["hello", "Hello wor"]), (true, ["hello", "fine"])] {
        let members = json!({
            "max_retries": 0, "retry_after_partial": after_partial, "fallbacks": [openai(&good, json!({}))],
        });
        let talk = Talk::new(0, openai(&broken, members));
        let told = talk.say(json!({}));
        assert_eq!(talk.texts(), texts);
        assert_eq!(told.shown(), texts[1]);
    }
}

#[test]
fn a_model_of_the_host_is_asked_again_only_when_the_host_says_so() {
    for workers in WORKERS {
        let model = json!({
            "provider": "host", "model": "a", "retry_base_delay_ms": 1,
            "fallbacks": [{"provider": "host", "model": "b"}],
        });
        let talk = Talk::new(workers, model);
        let _run = talk.start(json!({}));
        let mut calls = Vec::new();
        let mut answers = [
            json!({"error": {"message": "busy", "retryable": true, "retry_after_ms": 20}}),
            json!({"error": {"message": "broken"}}),
            json!({"ok": "fine"}),
        ]
        .into_iter();
        let end = loop {
            let event = talk.next();
            match event["type"].as_str().unwrap() {
                "host_call" => {
                    let id = event["data"]["call_id"].as_u64().unwrap();
                    let answer = answers.next().unwrap().to_string();
                    talk.runtime.finish(id, &answer).unwrap();
                    calls.push(event["data"].clone());
                }
                "run_end" => break event,
                _ => {}
            }
        };
        assert_eq!(end["data"]["status"], "success");
        let names: Vec<_> = calls.iter().map(|call| call["name"].clone()).collect();
        assert_eq!(names, ["a", "a", "b"]);
        // One piece of work has one key; the other model is another piece of work.
        assert_eq!(calls[0]["idempotency_key"], calls[1]["idempotency_key"]);
        assert_ne!(calls[0]["call_id"], calls[1]["call_id"]);
        assert_ne!(calls[1]["idempotency_key"], calls[2]["idempotency_key"]);
    }
}

#[test]
fn a_refusal_that_says_wrong_things_is_refused_and_the_call_stays_open() {
    let talk = Talk::new(0, json!({"provider": "host"}));
    let _run = talk.start(json!({}));
    let id = loop {
        let event = talk.next();
        if event["type"] == "host_call" {
            break event["data"]["call_id"].as_u64().unwrap();
        }
    };
    for (answer, path) in [
        (
            json!({"error": {"message": "m", "retryable": "yes"}}),
            "/error/retryable",
        ),
        (
            json!({"error": {"message": "m", "retry_after_ms": -1}}),
            "/error/retry_after_ms",
        ),
        (
            json!({"error": {"message": "m", "retry_after_ms": "1"}}),
            "/error/retry_after_ms",
        ),
        (json!({"error": {"retryable": true}}), "/error/message"),
    ] {
        let error = talk.runtime.finish(id, &answer.to_string()).unwrap_err();
        assert_eq!(error.path.as_deref(), Some(path));
    }
    talk.runtime.finish(id, r#"{"ok":"fine"}"#).unwrap();
    while talk.next()["type"] != "run_end" {}
}

#[test]
fn a_middlewares_question_is_tried_again_too() {
    let runtime = Runtime::new(r#"{"workers":0}"#).unwrap();
    let log = Log::default();
    let asking: Arc<dyn Middleware> = Noting::acting("asker", &log, |hook, context| {
        if hook != Hook::BeforeAgent {
            return Ok(HookOutput::Continue);
        }
        match context.reply() {
            None => Ok(HookOutput::Await(Effect::CallModel(Box::new(
                Question::new("which title?", None),
            )))),
            Some(answer) => {
                assert!(answer.is_ok(), "{answer:?}");
                Ok(HookOutput::Continue)
            }
        }
    });
    let mut parts = parts(ScriptModel::new(vec![says("unused")]));
    let script = json!({
        "provider": "scripted", "retry_base_delay_ms": 1, "repeat": true,
        "replies": [{"content": "title", "fail_first": 1}],
    });
    parts.model = runtime.model(&script.to_string()).unwrap();
    parts.middleware = vec![asking];
    let talk = Talk {
        assembly: runtime.compose(parts).unwrap(),
        thread: runtime.open_thread("{}").unwrap(),
        queue: runtime.new_queue("{}").unwrap(),
        runtime,
    };
    let told = talk.say(json!({}));
    assert_eq!(told.end()["status"], "success", "{}", told.end());
    let attempts = told.of_type("model_attempt");
    assert_eq!(attempts.len(), 2, "the middleware's, then the agent's");
    assert_eq!(attempts[0]["message_id"], Value::Null);
    assert!(attempts[1]["message_id"].is_string());
}

#[test]
fn models_that_are_not_there_are_found_when_things_are_made() {
    let config = json!({"models": [
        {"name": "a", "provider": "host", "fallbacks": [{"provider": "host", "fallbacks": ["none"]}]},
    ]});
    let error = Runtime::new(&config.to_string()).err().unwrap();
    assert_eq!(error.code.name(), "unknown_model");
    assert_eq!(
        error.path.as_deref(),
        Some("/models/0/fallbacks/0/fallbacks/0")
    );
    let runtime = Runtime::new("{}").unwrap();
    let config = json!({"model": {"provider": "host", "fallbacks": ["none"]}});
    let error = runtime.new_assembly(&config.to_string()).err().unwrap();
    assert_eq!(error.path.as_deref(), Some("/model/fallbacks/0"));
    let key = json!({"model": {"provider": "host", "fallbacks": [
        {"provider": "openai", "model": "m", "api_key": "$FAWN_NO_SUCH_VARIABLE"},
    ]}});
    let error = runtime.new_assembly(&key.to_string()).err().unwrap();
    assert_eq!(error.path.as_deref(), Some("/model/fallbacks/0/api_key"));
    // Ten models that each have ten of their own are more than an assembly may come to.
    let leaf = json!({"provider": "host"});
    let inner = json!({"provider": "host", "fallbacks": vec![leaf; 10]});
    let outer = json!({"model": {"provider": "host", "fallbacks": vec![inner; 10]}});
    let error = runtime.new_assembly(&outer.to_string()).err().unwrap();
    assert_eq!(error.code.name(), "out_of_range");
}

/// The call has one key however often it is made, so that a host which was merely slow may answer with what it has.
#[test]
fn a_model_of_the_host_that_is_late_is_asked_again_with_the_same_key() {
    for workers in WORKERS {
        let model = json!({
            "provider": "host", "deadline_ms": 50, "max_retries": 1, "retry_base_delay_ms": 5,
        });
        let talk = Talk::new(workers, model);
        let mut keys = Vec::new();
        let told = talk.say_with(json!({}), |event, _| {
            if event["type"] != "host_call" {
                return;
            }
            let data = &event["data"];
            keys.push(data["idempotency_key"].as_str().unwrap().to_owned());
            if keys.len() == 2 {
                let id = data["call_id"].as_u64().unwrap();
                talk.runtime
                    .finish(id, r#"{"ok": {"content": "At last."}}"#)
                    .unwrap();
            }
        });
        assert_eq!(told.end()["status"], "success", "{}", told.end());
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0], keys[1]);
        let attempt = told.of_type("model_attempt").remove(0).clone();
        assert_eq!(attempt["error"]["code"], "deadline_exceeded");
        assert_eq!(talk.texts(), ["hello", "At last."]);
    }
}
