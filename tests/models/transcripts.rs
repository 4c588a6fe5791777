//! Transcripts of any shape, repaired and written for each kind of endpoint: none would refuse them.

use std::sync::{Arc, Mutex};

use fawn::adapters::model::{anthropic, openai};
use fawn::middleware::{ModelResponse, NextModel, dangling_tool_call};
use fawn::ports::BoxFuture;
use fawn::ports::model::{ModelError, ModelRequest};
use fawn::protocol::message::{InvalidToolCall, Kind, Message, ToolCall};
use futures_util::FutureExt;
use serde_json::{Map, Value, json};

use crate::support::model::{message, request, with};
use crate::support::random::Random;
use crate::support::request_invariant;

/// The end of a chain: keeps the messages that get there.
struct Kept(Arc<Mutex<Option<ModelRequest>>>);

impl NextModel for Kept {
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>> {
        *self.0.lock().unwrap() = Some(request);
        Box::pin(async { Ok(ModelResponse::default()) })
    }
}

/// What the middleware makes of a request.
fn repaired(messages: Vec<Message>) -> ModelRequest {
    let kept = Arc::new(Mutex::new(None));
    let middleware = dangling_tool_call::new();
    let mut next = Kept(kept.clone());
    let called = middleware.wrap_model_call(request(messages), &mut next);
    called.now_or_never().expect("it never waits").unwrap();
    let request = kept.lock().unwrap().take();
    request.expect("it passes the request on")
}

/// An id as models and hosts give them: few, so that they meet, and some that are none.
fn id(random: &mut Random) -> &'static str {
    ["a", "b", "c", "a", "b", "", " ", "\u{2028}"][random.below(8) as usize]
}

fn name(random: &mut Random) -> &'static str {
    ["f", "g", " f ", "", "\t"][random.below(5) as usize]
}

fn content(random: &mut Random) -> Value {
    match random.below(7) {
        0 => json!(""),
        1 => json!(" \n"),
        2 => json!([]),
        3 => json!([{"type": "text", "text": ""}, "words"]),
        _ => json!("words"),
    }
}

fn any_message(random: &mut Random) -> Message {
    match random.below(8) {
        0 | 1 => message(Kind::Human, "words"),
        2..=4 => with(Kind::Tool, content(random), |fields| {
            fields.tool_call_id = id(random).to_owned();
            fields.name = (random.below(2) == 0).then(|| name(random).to_owned());
        }),
        _ => with(Kind::Ai, content(random), |fields| {
            for _ in 0..random.below(4) {
                fields.tool_calls.push(ToolCall {
                    name: name(random).to_owned(),
                    args: Map::new(),
                    id: (random.below(4) > 0).then(|| id(random).to_owned()),
                });
            }
            for _ in 0..random.below(6).saturating_sub(3) {
                fields.invalid_tool_calls.push(InvalidToolCall {
                    id: (random.below(4) > 0).then(|| id(random).to_owned()),
                    name: (random.below(4) > 0).then(|| name(random).to_owned()),
                    args: Some(
                        ["{\"a\":1}", "{\"a", "[]", ""][random.below(4) as usize].to_owned(),
                    ),
                    error: (random.below(2) == 0).then(|| "it broke off".to_owned()),
                });
            }
            if random.below(6) == 0 {
                let raw = json!([
                    {"id": id(random), "function": {"name": name(random), "arguments": "{}"}},
                    5,
                    {"id": 5, "function": {"name": 5, "arguments": 5}},
                ]);
                fields
                    .additional_kwargs
                    .insert("tool_calls".to_owned(), raw);
            }
        }),
    }
}

/// What endpoints and hosts would refuse of a request.
fn refused(request: &ModelRequest) -> Vec<String> {
    let of = |config: Value| serde_json::from_value(config);
    let config = of(json!({"model": "m"})).unwrap();
    let body = openai::encode(&config, request);
    let mut refused = request_invariant::openai(&serde_json::from_slice(&body).unwrap());
    let config = serde_json::from_value(json!({"model": "m"})).unwrap();
    let body = anthropic::encode(&config, request);
    refused.extend(request_invariant::anthropic(
        &serde_json::from_slice(&body).unwrap(),
    ));
    let messages: Vec<Value> = request
        .messages
        .iter()
        .map(|message| serde_json::from_str(message.json()).unwrap())
        .collect();
    refused.extend(request_invariant::host(&json!({ "messages": messages })));
    refused
}

#[test]
fn no_endpoint_refuses_a_repaired_transcript() {
    let mut random = Random::new(6);
    let mut refused_as_they_were = 0;
    for case in 0..20_000 {
        let messages: Vec<Message> = (0..random.below(14))
            .map(|_| any_message(&mut random))
            .collect();
        let was_refused = !refused(&request(messages.clone())).is_empty();
        refused_as_they_were += usize::from(was_refused);
        let once = repaired(messages.clone());
        assert_eq!(refused(&once), [""; 0], "case {case}: {messages:?}");
        let json: Vec<&str> = once.messages.iter().map(Message::json).collect();
        let twice = repaired(once.messages.to_vec());
        let again: Vec<&str> = twice.messages.iter().map(Message::json).collect();
        assert_eq!(json, again, "DNG-10, case {case}: {messages:?}");
        if !was_refused
            && messages
                .iter()
                .all(|message| message.fields().additional_kwargs.is_empty())
        {
            let before: Vec<&str> = messages.iter().map(Message::json).collect();
            assert_eq!(
                json, before,
                "a valid transcript passes byte for byte, case {case}"
            );
        }
    }
    assert!(
        (10_000..20_000).contains(&refused_as_they_were),
        "both kinds are met: {refused_as_they_were}"
    );
}

#[test]
fn what_endpoints_refuse_is_told() {
    let call = json!({"id": "a", "function": {"name": "f", "arguments": "{}"}});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let says = json!({"role": "tool", "tool_call_id": "a", "content": "1"});
    let user = json!({"role": "user", "content": "x"});
    let wrong = |messages: Value| request_invariant::openai(&json!({ "messages": messages })).len();
    assert_eq!(wrong(json!([user, asks, says, user])), 0);
    assert_eq!(wrong(json!([user, asks, user])), 1);
    assert_eq!(wrong(json!([user, asks])), 1);
    assert_eq!(wrong(json!([user, says])), 1);
    assert_eq!(wrong(json!([user, asks, says, says])), 1);
    assert_eq!(
        wrong(json!([user, {"role": "assistant", "content": " "}])),
        1
    );
    assert_eq!(wrong(json!([user, {"role": "system", "content": "x"}])), 1);
    for (id, name, args) in [("", "f", "{}"), ("a", " ", "{}"), ("a", "f", "[]")] {
        let call = json!({"id": id, "function": {"name": name, "arguments": args}});
        let asks = json!({"role": "assistant", "tool_calls": [call]});
        let says = json!({"role": "tool", "tool_call_id": id, "content": "1"});
        assert_eq!(
            wrong(json!([user, asks, says])),
            1,
            "{id:?} {name:?} {args}"
        );
    }

    let wrong =
        |messages: Value| request_invariant::anthropic(&json!({ "messages": messages })).len();
    let asks = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    let says = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]});
    assert_eq!(wrong(json!([user, asks, says])), 0);
    assert_eq!(wrong(json!([user, asks])), 1);
    assert_eq!(wrong(json!([user, user])), 1);
    assert_eq!(
        wrong(json!([user, {"role": "assistant", "content": [{"type": "text", "text": ""}]}])),
        2
    );
}
