//! Tool calls on their way into a message: OpenAI's layout, and the rebuilding of LangChain's.

use serde_json::{Map, Value};

use super::arguments::{Strictness, parse};
use super::class::Class;
use super::failure::Failures;
use crate::protocol::error::{Error, ErrorCode};
use crate::state::python::truthy;

/// What an AI message does to its tool calls before it is validated.
///
/// Without any calls of its own it takes those of `additional_kwargs.tool_calls` (OpenAI's layout). Then each call is
/// rebuilt with exactly the members it has.
///
/// # Errors
/// A call that lacks a member or has one too many; reported alone.
///
/// Source: spec 6 (`ai`).
pub(super) fn prepare(class: Class, members: &mut Map<String, Value>) -> Result<(), Failures> {
    let own = ["tool_calls", "invalid_tool_calls", "tool_call_chunks"];
    if !own
        .iter()
        .any(|member| members.get(*member).is_some_and(truthy))
    {
        let raw = match members.get("additional_kwargs") {
            None => None,
            Some(Value::Object(kwargs)) => kwargs.get("tool_calls").filter(|raw| truthy(raw)),
            Some(_) => {
                return Err(Failures::one(
                    ErrorCode::MessageInvalid,
                    "/additional_kwargs",
                    "additional_kwargs must be an object",
                ));
            }
        };
        // What cannot be read as calls at all leaves the message without any.
        if class.chunk {
            if let Some(chunks) = raw.and_then(raw_chunks) {
                members.insert("tool_call_chunks".into(), Value::Array(chunks));
            }
        } else if let Some((calls, invalid)) = raw.and_then(raw_calls) {
            members.insert("tool_calls".into(), Value::Array(calls));
            members.insert("invalid_tool_calls".into(), Value::Array(invalid));
        }
    }
    rebuild(members, "tool_calls", &CALL)?;
    rebuild(members, "invalid_tool_calls", &INVALID_CALL)?;
    rebuild(members, "tool_call_chunks", &CALL_CHUNK)
}

/// The members that a call has: those it must have, all in order, those dropped without a word, and its type.
struct Shape {
    required: &'static [&'static str],
    members: &'static [&'static str],
    dropped: &'static [&'static str],
    type_name: &'static str,
}

const CALL: Shape = Shape {
    required: &["name", "args", "id"],
    members: &["name", "args", "id"],
    dropped: &["type", "extras"],
    type_name: "tool_call",
};

const INVALID_CALL: Shape = Shape {
    required: &[],
    members: &["name", "args", "id", "error"],
    dropped: &["type"],
    type_name: "invalid_tool_call",
};

const CALL_CHUNK: Shape = Shape {
    required: &[],
    members: &["name", "args", "id", "index"],
    dropped: &["type"],
    type_name: "tool_call_chunk",
};

fn rebuild(members: &mut Map<String, Value>, list: &str, shape: &Shape) -> Result<(), Failures> {
    let Some(value) = members.get_mut(list) else {
        return Ok(());
    };
    if !truthy(value) {
        return Ok(());
    }
    let Value::Array(calls) = value else {
        return Err(Failures::one(
            ErrorCode::MessageInvalid,
            format!("/{list}"),
            format!("{list} must be a list of objects"),
        ));
    };
    for (place, call) in calls.iter_mut().enumerate() {
        let path = format!("/{list}/{place}");
        let Value::Object(given) = call else {
            return Err(Failures::one(
                ErrorCode::MessageInvalid,
                path,
                format!("an entry of {list} must be an object"),
            ));
        };
        let known = |name: &str| shape.members.contains(&name) || shape.dropped.contains(&name);
        if let Some(name) = given.keys().find(|name| !known(name)) {
            let token = crate::protocol::json::pointer_token(name);
            return Err(Failures::one(
                ErrorCode::MessageExtra,
                format!("{path}/{token}"),
                format!("an entry of {list} has no member {name:?}"),
            ));
        }
        let missing = shape
            .required
            .iter()
            .find(|name| !given.contains_key(**name));
        if let Some(name) = missing {
            return Err(Failures::one(
                ErrorCode::MessageMember,
                format!("{path}/{name}"),
                format!("an entry of {list} needs the member {name}"),
            ));
        }
        let mut rebuilt = Map::new();
        for name in shape.members {
            let value = given.shift_remove(*name).unwrap_or(Value::Null);
            rebuilt.insert((*name).into(), value);
        }
        rebuilt.insert("type".into(), shape.type_name.into());
        *given = rebuilt;
    }
    Ok(())
}

/// Calls and invalid calls of `additional_kwargs.tool_calls`. Arguments that are no JSON make an invalid call; `None` when
/// an entry cannot be read as a call, which gives up on all of them.
///
/// Source: spec 6.1.
fn raw_calls(raw: &Value) -> Option<(Vec<Value>, Vec<Value>)> {
    let (mut calls, mut invalid) = (Vec::new(), Vec::new());
    for entry in raw_entries(raw)? {
        let Some(entry) = entry else { continue };
        let function = entry.get("function")?.as_object()?;
        let name = function.get("name")?;
        let arguments = function.get("arguments")?;
        let id = entry.get("id").cloned().unwrap_or(Value::Null);
        let mut call = Map::new();
        match parse(arguments.as_str()?, Strictness::Strict) {
            Ok(args) => {
                let or =
                    |value: &Value, other: Value| if truthy(value) { value.clone() } else { other };
                call.insert("name".into(), or(name, "".into()));
                call.insert("args".into(), or(&args, Map::new().into()));
                call.insert("id".into(), id);
                calls.push(Value::Object(call));
            }
            Err(_) => {
                call.insert("name".into(), name.clone());
                call.insert("args".into(), arguments.clone());
                call.insert("id".into(), id);
                call.insert("error".into(), Value::Null);
                invalid.push(Value::Object(call));
            }
        }
    }
    Some((calls, invalid))
}

/// Like [`raw_calls`], for chunks: the arguments stay text, and an entry without a function is a chunk too.
fn raw_chunks(raw: &Value) -> Option<Vec<Value>> {
    let mut chunks = Vec::new();
    for entry in raw.as_array()? {
        let entry = entry.as_object()?;
        let of_entry = |name: &str| entry.get(name).cloned().unwrap_or(Value::Null);
        let (name, args) = match entry.get("function") {
            None => (Value::Null, Value::Null),
            Some(function) => {
                let function = function.as_object()?;
                (
                    function.get("name")?.clone(),
                    function.get("arguments")?.clone(),
                )
            }
        };
        let mut chunk = Map::new();
        chunk.insert("name".into(), name);
        chunk.insert("args".into(), args);
        chunk.insert("id".into(), of_entry("id"));
        chunk.insert("index".into(), of_entry("index"));
        chunks.push(Value::Object(chunk));
    }
    Some(chunks)
}

/// Entries with a function, `None` for those without. The outer `None`: not a list of calls.
#[allow(
    clippy::type_complexity,
    reason = "one caller, which reads both levels at once"
)]
fn raw_entries(raw: &Value) -> Option<Vec<Option<&Map<String, Value>>>> {
    let Value::Array(entries) = raw else {
        // A text or an object has characters or names for entries: none has a function.
        return match raw {
            Value::String(_) | Value::Object(_) => Some(Vec::new()),
            _ => None,
        };
    };
    let of_entry = |entry: &'_ Value| match entry {
        Value::Object(_) => Some(()),
        Value::String(text) if !text.contains("function") => Some(()),
        Value::Array(items) if !items.iter().any(|item| item == "function") => Some(()),
        _ => None,
    };
    entries.iter().map(of_entry).collect::<Option<Vec<()>>>()?;
    let entries = entries.iter().map(|entry| {
        let entry = entry.as_object()?;
        entry.contains_key("function").then_some(entry)
    });
    Some(entries.collect())
}

/// Converts `tool_calls` of a message that is given as an object: entries in OpenAI's layout become calls, the others are
/// kept. Which ones were converted is told, for the paths of later failures.
///
/// # Errors
/// [`ErrorCode::ArgumentsSyntax`], [`ErrorCode::MessageMember`] or [`ErrorCode::MessageInvalid`].
///
/// Source: spec 7.6.
pub(super) fn convert(given: Value) -> Result<(Vec<Value>, Vec<bool>), Error> {
    let entries = match given {
        Value::Array(entries) => entries,
        // Python walks over the characters and the names.
        Value::String(text) => text.chars().map(|char| char.to_string().into()).collect(),
        Value::Object(members) => members.into_iter().map(|(name, _)| name.into()).collect(),
        _ => return Err(invalid("/tool_calls".into(), "tool_calls must be a list")),
    };
    let mut calls = Vec::with_capacity(entries.len());
    let mut converted = Vec::with_capacity(entries.len());
    for (place, entry) in entries.into_iter().enumerate() {
        let path = format!("/tool_calls/{place}");
        let has_function = match &entry {
            Value::Object(members) => members.contains_key("function"),
            Value::String(text) => text.contains("function"),
            Value::Array(items) => items.iter().any(|item| item == "function"),
            _ => return Err(invalid(path, "an entry of tool_calls must be an object")),
        };
        converted.push(has_function);
        calls.push(if has_function {
            convert_one(entry, &path)?
        } else {
            entry
        });
    }
    Ok((calls, converted))
}

fn convert_one(entry: Value, path: &str) -> Result<Value, Error> {
    let Value::Object(mut entry) = entry else {
        return Err(invalid(
            path.into(),
            "an entry of tool_calls must be an object",
        ));
    };
    let Some(Value::Object(mut function)) = entry.shift_remove("function") else {
        let path = format!("{path}/function");
        return Err(invalid(
            path,
            "the function of a tool call must be an object",
        ));
    };
    let missing = |name: &str| {
        let what = format!("a tool call in this layout needs {name}");
        Error::at(ErrorCode::MessageMember, format!("{path}/{name}"), what)
    };
    let arguments = function.shift_remove("arguments");
    let arguments = arguments.ok_or_else(|| missing("function/arguments"))?;
    let args = match arguments {
        Value::String(text) => parse(&text, Strictness::Lax).map_err(|fault| {
            Error::at(
                ErrorCode::ArgumentsSyntax,
                format!("{path}/function/arguments"),
                format!("the arguments are no JSON: {}", fault.describe(&text)),
            )
        })?,
        other => other,
    };
    let name = function
        .shift_remove("name")
        .ok_or_else(|| missing("function/name"))?;
    let id = entry.shift_remove("id").ok_or_else(|| missing("id"))?;
    let mut call = Map::new();
    call.insert("name".into(), name);
    call.insert("args".into(), args);
    call.insert("id".into(), id);
    call.insert("type".into(), "tool_call".into());
    Ok(Value::Object(call))
}

fn invalid(path: String, what: &str) -> Error {
    Error::at(ErrorCode::MessageInvalid, path, what)
}
