//! What a machine asks its driver to do.

use std::sync::Arc;

use crate::middleware::Effect;
use crate::ports::checkpoint::Source;
use crate::ports::model::{ModelRequest, Usage};
use crate::protocol::error::Error;
use crate::protocol::message::ToolCall;
use crate::protocol::run::RunStatus;
use crate::state::reads::ChannelReads;
use crate::state::update::StateUpdate;

/// The next thing to do.
#[derive(Debug)]
pub enum Step {
    /// Ask the model, through the wrappers; answer with [`super::machine::RunMachine::model_replied`].
    CallModel(Box<ModelCall>),
    /// Run these calls at the same time, each through the wrappers; answer with
    /// [`super::machine::RunMachine::tools_returned`].
    CallTools(ToolCalls),
    /// Do what a hook asks for; answer with [`super::machine::RunMachine::answered`].
    Await(Effect),
    /// Store what is pending; answer with [`super::machine::RunMachine::commit`] or
    /// [`super::machine::RunMachine::save_failed`].
    Save(Source),
    /// The run is over.
    Done(Outcome),
}

/// A model call of the agent's own turn.
#[derive(Debug)]
pub struct ModelCall {
    /// The request, before the wrappers.
    pub request: ModelRequest,
    /// Id that the reply's message will have; deltas carry it.
    pub message_id: Arc<str>,
}

/// The open calls of one ai message.
#[derive(Clone, Debug, Default)]
pub struct ToolCalls {
    /// Id of the message.
    pub message_id: String,
    /// Its calls without a result, in order.
    pub calls: Vec<ToolCall>,
    /// For the invocations' `reads`.
    pub reads: ChannelReads,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Success, error or interrupted.
    pub status: RunStatus,
    /// Why, when it is an error.
    pub error: Option<Error>,
    /// Why it was cancelled, when the host said.
    pub cancel_reason: Option<String>,
    /// Steps taken: model calls and sets of tool calls.
    pub steps: u32,
    /// Tokens used by the agent's own turns.
    pub usage: Usage,
}

/// What one node wrote, told to the host once it is stored.
#[derive(Clone, Debug)]
pub struct Note {
    /// `model`, `tools`, or the middleware and hook, such as `title.after_model`.
    pub node: Arc<str>,
    /// The writes.
    pub update: StateUpdate,
}
