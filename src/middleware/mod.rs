//! The middleware chain: the trait, its six hooks, and the ordered list of what is in it.
//!
//! Index 0 is outermost (EX-2). `before_agent` and `before_model` run in list order, `after_model` and `after_agent` in
//! reverse; `wrap_model_call` and `wrap_tool_call` nest, index 0 outside. Each before/after hook is a step of its own: its
//! writes are reduced and the next hook sees them (EX-3). Wrap hooks change the request, which is never stored (EX-9).

mod compaction;
mod dangling_tool_call;
pub mod dynamic_context;
mod remembered;
pub mod summarization;
mod summary_prompt;
pub mod system_message_coalescing;
pub mod title;
pub mod todo;
mod token_estimate;
pub mod tool_error_handling;
mod tool_result_class;
mod user_messages;

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::ports::BoxFuture;
use crate::ports::host::RunContext;
use crate::ports::model::{DynModelProvider, ModelError, ModelReply, ModelRequest, Purpose};
use crate::ports::signals::RunSignals;
use crate::ports::tool::{DynTool, ToolInvocation, ToolOutcome};
use crate::protocol::error::Error;
use crate::protocol::json::push_quoted;
use crate::protocol::message::{Fields, Kind, Message};
use crate::protocol::time::Timestamp;
use crate::protocol::trust::SystemText;
use crate::state::View;
use crate::state::update::StateUpdate;

/// Makes the middleware of a place in the chain; `None` when its feature is off in this assembly.
type Build = fn(&ChainInputs) -> Option<Arc<dyn Middleware>>;

/// The chain, outermost first: name, builder, and why it stands where it stands.
pub const CHAIN: &[(&str, Build)] = &[
    // Innermost of what edits a request: it repairs the transcript that all others leave behind.
    ("dangling_tool_call", dangling_tool_call::build),
];

/// What a builder may look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChainInputs {}

/// Composes the chain of an assembly.
pub fn compose(inputs: &ChainInputs) -> Vec<Arc<dyn Middleware>> {
    CHAIN
        .iter()
        .filter_map(|(_, build)| build(inputs))
        .collect()
}

/// One of the four hooks that look at the state and write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hook {
    /// Once, before the loop.
    BeforeAgent,
    /// Before each model call.
    BeforeModel,
    /// After each model call.
    AfterModel,
    /// Once, after the loop.
    AfterAgent,
}

impl Hook {
    /// Name, as in LangChain.
    pub const fn name(self) -> &'static str {
        match self {
            Hook::BeforeAgent => "before_agent",
            Hook::BeforeModel => "before_model",
            Hook::AfterModel => "after_model",
            Hook::AfterAgent => "after_agent",
        }
    }
}

/// Which hooks a middleware has, so that the others cost nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// `before_agent`.
    pub before_agent: bool,
    /// `before_model`.
    pub before_model: bool,
    /// `after_model`.
    pub after_model: bool,
    /// `after_agent`.
    pub after_agent: bool,
    /// `wrap_model_call`.
    pub wrap_model_call: bool,
    /// `wrap_tool_call`.
    pub wrap_tool_call: bool,
}

/// Where a hook sends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// To the entry of the loop: the first `before_model` hook. The rest of this pass is skipped (EX-4).
    Model,
    /// To the tool calls of the last ai message.
    Tools,
    /// To the end: `after_agent`.
    End,
}

impl Jump {
    /// Name in the channel `jump_to`.
    pub const fn name(self) -> &'static str {
        match self {
            Jump::Model => "model",
            Jump::Tools => "tools",
            Jump::End => "end",
        }
    }
}

/// What a hook asks the outside for. The driver does it; the hook runs again with the answer.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A model call of the middleware's own; nobody sees its deltas.
    CallModel(Box<ModelQuestion>),
}

/// What a middleware asks a model on its own account, without tools.
#[derive(Clone, Debug, Default)]
pub struct ModelQuestion {
    /// System text.
    pub system: Option<SystemText>,
    /// The messages.
    pub messages: Vec<Message>,
    /// Whom to ask; `None` asks the run's model.
    pub model: Option<NamedModel>,
}

impl ModelQuestion {
    /// A question in words, put as a person's message.
    pub fn new(prompt: impl Into<String>, model: Option<NamedModel>) -> Self {
        ModelQuestion {
            system: None,
            messages: vec![Message::new(Fields::new(Kind::Human, prompt.into()))],
            model,
        }
    }

    /// The request that a driver makes of it, and the model to make it to, unless that is the run's.
    pub fn into_request(self, run: Arc<RunContext>) -> (ModelRequest, Option<NamedModel>) {
        let request = ModelRequest {
            purpose: Purpose::Middleware,
            system: self.system,
            messages: Arc::new(self.messages.into()),
            tools: Arc::new([]),
            tool_choice: None,
            attempt: 0,
            run,
        };
        (request, self.model)
    }
}

/// A model besides the run's, for the questions of middleware.
#[derive(Clone)]
pub struct NamedModel {
    /// What the configuration calls it.
    pub name: Arc<str>,
    /// Answers the requests.
    pub provider: Arc<dyn DynModelProvider>,
}

impl std::fmt::Debug for NamedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NamedModel").field(&self.name).finish()
    }
}

/// The answer to an [`Effect`].
#[derive(Clone, Debug)]
pub enum EffectAnswer {
    /// The reply, or why there is none.
    Model(Box<Result<ModelReply, ModelError>>),
}

/// What a hook decides.
#[derive(Clone, Debug, Default)]
pub enum HookOutput {
    /// Go on.
    #[default]
    Continue,
    /// Write this, then go on.
    Update(StateUpdate),
    /// Write this, then jump.
    Jump(Jump, StateUpdate),
    /// Ask, and run this hook again with the answer.
    Await(Effect),
}

/// What a hook sees.
pub struct HookContext<'a> {
    /// The state as the previous hook left it.
    pub state: View<'a>,
    /// Facts of the run.
    pub run: &'a RunFacts,
    /// The answer to what this hook asked for, when it runs again.
    pub answer: Option<&'a EffectAnswer>,
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
    /// Facts about the request.
    pub context: Map<String, Value>,
    /// When the run began.
    pub started_at: Timestamp,
    /// What else the run is told.
    pub signals: Arc<RunSignals>,
}

/// A reply with the writes that wrappers add to the state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelResponse {
    /// The reply.
    pub reply: ModelReply,
    /// Writes besides the ai message, in order.
    pub updates: Vec<StateUpdate>,
}

/// The rest of a model call, inside a wrapper. It may be run any number of times.
pub trait NextModel: Send {
    /// Passes the request on.
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>>;
}

/// The rest of a tool call, inside a wrapper. It may be run any number of times.
pub trait NextTool: Send {
    /// Passes the call on.
    fn run(&mut self, invocation: ToolInvocation) -> BoxFuture<'_, ToolOutcome>;
}

/// One part of the chain. Hooks are pure: they look, and answer with writes; an error ends the run.
pub trait Middleware: Send + Sync + 'static {
    /// Name, unique in the chain; part of events and errors.
    fn name(&self) -> &str;

    /// Which hooks it has.
    fn hooks(&self) -> Hooks;

    /// What a descriptor says about its settings: JSON data, nothing secret. Long texts are given as hashes (AD-16).
    fn policy(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Tools that it brings; they are bound after those of the agent (AD-13).
    fn tools(&self) -> &[Arc<dyn DynTool>] {
        &[]
    }

    /// Runs one of the four state hooks.
    ///
    /// # Errors
    /// Whatever makes it impossible to go on; the run ends with it and nothing of this hook is written.
    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        let _ = (hook, context);
        Ok(HookOutput::Continue)
    }

    /// Wraps a model call.
    fn wrap_model_call<'a>(
        &'a self,
        request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        next.run(request)
    }

    /// Wraps one tool call.
    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: &'a mut dyn NextTool,
    ) -> BoxFuture<'a, ToolOutcome> {
        next.run(invocation)
    }
}

/// How a policy names a text: the lower-case hex SHA-256 of the text as JSON (AD-3).
fn text_hash(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    push_quoted(&mut json, text);
    let digest = Sha256::digest(json.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builder_makes_the_middleware_of_its_name() {
        for (name, build) in CHAIN {
            if let Some(middleware) = build(&ChainInputs::default()) {
                assert_eq!(middleware.name(), *name);
            }
        }
    }
}
