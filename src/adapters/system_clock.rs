//! The clock of the system, and one that stands still for tests and replays.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::ports::clock::Clock;
use crate::protocol::time::Timestamp;

/// The time of day as the system tells it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
        };
        Timestamp(micros)
    }
}

/// A clock that always tells the same time.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}
