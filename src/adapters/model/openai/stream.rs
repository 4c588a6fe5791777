//! A streamed reply: bytes in, deltas and the whole reply out. No I/O.

use serde_json::Value;

use super::chunk::{Chunk, Loose};
use super::merge::Merger;
use super::surrogates;
use crate::adapters::model::sse::SseParser;
use crate::ports::model::{ModelDelta, ModelReply};

/// Why a reply cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplyFault {
    /// The endpoint reports an error in the place of a reply; the value of its `error` member.
    #[error("the endpoint reports an error: {0}")]
    Reported(Value),
    /// What came is not what the wire format says.
    #[error("{0}")]
    Format(String),
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEnd {
    /// With its end mark, see [`ReplyStream::has_end_mark`].
    Whole(ModelReply),
    /// Without it; what had arrived.
    Cut(ModelReply),
    /// Without a single event, so it was no event stream.
    NoEvents,
}

/// Reads the stream of one reply.
///
/// The reply does not depend on how the bytes are cut into pieces. Each reply takes a reader of its own, so that
/// nothing of a failed attempt gets into the next.
#[derive(Debug, Default)]
pub struct ReplyStream {
    sse: SseParser,
    merger: Merger,
    deltas: Vec<ModelDelta>,
    events: usize,
    done: bool,
}

impl ReplyStream {
    /// A reader that has read nothing.
    pub fn new() -> Self {
        ReplyStream::default()
    }

    /// Takes a piece of the stream.
    ///
    /// # Errors
    /// [`ReplyFault`]; what came before the fault is in the deltas and in [`ReplyStream::partial`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), ReplyFault> {
        self.sse.feed(bytes);
        while !self.done {
            let event = match self.sse.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(()),
                Err(error) => return Err(ReplyFault::Format(error.to_string())),
            };
            self.events += 1;
            let data = event.data.trim_ascii();
            if data.is_empty() {
                continue;
            }
            if data.starts_with("[DONE]") {
                self.done = true;
                return Ok(());
            }
            add(&mut self.merger, data, event.name, &mut self.deltas)?;
        }
        Ok(())
    }

    /// The deltas since the last call.
    pub fn take_deltas(&mut self) -> std::vec::Drain<'_, ModelDelta> {
        self.deltas.drain(..)
    }

    /// Whether `[DONE]` was read: nothing can follow.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the reply is whole, though usage and `[DONE]` may follow.
    ///
    /// A finish reason says so, and `[DONE]` where an endpoint gives no reason; `[DONE]` after nothing at all does not.
    pub fn has_end_mark(&self) -> bool {
        self.merger.has_end_mark() || self.done && !self.merger.is_empty()
    }

    /// What has arrived so far, after a fault; `None` if that is nothing.
    pub fn partial(self) -> Option<ModelReply> {
        (!self.merger.is_empty()).then(|| self.merger.finish(true))
    }

    /// Takes the end of the stream. Deltas of a last event without a blank line are added to `deltas`.
    ///
    /// # Errors
    /// [`ReplyFault::Reported`] when the last event is an error of the endpoint.
    pub fn end(mut self, deltas: &mut Vec<ModelDelta>) -> Result<StreamEnd, ReplyFault> {
        if !self.done
            && let Ok(Some(event)) = self.sse.finish()
        {
            self.events += 1;
            let data = event.data.trim_ascii();
            if data.starts_with("[DONE]") {
                self.done = true;
            } else if !data.is_empty() {
                match add(&mut self.merger, data, event.name, &mut self.deltas) {
                    // An event that was cut is no fault of the format; the missing end mark tells.
                    Ok(()) | Err(ReplyFault::Format(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        deltas.append(&mut self.deltas);
        Ok(if self.has_end_mark() {
            StreamEnd::Whole(self.merger.finish(false))
        } else if self.events == 0 {
            StreamEnd::NoEvents
        } else {
            StreamEnd::Cut(self.merger.finish(true))
        })
    }
}

/// Reads a reply that came whole, as one JSON document.
///
/// # Errors
/// [`ReplyFault`].
pub fn read_whole(text: &str, deltas: &mut Vec<ModelDelta>) -> Result<ModelReply, ReplyFault> {
    let marked = surrogates::mark(text);
    let chunk = parse(marked.as_deref().unwrap_or(text))?;
    if chunk.choices.is_empty() {
        return Err(ReplyFault::Format("the reply has no choices".to_owned()));
    }
    let mut merger = Merger::default();
    merge(&mut merger, chunk, deltas)?;
    Ok(merger.finish(false))
}

fn add(
    merger: &mut Merger,
    data: &str,
    name: &str,
    deltas: &mut Vec<ModelDelta>,
) -> Result<(), ReplyFault> {
    if name == "error" {
        let value = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned()));
        return Err(ReplyFault::Reported(match value {
            Value::Object(mut object) => match object.shift_remove("error") {
                Some(error) if !error.is_null() => error,
                _ => Value::Object(object),
            },
            other => other,
        }));
    }
    let marked = surrogates::mark(data);
    merge(merger, parse(marked.as_deref().unwrap_or(data))?, deltas)
}

fn parse(text: &str) -> Result<Chunk<'_>, ReplyFault> {
    let mut chunk: Chunk<'_> = serde_json::from_str(text).map_err(|error| {
        let start: String = text.chars().take(80).collect();
        ReplyFault::Format(format!("no chat completion: {error}; it begins {start}"))
    })?;
    match std::mem::take(&mut chunk.error) {
        Loose::Null => Ok(chunk),
        Loose::Text(text) if text.is_empty() => Ok(chunk),
        Loose::Text(text) => Err(ReplyFault::Reported(Value::String(text.into_owned()))),
        Loose::Other(error) => Err(ReplyFault::Reported(error)),
    }
}

fn merge(
    merger: &mut Merger,
    chunk: Chunk<'_>,
    deltas: &mut Vec<ModelDelta>,
) -> Result<(), ReplyFault> {
    merger
        .add(chunk, deltas)
        .map_err(|_| ReplyFault::Format("the reply calls more than 1024 tools".to_owned()))
}
