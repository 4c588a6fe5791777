//! The contents of the tool messages that a tool's update writes, whatever form the messages are in.

use serde_json::Value;

use crate::protocol::message::{Kind, Message};
use crate::state::channels::Channel;
use crate::state::update::{StateUpdate, Write};

/// Puts what `rewrite` makes of the content of each tool message, in order, in its place; `None` leaves it as it is. Other
/// messages and other writes stay.
pub(super) fn rewrite_contents(
    update: &mut StateUpdate,
    rewrite: &mut dyn FnMut(&Value) -> Option<Value>,
) {
    for (channel, write) in &mut update.writes {
        if *channel != Channel::Messages {
            continue;
        }
        match write {
            Write::Messages(messages) => {
                let tools = messages.iter_mut();
                for message in tools.filter(|message| message.kind() == Kind::Tool) {
                    if let Some(content) = rewrite(&message.fields().content) {
                        *message = with_content(message, content);
                    }
                }
            }
            Write::Value(Value::Array(messages)) | Write::Overwrite(Value::Array(messages)) => {
                for message in messages {
                    rewrite_loose(message, rewrite);
                }
            }
            Write::Value(message) | Write::Overwrite(message) => rewrite_loose(message, rewrite),
        }
    }
}

/// The same message with another content.
pub(super) fn with_content(message: &Message, content: Value) -> Message {
    let mut fields = message.fields().clone();
    fields.content = content;
    Message::new(fields)
}

/// A message that was not read yet: by its `type` or `role`, dumped with its members under `data`, or a pair of role and
/// content.
fn rewrite_loose(message: &mut Value, rewrite: &mut dyn FnMut(&Value) -> Option<Value>) {
    let mut replace = |content: Option<&mut Value>| {
        if let Some(content) = content
            && let Some(new) = rewrite(content)
        {
            *content = new;
        }
    };
    match message {
        Value::Object(members) => {
            let is = |name: &str| members.get(name).and_then(Value::as_str) == Some("tool");
            if !is("type") && !is("role") {
                return;
            }
            replace(members.get_mut("content"));
            let data = members.get_mut("data");
            replace(data.and_then(|data| data.get_mut("content")));
        }
        Value::Array(pair) => {
            if let [Value::String(role), content] = pair.as_mut_slice()
                && role == "tool"
            {
                replace(Some(content));
            }
        }
        _ => {}
    }
}
