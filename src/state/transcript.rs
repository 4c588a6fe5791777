//! The messages that a model may see, kept from turn to turn.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::protocol::message::{Kind, Message};

/// Messages in order, with what is known of them.
#[derive(Debug, Default)]
pub struct Transcript {
    messages: Vec<Message>,
    /// See [`Transcript::sound_prefix`].
    sound: AtomicUsize,
    /// How many messages were counted for [`Transcript::ai_messages`], and how many of them were of that kind.
    counted: Mutex<(usize, usize)>,
}

impl Transcript {
    /// How many of the messages are the model's. Counts only those that came since it was last asked.
    pub fn ai_messages(&self) -> usize {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let (upto, so_far) = *counted;
        let new = self.messages.get(upto..).unwrap_or_default().iter();
        let count = so_far + new.filter(|message| message.kind() == Kind::Ai).count();
        *counted = (self.messages.len(), count);
        count
    }

    /// How many of the first messages are known to be whole turns, each call followed by its result. Whoever checks a
    /// transcript starts there, so that a turn of a long thread costs what the turn adds.
    pub fn sound_prefix(&self) -> usize {
        self.sound.load(Ordering::Relaxed).min(self.messages.len())
    }

    /// Notes that the first `count` messages are whole turns.
    pub fn note_sound(&self, count: usize) {
        self.sound.fetch_max(count, Ordering::Relaxed);
    }

    /// Adds messages at the end; what is known of the others stays true.
    pub fn extend(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.messages.extend(messages);
    }
}

impl Deref for Transcript {
    type Target = [Message];

    fn deref(&self) -> &[Message] {
        &self.messages
    }
}

impl From<Vec<Message>> for Transcript {
    fn from(messages: Vec<Message>) -> Self {
        Transcript {
            messages,
            sound: AtomicUsize::new(0),
            counted: Mutex::default(),
        }
    }
}

impl FromIterator<Message> for Transcript {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Vec::from_iter(messages).into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::protocol::message::Fields;

    #[test]
    fn the_model_s_messages_are_counted_as_they_come() {
        let message = |kind| Message::new(Fields::new(kind, Value::String("x".to_owned())));
        let mut transcript = Transcript::from(vec![message(Kind::Human), message(Kind::Ai)]);
        assert_eq!(transcript.ai_messages(), 1);
        assert_eq!(transcript.ai_messages(), 1);
        transcript.extend([message(Kind::Ai), message(Kind::Tool), message(Kind::Ai)]);
        assert_eq!(transcript.ai_messages(), 3);
        assert_eq!(Transcript::default().ai_messages(), 0);
    }
}
