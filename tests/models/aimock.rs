//! The providers behind HTTP against aimock: a mock of the wire that we did not write.

use std::sync::Arc;
use std::time::Duration;

use fawn::adapters::model::anthropic::Anthropic;
use fawn::adapters::model::openai::OpenAi;
use fawn::ports::model::{ModelDelta, ModelError, ModelReply, ModelRequest};
use fawn::protocol::error::ErrorCode;
use fawn::protocol::message::{Fields, Kind, Message};
use fawn::protocol::model::{AnthropicConfig, OpenAiConfig, Secret};
use serde_json::json;

use crate::support::aimock::Aimock;
use crate::support::model::{Collect, ask, call, message, request, tool};

fn ask_mock(
    mock: &Aimock,
    stream: bool,
    request: &ModelRequest,
) -> (Result<ModelReply, ModelError>, Collect) {
    ask_model(mock, "gpt-4o", stream, request)
}

fn ask_model(
    mock: &Aimock,
    model: &str,
    stream: bool,
    request: &ModelRequest,
) -> (Result<ModelReply, ModelError>, Collect) {
    let mut config = OpenAiConfig::new(model, mock.base_url());
    config.api_key = Some(Secret::new("sk-test"));
    config.stream = stream;
    call(&OpenAi::new(config, &|_| None).unwrap(), request)
}

/// The mock cuts text between UTF-16 units, so that the pieces of the smiley are halves.
#[test]
fn text_streams_in_pieces() {
    let Some(mock) = Aimock::start() else { return };
    let (reply, sink) = ask_mock(&mock, true, &ask("say hello"));
    let reply = reply.unwrap();
    assert_eq!(
        reply.content,
        json!("Hello there, how can I help? Ça va 🙂")
    );
    assert_eq!(sink.text(), "Hello there, how can I help? Ça va 🙂");
    assert!(sink.deltas.len() > 5, "{}", sink.deltas.len());
    assert_eq!(reply.response_metadata["finish_reason"], "stop");
    assert_eq!(reply.response_metadata["model_name"], "gpt-4o");
    let (whole, _) = ask_mock(&mock, false, &ask("say hello"));
    assert_eq!(whole.unwrap().content, reply.content);
}

#[test]
fn usage_comes_with_and_without_a_stream() {
    let Some(mock) = Aimock::start() else { return };
    for stream in [true, false] {
        let (reply, _) = ask_mock(&mock, stream, &ask("count tokens"));
        let usage = reply.unwrap().usage.unwrap();
        assert_eq!(
            (usage.input_tokens, usage.output_tokens, usage.total_tokens),
            (21, 4, 25),
            "stream: {stream}"
        );
    }
}

#[test]
fn reasoning_is_kept_apart_from_text() {
    let Some(mock) = Aimock::start() else { return };
    for stream in [true, false] {
        // The mock lets only models think that do so in life.
        let (reply, sink) = ask_model(&mock, "o3-mini", stream, &ask("think first"));
        let reply = reply.unwrap();
        assert_eq!(reply.content, json!("42"));
        assert_eq!(
            reply.additional_kwargs["reasoning_content"],
            "Six times seven."
        );
        assert!(matches!(sink.deltas[0], ModelDelta::Reasoning(_)));
    }
}

/// Two calls in one reply, then a turn with both results.
#[test]
fn parallel_calls_and_their_results_make_two_turns() {
    let Some(mock) = Aimock::start() else { return };
    for stream in [true, false] {
        let mut first = ask("weather in Paris");
        first.tools = Arc::new([
            tool("get_weather", json!({"type": "object"})),
            tool("add", json!({"type": "object"})),
        ]);
        let (reply, sink) = ask_mock(&mock, stream, &first);
        let reply = reply.unwrap();
        assert_eq!(reply.content, json!("Let me look."));
        assert_eq!(reply.response_metadata["finish_reason"], "tool_calls");
        let calls = serde_json::to_value(&reply.tool_calls).unwrap();
        assert_eq!(
            calls,
            json!([
                {"name": "get_weather", "args": {"city": "Paris", "note": "été, 12 °C 🙂"},
                    "id": "call_weather", "type": "tool_call"},
                {"name": "add", "args": {"a": 1, "b": 2}, "id": "call_add", "type": "tool_call"},
            ])
        );
        let named: Vec<_> = sink
            .deltas
            .iter()
            .filter_map(|delta| match delta {
                ModelDelta::ToolCall {
                    index,
                    id: Some(id),
                    name: Some(name),
                    ..
                } => Some((*index, id.as_str(), name.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!(
            named,
            [(0, "call_weather", "get_weather"), (1, "call_add", "add")]
        );

        let mut answered = Fields::new(Kind::Ai, reply.content.clone());
        answered.tool_calls = reply.tool_calls.clone();
        let result = |id: &str, text: &str| {
            let mut fields = Fields::new(Kind::Tool, text);
            fields.tool_call_id = id.to_owned();
            Message::new(fields)
        };
        let second = ModelRequest {
            messages: Arc::new(
                vec![
                    message(Kind::Human, "weather in Paris"),
                    Message::new(answered),
                    result("call_weather", "12"),
                    result("call_add", "3"),
                ]
                .into(),
            ),
            ..first
        };
        let (reply, _) = ask_mock(&mock, stream, &second);
        assert_eq!(
            reply.unwrap().content,
            json!("It is 12 °C in Paris, and the sum is 3.")
        );
    }
}

#[test]
fn a_busy_endpoint_says_how_long_to_wait() {
    let Some(mock) = Aimock::start() else { return };
    let (reply, _) = ask_mock(&mock, true, &ask("be busy"));
    let error = reply.unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelRateLimit);
    assert!(error.error.retryable);
    assert_eq!(error.retry_after, Some(Duration::from_secs(1)));
    assert_eq!(
        error.error.message,
        "the endpoint answered 429 (rate_limit_exceeded): Slow down"
    );
    let (reply, _) = ask_mock(&mock, true, &ask("be busy"));
    assert_eq!(reply.unwrap().content, json!("Free again."));
}

#[test]
fn a_broken_stream_is_truncated() {
    let Some(mock) = Aimock::start() else { return };
    for text in ["cut the stream", "drop the connection"] {
        let (reply, sink) = ask_mock(&mock, true, &ask(text));
        let error = reply.unwrap_err();
        assert_eq!(error.error.code, ErrorCode::ModelTruncated, "{text}");
        let partial = error.partial.unwrap();
        assert!("This answer is long enough".starts_with(&sink.text()[..5]));
        assert_eq!(partial.content, json!(sink.text()));
    }
}

/// `--strict` answers a request that fits no fixture with an error.
#[test]
fn a_request_that_the_mock_does_not_know_is_an_error() {
    let Some(mock) = Aimock::start() else { return };
    let (reply, _) = ask_mock(
        &mock,
        true,
        &request(vec![message(Kind::Human, "what else")]),
    );
    let error = reply.unwrap_err();
    assert!(!error.error.message.is_empty());
    assert!(error.partial.is_none());
}

fn ask_messages(
    mock: &Aimock,
    stream: bool,
    request: &ModelRequest,
) -> (Result<ModelReply, ModelError>, Collect) {
    let mut config = AnthropicConfig::new("claude-sonnet-4-5", mock.base_url());
    config.api_key = Some(Secret::new("sk-test"));
    config.stream = stream;
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    config.thinking = thinking.as_object().cloned();
    call(&Anthropic::new(config, &|_| None).unwrap(), request)
}

#[test]
fn messages_stream_and_come_whole() {
    let Some(mock) = Aimock::start() else { return };
    let (reply, sink) = ask_messages(&mock, true, &ask("say hello"));
    let reply = reply.unwrap();
    assert_eq!(sink.text(), "Hello there, how can I help? Ça va 🙂");
    assert!(sink.deltas.len() > 5, "{}", sink.deltas.len());
    assert_eq!(reply.content, json!(sink.text()));
    assert_eq!(reply.response_metadata["stop_reason"], "end_turn");
    assert_eq!(reply.response_metadata["model_name"], "claude-sonnet-4-5");
    let (whole, _) = ask_messages(&mock, false, &ask("say hello"));
    assert_eq!(whole.unwrap().content, reply.content);
    for stream in [true, false] {
        let (reply, _) = ask_messages(&mock, stream, &ask("count tokens"));
        let usage = reply.unwrap().usage.unwrap();
        assert_eq!(
            (usage.input_tokens, usage.output_tokens, usage.total_tokens),
            (21, 4, 25),
            "stream: {stream}"
        );
    }
}

/// A turn that thinks and calls, then one with the result. The mock is strict: it refuses a second turn whose thinking did
/// not come back with its signature, in its place.
#[test]
fn thinking_goes_back_in_the_turn_with_the_result() {
    let Some(mock) = Aimock::start() else { return };
    for stream in [true, false] {
        let mut first = ask("think and look");
        first.tools = Arc::new([tool("get_weather", json!({"type": "object"}))]);
        let (reply, sink) = ask_messages(&mock, stream, &first);
        let reply = reply.unwrap();
        assert_eq!(
            reply.content,
            json!([
                {"type": "redacted_thinking", "data": "b3BhcXVl"},
                {"type": "thinking", "thinking": "I need the weather. 🙂", "signature": "sig+/=1"},
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "toolu_think", "name": "get_weather", "input": {"city": "Oslo"}},
            ])
        );
        assert_eq!(reply.response_metadata["stop_reason"], "tool_use");
        assert_eq!(sink.text(), "One moment.");
        assert!(matches!(sink.deltas[0], ModelDelta::Reasoning(_)));
        assert_eq!(
            reply.tool_calls[0].args,
            *json!({"city": "Oslo"}).as_object().unwrap()
        );

        let mut answered = Fields::new(Kind::Ai, reply.content.clone());
        answered.tool_calls = reply.tool_calls.clone();
        let mut result = Fields::new(Kind::Tool, "rain");
        result.tool_call_id = "toolu_think".to_owned();
        let turn = |answered: Fields| ModelRequest {
            messages: Arc::new(
                vec![
                    message(Kind::Human, "think and look"),
                    Message::new(answered),
                    Message::new(result.clone()),
                ]
                .into(),
            ),
            ..first.clone()
        };
        let (reply, _) = ask_messages(&mock, stream, &turn(answered.clone()));
        assert_eq!(reply.unwrap().content, json!("It rains in Oslo."));
        // Without its thinking the turn is refused, so the mock does look.
        answered.content = json!("One moment.");
        let (reply, _) = ask_messages(&mock, stream, &turn(answered));
        let error = reply.unwrap_err();
        assert_eq!(
            (error.error.code, error.error.http_status()),
            (ErrorCode::ModelRequest, Some(400))
        );
    }
}

#[test]
fn parallel_calls_of_messages_make_two_turns() {
    let Some(mock) = Aimock::start() else { return };
    for stream in [true, false] {
        let mut config = AnthropicConfig::new("claude-3-haiku", mock.base_url());
        config.stream = stream;
        let provider = Anthropic::new(config, &|_| None).unwrap();
        let mut first = ask("weather in Paris");
        first.tools = Arc::new([
            tool("get_weather", json!({"type": "object"})),
            tool("add", json!({"type": "object"})),
        ]);
        let reply = call(&provider, &first).0.unwrap();
        let names: Vec<_> = reply
            .tool_calls
            .iter()
            .map(|call| call.name.as_str())
            .collect();
        assert_eq!(names, ["get_weather", "add"]);
        let mut answered = Fields::new(Kind::Ai, reply.content.clone());
        answered.tool_calls = reply.tool_calls.clone();
        let mut messages = vec![
            message(Kind::Human, "weather in Paris"),
            Message::new(answered),
        ];
        for called in &reply.tool_calls {
            let mut fields = Fields::new(Kind::Tool, "12");
            fields.tool_call_id = called.id.clone().unwrap();
            messages.push(Message::new(fields));
        }
        let second = ModelRequest {
            messages: Arc::new(messages.into()),
            ..first
        };
        assert_eq!(
            call(&provider, &second).0.unwrap().content,
            json!("It is 12 °C in Paris, and the sum is 3.")
        );
    }
}

#[test]
fn failures_of_messages_are_typed() {
    let Some(mock) = Aimock::start() else { return };
    let (reply, _) = ask_messages(&mock, true, &ask("be overloaded"));
    let error = reply.unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelServer);
    assert!(error.error.retryable);
    assert_eq!(
        (error.error.http_status(), error.error.provider_code()),
        (Some(529), Some("overloaded_error"))
    );
    let (reply, _) = ask_messages(&mock, true, &ask("be overloaded"));
    assert_eq!(reply.unwrap().content, json!("Free again."));
    let (reply, _) = ask_messages(&mock, true, &ask("be busy"));
    let error = reply.unwrap_err();
    assert_eq!(error.error.code, ErrorCode::ModelRateLimit);
    assert_eq!(error.retry_after, Some(Duration::from_secs(1)));
    for text in ["cut the stream", "drop the connection"] {
        let (reply, sink) = ask_messages(&mock, true, &ask(text));
        let error = reply.unwrap_err();
        assert_eq!(error.error.code, ErrorCode::ModelTruncated, "{text}");
        // How much arrives before the cut is a matter of time.
        let partial = error.partial.map(|partial| partial.content);
        assert_eq!(partial.unwrap_or(json!("")), json!(sink.text()));
    }
}
