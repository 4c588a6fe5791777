//! A map of a fixed size, for what a middleware keeps about runs that may never tell it that they are over.

use std::hash::Hash;

use indexmap::map::Entry;
use indexmap::{Equivalent, IndexMap};

/// How many runs a guard remembers (HP-2).
pub(crate) const REMEMBERED_RUNS: usize = 1000;

/// A map in order of insertion. A new key beyond the capacity drops the oldest; a write to a key that is there leaves its
/// place as it is, [`BoundedMap::refresh`] makes it the newest.
///
/// Source: DeerFlow `BoundedDict`, HP-2.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    entries: IndexMap<K, V>,
    capacity: usize,
}

impl<K: Hash + Eq, V> BoundedMap<K, V> {
    /// An empty map of `capacity` entries, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        BoundedMap {
            entries: IndexMap::new(),
            capacity: capacity.max(1),
        }
    }

    /// The value of a key.
    pub(crate) fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.entries.get(key)
    }

    /// The value of a key, to be changed.
    pub(crate) fn get_mut<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// The value of a key, made if it is not there.
    pub(crate) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if self.entries.len() >= self.capacity && !self.entries.contains_key(&key) {
            self.entries.shift_remove_index(0);
        }
        match self.entries.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(make()),
        }
    }

    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let mut value = Some(value);
        let place = self.get_or_insert_with(key, || value.take().expect("it was not taken before"));
        if let Some(value) = value {
            *place = value;
        }
    }

    /// Takes a key out.
    pub(crate) fn remove<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        self.entries.shift_remove(key)
    }

    /// Makes a key the newest.
    pub(crate) fn refresh<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) {
        if let Some((place, ..)) = self.entries.get_full(key) {
            self.entries.move_index(place, self.entries.len() - 1);
        }
    }

    /// Keeps the entries that `keep` says.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain(keep);
    }

    /// The entries, oldest first.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.entries.iter_mut()
    }

    /// Takes everything out.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(map: &BoundedMap<&'static str, u32>) -> Vec<&'static str> {
        map.entries.keys().copied().collect()
    }

    #[test]
    fn hp_2_a_new_key_drops_the_oldest_and_an_update_keeps_its_place() {
        let mut map = BoundedMap::new(2);
        map.insert("a", 1);
        map.insert("b", 2);
        map.insert("a", 3);
        assert_eq!((keys(&map), map.get(&"a")), (vec!["a", "b"], Some(&3)));
        map.insert("c", 4);
        assert_eq!(keys(&map), ["b", "c"]);
        *map.get_or_insert_with("b", || 0) += 1;
        assert_eq!((keys(&map), map.get(&"b")), (vec!["b", "c"], Some(&3)));
    }

    #[test]
    fn what_is_refreshed_outlives_what_is_not() {
        let mut map = BoundedMap::new(2);
        map.insert("a", 1);
        map.insert("b", 2);
        map.refresh(&"a");
        map.refresh(&"unknown");
        map.insert("c", 3);
        assert_eq!(keys(&map), ["a", "c"]);
        assert_eq!((map.remove(&"a"), map.remove(&"a")), (Some(1), None));
    }

    #[test]
    fn there_is_room_for_one_at_least() {
        let mut map = BoundedMap::new(0);
        map.insert("a", 1);
        assert_eq!(keys(&map), ["a"]);
    }
}
