//! Pending changes of a message list, with the way back when a superstep fails.

use std::collections::{BTreeMap, HashMap};

use hashbrown::HashTable;

use super::messages::{Entry, MessageList, Target};
use super::thread::Slot;
use crate::protocol::message::Message;

/// In [`MessageOverlay::index`]: the id is gone.
const GONE: u32 = u32::MAX;

/// What changed against a committed list. Places below the number of its slots are places there, the others are places in
/// [`MessageOverlay::appended`].
#[derive(Debug, Default)]
pub(super) struct MessageOverlay {
    /// The committed messages are gone altogether.
    pub(super) reset: bool,
    /// Committed places that were replaced, or removed (`None`), in order.
    pub(super) changed: BTreeMap<u32, Option<Message>>,
    /// Number of removed places in `changed`.
    removed: usize,
    /// New messages; a hole where one was removed again.
    pub(super) appended: Vec<Option<Message>>,
    /// Number of messages in `appended`.
    pub(super) appended_living: usize,
    /// Ids whose last copy is in `appended` (its place there), or that are [`GONE`]. The message is there for its id.
    index: HashTable<(Message, u32)>,
    /// Places in `appended` of earlier copies of an id.
    earlier: HashMap<Box<str>, Vec<u32>>,
}

impl MessageOverlay {
    pub(super) fn is_empty(&self) -> bool {
        !self.reset && self.changed.is_empty() && self.appended_living == 0
    }

    /// Number of committed messages that are still there.
    pub(super) fn base_slots(&self, list: &MessageList<Slot>) -> usize {
        if self.reset {
            0
        } else {
            list.len() - self.removed
        }
    }

    /// The message at a place, unless it is a hole.
    pub(super) fn get<'a>(
        &'a self,
        list: &'a MessageList<Slot>,
        place: usize,
    ) -> Option<&'a Message> {
        if place >= list.slots() {
            return self.appended[place - list.slots()].as_ref();
        }
        if self.reset {
            return None;
        }
        if !self.changed.is_empty()
            && let Some(change) = self.changed.get(&(place as u32))
        {
            return change.as_ref();
        }
        list.get(place).map(|slot| &slot.message)
    }

    /// The place of the last message of this id.
    pub(super) fn find<'a>(
        &self,
        list: &MessageList<Slot>,
        hash: u64,
        id: impl Fn() -> &'a str,
    ) -> Option<usize> {
        match self.pending(hash, &id) {
            Some(GONE) => None,
            Some(place) => Some(list.slots() + place as usize),
            None if self.reset => None,
            None => list.find(hash, id),
        }
    }

    fn pending<'a>(&self, hash: u64, id: &impl Fn() -> &'a str) -> Option<u32> {
        if self.index.is_empty() {
            return None;
        }
        let found = self
            .index
            .find(hash, |(message, _)| Entry::id(message) == id());
        found.map(|(_, place)| *place)
    }
}

/// One thing to take back.
enum Undo {
    Push,
    Appended(u32, Option<Message>),
    Changed(u32, Option<Option<Message>>),
    Index(Message, Option<u32>),
    Earlier(Box<str>, Vec<u32>),
    EarlierPush(Box<str>),
    Cleared(Box<MessageOverlay>),
}

/// A superstep in the making: folds into an overlay and can take everything back.
pub(super) struct Staging<'a> {
    list: &'a MessageList<Slot>,
    overlay: &'a mut MessageOverlay,
    journal: Vec<Undo>,
    counts: (usize, usize),
}

impl<'a> Staging<'a> {
    pub(super) fn new(list: &'a MessageList<Slot>, overlay: &'a mut MessageOverlay) -> Self {
        let counts = (overlay.removed, overlay.appended_living);
        Staging {
            list,
            overlay,
            journal: Vec::new(),
            counts,
        }
    }

    /// Whether no message remains.
    pub(super) fn is_empty(&self) -> bool {
        self.overlay.base_slots(self.list) + self.overlay.appended_living == 0
    }

    /// Puts the overlay back to what it was when the staging began.
    pub(super) fn undo(self) {
        let Staging {
            overlay,
            journal,
            counts,
            ..
        } = self;
        for undo in journal.into_iter().rev() {
            match undo {
                Undo::Push => {
                    overlay.appended.pop();
                }
                Undo::Appended(place, old) => overlay.appended[place as usize] = old,
                Undo::Changed(place, Some(old)) => {
                    overlay.changed.insert(place, old);
                }
                Undo::Changed(place, None) => {
                    overlay.changed.remove(&place);
                }
                Undo::Index(message, old) => {
                    set_index(overlay, message, old);
                }
                Undo::Earlier(id, old) => {
                    overlay.earlier.insert(id, old);
                }
                Undo::EarlierPush(id) => {
                    if let Some(places) = overlay.earlier.get_mut(&id) {
                        places.pop();
                    }
                }
                Undo::Cleared(old) => *overlay = *old,
            }
        }
        (overlay.removed, overlay.appended_living) = counts;
    }

    fn change(&mut self, place: u32, change: Option<Message>) {
        let gone = change.is_none();
        let old = self.overlay.changed.insert(place, change);
        let was_gone = matches!(old, Some(None));
        self.overlay.removed += usize::from(gone);
        self.overlay.removed -= usize::from(was_gone);
        self.journal.push(Undo::Changed(place, old));
    }

    fn index(&mut self, message: Message, place: u32) {
        let key = message.clone();
        let old = set_index(self.overlay, message, Some(place));
        self.journal.push(Undo::Index(key, old));
    }
}

/// Sets or drops where an id is found; answers what was there.
fn set_index(overlay: &mut MessageOverlay, message: Message, place: Option<u32>) -> Option<u32> {
    let (hash, id) = (message.id_hash(), Entry::id(&message));
    let found = overlay
        .index
        .find_entry(hash, |(known, _)| Entry::id(known) == id);
    match (found, place) {
        (Ok(mut found), Some(place)) => Some(std::mem::replace(&mut found.get_mut().1, place)),
        (Ok(found), None) => Some(found.remove().0.1),
        (Err(absent), Some(place)) => {
            let rehash = |(known, _): &(Message, u32)| known.id_hash();
            absent
                .into_table()
                .insert_unique(hash, (message, place), rehash);
            None
        }
        (Err(_), None) => None,
    }
}

impl Target<Message> for Staging<'_> {
    fn find<'a>(&self, hash: u64, id: impl Fn() -> &'a str) -> Option<usize> {
        self.overlay.find(self.list, hash, id)
    }

    fn replace(&mut self, place: usize, message: Message) {
        // The same text again is no change: a checkpoint need not store it.
        let same = |old: &Message| old.same(&message) || old.json() == message.json();
        if self.overlay.get(self.list, place).is_some_and(same) {
            return;
        }
        match place.checked_sub(self.list.slots()) {
            None => self.change(place as u32, Some(message)),
            Some(place) => {
                let old = self.overlay.appended[place].replace(message);
                self.journal.push(Undo::Appended(place as u32, old));
            }
        }
    }

    fn append_new(&mut self, message: Message) {
        let place = u32::try_from(self.overlay.appended.len()).expect("fewer than 2^32 messages");
        self.index(message.clone(), place);
        self.overlay.appended.push(Some(message));
        self.overlay.appended_living += 1;
        self.journal.push(Undo::Push);
    }

    fn append(&mut self, message: Message) {
        let id = Entry::id(&message);
        if let Some(known) = self.overlay.pending(message.id_hash(), &|| id)
            && known != GONE
        {
            self.journal.push(Undo::EarlierPush(id.into()));
            let earlier = self.overlay.earlier.entry(id.into()).or_default();
            earlier.push(known);
        }
        self.append_new(message);
    }

    fn remove(&mut self, hash: u64, id: &str) {
        let pending = self.overlay.pending(hash, &|| id);
        let mut key = None;
        if let Some(place) = pending
            && place != GONE
        {
            let earlier = self.overlay.earlier.remove(id);
            let places = earlier.iter().flatten().copied().chain([place]);
            for place in places.collect::<Vec<_>>() {
                let old = self.overlay.appended[place as usize].take();
                self.overlay.appended_living -= usize::from(old.is_some());
                key = old.clone().or(key);
                self.journal.push(Undo::Appended(place, old));
            }
            if let Some(earlier) = earlier {
                self.journal.push(Undo::Earlier(id.into(), earlier));
            }
        }
        if !self.overlay.reset && pending.is_none() {
            let places: Vec<usize> = self.list.copies(hash, id).collect();
            for place in places {
                key = self
                    .list
                    .get(place)
                    .map(|slot| slot.message.clone())
                    .or(key);
                self.change(place as u32, None);
            }
        }
        if let Some(key) = key {
            self.index(key, GONE);
        }
    }

    fn clear(&mut self) {
        let old = std::mem::take(self.overlay);
        self.overlay.reset = true;
        self.journal.push(Undo::Cleared(Box::new(old)));
    }
}
