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
    /// What was counted so far.
    counted: Mutex<Counts>,
    /// See [`Transcript::weight`].
    weighed: Mutex<Weight>,
}

/// Messages of a kind among the first `upto`.
#[derive(Debug, Default)]
struct Counts {
    upto: usize,
    ai: usize,
    system: usize,
}

/// The sum of a measure over the first `upto` messages.
#[derive(Debug, Default)]
struct Weight {
    measure: u32,
    upto: usize,
    sum: u64,
}

impl Transcript {
    /// How many of the messages are the model's. Counts only those that came since it was last asked.
    pub fn ai_messages(&self) -> usize {
        self.counts(|counts| counts.ai)
    }

    /// How many of the messages are system messages. Counts as [`Transcript::ai_messages`] does.
    pub fn system_messages(&self) -> usize {
        self.counts(|counts| counts.system)
    }

    fn counts(&self, pick: fn(&Counts) -> usize) -> usize {
        let mut counts = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        for message in self.messages.get(counts.upto..).unwrap_or_default() {
            match message.kind() {
                Kind::Ai => counts.ai += 1,
                Kind::System => counts.system += 1,
                _ => {}
            }
        }
        counts.upto = self.messages.len();
        pick(&counts)
    }

    /// The sum of `weigh` over all messages. `measure` is a number of the caller's for what is measured: while it stays the
    /// same, only messages that came since are weighed.
    pub fn weight(&self, measure: u32, weigh: impl Fn(&Message) -> u64) -> u64 {
        let mut known = self.weighed.lock().unwrap_or_else(PoisonError::into_inner);
        if known.measure != measure {
            *known = Weight {
                measure,
                ..Weight::default()
            };
        }
        let new = self.messages.get(known.upto..).unwrap_or_default();
        known.sum += new.iter().map(weigh).sum::<u64>();
        known.upto = self.messages.len();
        known.sum
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
            weighed: Mutex::default(),
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
        transcript.extend([message(Kind::System)]);
        assert_eq!(
            (transcript.system_messages(), transcript.ai_messages()),
            (1, 3)
        );
    }

    #[test]
    fn messages_are_weighed_once_for_each_measure() {
        let message = || Message::new(Fields::new(Kind::Human, "x"));
        let mut transcript = Transcript::from(vec![message(), message()]);
        let weighed = std::cell::Cell::new(0);
        let two = |_: &Message| {
            weighed.set(weighed.get() + 1);
            2
        };
        assert_eq!(transcript.weight(1, two), 4);
        transcript.extend([message()]);
        assert_eq!((transcript.weight(1, two), weighed.get()), (6, 3));
        assert_eq!(transcript.weight(2, |_| 5), 15);
    }
}
