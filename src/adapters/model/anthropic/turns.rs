//! A transcript as turns of the messages format: roles that alternate, tool results first, no empty texts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::media::media;
use crate::adapters::model::calls::{answered_invalid_calls, repaired};
use crate::ports::model::ModelRequest;
use crate::protocol::hash::hex;
use crate::protocol::message::{Fields, Kind, Message, ToolStatus};
use crate::protocol::trust::SystemText;

/// Stands where a conversation begins with the model's own words, which the endpoint refuses.
const EARLIER: &str = "(The earlier part of this conversation is not shown.)";

/// What a request says: system text, and turns that begin with the user's and alternate.
pub(super) struct Conversation<'a> {
    pub(super) system: Vec<Block<'a>>,
    pub(super) turns: Vec<Turn<'a>>,
}

/// One turn.
pub(super) struct Turn<'a> {
    pub(super) role: Role,
    pub(super) blocks: Vec<Block<'a>>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
}

impl Role {
    /// The wire's word.
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// A content block on its way out.
pub(super) enum Block<'a> {
    Text(&'a str),
    /// As it stands in the message.
    Stored(&'a Map<String, Value>),
    Made(Map<String, Value>),
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Cow<'a, Map<String, Value>>,
        /// The block's `cache_control`.
        hint: Option<&'a Value>,
    },
    ToolResult {
        id: Cow<'a, str>,
        content: Vec<Block<'a>>,
        is_error: bool,
    },
}

/// The turns of a request.
///
/// System messages go to the system text wherever they stand. Neighbours of one role become one turn; in it the results of
/// tools come first. Blank texts and messages with nothing left are left out: the endpoint refuses them.
pub(super) fn turns(request: &ModelRequest) -> Conversation<'_> {
    let mut system: Vec<Block<'_>> = Vec::new();
    system.extend(
        request
            .system
            .as_ref()
            .map(SystemText::as_str)
            .and_then(text),
    );
    let mut turns: Vec<Turn<'_>> = Vec::new();
    if let Some(preamble) = &request.preamble {
        push(&mut turns, Role::User, content(&preamble.fields().content));
    }
    let messages = &request.messages;
    for (position, message) in messages.iter().enumerate() {
        let fields = message.fields();
        let later = &messages[position + 1..];
        match role(fields) {
            Speaker::System => {
                let blocks = content(&fields.content).into_iter();
                system.extend(blocks.filter(Block::is_text));
            }
            Speaker::User => push(&mut turns, Role::User, content(&fields.content)),
            Speaker::Tool => push(&mut turns, Role::User, vec![result(fields)]),
            Speaker::Assistant => push(&mut turns, Role::Assistant, assistant(fields, later)),
            Speaker::Nobody => {}
        }
    }
    for turn in &mut turns {
        // Stable, so that the rest stays in order.
        turn.blocks
            .sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
    }
    tell_calls_apart(&mut turns);
    if turns
        .first()
        .is_some_and(|turn| turn.role == Role::Assistant)
    {
        let blocks = vec![Block::Text(EARLIER)];
        turns.insert(
            0,
            Turn {
                role: Role::User,
                blocks,
            },
        );
    }
    if let Some(turn) = turns.last_mut()
        && turn.role == Role::Assistant
        && let Some(last) = turn.blocks.last_mut()
    {
        last.trim_end();
    }
    Conversation { system, turns }
}

/// Gives a call another id when an earlier turn has a call of its id, and its result too: the endpoint wants the ids of a
/// whole request to be unique, and models of other endpoints count their calls anew in each turn.
fn tell_calls_apart(turns: &mut [Turn<'_>]) {
    let mut times: HashMap<Cow<'_, str>, usize> = HashMap::new();
    let mut renamed: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
    for turn in turns {
        if turn.role == Role::Assistant {
            renamed.clear();
        }
        for block in &mut turn.blocks {
            match block {
                Block::ToolUse { id, .. } => {
                    let known = times.entry(id.clone()).or_default();
                    *known += 1;
                    let mut time = *known;
                    if time == 1 {
                        continue;
                    }
                    let other = loop {
                        let other: Cow<'_, str> = Cow::Owned(format!("{id}_{time}"));
                        if !times.contains_key(&other) {
                            times.insert(other.clone(), 1);
                            break other;
                        }
                        time += 1;
                    };
                    renamed.push((std::mem::replace(id, other.clone()), other));
                }
                Block::ToolResult { id, .. } => {
                    if let Some((_, other)) = renamed.iter().find(|(stored, _)| stored == id) {
                        *id = other.clone();
                    }
                }
                _ => {}
            }
        }
    }
}

enum Speaker {
    System,
    User,
    Assistant,
    Tool,
    Nobody,
}

fn role(fields: &Fields) -> Speaker {
    match fields.kind {
        Kind::System => Speaker::System,
        Kind::Human | Kind::Function => Speaker::User,
        Kind::Ai => Speaker::Assistant,
        Kind::Tool => Speaker::Tool,
        Kind::Remove => Speaker::Nobody,
        Kind::Chat => match fields.role.as_str() {
            "system" | "developer" => Speaker::System,
            "assistant" | "ai" => Speaker::Assistant,
            _ => Speaker::User,
        },
    }
}

fn push<'a>(turns: &mut Vec<Turn<'a>>, role: Role, blocks: Vec<Block<'a>>) {
    if blocks.is_empty() {
        return;
    }
    match turns.last_mut() {
        Some(turn) if turn.role == role => turn.blocks.extend(blocks),
        _ => turns.push(Turn { role, blocks }),
    }
}

impl Block<'_> {
    fn is_text(&self) -> bool {
        match self {
            Block::Text(_) => true,
            Block::Made(block) => block.get("type").is_some_and(|kind| kind == "text"),
            _ => false,
        }
    }

    /// Takes the white space off the end: the last words of the model may not end in it.
    fn trim_end(&mut self) {
        match self {
            Block::Text(text) => *text = text.trim_end(),
            Block::Made(block) => {
                if let Some(Value::String(text)) = block.get_mut("text") {
                    text.truncate(text.trim_end().len());
                }
            }
            _ => {}
        }
    }
}

/// A text block, unless the text is blank.
fn text(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text(text))
}

/// Content of a message that is not the model's.
fn content(content: &Value) -> Vec<Block<'_>> {
    match content {
        Value::String(plain) => text(plain).into_iter().collect(),
        Value::Array(blocks) => blocks.iter().filter_map(block).collect(),
        _ => Vec::new(),
    }
}

fn block(block: &Value) -> Option<Block<'_>> {
    let object = match block {
        Value::String(plain) => return text(plain),
        Value::Object(object) => object,
        _ => return None,
    };
    match kind(object) {
        "text" => text_block(object),
        "image" | "image_url" | "file" | "document" => {
            Some(media(object).map_or(Block::Stored(object), Block::Made))
        }
        _ => Some(Block::Stored(object)),
    }
}

/// The members of a text block that the endpoint knows.
fn text_block(object: &Map<String, Value>) -> Option<Block<'_>> {
    let plain = text(object.get("text")?.as_str()?)?;
    let more = ["cache_control", "citations"];
    let more = more.map(|name| (name, object.get(name).filter(|value| !value.is_null())));
    if more.iter().all(|(_, value)| value.is_none()) {
        return Some(plain);
    }
    let mut made = Map::new();
    made.insert("type".into(), "text".into());
    made.insert("text".into(), object.get("text").cloned()?);
    for (name, value) in more {
        if let Some(value) = value {
            made.insert(name.into(), value.clone());
        }
    }
    Some(Block::Made(made))
}

fn kind(object: &Map<String, Value>) -> &str {
    object.get("type").and_then(Value::as_str).unwrap_or("")
}

fn result(fields: &Fields) -> Block<'_> {
    Block::ToolResult {
        id: wire_id(&fields.tool_call_id),
        content: content(&fields.content),
        is_error: fields.status == ToolStatus::Error,
    }
}

/// What the model said and called, in its order.
///
/// Thinking goes back unchanged. The message's calls are what counts: a block of a call that is not among them is left out,
/// a call without a block comes last.
fn assistant<'a>(fields: &'a Fields, later: &[Message]) -> Vec<Block<'a>> {
    let invalid = answered_invalid_calls(fields, later);
    let mut written: HashSet<&str> = HashSet::new();
    let mut blocks = Vec::new();
    let list = match &fields.content {
        Value::Array(list) => list.as_slice(),
        Value::String(plain) => {
            blocks.extend(text(plain));
            &[]
        }
        _ => &[],
    };
    for value in list {
        let Value::Object(object) = value else {
            blocks.extend(block(value));
            continue;
        };
        match kind(object) {
            "tool_use" => {
                let id = object.get("id").and_then(Value::as_str).unwrap_or("");
                let call = fields
                    .tool_calls
                    .iter()
                    .find(|call| call.id.as_deref() == Some(id));
                if let Some(call) = call
                    && written.insert(id)
                {
                    blocks.push(Block::ToolUse {
                        id: wire_id(id),
                        name: &call.name,
                        input: Cow::Borrowed(&call.args),
                        hint: object.get("cache_control"),
                    });
                }
            }
            // Calls in the forms of others; the message has them as calls.
            "tool_call" | "function_call" | "input_json_delta" => {}
            "reasoning" => blocks.extend(signed_reasoning(object)),
            "reasoning_content" => {}
            "non_standard" => {
                let value = object.get("value").and_then(Value::as_object);
                blocks.extend(value.map(Block::Stored));
            }
            _ => blocks.extend(block(value)),
        }
    }
    for call in &fields.tool_calls {
        let id = call.id.as_deref().unwrap_or("");
        if written.insert(id) {
            blocks.push(Block::ToolUse {
                id: wire_id(id),
                name: &call.name,
                input: Cow::Borrowed(&call.args),
                hint: None,
            });
        }
    }
    for call in invalid {
        let id = call.id.as_deref().unwrap_or("");
        if written.insert(id) {
            let (name, args) = repaired(call);
            blocks.push(Block::ToolUse {
                id: wire_id(id),
                name,
                input: Cow::Owned(args),
                hint: None,
            });
        }
    }
    blocks
}

/// Reasoning in LangChain's common form, if the endpoint has vouched for it.
fn signed_reasoning(object: &Map<String, Value>) -> Option<Block<'_>> {
    let signature = object.get("extras")?.get("signature")?.as_str()?;
    let thinking = object.get("reasoning")?.as_str()?;
    let made = json!({"type": "thinking", "thinking": thinking, "signature": signature});
    match made {
        Value::Object(made) => Some(Block::Made(made)),
        _ => None,
    }
}

/// An id as the endpoint takes it: letters, digits, `_` and `-`. Ids of other endpoints hold more at times.
fn wire_id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let kept: String = id.chars().filter(|c| fits(*c)).take(40).collect();
    // Two ids that differ elsewhere only must not become one.
    let mark = hex(&Sha256::digest(id.as_bytes())[..6]);
    Cow::Owned(format!("{kept}_{mark}"))
}
