//! Requests about threads and runs, and a run's result.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::config::check_recursion_limit;
use super::error::{Error, ErrorCode};
use super::request_secrets::RequestSecrets;

/// Longest thread or run id, in bytes.
pub const MAX_ID_BYTES: usize = 255;

/// Checks an id that the host gives, at `/<member>`.
fn check_id(member: &str, id: Option<&str>) -> Result<(), Error> {
    let Some(id) = id else { return Ok(()) };
    if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        return Err(Error::at(
            ErrorCode::OutOfRange,
            format!("/{member}"),
            format!("{member} must be 1 to {MAX_ID_BYTES} bytes without control characters"),
        ));
    }
    Ok(())
}

/// Input of `fawn_thread_open`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadOpen {
    /// Which thread, 1 to 255 bytes; a new one when there is none of this id. Default: a fresh random id.
    #[serde(default)]
    pub thread_id: Option<String>,
}

impl ThreadOpen {
    /// Checks bounds.
    ///
    /// # Errors
    /// `OutOfRange` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        check_id("thread_id", self.thread_id.as_deref())
    }
}

/// Input of `fawn_thread_update`: one step of writes, as if a node of the given name had made them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadUpdate {
    /// One set of channel writes: an object, channel name to value.
    #[serde(default)]
    pub values: Option<Value>,
    /// Several sets, written in order as one step. Instead of `values`.
    #[serde(default)]
    pub writes: Option<Vec<Value>>,
    /// Who writes, for the checkpoint's metadata.
    #[serde(default)]
    pub as_node: Option<String>,
}

/// Input of `fawn_thread_state`: which part of which state to read.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadStateQuery {
    /// Only these channels. Default: all that have a value.
    #[serde(default)]
    pub channels: Option<Vec<String>>,
    /// Only the last so many messages.
    #[serde(default)]
    pub last_messages: Option<usize>,
    /// The state at this checkpoint. Default: the newest.
    #[serde(default)]
    pub checkpoint_id: Option<String>,
    /// Only what changed since this checkpoint, an ancestor of the one that is read.
    #[serde(default)]
    pub since: Option<String>,
}

/// Input of `fawn_thread_history`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadHistoryQuery {
    /// At most so many checkpoints, newest first. Default: all.
    #[serde(default)]
    pub limit: Option<usize>,
    /// Only checkpoints older than this one; an id that is not on the thread is compared all the same.
    #[serde(default)]
    pub before: Option<String>,
    /// Whether to add each checkpoint's state as `values`. Default false.
    #[serde(default)]
    pub values: bool,
}

/// Input of `fawn_run_start`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Messages are taken as the host's own: their roles, names and `additional_kwargs` decide how they are treated, so do not
    /// pass on those of a client unread. Channel writes that start the run, such as `{"messages":[{"role":"user","content":"…"}]}`. Null or absent: go on
    /// from the thread's state; a thread that stands at a whole answer stays as it is, one without messages is an error.
    #[serde(default)]
    pub input: Option<Value>,
    /// Id of the run, 1 to 255 bytes, unlike that of every run in flight; an id is not remembered once its run has ended.
    /// Default: a fresh random id.
    #[serde(default)]
    pub run_id: Option<String>,
    /// Run options by key, for middleware.
    #[serde(default)]
    pub configurable: Map<String, Value>,
    /// Facts about the request, for middleware. Members whose names begin with `__` are nobody's and are dropped. `secrets`, an
    /// object of texts, are secrets for skills: they are kept out of what parts of the agent, events and stores are shown.
    #[serde(default)]
    pub context: Map<String, Value>,
    /// Which events the run sends besides control events. Default `["messages","updates"]`.
    #[serde(default)]
    pub stream: Option<Vec<StreamMode>>,
    /// What to do when the thread has a run in flight. Default `reject`.
    #[serde(default)]
    pub multitask_strategy: MultitaskStrategy,
    /// When checkpoints are written. Default `sync`.
    #[serde(default)]
    pub durability: Durability,
    /// Start from this checkpoint instead of the newest. Not available in this version.
    #[serde(default)]
    pub checkpoint_id: Option<String>,
    /// Most steps, 1 to 1000. Default: the assembly's.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub recursion_limit: Option<u32>,
}

impl RunRequest {
    /// Takes the secrets out of the context, and with them what a caller may not say: members that begin with `__` (RC-6, CTX-4).
    ///
    /// # Errors
    /// `WrongType` at the member at fault, without its value.
    pub fn take_secrets(&mut self) -> Result<Option<RequestSecrets>, Error> {
        self.context.retain(|name, _| !name.starts_with("__"));
        self.configurable.retain(|name, _| !name.starts_with("__"));
        RequestSecrets::take(&mut self.context).map_err(|error| error.below("/context"))
    }

    /// Checks bounds, and refuses what this version does not have.
    ///
    /// # Errors
    /// `OutOfRange` or `Unsupported` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        check_id("run_id", self.run_id.as_deref())?;
        check_recursion_limit(self.recursion_limit)?;
        let unsupported = |member: &str, what: &str| {
            Err(Error::at(
                ErrorCode::Unsupported,
                format!("/{member}"),
                format!("{what} is not available in this version"),
            ))
        };
        if self.multitask_strategy == MultitaskStrategy::Rollback {
            return unsupported("multitask_strategy", "\"rollback\"");
        }
        if self.durability == Durability::Async {
            return unsupported("durability", "\"async\"");
        }
        if self.checkpoint_id.is_some() {
            return unsupported("checkpoint_id", "starting from an older checkpoint");
        }
        Ok(())
    }

    /// Whether events of this mode are wanted.
    pub fn streams(&self, mode: StreamMode) -> bool {
        match &self.stream {
            Some(modes) => modes.contains(&mode),
            None => matches!(mode, StreamMode::Messages | StreamMode::Updates),
        }
    }
}

/// A kind of events that a run sends on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamMode {
    /// The whole state after each step.
    Values,
    /// What each node wrote, after each step.
    Updates,
    /// Deltas of replies while they stream, and whole messages.
    Messages,
    /// What tools emit while they run.
    Custom,
}

/// What a new run does about one that is in flight on its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MultitaskStrategy {
    /// The new run is refused.
    #[default]
    Reject,
    /// The old run is cancelled and keeps what it has stored; the new one starts when it has ended.
    Interrupt,
    /// The old run is cancelled and undone. Not available in this version.
    Rollback,
}

/// When checkpoints are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Before the next step begins; messages and updates that were reported are stored.
    #[default]
    Sync,
    /// While the next step runs. Not available in this version.
    Async,
    /// Once, when the run ends. What a run that does not end has done is lost.
    Exit,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It waits for an earlier run of its thread.
    Pending,
    /// It runs.
    Running,
    /// It ended with an answer.
    Success,
    /// It ended with an error.
    Error,
    /// It was cancelled.
    Interrupted,
}

impl RunStatus {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            RunStatus::Pending => "pending",
            RunStatus::Running => "running",
            RunStatus::Success => "success",
            RunStatus::Error => "error",
            RunStatus::Interrupted => "interrupted",
        }
    }
}

/// Which limit ended a run early. The run itself succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// The model went round in circles.
    LoopCapped,
    /// The run used up its tokens.
    TokenCapped,
    /// The provider cut the reply for safety.
    SafetyCapped,
    /// The run had used up its subagents.
    SubagentLimitCapped,
    /// The reply was cut at the model's length limit.
    ModelLengthCapped,
}

impl StopReason {
    /// Name in JSON (DeerFlow MC-8).
    pub const fn name(self) -> &'static str {
        match self {
            StopReason::LoopCapped => "loop_capped",
            StopReason::TokenCapped => "token_capped",
            StopReason::SafetyCapped => "safety_capped",
            StopReason::SubagentLimitCapped => "subagent_limit_capped",
            StopReason::ModelLengthCapped => "model_length_capped",
        }
    }
}

/// Input of `fawn_run_submit`.
#[derive(Clone, Debug)]
pub enum RunOp {
    /// Ends the run; the partial text of a reply is kept.
    Cancel {
        /// Why, for the record.
        reason: Option<String>,
    },
    /// Ends one delegation of the run; the agent goes on and sees it as cancelled.
    CancelTask {
        /// The `task` call, as events name it.
        task_id: String,
        /// Why, for the record.
        reason: Option<String>,
    },
    /// Tells which run it is and whether it goes on.
    Status,
}

impl RunOp {
    /// Names of the ops that a run knows.
    pub const NAMES: &[&str] = &["cancel", "cancel_task", "status", "resume"];

    /// Decodes an op.
    ///
    /// # Errors
    /// Those of decoding; `Unsupported` for `resume`: what goes on with a paused run is another run without an input.
    pub fn decode(value: Value) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Cancel {
            #[serde(default)]
            reason: Option<String>,
        }
        let (op, rest) = super::decode::tagged(value, "op", Self::NAMES)?;
        if op == "resume" {
            return Err(Error::at(
                ErrorCode::Unsupported,
                "/op",
                "a run that was paused or interrupted is over: to go on, start a run without an input on its thread",
            ));
        }
        if op == "status" {
            #[derive(Deserialize)]
            #[serde(deny_unknown_fields)]
            struct Status {}
            let Status {} = super::decode::from_value(rest)?;
            return Ok(RunOp::Status);
        }
        if op == "cancel_task" {
            #[derive(Deserialize)]
            #[serde(deny_unknown_fields)]
            struct CancelTask {
                task_id: String,
                #[serde(default)]
                reason: Option<String>,
            }
            let CancelTask { task_id, reason } = super::decode::from_value(rest)?;
            return Ok(RunOp::CancelTask { task_id, reason });
        }
        let Cancel { reason } = super::decode::from_value(rest)?;
        Ok(RunOp::Cancel { reason })
    }
}
