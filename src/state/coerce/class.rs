//! The thirteen message classes of the reference, and a message as its constructor leaves it.

use serde_json::{Map, Value};

use super::construct::construct;
use super::failure::Failures;
use crate::protocol::message::{Fields, Kind, Message};

/// A message class; chunks are pieces of a streamed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// The class of the whole message.
    pub kind: Kind,
    /// Whether it is the chunk class beside it.
    pub chunk: bool,
}

const KINDS: [(Kind, &str, &str); 7] = [
    (Kind::Human, "HumanMessage", "HumanMessageChunk"),
    (Kind::Ai, "AIMessage", "AIMessageChunk"),
    (Kind::System, "SystemMessage", "SystemMessageChunk"),
    (Kind::Chat, "ChatMessage", "ChatMessageChunk"),
    (Kind::Function, "FunctionMessage", "FunctionMessageChunk"),
    (Kind::Tool, "ToolMessage", "ToolMessageChunk"),
    (Kind::Remove, "RemoveMessage", ""),
];

impl Class {
    /// The class of whole messages of a kind.
    pub const fn of(kind: Kind) -> Class {
        Class { kind, chunk: false }
    }

    /// The class of a `type` member: `ai`, `AIMessageChunk`. Role names such as `user` are none.
    pub fn from_type(name: &str) -> Option<Class> {
        if let Some(kind) = Kind::from_name(name) {
            return Some(Class::of(kind));
        }
        let (kind, ..) = KINDS
            .iter()
            .find(|(.., chunk)| *chunk == name && !name.is_empty())?;
        Some(Class {
            kind: *kind,
            chunk: true,
        })
    }

    /// The `type` member.
    pub fn type_name(self) -> &'static str {
        if self.chunk {
            self.class_name()
        } else {
            self.kind.name()
        }
    }

    /// The name of the class, as serialised objects say it: `AIMessage`.
    pub fn class_name(self) -> &'static str {
        let entry = KINDS.iter().find(|(kind, ..)| *kind == self.kind);
        let (_, whole, chunk) = entry.expect("every kind is listed");
        if self.chunk { chunk } else { whole }
    }

    /// The kind that the class name at the end of a serialised object's id stands for. Chat messages are not among them,
    /// and chunks stand for the whole message (spec 7.4a).
    pub(super) fn kind_of_envelope(name: &str) -> Option<Kind> {
        let found = KINDS
            .iter()
            .find(|(_, whole, chunk)| *whole == name || (*chunk == name && !name.is_empty()));
        found
            .map(|(kind, ..)| *kind)
            .filter(|kind| *kind != Kind::Chat)
    }
}

/// A message as its constructor leaves it: possibly a chunk, which a thread never holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Built {
    /// Class.
    pub class: Class,
    /// Members; `kind` is that of the class.
    pub fields: Fields,
    /// `AIMessageChunk`: pieces of tool calls, each with `name`, `args`, `id`, `index` and `type`.
    pub tool_call_chunks: Vec<Value>,
    /// `AIMessageChunk`: `"last"` or null.
    pub chunk_position: Value,
}

impl Built {
    /// The whole message. A chunk is built again as the class it is a piece of: checked again, without members outside the
    /// class and without its chunk members; everything else is taken as it is.
    ///
    /// # Errors
    /// What the constructor of the whole message refuses.
    ///
    /// Source: LangChain `message_chunk_to_message`, spec 10.
    pub fn into_message(self) -> Result<Message, Failures> {
        if !self.class.chunk {
            return Ok(Message::new(self.fields));
        }
        let mut members = declared(&self.fields);
        members.shift_remove("type");
        let whole = construct(Class::of(self.class.kind), members)?;
        Ok(Message::new(whole.fields))
    }

    /// The canonical form (`model_dump(mode="json")`); that of a chunk has its own type and members.
    pub fn canonical(&self) -> Value {
        let mut members = declared(&self.fields);
        members.insert("type".into(), self.class.type_name().into());
        if self.class.chunk && self.class.kind == Kind::Ai {
            members.insert(
                "tool_call_chunks".into(),
                Value::Array(self.tool_call_chunks.clone()),
            );
            members.insert("chunk_position".into(), self.chunk_position.clone());
        }
        members.extend(self.fields.extra.clone());
        Value::Object(members)
    }
}

/// The members that the class declares, in canonical order.
fn declared(fields: &Fields) -> Map<String, Value> {
    let mut plain = fields.clone();
    plain.extra = Map::new();
    match serde_json::to_value(&plain) {
        Ok(Value::Object(members)) => members,
        // Fields are written as an object, always.
        _ => Map::new(),
    }
}
