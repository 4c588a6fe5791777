//! What the user wrote: the newest message of theirs, and its text before this library changed it.

use serde_json::Value;

use crate::protocol::message::{Kind, Message};
use crate::state::{View, python};

/// Whether a message is one that the user wrote and sees (HP-4): a human one that is no summary and not hidden.
pub(crate) fn is_real(message: &Message) -> bool {
    if message.kind() != Kind::Human {
        return false;
    }
    let fields = message.fields();
    let hidden = fields.additional_kwargs.get("hide_from_ui");
    fields.name.as_deref() != Some("summary") && !hidden.is_some_and(python::truthy)
}

/// The newest message that the user wrote.
pub(crate) fn newest_real<'a>(state: &View<'a>) -> Option<&'a Message> {
    state.messages().rev().find(|message| is_real(message))
}

/// The text of a message as the user wrote it (HP-6): `original_user_content` where it was kept, else the content; of a list
/// its texts, one per line.
pub(crate) fn original_text(message: &Message) -> String {
    let fields = message.fields();
    if let Some(Value::String(original)) = fields.additional_kwargs.get("original_user_content") {
        return original.clone();
    }
    match &fields.content {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts = items.iter().filter_map(|item| match item {
                Value::String(text) => Some(text.as_str()),
                block => block.get("text").and_then(Value::as_str),
            });
            let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
