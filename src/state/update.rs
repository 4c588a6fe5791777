//! Placeholder until the state core lands: one set of channel writes.

use serde_json::Value;

use super::channels::Channel;
use crate::protocol::message::Message;

/// One set of channel writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateUpdate {
    /// The writes, in order.
    pub writes: Vec<(Channel, Write)>,
    /// Who wrote.
    pub writer: Option<String>,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// A value for the channel's reducer.
    Value(Value),
    /// Replaces the channel.
    Overwrite(Value),
    /// Typed messages.
    Messages(Vec<Message>),
}
