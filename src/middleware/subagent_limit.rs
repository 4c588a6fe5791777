//! Keeps delegation within its limits: so many `task` calls in one reply, so many in one run.
//!
//! What is too much is taken out of the reply before anybody sees or runs it. What a run has delegated so far is read from
//! the ledger, so the count survives compaction and restarts; besides, the calls that this let pass are counted here,
//! because a model that uses one call id twice has one entry for two delegations.
//!
//! Source: DeerFlow `SubagentLimitMiddleware`, MW-SUB-1 to 8, LIM-1 to 19.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::bounded::{BoundedMap, REMEMBERED_RUNS};
use super::remembered::{RunKey, run_key};
use super::reply::{append_text, last_reply, members, with_calls};
use super::{Hook, HookContext, HookOutput, Hooks, Middleware};
use crate::protocol::decode::from_value;
use crate::protocol::error::Error;
use crate::protocol::message::{Message, ToolCall};
use crate::protocol::run::StopReason;
use crate::protocol::warning::Warning;
use crate::state::channels::Channel;
use crate::state::python;
use crate::state::update::StateUpdate;
pub use crate::subagents::TASK_TOOL;

/// Most delegations in one reply, whatever is configured (LIM-8).
pub const MAX_CONCURRENT: u32 = 64;
/// Most delegations in one run, whatever is configured; the ledger holds no more (LIM-6, LIM-8).
pub const MAX_TOTAL: u32 = 50;

const NOTICE: &str = "[SUBAGENT LIMIT REACHED] This run cannot start any more subagents. Work with the results that \
    subagents have returned, do what is simple yourself, and sum up what remains to be done.";

/// Limits as they are configured; they are clamped without a word (LIM-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubagentLimitConfig {
    /// `max_concurrent_subagents`: delegations in one reply, clamped to 1..=min(64, `capacity`).
    pub max_concurrent: i64,
    /// `max_total_subagents`: delegations in one run, clamped to 1..=50.
    pub max_total: i64,
    /// How many subagents can run at the same time at all (RT-39).
    pub capacity: u32,
}

impl Default for SubagentLimitConfig {
    fn default() -> Self {
        SubagentLimitConfig {
            max_concurrent: 3,
            max_total: 6,
            capacity: 3,
        }
    }
}

/// Limits as a list of middleware has them: they are the caller's, and no capacity narrows them (RT-12).
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    max_concurrent: i64,
    max_total: i64,
}

impl Default for Settings {
    fn default() -> Self {
        let limits = SubagentLimitConfig::default();
        Settings {
            max_concurrent: limits.max_concurrent,
            max_total: limits.max_total,
        }
    }
}

impl SubagentLimitConfig {
    /// The limits that hold: in one reply, and in one run. Whoever tells the model of them tells these (U1).
    pub fn resolved(&self) -> (u32, u32) {
        let clamp = |value: i64, most: u32| {
            // Within u32 after the clamp.
            u32::try_from(value.clamp(1, i64::from(most))).unwrap_or(most)
        };
        let most = self.capacity.clamp(1, MAX_CONCURRENT);
        (
            clamp(self.max_concurrent, most),
            clamp(self.max_total, MAX_TOTAL),
        )
    }
}

/// See the module.
pub struct SubagentLimit {
    max_concurrent: usize,
    max_total: usize,
    /// How many delegations of a run passed here.
    passed: Mutex<BoundedMap<RunKey, usize>>,
}

impl SubagentLimit {
    /// With these limits.
    pub fn new(config: SubagentLimitConfig) -> Self {
        let (max_concurrent, max_total) = config.resolved();
        SubagentLimit {
            max_concurrent: max_concurrent as usize,
            max_total: max_total as usize,
            passed: Mutex::new(BoundedMap::new(REMEMBERED_RUNS)),
        }
    }

    /// With limits that a list of middleware gives it: `max_concurrent`, default 3, and `max_total`, default 6.
    ///
    /// # Errors
    /// Those of decoding.
    pub fn from_settings(settings: Map<String, Value>) -> Result<Self, Error> {
        let own: Settings = from_value(Value::Object(settings))?;
        Ok(SubagentLimit::new(SubagentLimitConfig {
            max_concurrent: own.max_concurrent,
            max_total: own.max_total,
            capacity: MAX_CONCURRENT,
        }))
    }

    /// What the run has delegated before this reply.
    fn prior(&self, context: &HookContext<'_>) -> usize {
        let run = (!context.run.run_id.is_empty()).then_some(&*context.run.run_id);
        if run.is_none() {
            context.run.signals.warn(
                Warning::SubagentRunUnknown,
                "a reply delegates outside of any run, so every delegation of the thread counts",
            );
        }
        let noted = delegations(context.state.channel(Channel::Delegations), run);
        let passed = run.and_then(|_| self.lock().get(&run_key(context.run)).copied());
        noted.max(passed.unwrap_or_default())
    }

    fn count(&self, context: &HookContext<'_>, passed: usize) {
        if passed > 0 && !context.run.run_id.is_empty() {
            *self.lock().get_or_insert_with(run_key(context.run), || 0) += passed;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BoundedMap<RunKey, usize>> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many delegations the ledger has of a run, or of all when the run is not known: distinct ids, and the same id in two
/// runs is two. Entries that are no objects or have no id are passed over (LIM-4, LIM-5).
fn delegations(ledger: Option<&Value>, run: Option<&str>) -> usize {
    let text = |entry: &Map<String, Value>, name: &str| {
        python::truthy_member(entry, name).map(python::str_of)
    };
    let entries = ledger.and_then(Value::as_array).into_iter().flatten();
    let identities: HashSet<_> = entries
        .filter_map(Value::as_object)
        .filter_map(|entry| Some((text(entry, "run_id"), text(entry, "id")?)))
        .filter(|(of, _)| run.is_none_or(|run| of.as_deref() == Some(run)))
        .collect();
    identities.len()
}

fn is_task(call: &ToolCall) -> bool {
    call.name == TASK_TOOL
}

impl Middleware for SubagentLimit {
    fn name(&self) -> &str {
        "subagent_limit"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            after_model: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        members([
            ("max_concurrent", self.max_concurrent.into()),
            ("max_total", self.max_total.into()),
        ])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        if hook != Hook::AfterModel {
            return Ok(HookOutput::Continue);
        }
        let Some(reply) = last_reply(&context.state) else {
            return Ok(HookOutput::Continue);
        };
        let calls = &reply.fields().tool_calls;
        let asked = calls.iter().filter(|call| is_task(call)).count();
        if asked == 0 {
            return Ok(HookOutput::Continue);
        }
        let remaining = self.max_total.saturating_sub(self.prior(context));
        let allowed = self.max_concurrent.min(remaining);
        self.count(context, asked.min(allowed));
        if asked <= allowed {
            return Ok(HookOutput::Continue);
        }
        let mut room = allowed;
        let kept = calls.iter().filter(|call| {
            let fits = !is_task(call) || room > 0;
            room -= usize::from(fits && is_task(call));
            fits
        });
        let kept = kept.cloned().collect();
        // Without remaining delegations the model must hear why; a reply that is merely too wide is cut in silence (LIM-14).
        let notice = (remaining == 0).then(|| {
            context.run.signals.stop(StopReason::SubagentLimitCapped);
            append_text(&reply.fields().content, NOTICE)
        });
        let cut = Message::new(with_calls(reply, kept, notice));
        Ok(HookOutput::Update(StateUpdate::messages(vec![cut])))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::middleware::reply::tests::{call, reply};
    use crate::middleware::stage::{Stage, run_as};

    fn limit(max_concurrent: i64, max_total: i64) -> SubagentLimit {
        SubagentLimit::new(SubagentLimitConfig {
            max_concurrent,
            max_total,
            capacity: 64,
        })
    }

    fn entries(list: &[(&str, &str)]) -> Value {
        list.iter()
            .map(|(run, id)| json!({"id": id, "run_id": run, "status": "in_progress"}))
            .collect()
    }

    /// A thread with a ledger, and a reply with these calls.
    fn thread(ledger: Value, names: &[&str]) -> Stage {
        let calls: Vec<Value> = names
            .iter()
            .enumerate()
            .map(|(place, name)| call(name, &format!("c{place}")))
            .collect();
        let mut stage = Stage::new(vec![reply(json!({
            "content": "plan",
            "tool_calls": calls,
            "response_metadata": {"finish_reason": "tool_calls"},
        }))]);
        stage.write(StateUpdate::overwrite(Channel::Delegations, ledger));
        stage
    }

    fn ids(message: &Message) -> Vec<&str> {
        let calls = message.fields().tool_calls.iter();
        calls.filter_map(|call| call.id.as_deref()).collect()
    }

    #[test]
    fn v1_only_this_run_counts_and_a_reply_that_is_too_wide_is_cut_in_silence() {
        let mut ledger = vec![];
        for id in ["1", "2", "3", "4", "5"] {
            ledger.push(("R", id));
        }
        for id in ["6", "7", "8", "9"] {
            ledger.push(("Q", id));
        }
        let mut stage = thread(entries(&ledger), &["task", "bash", "task", "task"]);
        let facts = run_as("t", "R");
        stage.after_model(&limit(3, 6), &facts);
        assert_eq!(ids(&stage.last()), ["c0", "c1"]);
        assert_eq!(stage.last().text(), "plan");
        assert_eq!(stage.last().id(), Some("a"), "LIM-11");
        assert_eq!(facts.signals.stop_reason(), None, "LIM-14");
    }

    #[test]
    fn v2_an_exhausted_run_is_told_and_its_other_calls_run() {
        let ledger: Vec<_> = ["1", "2", "3", "4", "5", "6"]
            .iter()
            .map(|id| ("R", *id))
            .collect();
        let mut stage = thread(entries(&ledger), &["task", "bash", "task", "task"]);
        let facts = run_as("t", "R");
        stage.after_model(&limit(3, 6), &facts);
        assert_eq!(ids(&stage.last()), ["c1"]);
        assert_eq!(stage.last().text(), format!("plan\n\n{NOTICE}"), "LIM-12");
        assert_eq!(
            facts.signals.stop_reason(),
            Some(StopReason::SubagentLimitCapped)
        );
        let last = stage.last();
        let reason = &last.fields().response_metadata["finish_reason"];
        assert_eq!(reason, "tool_calls", "calls remain");
    }

    #[test]
    fn lim_16_without_calls_left_the_message_is_an_answer() {
        let ledger = entries(&[("R", "1")]);
        let mut stage = thread(ledger, &["task"]);
        stage.after_model(&limit(3, 1), &run_as("t", "R"));
        let last = stage.last();
        assert!(last.fields().tool_calls.is_empty());
        assert_eq!(last.fields().response_metadata["finish_reason"], "stop");
    }

    #[test]
    fn v3_without_a_run_the_whole_ledger_counts_and_the_host_is_warned() {
        let ledger = entries(&[
            ("R", "1"),
            ("R", "2"),
            ("R", "3"),
            ("R", "4"),
            ("R", "5"),
            ("Q", "1"),
            ("Q", "2"),
            ("Q", "8"),
            ("Q", "9"),
        ]);
        let facts = run_as("t", "");
        let mut stage = thread(ledger, &["task", "bash"]);
        stage.after_model(&limit(3, 9), &facts);
        assert_eq!(ids(&stage.last()), ["c1"]);
        assert!(stage.last().text().contains("[SUBAGENT LIMIT REACHED]"));
        let warnings = facts.signals.take_warnings().expect("a warning");
        let codes: Vec<_> = warnings.iter().map(|(warning, _)| warning.code()).collect();
        assert_eq!(codes, ["subagent_run_unknown"]);
        // LIM-4: only when the reply delegates.
        let mut other = thread(json!([]), &["bash"]);
        other.after_model(&limit(3, 9), &facts);
        assert!(facts.signals.take_warnings().is_none());
    }

    #[test]
    fn v4_v5_and_lim_5_what_is_no_delegation_of_this_run_does_not_count() {
        let ledger = json!([
            {"id": "1"}, {"id": "2", "run_id": ""}, {"id": "", "run_id": "R"}, {"run_id": "R"}, {"id": null, "run_id": "R"},
            "x", 7, null,
            {"id": "3", "run_id": "R"}, {"id": "3", "run_id": "R"}, {"id": 4, "run_id": "R"},
        ]);
        assert_eq!(delegations(Some(&ledger), Some("R")), 2);
        assert_eq!(delegations(Some(&ledger), None), 4);
        assert_eq!(delegations(Some(&json!({"id": "1"})), None), 0);
        assert_eq!(delegations(None, Some("R")), 0);
    }

    #[test]
    fn the_same_id_in_two_runs_is_two_delegations() {
        let ledger = entries(&[("R", "1"), ("Q", "1")]);
        assert_eq!(delegations(Some(&ledger), Some("R")), 1);
        assert_eq!(delegations(Some(&ledger), None), 2);
    }

    #[test]
    fn v6_and_lim_9_what_fits_is_left_as_it_is() {
        let mut four = thread(json!([]), &["task", "task", "task", "task"]);
        let facts = run_as("t", "R");
        four.after_model(&limit(3, 6), &facts);
        assert_eq!(ids(&four.last()), ["c0", "c1", "c2"]);
        assert_eq!(four.last().text(), "plan");
        let mut three = thread(json!([]), &["task", "task", "task"]);
        assert_eq!(three.after_model(&limit(3, 6), &facts), None);
        let mut other = thread(json!([]), &["batch_task", "Task", "tasks"]);
        assert_eq!(other.after_model(&limit(1, 1), &facts), None, "LIM-2");
    }

    #[test]
    fn v7_v8_and_u1_limits_are_clamped_without_a_word() {
        for (asked, in_reply, in_run) in [
            (i64::MIN, 1, 1),
            (0, 1, 1),
            (1, 1, 1),
            (4, 4, 4),
            (99, 64, 50),
            (i64::MAX, 64, 50),
        ] {
            let config = SubagentLimitConfig {
                max_concurrent: asked,
                max_total: asked,
                capacity: 1000,
            };
            assert_eq!(config.resolved(), (in_reply, in_run));
            let policy = Value::Object(SubagentLimit::new(config).policy());
            assert_eq!(
                policy,
                json!({"max_concurrent": in_reply, "max_total": in_run})
            );
        }
        let narrow = SubagentLimitConfig {
            max_concurrent: 9,
            ..SubagentLimitConfig::default()
        };
        assert_eq!(narrow.resolved(), (3, 6), "no more than can run");
        let none = SubagentLimitConfig {
            capacity: 0,
            ..SubagentLimitConfig::default()
        };
        assert_eq!(none.resolved(), (1, 6));
    }

    #[test]
    fn xt_1_over_delegation() {
        let facts = run_as("t", "R");
        let limit = limit(2, 3);
        let ledger = entries(&[("R", "1"), ("R", "2")]);
        let mut stage = thread(ledger, &["task", "task", "task", "read_file"]);
        stage.after_model(&limit, &facts);
        assert_eq!(ids(&stage.last()), ["c0", "c3"]);
        assert_eq!(stage.last().text(), "plan");
        assert_eq!(facts.signals.stop_reason(), None);
        // The ledger has it now; the next reply asks for one more.
        let entry = json!([{"id": "c0", "run_id": "R", "status": "in_progress"}]);
        stage.write(StateUpdate::set(Channel::Delegations, entry));
        stage.write(StateUpdate::messages(vec![reply(json!({
            "id": "b", "tool_calls": [call("task", "d0")], "response_metadata": {"finish_reason": "tool_calls"},
        }))]));
        stage.after_model(&limit, &facts);
        assert!(stage.last().fields().tool_calls.is_empty());
        assert_eq!(stage.last().text(), NOTICE);
        assert_eq!(
            stage.last().fields().response_metadata["finish_reason"],
            "stop"
        );
        assert_eq!(
            facts.signals.stop_reason(),
            Some(StopReason::SubagentLimitCapped)
        );
    }

    #[test]
    fn xt_2_a_new_run_has_its_whole_allowance() {
        let ledger = entries(&[("R", "1"), ("R", "2"), ("R", "3")]);
        let mut stage = thread(ledger, &["task", "task", "task"]);
        assert_eq!(stage.after_model(&limit(3, 3), &run_as("t", "Q")), None);
    }

    #[test]
    fn one_call_id_used_again_and_again_does_not_get_past_the_limit() {
        let (limit, facts) = (limit(1, 2), run_as("t", "R"));
        let mut passed = 0;
        for _ in 0..4 {
            // The ledger has one entry for all of them.
            let ledger = if passed == 0 {
                json!([])
            } else {
                entries(&[("R", "c0")])
            };
            let mut stage = thread(ledger, &["task"]);
            stage.after_model(&limit, &facts);
            passed += ids(&stage.last()).len();
        }
        assert_eq!(passed, 2);
    }
}
