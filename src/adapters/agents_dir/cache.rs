//! What was read, as long as the files it was read from are the same.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::files::{Stamp, stamp};

/// Most text whose content is kept, in bytes.
const MAX_KEPT_BYTES: u64 = 32 << 20;

/// The files that were looked at, and their stamps; `None` for one that was not there.
pub type Seen = Vec<(PathBuf, Option<Stamp>)>;

/// Values by key, each with the files that it was read from. When it is full it starts anew.
pub struct Cache<K, V> {
    kept: Mutex<Kept<K, V>>,
    max_bytes: u64,
}

struct Kept<K, V> {
    entries: HashMap<K, (Arc<Seen>, V)>,
    bytes: u64,
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// Keeps values of at most 32 MiB of text.
    pub fn new() -> Self {
        Cache::with_bound(MAX_KEPT_BYTES)
    }

    /// Keeps values of at most `max_bytes` of text.
    pub fn with_bound(max_bytes: u64) -> Self {
        let kept = Kept {
            entries: HashMap::new(),
            bytes: 0,
        };
        Cache {
            kept: Mutex::new(kept),
            max_bytes,
        }
    }

    /// The value of a key, if none of its files is another one now. Costs one `stat` for each.
    pub fn fresh(&self, key: &K) -> Option<V> {
        // Looked at without the lock: a slow disk holds up one reader, not all.
        let (seen, value) = locked(&self.kept).entries.get(key).cloned()?;
        let same =
            |(path, before): &(PathBuf, Option<Stamp>)| stamp(path).is_ok_and(|now| now == *before);
        seen.iter().all(same).then_some(value)
    }

    /// Keeps a value with the files that it was read from.
    pub fn keep(&self, key: K, seen: Seen, value: V) {
        let bytes = weight(&seen);
        let mut kept = locked(&self.kept);
        if bytes > self.max_bytes {
            return;
        }
        if kept.bytes.saturating_add(bytes) > self.max_bytes {
            kept.entries.clear();
            kept.bytes = 0;
        }
        kept.bytes += bytes;
        if let Some((before, _)) = kept.entries.insert(key, (Arc::new(seen), value)) {
            kept.bytes = kept.bytes.saturating_sub(weight(&before));
        }
    }

    /// How many values are kept.
    #[cfg(all(test, unix))]
    pub fn len(&self) -> usize {
        locked(&self.kept).entries.len()
    }
}

/// The text behind a value, and something for the entry itself.
fn weight(seen: &Seen) -> u64 {
    let sizes = seen
        .iter()
        .filter_map(|(_, stamp)| stamp.map(|stamp| stamp.size));
    sizes.sum::<u64>() + 1024
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
