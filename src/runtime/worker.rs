//! One run from start to end: asks the machine for steps and does them.

use std::future::{poll_fn, ready};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};

use super::calls::{Calls, queue_closed};
use super::events::RunEvents;
use super::goal_loop::{GoalLoop, Next};
use super::guarded::{Guarded, catch};
use super::ids::Ids;
use super::inject;
use super::run::RunShared;
use super::thread::OpenThread;
use crate::agent::assembly::Assembly;
use crate::agent::machine::{RunMachine, RunOptions};
use crate::agent::step::{ModelCall, Outcome, Step, ToolCalls};
use crate::middleware::{
    CallTool, Effect, EffectAnswer, Middleware, ModelResponse, NextModel, NextTool,
};
use crate::ports::BoxFuture;
use crate::ports::checkpoint::Source;
use crate::ports::delegate::SubagentRun;
use crate::ports::host::{HostCall, HostCallHandle, HostCalls, RunContext, RunFacts};
use crate::ports::model::{
    DeltaSink, DynModelProvider, FailedAttempt, ModelDelta, ModelError, ModelReply, ModelRequest,
    Usage,
};
use crate::ports::signals::Halt;
use crate::ports::tool::{DynTool, ToolInvocation, ToolOutcome};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::quote;
use crate::protocol::message::{Kind, ToolCall};
use crate::protocol::request_secrets::RequestSecrets;
use crate::protocol::run::{Durability, RunRequest, RunStatus};
use crate::protocol::time::Timestamp;
use crate::protocol::warning::Warning;
use crate::state::Overlay;
use crate::state::delta::StateDelta;
use crate::state::update::StateUpdate;
use crate::tools::clarification_request::HUMAN_INPUT;

/// Everything one run needs.
pub struct RunTask {
    /// What the run shares with its handle.
    pub shared: Arc<RunShared>,
    /// The agent.
    pub assembly: Arc<Assembly>,
    /// The thread it runs on.
    pub thread: Arc<OpenThread>,
    /// The run of this thread that has to end first.
    pub predecessor: Option<Arc<RunShared>>,
    /// Where events go.
    pub events: Arc<RunEvents>,
    /// The table of host calls.
    pub calls: Arc<Calls>,
    /// Ids of messages.
    pub ids: Ids,
    /// What was asked for.
    pub request: RunRequest,
    /// The decoded input.
    pub input: Option<StateUpdate>,
    /// What the request's context held as `secrets`.
    pub secrets: Option<RequestSecrets>,
    /// Which subagent it is the run of, if it is one's.
    pub subagent: Option<Arc<SubagentRun>>,
}

impl RunTask {
    /// Runs to the end. Whatever happens, panics included, the run ends with exactly one result; it is returned after the
    /// thread was let go of, for the caller to announce.
    pub async fn run(self) -> String {
        let outcome = self.outcome().await;
        result_json(&self.shared, &self.thread, &outcome)
    }

    /// Runs to the end, and tells how it was.
    pub async fn outcome(&self) -> Outcome {
        match Guarded::new(self.steps()).await {
            Ok(outcome) => outcome,
            Err(panic) => {
                self.thread.distrust();
                let error = Error::new(ErrorCode::Panic, "the run panicked").caused_by(panic);
                Outcome {
                    status: RunStatus::Error,
                    error: Some(error),
                    cancel_reason: None,
                    steps: 0,
                    usage: Usage::default(),
                }
            }
        }
    }

    async fn steps(&self) -> Outcome {
        if let Some(predecessor) = &self.predecessor {
            predecessor.end().await;
        }
        let limit = self
            .request
            .recursion_limit
            .unwrap_or(self.assembly.recursion_limit);
        self.events.run_start(limit);
        let context = Arc::new(RunContext {
            run_id: self.shared.run_id.clone(),
            thread_id: self.shared.thread_id.clone(),
            facts: Arc::new(RunFacts {
                run_id: self.shared.run_id.clone(),
                thread_id: self.shared.thread_id.clone(),
                configurable: self.request.configurable.clone(),
                context: self.request.context.clone(),
                secrets: self.secrets.clone(),
                started_at: self.events.now(),
                signals: self.shared.signals.clone(),
                clock: Some(self.events.clock().clone()),
                subagent: self.subagent.clone(),
                beginning: OnceLock::new(),
            }),
            host: Arc::new(RunHost {
                calls: self.calls.clone(),
                events: self.events.clone(),
            }),
        });
        let options = RunOptions {
            input: self.input.clone(),
            context: context.clone(),
            recursion_limit: limit,
            save_each_step: self.request.durability != Durability::Exit,
            notes: self.events.wants_notes(),
        };
        let mut machine = RunMachine::new(self.assembly.clone(), options);
        let mut ids = self.ids.clone();
        let mut goals = GoalLoop::new();
        if let Err(error) = self.thread.refresh() {
            machine.save_failed(error);
        }
        loop {
            if self.shared.switch.is_cancelled() {
                // Between steps; a machine that is at its end already stays as it is.
                machine.cancel(None, Vec::new(), self.shared.switch.reason());
            } else if self.has_lost_host() {
                machine.halt(Vec::new(), Halt::Failed(queue_closed()));
            }
            let step = self.thread.with_state(|state| {
                inject::point("agent");
                machine.next_step(state, &mut ids)
            });
            inject::point("runtime");
            if let Some(warnings) = self.shared.signals.take_warnings() {
                for (warning, message) in warnings.iter() {
                    self.events.warn(warning, || message.to_owned());
                }
            }
            for record in self.shared.signals.take_records() {
                self.events.middleware(&record);
            }
            match step {
                Step::CallModel(call) => self.call_model(&mut machine, *call).await,
                Step::CallTools(calls) => self.call_tools(&mut machine, calls, &context).await,
                Step::Await(effect) => self.effect(&mut machine, effect, &context).await,
                Step::Save(source) => self.save(&mut machine, source).await,
                // A subagent has one piece of work, whatever goal its agent's thread has (GOAL-12).
                Step::Done(outcome) if self.subagent.is_some() => return outcome,
                Step::Done(outcome) => {
                    let next = goals.after_turn(self, &context, &outcome, &mut ids).await;
                    match next {
                        Next::Turn(input) => machine.begin_turn(input),
                        Next::End => return outcome,
                        Next::Cancelled => {
                            return Outcome {
                                status: RunStatus::Interrupted,
                                cancel_reason: self.shared.switch.reason(),
                                ..outcome
                            };
                        }
                    }
                }
            }
        }
    }

    async fn call_model(&self, machine: &mut RunMachine, call: ModelCall) {
        let ModelCall {
            request,
            message_id,
        } = call;
        let mut sink = LeadSink {
            events: self.events.clone(),
            message_id: message_id.clone(),
            is_heard: self.events.streams_messages(),
            partial: ModelReply::default(),
            text: String::new(),
            reasoning: String::new(),
        };
        let result = {
            let mut chain = ModelChain {
                wrappers: self.assembly.model_wrappers(),
                model: self.assembly.model.as_ref(),
                sink: &mut sink,
            };
            tokio::select! {
                biased;
                () = self.shared.switch.cancelled() => None,
                result = self.unless_halted("", chain.run(request)) => Some(result),
            }
        };
        match result {
            None => {
                let partial = sink.partial();
                machine.cancel(Some(&partial), Vec::new(), self.shared.switch.reason());
            }
            Some(Err(halt)) => machine.halt(Vec::new(), halt),
            Some(Ok(Ok(response))) => {
                let usage = response.reply.usage.clone();
                let invalid = response.reply.invalid_tool_calls.len();
                if invalid > 0 {
                    self.events.warn(Warning::InvalidToolCalls, || {
                        format!("{invalid} calls of message {message_id} are not executed: their arguments are no JSON object")
                    });
                }
                machine.model_replied(Ok(response));
                if let Some(usage) = usage {
                    let total = machine.usage_with(&usage);
                    self.events.usage(&message_id, &usage, &total);
                }
            }
            Some(Ok(Err(mut failure))) => {
                failure
                    .partial
                    .get_or_insert_with(|| Box::new(sink.partial()));
                machine.model_replied(Err(failure));
            }
        }
    }

    async fn call_tools(
        &self,
        machine: &mut RunMachine,
        open: ToolCalls,
        context: &Arc<RunContext>,
    ) {
        let ToolCalls {
            message_id,
            calls,
            reads,
        } = open;
        let message_id: Arc<str> = message_id.into();
        let awaited = machine.awaited_calls();
        let mut outcomes: Vec<Option<ToolOutcome>> = vec![None; calls.len()];
        // Of the first call that was given up.
        let mut halt: Option<(usize, Halt)> = None;
        let is_cancelled = {
            let mut running: FuturesUnordered<_> = calls
                .into_iter()
                .enumerate()
                .map(|(place, call)| {
                    let invocation = ToolInvocation {
                        message_id: message_id.clone(),
                        call_id: call.id.unwrap_or_default(),
                        name: call.name,
                        args: call.args,
                        reads: reads.clone(),
                        run: context.clone(),
                    };
                    // What it is called with is gone before the wait begins: it may be long.
                    let call = self.guarded_call(invocation);
                    async move {
                        let call_id = call_id(awaited, place);
                        let outcome = self.unless_halted(call_id, call).await;
                        (
                            place,
                            outcome.map(|guarded| guarded.unwrap_or_else(panicked)),
                        )
                    }
                })
                .collect();
            // Those who want them longer keep what they want.
            drop((reads, message_id));
            let mut ended = |(place, outcome): (usize, Result<ToolOutcome, Halt>)| match outcome {
                Ok(outcome) => outcomes[place] = Some(outcome),
                Err(why) => {
                    if halt.as_ref().is_none_or(|(first, _)| place < *first) {
                        halt = Some((place, why));
                    }
                }
            };
            let is_cancelled = loop {
                tokio::select! {
                    biased;
                    () = self.shared.switch.cancelled() => break true,
                    next = running.next() => match next {
                        Some(end) => ended(end),
                        None => break false,
                    },
                }
            };
            // An answer that was taken before the cancel is kept, or the call would be made again.
            while let Some(Some(end)) = running.next().now_or_never() {
                ended(end);
            }
            is_cancelled
        };
        let signals = &self.shared.signals;
        if is_cancelled {
            for (place, outcome) in outcomes.iter_mut().enumerate() {
                if outcome.is_none() {
                    *outcome = signals.take_stand_in(call_id(awaited, place));
                }
            }
            machine.cancel(None, outcomes, self.shared.switch.reason());
        } else if let Some(halt) = halt
            .map(|(_, halt)| halt)
            // What was noted beside calls that have their outcomes.
            .or_else(|| signals.take_halt(""))
        {
            machine.halt(outcomes, halt);
        } else {
            machine.tools_returned(outcomes.into_iter().flatten().collect());
        }
    }

    /// The output of a piece of work, or why it was given up: who does the work says so in the signals of the run, and stays
    /// pending.
    async fn unless_halted<F: Future>(&self, work: &str, future: F) -> Result<F::Output, Halt> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => match self.shared.signals.take_halt(work) {
                Some(halt) => Poll::Ready(Err(halt)),
                None => Poll::Pending,
            },
        })
        .await
    }

    /// Whether it needs the host, who has freed the queue: what it did from now on would be for nobody.
    fn has_lost_host(&self) -> bool {
        let queue = self.events.queue();
        self.assembly.needs_host && queue.is_some_and(|queue| queue.is_closed())
    }

    /// A call through all wrappers.
    fn guarded_call(&self, invocation: ToolInvocation) -> GuardedCall<'_> {
        let chain = NextTool::new(self.assembly.tool_wrappers(), self);
        Guarded::boxed(match catch(|| chain.run(invocation)) {
            Ok(call) => call,
            Err(panic) => Box::pin(ready(panicked(panic))),
        })
    }

    /// The tool of a call, and the call with its arguments as the tool takes them.
    ///
    /// # Errors
    /// There is no such tool, or the arguments are not as it wants them.
    fn checked(
        &self,
        mut invocation: ToolInvocation,
    ) -> Result<(&Arc<dyn DynTool>, ToolInvocation), String> {
        let assembly = &self.assembly;
        let Some(entry) = assembly.tool(&invocation.name) else {
            let known: Vec<&str> = assembly
                .tool_specs
                .iter()
                .map(|spec| spec.name.as_str())
                .collect();
            let fault = format!(
                "there is no tool {:?}; the tools are: {}",
                invocation.name.chars().take(100).collect::<String>(),
                known.join(", ")
            );
            self.events.warn(Warning::UnknownTool, || fault.clone());
            return Err(fault);
        };
        inject::point("tool");
        match entry.check.check(std::mem::take(&mut invocation.args)) {
            Ok(args) => invocation.args = args,
            Err(fault) => {
                self.events.warn(Warning::ArgumentsRefused, || {
                    format!(
                        "call {:?} of {}: {fault}",
                        invocation.call_id,
                        entry.tool.spec().name
                    )
                });
                return Err(fault);
            }
        }
        Ok((&entry.tool, invocation))
    }

    async fn effect(&self, machine: &mut RunMachine, effect: Effect, context: &Arc<RunContext>) {
        match effect {
            Effect::CallModel(question) => {
                let mut sink = SilentSink {
                    events: &self.events,
                };
                let (request, other) = question.into_request(context.clone());
                let model = other.map_or_else(|| self.assembly.model.clone(), |it| it.provider);
                let call = model.call_boxed(&request, &mut sink);
                let result = tokio::select! {
                    biased;
                    () = self.shared.switch.cancelled() => None,
                    result = call => Some(result),
                };
                if let Some(Ok(ModelReply {
                    usage: Some(usage), ..
                })) = &result
                {
                    self.events.side_usage(usage);
                }
                match result {
                    Some(result) => machine.answered(EffectAnswer::Model(Box::new(result))),
                    None => machine.cancel(None, Vec::new(), self.shared.switch.reason()),
                }
            }
            Effect::Perform(work) => {
                let work = self.unless_halted("", work.begin(context.clone()));
                let result = tokio::select! {
                    biased;
                    () = self.shared.switch.cancelled() => None,
                    result = work => Some(result),
                };
                match result {
                    Some(Ok(result)) => {
                        machine.answered(EffectAnswer::Performed(Box::new(result)));
                    }
                    Some(Err(halt)) => machine.halt(Vec::new(), halt),
                    None => machine.cancel(None, Vec::new(), self.shared.switch.reason()),
                }
            }
        }
    }

    async fn save(&self, machine: &mut RunMachine, source: Source) {
        let delta = match self.thread.is_stored {
            true => self.thread.with_state(|state| machine.delta(state)),
            false => StateDelta::default(),
        };
        let meta = if delta.is_empty() {
            None
        } else {
            let checkpoint = self
                .thread
                .next_checkpoint(delta, source, &self.shared.run_id);
            let meta = checkpoint.meta.clone();
            if let Err(error) = self.thread.put(checkpoint).await {
                if error.code == ErrorCode::ThreadStale {
                    self.events
                        .warn(Warning::ThreadStale, || error.message.clone());
                }
                return machine.save_failed(error);
            }
            Some(meta)
        };
        self.thread
            .commit(meta.clone(), |state| machine.commit(state));
        // Only now: what the host is told of is stored.
        self.events.notes(machine.take_notes());
        if let Some(meta) = meta {
            self.tell_values();
            self.events.checkpoint(&meta);
        }
        if let Some(queue) = self.events.queue()
            && let Some(wait) = queue.pressure()
        {
            tokio::select! {
                biased;
                () = self.shared.switch.cancelled() => {}
                () = wait => {}
            }
        }
    }

    /// `values`, for those who see whole states.
    pub(super) fn tell_values(&self) {
        if self.events.wants_values() {
            let mut values = String::new();
            self.thread.with_state(|state| {
                state
                    .view(&Overlay::new())
                    .write_json(&mut values, &Default::default());
            });
            self.events.values(&values);
        }
    }
}

/// The id of a call that is awaited.
fn call_id(calls: &[ToolCall], place: usize) -> &str {
    calls
        .get(place)
        .and_then(|call| call.id.as_deref())
        .unwrap_or_default()
}

/// The result of a run, as `fawn_run_wait` answers it and `run_end` carries it.
fn result_json(shared: &RunShared, thread: &OpenThread, outcome: &Outcome) -> String {
    let (reply, question) = thread.with_state(|state| {
        if outcome.status != RunStatus::Success {
            return (None, None);
        }
        let overlay = Overlay::new();
        let view = state.view(&overlay);
        let last = view.last();
        let question = last.and_then(|last| last.fields().artifact.get(HUMAN_INPUT));
        let ai = view
            .messages()
            .rev()
            .find(|message| message.kind() == Kind::Ai);
        (ai.cloned(), question.map(Value::to_string))
    });
    let mut text = format!(
        "{{\"run_id\":{},\"thread_id\":{},\"status\":\"{}\",\"checkpoint_id\":{},\"steps\":{},\
         \"usage\":{},\"message\":{}",
        quote(&shared.run_id),
        quote(&shared.thread_id),
        outcome.status.name(),
        json!(thread.head_id().map(|id| id.to_string())),
        outcome.steps,
        outcome.usage.to_value(),
        reply.as_ref().map_or("null", |message| message.json()),
    );
    if let Some(usage) = shared.subagent_usage() {
        text.push_str(",\"subagent_usage\":");
        text.push_str(&usage.to_value().to_string());
    }
    if let Some(question) = question {
        text.push_str(",\"human_input\":");
        text.push_str(&question);
    }
    if let Some(reason) = shared.signals.stop_reason() {
        text.push_str(",\"stop_reason\":");
        text.push_str(&quote(reason.name()));
    }
    if let Some(error) = &outcome.error {
        text.push_str(",\"error\":");
        text.push_str(&json!(error.payload()).to_string());
    }
    if outcome.status == RunStatus::Interrupted {
        text.push_str(",\"cancel_reason\":");
        text.push_str(&json!(outcome.cancel_reason).to_string());
    }
    text.push('}');
    text
}

/// The way from a run to the host.
struct RunHost {
    calls: Arc<Calls>,
    events: Arc<RunEvents>,
}

impl HostCalls for RunHost {
    fn open(&self, call: HostCall) -> Result<Box<dyn HostCallHandle>, Error> {
        self.calls.open(call, &self.events)
    }

    fn emit_custom(&self, call_id: &str, value: Value) -> Option<BoxFuture<'static, ()>> {
        self.events.custom(call_id, &value);
        let wait = self.events.queue()?.pressure()?;
        Some(Box::pin(wait))
    }

    fn now(&self) -> Timestamp {
        self.events.now()
    }
}

/// Passes deltas of the agent's own turn to the host and keeps what has arrived.
struct LeadSink {
    events: Arc<RunEvents>,
    message_id: Arc<str>,
    is_heard: bool,
    partial: ModelReply,
    text: String,
    reasoning: String,
}

impl LeadSink {
    fn partial(&mut self) -> ModelReply {
        let mut partial = std::mem::take(&mut self.partial);
        partial.content = Value::String(std::mem::take(&mut self.text));
        if !self.reasoning.is_empty() {
            let reasoning = std::mem::take(&mut self.reasoning);
            partial
                .additional_kwargs
                .insert("reasoning_content".into(), reasoning.into());
        }
        partial
    }
}

impl DeltaSink for LeadSink {
    fn push(&mut self, delta: ModelDelta) {
        match &delta {
            ModelDelta::Text(text) => self.text.push_str(text),
            ModelDelta::Reasoning(text) => self.reasoning.push_str(text),
            ModelDelta::ToolCall { .. } => {}
        }
        if self.is_heard {
            self.events.delta(&self.message_id, delta);
        }
    }

    fn pressure(&mut self) -> Option<BoxFuture<'static, ()>> {
        let wait = self.events.queue()?.pressure()?;
        Some(Box::pin(wait))
    }

    fn is_heard(&self) -> bool {
        self.is_heard
    }

    fn reset(&mut self) {
        self.partial = ModelReply::default();
        self.text.clear();
        self.reasoning.clear();
        if self.is_heard {
            self.events.stream_reset(&self.message_id);
        }
    }

    fn arrived(&mut self) -> Option<Box<ModelReply>> {
        Some(Box::new(self.partial()))
    }

    fn attempt_failed(&mut self, attempt: &FailedAttempt<'_>) {
        self.events.model_attempt(Some(&self.message_id), attempt);
    }
}

/// For model calls whose deltas nobody sees.
pub(super) struct SilentSink<'a> {
    /// Hears of failed attempts.
    pub(super) events: &'a RunEvents,
}

impl DeltaSink for SilentSink<'_> {
    fn push(&mut self, _: ModelDelta) {}

    fn pressure(&mut self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    fn is_heard(&self) -> bool {
        false
    }

    fn attempt_failed(&mut self, attempt: &FailedAttempt<'_>) {
        self.events.model_attempt(None, attempt);
    }
}

/// The wrappers that are left, and the model inside them.
struct ModelChain<'a> {
    wrappers: &'a [Arc<dyn Middleware>],
    model: &'a dyn DynModelProvider,
    sink: &'a mut dyn DeltaSink,
}

impl NextModel for ModelChain<'_> {
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            match self.wrappers.split_first() {
                Some((outer, inner)) => {
                    let mut next = ModelChain {
                        wrappers: inner,
                        model: self.model,
                        sink: &mut *self.sink,
                    };
                    outer.wrap_model_call(request, &mut next).await
                }
                None => {
                    inject::point("model");
                    let called = self.model.call_boxed(&request, &mut *self.sink).await;
                    let reply = called.map_err(|mut failure| {
                        // Wrappers see what the host has seen, whatever the provider keeps.
                        failure.partial = failure.partial.or_else(|| self.sink.arrived());
                        failure
                    })?;
                    Ok(reply.into())
                }
            }
        })
    }
}

/// A tool call whose panics become values.
type GuardedCall<'a> = Guarded<dyn Future<Output = ToolOutcome> + Send + 'a>;

impl CallTool for RunTask {
    fn call(&self, invocation: ToolInvocation) -> BoxFuture<'_, ToolOutcome> {
        // Inside the wrappers, so that a tool that panics is a tool that failed to them, too.
        let begun = catch(|| {
            self.checked(invocation)
                .map(|(tool, invocation)| tool.call_boxed(invocation))
        });
        let call: GuardedCall<'_> = match begun {
            Ok(Ok(call)) => Guarded::boxed(call),
            Ok(Err(fault)) => return Box::pin(ready(ToolOutcome::Failed(fault))),
            Err(panic) => return Box::pin(ready(panicked(panic))),
        };
        Box::pin(call.map(|guarded| guarded.unwrap_or_else(panicked)))
    }
}

/// What a panic is to whoever called.
fn panicked(panic: String) -> ToolOutcome {
    ToolOutcome::Failed(format!("the tool panicked: {panic}"))
}
