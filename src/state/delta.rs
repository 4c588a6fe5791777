//! What one checkpoint changed against its parent, and the replay of such changes.
//!
//! Messages are stored once. A checkpoint names them by [`Seq`], so that it never copies the list, and a fork is exact:
//! a delta belongs to the checkpoint that it leads to.

use hashbrown::HashMap;
use serde_json::Value;

use super::channels::Channel;
use crate::protocol::message::Message;

/// Number of one stored message within its thread. A replacement gets a new number; numbers are never reused.
pub type Seq = u64;

/// What changed between a checkpoint and its parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateDelta {
    /// Changes of `messages`.
    pub messages: MessageDelta,
    /// Every other channel that changed, with its new value; `None` when the channel is missing again.
    pub channels: Vec<(Channel, Option<Value>)>,
}

impl StateDelta {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.channels.is_empty()
    }
}

/// Changes of the message list, applied in the order of the members.
///
/// A message that is stored already may come back under its own number (a rollback does that); any other message has a
/// number that the thread never gave before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageDelta {
    /// Drop every message first.
    pub reset: bool,
    /// Messages that are gone.
    pub removed: Vec<Seq>,
    /// Messages replaced in place: the old number, the new number, the new message.
    pub replaced: Vec<(Seq, Seq, Message)>,
    /// Messages added at the end, in order.
    pub appended: Vec<(Seq, Message)>,
}

impl MessageDelta {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        !self.reset
            && self.removed.is_empty()
            && self.replaced.is_empty()
            && self.appended.is_empty()
    }
}

/// A whole state as a store gives it back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredState {
    /// Messages in order, each with its number.
    pub messages: Vec<(Seq, Message)>,
    /// Every other channel that has a value.
    pub channels: Vec<(Channel, Value)>,
    /// The number that the next new message of the *thread* gets. It is a fact of the thread, not of a checkpoint:
    /// a branch must not reuse numbers of its siblings.
    pub next_seq: Seq,
}

/// Builds a state from a base and the deltas that follow it, in time linear in both.
#[derive(Debug, Default)]
pub struct Replay {
    slots: Vec<Option<(Seq, Message)>>,
    /// Where each number stands in `slots`; made by the first delta that removes or replaces, since most only append.
    places: Option<HashMap<Seq, usize>>,
    gone: usize,
    channels: Vec<(Channel, Value)>,
}

impl Replay {
    /// Starts from `base`.
    pub fn from_base(base: StoredState) -> Self {
        Replay {
            slots: base.messages.into_iter().map(Some).collect(),
            channels: base.channels,
            ..Replay::default()
        }
    }

    /// Applies the next delta. Numbers that are not there are ignored: the caller has checked the chain.
    pub fn apply(&mut self, delta: StateDelta) {
        let StateDelta { messages, channels } = delta;
        if messages.reset {
            self.slots.clear();
            self.places = None;
            self.gone = 0;
        }
        for seq in messages.removed {
            if let Some(place) = self.places().remove(&seq) {
                self.slots[place] = None;
                self.gone += 1;
            }
        }
        for (old, new, message) in messages.replaced {
            if let Some(place) = self.places().remove(&old) {
                self.slots[place] = Some((new, message));
                self.places().insert(new, place);
            }
        }
        self.slots.reserve(messages.appended.len());
        for (seq, message) in messages.appended {
            if let Some(places) = &mut self.places {
                places.insert(seq, self.slots.len());
            }
            self.slots.push(Some((seq, message)));
        }
        for (channel, value) in channels {
            let place = self
                .channels
                .iter()
                .position(|(known, _)| *known == channel);
            match (place, value) {
                (Some(place), Some(value)) => self.channels[place].1 = value,
                (Some(place), None) => {
                    self.channels.remove(place);
                }
                (None, Some(value)) => self.channels.push((channel, value)),
                (None, None) => {}
            }
        }
    }

    /// How many messages the state has now.
    pub fn live(&self) -> usize {
        self.slots.len() - self.gone
    }

    /// The state that results, its channels in the order of their list. `next_seq` is the thread's, see
    /// [`StoredState::next_seq`].
    pub fn finish(mut self, next_seq: Seq) -> StoredState {
        self.channels.sort_by_key(|(channel, _)| *channel);
        StoredState {
            messages: self.slots.into_iter().flatten().collect(),
            channels: self.channels,
            next_seq,
        }
    }

    fn places(&mut self) -> &mut HashMap<Seq, usize> {
        let slots = &self.slots;
        self.places.get_or_insert_with(|| {
            let numbers = slots.iter().enumerate();
            numbers
                .filter_map(|(place, slot)| slot.as_ref().map(|(seq, _)| (*seq, place)))
                .collect()
        })
    }
}
