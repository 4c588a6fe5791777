//! State updates: writes to channels, in order, as a hook, a tool or the host makes them.

use serde_json::{Map, Value};

use super::channels::Channel;
use super::reducers;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;
use crate::protocol::message::Message;

/// The name by which a JSON write says that it replaces the channel's value; also the value of its `type` member.
pub const OVERWRITE: &str = "__overwrite__";

/// One write to one channel.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// A value that the channel combines with what it holds. Null is a value like any other.
    Value(Value),
    /// A value that takes the place of what the channel holds, past its reducer.
    Overwrite(Value),
    /// Messages that need no coercion any more; for `messages` only.
    Messages(Vec<Message>),
}

impl Write {
    /// Reads the JSON form of a write to `channel`.
    ///
    /// `{"__overwrite__": v}`, with no other member, and `{"type": "__overwrite__", "value": v}` are overwrites on
    /// `messages` and on channels with a reducer. Elsewhere they are values like any other: a channel that takes one
    /// write per step has nothing to overwrite. Source: LangGraph `Overwrite`, LG-5.
    pub fn decode(channel: Channel, value: Value) -> Self {
        if channel != Channel::Messages && reducers::reducer(channel).is_none() {
            return Write::Value(value);
        }
        match value {
            Value::Object(mut members) => match overwrite_member(&members) {
                Some(member) => {
                    Write::Overwrite(members.swap_remove(member).unwrap_or(Value::Null))
                }
                None => Write::Value(Value::Object(members)),
            },
            value => Write::Value(value),
        }
    }
}

/// The member that holds the value of an overwrite.
fn overwrite_member(members: &Map<String, Value>) -> Option<&'static str> {
    if members.len() == 1 && members.contains_key(OVERWRITE) {
        return Some(OVERWRITE);
    }
    let typed = members.get("type").and_then(Value::as_str) == Some(OVERWRITE);
    (typed && members.contains_key("value")).then_some("value")
}

/// Writes in the order in which they were made. A channel without a write is not touched, which is not the same as a
/// write of null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateUpdate {
    /// The writes, in order. One channel may be written several times.
    pub writes: Vec<(Channel, Write)>,
    /// Who wrote: a tool call id, a hook's name. Messages of conflicts name it.
    pub writer: Option<String>,
}

impl StateUpdate {
    /// The typed messages that it writes, in order.
    pub fn typed_messages(&self) -> impl Iterator<Item = &Message> {
        self.writes.iter().flat_map(|(_, write)| match write {
            Write::Messages(messages) => messages.as_slice(),
            Write::Value(_) | Write::Overwrite(_) => &[],
        })
    }

    /// Reads `{channel: value, …}`; see [`Write::decode`] for the values.
    ///
    /// # Errors
    /// [`ErrorCode::WrongType`] at `""` when `value` is no object, [`ErrorCode::UnknownChannel`] at `/<name>`. The
    /// reference logs unknown channels and drops them (LG-17); a host is told instead.
    pub fn decode(value: Value) -> Result<Self, Error> {
        let Value::Object(members) = value else {
            return Err(Error::at(
                ErrorCode::WrongType,
                "",
                "a state update must be an object of channels",
            ));
        };
        let mut update = StateUpdate::default();
        for (name, value) in members {
            let channel = Channel::from_name(&name).ok_or_else(|| {
                Error::at(
                    ErrorCode::UnknownChannel,
                    format!("/{}", pointer_token(&name)),
                    Channel::unknown(&name),
                )
            })?;
            update.writes.push((channel, Write::decode(channel, value)));
        }
        Ok(update)
    }

    /// An update that writes messages.
    pub fn messages(messages: Vec<Message>) -> Self {
        StateUpdate::default().and(Channel::Messages, Write::Messages(messages))
    }

    /// An update that writes one value.
    pub fn set(channel: Channel, value: impl Into<Value>) -> Self {
        StateUpdate::default().and(channel, Write::Value(value.into()))
    }

    /// An update that replaces one value.
    pub fn overwrite(channel: Channel, value: impl Into<Value>) -> Self {
        StateUpdate::default().and(channel, Write::Overwrite(value.into()))
    }

    /// The same update with one write more.
    pub fn and(mut self, channel: Channel, write: Write) -> Self {
        self.writes.push((channel, write));
        self
    }

    /// The same update under the name of who makes it.
    pub fn written_by(mut self, writer: impl Into<String>) -> Self {
        self.writer = Some(writer.into());
        self
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The writes with their writer, as a step takes them.
    pub fn entries(&self) -> impl Iterator<Item = (Channel, &Write, Option<&str>)> {
        self.writes
            .iter()
            .map(|(channel, write)| (*channel, write, self.writer.as_deref()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lg5_both_json_forms_of_an_overwrite_are_recognised() {
        for channel in ["messages", "todos", "artifacts", "goal"] {
            for marker in [
                json!({"__overwrite__": [1]}),
                json!({"type": "__overwrite__", "value": [1]}),
            ] {
                let update = StateUpdate::decode(json!({channel: marker})).unwrap();
                assert_eq!(
                    update.writes[0].1,
                    Write::Overwrite(json!([1])),
                    "{channel}"
                );
            }
        }
    }

    #[test]
    fn lg5_what_only_looks_like_an_overwrite_is_a_value() {
        for value in [
            json!({"__overwrite__": 1, "x": 2}),
            json!({"type": "__overwrite__"}),
            json!({"type": "overwrite", "value": 1}),
            json!({"type": ["__overwrite__"], "value": 1}),
            json!([{"__overwrite__": 1}]),
            json!("__overwrite__"),
        ] {
            let update = StateUpdate::decode(json!({"goal": value.clone()})).unwrap();
            assert_eq!(update.writes[0].1, Write::Value(value));
        }
    }

    #[test]
    fn an_overwrite_marker_on_a_last_value_channel_is_a_value() {
        let marker = json!({"__overwrite__": 1});
        for channel in ["title", "jump_to", "structured_response"] {
            let update = StateUpdate::decode(json!({channel: marker.clone()})).unwrap();
            assert_eq!(
                update.writes[0].1,
                Write::Value(marker.clone()),
                "{channel}"
            );
        }
    }

    #[test]
    fn absent_and_null_differ_and_order_is_kept() {
        let update =
            StateUpdate::decode(json!({"todos": null, "messages": null, "goal": 0})).unwrap();
        assert_eq!(
            update.writes,
            [
                (Channel::Todos, Write::Value(Value::Null)),
                (Channel::Messages, Write::Value(Value::Null)),
                (Channel::Goal, Write::Value(json!(0))),
            ]
        );
        assert!(StateUpdate::decode(json!({})).unwrap().is_empty());
    }

    #[test]
    fn bad_updates_are_refused_with_their_place() {
        let error = StateUpdate::decode(json!({"todos": 1, "a/b~c": 2})).unwrap_err();
        assert_eq!(error.code, ErrorCode::UnknownChannel);
        assert_eq!(error.path.as_deref(), Some("/a~1b~0c"));
        for value in [json!(null), json!([]), json!("todos")] {
            let error = StateUpdate::decode(value).unwrap_err();
            assert_eq!(error.code, ErrorCode::WrongType);
            assert_eq!(error.path.as_deref(), Some(""));
        }
    }
}
