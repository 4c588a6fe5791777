//! Results of calls that are not made because a guard says so.

use serde_json::{Map, Value};

use super::tool_result_class::{ERROR_PREFIX, TOOL_META};
use crate::ports::tool::{ToolAnswer, ToolOutcome};
use crate::protocol::message::ToolStatus;

/// An error result that says `text` to the model, with its class: a guard outside of the handling of errors stamps its own
/// results.
pub(super) fn refused(text: &str, class: Value) -> ToolOutcome {
    refused_as(format!("{ERROR_PREFIX} {text}"), class)
}

/// The same with another beginning than other errors have.
pub(super) fn refused_as(content: String, class: Value) -> ToolOutcome {
    ToolOutcome::Answer(ToolAnswer {
        content: content.into(),
        status: ToolStatus::Error,
        additional_kwargs: Map::from_iter([(TOOL_META.to_owned(), class)]),
        ..ToolAnswer::default()
    })
}
