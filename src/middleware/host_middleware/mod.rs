//! The host as a middleware: at the hooks that it names it is asked by a host call, and what it says counts.
//!
//! The verdicts are in [`verdict`], what the host is told in `question`. State hooks ask by an effect, so that the machine
//! waits between two steps; wrap hooks ask inside of the call that they wrap. A verdict counts as a whole or not at all: one
//! that does not fit is refused when it is handed in, and the question stays open until its deadline. A host that says
//! nothing, or that it cannot say, gets what its configuration says (`on_timeout`), and a warning.
//!
//! What a host says here is no operator text (it says it in the middle of a run, out of what others said), so that it can
//! write no system message, and what it adds to a request is a human message made harmless.
//!
//! A hook that is not named costs nothing: the chain does not have it.

mod question;
pub mod verdict;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value, json};

use question::Question;
pub use verdict::check_verdict;
use verdict::{Change, Verdict, check_without_tools, decode};

use super::message_marks::first_chars;
use super::reply::{append_text, quoted_name, with_calls};
use super::request::{followed_by, note};
use super::tool_result_class::{ERROR_PREFIX, TOOL_META, of_answer, of_denial};
use super::{
    Effect, Hook, HookContext, HookOutput, Hooks, Jump, Middleware, ModelResponse, NextModel,
    NextTool, Work,
};
use crate::ports::BoxFuture;
use crate::ports::host::{AnswerCheck, HostCall, HostReply, RunContext, RunFacts, until_cancelled};
use crate::ports::model::{ModelError, ModelReply, ModelRequest, ToolChoice};
use crate::ports::signals::{Halt, RunSignals};
use crate::ports::tool::{ToolAnswer, ToolInvocation, ToolOutcome};
use crate::prompt::sanitize::neutralize;
use crate::protocol::decode::hint;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::host_middleware::{HookName, HostMiddlewareConfig, OnTimeout, Point, When};
use crate::protocol::message::{Fields, Kind, Message, ToolStatus};
use crate::protocol::warning::Warning;
use crate::state::View;
use crate::state::channels::{CHANNELS, Channel};
use crate::state::update::StateUpdate;
use crate::tools::arguments::KnownTools;

/// Most characters of a reason that a model is told.
const MAX_REASON_CHARS: usize = 500;
/// What stands in a reply of the framework's that says who gave it.
const RECORD: &str = "host_middleware";
/// What an agent says at the end of a run that a host ended without a word.
const ENDED: &str = "The run was ended here.";

/// A middleware that the host is.
pub struct HostMiddleware {
    name: Arc<str>,
    config: HostMiddlewareConfig,
    reads: Vec<Channel>,
    /// The tools of the agent.
    tools: OnceLock<Arc<KnownTools>>,
    /// Names of others that may be spoken of.
    others: OnceLock<Arc<[String]>>,
}

impl HostMiddleware {
    /// A middleware of this name.
    ///
    /// # Errors
    /// Those of [`HostMiddlewareConfig::validate`]; `UnknownChannel` or `Conflict` at a channel of `reads`.
    pub fn new(name: &str, config: HostMiddlewareConfig) -> Result<Self, Error> {
        config.validate()?;
        let mut reads = Vec::with_capacity(config.reads.len());
        for (place, channel) in config.reads.iter().enumerate() {
            let at = || format!("/reads/{place}");
            match Channel::from_name(channel) {
                Some(Channel::Messages) => {
                    return Err(Error::at(
                        ErrorCode::Conflict,
                        at(),
                        "how many messages come is said by the member \"messages\"",
                    ));
                }
                Some(channel) => reads.push(channel),
                None => {
                    let known: Vec<&str> = CHANNELS.iter().map(|(_, name, _)| *name).collect();
                    let shown: String = channel.chars().take(80).collect();
                    return Err(Error::at(
                        ErrorCode::UnknownChannel,
                        at(),
                        format!("there is no channel {shown:?}{}", hint(channel, &known)),
                    ));
                }
            }
        }
        Ok(HostMiddleware {
            name: name.into(),
            config,
            reads,
            tools: OnceLock::new(),
            others: OnceLock::new(),
        })
    }

    fn question<'a>(&'a self, point: Point, run: &'a RunFacts) -> Question<'a> {
        let timeout = Duration::from_millis(self.config.timeout_ms());
        Question::new(point, &self.name, run, timeout)
    }

    fn hook_question(&self, point: Point, context: &HookContext<'_>) -> HostCall {
        let HookContext { state, run, .. } = context;
        let count = state.len();
        self.question(point, run)
            .messages(count, state.last_n(self.config.messages()).into_iter())
            .channels(&self.reads, |channel| state.channel(channel))
            .about_turn(count)
    }

    fn model_question(&self, request: &ModelRequest) -> HostCall {
        let run = &request.run;
        let count = request.messages.len();
        let first = count.saturating_sub(self.config.messages());
        let call = self
            .question(Point::ModelCall, &run.facts)
            .messages(count, request.messages.iter().skip(first))
            .request(request)
            .channels(&self.reads, |channel| request.reads.get(channel))
            .about_turn(count);
        HostCall {
            also: self.check_names(),
            ..call
        }
    }

    /// Checks that a change of a request leaves out tools that there are.
    fn check_names(&self) -> AnswerCheck {
        let Some(tools) = self.tools.get().cloned() else {
            return AnswerCheck::default();
        };
        let others = self.others.get().cloned().unwrap_or_default();
        AnswerCheck::new(move |answer| {
            let known = || tools.names().chain(others.iter().map(String::as_str));
            check_without_tools(answer, &known)
        })
    }

    /// Checks that other arguments for the call of a tool fit the tool's schema: the model did not write them, so it must not
    /// be told that it had made a mistake.
    fn check_args(&self, tool: &str) -> AnswerCheck {
        let Some(tools) = self.tools.get().cloned() else {
            return AnswerCheck::default();
        };
        let tool = tool.to_owned();
        AnswerCheck::new(move |answer| match answer.get("args") {
            Some(Value::Object(args)) => tools
                .check(&tool, args)
                .map_err(|error| error.below("/args")),
            _ => Ok(()),
        })
    }

    fn call_question(&self, invocation: &ToolInvocation, result: Option<&ToolOutcome>) -> HostCall {
        let run = &invocation.run;
        let point = match result {
            None => Point::BeforeTool,
            Some(_) => Point::AfterTool,
        };
        let question = self
            .question(point, &run.facts)
            .call(invocation)
            .channels(&self.reads, |channel| invocation.reads.get(channel));
        let (question, also) = match result {
            None => (question, self.check_args(&invocation.name)),
            Some(outcome) => (question.result(outcome), AnswerCheck::default()),
        };
        HostCall {
            also,
            ..question.about_call(invocation)
        }
    }

    /// What counts when there is no verdict; an error is why the run ends.
    fn instead(&self, point: Point, signals: &RunSignals, why: &Error) -> Result<Verdict, Error> {
        let follows = match self.config.on_timeout {
            OnTimeout::Continue => "the run goes on",
            OnTimeout::Deny => "that counts as a denial",
            OnTimeout::Fail => "the run ends",
        };
        signals.warn(
            Warning::NoVerdict,
            format!(
                "{}.{}: no verdict ({}); {follows}",
                self.name,
                point.hook().name(),
                why.message
            ),
        );
        match self.config.on_timeout {
            OnTimeout::Continue => Ok(Verdict::Continue),
            OnTimeout::Deny => Ok(Verdict::Deny(format!(
                "{} could not decide about it",
                self.name
            ))),
            OnTimeout::Fail => Err(Error::new(
                why.code,
                format!("the host gave no verdict: {}", why.message),
            )),
        }
    }

    /// The verdict about a call that is wrapped; what gives up the call stays pending.
    async fn verdict_on(
        &self,
        point: Point,
        run: &RunContext,
        call: HostCall,
        work: &str,
    ) -> Verdict {
        let signals = &run.facts.signals;
        let called = work.is_empty().then(|| "a model call".to_owned());
        match ask(run, call).await {
            Ok(Verdict::Pause(reason)) => {
                let what = called.unwrap_or_else(|| format!("the call {}", quoted_name(work)));
                signals.halt(work, Halt::Paused(paused(&self.name, &what, reason)));
                until_cancelled().await
            }
            Ok(verdict) => verdict,
            Err(why) => match self.instead(point, signals, &why) {
                Ok(verdict) => verdict,
                Err(error) => {
                    let halt = Halt::Failed(self.failed(point, &error));
                    if point == Point::AfterTool {
                        // The tool has run: what it came to is kept, and the run ends after it.
                        signals.halt("", halt);
                        return Verdict::Deny("nobody decided about its result".to_owned());
                    }
                    signals.halt(work, halt);
                    until_cancelled().await
                }
            },
        }
    }

    /// The error of a run that this middleware ends, as a hook's has it.
    fn failed(&self, point: Point, why: &Error) -> Error {
        Error::new(
            ErrorCode::Middleware,
            format!("{}.{}: {}", self.name, point.hook().name(), why.message),
        )
        .caused_by(why.code.name())
    }

    /// A reply that the framework gives in place of the model's.
    fn reply(&self, verdict: &str, text: String) -> ModelReply {
        let record = json!({"name": &*self.name, "verdict": verdict});
        ModelReply {
            content: text.into(),
            response_metadata: Map::from_iter([(RECORD.to_owned(), record)]),
            ..ModelReply::default()
        }
    }

    /// What a verdict makes of a state hook.
    fn follow(&self, point: Point, state: View<'_>, verdict: Verdict) -> Result<HookOutput, Error> {
        match verdict {
            Verdict::Continue => Ok(HookOutput::Continue),
            Verdict::Change(Change::State { update, jump_to }) => match jump_to {
                None => Ok(HookOutput::Update(update)),
                Some(Jump::Tools) if !has_open_calls(state) => Err(Error::new(
                    ErrorCode::Conflict,
                    "there are no open calls to jump to",
                )),
                Some(to) => Ok(HookOutput::Jump(to, update)),
            },
            Verdict::Deny(reason) => Err(Error::new(
                ErrorCode::NotAuthorized,
                format!("denied: {reason}"),
            )),
            Verdict::End(message) => Ok(HookOutput::Jump(
                Jump::End,
                self.last_words(point, state, message),
            )),
            Verdict::Pause(_) | Verdict::Change(_) => Err(Error::new(
                ErrorCode::Internal,
                "a verdict of another point came to a state hook",
            )),
        }
    }

    /// What a run that ends at a state hook writes: after a model call the reply loses its calls, which nobody makes any more.
    fn last_words(&self, point: Point, state: View<'_>, message: Option<String>) -> StateUpdate {
        let reply = state
            .last()
            .filter(|last| point == Point::AfterModel && last.kind() == Kind::Ai);
        let fields = match (reply, message) {
            (None, None) => return StateUpdate::default(),
            (Some(reply), None) if reply.fields().tool_calls.is_empty() => {
                return StateUpdate::default();
            }
            (Some(reply), message) => {
                let said = &reply.fields().content;
                let content = message.map(|text| append_text(said, &text));
                with_calls(reply, Vec::new(), content)
            }
            (None, Some(text)) => {
                let reply = self.reply("end", text);
                let mut fields = Fields::new(Kind::Ai, reply.content);
                fields.response_metadata = reply.response_metadata;
                fields
            }
        };
        StateUpdate::messages(vec![Message::new(fields)])
    }

    fn is_asked_about(&self, tool: &str) -> bool {
        let tools = &self.config.tools;
        tools
            .as_ref()
            .is_none_or(|names| names.iter().any(|name| name == tool))
    }

    async fn around_tool(&self, mut invocation: ToolInvocation, next: NextTool<'_>) -> ToolOutcome {
        let when = self.config.when();
        if when != When::After {
            let run = invocation.run.clone();
            let call = self.call_question(&invocation, None);
            let asked = self.verdict_on(Point::BeforeTool, &run, call, &invocation.call_id);
            match asked.await {
                Verdict::Change(Change::Args(args)) => invocation.args = args,
                Verdict::Change(Change::Result(answer)) => return ToolOutcome::Answer(*answer),
                Verdict::Deny(reason) => {
                    return denied(&invocation.name, &reason);
                }
                Verdict::End(message) => {
                    let said = self.reply("end", message.unwrap_or_else(|| ENDED.to_owned()));
                    let tool = quoted_name(&invocation.name);
                    let what = format!("the call of {tool} was not made");
                    return ToolOutcome::Answer(ToolAnswer {
                        end_run: true,
                        last_words: Some(Box::new(said)),
                        ..refusal(&what, "the run was ended here")
                    });
                }
                Verdict::Continue | Verdict::Change(_) | Verdict::Pause(_) => {}
            }
        }
        if when == When::Before {
            return next.run(invocation).await;
        }
        let asked = invocation.clone();
        let outcome = next.run(invocation).await;
        self.after_tool(&asked, outcome).await
    }

    async fn after_tool(
        &self,
        invocation: &ToolInvocation,
        mut outcome: ToolOutcome,
    ) -> ToolOutcome {
        let ToolInvocation {
            call_id, name, run, ..
        } = invocation;
        let signals = &run.facts.signals;
        signals.stand_in(
            call_id,
            withheld(name, "the run was cancelled before it was decided about"),
        );
        let call = self.call_question(invocation, Some(&outcome));
        let verdict = self.verdict_on(Point::AfterTool, run, call, call_id).await;
        signals.take_stand_in(call_id);
        match verdict {
            Verdict::Change(Change::Content(content)) => {
                with_content(name, &mut outcome, content);
                outcome
            }
            Verdict::Deny(reason) => withheld(name, &reason),
            Verdict::End(_) => match outcome {
                ToolOutcome::Answer(answer) => ToolOutcome::Answer(ToolAnswer {
                    end_run: true,
                    ..answer
                }),
                ToolOutcome::Failed(reason) => ToolOutcome::Answer(ToolAnswer {
                    content: format!("{ERROR_PREFIX} {reason}").into(),
                    status: ToolStatus::Error,
                    end_run: true,
                    ..ToolAnswer::default()
                }),
            },
            Verdict::Continue | Verdict::Change(_) | Verdict::Pause(_) => outcome,
        }
    }
}

impl Middleware for HostMiddleware {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        let asks = |hook| self.config.asks_at(hook);
        Hooks {
            before_agent: asks(HookName::BeforeAgent),
            before_model: asks(HookName::BeforeModel),
            after_model: asks(HookName::AfterModel),
            after_agent: asks(HookName::AfterAgent),
            wrap_model_call: asks(HookName::WrapModelCall),
            wrap_tool_call: asks(HookName::WrapToolCall),
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let config = &self.config;
        let hooks = HookName::ALL.iter().filter(|hook| config.asks_at(**hook));
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort();
            names
        };
        let mut policy = Map::new();
        policy.insert("hooks".into(), hooks.map(|hook| hook.name()).collect());
        policy.insert("reads".into(), sorted(&config.reads).into());
        policy.insert("messages".into(), config.messages().into());
        policy.insert("timeout_ms".into(), config.timeout_ms().into());
        policy.insert("on_timeout".into(), config.on_timeout.name().into());
        if config.asks_at(HookName::WrapToolCall) {
            let tools = config.tools.as_deref().map(sorted);
            policy.insert("tools".into(), json!(tools));
            policy.insert("when".into(), config.when().name().into());
        }
        policy
    }

    fn reads(&self) -> &[Channel] {
        let wraps = [HookName::WrapModelCall, HookName::WrapToolCall];
        match wraps.iter().any(|hook| self.config.asks_at(*hook)) {
            true => &self.reads,
            false => &[],
        }
    }

    fn asks_host(&self) -> bool {
        true
    }

    fn extension(&self) -> Option<&'static str> {
        Some("host")
    }

    fn bound(&self, tools: &Arc<KnownTools>) {
        let _ = self.tools.set(tools.clone());
    }

    fn heard_of(&self, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned());
        let _ = self.others.set(names.collect());
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        let point = match hook {
            Hook::BeforeAgent => Point::BeforeAgent,
            Hook::BeforeModel => Point::BeforeModel,
            Hook::AfterModel => Point::AfterModel,
            Hook::AfterAgent => Point::AfterAgent,
        };
        let verdict = match context.performed() {
            None => {
                let call = self.hook_question(point, context);
                let name = self.name.clone();
                let work = Work::new(move |run| {
                    let (call, name) = (call.clone(), name.clone());
                    async move { decided(point, &name, &run, call).await }
                });
                return Ok(HookOutput::Await(Effect::Perform(work)));
            }
            Some(Ok(value)) => decode(point, value.clone())?,
            Some(Err(why)) => self.instead(point, &context.run.signals, why)?,
        };
        self.follow(point, context.state, verdict)
    }

    fn wrap_model_call<'a>(
        &'a self,
        mut request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            let call = self.model_question(&request);
            let run = request.run.clone();
            match self.verdict_on(Point::ModelCall, &run, call, "").await {
                Verdict::Change(Change::Request {
                    append,
                    without_tools,
                }) => {
                    self.change_request(&mut request, append, &without_tools);
                    next.run(request).await
                }
                Verdict::Change(Change::Reply(reply)) => Ok((*reply).into()),
                Verdict::Deny(reason) => Ok(ModelResponse::ending(self.reply("deny", reason))),
                Verdict::End(message) => {
                    let text = message.unwrap_or_else(|| ENDED.to_owned());
                    Ok(ModelResponse::ending(self.reply("end", text)))
                }
                Verdict::Continue | Verdict::Change(_) | Verdict::Pause(_) => {
                    next.run(request).await
                }
            }
        })
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        match self.is_asked_about(&invocation.name) {
            true => Box::pin(self.around_tool(invocation, next)),
            false => next.run(invocation),
        }
    }
}

impl HostMiddleware {
    fn change_request(&self, request: &mut ModelRequest, append: Vec<String>, without: &[String]) {
        if !append.is_empty() {
            let notes = append.into_iter().map(|text| {
                let mut fields = note(&self.name, neutralize(&text).into_owned())
                    .fields()
                    .clone();
                fields
                    .additional_kwargs
                    .insert("hide_from_ui".into(), true.into());
                Message::new(fields)
            });
            request.messages = followed_by(&request.messages, notes);
        }
        let is_without = |name: &str| without.iter().any(|known| known == name);
        if request.tools.iter().any(|tool| is_without(&tool.name)) {
            let left = request.tools.iter().filter(|tool| !is_without(&tool.name));
            request.tools = left.cloned().collect();
        }
        let cannot_choose = match &request.tool_choice {
            Some(ToolChoice::Tool(name)) => is_without(name),
            Some(ToolChoice::Required) => request.tools.is_empty(),
            _ => false,
        };
        if cannot_choose {
            request.tool_choice = None;
        }
    }
}

/// Puts a question to the host and waits for its verdict.
///
/// # Errors
/// Why there is none: the deadline, a queue that is gone, what the host says, or an answer that is no verdict.
async fn ask(run: &RunContext, call: HostCall) -> Result<Verdict, Error> {
    let point = match call.kind {
        crate::ports::host::HostCallKind::Middleware(point) => point,
        _ => {
            return Err(Error::new(
                ErrorCode::Internal,
                "no question of a middleware",
            ));
        }
    };
    decode(point, answer(run, call).await?)
}

/// The answer to a question, as it is.
async fn answer(run: &RunContext, call: HostCall) -> Result<Value, Error> {
    let mut handle = match run.host.open(call) {
        Ok(handle) => handle,
        Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
        Err(error) => return Err(error),
    };
    loop {
        match handle.next().await {
            // Nothing that is emitted on the way means anything here.
            Ok(HostReply::Emitted(_)) => {}
            Ok(HostReply::Answered(value)) => return Ok(value),
            Ok(HostReply::Refused(refusal)) => {
                return Err(Error::new(ErrorCode::Middleware, refusal.message));
            }
            Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
            Err(error) => return Err(error),
        }
    }
}

/// The work of a state hook: the verdict as it is, for the hook that runs again with it. One that pauses never comes to it.
async fn decided(
    point: Point,
    name: &str,
    run: &RunContext,
    call: HostCall,
) -> Result<Value, Error> {
    let value = answer(run, call).await?;
    match decode(point, value.clone())? {
        Verdict::Pause(reason) => {
            let text = paused(name, point.hook().name(), reason);
            run.facts.signals.halt("", Halt::Paused(text));
            until_cancelled().await
        }
        _ => Ok(value),
    }
}

/// The result of a call that the host did not allow.
fn denied(tool: &str, reason: &str) -> ToolOutcome {
    let tool = quoted_name(tool);
    ToolOutcome::Answer(refusal(
        &format!("the call of {tool} was not allowed"),
        reason,
    ))
}

/// The result of a call whose result the host withheld; nothing of it is left.
fn withheld(tool: &str, reason: &str) -> ToolOutcome {
    let tool = quoted_name(tool);
    ToolOutcome::Answer(refusal(
        &format!("{tool} ran, but its result is withheld"),
        reason,
    ))
}

/// A result that is an error of the host's making (`deerflow_tool_meta` says so): nothing was wrong with the tool.
fn refusal(what: &str, reason: &str) -> ToolAnswer {
    let reason = first_chars(reason.trim(), MAX_REASON_CHARS);
    let stop = match reason.ends_with(['.', '!', '?']) {
        true => "",
        false => ".",
    };
    ToolAnswer {
        content: format!("{ERROR_PREFIX} {what}: {reason}{stop}").into(),
        status: ToolStatus::Error,
        additional_kwargs: Map::from_iter([(TOOL_META.to_owned(), of_denial())]),
        ..ToolAnswer::default()
    }
}

/// Why a run is interrupted, in words.
fn paused(name: &str, at: &str, reason: Option<String>) -> String {
    match reason {
        Some(reason) => format!("{name} paused the run at {at}: {reason}"),
        None => format!("{name} paused the run at {at}"),
    }
}

/// Puts other content into a result; how the result is classed follows the content.
fn with_content(tool: &str, outcome: &mut ToolOutcome, content: Value) {
    match outcome {
        ToolOutcome::Answer(answer) => {
            answer.content = content;
            let is_classed = answer.additional_kwargs.contains_key(TOOL_META);
            if is_classed {
                let class = of_answer(tool, answer.status, &answer.content);
                answer.additional_kwargs.insert(TOOL_META.into(), class);
            }
        }
        ToolOutcome::Failed(_) => {
            *outcome = ToolOutcome::Answer(ToolAnswer {
                content,
                status: ToolStatus::Error,
                ..ToolAnswer::default()
            });
        }
    }
}

/// Whether the newest reply has a call that no result answers.
fn has_open_calls(state: View<'_>) -> bool {
    let mut answered = Vec::new();
    for message in state.messages().rev() {
        match message.kind() {
            Kind::Tool => answered.push(message.fields().tool_call_id.as_str()),
            Kind::Ai => {
                let mut ids = message.fields().tool_calls.iter().map(|call| &call.id);
                return ids.any(|id| id.as_deref().is_some_and(|id| !answered.contains(&id)));
            }
            _ => {}
        }
    }
    false
}
