//! What an AI message chunk does after validation: its calls come from its chunks, and the other way round.

use serde_json::{Map, Value};

use super::arguments::{Strictness, parse, parse_partial};
use super::class::Built;
use crate::protocol::message::{InvalidToolCall, Kind, ToolCall};
use crate::state::python::dumps;

/// Completes an AI message chunk; other messages stay as they are.
///
/// Source: spec 10.
pub(super) fn complete(built: &mut Built) {
    if !built.class.chunk || built.class.kind != Kind::Ai {
        return;
    }
    if built.tool_call_chunks.is_empty() {
        let fields = &built.fields;
        let calls = fields.tool_calls.iter().map(|call| {
            let args = dumps(&Value::Object(call.args.clone()));
            chunk(Some(&call.name), Some(&args), call.id.as_deref())
        });
        let invalid = fields.invalid_tool_calls.iter().map(|call| {
            chunk(
                call.name.as_deref(),
                call.args.as_deref(),
                call.id.as_deref(),
            )
        });
        built.tool_call_chunks = calls.chain(invalid).collect();
    } else {
        calls_of_chunks(built);
    }
    let metadata = &built.fields.response_metadata;
    let is_last = built.chunk_position == "last";
    let is_v1 = metadata.get("output_version").and_then(Value::as_str) == Some("v1");
    if is_last && is_v1 {
        finish_blocks(built);
    }
}

fn chunk(name: Option<&str>, args: Option<&str>, id: Option<&str>) -> Value {
    let mut chunk = Map::new();
    chunk.insert("name".into(), name.into());
    chunk.insert("args".into(), args.into());
    chunk.insert("id".into(), id.into());
    chunk.insert("index".into(), Value::Null);
    chunk.insert("type".into(), "tool_call_chunk".into());
    Value::Object(chunk)
}

fn calls_of_chunks(built: &mut Built) {
    let (mut calls, mut invalid) = (Vec::new(), Vec::new());
    for chunk in &built.tool_call_chunks {
        let text = |name: &str| chunk.get(name).and_then(Value::as_str).map(str::to_owned);
        let args = match text("args") {
            Some(args) if !args.is_empty() => parse_partial(&args),
            _ => Ok(Value::Object(Map::new())),
        };
        match args {
            Ok(Value::Object(args)) => calls.push(ToolCall {
                name: text("name").unwrap_or_default(),
                args,
                id: text("id"),
            }),
            _ => invalid.push(InvalidToolCall {
                id: text("id"),
                name: text("name"),
                args: text("args"),
                error: None,
            }),
        }
    }
    built.fields.tool_calls = calls;
    built.fields.invalid_tool_calls = invalid;
}

/// In the last chunk of the newer content layout, blocks that were pieces of calls become whole.
fn finish_blocks(built: &mut Built) {
    let fields = &mut built.fields;
    let Value::Array(blocks) = &mut fields.content else {
        return;
    };
    for block in blocks {
        let Value::Object(block) = block else {
            continue;
        };
        let type_name = block
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match type_name {
            "tool_call_chunk" if !built.tool_call_chunks.is_empty() => {
                let id = block.get("id").and_then(Value::as_str);
                let id = id.filter(|id| !id.is_empty());
                // Of several calls with one id the last counts.
                let call = fields
                    .tool_calls
                    .iter()
                    .rev()
                    .find(|call| call.id.as_deref() == id);
                if let (Some(id), Some(call)) = (id, call) {
                    let mut whole = Map::new();
                    whole.insert("type".into(), "tool_call".into());
                    whole.insert("name".into(), call.name.clone().into());
                    whole.insert("args".into(), Value::Object(call.args.clone()));
                    whole.insert("id".into(), id.into());
                    if let Some(extras) = block.get("extras") {
                        whole.insert("extras".into(), extras.clone());
                    }
                    *block = whole;
                }
            }
            "server_tool_call" | "server_tool_call_chunk" => {
                let args = block.get("args").and_then(Value::as_str);
                if let Some(Ok(args @ Value::Object(_))) =
                    args.map(|args| parse(args, Strictness::Strict))
                {
                    block.insert("type".into(), "server_tool_call".into());
                    block.insert("args".into(), args);
                }
            }
            _ => {}
        }
    }
}
