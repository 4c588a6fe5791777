//! The chat completions format as [`WireFormat`]: chunks of a stream, or one document.

use super::chunk::Chunk;
use super::merge::Merger;
use crate::adapters::model::lenient::Tree;
use crate::adapters::model::reply::{self, ReplyFault, WireFormat, not_of_format, reported};
use crate::adapters::model::surrogates;
use crate::ports::model::{ModelDelta, ModelReply};
use serde_json::Value;

/// Chunks of a chat completion.
///
/// A finish reason says that the reply is whole, and `[DONE]` where an endpoint gives no reason; `[DONE]` after nothing
/// at all does not (S19).
#[derive(Debug, Default)]
pub struct ChatCompletion {
    merger: Merger,
    has_marks: bool,
}

/// Reads the stream of one chat completion.
pub type ReplyStream = reply::ReplyStream<ChatCompletion>;

impl WireFormat for ChatCompletion {
    fn add(
        &mut self,
        name: &str,
        data: &str,
        deltas: &mut Vec<ModelDelta>,
    ) -> Result<(), ReplyFault> {
        if name == "error" {
            return Err(reported(data));
        }
        self.merger.expect(data.len());
        let marked = surrogates::mark(data);
        self.has_marks |= marked.is_some();
        let chunk = parse(marked.as_deref().unwrap_or(data))?;
        self.merger.add(chunk, deltas)
    }

    fn add_whole(&mut self, text: &str, deltas: &mut Vec<ModelDelta>) -> Result<(), ReplyFault> {
        self.merger.expect(text.len());
        let marked = surrogates::mark(text);
        self.has_marks |= marked.is_some();
        let chunk = parse(marked.as_deref().unwrap_or(text))?;
        if chunk.choices.is_empty() {
            return Err(ReplyFault::Format("the reply has no choices".to_owned()));
        }
        self.merger.add(chunk, deltas)
    }

    fn has_end_mark(&self, done: bool) -> bool {
        self.merger.has_end_mark() || done && !self.merger.is_empty()
    }

    fn is_done(&self) -> bool {
        false
    }

    fn is_empty(&self) -> bool {
        self.merger.is_empty()
    }

    fn size(&self) -> usize {
        self.merger.size()
    }

    fn finish(self, cut: bool) -> ModelReply {
        self.merger.finish(cut, self.has_marks)
    }
}

/// Reads a reply that came whole, as one JSON document.
///
/// # Errors
/// [`ReplyFault`].
pub fn read_whole(text: &str, deltas: &mut Vec<ModelDelta>) -> Result<ModelReply, ReplyFault> {
    reply::read_whole::<ChatCompletion>(text, deltas)
}

fn parse(text: &str) -> Result<Chunk<'_>, ReplyFault> {
    let mut chunk: Chunk<'_> = serde_json::from_str(text)
        .map_err(|error| not_of_format("chat completion", &error, text))?;
    match std::mem::take(&mut chunk.error) {
        Tree(Value::Null) => Ok(chunk),
        Tree(Value::String(text)) if text.is_empty() => Ok(chunk),
        Tree(error) => Err(ReplyFault::Reported(error)),
    }
}
