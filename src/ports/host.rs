//! The host port: asking the program that embeds us, and waiting for its answer.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value};

use super::BoxFuture;
use super::clock::Clock;
use super::delegate::SubagentRun;
use super::sandbox::SandboxOp;
use super::signals::RunSignals;
use crate::protocol::error::Error;
use crate::protocol::host_middleware::Point;
use crate::protocol::request_secrets::RequestSecrets;
use crate::protocol::time::Timestamp;

/// What the host is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCallKind {
    /// Run a tool.
    Tool,
    /// Answer as a model.
    Model,
    /// Say whether a tool call may be made.
    Guardrail,
    /// Give a verdict as a middleware, at this point of the run.
    Middleware(Point),
    /// Be the sandbox; what exactly is the call's name.
    Sandbox(SandboxOp),
    /// Take in what is to be remembered.
    Memory,
}

impl HostCallKind {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            HostCallKind::Tool => "tool",
            HostCallKind::Model => "model",
            HostCallKind::Guardrail => "guardrail",
            HostCallKind::Middleware(_) => "middleware",
            HostCallKind::Sandbox(_) => "sandbox",
            HostCallKind::Memory => "memory",
        }
    }
}

/// One question to the host.
#[derive(Clone, Debug)]
pub struct HostCall {
    /// What for.
    pub kind: HostCallKind,
    /// Name of the tool, of the model, of the guardrail or of the middleware; else what is to be done.
    pub name: String,
    /// JSON text of the arguments.
    pub args: String,
    /// The call of the model that this answers, or is about.
    pub tool_call_id: Option<String>,
    /// How long the host has.
    pub deadline: Duration,
    /// The same for every repetition of the same piece of work, also after a restart.
    pub idempotency_key: String,
    /// What else is asked of an answer, besides what its kind says.
    pub also: AnswerCheck,
}

/// A check of what the host answers, made when it hands the answer in, so that it hears of a mistake at once and can mend it.
#[derive(Clone, Default)]
pub struct AnswerCheck(Option<Arc<CheckAnswer>>);

type CheckAnswer = dyn Fn(&Value) -> Result<(), Error> + Send + Sync;

impl AnswerCheck {
    /// Asks `check` about what stands under `ok`; its errors have their path in that.
    pub fn new(check: impl Fn(&Value) -> Result<(), Error> + Send + Sync + 'static) -> Self {
        AnswerCheck(Some(Arc::new(check)))
    }

    /// Checks an answer.
    ///
    /// # Errors
    /// What the check says.
    pub fn check(&self, answer: &Value) -> Result<(), Error> {
        self.0.as_ref().map_or(Ok(()), |check| check(answer))
    }
}

impl std::fmt::Debug for AnswerCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "AnswerCheck(..)",
            None => "AnswerCheck(none)",
        })
    }
}

/// What the host says about a call.
#[derive(Clone, Debug, PartialEq)]
pub enum HostReply {
    /// A piece on the way (`fawn_call_emit`).
    Emitted(Value),
    /// The answer: what stood under `ok`.
    Answered(Value),
    /// The host could not do it.
    Refused(Refusal),
}

/// What stood under `error` in an answer of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Why, for the model.
    pub message: String,
    /// Whether asking again may help. For model calls only: a tool's refusal is told to the model as it is.
    pub retryable: bool,
    /// How long to wait before asking again.
    pub retry_after: Option<Duration>,
}

/// A call in flight. Dropping it cancels the call.
pub trait HostCallHandle: Send {
    /// The next thing the host says. After an answer or an error there is nothing more to ask for.
    ///
    /// # Errors
    /// `DeadlineExceeded`, `QueueClosed` or `Closed` when no answer will come.
    fn next(&mut self) -> BoxFuture<'_, Result<HostReply, Error>>;
}

/// Asks the host on behalf of one run.
pub trait HostCalls: Send + Sync + 'static {
    /// Puts a call to the host.
    ///
    /// # Errors
    /// `NoQueue` or `QueueClosed` when nobody can hear it.
    fn open(&self, call: HostCall) -> Result<Box<dyn HostCallHandle>, Error>;
    /// Passes on what a tool emits while it runs, as a `custom` event. A future to await before the next when the listener
    /// is behind; `None` when there is room.
    fn emit_custom(&self, call_id: &str, value: Value) -> Option<BoxFuture<'static, ()>>;
    /// The time, as events have it; the beginning of time where no clock is there, in tests.
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
}

/// What an adapter does when the runtime goes down, which the code `Closed` says: the run is being cancelled, and whatever the
/// adapter answered would count as an outcome and be stored, as if tool or model had failed. A call without an outcome stays
/// open in the thread and is made again.
pub async fn until_cancelled<T>() -> T {
    std::future::pending().await
}

/// Facts of a run, fixed when it starts.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// The run.
    pub run_id: Arc<str>,
    /// Its thread.
    pub thread_id: Arc<str>,
    /// Run options by key.
    pub configurable: Map<String, Value>,
    /// Facts about the request, without its secrets and without members whose names begin with `__` (RC-6).
    pub context: Map<String, Value>,
    /// The member `secrets` of the request's context; `None` when it has none. Skills get theirs by
    /// [`ActiveSkills::secrets`](super::active_skills::ActiveSkills::secrets).
    pub secrets: Option<RequestSecrets>,
    /// When the run began.
    pub started_at: Timestamp,
    /// What else the run is told.
    pub signals: Arc<RunSignals>,
    /// Tells the time while the run goes on; without it time stands still at the start.
    pub clock: Option<Arc<dyn Clock>>,
    /// Which subagent the run is; `None` for a run that the host started.
    pub subagent: Option<Arc<SubagentRun>>,
    /// See [`RunFacts::start`].
    pub beginning: OnceLock<RunStart>,
}

/// Where in its thread a run began.
///
/// Source: DeerFlow keeps the ids of all messages from before the run (`__deerflow_pre_run_message_ids`, LED-5). The newest of
/// them is enough: what stands behind it is the run's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStart {
    /// Id of the newest message of the thread that was there before the run and its input; `None` when there was none.
    pub after: Option<Arc<str>>,
}

impl RunFacts {
    /// Where the run began; `None` where nobody drives a thread, as in the middle of a test.
    pub fn start(&self) -> Option<&RunStart> {
        self.beginning.get()
    }

    /// Notes where the run began. The first note counts.
    pub fn note_start(&self, start: RunStart) {
        let _ = self.beginning.set(start);
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.clock
            .as_ref()
            .map_or(self.started_at, |clock| clock.now())
    }
}

/// The run on whose behalf a port is used.
#[derive(Clone)]
pub struct RunContext {
    /// The run.
    pub run_id: Arc<str>,
    /// Its thread.
    pub thread_id: Arc<str>,
    /// What was said about it when it started.
    pub facts: Arc<RunFacts>,
    /// The way to the host.
    pub host: Arc<dyn HostCalls>,
}

impl std::fmt::Debug for RunContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext")
            .field("run_id", &self.run_id)
            .field("thread_id", &self.thread_id)
            .finish_non_exhaustive()
    }
}
