//! The run as a machine: it holds what is pending and says what to do next. It does no IO.
//!
//! The loop (EX-1): `before_agent` hooks, then `before_model` hooks, model, `after_model` hooks, tools, again, until a reply
//! has no open calls; then `after_agent` hooks. What a step writes stays pending until the driver has stored it, so a
//! step whose save fails leaves the thread as it was.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::assembly::Assembly;
use super::step::{ModelCall, Note, Outcome, Step, ToolCalls};
use crate::middleware::{
    EffectAnswer, Hook, HookContext, HookOutput, Jump, ModelResponse, asked_for, error_of_fallback,
    has_visible_content, is_error_fallback, with_calls,
};
use crate::ports::checkpoint::Source;
use crate::ports::host::{RunContext, RunStart};
use crate::ports::model::{ModelError, ModelReply, ModelRequest, Purpose, Usage};
use crate::ports::signals::Halt;
use crate::ports::tool::ToolOutcome;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{Fields, Kind, Message, ToolCall, ToolStatus};
use crate::protocol::run::RunStatus;
use crate::protocol::warning::Warning;
use crate::state::delta::StateDelta;
use crate::state::ids::IdSource;
use crate::state::messages::allocate_ids;
use crate::state::reads::ChannelReads;
use crate::state::update::{StateUpdate, Write};
use crate::state::{Overlay, ThreadState};

/// How a run is to go.
pub struct RunOptions {
    /// Channel writes that start it; `None` goes on from the thread's state.
    pub input: Option<StateUpdate>,
    /// Handed to models and tools; hooks see its facts.
    pub context: Arc<RunContext>,
    /// Most steps.
    pub recursion_limit: u32,
    /// Whether to store after each step, or once at the end.
    pub save_each_step: bool,
    /// Whether to keep notes of what each node writes.
    pub notes: bool,
}

enum Phase {
    Start(Option<StateUpdate>),
    NextTurn(Box<StateUpdate>),
    Hooks(Hook, usize),
    CallModel,
    AwaitModel(Arc<str>),
    Replied(Arc<str>, Box<ModelResponse>),
    Decide,
    CallTools,
    AwaitTools(Vec<ToolCall>),
    Returned(Vec<(ToolCall, ToolOutcome)>),
    KeepReply(Box<Message>, Box<End>),
    KeepResults(Vec<(ToolCall, ToolOutcome)>, Box<End>),
    Save(Source, Box<Phase>),
    Saving(Box<Phase>),
    End(Box<End>),
    Ended,
}

struct End {
    status: RunStatus,
    error: Option<Error>,
    cancel_reason: Option<String>,
}

/// One run.
pub struct RunMachine {
    assembly: Arc<Assembly>,
    options: RunOptions,
    overlay: Overlay,
    phase: Phase,
    answer: Option<EffectAnswer>,
    /// A cancellation that waits for the next boundary.
    pending_end: Option<Box<End>>,
    /// Id of the newest reply of this run.
    last_reply: Option<Arc<str>>,
    /// Steps of this turn.
    steps: u32,
    /// Steps of the turns before it.
    earlier_steps: u32,
    usage: Usage,
    notes: Vec<Note>,
}

impl RunMachine {
    /// A run that has not begun.
    pub fn new(assembly: Arc<Assembly>, mut options: RunOptions) -> Self {
        let phase = Phase::Start(options.input.take());
        RunMachine {
            assembly,
            options,
            overlay: Overlay::new(),
            phase,
            answer: None,
            pending_end: None,
            last_reply: None,
            steps: 0,
            earlier_steps: 0,
            usage: Usage::default(),
            notes: Vec::new(),
        }
    }

    /// Begins another turn of a run that is at its end, from `before_agent` on, with what `input` writes. Its limit of steps
    /// begins anew, tokens and steps of the run count on.
    pub fn begin_turn(&mut self, input: StateUpdate) {
        if !matches!(self.phase, Phase::Ended) {
            return self.out_of_turn("another turn");
        }
        self.earlier_steps = self.earlier_steps.saturating_add(self.steps);
        self.steps = 0;
        self.phase = Phase::NextTurn(Box::new(input));
    }

    /// What to do next. `state` is the thread as it is stored.
    pub fn next_step(&mut self, state: &ThreadState, ids: &mut dyn IdSource) -> Step {
        loop {
            let phase = std::mem::replace(&mut self.phase, Phase::Ended);
            match self.advance(phase, state, ids) {
                Ok(Some(step)) => return step,
                Ok(None) => {}
                Err(error) => self.end(RunStatus::Error, Some(error)),
            }
        }
    }

    /// The answer to [`Step::CallModel`].
    pub fn model_replied(&mut self, result: Result<ModelResponse, ModelError>) {
        let Phase::AwaitModel(message_id) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return self.out_of_turn("a model reply");
        };
        match result {
            Ok(response) => self.phase = Phase::Replied(message_id, Box::new(response)),
            Err(failure) => {
                let end = End {
                    status: RunStatus::Error,
                    error: Some(failure.error),
                    cancel_reason: None,
                };
                self.keep_partial(&message_id, failure.partial.as_deref(), PARTIAL_ERROR, end);
            }
        }
    }

    /// The answer to [`Step::CallTools`]: one outcome for each call, in their order.
    pub fn tools_returned(&mut self, outcomes: Vec<ToolOutcome>) {
        let Phase::AwaitTools(calls) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return self.out_of_turn("tool results");
        };
        self.phase = Phase::Returned(calls.into_iter().zip(outcomes).collect());
    }

    /// The answer to [`Step::Await`].
    pub fn answered(&mut self, answer: EffectAnswer) {
        self.answer = Some(answer);
    }

    /// What [`Step::Save`] is to store.
    pub fn delta(&self, state: &ThreadState) -> StateDelta {
        state.delta(&self.overlay)
    }

    /// The store has it: the pending writes become the thread's state.
    pub fn commit(&mut self, state: &mut ThreadState) {
        state.commit(std::mem::take(&mut self.overlay));
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Saving(next) => self.phase = *next,
            other => self.phase = other,
        }
    }

    /// The store failed: what is pending is dropped and the run ends.
    pub fn save_failed(&mut self, error: Error) {
        self.overlay = Overlay::new();
        self.notes.clear();
        self.end(RunStatus::Error, Some(error));
    }

    /// What nodes wrote since the last call; tell it to the host after a save.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Ends the run early. `partial` is what had arrived of a reply, `finished` the outcomes of calls that had ended (in the
    /// order of the calls, `None` for the others); both are kept.
    pub fn cancel(
        &mut self,
        partial: Option<&ModelReply>,
        finished: Vec<Option<ToolOutcome>>,
        reason: Option<String>,
    ) {
        let end = End {
            status: RunStatus::Interrupted,
            error: None,
            cancel_reason: reason,
        };
        self.stop(partial, finished, end);
    }

    /// Ends the run because a piece of its work was given up. `finished` as for [`RunMachine::cancel`]: a call without an
    /// outcome stays open, and a later run makes it.
    pub fn halt(&mut self, finished: Vec<Option<ToolOutcome>>, halt: Halt) {
        let end = match halt {
            Halt::Paused(reason) => End {
                status: RunStatus::Interrupted,
                error: None,
                cancel_reason: Some(reason),
            },
            Halt::Failed(error) => End {
                status: RunStatus::Error,
                error: Some(error),
                cancel_reason: None,
            },
        };
        self.stop(None, finished, end);
    }

    fn stop(&mut self, partial: Option<&ModelReply>, finished: Vec<Option<ToolOutcome>>, end: End) {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::AwaitModel(message_id) => {
                self.keep_partial(&message_id, partial, PARTIAL_CANCELLED, end);
            }
            Phase::AwaitTools(calls) => {
                let ended = calls.into_iter().zip(finished);
                let kept = ended
                    .filter_map(|(call, outcome)| Some((call, outcome?)))
                    .collect();
                self.phase = Phase::KeepResults(kept, Box::new(end));
            }
            other => {
                // What has arrived is stored first; the run ends where it would begin something new.
                self.phase = other;
                self.pending_end.get_or_insert(Box::new(end));
            }
        }
    }

    /// The calls whose outcomes are awaited, in order; none at any other time.
    pub fn awaited_calls(&self) -> &[ToolCall] {
        match &self.phase {
            Phase::AwaitTools(calls) => calls,
            _ => &[],
        }
    }

    /// The tokens of the run so far, with those of a reply that is not counted yet.
    pub fn usage_with(&self, reply: &Usage) -> Usage {
        let mut total = self.usage.clone();
        total.add(reply);
        total
    }

    fn advance(
        &mut self,
        phase: Phase,
        state: &ThreadState,
        ids: &mut dyn IdSource,
    ) -> Result<Option<Step>, Error> {
        let begins_something = matches!(
            phase,
            Phase::Start(_)
                | Phase::NextTurn(_)
                | Phase::Hooks(Hook::BeforeAgent | Hook::BeforeModel, _)
                | Phase::CallModel
                | Phase::CallTools
        );
        if begins_something && let Some(end) = self.pending_end.take() {
            self.finish(*end);
            return Ok(None);
        }
        match phase {
            Phase::Start(input) => {
                let entry = match &input {
                    Some(_) => Phase::Hooks(Hook::BeforeAgent, 0),
                    None => self.resume_at(state)?,
                };
                if matches!(entry, Phase::CallTools) {
                    // No model call comes before these calls, so what the user had asked for has to be known without.
                    let view = state.view(&self.overlay);
                    let active = self.options.context.facts.signals.skills();
                    active.set_open_request(asked_for(view));
                }
                if let Some(input) = input {
                    state
                        .stage(&mut self.overlay, std::slice::from_ref(&input), ids)
                        // The input is one update; its place in the step is not the caller's business.
                        .map_err(|error| relocate(error, "/0", "/input"))?;
                }
                self.note_start(state);
                self.phase = Phase::Save(Source::Input, Box::new(entry));
                Ok(None)
            }
            Phase::NextTurn(input) => {
                state.stage(&mut self.overlay, std::slice::from_ref(&input), ids)?;
                // The host did not write it, so it is told.
                let node = input.writer.as_deref().unwrap_or("input");
                self.note(node.into(), *input);
                let entry = Phase::Hooks(Hook::BeforeAgent, 0);
                self.phase = Phase::Save(Source::Input, Box::new(entry));
                Ok(None)
            }
            Phase::Hooks(hook, position) => {
                let ran = self.run_hook(hook, position, state, ids);
                if ran.is_err() && hook == Hook::AfterModel {
                    self.withdraw_calls(PARTIAL_ERROR, state, ids)?;
                }
                ran
            }
            Phase::CallModel => {
                if state.view(&self.overlay).last().is_none() {
                    // An input that writes none is like none; a hook may have begun the thread meanwhile.
                    return Err(no_messages());
                }
                self.count_step()?;
                let message_id: Arc<str> = ids.next_id().into();
                let view = state.view(&self.overlay);
                let request = ModelRequest {
                    purpose: Purpose::Lead,
                    system: self.assembly.system_prompt.clone(),
                    preamble: self.assembly.preamble.clone(),
                    messages: view.transcript(),
                    tools: self.assembly.tool_specs.clone(),
                    tool_choice: None,
                    attempt: 0,
                    reads: ChannelReads::of(&view, self.assembly.wrapped_reads()),
                    run: self.options.context.clone(),
                };
                self.phase = Phase::AwaitModel(message_id.clone());
                Ok(Some(Step::CallModel(Box::new(ModelCall {
                    request,
                    message_id,
                }))))
            }
            Phase::Replied(message_id, response) => {
                let ends = response.ends_run;
                self.stage_reply(&message_id, *response, state, ids)?;
                self.phase = match ends {
                    true => Phase::Save(Source::Loop, Box::new(Phase::Hooks(Hook::AfterAgent, 0))),
                    false => Phase::Hooks(Hook::AfterModel, 0),
                };
                Ok(None)
            }
            Phase::Decide => {
                // EX-5: no calls, the agent is done; open calls, they are run; all answered, the model is asked again.
                let has_calls = self
                    .last_calls(state)
                    .is_some_and(|calls| !calls.is_empty());
                let next = if !has_calls {
                    Phase::Hooks(Hook::AfterAgent, 0)
                } else if self.open_calls(state).calls.is_empty() {
                    Phase::Hooks(Hook::BeforeModel, 0)
                } else {
                    Phase::CallTools
                };
                self.phase = Phase::Save(Source::Loop, Box::new(next));
                Ok(None)
            }
            Phase::CallTools => {
                let mut open = self.open_calls(state);
                if open.calls.is_empty() {
                    self.phase = Phase::Hooks(Hook::BeforeModel, 0);
                    return Ok(None);
                }
                self.count_step()?;
                let view = state.view(&self.overlay);
                let channels = self.assembly.call_reads(&open.calls);
                open.reads = ChannelReads::with_messages(&view, &channels);
                self.phase = Phase::AwaitTools(open.calls.clone());
                Ok(Some(Step::CallTools(open)))
            }
            Phase::Returned(results) => {
                let ends = results.iter().any(|(_, outcome)| match outcome {
                    ToolOutcome::Answer(answer) => answer.end_run,
                    ToolOutcome::Failed(_) => false,
                });
                let direct = results.iter().all(|(call, _)| {
                    self.assembly
                        .tool(&call.name)
                        .is_some_and(|entry| entry.tool.return_direct())
                });
                match self.stage_tools(results, state, ids) {
                    Ok(()) => {
                        let next = if ends {
                            // EX-7: goto end passes by `after_agent`.
                            Phase::End(Box::new(End {
                                status: RunStatus::Success,
                                error: None,
                                cancel_reason: None,
                            }))
                        } else if direct {
                            Phase::Hooks(Hook::AfterAgent, 0)
                        } else {
                            Phase::Hooks(Hook::BeforeModel, 0)
                        };
                        self.phase = Phase::Save(Source::Loop, Box::new(next));
                    }
                    Err(error) => self.end(RunStatus::Error, Some(error)),
                }
                Ok(None)
            }
            Phase::KeepReply(message, end) => {
                let update = StateUpdate::messages(vec![*message]);
                state.stage(&mut self.overlay, std::slice::from_ref(&update), ids)?;
                self.note("model".into(), update);
                self.finish(*end);
                Ok(None)
            }
            Phase::KeepResults(results, end) => {
                self.stage_tools(results, state, ids)?;
                self.finish(*end);
                Ok(None)
            }
            Phase::Save(source, next) => {
                let ending = matches!(*next, Phase::End(_));
                if self.overlay.is_empty() || !(self.options.save_each_step || ending) {
                    self.phase = *next;
                    return Ok(None);
                }
                self.phase = Phase::Saving(next);
                Ok(Some(Step::Save(source)))
            }
            Phase::End(end) => {
                if !self.overlay.is_empty() {
                    self.finish(*end);
                    return Ok(None);
                }
                Ok(Some(Step::Done(Outcome {
                    status: end.status,
                    error: end.error,
                    cancel_reason: end.cancel_reason,
                    steps: self.earlier_steps.saturating_add(self.steps),
                    usage: self.usage.clone(),
                })))
            }
            Phase::AwaitModel(_) | Phase::AwaitTools(_) | Phase::Saving(_) | Phase::Ended => Err(
                Error::new(ErrorCode::Internal, "the machine was asked out of turn"),
            ),
        }
    }

    fn run_hook(
        &mut self,
        hook: Hook,
        position: usize,
        state: &ThreadState,
        ids: &mut dyn IdSource,
    ) -> Result<Option<Step>, Error> {
        let Some(middleware) = self.assembly.hook(hook, position).cloned() else {
            self.phase = match hook {
                Hook::BeforeAgent => Phase::Hooks(Hook::BeforeModel, 0),
                Hook::BeforeModel => Phase::CallModel,
                Hook::AfterModel => Phase::Decide,
                Hook::AfterAgent => {
                    self.end_turn(state);
                    return Ok(None);
                }
            };
            return Ok(None);
        };
        let node = || -> Arc<str> { format!("{}.{}", middleware.name(), hook.name()).into() };
        let failed = |error: Error| {
            Error::new(
                ErrorCode::Middleware,
                format!("{}: {}", node(), error.message),
            )
            .caused_by(error.code.name())
        };
        let answer = self.answer.take();
        let context = HookContext {
            state: state.view(&self.overlay),
            run: &self.options.context.facts,
            answer: answer.as_ref(),
        };
        let output = middleware.hook(hook, &context).map_err(failed)?;
        let (update, jump) = match output {
            HookOutput::Continue => (None, None),
            HookOutput::Update(update) => (Some(update), None),
            HookOutput::Jump(to, update) => (Some(update), Some(to)),
            HookOutput::Await(_) if self.pending_end.is_some() => {
                // To ask is to begin something new. What the hooks have not let through is not made by a later run either.
                if hook == Hook::AfterModel {
                    self.withdraw_calls(PARTIAL_CANCELLED, state, ids)?;
                }
                if let Some(end) = self.pending_end.take() {
                    self.finish(*end);
                }
                return Ok(None);
            }
            HookOutput::Await(effect) => {
                self.phase = Phase::Hooks(hook, position);
                return Ok(Some(Step::Await(effect)));
            }
        };
        if let Some(mut update) = update
            && !update.is_empty()
        {
            update.writer = Some(node().to_string());
            for (_, write) in &mut update.writes {
                // Before it is noted, so that the events tell the ids that the thread has.
                if let Write::Messages(messages) = write {
                    allocate_ids(messages, ids);
                }
            }
            state
                .stage(&mut self.overlay, std::slice::from_ref(&update), ids)
                .map_err(failed)?;
            self.note(node(), update);
        }
        self.phase = match jump {
            None => Phase::Hooks(hook, position + 1),
            Some(Jump::Model) => Phase::Hooks(Hook::BeforeModel, 0),
            Some(Jump::Tools) => Phase::Save(Source::Loop, Box::new(Phase::CallTools)),
            Some(Jump::End) if hook == Hook::AfterAgent => {
                self.end_turn(state);
                return Ok(None);
            }
            Some(Jump::End) => {
                Phase::Save(Source::Loop, Box::new(Phase::Hooks(Hook::AfterAgent, 0)))
            }
        };
        Ok(None)
    }

    fn stage_reply(
        &mut self,
        message_id: &Arc<str>,
        response: ModelResponse,
        state: &ThreadState,
        ids: &mut dyn IdSource,
    ) -> Result<(), Error> {
        let ModelResponse { reply, updates, .. } = response;
        if let Some(usage) = &reply.usage {
            self.usage.add(usage);
        }
        self.last_reply = Some(message_id.clone());
        let mut fields = reply_fields(message_id, reply);
        let mut known = HashSet::new();
        for call in &mut fields.tool_calls {
            // A call pairs with its result by id, so each needs one of its own.
            let usable = call
                .id
                .as_deref()
                .is_some_and(|id| !id.trim().is_empty() && !known.contains(id));
            if !usable {
                call.id = Some(format!("call_{}", ids.next_id()));
            }
            known.extend(call.id.clone());
        }
        let mut step = vec![StateUpdate::messages(vec![Message::new(fields)])];
        step.extend(updates);
        for update in &mut step {
            update.writer.get_or_insert_with(|| "model".to_owned());
        }
        state.stage(&mut self.overlay, &step, ids)?;
        let node: Arc<str> = "model".into();
        for update in step {
            self.note(node.clone(), update);
        }
        Ok(())
    }

    /// Stages results and what the tools write besides. When the writes cannot be folded, the results alone are kept and the
    /// error is returned: what a tool has done is never lost (M11).
    fn stage_tools(
        &mut self,
        results: Vec<(ToolCall, ToolOutcome)>,
        state: &ThreadState,
        ids: &mut dyn IdSource,
    ) -> Result<(), Error> {
        let mut step = Vec::with_capacity(results.len());
        let mut messages_only = Vec::with_capacity(results.len());
        let mut last_words: Vec<ModelReply> = Vec::new();
        for (call, mut outcome) in results {
            if let ToolOutcome::Answer(answer) = &mut outcome
                && let Some(said) = answer.last_words.take()
                && answer.end_run
                && !last_words.iter().any(|known| known.content == said.content)
            {
                last_words.push(*said);
            }
            let (message, update) = self.tool_message(&call, outcome, state, ids);
            let writer = Some(format!(
                "{} ({})",
                call.name,
                call.id.as_deref().unwrap_or_default()
            ));
            let mut result = StateUpdate::messages(vec![message]);
            result.writer = writer.clone();
            messages_only.push(result.clone());
            step.push(result);
            if let Some(mut update) = update {
                update.writer = writer;
                step.push(update);
            }
        }
        for said in last_words {
            let message = Message::new(reply_fields(&ids.next_id().into(), said));
            let mut last = StateUpdate::messages(vec![message]);
            last.writer = Some("tools".to_owned());
            messages_only.push(last.clone());
            step.push(last);
        }
        let staged = state.stage(&mut self.overlay, &step, ids);
        if let Err(error) = staged {
            state.stage(&mut self.overlay, &messages_only, ids)?;
            self.note_tools(messages_only);
            return Err(Error {
                path: None,
                ..error
            });
        }
        self.note_tools(step);
        Ok(())
    }

    fn tool_message(
        &self,
        call: &ToolCall,
        outcome: ToolOutcome,
        state: &ThreadState,
        ids: &mut dyn IdSource,
    ) -> (Message, Option<StateUpdate>) {
        let mut fields = Fields::new(Kind::Tool, Value::String(String::new()));
        fields.name = Some(call.name.clone());
        fields.tool_call_id = call.id.clone().unwrap_or_default();
        let update = match outcome {
            ToolOutcome::Answer(answer) => {
                fields.content = match answer.content {
                    Value::Null => Value::String(String::new()),
                    content => content,
                };
                fields.artifact = answer.artifact;
                fields.additional_kwargs = answer.additional_kwargs;
                fields.status = answer.status;
                fields.id = answer.id.filter(|id| !self.is_of_earlier_turn(id, state));
                answer.update
            }
            ToolOutcome::Failed(message) => {
                fields.content = Value::String(format!("Error: {message}"));
                fields.status = ToolStatus::Error;
                None
            }
        };
        fields.id = fields.id.or_else(|| Some(ids.next_id()));
        (Message::new(fields), update)
    }

    /// Whether a message of this id stands before the last ai message, or is that message.
    fn is_of_earlier_turn(&self, id: &str, state: &ThreadState) -> bool {
        let view = state.view(&self.overlay);
        if view.by_id(id).is_none() {
            return false;
        }
        let this_turn = view
            .messages()
            .rev()
            .take_while(|message| message.kind() != Kind::Ai);
        !this_turn
            .into_iter()
            .any(|message| message.id() == Some(id))
    }

    fn note_tools(&mut self, step: Vec<StateUpdate>) {
        let node: Arc<str> = "tools".into();
        for update in step {
            self.note(node.clone(), update);
        }
    }

    /// Keeps the text of a reply that did not arrive whole, without its calls, and ends the run.
    fn keep_partial(
        &mut self,
        message_id: &Arc<str>,
        partial: Option<&ModelReply>,
        finish_reason: &str,
        end: End,
    ) {
        let message = partial.map(|partial| {
            let mut kept = ModelReply {
                content: partial.content.clone(),
                additional_kwargs: partial.additional_kwargs.clone(),
                response_metadata: partial.response_metadata.clone(),
                ..ModelReply::default()
            };
            kept.response_metadata
                .insert("finish_reason".into(), finish_reason.into());
            Message::new(reply_fields(message_id, kept))
        });
        match message {
            Some(message) if !message.text().is_empty() => {
                self.phase = Phase::KeepReply(Box::new(message), Box::new(end));
            }
            _ => self.finish(end),
        }
    }

    /// Takes the open calls out of a reply that the hooks after the model did not let through to the end, so that no run
    /// makes them unchecked. It counts as one that did not arrive whole: a run without input asks the model again.
    fn withdraw_calls(
        &mut self,
        finish_reason: &str,
        state: &ThreadState,
        ids: &mut dyn IdSource,
    ) -> Result<(), Error> {
        let open = self.open_calls(state).calls;
        if open.is_empty() {
            return Ok(());
        }
        let update = {
            let view = state.view(&self.overlay);
            let reply = view.messages().rev().find(|m| m.kind() == Kind::Ai);
            let Some(reply) = reply else { return Ok(()) };
            let calls = &reply.fields().tool_calls;
            let answered = calls.iter().filter(|call| !open.contains(call));
            let mut fields = with_calls(reply, answered.cloned().collect(), None);
            fields
                .response_metadata
                .insert("finish_reason".into(), finish_reason.into());
            StateUpdate::messages(vec![Message::new(fields)])
        };
        state.stage(&mut self.overlay, std::slice::from_ref(&update), ids)?;
        self.note("model".into(), update);
        Ok(())
    }

    fn note(&mut self, node: Arc<str>, update: StateUpdate) {
        if self.options.notes {
            self.notes.push(Note { node, update });
        }
    }

    fn count_step(&mut self) -> Result<(), Error> {
        if self.steps >= self.options.recursion_limit {
            return Err(Error::new(
                ErrorCode::RecursionLimit,
                format!(
                    "the run has used its {} steps",
                    self.options.recursion_limit
                ),
            ));
        }
        self.steps += 1;
        Ok(())
    }

    /// Tells the run where in the thread it began: behind the newest message that the thread had before the input. O(input).
    fn note_start(&self, state: &ThreadState) {
        let nothing = Overlay::new();
        let before = state.view(&nothing);
        let view = state.view(&self.overlay);
        let mut ids = view.messages().rev().filter_map(Message::id);
        let newest = ids.find(|id| before.by_id(id).is_some());
        self.options.context.facts.note_start(RunStart {
            after: newest.map(Arc::from),
        });
    }

    /// Where a run without input begins (LG-29): with the open calls that an earlier run left, at its end when the thread
    /// stands at a whole answer, else with the model.
    fn resume_at(&self, state: &ThreadState) -> Result<Phase, Error> {
        let view = state.view(&self.overlay);
        let Some(last) = view.last() else {
            return Err(no_messages());
        };
        let stands_at_a_turn = matches!(last.kind(), Kind::Ai | Kind::Tool);
        if stands_at_a_turn && !self.open_calls(state).calls.is_empty() {
            return Ok(Phase::CallTools);
        }
        if last.kind() == Kind::Ai && !is_partial(last) {
            return Ok(Phase::End(Box::new(End {
                status: RunStatus::Success,
                error: None,
                cancel_reason: None,
            })));
        }
        Ok(Phase::Hooks(Hook::BeforeAgent, 0))
    }

    /// The calls of the last ai message; `None` when there is no such message.
    fn last_calls(&self, state: &ThreadState) -> Option<Vec<ToolCall>> {
        let view = state.view(&self.overlay);
        let ai = view
            .messages()
            .rev()
            .find(|message| message.kind() == Kind::Ai)?;
        Some(ai.fields().tool_calls.clone())
    }

    /// The calls of the last ai message that no result after it answers.
    fn open_calls(&self, state: &ThreadState) -> ToolCalls {
        let view = state.view(&self.overlay);
        let mut answered = HashSet::new();
        for message in view.messages().rev() {
            match message.kind() {
                Kind::Tool => {
                    answered.insert(message.fields().tool_call_id.as_str());
                }
                Kind::Ai => {
                    let is_open = |call: &&ToolCall| {
                        call.id.as_deref().is_some_and(|id| !answered.contains(id))
                    };
                    let calls = message.fields().tool_calls.iter().filter(is_open);
                    return ToolCalls {
                        message_id: message.id().unwrap_or_default().to_owned(),
                        calls: calls.cloned().collect(),
                        ..ToolCalls::default()
                    };
                }
                _ => {}
            }
        }
        ToolCalls::default()
    }

    /// The end of a run that went its whole way: a success, unless the last reply stands in for an answer that never came
    /// (MW-LLM-5, MW-TRM-3). A cancellation that is on its way counts before that (RUN-32).
    fn end_turn(&mut self, state: &ThreadState) {
        match self.missing_answer(state) {
            None => {
                self.warn_of_silence(state);
                self.end(RunStatus::Success, None);
            }
            Some(error) => match self.pending_end.take() {
                Some(end) => self.finish(*end),
                None => self.end(RunStatus::Error, Some(error)),
            },
        }
    }

    /// Says so when the run ends with a reply that says nothing and asks for nothing that could be done: to whoever waits for an
    /// answer it looks like one (EX-5; MW-TRM-1 leaves such a reply alone unless tools have answered before it).
    fn warn_of_silence(&self, state: &ThreadState) {
        let view = state.view(&self.overlay);
        let Some(last) = view.last().filter(|last| last.kind() == Kind::Ai) else {
            return;
        };
        let is_of_this_run = last.id().is_some() && last.id() == self.last_reply.as_deref();
        let fields = last.fields();
        if !is_of_this_run || has_visible_content(&fields.content) || !fields.tool_calls.is_empty()
        {
            return;
        }
        let why = match fields.invalid_tool_calls.len() {
            0 => "it asks for nothing either".to_owned(),
            count => format!("{count} calls in it could not be read, and were not made"),
        };
        let id = last.id().unwrap_or_default();
        self.options.context.facts.signals.warn(
            Warning::EmptyReply,
            format!("the run ends with the message {id}, which has no text; {why}"),
        );
    }

    /// Why the last reply of this run is no answer. Replies of earlier runs say nothing of this one (RUN-35).
    fn missing_answer(&self, state: &ThreadState) -> Option<Error> {
        let view = state.view(&self.overlay);
        let ai = view
            .messages()
            .rev()
            .find(|message| message.kind() == Kind::Ai)?;
        let is_of_this_run = ai.id().is_some() && ai.id() == self.last_reply.as_deref();
        if !is_of_this_run || !is_error_fallback(ai) {
            return None;
        }
        let noted = self.options.context.facts.signals.failure();
        Some(noted.unwrap_or_else(|| error_of_fallback(ai)))
    }

    fn end(&mut self, status: RunStatus, error: Option<Error>) {
        self.finish(End {
            status,
            error,
            cancel_reason: None,
        });
    }

    fn finish(&mut self, end: End) {
        self.answer = None;
        self.phase = Phase::Save(Source::Loop, Box::new(Phase::End(Box::new(end))));
    }

    fn out_of_turn(&mut self, what: &str) {
        let error = Error::new(ErrorCode::Internal, format!("{what} came out of turn"));
        self.end(RunStatus::Error, Some(error));
    }
}

/// Why a run on a thread without messages has nothing to ask a model.
fn no_messages() -> Error {
    Error::at(
        ErrorCode::MissingMember,
        "/input",
        "the thread has no messages to go on from, so the run needs an input with messages",
    )
}

/// The finish reasons of replies that did not arrive whole.
const PARTIAL_CANCELLED: &str = "cancelled";
const PARTIAL_ERROR: &str = "error";

/// Whether an ai message is what is left of a reply that did not arrive whole.
fn is_partial(message: &Message) -> bool {
    let reason = message.fields().response_metadata.get("finish_reason");
    reason.is_some_and(|reason| reason == PARTIAL_CANCELLED || reason == PARTIAL_ERROR)
}

fn reply_fields(message_id: &Arc<str>, reply: ModelReply) -> Fields {
    let content = match reply.content {
        Value::Null => Value::String(String::new()),
        content => content,
    };
    let mut fields = Fields::new(Kind::Ai, content);
    fields.id = Some(message_id.to_string());
    fields.tool_calls = reply.tool_calls;
    fields.invalid_tool_calls = reply.invalid_tool_calls;
    fields.usage_metadata = reply.usage.map_or(Value::Null, |usage| usage.to_value());
    fields.additional_kwargs = reply.additional_kwargs;
    fields.response_metadata = reply.response_metadata;
    fields
}

/// Moves an error's path from below `from` to below `to`.
fn relocate(mut error: Error, from: &str, to: &str) -> Error {
    if let Some(path) = &error.path {
        let rest = path.strip_prefix(from).unwrap_or(path);
        error.path = Some(format!("{to}{rest}"));
    }
    error
}
