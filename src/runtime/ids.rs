//! Ids of runs, messages and checkpoints: random, or counted in deterministic mode.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use crate::protocol::config::IdsConfig;
use crate::state::ids::IdSource;

/// 100 ns steps between the start of the Gregorian calendar, from which UUIDs count, and 1970.
const UUID_EPOCH: u64 = 0x01B2_1DD2_1381_4000;

/// Where a runtime's ids come from. Clones share the counters.
#[derive(Clone, Debug)]
pub struct Ids(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    sequential: bool,
    messages: AtomicU64,
    runs: AtomicU64,
    threads: AtomicU64,
    /// Last time used in a checkpoint id, or the count in deterministic mode. Ids must grow even when the clock does not.
    checkpoints: AtomicU64,
}

impl Ids {
    /// A source as configured; counting counts every kind of id.
    pub fn new(config: IdsConfig) -> Self {
        let sequential = config.is_sequential;
        let before = config.first.saturating_sub(1);
        Ids(Arc::new(Counters {
            sequential,
            messages: AtomicU64::new(before),
            runs: AtomicU64::new(before),
            threads: AtomicU64::new(before),
            checkpoints: AtomicU64::new(before),
        }))
    }

    /// Id of a new run.
    pub fn run(&self) -> Arc<str> {
        self.give(&self.0.runs, "00000000-0000-4000-9000-")
    }

    /// Id of a new thread.
    pub fn thread(&self) -> Arc<str> {
        self.give(&self.0.threads, "00000000-0000-4000-a000-")
    }

    fn give(&self, counter: &AtomicU64, prefix: &str) -> Arc<str> {
        if self.0.sequential {
            let count = counter.fetch_add(1, Ordering::Relaxed) + 1;
            format!("{prefix}{count:012x}").into()
        } else {
            Uuid::new_v4().hyphenated().to_string().into()
        }
    }

    /// Id of a new checkpoint, a UUIDv6 greater than `after` and than all given before.
    pub fn checkpoint(&self, after: Option<Uuid>) -> Uuid {
        let floor = after.map_or(0, ticks_of);
        let now = if self.0.sequential {
            0
        } else {
            let since = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            UUID_EPOCH + since.as_secs() * 10_000_000 + u64::from(since.subsec_nanos()) / 100
        };
        let next = |last: u64| now.max(last + 1).max(floor + 1);
        let previous = self
            .0
            .checkpoints
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(next(last))
            })
            .unwrap_or_else(|last| last);
        let node = if self.0.sequential {
            0
        } else {
            Uuid::new_v4().as_u128() as u64
        };
        from_ticks(next(previous), node)
    }
}

impl IdSource for Ids {
    fn next_id(&mut self) -> String {
        if self.0.sequential {
            let count = self.0.messages.fetch_add(1, Ordering::Relaxed) + 1;
            format!("00000000-0000-4000-8000-{count:012x}")
        } else {
            Uuid::new_v4().hyphenated().to_string()
        }
    }

    fn mark(&self) -> u64 {
        self.0.messages.load(Ordering::Relaxed)
    }

    fn rewind(&mut self, mark: u64) {
        // With several runs at once another may have taken ids meanwhile; then there is nothing to give back.
        self.0.messages.store(mark, Ordering::Relaxed);
    }
}

/// A UUIDv6: 60 bits of time from the most significant down, 14 + 48 bits of `node`.
fn from_ticks(ticks: u64, node: u64) -> Uuid {
    let high = (ticks >> 12) << 16 | 0x6000 | (ticks & 0x0FFF);
    let low = (node & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000;
    Uuid::from_u64_pair(high, low)
}

fn ticks_of(id: Uuid) -> u64 {
    let (high, _) = id.as_u64_pair();
    (high >> 16) << 12 | (high & 0x0FFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoint_ids_grow_past_a_head_from_the_future() {
        let ids = Ids::new(IdsConfig::default());
        let first = ids.checkpoint(None);
        assert_eq!(first.get_version_num(), 6);
        let future = from_ticks(ticks_of(first) + (1 << 40), 0);
        let second = ids.checkpoint(Some(future));
        assert!(second > future && future > first);
        assert!(ids.checkpoint(None) > second);
    }

    #[test]
    fn deterministic_ids_count_from_one() {
        let mut ids = Ids::new(IdsConfig::counting(1));
        assert_eq!(
            ids.checkpoint(None).to_string(),
            "00000000-0000-6001-8000-000000000000"
        );
        assert_eq!(&*ids.run(), "00000000-0000-4000-9000-000000000001");
        assert_eq!(ids.next_id(), "00000000-0000-4000-8000-000000000001");
    }
}
