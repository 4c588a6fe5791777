//! The middleware chain: the trait, its six hooks, and the ordered list of what is in it.
//!
//! Index 0 is outermost (EX-2). `before_agent` and `before_model` run in list order, `after_model` and `after_agent` in
//! reverse; `wrap_model_call` and `wrap_tool_call` nest, index 0 outside. Each before/after hook is a step of its own: its
//! writes are reduced and the next hook sees them (EX-3). Wrap hooks change the request, which is never stored (EX-9).

pub mod authorization_gate;
pub mod clarification;
mod dangling_tool_call;
pub mod deferred_tool_filter;
pub mod dynamic_context;
pub mod input_sanitization;
mod kept_calls;
pub mod mcp_routing;
mod remembered;
pub mod system_message_coalescing;
#[cfg(test)]
mod testing;
pub mod title;
pub mod todo;
pub mod tool_error_handling;
mod tool_result_class;
pub mod tool_result_sanitization;
mod user_messages;

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::ports::BoxFuture;
use crate::ports::host::RunContext;
pub use crate::ports::host::RunFacts;
use crate::ports::model::{DynModelProvider, ModelError, ModelReply, ModelRequest, Purpose};
use crate::ports::tool::{DynTool, ToolInvocation, ToolOutcome};
use crate::protocol::assembly::MiddlewareConfig;
use crate::protocol::decode::unknown_member;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::push_quoted;
use crate::protocol::message::{Fields, Kind, Message};
use crate::protocol::trust::SystemText;
use crate::state::View;
use crate::state::channels::Channel;
use crate::state::reads::ChannelReads;
use crate::state::update::StateUpdate;

/// One place in the chain.
pub struct Place {
    /// Name of the middleware that stands there.
    pub name: &'static str,
    /// Makes it for a lead agent; `None` when its feature is off there.
    pub lead: fn(&ChainInputs) -> Option<Arc<dyn Middleware>>,
    /// Makes it from settings, for agents that name their middleware. `None` where it only makes sense in a lead agent.
    pub outright: Option<Outright>,
}

/// Makes a middleware from settings.
pub type Outright = fn(Map<String, Value>) -> Result<Arc<dyn Middleware>, Error>;

/// The chain, outermost first, and why each stands where it stands (DeerFlow MC-1 to MC-5).
pub const CHAIN: &[Place] = &[
    // Innermost of what edits a request: it repairs the transcript that all others leave behind.
    Place {
        name: "dangling_tool_call",
        lead: |_| Some(dangling_tool_call::new()),
        outright: Some(|settings| without_settings(settings, dangling_tool_call::new)),
    },
];

/// Names of middlewares of the reference that this version does not have.
const NOT_YET: &[&str] = &[
    "input_sanitization",
    "tool_output_budget",
    "tool_result_sanitization",
    "thread_data",
    "uploads",
    "sandbox",
    "llm_error_handling",
    "guardrail",
    "sandbox_audit",
    "read_before_write",
    "tool_progress",
    "tool_error_handling",
    "dynamic_context",
    "skill_activation",
    "skill_tool_policy",
    "durable_context",
    "summarization",
    "todo",
    "token_usage",
    "title",
    "memory",
    "view_image",
    "mcp_routing",
    "deferred_tool_filter",
    "system_message_coalescing",
    "subagent_limit",
    "loop_detection",
    "token_budget",
    "terminal_response",
    "model_length",
    "safety_finish_reason",
    "clarification",
];

/// What a lead agent's chain is made from.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChainInputs {}

/// Composes the chain of a lead agent.
pub fn compose(inputs: &ChainInputs) -> Vec<Arc<dyn Middleware>> {
    CHAIN
        .iter()
        .filter_map(|place| (place.lead)(inputs))
        .collect()
}

/// The middleware that a configuration names.
///
/// # Errors
/// `UnknownVariant` for a name that none has, `Unsupported` for one of the reference that this version does not have, and
/// those of its settings.
pub fn by_name(config: &MiddlewareConfig) -> Result<Arc<dyn Middleware>, Error> {
    let outright = CHAIN
        .iter()
        .find(|place| place.name == config.name)
        .and_then(|place| place.outright);
    match outright {
        Some(make) => make(config.settings.clone()),
        None if NOT_YET.contains(&config.name.as_str())
            || CHAIN.iter().any(|place| place.name == config.name) =>
        {
            Err(Error::at(
                ErrorCode::Unsupported,
                "",
                format!(
                    "the middleware {:?} cannot be named here in this version",
                    config.name
                ),
            ))
        }
        None => {
            let known: Vec<String> = CHAIN
                .iter()
                .filter(|place| place.outright.is_some())
                .map(|place| format!("{:?}", place.name))
                .collect();
            Err(Error::at(
                ErrorCode::UnknownVariant,
                "",
                format!(
                    "there is no middleware {:?}; there are {}",
                    config.name,
                    known.join(", ")
                ),
            ))
        }
    }
}

/// Makes a middleware that takes no settings.
fn without_settings(
    settings: Map<String, Value>,
    make: fn() -> Arc<dyn Middleware>,
) -> Result<Arc<dyn Middleware>, Error> {
    match settings.keys().find(|name| !name.starts_with("x-")) {
        Some(name) => Err(unknown_member(name, &[])),
        None => Ok(make()),
    }
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
            preamble: None,
            messages: Arc::new(self.messages.into()),
            tools: Arc::new([]),
            tool_choice: None,
            attempt: 0,
            reads: ChannelReads::default(),
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

    /// Channels that its wrap hooks read, besides `messages`: their values come with each request (`ModelRequest::reads`) and
    /// each call (`ToolInvocation::reads`), because wrap hooks run while nobody holds the state. What nobody names is not
    /// copied.
    fn reads(&self) -> &[Channel] {
        &[]
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
    fn every_place_makes_the_middleware_of_its_name() {
        for place in CHAIN {
            if let Some(middleware) = (place.lead)(&ChainInputs::default()) {
                assert_eq!(middleware.name(), place.name);
            }
            if let Some(Ok(middleware)) = place.outright.map(|make| make(Map::new())) {
                assert_eq!(middleware.name(), place.name);
            }
        }
    }
}
