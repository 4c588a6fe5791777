//! For the suite: what every request to a model must be, so that a scripted model refuses what an endpoint would.

use std::collections::HashSet;

use serde_json::Value;

use crate::ports::model::ModelRequest;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::Kind;

/// Refuses a request with a call without its result, a result without its call, a call without an id or a name, a reply that
/// says and calls nothing, or system text behind other messages.
pub(super) fn check(request: &ModelRequest) -> Result<(), Error> {
    let mut open: HashSet<&str> = HashSet::new();
    let mut is_past_system = request.preamble.is_some();
    for (place, message) in request.messages.iter().enumerate() {
        let wrong = |what: &str| {
            let text = format!("message {place} of the request: {what}");
            Err(Error::new(ErrorCode::ModelRequest, text))
        };
        let fields = message.fields();
        if message.kind() != Kind::Tool && !open.is_empty() {
            return wrong("the calls before it have no results");
        }
        match message.kind() {
            Kind::System if is_past_system => return wrong("system text behind other messages"),
            Kind::Tool if !open.remove(fields.tool_call_id.as_str()) => {
                return wrong("the result answers no call");
            }
            Kind::Ai => {
                for call in &fields.tool_calls {
                    let id = call.id.as_deref().unwrap_or_default();
                    if id.trim().is_empty() || call.name.trim().is_empty() {
                        return wrong("a call has no id or no name");
                    }
                    if !open.insert(id) {
                        return wrong("two calls have one id");
                    }
                }
                if !fields.invalid_tool_calls.is_empty() {
                    return wrong("a call has no arguments that could be sent");
                }
                let is_blank =
                    matches!(&fields.content, Value::String(text) if text.trim().is_empty());
                if is_blank && fields.tool_calls.is_empty() {
                    return wrong("it is blank");
                }
            }
            _ => {}
        }
        is_past_system |= message.kind() != Kind::System;
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::ModelRequest,
            "the last calls of the request have no results",
        )),
    }
}
