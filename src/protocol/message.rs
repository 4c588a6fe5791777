//! Messages: the classes, their canonical JSON, and the parts of it that code reads.
//!
//! A [`Message`] is its canonical JSON text (LangChain's `model_dump(mode="json")` layout) with its class and id read
//! out; the other members are decoded the first time someone asks. Threads hold, store and send messages without
//! decoding them.

use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock, OnceLock};

use hashbrown::DefaultHashBuilder;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::canonical::{self, Parts};
use super::error::{Error, ErrorCode};
use super::json::{self, push_members, push_quoted, push_value};
use super::scan::{self, Scanner};

/// The id that, in a removal, removes everything before it in the same write and all that was there.
pub const REMOVE_ALL_MESSAGES: &str = "__remove_all__";

/// The class of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// What a person wrote.
    Human,
    /// What a model wrote.
    Ai,
    /// Instructions.
    System,
    /// The result of a tool call.
    Tool,
    /// The result of a function call, in the older form.
    Function,
    /// A message of a free role.
    Chat,
    /// A command: remove the message of this id.
    Remove,
}

impl Kind {
    /// The `type` member of the canonical form.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Human => "human",
            Kind::Ai => "ai",
            Kind::System => "system",
            Kind::Tool => "tool",
            Kind::Function => "function",
            Kind::Chat => "chat",
            Kind::Remove => "remove",
        }
    }

    /// The class of a canonical `type` member.
    pub fn from_name(name: &str) -> Option<Kind> {
        Some(match name {
            "human" => Kind::Human,
            "ai" => Kind::Ai,
            "system" => Kind::System,
            "tool" => Kind::Tool,
            "function" => Kind::Function,
            "chat" => Kind::Chat,
            "remove" => Kind::Remove,
            _ => return None,
        })
    }
}

/// A call that a model asks for, with arguments that are an object.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ToolCall {
    /// Name of the tool.
    pub name: String,
    /// Arguments.
    pub args: Map<String, Value>,
    /// Id that the result answers; models leave it out at times.
    pub id: Option<String>,
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("args", &self.args)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", "tool_call")?;
        map.end()
    }
}

/// The name of a call that names no tool.
pub const UNKNOWN_TOOL: &str = "unknown_tool";

/// A call whose arguments are no JSON object. It is kept, and never executed.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct InvalidToolCall {
    /// Id that a result would answer.
    pub id: Option<String>,
    /// Name of the tool.
    pub name: Option<String>,
    /// The arguments as the model wrote them.
    pub args: Option<String>,
    /// What is wrong with them.
    pub error: Option<String>,
}

impl Serialize for InvalidToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("type", "invalid_tool_call")?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("args", &self.args)?;
        map.serialize_entry("error", &self.error)?;
        map.end()
    }
}

/// How a tool call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ToolStatus {
    /// The tool answered.
    #[default]
    Success,
    /// The tool failed, or was never run; the content says why.
    Error,
}

impl ToolStatus {
    /// The `status` member of the canonical form.
    pub const fn name(self) -> &'static str {
        match self {
            ToolStatus::Success => "success",
            ToolStatus::Error => "error",
        }
    }
}

/// The members of a message, decoded. Members that a class does not have stay at their defaults and are not written.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    /// Class.
    pub kind: Kind,
    /// Text, or a list of strings and content blocks.
    pub content: Value,
    /// What providers add to a message.
    pub additional_kwargs: Map<String, Value>,
    /// What providers say about a reply.
    pub response_metadata: Map<String, Value>,
    /// Who wrote it, or the name of the tool.
    pub name: Option<String>,
    /// Id within the thread.
    pub id: Option<String>,
    /// `ai`: calls to run.
    pub tool_calls: Vec<ToolCall>,
    /// `ai`: calls that cannot be run.
    pub invalid_tool_calls: Vec<InvalidToolCall>,
    /// `ai`: tokens used, as an object or null.
    pub usage_metadata: Value,
    /// `tool`: the call this answers.
    pub tool_call_id: String,
    /// `tool`: what the tool keeps for the host and not for the model.
    pub artifact: Value,
    /// `tool`: how the call went.
    pub status: ToolStatus,
    /// `chat`: the free role.
    pub role: String,
    /// Members outside the class, in order.
    pub extra: Map<String, Value>,
}

impl Fields {
    /// A message of `kind` with `content` and nothing else.
    pub fn new(kind: Kind, content: impl Into<Value>) -> Self {
        Fields {
            kind,
            content: content.into(),
            additional_kwargs: Map::new(),
            response_metadata: Map::new(),
            name: None,
            id: None,
            tool_calls: Vec::new(),
            invalid_tool_calls: Vec::new(),
            usage_metadata: Value::Null,
            tool_call_id: String::new(),
            artifact: Value::Null,
            status: ToolStatus::Success,
            role: String::new(),
            extra: Map::new(),
        }
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("content", &self.content)?;
        map.serialize_entry("additional_kwargs", &self.additional_kwargs)?;
        map.serialize_entry("response_metadata", &self.response_metadata)?;
        map.serialize_entry("type", self.kind.name())?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("id", &self.id)?;
        match self.kind {
            Kind::Ai => {
                map.serialize_entry("tool_calls", &self.tool_calls)?;
                map.serialize_entry("invalid_tool_calls", &self.invalid_tool_calls)?;
                map.serialize_entry("usage_metadata", &self.usage_metadata)?;
            }
            Kind::Tool => {
                map.serialize_entry("tool_call_id", &self.tool_call_id)?;
                map.serialize_entry("artifact", &self.artifact)?;
                map.serialize_entry("status", self.status.name())?;
            }
            Kind::Chat => map.serialize_entry("role", &self.role)?,
            Kind::Human | Kind::System | Kind::Function | Kind::Remove => {}
        }
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// Hash of a message id, for indexes. The seed is random for each process, so that ids cannot be made to collide; nothing
/// that can be observed depends on it.
pub(crate) fn hash_id(id: &str) -> u64 {
    static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);
    HASHER.hash_one(id)
}

/// Where the id stands in the text of a message. Offsets fit: no text is larger than 1 GiB.
#[derive(Clone, Debug, PartialEq)]
enum IdAt {
    /// There is no `id` member.
    Missing,
    /// `null`, from this byte on.
    Null(u32),
    /// The id as it is, between quotes: first byte and the byte after the last.
    Plain(u32, u32),
    /// The id has escapes: where they stand, without the quotes, and the id itself.
    Escaped(u32, u32, Box<str>),
}

struct Inner {
    kind: Kind,
    id: IdAt,
    /// [`hash_id`] of the id, computed while the text is at hand: a fold over many messages then need not read their texts.
    id_hash: u64,
    json: Box<str>,
    fields: OnceLock<Box<Fields>>,
}

/// One message of a thread. Cheap to clone, never changed.
#[derive(Clone)]
pub struct Message(Arc<Inner>);

impl Message {
    /// Makes a message of its members.
    pub fn new(fields: Fields) -> Self {
        let (json, id_at) = write_fields(&fields);
        let message = Message::from_written(fields.kind, json, Some(id_at));
        // The members are at hand; whoever asks first need not decode them.
        let _ = message.0.fields.set(Box::new(fields));
        message
    }

    /// Reads one message in canonical form.
    ///
    /// # Errors
    /// [`ErrorCode::MessageInvalid`], [`ErrorCode::MessageMember`] or [`ErrorCode::UnknownRole`] when `value` is not in
    /// canonical form.
    pub fn from_canonical(value: Value) -> Result<Self, Error> {
        Ok(Message::new(decode_fields(value)?))
    }

    /// Reads one message in canonical form from its text, without decoding it.
    ///
    /// # Errors
    /// Those of [`Message::from_canonical`], and those of the scanner when the text is no JSON.
    pub fn from_canonical_text(text: &str) -> Result<Self, Error> {
        let mut scanner = Scanner::new(text);
        let parts = canonical::inspect(&mut scanner)?;
        scanner.end()?;
        Message::from_parts(&parts)
    }

    /// Makes a message of text that [`canonical::inspect`] has passed.
    ///
    /// # Errors
    /// As [`Message::from_canonical`], for text that has to be decoded to be understood.
    pub(crate) fn from_parts(parts: &Parts<'_>) -> Result<Self, Error> {
        if parts.untidy {
            let value =
                json::decode_own(parts.json).map_err(|error| json::syntax(parts.json, &error))?;
            return Message::from_canonical(value);
        }
        Ok(Message::from_written(
            parts.kind,
            parts.json.to_owned(),
            parts.id_at,
        ))
    }

    /// Takes canonical text. `kind` must be what it says, and `id_at` the place where the value of its `id` begins, if it
    /// has one.
    pub(crate) fn from_written(kind: Kind, json: String, id_at: Option<usize>) -> Self {
        let id = match id_at {
            None => IdAt::Missing,
            Some(at) if json.as_bytes().get(at) == Some(&b'"') => {
                let raw = scan::string_at(&json, at);
                // Text is at most 1 GiB long.
                let (start, end) = (at as u32 + 1, (at + 1 + raw.raw.len()) as u32);
                if raw.escaped {
                    IdAt::Escaped(start, end, raw.text().into())
                } else {
                    IdAt::Plain(start, end)
                }
            }
            Some(at) => IdAt::Null(at as u32),
        };
        let id_hash = match &id {
            IdAt::Missing | IdAt::Null(_) => 0,
            IdAt::Plain(start, end) => hash_id(&json[*start as usize..*end as usize]),
            IdAt::Escaped(_, _, id) => hash_id(id),
        };
        Message(Arc::new(Inner {
            kind,
            id,
            id_hash,
            json: json.into_boxed_str(),
            fields: OnceLock::new(),
        }))
    }

    /// Class.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Id within the thread; `None` only before a fold has given one.
    pub fn id(&self) -> Option<&str> {
        match &self.0.id {
            IdAt::Missing | IdAt::Null(_) => None,
            IdAt::Plain(start, end) => self.0.json.get(*start as usize..*end as usize),
            IdAt::Escaped(_, _, id) => Some(id),
        }
    }

    /// Whether it has an id; unlike [`Message::id`] this does not look at the text.
    pub(crate) fn has_id(&self) -> bool {
        matches!(self.0.id, IdAt::Plain(..) | IdAt::Escaped(..))
    }

    /// [`hash_id`] of the id; 0 without one.
    pub(crate) fn id_hash(&self) -> u64 {
        self.0.id_hash
    }

    /// Canonical JSON text.
    pub fn json(&self) -> &str {
        &self.0.json
    }

    /// The members, decoded the first time.
    pub fn fields(&self) -> &Fields {
        self.0.fields.get_or_init(|| {
            // The text was checked when the message was made.
            let value = json::decode_own(&self.0.json).unwrap_or(Value::Null);
            let fields = decode_fields(value)
                .unwrap_or_else(|_| Fields::new(self.0.kind, Value::String(String::new())));
            Box::new(fields)
        })
    }

    /// The same message under another id. The text is copied around the id, not decoded.
    pub fn with_id(&self, id: &str) -> Self {
        let json = &self.0.json;
        let (start, end) = match &self.0.id {
            IdAt::Missing => {
                let mut fields = self.fields().clone();
                fields.id = Some(id.to_owned());
                return Message::new(fields);
            }
            IdAt::Null(at) => (*at as usize, *at as usize + "null".len()),
            IdAt::Plain(start, end) | IdAt::Escaped(start, end, _) => {
                (*start as usize - 1, *end as usize + 1)
            }
        };
        let mut text = String::with_capacity(json.len() + id.len() + 2);
        text.push_str(&json[..start]);
        push_quoted(&mut text, id);
        text.push_str(&json[end..]);
        Message::from_written(self.0.kind, text, Some(start))
    }

    /// The text of the content: the string, or the text blocks joined.
    pub fn text(&self) -> String {
        content_text(&self.fields().content)
    }

    /// Whether two messages are the same object, not only equal.
    pub fn same(&self, other: &Message) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.same(other) || self.fields() == other.fields()
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.json)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        // The text is passed on; a value is built only by serializers that build values.
        let raw: &RawValue = serde_json::from_str(&self.0.json).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Appends `value` as JSON.
fn push_json<T: Serialize + ?Sized>(out: &mut String, value: &T) {
    // Values of ours have string keys and finite numbers, so that writing them to memory cannot fail.
    out.push_str(&serde_json::to_string(value).expect("values of a message always serialise"));
}

/// The canonical text of `fields`, and where the value of `id` begins.
fn write_fields(fields: &Fields) -> (String, usize) {
    let mut out = String::with_capacity(256);
    let mut member = |name: &str, value: &dyn Fn(&mut String)| {
        out.push(if out.is_empty() { '{' } else { ',' });
        push_quoted(&mut out, name);
        out.push(':');
        let at = out.len();
        value(&mut out);
        at
    };
    fn or_null(out: &mut String, text: &Option<String>) {
        match text {
            Some(text) => push_quoted(out, text),
            None => out.push_str("null"),
        }
    }
    fn list<T: Serialize>(out: &mut String, items: &[T]) {
        match items {
            [] => out.push_str("[]"),
            items => push_json(out, items),
        }
    }
    member("content", &|out| push_value(out, &fields.content));
    member("additional_kwargs", &|out| {
        push_members(out, &fields.additional_kwargs)
    });
    member("response_metadata", &|out| {
        push_members(out, &fields.response_metadata)
    });
    member("type", &|out| push_quoted(out, fields.kind.name()));
    member("name", &|out| or_null(out, &fields.name));
    let id_at = member("id", &|out| or_null(out, &fields.id));
    match fields.kind {
        Kind::Ai => {
            member("tool_calls", &|out| list(out, &fields.tool_calls));
            member("invalid_tool_calls", &|out| {
                list(out, &fields.invalid_tool_calls)
            });
            member("usage_metadata", &|out| {
                push_value(out, &fields.usage_metadata)
            });
        }
        Kind::Tool => {
            member("tool_call_id", &|out| {
                push_quoted(out, &fields.tool_call_id)
            });
            member("artifact", &|out| push_value(out, &fields.artifact));
            member("status", &|out| push_quoted(out, fields.status.name()));
        }
        Kind::Chat => {
            member("role", &|out| push_quoted(out, &fields.role));
        }
        Kind::Human | Kind::System | Kind::Function | Kind::Remove => {}
    }
    for (name, value) in &fields.extra {
        member(name, &|out| push_value(out, value));
    }
    out.push('}');
    (out, id_at)
}

/// The text of a content value: the string itself, or its strings and text blocks joined without a separator.
pub fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| match block {
                Value::String(text) => Some(text.as_str()),
                Value::Object(block) => match (block.get("type"), block.get("text")) {
                    (Some(Value::String(kind)), Some(Value::String(text))) if kind == "text" => {
                        Some(text.as_str())
                    }
                    _ => None,
                },
                _ => None,
            })
            .collect(),
        _ => String::new(),
    }
}

fn decode_fields(value: Value) -> Result<Fields, Error> {
    let Value::Object(mut map) = value else {
        return Err(Error::new(
            ErrorCode::MessageInvalid,
            "a message must be an object",
        ));
    };
    let wrong = |member: &str, expected: &str| {
        Error::at(
            ErrorCode::MessageInvalid,
            format!("/{member}"),
            format!("{member} must be {expected}"),
        )
    };
    let kind = match map.shift_remove("type") {
        Some(Value::String(name)) => Kind::from_name(&name).ok_or_else(|| {
            Error::at(
                ErrorCode::UnknownRole,
                "/type",
                format!("unknown message type {name:?}"),
            )
        })?,
        _ => return Err(wrong("type", "the name of a message class")),
    };
    let content = match map.shift_remove("content") {
        Some(content @ (Value::String(_) | Value::Array(_))) => content,
        None if kind == Kind::Remove => Value::String(String::new()),
        _ => return Err(wrong("content", "text or a list of content blocks")),
    };
    let mut fields = Fields::new(kind, content);
    let mut object = |member: &str| match map.shift_remove(member) {
        Some(Value::Object(object)) => Ok(object),
        None | Some(Value::Null) => Ok(Map::new()),
        Some(_) => Err(wrong(member, "an object")),
    };
    fields.additional_kwargs = object("additional_kwargs")?;
    fields.response_metadata = object("response_metadata")?;
    let text = |member: &str, value: Option<Value>| match value {
        Some(Value::String(text)) => Ok(Some(text)),
        None | Some(Value::Null) => Ok(None),
        Some(_) => Err(wrong(member, "text or null")),
    };
    fields.name = text("name", map.shift_remove("name"))?;
    fields.id = text("id", map.shift_remove("id"))?;
    match kind {
        Kind::Ai => {
            fields.tool_calls = match map.shift_remove("tool_calls") {
                Some(Value::Array(calls)) => calls
                    .into_iter()
                    .map(decode_tool_call)
                    .collect::<Option<_>>()
                    .ok_or_else(|| wrong("tool_calls", "a list of calls with name, args and id"))?,
                None | Some(Value::Null) => Vec::new(),
                Some(_) => return Err(wrong("tool_calls", "a list")),
            };
            fields.invalid_tool_calls = match map.shift_remove("invalid_tool_calls") {
                Some(Value::Array(calls)) => calls
                    .into_iter()
                    .map(decode_invalid_tool_call)
                    .collect::<Option<_>>()
                    .ok_or_else(|| wrong("invalid_tool_calls", "a list of objects"))?,
                None | Some(Value::Null) => Vec::new(),
                Some(_) => return Err(wrong("invalid_tool_calls", "a list")),
            };
            fields.usage_metadata = map.shift_remove("usage_metadata").unwrap_or(Value::Null);
        }
        Kind::Tool => {
            fields.tool_call_id = text("tool_call_id", map.shift_remove("tool_call_id"))?
                .ok_or_else(|| {
                    Error::at(
                        ErrorCode::MessageMember,
                        "/tool_call_id",
                        "a tool message needs tool_call_id",
                    )
                })?;
            fields.artifact = map.shift_remove("artifact").unwrap_or(Value::Null);
            fields.status = match map.shift_remove("status") {
                None | Some(Value::Null) => ToolStatus::Success,
                Some(Value::String(status)) if status == "success" => ToolStatus::Success,
                Some(Value::String(status)) if status == "error" => ToolStatus::Error,
                Some(_) => return Err(wrong("status", "\"success\" or \"error\"")),
            };
        }
        Kind::Chat => {
            fields.role = text("role", map.shift_remove("role"))?.unwrap_or_default();
        }
        Kind::Human | Kind::System | Kind::Function | Kind::Remove => {}
    }
    fields.extra = map;
    Ok(fields)
}

fn decode_tool_call(value: Value) -> Option<ToolCall> {
    let Value::Object(mut map) = value else {
        return None;
    };
    let Some(Value::String(name)) = map.shift_remove("name") else {
        return None;
    };
    let Some(Value::Object(args)) = map.shift_remove("args") else {
        return None;
    };
    let id = match map.shift_remove("id") {
        Some(Value::String(id)) => Some(id),
        None | Some(Value::Null) => None,
        Some(_) => return None,
    };
    Some(ToolCall { name, args, id })
}

fn decode_invalid_tool_call(value: Value) -> Option<InvalidToolCall> {
    let Value::Object(mut map) = value else {
        return None;
    };
    let mut text = |member: &str| match map.shift_remove(member) {
        Some(Value::String(text)) => Some(Some(text)),
        None | Some(Value::Null) => Some(None),
        Some(_) => None,
    };
    Some(InvalidToolCall {
        id: text("id")?,
        name: text("name")?,
        args: text("args")?,
        error: text("error")?,
    })
}
