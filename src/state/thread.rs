//! A resident thread: committed state, and pending changes that are nothing until they are committed.
//!
//! A superstep is staged on an [`Overlay`], read through a [`View`], described as a [`StateDelta`] for the store, and
//! becomes the state by [`ThreadState::commit`] once it is saved. All of it costs O(write), whatever the thread holds.

use std::sync::Arc;

use serde_json::Value;

use super::channels::{CHANNELS, Channel};
use super::coerce;
use super::delta::{MessageDelta, Seq, StateDelta, StoredState};
use super::ids::IdSource;
use super::messages::{
    Entry, MessageList, Target, allocate_ids, apply_coerced, apply_write, null_write,
};
use super::overlay::{MessageOverlay, Staging};
use super::transcript::{Newest, Transcript};
use super::update::{StateUpdate, Write};
use super::values::{ChannelOverlay, ChannelValues};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{Message, hash_id};

/// A committed message and its number.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) seq: Seq,
    pub(super) message: Message,
}

impl Entry for Slot {
    fn id(&self) -> &str {
        Entry::id(&self.message)
    }
    fn id_hash(&self) -> u64 {
        self.message.id_hash()
    }
    fn is_remove(&self) -> bool {
        self.message.is_remove()
    }
}

/// The committed state of one thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadState {
    messages: MessageList<Slot>,
    channels: ChannelValues,
    next_seq: Seq,
    /// Counts commits, so that an overlay is never used on another state than its own.
    version: u64,
    /// See [`View::transcript`].
    transcript: Newest,
}

/// Changes on top of a [`ThreadState`] that are not committed. It belongs to the state it was first staged on, as it was
/// then.
#[derive(Debug, Default)]
pub struct Overlay {
    messages: MessageOverlay,
    channels: ChannelOverlay,
    base: Option<u64>,
}

impl Overlay {
    /// No changes.
    pub fn new() -> Self {
        Overlay::default()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.channels.is_empty()
    }
}

impl ThreadState {
    /// A thread without any state.
    pub fn new() -> Self {
        ThreadState::default()
    }

    /// A thread as a store gives it back. O(state), once.
    pub fn restore(stored: StoredState) -> Self {
        let slots = stored
            .messages
            .into_iter()
            .map(|(seq, message)| Slot { seq, message });
        let messages = MessageList::from_entries(slots.collect());
        ThreadState {
            messages,
            channels: ChannelValues::restore(stored.channels),
            next_seq: stored.next_seq,
            version: 0,
            transcript: Newest::default(),
        }
    }

    /// The number that the next new message gets.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Stages one superstep: all updates together, in order, seeing what `overlay` holds already.
    ///
    /// `messages` is coerced, gets its missing ids in order and is folded write by write; an overwrite of `messages` makes
    /// all its other writes of the step void (LG-13). Typed messages are not coerced. O(step).
    ///
    /// # Errors
    /// The codes of the reducers. Paths begin with the place of the update and the channel: `/1/messages/0/content`. The
    /// overlay and `ids` are then as before. [`ErrorCode::Internal`] when the overlay belongs to another state.
    pub fn stage(
        &self,
        overlay: &mut Overlay,
        step: &[StateUpdate],
        ids: &mut dyn IdSource,
    ) -> Result<(), Error> {
        self.check_base(overlay)?;
        let mark = ids.mark();
        let mut staging = Staging::new(&self.messages, &mut overlay.messages);
        let staged = stage_messages(&mut staging, step, ids).and_then(|()| {
            self.channels
                .stage(&mut overlay.channels, &other_writes(step))
                .map_err(|error| {
                    let place = self.failing_update(&overlay.channels, step);
                    error.below(&format!("/{place}"))
                })
        });
        match staged {
            Ok(()) => {
                overlay.base = Some(self.version);
                Ok(())
            }
            Err(error) => {
                staging.undo();
                ids.rewind(mark);
                Err(error)
            }
        }
    }

    /// Stages one value past reducers and supersteps: everything else stays as it is, ephemeral channels too. `None` empties
    /// the channel. Not for `messages`. O(1).
    ///
    /// Source: DeerFlow's goal writer, GOAL-20.
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] when the overlay belongs to another state.
    pub fn put(
        &self,
        overlay: &mut Overlay,
        channel: Channel,
        value: Option<Value>,
    ) -> Result<(), Error> {
        self.check_base(overlay)?;
        match value {
            Some(value) => overlay.channels.put(channel, value),
            None => self.channels.clear(&mut overlay.channels, channel),
        }
        overlay.base = Some(self.version);
        Ok(())
    }

    /// The state as it reads with `overlay` on top.
    pub fn view<'a>(&'a self, overlay: &'a Overlay) -> View<'a> {
        View {
            state: self,
            overlay,
        }
    }

    /// What a checkpoint of `overlay` stores. O(changes).
    pub fn delta(&self, overlay: &Overlay) -> StateDelta {
        let changes = &overlay.messages;
        let mut next = self.next_seq..;
        let mut number = || next.next().unwrap_or(Seq::MAX);
        let mut messages = MessageDelta {
            reset: changes.reset,
            ..MessageDelta::default()
        };
        for (place, change) in &changes.changed {
            let Some(old) = self.messages.get(*place as usize) else {
                continue;
            };
            match change {
                None => messages.removed.push(old.seq),
                Some(message) => messages.replaced.push((old.seq, number(), message.clone())),
            }
        }
        messages.appended = changes
            .appended
            .iter()
            .flatten()
            .map(|message| (number(), message.clone()))
            .collect();
        StateDelta {
            messages,
            channels: self.channels.changes(&overlay.channels),
        }
    }

    /// Makes the changes of `overlay` the state. The numbers are those that [`ThreadState::delta`] gave. Amortised
    /// O(changes).
    ///
    /// # Panics
    /// When `overlay` was staged on another state: a broken invariant of the caller, never an effect of input.
    pub fn commit(&mut self, overlay: Overlay) {
        assert!(
            overlay.base.is_none_or(|version| version == self.version),
            "pending changes belong to the state they were staged on"
        );
        self.version += 1;
        self.channels.commit(overlay.channels);
        let changes = overlay.messages;
        if !changes.reset && changes.changed.is_empty() {
            self.transcript.append(changes.appended.iter().flatten());
        } else {
            self.transcript.change();
        }
        if changes.reset {
            self.messages.clear();
        }
        for (place, change) in changes.changed {
            let place = place as usize;
            match change {
                Some(message) => {
                    let seq = self.take_seq();
                    self.messages.replace(place, Slot { seq, message });
                }
                None => {
                    // All copies of an id go together, so the first of them takes the others along.
                    if let Some(slot) = self.messages.get(place) {
                        let message = slot.message.clone();
                        self.messages.remove(message.id_hash(), Entry::id(&message));
                    }
                }
            }
        }
        for message in changes.appended.into_iter().flatten() {
            let seq = self.take_seq();
            self.messages.append(Slot { seq, message });
        }
        self.messages.compact();
    }

    fn check_base(&self, overlay: &Overlay) -> Result<(), Error> {
        if overlay.base.is_some_and(|version| version != self.version) {
            return Err(Error::new(
                ErrorCode::Internal,
                "pending changes were staged on another state",
            ));
        }
        Ok(())
    }

    /// The update at which a failed step fails: the first that cannot be staged after those before it.
    fn failing_update(&self, overlay: &ChannelOverlay, step: &[StateUpdate]) -> usize {
        let fails = |place: &usize| {
            let writes = other_writes(&step[..=*place]);
            self.channels.stage(&mut overlay.clone(), &writes).is_err()
        };
        (0..step.len()).find(fails).unwrap_or_default()
    }

    fn take_seq(&mut self) -> Seq {
        let seq = self.next_seq;
        self.next_seq += 1;
        seq
    }
}

/// The writes of one superstep to all channels but `messages`.
fn other_writes(step: &[StateUpdate]) -> Vec<(Channel, &Write, Option<&str>)> {
    let writes = step.iter().flat_map(StateUpdate::entries);
    writes
        .filter(|(channel, ..)| *channel != Channel::Messages)
        .collect()
}

/// Folds the `messages` writes of one superstep.
fn stage_messages(
    staging: &mut Staging<'_>,
    step: &[StateUpdate],
    ids: &mut dyn IdSource,
) -> Result<(), Error> {
    let writes = || {
        step.iter().enumerate().flat_map(|(place, update)| {
            let of_messages = |(channel, _): &&(Channel, Write)| *channel == Channel::Messages;
            let writes = update.writes.iter().filter(of_messages);
            writes.map(move |(_, write)| (place, write))
        })
    };
    let mut overwrites = writes().filter(|(_, write)| matches!(write, Write::Overwrite(_)));
    if let Some((place, Write::Overwrite(value))) = overwrites.next() {
        if let Some((second, _)) = overwrites.next() {
            return Err(Error::at(
                ErrorCode::ConflictingWrites,
                format!("/{second}/messages"),
                "one step can overwrite messages only once",
            ));
        }
        let mut messages = match value {
            Value::Null => Vec::new(),
            value => coerce::write(value).map_err(|error| below(error, place))?,
        };
        allocate_ids(&mut messages, ids);
        staging.clear();
        for message in messages {
            staging.append(message);
        }
        return Ok(());
    }
    for (place, write) in writes() {
        let folded = match write {
            Write::Messages(messages) => {
                let mut messages = messages.clone();
                allocate_ids(&mut messages, ids);
                apply_write(staging, messages)
            }
            Write::Value(Value::Null) => Err(null_write(staging.is_empty())),
            Write::Value(value) | Write::Overwrite(value) => {
                coerce::write(value).and_then(|mut messages| {
                    allocate_ids(&mut messages, ids);
                    apply_coerced(staging, messages, value)
                })
            }
        };
        folded.map_err(|error| below(error, place))?;
    }
    Ok(())
}

fn below(error: Error, update: usize) -> Error {
    error.below(&format!("/{update}/messages"))
}

/// What to put into a state's JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Only these channels; all when `None`.
    pub channels: Option<Vec<Channel>>,
    /// Only this many messages, from the end; all when `None`.
    pub last_messages: Option<usize>,
}

/// A state with pending changes on top, read only. Reads touch what they return and no more.
#[derive(Clone, Copy)]
pub struct View<'a> {
    state: &'a ThreadState,
    overlay: &'a Overlay,
}

impl<'a> View<'a> {
    /// Messages in order.
    pub fn messages(&self) -> Messages<'a> {
        let changes = &self.overlay.messages;
        let base = changes.base_slots(&self.state.messages);
        Messages {
            list: &self.state.messages,
            changes,
            front: if changes.reset {
                self.state.messages.slots()
            } else {
                0
            },
            back: self.state.messages.slots() + changes.appended.len(),
            left: base + changes.appended_living,
        }
    }

    /// The messages that a model may see, in order: all but removals that a replace-all left in the list. O(1) when
    /// nothing is pending and the last commits only appended; else it compares references of messages, and what is known of
    /// the transcript before stays known as far as the two are the same.
    pub fn transcript(&self) -> Arc<Transcript> {
        match self.overlay.messages.is_empty() {
            true => self.state.transcript.of_committed(self.messages()),
            false => self.state.transcript.of_pending(self.messages()),
        }
    }

    /// Number of messages. O(1).
    pub fn len(&self) -> usize {
        let changes = &self.overlay.messages;
        changes.base_slots(&self.state.messages) + changes.appended_living
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest message.
    pub fn last(&self) -> Option<&'a Message> {
        self.messages().next_back()
    }

    /// The last `n` messages, in order. O(n).
    pub fn last_n(&self, n: usize) -> Vec<&'a Message> {
        let mut last: Vec<_> = self.messages().rev().take(n).collect();
        last.reverse();
        last
    }

    /// The message of this id; the last copy when there are several.
    pub fn by_id(&self, id: &str) -> Option<&'a Message> {
        let (list, changes) = (&self.state.messages, &self.overlay.messages);
        let place = changes.find(list, hash_id(id), || id)?;
        changes.get(list, place)
    }

    /// The value of a channel other than `messages`; `None` while it is missing.
    pub fn channel(&self, channel: Channel) -> Option<&'a Value> {
        let ThreadState { channels, .. } = self.state;
        channels.get(&self.overlay.channels, channel)
    }

    /// Appends the state as one JSON object, channels in the order of [`CHANNELS`]. Missing channels are left out;
    /// `messages` is there, and empty when there is none.
    pub fn write_json(&self, out: &mut String, selection: &Selection) {
        out.push('{');
        let mut first = true;
        for (channel, name, _) in CHANNELS {
            let wanted = selection.channels.as_ref();
            if wanted.is_some_and(|wanted| !wanted.contains(channel)) {
                continue;
            }
            let value = self.channel(*channel);
            if value.is_none() && *channel != Channel::Messages {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            out.push('"');
            out.push_str(name);
            out.push_str("\":");
            match value {
                Some(value) if *channel != Channel::Messages => {
                    out.push_str(&serde_json::to_string(value).unwrap_or_default());
                }
                _ => self.write_messages(out, selection.last_messages),
            }
        }
        out.push('}');
    }

    fn write_messages(&self, out: &mut String, last: Option<usize>) {
        let write = |out: &mut String, messages: &mut dyn Iterator<Item = &'a Message>| {
            out.push('[');
            for (place, message) in messages.enumerate() {
                if place > 0 {
                    out.push(',');
                }
                out.push_str(message.json());
            }
            out.push(']');
        };
        match last {
            None => write(out, &mut self.messages()),
            Some(n) => write(out, &mut self.last_n(n).into_iter()),
        }
    }
}

/// Messages of a [`View`], in order, from both ends.
#[derive(Clone)]
pub struct Messages<'a> {
    list: &'a MessageList<Slot>,
    changes: &'a MessageOverlay,
    /// Places: those of the committed list, then those of the appended messages.
    front: usize,
    back: usize,
    left: usize,
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a Message;

    fn next(&mut self) -> Option<&'a Message> {
        while self.front < self.back {
            let found = self.changes.get(self.list, self.front);
            self.front += 1;
            if found.is_some() {
                self.left -= 1;
                return found;
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Messages<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        while self.front < self.back {
            self.back -= 1;
            let found = self.changes.get(self.list, self.back);
            if found.is_some() {
                self.left -= 1;
                return found;
            }
        }
        None
    }
}

impl ExactSizeIterator for Messages<'_> {}
