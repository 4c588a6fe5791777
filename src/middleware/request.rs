//! Words of a guard to the model: a human message at the end of one request, never stored.

use std::sync::Arc;

use super::{ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::message::{Fields, Kind, Message};
use crate::state::transcript::Transcript;

/// A human message of a guard; it is not hidden, since it never gets to where messages are shown.
pub(crate) fn note(name: &str, text: String) -> Message {
    let mut fields = Fields::new(Kind::Human, text);
    fields.name = Some(name.to_owned());
    Message::new(fields)
}

/// The transcript with `notes` after all that is there. O(messages).
pub(crate) fn followed_by(
    transcript: &Transcript,
    notes: impl IntoIterator<Item = Message>,
) -> Arc<Transcript> {
    let sound = transcript.sound_prefix();
    let mut messages = transcript.to_vec();
    messages.extend(notes);
    let followed = Transcript::from(messages);
    followed.note_sound(sound);
    Arc::new(followed)
}

/// Passes a request on with `note` after all that is there, so that it parts no call from its result. When the call fails,
/// `undelivered` takes the words back, for whoever outside tries again (against hazard A-1).
pub(crate) fn run_with_note<'a>(
    mut request: ModelRequest,
    note: Message,
    next: &'a mut dyn NextModel,
    undelivered: impl FnOnce() + Send + 'a,
) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
    request.messages = followed_by(&request.messages, [note]);
    Box::pin(async move {
        let result = next.run(request).await;
        if result.is_err() {
            undelivered();
        }
        result
    })
}
