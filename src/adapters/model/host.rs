//! The model that the host answers: the request goes out as a host call, deltas and the reply come back.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::adapters::host_tool::DEFAULT_DEADLINE;
use crate::ports::host::{AnswerCheck, HostCall, HostCallKind, HostReply, until_cancelled};
use crate::ports::host_answer::model_reply;
use crate::ports::model::{
    DeltaSink, ModelDelta, ModelError, ModelProvider, ModelReply, ModelRequest, Purpose, ToolChoice,
};
use crate::protocol::config::HostModelConfig;
use crate::protocol::decode::from_value;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::hash::hex;
use crate::protocol::message::Message;
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
                "{}/model/{}{}",
                request.run.run_id,
                work(request),
                self.place
            ),
            also: AnswerCheck::default(),
        });
        let mut handle = match opened {
            Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
            opened => opened?,
        };
        loop {
            let said = match handle.next().await {
                Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
                // The question has the same key when it is put again, so that asking again does nothing twice.
                Err(error) if error.code == ErrorCode::DeadlineExceeded => {
                    return Err(error.retryable().into());
                }
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
                    return model_reply(value).map_err(|error| error.below("/ok").into());
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

/// What tells one piece of work of a run from the others. A turn of the agent: how many messages it is about, and the newest of
/// the thread, since a summary makes a thread short again. A question beside the turns: what it asks.
fn work(request: &ModelRequest) -> String {
    let mut newest = request.messages.iter().rev().filter_map(Message::id);
    match (request.purpose, newest.next()) {
        (Purpose::Lead, Some(id)) => format!("{}/{id}", request.messages.len()),
        (Purpose::Lead, None) => request.messages.len().to_string(),
        (Purpose::Middleware | Purpose::Goal, _) => {
            let mut asked = Sha256::new();
            for message in request.messages.iter() {
                asked.update(message.json());
            }
            format!("aside/{}", hex(&asked.finalize()[..8]))
        }
    }
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
    model_reply(value.clone()).map(|_| ())
}
