//! The clock port.

use crate::protocol::time::Timestamp;

/// Tells the time of day.
pub trait Clock: std::fmt::Debug + Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
}
