//! The guards of the chain together, on machines stepped by hand: what one leaves to the next, how runs end, and that no
//! limit is passed whatever the model does.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use fawn::agent::assembly::{Assembly, AssemblyParts};
use fawn::agent::machine::{RunMachine, RunOptions};
use fawn::agent::step::{Outcome, Step};
use fawn::middleware::durable_context::{DurableContext, DurableContextConfig};
use fawn::middleware::loop_detection::LoopDetection;
use fawn::middleware::model_length::ModelLength;
use fawn::middleware::safety_finish_reason::SafetyFinishReason;
use fawn::middleware::subagent_limit::{SubagentLimit, SubagentLimitConfig};
use fawn::middleware::terminal_response::TerminalResponse;
use fawn::middleware::token_budget::TokenBudget;
use fawn::middleware::token_usage::TokenUsage;
use fawn::middleware::{
    Middleware, ModelResponse, NextModel, RunFacts, dangling_tool_call, is_error_fallback,
};
use fawn::ports::BoxFuture;
use fawn::ports::host::RunContext;
use fawn::ports::model::{
    DeltaSink, ModelDelta, ModelError, ModelProvider, ModelReply, ModelRequest, Usage,
};
use fawn::ports::tool::{ToolInvocation, ToolOutcome};
use fawn::protocol::app_config::{
    LoopDetectionConfig, SafetyFinishReasonConfig, TokenBudgetConfig, TokenUsageConfig,
};
use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::message::{InvalidToolCall, Kind, Message, ToolCall};
use fawn::protocol::run::{RunStatus, StopReason};
use fawn::state::ids::SequentialIds;
use fawn::state::update::StateUpdate;
use fawn::state::{Overlay, ThreadState};
use serde_json::{Value, json};

use crate::host::run_context;
use crate::parts::{answer, assembly, calls, human, says, tool};
use crate::support::random::Random;

const MAX_IN_REPLY: usize = 2;
const MAX_IN_RUN: usize = 4;
const MAX_TOKENS: u64 = 10_000;

/// Answers in turn; keeps the requests.
#[derive(Default)]
struct Replies {
    next: Mutex<std::collections::VecDeque<Result<ModelReply, Error>>>,
    requests: Mutex<Vec<Vec<Message>>>,
}

struct InTurn(Arc<Replies>);

impl ModelProvider for InTurn {
    async fn call(
        &self,
        request: &ModelRequest,
        _: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let messages = request.messages.to_vec();
        self.0.requests.lock().unwrap().push(messages);
        let next = self.0.next.lock().unwrap().pop_front();
        Ok(next.unwrap_or_else(|| Ok(says("that is all")))?)
    }
}

struct NoSink;

impl DeltaSink for NoSink {
    fn push(&mut self, _: ModelDelta) {}
    fn pressure(&mut self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// The wrappers that are left, and the model, as a driver runs them.
struct Chain<'a> {
    wrappers: &'a [Arc<dyn Middleware>],
    assembly: &'a Assembly,
}

impl NextModel for Chain<'_> {
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            let Some((outer, inner)) = self.wrappers.split_first() else {
                let mut sink = NoSink;
                let reply = self.assembly.model.call_boxed(&request, &mut sink);
                return Ok(reply.await?.into());
            };
            let mut next = Chain {
                wrappers: inner,
                assembly: self.assembly,
            };
            outer.wrap_model_call(request, &mut next).await
        })
    }
}

fn ready<T>(mut future: BoxFuture<'_, T>) -> T {
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a part of this test waits"),
    }
}

/// What notes the delegations that the guards let pass.
fn ledger() -> Arc<dyn Middleware> {
    Arc::new(DurableContext::new(DurableContextConfig::default()))
}

/// The guards in their places, with what stands around them where it matters.
fn guards(ledger: Option<Arc<dyn Middleware>>) -> Vec<Arc<dyn Middleware>> {
    let mut chain: Vec<Arc<dyn Middleware>> = vec![dangling_tool_call::new()];
    chain.extend(ledger);
    let budget = TokenBudgetConfig {
        enabled: Some(true),
        max_tokens: MAX_TOKENS,
        ..TokenBudgetConfig::default()
    };
    let limits = SubagentLimitConfig {
        max_concurrent: MAX_IN_REPLY as i64,
        max_total: MAX_IN_RUN as i64,
        ..SubagentLimitConfig::default()
    };
    chain.extend([
        Arc::new(TokenUsage::new(&TokenUsageConfig::default())) as Arc<dyn Middleware>,
        Arc::new(SubagentLimit::new(limits)),
        Arc::new(LoopDetection::new(LoopDetectionConfig::default())),
        Arc::new(TokenBudget::new(budget)),
        Arc::new(TerminalResponse::new()),
        Arc::new(ModelLength::new()),
        Arc::new(SafetyFinishReason::new(&SafetyFinishReasonConfig::default()).unwrap()),
    ]);
    chain
}

/// An agent with the guards, and what there is to see of it.
struct Agent {
    assembly: Arc<Assembly>,
    replies: Arc<Replies>,
    /// Tools that ran: id of the message, and name.
    ran: Arc<Mutex<Ran>>,
}

type Ran = Vec<(Arc<str>, String)>;

impl Agent {
    fn new(middleware: Vec<Arc<dyn Middleware>>) -> Self {
        let replies = Arc::<Replies>::default();
        let ran = Arc::<Mutex<Ran>>::default();
        let noted = |name: &str| {
            let ran = ran.clone();
            tool(name, move |call: ToolInvocation| {
                ran.lock().unwrap().push((call.message_id, call.name));
                async { answer("result") }
            })
        };
        let parts = AssemblyParts {
            model: Arc::new(InTurn(replies.clone())),
            system_prompt: None,
            data: None,
            checks: None,
            tools: vec![
                noted("task"),
                noted("bash"),
                noted("read_file"),
                noted("write_file"),
            ],
            middleware,
            recursion_limit: None,
            needs_host: false,
        };
        Agent {
            assembly: assembly(parts),
            replies,
            ran,
        }
    }

    fn run(
        &self,
        state: &mut ThreadState,
        run: &Run<'_>,
        replies: impl IntoIterator<Item = Result<ModelReply, Error>>,
    ) -> Done {
        *self.replies.next.lock().unwrap() = replies.into_iter().collect();
        self.replies.requests.lock().unwrap().clear();
        self.ran.lock().unwrap().clear();
        let facts = Arc::new(RunFacts {
            run_id: run.run.into(),
            thread_id: run.thread.into(),
            ..RunFacts::default()
        });
        let context = Arc::new(RunContext {
            run_id: facts.run_id.clone(),
            thread_id: facts.thread_id.clone(),
            facts: facts.clone(),
            ..(*run_context()).clone()
        });
        let mut machine = RunMachine::new(
            self.assembly.clone(),
            RunOptions {
                input: Some(StateUpdate::messages(vec![human(run.run)])),
                context: context.clone(),
                recursion_limit: run.limit,
                save_each_step: true,
                notes: false,
            },
        );
        let mut ids = SequentialIds::starting_at(1 + 100 * state.next_seq());
        let mut executed = Vec::new();
        let mut asked: Vec<String> = Vec::new();
        let text = |call: &ToolCall| format!("{}{}", call.name, json!(call.args));
        loop {
            match machine.next_step(state, &mut ids) {
                Step::CallModel(call) => {
                    let mut chain = Chain {
                        wrappers: self.assembly.model_wrappers(),
                        assembly: &self.assembly,
                    };
                    let reply = ready(chain.run(call.request));
                    asked = reply
                        .iter()
                        .flat_map(|r| &r.reply.tool_calls)
                        .map(text)
                        .collect();
                    asked.sort();
                    machine.model_replied(reply);
                }
                Step::CallTools(list) => {
                    executed.push(asked.clone());
                    let message_id: Arc<str> = list.message_id.into();
                    let outcomes = list.calls.into_iter().map(|call| {
                        let Some(entry) = self.assembly.tool(&call.name) else {
                            return ToolOutcome::Failed("no such tool".into());
                        };
                        ready(entry.tool.call_boxed(ToolInvocation {
                            message_id: message_id.clone(),
                            call_id: call.id.unwrap_or_default(),
                            name: call.name,
                            args: call.args,
                            reads: list.reads.clone(),
                            run: context.clone(),
                        }))
                    });
                    machine.tools_returned(outcomes.collect());
                }
                Step::Await(_) => panic!("no hook here asks for anything"),
                Step::Save(_) => machine.commit(state),
                Step::Done(outcome) => {
                    return Done {
                        outcome,
                        stop_reason: facts.signals.stop_reason(),
                        requests: std::mem::take(&mut *self.replies.requests.lock().unwrap()),
                        ran: std::mem::take(&mut *self.ran.lock().unwrap()),
                        executed,
                    };
                }
            }
        }
    }
}

struct Run<'a> {
    thread: &'a str,
    run: &'a str,
    limit: u32,
}

const RUN: Run<'_> = Run {
    thread: "t",
    run: "r",
    limit: 200,
};

struct Done {
    outcome: Outcome,
    stop_reason: Option<StopReason>,
    requests: Vec<Vec<Message>>,
    ran: Ran,
    /// The sets of calls of replies of which something ran, each as sorted text.
    executed: Vec<Vec<String>>,
}

fn messages(state: &ThreadState) -> Vec<Message> {
    let overlay = Overlay::new();
    state.view(&overlay).messages().cloned().collect()
}

fn texts(messages: &[Message]) -> Vec<String> {
    let line = |m: &Message| {
        let text = m.text();
        let first = text.trim().split(']').next().unwrap_or_default();
        format!("{}:{first}", m.kind().name())
    };
    messages.iter().map(line).collect()
}

/// One run of an agent with all guards.
fn run(replies: Vec<ModelReply>) -> (Done, Vec<Message>) {
    let mut state = ThreadState::new();
    let agent = Agent::new(guards(Some(ledger())));
    let done = agent.run(&mut state, &RUN, replies.into_iter().map(Ok));
    (done, messages(&state))
}

fn ends(mut reply: ModelReply, field: &str, value: &str) -> ModelReply {
    reply.response_metadata.insert(field.into(), value.into());
    reply
}

fn uses(mut reply: ModelReply, input: u64, output: u64) -> ModelReply {
    reply.usage = Some(Usage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: input + output,
        ..Usage::default()
    });
    reply
}

fn ls() -> ModelReply {
    calls(&[("bash", "c1", json!({"command": "ls"}))])
}

#[test]
fn loop_12_five_equal_replies_are_warned_of_at_the_fourth_call_and_stopped_at_the_fifth() {
    let (done, stored) = run(vec![ls(); 9]);
    assert_eq!(done.requests.len(), 5);
    for (place, request) in done.requests.iter().enumerate() {
        let last = texts(request).pop().unwrap();
        let is_warned = last == "human:[LOOP DETECTED";
        assert_eq!(is_warned, place == 3, "call {}: {last}", place + 1);
    }
    // All results stand before the words.
    let warned = texts(&done.requests[3]);
    assert_eq!(
        warned[warned.len() - 2..],
        ["tool:result", "human:[LOOP DETECTED"]
    );
    assert_eq!(done.executed.len(), 4);
    assert_eq!(done.outcome.status, RunStatus::Success);
    assert_eq!(done.stop_reason, Some(StopReason::LoopCapped));
    let stored = texts(&stored);
    assert_eq!(stored.last().map(String::as_str), Some("ai:[FORCED STOP"));
    assert!(
        !stored.contains(&"human:[LOOP DETECTED".to_owned()),
        "LOOP-8: it is not stored"
    );
}

#[test]
fn xt_6_a_reply_cut_for_safety_runs_nothing_and_the_other_guards_see_it_clean() {
    let write = calls(&[("write_file", "c1", json!({"path": "a", "content": "half"}))]);
    let (done, stored) = run(vec![ends(write, "finish_reason", "content_filter")]);
    assert!(done.executed.is_empty());
    assert_eq!(done.requests.len(), 1);
    assert_eq!(done.outcome.status, RunStatus::Success);
    assert_eq!(done.stop_reason, Some(StopReason::SafetyCapped));
    let last = stored.last().unwrap();
    assert!(last.fields().tool_calls.is_empty() && !last.text().is_empty());
    let record = &last.fields().additional_kwargs["safety_termination"];
    assert_eq!(record["suppressed_tool_call_names"], json!(["write_file"]));
}

#[test]
fn saf_6_an_empty_reply_cut_for_safety_after_tools_is_explained_and_not_tried_again() {
    let (done, stored) = run(vec![ls(), ends(says(""), "stop_reason", "refusal")]);
    assert_eq!(done.requests.len(), 2);
    assert_eq!(done.stop_reason, Some(StopReason::SafetyCapped));
    assert!(!is_error_fallback(stored.last().unwrap()));
}

#[test]
fn xt_7_an_empty_reply_after_tools_is_removed_and_tried_again_once() {
    let (done, stored) = run(vec![ls(), says(" "), says("found it")]);
    assert_eq!(
        texts(&stored),
        ["human:r", "ai:", "tool:result", "ai:found it"]
    );
    assert_eq!(done.outcome.status, RunStatus::Success);
    assert_eq!(done.stop_reason, None);
    let retried = &done.requests[2];
    let note = retried.last().unwrap().fields();
    assert_eq!(note.name.as_deref(), Some("terminal_response_recovery"));
    assert_eq!(note.additional_kwargs["hide_from_ui"], true);
    assert_eq!(
        retried.len(),
        4,
        "the empty reply is not shown to the model"
    );

    // A tool in between gives no other try.
    let more = calls(&[("read_file", "c2", json!({"path": "x"}))]);
    let (done, stored) = run(vec![ls(), says(""), more, says("")]);
    assert_eq!(done.requests.len(), 4);
    assert_eq!(done.outcome.status, RunStatus::Error, "TRM-3");
    let code = done.outcome.error.map(|error| error.code);
    assert_eq!(code, Some(ErrorCode::ModelNoAnswer));
    let last = stored.last().unwrap();
    assert!(is_error_fallback(last) && !last.text().is_empty());
    let empty = |m: &&Message| m.kind() == Kind::Ai && m.text().is_empty();
    assert!(
        stored
            .iter()
            .filter(empty)
            .all(|m| !m.fields().tool_calls.is_empty())
    );
}

#[test]
fn an_empty_reply_costs_a_step_so_the_recursion_limit_holds() {
    let mut state = ThreadState::new();
    let agent = Agent::new(guards(None));
    let run = Run { limit: 3, ..RUN };
    let done = agent.run(&mut state, &run, [ls(), says("")].map(Ok));
    let code = done.outcome.error.map(|error| error.code);
    assert_eq!(code, Some(ErrorCode::RecursionLimit));
    assert_eq!(texts(&messages(&state)), ["human:r", "ai:", "tool:result"]);
}

#[test]
fn words_for_one_call_stand_after_the_results_in_the_order_of_the_chain() {
    let step = |tokens| uses(ls(), tokens, 0);
    let (done, _) = run(vec![step(1), step(1), step(8500), says("done")]);
    let last = texts(&done.requests[3]);
    assert_eq!(
        last[last.len() - 3..],
        [
            "tool:result",
            "human:[LOOP DETECTED",
            "human:[TOKEN BUDGET WARNING"
        ]
    );
    assert_eq!(done.stop_reason, None, "a warning ends nothing");
}

#[test]
fn a_run_that_used_up_its_tokens_runs_no_more_tools() {
    let (done, stored) = run(vec![uses(ls(), 9_000, 1_000), says("never")]);
    assert_eq!((done.requests.len(), done.executed.len()), (1, 0));
    assert_eq!(done.stop_reason, Some(StopReason::TokenCapped));
    assert_eq!(done.outcome.status, RunStatus::Success);
    assert_eq!(texts(&stored), ["human:r", "ai:[TOKEN BUDGET EXCEEDED"]);
}

#[test]
fn xt_1_and_xt_2_delegations_over_the_limits_do_not_run_and_the_next_run_has_its_own() {
    let tasks = |ids: &[&str]| {
        let list: Vec<_> = ids
            .iter()
            .map(|id| ("task", *id, json!({"prompt": id})))
            .chain([("read_file", "r", json!({"path": ids[0]}))])
            .collect();
        calls(&list)
    };
    let agent = Agent::new(guards(Some(ledger())));
    let mut state = ThreadState::new();
    let replies = || {
        [
            tasks(&["1", "2", "3"]),
            tasks(&["4"]),
            tasks(&["5", "6", "7"]),
            calls(&[("task", "8", json!({}))]),
        ]
    };
    for run in ["r1", "r2"] {
        let run = Run { run, ..RUN };
        let done = agent.run(&mut state, &run, replies().map(Ok));
        let ran: Vec<&str> = done.ran.iter().map(|(_, name)| &**name).collect();
        // Two of three, one, one of three; then nothing is left, and the run ends.
        let expected = [
            "task",
            "task",
            "read_file",
            "task",
            "read_file",
            "task",
            "read_file",
        ];
        assert_eq!(ran, expected);
        assert_eq!(done.stop_reason, Some(StopReason::SubagentLimitCapped));
        let last = messages(&state).pop().unwrap();
        assert!(last.text().starts_with("[SUBAGENT LIMIT REACHED]"));
        assert_eq!(done.outcome.status, RunStatus::Success);
    }
}

#[test]
fn l13_an_answer_cut_at_the_length_limit_is_told() {
    let (done, stored) = run(vec![ends(says("half an"), "finish_reason", "length")]);
    assert_eq!(done.stop_reason, Some(StopReason::ModelLengthCapped));
    assert_eq!(stored.last().unwrap().text(), "half an");
}

/// What is wrong with how calls and results stand in a request.
fn unpaired(request: &[Message]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for message in request {
        match message.kind() {
            Kind::Tool => {
                let id = message.fields().tool_call_id.as_str();
                match open.iter().position(|known| *known == id) {
                    Some(place) => drop(open.remove(place)),
                    None => return Some(format!("result {id} answers nothing")),
                }
            }
            _ if !open.is_empty() => return Some(format!("{open:?} are not answered")),
            Kind::Ai => {
                let fields = message.fields();
                open = fields
                    .tool_calls
                    .iter()
                    .filter_map(|c| c.id.as_deref())
                    .collect();
                if let Some(Value::Array(blocks)) = Some(&fields.content) {
                    let strays = blocks.iter().filter(|block| block["type"] == "tool_use");
                    let known: HashSet<_> = open.iter().map(|id| json!(id)).collect();
                    for block in strays {
                        if !known.contains(&block["id"]) {
                            return Some(format!("block {block} is no call"));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    (!open.is_empty()).then(|| format!("{open:?} are not answered at the end"))
}

fn random_reply(random: &mut Random) -> Result<ModelReply, Error> {
    let mut reply = match random.below(20) {
        0 => return Err(Error::new(ErrorCode::ModelServer, "down")),
        1 | 2 => says("an answer"),
        3..=5 => {
            let empty = [
                json!(""),
                json!(" \n"),
                json!([]),
                json!(null),
                json!([{"type": "thinking"}]),
            ];
            let place = random.below(empty.len() as u64) as usize;
            ModelReply {
                content: empty[place].clone(),
                ..ModelReply::default()
            }
        }
        6..=9 => ls(),
        _ => {
            let count = 1 + random.below(6);
            let mut list = Vec::new();
            for place in 0..count {
                // Ids come back in later replies, are missing, or are there twice.
                let id = match random.below(6) {
                    0 => String::new(),
                    1 => "c0".to_owned(),
                    _ => format!("c{place}"),
                };
                let about = random.below(3);
                list.push(match random.below(6) {
                    0 => ("bash", id, json!({"command": about})),
                    1 => (
                        "read_file",
                        id,
                        json!({"path": "p", "start_line": 150 * about}),
                    ),
                    2 => ("no_such_tool", id, json!({})),
                    _ => ("task", id, json!({"prompt": about})),
                });
            }
            let list: Vec<_> = list
                .iter()
                .map(|(name, id, args)| (*name, &**id, args.clone()))
                .collect();
            let mut reply = calls(&list);
            if random.below(4) == 0 {
                let block =
                    |call: &ToolCall| json!({"type": "tool_use", "id": call.id, "name": call.name});
                let mut blocks = vec![json!({"type": "text", "text": "now"})];
                // Ids that the machine gives are not in the blocks, so blocks are for calls whose ids it keeps.
                let mut known = HashSet::new();
                let usable = |id: &Option<String>| id.is_some();
                let sound = reply
                    .tool_calls
                    .iter()
                    .all(|c| usable(&c.id) && known.insert(c.id.clone()));
                if sound {
                    blocks.extend(reply.tool_calls.iter().map(block));
                }
                reply.content = blocks.into();
            }
            reply
        }
    };
    match random.below(12) {
        0 => reply = ends(reply, "finish_reason", "content_filter"),
        1 => reply = ends(reply, "stop_reason", "refusal"),
        2 => reply = ends(reply, "finish_reason", "length"),
        3 | 4 => reply = ends(reply, "finish_reason", "tool_calls"),
        _ => {}
    }
    if random.below(10) == 0 {
        reply.invalid_tool_calls.push(InvalidToolCall {
            id: Some("bad".into()),
            name: Some("bash".into()),
            args: Some("{".into()),
            error: None,
        });
    }
    if random.below(2) == 0 {
        let most = if random.below(8) == 0 { 9_000 } else { 900 };
        reply = uses(reply, random.below(most), random.below(most));
    }
    Ok(reply)
}

/// Checks one run that is over.
fn check(done: &Done, state: &ThreadState, run: &Run<'_>) {
    let error = done.outcome.error.as_ref().map(|error| error.code);
    match done.outcome.status {
        RunStatus::Success => assert_eq!(error, None),
        RunStatus::Error => assert!(
            matches!(
                error,
                Some(ErrorCode::RecursionLimit | ErrorCode::ModelServer | ErrorCode::ModelNoAnswer)
            ),
            "{error:?}"
        ),
        other => panic!("{other:?} is no end of such a run"),
    }
    // TRM-3: whoever drives the run hears of a reply that stands in for an answer.
    let is_missing = messages(state).last().is_some_and(is_error_fallback);
    assert_eq!(is_missing, error == Some(ErrorCode::ModelNoAnswer));
    assert!(done.outcome.steps <= run.limit);

    // Delegations, in each reply and in the run.
    let mut in_reply: HashMap<&str, usize> = HashMap::new();
    for (message, name) in &done.ran {
        *in_reply.entry(message).or_default() += usize::from(name == "task");
    }
    assert!(
        in_reply.values().all(|tasks| *tasks <= MAX_IN_REPLY),
        "{in_reply:?}"
    );
    assert!(
        in_reply.values().sum::<usize>() <= MAX_IN_RUN,
        "{in_reply:?}"
    );

    // The same calls again and again.
    for (place, set) in done.executed.iter().enumerate() {
        let window = &done.executed[place.saturating_sub(19)..=place];
        let same = window.iter().filter(|other| *other == set).count();
        assert!(same < 5, "{set:?} ran {same} times");
    }

    for request in &done.requests {
        assert_eq!(unpaired(request), None, "{request:?}");
        let of_run = request
            .iter()
            .rev()
            .take_while(|m| m.id() != Some(&format!("h-{}", run.run)));
        let used: u64 = of_run
            .map(|m| {
                m.fields().usage_metadata["total_tokens"]
                    .as_u64()
                    .unwrap_or(0)
            })
            .sum();
        assert!(used < MAX_TOKENS, "the model was asked after {used} tokens");
    }

    // A run that succeeded leaves an answer and no open call.
    if done.outcome.status == RunStatus::Success {
        let last = messages(state).pop().unwrap();
        assert_eq!(last.kind(), Kind::Ai);
        assert!(last.fields().tool_calls.is_empty());
        if done.stop_reason == Some(StopReason::SafetyCapped) {
            assert!(!last.text().trim().is_empty());
        }
    }
}

#[test]
fn whatever_a_model_does_each_run_ends_once_and_passes_no_limit() {
    const SCRIPTS: u64 = 20_000;
    let mut random = Random::new(0x00DE_1E6A_7E00);
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut agent = Agent::new(guards(None));
    for script in 0..SCRIPTS {
        // The guards are shared by many threads and runs, as in an assembly; with the ledger, and without.
        if script % 200 == 0 {
            let with_ledger = script % 400 == 0;
            agent = Agent::new(guards(with_ledger.then(ledger)));
        }
        let mut state = ThreadState::new();
        let thread = format!("t{script}");
        for turn in 0..1 + random.below(2) {
            let name = format!("r{script}-{turn}");
            let run = Run {
                thread: &thread,
                run: &name,
                limit: 3 + random.below(40) as u32,
            };
            let mut replies = Vec::new();
            for _ in 0..random.below(16) {
                replies.push(random_reply(&mut random));
            }
            let done = agent.run(&mut state, &run, replies);
            check(&done, &state, &run);
            let end = match (done.outcome.status, done.stop_reason) {
                (RunStatus::Success, Some(reason)) => reason.name(),
                (status, _) => status.name(),
            };
            *seen.entry(end.to_owned()).or_default() += 1;
            let failed = messages(&state).last().is_some_and(is_error_fallback);
            *seen.entry("fallback".to_owned()).or_default() += usize::from(failed);
        }
    }
    // The scripts reach every end there is.
    for end in [
        "success",
        "error",
        "fallback",
        "loop_capped",
        "token_capped",
        "safety_capped",
        "subagent_limit_capped",
        "model_length_capped",
    ] {
        let count = seen.get(end).copied().unwrap_or_default();
        assert!(count > 20, "{end}: {count} of {seen:?}");
    }
}
