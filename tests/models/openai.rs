//! The chat completions provider against a server that behaves, and one that does not.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fawn::adapters::model::openai::OpenAi;
use fawn::ports::model::{ModelDelta, ModelError, ModelProvider, ModelReply};
use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::model::{AuthStyle, OpenAiConfig, Secret, TlsConfig};
use serde_json::json;

use crate::support::http_server::{
    DONE, Server, Step, Tls, answer, chunked_stream, json_answer, send, stop_event, stream_head,
    text_event, wait_ms,
};
use crate::support::model::{Collect, ask, block_on, call, reply_json};

const KEY: &str = "sk-very-secret-key-0123456789";

fn config(server: &Server) -> OpenAiConfig {
    let mut config = OpenAiConfig::new("m-1", server.url("/v1"));
    config.api_key = Some(Secret::new(KEY));
    config
}

fn provider(config: OpenAiConfig) -> OpenAi {
    OpenAi::new(config, &|_| None).unwrap()
}

/// Asks `server` once, with settings that `change` makes.
fn ask_with(
    server: &Server,
    change: impl FnOnce(&mut OpenAiConfig),
) -> (Result<ModelReply, ModelError>, Collect) {
    let mut config = config(server);
    change(&mut config);
    call(&provider(config), &ask("hello"))
}

fn ask_server(server: &Server) -> (Result<ModelReply, ModelError>, Collect) {
    ask_with(server, |_| {})
}

/// The error of one question to a server with this one exchange. Never shows the key.
fn error_of(exchange: Vec<Step>, change: impl FnOnce(&mut OpenAiConfig)) -> ModelError {
    let server = Server::start(vec![exchange]);
    let error = ask_with(&server, change).0.unwrap_err();
    assert_no_key(&error);
    error
}

fn assert_no_key(error: &ModelError) {
    let shown = format!(
        "{error:?} {}",
        serde_json::to_string(&error.error.payload()).unwrap()
    );
    assert!(
        !shown.contains(&KEY[..12]) && !shown.contains("Bearer"),
        "{shown}"
    );
}

fn whole_stream(texts: &[&str]) -> Vec<Step> {
    let mut events: Vec<String> = texts.iter().map(|text| text_event(text)).collect();
    events.push(stop_event());
    events.push(DONE.to_owned());
    chunked_stream(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_stream_gives_deltas_and_the_reply() {
    let server = Server::start(vec![whole_stream(&["Hel", "lo 🙂"])]);
    let (reply, sink) = ask_server(&server);
    let reply = reply.unwrap();
    assert_eq!(reply.content, json!("Hello 🙂"));
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
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("accept"), Some("text/event-stream"));
    assert_eq!(request.header("accept-encoding"), None);
    assert_eq!(
        request.json(),
        json!({
            "model": "m-1",
            "messages": [{"role": "user", "content": "hello"}],
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn a_reply_that_does_not_stream_is_read_whole() {
    let body = json!({
        "id": "c1", "object": "chat.completion", "created": 5, "model": "m-1-real", "system_fingerprint": "fp",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": null, "message": {
            "role": "assistant", "content": "look", "reasoning_content": "hm", "refusal": null,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
                {"id": "b", "type": "function", "function": {"name": "f", "arguments": {"x": 2}}},
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}],
        }}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 1}},
    });
    let server = Server::start(vec![json_answer(200, &body.to_string())]);
    let (reply, sink) = ask_with(&server, |config| config.stream = false);
    assert_eq!(
        reply_json(&reply.unwrap()),
        json!({
            "content": "look",
            "tool_calls": [
                {"name": "f", "args": {"x": 1}, "id": "a", "type": "tool_call"},
                {"name": "f", "args": {"x": 2}, "id": "b", "type": "tool_call"}],
            "invalid_tool_calls": [{"type": "invalid_tool_call", "id": "c", "name": "f", "args": "{",
                "error": "the arguments are not JSON: EOF while parsing an object at line 1 column 1"}],
            "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10,
                "input_token_details": {"cache_read": 5}, "output_token_details": {"reasoning": 1}},
            "additional_kwargs": {"reasoning_content": "hm"},
            "response_metadata": {"finish_reason": "tool_calls", "model_name": "m-1-real", "id": "c1",
                "created": 5, "system_fingerprint": "fp"},
        })
    );
    assert_eq!(sink.deltas.len(), 5);
    assert_eq!(sink.text(), "look");
    let request = &server.requests()[0];
    assert_eq!(request.header("accept"), Some("application/json"));
    assert_eq!(request.json()["stream"], json!(false));
    assert!(request.json().get("stream_options").is_none());
}

#[test]
fn what_came_counts_and_not_what_was_asked_for() {
    let document = r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}"#;
    let server = Server::start(vec![json_answer(200, document)]);
    assert_eq!(ask_server(&server).0.unwrap().content, json!("whole"));
    let server = Server::start(vec![whole_stream(&["str", "eam"])]);
    let (reply, _) = ask_with(&server, |config| config.stream = false);
    assert_eq!(reply.unwrap().content, json!("stream"));
    // An error object in the place of a stream.
    let error = error_of(
        json_answer(200, r#"{"error":{"message":"no","code":429}}"#),
        |_| {},
    );
    assert_eq!(error.error.code, ErrorCode::ModelRateLimit);
}

#[test]
fn settings_of_the_endpoint_reach_the_wire() {
    let server = Server::start(vec![whole_stream(&["x"])]);
    let mut config = OpenAiConfig::new("m", server.url("/a/?api-version=7"));
    config.api_key = Some(Secret::new("$KEY"));
    config.headers.insert("X-Title".into(), Secret::new("fawn"));
    config.headers.insert("x-env".into(), Secret::new("$OTHER"));
    let provider = OpenAi::new(config, &|name| Some(format!("value of {name}"))).unwrap();
    call(&provider, &ask("hello")).0.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.path, "/a/chat/completions?api-version=7");
    assert_eq!(request.header("authorization"), Some("Bearer value of KEY"));
    assert_eq!(request.header("x-title"), Some("fawn"));
    assert_eq!(request.header("x-env"), Some("value of OTHER"));
}

/// Endpoints that want the version in the query and the key in a header of their own.
#[test]
fn key_and_version_go_where_the_endpoint_wants_them() {
    for (auth, header, value) in [
        (AuthStyle::Bearer, "authorization", format!("Bearer {KEY}")),
        (AuthStyle::ApiKey, "api-key", KEY.to_owned()),
        (AuthStyle::XApiKey, "x-api-key", KEY.to_owned()),
    ] {
        let server = Server::start(vec![whole_stream(&["x"])]);
        let (reply, _) = ask_with(&server, |config| {
            config.auth = auth;
            config.api_version = Some("2025-01-01 a".into());
            config.max_completion_tokens = Some(50);
        });
        reply.unwrap();
        let request = &server.requests()[0];
        assert_eq!(
            request.path,
            "/v1/chat/completions?api-version=2025-01-01+a"
        );
        for name in ["authorization", "api-key", "x-api-key"] {
            let expected = (name == header).then_some(value.as_str());
            assert_eq!(request.header(name), expected);
        }
        let body = request.json();
        assert_eq!(body["max_completion_tokens"], 50);
        assert!(body.get("max_tokens").is_none());
    }
}

/// What a layer above needs to decide on another attempt.
#[test]
fn a_failure_tells_status_and_the_endpoints_own_code() {
    let body = format!(
        r#"{{"error":{{"code":"{KEY}{}","message":"m"}}}}"#,
        "x".repeat(200)
    );
    let error = error_of(json_answer(429, &body), |_| {});
    assert_eq!(error.error.http_status(), Some(429));
    let code = error.error.provider_code().unwrap();
    assert!(code.starts_with("[redacted]x") && code.chars().count() == 100);
    let error = error_of(json_answer(500, ""), |_| {});
    assert_eq!(
        (error.error.http_status(), error.error.provider_code()),
        (Some(500), None)
    );
    let busy = r#"data: {"error":{"code":503,"message":"busy"}}"#;
    let error = error_of(vec![stream_head(), send(&format!("{busy}\n\n"))], |_| {});
    assert_eq!(
        (error.error.http_status(), error.error.provider_code()),
        (None, Some("503"))
    );
    assert!(!error.has_partial());
    // Nobody asked for it to be packed.
    let packed = answer(200, &[("content-encoding", "gzip")], "\u{1f}x");
    let error = error_of(packed, |_| {});
    assert_eq!(error.error.code, ErrorCode::ModelProtocol);
    assert!(error.error.message.contains("gzip"));
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    let mut config = OpenAiConfig::new("m", "http://127.0.0.1:1");
    config.api_key = Some(Secret::new("$NOT_SET"));
    let error = OpenAi::new(config, &|_| None).err().unwrap();
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::MissingMember, Some("/api_key"))
    );
    assert!(error.message.contains("NOT_SET"));
}

#[test]
fn a_variable_with_a_line_break_is_refused_without_showing_it() {
    let mut config = OpenAiConfig::new("m", "http://127.0.0.1:1");
    config.api_key = Some(Secret::new("$KEY"));
    let error = OpenAi::new(config, &|_| Some(format!("{KEY}\n")))
        .err()
        .unwrap();
    assert_eq!(error.path.as_deref(), Some("/api_key"));
    assert!(!error.message.contains(KEY));
}

/// S9: the endpoint's words at once, and never the key, even when the endpoint repeats it.
#[test]
fn a_refused_key_is_an_auth_error_that_does_not_show_it() {
    for body in [
        format!(r#"{{"error":{{"message":"bad key {KEY}","code":"invalid_api_key"}}}}"#),
        format!("Authorization: Bearer {KEY} is wrong"),
        format!("<html><title>{KEY}</title>"),
        format!(r#"{{"error":"bad key {}\u0000{}"}}"#, &KEY[..9], &KEY[9..]),
        format!(r#"{{"error":"{}{KEY}"}}"#, "x".repeat(980)),
        format!("{}{KEY}", "x".repeat(290)),
        KEY.repeat(50),
    ] {
        let server = Server::start(vec![json_answer(401, &body)]);
        let error = ask_server(&server).0.unwrap_err();
        assert_eq!(error.error.code, ErrorCode::ModelAuth, "{body}");
        assert!(!error.error.retryable);
        let shown = format!("{error:?}");
        assert!(
            !shown.contains(KEY) && !shown.contains(&KEY[..12]),
            "{shown}"
        );
        assert_eq!(server.requests().len(), 1);
    }
    let error = error_of(
        json_answer(
            401,
            r#"{"error":{"message":"bad key","code":"invalid_api_key"}}"#,
        ),
        |_| {},
    );
    assert_eq!(
        error.error.message,
        "the endpoint answered 401 (invalid_api_key): bad key"
    );
}

#[test]
fn keys_in_headers_queries_and_streams_are_masked_too() {
    let server = Server::start(vec![json_answer(
        400,
        r#"{"error":"header-secret-1 and query-secret-1 and token-in-bearer"}"#,
    )]);
    let mut config = OpenAiConfig::new("m", server.url("/v1?key=query-secret-1"));
    config
        .headers
        .insert("api-key".into(), Secret::new("header-secret-1"));
    config.headers.insert(
        "authorization".into(),
        Secret::new("Bearer token-in-bearer"),
    );
    let error = call(&provider(config), &ask("x")).0.unwrap_err();
    assert_eq!(
        error.error.message,
        "the endpoint answered 400: [redacted] and [redacted] and [redacted]"
    );
    // Reported after a 200, and in a chunk that is garbled.
    for event in [
        format!("data: {{\"error\":\"no {KEY}\"}}\n\n"),
        format!("data: {KEY}\n\n"),
        format!("data: {}{KEY}\n\n", "x".repeat(65)),
        format!("{}{KEY}\n\n", "x".repeat(285)),
    ] {
        error_of(vec![stream_head(), send(&event)], |_| {});
    }
    error_of(
        answer(
            200,
            &[("content-type", "text/html")],
            &format!("<title>{KEY}</title>"),
        ),
        |_| {},
    );
}

#[test]
fn a_busy_endpoint_says_how_long_to_wait() {
    let busy = |headers: &[(&str, &str)]| {
        error_of(
            answer(429, headers, r#"{"error":{"message":"slow down"}}"#),
            |_| {},
        )
    };
    let error = busy(&[("retry-after", "3")]);
    assert_eq!(error.error.code, ErrorCode::ModelRateLimit);
    assert!(error.error.retryable);
    assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
    let error = busy(&[("retry-after", "3"), ("retry-after-ms", "250")]);
    assert_eq!(error.retry_after, Some(Duration::from_millis(250)));
    assert_eq!(busy(&[]).retry_after, None);
}

#[test]
fn an_error_body_that_never_ends_is_cut_off() {
    let mut exchange = vec![send("HTTP/1.1 500 No\r\nconnection: close\r\n\r\n")];
    exchange.extend((0..40).map(|_| send(&"x".repeat(4096))));
    exchange.push(Step::AwaitClose);
    let error = error_of(exchange, |_| {});
    assert_eq!(error.error.code, ErrorCode::ModelServer);
    assert!(error.error.message.len() < 1100);
    // Headers, then silence: the status is known, and is what counts.
    let silent = vec![
        send("HTTP/1.1 503 No\r\ncontent-length: 10\r\n\r\nbusy"),
        Step::AwaitClose,
    ];
    let error = error_of(silent, |config| config.between_bytes_timeout_ms = 50);
    assert_eq!(error.error.code, ErrorCode::ModelServer);
    assert!(error.error.message.ends_with("busy"));
}

#[test]
fn a_port_where_nobody_listens_is_a_connection_error() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let config = OpenAiConfig::new(
        "m",
        format!("http://127.0.0.1:{port}/v1?key=query-secret-1"),
    );
    let error = call(&provider(config), &ask("x")).0.unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelConnection);
    assert!(error.error.retryable);
    assert!(error.error.message.contains(&format!("127.0.0.1:{port}")));
    assert!(!error.error.cause.is_empty());
    assert!(!format!("{error:?}").contains("query-secret"));
}

#[test]
fn a_name_that_does_not_exist_is_a_connection_error() {
    let config = OpenAiConfig::new("m", "http://no-such-host.invalid/v1");
    let error = call(&provider(config), &ask("x")).0.unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelConnection);
}

#[test]
fn an_answer_that_is_not_http_is_a_protocol_error() {
    let error = error_of(vec![send("SSH-2.0-OpenSSH_9.2\r\n\r\n")], |_| {});
    assert_eq!(error.error.code, ErrorCode::ModelProtocol);
    let error = error_of(
        vec![send("HTTP/1.1 200 OK\r\nbad header line\r\n\r\n")],
        |_| {},
    );
    assert_eq!(error.error.code, ErrorCode::ModelProtocol);
}

#[test]
fn a_connection_that_closes_without_an_answer_is_a_connection_error() {
    let error = error_of(vec![], |_| {});
    assert_eq!(error.error.code, ErrorCode::ModelConnection);
    assert!(error.error.retryable);
    let error = error_of(vec![send("HTTP/1.1 200 OK\r\ncontent-ty")], |_| {});
    assert_eq!(error.error.code, ErrorCode::ModelConnection);
}

#[test]
fn a_page_in_the_place_of_a_reply_is_a_protocol_error() {
    let page = "<!doctype html><html><head><title>Sign in</title></head></html>";
    for kind in [
        "text/html; charset=utf-8",
        "text/plain",
        "application/json",
        "text/event-stream",
    ] {
        let error = error_of(answer(200, &[("content-type", kind)], page), |_| {});
        assert_eq!(error.error.code, ErrorCode::ModelProtocol, "{kind}");
        assert!(error.partial.is_none());
    }
    let error = error_of(answer(200, &[("content-type", "text/html")], page), |_| {});
    assert!(
        error.error.message.ends_with("a page titled \"Sign in\""),
        "{}",
        error.error.message
    );
    assert!(!error.error.retryable);
    let error = error_of(answer(204, &[], ""), |_| {});
    assert_eq!(error.error.code, ErrorCode::ModelProtocol);
    let error = error_of(json_answer(200, r#"{"choices":[]}"#), |_| {});
    assert_eq!(error.error.code, ErrorCode::ModelProtocol);
}

#[test]
fn a_stream_without_its_end_mark_is_truncated_and_hands_over_the_part() {
    for exchange in [
        vec![stream_head(), send(&text_event("Hello wor"))],
        // A length that promises more than comes.
        vec![
            send(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n",
            ),
            send(&text_event("Hello wor")),
        ],
        // Chunked coding that breaks off.
        vec![
            send(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            ),
            send(&format!(
                "{:x}\r\n{}\r\n",
                text_event("Hello wor").len(),
                text_event("Hello wor")
            )),
        ],
        // The cut lies inside an event.
        vec![
            stream_head(),
            send(&text_event("Hello wor")),
            send("data: {\"choices\":[{\"delta\":{\"content\":\"ld"),
        ],
    ] {
        let error = error_of(exchange, |_| {});
        assert_eq!(error.error.code, ErrorCode::ModelTruncated);
        assert!(error.error.retryable);
        assert_eq!(error.partial.unwrap().content, json!("Hello wor"));
    }
    let error = error_of(vec![stream_head()], |_| {});
    assert_eq!(error.error.code, ErrorCode::ModelTruncated);
    assert!(error.partial.is_none());
}

/// S19: no `[DONE]`, or a connection that stays open after the last word.
#[test]
fn nobody_waits_for_ever_after_the_end_mark() {
    let server = Server::start(vec![vec![
        stream_head(),
        send(&text_event("all")),
        send(&stop_event()),
    ]]);
    assert_eq!(ask_server(&server).0.unwrap().content, json!("all"));
    let begun = Instant::now();
    let server = Server::start(vec![vec![
        stream_head(),
        send(&text_event("all")),
        send(&stop_event()),
        Step::AwaitClose,
    ]]);
    assert_eq!(ask_server(&server).0.unwrap().content, json!("all"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(server.wait_for_close(Duration::from_secs(1)).is_some());
    // After [DONE] there is no wait at all.
    let begun = Instant::now();
    let server = Server::start(vec![vec![
        stream_head(),
        send(&text_event("all")),
        send(&stop_event()),
        send(DONE),
        Step::AwaitClose,
    ]]);
    assert_eq!(ask_server(&server).0.unwrap().content, json!("all"));
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn an_error_after_a_200_is_typed_and_hands_over_the_part() {
    let error = error_of(
        vec![
            stream_head(),
            send(&text_event("Hel")),
            send(
                "data: {\"error\":{\"code\":500,\"message\":\"out of\\u0007 slots\",\"type\":\"server_error\"}}\n\n",
            ),
            send(DONE),
        ],
        |_| {},
    );
    assert_eq!(error.error.code, ErrorCode::ModelServer);
    assert_eq!(
        error.error.message,
        "the endpoint reports an error (500): out of slots"
    );
    assert_eq!(error.partial.unwrap().content, json!("Hel"));
}

#[test]
fn a_garbled_chunk_is_a_protocol_error_and_not_skipped() {
    let error = error_of(
        vec![
            stream_head(),
            send(&text_event("Hel")),
            send("data: {\"choices\":[{\"delta\n\n"),
            send(&text_event("lo")),
            send(&stop_event()),
        ],
        |_| {},
    );
    assert_eq!(error.error.code, ErrorCode::ModelProtocol);
    assert_eq!(error.partial.unwrap().content, json!("Hel"));
}

#[test]
fn an_event_without_end_is_refused_before_it_fills_the_memory() {
    let mut exchange = vec![stream_head(), send("data: ")];
    exchange.extend((0..40).map(|_| send(&"x".repeat(1 << 20))));
    let error = error_of(exchange, |_| {});
    assert_eq!(error.error.code, ErrorCode::ModelProtocol);
    assert!(error.error.message.contains("larger than"));
}

#[test]
fn a_very_long_event_is_read() {
    let long = "long text ".repeat(200_000);
    let server = Server::start(vec![whole_stream(&[&long])]);
    assert_eq!(ask_server(&server).0.unwrap().content, json!(long));
}

#[test]
fn silence_before_the_head_is_a_timeout() {
    for exchange in [
        vec![Step::AwaitClose],
        // A head that trickles counts as silence as well.
        vec![
            send("HTTP/1.1 200 OK\r\n"),
            wait_ms(60),
            send("x-a: b\r\n"),
            wait_ms(60),
            send("x-b: c\r\n"),
            Step::AwaitClose,
        ],
    ] {
        let server = Server::start(vec![exchange]);
        let begun = Instant::now();
        let error = ask_with(&server, |config| config.first_byte_timeout_ms = 150)
            .0
            .unwrap_err();
        assert_eq!(error.error.code, ErrorCode::ModelTimeout);
        assert!(error.error.retryable && error.error.message.contains("150 ms"));
        assert!(begun.elapsed() < Duration::from_secs(3));
        assert!(server.wait_for_close(Duration::from_secs(1)).is_some());
    }
}

/// L8: headers, then silence.
#[test]
fn silence_in_the_middle_is_a_timeout_with_the_part() {
    let server = Server::start(vec![vec![
        stream_head(),
        send(&text_event("Hel")),
        Step::AwaitClose,
    ]]);
    let error = ask_with(&server, |config| config.between_bytes_timeout_ms = 100)
        .0
        .unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelTimeout);
    assert_eq!(error.partial.unwrap().content, json!("Hel"));
    assert!(server.wait_for_close(Duration::from_secs(1)).is_some());
    let error = error_of(vec![stream_head(), Step::AwaitClose], |config| {
        config.between_bytes_timeout_ms = 100;
    });
    assert_eq!(error.error.code, ErrorCode::ModelTimeout);
}

#[test]
fn a_stream_that_only_keeps_alive_meets_the_whole_timeout() {
    let mut exchange = vec![stream_head()];
    for _ in 0..100 {
        exchange.extend([send(": still here\n\n"), wait_ms(20)]);
    }
    let begun = Instant::now();
    let error = error_of(exchange, |config| config.timeout_ms = 200);
    assert_eq!(error.error.code, ErrorCode::ModelTimeout);
    assert!(
        error.error.message.contains("200 ms"),
        "{}",
        error.error.message
    );
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_peer_that_takes_no_connection_meets_the_connect_timeout() {
    // TLS to a peer that never says a word: connecting includes the handshake.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let tls = Tls::new(&folder("silent"));
    let mut config = OpenAiConfig::new(
        "m",
        format!("https://localhost:{}", silent.local_addr().unwrap().port()),
    );
    config.tls = Some(TlsConfig {
        ca_file: Some(tls.ca_file.to_str().unwrap().to_owned()),
    });
    config.connect_timeout_ms = 150;
    let error = call(&provider(config), &ask("x")).0.unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelTimeout);
    assert!(
        error.error.message.contains("150 ms"),
        "{}",
        error.error.message
    );
}

#[test]
fn the_time_that_the_listener_takes_does_not_count() {
    let texts = ["a", "b", "c", "d", "e", "f"];
    let server = Server::start(vec![whole_stream(&texts)]);
    let mut config = config(&server);
    config.timeout_ms = 250;
    config.between_bytes_timeout_ms = 250;
    let provider = provider(config);
    let mut sink = Collect {
        pause: Some(Duration::from_millis(100)),
        ..Collect::default()
    };
    let begun = Instant::now();
    let reply = block_on(provider.call(&ask("x"), &mut sink)).unwrap();
    assert_eq!(reply.content, json!("abcdef"));
    assert_eq!(sink.text(), "abcdef");
    assert!(begun.elapsed() >= Duration::from_millis(600));
}

/// A cancelled run must free the endpoint: it goes on computing for nobody otherwise.
#[test]
fn dropping_the_call_closes_the_connection_at_once() {
    for exchange in [
        vec![Step::AwaitClose],
        vec![stream_head(), Step::AwaitClose],
        vec![stream_head(), send(&text_event("Hel")), Step::AwaitClose],
    ] {
        let server = Server::start(vec![exchange]);
        let provider = provider(config(&server));
        let dropped = block_on(async {
            let mut sink = Collect::default();
            let request = ask("x");
            let call = provider.call(&request, &mut sink);
            let patience = Duration::from_millis(200);
            assert!(tokio::time::timeout(patience, call).await.is_err());
            let dropped = Instant::now();
            // The runtime goes on, as a service does.
            while server.wait_for_close(Duration::ZERO).is_none()
                && dropped.elapsed() < Duration::from_secs(2)
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            dropped
        });
        let closed = server.wait_for_close(Duration::ZERO).expect("still open");
        assert!(closed.saturating_duration_since(dropped) < Duration::from_millis(500));
    }
}

#[test]
fn one_connection_serves_many_calls() {
    let server = Server::start(vec![whole_stream(&["x"])]);
    let provider = provider(config(&server));
    block_on(async {
        for _ in 0..5 {
            let mut sink = Collect::default();
            provider.call(&ask("x"), &mut sink).await.unwrap();
        }
    });
    assert_eq!(server.requests().len(), 5);
    // One as a rule; a busy machine may miss the short wait for the end of a body now and then.
    assert!(server.connections() < 4, "{}", server.connections());
}

#[test]
fn calls_at_once_do_not_disturb_each_other() {
    let server = Server::start(vec![whole_stream(&["x", "y"])]);
    let provider = provider(config(&server));
    block_on(async {
        let call = || async {
            let mut sink = Collect::default();
            let request = ask("x");
            let reply = provider.call(&request, &mut sink).await.unwrap();
            (reply.content, sink.text())
        };
        let (a, b, c) = tokio::join!(call(), call(), call());
        for answer in [a, b, c] {
            assert_eq!(answer, (json!("xy"), "xy".to_owned()));
        }
    });
}

#[test]
fn redirects_stay_within_the_origin() {
    let target = Server::start(vec![whole_stream(&["elsewhere"])]);
    for status in [301, 302, 303, 307, 308] {
        let location = target.url("/v1/chat/completions?key=abc");
        let server = Server::start(vec![answer(status, &[("location", &location)], "")]);
        let error = ask_server(&server).0.unwrap_err();
        assert_eq!(error.error.code, ErrorCode::ModelRequest, "{status}");
        assert!(!error.error.retryable);
        assert_eq!(
            error.error.cause,
            [format!("it points to http://{}", target.addr())]
        );
        assert_no_key(&error);
    }
    assert!(target.requests().is_empty(), "the key travelled");
    let server = Server::start(vec![
        answer(307, &[("location", "/v2/chat/completions")], ""),
        whole_stream(&["moved"]),
    ]);
    assert_eq!(ask_server(&server).0.unwrap().content, json!("moved"));
    let requests = server.requests();
    assert_eq!(requests[1].path, "/v2/chat/completions");
    assert_eq!(requests[1].method, "POST");
    assert_eq!(requests[0].body, requests[1].body);
    // A circle ends.
    let server = Server::start(vec![answer(307, &[("location", "/x")], "")]);
    assert_eq!(
        ask_server(&server).0.unwrap_err().error.code,
        ErrorCode::ModelRequest
    );
    assert!(server.requests().len() < 6);
}

#[test]
fn https_is_trusted_by_the_named_authority_only() {
    let tls = Tls::new(&folder("https"));
    let server = Server::start_tls(vec![whole_stream(&["safe"])], &tls);
    let trust = |file: &std::path::Path| {
        let file = file.to_str().unwrap().to_owned();
        move |config: &mut OpenAiConfig| {
            config.tls = Some(TlsConfig {
                ca_file: Some(file),
            });
        }
    };
    let (reply, _) = ask_with(&server, trust(&tls.ca_file));
    assert_eq!(reply.unwrap().content, json!("safe"));
    let other = Tls::new(&folder("https-other"));
    for error in [
        ask_with(&server, trust(&other.ca_file)).0.unwrap_err(),
        ask_server(&server).0.unwrap_err(),
    ] {
        assert_eq!(error.error.code, ErrorCode::ModelConnection);
        assert!(
            error.error.message.contains("not trusted"),
            "{:?}",
            error.error
        );
        assert!(!error.error.retryable);
    }
    // The name counts as well: the certificate is for localhost.
    let mut config = config(&server);
    config.base_url = fawn::protocol::model::BaseUrl::new(format!("https://{}", server.addr()));
    trust(&tls.ca_file)(&mut config);
    let error = call(&provider(config), &ask("x")).0.unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelConnection);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn no_tls_provider_is_installed_for_the_process() {
    https_is_trusted_by_the_named_authority_only();
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
}

#[test]
fn a_ca_file_that_cannot_be_used_is_named() {
    let folder = folder("ca");
    let error = |file: &std::path::Path| -> Error {
        let mut config = OpenAiConfig::new("m", "https://localhost");
        config.tls = Some(TlsConfig {
            ca_file: Some(file.to_str().unwrap().to_owned()),
        });
        OpenAi::new(config, &|_| None).err().unwrap()
    };
    let empty = folder.join("empty.pem");
    std::fs::write(&empty, "no certificate here").unwrap();
    let broken = folder.join("broken.pem");
    std::fs::write(
        &broken,
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    for file in [folder.join("missing.pem"), empty, broken] {
        let error = error(&file);
        assert_eq!(error.code, ErrorCode::AssemblyInvalid);
        assert_eq!(error.path.as_deref(), Some("/tls/ca_file"));
        assert!(error.message.contains(file.to_str().unwrap()));
    }
}

#[test]
fn a_proxy_is_used_when_it_is_named() {
    let proxy = Server::start(vec![whole_stream(&["through"])]);
    let mut config = OpenAiConfig::new("m", "http://model.invalid/v1");
    config.proxy = Some(Secret::new("$MY_PROXY"));
    let url = proxy
        .url("")
        .replace("http://", "http://user:proxy-password@");
    let provider = OpenAi::new(config, &|name| (name == "MY_PROXY").then(|| url.clone())).unwrap();
    let reply = call(&provider, &ask("x")).0.unwrap();
    assert_eq!(reply.content, json!("through"));
    let request = &proxy.requests()[0];
    assert_eq!(request.path, "http://model.invalid/v1/chat/completions");
    assert!(request.header("proxy-authorization").is_some());
}
