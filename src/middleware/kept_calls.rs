//! An ai message with some of its calls taken away, in every place where a message keeps its calls.

use std::collections::HashSet;

use serde_json::Value;

use crate::protocol::message::{Message, ToolCall};

/// The same message with only those calls that `keep` is true for.
///
/// The calls go from `tool_calls`, from the provider's own list in `additional_kwargs.tool_calls` and from a content that is
/// a list of blocks. When none is left, `additional_kwargs.function_call` goes too, and a finish reason `tool_calls` becomes
/// `stop`; other finish reasons stay. Calls that cannot be run (`invalid_tool_calls`) are not touched.
///
/// Source: DeerFlow `clone_ai_message_with_tool_calls`, HP-1.
pub(crate) fn with_calls(message: &Message, keep: impl Fn(&ToolCall) -> bool) -> Message {
    let mut fields = message.fields().clone();
    let (kept, dropped): (Vec<ToolCall>, Vec<ToolCall>) = std::mem::take(&mut fields.tool_calls)
        .into_iter()
        .partition(keep);
    let ids = |calls: &[ToolCall]| -> HashSet<String> {
        calls.iter().filter_map(|call| call.id.clone()).collect()
    };
    let (kept_ids, dropped_ids) = (ids(&kept), ids(&dropped));
    let named = |value: &Value, member: &str, ids: &HashSet<String>| {
        let id = value.get(member).and_then(Value::as_str);
        id.is_some_and(|id| ids.contains(id))
    };
    if let Some(Value::Array(raw)) = fields.additional_kwargs.get_mut("tool_calls") {
        raw.retain(|call| named(call, "id", &kept_ids));
        if raw.is_empty() {
            fields.additional_kwargs.shift_remove("tool_calls");
        }
    }
    if let Value::Array(blocks) = &mut fields.content {
        blocks.retain(|block| match block.get("type").and_then(Value::as_str) {
            Some("tool_use" | "tool_call") => !named(block, "id", &dropped_ids),
            Some("function_call") => !named(block, "call_id", &dropped_ids),
            _ => true,
        });
    }
    if kept.is_empty() {
        fields.additional_kwargs.shift_remove("function_call");
        if let Some(reason) = fields.response_metadata.get_mut("finish_reason")
            && reason == "tool_calls"
        {
            *reason = "stop".into();
        }
    }
    fields.tool_calls = kept;
    Message::new(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message() -> Message {
        Message::from_canonical(json!({
            "type": "ai", "id": "m", "name": null,
            "content": [
                {"type": "text", "text": "t"},
                {"type": "tool_use", "id": "1", "name": "a", "input": {}},
                {"type": "tool_use", "id": "2", "name": "b", "input": {}},
                {"type": "function_call", "call_id": "2", "id": "fc"},
                "plain",
            ],
            "additional_kwargs": {
                "x": 1, "function_call": {"name": "b"},
                "tool_calls": [{"id": "1", "function": {}}, {"id": "2"}, {"id": 3}, "odd"],
            },
            "response_metadata": {"finish_reason": "tool_calls"},
            "tool_calls": [
                {"name": "a", "args": {}, "id": "1", "type": "tool_call"},
                {"name": "b", "args": {}, "id": "2", "type": "tool_call"},
            ],
            "invalid_tool_calls": [{"type": "invalid_tool_call", "name": "c", "args": "{", "id": "3", "error": null}],
            "usage_metadata": null,
        }))
        .expect("canonical")
    }

    #[test]
    fn hp_1_a_dropped_call_is_gone_from_every_place() {
        let fields = with_calls(&message(), |call| call.name == "a")
            .fields()
            .clone();
        assert_eq!(fields.id.as_deref(), Some("m"), "the same message");
        let names: Vec<_> = fields.tool_calls.iter().map(|call| &*call.name).collect();
        assert_eq!(names, ["a"]);
        assert_eq!(
            fields.additional_kwargs["tool_calls"],
            json!([{"id": "1", "function": {}}])
        );
        assert!(fields.additional_kwargs.contains_key("function_call"));
        assert_eq!(fields.response_metadata["finish_reason"], "tool_calls");
        assert_eq!(fields.content.as_array().map(Vec::len), Some(3));
        assert_eq!(fields.invalid_tool_calls.len(), 1);
    }

    #[test]
    fn hp_1_without_calls_the_finish_reason_is_a_stop() {
        let fields = with_calls(&message(), |_| false).fields().clone();
        assert_eq!(fields.tool_calls, []);
        assert_eq!(Value::from(fields.additional_kwargs), json!({"x": 1}));
        assert_eq!(fields.response_metadata["finish_reason"], "stop");
        assert_eq!(
            fields.content,
            json!([{"type": "text", "text": "t"}, "plain"])
        );
        let mut other = message().fields().clone();
        other
            .response_metadata
            .insert("finish_reason".into(), "length".into());
        let fields = with_calls(&Message::new(other), |_| false).fields().clone();
        assert_eq!(fields.response_metadata["finish_reason"], "length");
    }
}
