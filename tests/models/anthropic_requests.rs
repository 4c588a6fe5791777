//! Request bodies of the messages format: canonical messages and settings as they stand on the wire.

use std::sync::Arc;

use fawn::adapters::model::anthropic::{encode, read_whole};
use fawn::ports::model::{ModelRequest, ToolChoice};
use fawn::ports::tool::ToolSpec;
use fawn::protocol::message::{InvalidToolCall, Kind, Message, ToolStatus};
use fawn::protocol::model::AnthropicConfig;
use serde_json::{Value, json};

use crate::support::model::{ask, message, request, result, tool, tool_call, with};

fn config() -> AnthropicConfig {
    let mut config = AnthropicConfig::new("m", "http://localhost");
    config.stream = false;
    config
}

fn encoded(config: &AnthropicConfig, request: &ModelRequest) -> Value {
    serde_json::from_slice(&encode(config, request)).unwrap()
}

/// The `messages` of a request.
fn wire(messages: Vec<Message>) -> Value {
    encoded(&config(), &request(messages))["messages"].clone()
}

/// The whole text, so that order and number forms count as well.
#[test]
fn a_full_request_is_written_in_order_and_as_set() {
    let config: AnthropicConfig = serde_json::from_value(json!({
        "model": "m-1", "temperature": 0, "top_p": 0.5, "top_k": 40, "max_tokens": 100,
        "stop_sequences": ["END"], "thinking": {"type": "adaptive", "display": "x"},
        "reasoning_effort": "low", "parallel_tool_calls": false, "extra_body": {"metadata": {"user_id": "u"}},
    }))
    .unwrap();
    let mut request = ask("2 < 3 & \"quoted\"\n\u{1}🙂");
    request.system = Some("Be brief.".into());
    request.tools = Arc::new([tool(
        "add",
        json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
    )]);
    let text = String::from_utf8(encode(&config, &request)).unwrap();
    let golden = concat!(
        r#"{"model":"m-1","max_tokens":100,"system":"Be brief.","#,
        r#""messages":[{"role":"user","content":"2 < 3 & \"quoted\"\n\u0001🙂"}],"#,
        r#""tools":[{"name":"add","description":"What add does","#,
        r#""input_schema":{"type":"object","properties":{"a":{"type":"integer"}}}}],"#,
        r#""tool_choice":{"type":"auto","disable_parallel_tool_use":true},"#,
        r#""stream":true,"stop_sequences":["END"],"temperature":0,"top_p":0.5,"top_k":40,"#,
        r#""thinking":{"type":"adaptive","display":"x"},"output_config":{"effort":"low"},"#,
        r#""metadata":{"user_id":"u"}}"#,
    );
    assert_eq!(text, golden);
}

#[test]
fn what_is_not_set_is_not_sent_but_for_max_tokens() {
    let text = String::from_utf8(encode(&config(), &ask("hi"))).unwrap();
    assert_eq!(
        text,
        r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":"hi"}],"stream":false}"#
    );
    let mut config = config();
    config.model = "claude-sonnet-4-5".into();
    assert_eq!(encoded(&config, &ask("hi"))["max_tokens"], 64_000);
}

#[test]
fn roles_alternate_and_system_text_stands_at_the_top() {
    let messages = vec![
        message(Kind::System, "rules"),
        message(Kind::Human, "a"),
        message(Kind::Human, "b"),
        message(Kind::Human, "  \n"),
        message(Kind::Ai, ""),
        with(Kind::Chat, "c", |fields| fields.role = "critic".into()),
        message(Kind::Ai, "d"),
        message(Kind::Ai, "e"),
        message(
            Kind::System,
            json!([{"type": "text", "text": "later",
            "cache_control": {"type": "ephemeral"}, "id": "x"}, {"type": "image"}]),
        ),
        with(Kind::Remove, "", |fields| fields.id = Some("x".into())),
        message(Kind::Human, "f"),
    ];
    let mut request = request(messages);
    request.system = Some("first".into());
    let body = encoded(&config(), &request);
    assert_eq!(
        body["system"],
        json!([
            {"type": "text", "text": "first"},
            {"type": "text", "text": "rules"},
            {"type": "text", "text": "later", "cache_control": {"type": "ephemeral"}},
        ])
    );
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [
                {"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "d"}, {"type": "text", "text": "e"}]},
            {"role": "user", "content": "f"},
        ])
    );
}

/// The endpoint refuses a conversation that the model begins, and last words of it that end in white space.
#[test]
fn the_user_begins_and_last_words_are_trimmed() {
    let turns = wire(vec![
        message(Kind::Ai, "a "),
        message(Kind::Human, "b "),
        message(Kind::Ai, "c \n"),
    ]);
    assert_eq!(turns[0]["role"], "user");
    assert_eq!(turns[1], json!({"role": "assistant", "content": "a "}));
    assert_eq!(turns[2], json!({"role": "user", "content": "b "}));
    assert_eq!(turns[3], json!({"role": "assistant", "content": "c"}));
}

#[test]
fn results_of_tools_come_first_in_one_turn() {
    let ai = with(Kind::Ai, "Look.", |fields| {
        fields.tool_calls = vec![
            tool_call("c1", "f", json!({"x": "é\"\n", "n": 1.50})),
            tool_call("c2", "g", json!({})),
        ];
    });
    let failed = with(Kind::Tool, "no such city", |fields| {
        fields.tool_call_id = "c2".to_owned();
        fields.status = ToolStatus::Error;
        fields.artifact = json!({"for": "the host"});
    });
    let picture = result(
        "c3",
        json!([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lG"}}]),
    );
    let messages = vec![
        message(Kind::Human, "go"),
        ai,
        message(Kind::Human, "meanwhile"),
        result("c1", "r1"),
        failed,
        picture,
        result("c4", ""),
    ];
    assert_eq!(
        wire(messages),
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Look."},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": "é\"\n", "n": 1.5}},
                {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "r1"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "no such city", "is_error": true},
                {"type": "tool_result", "tool_use_id": "c3", "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lG"}},
                ]},
                {"type": "tool_result", "tool_use_id": "c4", "content": ""},
                {"type": "text", "text": "meanwhile"},
            ]},
        ])
    );
}

/// Thinking, signed or sealed, goes back unchanged and in its place, whether it came in a stream or whole.
#[test]
fn thinking_goes_back_as_it_came() {
    let content = json!([
        {"type": "thinking", "thinking": "first", "signature": "s1"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "I will look."},
        {"type": "thinking", "thinking": "second", "signature": "s2"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 1}},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
    ]);
    let whole = json!({"type": "message", "content": content, "stop_reason": "tool_use"});
    let reply = read_whole(&whole.to_string(), &mut Vec::new()).unwrap();
    assert_eq!(reply.content, content);
    let ai = with(Kind::Ai, reply.content, |fields| {
        fields.tool_calls = reply.tool_calls
    });
    let turns = wire(vec![message(Kind::Human, "go"), ai, result("c1", "r")]);
    assert_eq!(turns[1]["content"], content);
}

/// The calls of the message are what counts: middleware changes those.
#[test]
fn blocks_of_calls_follow_the_calls_of_the_message() {
    let content = json!([
        {"type": "tool_use", "id": "gone", "name": "f", "input": {}},
        {"type": "text", "text": "t", "index": 1, "id": "x"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"old": 1}, "index": 2, "partial_json": "{",
            "cache_control": {"type": "ephemeral"}},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"twice": 1}},
        {"type": "input_json_delta", "partial_json": "{"},
        {"type": "tool_call", "id": "c1", "name": "f", "args": {}},
        {"type": "reasoning", "reasoning": "unsigned"},
        {"type": "reasoning", "reasoning": "r", "extras": {"signature": "s"}},
        {"type": "non_standard", "value": {"type": "odd", "x": 1}},
    ]);
    let ai = with(Kind::Ai, content, |fields| {
        fields.tool_calls = vec![
            tool_call("c1", "f", json!({"new": 2})),
            tool_call("c2", "g", json!({})),
        ];
        fields.invalid_tool_calls = ["c3", "c4"]
            .map(|id| InvalidToolCall {
                id: Some(id.to_owned()),
                name: None,
                args: Some("{\"q\": ".to_owned()),
                error: None,
            })
            .into();
    });
    let messages = vec![
        message(Kind::Human, "go"),
        ai,
        result("c1", "r"),
        result("c2", "r"),
        result("c3", "bad"),
    ];
    assert_eq!(
        wire(messages)[1]["content"],
        json!([
            {"type": "text", "text": "t"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"new": 2}, "cache_control": {"type": "ephemeral"}},
            {"type": "thinking", "thinking": "r", "signature": "s"},
            {"type": "odd", "x": 1},
            {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
            {"type": "tool_use", "id": "c3", "name": "unknown_tool", "input": {}},
        ])
    );
}

#[test]
fn ids_of_other_endpoints_are_made_to_fit_and_stay_apart() {
    let ids = ["call|1:a", "call|1.a", "ok_1-A", ""];
    let ai = with(Kind::Ai, "", |fields| {
        fields.tool_calls = ids.map(|id| tool_call(id, "f", json!({}))).into();
    });
    let mut messages = vec![message(Kind::Human, "go"), ai];
    messages.extend(ids.map(|id| result(id, "r")));
    let turns = wire(messages);
    let mut seen = Vec::new();
    for place in 0..ids.len() {
        let id = turns[1]["content"][place]["id"].as_str().unwrap();
        assert_eq!(turns[2]["content"][place]["tool_use_id"], id);
        assert!(
            id.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        );
        assert!(!seen.contains(&id.to_owned()));
        seen.push(id.to_owned());
    }
    assert_eq!(seen[2], "ok_1-A");
}

#[test]
fn calls_that_share_an_id_with_an_earlier_turn_get_another() {
    let turn = |result_text: &str| {
        [
            with(Kind::Ai, "", |fields| {
                fields.tool_calls.push(tool_call("call_0", "f", json!({})));
            }),
            result("call_0", result_text),
        ]
    };
    let taken = with(Kind::Ai, "", |fields| {
        fields
            .tool_calls
            .push(tool_call("call_0_2", "f", json!({})));
    });
    let mut messages = vec![message(Kind::Human, "x")];
    messages.extend(turn("first"));
    messages.extend([taken, result("call_0_2", "taken")]);
    messages.extend(turn("second"));
    messages.extend(turn("third"));
    let wire = wire(messages);
    let ids: Vec<(&Value, &Value)> = (1..8)
        .step_by(2)
        .map(|at| {
            (
                &wire[at]["content"][0]["id"],
                &wire[at + 1]["content"][0]["tool_use_id"],
            )
        })
        .collect();
    let expected = ["call_0", "call_0_2", "call_0_3", "call_0_4"].map(Value::from);
    let expected: Vec<(&Value, &Value)> = expected.iter().map(|id| (id, id)).collect();
    assert_eq!(ids, expected);
    assert!(wire[6].to_string().contains("second"), "{wire}");
}

#[test]
fn images_and_documents_of_every_origin_have_a_source() {
    let blocks = json!([
        "plain",
        {"type": "text", "text": " "},
        {"type": "image_url", "image_url": {"url": "https://h/i.png", "detail": "low"}},
        {"type": "image_url", "image_url": "data:image/webp;base64,QUJD", "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QUJD"}},
        {"type": "image", "source_type": "url", "url": "https://h/j.png"},
        {"type": "image", "source_type": "base64", "data": "QUJD", "mime_type": "image/png"},
        {"type": "image", "base64": "QUJD", "mime_type": "image/webp"},
        {"type": "image", "file_id": "file_1"},
        {"type": "file", "base64": "QUJD", "mime_type": "application/pdf"},
        {"type": "file", "source_type": "text", "text": "words"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}, "title": "T"},
        {"type": "image"},
        7,
    ]);
    assert_eq!(
        wire(vec![message(Kind::Human, blocks)])[0]["content"],
        json!([
            {"type": "text", "text": "plain"},
            {"type": "image", "source": {"type": "url", "url": "https://h/i.png"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "QUJD"},
                "cache_control": {"type": "ephemeral"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QUJD"}},
            {"type": "image", "source": {"type": "url", "url": "https://h/j.png"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "QUJD"}},
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}, "title": "T"},
            {"type": "image"},
        ])
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
    request.tools = Arc::new([
        ToolSpec {
            name: "f".to_owned(),
            description: String::new(),
            parameters: Value::Null.into(),
        },
        tool("g", json!({"properties": {"a": {}}})),
    ]);
    assert_eq!(
        encoded(&config(), &request)["tools"],
        json!([
            {"name": "f", "input_schema": {"type": "object", "properties": {}}},
            {"name": "g", "description": "What g does",
                "input_schema": {"type": "object", "properties": {"a": {}}}},
        ])
    );
    let mut thinking = config();
    thinking.thinking = json!({"type": "enabled", "budget_tokens": 1024})
        .as_object()
        .cloned();
    let mut alone = config();
    alone.parallel_tool_calls = Some(false);
    for (choice, plain, thinks, one) in [
        (
            Some(ToolChoice::Auto),
            json!({"type": "auto"}),
            json!({"type": "auto"}),
            json!({"type": "auto", "disable_parallel_tool_use": true}),
        ),
        (
            Some(ToolChoice::None),
            json!({"type": "none"}),
            json!({"type": "none"}),
            json!({"type": "none"}),
        ),
        (
            Some(ToolChoice::Required),
            json!({"type": "any"}),
            json!({"type": "auto"}),
            json!({"type": "any", "disable_parallel_tool_use": true}),
        ),
        (
            Some(ToolChoice::Tool("f".into())),
            json!({"type": "tool", "name": "f"}),
            json!({"type": "auto"}),
            json!({"type": "tool", "name": "f", "disable_parallel_tool_use": true}),
        ),
        (
            None,
            Value::Null,
            Value::Null,
            json!({"type": "auto", "disable_parallel_tool_use": true}),
        ),
    ] {
        request.tool_choice = choice;
        for (config, expected) in [
            (config(), plain),
            (thinking.clone(), thinks),
            (alone.clone(), one),
        ] {
            let body = encoded(&config, &request);
            assert_eq!(body.get("tool_choice").unwrap_or(&Value::Null), &expected);
        }
    }
}

/// What is no system text of an assembly is the user's, before the transcript; neighbours of one role are one turn (PT-1).
#[test]
fn the_data_of_an_assembly_begins_the_first_turn() {
    let mut request = request(vec![message(Kind::Human, "question")]);
    request.system = Some("rules".into());
    request.preamble = Some(message(Kind::Human, "data"));
    let body = encoded(&config(), &request);
    assert_eq!(body["system"], "rules");
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": [
            {"type": "text", "text": "data"}, {"type": "text", "text": "question"}]}])
    );
}
