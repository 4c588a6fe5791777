//! One message-like value to one message (spec 7): text, pair, object, serialised object.

use serde_json::{Map, Value};

use super::class::Class;
use super::construct::construct;
use super::failure::Failures;
use super::tool_calls;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{Kind, Message};
use crate::state::python::truthy;

/// Converts one message-like value. The steps are in the order of the reference, so that of several faults the same one is
/// reported.
///
/// # Errors
/// See the table of [`super`]; paths point into `value`.
pub fn element(value: Value) -> Result<Message, Error> {
    match value {
        Value::String(text) => create("human".into(), text.into(), Map::new()),
        Value::Array(pair) => {
            let pair: [Value; 2] = pair.try_into().map_err(|_| {
                Error::new(
                    ErrorCode::NotAMessage,
                    "a message given as a list is a role and a content",
                )
            })?;
            let [role, content] = pair;
            create(role, content, Map::new()).map_err(|mut error| {
                let place = |path: String| {
                    path.replacen("/content", "/1", 1)
                        .replacen("/role", "/0", 1)
                };
                error.path = error.path.map(place);
                error
            })
        }
        Value::Object(members) => object(members),
        other => Err(Error::new(
            ErrorCode::NotAMessage,
            format!("{other} is no message: one is text, a role and a content, or an object"),
        )),
    }
}

fn object(mut members: Map<String, Value>) -> Result<Message, Error> {
    let mut prefix = String::new();
    while let Some(kind) = envelope(&members)? {
        let Some(Value::Object(inner)) = members.shift_remove("kwargs") else {
            break;
        };
        members = Map::new();
        members.insert("type".into(), kind.name().into());
        members.extend(inner);
        prefix.push_str("/kwargs");
    }
    let placed = |error: Error| {
        if prefix.is_empty() {
            error
        } else {
            error.below(&prefix)
        }
    };
    let by_type = !members.contains_key("role");
    let role = members.shift_remove(if by_type { "type" } else { "role" });
    let (Some(role), Some(content)) = (role, members.shift_remove("content")) else {
        return Err(placed(Error::new(
            ErrorCode::MessageIncomplete,
            "a message object needs role (or type) and content",
        )));
    };
    let content = if truthy(&content) { content } else { "".into() };
    create(role, content, members).map_err(|mut error| {
        if by_type && error.path.as_deref() == Some("/role") {
            error.path = Some("/type".into());
        }
        placed(error)
    })
}

/// The kind of a serialised object (`{"lc":1,"type":"constructor",…}`); `None` when it is none.
fn envelope(members: &Map<String, Value>) -> Result<Option<Kind>, Error> {
    let version = match members.get("lc") {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64() == Some(1.0),
        _ => false,
    };
    let is_constructor = members.get("type").and_then(Value::as_str) == Some("constructor");
    let id = members.get("id").and_then(Value::as_array);
    let (true, true, Some(id), Some(Value::Object(_))) =
        (version, is_constructor, id, members.get("kwargs"))
    else {
        return Ok(None);
    };
    match id.last() {
        Some(Value::String(name)) => Ok(Class::kind_of_envelope(name)),
        Some(Value::Array(_) | Value::Object(_)) => Err(Error::at(
            ErrorCode::UnknownRole,
            format!("/id/{}", id.len() - 1),
            "the class of a serialised message must be text",
        )),
        _ => Ok(None),
    }
}

/// The members of a message-like object apart from role and content, sorted into those of the class and the rest.
#[derive(Default)]
struct Parts {
    /// Members of the class, in the order in which the reference passes them on.
    members: Map<String, Value>,
    /// Everything else, when there is something.
    additional: Option<Map<String, Value>>,
    /// `tool_calls`, and which of them came in OpenAI's layout.
    calls: Option<(Vec<Value>, Vec<bool>)>,
}

fn create(role: Value, content: Value, rest: Map<String, Value>) -> Result<Message, Error> {
    if rest.contains_key("message_type") {
        return Err(Error::at(
            ErrorCode::MessageExtra,
            "/message_type",
            "a message has no member message_type",
        ));
    }
    let Parts {
        mut members,
        mut additional,
        calls,
    } = sort(rest)?;
    let role = match role {
        Value::String(role) => role,
        Value::Array(_) | Value::Object(_) => {
            return Err(Error::at(
                ErrorCode::UnknownRole,
                "/role",
                "a role must be text",
            ));
        }
        other => return Err(unknown_role(&other.to_string())),
    };
    let kind = match role.as_str() {
        "human" | "user" => Kind::Human,
        "ai" | "assistant" => Kind::Ai,
        "system" | "developer" => Kind::System,
        "function" => Kind::Function,
        "tool" => Kind::Tool,
        "remove" => Kind::Remove,
        other => return Err(unknown_role(&format!("{other:?}"))),
    };
    let mut take = |name: &str| additional.as_mut().and_then(|map| map.shift_remove(name));
    let mut example = None;
    match kind {
        Kind::Human | Kind::Ai => example = take("example").filter(truthy),
        Kind::Tool => {
            let (artifact, status) = (take("artifact"), take("status"));
            members.insert("artifact".into(), artifact.unwrap_or(Value::Null));
            if let Some(status) = status.filter(|status| !status.is_null()) {
                members.insert("status".into(), status);
            }
        }
        _ => {}
    }
    if role == "developer" {
        let additional = additional.get_or_insert_default();
        additional.insert("__openai_role__".into(), "developer".into());
    }
    if kind != Kind::Remove {
        members.insert("content".into(), content);
    }
    if let Some(additional) = additional {
        members.insert("additional_kwargs".into(), Value::Object(additional));
    }
    let converted = match calls {
        Some((calls, converted)) => {
            members.insert("tool_calls".into(), Value::Array(calls));
            converted
        }
        None => Vec::new(),
    };
    if let Some(example) = example {
        members.insert("example".into(), example);
    }
    let built = construct(Class::of(kind), members);
    built
        .and_then(super::Built::into_message)
        .map_err(|failures| located(failures, &converted).into())
}

/// Lifts the members of the class out of an object's members and collects the rest as additional ones.
fn sort(rest: Map<String, Value>) -> Result<Parts, Error> {
    let mut parts = Parts::default();
    let mut lifted = Map::new();
    let mut others = Map::new();
    for (name, value) in rest {
        match name.as_str() {
            "name" | "tool_call_id" | "tool_calls" | "id" => {
                lifted.insert(name, value);
            }
            _ => {
                others.insert(name, value);
            }
        }
    }
    let mut given = |name: &str| lifted.shift_remove(name).filter(|value| !value.is_null());
    for name in ["name", "tool_call_id"] {
        if let Some(value) = given(name) {
            parts.members.insert(name.into(), value);
        }
    }
    if !others.is_empty() {
        let metadata = others.shift_remove("response_metadata").filter(truthy);
        if let Some(metadata) = metadata {
            parts.members.insert("response_metadata".into(), metadata);
        }
        if let Some(nested) = others.shift_remove("additional_kwargs") {
            merge(&mut others, nested)?;
        }
        parts.additional = Some(others);
    }
    if let Some(id) = given("id") {
        parts.members.insert("id".into(), id);
    }
    if let Some(calls) = given("tool_calls") {
        parts.calls = Some(tool_calls::convert(calls)?);
    }
    Ok(parts)
}

/// Merges a nested `additional_kwargs` over the others, as Python's `dict.update` does: an object, or a list of pairs.
fn merge(others: &mut Map<String, Value>, nested: Value) -> Result<(), Error> {
    let wrong = |what: &str| Error::at(ErrorCode::MessageInvalid, "/additional_kwargs", what);
    let pairs = match nested {
        Value::Object(nested) => {
            others.extend(nested);
            return Ok(());
        }
        Value::Array(pairs) => pairs,
        Value::String(text) if text.is_empty() => return Ok(()),
        _ => return Err(wrong("additional_kwargs must be an object")),
    };
    for pair in pairs {
        let (name, value) = match pair {
            Value::Array(pair) => <[Value; 2]>::try_from(pair)
                .ok()
                .map(|[name, value]| (name, value)),
            Value::String(text) => {
                let mut chars = text.chars().map(|char| Value::from(char.to_string()));
                match (chars.next(), chars.next(), chars.next()) {
                    (Some(name), Some(value), None) => Some((name, value)),
                    _ => None,
                }
            }
            Value::Object(members) => {
                let mut names = members.into_iter().map(|(name, _)| Value::from(name));
                match (names.next(), names.next(), names.next()) {
                    (Some(name), Some(value), None) => Some((name, value)),
                    _ => None,
                }
            }
            _ => None,
        }
        .ok_or_else(|| wrong("additional_kwargs given as a list must hold pairs"))?;
        let name = match name {
            Value::String(name) => name,
            Value::Array(_) | Value::Object(_) => {
                return Err(wrong("a name in additional_kwargs must be text"));
            }
            other => crate::state::python::str_of(&other),
        };
        others.insert(name, value);
    }
    Ok(())
}

fn unknown_role(role: &str) -> Error {
    let roles = "human, user, ai, assistant, system, developer, tool, function or remove";
    Error::at(
        ErrorCode::UnknownRole,
        "/role",
        format!("unknown role {role}: use {roles}"),
    )
}

/// Points failures at where the input has the member: calls may come in OpenAI's layout, or from `additional_kwargs`.
fn located(mut failures: Failures, converted: &[bool]) -> Failures {
    for failure in &mut failures.0 {
        let rest = failure.path.strip_prefix("/tool_calls/");
        let Some((place, member)) = rest.and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        match place
            .parse::<usize>()
            .ok()
            .and_then(|place| converted.get(place))
        {
            Some(true) => {
                let member = match member {
                    "args" => "function/arguments",
                    "name" => "function/name",
                    other => other,
                };
                failure.path = format!("/tool_calls/{place}/{member}");
            }
            Some(false) => {}
            None => failure.path = "/additional_kwargs/tool_calls".into(),
        }
    }
    failures
}
