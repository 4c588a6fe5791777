//! The messages that a model may see, kept from turn to turn.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::messages::Entry;
use crate::protocol::message::{Kind, Message};

/// Messages in order, with what is known of them.
#[derive(Debug, Default)]
pub struct Transcript {
    messages: Vec<Message>,
    /// See [`Transcript::sound_prefix`]. Shared with what rewriters make of the transcript, whose turns are the same.
    sound: Arc<AtomicUsize>,
    /// What was counted so far.
    counted: Mutex<Counts>,
    /// See [`Transcript::weight`].
    weighed: Mutex<Weight>,
    /// See [`Transcript::rewritten`]; the one that was last asked for is last.
    rewritten: Mutex<Vec<Rewritten>>,
}

/// The newest transcript that was asked for of a thread. What is known of it outlives whatever happens to the thread behind the
/// messages that it is known of: a message that a hook writes anew before a model sees it costs nothing that was made of
/// the messages before it.
#[derive(Debug, Default)]
pub(super) struct Newest(Mutex<NewestTranscript>);

#[derive(Debug, Default)]
struct NewestTranscript {
    transcript: Arc<Transcript>,
    /// Whether it is the committed thread's; else it is that of changes which were pending, or of a thread before a commit.
    is_committed: bool,
}

impl Newest {
    /// The transcript of the committed thread, whose messages are `messages`. O(1) when the last commits only appended; else
    /// it compares references of messages.
    pub(super) fn of_committed<'a>(
        &self,
        messages: impl Iterator<Item = &'a Message> + Clone,
    ) -> Arc<Transcript> {
        let mut newest = locked(&self.0);
        if !newest.is_committed {
            newest.follow(messages);
            newest.is_committed = true;
        }
        newest.transcript.clone()
    }

    /// The transcript of a thread with pending changes. Compares references of messages.
    pub(super) fn of_pending<'a>(
        &self,
        messages: impl Iterator<Item = &'a Message> + Clone,
    ) -> Arc<Transcript> {
        let mut newest = locked(&self.0);
        newest.is_committed = false;
        newest.follow(messages);
        newest.transcript.clone()
    }

    /// Takes in a commit that only appended. O(appended).
    pub(super) fn append<'a>(&mut self, appended: impl Iterator<Item = &'a Message> + Clone) {
        let newest = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        match Arc::get_mut(&mut newest.transcript) {
            Some(transcript) if newest.is_committed => transcript.extend(seen(appended).cloned()),
            _ => newest.is_committed = false,
        }
    }

    /// Takes in a commit that changed messages.
    pub(super) fn change(&mut self) {
        let newest = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        newest.is_committed = false;
    }
}

/// The copy of a thread begins anew.
impl Clone for Newest {
    fn clone(&self) -> Self {
        Newest::default()
    }
}

impl NewestTranscript {
    fn follow<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
        let messages = seen(messages);
        if let Some(transcript) = Arc::get_mut(&mut self.transcript) {
            transcript.follow(messages);
        } else if !self.transcript.is_of(messages.clone()) {
            self.transcript = Arc::new(messages.cloned().collect());
        }
    }
}

/// Those that a model may see: all but removals that a replace-all left in the list.
fn seen<'a>(
    messages: impl Iterator<Item = &'a Message> + Clone,
) -> impl Iterator<Item = &'a Message> + Clone {
    messages.filter(|message| !message.is_remove())
}

/// How many rewriters a transcript keeps; of more, the one that was not asked for the longest goes.
const KEPT_REWRITERS: usize = 3;

/// Finds the messages of a transcript that a model is to see in another form.
pub trait Rewriter: fmt::Debug + Send {
    /// Looks at the next message, each once and in order. `replace` puts another form at its place, or at an earlier one; the
    /// form is of the same kind, and its calls and their results pair as before.
    fn look(&mut self, place: usize, message: &Message, replace: &mut dyn FnMut(usize, Message));

    /// How many of the messages that it looked at since it was last asked are not as they should be. What that means is its own.
    fn take_flaws(&mut self) -> usize {
        0
    }
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

impl Rewritten {
    /// Looks at what came since, and gives the transcript as it is now; `None` when nothing in it has another form.
    fn catch_up(&mut self, original: &Transcript) -> Option<Arc<Transcript>> {
        let mut fresh = Vec::new();
        for (place, message) in original.messages.iter().enumerate().skip(self.upto) {
            self.rewriter.look(place, message, &mut |at, form| {
                if at <= place {
                    fresh.push((at, form));
                }
            });
        }
        self.upto = original.messages.len();
        self.forms.extend(fresh.iter().cloned());
        if self.forms.is_empty() {
            return None;
        }
        let kept = self.transcript.take().and_then(|mut kept| {
            let transcript = Arc::get_mut(&mut kept)?;
            let length = transcript.messages.len();
            transcript.extend(original.messages.get(length..)?.iter().cloned());
            for (place, form) in fresh {
                transcript.put(place, form);
            }
            Some(kept)
        });
        let transcript = kept.unwrap_or_else(|| {
            let mut copy = original.copy();
            if let Some(transcript) = Arc::get_mut(&mut copy) {
                for (place, form) in &self.forms {
                    transcript.messages[*place] = form.clone();
                }
            }
            copy
        });
        self.transcript = Some(transcript.clone());
        Some(transcript)
    }
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

    /// The transcript as a rewriter would have a model see it; `None` when it leaves every message as it is.
    ///
    /// `key` is a number of the caller's for what the rewriter does: while it stays the same, the rewriter is kept, and looks
    /// only at the messages that came since. So is what it made, which only takes in what came since: a turn of a long thread
    /// costs what the turn adds, unless somebody still holds the transcript of the turn before.
    pub fn rewritten(
        &self,
        key: u64,
        make: impl FnOnce() -> Box<dyn Rewriter>,
    ) -> Option<Arc<Transcript>> {
        self.rewritten_with_flaws(key, make).0
    }

    /// The same, and how many messages the rewriter found [flaws](Rewriter::take_flaws) in that were not told before.
    pub fn rewritten_with_flaws(
        &self,
        key: u64,
        make: impl FnOnce() -> Box<dyn Rewriter>,
    ) -> (Option<Arc<Transcript>>, usize) {
        let mut kept = locked(&self.rewritten);
        let mut known = match kept.iter().position(|known| known.key == key) {
            Some(at) => kept.remove(at),
            None => Rewritten {
                key,
                upto: 0,
                rewriter: make(),
                forms: BTreeMap::new(),
                transcript: None,
            },
        };
        if kept.len() == KEPT_REWRITERS {
            kept.remove(0);
        }
        let made = known.catch_up(self);
        let flaws = known.rewriter.take_flaws();
        kept.push(known);
        (made, flaws)
    }

    /// Replaces a message; those who have seen another one there begin anew.
    fn put(&mut self, place: usize, message: Message) {
        let rewritten = self.rewritten.get_mut();
        let rewritten = rewritten.unwrap_or_else(PoisonError::into_inner);
        rewritten.retain(|known| known.upto <= place);
        let weighed = self.weighed.get_mut();
        let weighed = weighed.unwrap_or_else(PoisonError::into_inner);
        if place < weighed.upto {
            *weighed = Weight::default();
        }
        self.messages[place] = message;
    }

    /// Whether it is of these very messages.
    fn is_of<'a>(&self, mut messages: impl Iterator<Item = &'a Message>) -> bool {
        let mut own = self.messages.iter();
        let same = |message: &Message| own.next().is_some_and(|own| own.same(message));
        messages.all(same) && own.next().is_none()
    }

    /// Becomes the transcript of these messages. What is known of messages that both begin with stays; whoever has looked
    /// further begins anew.
    fn follow<'a>(&mut self, messages: impl Iterator<Item = &'a Message>) {
        let mut messages = messages.peekable();
        let mut same = 0;
        let mut own = self.messages.iter();
        while messages
            .next_if(|message| own.next().is_some_and(|own| own.same(message)))
            .is_some()
        {
            same += 1;
        }
        if same < self.messages.len() {
            self.cut(same);
        }
        self.extend(messages.cloned());
    }

    /// Leaves the first `length` messages, and what is known of no others.
    fn cut(&mut self, length: usize) {
        self.messages.truncate(length);
        let rewritten = self.rewritten.get_mut();
        let rewritten = rewritten.unwrap_or_else(PoisonError::into_inner);
        rewritten.retain(|known| known.upto <= length);
        if self.sound.load(Ordering::Relaxed) > length {
            // What was rewritten has a part in it.
            self.sound = Arc::default();
            rewritten.clear();
        }
        let counted = self.counted.get_mut();
        let counted = counted.unwrap_or_else(PoisonError::into_inner);
        if counted.upto > length {
            *counted = Counts::default();
        }
        let weighed = self.weighed.get_mut();
        let weighed = weighed.unwrap_or_else(PoisonError::into_inner);
        if weighed.upto > length {
            *weighed = Weight::default();
        }
    }

    fn copy(&self) -> Arc<Transcript> {
        Arc::new(Transcript {
            messages: self.messages.clone(),
            sound: self.sound.clone(),
            counted: Mutex::new(*locked(&self.counted)),
            weighed: Mutex::default(),
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
    use crate::state::ids::SequentialIds;
    use crate::state::update::StateUpdate;
    use crate::state::{Overlay, ThreadState};

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

    /// Writes `!` behind texts of a kind, and notes at which places it looked; a text `undo` takes the first `!` away.
    #[derive(Debug)]
    struct Marking {
        kind: Kind,
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
            if message.kind() == self.kind {
                let form = Message::new(Fields::new(self.kind, message.text() + "!"));
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
                kind: Kind::Tool,
                looked: looked.clone(),
                first: None,
            })
        };
        let (human, ai, tool) = (Kind::Human, Kind::Ai, Kind::Tool);
        let mut transcript = Transcript::from(vec![message(human, "a"), message(ai, "b")]);
        assert!(transcript.rewritten(1, make).is_none());
        assert!(transcript.rewritten(1, make).is_none());
        assert_eq!(*locked(&looked), [0, 1]);

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
        assert_eq!(*locked(&looked), [0, 1, 2, 3, 4]);

        // While somebody reads it, it is not touched; and a message may get another form later.
        transcript.extend([message(ai, "undo")]);
        let again = transcript.rewritten(1, make).expect("changes");
        assert_eq!(texts(&made).join(""), "abc!de!");
        assert_eq!(texts(&again).join(""), "abcde!undo");
        drop((made, again));

        // Another rewriter begins anew, and the one before is not forgotten for it.
        locked(&looked).clear();
        transcript.rewritten(2, make);
        transcript.rewritten(1, make);
        assert_eq!(*locked(&looked), [0, 1, 2, 3, 4, 5]);
        for key in 3..10 {
            transcript.rewritten(key, make);
        }
        assert_eq!(locked(&transcript.rewritten).len(), KEPT_REWRITERS);
    }

    #[test]
    fn rewriters_of_each_other_s_transcripts_look_at_each_message_once() {
        let looked = Arc::new(Mutex::new(Vec::new()));
        let marking = |kind| -> Box<dyn Rewriter> {
            Box::new(Marking {
                kind,
                looked: looked.clone(),
                first: None,
            })
        };
        let both = |transcript: &Transcript| {
            let outer = transcript
                .rewritten(1, || marking(Kind::Human))
                .expect("changes");
            let inner = outer.rewritten(2, || marking(Kind::Tool)).expect("changes");
            inner.iter().map(Message::text).collect::<Vec<_>>().join("")
        };
        let message = |kind, text: &str| Message::new(Fields::new(kind, text));
        let mut transcript =
            Transcript::from(vec![message(Kind::Human, "a"), message(Kind::Tool, "b")]);
        assert_eq!(both(&transcript), "a!b!");
        locked(&looked).clear();
        transcript.extend([message(Kind::Human, "c"), message(Kind::Tool, "d")]);
        assert_eq!(both(&transcript), "a!b!c!d!");
        assert_eq!(*locked(&looked), [2, 3, 2, 3]);
    }

    #[test]
    fn what_is_known_of_messages_outlives_changes_behind_them() {
        let looked = Arc::new(Mutex::new(Vec::new()));
        let look = |transcript: &Transcript| {
            locked(&looked).clear();
            let make = || -> Box<dyn Rewriter> {
                Box::new(Marking {
                    kind: Kind::Human,
                    looked: looked.clone(),
                    first: None,
                })
            };
            let made = transcript.rewritten(1, make).expect("changes");
            let texts: Vec<_> = made.iter().map(Message::text).collect();
            (texts.join(" "), locked(&looked).clone())
        };
        let message = |id: &str, kind, text: &str| {
            let mut fields = Fields::new(kind, text);
            fields.id = Some(id.to_owned());
            Message::new(fields)
        };
        let mut ids = SequentialIds::default();
        let mut state = ThreadState::new();
        let mut overlay = Overlay::new();
        let mut stage = |state: &ThreadState, overlay: &mut Overlay, message: Message| {
            let update = StateUpdate::messages(vec![message]);
            state.stage(overlay, &[update], &mut ids).expect("staged");
        };
        stage(&state, &mut overlay, message("q1", Kind::Human, "one"));
        stage(&state, &mut overlay, message("a1", Kind::Ai, "first"));
        state.commit(std::mem::take(&mut overlay));
        let seen = look(&state.view(&overlay).transcript());
        assert_eq!(seen, ("one! first".to_owned(), vec![0, 1]));

        // The next question comes, and a hook writes it anew before the model is asked.
        stage(&state, &mut overlay, message("q2", Kind::Human, "two"));
        state.commit(std::mem::take(&mut overlay));
        stage(
            &state,
            &mut overlay,
            message("q2", Kind::Human, "two, and its files"),
        );
        let pending = state.view(&overlay).transcript();
        assert_eq!(
            look(&pending),
            ("one! first two, and its files!".to_owned(), vec![2])
        );
        pending.note_sound(2);
        drop(pending);

        // The reply is committed together with it.
        stage(&state, &mut overlay, message("a2", Kind::Ai, "second"));
        state.commit(std::mem::take(&mut overlay));
        let after = state.view(&overlay).transcript();
        assert_eq!(after.sound_prefix(), 2);
        assert_eq!(
            look(&after),
            ("one! first two, and its files! second".to_owned(), vec![3])
        );
        drop(after);

        // What was changed before what is known is looked at again, and with it all that follows.
        stage(&state, &mut overlay, message("a1", Kind::Ai, "1st"));
        let changed = state.view(&overlay).transcript();
        assert_eq!(changed.sound_prefix(), 0);
        assert_eq!(
            look(&changed),
            (
                "one! 1st two, and its files! second".to_owned(),
                vec![0, 1, 2, 3]
            )
        );
    }
}
