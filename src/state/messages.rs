//! The message fold: how writes combine with a list of messages, in time linear in both.
//!
//! The rules are those of LangGraph's public `add_messages`, applied once per write in order (DeerFlow
//! `merge_message_writes`, ST-1, ST-2). They live in [`apply_write`], once; a [`Target`] is a list they work on: a plain
//! [`MessageList`], or the pending changes over a resident one (`thread.rs`).

use std::collections::{HashMap, HashSet};

use hashbrown::{HashTable, hash_table};
use serde_json::Value;

use super::coerce;
use super::ids::IdSource;
use super::python;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json;
use crate::protocol::message::{Kind, Message, REMOVE_ALL_MESSAGES, hash_id};

/// What the fold has to know of a message. Every entry has an id when it reaches the fold.
pub trait Entry {
    /// Id within the thread.
    fn id(&self) -> &str;
    /// `hash_id` of the id.
    fn id_hash(&self) -> u64;
    /// Whether it is a removal.
    fn is_remove(&self) -> bool;
}

impl Entry for Message {
    fn id(&self) -> &str {
        Message::id(self).unwrap_or_default()
    }
    fn id_hash(&self) -> u64 {
        Message::id_hash(self)
    }
    fn is_remove(&self) -> bool {
        self.kind() == Kind::Remove
    }
}

/// A list that writes are folded into. Places stay valid until the list is cleared; hashes are those of `hash_id`.
pub trait Target<E: Entry> {
    /// Place of the last message of this id. The id is asked for only when a hash is met: reading it means reading the
    /// text of the message, which lies somewhere else.
    fn find<'a>(&self, hash: u64, id: impl Fn() -> &'a str) -> Option<usize>;
    /// Puts a message of the same id at a place.
    fn replace(&mut self, place: usize, entry: E);
    /// Adds at the end a message whose id is not there.
    fn append_new(&mut self, entry: E);
    /// Adds at the end. The id may be there already; the new copy is then the one that is found.
    fn append(&mut self, entry: E);
    /// Drops every message of this id.
    fn remove(&mut self, hash: u64, id: &str);
    /// Drops everything.
    fn clear(&mut self);
}

/// Folds one write into `target`: replacement in place by id, removal at the end of the write, `REMOVE_ALL`.
///
/// A removal takes effect when the write ends, so that a later message of the id in the same write takes the old
/// place. After the last `REMOVE_ALL` the rest of the write is kept as it is, copies and removals included. O(write).
///
/// # Errors
/// [`ErrorCode::UnknownMessageId`] at `/<place in the write>`; `target` is then part-way and must be thrown away.
///
/// Source: LangGraph `add_messages`, spec 8.5 and 8.6.
pub fn apply_write<E: Entry, T: Target<E>>(target: &mut T, mut write: Vec<E>) -> Result<(), Error> {
    let last_reset = write
        .iter()
        .rposition(|entry| entry.is_remove() && entry.id() == REMOVE_ALL_MESSAGES);
    if let Some(place) = last_reset {
        target.clear();
        for entry in write.drain(place + 1..) {
            target.append(entry);
        }
        return Ok(());
    }
    let mut doomed: HashSet<Box<str>> = HashSet::new();
    for (place, entry) in write.into_iter().enumerate() {
        let known = target.find(entry.id_hash(), || entry.id());
        match (known, entry.is_remove()) {
            (Some(_), true) => {
                doomed.insert(entry.id().into());
            }
            (Some(at), false) => {
                if !doomed.is_empty() {
                    doomed.remove(entry.id());
                }
                target.replace(at, entry);
            }
            (None, false) => target.append_new(entry),
            (None, true) => return Err(unknown_id(entry.id()).below(&format!("/{place}"))),
        }
    }
    for id in doomed {
        target.remove(hash_id(&id), &id);
    }
    Ok(())
}

/// The failure of a null write. The text is the reference's, which the contract names: it tells whether any message was
/// there, not which argument was null.
pub fn null_write(list_is_empty: bool) -> Error {
    let side = if list_is_empty { "right" } else { "left" };
    Error::new(
        ErrorCode::NullWrite,
        format!(
            "Must specify non-null arguments for both 'left' and 'right'. Only received: '{side}'."
        ),
    )
}

/// The failure of a removal of an id that is not there. The text is the reference's, which the contract names.
fn unknown_id(id: &str) -> Error {
    Error::new(
        ErrorCode::UnknownMessageId,
        format!("Attempting to delete a message with an ID that doesn't exist ('{id}')"),
    )
}

/// Gives ids, in order, to the messages that have none.
pub fn allocate_ids(messages: &mut [Message], ids: &mut dyn IdSource) {
    for message in messages {
        if !message.has_id() {
            *message = message.with_id(&ids.next_id());
        }
    }
}

/// An entry of the index. Half of the id's hash stands beside the place, so that neither growing nor most of looking up
/// reads the messages, which lie all over the memory.
#[derive(Clone, Copy, Debug)]
struct Indexed {
    place: u32,
    half: u32,
}

impl Indexed {
    fn new(place: u32, hash: u64) -> Self {
        let half = hash as u32;
        Indexed { place, half }
    }

    /// The table's hash: the half spread over 64 bits, since the table looks at both ends.
    fn spread(&self) -> u64 {
        u64::from(self.half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A list of messages with an index from id to place.
///
/// A removed message leaves a hole, so that places stay what they are; holes are closed when there are more of them than
/// messages.
#[derive(Clone, Debug)]
pub struct MessageList<E> {
    slots: Vec<Option<E>>,
    /// Places of the last copy of each id; the ids are read from the slots.
    index: HashTable<Indexed>,
    /// Places of the earlier copies of ids that occur more than once.
    earlier: HashMap<Box<str>, Vec<u32>>,
    living: usize,
}

impl<E> Default for MessageList<E> {
    fn default() -> Self {
        MessageList {
            slots: Vec::new(),
            index: HashTable::new(),
            earlier: HashMap::new(),
            living: 0,
        }
    }
}

impl<E: Entry> MessageList<E> {
    /// An empty list.
    pub fn new() -> Self {
        MessageList::default()
    }

    /// Makes room for more messages.
    pub fn reserve(&mut self, messages: usize) {
        self.slots.reserve(messages);
        self.index.reserve(messages, Indexed::spread);
    }

    /// A list of messages that are state, not commands: copies and removals stay.
    pub fn from_entries(entries: Vec<E>) -> Self {
        let living = entries.len();
        let mut list = MessageList {
            living,
            // Where `Option<E>` is as large as `E`, this takes over the memory.
            slots: entries.into_iter().map(Some).collect(),
            ..MessageList::default()
        };
        list.index.reserve(living, Indexed::spread);
        for place in 0..list.next_place() {
            list.index_last(place);
        }
        list
    }

    fn next_place(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("a thread has fewer than 2^32 messages")
    }

    /// Indexes the message at `place`, which is the last of its id.
    fn index_last(&mut self, place: u32) {
        let slots = &self.slots;
        let Some(entry) = slots[place as usize].as_ref() else {
            return;
        };
        let (id, new) = (entry.id(), Indexed::new(place, entry.id_hash()));
        let found = self.index.entry(
            new.spread(),
            |known| is_at(slots, known, new.half, || id),
            Indexed::spread,
        );
        match found {
            hash_table::Entry::Vacant(vacant) => {
                vacant.insert(new);
            }
            hash_table::Entry::Occupied(mut known) => {
                let earlier = self.earlier.entry(id.into()).or_default();
                earlier.push(std::mem::replace(&mut known.get_mut().place, place));
            }
        }
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.living
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.living == 0
    }

    /// Number of slots, holes included: places are below it.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The message at a place.
    pub(super) fn get(&self, place: usize) -> Option<&E> {
        self.slots.get(place)?.as_ref()
    }

    /// Places of all copies of an id.
    pub(super) fn copies(&self, hash: u64, id: &str) -> impl Iterator<Item = usize> {
        let last = self.find(hash, || id);
        let earlier = match last {
            Some(_) if !self.earlier.is_empty() => self.earlier.get(id),
            _ => None,
        };
        let earlier = earlier.into_iter().flatten().map(|place| *place as usize);
        earlier.chain(last)
    }

    /// Messages in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &E> {
        self.slots.iter().flatten()
    }

    /// Messages in order, owned.
    pub fn into_entries(self) -> Vec<E> {
        // `Option<E>` is as large as `E` here, so that the standard library does this in the memory of the slots.
        self.slots.into_iter().flatten().collect()
    }

    /// Closes the holes when they outnumber the messages: amortised O(1) per removal. Places change.
    pub(super) fn compact(&mut self) {
        while let Some(None) = self.slots.last() {
            self.slots.pop();
        }
        if self.slots.len() - self.living <= self.living.max(32) {
            return;
        }
        let old = std::mem::take(self);
        *self = MessageList::from_entries(old.into_entries());
    }
}

/// Whether an entry of the index is that of an id, whose hash has this half.
fn is_at<'a, E: Entry>(
    slots: &[Option<E>],
    known: &Indexed,
    half: u32,
    id: impl Fn() -> &'a str,
) -> bool {
    known.half == half
        && slots[known.place as usize]
            .as_ref()
            .is_some_and(|entry| entry.id() == id())
}

impl<E: Entry> Target<E> for MessageList<E> {
    fn find<'a>(&self, hash: u64, id: impl Fn() -> &'a str) -> Option<usize> {
        let sought = Indexed::new(0, hash);
        let found = self.index.find(sought.spread(), |known| {
            is_at(&self.slots, known, sought.half, &id)
        });
        found.map(|known| known.place as usize)
    }

    fn replace(&mut self, place: usize, entry: E) {
        self.slots[place] = Some(entry);
    }

    fn append_new(&mut self, entry: E) {
        let place = self.next_place();
        let new = Indexed::new(place, entry.id_hash());
        self.index.insert_unique(new.spread(), new, Indexed::spread);
        self.slots.push(Some(entry));
        self.living += 1;
    }

    fn append(&mut self, entry: E) {
        let place = self.next_place();
        self.slots.push(Some(entry));
        self.living += 1;
        self.index_last(place);
    }

    fn remove(&mut self, hash: u64, id: &str) {
        let sought = Indexed::new(0, hash);
        let found = self.index.find_entry(sought.spread(), |known| {
            is_at(&self.slots, known, sought.half, || id)
        });
        let Ok(found) = found else {
            return;
        };
        let (last, _) = found.remove();
        self.slots[last.place as usize] = None;
        self.living -= 1;
        if self.earlier.is_empty() {
            return;
        }
        for place in self.earlier.remove(id).into_iter().flatten() {
            self.slots[place as usize] = None;
            self.living -= 1;
        }
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.index.clear();
        self.earlier.clear();
        self.living = 0;
    }
}

/// LangGraph's `add_messages(left, right)` on JSON values of any accepted form: the typed result, ids given in order.
///
/// # Errors
/// [`ErrorCode::NullWrite`] when an argument is null, those of [`coerce::write()`], and
/// [`ErrorCode::UnknownMessageId`]. Paths are below `/left` or `/right`.
///
/// Source: spec 8.
pub fn add_messages(
    left: &Value,
    right: &Value,
    ids: &mut dyn IdSource,
) -> Result<Vec<Message>, Error> {
    if left.is_null() || right.is_null() {
        return Err(null_write(!python::truthy(left)));
    }
    let mark = ids.mark();
    let folded = (|| {
        let mut state = coerce::write(left).map_err(|error| error.below("/left"))?;
        let mut write = coerce::write(right).map_err(|error| error.below("/right"))?;
        allocate_ids(&mut state, ids);
        allocate_ids(&mut write, ids);
        let mut list = MessageList::from_entries(state);
        apply_coerced(&mut list, write, right).map_err(|error| error.below("/right"))?;
        Ok(list.into_entries())
    })();
    folded.inspect_err(|_| ids.rewind(mark))
}

/// DeerFlow's `merge_message_writes(state, writes)` on JSON values of any accepted form: every write is folded in order, as
/// [`add_messages`] would fold it, in time linear in all of them.
///
/// Without writes the state is answered untouched: not coerced, without ids, a state that is no list walked over as Python's
/// `list()` does.
///
/// # Errors
/// As [`add_messages`], with paths below `/state` and `/writes/<n>`. A null state is no message
/// ([`ErrorCode::NotAMessage`]), or no list without writes ([`ErrorCode::WrongType`]).
///
/// Source: DeerFlow `thread_state.py::merge_message_writes`, spec 9.
pub fn merge_message_writes(
    state: &Value,
    writes: &[Value],
    ids: &mut dyn IdSource,
) -> Result<Value, Error> {
    match writes {
        [] => return untouched(state),
        [Value::Null, ..] => {
            return Err(null_write(!python::truthy(state)).below("/writes/0"));
        }
        _ => {}
    }
    let mark = ids.mark();
    let folded = (|| {
        let mut state = coerce::write(state).map_err(|error| error.below("/state"))?;
        allocate_ids(&mut state, ids);
        let mut list = MessageList::from_entries(state);
        for (place, write) in writes.iter().enumerate() {
            let folded = match write {
                Value::Null => Err(null_write(list.is_empty())),
                write => coerce::write(write).and_then(|mut messages| {
                    allocate_ids(&mut messages, ids);
                    apply_coerced(&mut list, messages, write)
                }),
            };
            folded.map_err(|error| error.below(&format!("/writes/{place}")))?;
        }
        let canonical = list.iter().map(|message| json::decode_own(message.json()));
        let canonical: Result<Vec<Value>, _> = canonical.collect();
        canonical.map(Value::Array).map_err(|error| {
            // The text was written by us.
            Error::new(ErrorCode::Internal, error.to_string())
        })
    })();
    folded.inspect_err(|_| ids.rewind(mark))
}

/// Python's `list(state)`.
pub(super) fn untouched(state: &Value) -> Result<Value, Error> {
    match state {
        Value::Array(_) => Ok(state.clone()),
        Value::Object(members) => Ok(members.keys().cloned().map(Value::String).collect()),
        Value::String(text) => Ok(text
            .chars()
            .map(|char| Value::from(char.to_string()))
            .collect()),
        _ => Err(Error::new(ErrorCode::WrongType, "the state must be a list")),
    }
}

/// Folds typed messages: nothing is coerced, missing ids are given in order.
///
/// # Errors
/// [`ErrorCode::NullWrite`] for a write that is `None`, [`ErrorCode::UnknownMessageId`]; paths begin with the place of the
/// write.
pub fn fold_messages(
    state: Vec<Message>,
    writes: Vec<Option<Vec<Message>>>,
    ids: &mut dyn IdSource,
) -> Result<Vec<Message>, Error> {
    let mark = ids.mark();
    let mut state = state;
    state.reserve(writes.len());
    allocate_ids(&mut state, ids);
    let mut list = MessageList::from_entries(state);
    list.reserve(writes.len());
    for (place, write) in writes.into_iter().enumerate() {
        let folded = match write {
            None => Err(null_write(list.is_empty())),
            Some(mut write) => {
                allocate_ids(&mut write, ids);
                apply_write(&mut list, write)
            }
        };
        if let Err(error) = folded {
            ids.rewind(mark);
            return Err(error.below(&format!("/{place}")));
        }
    }
    Ok(list.into_entries())
}

/// [`apply_write`] for a write that was coerced from `source`: one that is no list has no places in its paths.
pub(super) fn apply_coerced<T: Target<Message>>(
    target: &mut T,
    write: Vec<Message>,
    source: &Value,
) -> Result<(), Error> {
    apply_write(target, write).map_err(|mut error| {
        if !source.is_array() {
            error.path = None;
        }
        error
    })
}
