//! Unit tests of the guard over tools that get nowhere.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::middleware::stage::{Answers, Stage, execution, heard, run_as};
use crate::middleware::testing::called;
use crate::middleware::tool_result_class::of_failure;
use crate::middleware::{CallTool, RunFacts};
use crate::protocol::message::ToolStatus;
use crate::state::update::StateUpdate;
use crate::tools::testing::{call, ready, run_with};

fn guard(change: impl FnOnce(&mut ToolProgressConfig)) -> ToolProgress {
    let mut config = ToolProgressConfig {
        enabled: Some(true),
        ..ToolProgressConfig::default()
    };
    change(&mut config);
    ToolProgress::new(config)
}

/// Answers with a class, and counts.
struct Tool<'a>(&'a str, AtomicUsize);

impl CallTool for Tool<'_> {
    fn call(&self, _: ToolInvocation) -> BoxFuture<'_, ToolOutcome> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let answer = ToolAnswer {
            content: "x".into(),
            status: ToolStatus::Error,
            additional_kwargs: Map::from_iter([(TOOL_META.to_owned(), of_failure(self.0))]),
            ..ToolAnswer::default()
        };
        Box::pin(std::future::ready(ToolOutcome::Answer(answer)))
    }
}

/// One call of a tool that fails for this reason, in run `run` of a thread: whether it ran.
fn fails(guard: &ToolProgress, thread: &str, run: &str, tool: &str, reason: &str) -> bool {
    fails_as(guard, run_as(thread, run), tool, reason)
}

fn fails_as(guard: &ToolProgress, facts: RunFacts, tool: &str, reason: &str) -> bool {
    let mut invocation = call(tool, json!({}));
    invocation.run = run_with(facts);
    let inside = Tool(reason, AtomicUsize::new(0));
    ready(guard.wrap_tool_call(invocation, NextTool::new(&[], &inside)));
    inside.1.into_inner() == 1
}

fn hints(guard: &ToolProgress, thread: &str, run: &str, answers: Answers) -> Vec<String> {
    let messages = heard(guard, Vec::new(), &run_as(thread, run), answers);
    let named = messages.iter().inspect(|message| {
        assert_eq!(message.fields().name.as_deref(), Some("progress_hint"));
    });
    named.map(|message| message.text().to_string()).collect()
}

fn begin(guard: &ToolProgress, thread: &str, run: &str) {
    let mut stage = Stage::new(Vec::new());
    let done = stage.hook(guard, Hook::BeforeAgent, &run_as(thread, run));
    assert_eq!(done, (None, None));
}

#[test]
fn mw_tpr_3_a_blocked_tool_is_not_run_and_others_are() {
    let guard = guard(|_| {});
    assert!(fails(&guard, "t", "r", "fetch", "401"));
    assert!(!fails(&guard, "t", "r", "fetch", "401"));
    assert!(fails(&guard, "t", "r", "search", "odd"), "another tool");
    assert!(fails(&guard, "u", "r", "fetch", "401"), "another thread");
    let mut invocation = call("fetch", json!({}));
    invocation.run = run_with(run_as("t", "r"));
    let answer = called(&guard, invocation).expect("an answer");
    let content = answer.content.as_str().unwrap_or_default();
    assert!(content.starts_with("[TOOL_BLOCKED] "), "{content}");
    assert_eq!(answer.status, ToolStatus::Error);
    let expected = json!({
        "status": "error", "error_type": "blocked_by_progress_guard", "recoverable_by_model": true,
        "recommended_next_action": "summarize", "source": "progress_middleware",
    });
    assert_eq!(answer.additional_kwargs[TOOL_META], expected);
}

#[test]
fn mw_tpr_4_hints_are_heard_once_and_come_again_when_the_call_failed() {
    let guard = guard(|_| {});
    for _ in 0..3 {
        assert!(fails(&guard, "t", "r", "fetch", "no results"));
    }
    assert_eq!(hints(&guard, "t", "other", Answers::Yes).len(), 0);
    let told = hints(&guard, "t", "r", Answers::No);
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("[PROGRESS HINT] "), "{}", told[0]);
    assert_eq!(hints(&guard, "t", "r", Answers::Yes), told);
    assert_eq!(hints(&guard, "t", "r", Answers::Yes).len(), 0);
}

#[test]
fn mw_tpr_4_at_most_three_hints_wait_and_the_same_is_said_once() {
    let guard = guard(|config| config.stagnation_threshold = 1);
    let reasons = ["no results", "odd", "404", "timeout", "rate limit"];
    for (place, reason) in reasons.iter().enumerate() {
        assert!(fails(&guard, "t", "r", &format!("tool{place}"), reason));
    }
    let told = hints(&guard, "t", "r", Answers::Yes);
    assert_eq!(told[0].matches("[PROGRESS HINT]").count(), 3);
    for _ in 0..2 {
        assert!(fails(&guard, "t", "r", "tool0", "no results"));
    }
    let told = hints(&guard, "t", "r", Answers::Yes);
    assert_eq!(told[0].matches("[PROGRESS HINT]").count(), 1);
}

#[test]
fn mw_tpr_4_a_run_begins_afresh() {
    let guard = guard(|_| {});
    fails(&guard, "t", "r", "fetch", "401");
    for _ in 0..3 {
        fails(&guard, "t", "r", "search", "no results");
    }
    begin(&guard, "u", "r2");
    assert!(!fails(&guard, "t", "r", "fetch", "401"), "another thread's");
    begin(&guard, "t", "r2");
    assert_eq!(hints(&guard, "t", "r", Answers::Yes).len(), 0);
    assert!(fails(&guard, "t", "r2", "fetch", "401"));
    assert!(!fails(&guard, "t", "r2", "fetch", "401"));
}

#[test]
fn executions_of_a_run_block_no_tools_of_each_other() {
    let guard = guard(|_| {});
    let (a, b) = (execution("t", "r", "a"), execution("t", "r", "b"));
    let hinted = |facts: &RunFacts| heard(&guard, Vec::new(), facts, Answers::Yes).len();
    assert!(fails_as(&guard, a.clone(), "fetch", "401"));
    for _ in 0..3 {
        fails_as(&guard, a.clone(), "search", "no results");
    }
    assert_eq!(hinted(&b), 0);
    Stage::new(Vec::new()).hook(&guard, Hook::BeforeAgent, &b);
    assert!(fails_as(&guard, b.clone(), "fetch", "odd"));
    Stage::new(Vec::new()).hook(&guard, Hook::AfterAgent, &b);
    assert!(
        !fails_as(&guard, a.clone(), "fetch", "401"),
        "still blocked"
    );
    assert_eq!(hinted(&a), 1);
    Stage::new(Vec::new()).hook(&guard, Hook::AfterAgent, &a);
    assert_eq!(guard.threads().iter_mut().count(), 0);
}

#[test]
fn mw_tpr_4_results_that_write_to_the_state_are_not_assessed() {
    let guard = guard(|_| {});
    let run = run_with(run_as("t", "r"));
    let assess = |change: fn(&mut ToolAnswer)| {
        let mut answer = ToolAnswer {
            additional_kwargs: Map::from_iter([(TOOL_META.to_owned(), of_failure("401"))]),
            ..ToolAnswer::default()
        };
        change(&mut answer);
        guard.assess(&run, "fetch".to_owned(), &answer);
        guard.blocked(&run.thread_id, "fetch").is_some()
    };
    assert!(!assess(
        |answer| answer.update = Some(StateUpdate::default())
    ));
    assert!(!assess(|answer| answer.end_run = true));
    assert!(!assess(|answer| answer.additional_kwargs.clear()));
    assert!(!assess(
        |answer| answer.additional_kwargs[TOOL_META] = json!("odd")
    ));
    assert!(assess(|_| {}));
}

#[test]
fn exempt_tools_are_left_alone_and_a_guard_that_is_off_does_nothing() {
    let on = guard(|_| {});
    assert!(fails(&on, "t", "r", "task", "401"));
    assert!(fails(&on, "t", "r", "task", "401"));
    let off = guard(|config| config.enabled = None);
    assert_eq!(off.hooks(), Hooks::default());
    let silent = guard(|config| config.inject_assessment = false);
    for _ in 0..3 {
        fails(&silent, "t", "r", "fetch", "no results");
    }
    assert_eq!(hints(&silent, "t", "r", Answers::Yes).len(), 0);
}

#[test]
fn what_is_remembered_is_bounded() {
    let guard = guard(|config| config.max_tracked_threads = 2);
    let blocked = |thread: &str| guard.blocked(&thread.into(), "fetch").is_some();
    fails(&guard, "a", "r", "fetch", "401");
    fails(&guard, "b", "r", "fetch", "401");
    // A write makes a thread young, a blocked call does not.
    fails(&guard, "a", "r", "search", "odd");
    fails(&guard, "b", "r", "fetch", "401");
    fails(&guard, "c", "r", "fetch", "401");
    assert_eq!(
        (blocked("a"), blocked("b"), blocked("c")),
        (true, false, true)
    );
    for n in 0..2 * MAX_TOOLS {
        fails(&guard, "c", "r", &format!("made up {n}"), "odd");
    }
    assert!(!blocked("c"), "the oldest tool went");
    let mut stage = Stage::new(Vec::new());
    stage.hook(&guard, Hook::AfterAgent, &run_as("a", "r"));
    assert!(!blocked("a"), "nothing is kept for a run that is over");
}

#[test]
fn the_policy_tells_every_setting() {
    let guard = guard(|config| config.exempt_tools = vec!["b".into(), "a".into(), "b".into()]);
    let expected = json!({
        "stagnation_threshold": 3, "warn_escalation_count": 2, "inject_assessment": true,
        "jaccard_similarity_threshold": 0.8, "min_word_count_for_similarity": 10,
        "exempt_tools": ["a", "b"], "max_tracked_threads": 100,
    });
    assert_eq!(Value::Object(guard.policy()), expected);
}
