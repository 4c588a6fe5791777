//! Buffers that callers own, and the table that knows which of them are alive.
//!
//! The `owner` of a `fawn_buf` is a key of this table, never an address: a buffer that is freed twice, a copy of a freed
//! one and a made-up one are found out without touching memory that may be gone. Text stays where it was made; only
//! its owner is entered in the table.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::bytes::fawn_buf;
use super::shard;
use super::slots::{Key, Slots};

const SHARDS: usize = 32;
const SHARD_BITS: u32 = SHARDS.trailing_zeros();
/// Half of the token is the generation.
const GENERATION_BITS: u32 = usize::BITS / 2;
/// Live buffers per shard: what the other half can count.
const SLOTS_PER_SHARD: u32 = ((1u64 << (usize::BITS - GENERATION_BITS)) / SHARDS as u64) as u32;

/// A part of the table, on cache lines of its own.
#[repr(align(128))]
struct Shard(Mutex<Slots<Vec<u8>, GENERATION_BITS>>);

static TABLE: [Shard; SHARDS] = [const { Shard(Mutex::new(Slots::new())) }; SHARDS];

fn lock(shard: usize) -> MutexGuard<'static, Slots<Vec<u8>, GENERATION_BITS>> {
    TABLE[shard]
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn seed_of(shard: usize) -> u64 {
    shard::seed() ^ ((shard as u64) << 40)
}

/// Gives text to the caller. `None` if as many buffers are alive as the table can count.
pub(super) fn make(text: String) -> Option<fawn_buf> {
    let mut bytes = text.into_bytes();
    let len = bytes.len();
    bytes.reserve_exact(1);
    bytes.push(0);
    let first = shard::of_this_thread();
    for offset in 0..SHARDS {
        let shard = (first + offset) % SHARDS;
        // The text does not move when its owner does.
        let data = bytes.as_ptr().cast();
        match lock(shard).insert(seed_of(shard), SLOTS_PER_SHARD, bytes) {
            Ok(key) => {
                let slot = (key.slot as usize) << SHARD_BITS | shard;
                let owner = (key.generation as usize) << (usize::BITS - GENERATION_BITS) | slot;
                return Some(fawn_buf { data, len, owner });
            }
            Err(back) => bytes = back,
        }
    }
    None
}

/// Takes back what [`make`] gave, and frees it. Anything else has no effect.
pub(super) fn give_back(buf: fawn_buf) {
    // The final NUL makes one byte more.
    drop(take(buf.owner, |bytes| {
        std::ptr::eq(bytes.as_ptr().cast(), buf.data)
    }));
}

/// The memory behind a token, if it is alive and is what the buffer says it is.
fn take(owner: usize, is_it: impl FnOnce(&Vec<u8>) -> bool) -> Option<Vec<u8>> {
    if owner == 0 {
        return None;
    }
    let slot = owner & (usize::MAX >> GENERATION_BITS);
    let shard = slot % SHARDS;
    let key = Key {
        slot: (slot >> SHARD_BITS) as u32,
        generation: (owner >> (usize::BITS - GENERATION_BITS)) as u32,
    };
    let mut slots = lock(shard);
    slots
        .get(key)
        .is_some_and(is_it)
        .then(|| slots.remove(seed_of(shard), key))?
}

/// How many buffers are alive, and how many bytes they hold.
pub(super) fn living() -> (usize, usize) {
    let mut sum = (0, 0);
    for shard in 0..SHARDS {
        for (_, bytes) in lock(shard).iter() {
            sum = (sum.0 + 1, sum.1 + bytes.capacity());
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_alive(buf: fawn_buf) -> bool {
        let slot = buf.owner & (usize::MAX >> GENERATION_BITS);
        let key = Key {
            slot: (slot >> SHARD_BITS) as u32,
            generation: (buf.owner >> (usize::BITS - GENERATION_BITS)) as u32,
        };
        lock(slot % SHARDS).get(key).is_some()
    }

    #[test]
    fn text_is_followed_by_nul_and_freed_once() {
        let buf = make("hällo\0x".to_owned()).unwrap();
        assert_eq!(buf.len, 8);
        // SAFETY: the buffer is alive and has a NUL behind its text.
        let bytes = unsafe { std::slice::from_raw_parts(buf.data.cast::<u8>(), buf.len + 1) };
        assert_eq!(bytes, "hällo\0x\0".as_bytes());
        assert!(is_alive(buf));
        give_back(buf);
        assert!(!is_alive(buf));
        give_back(buf);
        let next = make("other".to_owned()).unwrap();
        give_back(buf);
        assert!(is_alive(next), "a stale copy freed what took its place");
        give_back(next);
    }

    #[test]
    fn made_up_owners_and_other_data_free_nothing() {
        let buf = make("kept".to_owned()).unwrap();
        for owner in [
            1,
            42,
            usize::MAX,
            buf.owner ^ 1,
            buf.owner ^ 1 << (usize::BITS - 1),
        ] {
            give_back(fawn_buf { owner, ..buf });
        }
        give_back(fawn_buf {
            data: c"mine".as_ptr(),
            ..buf
        });
        give_back(fawn_buf {
            data: std::ptr::null(),
            ..buf
        });
        assert!(is_alive(buf));
        give_back(buf);
        assert!(!is_alive(buf));
    }

    #[test]
    fn threads_free_what_others_made() {
        let made: Vec<_> = (0..16)
            .map(|n| {
                std::thread::spawn(move || {
                    let bufs = (0..100).map(|m| make(format!("{n}.{m}")).unwrap());
                    bufs.map(|buf| (buf.data as usize, buf.len, buf.owner))
                        .collect::<Vec<_>>()
                })
            })
            .map(|thread| thread.join().unwrap())
            .collect();
        let mut owners = std::collections::HashSet::new();
        for (data, len, owner) in made.into_iter().flatten() {
            assert!(owners.insert(owner));
            let buf = fawn_buf {
                data: data as *const _,
                len,
                owner,
            };
            assert!(is_alive(buf));
            give_back(buf);
            assert!(!is_alive(buf));
        }
    }
}
