//! Stops a model that goes round in circles: the same calls again and again, or one tool without end.
//!
//! It watches two things in each reply that calls tools: how often this very set of calls came lately, and how often each
//! tool was called lately. Often enough, and the model is told at its next call; too often, and the calls are taken out, so
//! that the reply is the run's last. What it remembers is of one run: the turns with which a run goes on by itself share it,
//! the next run of the thread starts afresh (the newest form of MW-LOOP-10).
//!
//! Source: DeerFlow `LoopDetectionMiddleware`, MW-LOOP-1 to 12, SUB-56 to 60.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::bounded::BoundedMap;
use super::call_set::call_set_hash;
use super::hard_stop::HardStop;
use super::remembered::{RunKey, execution_key, id_or_default, thread_key};
use super::reply::{last_reply, members, quoted_name};
use super::request::{note, run_with_note};
use super::{Hook, HookContext, HookOutput, Hooks, Middleware, ModelResponse, NextModel, RunFacts};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::app_config::{Feature, LoopDetectionConfig};
use crate::protocol::error::Error;
use crate::protocol::message::ToolCall;
use crate::protocol::run::StopReason;

/// Most words that wait for a run's next model call.
const MAX_PENDING: usize = 4;

/// How often things may come, in numbers of this machine.
#[derive(Debug)]
struct Limits {
    /// Replies with the same calls at which the model is told.
    warn: usize,
    /// Those at which the run ends.
    hard: usize,
    /// Replies that are looked at.
    replies: usize,
    /// Calls that are looked at, to count tools. No limit may lie beyond it, or it would never be met.
    calls: usize,
    /// Calls of one tool at which the model is told, and those at which the run ends.
    tool: (usize, usize),
    /// The same for some tools.
    of_tools: HashMap<String, (usize, usize)>,
}

impl Limits {
    fn new(config: &LoopDetectionConfig) -> Self {
        let pair = |warn, hard| (number(warn), number(hard));
        let tool = pair(config.tool_freq_warn, config.tool_freq_hard_limit);
        let of_tools: HashMap<String, (usize, usize)> = config
            .tool_freq_overrides
            .iter()
            .map(|(name, limits)| (name.clone(), pair(limits.warn, limits.hard_limit)))
            .collect();
        let replies = number(config.window_size);
        let hard = of_tools.values().map(|(_, hard)| *hard);
        Limits {
            warn: number(config.warn_threshold),
            hard: number(config.hard_limit),
            replies,
            calls: hard.fold(replies.max(tool.1), usize::max),
            tool,
            of_tools,
        }
    }

    fn of(&self, tool: &str) -> (usize, usize) {
        self.of_tools.get(tool).copied().unwrap_or(self.tool)
    }
}

fn number(configured: u64) -> usize {
    usize::try_from(configured).unwrap_or(usize::MAX)
}

/// What comes of a reply.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    GoOn,
    Warn(String),
    Stop(String),
}

/// What is remembered of a run.
#[derive(Debug, Default)]
struct Track {
    /// Hashes of the replies in the window, oldest first.
    replies: VecDeque<String>,
    /// Those of them that the model was told about.
    warned: HashSet<String>,
    /// Names of the calls in the other window, oldest first.
    calls: VecDeque<Arc<str>>,
    /// How often each name is in it.
    counts: HashMap<Arc<str>, usize>,
    /// Tools that the model was told about.
    warned_tools: HashSet<Arc<str>>,
    /// Words for the next model call.
    pending: Vec<String>,
}

impl Track {
    /// Takes a reply with calls in. A verdict on the set of calls leaves the tools uncounted (MW-LOOP-5).
    fn judge(&mut self, hash: String, calls: &[ToolCall], limits: &Limits) -> Verdict {
        self.replies.push_back(hash.clone());
        while self.replies.len() > limits.replies {
            self.replies.pop_front();
        }
        let replies = &self.replies;
        self.warned.retain(|hash| replies.contains(hash));
        let count = replies.iter().filter(|reply| **reply == hash).count();
        if count >= limits.hard {
            return Verdict::Stop(format!(
                "[FORCED STOP] The same tool calls came {count} times, so they are not run again and this run ends here. \
                 What it has found so far stands above."
            ));
        }
        if count >= limits.warn && self.warned.insert(hash) {
            return Verdict::Warn(format!(
                "[LOOP DETECTED] The same tool calls came {count} times, and they will not return anything else. Stop \
                 calling tools and answer now; if the task cannot be done, say how far it got."
            ));
        }
        let names = calls.iter().map(|call| &*call.name);
        for name in names.filter(|name| !name.is_empty()) {
            let (warn, hard) = limits.of(name);
            let name: Arc<str> = name.into();
            let count = self.count(&name, limits.calls);
            if count >= hard {
                return Verdict::Stop(format!(
                    "[FORCED STOP] The tool {} was called {count} times, so it is not run again and this run ends here. \
                     What it has found so far stands above.",
                    quoted_name(&name)
                ));
            }
            if count < warn {
                self.warned_tools.remove(&name);
            } else if self.warned_tools.insert(name.clone()) {
                return Verdict::Warn(format!(
                    "[LOOP DETECTED] The tool {} was called {count} times without an answer from you. Stop calling tools \
                     and answer now; if the task cannot be done, say how far it got.",
                    quoted_name(&name)
                ));
            }
        }
        Verdict::GoOn
    }

    /// Adds a call to the window; how often its tool is in it now.
    fn count(&mut self, name: &Arc<str>, window: usize) -> usize {
        self.calls.push_back(name.clone());
        *self.counts.entry(name.clone()).or_default() += 1;
        while self.calls.len() > window {
            if let Some(oldest) = self.calls.pop_front()
                && let Some(count) = self.counts.get_mut(&oldest)
            {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&oldest);
                }
            }
        }
        self.counts.get(name).copied().unwrap_or_default()
    }

    fn queue(&mut self, words: String) {
        if !self.pending.contains(&words) {
            self.pending.push(words);
        }
        let surplus = self.pending.len().saturating_sub(MAX_PENDING);
        self.pending.drain(..surplus);
    }
}

/// See the module.
pub struct LoopDetection {
    config: LoopDetectionConfig,
    limits: Limits,
    runs: Mutex<BoundedMap<RunKey, Track>>,
    stop: HardStop,
}

impl LoopDetection {
    /// As configured.
    pub fn new(config: LoopDetectionConfig) -> Self {
        LoopDetection {
            runs: Mutex::new(BoundedMap::new(number(config.max_tracked_threads))),
            stop: HardStop::new(StopReason::LoopCapped),
            limits: Limits::new(&config),
            config,
        }
    }

    /// Whether this ended the run; says so once. It can be asked after the run is over (MW-LOOP-7, SUB-60). That of a subagent
    /// goes by the id of its execution.
    pub fn consume_stop_reason(&self, run_id: &str) -> Option<StopReason> {
        self.stop.consume(run_id)
    }

    /// Forgets a thread, or everything (MW-LOOP-11).
    pub fn reset(&self, thread_id: Option<&str>) {
        match thread_id {
            Some(thread) => self.runs().retain(|(of, _), _| **of != *thread),
            None => {
                self.runs().clear();
                self.stop.clear();
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, BoundedMap<RunKey, Track>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn after_model(&self, context: &HookContext<'_>) -> HookOutput {
        let Some(reply) = last_reply(&context.state) else {
            return HookOutput::Continue;
        };
        let calls = &reply.fields().tool_calls;
        if calls.is_empty() {
            return HookOutput::Continue;
        }
        let hash = call_set_hash(calls);
        let verdict = {
            let key = key(context.run);
            let mut runs = self.runs();
            runs.refresh(&key);
            let track = runs.get_or_insert_with(key, Track::default);
            let verdict = track.judge(hash, calls, &self.limits);
            if let Verdict::Warn(words) = &verdict {
                track.queue(words.clone());
            }
            verdict
        };
        let Verdict::Stop(text) = verdict else {
            return HookOutput::Continue;
        };
        self.stop.end(context.run, reply, &text)
    }
}

/// What a run is remembered under (MW-LOOP-9).
fn key(run: &RunFacts) -> RunKey {
    (id_or_default(thread_key(run)), execution_key(run).clone())
}

impl Middleware for LoopDetection {
    fn name(&self) -> &str {
        "loop_detection"
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
        let overrides = config.tool_freq_overrides.iter();
        let overrides: Map<String, Value> = overrides
            .map(|(name, limits)| (name.clone(), json!([limits.warn, limits.hard_limit])))
            .collect();
        members([
            ("warn_threshold", config.warn_threshold.into()),
            ("hard_limit", config.hard_limit.into()),
            ("window_size", config.window_size.into()),
            ("max_tracked_threads", config.max_tracked_threads.into()),
            ("tool_freq_warn", config.tool_freq_warn.into()),
            ("tool_freq_hard_limit", config.tool_freq_hard_limit.into()),
            ("tool_freq_overrides", overrides.into()),
        ])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        if !self.config.is_enabled() {
            return Ok(HookOutput::Continue);
        }
        let (thread, run) = key(context.run);
        match hook {
            Hook::AfterModel => return Ok(self.after_model(context)),
            Hook::BeforeAgent => {
                for ((of, other), track) in self.runs().iter_mut() {
                    if *of == thread && *other != run {
                        track.pending.clear();
                    }
                }
            }
            Hook::AfterAgent => {
                let mut runs = self.runs();
                let key = (thread, run);
                if context.run.subagent.is_some() {
                    runs.remove(&key);
                } else if let Some(track) = runs.get_mut(&key) {
                    track.pending.clear();
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
        let key = key(&request.run.facts);
        let pending = match self.runs().get_mut(&key) {
            Some(track) => std::mem::take(&mut track.pending),
            None => Vec::new(),
        };
        if pending.is_empty() {
            return next.run(request);
        }
        let words = note("loop_warning", pending.join("\n\n"));
        run_with_note(request, words, next, move || {
            if let Some(track) = self.runs().get_mut(&key) {
                let newer = std::mem::replace(&mut track.pending, pending);
                newer.into_iter().for_each(|words| track.queue(words));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::reply::tests::reply;
    use crate::middleware::stage::{Answers, Stage, execution, heard, run_as};
    use crate::protocol::app_config::ToolFrequencyConfig;

    fn guard(change: impl FnOnce(&mut LoopDetectionConfig)) -> LoopDetection {
        let mut config = LoopDetectionConfig::default();
        change(&mut config);
        LoopDetection::new(config)
    }

    fn call(name: &str, args: Value) -> Value {
        json!({"name": name, "args": args, "id": "c", "type": "tool_call"})
    }

    /// What one reply with these calls leads to in run `r` of thread `t`: nothing, a warning that waits, or the end.
    fn feed(guard: &LoopDetection, calls: Value) -> &'static str {
        feed_run(guard, calls, "r")
    }

    fn feed_run(guard: &LoopDetection, calls: Value, run: &str) -> &'static str {
        feed_as(guard, calls, &run_as("t", run))
    }

    fn feed_as(guard: &LoopDetection, calls: Value, facts: &RunFacts) -> &'static str {
        let mut stage = Stage::new(vec![reply(json!({"tool_calls": calls}))]);
        if stage.after_model(guard, facts).is_some() {
            assert!(stage.last().text().contains("[FORCED STOP]"));
            assert_eq!(facts.signals.stop_reason(), Some(StopReason::LoopCapped));
            return "HARD";
        }
        let words = heard(guard, vec![], facts, Answers::Yes);
        if words.is_empty() { "." } else { "warn" }
    }

    fn series(
        guard: &LoopDetection,
        replies: impl IntoIterator<Item = Value>,
    ) -> Vec<&'static str> {
        replies
            .into_iter()
            .map(|calls| feed(guard, calls))
            .collect()
    }

    #[test]
    fn l3_the_same_set_of_calls_is_warned_of_and_stopped_in_whatever_order() {
        let expected = [".", ".", "warn", ".", "HARD", "HARD"];
        let same = || json!([call("bash", json!({"command": "ls"}))]);
        assert_eq!(
            series(&guard(|_| {}), std::iter::repeat_n(same(), 6)),
            expected
        );

        let (s, t) = (
            call("search", json!({"query": "a", "note": 1})),
            call("search", json!({"note": 2, "query": "b"})),
        );
        let keys = [
            json!([{"name": "s", "args": {"a": 1, "b": 2}, "id": "1", "type": "tool_call"}]),
            json!([{"name": "s", "args": {"b": 2, "a": 1}, "id": "2", "type": "tool_call"}]),
        ];
        let turns = (0..5).map(|n| keys[n % 2].clone());
        assert_eq!(series(&guard(|_| {}), turns), expected[..5]);
        let sets = [json!([s, t]), json!([t, s])];
        let turns = (0..5).map(|n| sets[n % 2].clone());
        assert_eq!(series(&guard(|_| {}), turns), expected[..5]);

        let lines = (0..5).map(|n| {
            json!([call(
                "read_file",
                json!({"path": "/a", "start_line": 1 + n, "end_line": 90 + n})
            )])
        });
        assert_eq!(series(&guard(|_| {}), lines), expected[..5]);
        let writes =
            (0..6).map(|n| json!([call("write_file", json!({"path": "/a", "content": n}))]));
        assert_eq!(series(&guard(|_| {}), writes), ["."; 6]);
    }

    #[test]
    fn sub_56_executions_of_a_run_do_not_count_each_others_calls() {
        let guard = guard(|_| {});
        let executions = ["a", "b", "c"].map(|id| execution("t", "r", id));
        let same = || json!([call("bash", json!({"command": "ls"}))]);
        for expected in [".", ".", "warn", ".", "HARD"] {
            for facts in &executions {
                assert_eq!(feed_as(&guard, same(), facts), expected);
            }
        }
        // A warning waits for the execution that it is about, whoever of its siblings begins or ends meanwhile.
        let (warned, sibling) = (execution("t", "r", "d"), execution("t", "r", "e"));
        let mut stage = Stage::new(vec![reply(json!({"tool_calls": same()}))]);
        for _ in 0..3 {
            stage.after_model(&guard, &warned);
        }
        for hook in [Hook::BeforeAgent, Hook::AfterAgent] {
            Stage::new(vec![]).hook(&guard, hook, &sibling);
        }
        assert!(heard(&guard, vec![], &sibling, Answers::Yes).is_empty());
        assert_eq!(heard(&guard, vec![], &warned, Answers::Yes).len(), 1);
        // Nothing is kept of an execution that is over.
        for facts in executions.iter().chain([&warned]) {
            Stage::new(vec![]).hook(&guard, Hook::AfterAgent, facts);
        }
        assert_eq!(guard.runs().iter_mut().count(), 0);
        assert_eq!(guard.consume_stop_reason("a"), Some(StopReason::LoopCapped));
    }

    #[test]
    fn loop_5_a_hash_that_left_the_window_is_warned_of_again() {
        let guard = guard(|config| config.window_size = 4);
        let a = || json!([call("bash", json!({"command": "a"}))]);
        let mut turns = vec![a(), a(), a()];
        turns.extend((0..4).map(|n| json!([call("bash", json!({"command": n}))])));
        turns.extend([a(), a(), a()]);
        assert_eq!(
            series(&guard, turns),
            [".", ".", "warn", ".", ".", ".", ".", ".", ".", "warn"]
        );
    }

    #[test]
    fn l1_and_loop_6_one_tool_without_end_is_warned_of_and_stopped() {
        let calls = (0..55).map(|n| json!([call("search", json!({"query": n}))]));
        let verdicts = series(&guard(|_| {}), calls);
        for (place, verdict) in verdicts.iter().enumerate() {
            let expected = match place + 1 {
                30 => "warn",
                50.. => "HARD",
                _ => ".",
            };
            assert_eq!(*verdict, expected, "call {}", place + 1);
        }
        // Spread out so that no window of 50 calls holds 30 of it.
        let spread = (0..120).map(|n| {
            let name = if n % 2 == 0 {
                "search"
            } else {
                ["a", "b", "c"][n % 3]
            };
            json!([call(name, json!({"query": n}))])
        });
        assert_eq!(series(&guard(|_| {}), spread), ["."; 120]);
    }

    #[test]
    fn loop_6_a_burst_that_is_over_is_warned_of_again() {
        let guard = guard(|config| {
            config.window_size = 4;
            config.tool_freq_warn = 2;
            config.tool_freq_hard_limit = 4;
        });
        let names = ["a", "a", "a", "b", "c", "b", "c", "a", "a"];
        let turns = names
            .iter()
            .enumerate()
            .map(|(n, name)| json!([call(name, json!({"query": n}))]));
        // The second b and c are bursts of their own.
        assert_eq!(
            series(&guard, turns),
            [".", "warn", ".", ".", ".", "warn", "warn", ".", "warn"]
        );
    }

    #[test]
    fn loop_6_some_tools_have_limits_of_their_own_and_the_window_has_room_for_them() {
        let guard = guard(|config| {
            config.tool_freq_warn = 2;
            config.tool_freq_hard_limit = 3;
            let bash = ToolFrequencyConfig {
                warn: 60,
                hard_limit: 70,
            };
            config.tool_freq_overrides.insert("bash".into(), bash);
        });
        let calls = (0..70).map(|n| json!([call("bash", json!({"command": n}))]));
        let verdicts = series(&guard, calls);
        assert_eq!(
            (verdicts[58], verdicts[59], verdicts[68], verdicts[69]),
            (".", "warn", ".", "HARD")
        );
        assert_eq!(feed(&guard, json!([call("f", json!({"query": 1}))])), ".");
        assert_eq!(
            feed(&guard, json!([call("f", json!({"query": 2}))])),
            "warn"
        );
    }

    #[test]
    fn loop_6_calls_after_a_verdict_are_not_counted() {
        let guard = guard(|config| {
            config.tool_freq_warn = 1;
            config.tool_freq_hard_limit = 2;
        });
        let both = json!([
            call("a", json!({"query": 1})),
            call("b", json!({"query": 1}))
        ]);
        assert_eq!(feed(&guard, both), "warn");
        // b was not counted: this is its first call.
        assert_eq!(
            feed(&guard, json!([call("b", json!({"query": 2}))])),
            "warn"
        );
    }

    #[test]
    fn loop_7_a_stop_takes_the_calls_out_and_says_so_below_the_text() {
        let guard = guard(|config| {
            config.warn_threshold = 1;
            config.hard_limit = 1;
        });
        let facts = run_as("t", "r");
        let mut stage = Stage::new(vec![reply(json!({
            "tool_calls": [call("bash", json!({}))],
            "additional_kwargs": {"tool_calls": [{"id": "c"}], "function_call": {}, "x": 1},
            "response_metadata": {"finish_reason": "tool_calls"},
        }))]);
        stage.after_model(&guard, &facts);
        let last = stage.last();
        let fields = last.fields();
        assert!(last.text().starts_with("\n\n[FORCED STOP]"), "{last:?}");
        assert!(fields.tool_calls.is_empty());
        assert_eq!(
            Value::Object(fields.additional_kwargs.clone()),
            json!({"x": 1})
        );
        assert_eq!(fields.response_metadata["finish_reason"], "stop");
        stage.hook(&guard, Hook::AfterAgent, &facts);
        assert_eq!(guard.consume_stop_reason("r"), Some(StopReason::LoopCapped));
        assert_eq!(guard.consume_stop_reason("r"), None);
        assert_eq!(guard.consume_stop_reason("q"), None);
    }

    fn warned(guard: &LoopDetection, run: &str) {
        let facts = run_as("t", run);
        for _ in 0..3 {
            let calls = json!([call("bash", json!({"command": "ls"}))]);
            Stage::new(vec![reply(json!({"tool_calls": calls}))]).after_model(guard, &facts);
        }
    }

    #[test]
    fn loop_8_words_wait_for_the_run_s_next_call_come_last_and_are_not_lost_with_a_call_that_fails()
    {
        let guard = guard(|_| {});
        warned(&guard, "r");
        let facts = run_as("t", "r");
        let before = vec![reply(json!({}))];
        assert_eq!(
            heard(&guard, before.clone(), &run_as("t", "q"), Answers::Yes).len(),
            1
        );
        assert_eq!(heard(&guard, before.clone(), &facts, Answers::No).len(), 2);
        let request = heard(&guard, before.clone(), &facts, Answers::Yes);
        let words = request[1].fields();
        assert_eq!(words.name.as_deref(), Some("loop_warning"));
        assert!(words.additional_kwargs.is_empty(), "it is not hidden");
        assert!(request[1].text().starts_with("[LOOP DETECTED]"));
        assert_eq!(heard(&guard, before, &facts, Answers::Yes).len(), 1);
    }

    #[test]
    fn loop_8_at_most_four_words_wait_each_once_and_the_oldest_go() {
        let mut track = Track::default();
        for words in ["a", "b", "a", "c", "d", "e"] {
            track.queue(words.to_owned());
        }
        assert_eq!(track.pending, ["b", "c", "d", "e"]);
    }

    #[test]
    fn loop_10_words_of_another_run_and_of_a_run_that_is_over_are_dropped() {
        for (hook, run) in [(Hook::BeforeAgent, "q"), (Hook::AfterAgent, "r")] {
            let guard = guard(|_| {});
            warned(&guard, "r");
            Stage::new(vec![]).hook(&guard, hook, &run_as("t", run));
            assert!(heard(&guard, vec![], &run_as("t", "r"), Answers::Yes).is_empty());
        }
        for (hook, thread, run) in [
            (Hook::BeforeAgent, "t", "r"),
            (Hook::BeforeAgent, "u", "q"),
            (Hook::AfterAgent, "t", "q"),
        ] {
            let guard = guard(|_| {});
            warned(&guard, "r");
            Stage::new(vec![]).hook(&guard, hook, &run_as(thread, run));
            assert_eq!(
                heard(&guard, vec![], &run_as("t", "r"), Answers::Yes).len(),
                1
            );
        }
    }

    #[test]
    fn loop_10_a_run_goes_on_where_it_was_and_the_next_run_starts_afresh() {
        let guard = guard(|_| {});
        let same = || json!([call("bash", json!({"command": "ls"}))]);
        assert_eq!(series(&guard, [same(), same()]), [".", "."]);
        for hook in [Hook::AfterAgent, Hook::BeforeAgent] {
            Stage::new(vec![]).hook(&guard, hook, &run_as("t", "r"));
        }
        assert_eq!(
            series(&guard, [same(), same(), same()]),
            ["warn", ".", "HARD"]
        );
        assert_eq!(feed_run(&guard, same(), "q"), ".");
    }

    #[test]
    fn loop_11_the_run_that_called_longest_ago_is_forgotten_first_and_a_reset_forgets_all() {
        let guard = guard(|config| config.max_tracked_threads = 2);
        let same = || json!([call("bash", json!({"command": "ls"}))]);
        for run in ["1", "2", "1", "3", "1"] {
            // 2 goes when 3 comes; the third call of 1 is still known as such.
            let expected =
                if run == "1" && guard.runs().get_mut(&("t".into(), "3".into())).is_some() {
                    "warn"
                } else {
                    "."
                };
            assert_eq!(feed_run(&guard, same(), run), expected);
        }
        assert_eq!(
            (feed_run(&guard, same(), "2"), feed_run(&guard, same(), "2")),
            (".", ".")
        );
        guard.reset(Some("t"));
        assert_eq!(
            (feed_run(&guard, same(), "2"), feed_run(&guard, same(), "2")),
            (".", ".")
        );
        guard.reset(None);
        assert_eq!(feed_run(&guard, same(), "2"), ".");
    }

    #[test]
    fn switched_off_it_does_nothing() {
        let off = guard(|config| config.enabled = Some(false));
        assert_eq!(off.hooks(), Hooks::default());
        assert_eq!(
            series(&off, (0..6).map(|_| json!([call("f", json!({}))]))),
            ["."; 6]
        );
    }

    #[test]
    fn the_policy_names_the_settings() {
        let guard = guard(|config| {
            let bash = ToolFrequencyConfig {
                warn: 60,
                hard_limit: 70,
            };
            config.tool_freq_overrides.insert("bash".into(), bash);
        });
        assert_eq!(
            Value::Object(guard.policy()),
            json!({
                "warn_threshold": 3, "hard_limit": 5, "window_size": 20, "max_tracked_threads": 100,
                "tool_freq_warn": 30, "tool_freq_hard_limit": 50, "tool_freq_overrides": {"bash": [60, 70]},
            })
        );
    }
}
