//! How the end of a delegation stands in the thread of the agent that delegated: metadata for machines, text for the model.
//!
//! What reads the metadata back is `outcome`. Source: the status contract of DeerFlow's subagents, SUB-43 to SUB-45, SUB-48. There
//! an unknown status is an error of whoever writes it; here it is none of the type's.

use serde_json::{Map, Value, json};

use crate::ports::delegate::{DelegationCap, DelegationEnd, DelegationStatus};
use crate::protocol::hash::sha256;
use crate::protocol::message::ToolStatus;
use crate::state::message_marks::bounded;
use crate::state::python::is_space;

/// Most characters of a result and of an error in the metadata (SUB-43).
pub const MAX_TEXT: usize = 2000;

pub(crate) const STATUS: &str = "subagent_status";
pub(crate) const STOP_REASON: &str = "subagent_stop_reason";
pub(crate) const ERROR: &str = "subagent_error";
pub(crate) const RESULT: &str = "subagent_result_brief";
pub(crate) const RESULT_HASH: &str = "subagent_result_sha256";
const MODEL_NAME: &str = "subagent_model_name";
const TOKEN_USAGE: &str = "subagent_token_usage";

/// The statuses, and the sentence of each that stands for a result where there is none; empty for one that has a result
/// (SUB-48). Nothing here is polled for, so `polling_timed_out` is only read.
pub(crate) const STATUSES: [(&str, &str); 5] = [
    ("completed", ""),
    ("failed", "Task failed."),
    ("cancelled", "Task cancelled by user."),
    ("timed_out", "Task timed out."),
    ("polling_timed_out", "Task polling timed out."),
];

/// The limits: name in the metadata, and in words.
pub(crate) const CAPS: [(&str, &str); 3] = [
    ("token_capped", "token budget"),
    (TURN_CAPPED, "turn budget"),
    ("loop_capped", "repeated tool-call loop"),
];
pub(crate) const TURN_CAPPED: &str = "turn_capped";

impl DelegationStatus {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    const fn entry(self) -> (&'static str, &'static str) {
        STATUSES[match self {
            DelegationStatus::Completed => 0,
            DelegationStatus::Failed => 1,
            DelegationStatus::Cancelled => 2,
            DelegationStatus::TimedOut => 3,
        }]
    }
}

impl DelegationCap {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    const fn entry(self) -> (&'static str, &'static str) {
        CAPS[match self {
            DelegationCap::Token => 0,
            DelegationCap::Turn => 1,
            DelegationCap::Loop => 2,
        }]
    }
}

/// How the tool message of an end is marked: whatever has no result is an error.
pub const fn tool_status(status: DelegationStatus) -> ToolStatus {
    match status {
        DelegationStatus::Completed => ToolStatus::Success,
        DelegationStatus::Failed | DelegationStatus::Cancelled | DelegationStatus::TimedOut => {
            ToolStatus::Error
        }
    }
}

/// The `additional_kwargs` of the tool message, each member only where there is something to say (SUB-43).
pub fn additional_kwargs(end: &DelegationEnd) -> Map<String, Value> {
    let mut kwargs = Map::new();
    kwargs.insert(STATUS.into(), end.status.name().into());
    if let Some(cap) = end.cap {
        kwargs.insert(STOP_REASON.into(), cap.name().into());
    }
    match end.status {
        DelegationStatus::Completed => {
            if let Some(result) = &end.result
                && let Some(said) = filled(result)
            {
                kwargs.insert(RESULT.into(), bounded(said, MAX_TEXT).into());
                // Of the result as it is, so that it can be compared with what a host has of it.
                kwargs.insert(RESULT_HASH.into(), sha256(result).into());
            }
        }
        _ => {
            if let Some(error) = detail(end) {
                kwargs.insert(ERROR.into(), error.into());
            }
        }
    }
    if let Some(name) = end.model_name.as_deref().and_then(filled) {
        kwargs.insert(MODEL_NAME.into(), name.into());
    }
    if let Some(usage) = &end.usage {
        let tokens = json!({
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        });
        kwargs.insert(TOKEN_USAGE.into(), tokens);
    }
    kwargs
}

/// The text of the tool message (SUB-48): the whole result, or why there is none in at most [`MAX_TEXT`] characters.
pub fn text(end: &DelegationEnd) -> String {
    let capped = match end.cap {
        Some(cap) => format!(" (capped: {})", cap.entry().1),
        None => String::new(),
    };
    match end.status {
        DelegationStatus::Completed => {
            let result = end.result.as_deref().unwrap_or_default();
            format!("Task Succeeded{capped}. Result: {result}")
        }
        status => {
            let sentence = status.entry().1;
            let mut text = format!("{}{capped}.", sentence.trim_end_matches('.'));
            if let Some(detail) = detail(end).filter(|detail| detail != sentence) {
                text.push_str(" Error: ");
                text.push_str(&detail);
            }
            text
        }
    }
}

fn detail(end: &DelegationEnd) -> Option<String> {
    let error = end.error.as_deref().and_then(filled)?;
    Some(bounded(error, MAX_TEXT))
}

/// A text without the white space around it, if anything is left.
fn filled(text: &str) -> Option<&str> {
    let text = text.trim_matches(is_space);
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::outcome::Outcome;
    use super::super::result::{cancelled, failed};
    use super::*;
    use crate::ports::model::Usage;
    use crate::protocol::message::{Fields, Kind, Message};
    use crate::state::reducers::TERMINAL_STATUSES;

    fn completed(result: &str) -> DelegationEnd {
        DelegationEnd {
            status: DelegationStatus::Completed,
            result: Some(result.to_owned()),
            error: None,
            ..failed("")
        }
    }

    fn with(status: DelegationStatus, cap: Option<DelegationCap>, error: &str) -> DelegationEnd {
        DelegationEnd {
            status,
            cap,
            ..failed(error)
        }
    }

    fn kwargs(end: &DelegationEnd) -> Value {
        Value::Object(additional_kwargs(end))
    }

    #[test]
    fn v9_sub_43_a_long_result_is_bounded_and_the_hash_is_of_the_whole() {
        let long = "x".repeat(5000);
        let kwargs = kwargs(&completed(&long));
        let brief = format!("{}\n...\n{}", "x".repeat(1333), "x".repeat(662));
        assert_eq!(brief.len(), MAX_TEXT);
        assert_eq!(
            kwargs,
            json!({
                "subagent_status": "completed",
                "subagent_result_brief": brief,
                "subagent_result_sha256": sha256(&long),
            })
        );
    }

    #[test]
    fn v10_sub_43_the_brief_is_stripped_and_the_hash_is_not() {
        let end = completed("  ok \n");
        let kwargs = kwargs(&end);
        assert_eq!(kwargs["subagent_result_brief"], "ok");
        assert_eq!(kwargs["subagent_result_sha256"], sha256("  ok \n"));
        assert_eq!(text(&end), "Task Succeeded. Result:   ok \n");
    }

    #[test]
    fn sub_43_what_has_nothing_to_say_is_left_out() {
        assert_eq!(
            kwargs(&completed(" \n\u{1c}")),
            json!({"subagent_status": "completed"})
        );
        let mut end = with(DelegationStatus::Failed, None, " \t");
        end.result = Some("of no use".to_owned());
        end.model_name = Some("  ".to_owned());
        assert_eq!(kwargs(&end), json!({"subagent_status": "failed"}));
        // A completed delegation has no error, whatever went wrong on the way.
        let mut end = completed("r");
        end.error = Some("e".to_owned());
        assert!(kwargs(&end).get("subagent_error").is_none());
    }

    #[test]
    fn sub_43_errors_models_and_tokens() {
        let long = "e".repeat(3000);
        let end = DelegationEnd {
            cap: Some(DelegationCap::Loop),
            model_name: Some(" m ".to_owned()),
            usage: Some(Usage {
                input_tokens: 7,
                output_tokens: 5,
                total_tokens: 12,
                cache_read: Some(3),
                reasoning: Some(1),
                ..Usage::default()
            }),
            ..failed(format!(" {long} "))
        };
        assert_eq!(
            kwargs(&end),
            json!({
                "subagent_status": "failed",
                "subagent_stop_reason": "loop_capped",
                "subagent_error": bounded(&long, 2000),
                "subagent_model_name": "m",
                "subagent_token_usage": {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12},
            })
        );
    }

    #[test]
    fn sub_48_the_text_of_every_end() {
        use DelegationStatus::{Cancelled, Completed, Failed, TimedOut};
        for (status, cap, given, expected) in [
            (Completed, None, "r", "Task Succeeded. Result: r"),
            (
                Completed,
                Some(DelegationCap::Token),
                "r",
                "Task Succeeded (capped: token budget). Result: r",
            ),
            (
                Completed,
                Some(DelegationCap::Turn),
                "r",
                "Task Succeeded (capped: turn budget). Result: r",
            ),
            (
                Completed,
                Some(DelegationCap::Loop),
                "r",
                "Task Succeeded (capped: repeated tool-call loop). Result: r",
            ),
            (Failed, None, "", "Task failed."),
            (Failed, None, " Task failed. ", "Task failed."),
            (Failed, None, "why", "Task failed. Error: why"),
            (
                Failed,
                Some(DelegationCap::Turn),
                "Reached max_turns=3",
                "Task failed (capped: turn budget). Error: Reached max_turns=3",
            ),
            (Cancelled, None, "", "Task cancelled by user."),
            (
                Cancelled,
                None,
                "Cancelled by user",
                "Task cancelled by user. Error: Cancelled by user",
            ),
            (TimedOut, None, " ", "Task timed out."),
            (
                TimedOut,
                None,
                "Execution timed out after 900 seconds",
                "Task timed out. Error: Execution timed out after 900 seconds",
            ),
        ] {
            let mut end = with(status, cap, given);
            if status == Completed {
                (end.result, end.error) = (end.error, None);
            }
            assert_eq!(text(&end), expected);
        }
        let long = text(&failed("e".repeat(9000)));
        assert!(long.len() < 2100, "{}", long.len());
    }

    #[test]
    fn sub_46_and_47_what_is_written_is_read_back() {
        let names: BTreeSet<&str> = STATUSES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, BTreeSet::from_iter(TERMINAL_STATUSES));
        for end in [
            completed(&"r".repeat(5000)),
            cancelled(),
            failed("why"),
            with(DelegationStatus::TimedOut, Some(DelegationCap::Token), "t"),
        ] {
            let mut fields = Fields::new(Kind::Tool, text(&end));
            fields.tool_call_id = "c1".to_owned();
            fields.additional_kwargs = additional_kwargs(&end);
            let read = Outcome::of(&Message::new(fields)).expect("a status");
            assert_eq!(read.status, end.status.name());
            assert_eq!(read.stop_reason, end.cap.map(DelegationCap::name));
            let whole = end.result.as_deref().or(end.error.as_deref());
            let whole = whole.expect("a text");
            assert_eq!(read.result, Some(bounded(whole, MAX_TEXT)));
            assert_eq!(read.result_sha256, Some(sha256(whole)));
        }
    }
}
