//! A streamed reply in any wire format: bytes in, deltas and the whole reply out. No I/O.

use serde_json::Value;

use super::lenient::BUDGET_BYTES;
use super::sse::{MAX_EVENT_BYTES, SseParser};
use crate::ports::model::{ModelDelta, ModelReply};

/// Most bytes of one answer; a stream spends a few hundred on each token.
pub const MAX_ANSWER_BYTES: usize = 256 << 20;
/// Most bytes that are kept of one reply: text, reasoning, arguments, blocks. The longest replies of today's models
/// have about two million.
pub const MAX_REPLY_BYTES: usize = 64 << 20;

/// Bounds of one reply, in bytes. Memory stays below four times the input plus 1 MiB, whatever comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest event, and largest line of one.
    pub event: usize,
    /// Most that is kept.
    pub reply: usize,
    /// Most that is read.
    pub answer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            event: MAX_EVENT_BYTES,
            reply: MAX_REPLY_BYTES,
            answer: MAX_ANSWER_BYTES,
        }
    }
}

/// Why a reply cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplyFault {
    /// The endpoint reports an error in the place of a reply; the value of its `error` member.
    #[error("the endpoint reports an error: {0}")]
    Reported(Value),
    /// What came is not what the wire format says.
    #[error("{0}")]
    Format(String),
    /// More came than is taken.
    #[error("{what} is larger than {limit}")]
    TooLarge {
        /// What is too large: an event, the reply, the number of its calls.
        what: &'static str,
        /// The limit, in the unit of `what`; bytes unless it says otherwise.
        limit: usize,
    },
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

/// A wire format: what the events of a stream, or the one document of a whole reply, add up to.
pub trait WireFormat: Default + Send {
    /// Adds one event; what is new in it goes to `deltas`.
    ///
    /// # Errors
    /// [`ReplyFault`]; what was added before stays.
    fn add(
        &mut self,
        name: &str,
        data: &str,
        deltas: &mut Vec<ModelDelta>,
    ) -> Result<(), ReplyFault>;

    /// Adds a reply that came as one document.
    ///
    /// # Errors
    /// [`ReplyFault`].
    fn add_whole(&mut self, text: &str, deltas: &mut Vec<ModelDelta>) -> Result<(), ReplyFault>;

    /// Whether the reply is whole, though something may follow it. `done` says that `[DONE]` was read.
    fn has_end_mark(&self, done: bool) -> bool;

    /// Whether nothing can follow what was read.
    fn is_done(&self) -> bool;

    /// Whether nothing of a message has arrived.
    fn is_empty(&self) -> bool;

    /// How many bytes are kept, about.
    fn size(&self) -> usize;

    /// The reply. `cut` says that it did not come to its end, so that what is unfinished is not taken for whole.
    fn finish(self, cut: bool) -> ModelReply;
}

/// Reads the stream of one reply.
///
/// The reply does not depend on how the bytes are cut into pieces. Each reply takes a reader of its own, so that
/// nothing of a failed attempt gets into the next (S31).
#[derive(Debug, Default)]
pub struct ReplyStream<F> {
    sse: SseParser,
    format: F,
    deltas: Vec<ModelDelta>,
    limits: Limits,
    read: usize,
    events: usize,
    done: bool,
}

impl<F: WireFormat> ReplyStream<F> {
    /// A reader that has read nothing.
    pub fn new() -> Self {
        ReplyStream::with_limits(Limits::default())
    }

    /// A reader with bounds of its own.
    pub fn with_limits(limits: Limits) -> Self {
        ReplyStream {
            sse: SseParser::new(limits.event),
            format: F::default(),
            deltas: Vec::new(),
            limits,
            read: 0,
            events: 0,
            done: false,
        }
    }

    /// Takes a piece of the stream.
    ///
    /// # Errors
    /// [`ReplyFault`]; what came before the fault is in the deltas and in [`ReplyStream::partial`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), ReplyFault> {
        self.read += bytes.len();
        self.sse.feed(bytes);
        while !self.done {
            let event = match self.sse.next_event() {
                Ok(Some(event)) => event,
                Ok(None) if self.read > self.limits.answer => {
                    return Err(ReplyFault::TooLarge {
                        what: "the answer",
                        limit: self.limits.answer,
                    });
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    return Err(ReplyFault::TooLarge {
                        what: "an event of the stream",
                        limit: error.limit,
                    });
                }
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
            self.format.add(event.name, data, &mut self.deltas)?;
            self.done = self.format.is_done();
            if self.format.size() > self.limits.reply {
                return Err(ReplyFault::TooLarge {
                    what: "the reply",
                    limit: self.limits.reply,
                });
            }
        }
        Ok(())
    }

    /// The deltas since the last call.
    pub fn take_deltas(&mut self) -> std::vec::Drain<'_, ModelDelta> {
        self.deltas.drain(..)
    }

    /// Whether the last event was read: nothing can follow.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the reply is whole, though usage and a last mark may follow.
    pub fn has_end_mark(&self) -> bool {
        self.format.has_end_mark(self.done)
    }

    /// What has arrived so far, after a fault; `None` if that is nothing.
    pub fn partial(self) -> Option<ModelReply> {
        (!self.format.is_empty()).then(|| self.format.finish(true))
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
                match self.format.add(event.name, data, &mut self.deltas) {
                    Err(ReplyFault::Reported(error)) => return Err(ReplyFault::Reported(error)),
                    // An event that was cut is no fault of the format; the missing end mark tells.
                    Ok(()) | Err(_) => self.done = self.format.is_done(),
                }
            }
        }
        deltas.append(&mut self.deltas);
        Ok(if self.has_end_mark() {
            StreamEnd::Whole(self.format.finish(false))
        } else if self.events == 0 {
            StreamEnd::NoEvents
        } else {
            StreamEnd::Cut(self.format.finish(true))
        })
    }
}

/// Reads a reply that came whole, as one JSON document.
///
/// # Errors
/// [`ReplyFault`].
pub fn read_whole<F: WireFormat>(
    text: &str,
    deltas: &mut Vec<ModelDelta>,
) -> Result<ModelReply, ReplyFault> {
    let mut format = F::default();
    format.add_whole(text, deltas)?;
    Ok(format.finish(false))
}

/// The error that an `error` event carries: the value of its `error` member, or all of it.
pub(super) fn reported(data: &str) -> ReplyFault {
    let start = || Value::String(data.chars().take(1000).collect());
    if weight(data) > BUDGET_BYTES + 2 * data.len() {
        return ReplyFault::Reported(start());
    }
    let value = serde_json::from_str(data).unwrap_or_else(|_| start());
    ReplyFault::Reported(match value {
        Value::Object(mut object) => match object.shift_remove("error") {
            Some(error) if !error.is_null() => error,
            _ => Value::Object(object),
        },
        other => other,
    })
}

/// That a document is not of the format, with its beginning.
pub(super) fn not_of_format(what: &str, error: &serde_json::Error, text: &str) -> ReplyFault {
    let start: String = text.chars().take(80).collect();
    ReplyFault::Format(format!("no {what}: {error}; it begins {start}"))
}

/// About how many bytes one value takes in a list that grew to hold it, or in an object.
const VALUE_BYTES: usize = 150;

/// About how many bytes a JSON text takes once it is a [`Value`]: dense lists take many times their length.
pub(super) fn weight(json: &str) -> usize {
    let parts = memchr::memchr3_iter(b',', b'[', b'{', json.as_bytes()).count();
    json.len() + VALUE_BYTES * parts
}
