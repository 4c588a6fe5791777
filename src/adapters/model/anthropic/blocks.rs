//! Content blocks under construction.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::event;
use crate::adapters::model::calls;
use crate::adapters::model::lenient::{BUDGET_BYTES, Budget, Extra, Loose};
use crate::adapters::model::reply::ReplyFault;
use crate::adapters::model::surrogates::Joined;
use crate::ports::model::ModelDelta;
use crate::protocol::message::{InvalidToolCall, ToolCall};

/// What a block is, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
    /// A call for us to run; calls that the endpoint runs itself are `Other`.
    ToolUse,
    /// Anything else goes into the message as it came, and back to the endpoint in the same form.
    Other,
}

/// One content block.
#[derive(Debug)]
pub(super) struct Block {
    /// The label that the endpoint joins its pieces by; not a position.
    pub(super) label: Option<u64>,
    pub(super) kind: Kind,
    /// The endpoint has said that nothing more comes.
    pub(super) is_closed: bool,
    /// Position among the calls of the reply.
    pub(super) call: Option<u32>,
    kind_name: String,
    id: Option<String>,
    name: Option<String>,
    /// Text, or thinking.
    text: Joined,
    /// Vouches for thinking.
    signature: Option<String>,
    /// Pieces of the input's JSON.
    args: Joined,
    /// The input's JSON as the block began with it.
    input: Option<String>,
    members: Map<String, Value>,
}

/// What a finished block adds to the reply.
pub(super) enum Finished {
    Nothing,
    Content(Value),
    Call(Value, ToolCall),
    Invalid(InvalidToolCall),
}

impl Block {
    /// A block with nothing in it.
    pub(super) fn empty(label: Option<u64>, kind_name: &str) -> Self {
        Block {
            label,
            kind: match kind_name {
                "text" => Kind::Text,
                "thinking" => Kind::Thinking,
                "tool_use" => Kind::ToolUse,
                _ => Kind::Other,
            },
            is_closed: false,
            call: None,
            kind_name: kind_name.to_owned(),
            id: None,
            name: None,
            text: Joined::default(),
            signature: None,
            args: Joined::default(),
            input: None,
            members: Map::new(),
        }
    }

    /// A block as it begins; its text, if it has some, goes to `out`.
    pub(super) fn begin(
        label: Option<u64>,
        start: event::Block<'_>,
        budget: &mut Budget,
        out: &mut Vec<ModelDelta>,
    ) -> Result<Self, ReplyFault> {
        let mut block = Block::empty(label, &start.kind.text().unwrap_or_default());
        block.id = start.id.text().map(Into::into);
        block.name = start.name.text().map(Into::into);
        block.input = start.input.and_then(input_text);
        for (name, value) in start.extra {
            match (block.kind, &*name) {
                (Kind::Text, "text") | (Kind::Thinking, "thinking") => {
                    block.add_text(loose(value), out);
                }
                (Kind::Thinking, "signature") => {
                    // Empty is what streams begin with; it stays if nothing else comes.
                    if let Loose::Text(signature) = loose(value) {
                        block.signature = Some(signature.into_owned());
                    }
                }
                _ => block.keep((name, value), budget)?,
            }
        }
        Ok(block)
    }

    /// Adds a piece; what is new goes to `out`. How many bytes were added, about.
    pub(super) fn add(
        &mut self,
        delta: event::Delta<'_>,
        budget: &mut Budget,
        out: &mut Vec<ModelDelta>,
    ) -> Result<usize, ReplyFault> {
        let before = self.size();
        match self.kind {
            Kind::Text => self.add_text(delta.text, out),
            Kind::Thinking => {
                self.add_text(delta.thinking, out);
                if let Some(signature) = delta.signature.text() {
                    // Whole each time, as the endpoint's own libraries read it.
                    self.signature = Some(signature.into_owned());
                }
            }
            Kind::ToolUse | Kind::Other => {
                if let Some(piece) = delta.partial_json.text() {
                    let new = self.args.push(&piece);
                    if let (Some(index), false) = (self.call, new.is_empty()) {
                        out.push(ModelDelta::ToolCall {
                            index,
                            id: None,
                            name: None,
                            args: new.to_owned(),
                        });
                    }
                }
            }
        }
        let mut more = 0;
        for (name, value) in delta.extra {
            more += value.get().len();
            if name == "citation" {
                self.add_citation(value.get(), budget)?;
            } else if self.kind == Kind::Other {
                self.append((name, value), budget)?;
            }
        }
        // A signature takes the place of the one before, which may have been longer.
        Ok(self.size().saturating_sub(before) + more)
    }

    /// The endpoint says that the block is whole.
    pub(super) fn close(&mut self, out: &mut Vec<ModelDelta>) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        // Arguments that came with the beginning were held back, because pieces would have replaced them.
        if let (Some(index), true, Some(input)) = (self.call, self.args.is_empty(), &self.input) {
            out.push(ModelDelta::ToolCall {
                index,
                id: None,
                name: None,
                args: input.clone(),
            });
        }
    }

    /// Id and name, of a call that can be announced.
    pub(super) fn named(&self) -> Option<(Option<String>, String)> {
        Some((self.id.clone(), self.name.clone()?))
    }

    /// Whether nothing is in it yet.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Thinking)
            && self.text.is_empty()
            && self.members.is_empty()
    }

    fn size(&self) -> usize {
        let signature = self.signature.as_ref().map_or(0, String::len);
        self.text.as_str().len() + self.args.as_str().len() + signature
    }

    /// `cut` says that the reply ended early and that this is where.
    pub(super) fn finish(self, cut: bool) -> Finished {
        let is_open = cut && !self.is_closed;
        let mut block = Map::new();
        block.insert("type".into(), self.kind_name.into());
        match self.kind {
            Kind::Text => {
                let text = self.text.finish();
                if text.is_empty() && self.members.is_empty() {
                    return Finished::Nothing;
                }
                block.insert("text".into(), text.into());
            }
            // Without its signature the endpoint would refuse it.
            Kind::Thinking if is_open => return Finished::Nothing,
            Kind::Thinking => {
                block.insert("thinking".into(), self.text.finish().into());
                if let Some(signature) = self.signature {
                    block.insert("signature".into(), signature.into());
                }
            }
            Kind::ToolUse => {
                let mut text = self.args.finish();
                if text.is_empty() {
                    text = self.input.unwrap_or_default();
                }
                return match calls::close(self.id, self.name, text, cut) {
                    Ok(call) => {
                        block.insert("id".into(), call.id.clone().into());
                        block.insert("name".into(), call.name.clone().into());
                        block.insert("input".into(), call.args.clone().into());
                        block.extend(self.members);
                        Finished::Call(block.into(), call)
                    }
                    Err(call) => Finished::Invalid(call),
                };
            }
            Kind::Other if is_open => return Finished::Nothing,
            Kind::Other => {
                for (name, text) in [("id", self.id), ("name", self.name)] {
                    if let Some(text) = text {
                        block.insert(name.into(), text.into());
                    }
                }
                let args = self.args.finish();
                let text = if args.is_empty() {
                    self.input
                } else {
                    Some(args)
                };
                if let Some(text) = text {
                    let input = serde_json::from_str(&text).unwrap_or(Value::String(text));
                    block.insert("input".into(), input);
                } else if block.contains_key("name") {
                    block.insert("input".into(), Map::new().into());
                }
            }
        }
        block.extend(self.members);
        Finished::Content(block.into())
    }

    fn add_text(&mut self, text: Loose<'_>, out: &mut Vec<ModelDelta>) {
        let Some(text) = text.text() else { return };
        let new = self.text.push(&text);
        if new.is_empty() {
            return;
        }
        // What is new is the piece itself as a rule, which need not be copied twice.
        let new = if new == text {
            text.into_owned()
        } else {
            new.to_owned()
        };
        out.push(if self.kind == Kind::Thinking {
            ModelDelta::Reasoning(new)
        } else {
            ModelDelta::Text(new)
        });
    }

    fn add_citation(&mut self, json: &str, budget: &mut Budget) -> Result<(), ReplyFault> {
        let citation = parse(json, budget)?;
        let list = self.members.entry("citations").or_insert(Value::Null);
        match list {
            Value::Array(list) => list.push(citation),
            other => *other = Value::Array(vec![citation]),
        }
        Ok(())
    }

    /// Keeps a member that the block began with; null says nothing.
    fn keep(&mut self, (name, value): Extra<'_>, budget: &mut Budget) -> Result<(), ReplyFault> {
        let value = parse(value.get(), budget)?;
        if !value.is_null() {
            self.members.insert(name.into_owned(), value);
        }
        Ok(())
    }

    /// Adds to a member of a block of a kind to come: text grows, anything else is replaced.
    fn append(&mut self, (name, value): Extra<'_>, budget: &mut Budget) -> Result<(), ReplyFault> {
        match (self.members.get_mut(&*name), parse(value.get(), budget)?) {
            (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
            (_, Value::Null) => {}
            (_, value) => {
                self.members.insert(name.into_owned(), value);
            }
        }
        Ok(())
    }
}

/// A member that should be text.
fn loose(raw: &RawValue) -> Loose<'_> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// A member as a value. Blocks go back to the endpoint as they came, so none of their members may be left out.
fn parse(json: &str, budget: &mut Budget) -> Result<Value, ReplyFault> {
    if !budget.take(json) {
        return Err(ReplyFault::TooLarge {
            what: "what a content block holds",
            limit: BUDGET_BYTES,
        });
    }
    // It was read once already, as raw text.
    Ok(serde_json::from_str(json).unwrap_or(Value::Null))
}

/// The input that a block begins with, as arguments text: an object, or text with one in it; `None` for an empty one.
fn input_text(raw: &RawValue) -> Option<String> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'n') => None,
        Some(b'"') => serde_json::from_str(text).ok(),
        Some(b'{') if text[1..].trim_start() == "}" => None,
        _ => Some(text.to_owned()),
    }
}
