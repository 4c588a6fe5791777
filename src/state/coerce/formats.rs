//! The three wire formats of the reference: the canonical form, `message_to_dict`, and serialised objects (`dumpd`).

use serde_json::{Map, Value, json};

use super::class::{Built, Class};
use super::construct::construct;
use super::failure::Failures;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::Kind;

/// A message given as a constructed object: `{"type": T, …members}`, T one of the thirteen class types.
///
/// # Errors
/// [`ErrorCode::UnknownRole`] for an unknown type, [`ErrorCode::NotAMessage`], and those of the constructor.
pub fn typed(value: Value) -> Result<Built, Error> {
    let Value::Object(mut members) = value else {
        return Err(Error::new(
            ErrorCode::NotAMessage,
            "a message is an object with type",
        ));
    };
    let class = class_of(members.shift_remove("type").as_ref())?;
    Ok(construct(class, members)?)
}

/// LangChain's `messages_from_dict` for one message: `{"type": T, "data": {…}}`.
///
/// # Errors
/// [`ErrorCode::UnknownRole`] for an unknown type (role names are none), [`ErrorCode::MessageMember`] without type or
/// data, and those of the constructor below `/data`.
pub fn from_dict(value: Value) -> Result<Built, Error> {
    let Value::Object(mut members) = value else {
        return Err(Error::new(
            ErrorCode::NotAMessage,
            "a message is an object with type and data",
        ));
    };
    let type_name = members.shift_remove("type");
    let data = match members.shift_remove("data") {
        Some(Value::Object(data)) => data,
        Some(_) => {
            return Err(Error::at(
                ErrorCode::MessageInvalid,
                "/data",
                "data must be an object",
            ));
        }
        None => {
            return Err(Error::at(
                ErrorCode::MessageMember,
                "/data",
                "data is missing",
            ));
        }
    };
    let class = class_of(type_name.as_ref())?;
    construct(class, data).map_err(|failures: Failures| Error::from(failures).below("/data"))
}

fn class_of(type_name: Option<&Value>) -> Result<Class, Error> {
    let Some(type_name) = type_name else {
        return Err(Error::at(
            ErrorCode::MessageMember,
            "/type",
            "type is missing",
        ));
    };
    type_name
        .as_str()
        .and_then(Class::from_type)
        .ok_or_else(|| {
            Error::at(
                ErrorCode::UnknownRole,
                "/type",
                format!("unknown message type {type_name}"),
            )
        })
}

/// `{"type": T, "data": <canonical form>}`.
pub fn to_dict(message: &Built) -> Value {
    json!({"type": message.class.type_name(), "data": message.canonical()})
}

/// The serialised object: only members that are required or differ from their defaults; members outside the class are left
/// out, and inner objects that look like serialised ones are wrapped.
pub fn to_serialised(message: &Built) -> Value {
    let mut kwargs = Map::new();
    let Value::Object(canonical) = message.canonical() else {
        return Value::Null;
    };
    for (name, value) in canonical {
        if message.fields.extra.contains_key(&name) {
            continue;
        }
        let always = matches!(
            name.as_str(),
            "content" | "type" | "tool_calls" | "invalid_tool_calls"
        ) || (message.class.kind == Kind::Tool
            && matches!(name.as_str(), "tool_call_id" | "status"));
        let is_default = match &value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        if always || !is_default {
            kwargs.insert(name, escape(value));
        }
    }
    json!({
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", message.class.class_name()],
        "kwargs": kwargs,
    })
}

fn escape(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let wrapped = members.len() == 1 && members.contains_key("__lc_escaped__");
            if members.contains_key("lc") || wrapped {
                return json!({"__lc_escaped__": members});
            }
            let members = members
                .into_iter()
                .map(|(name, value)| (name, escape(value)));
            Value::Object(members.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(escape).collect()),
        other => other,
    }
}
