//! Coercion from text against coercion over values, and hostile texts.

use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::json;
use fawn::protocol::message::Message;
use fawn::protocol::scan;
use fawn::state::coerce;
use fawn::state::reduce::{convert_document, reduce_document};
use serde_json::Value;

use crate::model::Random;

const NAMES: &[&str] = &[
    "role",
    "role",
    "role",
    "type",
    "content",
    "content",
    "content",
    "content",
    "id",
    "name",
    "additional_kwargs",
    "response_metadata",
    "tool_calls",
    "tool_call_id",
    "artifact",
    "status",
    "example",
    "usage_metadata",
    "invalid_tool_calls",
    "message_type",
    "lc",
    "kwargs",
    "foo",
    "bar",
    "r\\u006fle",
    "content_blocks",
    "tool_call_chunks",
];

const VALUES: &[&str] = &[
    "null",
    "\"user\"",
    "\"assistant\"",
    "\"ai\"",
    "\"tool\"",
    "\"system\"",
    "\"developer\"",
    "\"remove\"",
    "\"function\"",
    "\"us\\u0065r\"",
    "\"\"",
    "\"a\\n\\\"b\"",
    "5",
    "1.0",
    "-0",
    "1e3",
    "true",
    "false",
    "0",
    "[]",
    "{}",
    "[\"a\"]",
    "[{\"type\":\"text\",\"text\":\"x\"},\"y\"]",
    "[1]",
    "[null]",
    "{\"a\":1}",
    "{\"a\":1,\"a\":2}",
    "{\"tool_calls\":[]}",
    "{\"example\":true,\"b\":1}",
    "{\"status\":\"error\",\"artifact\":[1]}",
    "{\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}",
    "[{\"name\":\"f\",\"args\":{\"a\":1},\"id\":\"c\",\"type\":\"tool_call\"}]",
    "[{\"name\":\"f\",\"args\":{},\"id\":null}]",
    "[{\"name\":\"f\",\"args\":[],\"id\":\"c\",\"type\":\"tool_call\"}]",
    "[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]",
    "\"success\"",
    "\"error\"",
    "\"constructor\"",
    "[\"AIMessage\"]",
    "[[\"a\",1]]",
];

/// Values that a member of this name may have.
fn plausible(name: &str) -> &'static [&'static str] {
    match name {
        "role" | "type" => &[
            "\"user\"",
            "\"human\"",
            "\"assistant\"",
            "\"ai\"",
            "\"system\"",
            "\"tool\"",
            "\"remove\"",
        ],
        "content" => &["\"x\"", "\"a\\n\"", "[{\"a\":1},\"y\"]", "null", "[]"],
        "id" | "name" | "tool_call_id" => &["\"c\"", "null", "\"\\u00e9\""],
        "additional_kwargs" | "response_metadata" => &["{}", "{\"a\":1}", "{\"b\":{\"c\":1.50}}"],
        "tool_calls" => &[
            "[]",
            "null",
            "[{\"name\":\"f\",\"args\":{\"a\":1},\"id\":\"c\",\"type\":\"tool_call\"}]",
        ],
        "status" => &["\"success\"", "\"error\""],
        _ => VALUES,
    }
}

fn object(random: &mut Random) -> String {
    let mut names: Vec<&str> = (0..random.below(6)).map(|_| random.pick(NAMES)).collect();
    if !random.one_in(5) {
        names.retain(|name| !matches!(*name, "message_type" | "lc" | "role" | "content"));
        names.extend(["content", "tool_call_id", random.pick(&["role", "type"])]);
        names.sort_by_key(|name| name.len() as u64 ^ random.0);
    }
    let members: Vec<String> = names
        .into_iter()
        .map(|name| {
            let values = if random.one_in(6) {
                VALUES
            } else {
                plausible(name)
            };
            let value = random.pick(values);
            let space = random.pick(&["", "", "", " ", "\n\t"]);
            format!("{space}\"{name}\"{space}:{space}{value}{space}")
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn values(messages: Result<Vec<Message>, Error>) -> Result<Vec<Value>, Error> {
    let parse = |message: &Message| serde_json::from_str(message.json()).unwrap();
    Ok(messages?.iter().map(parse).collect())
}

#[test]
fn coercion_from_text_equals_coercion_over_values() {
    let mut random = Random(1);
    let mut good = 0;
    for _ in 0..60_000 {
        let mut elements: Vec<String> =
            (0..=random.below(2)).map(|_| object(&mut random)).collect();
        if random.one_in(9) {
            elements.push(random.pick(VALUES).to_owned());
        }
        let text = match elements.as_slice() {
            [alone] if random.one_in(3) => alone.clone(),
            elements => format!("[{}]", elements.join(",")),
        };
        let from_text = values(coerce::write_text(&text));
        let over_values = values(coerce::write(&json::parse(&text).unwrap()));
        assert_eq!(from_text, over_values, "{text}");
        if let Ok(messages) = &from_text {
            good += 1;
            // Order of members too, except inside what is passed on.
            for (message, value) in coerce::write_text(&text).unwrap().iter().zip(messages) {
                let fields = serde_json::to_value(message.fields()).unwrap();
                assert_eq!(&fields, value, "{text}");
                assert_eq!(fields.to_string().len(), value.to_string().len(), "{text}");
                let again = Message::from_canonical_text(message.json()).unwrap();
                assert_eq!((again.kind(), again.id()), (message.kind(), message.id()));
                let other = message.with_id("other\n");
                assert_eq!(other.id(), Some("other\n"));
                assert_eq!(other.fields().id.as_deref(), Some("other\n"));
                assert_eq!(other.with_id("x").json(), message.with_id("x").json());
            }
        }
    }
    assert!(good > 10_000, "only {good} of the texts are messages");
}

#[test]
fn whatever_passes_as_canonical_text_is_canonical_to_the_decoder_too() {
    let mut random = Random(2);
    let mut good = 0;
    for _ in 0..60_000 {
        let text = object(&mut random)
            .replace("\"user\"", "\"human\"")
            .replace("\"role\"", "\"type\"")
            .replace("\"assistant\"", "\"ai\"");
        let from_text = Message::from_canonical_text(&text);
        let decoded = Message::from_canonical(json::parse(&text).unwrap());
        match (from_text, decoded) {
            (Ok(message), Ok(decoded)) => {
                good += 1;
                assert_eq!(message.fields(), decoded.fields(), "{text}");
                assert_eq!(message.id(), decoded.id(), "{text}");
                assert_eq!(message.kind(), decoded.kind(), "{text}");
                assert_eq!(
                    message.with_id("n").fields(),
                    decoded.with_id("n").fields(),
                    "{text}"
                );
            }
            (Err(from_text), Err(decoded)) => assert_eq!(from_text.code, decoded.code, "{text}"),
            (from_text, decoded) => panic!("{text}: {from_text:?}, {decoded:?}"),
        }
    }
    assert!(good > 5_000, "only {good} of the texts are canonical");
}

#[test]
fn hostile_texts_are_errors_or_answers() {
    let good = r#"{"existing":[{"type":"human","content":"é\n","id":null},{"role":"ai","content":[{"a":1}],"tool_calls":[]}],
        "updates":[["x",["ai","y"]],{"type":"remove","content":"","id":"z"}],"ids":"sequential","form":"canonical"}"#;
    let mut random = Random(3);
    let pieces = [
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "\\ud800",
        "1e999",
        "\u{0}",
        "😀",
        "\"id\":",
        "\"type\":\"remove\"",
        "-",
        "NaN",
    ];
    for round in 0..30_000 {
        let mut text = good.to_owned();
        for _ in 0..=random.below(3) {
            let mut at = random.below(text.len() as u64 + 1) as usize;
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            if random.one_in(2) {
                let mut end = (at + random.below(9) as usize).min(text.len());
                while !text.is_char_boundary(end) {
                    end += 1;
                }
                text.replace_range(at..end, "");
            } else {
                text.insert_str(at, random.pick(&pieces));
            }
        }
        let is_json = json::parse(&text).is_ok();
        for channel in ["messages", "artifacts"] {
            match reduce_document(channel, &text) {
                Ok(answer) => {
                    assert!(is_json);
                    json::parse(&answer).unwrap_or_else(|error| panic!("{round} {text}: {error}"));
                }
                Err(error) => {
                    let is_syntax =
                        matches!(error.code, ErrorCode::JsonSyntax | ErrorCode::JsonDepth);
                    assert_eq!(is_syntax, !is_json, "{text}: {error:?}");
                }
            }
        }
        let _ = convert_document(&text);
        let _ = Message::from_canonical_text(&text);
        let _ = coerce::write_text(&text);
    }
    for deep in [
        "[",
        "{\"a\":",
        "{\"existing\":",
        "{\"messages\":[[",
        "{\"existing\":[{\"content\":[{\"x\":",
        "[{\"role\":",
    ] {
        let text = deep.repeat(200_000);
        for answer in [
            reduce_document("messages", &text),
            convert_document(&text),
            reduce_document("todos", &text),
        ] {
            let code = answer.unwrap_err().code;
            assert!(matches!(code, ErrorCode::JsonDepth | ErrorCode::JsonSyntax));
        }
    }
}

#[test]
fn the_deepest_document_is_folded_and_its_messages_can_be_read() {
    // 128 levels in all; coercion moves the member a level further down.
    let deep = format!("{}{}", "[".repeat(125), "]".repeat(125));
    let text = format!(
        r#"{{"existing":[],"updates":[[{{"role":"user","content":"x"}}]],"x-deep":{}}}"#,
        format_args!("[[{deep}]]")
    );
    assert!(reduce_document("messages", &text).is_ok());
    let message = format!(r#"{{"role":"user","content":"x","foo":{deep}}}"#);
    scan::document(&format!("[[{message}]]")).unwrap();
    let messages = coerce::write_text(&message).unwrap();
    let value = serde_json::to_string(&messages[0].fields().additional_kwargs["foo"]).unwrap();
    assert_eq!(value, deep);
    assert_eq!(messages[0].with_id("a").fields().id.as_deref(), Some("a"));
}

#[test]
fn documents_refuse_what_they_do_not_know_with_its_path() {
    for (channel, text, code, path) in [
        (
            "messages",
            r#"{"existing":[],"updates":[],"idz":1}"#,
            ErrorCode::UnknownMember,
            "/idz",
        ),
        (
            "todos",
            r#"{"existing":[],"updates":[],"ids":"sequential"}"#,
            ErrorCode::UnknownMember,
            "/ids",
        ),
        (
            "messages",
            r#"{"updates":[]}"#,
            ErrorCode::MissingMember,
            "/existing",
        ),
        (
            "messages",
            r#"{"existing":[]}"#,
            ErrorCode::MissingMember,
            "/updates",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":{}}"#,
            ErrorCode::WrongType,
            "/updates",
        ),
        (
            "todos",
            r#"{"existing":[],"updates":1}"#,
            ErrorCode::WrongType,
            "/updates",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":[],"ids":"none"}"#,
            ErrorCode::UnknownVariant,
            "/ids",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":[],"ids":{"sequential_from":-1}}"#,
            ErrorCode::OutOfRange,
            "/ids/sequential_from",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":[],"ids":{"sequential_from":"1"}}"#,
            ErrorCode::WrongType,
            "/ids/sequential_from",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":[],"ids":{"from":1}}"#,
            ErrorCode::UnknownMember,
            "/ids/from",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":[],"form":"loose"}"#,
            ErrorCode::UnknownVariant,
            "/form",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":[],"form":1}"#,
            ErrorCode::WrongType,
            "/form",
        ),
        (
            "messages",
            r#"{"existing":["a",{"role":"user","content":5}],"updates":[[]]}"#,
            ErrorCode::MessageInvalid,
            "/existing/1/content",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":[[],["a",{"role":"user"}]]}"#,
            ErrorCode::MessageIncomplete,
            "/updates/1/1",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":[[],{"type":"alien","content":""}]}"#,
            ErrorCode::UnknownRole,
            "/updates/1/type",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":["x",{"role":"remove","content":"","id":"9"}]}"#,
            ErrorCode::UnknownMessageId,
            "/updates/1",
        ),
        (
            "messages",
            r#"{"existing":[],"updates":["x",null]}"#,
            ErrorCode::NullWrite,
            "/updates/1",
        ),
        (
            "messages",
            r#"{"form":"canonical","existing":[{"role":"user","content":""}],"updates":[]}"#,
            ErrorCode::MessageInvalid,
            "/existing/0/type",
        ),
        ("messages", "[]", ErrorCode::WrongType, ""),
    ] {
        let error = reduce_document(channel, text).unwrap_err();
        assert_eq!(
            (error.code, error.path.as_deref()),
            (code, Some(path)),
            "{text}: {error}"
        );
    }
    assert_eq!(
        reduce_document("nope", "{}").unwrap_err().code,
        ErrorCode::UnknownChannel
    );
    assert_eq!(
        reduce_document("messages", "").unwrap_err().code,
        ErrorCode::JsonSyntax
    );
    let open = reduce_document(
        "messages",
        r#"{"x-note":1,"existing":[],"updates":[["a"]],"ids":"sequential"}"#,
    );
    assert!(open.unwrap().contains("000000000001"));
    let error = convert_document(r#"{"messages":[["user","a"],["user",null]]}"#).unwrap_err();
    assert_eq!(error.path.as_deref(), Some("/messages/1/1"));
    assert_eq!(
        convert_document(r#"{"message":[]}"#)
            .unwrap_err()
            .path
            .as_deref(),
        Some("/message")
    );
    // The form may stand anywhere, and a text that only mentions it is not canonical.
    let dumped = r#"[{"content":"\"canonical\"","type":"ai","id":"1","usage_metadata":null}]"#;
    for (form, moved) in [
        (r#","form":"canonical""#, false),
        ("", true),
        (r#","x-form":"canonical""#, true),
    ] {
        let answer = reduce_document(
            "messages",
            &format!(r#"{{"existing":{dumped},"updates":[[]]{form}}}"#),
        )
        .unwrap();
        assert_eq!(
            answer.contains(r#""additional_kwargs":{"usage_metadata":null}"#),
            moved,
            "{form}"
        );
        if let Some(form) = form.strip_prefix(',') {
            let first = reduce_document(
                "messages",
                &format!(r#"{{{form},"existing":{dumped},"updates":[[]]}}"#),
            )
            .unwrap();
            assert_eq!(first, answer);
        }
    }
}
