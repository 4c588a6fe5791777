//! The message that stands in for an answer which never came: words for each kind of failure, and its marks.
//!
//! What had arrived of the answer stays, above the words: the host has seen it, and it is paid for.
//!
//! Source: DeerFlow `LLMErrorHandlingMiddleware`, MW-LLM-5; the marks are a contract with hosts.

use serde_json::Value;

use crate::middleware::message_marks::{ERROR_FALLBACK, first_chars};
use crate::middleware::reply::{append_text, with_calls};
use crate::ports::model::{ModelError, ModelReply};
use crate::protocol::message::{Fields, Kind, Message};
use crate::protocol::model_failure::FailureReason;

/// Most characters of what an endpoint or a host says about a failure.
pub(super) const MAX_DETAIL_CHARS: usize = 1000;

/// The type and the reason of a call that was not made (MW-LLM-6).
const CIRCUIT_TYPE: &str = "CircuitBreakerOpen";
const CIRCUIT_REASON: &str = "circuit_open";

const QUOTA: &str = "The model was not allowed to answer: the account behind it has no quota or credit left, or its billing \
    is not in order. Somebody has to see to the account before it is worth asking again.";
const AUTH: &str = "The model was not allowed to answer: its provider does not accept the credentials that are configured, \
    or they do not reach that far. Please check them, and ask again.";
const BURST_RATE: &str = "The model's provider is holding requests back, since there were suddenly many of them. Please wait \
    a little, and ask again.";
const PASSING: &str = "The model cannot be reached just now, or fails to answer. That passes as a rule: please wait a moment, \
    and go on.";
const BROKEN_OFF: &str = "The answer broke off here: the connection was lost, or the model failed. Please ask again, or go on \
    from what there is.";
const STALLED: &str = "The model began to answer and then fell silent. That happens with very long answers: please ask for \
    less at once, such as one file or one section at a time.";
const CIRCUIT_OPEN: &str = "The model has failed so often of late that it is not being asked for a while. Please try again a \
    little later.";
const GENERIC: &str = "The model could not answer this";

/// What stands in for the answer to a call that failed.
pub(super) fn of_failure(failure: &ModelError, reason: FailureReason) -> ModelReply {
    let error = &failure.error;
    let detail = detail(&error.message);
    let arrived = failure.partial.as_deref().and_then(arrived);
    let generic;
    let words = match reason {
        FailureReason::Quota => QUOTA,
        FailureReason::Auth => AUTH,
        FailureReason::BurstRate => BURST_RATE,
        _ if failure.has_stalled => STALLED,
        FailureReason::Transient | FailureReason::Busy if arrived.is_some() => BROKEN_OFF,
        FailureReason::Transient | FailureReason::Busy => PASSING,
        FailureReason::Generic => {
            generic = format!("{GENERIC}: {detail}");
            &generic
        }
    };
    marked(arrived, words, error.code.name(), reason.name(), &detail)
}

/// What stands in for the answer to a call that was not made.
pub(super) fn of_open_circuit(detail: &str) -> ModelReply {
    marked(None, CIRCUIT_OPEN, CIRCUIT_TYPE, CIRCUIT_REASON, detail)
}

fn marked(
    arrived: Option<Fields>,
    words: &str,
    kind: &str,
    reason: &str,
    detail: &str,
) -> ModelReply {
    let mut fields = arrived.unwrap_or_else(|| Fields::new(Kind::Ai, ""));
    let kwargs = &mut fields.additional_kwargs;
    kwargs.insert(ERROR_FALLBACK.to_owned(), true.into());
    for (name, value) in [
        ("error_type", kind),
        ("error_reason", reason),
        ("error_detail", detail),
    ] {
        kwargs.insert(name.to_owned(), value.into());
    }
    // A run without input goes on from here as from any reply that did not arrive whole: it asks again.
    let metadata = &mut fields.response_metadata;
    metadata.insert("finish_reason".to_owned(), "error".into());
    ModelReply {
        content: append_text(&fields.content, words),
        additional_kwargs: fields.additional_kwargs,
        response_metadata: fields.response_metadata,
        ..ModelReply::default()
    }
}

/// What there is to keep of a reply that broke off: its text and what goes with that, without calls. `None` without text.
fn arrived(partial: &ModelReply) -> Option<Fields> {
    let mut fields = Fields::new(Kind::Ai, partial.content.clone());
    fields.additional_kwargs = partial.additional_kwargs.clone();
    fields.response_metadata = partial.response_metadata.clone();
    let message = Message::new(fields);
    let has_text = !matches!(partial.content, Value::Null) && !message.text().is_empty();
    has_text.then(|| with_calls(&message, Vec::new(), None))
}

/// What was said about a failure, cut to size. Providers have taken out what is secret.
fn detail(text: &str) -> String {
    let start = first_chars(text, MAX_DETAIL_CHARS);
    match start.len() == text.len() {
        true => text.to_owned(),
        false => format!("{start}…"),
    }
}
