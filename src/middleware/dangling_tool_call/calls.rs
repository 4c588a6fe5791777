//! The calls of an ai message in the three forms that replies have them, each with an id, a name and arguments.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::middleware::reply::{RAW_CALLS, RAW_FUNCTION};
use crate::protocol::message::{Fields, InvalidToolCall, Message, ToolCall, UNKNOWN_TOOL};

/// Why a call of a message may have no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It names no tool.
    Nameless,
    /// Its arguments are no JSON object, and what the parser said.
    InvalidArguments(Option<String>),
    /// Nobody ran it to its end.
    Interrupted,
}

/// What is known of one call besides what the message says after the repair.
#[derive(Clone, Debug)]
pub(super) struct CallFacts {
    /// The id it had, when another stands in for it: it was none (MW-DNG-2), or that of a call before it.
    pub(super) stored_id: Option<String>,
    /// Why it may have no result.
    pub(super) cause: Cause,
}

/// The ai message with all its calls in one list, and what is known of each.
pub(super) struct SoundCalls {
    /// The message; the stored one where nothing was wrong with its calls.
    pub(super) message: Message,
    /// In the order of its calls.
    pub(super) facts: Vec<CallFacts>,
}

/// Whether an id is none.
pub(super) fn is_blank(id: &str) -> bool {
    id.trim().is_empty()
}

/// Whether all calls of a message are in one list, each with a name and an id of its own.
pub(super) fn are_sound(fields: &Fields) -> bool {
    let calls = &fields.tool_calls;
    fields.invalid_tool_calls.is_empty()
        && calls.iter().all(|call| {
            call.id.as_deref().is_some_and(|id| !is_blank(id)) && is_sound_name(&call.name)
        })
        && (calls.len() < 2 || {
            let ids: HashSet<&Option<String>> = calls.iter().map(|call| &call.id).collect();
            ids.len() == calls.len()
        })
        && (!calls.is_empty() || raw_calls(fields).is_empty())
}

/// The raw copies of calls, which count only where no other form of them is there (MW-DNG-1).
fn raw_calls(fields: &Fields) -> &[Value] {
    match fields.additional_kwargs.get(RAW_CALLS) {
        Some(Value::Array(raw)) if raw.iter().any(Value::is_object) => raw,
        _ => &[],
    }
}

/// Gives each call of the ai message at `index` an id, a name and arguments (MW-DNG-1, 2, 8, 9).
pub(super) fn sound_calls(message: &Message, index: usize) -> SoundCalls {
    let fields = message.fields();
    if are_sound(fields) {
        let facts = fields.tool_calls.iter().map(|_| CallFacts {
            stored_id: None,
            cause: Cause::Interrupted,
        });
        return SoundCalls {
            facts: facts.collect(),
            message: message.clone(),
        };
    }
    let mut fields: Fields = fields.clone();
    let stored = std::mem::take(&mut fields.tool_calls);
    let invalid = std::mem::take(&mut fields.invalid_tool_calls);
    let mut calls = Calls {
        index,
        ids: HashSet::new(),
        made: Vec::new(),
        facts: Vec::new(),
    };
    if stored.is_empty() && invalid.is_empty() {
        for (place, call) in raw_calls(&fields).iter().enumerate() {
            calls.add_raw(call, place);
        }
        fields.additional_kwargs.shift_remove(RAW_CALLS);
        fields.additional_kwargs.shift_remove(RAW_FUNCTION);
    }
    for (place, call) in stored.into_iter().enumerate() {
        calls.add("call", place, call.id, &call.name, Ok(call.args));
    }
    for (place, call) in invalid.into_iter().enumerate() {
        calls.add_invalid(call, place);
    }
    fields.tool_calls = calls.made;
    SoundCalls {
        message: Message::new(fields),
        facts: calls.facts,
    }
}

struct Calls {
    index: usize,
    /// Those that calls have so far.
    ids: HashSet<String>,
    made: Vec<ToolCall>,
    facts: Vec<CallFacts>,
}

impl Calls {
    fn add(
        &mut self,
        view: &str,
        place: usize,
        id: Option<String>,
        name: &str,
        args: Result<Map<String, Value>, Option<String>>,
    ) {
        let (id, stored_id) = match id {
            Some(id) if !is_blank(&id) && self.ids.insert(id.clone()) => (id, None),
            id => {
                let index = self.index;
                let made = format!("deerflow_synthetic_tool_call_{index}_{view}_{place}");
                (made, Some(id.unwrap_or_default()))
            }
        };
        let name = name.trim();
        let (args, cause) = match args {
            _ if name.is_empty() => (args.unwrap_or_default(), Cause::Nameless),
            Ok(args) => (args, Cause::Interrupted),
            Err(detail) => (Map::new(), Cause::InvalidArguments(detail)),
        };
        self.made.push(ToolCall {
            name: match name {
                "" => UNKNOWN_TOOL.to_owned(),
                name => name.to_owned(),
            },
            args,
            id: Some(id),
        });
        self.facts.push(CallFacts { stored_id, cause });
    }

    fn add_invalid(&mut self, call: InvalidToolCall, place: usize) {
        let parsed = call.args.as_deref().and_then(object_in);
        let name = call.name.unwrap_or_default();
        let args = parsed.ok_or(call.error);
        self.add("invalid", place, call.id, &name, args);
    }

    fn add_raw(&mut self, call: &Value, place: usize) {
        let Some(call) = call.as_object() else {
            return;
        };
        let function = call.get("function");
        let of_call = |name| {
            let inside = function.and_then(|function| function.get(name));
            inside.or_else(|| call.get(name))
        };
        let name = of_call("name").and_then(Value::as_str).unwrap_or_default();
        let args = match of_call("arguments") {
            Some(Value::Object(args)) => Ok(args.clone()),
            Some(Value::String(text)) => object_in(text).ok_or(None),
            _ => Err(None),
        };
        let id = call.get("id").and_then(Value::as_str).map(str::to_owned);
        self.add("raw", place, id, name, args);
    }
}

fn object_in(text: &str) -> Option<Map<String, Value>> {
    match crate::protocol::json::parse(text) {
        Ok(Value::Object(args)) => Some(args),
        _ => None,
    }
}

fn is_sound_name(name: &str) -> bool {
    !name.is_empty() && name.trim().len() == name.len()
}
