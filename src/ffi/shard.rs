//! Spreads OS threads over the shards of the tables, and makes first generations random.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A shard number for the calling OS thread; take it modulo the number of shards. Threads get theirs in turn, so that
/// as many threads as there are shards never meet in one.
pub(super) fn of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let next = || NEXT.fetch_add(1, Ordering::Relaxed) % (usize::MAX / 2);
    MINE.try_with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(next());
        }
        mine.get()
    })
    // A thread that is being torn down has no storage of its own any more; any shard will do.
    .unwrap_or_else(|_| next())
}

/// A number that differs per loaded copy of the library and per process: two copies in one process then do not take each
/// other's handles for their own.
pub(super) fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().hash_one(&raw const SEED as usize))
}
