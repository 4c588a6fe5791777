//! Which places there are, and what a chain shares with the agent that delegates.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use serde_json::json;

use super::*;
use crate::middleware::stage::{execution, run_as};
use crate::middleware::summarization::SummaryModels;
use crate::middleware::{CallTool, NextTool, RunFacts, compose};
use crate::ports::BoxFuture;
use crate::ports::thread_files::ThreadFiles;
use crate::ports::tool::{ToolAnswer, ToolInvocation, ToolOutcome};
use crate::protocol::app_config::{
    AppConfig, LoopDetectionConfig, TokenBudgetConfig, ToolProgressConfig,
};
use crate::tools::testing::files::FakeFiles;
use crate::tools::testing::{call, run_with};

fn names(chain: &[Arc<dyn Middleware>]) -> Vec<&str> {
    chain.iter().map(|part| part.name()).collect()
}

#[test]
fn mc_6_the_places_stand_in_the_order_of_subagents() {
    let places: Vec<&str> = SUBAGENT_CHAIN.iter().map(|place| place.name).collect();
    let expected = [
        "input_sanitization",
        "tool_output_budget",
        "tool_result_sanitization",
        "thread_data",
        "sandbox",
        "dangling_tool_call",
        "llm_error_handling",
        "guardrail",
        "guardrail_provider",
        "sandbox_audit",
        "read_before_write",
        "tool_progress",
        "tool_error_handling",
        "skill_activation",
        "skill_tool_policy",
        "view_image",
        "mcp_routing",
        "deferred_tool_filter",
        "loop_detection",
        "token_budget",
        "safety_finish_reason",
        "durable_context",
        "summarization",
        "subagent_date",
        "system_message_coalescing",
    ];
    assert_eq!(places, expected);
    // What is a conversation's, or a delegating agent's, is not there, and whatever else a lead agent has is.
    let ours: BTreeSet<&str> = places.into_iter().collect();
    let of_lead: BTreeSet<&str> = CHAIN.iter().map(|place| place.name).collect();
    let left_out: Vec<&str> = of_lead.difference(&ours).copied().collect();
    let expected = [
        "clarification",
        "dynamic_context",
        "memory",
        "model_length",
        "subagent_limit",
        "terminal_response",
        "title",
        "todo",
        "token_usage",
        "uploads",
    ];
    assert_eq!(left_out, expected);
}

#[test]
fn mc_6_every_place_makes_the_middleware_of_its_name() {
    let mut app = AppConfig::default();
    app.tool_progress.enabled = Some(true);
    let files: Arc<dyn ThreadFiles> = Arc::new(FakeFiles::default());
    let inputs = || ChainInputs {
        thread_files: Some(files.clone()),
        vision: true,
        summary_models: Some(SummaryModels::default()),
        token_budget: Some(TokenBudgetConfig {
            enabled: Some(true),
            ..TokenBudgetConfig::default()
        }),
        // None of these has a place.
        plan_mode: true,
        subagent_limits: Some(Default::default()),
        ..ChainInputs::new(&app)
    };
    let mut one_by_one = inputs();
    let mut made = Vec::new();
    for place in SUBAGENT_CHAIN {
        if let Some(part) = (place.make)(&mut one_by_one).expect("a sound section") {
            assert_eq!(part.name(), place.name);
            made.push(place.name);
        }
    }
    let chain = compose_subagent(inputs()).expect("a chain");
    assert_eq!(names(&chain), made);
    for name in [
        "view_image",
        "summarization",
        "token_budget",
        "tool_progress",
    ] {
        assert!(made.contains(&name), "{name}");
    }
    crate::middleware::check_order(&chain).expect("MC-4");
}

#[test]
fn u8_guards_are_there_without_a_word_and_the_budget_is_the_subagents_own() {
    let app = AppConfig {
        token_budget: TokenBudgetConfig {
            enabled: Some(true),
            max_tokens: 5_000,
            ..TokenBudgetConfig::default()
        },
        ..AppConfig::default()
    };
    let own = app.subagents.token_budget_of("general-purpose", false);
    let chain = compose_subagent(ChainInputs {
        token_budget: Some(own),
        ..ChainInputs::new(&app)
    })
    .expect("a chain");
    let expected = [
        "input_sanitization",
        "tool_output_budget",
        "tool_result_sanitization",
        "thread_data",
        "dangling_tool_call",
        "llm_error_handling",
        "sandbox_audit",
        "read_before_write",
        "tool_error_handling",
        "loop_detection",
        "token_budget",
        "safety_finish_reason",
        "durable_context",
        "subagent_date",
        "system_message_coalescing",
    ];
    assert_eq!(names(&chain), expected);
    let budget = chain.iter().find(|part| part.name() == "token_budget");
    let config = &budget.expect("a budget").policy()["config"];
    assert_eq!(config["max_tokens"], 2_000_000);
    assert_eq!(config["warn_threshold"], 0.7);

    // The section of the lead agent still makes the lead agent's.
    let lead = compose(ChainInputs::new(&app)).expect("a chain");
    let budget = lead.iter().find(|part| part.name() == "token_budget");
    let config = &budget.expect("a budget").policy()["config"];
    assert_eq!(config["max_tokens"], 5_000);
}

#[test]
fn what_the_configuration_switches_off_is_off_for_subagents_too() {
    let app = AppConfig {
        loop_detection: LoopDetectionConfig {
            enabled: Some(false),
            ..LoopDetectionConfig::default()
        },
        tool_progress: ToolProgressConfig {
            enabled: Some(true),
            ..ToolProgressConfig::default()
        },
        ..AppConfig::default()
    };
    let budget = TokenBudgetConfig {
        enabled: Some(false),
        ..TokenBudgetConfig::default()
    };
    let chain = compose_subagent(ChainInputs {
        token_budget: Some(budget),
        ..ChainInputs::new(&app)
    })
    .expect("a chain");
    let names = names(&chain);
    assert!(!names.contains(&"loop_detection") && !names.contains(&"token_budget"));
    assert!(names.contains(&"tool_progress"));
}

/// Writes to a file and takes its time.
struct Slow(Arc<Mutex<Vec<&'static str>>>, &'static str);

impl CallTool for Slow {
    fn call(&self, _: ToolInvocation) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            self.0.lock().expect("a lock").push(self.1);
            let mut looks = 0;
            poll_fn(|_| {
                looks += 1;
                match looks {
                    1..4 => Poll::Pending,
                    _ => Poll::Ready(()),
                }
            })
            .await;
            self.0.lock().expect("a lock").push(self.1);
            ToolOutcome::Answer(ToolAnswer::default())
        })
    }
}

/// The order of the beginnings and ends of two writes to one file, which are made at the same time by two chains.
fn writes(chains: [&[Arc<dyn Middleware>]; 2], runs: [RunFacts; 2]) -> Vec<&'static str> {
    let log = Arc::<Mutex<Vec<&'static str>>>::default();
    let guard = |chain: &[Arc<dyn Middleware>]| {
        let found = chain.iter().find(|part| part.name() == "read_before_write");
        found.expect("the guard of files").clone()
    };
    let guards = chains.map(guard);
    let invocations = runs.map(|run| ToolInvocation {
        run: run_with(run),
        ..call(
            "write_file",
            json!({"path": "/mnt/user-data/workspace/new"}),
        )
    });
    let [first, second] = invocations;
    let inside = ["first", "second"].map(|name| Slow(log.clone(), name));
    let [inside_first, inside_second] = inside.each_ref().map(|tool| NextTool::new(&[], tool));
    let mut first = pin!(guards[0].wrap_tool_call(first, inside_first));
    let mut second = pin!(guards[1].wrap_tool_call(second, inside_second));
    let mut context = Context::from_waker(Waker::noop());
    let (mut is_first_done, mut is_second_done) = (false, false);
    for _ in 0..20 {
        is_first_done = is_first_done || first.as_mut().poll(&mut context).is_ready();
        is_second_done = is_second_done || second.as_mut().poll(&mut context).is_ready();
    }
    assert!(is_first_done && is_second_done);
    let log = log.lock().expect("a lock");
    log.clone()
}

#[test]
fn rbw_4_an_agent_and_its_subagents_take_turns_at_a_file() {
    let app = AppConfig::default();
    let files: Arc<dyn ThreadFiles> = Arc::new(FakeFiles::default());
    let turns = crate::middleware::read_before_write::FileTurns::default();
    let inputs = || ChainInputs {
        thread_files: Some(files.clone()),
        file_turns: turns.clone(),
        ..ChainInputs::new(&app)
    };
    let lead = compose(inputs()).expect("a chain");
    let general = compose_subagent(inputs()).expect("a chain");
    let other = compose_subagent(inputs()).expect("a chain");
    let run = || run_as("t", "r");
    let in_turn = ["first", "first", "second", "second"];
    let executions = || [execution("t", "r", "a"), execution("t", "r", "b")];
    assert_eq!(writes([&general, &general], executions()), in_turn);
    assert_eq!(writes([&general, &other], executions()), in_turn);
    let [a, b] = executions();
    assert_eq!(writes([&general, &lead], [a, run()]), in_turn);
    let elsewhere = execution("another thread", "r", "c");
    let at_once = ["first", "second", "first", "second"];
    assert_eq!(writes([&general, &general], [b, elsewhere]), at_once);
}
