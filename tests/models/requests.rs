//! Request bodies: canonical messages and settings as they stand on the wire.

use std::sync::Arc;

use fawn::adapters::model::openai::encode;
use fawn::ports::model::{ModelRequest, ToolChoice};
use fawn::ports::tool::ToolSpec;
use fawn::protocol::message::{Fields, InvalidToolCall, Kind, Message};
use fawn::protocol::model::OpenAiConfig;
use serde_json::{Value, json};

use crate::support::model::{ask, message, request, result, tool, tool_call, with};

fn config() -> OpenAiConfig {
    let mut config = OpenAiConfig::new("m", "http://localhost");
    config.stream = false;
    config
}

fn encoded(config: &OpenAiConfig, request: &ModelRequest) -> Value {
    serde_json::from_slice(&encode(config, request)).unwrap()
}

/// The `messages` of a request.
fn wire(messages: Vec<Message>) -> Value {
    encoded(&config(), &request(messages))["messages"].clone()
}

/// What is no system text of an assembly stands first among the messages, and in no other role (PT-1).
#[test]
fn the_data_of_an_assembly_stands_between_the_system_text_and_the_transcript() {
    let mut request = request(vec![
        Message::new(Fields::new(Kind::Ai, json!("hello"))),
        Message::new(Fields::new(Kind::Human, json!("question"))),
    ]);
    request.system = Some("rules".into());
    request.preamble = Some(Message::new(Fields::new(Kind::Human, json!("data"))));
    assert_eq!(
        encoded(&config(), &request)["messages"],
        json!([
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "data"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "question"},
        ])
    );
}

/// The whole text, so that order and number forms count as well.
#[test]
fn a_full_request_is_written_in_order_and_as_set() {
    let mut config: OpenAiConfig = serde_json::from_value(json!({
        "model": "m-1", "base_url": "http://h", "temperature": 0, "top_p": 0.5, "max_tokens": 100,
        "seed": -7, "reasoning_effort": "low",
        "extra_body": {"parallel_tool_calls": false, "user": "u"},
    }))
    .unwrap();
    let mut request = ask("2 < 3 & \"quoted\"\n\u{1}🙂");
    request.system = Some("Be brief.".into());
    request.tools = Arc::new([tool(
        "add",
        json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
    )]);
    request.tool_choice = Some(ToolChoice::Tool("add".to_owned()));
    let text = String::from_utf8(encode(&config, &request)).unwrap();
    let golden = concat!(
        r#"{"model":"m-1","messages":[{"role":"system","content":"Be brief."},"#,
        r#"{"role":"user","content":"2 < 3 & \"quoted\"\n\u0001🙂"}],"#,
        r#""tools":[{"type":"function","function":{"name":"add","description":"What add does","#,
        r#""parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}],"#,
        r#""tool_choice":{"type":"function","function":{"name":"add"}},"#,
        r#""stream":true,"stream_options":{"include_usage":true},"#,
        r#""temperature":0,"max_tokens":100,"top_p":0.5,"seed":-7,"reasoning_effort":"low","#,
        r#""parallel_tool_calls":false,"user":"u"}"#,
    );
    assert_eq!(text, golden);
    config.extra_body = json!({"stream_options": null}).as_object().unwrap().clone();
    assert!(encoded(&config, &request).get("stream_options").is_none());
    config.extra_body = json!({"stream_options": {"x": 1}})
        .as_object()
        .unwrap()
        .clone();
    assert_eq!(
        encoded(&config, &request)["stream_options"],
        json!({"x": 1})
    );
}

#[test]
fn what_is_not_set_is_not_sent() {
    let text = String::from_utf8(encode(&config(), &ask("hi"))).unwrap();
    assert_eq!(
        text,
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":false}"#
    );
}

#[test]
fn every_class_of_message_has_its_role() {
    let messages = vec![
        message(Kind::System, "s"),
        with(Kind::Human, "h", |fields| {
            fields.name = Some("Ann_1".into())
        }),
        with(Kind::Human, "h", |fields| {
            fields.name = Some("two words".into())
        }),
        message(Kind::Ai, "a"),
        with(Kind::Ai, "", |fields| {
            fields.tool_calls = vec![
                tool_call("c1", "f", json!({"x": "é\"\n", "n": 1.50})),
                tool_call("c2", "g", json!({})),
            ];
        }),
        result("c1", "r1"),
        with(Kind::Tool, "failed", |fields| {
            fields.tool_call_id = "c2".to_owned();
            fields.artifact = json!({"for": "the host"});
        }),
        with(Kind::Function, "old", |fields| {
            fields.name = Some("f".into())
        }),
        with(Kind::Chat, "c", |fields| fields.role = "critic".into()),
        with(Kind::Remove, "", |fields| fields.id = Some("x".into())),
        with(Kind::Ai, "text too", |fields| {
            fields.tool_calls = vec![tool_call("c3", "f", json!({}))];
            fields
                .additional_kwargs
                .insert("reasoning_content".into(), "r".into());
            fields.usage_metadata = json!({"input_tokens": 1});
        }),
    ];
    assert_eq!(
        wire(messages),
        json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": "h", "name": "Ann_1"},
            {"role": "user", "content": "h"},
            {"role": "assistant", "content": "a"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\":\"é\\\"\\n\",\"n\":1.5}"}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ]},
            {"role": "tool", "content": "r1", "tool_call_id": "c1"},
            {"role": "tool", "content": "failed", "tool_call_id": "c2"},
            {"role": "function", "content": "old", "name": "f"},
            {"role": "critic", "content": "c"},
            {"role": "assistant", "content": "text too", "tool_calls": [
                {"id": "c3", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ]},
        ])
    );
}

#[test]
fn blocks_of_every_origin_become_parts_of_the_wire() {
    let blocks = json!([
        "plain",
        {"type": "text", "text": "t"},
        {"type": "image_url", "image_url": {"url": "https://h/i.png", "detail": "low"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QUJD"}},
        {"type": "image", "source_type": "url", "url": "https://h/j.png"},
        {"type": "image", "base64": "QUJD", "mime_type": "image/webp"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        7,
    ]);
    assert_eq!(
        wire(vec![message(Kind::Human, blocks)])[0]["content"],
        json!([
            {"type": "text", "text": "plain"},
            {"type": "text", "text": "t"},
            {"type": "image_url", "image_url": {"url": "https://h/i.png", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUJD"}},
            {"type": "image_url", "image_url": {"url": "https://h/j.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/webp;base64,QUJD"}},
            {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        ])
    );
    let thought = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "t"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    ]);
    assert_eq!(
        wire(vec![message(Kind::Ai, thought)])[0]["content"],
        json!([{"type": "text", "text": "t"}])
    );
    assert_eq!(
        wire(vec![message(Kind::Human, json!([]))])[0]["content"],
        json!("")
    );
}

/// MW-DNG-9: an invalid call goes back repaired, and only with its answer.
#[test]
fn invalid_calls_are_sent_when_they_are_answered() {
    let invalid = |id: &str, name: Option<&str>, args: &str| InvalidToolCall {
        id: Some(id.to_owned()),
        name: name.map(str::to_owned),
        args: Some(args.to_owned()),
        error: None,
    };
    let ai = with(Kind::Ai, "", |fields| {
        fields.tool_calls = vec![tool_call("c1", "f", json!({}))];
        fields.invalid_tool_calls = vec![
            invalid("c2", Some("g"), "{\"q\": "),
            invalid("c3", None, "{\"q\": 1}"),
            invalid("c4", Some("h"), "[1]"),
        ];
    });
    let messages = vec![
        ai,
        result("c1", "r"),
        result("c2", "bad"),
        result("c3", "bad"),
    ];
    assert_eq!(
        wire(messages)[0]["tool_calls"],
        json!([
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            {"id": "c3", "type": "function", "function": {"name": "unknown_tool", "arguments": "{\"q\":1}"}},
        ])
    );
    // An answer in a later turn is not this turn's.
    let ai = with(Kind::Ai, "text", |fields| {
        fields.invalid_tool_calls = vec![invalid("c2", Some("g"), "{")];
    });
    let messages = vec![ai, message(Kind::Ai, "next"), result("c2", "late")];
    assert_eq!(
        wire(messages)[0],
        json!({"role": "assistant", "content": "text"})
    );
}

/// S28: reasoning goes back when the model wants it, and otherwise not.
#[test]
fn reasoning_is_replayed_when_it_is_asked_for() {
    let ai = with(Kind::Ai, "a", |fields| {
        fields
            .additional_kwargs
            .insert("reasoning_content".into(), "r".into());
    });
    let request = request(vec![ai]);
    let mut config = config();
    assert!(
        encoded(&config, &request)["messages"][0]
            .get("reasoning_content")
            .is_none()
    );
    config.replay_reasoning = true;
    assert_eq!(
        encoded(&config, &request)["messages"][0]["reasoning_content"],
        json!("r")
    );
}

#[test]
fn tools_and_the_choice_between_them() {
    let mut request = ask("x");
    request.tool_choice = Some(ToolChoice::Required);
    assert!(
        encoded(&config(), &request).get("tool_choice").is_none(),
        "no tools"
    );
    request.tools = Arc::new([ToolSpec {
        name: "f".to_owned(),
        description: String::new(),
        parameters: Value::Null.into(),
    }]);
    assert_eq!(
        encoded(&config(), &request)["tools"],
        json!([{"type": "function", "function": {
            "name": "f", "parameters": {"type": "object", "properties": {}}}}])
    );
    for (choice, wire) in [
        (ToolChoice::Auto, json!("auto")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Required, json!("required")),
    ] {
        request.tool_choice = Some(choice);
        assert_eq!(encoded(&config(), &request)["tool_choice"], wire);
    }
    request.tool_choice = None;
    assert!(encoded(&config(), &request).get("tool_choice").is_none());
}
