//! What the parts of an agent tell a run, and each other within it, besides what they write to its thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use super::active_skills::ActiveSkills;
use super::tool::ToolOutcome;
use crate::protocol::error::Error;
use crate::protocol::run::StopReason;
use crate::protocol::warning::{Warning, Warnings};

/// Why a piece of work was given up, and the run with it: there is no outcome, so that a later run does the work.
#[derive(Clone, Debug, PartialEq)]
pub enum Halt {
    /// The run ends interrupted, for this reason.
    Paused(String),
    /// The run ends with this error.
    Failed(Error),
}

/// Something that a middleware did and that is worth a record, on its way to the host. It holds no secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRecord {
    /// What it is about: at most 21 characters (JRN-3a).
    pub tag: &'static str,
    /// What was done.
    pub action: &'static str,
    /// The facts.
    pub changes: Map<String, Value>,
}

/// Signals of one run: why it stopped early, why its model did not answer, warnings and records on their way to the host, work
/// that is given up, and what it has active of skills.
#[derive(Debug, Default)]
pub struct RunSignals {
    stop_reason: Mutex<Option<StopReason>>,
    failure: Mutex<Option<Error>>,
    has_warnings: AtomicBool,
    warnings: Mutex<Warnings>,
    has_records: AtomicBool,
    records: Mutex<Vec<AuditRecord>>,
    skills: ActiveSkills,
    has_given_up: AtomicBool,
    given_up: Mutex<GivenUp>,
}

/// What is known of pieces of work that are given up, or would be by a cancel, by the id of their tool call.
#[derive(Debug, Default)]
struct GivenUp {
    halts: Vec<(String, Halt)>,
    stand_ins: Vec<(String, ToolOutcome)>,
}

impl RunSignals {
    /// Nothing was said yet.
    pub fn new() -> Self {
        RunSignals::default()
    }

    /// Notes that a limit ended the run, in place of what was noted before (MC-8).
    pub fn stop(&self, reason: StopReason) {
        *locked(&self.stop_reason) = Some(reason);
    }

    /// Notes that a limit ended the run, unless something was noted before.
    pub fn stop_unless_stopped(&self, reason: StopReason) {
        locked(&self.stop_reason).get_or_insert(reason);
    }

    /// What was noted.
    pub fn stop_reason(&self) -> Option<StopReason> {
        *locked(&self.stop_reason)
    }

    /// Notes whether the model's newest turn has failed, and why: what stands in the thread for its answer has words only, and
    /// the run ends with this (MW-LLM-5). `None` when the model answered.
    pub fn note_turn(&self, failure: Option<Error>) {
        *locked(&self.failure) = failure;
    }

    /// Why the model's newest turn has failed; `None` when it did not. Whatever goes on after an answer, such as a look at the
    /// goal, has nothing to go on from when this is something (GOAL-12).
    pub fn failure(&self) -> Option<Error> {
        locked(&self.failure).clone()
    }

    /// Warns the host. `message` holds no secrets.
    pub fn warn(&self, warning: Warning, message: impl Into<String>) {
        locked(&self.warnings).add(warning, message);
        self.has_warnings.store(true, Ordering::Release);
    }

    /// Gives up a piece of work: a tool call by its id, or `""` for a model call, a hook, or the run when the work that is
    /// under way is done. Whoever does the work stays pending then; the driver drops it.
    pub fn halt(&self, work: &str, halt: Halt) {
        locked(&self.given_up).halts.push((work.to_owned(), halt));
        self.has_given_up.store(true, Ordering::Release);
    }

    /// Why this piece of work was given up, for the driver; `None` while it was not. The first reason counts.
    pub fn take_halt(&self, work: &str) -> Option<Halt> {
        if !self.has_given_up.load(Ordering::Acquire) {
            return None;
        }
        let mut given_up = locked(&self.given_up);
        let place = given_up.halts.iter().position(|(id, _)| id == work)?;
        Some(given_up.halts.remove(place).1)
    }

    /// Says what a tool call comes to if the run is cancelled from now on, though the tool has run already: without it the
    /// tool would run a second time.
    pub fn stand_in(&self, call_id: &str, outcome: ToolOutcome) {
        let mut given_up = locked(&self.given_up);
        given_up.stand_ins.push((call_id.to_owned(), outcome));
        self.has_given_up.store(true, Ordering::Release);
    }

    /// Takes back what was said by [`RunSignals::stand_in`].
    pub fn take_stand_in(&self, call_id: &str) -> Option<ToolOutcome> {
        if !self.has_given_up.load(Ordering::Acquire) {
            return None;
        }
        let mut given_up = locked(&self.given_up);
        let stand_ins = &mut given_up.stand_ins;
        let place = stand_ins.iter().rposition(|(id, _)| id == call_id)?;
        Some(stand_ins.remove(place).1)
    }

    /// The warnings since the last call, for the driver.
    pub fn take_warnings(&self) -> Option<Warnings> {
        let some = self.has_warnings.swap(false, Ordering::AcqRel);
        some.then(|| std::mem::take(&mut *locked(&self.warnings)))
    }

    /// Keeps a record for the host.
    pub fn record(&self, record: AuditRecord) {
        locked(&self.records).push(record);
        self.has_records.store(true, Ordering::Release);
    }

    /// The records since the last call, for the driver.
    pub fn take_records(&self) -> Vec<AuditRecord> {
        match self.has_records.swap(false, Ordering::AcqRel) {
            true => std::mem::take(&mut *locked(&self.records)),
            false => Vec::new(),
        }
    }

    /// What the run has active of skills.
    pub fn skills(&self) -> &ActiveSkills {
        &self.skills
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mc_8_the_last_guard_counts_except_one_that_only_fills_in() {
        let signals = RunSignals::new();
        signals.stop_unless_stopped(StopReason::ModelLengthCapped);
        signals.stop(StopReason::LoopCapped);
        signals.stop(StopReason::TokenCapped);
        signals.stop_unless_stopped(StopReason::ModelLengthCapped);
        assert_eq!(signals.stop_reason(), Some(StopReason::TokenCapped));
    }
}
