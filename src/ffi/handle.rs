//! Handles: 53 bits of kind, generation and slot, checked at each use.
//!
//! `kind (5 bits) | generation (24) | slot (24)`, so that a JavaScript Number and a JSON document hold one exactly. One
//! table per kind, in shards with a lock each; a look-up takes its shard's read lock and clones what it finds, so that
//! the object lives on while a call uses it, whoever frees the handle meanwhile.

use std::ops::Deref;
use std::sync::{PoisonError, RwLock};

use super::shard;
use super::slots::{Key, Slots};
use crate::protocol::error::{Error, ErrorCode};
use crate::runtime::{Assembly, Run, Runtime, Subagents, Thread};

const SLOT_BITS: u32 = 24;
const GENERATION_BITS: u32 = 24;
const KIND_SHIFT: u32 = SLOT_BITS + GENERATION_BITS;
/// Each kind's table has this many locks.
const SHARDS: usize = 16;
/// Slots per shard: all slot numbers, divided.
const SLOTS_PER_SHARD: u32 = (1 << SLOT_BITS) / SHARDS as u32;

/// What a handle names. The number is the top five bits of the handle; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// `fawn_runtime`
    Runtime = 1,
    /// `fawn_assembly`
    Assembly = 2,
    /// `fawn_thread`
    Thread = 3,
    /// `fawn_queue`
    Queue = 4,
    /// `fawn_run`
    Run = 5,
    /// `fawn_subagents`
    Subagents = 6,
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::Runtime,
        Kind::Assembly,
        Kind::Thread,
        Kind::Queue,
        Kind::Run,
        Kind::Subagents,
    ];

    const fn name(self) -> &'static str {
        match self {
            Kind::Runtime => "runtime",
            Kind::Assembly => "assembly",
            Kind::Thread => "thread",
            Kind::Queue => "queue",
            Kind::Run => "run",
            Kind::Subagents => "subagents",
        }
    }
}

/// An object that a handle can name. Cloning it clones a reference.
pub(super) trait Object: Clone + Send + Sync + 'static {
    /// Its kind.
    const KIND: Kind;
    /// Where all objects of the kind are.
    fn table() -> &'static Table<Self>;
}

macro_rules! objects {
    ($($kind:ident: $object:ty;)+) => {
        $(impl Object for $object {
            const KIND: Kind = Kind::$kind;
            fn table() -> &'static Table<Self> {
                static TABLE: Table<$object> = Table::new();
                &TABLE
            }
        })+
    };
}

objects! {
    Runtime: Runtime;
    Assembly: Assembly;
    Thread: Thread;
    Queue: super::queue::Queue;
    Run: Run;
    Subagents: Subagents;
}

/// An object and the handle of the runtime it was made with (0 for a runtime itself).
#[derive(Clone)]
pub(super) struct Held<T> {
    object: T,
    /// The handle of its runtime, which may have been freed since.
    pub(super) runtime: u64,
}

impl<T> Held<T> {
    /// An object made with the runtime behind the handle `runtime`.
    pub(super) fn new(object: T, runtime: u64) -> Self {
        Held { object, runtime }
    }
}

impl<T> Deref for Held<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.object
    }
}

/// All objects of one kind.
pub(super) struct Table<T> {
    shards: [Shard<T>; SHARDS],
}

/// A part of a table. Aligned so that two locks never share a cache line, nor the pair that is fetched together.
#[repr(align(128))]
struct Shard<T>(RwLock<Slots<Held<T>, GENERATION_BITS>>);

impl<T> Table<T> {
    const fn new() -> Self {
        Table {
            shards: [const { Shard(RwLock::new(Slots::new())) }; SHARDS],
        }
    }
}

/// A handle taken apart.
struct Parts {
    shard: usize,
    key: Key,
}

/// The seed of one shard's generations.
fn seed_of(kind: Kind, shard: usize) -> u64 {
    shard::seed() ^ ((kind as u64) << 56) ^ ((shard as u64) << 48)
}

fn join(kind: Kind, shard: usize, key: Key) -> u64 {
    let slot = u64::from(key.slot) * SHARDS as u64 + shard as u64;
    (kind as u64) << KIND_SHIFT | u64::from(key.generation) << SLOT_BITS | slot
}

/// Takes a handle apart that should name an object of `kind`.
fn split(kind: Kind, handle: u64) -> Result<Parts, Error> {
    let named = handle >> KIND_SHIFT;
    if named != kind as u64 {
        let what = match Kind::ALL.iter().find(|known| **known as u64 == named) {
            _ if handle == 0 => "0, which is none".to_owned(),
            Some(Kind::Subagents) => "one of a subagents object".to_owned(),
            Some(Kind::Assembly) => "one of an assembly".to_owned(),
            Some(other) => format!("one of a {}", other.name()),
            None => "no handle of this library".to_owned(),
        };
        return Err(Error::new(
            ErrorCode::Handle,
            format!(
                "a handle of kind {:?} is needed, this is {what}",
                kind.name()
            ),
        ));
    }
    let slot = (handle & ((1 << SLOT_BITS) - 1)) as u32;
    Ok(Parts {
        shard: slot as usize % SHARDS,
        key: Key {
            slot: slot / SHARDS as u32,
            generation: (handle >> SLOT_BITS) as u32 & ((1 << GENERATION_BITS) - 1),
        },
    })
}

/// Gives an object its handle.
///
/// # Errors
/// [`ErrorCode::Internal`] if every slot of the kind is taken.
pub(super) fn insert<T: Object>(held: Held<T>) -> Result<u64, Error> {
    let mut held = held;
    let first = shard::of_this_thread();
    for offset in 0..SHARDS {
        let shard = (first + offset) % SHARDS;
        let slots = &T::table().shards[shard].0;
        let inserted = slots
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(seed_of(T::KIND, shard), SLOTS_PER_SHARD, held);
        match inserted {
            Ok(key) => return Ok(join(T::KIND, shard, key)),
            Err(back) => held = back,
        }
    }
    Err(Error::new(
        ErrorCode::Internal,
        format!("no handles are left for a {}", T::KIND.name()),
    ))
}

/// The object behind a handle.
///
/// # Errors
/// [`ErrorCode::Handle`] if it names no living object of this kind.
pub(super) fn find<T: Object>(handle: u64) -> Result<Held<T>, Error> {
    let parts = split(T::KIND, handle)?;
    let found = T::table().shards[parts.shard]
        .0
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(parts.key)
        .cloned();
    found.ok_or_else(|| {
        Error::new(
            ErrorCode::Handle,
            format!("this {} handle was freed, or never made", T::KIND.name()),
        )
    })
}

/// Takes an object out of its table: the handle is spent. `None` if it names no living object of this kind.
pub(super) fn remove<T: Object>(handle: u64) -> Option<Held<T>> {
    let parts = split(T::KIND, handle).ok()?;
    // The value leaves the lock before anything is dropped: destructors may look up handles themselves.
    T::table().shards[parts.shard]
        .0
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(seed_of(T::KIND, parts.shard), parts.key)
}

/// All living objects of a kind that were made with one runtime.
pub(super) fn children<T: Object>(runtime: u64) -> Vec<Held<T>> {
    let mut all = Vec::new();
    for shard in &T::table().shards {
        let slots = shard.0.read().unwrap_or_else(PoisonError::into_inner);
        let held = slots.iter().map(|(_, held)| held);
        all.extend(held.filter(|held| held.runtime == runtime).cloned());
    }
    all
}

/// Adds the living handles of one kind to `list`, each with the handle of its runtime.
fn list<T: Object>(list: &mut Vec<(u64, Kind, u64)>) {
    for (shard, slots) in T::table().shards.iter().enumerate() {
        let slots = slots.0.read().unwrap_or_else(PoisonError::into_inner);
        let entries = slots.iter();
        list.extend(entries.map(|(key, held)| (join(T::KIND, shard, key), T::KIND, held.runtime)));
    }
}

/// Living handles as a JSON array: `[{"handle":…,"kind":"queue","runtime":…}]`. Of one runtime, or of the whole library.
pub(super) fn living(runtime: Option<u64>) -> String {
    let mut all = Vec::new();
    list::<Runtime>(&mut all);
    list::<Assembly>(&mut all);
    list::<Thread>(&mut all);
    list::<super::queue::Queue>(&mut all);
    list::<Run>(&mut all);
    list::<Subagents>(&mut all);
    let entries = all
        .iter()
        .filter(|(handle, _, of)| runtime.is_none_or(|one| one == *handle || one == *of));
    let texts: Vec<String> = entries
        .map(|(handle, kind, of)| match of {
            0 => format!("{{\"handle\":{handle},\"kind\":\"{}\"}}", kind.name()),
            of => format!(
                "{{\"handle\":{handle},\"kind\":\"{}\",\"runtime\":{of}}}",
                kind.name()
            ),
        })
        .collect();
    format!("[{}]", texts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> Held<Runtime> {
        Held::new(Runtime::new("{}").unwrap(), 0)
    }

    #[test]
    fn a_handle_fits_a_javascript_number_and_comes_apart_as_it_was_joined() {
        for (slot, generation) in [(0, 1), (SLOTS_PER_SHARD - 1, (1 << 24) - 1), (77, 12345)] {
            for kind in Kind::ALL {
                for shard in 0..SHARDS {
                    let handle = join(kind, shard, Key { slot, generation });
                    assert!(handle > 0 && handle < 1 << 53);
                    let parts = split(kind, handle).unwrap();
                    assert_eq!(parts.shard, shard);
                    assert_eq!(parts.key, Key { slot, generation });
                }
            }
        }
    }

    #[test]
    fn freed_foreign_mixed_up_and_made_up_handles_are_refused() {
        let handle = insert(runtime()).unwrap();
        assert!(find::<Runtime>(handle).is_ok());
        let message = |handle| find::<Runtime>(handle).err().unwrap().message;
        assert!(message(0).ends_with("this is 0, which is none"));
        assert!(
            find::<Thread>(handle)
                .err()
                .unwrap()
                .message
                .ends_with("this is one of a runtime")
        );
        assert!(message(handle | 1 << 60).ends_with("no handle of this library"));
        assert!(message(u64::MAX).ends_with("no handle of this library"));
        assert!(message(handle ^ 1 << 30).ends_with("was freed, or never made"));
        assert!(remove::<Thread>(handle).is_none());
        assert!(remove::<Runtime>(handle).is_some());
        assert!(remove::<Runtime>(handle).is_none());
        assert!(message(handle).ends_with("was freed, or never made"));
    }

    #[test]
    fn living_handles_are_listed_with_their_runtime() {
        let runtime = insert(runtime()).unwrap();
        let object = find::<Runtime>(runtime).unwrap().open_thread("{}").unwrap();
        let thread = insert(Held::new(object, runtime)).unwrap();
        let text = living(Some(runtime));
        assert_eq!(
            text,
            format!(
                "[{{\"handle\":{runtime},\"kind\":\"runtime\"}},\
                 {{\"handle\":{thread},\"kind\":\"thread\",\"runtime\":{runtime}}}]"
            )
        );
        assert_eq!(children::<Thread>(runtime).len(), 1);
        remove::<Thread>(thread);
        remove::<Runtime>(runtime);
        assert_eq!(living(Some(runtime)), "[]");
    }

    #[test]
    fn an_object_outlives_its_handle_while_a_call_uses_it() {
        let handle = insert(runtime()).unwrap();
        let used = find::<Runtime>(handle).unwrap();
        remove::<Runtime>(handle);
        assert!(used.new_queue("{}").is_ok());
    }
}
