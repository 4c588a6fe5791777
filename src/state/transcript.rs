//! The messages that a model may see, kept from turn to turn.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::protocol::message::Message;

/// Messages in order, with what is known of them.
#[derive(Debug, Default)]
pub struct Transcript {
    messages: Vec<Message>,
    /// See [`Transcript::sound_prefix`].
    sound: AtomicUsize,
}

impl Transcript {
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
        }
    }
}

impl FromIterator<Message> for Transcript {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Vec::from_iter(messages).into()
    }
}
