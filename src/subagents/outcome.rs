//! What a result says of the delegation that it answers, read from its metadata alone: free text is never a status.
//!
//! The other end of `status`. What it does not know says nothing. Source: the status contract of DeerFlow's subagents, SUB-43 to
//! SUB-47, LED-3.

use serde_json::{Map, Value};

use super::status::{
    CAPS, ERROR, MAX_TEXT, RESULT, RESULT_HASH, STATUS, STATUSES, STOP_REASON, TURN_CAPPED,
};
use crate::protocol::hash::sha256;
use crate::protocol::message::Message;
use crate::state::message_marks::bounded;
use crate::state::python::is_space;

/// A status of older threads: the delegation had used its turns (SUB-46).
const OUT_OF_TURNS: &str = "max_turns_reached";

/// How a delegation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) status: &'static str,
    /// The limit that it ended at.
    pub(crate) stop_reason: Option<&'static str>,
    /// Beginning and end of its result, or why there is none; at most [`MAX_TEXT`] characters.
    pub(crate) result: Option<String>,
    /// Lower-case hex SHA-256 of the whole result.
    pub(crate) result_sha256: Option<String>,
    /// The message that has the result, or the call.
    pub(crate) result_ref: String,
}

impl Outcome {
    /// Reads a result; `None` when its metadata says nothing that counts (LED-4).
    pub(crate) fn of(result: &Message) -> Option<Outcome> {
        let fields = result.fields();
        let kwargs = &fields.additional_kwargs;
        let said = kwargs.get(STATUS)?.as_str()?;
        let brief = text(kwargs, RESULT);
        let given = text(kwargs, STOP_REASON);
        let known = CAPS.iter().map(|(reason, _)| *reason);
        let mut stop_reason = given.and_then(|said| known.into_iter().find(|it| *it == said));
        let said = match said {
            OUT_OF_TURNS => {
                stop_reason = stop_reason.or(Some(TURN_CAPPED));
                match brief {
                    Some(_) => "completed",
                    None => "failed",
                }
            }
            said => said,
        };
        let (status, sentence) = STATUSES.iter().find(|(known, _)| *known == said)?;
        let instead = (!sentence.is_empty()).then_some(*sentence);
        let whole = brief.or_else(|| text(kwargs, ERROR)).or(instead);
        let given = kwargs.get(RESULT_HASH).and_then(Value::as_str);
        let given = given.filter(|hash| is_hash(hash));
        Some(Outcome {
            status,
            stop_reason,
            result: whole.map(|text| bounded(text, MAX_TEXT)),
            result_sha256: whole.map(|text| given.map_or_else(|| sha256(text), str::to_owned)),
            result_ref: match result.id() {
                Some(id) if !id.is_empty() => id.to_owned(),
                _ => fields.tool_call_id.clone(),
            },
        })
    }

    /// Notes the outcome in an entry of the ledger.
    pub(crate) fn note_in(self, entry: &mut Map<String, Value>) {
        entry.insert("status".into(), self.status.into());
        for (name, value) in [
            ("stop_reason", self.stop_reason.map(Value::from)),
            (
                "result_ref",
                self.result.as_ref().map(|_| self.result_ref.into()),
            ),
            ("result_brief", self.result.map(Value::from)),
            ("result_sha256", self.result_sha256.map(Value::from)),
        ] {
            match value {
                Some(value) => drop(entry.insert(name.into(), value)),
                None => drop(entry.shift_remove(name)),
            }
        }
    }
}

/// A member that is text and not blank.
fn text<'a>(kwargs: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let text = kwargs.get(name)?.as_str()?;
    text.chars().any(|c| !is_space(c)).then_some(text)
}

fn is_hash(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 64 && text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::message::{Fields, Kind};

    fn outcome(kwargs: Value) -> Option<Outcome> {
        let mut fields = Fields::new(Kind::Tool, "Task Succeeded. Result: text is no status");
        fields.tool_call_id = "c1".to_owned();
        fields.additional_kwargs = kwargs.as_object().cloned().unwrap_or_default();
        Outcome::of(&Message::new(fields))
    }

    #[test]
    fn sub_46_and_led_4_what_is_no_known_status_says_nothing() {
        for status in [
            json!(null),
            json!("in_progress"),
            json!("Completed"),
            json!("done"),
            json!(1),
        ] {
            let kwargs = json!({"subagent_status": status, "subagent_result_brief": "x"});
            assert_eq!(outcome(kwargs), None, "{status}");
        }
        assert_eq!(outcome(json!({"subagent_result_brief": "x"})), None);
    }

    #[test]
    fn dur_3_result_then_error_then_a_fixed_sentence() {
        let result = |kwargs: Value| outcome(kwargs).and_then(|it| it.result);
        let brief = json!({"subagent_status": "failed", "subagent_result_brief": " r ", "subagent_error": "e"});
        assert_eq!(result(brief).as_deref(), Some(" r "), "not stripped again");
        let error = json!({"subagent_status": "failed", "subagent_result_brief": " ", "subagent_error": "e"});
        assert_eq!(result(error).as_deref(), Some("e"));
        for (status, sentence) in STATUSES {
            let bare = outcome(json!({ "subagent_status": status })).expect("a status");
            assert_eq!(bare.status, status);
            assert_eq!(bare.result.as_deref().unwrap_or_default(), sentence);
            assert_eq!(bare.result_sha256.is_some(), !sentence.is_empty());
            assert_eq!(bare.stop_reason, None);
        }
    }

    #[test]
    fn v9_dur_3_long_results_are_bounded_and_the_hash_is_of_the_whole() {
        let long = "x".repeat(5000);
        let found = outcome(json!({"subagent_status": "completed", "subagent_result_brief": long}));
        let found = found.expect("a status");
        let result = found.result.expect("a result");
        assert_eq!(result.chars().count(), MAX_TEXT);
        assert_eq!(
            result,
            format!("{}\n...\n{}", "x".repeat(1333), "x".repeat(662))
        );
        assert_eq!(found.result_sha256, Some(sha256(&long)));
        assert_eq!(found.result_ref, "c1", "a message without an id");
    }

    #[test]
    fn sub_46_only_a_whole_lower_case_hash_is_taken() {
        let hash = |given: &str| {
            let kwargs = json!({"subagent_status": "completed", "subagent_result_brief": "x", "subagent_result_sha256": given});
            outcome(kwargs).and_then(|it| it.result_sha256)
        };
        let right = "0a".repeat(32);
        assert_eq!(hash(&right), Some(right.clone()));
        for wrong in [&right[1..], &right.to_uppercase(), &"g".repeat(64)] {
            assert_eq!(hash(wrong), Some(sha256("x")), "{wrong}");
        }
    }

    #[test]
    fn v11_a_delegation_out_of_turns_completed_if_it_has_a_result() {
        let found = |kwargs: Value| outcome(kwargs).map(|it| (it.status, it.stop_reason));
        let with = json!({"subagent_status": OUT_OF_TURNS, "subagent_result_brief": "x"});
        assert_eq!(found(with), Some(("completed", Some("turn_capped"))));
        let without = json!({"subagent_status": OUT_OF_TURNS, "subagent_result_brief": " \n"});
        assert_eq!(found(without), Some(("failed", Some("turn_capped"))));
        let given = json!({"subagent_status": OUT_OF_TURNS, "subagent_stop_reason": "loop_capped"});
        assert_eq!(found(given), Some(("failed", Some("loop_capped"))));
        let odd = json!({"subagent_status": "completed", "subagent_stop_reason": "bored"});
        assert_eq!(found(odd), Some(("completed", None)));
    }
}
