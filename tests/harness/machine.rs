//! The run machine stepped by hand, without tokio: the rules EX-1 to EX-9 of the loop.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fawn::agent::assembly::AssemblyParts;
use fawn::agent::machine::{RunMachine, RunOptions};
use fawn::agent::step::{Outcome, Step};
use fawn::middleware::{Hook, HookOutput, Jump, ModelResponse};
use fawn::ports::checkpoint::Source;
use fawn::ports::model::{ModelDelta, ModelReply};
use fawn::ports::tool::{DynTool, Tool, ToolAnswer, ToolInvocation, ToolOutcome, ToolSpec};
use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::message::{Kind, Message};
use fawn::protocol::run::RunStatus;
use fawn::state::channels::Channel;
use fawn::state::ids::SequentialIds;
use fawn::state::update::StateUpdate;
use fawn::state::{Overlay, ThreadState};
use serde_json::{Value, json};

use crate::host::run_context;
use crate::parts::{Log, Noting, ScriptModel, answer, assembly, calls, human, parts, says, tool};

/// What a run by hand left behind.
struct Done {
    outcome: Outcome,
    state: ThreadState,
    saves: Vec<Source>,
}

impl Done {
    fn messages(&self) -> Vec<Message> {
        self.state
            .view(&Overlay::new())
            .messages()
            .cloned()
            .collect()
    }
    fn texts(&self) -> Vec<String> {
        self.messages()
            .iter()
            .map(|m| format!("{}:{}", m.kind().name(), m.text()))
            .collect()
    }
    fn channel(&self, channel: Channel) -> Option<Value> {
        self.state.view(&Overlay::new()).channel(channel).cloned()
    }
}

struct NoSink;

impl fawn::ports::model::DeltaSink for NoSink {
    fn push(&mut self, _: ModelDelta) {}
    fn pressure(&mut self) -> Option<fawn::ports::BoxFuture<'static, ()>> {
        None
    }
}

/// A run that saves after each step and that nobody listens to.
fn options(input: Option<StateUpdate>, recursion_limit: u32) -> RunOptions {
    RunOptions {
        input,
        context: run_context(),
        recursion_limit,
        save_each_step: true,
        notes: false,
    }
}

/// Steps a run to its end. Wrap hooks are the driver's business and do not run here.
fn run(parts: AssemblyParts, state: ThreadState, input: Option<StateUpdate>, limit: u32) -> Done {
    let assembly = assembly(parts);
    let mut machine = RunMachine::new(assembly.clone(), options(input, limit));
    let mut done = Done {
        outcome: Outcome {
            status: RunStatus::Pending,
            error: None,
            cancel_reason: None,
            steps: 0,
            usage: Default::default(),
        },
        state,
        saves: Vec::new(),
    };
    // Beyond what an earlier run on this state may have given.
    let mut ids = SequentialIds::starting_at(1 + 100 * done.state.next_seq());
    loop {
        match machine.next_step(&done.state, &mut ids) {
            Step::CallModel(call) => {
                let mut sink = NoSink;
                let reply = ready(assembly.model.call_boxed(&call.request, &mut sink));
                machine.model_replied(reply.map(ModelResponse::from));
            }
            Step::CallTools(list) => {
                let message_id: Arc<str> = list.message_id.into();
                let outcomes = list.calls.into_iter().map(|call| {
                    let Some(entry) = assembly.tool(&call.name) else {
                        return ToolOutcome::Failed("no such tool".into());
                    };
                    ready(entry.tool.call_boxed(ToolInvocation {
                        message_id: message_id.clone(),
                        call_id: call.id.unwrap_or_default(),
                        name: call.name,
                        args: call.args,
                        reads: list.reads.clone(),
                        run: run_context(),
                    }))
                });
                machine.tools_returned(outcomes.collect());
            }
            Step::Await(_) => panic!("no hook here asks for anything"),
            Step::Save(source) => {
                assert!(!machine.delta(&done.state).is_empty());
                machine.commit(&mut done.state);
                done.saves.push(source);
            }
            Step::Done(outcome) => {
                done.outcome = outcome;
                return done;
            }
        }
    }
}

fn ready<T>(mut future: fawn::ports::BoxFuture<'_, T>) -> T {
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a part of this test waits"),
    }
}

fn hello() -> Option<StateUpdate> {
    Some(StateUpdate::messages(vec![human("hello")]))
}

fn two_turns() -> ScriptModel {
    ScriptModel::new(vec![calls(&[("f", "c1", json!({"x": 1}))]), says("done")])
}

/// Tells which channels it finds, and how many messages.
struct Looker(ToolSpec, &'static [Channel]);

impl Looker {
    fn tool(name: &str, reads: &'static [Channel]) -> Arc<dyn DynTool> {
        let parameters = json!({"type": "object"}).into();
        let (name, description) = (name.to_owned(), String::new());
        let spec = ToolSpec {
            name,
            description,
            parameters,
        };
        Arc::new(Looker(spec, reads))
    }
}

impl Tool for Looker {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn reads(&self) -> &[Channel] {
        self.1
    }
    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let reads = &invocation.reads;
        let title = reads.get(Channel::Title);
        answer(&format!("{title:?}, {} messages", reads.messages().len()))
    }
}

#[test]
fn a_tool_reads_the_channels_that_it_names_and_only_its_calls_cost_that() {
    let model = ScriptModel::new(vec![
        calls(&[("plain", "c1", json!({}))]),
        calls(&[("plain", "c2", json!({})), ("looks", "c3", json!({}))]),
        says("done"),
    ]);
    let mut parts = parts(model);
    parts.tools = vec![
        Looker::tool("plain", &[]),
        Looker::tool("looks", &[Channel::Messages, Channel::Title]),
    ];
    let input = StateUpdate::decode(json!({"messages": "hello", "title": "T"})).unwrap();
    let done = run(parts, ThreadState::new(), Some(input), 9);
    let texts = done.texts();
    assert_eq!(texts[2], "tool:None, 0 messages");
    // What stands before the answers, the reply that calls included.
    assert_eq!(texts[5], "tool:Some(String(\"T\")), 4 messages");
}

fn with_tool(model: ScriptModel) -> AssemblyParts {
    let mut parts = parts(model);
    parts.tools = vec![tool("f", |_| async { answer("result") })];
    parts
}

#[test]
fn ex_1_the_loop_calls_model_tools_and_model_and_saves_after_input_and_each_step() {
    let done = run(with_tool(two_turns()), ThreadState::new(), hello(), 100);
    assert_eq!(done.outcome.status, RunStatus::Success);
    assert_eq!(
        done.texts(),
        ["human:hello", "ai:", "tool:result", "ai:done"]
    );
    assert_eq!(
        done.saves,
        [Source::Input, Source::Loop, Source::Loop, Source::Loop]
    );
    assert_eq!(done.outcome.steps, 3);
    let result = &done.messages()[2];
    assert_eq!(result.fields().tool_call_id, "c1");
    assert_eq!(result.fields().name.as_deref(), Some("f"));
}

#[test]
fn ex_2_before_hooks_run_in_order_and_after_hooks_in_reverse() {
    let log = Log::default();
    let mut parts = parts(ScriptModel::new(vec![says("done")]));
    parts.middleware = vec![Noting::quiet("a", &log), Noting::quiet("b", &log)];
    run(parts, ThreadState::new(), hello(), 100);
    let expected = [
        "a.before_agent",
        "b.before_agent",
        "a.before_model",
        "b.before_model",
        "b.after_model",
        "a.after_model",
        "b.after_agent",
        "a.after_agent",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[test]
fn ex_3_each_hook_sees_what_the_hook_before_it_wrote() {
    let log = Log::default();
    let mut parts = parts(ScriptModel::new(vec![says("done")]));
    let extend = |hook: Hook, context: &fawn::middleware::HookContext<'_>| {
        if hook != Hook::BeforeModel {
            return Ok(HookOutput::Continue);
        }
        let seen = context
            .state
            .channel(Channel::Title)
            .and_then(Value::as_str)
            .unwrap_or("");
        Ok(HookOutput::Update(StateUpdate::set(
            Channel::Title,
            format!("{seen}+"),
        )))
    };
    parts.middleware = vec![
        Noting::acting("a", &log, extend),
        Noting::acting("b", &log, extend),
        Noting::acting("c", &log, extend),
    ];
    let done = run(parts, ThreadState::new(), hello(), 100);
    assert_eq!(done.channel(Channel::Title), Some(json!("+++")));
}

#[test]
fn ex_4_a_jump_to_model_skips_the_rest_of_the_pass_and_enters_the_loop_again() {
    let log = Log::default();
    let mut parts = parts(ScriptModel::new(vec![says("first"), says("second")]));
    let jump_once = |hook: Hook, context: &fawn::middleware::HookContext<'_>| {
        let replies = context
            .state
            .messages()
            .filter(|m| m.kind() == Kind::Ai)
            .count();
        if hook == Hook::AfterModel && replies == 1 {
            return Ok(HookOutput::Jump(
                Jump::Model,
                StateUpdate::set(Channel::Title, "jumped"),
            ));
        }
        Ok(HookOutput::Continue)
    };
    parts.middleware = vec![
        Noting::quiet("a", &log),
        Noting::acting("b", &log, jump_once),
    ];
    let done = run(parts, ThreadState::new(), hello(), 100);
    assert_eq!(done.texts(), ["human:hello", "ai:first", "ai:second"]);
    let after: Vec<_> = log
        .lock()
        .unwrap()
        .iter()
        .filter(|e| e.ends_with("after_model"))
        .cloned()
        .collect();
    assert_eq!(after, ["b.after_model", "b.after_model", "a.after_model"]);
}

#[test]
fn ex_4_a_jump_to_the_end_still_runs_after_agent() {
    let log = Log::default();
    let mut parts = with_tool(two_turns());
    parts.middleware = vec![Noting::acting("a", &log, |hook, _| {
        Ok(match hook {
            Hook::AfterModel => HookOutput::Jump(Jump::End, StateUpdate::default()),
            _ => HookOutput::Continue,
        })
    })];
    let done = run(parts, ThreadState::new(), hello(), 100);
    assert_eq!(done.outcome.status, RunStatus::Success);
    assert_eq!(done.texts(), ["human:hello", "ai:"]);
    assert_eq!(
        log.lock().unwrap().last().map(String::as_str),
        Some("a.after_agent")
    );
}

#[test]
fn ex_5_only_open_calls_are_run_and_an_answered_message_goes_back_to_the_model() {
    // The hook answers the call itself, so that nothing is left to run.
    let log = Log::default();
    let mut parts = with_tool(two_turns());
    parts.middleware = vec![Noting::acting("a", &log, |hook, context| {
        let last = context.state.last().cloned();
        match (hook, last) {
            (Hook::AfterModel, Some(last)) if !last.fields().tool_calls.is_empty() => {
                let result =
                    json!([{"type": "tool", "content": "from hook", "tool_call_id": "c1"}]);
                Ok(HookOutput::Update(StateUpdate::set(
                    Channel::Messages,
                    result,
                )))
            }
            _ => Ok(HookOutput::Continue),
        }
    })];
    let done = run(parts, ThreadState::new(), hello(), 100);
    assert_eq!(
        done.texts(),
        ["human:hello", "ai:", "tool:from hook", "ai:done"]
    );
    assert_eq!(done.outcome.steps, 2, "no set of tool calls was run");
}

#[test]
fn ex_6_results_stand_in_the_order_of_the_calls() {
    let model = ScriptModel::new(vec![
        calls(&[
            ("f", "c1", json!({"n": 1})),
            ("f", "c2", json!({"n": 2})),
            ("g", "c3", json!({})),
        ]),
        says("done"),
    ]);
    let mut parts = parts(model);
    parts.tools = vec![tool("f", |call| async move {
        answer(&call.args["n"].to_string())
    })];
    let done = run(parts, ThreadState::new(), hello(), 100);
    assert_eq!(
        done.texts()[2..],
        ["tool:1", "tool:2", "tool:Error: no such tool", "ai:done"]
    );
}

#[test]
fn ex_7_return_direct_ends_only_when_every_call_of_the_reply_is_direct() {
    let run_with = |list: &[(&str, &str, Value)]| {
        let mut parts = parts(ScriptModel::new(vec![calls(list), says("done")]));
        let direct = crate::parts::FnTool {
            spec: ToolSpec {
                name: "d".into(),
                description: String::new(),
                parameters: json!({}).into(),
            },
            direct: true,
            run: |_| async { answer("direct") },
        };
        parts.tools = vec![Arc::new(direct), tool("f", |_| async { answer("result") })];
        run(parts, ThreadState::new(), hello(), 100)
    };
    let alone = run_with(&[("d", "c1", json!({}))]);
    assert_eq!(alone.texts(), ["human:hello", "ai:", "tool:direct"]);
    let mixed = run_with(&[("d", "c1", json!({})), ("f", "c2", json!({}))]);
    assert_eq!(mixed.texts().last().map(String::as_str), Some("ai:done"));
}

#[test]
fn ex_7_an_answer_that_ends_the_run_passes_by_after_agent() {
    let log = Log::default();
    let mut parts = parts(two_turns());
    parts.tools = vec![tool("f", |_| async {
        ToolOutcome::Answer(ToolAnswer {
            content: "bye".into(),
            end_run: true,
            ..Default::default()
        })
    })];
    parts.middleware = vec![Noting::quiet("a", &log)];
    let done = run(parts, ThreadState::new(), hello(), 100);
    assert_eq!(done.outcome.status, RunStatus::Success);
    assert_eq!(done.texts(), ["human:hello", "ai:", "tool:bye"]);
    assert!(
        !log.lock()
            .unwrap()
            .iter()
            .any(|entry| entry == "a.after_agent")
    );
}

/// Two turns in which the tool names its message after the call, whose id is the same both times.
#[test]
fn an_answer_names_its_message_but_takes_no_id_of_an_earlier_turn() {
    let mut parts = parts(ScriptModel::new(vec![
        calls(&[("f", "c1", json!({}))]),
        says("one"),
        calls(&[("f", "c1", json!({}))]),
        says("two"),
    ]));
    parts.tools = vec![tool("f", |_| async {
        let mut kwargs = serde_json::Map::new();
        kwargs.insert("fact".into(), true.into());
        ToolOutcome::Answer(ToolAnswer {
            content: "result".into(),
            id: Some("named:c1".into()),
            additional_kwargs: kwargs,
            ..Default::default()
        })
    })];
    let agent = || AssemblyParts {
        model: parts.model.clone(),
        tools: parts.tools.clone(),
        ..crate::parts::parts(ScriptModel::new(Vec::new()))
    };
    let first = run(agent(), ThreadState::new(), hello(), 100);
    assert_eq!(first.messages()[2].id(), Some("named:c1"));
    assert_eq!(first.messages()[2].fields().additional_kwargs["fact"], true);
    let again = Some(StateUpdate::messages(vec![human("again")]));
    let second = run(agent(), first.state, again, 100);
    let messages = second.messages();
    assert_eq!(messages.len(), 8, "{:?}", second.texts());
    assert_eq!(messages[2].id(), Some("named:c1"), "the first result stays");
    assert_eq!(messages[6].text(), "result");
    assert_ne!(messages[6].id(), Some("named:c1"));
}

#[test]
fn ex_8_a_hook_that_removes_an_unknown_id_ends_the_run_and_writes_nothing() {
    let log = Log::default();
    let mut parts = parts(ScriptModel::new(vec![says("done")]));
    parts.middleware = vec![Noting::acting("a", &log, |hook, _| {
        Ok(match hook {
            Hook::BeforeModel => HookOutput::Update(
                StateUpdate::set(
                    Channel::Messages,
                    json!([{"role":"remove","id":"no","content":""}]),
                )
                .and(
                    Channel::Title,
                    fawn::state::update::Write::Value(json!("half")),
                ),
            ),
            _ => HookOutput::Continue,
        })
    })];
    let done = run(parts, ThreadState::new(), hello(), 100);
    let error = done.outcome.error.clone().expect("an error");
    assert_eq!(error.code, ErrorCode::Middleware);
    assert!(
        error.message.contains("a.before_model"),
        "{}",
        error.message
    );
    assert_eq!(done.channel(Channel::Title), None);
    assert_eq!(done.texts(), ["human:hello"]);
}

#[test]
fn a_run_needs_no_more_steps_than_its_limit_and_ends_at_it_with_an_error() {
    let within = run(with_tool(two_turns()), ThreadState::new(), hello(), 3);
    assert_eq!(within.outcome.status, RunStatus::Success);
    let beyond = run(with_tool(two_turns()), ThreadState::new(), hello(), 2);
    assert_eq!(
        beyond.outcome.error.as_ref().map(|e| e.code),
        Some(ErrorCode::RecursionLimit)
    );
    assert_eq!(beyond.texts(), ["human:hello", "ai:", "tool:result"]);
}

#[test]
fn lg_29_a_run_without_input_goes_on_with_the_open_calls() {
    let beyond = run(with_tool(two_turns()), ThreadState::new(), hello(), 1);
    assert_eq!(beyond.texts(), ["human:hello", "ai:"]);
    let resumed = run(with_tool(two_turns()), beyond.state, None, 100);
    assert_eq!(resumed.outcome.status, RunStatus::Success);
    assert_eq!(
        resumed.texts(),
        ["human:hello", "ai:", "tool:result", "ai:done"]
    );
    assert_eq!(
        resumed.outcome.steps, 2,
        "the stored reply was not asked for again"
    );
}

#[test]
fn lg_29_a_run_without_input_asks_nothing_of_a_finished_thread_and_refuses_an_empty_one() {
    let finished = run(with_tool(two_turns()), ThreadState::new(), hello(), 100);
    let before = finished.texts();
    let again = run(with_tool(two_turns()), finished.state, None, 100);
    assert_eq!(again.outcome.status, RunStatus::Success);
    assert_eq!((again.texts(), again.outcome.steps), (before, 0));
    let empty = run(with_tool(two_turns()), ThreadState::new(), None, 100);
    let error = empty.outcome.error.expect("an error");
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::MissingMember, Some("/input"))
    );
}

#[test]
fn calls_without_an_id_or_with_one_twice_get_ids_of_their_own() {
    let model = ScriptModel::new(vec![
        calls(&[
            ("f", "", json!({})),
            ("f", "c1", json!({})),
            ("f", "c1", json!({})),
        ]),
        says("done"),
    ]);
    let done = run(with_tool(model), ThreadState::new(), hello(), 100);
    let messages = done.messages();
    let ids: Vec<_> = messages[1]
        .fields()
        .tool_calls
        .iter()
        .map(|c| c.id.clone().expect("an id"))
        .collect();
    let results: Vec<_> = messages[2..5]
        .iter()
        .map(|m| m.fields().tool_call_id.clone())
        .collect();
    assert_eq!(ids, results);
    let unique: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), 3);
}

#[test]
fn m11_two_tools_that_write_one_title_end_the_run_and_every_result_is_kept() {
    let model = ScriptModel::new(vec![
        calls(&[
            ("f", "c1", json!({"t": "x"})),
            ("f", "c2", json!({"t": "y"})),
            ("f", "c3", json!({})),
        ]),
        says("done"),
    ]);
    let mut parts = parts(model);
    parts.tools = vec![tool("f", |call| async move {
        let update = call
            .args
            .get("t")
            .map(|t| StateUpdate::set(Channel::Title, t.clone()));
        ToolOutcome::Answer(ToolAnswer {
            content: "ok".into(),
            update,
            ..Default::default()
        })
    })];
    let done = run(parts, ThreadState::new(), hello(), 100);
    let error = done.outcome.error.clone().expect("an error");
    assert_eq!(error.code, ErrorCode::ConflictingWrites);
    assert!(
        error.message.contains("title") && error.message.contains("c2"),
        "{}",
        error.message
    );
    assert_eq!(done.texts()[2..], ["tool:ok", "tool:ok", "tool:ok"]);
    assert_eq!(done.channel(Channel::Title), None);
}

#[test]
fn m11_writes_of_parallel_tools_merge_in_the_order_of_the_calls() {
    let model = ScriptModel::new(vec![
        calls(&[("f", "c1", json!({"n": 1})), ("f", "c2", json!({"n": 2}))]),
        says("done"),
    ]);
    let mut parts = parts(model);
    parts.tools = vec![tool("f", |call| async move {
        let n = call.args["n"].clone();
        let update = StateUpdate::set(Channel::Todos, json!([{"n": n}])).and(
            Channel::Artifacts,
            fawn::state::update::Write::Value(json!(["same", n.to_string()])),
        );
        ToolOutcome::Answer(ToolAnswer {
            update: Some(update),
            ..Default::default()
        })
    })];
    let done = run(parts, ThreadState::new(), hello(), 100);
    assert_eq!(done.channel(Channel::Todos), Some(json!([{"n": 2}])));
    assert_eq!(
        done.channel(Channel::Artifacts),
        Some(json!(["same", "1", "2"]))
    );
}

#[test]
fn a_cancelled_reply_keeps_its_text_and_none_of_its_calls() {
    let assembly = assembly(parts(ScriptModel::new(vec![says("never")])));
    let mut machine = RunMachine::new(assembly, options(hello(), 100));
    let (mut state, mut ids) = (ThreadState::new(), SequentialIds::default());
    let status = loop {
        match machine.next_step(&state, &mut ids) {
            Step::CallModel(_) => {
                let partial = ModelReply {
                    content: "half a".into(),
                    tool_calls: calls(&[("f", "c1", json!({}))]).tool_calls,
                    ..ModelReply::default()
                };
                machine.cancel(Some(&partial), Vec::new(), Some("enough".into()));
                // Asked again, as a driver does that looks at its switch between steps.
                machine.cancel(None, Vec::new(), None);
            }
            Step::Save(_) => machine.commit(&mut state),
            Step::Done(outcome) => break (outcome.status, outcome.cancel_reason),
            other => panic!("unexpected {other:?}"),
        }
    };
    assert_eq!(status, (RunStatus::Interrupted, Some("enough".to_owned())));
    let overlay = Overlay::new();
    let last = state.view(&overlay).last().cloned().expect("a message");
    assert_eq!(last.text(), "half a");
    assert!(last.fields().tool_calls.is_empty());
    assert_eq!(
        last.fields().response_metadata["finish_reason"],
        "cancelled"
    );
}

#[test]
fn a_failed_save_ends_the_run_and_leaves_the_state_as_it_was() {
    let assembly = assembly(parts(ScriptModel::new(vec![says("done")])));
    let mut machine = RunMachine::new(assembly, options(hello(), 100));
    let (state, mut ids) = (ThreadState::new(), SequentialIds::default());
    assert!(matches!(
        machine.next_step(&state, &mut ids),
        Step::Save(Source::Input)
    ));
    machine.save_failed(Error::new(ErrorCode::Store, "disk full"));
    match machine.next_step(&state, &mut ids) {
        Step::Done(outcome) => {
            assert_eq!(outcome.error.map(|e| e.code), Some(ErrorCode::Store));
        }
        other => panic!("unexpected {other:?}"),
    }
    assert!(state.view(&Overlay::new()).is_empty());
}

/// A reply that stands in for an answer which never came.
fn stands_in() -> ModelReply {
    let mut reply = says("It cannot be reached.");
    reply
        .additional_kwargs
        .insert("deerflow_error_fallback".into(), true.into());
    reply
        .additional_kwargs
        .insert("error_detail".into(), "down".into());
    reply
}

#[test]
fn llm_5_and_run_32_a_run_whose_last_reply_stands_in_for_an_answer_is_an_error() {
    let done = run(
        parts(ScriptModel::new(vec![stands_in()])),
        ThreadState::new(),
        hello(),
        100,
    );
    assert_eq!(done.outcome.status, RunStatus::Error);
    let error = done.outcome.error.clone().expect("an error");
    assert_eq!(
        (error.code, &*error.message),
        (ErrorCode::ModelNoAnswer, "down")
    );
    assert_eq!(done.texts().last().unwrap(), "ai:It cannot be reached.");
    // RUN-35: it says nothing of a later run, neither of one that answers nor of one that has nothing to say.
    let answered = run(
        parts(ScriptModel::new(vec![says(""), says("fine")])),
        done.state,
        hello(),
        100,
    );
    assert_eq!(answered.outcome.status, RunStatus::Success);
    let failed = run(
        parts(ScriptModel::new(vec![stands_in()])),
        ThreadState::new(),
        hello(),
        100,
    );
    let mut silent = parts(ScriptModel::new(vec![says("never")]));
    silent.middleware = vec![Noting::acting("ends", &Log::default(), |hook, _| {
        Ok(match hook {
            Hook::BeforeAgent => HookOutput::Jump(Jump::End, StateUpdate::default()),
            _ => HookOutput::Continue,
        })
    })];
    let silent = run(silent, failed.state, hello(), 100);
    assert_eq!(silent.outcome.status, RunStatus::Success);
    assert_eq!(silent.outcome.steps, 0);
}

#[test]
fn run_32_a_cancellation_that_is_on_its_way_counts_before_a_missing_answer() {
    let assembly = assembly(parts(ScriptModel::new(vec![says("never")])));
    for reply in [stands_in(), says("fine")] {
        let is_missing = !reply.additional_kwargs.is_empty();
        let mut machine = RunMachine::new(assembly.clone(), options(hello(), 100));
        let (mut state, mut ids) = (ThreadState::new(), SequentialIds::default());
        let outcome = loop {
            match machine.next_step(&state, &mut ids) {
                Step::CallModel(_) => {
                    machine.model_replied(Ok(reply.clone().into()));
                    machine.cancel(None, Vec::new(), Some("enough".into()));
                }
                Step::Save(_) => machine.commit(&mut state),
                Step::Done(outcome) => break outcome,
                other => panic!("unexpected {other:?}"),
            }
        };
        let ended = (outcome.status, outcome.cancel_reason.as_deref());
        if is_missing {
            assert_eq!(ended, (RunStatus::Interrupted, Some("enough")));
        } else {
            assert_eq!(
                ended,
                (RunStatus::Success, None),
                "what came whole is whole"
            );
        }
        assert_eq!(outcome.error, None);
    }
}
