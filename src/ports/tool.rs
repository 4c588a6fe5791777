//! The tool port: what a model may call.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::BoxFuture;
use super::host::RunContext;
use crate::state::update::StateUpdate;

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name, unique within an assembly.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments object.
    pub parameters: Value,
}

/// One call to run.
#[derive(Clone, Debug)]
pub struct ToolInvocation {
    /// Id of the call; never empty.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments, checked against the tool's schema.
    pub args: Map<String, Value>,
    /// The run that calls.
    pub run: Arc<RunContext>,
}

/// How a call went. A failure is a value: the model sees it and can act on it.
#[derive(Clone, Debug, PartialEq)]
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
    /// Writes to the thread's state, besides the tool message.
    pub update: Option<StateUpdate>,
    /// Ends the run at once (`goto` end).
    pub end_run: bool,
}

/// A tool.
pub trait Tool: Send + Sync + 'static {
    /// What the model is told.
    fn spec(&self) -> &ToolSpec;
    /// Whether its answer ends the run when every call of the reply is such a call (EX-7).
    fn return_direct(&self) -> bool {
        false
    }
    /// Runs one call. Dropping the future cancels it.
    fn call(&self, invocation: ToolInvocation) -> impl Future<Output = ToolOutcome> + Send;
}

/// The erased twin of [`Tool`].
pub trait DynTool: Send + Sync + 'static {
    /// See [`Tool::spec`].
    fn spec(&self) -> &ToolSpec;
    /// See [`Tool::return_direct`].
    fn return_direct(&self) -> bool;
    /// See [`Tool::call`].
    fn call_boxed(&self, invocation: ToolInvocation) -> BoxFuture<'_, ToolOutcome>;
}

impl<T: Tool> DynTool for T {
    fn spec(&self) -> &ToolSpec {
        Tool::spec(self)
    }
    fn return_direct(&self) -> bool {
        Tool::return_direct(self)
    }
    fn call_boxed(&self, invocation: ToolInvocation) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(self.call(invocation))
    }
}
