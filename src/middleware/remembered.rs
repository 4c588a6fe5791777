//! What a middleware remembers of threads and runs: a map of bounded size.

use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::Equivalent;

use super::RunFacts;
use super::bounded::{BoundedMap, REMEMBERED_RUNS};

/// A run of a thread: ids of the thread and the run.
pub(super) type RunKey = (Arc<str>, Arc<str>);

/// What a run is remembered under.
pub(super) fn run_key(run: &RunFacts) -> RunKey {
    (run.thread_id.clone(), run.run_id.clone())
}

/// What a thread or a run is remembered under where a missing id has a name (MW-LOOP-9, MW-TOD-4).
pub(super) fn id_or_default(id: &Arc<str>) -> Arc<str> {
    match id.is_empty() {
        true => "default".into(),
        false => id.clone(),
    }
}

/// A [`BoundedMap`] of values that are read and written as a whole. One middleware serves all runs of an assembly, so it is
/// locked.
pub(super) struct Remembered<K, V>(Mutex<BoundedMap<K, V>>);

impl<K: Hash + Eq, V: Clone> Remembered<K, V> {
    pub(super) fn new() -> Self {
        Remembered(Mutex::new(BoundedMap::new(REMEMBERED_RUNS)))
    }

    pub(super) fn get<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.lock().get(key).cloned()
    }

    pub(super) fn set(&self, key: K, value: V) {
        self.lock().insert(key, value);
    }

    pub(super) fn forget<Q>(&self, key: &Q)
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::bounded::REMEMBERED_RUNS as CAPACITY;

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
