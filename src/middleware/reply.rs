//! What guards do to a reply: take calls out of it, add words to it, and see whether it says or asks for anything.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::message_marks::first_chars;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{Fields, Kind, Message, ToolCall};
use crate::state::View;
use crate::state::python;

/// The raw copies of calls that providers leave in `additional_kwargs`.
pub(super) const RAW_CALLS: &str = "tool_calls";
pub(super) const RAW_FUNCTION: &str = "function_call";
const FINISH_REASON: &str = "finish_reason";

/// Types of content blocks that stand for calls.
const CALL_BLOCKS: [&str; 4] = ["tool_use", "tool_call", "function_call", "input_json_delta"];

/// Most characters of a reply that a run reports as its failure (RUN-32).
const MAX_FAILURE_CHARS: usize = 2000;

/// Most characters of a tool's name in words of ours: the name is the model's.
const MAX_NAME_CHARS: usize = 100;

/// What a run reports whose last reply stands in for an answer that never came, where nobody has said more: the detail that
/// the reply holds, else its reason, else its text (RUN-32).
pub fn error_of_fallback(message: &Message) -> Error {
    let kwargs = &message.fields().additional_kwargs;
    let said = ["error_detail", "error_reason"]
        .into_iter()
        .find_map(|name| {
            let text = kwargs.get(name)?.as_str()?.trim();
            (!text.is_empty()).then(|| text.to_owned())
        });
    let text = said.unwrap_or_else(|| message.text().trim().to_owned());
    let text = match text.is_empty() {
        true => "the model gave no answer",
        false => first_chars(&text, MAX_FAILURE_CHARS),
    };
    Error::new(ErrorCode::ModelNoAnswer, text)
}

/// The newest message, if a model wrote it.
pub(crate) fn last_reply<'a>(state: &View<'a>) -> Option<&'a Message> {
    state.last().filter(|message| message.kind() == Kind::Ai)
}

/// The reply with these of its calls, and with `content` if given.
///
/// Whatever else says that the reply calls something goes with the calls that go: raw copies in `additional_kwargs` and
/// blocks of the content, by id. Without any call left, `function_call` and calls without an id go too, and the finish
/// reason `tool_calls` becomes `stop`; other finish reasons stay. Calls that cannot be run stay, since none of them is ever
/// run.
///
/// Source: DeerFlow `clone_ai_message_with_tool_calls`, HP-1, LIM-11; the blocks are its newest form.
pub(crate) fn with_calls(reply: &Message, kept: Vec<ToolCall>, content: Option<Value>) -> Fields {
    let mut fields = reply.fields().clone();
    let ids: HashSet<&str> = kept.iter().filter_map(|call| call.id.as_deref()).collect();
    let is_kept = |value: &Value| {
        let id = value.get("id").and_then(Value::as_str);
        id.is_some_and(|id| !id.is_empty() && ids.contains(id))
    };
    if let Some(Value::Array(raw)) = fields.additional_kwargs.get_mut(RAW_CALLS) {
        raw.retain(is_kept);
        if raw.is_empty() {
            fields.additional_kwargs.shift_remove(RAW_CALLS);
        }
    }
    if let Some(content) = content {
        fields.content = content;
    }
    if let Value::Array(blocks) = &mut fields.content {
        blocks.retain(|block| {
            let kind = block.get("type").and_then(Value::as_str).unwrap_or("");
            let is_call = CALL_BLOCKS.contains(&kind);
            let has_id = block.get("id").is_some_and(Value::is_string);
            !is_call || is_kept(block) || !has_id && !kept.is_empty()
        });
    }
    if kept.is_empty() {
        fields.additional_kwargs.shift_remove(RAW_CALLS);
        fields.additional_kwargs.shift_remove(RAW_FUNCTION);
        let reason = fields.response_metadata.get_mut(FINISH_REASON);
        if let Some(reason) = reason
            && reason == "tool_calls"
        {
            *reason = Value::String("stop".to_owned());
        }
    }
    fields.tool_calls = kept;
    fields
}

/// Text after what a reply says: alone when it says nothing, else below a blank line; in a list as a block of its own
/// (MW-SUB-7).
pub(crate) fn append_text(content: &Value, text: &str) -> Value {
    match content {
        Value::Null => text.into(),
        Value::String(said) if said.is_empty() => text.into(),
        content => append_below(content, text),
    }
}

/// Like [`append_text`], but with a blank line after empty text as well (MW-LOOP-7).
pub(crate) fn append_below(content: &Value, text: &str) -> Value {
    match content {
        Value::Null => text.into(),
        Value::Array(blocks) => {
            let mut blocks = blocks.clone();
            blocks.push(json!({"type": "text", "text": format!("\n\n{text}")}));
            Value::Array(blocks)
        }
        other => format!("{}\n\n{text}", python::str_of(other)).into(),
    }
}

/// Whether the finish reason counts as asking for a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinishReason {
    /// `tool_calls` and `function_call` do.
    Counts,
    /// It says nothing here.
    Ignored,
}

/// Whether a reply asks for a tool in any of the ways in which replies do: calls, calls that cannot be run, raw copies of
/// them, or the reason why it ended (HP-7).
pub(crate) fn has_tool_intent(reply: &Fields, finish_reason: FinishReason) -> bool {
    let raw = |name| python::truthy_member(&reply.additional_kwargs, name).is_some();
    let ended_to_call = || {
        let reason = reply.response_metadata.get(FINISH_REASON);
        matches!(
            reason.and_then(Value::as_str),
            Some("tool_calls" | "function_call")
        )
    };
    !reply.tool_calls.is_empty()
        || !reply.invalid_tool_calls.is_empty()
        || raw(RAW_CALLS)
        || raw(RAW_FUNCTION)
        || finish_reason == FinishReason::Counts && ended_to_call()
}

/// Whether there is anything to read in a content: text that is not blank, or a block of text that is not (HP-8).
pub(crate) fn has_visible_content(content: &Value) -> bool {
    let is_read = |text: &str| text.chars().any(|c| !python::is_space(c));
    match content {
        Value::String(text) => is_read(text),
        Value::Array(blocks) => blocks.iter().any(|block| match block {
            Value::String(text) => is_read(text),
            Value::Object(block) => {
                let kind = block.get("type").and_then(Value::as_str);
                let text = block.get("text").and_then(Value::as_str);
                matches!(kind, Some("text" | "output_text")) && text.is_some_and(is_read)
            }
            _ => false,
        }),
        _ => false,
    }
}

/// A tool's name for words of ours: quoted and clipped, since the model made it up.
pub(crate) fn quoted_name(name: &str) -> String {
    let clipped: String = name.chars().take(MAX_NAME_CHARS).collect();
    format!("{clipped:?}")
}

/// Members of a policy.
pub(crate) fn members<const N: usize>(list: [(&str, Value); N]) -> Map<String, Value> {
    list.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
pub(crate) mod tests {
    use super::*;

    /// A reply in canonical form: the members given, over those of an empty one.
    pub(crate) fn reply(members: Value) -> Message {
        let mut whole = json!({
            "content": "", "additional_kwargs": {}, "response_metadata": {}, "type": "ai", "name": null, "id": "a",
            "tool_calls": [], "invalid_tool_calls": [], "usage_metadata": null,
        });
        for (name, value) in members.as_object().unwrap() {
            whole[name] = value.clone();
        }
        Message::from_canonical(whole).unwrap()
    }

    /// A call without arguments.
    pub(crate) fn call(name: &str, id: &str) -> Value {
        json!({"name": name, "args": {}, "id": id, "type": "tool_call"})
    }

    #[test]
    fn hp_1_raw_copies_and_blocks_follow_the_calls() {
        let message = reply(json!({
            "content": [
                {"type": "text", "text": "x"},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "f", "input": {}},
                {"type": "input_json_delta", "partial_json": "{}"},
            ],
            "tool_calls": [call("f", "c1"), call("f", "c2")],
            "additional_kwargs": {
                "tool_calls": [{"id": "c1"}, {"id": "c2"}, {"id": 3}, "c2", {}],
                "function_call": {"name": "f"},
                "other": 1,
            },
            "response_metadata": {"finish_reason": "tool_calls", "model": "m"},
        }));
        let second = message.fields().tool_calls[1].clone();
        let kept = with_calls(&message, vec![second], None);
        assert_eq!(kept.tool_calls.len(), 1);
        assert_eq!(kept.id.as_deref(), Some("a"));
        assert_eq!(
            Value::Object(kept.additional_kwargs),
            json!({"tool_calls": [{"id": "c2"}], "function_call": {"name": "f"}, "other": 1})
        );
        assert_eq!(kept.response_metadata["finish_reason"], "tool_calls");
        assert_eq!(
            kept.content,
            json!([
                {"type": "text", "text": "x"},
                {"type": "tool_use", "id": "c2", "name": "f", "input": {}},
                {"type": "input_json_delta", "partial_json": "{}"},
            ])
        );

        let none = with_calls(&message, Vec::new(), None);
        assert_eq!(Value::Object(none.additional_kwargs), json!({"other": 1}));
        assert_eq!(
            Value::Object(none.response_metadata),
            json!({"finish_reason": "stop", "model": "m"})
        );
        assert_eq!(none.content, json!([{"type": "text", "text": "x"}]));
    }

    #[test]
    fn hp_1_other_finish_reasons_stay() {
        for reason in ["length", "content_filter", "stop"] {
            let message = reply(json!({
                "tool_calls": [call("f", "c1")],
                "response_metadata": {"finish_reason": reason},
            }));
            let fields = with_calls(&message, Vec::new(), Some("new".into()));
            assert_eq!(fields.response_metadata["finish_reason"], reason);
            assert_eq!(fields.content, "new");
        }
    }

    #[test]
    fn sub_7_and_loop_7_text_is_appended_to_every_form_of_content() {
        for (content, appended, below) in [
            (json!(null), json!("t"), json!("t")),
            (json!(""), json!("t"), json!("\n\nt")),
            (json!("x"), json!("x\n\nt"), json!("x\n\nt")),
            (
                json!(["x"]),
                json!(["x", {"type": "text", "text": "\n\nt"}]),
                json!(["x", {"type": "text", "text": "\n\nt"}]),
            ),
            (
                json!([]),
                json!([{"type": "text", "text": "\n\nt"}]),
                json!([{"type": "text", "text": "\n\nt"}]),
            ),
        ] {
            assert_eq!(append_text(&content, "t"), appended);
            assert_eq!(append_below(&content, "t"), below);
        }
    }

    #[test]
    fn hp_7_every_way_of_asking_for_a_tool_is_seen() {
        let asks = |members: Value, reason| has_tool_intent(reply(members).fields(), reason);
        let (counts, ignored) = (FinishReason::Counts, FinishReason::Ignored);
        for members in [
            json!({"tool_calls": [call("f", "c1")]}),
            json!({"invalid_tool_calls": [{"type": "invalid_tool_call", "id": "c", "name": "f", "args": "{", "error": null}]}),
            json!({"additional_kwargs": {"tool_calls": [{}]}}),
            json!({"additional_kwargs": {"function_call": {"name": "f"}}}),
        ] {
            assert!(asks(members.clone(), counts) && asks(members, ignored));
        }
        for reason in ["tool_calls", "function_call"] {
            let members = json!({"response_metadata": {"finish_reason": reason}});
            assert!(asks(members.clone(), counts) && !asks(members, ignored));
        }
        for members in [
            json!({}),
            json!({"additional_kwargs": {"tool_calls": [], "function_call": null}}),
            json!({"response_metadata": {"finish_reason": "stop"}}),
        ] {
            assert!(!asks(members, counts));
        }
    }

    #[test]
    fn run_32_a_reply_that_stands_in_is_reported_by_its_detail_its_reason_or_its_text() {
        let told = |members: Value| {
            let error = error_of_fallback(&reply(members));
            assert_eq!(error.code, ErrorCode::ModelNoAnswer);
            error.message
        };
        let both = json!({"error_detail": " down ", "error_reason": "transient"});
        let blank = json!({"error_detail": " ", "error_reason": "transient"});
        let odd = json!({"error_detail": 1});
        assert_eq!(
            told(json!({"content": "x", "additional_kwargs": both})),
            "down"
        );
        assert_eq!(
            told(json!({"content": "x", "additional_kwargs": blank})),
            "transient"
        );
        assert_eq!(told(json!({"content": "x", "additional_kwargs": odd})), "x");
        assert_eq!(told(json!({"content": " "})), "the model gave no answer");
        assert_eq!(
            told(json!({"content": "é".repeat(5000)})).chars().count(),
            2000
        );
    }

    #[test]
    fn hp_8_blank_text_and_other_blocks_are_not_visible() {
        for content in [
            json!("x"),
            json!([" ", "x"]),
            json!([{"type": "output_text", "text": "x"}]),
            json!([{"type": "thinking", "thinking": "…"}, {"type": "text", "text": "x"}]),
        ] {
            assert!(has_visible_content(&content), "{content}");
        }
        for content in [
            json!(null),
            json!(" \n\u{3000}"),
            json!([]),
            json!([" "]),
            json!([{"type": "text", "text": " "}]),
            json!([{"type": "text"}]),
            json!([{"type": "text", "text": 1}]),
            json!([{"type": "thinking", "text": "x"}]),
            json!([{"text": "x"}]),
        ] {
            assert!(!has_visible_content(&content), "{content}");
        }
    }
}
