//! What tests of model providers share: requests, a sink that collects, replies as JSON.

use std::sync::Arc;
use std::time::Duration;

use fawn::ports::BoxFuture;
use fawn::ports::model::{
    DeltaSink, ModelDelta, ModelError, ModelProvider, ModelReply, ModelRequest, Purpose,
};
use fawn::ports::tool::ToolSpec;
use fawn::protocol::message::{Fields, Kind, Message, ToolCall};
use serde_json::{Value, json};

use super::host::run_context;

/// A request with these messages, and nothing else.
pub fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        purpose: Purpose::Lead,
        system: None,
        preamble: None,
        messages: Arc::new(messages.into()),
        tools: Arc::new([]),
        tool_choice: None,
        attempt: 0,
        reads: Default::default(),
        run: run_context(),
    }
}

/// A request with one human message.
pub fn ask(text: &str) -> ModelRequest {
    request(vec![message(Kind::Human, text)])
}

pub fn message(kind: Kind, content: impl Into<Value>) -> Message {
    Message::new(Fields::new(kind, content))
}

/// A message with some members changed.
pub fn with(kind: Kind, content: impl Into<Value>, change: impl FnOnce(&mut Fields)) -> Message {
    let mut fields = Fields::new(kind, content);
    change(&mut fields);
    Message::new(fields)
}

/// A call with arguments that are an object.
pub fn tool_call(id: &str, name: &str, args: Value) -> ToolCall {
    ToolCall {
        name: name.to_owned(),
        args: args.as_object().unwrap().clone(),
        id: Some(id.to_owned()),
    }
}

/// The result of a call of the tool `f`.
pub fn result(id: &str, content: impl Into<Value>) -> Message {
    with(Kind::Tool, content, |fields| {
        fields.tool_call_id = id.to_owned();
        fields.name = Some("f".to_owned());
    })
}

pub fn tool(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("What {name} does"),
        parameters: parameters.into(),
    }
}

/// Collects deltas; asks for a pause after each when `pause` is set.
#[derive(Default)]
pub struct Collect {
    pub deltas: Vec<ModelDelta>,
    pub pause: Option<Duration>,
}

impl Collect {
    /// The text deltas, joined.
    pub fn text(&self) -> String {
        self.deltas
            .iter()
            .filter_map(|delta| match delta {
                ModelDelta::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }
}

impl DeltaSink for Collect {
    fn push(&mut self, delta: ModelDelta) {
        self.deltas.push(delta);
    }
    fn pressure(&mut self) -> Option<BoxFuture<'static, ()>> {
        let pause = self.pause?;
        Some(Box::pin(tokio::time::sleep(pause)))
    }
}

/// A runtime of one OS thread, as a test's own.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Asks a provider; the reply and what streamed.
pub fn call(
    provider: &impl ModelProvider,
    request: &ModelRequest,
) -> (Result<ModelReply, ModelError>, Collect) {
    let mut sink = Collect::default();
    let reply = block_on(provider.call(request, &mut sink));
    (reply, sink)
}

pub fn reply_json(reply: &ModelReply) -> Value {
    json!({
        "content": reply.content,
        "tool_calls": reply.tool_calls,
        "invalid_tool_calls": reply.invalid_tool_calls,
        "usage": reply.usage.as_ref().map(|usage| usage.to_value()),
        "additional_kwargs": reply.additional_kwargs,
        "response_metadata": reply.response_metadata,
    })
}

pub fn delta_json(delta: &ModelDelta) -> Value {
    match delta {
        ModelDelta::Text(text) => json!({"text": text}),
        ModelDelta::Reasoning(text) => json!({"reasoning": text}),
        ModelDelta::ToolCall {
            index,
            id,
            name,
            args,
        } => json!({"call": index, "id": id, "name": name, "args": args}),
    }
}
