//! The model that the host answers: the request goes out as a host call, deltas and the reply come back.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::adapters::host_tool::DEFAULT_DEADLINE;
use crate::ports::host::{HostCall, HostCallKind, HostReply, until_cancelled};
use crate::ports::model::{
    DeltaSink, ModelDelta, ModelError, ModelProvider, ModelReply, ModelRequest, Purpose,
    ToolChoice, Usage,
};
use crate::protocol::config::HostModelConfig;
use crate::protocol::decode::{from_value, wrong_type};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{InvalidToolCall, ToolCall};
use crate::protocol::trust::SystemText;

/// A model of the host.
#[derive(Debug)]
pub struct HostModel {
    name: String,
    deadline: Duration,
    /// The part of its idempotency keys that tells it from the models it stands in for.
    place: String,
}

impl HostModel {
    /// A model as configured.
    pub fn new(config: &HostModelConfig) -> Self {
        HostModel {
            name: config.model.clone().unwrap_or_else(|| "host".to_owned()),
            deadline: config
                .deadline_ms
                .map_or(DEFAULT_DEADLINE, Duration::from_millis),
            place: String::new(),
        }
    }

    /// The same model as the fallback number `place`, counted from 1. A turn that comes to it is not the piece of work
    /// that another model of the host was asked for, so it has a key of its own.
    pub fn fallback(mut self, place: usize) -> Self {
        self.place = format!("/{place}");
        self
    }
}

impl ModelProvider for HostModel {
    async fn call(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let opened = request.run.host.open(HostCall {
            kind: HostCallKind::Model,
            name: self.name.clone(),
            args: request_json(request),
            deadline: self.deadline,
            tool_call_id: None,
            // The same for every attempt: a host that has answered already may answer with that.
            idempotency_key: format!(
                "{}/{}{}",
                request.run.run_id,
                piece_of_work(request),
                self.place
            ),
        });
        let mut handle = match opened {
            Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
            opened => opened?,
        };
        loop {
            let said = match handle.next().await {
                Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
                said => said?,
            };
            match said {
                HostReply::Emitted(value) => {
                    for delta in deltas(value)? {
                        sink.push(delta);
                    }
                    if let Some(wait) = sink.pressure() {
                        wait.await;
                    }
                }
                HostReply::Answered(value) => {
                    return reply(value).map_err(|error| error.below("/ok").into());
                }
                HostReply::Refused(refusal) => {
                    let mut error = Error::new(ErrorCode::ModelHost, refusal.message);
                    error.retryable = refusal.retryable;
                    return Err(ModelError {
                        retry_after: refusal.retry_after,
                        ..ModelError::from(error)
                    });
                }
            }
        }
    }
}

/// What tells this request from the others of its run: a turn by its place in the transcript. A question beside the turns has
/// none, so it is told by what it asks.
fn piece_of_work(request: &ModelRequest) -> String {
    if request.purpose == Purpose::Lead {
        return format!("model/{}", request.messages.len());
    }
    let mut hash = Sha256::new();
    for message in request.messages.iter() {
        hash.update(message.json());
        hash.update([0]);
    }
    let hash = hash.finalize();
    let short: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("question/{short}")
}

/// The `args` of a model call: `{"system","messages","tools","tool_choice"}`, messages in canonical form.
fn request_json(request: &ModelRequest) -> String {
    let mut text = String::with_capacity(256 * (request.messages.len() + 1));
    text.push_str("{\"system\":");
    text.push_str(&json!(request.system.as_ref().map(SystemText::as_str)).to_string());
    text.push_str(",\"messages\":[");
    let messages = request.preamble.iter().chain(request.messages.iter());
    for (place, message) in messages.enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(message.json());
    }
    text.push_str("],\"tools\":[");
    for (place, tool) in request.tools.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        let tool = json!({
            "name": tool.name, "description": tool.description, "parameters": tool.parameters,
        });
        text.push_str(&tool.to_string());
    }
    let choice = match &request.tool_choice {
        None | Some(ToolChoice::Auto) => json!("auto"),
        Some(ToolChoice::None) => json!("none"),
        Some(ToolChoice::Required) => json!("required"),
        Some(ToolChoice::Tool(name)) => json!({ "name": name }),
    };
    text.push_str("],\"tool_choice\":");
    text.push_str(&choice.to_string());
    text.push('}');
    text
}

/// Reads what the host emits: `{"text"?: …, "reasoning"?: …, "tool_call"?: {"index","id"?,"name"?,"args"?}}`.
fn deltas(value: Value) -> Result<Vec<ModelDelta>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct CallPiece {
        index: u32,
        #[serde(default)]
        id: Option<String>,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        args: String,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Piece {
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        reasoning: Option<String>,
        #[serde(default)]
        tool_call: Option<CallPiece>,
    }
    let Piece {
        text,
        reasoning,
        tool_call,
    } = from_value(value)?;
    let call = tool_call.map(|piece| ModelDelta::ToolCall {
        index: piece.index,
        id: piece.id,
        name: piece.name,
        args: piece.args,
    });
    Ok([
        reasoning.map(ModelDelta::Reasoning),
        text.map(ModelDelta::Text),
        call,
    ]
    .into_iter()
    .flatten()
    .collect())
}

/// Checks an emitted delta when the host hands it in, so that the host hears of a mistake at once.
///
/// # Errors
/// Those of decoding, with the path in the emitted value.
pub fn check_delta(value: &Value) -> Result<(), Error> {
    deltas(value.clone()).map(|_| ())
}

/// Checks a reply when the host hands it in; see [`check_delta`].
///
/// # Errors
/// Those of decoding, with the path in the reply.
pub fn check_reply(value: &Value) -> Result<(), Error> {
    reply(value.clone()).map(|_| ())
}

/// Reads a reply: `{"content", "tool_calls"?, "usage"?, "reasoning"?, "response_metadata"?}`. Arguments of a call may be an
/// object or text; text that is no JSON object makes an invalid tool call.
fn reply(value: Value) -> Result<ModelReply, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Call {
        name: String,
        #[serde(default)]
        args: Value,
        #[serde(default)]
        id: Option<String>,
        #[serde(default, rename = "type")]
        _type: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Tokens {
        #[serde(default)]
        input_tokens: u64,
        #[serde(default)]
        output_tokens: u64,
        #[serde(default)]
        total_tokens: Option<u64>,
        #[serde(default)]
        cache_read: Option<u64>,
        #[serde(default)]
        cache_creation: Option<u64>,
        #[serde(default)]
        reasoning: Option<u64>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Reply {
        #[serde(default)]
        content: Value,
        #[serde(default)]
        tool_calls: Vec<Call>,
        #[serde(default)]
        usage: Option<Tokens>,
        #[serde(default)]
        reasoning: Option<String>,
        #[serde(default)]
        response_metadata: Map<String, Value>,
    }
    let parsed: Reply = match value {
        Value::String(text) => from_value(json!({ "content": text }))?,
        other => from_value(other)?,
    };
    if !matches!(
        parsed.content,
        Value::Null | Value::String(_) | Value::Array(_)
    ) {
        return Err(
            wrong_type(&parsed.content, "text or a list of content blocks").below("/content"),
        );
    }
    let mut reply = ModelReply {
        content: parsed.content,
        response_metadata: parsed.response_metadata,
        usage: parsed.usage.map(|tokens| Usage {
            input_tokens: tokens.input_tokens,
            output_tokens: tokens.output_tokens,
            total_tokens: tokens
                .total_tokens
                .unwrap_or_else(|| tokens.input_tokens.saturating_add(tokens.output_tokens)),
            cache_read: tokens.cache_read,
            cache_creation: tokens.cache_creation,
            reasoning: tokens.reasoning,
        }),
        ..ModelReply::default()
    };
    if let Some(reasoning) = parsed.reasoning {
        reply
            .additional_kwargs
            .insert("reasoning_content".into(), reasoning.into());
    }
    for Call { name, args, id, .. } in parsed.tool_calls {
        let object = match args {
            Value::Null => Ok(Map::new()),
            Value::Object(map) => Ok(map),
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(Value::Object(map)) => Ok(map),
                _ => Err(text),
            },
            other => Err(other.to_string()),
        };
        match object {
            Ok(args) => reply.tool_calls.push(ToolCall { name, args, id }),
            Err(args) => reply.invalid_tool_calls.push(InvalidToolCall {
                id,
                name: Some(name),
                args: Some(args),
                error: Some("the arguments are no JSON object".to_owned()),
            }),
        }
    }
    Ok(reply)
}
