//! Who may run now and who waits: slots, and the queue for them. Knows no clock and no executor.
//!
//! Two things always hold. Nobody waits while a slot is free, so that a newcomer never overtakes. And a slot goes from hand to
//! hand: whoever gives one back gives it to the waiter that came first, and only when nobody waits does it become free. A
//! waiter that is no longer in the queue therefore owns a slot, whether it has looked yet or not, and passes it on when it
//! leaves without looking.
//!
//! Wakers are foreign code. They are cloned, called and dropped outside of the lock.
//!
//! Source: RT-31 to RT-33. `tests/capacity` compiles this very file with a lock that tries every interleaving.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::sync::{Mutex, lock};
use crate::protocol::app_config::{AdmissionPolicy, SubagentRuntimeConfig};

/// The slots of one capacity. Clones share them.
#[derive(Clone)]
pub struct Admission(Arc<Mutex<State>>);

struct State {
    config: SubagentRuntimeConfig,
    /// Slots in somebody's hands, those of waiters that have not looked yet included.
    running: u64,
    /// Who waits, by order of arrival, and who is to be woken for it: nobody before the first poll.
    waiting: BTreeMap<u64, Option<Waker>>,
    /// How many have ever waited.
    arrivals: u64,
}

impl State {
    fn is_idle(&self) -> bool {
        self.running == 0 && self.waiting.is_empty()
    }

    fn snapshot(&self) -> CapacitySnapshot {
        CapacitySnapshot {
            max_running: self.config.max_running,
            running: self.running,
            max_queued: self.config.max_queued,
            queued: self.waiting.len() as u64,
            admission_policy: self.config.admission_policy,
        }
    }
}

/// A reading of a capacity at one moment (RT-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacitySnapshot {
    /// How many may run at once.
    pub max_running: u64,
    /// How many have a slot, at most `max_running`.
    pub running: u64,
    /// How many may wait.
    pub max_queued: u64,
    /// How many wait, at most `max_queued`. Whoever has been handed a slot runs, and whoever gives up is gone at once.
    pub queued: u64,
    /// What happens to newcomers when all slots are taken.
    pub admission_policy: AdmissionPolicy,
}

/// What a newcomer gets (RT-31).
#[derive(Debug)]
pub enum Admitted {
    /// A slot that was free.
    Slot(Slot),
    /// A place in the queue.
    Waiter(Waiter),
    /// Nothing.
    Rejected {
        /// How many have a slot.
        running: u64,
        /// How many wait.
        queued: u64,
    },
}

impl Admission {
    /// All slots free. The configuration is one that has been checked.
    pub fn new(config: SubagentRuntimeConfig) -> Self {
        Admission(Arc::new(Mutex::new(State {
            config,
            running: 0,
            waiting: BTreeMap::new(),
            arrivals: 0,
        })))
    }

    /// Lets a newcomer in, or into the queue, or refuses it (RT-31). Takes O(log n) with n in the queue.
    pub fn admit(&self) -> Admitted {
        let mut state = lock(&self.0);
        if state.running < state.config.max_running {
            state.running += 1;
            drop(state);
            return Admitted::Slot(Slot(self.clone()));
        }
        let CapacitySnapshot {
            running,
            queued,
            max_queued,
            ..
        } = state.snapshot();
        if state.config.admission_policy == AdmissionPolicy::Reject || queued >= max_queued {
            return Admitted::Rejected { running, queued };
        }
        let number = state.arrivals;
        state.arrivals += 1;
        state.waiting.insert(number, None);
        drop(state);
        Admitted::Waiter(Waiter {
            admission: Some(self.clone()),
            number,
        })
    }

    /// How it stands at this moment.
    pub fn snapshot(&self) -> CapacitySnapshot {
        lock(&self.0).snapshot()
    }

    /// The configuration in force. While anybody runs or waits it does not change.
    pub fn config(&self) -> SubagentRuntimeConfig {
        lock(&self.0).config.clone()
    }

    /// Puts another configuration into force, if nobody runs or waits (RT-37). An equal one changes nothing.
    ///
    /// # Errors
    /// How it stands, when somebody runs or waits under a different configuration.
    pub fn reconfigure(&self, config: &SubagentRuntimeConfig) -> Result<(), CapacitySnapshot> {
        let mut state = lock(&self.0);
        if state.config == *config {
            return Ok(());
        }
        if !state.is_idle() {
            return Err(state.snapshot());
        }
        state.config = config.clone();
        Ok(())
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(formatter)
    }
}

/// The right to run; dropping it gives it to whoever waits longest, and frees it when nobody waits (RT-33).
///
/// That nobody gives back what he does not have is by type: a slot is made where one is counted, and cannot be copied.
#[derive(Debug)]
#[must_use = "dropping it gives it back"]
pub struct Slot(Admission);

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        let next = state.waiting.pop_first();
        if next.is_none() {
            state.running = state.running.saturating_sub(1);
        }
        drop(state);
        if let Some((_, Some(waker))) = next {
            waker.wake();
        }
    }
}

/// A place in the queue, and the future of the slot. Dropping it leaves the queue, wherever in it (RT-32, RT-42): O(log n).
#[derive(Debug)]
#[must_use = "dropping it leaves the queue"]
pub struct Waiter {
    /// `None` once the slot has been given out.
    admission: Option<Admission>,
    number: u64,
}

impl Future for Waiter {
    type Output = Slot;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Slot> {
        // First, since it may panic: the waiter would forget that it has a place to leave.
        let waker = context.waker().clone();
        let Some(admission) = self.admission.take() else {
            return Poll::Pending; // over: nothing more will come
        };
        let mut state = lock(&admission.0);
        let Some(place) = state.waiting.get_mut(&self.number) else {
            drop(state);
            return Poll::Ready(Slot(admission));
        };
        let before = place.replace(waker);
        drop(state);
        self.admission = Some(admission);
        drop(before);
        Poll::Pending
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let Some(admission) = self.admission.take() else {
            return;
        };
        let mut state = lock(&admission.0);
        let place = state.waiting.remove(&self.number);
        drop(state);
        if place.is_none() {
            // It was handed a slot and has not looked.
            drop(Slot(admission));
        }
    }
}
