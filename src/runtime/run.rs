//! One run as others see it: its ids, its cancel switch, its result.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::driver::Driver;
use super::events::RunEvents;
use super::switch::Switch;
use super::sync::{Answer, Wait, lock};
use crate::ports::model::Usage;
use crate::ports::signals::RunSignals;
use crate::protocol::error::Error;

/// What a run, its handle and its thread share.
pub struct RunShared {
    /// Its id.
    pub run_id: Arc<str>,
    /// Its thread.
    pub thread_id: Arc<str>,
    /// The switch that every wait of the run looks at.
    pub switch: Arc<Switch>,
    /// What the parts of the agent tell it.
    pub signals: Arc<RunSignals>,
    /// Its events, for what delegates in it.
    pub(super) events: OnceLock<Weak<RunEvents>>,
    /// The delegations that go on: the `task` call of each, and its switch.
    tasks: Mutex<Vec<(Arc<str>, Arc<Switch>)>>,
    /// Tokens of its delegations that have ended.
    subagent_usage: Mutex<Option<Usage>>,
    /// The thread is free again; the result may still be on its way.
    ended: AtomicBool,
    ended_notify: Notify,
    result: Mutex<Option<Arc<str>>>,
    has_result: Condvar,
    has_result_driven: Notify,
}

impl RunShared {
    /// A run that has not begun.
    pub fn new(run_id: Arc<str>, thread_id: Arc<str>) -> Self {
        RunShared::with_switch(run_id, thread_id, Arc::default())
    }

    /// The same, where its switch is known already.
    pub fn with_switch(run_id: Arc<str>, thread_id: Arc<str>, switch: Arc<Switch>) -> Self {
        RunShared {
            run_id,
            thread_id,
            switch,
            signals: Arc::new(RunSignals::new()),
            events: OnceLock::new(),
            tasks: Mutex::default(),
            subagent_usage: Mutex::default(),
            ended: AtomicBool::new(false),
            ended_notify: Notify::new(),
            result: Mutex::new(None),
            has_result: Condvar::new(),
            has_result_driven: Notify::new(),
        }
    }

    /// Notes that a delegation goes on: its `task` call, and its switch.
    pub(super) fn begin_task(&self, task_id: &Arc<str>, switch: &Arc<Switch>) {
        lock(&self.tasks).push((task_id.clone(), switch.clone()));
    }

    /// Notes that a delegation has ended, and its tokens.
    pub(super) fn end_task(&self, switch: &Arc<Switch>, usage: Option<&Usage>) {
        lock(&self.tasks).retain(|(_, known)| !Arc::ptr_eq(known, switch));
        if let Some(usage) = usage {
            lock(&self.subagent_usage)
                .get_or_insert_default()
                .add(usage);
        }
    }

    /// Asks the delegation of a `task` call to end; whether it went on.
    pub fn cancel_task(&self, task_id: &str, reason: Option<String>) -> bool {
        let tasks = lock(&self.tasks);
        let mut of_call = tasks.iter().filter(|(id, _)| **id == *task_id);
        of_call
            .next_back()
            .is_some_and(|(_, switch)| switch.cancel(reason))
    }

    /// Tokens of the delegations that have ended; `None` when none told of any.
    pub fn subagent_usage(&self) -> Option<Usage> {
        lock(&self.subagent_usage).clone()
    }

    /// Whether the run has let go of its thread.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Waits until the run has let go of its thread.
    pub async fn end(&self) {
        loop {
            let notified = self.ended_notify.notified();
            if self.has_ended() {
                return;
            }
            notified.await;
        }
    }

    /// Lets go of the thread.
    pub(super) fn mark_ended(&self) {
        self.ended.store(true, Ordering::Release);
        self.ended_notify.notify_waiters();
    }

    /// Gives the result to everyone who waits.
    pub(super) fn set_result(&self, result: Arc<str>) {
        *lock(&self.result) = Some(result);
        self.has_result.notify_all();
        self.has_result_driven.notify_waiters();
    }

    /// The result, when there is one.
    pub fn result(&self) -> Option<Arc<str>> {
        lock(&self.result).clone()
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// Those of [`Driver::drive`].
    pub fn wait(&self, driver: &Driver, wait: Wait) -> Result<Answer<String>, Error> {
        let done = |result: Arc<str>| Answer::Done(result.to_string());
        if let Some(result) = self.result() {
            return Ok(done(result));
        }
        if driver.is_driven() {
            let arrival = async {
                loop {
                    let notified = self.has_result_driven.notified();
                    if let Some(result) = self.result() {
                        return result;
                    }
                    notified.await;
                }
            };
            return match wait {
                Wait::Forever => driver.drive(arrival).map(done),
                Wait::For(Duration::ZERO) => {
                    let result = driver.turn(|| self.result())?;
                    Ok(result.map_or(Answer::TimedOut, done))
                }
                Wait::For(duration) => driver.drive(async {
                    match tokio::time::timeout(duration, arrival).await {
                        Ok(result) => done(result),
                        Err(_) => Answer::TimedOut,
                    }
                }),
            };
        }
        let deadline = wait.deadline();
        let mut slot = lock(&self.result);
        loop {
            if let Some(result) = &*slot {
                return Ok(done(result.clone()));
            }
            slot = match deadline {
                None => match self.has_result.wait(slot) {
                    Ok(slot) => slot,
                    Err(poisoned) => poisoned.into_inner(),
                },
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(Answer::TimedOut);
                    }
                    match self.has_result.wait_timeout(slot, left) {
                        Ok((slot, _)) => slot,
                        Err(poisoned) => poisoned.into_inner().0,
                    }
                }
            };
        }
    }
}
