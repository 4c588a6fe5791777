//! What the end of a subagent's run means for the agent that delegated.
//!
//! Source: how DeerFlow's executor takes a result out of a child graph, SUB-35 to SUB-38.

use std::time::Duration;

use crate::ports::delegate::{DelegationCap, DelegationEnd, DelegationStatus};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::Message;
use crate::protocol::run::{RunStatus, StopReason};
use crate::state::message_marks::{first_chars, is_error_fallback};
use crate::state::python::is_space;

/// The result of a run that said nothing (SUB-35).
const NO_RESPONSE: &str = "No response generated";
/// The error of a run whose model never answered, where nobody said why (SUB-35).
const NO_ANSWER: &str = "LLM request failed";
/// The error of a run that the host cancelled (SUB-38).
const CANCELLED: &str = "Cancelled by user";
/// Most characters of why a run paused.
const MAX_PAUSE_CHARS: usize = 500;

/// How the run of a subagent ended, and what it left.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    /// Success, error or interrupted.
    pub status: RunStatus,
    /// Why, when it is an error.
    pub error: Option<&'a Error>,
    /// Whether the host cancelled the delegation, or the run that delegates.
    pub is_cancelled: bool,
    /// Why it was interrupted, where somebody said.
    pub pause: Option<&'a str>,
    /// The limit that a guard noted.
    pub stop_reason: Option<StopReason>,
    /// The newest message that its model wrote.
    pub last_ai: Option<&'a Message>,
    /// Its newest message.
    pub last: Option<&'a Message>,
    /// Its turns.
    pub max_turns: u64,
}

/// The end of the execution. Model and tokens are for whoever counted them to add.
///
/// - A reply that stands in for an answer which never came is a failure with its text (SUB-35). Only the newest reply counts.
/// - A run that ended by itself has the text of its newest reply as its result, without one that of its newest message.
///   Where that is blank, a sentence says so.
/// - A run that used up its turns has a result if its newest reply says anything, and is capped by the guard that fired
///   before, else by its turns (SUB-36).
/// - A run that paused has failed: a subagent has no thread that is kept, so nothing can resume it.
pub fn extract(end: RunEnd<'_>) -> DelegationEnd {
    let guard = end.stop_reason.and_then(cap_of);
    let missing = end.last_ai.filter(|reply| is_error_fallback(reply));
    match (end.status, end.error) {
        (RunStatus::Error, Some(error)) if error.code == ErrorCode::RecursionLimit => {
            let cap = Some(guard.unwrap_or(DelegationCap::Turn));
            let said = end.last_ai.map(Message::text).unwrap_or_default();
            let said = said.trim_matches(is_space);
            let found = match missing {
                Some(reply) => failed(error_text(reply)),
                None if said.is_empty() => failed(format!("Reached max_turns={}", end.max_turns)),
                None => completed(said.to_owned()),
            };
            DelegationEnd { cap, ..found }
        }
        (RunStatus::Success, _) => {
            let found = match missing {
                Some(reply) => failed(error_text(reply)),
                None => completed(answer(end.last_ai.or(end.last))),
            };
            DelegationEnd {
                cap: guard,
                ..found
            }
        }
        // The machine ends a run whose last reply stands in for an answer with the model's error: see `end_turn`.
        (RunStatus::Error, error) if error.is_none_or(is_of_a_model) && missing.is_some() => {
            DelegationEnd {
                cap: guard,
                ..failed(missing.map(error_text).unwrap_or_default())
            }
        }
        (RunStatus::Interrupted, _) if end.is_cancelled => cancelled(),
        (RunStatus::Interrupted, _) => {
            let why = end.pause.map(|why| why.trim_matches(is_space));
            let why = why
                .filter(|why| !why.is_empty())
                .map_or_else(String::new, |why| {
                    format!(" ({})", first_chars(why, MAX_PAUSE_CHARS))
                });
            failed(format!(
                "the subagent was paused{why}, and a subagent that is paused cannot be resumed; what it had begun is given up"
            ))
        }
        (RunStatus::Error | RunStatus::Pending | RunStatus::Running, error) => {
            let why = error.map_or("the subagent ended without saying why", |it| &it.message);
            failed(why)
        }
    }
}

/// An execution that failed, for this reason.
pub fn failed(why: impl Into<String>) -> DelegationEnd {
    DelegationEnd {
        status: DelegationStatus::Failed,
        cap: None,
        result: None,
        error: Some(why.into()),
        model_name: None,
        usage: None,
        admission_failure: false,
    }
}

/// An execution that the host ended (SUB-38).
pub fn cancelled() -> DelegationEnd {
    DelegationEnd {
        status: DelegationStatus::Cancelled,
        ..failed(CANCELLED)
    }
}

/// An execution whose time was over (SUB-30).
pub fn timed_out(after: Duration) -> DelegationEnd {
    let seconds = after.as_secs_f64();
    DelegationEnd {
        status: DelegationStatus::TimedOut,
        ..failed(format!("Execution timed out after {seconds} seconds"))
    }
}

fn completed(result: String) -> DelegationEnd {
    DelegationEnd {
        status: DelegationStatus::Completed,
        result: Some(result),
        error: None,
        ..failed("")
    }
}

/// The limits of guards that cap a delegation; other guards cut a reply and not the work (SUB-35).
fn cap_of(reason: StopReason) -> Option<DelegationCap> {
    match reason {
        StopReason::TokenCapped => Some(DelegationCap::Token),
        StopReason::LoopCapped => Some(DelegationCap::Loop),
        StopReason::SafetyCapped
        | StopReason::SubagentLimitCapped
        | StopReason::ModelLengthCapped => None,
    }
}

fn answer(message: Option<&Message>) -> String {
    let text = message.map(Message::text).unwrap_or_default();
    match text.chars().all(is_space) {
        true => NO_RESPONSE.to_owned(),
        false => text,
    }
}

/// What a reply says that stands in for an answer.
fn error_text(reply: &Message) -> String {
    let text = reply.text();
    let detail = reply.fields().additional_kwargs.get("error_detail");
    let detail = detail.and_then(|detail| detail.as_str());
    let said = [Some(text.as_str()), detail].into_iter().flatten();
    let mut said = said.map(|text| text.trim_matches(is_space));
    let found = said.find(|text| !text.is_empty());
    found.unwrap_or(NO_ANSWER).to_owned()
}

/// Whether a model call failed, or its reply was none. Those codes are a group of their own.
fn is_of_a_model(error: &Error) -> bool {
    matches!(error.code.status(), -699..=-600)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::message::{Fields, Kind};

    fn ai(content: Value) -> Message {
        Message::new(Fields::new(Kind::Ai, content))
    }

    fn stand_in(content: &str, detail: Value) -> Message {
        let mut fields = Fields::new(Kind::Ai, content);
        let kwargs = json!({"deerflow_error_fallback": true, "error_detail": detail});
        fields.additional_kwargs = kwargs.as_object().cloned().unwrap_or_default();
        Message::new(fields)
    }

    fn end(status: RunStatus, last_ai: Option<&Message>) -> RunEnd<'_> {
        RunEnd {
            status,
            error: None,
            is_cancelled: false,
            pause: None,
            stop_reason: None,
            last_ai,
            last: last_ai,
            max_turns: 7,
        }
    }

    /// Status, cap, and the result or the error.
    fn facts(end: DelegationEnd) -> (DelegationStatus, Option<DelegationCap>, String) {
        assert!(end.result.is_some() != end.error.is_some(), "{end:?}");
        let text = end.result.or(end.error).unwrap_or_default();
        (end.status, end.cap, text)
    }

    use DelegationStatus::{Cancelled, Completed, Failed, TimedOut};

    #[test]
    fn sub_35_the_newest_reply_is_the_result() {
        let blocks = json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "b"}]);
        for (content, expected) in [
            (json!(" done \n"), " done \n"),
            (blocks, "b"),
            (json!(""), NO_RESPONSE),
            (json!(" \n"), NO_RESPONSE),
        ] {
            let reply = ai(content);
            let found = facts(extract(end(RunStatus::Success, Some(&reply))));
            assert_eq!(found, (Completed, None, expected.to_owned()));
        }
    }

    #[test]
    fn sub_35_without_a_reply_the_newest_message_counts() {
        let human = Message::new(Fields::new(Kind::Human, "go"));
        let mut told = end(RunStatus::Success, None);
        assert_eq!(extract(told).result.as_deref(), Some(NO_RESPONSE));
        told.last = Some(&human);
        assert_eq!(extract(told).result.as_deref(), Some("go"));
    }

    #[test]
    fn sub_35_a_stand_in_is_a_failure_with_its_text_its_detail_or_a_sentence() {
        let noted = Error::new(ErrorCode::ModelAuth, "401");
        for (reply, expected) in [
            (stand_in(" no model ", json!("d")), "no model"),
            (stand_in(" ", json!(" d ")), "d"),
            (stand_in("", json!(3)), NO_ANSWER),
        ] {
            let mut told = end(RunStatus::Success, Some(&reply));
            let expected = (Failed, None, expected.to_owned());
            assert_eq!(facts(extract(told)), expected);
            // Which is how the machine ends such a run.
            told.status = RunStatus::Error;
            told.error = Some(&noted);
            assert_eq!(facts(extract(told)), expected);
        }
        // Only `true` counts, and what failed besides the model is told as it is.
        let mut fields = Fields::new(Kind::Ai, "fine");
        fields
            .additional_kwargs
            .insert("deerflow_error_fallback".into(), 1.into());
        let fine = Message::new(fields);
        let found = extract(end(RunStatus::Success, Some(&fine)));
        assert_eq!(found.status, Completed);
        let hook = Error::new(ErrorCode::Middleware, "a hook failed");
        let reply = stand_in("no model", Value::Null);
        let mut told = end(RunStatus::Error, Some(&reply));
        told.error = Some(&hook);
        assert_eq!(extract(told).error.as_deref(), Some("a hook failed"));
    }

    #[test]
    fn sub_35_guards_cap_a_result_and_other_stops_do_not() {
        let reply = ai("so far".into());
        for (reason, cap) in [
            (StopReason::TokenCapped, Some(DelegationCap::Token)),
            (StopReason::LoopCapped, Some(DelegationCap::Loop)),
            (StopReason::SafetyCapped, None),
            (StopReason::SubagentLimitCapped, None),
            (StopReason::ModelLengthCapped, None),
        ] {
            let mut told = end(RunStatus::Success, Some(&reply));
            told.stop_reason = Some(reason);
            let found = facts(extract(told));
            assert_eq!(found, (Completed, cap, "so far".to_owned()));
        }
    }

    #[test]
    fn sub_36_out_of_turns_with_and_without_something_said() {
        let limit = Error::new(ErrorCode::RecursionLimit, "the run has used its 14 steps");
        let said = |reply: Option<&Message>, reason| {
            facts(extract(RunEnd {
                error: Some(&limit),
                stop_reason: reason,
                ..end(RunStatus::Error, reply)
            }))
        };
        let turn = Some(DelegationCap::Turn);
        let (partial, blank) = (ai(" half \n".into()), ai("\n".into()));
        assert_eq!(
            said(Some(&partial), None),
            (Completed, turn, "half".to_owned())
        );
        let looped = said(Some(&partial), Some(StopReason::LoopCapped));
        assert_eq!(looped.1, Some(DelegationCap::Loop));
        let cut = said(Some(&partial), Some(StopReason::ModelLengthCapped));
        assert_eq!(cut.1, turn);
        let nothing = (Failed, turn, "Reached max_turns=7".to_owned());
        assert_eq!(said(Some(&blank), None), nothing);
        assert_eq!(said(None, None), nothing);
        let reply = stand_in("no model", Value::Null);
        assert_eq!(
            said(Some(&reply), None),
            (Failed, turn, "no model".to_owned())
        );
    }

    #[test]
    fn sub_37_any_other_error_fails_with_its_text() {
        let reply = ai("half".into());
        let error = Error::new(ErrorCode::ModelServer, "500 from the endpoint");
        let mut told = end(RunStatus::Error, Some(&reply));
        told.error = Some(&error);
        let expected = (Failed, None, "500 from the endpoint".to_owned());
        assert_eq!(facts(extract(told)), expected);
        told.error = None;
        assert_eq!(facts(extract(told)).0, Failed);
    }

    #[test]
    fn sub_38_a_cancel_cancels_and_a_pause_fails() {
        let reply = ai("half".into());
        let mut told = end(RunStatus::Interrupted, Some(&reply));
        told.is_cancelled = true;
        let expected = (Cancelled, None, CANCELLED.to_owned());
        assert_eq!(facts(extract(told)), expected);
        told.is_cancelled = false;
        let long = format!(" needs approval{}", "!".repeat(600));
        told.pause = Some(&long);
        let (status, _, text) = facts(extract(told));
        assert_eq!(status, Failed);
        assert!(text.contains("(needs approval!!"), "{text}");
        assert!(text.contains("cannot be resumed"), "{text}");
        assert!(text.chars().count() < 700);
        told.pause = None;
        assert!(!facts(extract(told)).2.contains('('));
        // What came to its end before the cancel was seen has its end.
        let mut done = end(RunStatus::Success, Some(&reply));
        done.is_cancelled = true;
        assert_eq!(extract(done).status, Completed);
    }

    #[test]
    fn sub_30_the_time_is_told_in_seconds() {
        let (status, _, text) = facts(timed_out(Duration::from_secs(900)));
        assert_eq!(
            (status, &*text),
            (TimedOut, "Execution timed out after 900 seconds")
        );
    }
}
