//! Ends a run that has used up its tokens, and tells the model before it comes to that.
//!
//! The run counts what its replies say they used, and what is added to them later (subagents, see `token_usage`); what the
//! thread had used before the run does not count. All that is said under one run id shares one budget, the turns with which
//! a run goes on by itself included (the newest form of MW-TBG-5).
//!
//! Source: DeerFlow `TokenBudgetMiddleware`, MW-TBG-1 to 6.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::bounded::{BoundedMap, REMEMBERED_RUNS};
use super::hard_stop::HardStop;
use super::remembered::{execution_key, may_go_on};
use super::reply::{last_reply, members};
use super::request::{note, run_with_note};
use super::{Hook, HookContext, HookOutput, Hooks, Middleware, ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::app_config::{Feature, TokenBudgetConfig};
use crate::protocol::error::Error;
use crate::protocol::message::{Kind, Message};
use crate::protocol::run::StopReason;
use crate::protocol::warning::Warning;
use crate::state::View;

/// How many replies in a row, from the newest, must be as they were before the walk back ends. What is added to a reply is
/// added while the next one is the newest, so one would do.
const SETTLED: usize = 8;

/// Tokens read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tokens {
    input: u64,
    output: u64,
}

impl Tokens {
    /// What a reply says it used; nothing where it says nothing that is a count.
    fn of(reply: &Message) -> Self {
        let count = |name: &str| {
            let usage = &reply.fields().usage_metadata;
            usage.get(name).and_then(Value::as_u64).unwrap_or_default()
        };
        Tokens {
            input: count("input_tokens"),
            output: count("output_tokens"),
        }
    }

    fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// What a run has used.
#[derive(Debug, Default)]
struct RunBudget {
    used: Tokens,
    is_warned: bool,
    /// Whether it was said that the model reports no usage.
    is_told: bool,
    /// The words for the next model call.
    pending: Option<String>,
    /// The replies that were there when the run began, by the hash of their id, sorted. Only a few of them are in `seen`.
    before: Box<[u64]>,
    /// What replies said they used when they were last looked at.
    seen: HashMap<Box<str>, Tokens>,
}

impl RunBudget {
    /// Takes what is there as used before.
    fn begin(&mut self, state: &View<'_>) {
        let replies = || {
            let newest_first = state.messages().rev();
            newest_first.filter(|message| message.kind() == Kind::Ai && message.id().is_some())
        };
        // The ids alone cost little; a reply has to be decoded to know what it used, and only a late one can still change.
        let mut before: Vec<u64> = replies().map(Message::id_hash).collect();
        before.sort_unstable();
        self.before = before.into();
        self.seen = replies()
            .take(SETTLED)
            .filter_map(|reply| Some((reply.id()?.into(), Tokens::of(reply))))
            .collect();
    }

    /// Adds what replies say they used beyond what they said before.
    fn count(&mut self, state: &View<'_>) {
        let mut settled = 0;
        for message in state.messages().rev() {
            if settled == SETTLED {
                return;
            }
            let (Kind::Ai, Some(id)) = (message.kind(), message.id()) else {
                continue;
            };
            let before = match self.seen.get(id) {
                Some(before) => *before,
                None if self.before.binary_search(&message.id_hash()).is_ok() => {
                    settled += 1;
                    continue;
                }
                None => Tokens::default(),
            };
            let now = Tokens::of(message);
            let more = Tokens {
                input: now.input.saturating_sub(before.input),
                output: now.output.saturating_sub(before.output),
            };
            if more.total() == 0 {
                settled += usize::from(self.seen.contains_key(id));
                self.seen.entry(id.into()).or_insert(now);
                continue;
            }
            settled = 0;
            self.used.input = self.used.input.saturating_add(more.input);
            self.used.output = self.used.output.saturating_add(more.output);
            self.seen.insert(id.into(), now);
        }
    }
}

/// The limit that is closest to its end.
struct Nearest {
    what: &'static str,
    used: u64,
    limit: u64,
    share: f64,
}

/// What comes of a reply.
enum Verdict {
    GoOn,
    Stop(String),
}

/// See the module.
pub struct TokenBudget {
    config: TokenBudgetConfig,
    runs: Mutex<BoundedMap<Arc<str>, RunBudget>>,
    stop: HardStop,
}

impl TokenBudget {
    /// As configured.
    pub fn new(config: TokenBudgetConfig) -> Self {
        TokenBudget {
            config,
            runs: Mutex::new(BoundedMap::new(REMEMBERED_RUNS)),
            stop: HardStop::new(StopReason::TokenCapped),
        }
    }

    /// Whether this ended the run; says so once. It can be asked after the run is over. That of a subagent goes by the id of
    /// its execution.
    pub fn consume_stop_reason(&self, run_id: &str) -> Option<StopReason> {
        self.stop.consume(run_id)
    }

    fn runs(&self) -> MutexGuard<'_, BoundedMap<Arc<str>, RunBudget>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nearest(&self, used: Tokens) -> Nearest {
        let limits = [
            ("total", used.total(), Some(self.config.max_tokens)),
            ("input", used.input, self.config.max_input_tokens),
            ("output", used.output, self.config.max_output_tokens),
        ];
        let mut nearest = Nearest {
            what: "total",
            used: 0,
            limit: self.config.max_tokens,
            share: -1.0,
        };
        for (what, used, limit) in limits {
            let Some(limit) = limit else { continue };
            let share = used as f64 / limit as f64;
            if share > nearest.share {
                nearest = Nearest {
                    what,
                    used,
                    limit,
                    share,
                };
            }
        }
        nearest
    }

    fn judge(&self, context: &HookContext<'_>) -> Verdict {
        let mut runs = self.runs();
        let run = runs.get_or_insert_with(execution_key(context.run).clone(), RunBudget::default);
        run.count(&context.state);
        if run.used.total() == 0 {
            if !std::mem::replace(&mut run.is_told, true) {
                context.run.signals.warn(
                    Warning::UsageUnreported,
                    "the model does not say how many tokens it used, so that token_budget has nothing to count",
                );
            }
            return Verdict::GoOn;
        }
        let Nearest {
            what,
            used,
            limit,
            share,
        } = self.nearest(run.used);
        if share >= self.config.hard_stop_threshold {
            return Verdict::Stop(format!(
                "[TOKEN BUDGET EXCEEDED] This run has used {used} {what} tokens of a budget of {limit} and ends here. What \
                 it has found so far stands above."
            ));
        }
        if share >= self.config.warn_threshold && !run.is_warned {
            run.is_warned = true;
            run.pending = Some(format!(
                "[TOKEN BUDGET WARNING] {used} of {limit} {what} tokens of this run are used ({:.0}%). Bring the work to \
                 its end and answer now; call a tool only where there is no answer without it.",
                share * 100.0
            ));
        }
        Verdict::GoOn
    }

    fn after_model(&self, context: &HookContext<'_>) -> HookOutput {
        let Some(reply) = last_reply(&context.state) else {
            return HookOutput::Continue;
        };
        let Verdict::Stop(text) = self.judge(context) else {
            return HookOutput::Continue;
        };
        self.stop.end(context.run, reply, &text)
    }
}

impl Middleware for TokenBudget {
    fn name(&self) -> &str {
        "token_budget"
    }

    fn hooks(&self) -> Hooks {
        let on = self.config.is_enabled();
        Hooks {
            before_agent: on,
            wrap_model_call: on,
            after_model: on,
            after_agent: on,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let config = &self.config;
        members([(
            "config",
            json!({
                "enabled": config.is_enabled(),
                "max_tokens": config.max_tokens,
                "max_input_tokens": config.max_input_tokens,
                "max_output_tokens": config.max_output_tokens,
                "warn_threshold": config.warn_threshold,
                "hard_stop_threshold": config.hard_stop_threshold,
            }),
        )])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        if !self.config.is_enabled() {
            return Ok(HookOutput::Continue);
        }
        let run_id = execution_key(context.run);
        match hook {
            Hook::BeforeAgent => self
                .runs()
                .get_or_insert_with(run_id.clone(), RunBudget::default)
                .begin(&context.state),
            Hook::AfterModel => return Ok(self.after_model(context)),
            Hook::AfterAgent => {
                let mut runs = self.runs();
                if !may_go_on(context.run) {
                    runs.remove(run_id);
                } else if let Some(run) = runs.get_mut(run_id) {
                    run.before = Box::default();
                    run.seen = HashMap::new();
                }
            }
            Hook::BeforeModel => {}
        }
        Ok(HookOutput::Continue)
    }

    fn wrap_model_call<'a>(
        &'a self,
        request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let run_id = execution_key(&request.run.facts).clone();
        let pending = self
            .runs()
            .get_mut(&run_id)
            .and_then(|run| run.pending.take());
        let Some(text) = pending else {
            return next.run(request);
        };
        let words = note("budget_warning", text.clone());
        run_with_note(request, words, next, move || {
            if let Some(run) = self.runs().get_mut(&run_id) {
                run.pending.get_or_insert(text);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::reply::tests::{call, reply};
    use crate::middleware::stage::{Answers, Stage, execution, heard, run_as};
    use crate::state::update::StateUpdate;

    fn budget(change: impl FnOnce(&mut TokenBudgetConfig)) -> TokenBudget {
        let mut config = TokenBudgetConfig {
            enabled: Some(true),
            max_tokens: 1000,
            ..TokenBudgetConfig::default()
        };
        change(&mut config);
        TokenBudget::new(config)
    }

    fn used(id: &str, input: u64, output: u64) -> Message {
        reply(json!({
            "id": id,
            "content": "x",
            "tool_calls": [call("f", "c1")],
            "additional_kwargs": {"tool_calls": [{"id": "c1"}], "function_call": {"name": "f"}},
            "response_metadata": {"finish_reason": "tool_calls"},
            "usage_metadata": {"input_tokens": input, "output_tokens": output, "total_tokens": input + output},
        }))
    }

    fn answers(stage: &mut Stage, guard: &TokenBudget, message: Message) -> bool {
        stage.write(StateUpdate::messages(vec![message]));
        stage.after_model(guard, &run_as("t", "r")).is_some()
    }

    fn begun(guard: &TokenBudget, before: Vec<Message>) -> Stage {
        let mut stage = Stage::new(before);
        stage.hook(guard, Hook::BeforeAgent, &run_as("t", "r"));
        stage
    }

    #[test]
    fn tbg_1_and_3_only_this_run_counts_then_it_is_warned_once_and_stopped() {
        let guard = budget(|_| {});
        let facts = run_as("t", "r");
        let mut stage = begun(&guard, vec![used("old", 5000, 5000)]);
        assert!(!answers(&mut stage, &guard, used("a", 500, 299)));
        assert_eq!(heard(&guard, vec![], &facts, Answers::Yes).len(), 0);
        assert!(!answers(&mut stage, &guard, used("b", 1, 0)));
        assert!(!answers(&mut stage, &guard, used("c", 1, 0)));
        // A call that fails gives the words back; they are said once.
        heard(&guard, vec![], &facts, Answers::No);
        let words = heard(&guard, vec![], &facts, Answers::Yes);
        assert_eq!(words[0].fields().name.as_deref(), Some("budget_warning"));
        let text = words[0].text();
        assert!(text.contains("[TOKEN BUDGET WARNING] 800 of 1000 total") && text.contains("80%"));
        assert!(heard(&guard, vec![], &facts, Answers::Yes).is_empty());

        stage.write(StateUpdate::messages(vec![used("d", 100, 99)]));
        assert!(stage.after_model(&guard, &facts).is_some());
        let last = stage.last();
        let fields = last.fields();
        assert!(last.text().starts_with("x\n\n[TOKEN BUDGET EXCEEDED]"));
        assert!(last.text().contains("1000 total tokens"), "{}", last.text());
        assert!(fields.tool_calls.is_empty() && fields.additional_kwargs.is_empty());
        assert_eq!(fields.response_metadata["finish_reason"], "stop");
        assert_eq!(facts.signals.stop_reason(), Some(StopReason::TokenCapped));
        assert_eq!(
            guard.consume_stop_reason("r"),
            Some(StopReason::TokenCapped)
        );
        assert_eq!(guard.consume_stop_reason("r"), None);
    }

    #[test]
    fn tbg_2_and_6_what_is_added_to_an_earlier_reply_counts_at_the_next() {
        let guard = budget(|_| {});
        let mut stage = begun(&guard, vec![used("old", 10, 0)]);
        assert!(!answers(&mut stage, &guard, used("a", 100, 0)));
        stage.write(StateUpdate::messages(vec![used("a", 700, 0)]));
        // Shrinking is no gain.
        stage.write(StateUpdate::messages(vec![used("old", 5, 0)]));
        assert!(!answers(&mut stage, &guard, used("b", 99, 0)));
        assert!(heard(&guard, vec![], &run_as("t", "r"), Answers::Yes).is_empty());
        // A reply that stood there before grows by what came in this run.
        stage.write(StateUpdate::messages(vec![used("old", 11, 0)]));
        assert!(!answers(&mut stage, &guard, used("c", 0, 0)));
        assert_eq!(
            heard(&guard, vec![], &run_as("t", "r"), Answers::Yes).len(),
            1
        );
    }

    #[test]
    fn tbg_3_the_limit_that_is_nearest_counts_and_the_earlier_of_equal_ones() {
        let nearest = |input, output| {
            let guard = budget(|config| {
                config.max_input_tokens = Some(500);
                config.max_output_tokens = Some(500);
            });
            let found = guard.nearest(Tokens { input, output });
            (found.what, found.used, found.limit)
        };
        assert_eq!(nearest(300, 300), ("total", 600, 1000));
        assert_eq!(nearest(300, 100), ("input", 300, 500));
        assert_eq!(nearest(100, 300), ("output", 300, 500));
    }

    #[test]
    fn a_model_that_reports_no_tokens_is_told_of_once_in_a_run() {
        let guard = budget(|_| {});
        let mut stage = begun(&guard, vec![]);
        let run = run_as("t", "r");
        for id in ["a", "b"] {
            let silent = reply(json!({"id": id, "content": "x"}));
            stage.write(StateUpdate::messages(vec![silent]));
            assert!(stage.after_model(&guard, &run).is_none());
        }
        let warnings = run.signals.take_warnings().expect("a warning");
        let codes: Vec<_> = warnings.iter().map(|(warning, _)| warning.code()).collect();
        assert_eq!(codes, ["usage_unreported"]);
    }

    #[test]
    fn tbg_4_text_is_appended_without_calls_too_and_nothing_used_is_nothing_done() {
        let guard = budget(|config| config.hard_stop_threshold = 0.8);
        let mut stage = begun(&guard, vec![]);
        assert!(!answers(
            &mut stage,
            &guard,
            reply(json!({"id": "a", "content": "x"}))
        ));
        let whole = json!({
            "id": "b", "content": "", "usage_metadata": {"input_tokens": 2000, "output_tokens": 0, "total_tokens": 2000},
        });
        assert!(answers(&mut stage, &guard, reply(whole)));
        assert!(stage.last().text().starts_with("\n\n[TOKEN"));

        let off = budget(|config| config.enabled = None);
        assert_eq!(off.hooks(), Hooks::default());
        let mut stage = begun(&off, vec![]);
        assert!(!answers(&mut stage, &off, used("a", 9000, 0)));
    }

    #[test]
    fn tbg_5_turns_under_one_run_id_share_a_budget_and_a_new_run_has_its_own() {
        let guard = budget(|_| {});
        let facts = run_as("t", "r");
        let mut stage = begun(&guard, vec![]);
        assert!(!answers(&mut stage, &guard, used("a", 600, 0)));
        stage.hook(&guard, Hook::AfterAgent, &facts);
        stage.hook(&guard, Hook::BeforeAgent, &facts);
        assert!(answers(&mut stage, &guard, used("b", 400, 0)));
        stage.hook(&guard, Hook::AfterAgent, &facts);
        let other = run_as("t", "q");
        stage.hook(&guard, Hook::BeforeAgent, &other);
        stage.write(StateUpdate::messages(vec![used("c", 700, 0)]));
        assert_eq!(stage.after_model(&guard, &other), None);
        // The end of a run leaves why it ended.
        assert_eq!(
            guard.consume_stop_reason("r"),
            Some(StopReason::TokenCapped)
        );
    }

    #[test]
    fn sub_59_executions_of_a_run_have_a_budget_each() {
        let guard = budget(|_| {});
        let executions = ["a", "b", "c"].map(|id| execution("t", "r", id));
        let mut stages = [(); 3].map(|()| Stage::new(vec![]));
        for (stage, facts) in stages.iter_mut().zip(&executions) {
            stage.hook(&guard, Hook::BeforeAgent, facts);
        }
        for (stage, facts) in stages.iter_mut().zip(&executions) {
            stage.write(StateUpdate::messages(vec![used("a", 900, 0)]));
            assert_eq!(stage.after_model(&guard, facts), None);
        }
        // Each hears its own warning, and one is stopped.
        stages[1].write(StateUpdate::messages(vec![used("b", 100, 0)]));
        assert!(stages[1].after_model(&guard, &executions[1]).is_some());
        let stopped = executions.each_ref().map(|it| it.signals.stop_reason());
        assert_eq!(stopped, [None, Some(StopReason::TokenCapped), None]);
        for facts in &executions {
            assert_eq!(heard(&guard, vec![], facts, Answers::Yes).len(), 1);
            Stage::new(vec![]).hook(&guard, Hook::AfterAgent, facts);
        }
        assert_eq!(guard.runs().iter_mut().count(), 0, "nothing is kept");
        assert_eq!(guard.consume_stop_reason("r"), None);
    }

    #[test]
    fn what_a_long_thread_used_before_is_never_counted_whatever_is_removed_later() {
        let guard = budget(|_| {});
        let old: Vec<Message> = (0..50).map(|n| used(&format!("o{n}"), 900, 0)).collect();
        let mut stage = begun(&guard, old.clone());
        // All but the oldest go, as when a thread is summarised.
        for message in &old[1..] {
            stage.write(StateUpdate::set(
                crate::state::channels::Channel::Messages,
                json!([{"type": "remove", "id": message.id(), "content": ""}]),
            ));
        }
        assert!(!answers(&mut stage, &guard, used("a", 500, 0)));
        assert_eq!(stage.messages().len(), 2);
    }
}
