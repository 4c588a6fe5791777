//! The clock port.

use crate::protocol::time::Timestamp;

/// Tells the time of day.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
}
