//! How what a host answers becomes a tool's answer or a model's reply.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::model::{ModelReply, Usage};
use super::tool::ToolAnswer;
use crate::protocol::decode::{from_value, wrong_type};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{InvalidToolCall, Kind, Message, ToolCall};
use crate::state::channels::Channel;
use crate::state::coerce;
use crate::state::update::{StateUpdate, Write};

/// Reads a tool's answer: `{"content": …, "artifact"?: …, "additional_kwargs"?: {…}, "update"?: {…}, "end_run"?: bool}`; a value without the member `content` is the
/// content itself.
///
/// # Errors
/// Those of decoding, with the path in the answer; `OutOfRange` at a system message of the update ([`without_system_text`]).
pub fn tool_answer(value: Value) -> Result<ToolAnswer, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Answer {
        content: Value,
        #[serde(default)]
        artifact: Value,
        #[serde(default)]
        additional_kwargs: Option<Map<String, Value>>,
        #[serde(default)]
        update: Option<Value>,
        #[serde(default)]
        end_run: bool,
    }
    if value.get("content").is_none() {
        return Ok(ToolAnswer {
            content: content(value),
            ..ToolAnswer::default()
        });
    }
    let answer: Answer = from_value(value)?;
    let update = match answer.update {
        None => None,
        Some(update) => {
            let update = StateUpdate::decode(update).map_err(|error| error.below("/update"))?;
            for (channel, write) in &update.writes {
                if *channel == Channel::Messages {
                    without_system_text(write).map_err(|error| error.below("/update/messages"))?;
                }
            }
            Some(update)
        }
    };
    Ok(ToolAnswer {
        content: content(answer.content),
        artifact: answer.artifact,
        additional_kwargs: answer.additional_kwargs.unwrap_or_default(),
        update,
        end_run: answer.end_run,
        ..ToolAnswer::default()
    })
}

/// The messages of a write that the host makes in the middle of a run.
///
/// # Errors
/// Those of coercing messages; `OutOfRange` at a system message: what is said there comes from models, tools and users, and no
/// text of theirs may become the operator's.
pub fn without_system_text(write: &Write) -> Result<Vec<Message>, Error> {
    let value = match write {
        Write::Value(value) | Write::Overwrite(value) => value,
        Write::Messages(messages) => return Ok(messages.clone()),
    };
    let messages = coerce::write(value)?;
    match messages.iter().position(|m| m.kind() == Kind::System) {
        None => Ok(messages),
        Some(place) => Err(Error::at(
            ErrorCode::OutOfRange,
            match value {
                Value::Array(_) => format!("/{place}"),
                _ => String::new(),
            },
            "no system messages here: what is said in the middle of a run is no operator text; write a human message",
        )),
    }
}

/// Content of a tool message: text and lists of content blocks stay; anything else becomes its JSON text, as a model reads
/// text.
pub fn content(value: Value) -> Value {
    let is_blocks = |items: &Vec<Value>| {
        items.iter().all(|item| match item {
            Value::String(_) => true,
            Value::Object(block) => block.contains_key("type"),
            _ => false,
        })
    };
    match value {
        Value::String(text) => Value::String(text),
        Value::Null => Value::String(String::new()),
        Value::Array(items) if is_blocks(&items) => Value::Array(items),
        other => Value::String(other.to_string()),
    }
}

/// Reads a reply: `{"content", "tool_calls"?, "usage"?, "reasoning"?, "response_metadata"?}`. Arguments of a call may be an
/// object or text; text that is no JSON object makes an invalid tool call.
///
/// # Errors
/// Those of decoding, with the path in the reply.
pub fn model_reply(value: Value) -> Result<ModelReply, Error> {
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
