//! The messages provider against a server that behaves, and one that does not. What it shares with the chat completions
//! provider (TLS, proxies, redirects, cancelling) is tested there.

use std::time::{Duration, Instant};

use fawn::adapters::model::anthropic::Anthropic;
use fawn::ports::model::{ModelDelta, ModelError, ModelReply};
use fawn::protocol::error::ErrorCode;
use fawn::protocol::model::{AnthropicConfig, AuthStyle, Secret};
use serde_json::{Value, json};

use crate::support::http_server::{
    Server, Step, answer, chunked_stream, json_answer, send, stream_head, wait_ms,
};
use crate::support::model::{Collect, ask, call, reply_json};

const KEY: &str = "sk-ant-very-secret-key-0123456789";

fn config(server: &Server) -> AnthropicConfig {
    let mut config = AnthropicConfig::new("m-1", server.url(""));
    config.api_key = Some(Secret::new(KEY));
    config
}

/// Asks `server` once, with settings that `change` makes.
fn ask_with(
    server: &Server,
    change: impl FnOnce(&mut AnthropicConfig),
) -> (Result<ModelReply, ModelError>, Collect) {
    let mut config = config(server);
    change(&mut config);
    call(&Anthropic::new(config, &|_| None).unwrap(), &ask("hello"))
}

/// The error of one question to a server with this one exchange. Never shows the key.
fn error_of(exchange: Vec<Step>, change: impl FnOnce(&mut AnthropicConfig)) -> ModelError {
    let server = Server::start(vec![exchange]);
    let error = ask_with(&server, change).0.unwrap_err();
    let shown = format!("{error:?} {}", json!(error.error.payload()));
    assert!(!shown.contains(&KEY[..12]), "{shown}");
    error
}

fn event(data: &Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap()
    )
}

fn start() -> String {
    event(
        &json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "m-1-real", "content": [], "stop_reason": null, "usage": {"input_tokens": 5, "output_tokens": 1}}}),
    ) + &event(
        &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    )
}

fn text(text: &str) -> String {
    event(
        &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
    )
}

fn end() -> String {
    event(&json!({"type": "content_block_stop", "index": 0}))
        + &event(
            &json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        )
        + &event(&json!({"type": "message_stop"}))
}

fn whole_stream() -> Vec<Step> {
    chunked_stream(&[&start(), &text("Hel"), &text("lo 🙂"), &end()])
}

#[test]
fn a_stream_gives_deltas_and_the_reply() {
    let server = Server::start(vec![whole_stream()]);
    let (reply, sink) = ask_with(&server, |_| {});
    assert_eq!(
        reply_json(&reply.unwrap()),
        json!({
            "content": "Hello 🙂", "tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": {},
            "usage": {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8},
            "response_metadata": {"id": "msg_1", "model": "m-1-real", "stop_reason": "end_turn",
                "usage": {"input_tokens": 5, "output_tokens": 3}, "model_name": "m-1-real",
                "model_provider": "anthropic"},
        })
    );
    assert_eq!(
        sink.deltas,
        [
            ModelDelta::Text("Hel".to_owned()),
            ModelDelta::Text("lo 🙂".to_owned())
        ]
    );
    let request = &server.requests()[0];
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/v1/messages")
    );
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("accept"), Some("text/event-stream"));
    assert_eq!(request.header("accept-encoding"), None);
    assert_eq!(request.json()["stream"], true);
}

#[test]
fn a_reply_that_does_not_stream_is_read_whole() {
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1-real",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "look"},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
            {"type": "tool_use", "id": "b", "name": "f", "input": [1]},
        ],
        "stop_reason": "tool_use", "stop_sequence": null, "container": {"id": "c"},
        "usage": {"input_tokens": 7, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 3},
    });
    let server = Server::start(vec![json_answer(200, &body.to_string())]);
    let (reply, sink) = ask_with(&server, |config| config.stream = false);
    assert_eq!(
        reply_json(&reply.unwrap()),
        json!({
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "look"},
                {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}],
            "tool_calls": [{"name": "f", "args": {"x": 1}, "id": "a", "type": "tool_call"}],
            "invalid_tool_calls": [{"type": "invalid_tool_call", "id": "b", "name": "f", "args": "[1]",
                "error": "the arguments are no JSON object"}],
            "usage": {"input_tokens": 14, "output_tokens": 3, "total_tokens": 17,
                "input_token_details": {"cache_read": 5, "cache_creation": 2}},
            "additional_kwargs": {},
            "response_metadata": {"id": "msg_1", "model": "m-1-real", "stop_reason": "tool_use",
                "container": {"id": "c"},
                "usage": {"input_tokens": 7, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2,
                    "output_tokens": 3},
                "model_name": "m-1-real", "model_provider": "anthropic"},
        })
    );
    assert_eq!(sink.text(), "look");
    assert_eq!(sink.deltas.len(), 6);
    assert_eq!(
        server.requests()[0].header("accept"),
        Some("application/json")
    );
}

#[test]
fn what_came_counts_and_not_what_was_asked_for() {
    let document = r#"{"content":[{"type":"text","text":"whole"}]}"#;
    let server = Server::start(vec![json_answer(200, document)]);
    assert_eq!(ask_with(&server, |_| {}).0.unwrap().content, json!("whole"));
    let server = Server::start(vec![whole_stream()]);
    let (reply, _) = ask_with(&server, |config| config.stream = false);
    assert_eq!(reply.unwrap().content, json!("Hello 🙂"));
}

#[test]
fn settings_of_the_endpoint_reach_the_wire() {
    let server = Server::start(vec![whole_stream()]);
    let mut config = AnthropicConfig::new("m", server.url("/anthropic/v1/?beta=true"));
    config.api_key = Some(Secret::new("$KEY"));
    config.auth = AuthStyle::Bearer;
    config.api_version = "2026-10-21".into();
    config
        .headers
        .insert("anthropic-beta".into(), Secret::new("a,b"));
    let provider = Anthropic::new(config, &|name| Some(format!("value of {name}"))).unwrap();
    call(&provider, &ask("hello")).0.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.path, "/anthropic/v1/messages?beta=true");
    assert_eq!(request.header("authorization"), Some("Bearer value of KEY"));
    assert_eq!(request.header("x-api-key"), None);
    assert_eq!(request.header("anthropic-version"), Some("2026-10-21"));
    assert_eq!(request.header("anthropic-beta"), Some("a,b"));
    // No key, no header.
    let server = Server::start(vec![whole_stream()]);
    ask_with(&server, |config| config.api_key = None).0.unwrap();
    assert_eq!(server.requests()[0].header("x-api-key"), None);
}

/// Each status and type of the endpoint's own list, with what it says.
#[test]
fn errors_are_typed_by_status_and_keep_the_endpoints_words() {
    for (status, kind, code, retryable) in [
        (400, "invalid_request_error", ErrorCode::ModelRequest, false),
        (401, "authentication_error", ErrorCode::ModelAuth, false),
        (402, "billing_error", ErrorCode::ModelRateLimit, false),
        (403, "permission_error", ErrorCode::ModelAuth, false),
        (404, "not_found_error", ErrorCode::ModelRequest, false),
        (413, "request_too_large", ErrorCode::ModelRequest, false),
        (429, "rate_limit_error", ErrorCode::ModelRateLimit, true),
        (500, "api_error", ErrorCode::ModelServer, true),
        (504, "timeout_error", ErrorCode::ModelServer, true),
        (529, "overloaded_error", ErrorCode::ModelServer, true),
    ] {
        let said = json!({"type": kind, "message": format!("no, says {KEY}")});
        let body = json!({"type": "error", "error": said, "request_id": "req_1"}).to_string();
        let headers = [
            ("content-type", "application/json"),
            ("request-id", "req_1"),
            ("retry-after", "2"),
        ];
        let error = error_of(answer(status, &headers, &body), |_| {});
        assert_eq!(
            (error.error.code, error.error.retryable),
            (code, retryable),
            "{kind}"
        );
        assert_eq!(
            error.error.message,
            format!("the endpoint answered {status} ({kind}): no, says [redacted]")
        );
        assert_eq!(
            (error.error.http_status(), error.error.provider_code()),
            (Some(status), Some(kind))
        );
        assert_eq!(error.error.cause, ["request id req_1"]);
        assert_eq!(error.retry_after, Some(Duration::from_secs(2)));
        // The same after a 200, in the place of a document and in a stream.
        let class = (code, retryable);
        let class = if kind == "timeout_error" {
            (ErrorCode::ModelTimeout, true)
        } else {
            class
        };
        for exchange in [
            json_answer(200, &body),
            vec![
                stream_head(),
                send(&format!("event: error\ndata: {body}\n\n")),
            ],
            vec![
                stream_head(),
                send(&start()),
                send(&text("Hel")),
                send(&format!("data: {body}\n\n")),
            ],
        ] {
            let has_text = exchange.len() == 4;
            let error = error_of(exchange, |_| {});
            assert_eq!((error.error.code, error.error.retryable), class, "{kind}");
            assert_eq!(
                error.error.message,
                format!("the endpoint reports an error ({kind}): no, says [redacted]")
            );
            assert_eq!(
                (error.error.http_status(), error.error.provider_code()),
                (None, Some(kind))
            );
            assert_eq!(error.has_partial(), has_text);
            assert_eq!(
                error.partial.map(|partial| partial.content),
                has_text.then(|| json!("Hel"))
            );
        }
    }
    let empty = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low."}}"#;
    let error = error_of(json_answer(400, empty), |_| {});
    assert_eq!(
        (error.error.code, error.error.retryable),
        (ErrorCode::ModelRateLimit, false)
    );
}

#[test]
fn what_is_no_reply_is_a_protocol_error() {
    let page = "<!doctype html><html><head><title>Sign in</title></head></html>";
    for exchange in [
        answer(200, &[("content-type", "text/html")], page),
        answer(200, &[("content-type", "text/event-stream")], page),
        answer(200, &[("content-type", "application/json")], page),
        answer(200, &[("content-type", "application/json")], ""),
        answer(
            200,
            &[("content-type", "application/json")],
            r#"{"choices":[]}"#,
        ),
        answer(
            200,
            &[("content-type", "application/json")],
            r#"{"content":"text"}"#,
        ),
        answer(200, &[("content-type", "application/json")], "[]"),
        answer(
            200,
            &[
                ("content-type", "application/json"),
                ("content-encoding", "gzip"),
            ],
            "\u{1f}x",
        ),
        answer(204, &[], ""),
    ] {
        let error = error_of(exchange, |_| {});
        assert_eq!(
            error.error.code,
            ErrorCode::ModelProtocol,
            "{:?}",
            error.error
        );
        assert!(error.partial.is_none());
    }
    let coded = answer(200, &[("content-encoding", "br")], "x");
    assert!(error_of(coded, |_| {}).error.message.contains("\"br\""));
}

#[test]
fn a_stream_without_its_end_mark_is_truncated_and_hands_over_the_part() {
    for exchange in [
        vec![stream_head(), send(&start()), send(&text("Hello wor"))],
        // All but message_stop.
        vec![
            stream_head(),
            send(&start()),
            send(&text("Hello wor")),
            send(&end().replace("message_stop", "ping")),
        ],
        vec![
            stream_head(),
            send(&start()),
            send(&text("Hello wor")),
            send(&text("ld")[..80]),
        ],
    ] {
        let error = error_of(exchange, |_| {});
        assert_eq!(error.error.code, ErrorCode::ModelTruncated);
        assert!(error.error.retryable && error.has_partial());
        assert_eq!(error.partial.unwrap().content, json!("Hello wor"));
    }
    let error = error_of(vec![stream_head()], |_| {});
    assert_eq!(error.error.code, ErrorCode::ModelTruncated);
    assert!(!error.has_partial());
}

#[test]
fn slow_and_dead_servers_meet_their_timeouts() {
    let begun = Instant::now();
    let error = error_of(vec![Step::AwaitClose], |config| {
        config.first_byte_timeout_ms = 100
    });
    assert!(error.error.message.contains("100 ms"));
    assert_eq!(error.error.code, ErrorCode::ModelTimeout);
    let silent = vec![
        stream_head(),
        send(&start()),
        send(&text("Hel")),
        Step::AwaitClose,
    ];
    let error = error_of(silent, |config| config.between_bytes_timeout_ms = 100);
    assert_eq!(error.error.code, ErrorCode::ModelTimeout);
    assert_eq!(error.partial.unwrap().content, json!("Hel"));
    // Pings keep a connection alive, but not for ever.
    let mut pinging = vec![stream_head(), send(&start())];
    for _ in 0..100 {
        pinging.extend([send(&event(&json!({"type": "ping"}))), wait_ms(20)]);
    }
    let error = error_of(pinging, |config| config.timeout_ms = 200);
    assert_eq!(error.error.code, ErrorCode::ModelTimeout);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn nobody_waits_after_the_end_mark() {
    let begun = Instant::now();
    let open = vec![
        stream_head(),
        send(&start()),
        send(&text("all")),
        send(&end()),
        Step::AwaitClose,
    ];
    let server = Server::start(vec![open]);
    assert_eq!(ask_with(&server, |_| {}).0.unwrap().content, json!("all"));
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(server.wait_for_close(Duration::from_secs(1)).is_some());
}
