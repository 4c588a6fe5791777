//! How a guard ends a run: the calls of the reply go, words say why, and the reason can be asked for once after the run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bounded::{BoundedMap, REMEMBERED_RUNS};
use super::remembered::execution_key;
use super::reply::{append_below, with_calls};
use super::{HookOutput, RunFacts};
use crate::protocol::message::Message;
use crate::protocol::run::StopReason;
use crate::state::update::StateUpdate;

/// The hard stop of one guard, and the runs that it ended (MW-LOOP-7, MW-TBG-3).
pub(super) struct HardStop {
    reason: StopReason,
    ended: Mutex<BoundedMap<Arc<str>, ()>>,
}

impl HardStop {
    /// Nothing was ended yet.
    pub(super) fn new(reason: StopReason) -> Self {
        HardStop {
            reason,
            ended: Mutex::new(BoundedMap::new(REMEMBERED_RUNS)),
        }
    }

    /// Ends a run with its newest reply: without calls, and with `text` below what it says.
    pub(super) fn end(&self, run: &RunFacts, reply: &Message, text: &str) -> HookOutput {
        self.ended().insert(execution_key(run).clone(), ());
        run.signals.stop(self.reason);
        let content = append_below(&reply.fields().content, text);
        let last = Message::new(with_calls(reply, Vec::new(), Some(content)));
        HookOutput::Update(StateUpdate::messages(vec![last]))
    }

    /// Whether this ended a run, or an execution of a subagent; says so once.
    pub(super) fn consume(&self, run_id: &str) -> Option<StopReason> {
        self.ended().remove(run_id).map(|()| self.reason)
    }

    /// Forgets what it ended.
    pub(super) fn clear(&self) {
        self.ended().clear();
    }

    fn ended(&self) -> MutexGuard<'_, BoundedMap<Arc<str>, ()>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
