//! The messages that a model may see, kept from turn to turn.

use std::collections::BTreeMap;
use std::fmt;
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
    /// See [`Transcript::rewritten`].
    rewritten: Mutex<Option<Rewritten>>,
}

/// Finds the messages of a transcript that a model is to see in another form.
pub trait Rewriter: fmt::Debug + Send {
    /// Looks at the next message of kind ai or tool, each once and in order. `replace` puts another form at its place, or at an
    /// earlier one; the form is of the same kind, and its calls and their results pair as before.
    fn look(&mut self, place: usize, message: &Message, replace: &mut dyn FnMut(usize, Message));
}

/// What a rewriter has made of the first `upto` messages.
#[derive(Debug)]
struct Rewritten {
    key: u64,
    upto: usize,
    rewriter: Box<dyn Rewriter>,
    forms: BTreeMap<usize, Message>,
    transcript: Option<Arc<Transcript>>,
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
                    transcript.put(kept.place, kept.original);
                    let known = transcript.messages.len();
                    transcript.extend(self.messages[known..].iter().cloned());
                    kept.transcript
                }
                None => self.copy(),
            },
            None => self.copy(),
        };
        if let Some(transcript) = Arc::get_mut(&mut transcript) {
            transcript.put(place, message);
        }
        *kept = Some(OtherForm {
            transcript: transcript.clone(),
            place,
            original: original.clone(),
        });
        Some(transcript)
    }

    /// The transcript as a rewriter would have a model see it; `None` when it leaves every message as it is.
    ///
    /// `key` is a number of the caller's for what the rewriter does: while it stays the same, the rewriter is kept, and looks
    /// only at the messages that came since. So is what it made, as in [`Transcript::with_other_form`]: a turn of a long
    /// thread costs what the turn adds.
    pub fn rewritten(
        &self,
        key: u64,
        make: impl FnOnce() -> Box<dyn Rewriter>,
    ) -> Option<Arc<Transcript>> {
        let mut slot = locked(&self.rewritten);
        let known = match &mut *slot {
            Some(known) if known.key == key => known,
            slot => slot.insert(Rewritten {
                key,
                upto: 0,
                rewriter: make(),
                forms: BTreeMap::new(),
                transcript: None,
            }),
        };
        let mut fresh = Vec::new();
        let places = known.upto..self.messages.len();
        for (place, message) in places.zip(self.messages.get(known.upto..).unwrap_or_default()) {
            if matches!(message.kind(), Kind::Ai | Kind::Tool) {
                known.rewriter.look(place, message, &mut |at, form| {
                    if at <= place {
                        fresh.push((at, form));
                    }
                });
            }
        }
        known.upto = self.messages.len();
        known.forms.extend(fresh.iter().cloned());
        if known.forms.is_empty() {
            return None;
        }
        let kept = known.transcript.take().and_then(|mut kept| {
            let transcript = Arc::get_mut(&mut kept)?;
            let length = transcript.messages.len();
            transcript.extend(self.messages.get(length..)?.iter().cloned());
            for (place, form) in fresh {
                transcript.put(place, form);
            }
            Some(kept)
        });
        let transcript = kept.unwrap_or_else(|| {
            let mut copy = self.copy();
            if let Some(transcript) = Arc::get_mut(&mut copy) {
                for (place, form) in &known.forms {
                    transcript.messages[*place] = form.clone();
                }
            }
            copy
        });
        known.transcript = Some(transcript.clone());
        Some(transcript)
    }

    /// Replaces a message, here and in what a rewriter has made of this transcript.
    fn put(&mut self, place: usize, message: Message) {
        let slot = self
            .rewritten
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = slot {
            if matches!(message.kind(), Kind::Ai | Kind::Tool) && place < known.upto {
                // The rewriter has seen another one there.
                *slot = None;
            } else if let Some(made) = &mut known.transcript {
                match Arc::get_mut(made) {
                    Some(made) if place < made.messages.len() => made.put(place, message.clone()),
                    Some(_) => {}
                    None => known.transcript = None,
                }
            }
        }
        self.messages[place] = message;
    }

    fn copy(&self) -> Arc<Transcript> {
        Arc::new(Transcript {
            messages: self.messages.clone(),
            sound: self.sound.clone(),
            counted: Mutex::new(*locked(&self.counted)),
            weighed: Mutex::default(),
            other_form: Mutex::default(),
            rewritten: Mutex::default(),
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
            rewritten: Mutex::default(),
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
    /// Writes `!` behind texts of tools, and notes at which places it looked; a text `undo` takes the first `!` away.
    #[derive(Debug, Default)]
    struct Marking {
        looked: Arc<Mutex<Vec<usize>>>,
        first: Option<(usize, Message)>,
    }

    impl Rewriter for Marking {
        fn look(
            &mut self,
            place: usize,
            message: &Message,
            replace: &mut dyn FnMut(usize, Message),
        ) {
            locked(&self.looked).push(place);
            if message.text() == "undo" {
                if let Some((place, message)) = self.first.take() {
                    replace(place, message);
                }
                return;
            }
            if message.kind() == Kind::Tool {
                let form = Message::new(Fields::new(Kind::Tool, message.text() + "!"));
                self.first.get_or_insert((place, message.clone()));
                replace(place, form);
            }
        }
    }

    #[test]
    fn a_rewriter_looks_at_each_message_once() {
        let message = |kind, text: &str| Message::new(Fields::new(kind, text));
        let texts = |transcript: &Transcript| -> Vec<String> {
            transcript.iter().map(Message::text).collect()
        };
        let looked = Arc::new(Mutex::new(Vec::new()));
        let make = || -> Box<dyn Rewriter> {
            Box::new(Marking {
                looked: looked.clone(),
                first: None,
            })
        };
        let (human, ai, tool) = (Kind::Human, Kind::Ai, Kind::Tool);
        let mut transcript = Transcript::from(vec![message(human, "a"), message(ai, "b")]);
        assert!(transcript.rewritten(1, make).is_none());
        assert!(transcript.rewritten(1, make).is_none());
        assert_eq!(*locked(&looked), [1]);

        transcript.extend([message(tool, "c"), message(human, "d")]);
        let made = transcript.rewritten(1, make).expect("changes");
        assert_eq!(texts(&made), ["a", "b", "c!", "d"]);
        assert_eq!(texts(&transcript), ["a", "b", "c", "d"]);
        let at = Arc::as_ptr(&made);
        made.note_sound(2);
        assert_eq!(transcript.sound_prefix(), 2, "their turns are the same");
        drop(made);
        transcript.extend([message(tool, "e")]);
        let made = transcript.rewritten(1, make).expect("changes");
        assert_eq!(
            (texts(&made).join(""), Arc::as_ptr(&made)),
            ("abc!de!".to_owned(), at)
        );
        assert_eq!(*locked(&looked), [1, 2, 4]);

        // While somebody reads it, it is not touched; and a message may get another form later.
        transcript.extend([message(ai, "undo")]);
        let again = transcript.rewritten(1, make).expect("changes");
        assert_eq!(texts(&made).join(""), "abc!de!");
        assert_eq!(texts(&again).join(""), "abcde!undo");
        drop((made, again));

        // What another form of the transcript says is in it, and its messages are not looked at again.
        let loud =
            |message: &Message| Some(Message::new(Fields::new(Kind::Human, message.text() + "?")));
        let framed = transcript.with_other_form(0, loud).expect("changes");
        assert_eq!(
            texts(&framed.rewritten(1, make).expect("changes")).join(""),
            "a?bcde!undo"
        );
        drop(framed);
        locked(&looked).clear();
        transcript.extend([message(human, "f")]);
        let framed = transcript.with_other_form(6, loud).expect("changes");
        assert_eq!(
            texts(&framed.rewritten(1, make).expect("changes")).join(""),
            "abcde!undof?"
        );
        assert!(locked(&looked).is_empty());

        // Another rewriter begins anew.
        framed.rewritten(2, make);
        assert_eq!(*locked(&looked), [1, 2, 4, 5]);
    }
}
