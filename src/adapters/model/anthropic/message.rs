//! The messages format as [`WireFormat`]: events of a stream, or one message, into a reply.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::blocks::{Block, Finished, Kind};
use super::event::{self, Event};
use crate::adapters::model::calls::MAX_CALLS;
use crate::adapters::model::lenient::{Budget, Extra, Tree, each};
use crate::adapters::model::reply::{self, ReplyFault, WireFormat, not_of_format, reported};
use crate::adapters::model::surrogates;
use crate::ports::model::{ModelDelta, ModelReply, Usage};

/// Most content blocks of one reply.
const MAX_BLOCKS: usize = 1024;
/// Most members of the message that are kept.
const MAX_MEMBERS: usize = 64;

/// A message under construction.
///
/// Only `message_stop` says that it is whole. Events and blocks of kinds to come do no harm: such events are skipped,
/// such blocks are kept as they are.
#[derive(Debug, Default)]
pub struct Messages {
    blocks: Vec<Block>,
    calls: u32,
    /// Members of the message but its content and usage; the last value of each.
    members: Vec<(String, Box<RawValue>)>,
    /// The counts of tokens; the last word on each.
    usage: Map<String, Value>,
    is_whole: bool,
    /// Halves of characters were marked, and may stand in values.
    has_marks: bool,
    size: usize,
    budget: Budget,
}

/// Reads the stream of one message.
pub type ReplyStream = reply::ReplyStream<Messages>;

/// Reads a reply that came whole, as one JSON document.
///
/// # Errors
/// [`ReplyFault`].
pub fn read_whole(text: &str, deltas: &mut Vec<ModelDelta>) -> Result<ModelReply, ReplyFault> {
    reply::read_whole::<Messages>(text, deltas)
}

impl WireFormat for Messages {
    fn add(
        &mut self,
        name: &str,
        data: &str,
        deltas: &mut Vec<ModelDelta>,
    ) -> Result<(), ReplyFault> {
        match name {
            "error" => return Err(reported(data)),
            ""
            | "message"
            | "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop" => {}
            // Pings, and kinds to come.
            _ => return Ok(()),
        }
        self.budget.grow(data.len());
        let marked = surrogates::mark(data);
        self.has_marks |= marked.is_some();
        let text = marked.as_deref().unwrap_or(data);
        let event: Event<'_> = serde_json::from_str(text)
            .map_err(|error| not_of_format("event of a message", &error, text))?;
        self.add_event(name, event, data, deltas)
    }

    fn add_whole(&mut self, text: &str, deltas: &mut Vec<ModelDelta>) -> Result<(), ReplyFault> {
        self.budget.grow(text.len());
        let marked = surrogates::mark(text);
        self.has_marks |= marked.is_some();
        let json = marked.as_deref().unwrap_or(text);
        let message: event::Message<'_> =
            serde_json::from_str(json).map_err(|error| not_of_format("message", &error, json))?;
        let is_error = message.kind.as_str() == Some("error");
        if is_error || !message.error.0.is_null() {
            return Err(reported(text));
        }
        if message.content.is_none() {
            return Err(ReplyFault::Format("the message has no content".to_owned()));
        }
        self.add_message(message, deltas)?;
        self.is_whole = true;
        Ok(())
    }

    fn has_end_mark(&self, _: bool) -> bool {
        self.is_whole
    }

    fn is_done(&self) -> bool {
        self.is_whole
    }

    fn is_empty(&self) -> bool {
        self.blocks.iter().all(Block::is_empty)
    }

    fn size(&self) -> usize {
        self.size
    }

    /// The reply in the layout of LangChain's `ChatAnthropic`: plain text when it is one text block without citations,
    /// else the list of blocks in order, calls among them.
    fn finish(mut self, cut: bool) -> ModelReply {
        let mut reply = ModelReply::default();
        self.finish_members(&mut reply.response_metadata);
        let stop_reason = reply.response_metadata.get("stop_reason");
        let stopped_early = matches!(
            stop_reason.and_then(Value::as_str),
            Some("max_tokens" | "model_context_window_exceeded" | "refusal")
        );
        let last = self.blocks.len().saturating_sub(1);
        let mut content = Vec::new();
        for (place, block) in std::mem::take(&mut self.blocks).into_iter().enumerate() {
            let is_open = cut && !block.is_closed;
            match block.finish(is_open || stopped_early && place == last) {
                Finished::Nothing => {}
                Finished::Content(block) => content.push(block),
                Finished::Call(block, call) => {
                    content.push(block);
                    reply.tool_calls.push(call);
                }
                Finished::Invalid(call) => reply.invalid_tool_calls.push(call),
            }
        }
        reply.usage = read_usage(&self.usage);
        reply.content = match content.as_mut_slice() {
            [] => Value::String(String::new()),
            [Value::Object(block)] if is_plain_text(block) => block["text"].take(),
            _ => Value::Array(content),
        };
        if self.has_marks {
            surrogates::clean(&mut reply.content);
            let members = reply.response_metadata.values_mut();
            members.for_each(surrogates::clean);
        }
        reply
    }
}

impl Messages {
    fn add_event(
        &mut self,
        name: &str,
        event: Event<'_>,
        data: &str,
        deltas: &mut Vec<ModelDelta>,
    ) -> Result<(), ReplyFault> {
        let kind = event.kind.as_str().unwrap_or(name);
        match kind {
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.add_delta(event.index.number(), delta, deltas)?;
                }
            }
            "message_start" => {
                if let Some(message) = event.message {
                    self.add_message(message, deltas)?;
                }
            }
            "content_block_start" => {
                let label = event.index.number();
                self.begin(label, event.content_block.unwrap_or_default(), deltas)?;
            }
            "content_block_stop" => {
                if let Some(place) = self.place(event.index.number()) {
                    self.blocks[place].close(deltas);
                }
            }
            "message_delta" => {
                self.count(event.usage);
                event.extra.into_iter().for_each(|member| self.keep(member));
                let members = event.delta.map(|delta| delta.extra).unwrap_or_default();
                members.into_iter().for_each(|member| self.keep(member));
            }
            "message_stop" => {
                self.is_whole = true;
                let open = self.blocks.iter_mut().filter(|block| !block.is_closed);
                open.for_each(|block| block.close(deltas));
            }
            "error" => return Err(reported(data)),
            // Some endpoints report errors in the form of another format.
            _ if !event.error.0.is_null() => return Err(reported(data)),
            _ => {}
        }
        Ok(())
    }

    fn add_message(
        &mut self,
        message: event::Message<'_>,
        deltas: &mut Vec<ModelDelta>,
    ) -> Result<(), ReplyFault> {
        self.count(message.usage);
        message
            .extra
            .into_iter()
            .for_each(|member| self.keep(member));
        let Some(content) = message.content else {
            return Ok(());
        };
        let read = each(content.get(), |block| {
            self.begin(None, block, deltas)?;
            if let Some(block) = self.blocks.last_mut() {
                block.close(deltas);
            }
            Ok(())
        });
        read.map_err(|error| not_of_format("content of a message", &error, content.get()))?
    }

    fn begin(
        &mut self,
        label: Option<u64>,
        start: event::Block<'_>,
        deltas: &mut Vec<ModelDelta>,
    ) -> Result<(), ReplyFault> {
        let first = deltas.len();
        let block = Block::begin(label, start, &mut self.budget, deltas)?;
        self.size += deltas[first..].iter().map(delta_size).sum::<usize>();
        self.push(block, deltas)
    }

    fn push(&mut self, mut block: Block, deltas: &mut Vec<ModelDelta>) -> Result<(), ReplyFault> {
        if self.blocks.len() == MAX_BLOCKS {
            return Err(ReplyFault::TooLarge {
                what: "the number of content blocks",
                limit: MAX_BLOCKS,
            });
        }
        if block.kind == Kind::ToolUse {
            if self.calls as usize == MAX_CALLS {
                return Err(ReplyFault::TooLarge {
                    what: "the number of tool calls",
                    limit: MAX_CALLS,
                });
            }
            // A call without a name is announced to nobody: it cannot be run.
            if let Some((id, name)) = block.named() {
                block.call = Some(self.calls);
                deltas.push(ModelDelta::ToolCall {
                    index: self.calls,
                    id,
                    name: Some(name),
                    args: String::new(),
                });
            }
            self.calls += 1;
        }
        self.blocks.push(block);
        Ok(())
    }

    fn add_delta(
        &mut self,
        label: Option<u64>,
        delta: event::Delta<'_>,
        deltas: &mut Vec<ModelDelta>,
    ) -> Result<(), ReplyFault> {
        let place = match self.place(label) {
            Some(place) => place,
            None => {
                // A piece of a block that never began: its kind tells what the block is.
                let kind = match delta.kind.as_str() {
                    Some("thinking_delta" | "signature_delta") => "thinking",
                    Some("input_json_delta") => "tool_use",
                    _ => "text",
                };
                self.push(Block::empty(label, kind), deltas)?;
                self.blocks.len() - 1
            }
        };
        self.size += self.blocks[place].add(delta, &mut self.budget, deltas)?;
        Ok(())
    }

    /// The block of a label; without a label the last one.
    fn place(&self, label: Option<u64>) -> Option<usize> {
        match label {
            None => self.blocks.len().checked_sub(1),
            Some(_) => self.blocks.iter().rposition(|block| block.label == label),
        }
    }

    /// Counts are cumulative: the last word on each counts, and null says nothing.
    fn count(&mut self, usage: Tree) {
        if let Tree(Value::Object(usage)) = usage {
            for (name, value) in usage {
                let is_known = self.usage.contains_key(&name);
                if !value.is_null() && (is_known || self.usage.len() < MAX_MEMBERS) {
                    self.usage.insert(name, value);
                }
            }
        }
    }

    fn keep(&mut self, (name, value): Extra<'_>) {
        if value.get() == "null" {
            return;
        }
        let room = self.members.len() < MAX_MEMBERS;
        match self.members.iter_mut().find(|(known, _)| *known == name) {
            Some((_, kept)) => {
                self.size = (self.size + value.get().len()).saturating_sub(kept.get().len());
                *kept = value.to_owned();
            }
            None if room => {
                self.size += name.len() + value.get().len();
                self.members.push((name.into_owned(), value.to_owned()));
            }
            None => {}
        }
    }

    /// Writes what the endpoint says about the message, and the names that LangChain adds.
    fn finish_members(&mut self, metadata: &mut Map<String, Value>) {
        for (name, value) in std::mem::take(&mut self.members) {
            if self.budget.take(value.get())
                && let Ok(value) = serde_json::from_str(value.get())
            {
                metadata.insert(name, value);
            }
        }
        if !self.usage.is_empty() {
            metadata.insert("usage".into(), Value::Object(self.usage.clone()));
        }
        if let Some(model) = metadata.get("model").cloned() {
            metadata.entry("model_name").or_insert(model);
        }
        metadata.insert("model_provider".into(), "anthropic".into());
    }
}

fn delta_size(delta: &ModelDelta) -> usize {
    match delta {
        ModelDelta::Text(text) | ModelDelta::Reasoning(text) => text.len(),
        ModelDelta::ToolCall { args, .. } => args.len(),
    }
}

fn is_plain_text(block: &Map<String, Value>) -> bool {
    block.len() == 2
        && block.get("type").is_some_and(|kind| kind == "text")
        && block.get("text").is_some_and(Value::is_string)
}

/// Reads the counts of tokens. The endpoint's `input_tokens` leaves out what went through its cache; ours does not.
fn read_usage(usage: &Map<String, Value>) -> Option<Usage> {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let (input, output) = (count("input_tokens"), count("output_tokens"));
    if input.is_none() && output.is_none() {
        return None;
    }
    let cache_read = count("cache_read_input_tokens");
    let cache_creation = count("cache_creation_input_tokens").or_else(|| {
        // By how long it is kept.
        let Some(Value::Object(kinds)) = usage.get("cache_creation") else {
            return None;
        };
        let counts = kinds.values().filter_map(Value::as_u64);
        Some(counts.fold(0, u64::saturating_add))
    });
    let input_tokens = [input, cache_read, cache_creation]
        .into_iter()
        .flatten()
        .fold(0, u64::saturating_add);
    let output_tokens = output.unwrap_or(0);
    let thought = |name: &str| usage.get("output_tokens_details")?.get(name)?.as_u64();
    Some(Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
        cache_read,
        cache_creation,
        reasoning: thought("thinking_tokens").or_else(|| thought("reasoning_tokens")),
    })
}
