//! The messages that a model may see, kept from turn to turn.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::protocol::message::{Kind, Message};

/// Messages in order, with what is known of them.
#[derive(Debug, Default)]
pub struct Transcript {
    messages: Vec<Message>,
    /// See [`Transcript::sound_prefix`]. Shared with the other form of the transcript, whose turns are the same.
    sound: Arc<AtomicUsize>,
    /// What was counted so far.
    counted: Mutex<Counts>,
    /// See [`Transcript::weight`].
    weighed: Mutex<Weight>,
    /// See [`Transcript::with_other_form`].
    other_form: Mutex<Option<OtherForm>>,
}

/// A transcript that is the same but for one message.
#[derive(Debug)]
struct OtherForm {
    transcript: Arc<Transcript>,
    place: usize,
    original: Message,
}

/// Messages of a kind among the first `upto`.
#[derive(Clone, Copy, Debug, Default)]
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

    /// The transcript with the message at `place` in another form, as a model is to see it; `None` when `form` finds nothing to
    /// change, or there is no such message. The other form is of the same kind and calls no tools.
    ///
    /// `form` depends on the message alone and is one function for the life of a transcript: what it made of a message is
    /// kept, and so is the other transcript, which only takes in what came since. A turn of a long thread costs what the turn
    /// adds, unless somebody still holds the transcript of the turn before.
    pub fn with_other_form(
        &self,
        place: usize,
        form: impl FnOnce(&Message) -> Option<Message>,
    ) -> Option<Arc<Transcript>> {
        let original = self.messages.get(place)?;
        let mut kept = locked(&self.other_form);
        let message = match &*kept {
            Some(kept) if kept.place == place && kept.original.same(original) => {
                kept.transcript.messages[place].clone()
            }
            _ => form(original)?,
        };
        let mut transcript = match kept.take() {
            Some(mut kept) => match Arc::get_mut(&mut kept.transcript) {
                Some(transcript) => {
                    transcript.messages[kept.place] = kept.original;
                    let known = transcript.messages.len();
                    transcript.extend(self.messages[known..].iter().cloned());
                    kept.transcript
                }
                None => self.copy(),
            },
            None => self.copy(),
        };
        if let Some(transcript) = Arc::get_mut(&mut transcript) {
            transcript.messages[place] = message;
        }
        *kept = Some(OtherForm {
            transcript: transcript.clone(),
            place,
            original: original.clone(),
        });
        Some(transcript)
    }

    fn copy(&self) -> Arc<Transcript> {
        Arc::new(Transcript {
            messages: self.messages.clone(),
            sound: self.sound.clone(),
            counted: Mutex::new(*locked(&self.counted)),
            weighed: Mutex::default(),
            other_form: Mutex::default(),
        })
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
            sound: Arc::default(),
            counted: Mutex::default(),
            other_form: Mutex::default(),
            weighed: Mutex::default(),
        }
    }
}

impl FromIterator<Message> for Transcript {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Vec::from_iter(messages).into()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn another_form_takes_in_only_what_came_since() {
        let human = |text: &str| Message::new(Fields::new(Kind::Human, text));
        let loud = |message: &Message| {
            let text = message.text();
            (!text.is_empty()).then(|| human(&text.to_uppercase()))
        };
        let texts = |transcript: &Transcript| -> Vec<String> {
            transcript.iter().map(Message::text).collect()
        };
        let mut transcript = Transcript::from(vec![human("a"), human("b")]);
        let first = transcript.with_other_form(1, loud).expect("changes");
        assert_eq!(texts(&first), ["a", "B"]);
        assert_eq!(texts(&transcript), ["a", "b"]);
        let (at, form) = (Arc::as_ptr(&first), first[1].clone());
        drop(first);

        // The same message again: neither copied nor made anew.
        transcript.extend([human("c")]);
        let again = transcript
            .with_other_form(1, |_| unreachable!("it is known"))
            .expect("changes");
        assert_eq!(texts(&again), ["a", "B", "c"]);
        assert_eq!(Arc::as_ptr(&again), at);
        assert!(again[1].same(&form));
        again.note_sound(2);
        assert_eq!(transcript.sound_prefix(), 2, "their turns are the same");
        drop(again);

        // Another message: the one before has its own form back.
        let other = transcript.with_other_form(2, loud).expect("changes");
        assert_eq!(texts(&other), ["a", "b", "C"]);
        assert_eq!(Arc::as_ptr(&other), at);

        // While somebody reads it, it is not touched.
        transcript.extend([human("d"), human("")]);
        let copy = transcript.with_other_form(3, loud).expect("changes");
        assert_eq!(texts(&copy), ["a", "b", "c", "D", ""]);
        assert_eq!(texts(&other), ["a", "b", "C"]);
        drop((other, copy));
        assert!(transcript.with_other_form(4, loud).is_none());
        assert!(transcript.with_other_form(5, loud).is_none());
        let last = transcript.with_other_form(0, loud).expect("changes");
        assert_eq!(texts(&last), ["A", "b", "c", "d", ""]);
    }
}
