//! Tool calls as every wire format has them: arguments that become objects or not, and the invalid calls that have to go
//! back to the model.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::protocol::message::{Fields, InvalidToolCall, Kind, Message, ToolCall, UNKNOWN_TOOL};

/// Most tool calls of one reply; no model asks for so many, only a broken or hostile endpoint.
pub(super) const MAX_CALLS: usize = 1024;

/// Arguments text as an object. No text at all, and null, stand for no arguments.
pub(super) fn parse_object(args: &str) -> Result<Map<String, Value>, String> {
    let text = args.trim();
    if text.is_empty() || text == "null" {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("the arguments are no JSON object".to_owned()),
        Err(error) => Err(format!("the arguments are not JSON: {error}")),
    }
}

/// A finished call, or one that cannot be run and why. `cut` says that the reply ended early, so that no arguments are
/// not taken for empty ones.
pub(super) fn close(
    id: Option<String>,
    name: Option<String>,
    text: String,
    cut: bool,
) -> Result<ToolCall, InvalidToolCall> {
    let args = match parse_object(&text) {
        Ok(_) if cut && text.trim().is_empty() => {
            Err("the reply was cut off before the arguments".to_owned())
        }
        Err(error) if cut => Err(format!(
            "the reply was cut off inside the arguments ({error})"
        )),
        parsed => parsed,
    };
    match (name, args) {
        (Some(name), Ok(args)) => Ok(ToolCall { name, args, id }),
        (name, args) => Err(InvalidToolCall {
            id,
            error: Some(match args {
                Err(error) => error,
                Ok(_) => "the call names no tool".to_owned(),
            }),
            name,
            args: Some(text),
        }),
    }
}

/// The invalid calls of a message that a tool message of its turn answers: without the call the endpoint would refuse
/// the answer, and without the answer the call. `later` is what follows the message.
pub(super) fn answered_invalid_calls<'a>(
    fields: &'a Fields,
    later: &[Message],
) -> Vec<&'a InvalidToolCall> {
    let calls = &fields.invalid_tool_calls;
    if calls.is_empty() {
        return Vec::new();
    }
    let answers: HashSet<&str> = later
        .iter()
        .take_while(|message| message.kind() != Kind::Ai)
        .filter(|message| message.kind() == Kind::Tool)
        .map(|message| message.fields().tool_call_id.as_str())
        .collect();
    let answered = |call: &&InvalidToolCall| {
        let id = call.id.as_deref();
        id.is_some_and(|id| answers.contains(id))
    };
    calls.iter().filter(answered).collect()
}

/// An invalid call as endpoints take it: a name, and arguments that are an object (MW-DNG-9).
pub(super) fn repaired(call: &InvalidToolCall) -> (&str, Map<String, Value>) {
    let name = match call.name.as_deref().map(str::trim) {
        None | Some("") => UNKNOWN_TOOL,
        Some(name) => name,
    };
    let args = match call.args.as_deref().map(serde_json::from_str) {
        Some(Ok(Value::Object(args))) => args,
        _ => Map::new(),
    };
    (name, args)
}
