//! The reducers: how a write to a channel combines with what the channel holds.
//!
//! One file per reducer, on JSON values, because that is what hosts, tools and stores pass. Each follows the rules of
//! DeerFlow's function of the same name (`agents/thread_state.py`) to the letter, dynamic typing included, and takes
//! time linear in both values. Values are moved, not copied.
//!
//! Failures of the reference and their codes:
//!
//! | reference | code |
//! |---|---|
//! | `ValueError` of `merge_sandbox` | [`ErrorCode::SandboxConflict`] |
//! | `KeyError` | [`ErrorCode::EntryMember`] |
//! | `TypeError`, `AttributeError` | [`ErrorCode::EntryType`] |

use serde_json::Value;

use super::channels::Channel;
use super::python;
use crate::protocol::error::{Error, ErrorCode};

mod artifacts;
mod delegations;
mod goal;
mod promoted;
mod sandbox;
mod skill_context;
mod todos;
mod viewed_images;

pub use artifacts::merge_artifacts;
pub use delegations::{MAX_DELEGATIONS, TERMINAL_STATUSES, merge_delegations};
pub use goal::merge_goal;
pub use promoted::merge_promoted;
pub use sandbox::merge_sandbox;
pub use skill_context::{MAX_DESCRIPTION_CHARS, MAX_SKILLS, merge_skill_context};
pub use todos::merge_todos;
pub use viewed_images::merge_viewed_images;

/// A reducer: what a channel holds and one write to it give what the channel holds next.
///
/// An existing null is passed on as null; it is the channel, not the reducer, that knows of "missing".
pub type Reducer = fn(Value, Value) -> Result<Value, Fault>;

/// Every channel that has a reducer on values, in the order of the channels.
pub const REDUCERS: &[(Channel, Reducer)] = &[
    (Channel::Sandbox, merge_sandbox),
    (Channel::Artifacts, merge_artifacts),
    (Channel::Todos, merge_todos),
    (Channel::Goal, merge_goal),
    (Channel::ViewedImages, merge_viewed_images),
    (Channel::Promoted, merge_promoted),
    (Channel::Delegations, merge_delegations),
    (Channel::SkillContext, merge_skill_context),
];

/// The reducer of a channel; `None` for `messages`, which folds on its own types, and for last-value channels.
pub fn reducer(channel: Channel) -> Option<Reducer> {
    REDUCERS
        .iter()
        .find(|(known, _)| *known == channel)
        .map(|(_, reducer)| *reducer)
}

/// One call of a channel's reducer.
///
/// # Errors
/// The codes of the module's table, with a JSON pointer into `update`, or without one when `existing` is at fault (the
/// message then says where). [`ErrorCode::Unsupported`] for a channel without such a reducer.
pub fn reduce(channel: Channel, existing: Value, update: Value) -> Result<Value, Error> {
    let reducer = reducer(channel).ok_or_else(|| {
        Error::new(
            ErrorCode::Unsupported,
            format!("channel {:?} has no reducer on values", channel.name()),
        )
    })?;
    reducer(existing, update).map_err(Error::from)
}

/// Which of the two values of a reducer call is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What the channel held.
    Existing,
    /// What was written.
    Update,
}

/// The failure of a reducer call.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Fault {
    /// The value at fault.
    pub side: Side,
    /// What is wrong; its path is a JSON pointer into the value at fault, `""` for the whole of it.
    pub error: Error,
}

impl Fault {
    fn new(
        side: Side,
        code: ErrorCode,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Fault {
            side,
            error: Error::at(code, path, message),
        }
    }

    /// A value of a type that the reducer cannot take.
    fn wrong_type(side: Side, path: impl Into<String>, expected: &str, found: &Value) -> Self {
        Fault::new(
            side,
            ErrorCode::EntryType,
            path,
            format!("{expected} is needed here, not {}", kind_of(found)),
        )
    }

    /// An entry without a member that the reducer reads.
    fn missing(side: Side, entry: &str, member: &str) -> Self {
        Fault::new(
            side,
            ErrorCode::EntryMember,
            format!("{entry}/{member}"),
            format!("the member {member:?} is missing"),
        )
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        let mut error = fault.error;
        if fault.side == Side::Existing {
            // The caller's write is sound; a path would point into the wrong document.
            let place = error.path.take().unwrap_or_default();
            error.message = match place.as_str() {
                "" => format!("in the existing value: {}", error.message),
                place => format!("in the existing value at {place}: {}", error.message),
            };
        }
        error
    }
}

/// What a write does that needs no look at the existing value, so that nobody copies a value only to drop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortcut {
    /// The existing value stays as it is.
    Keep,
    /// The written value takes its place.
    Replace,
}

/// The shortcut of a write, where there is one. Always agrees with [`reduce`].
pub(super) fn shortcut(channel: Channel, update: &Value) -> Option<Shortcut> {
    match channel {
        Channel::Todos | Channel::Goal if !update.is_null() => Some(Shortcut::Replace),
        Channel::Todos | Channel::Goal | Channel::Sandbox if update.is_null() => {
            Some(Shortcut::Keep)
        }
        Channel::Promoted if !python::truthy(update) => Some(Shortcut::Keep),
        _ => None,
    }
}

/// A value's JSON type, for messages.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::super::channels::{CHANNELS, Semantics};
    use super::*;

    #[test]
    fn exactly_the_reduced_and_the_seeded_channels_have_a_reducer() {
        for (channel, name, semantics) in CHANNELS {
            let wanted = matches!(semantics, Semantics::Reduced | Semantics::Seeded);
            assert_eq!(reducer(*channel).is_some(), wanted, "{name}");
        }
    }

    #[test]
    fn a_channel_without_a_reducer_is_refused() {
        let error = reduce(Channel::Title, json!("a"), json!("b")).unwrap_err();
        assert_eq!(error.code, ErrorCode::Unsupported);
        assert!(error.message.contains("\"title\""));
    }

    #[test]
    fn a_shortcut_agrees_with_the_reducer() {
        let values = [
            json!(null),
            json!(false),
            json!(true),
            json!(0),
            json!(2.5),
            json!(""),
            json!("x"),
            json!([]),
            json!([1]),
            json!({}),
            json!({"sandbox_id": "s", "catalog_hash": "h", "names": ["a"]}),
        ];
        for (channel, _) in REDUCERS {
            for existing in &values {
                for update in &values {
                    let expected = match shortcut(*channel, update) {
                        Some(Shortcut::Keep) => existing,
                        Some(Shortcut::Replace) => update,
                        None => continue,
                    };
                    let result = reduce(*channel, existing.clone(), update.clone());
                    assert_eq!(result.as_ref(), Ok(expected), "{channel:?}");
                }
            }
        }
    }

    #[test]
    fn a_fault_of_the_existing_value_does_not_point_into_the_update() {
        let error = reduce(
            Channel::Delegations,
            json!([{"status": "failed"}]),
            json!([{"id": "a", "status": "failed"}]),
        )
        .unwrap_err();
        assert_eq!(error.code, ErrorCode::EntryMember);
        assert_eq!(error.path, None);
        assert!(
            error.message.contains("existing value at /0/id"),
            "{}",
            error.message
        );
    }
}
