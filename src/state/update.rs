//! One state update: the writes of one hook, tool or host call, in order.

use serde_json::Value;

use super::channels::Channel;
use crate::protocol::message::Message;

/// One write to one channel.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Goes through the channel's reducer.
    Value(Value),
    /// Replaces the value.
    Overwrite(Value),
    /// Typed messages; `messages` only, never coerced.
    Messages(Vec<Message>),
}

/// Writes of one writer, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateUpdate {
    /// The writes.
    pub writes: Vec<(Channel, Write)>,
    /// Who writes, for error texts.
    pub writer: Option<String>,
}
