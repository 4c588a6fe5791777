//! How many subagents run at once: slots, a bounded queue for them, and the longest wait.
//!
//! A capacity is what all executions compete in that belong to it, whichever agent, run or runtime they come from (RT-8). An
//! execution that waits is a future: no OS thread, no task and nothing of a model or a tool is held for it (RT-35). What it
//! holds is given back by dropping, whatever the reason: an end, a cancellation, a time that is up, a panic (RT-34, RT-42).
//! Nothing here belongs to one executor, so runtimes with threads of their own can share a capacity.
//!
//! Source: DeerFlow's controller of subagent executions, RT-30 to RT-37.

mod admission;
mod sync;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub use self::admission::{Admission, Admitted, CapacitySnapshot, Slot, Waiter};

use crate::protocol::app_config::SubagentRuntimeConfig;
use crate::protocol::error::{Error, ErrorCode};

/// Why there is no slot (RT-31, RT-36).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// All slots are taken, and nobody may wait or nobody more.
    #[error("Subagent execution capacity is full ({running} running, {queued} queued)")]
    Rejected {
        /// How many had a slot.
        running: u64,
        /// How many waited.
        queued: u64,
    },
    /// The longest wait is over.
    #[error("Timed out after {seconds}s waiting for a subagent execution slot")]
    Timeout {
        /// The longest wait, in seconds.
        seconds: u64,
    },
}

/// Slots for executions of subagents, and the queue for them.
#[derive(Debug)]
pub struct Capacity {
    admission: Admission,
}

impl Capacity {
    /// A capacity of its own, with all slots free. The configuration is one that has been checked; it is kept as it is (RT-3).
    pub fn new(config: SubagentRuntimeConfig) -> Arc<Self> {
        Arc::new(Capacity {
            admission: Admission::new(config),
        })
    }

    /// A slot, at once or after waiting in turn; the turn counts from the first poll. Dropping the future leaves the queue.
    /// Waits on tokio's clock.
    ///
    /// # Errors
    /// [`CapacityError`]: at once when there is neither a slot nor a place in the queue, or after `queue_timeout_seconds`.
    pub async fn acquire(&self) -> Result<Slot, CapacityError> {
        let waiter = match self.admission.admit() {
            Admitted::Slot(slot) => return Ok(slot),
            Admitted::Rejected { running, queued } => {
                return Err(CapacityError::Rejected { running, queued });
            }
            Admitted::Waiter(waiter) => waiter,
        };
        // The configuration that it waits under: it does not change while somebody waits.
        let seconds = self.admission.config().queue_timeout_seconds;
        tokio::time::timeout(Duration::from_secs(seconds), waiter)
            .await
            .map_err(|_| CapacityError::Timeout { seconds })
    }

    /// How it stands at this moment (RT-9).
    pub fn snapshot(&self) -> CapacitySnapshot {
        self.admission.snapshot()
    }

    /// The configuration in force.
    pub fn config(&self) -> SubagentRuntimeConfig {
        self.admission.config()
    }

    /// Puts another configuration into force for all who share the capacity. An equal one changes nothing (RT-37).
    ///
    /// # Errors
    /// `Conflict` when somebody runs or waits under a different one.
    fn reconfigure(&self, config: &SubagentRuntimeConfig) -> Result<(), Error> {
        self.admission.reconfigure(config).map_err(|now| {
            let CapacitySnapshot {
                running, queued, ..
            } = now;
            let message = format!(
                "the process has another subagent_runtime in force, and subagents run or wait under it ({running} running, \
                 {queued} queued); it can be changed while there are none"
            );
            Error::new(ErrorCode::Conflict, message).retryable()
        })
    }
}

static PROCESS: LazyLock<Arc<Capacity>> =
    LazyLock::new(|| Capacity::new(SubagentRuntimeConfig::default()));

/// The capacity of all agents that have none of their own (RT-8). One for the life of the process: whoever keeps it sees a
/// later configuration too.
pub fn process_capacity() -> Arc<Capacity> {
    Arc::clone(&PROCESS)
}

/// Sets the limits of [`process_capacity`] (RT-37). There is no event loop that it would be bound to.
///
/// # Errors
/// `Conflict` when the limits differ from those in force and any execution runs or waits.
pub fn configure_process_capacity(config: &SubagentRuntimeConfig) -> Result<(), Error> {
    PROCESS.reconfigure(config)
}
