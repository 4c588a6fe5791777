//! Words of a guard to the model: a human message at the end of one request, never stored.

use std::sync::Arc;

use serde_json::Value;

use super::{ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::message::{Fields, Kind, Message};
use crate::state::transcript::Transcript;

/// The member of `additional_kwargs` that keeps a message from the user's eyes.
pub(crate) const HIDE_FROM_UI: &str = "hide_from_ui";

/// A human message of a guard.
pub(crate) fn note(name: &str, text: String) -> Message {
    Message::new(named(name, text))
}

/// A human message of a guard that says it is none of the user's.
pub(crate) fn hidden_note(name: &str, text: &str) -> Message {
    let mut fields = named(name, text.to_owned());
    fields
        .additional_kwargs
        .insert(HIDE_FROM_UI.to_owned(), Value::Bool(true));
    Message::new(fields)
}

fn named(name: &str, text: String) -> Fields {
    let mut fields = Fields::new(Kind::Human, Value::String(text));
    fields.name = Some(name.to_owned());
    fields
}

/// Passes a request on with `note` after all that is there, so that it parts no call from its result. When the call fails,
/// `undelivered` takes the words back, for whoever outside tries again (against hazard A-1).
pub(crate) fn run_with_note<'a>(
    mut request: ModelRequest,
    note: Message,
    next: &'a mut dyn NextModel,
    undelivered: impl FnOnce() + Send + 'a,
) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
    let sound = request.messages.sound_prefix();
    let mut messages = request.messages.to_vec();
    messages.push(note);
    let transcript = Transcript::from(messages);
    transcript.note_sound(sound);
    request.messages = Arc::new(transcript);
    Box::pin(async move {
        let result = next.run(request).await;
        if result.is_err() {
            undelivered();
        }
        result
    })
}
