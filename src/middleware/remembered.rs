//! What a middleware remembers of threads and runs: a map of bounded size.

use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;

/// How many threads or runs a middleware remembers (HP-2).
pub(super) const CAPACITY: usize = 1000;

/// A map in order of insertion. A new key at capacity takes the place of the oldest; a value that is set again keeps its
/// place (HP-2). One middleware serves all runs of an assembly, so it is locked.
pub(super) struct Remembered<K, V>(Mutex<IndexMap<K, V>>);

impl<K: Hash + Eq, V: Clone> Remembered<K, V> {
    pub(super) fn new() -> Self {
        Remembered(Mutex::default())
    }

    pub(super) fn get<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + indexmap::Equivalent<K> + ?Sized,
    {
        self.lock().get(key).cloned()
    }

    pub(super) fn set(&self, key: K, value: V) {
        let mut map = self.lock();
        if map.len() >= CAPACITY && !map.contains_key(&key) {
            map.shift_remove_index(0);
        }
        map.insert(key, value);
    }

    pub(super) fn forget<Q>(&self, key: &Q)
    where
        Q: Hash + indexmap::Equivalent<K> + ?Sized,
    {
        self.lock().shift_remove(key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IndexMap<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hp_2_the_oldest_key_goes_and_an_update_does_not_make_a_key_young() {
        let map = Remembered::new();
        for key in 0..CAPACITY {
            map.set(key, 0);
        }
        map.set(0, 1);
        assert_eq!(map.get(&0), Some(1));
        map.set(CAPACITY, 0);
        assert_eq!((map.get(&0), map.get(&1)), (None, Some(0)));
        map.forget(&1);
        map.set(CAPACITY + 1, 0);
        assert_eq!(map.get(&2), Some(0), "there was room");
    }
}
