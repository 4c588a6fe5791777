//! What constructing a message of a class does: defaults, tool calls, validation of every member (spec 6).

use serde_json::{Map, Number, Value};

use super::class::{Built, Class};
use super::failure::{Failure, Failures};
use super::{chunks, tool_calls};
use crate::protocol::error::ErrorCode;
use crate::protocol::message::{Fields, InvalidToolCall, Kind, ToolCall, ToolStatus};
use crate::state::python::{number_of, str_of, truthy};

/// Constructs a message of `class` of its members. Members outside the class are kept as they are.
///
/// # Errors
/// Every wrong member, in the order of declaration. Tool calls that cannot be rebuilt, a tool message without
/// `tool_call_id` and a removal without `id` are found before the others and reported alone.
pub fn construct(class: Class, mut members: Map<String, Value>) -> Result<Built, Failures> {
    take_content_blocks(class, &mut members);
    match class.kind {
        Kind::Ai => tool_calls::prepare(class, &mut members)?,
        Kind::Tool => prepare_tool(&mut members)?,
        Kind::Remove => prepare_remove(&mut members)?,
        _ => {}
    }
    let mut check = Check {
        members,
        failures: Vec::new(),
    };
    let content = check.content();
    let mut fields = Fields::new(class.kind, content);
    fields.additional_kwargs = check.object("additional_kwargs");
    fields.response_metadata = check.object("response_metadata");
    check.type_of(class);
    fields.name = if class.kind == Kind::Function {
        Some(check.required_text("name"))
    } else {
        check.text("name")
    };
    fields.id = check.id();
    let mut tool_call_chunks = Vec::new();
    let mut chunk_position = Value::Null;
    match class.kind {
        Kind::Ai => {
            fields.tool_calls = check.tool_calls();
            fields.invalid_tool_calls = check.invalid_tool_calls();
            fields.usage_metadata = check.usage();
            if class.chunk {
                tool_call_chunks = check.tool_call_chunks();
                chunk_position = check.chunk_position();
            }
        }
        Kind::Tool => {
            fields.tool_call_id = check.required_text("tool_call_id");
            fields.artifact = check.take("artifact").unwrap_or(Value::Null);
            fields.status = check.status();
        }
        Kind::Chat => fields.role = check.required_text("role"),
        Kind::Human | Kind::System | Kind::Function | Kind::Remove => {}
    }
    if !check.failures.is_empty() {
        return Err(Failures(check.failures));
    }
    fields.extra = check.members;
    let mut built = Built {
        class,
        fields,
        tool_call_chunks,
        chunk_position,
    };
    chunks::complete(&mut built);
    Ok(built)
}

/// `content_blocks` is another name of `content`; the tool calls among the blocks become tool calls unless some are given.
fn take_content_blocks(class: Class, members: &mut Map<String, Value>) {
    if class.kind == Kind::Remove {
        return;
    }
    let Some(blocks) = members.shift_remove("content_blocks") else {
        return;
    };
    if blocks.is_null() {
        return;
    }
    if class.kind == Kind::Ai && !members.contains_key("tool_calls") {
        let is_call =
            |block: &&Value| block.get("type").and_then(Value::as_str) == Some("tool_call");
        let calls: Vec<Value> = blocks
            .as_array()
            .into_iter()
            .flatten()
            .filter(is_call)
            .cloned()
            .collect();
        if !calls.is_empty() {
            members.insert("tool_calls".into(), Value::Array(calls));
        }
    }
    members.insert("content".into(), blocks);
}

/// A tool result may be anything; what is neither text nor a list becomes text.
fn prepare_tool(members: &mut Map<String, Value>) -> Result<(), Failures> {
    match members.get_mut("content") {
        Some(Value::String(_)) => {}
        Some(Value::Array(items)) => {
            for item in items {
                if !item.is_string() && !item.is_object() {
                    *item = Value::String(str_of(item));
                }
            }
        }
        Some(other) => *other = Value::String(str_of(other)),
        None => {
            members.insert("content".into(), "None".into());
        }
    }
    match members.get_mut("tool_call_id") {
        Some(id @ (Value::Number(_) | Value::Bool(_))) => *id = Value::String(str_of(id)),
        Some(_) => {}
        None => {
            return Err(Failures::one(
                ErrorCode::MessageMember,
                "/tool_call_id",
                "a tool message needs tool_call_id",
            ));
        }
    }
    Ok(())
}

/// A removal needs the id to remove and says nothing.
fn prepare_remove(members: &mut Map<String, Value>) -> Result<(), Failures> {
    if !members.contains_key("id") {
        return Err(Failures::one(
            ErrorCode::MessageMember,
            "/id",
            "a removal needs the id of the message to remove",
        ));
    }
    if members.get("content").is_some_and(truthy) {
        return Err(Failures::one(
            ErrorCode::MessageInvalid,
            "/content",
            "a removal has no content",
        ));
    }
    members.insert("content".into(), "".into());
    Ok(())
}

/// Takes members out one by one and collects what is wrong with them.
struct Check {
    members: Map<String, Value>,
    failures: Vec<Failure>,
}

impl Check {
    fn take(&mut self, member: &str) -> Option<Value> {
        self.members.shift_remove(member)
    }

    fn wrong(&mut self, path: String, what: &str) {
        self.failures.push(Failure {
            what: format!("{} must be {what}", &path[1..]),
            path,
            code: ErrorCode::MessageInvalid,
        });
    }

    fn missing(&mut self, path: String) {
        self.failures.push(Failure {
            what: format!("{} is missing", &path[1..]),
            path,
            code: ErrorCode::MessageMember,
        });
    }

    fn content(&mut self) -> Value {
        match self.take("content") {
            Some(Value::String(text)) => return Value::String(text),
            Some(Value::Array(items)) => {
                for (place, item) in items.iter().enumerate() {
                    if !item.is_string() && !item.is_object() {
                        self.wrong(format!("/content/{place}"), "text or an object");
                    }
                }
                return Value::Array(items);
            }
            _ => self.wrong("/content".into(), "text or a list of texts and objects"),
        }
        Value::Null
    }

    fn object(&mut self, member: &str) -> Map<String, Value> {
        match self.take(member) {
            Some(Value::Object(object)) => return object,
            Some(_) => self.wrong(format!("/{member}"), "an object"),
            None => {}
        }
        Map::new()
    }

    /// `type` may be given with the members; it must then be that of the class.
    fn type_of(&mut self, class: Class) {
        match self.take("type") {
            None => {}
            Some(Value::String(name)) if name == class.type_name() => {}
            Some(_) => self.wrong("/type".into(), &format!("{:?}", class.type_name())),
        }
    }

    fn text(&mut self, member: &str) -> Option<String> {
        match self.take(member) {
            Some(Value::String(text)) => return Some(text),
            Some(Value::Null) | None => {}
            Some(_) => self.wrong(format!("/{member}"), "text or null"),
        }
        None
    }

    fn required_text(&mut self, member: &str) -> String {
        match self.take(member) {
            Some(Value::String(text)) => return text,
            Some(_) => self.wrong(format!("/{member}"), "text"),
            None => self.missing(format!("/{member}")),
        }
        String::new()
    }

    fn id(&mut self) -> Option<String> {
        match self.take("id") {
            Some(Value::String(id)) => return Some(id),
            Some(Value::Number(number)) => return Some(number_of(&number)),
            Some(Value::Null) | None => {}
            Some(_) => self.wrong("/id".into(), "text, a number or null"),
        }
        None
    }

    fn status(&mut self) -> ToolStatus {
        match self.take("status") {
            None => return ToolStatus::Success,
            Some(Value::String(status)) if status == "success" => return ToolStatus::Success,
            Some(Value::String(status)) if status == "error" => return ToolStatus::Error,
            Some(_) => self.wrong("/status".into(), "\"success\" or \"error\""),
        }
        ToolStatus::Success
    }

    fn list(&mut self, member: &str) -> Vec<Value> {
        match self.take(member) {
            Some(Value::Array(items)) => return items,
            None => {}
            Some(_) => self.wrong(format!("/{member}"), "a list"),
        }
        Vec::new()
    }

    fn tool_calls(&mut self) -> Vec<ToolCall> {
        let calls = self.list("tool_calls");
        let check = |(place, call): (usize, Value)| {
            let mut part = Part::of(self, "tool_calls", place, call);
            ToolCall {
                name: part.text("name").unwrap_or_default(),
                args: part.object("args"),
                id: part.optional_text("id"),
            }
        };
        calls.into_iter().enumerate().map(check).collect()
    }

    fn invalid_tool_calls(&mut self) -> Vec<InvalidToolCall> {
        let calls = self.list("invalid_tool_calls");
        let check = |(place, call): (usize, Value)| {
            let mut part = Part::of(self, "invalid_tool_calls", place, call);
            InvalidToolCall {
                id: part.optional_text("id"),
                name: part.optional_text("name"),
                args: part.optional_text("args"),
                error: part.optional_text("error"),
            }
        };
        calls.into_iter().enumerate().map(check).collect()
    }

    fn tool_call_chunks(&mut self) -> Vec<Value> {
        let chunks = self.list("tool_call_chunks");
        for (place, chunk) in chunks.iter().enumerate() {
            let mut part = Part::of(self, "tool_call_chunks", place, chunk.clone());
            for member in ["name", "args", "id"] {
                part.optional_text(member);
            }
        }
        chunks
    }

    fn chunk_position(&mut self) -> Value {
        match self.take("chunk_position") {
            None | Some(Value::Null) => Value::Null,
            Some(Value::String(position)) if position == "last" => Value::String(position),
            Some(_) => {
                self.wrong("/chunk_position".into(), "\"last\" or null");
                Value::Null
            }
        }
    }

    /// Counts of tokens: declared ones first, as integers; the others as they are.
    fn usage(&mut self) -> Value {
        let mut given = match self.take("usage_metadata") {
            None | Some(Value::Null) => return Value::Null,
            Some(Value::Object(given)) => given,
            Some(_) => {
                self.wrong("/usage_metadata".into(), "an object or null");
                return Value::Null;
            }
        };
        let mut usage = Map::new();
        for member in ["input_tokens", "output_tokens", "total_tokens"] {
            let path = format!("/usage_metadata/{member}");
            match given.shift_remove(member) {
                Some(value) => {
                    let count = self.integer(path, &value);
                    usage.insert(member.into(), count);
                }
                None => self.missing(path),
            }
        }
        for (member, counts) in [
            (
                "input_token_details",
                ["audio", "cache_creation", "cache_read"].as_slice(),
            ),
            ("output_token_details", ["audio", "reasoning"].as_slice()),
        ] {
            let path = format!("/usage_metadata/{member}");
            match given.shift_remove(member) {
                None => {}
                Some(Value::Object(mut details)) => {
                    for count in counts {
                        if let Some(value) = details.get_mut(*count) {
                            *value = self.integer(format!("{path}/{count}"), value);
                        }
                    }
                    usage.insert(member.into(), Value::Object(details));
                }
                Some(_) => self.wrong(path, "an object"),
            }
        }
        usage.extend(given);
        Value::Object(usage)
    }

    /// An integer, also from text, from a number without fraction or from a boolean.
    fn integer(&mut self, path: String, value: &Value) -> Value {
        let integer = match value {
            Value::Number(number) if !number.is_f64() => Some(number.clone()),
            Value::Number(number) => {
                let float = number.as_f64().unwrap_or(f64::NAN);
                let whole = float.fract() == 0.0 && float.abs() < 9e15;
                whole.then(|| Number::from(float as i64))
            }
            Value::Bool(flag) => Some(Number::from(u8::from(*flag))),
            Value::String(text) => {
                let text = text.trim();
                let whole = match text.split_once('.') {
                    Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
                    _ => text,
                };
                whole.parse::<i64>().ok().map(Number::from)
            }
            _ => None,
        };
        match integer {
            Some(number) => Value::Number(number),
            None => {
                self.wrong(path, "an integer");
                Value::Null
            }
        }
    }
}

/// One entry of a list of calls.
struct Part<'a> {
    check: &'a mut Check,
    path: String,
    members: Map<String, Value>,
}

impl<'a> Part<'a> {
    fn of(check: &'a mut Check, list: &str, place: usize, entry: Value) -> Self {
        let path = format!("/{list}/{place}");
        let members = match entry {
            Value::Object(members) => members,
            _ => {
                check.wrong(path.clone(), "an object");
                Map::new()
            }
        };
        Part {
            check,
            path,
            members,
        }
    }

    fn text(&mut self, member: &str) -> Option<String> {
        match self.members.shift_remove(member) {
            Some(Value::String(text)) => return Some(text),
            _ => self.check.wrong(format!("{}/{member}", self.path), "text"),
        }
        None
    }

    fn optional_text(&mut self, member: &str) -> Option<String> {
        match self.members.shift_remove(member) {
            Some(Value::String(text)) => return Some(text),
            None | Some(Value::Null) => {}
            Some(_) => self
                .check
                .wrong(format!("{}/{member}", self.path), "text or null"),
        }
        None
    }

    fn object(&mut self, member: &str) -> Map<String, Value> {
        match self.members.shift_remove(member) {
            Some(Value::Object(object)) => return object,
            _ => self
                .check
                .wrong(format!("{}/{member}", self.path), "an object"),
        }
        Map::new()
    }
}
