//! Coercion: every form of a message that the reference accepts, to a typed message.
//!
//! A write to `messages` is a list of message-likes, or one of them alone: text, `[role, content]`, an object with `role` (or
//! `type`) and `content`, or a serialised object (`{"lc":1,…}`). Coercion is lossy, as it is in the reference: feeding a
//! dumped AI message back moves `usage_metadata` and `invalid_tool_calls` into `additional_kwargs`. Threads hold typed
//! messages and never coerce twice.
//!
//! # Failures of the reference and codes here
//!
//! | reference | code |
//! | --- | --- |
//! | `ValueError` *Must specify non-null arguments* | `null_write`, text kept |
//! | `ValueError` *Attempting to delete a message* | `unknown_message_id`, text kept |
//! | `ValueError` *Message dict must contain* | `message_incomplete` |
//! | `ValueError` *Unexpected message type*, *Got unexpected message type*; `TypeError` *unhashable type* (a role or class name that is no text) | `unknown_role` |
//! | `NotImplementedError` (unsupported type, list that is no pair) | `not_a_message` |
//! | `JSONDecodeError` | `arguments_syntax` |
//! | `KeyError` of a member, `TypeError` *missing … argument*, first `ValidationError` entry `missing` | `message_member` |
//! | `TypeError` *unexpected keyword argument*, *multiple values for argument* | `message_extra` |
//! | any other `ValidationError`, `AttributeError`, `TypeError`, `ValueError` about a member | `message_invalid` |
//! | `TypeError` *object is not iterable* of the whole list | `wrong_type` |
//!
//! Paths point into what was written: `/2/content`. A constructor that finds several wrong members reports the first and
//! lists the others as causes.

mod arguments;
mod chunks;
mod class;
mod construct;
mod element;
mod failure;
mod formats;
pub(crate) mod text;
mod tool_calls;

use serde_json::Value;

pub use class::{Built, Class};
pub use construct::construct;
pub use element::element;
pub use failure::{Failure, Failures};
pub use formats::{from_dict, to_dict, to_serialised, typed};

pub use text::write_text;

use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::Message;

/// Coerces one write: a list of message-likes, or one alone. Ids are not given.
///
/// # Errors
/// Those of [`element()`], below the place in the list.
pub fn write(value: &Value) -> Result<Vec<Message>, Error> {
    match value {
        Value::Array(items) => elements(items.iter().cloned()),
        other => Ok(vec![element(other.clone())?]),
    }
}

/// LangChain's `convert_to_messages`: like [`write()`], except that the argument is walked over as Python would walk over it:
/// an object gives its names and a text its characters, each a human message.
///
/// # Errors
/// [`ErrorCode::WrongType`] when it cannot be walked over, and those of [`element()`].
pub fn convert(value: &Value) -> Result<Vec<Message>, Error> {
    match value {
        Value::Array(items) => elements(items.iter().cloned()),
        Value::Object(members) => elements(members.keys().map(|name| name.as_str().into())),
        Value::String(text) => elements(text.chars().map(|char| char.to_string().into())),
        _ => Err(Error::new(ErrorCode::WrongType, "messages must be a list")),
    }
}

fn elements(items: impl Iterator<Item = Value>) -> Result<Vec<Message>, Error> {
    let items = items
        .enumerate()
        .map(|(place, item)| element(item).map_err(|error| error.below(&format!("/{place}"))));
    items.collect()
}
