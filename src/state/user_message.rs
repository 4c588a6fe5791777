//! What the user wrote: the newest message of theirs, and its text before this library changed it.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::message_marks::{HIDDEN, SUMMARY, content_lines};
use super::python::{self, is_space};
use crate::protocol::message::{Kind, Message};

/// Whether a message is one that the user wrote and sees (HP-4): a human one that is no summary and not hidden.
pub(crate) fn is_real(message: &Message) -> bool {
    if message.kind() != Kind::Human {
        return false;
    }
    let fields = message.fields();
    let hidden = fields.additional_kwargs.get(HIDDEN);
    fields.name.as_deref() != Some(SUMMARY) && !hidden.is_some_and(python::truthy)
}

/// Whether a message is what a user wrote, and not what the framework put there in the user's role (HP-5).
pub(crate) fn is_genuine(message: &Message) -> bool {
    if message.kind() != Kind::Human {
        return false;
    }
    let fields = message.fields();
    let is_hidden = fields
        .additional_kwargs
        .get(HIDDEN)
        .is_some_and(python::truthy);
    fields.name.as_deref() != Some(SUMMARY) && (!is_hidden || has_answer(&fields.additional_kwargs))
}

/// Whether a hidden message carries a user's answer to a question of the agent.
fn has_answer(kwargs: &Map<String, Value>) -> bool {
    let Some(Value::Object(answer)) = kwargs.get("human_input_response") else {
        return false;
    };
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let says = |name: &str| text(name).is_some_and(|text| text.chars().any(|c| !is_space(c)));
    answer.get("version").and_then(Value::as_f64) == Some(1.0)
        && text("kind") == Some("human_input_response")
        && says("source")
        && says("request_id")
        && says("value")
        && match text("response_kind") {
            Some("text") => true,
            Some("option") => text("option_id").is_some(),
            _ => false,
        }
}

/// The text of a message as the user wrote it (HP-6): `original_user_content` where it was kept, else the content; of a list
/// its texts, one per line.
pub(crate) fn original_text(message: &Message) -> Cow<'_, str> {
    let fields = message.fields();
    match (
        fields.additional_kwargs.get("original_user_content"),
        &fields.content,
    ) {
        (Some(Value::String(text)), _) | (_, Value::String(text)) => Cow::Borrowed(text),
        (_, content) => Cow::Owned(content_lines(content)),
    }
}

/// The place of the newest message that the user wrote and sees. Looks from the end backwards.
pub(crate) fn newest_real(messages: &[Message]) -> Option<usize> {
    messages.iter().rposition(is_real)
}
