//! The model port: one request, one reply, deltas on the way.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::BoxFuture;
use super::host::RunContext;
use super::tool::ToolSpec;
use crate::protocol::error::Error;
use crate::protocol::message::{InvalidToolCall, Message, ToolCall};
use crate::protocol::model_failure::FailureReason;
use crate::protocol::trust::SystemText;
use crate::state::reads::ChannelReads;
use crate::state::transcript::Transcript;

/// Who asks: the lead agent's own turn, a middleware, or whoever judges a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The turn of the agent itself; its deltas reach the host.
    Lead,
    /// A question of a middleware (title, summary); nobody sees its deltas.
    Middleware,
    /// The judgement of a goal; nobody sees its deltas.
    Goal,
}

/// What a model is asked.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Who asks.
    pub purpose: Purpose,
    /// System text.
    pub system: Option<SystemText>,
    /// Data of the assembly that is no system text, such as what users' files say: a human message that stands before the
    /// transcript.
    pub preamble: Option<Message>,
    /// The transcript, without the system text. Shared with the thread; a wrapper puts another in its place.
    pub messages: Arc<Transcript>,
    /// Tools that the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// Which tool to call, if the agent is not free to choose.
    pub tool_choice: Option<ToolChoice>,
    /// 0 for the first attempt of this turn with this model, then 1, 2, …
    pub attempt: u32,
    /// The channels that the wrap hooks of the chain read, as the hooks before this call left them.
    pub reads: ChannelReads,
    /// The run that asks.
    pub run: Arc<RunContext>,
}

/// Which tool the model must call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model chooses, or answers.
    Auto,
    /// The model may not call any.
    None,
    /// The model must call one.
    Required,
    /// The model must call this one.
    Tool(String),
}

/// A piece of a reply while it streams.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelDelta {
    /// Text for the user.
    Text(String),
    /// The model's reasoning.
    Reasoning(String),
    /// A piece of a tool call: the first of an index carries id and name, later ones arguments.
    ToolCall {
        /// Position among the calls of this reply.
        index: u32,
        /// Id of the call.
        id: Option<String>,
        /// Name of the tool.
        name: Option<String>,
        /// A piece of the arguments text.
        args: String,
    },
}

/// Where a provider puts deltas.
pub trait DeltaSink: Send {
    /// Takes one delta. Never blocks.
    fn push(&mut self, delta: ModelDelta);
    /// A future to await before the next `push` when the listener is behind; `None` when there is room.
    fn pressure(&mut self) -> Option<BoxFuture<'static, ()>>;
    /// Whether what is pushed reaches somebody who cannot unsee it.
    fn is_heard(&self) -> bool {
        true
    }
    /// What was pushed so far is void: another attempt begins.
    fn reset(&mut self) {}
    /// Takes what has arrived of the reply, if the sink keeps it.
    fn arrived(&mut self) -> Option<Box<ModelReply>> {
        None
    }
    /// Hears of each attempt that failed, before what follows it.
    fn attempt_failed(&mut self, attempt: &FailedAttempt<'_>) {
        let _ = attempt;
    }
}

/// One attempt that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedAttempt<'a> {
    /// What the configuration calls the model.
    pub model: &'a str,
    /// Which attempt with this model: 1, 2, …
    pub attempt: u32,
    /// How many attempts this model is given at most, as things stand.
    pub max_attempts: u32,
    /// The class of the failure (MW-LLM-4).
    pub reason: FailureReason,
    /// Why it failed.
    pub error: &'a Error,
    /// What follows.
    pub next: NextAttempt<'a>,
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAttempt<'a> {
    /// The same model again, after this wait.
    Retry(Duration),
    /// The next model, at once.
    Fallback(&'a str),
    /// Nothing: the call fails.
    Nothing,
}

/// Tokens used by one reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Both; as the provider says it, else the sum.
    pub total_tokens: u64,
    /// Tokens read from the provider's cache.
    pub cache_read: Option<u64>,
    /// Tokens written to the provider's cache.
    pub cache_creation: Option<u64>,
    /// Tokens spent on reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// The `usage_metadata` object of an ai message.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("input_tokens".into(), self.input_tokens.into());
        map.insert("output_tokens".into(), self.output_tokens.into());
        map.insert("total_tokens".into(), self.total_tokens.into());
        let cached = [
            ("cache_read", self.cache_read),
            ("cache_creation", self.cache_creation),
        ];
        let details: Map<String, Value> = cached
            .into_iter()
            .filter_map(|(name, tokens)| Some((name.to_owned(), tokens?.into())))
            .collect();
        if !details.is_empty() {
            map.insert("input_token_details".into(), Value::Object(details));
        }
        if let Some(reasoning) = self.reasoning {
            let details = Map::from_iter([("reasoning".to_owned(), Value::from(reasoning))]);
            map.insert("output_token_details".into(), Value::Object(details));
        }
        Value::Object(map)
    }

    /// Adds another reply's tokens.
    pub fn add(&mut self, other: &Usage) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
        };
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.total_tokens += other.total_tokens;
        self.cache_read = sum(self.cache_read, other.cache_read);
        self.cache_creation = sum(self.cache_creation, other.cache_creation);
        self.reasoning = sum(self.reasoning, other.reasoning);
    }
}

/// A whole reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// Text, or a list of content blocks. `Null` stands for no content and is stored as empty text.
    pub content: Value,
    /// Calls with arguments that are an object.
    pub tool_calls: Vec<ToolCall>,
    /// Calls with arguments that are not; never executed.
    pub invalid_tool_calls: Vec<InvalidToolCall>,
    /// Tokens used, if the provider says.
    pub usage: Option<Usage>,
    /// What the provider adds to the message (reasoning, refusal).
    pub additional_kwargs: Map<String, Value>,
    /// What the provider says about the reply (finish reason, model, its own id).
    pub response_metadata: Map<String, Value>,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelError {
    /// Code, text and cause. Never holds a key or a header.
    pub error: Error,
    /// How long the endpoint asks to wait.
    pub retry_after: Option<Duration>,
    /// What had arrived when a stream broke.
    pub partial: Option<Box<ModelReply>>,
    /// Whether it was a stream that had begun and then fell silent.
    pub has_stalled: bool,
}

impl ModelError {
    /// Whether text, reasoning or a piece of a call had arrived, so that the listener may have seen some of it.
    pub fn has_partial(&self) -> bool {
        self.partial.as_ref().is_some_and(|partial| {
            !matches!(&partial.content, Value::Null) && partial.content.as_str() != Some("")
                || !partial.tool_calls.is_empty()
                || !partial.invalid_tool_calls.is_empty()
                || !partial.additional_kwargs.is_empty()
        })
    }
}

impl From<Error> for ModelError {
    fn from(error: Error) -> Self {
        ModelError {
            error,
            retry_after: None,
            partial: None,
            has_stalled: false,
        }
    }
}

/// Answers model requests.
pub trait ModelProvider: Send + Sync + 'static {
    /// Asks the model. Dropping the future cancels the request and closes its connection.
    fn call(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> impl Future<Output = Result<ModelReply, ModelError>> + Send;
}

/// The erased twin of [`ModelProvider`].
pub trait DynModelProvider: Send + Sync + 'static {
    /// See [`ModelProvider::call`].
    fn call_boxed<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a mut dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>>;
}

impl<P: ModelProvider> DynModelProvider for P {
    fn call_boxed<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a mut dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(self.call(request, sink))
    }
}
