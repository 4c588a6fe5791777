//! What a middleware remembers of threads and runs: a map of bounded size.

use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::Equivalent;

use super::RunFacts;
use super::bounded::{BoundedMap, REMEMBERED_RUNS};

/// A run of a thread: ids of the thread and the run.
pub(super) type RunKey = (Arc<str>, Arc<str>);

/// What a thread is remembered under: its id. Subagents have the ids of the run that delegates, and several of one kind share
/// their middlewares at the same time; each works on messages of its own, so that its execution is its thread (SUB-33).
pub(super) fn thread_key(run: &RunFacts) -> &Arc<str> {
    match &run.subagent {
        Some(subagent) => &subagent.execution_id,
        None => &run.thread_id,
    }
}

/// What a run is remembered under where the thread does not matter: its id, or that of the execution.
pub(super) fn execution_key(run: &RunFacts) -> &Arc<str> {
    match &run.subagent {
        Some(subagent) => &subagent.execution_id,
        None => &run.run_id,
    }
}

/// What a run of a thread is remembered under.
pub(super) fn run_key(run: &RunFacts) -> RunKey {
    (thread_key(run).clone(), execution_key(run).clone())
}

/// Whether turns may follow under the same keys once `after_agent` ran. A subagent has one turn, and what has no id cannot be
/// found again.
pub(super) fn may_go_on(run: &RunFacts) -> bool {
    run.subagent.is_none() && !run.run_id.is_empty()
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
    use crate::middleware::stage::{execution, run_as};

    #[test]
    fn sub_33_executions_of_one_run_are_told_apart_and_runs_go_by_their_ids() {
        let (first, second) = (execution("t", "r", "e1"), execution("t", "r", "e2"));
        assert_eq!(run_key(&first), ("e1".into(), "e1".into()));
        assert_eq!(run_key(&second), ("e2".into(), "e2".into()));
        assert_eq!(run_key(&run_as("t", "r")), ("t".into(), "r".into()));
        assert!(may_go_on(&run_as("t", "r")) && !may_go_on(&run_as("t", "")) && !may_go_on(&first));
    }

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
