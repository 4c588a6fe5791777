//! Frames what the user wrote before a model sees it, so that it cannot pass for text of the framework.
//!
//! Only the newest message of the user is rewritten, and only in the request: the thread keeps what was written. The framed
//! transcript is kept beside the thread's, so that a turn costs what it adds. Outermost, so that retries and repairs inside
//! see framed text too.
//!
//! Source: DeerFlow `InputSanitizationMiddleware`, MW-SAN-1 to MW-SAN-10. What is sent of earlier turns is as it is stored.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{Hooks, Middleware, ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::ports::signals::RunSignals;
use crate::prompt::sanitize::{frame, is_blank, neutralize};
use crate::protocol::message::{Fields, Kind, Message};
use crate::protocol::warning::Warning;
use crate::state::python::truthy;

/// Where a message keeps what the user wrote, when the framework has put something before it.
pub const ORIGINAL_USER_CONTENT: &str = "original_user_content";

/// Frames the newest message of the user in each request of the agent's model.
#[derive(Clone, Copy, Debug, Default)]
pub struct InputSanitization;

impl InputSanitization {
    /// There is nothing to configure.
    pub fn new() -> Self {
        InputSanitization
    }
}

impl Middleware for InputSanitization {
    fn name(&self) -> &str {
        "input_sanitization"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_model_call: true,
            ..Hooks::default()
        }
    }

    fn wrap_model_call<'a>(
        &'a self,
        mut request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        if let Some(place) = request.messages.iter().rposition(is_genuine) {
            let form = |message: &Message| framed(message, &request.run.signals);
            if let Some(messages) = request.messages.with_other_form(place, form) {
                request.messages = messages;
            }
        }
        next.run(request)
    }
}

/// Whether a message is what a user wrote, and not what the framework put there in the user's role (HP-5).
fn is_genuine(message: &Message) -> bool {
    if message.kind() != Kind::Human {
        return false;
    }
    let fields = message.fields();
    let is_hidden = fields
        .additional_kwargs
        .get("hide_from_ui")
        .is_some_and(truthy);
    fields.name.as_deref() != Some("summary")
        && (!is_hidden || has_answer(&fields.additional_kwargs))
}

/// Whether a hidden message carries a user's answer to a question of the agent.
fn has_answer(kwargs: &Map<String, Value>) -> bool {
    let Some(Value::Object(answer)) = kwargs.get("human_input_response") else {
        return false;
    };
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let says = |name: &str| text(name).is_some_and(|text| !is_blank(text));
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

/// The message as a model is to see it; `None` when that is how it is.
fn framed(message: &Message, signals: &RunSignals) -> Option<Message> {
    let fields = message.fields();
    let text = text_of(&fields.content)?;
    let original = fields.additional_kwargs.get(ORIGINAL_USER_CONTENT);
    let content = match original {
        Some(Value::String(original)) => with_framed_original(&fields.content, &text, original)?,
        _ => replaced(&fields.content, &text, frame(&text))?,
    };
    let mut fields: Fields = fields.clone();
    fields.content = content;
    if !matches!(original, Some(Value::String(_))) {
        if original.is_some() {
            signals.warn(
                Warning::OriginalContentReplaced,
                "original_user_content of a message is no text; the text of the message stands in",
            );
        }
        let text = Value::String(text.into_owned());
        fields
            .additional_kwargs
            .insert(ORIGINAL_USER_CONTENT.to_owned(), text);
    }
    Some(Message::new(fields))
}

/// The content with what the user wrote framed, and what the framework put before it as it is (MW-SAN-3 to MW-SAN-5).
fn with_framed_original(content: &Value, text: &str, original: &str) -> Option<Value> {
    let inner = match frame(original) {
        Cow::Borrowed(_) => return None,
        Cow::Owned(inner) => inner,
    };
    // The last place, because the framework's part comes first and may quote the user.
    if let Some(at) = text.rfind(original) {
        return replaced(content, text, Cow::Owned(text[..at].to_owned() + &inner));
    }
    match content {
        Value::Array(blocks) if blocks.len() >= 2 => {
            // The first block is the framework's; where the user's text went is not known.
            let mut blocks = blocks.clone();
            neutralize_blocks(&mut blocks[1..]).then_some(Value::Array(blocks))
        }
        content => replaced(content, text, frame(text)),
    }
}

/// Text of a content: the string, or the texts of a list, one to a line. `None` for a list without any (MW-SAN-2).
fn text_of(content: &Value) -> Option<Cow<'_, str>> {
    match content {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(block_text)
                .filter(|text| !text.is_empty())
                .collect();
            (!texts.is_empty()).then(|| Cow::Owned(texts.join("\n")))
        }
        _ => None,
    }
}

/// Text of an element of a content list: a string, or a block of type `text`.
fn block_text(block: &Value) -> Option<&str> {
    match block {
        Value::String(text) => Some(text),
        Value::Object(members) if members.get("type").and_then(Value::as_str) == Some("text") => {
            members.get("text").and_then(Value::as_str)
        }
        _ => None,
    }
}

/// The content with another text; `None` when it is the same (MW-SAN-6). In a list, the text becomes one block where the first
/// one stood; what is no text keeps its order (MW-SAN-7).
fn replaced(content: &Value, text: &str, new: Cow<'_, str>) -> Option<Value> {
    if new == text {
        return None;
    }
    let Value::Array(blocks) = content else {
        return Some(Value::String(new.into_owned()));
    };
    let mut new = Some(json!({"type": "text", "text": new}));
    let blocks = blocks.iter().filter_map(|block| match block_text(block) {
        Some(_) => new.take(),
        None => Some(block.clone()),
    });
    Some(Value::Array(blocks.collect()))
}

/// Neutralises the texts of content blocks; whether any changed.
pub(super) fn neutralize_blocks(blocks: &mut [Value]) -> bool {
    let mut changed = false;
    for block in blocks {
        let clean = match block_text(block).map(neutralize) {
            Some(Cow::Owned(clean)) => clean,
            Some(Cow::Borrowed(_)) | None => continue,
        };
        match block {
            Value::Object(members) => {
                members.insert("text".to_owned(), Value::String(clean));
            }
            block => *block = Value::String(clean),
        }
        changed = true;
    }
    changed
}
