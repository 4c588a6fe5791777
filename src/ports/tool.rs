//! The tool port: what a model may call.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::BoxFuture;
use super::host::RunContext;
use super::model::ModelReply;
use crate::protocol::message::ToolStatus;
use crate::state::channels::Channel;
use crate::state::reads::ChannelReads;
use crate::state::update::StateUpdate;

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name, unique within an assembly.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments object.
    pub parameters: Arc<Value>,
}

/// Where a tool comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ToolOrigin {
    /// This library.
    #[default]
    Builtin,
    /// The skills: how an agent finds and manages them.
    Skill,
    /// The host.
    Host,
    /// An MCP server; its name and description are remote text.
    Mcp(McpOrigin),
}

impl ToolOrigin {
    /// What is known of the MCP server, if the tool is one's.
    pub fn mcp(&self) -> Option<&McpOrigin> {
        match self {
            ToolOrigin::Mcp(origin) => Some(origin),
            ToolOrigin::Builtin | ToolOrigin::Skill | ToolOrigin::Host => None,
        }
    }
}

/// The MCP server that a tool comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpOrigin {
    /// Name of the server.
    pub server: Option<String>,
    /// How it is reached.
    pub transport: Option<String>,
    /// When to prefer the tool; `None` when it takes no part in routing.
    pub routing: Option<McpRouting>,
}

/// When a tool of an MCP server is preferred (TL-17).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpRouting {
    /// The highest comes first, 0 to 100.
    pub priority: u8,
    /// Words of a request that speak for the tool; at least one.
    pub keywords: Vec<String>,
}

/// One call to run.
#[derive(Clone, Debug)]
pub struct ToolInvocation {
    /// Id of the ai message that calls.
    pub message_id: Arc<str>,
    /// Id of the call; never empty, unique within the message.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments, checked against the tool's schema.
    pub args: Map<String, Value>,
    /// The channels that the wrap hooks of the chain and the called tools read, as they stood before the calls of this reply.
    pub reads: ChannelReads,
    /// The run that calls.
    pub run: Arc<RunContext>,
}

/// How a call went. A failure is a value: the model sees it and can act on it.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "one is made for each call and nearly all are answers: a box would cost more than the bytes"
)]
pub enum ToolOutcome {
    /// The tool answered.
    Answer(ToolAnswer),
    /// The tool failed; the text is for the model.
    Failed(String),
}

/// What a tool answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolAnswer {
    /// Text, or a list of content blocks.
    pub content: Value,
    /// What is for the host and not for the model.
    pub artifact: Value,
    /// Id of the tool message, so that the same call made again replaces its result. `None` for a new id, which is also what
    /// an id gets that an earlier turn has used: a call id may come back, and must not overwrite what it once answered.
    pub id: Option<String>,
    /// Facts about the result for parts of this library and for the host, kept with its message.
    pub additional_kwargs: Map<String, Value>,
    /// Whether the content is a result, or says why there is none.
    pub status: ToolStatus,
    /// Writes to the thread's state, besides the tool message.
    pub update: Option<StateUpdate>,
    /// Ends the run at once (`goto` end).
    pub end_run: bool,
    /// What the agent says to the user when the answer ends the run: an ai message behind the results. Of several answers with
    /// words each says its own, once.
    pub last_words: Option<Box<ModelReply>>,
}

/// A tool.
pub trait Tool: Send + Sync + 'static {
    /// What the model is told.
    fn spec(&self) -> &ToolSpec;
    /// Where it comes from.
    fn origin(&self) -> &ToolOrigin {
        &ToolOrigin::Builtin
    }
    /// Whether its answer ends the run when every call of the reply is such a call (EX-7).
    fn return_direct(&self) -> bool {
        false
    }
    /// The channels that it needs in [`ToolInvocation::reads`], messages included. A step without a call of the tool does not
    /// read them.
    fn reads(&self) -> &[Channel] {
        &[]
    }
    /// Runs one call. Dropping the future cancels it.
    fn call(&self, invocation: ToolInvocation) -> impl Future<Output = ToolOutcome> + Send;
}

/// The erased twin of [`Tool`].
pub trait DynTool: Send + Sync + 'static {
    /// See [`Tool::spec`].
    fn spec(&self) -> &ToolSpec;
    /// See [`Tool::origin`].
    fn origin(&self) -> &ToolOrigin;
    /// See [`Tool::return_direct`].
    fn return_direct(&self) -> bool;
    /// See [`Tool::reads`].
    fn reads(&self) -> &[Channel];
    /// See [`Tool::call`].
    fn call_boxed(&self, invocation: ToolInvocation) -> BoxFuture<'_, ToolOutcome>;
}

impl<T: Tool> DynTool for T {
    fn spec(&self) -> &ToolSpec {
        Tool::spec(self)
    }
    fn origin(&self) -> &ToolOrigin {
        Tool::origin(self)
    }
    fn return_direct(&self) -> bool {
        Tool::return_direct(self)
    }
    fn reads(&self) -> &[Channel] {
        Tool::reads(self)
    }
    fn call_boxed(&self, invocation: ToolInvocation) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(self.call(invocation))
    }
}
