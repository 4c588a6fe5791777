//! The scripted model: which reply answers, how it streams, how it fails.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use fawn::adapters::model::scripted::Scripted;
use fawn::ports::model::{ModelDelta, ModelError, ModelProvider, ModelReply, ModelRequest};
use fawn::protocol::error::ErrorCode;
use fawn::protocol::message::Kind;
use fawn::protocol::model::ScriptedConfig;
use serde_json::{Value, json};

use crate::support::model::{Collect, ask, block_on, call, message, reply_json, request};

fn scripted(config: Value) -> Scripted {
    let config: ScriptedConfig = serde_json::from_value(config).unwrap();
    Scripted::new(&config).unwrap()
}

/// A request whose transcript holds `turns` ai messages.
fn after(turns: usize) -> ModelRequest {
    let mut messages = vec![message(Kind::Human, "q")];
    for _ in 0..turns {
        messages.push(message(Kind::Ai, "a"));
        messages.push(message(Kind::Human, "q"));
    }
    request(messages)
}

fn answer(model: &Scripted, turns: usize) -> Result<ModelReply, ModelError> {
    call(model, &after(turns)).0
}

#[test]
fn the_number_of_ai_messages_says_which_reply_answers() {
    let model = scripted(json!({"replies": [{"content": "a"}, {"content": "b"}]}));
    assert_eq!(answer(&model, 1).unwrap().content, json!("b"));
    assert_eq!(answer(&model, 0).unwrap().content, json!("a"));
    assert_eq!(answer(&model, 0).unwrap().content, json!("a"));
    let error = answer(&model, 2).unwrap_err().error;
    assert_eq!(error.code, ErrorCode::ScriptExhausted);
    assert!(!error.retryable);
    assert!(error.message.contains("reply 2") && error.message.contains("has 2"));
}

#[test]
fn a_script_that_repeats_begins_again_with_new_ids() {
    let model = scripted(json!({"repeat": true, "replies": [
        {"tool_calls": [{"name": "f"}, {"name": "g", "id": "mine"}]}, {"content": "b"}]}));
    let ids = |turns: usize| -> Vec<String> {
        let (reply, sink) = call(&model, &after(turns));
        let streamed: Vec<_> = sink
            .deltas
            .into_iter()
            .map(|delta| match delta {
                ModelDelta::ToolCall { id, .. } => id.unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        let ids: Vec<_> = reply
            .unwrap()
            .tool_calls
            .into_iter()
            .map(|call| call.id.unwrap())
            .collect();
        assert_eq!(streamed, ids);
        ids
    };
    assert_eq!(ids(0), ["call_0_0", "mine"]);
    assert_eq!(ids(2), ["call_2_0", "mine"]);
    assert_eq!(answer(&model, 7).unwrap().content, json!("b"));
    let empty = scripted(json!({"repeat": true, "replies": []}));
    assert_eq!(
        answer(&empty, 0).unwrap_err().error.code,
        ErrorCode::ScriptExhausted
    );
}

#[test]
fn everything_of_a_reply_arrives() {
    let model = scripted(json!({"replies": [{
        "content": [{"type": "text", "text": "look "}, {"type": "image", "url": "u"}, "here"],
        "reasoning": "hm",
        "tool_calls": [{"name": "f", "args": {"x": 1}}],
        "invalid_tool_calls": [{"name": "g", "args": "{"}],
        "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read": 1, "reasoning": 1},
    }]}));
    let (reply, sink) = call(&model, &after(0));
    assert_eq!(
        reply_json(&reply.unwrap()),
        json!({
            "content": [{"type": "text", "text": "look "}, {"type": "image", "url": "u"}, "here"],
            "tool_calls": [{"name": "f", "args": {"x": 1}, "id": "call_0_0", "type": "tool_call"}],
            "invalid_tool_calls": [{"type": "invalid_tool_call", "id": "call_0_1", "name": "g", "args": "{",
                "error": "the arguments are no JSON object"}],
            "usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7,
                "input_token_details": {"cache_read": 1}, "output_token_details": {"reasoning": 1}},
            "additional_kwargs": {"reasoning_content": "hm"},
            "response_metadata": {"finish_reason": "tool_calls", "model_name": "scripted"},
        })
    );
    let call_delta = |index, id: &str, name: &str, args: &str| ModelDelta::ToolCall {
        index,
        id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        args: args.to_owned(),
    };
    assert_eq!(
        sink.deltas,
        [
            ModelDelta::Reasoning("hm".to_owned()),
            ModelDelta::Text("look here".to_owned()),
            call_delta(0, "call_0_0", "f", "{\"x\":1}"),
            call_delta(1, "call_0_1", "g", "{"),
        ]
    );
}

#[test]
fn text_streams_in_the_pieces_that_are_asked_for() {
    let pieces = |reply: Value| -> Vec<String> {
        let model = scripted(json!({"replies": [reply]}));
        let (reply, sink) = call(&model, &after(0));
        assert_eq!(reply.unwrap().content, json!(sink.text()));
        sink.deltas
            .into_iter()
            .map(|delta| match delta {
                ModelDelta::Text(text) => text,
                other => panic!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(
        pieces(json!({"content": "é🙂abc", "chunks": 2})),
        ["é🙂a", "bc"]
    );
    assert_eq!(
        pieces(json!({"content": "abc", "chunks": 9})),
        ["a", "b", "c"]
    );
    assert_eq!(pieces(json!({"content": "abc"})), ["abc"]);
    assert_eq!(pieces(json!({"chunks": ["a", "", "bc"]})), ["a", "", "bc"]);
    assert_eq!(
        pieces(json!({"content": "abc", "chunks": ["a", "bc"]})),
        ["a", "bc"]
    );
    assert!(pieces(json!({})).is_empty());
    assert!(pieces(json!({"chunks": 3})).is_empty());
}

#[test]
fn delays_are_kept() {
    let model = scripted(json!({"replies": [
        {"chunks": ["a", "b", "c"], "delay_ms": 60, "chunk_delay_ms": 30}]}));
    let begun = Instant::now();
    answer(&model, 0).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(120));
}

/// Without delays nothing waits: the future is ready when it is polled first, even outside of a runtime.
#[test]
fn without_delays_there_is_no_timer_and_no_runtime() {
    let model = scripted(json!({"replies": [{"content": "abc", "chunks": 3}]}));
    let request = after(0);
    let mut sink = Collect::default();
    let mut call = Box::pin(model.call(&request, &mut sink));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match call.as_mut().poll(&mut context) {
        std::task::Poll::Ready(reply) => assert_eq!(reply.unwrap().content, json!("abc")),
        std::task::Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn an_error_comes_at_once_or_after_some_pieces() {
    let model = scripted(json!({"replies": [
        {"content": "x", "error": {"code": "model_rate_limit", "message": "slow", "retry_after_ms": 40}},
        {"chunks": ["a", "b", "c"], "reasoning": "r", "error": {"code": "model_connection", "after_chunks": 2}},
        {"error": {"code": "model_auth"}},
        {"error": {"code": "model_auth", "retryable": true}},
    ]}));
    let (reply, sink) = call(&model, &after(0));
    let error = reply.unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelRateLimit);
    assert_eq!(error.error.message, "slow");
    assert!(error.error.retryable && error.partial.is_none() && sink.deltas.is_empty());
    assert_eq!(error.retry_after, Some(Duration::from_millis(40)));
    let (reply, sink) = call(&model, &after(1));
    let error = reply.unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelConnection);
    assert_eq!(sink.text(), "ab");
    let partial = error.partial.unwrap();
    assert_eq!(partial.content, json!("ab"));
    assert_eq!(partial.additional_kwargs["reasoning_content"], "r");
    assert!(partial.response_metadata.get("finish_reason").is_none());
    assert!(!answer(&model, 2).unwrap_err().error.retryable);
    assert!(answer(&model, 3).unwrap_err().error.retryable);
}

#[test]
fn the_first_attempts_fail_and_later_ones_are_answered() {
    let model = scripted(json!({"replies": [
        {"content": "a", "fail_first": 2},
        {"content": "b", "fail_first": 1, "cut": true},
        {"content": "c", "fail_first": 0, "error": {"code": "model_auth"}},
    ]}));
    let attempt = |turns: usize, attempt: u32| {
        let mut request = after(turns);
        request.attempt = attempt;
        call(&model, &request).0
    };
    for n in 0..2 {
        let error = attempt(0, n).unwrap_err().error;
        assert_eq!(error.code, ErrorCode::ModelServer);
        assert!(error.retryable);
    }
    assert_eq!(attempt(0, 2).unwrap().content, json!("a"));
    assert_eq!(
        attempt(1, 0).unwrap_err().error.code,
        ErrorCode::ModelTruncated
    );
    assert_eq!(attempt(1, 1).unwrap().content, json!("b"));
    assert_eq!(attempt(2, 0).unwrap().content, json!("c"));
}

#[test]
fn a_cut_reply_hands_over_its_part() {
    let model = scripted(json!({"replies": [
        {"chunks": ["a", "b"], "tool_calls": [{"name": "f"}], "usage": {"input_tokens": 1}, "cut": true}]}));
    let (reply, sink) = call(&model, &after(0));
    let error = reply.unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelTruncated);
    assert!(error.error.retryable);
    assert_eq!(sink.text(), "ab");
    let partial = error.partial.unwrap();
    assert_eq!(partial.content, json!("ab"));
    assert_eq!(partial.tool_calls.len(), 1);
    assert_eq!(partial.usage, None);
    assert!(partial.response_metadata.get("finish_reason").is_none());
}

#[test]
fn a_reply_that_hangs_never_ends() {
    let model = scripted(json!({"replies": [{"content": "abc", "chunks": 3, "hang": true}]}));
    let mut sink = Collect::default();
    let request = ask("q");
    let hung = block_on(async {
        let call = model.call(&request, &mut sink);
        tokio::time::timeout(Duration::from_millis(50), call)
            .await
            .is_err()
    });
    assert!(hung);
    assert_eq!(sink.text(), "abc");
}

#[test]
fn the_listener_can_hold_it_back() {
    let model = scripted(json!({"replies": [{"content": "abcd", "chunks": 4}]}));
    let mut sink = Collect {
        pause: Some(Duration::from_millis(20)),
        ..Collect::default()
    };
    let begun = Instant::now();
    block_on(model.call(&ask("q"), &mut sink)).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(80));
}

#[test]
fn a_script_is_read_from_a_file() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("scripts");
    std::fs::create_dir_all(&folder).unwrap();
    let read = |text: &str| {
        let file = folder.join("script.json");
        std::fs::write(&file, text).unwrap();
        let config: ScriptedConfig = serde_json::from_value(json!({"file": file})).unwrap();
        Scripted::new(&config)
    };
    let model = read(r#"[{"content": "from a file"}]"#).unwrap();
    assert_eq!(answer(&model, 0).unwrap().content, json!("from a file"));
    for (text, says) in [
        ("{}", "no list of replies"),
        ("[{\"content\": \"x\"", "line 1 column 16"),
        ("[\n{\"contents\": \"x\"}]", "unknown field `contents`"),
        ("[{}, {\"chunks\": 0}]", "\"/1/chunks\""),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.code, ErrorCode::AssemblyInvalid, "{text}");
        assert_eq!(error.path.as_deref(), Some("/file"));
        assert!(error.message.contains(says), "{}", error.message);
    }
    let config: ScriptedConfig =
        serde_json::from_value(json!({"file": "/no/such/script.json"})).unwrap();
    let error = Scripted::new(&config).unwrap_err();
    assert!(error.message.contains("/no/such/script.json"));
}
