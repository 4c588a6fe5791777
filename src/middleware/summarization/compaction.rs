//! Which messages of a long thread are summarised and which stay.
//!
//! The end of the thread stays, from a place that separates no call from its result. What stands before it is summarised,
//! but for system messages, what `DynamicContext` injected, and the request that the agent is at work on.
//!
//! Source: DeerFlow `DeerFlowSummarizationMiddleware` and LangChain's `SummarizationMiddleware`, MW-SUM-2 to 4. Beyond the
//! reference, a result that a message of the user stands before stays with its call, too.

use std::collections::HashSet;

use crate::middleware::message_marks::is_reminder;
use crate::middleware::user_message::is_genuine;
use crate::protocol::message::{Kind, Message};

/// How much of the end stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepEnd {
    /// So many messages.
    Messages(u64),
    /// As many messages as so many tokens hold, and one at least.
    Tokens(u64),
}

/// A thread in two parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parts {
    /// What is summarised; not empty.
    pub(super) removed: Vec<Message>,
    /// What stays, in order.
    pub(super) kept: Vec<Message>,
}

/// Divides a thread; `None` when nothing is to be summarised. Dividing what stays divides nothing: what was kept before the
/// end is kept again.
pub(super) fn divide(
    messages: &[Message],
    keep: KeepEnd,
    tokens: impl Fn(&Message) -> u64,
) -> Option<Parts> {
    let cutoff = match keep {
        KeepEnd::Messages(count) => {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            messages.len().saturating_sub(count)
        }
        KeepEnd::Tokens(budget) => end_within(messages, budget, tokens),
    };
    let cutoff = match cutoff {
        0 => return None,
        cutoff => before_open_turn(messages, past_results(messages, cutoff)),
    };
    let is_request = |message: &Message| is_genuine(message) && !is_reminder(message);
    let request = messages.iter().rposition(is_request);
    let stays = |(place, message): &(usize, &Message)| {
        *place >= cutoff
            || message.kind() == Kind::System
            || Some(*place) == request
            || is_reminder(message)
    };
    let (kept, removed): (Vec<_>, Vec<_>) = messages.iter().enumerate().partition(stays);
    let messages_of = |part: Vec<(usize, &Message)>| {
        let messages = part.into_iter().map(|(_, message)| message.clone());
        messages.collect::<Vec<_>>()
    };
    (!removed.is_empty()).then(|| Parts {
        removed: messages_of(removed),
        kept: messages_of(kept),
    })
}

/// The first place from which the rest takes at most `budget` tokens; the last message is always in the rest.
fn end_within(messages: &[Message], budget: u64, tokens: impl Fn(&Message) -> u64) -> usize {
    let mut taken = 0;
    let fits = |message: &&Message| {
        taken += tokens(message);
        taken <= budget
    };
    let fitting = messages.iter().rev().take_while(fits).count();
    messages.len() - fitting.max(1).min(messages.len())
}

/// Moves a place among results back to the newest message that called for one of them, or behind them when none did
/// (MW-SUM-3).
fn past_results(messages: &[Message], cutoff: usize) -> usize {
    let results = messages[cutoff..].iter();
    let results = results.take_while(|message| message.kind() == Kind::Tool);
    let ids: HashSet<&str> = results
        .map(|result| result.fields().tool_call_id.as_str())
        .collect();
    if ids.is_empty() {
        return cutoff;
    }
    let owner = messages[..cutoff]
        .iter()
        .rposition(|message| calls(message).any(|id| ids.contains(id)));
    owner.unwrap_or_else(|| {
        let run = messages[cutoff..].iter();
        cutoff + run.take_while(|it| it.kind() == Kind::Tool).count()
    })
}

/// Moves a place inside a turn back to the message of the model that began it, when a result behind the place answers it.
/// Results pair inside their own turn only.
fn before_open_turn(messages: &[Message], cutoff: usize) -> usize {
    let is_ai = |message: &Message| message.kind() == Kind::Ai;
    let Some(begin) = messages[..cutoff].iter().rposition(is_ai) else {
        return cutoff;
    };
    let mut rest = messages[cutoff..].iter().take_while(|it| !is_ai(it));
    let answers = |result: &Message| {
        result.kind() == Kind::Tool
            && calls(&messages[begin]).any(|id| id == result.fields().tool_call_id)
    };
    match rest.any(answers) {
        true => begin,
        false => cutoff,
    }
}

/// The ids of the calls of a message.
fn calls(message: &Message) -> impl Iterator<Item = &str> {
    let calls = (message.kind() == Kind::Ai).then(|| message.fields().tool_calls.iter());
    let calls = calls.into_iter().flatten();
    calls.filter_map(|call| call.id.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::{Fields, ToolCall};

    fn message(kind: Kind, text: &str) -> Message {
        Message::new(Fields::new(kind, text))
    }

    fn ai(ids: &[&str]) -> Message {
        let mut fields = Fields::new(Kind::Ai, format!("ai {}", ids.join(" ")));
        let call = |id: &&str| ToolCall {
            name: "f".into(),
            id: Some((*id).to_owned()),
            ..ToolCall::default()
        };
        fields.tool_calls = ids.iter().map(call).collect();
        Message::new(fields)
    }

    fn result(id: &str) -> Message {
        let mut fields = Fields::new(Kind::Tool, format!("result {id}"));
        fields.tool_call_id = id.to_owned();
        Message::new(fields)
    }

    fn marked(kind: Kind, mark: &str, text: &str) -> Message {
        let mut fields = Fields::new(kind, text);
        fields.additional_kwargs.insert(mark.into(), true.into());
        Message::new(fields)
    }

    fn kept(messages: &[Message], keep: KeepEnd) -> Option<Vec<String>> {
        let parts = divide(messages, keep, |_| 10)?;
        assert_eq!(parts.kept.len() + parts.removed.len(), messages.len());
        Some(parts.kept.iter().map(Message::text).collect())
    }

    #[test]
    fn sum_2_the_end_stays_by_messages_or_tokens() {
        let all: Vec<Message> = ["a", "b", "c", "d"].map(|it| message(Kind::Ai, it)).into();
        let ends = |keep| kept(&all, keep);
        assert_eq!(ends(KeepEnd::Messages(1)), Some(vec!["d".into()]));
        assert_eq!(ends(KeepEnd::Messages(4)), None);
        assert_eq!(ends(KeepEnd::Messages(9)), None);
        assert_eq!(
            ends(KeepEnd::Tokens(29)),
            Some(vec!["c".into(), "d".into()])
        );
        assert_eq!(ends(KeepEnd::Tokens(40)), None, "all of it fits");
        assert_eq!(
            ends(KeepEnd::Tokens(1)),
            Some(vec!["d".into()]),
            "one at least"
        );
        assert_eq!(kept(&[], KeepEnd::Tokens(1)), None);
    }

    #[test]
    fn sum_3_a_result_stays_with_its_call_and_orphans_go() {
        let turn = [
            message(Kind::Ai, "old"),
            ai(&["a", "b"]),
            result("a"),
            result("b"),
        ];
        let whole = Some(vec!["ai a b".into(), "result a".into(), "result b".into()]);
        assert_eq!(kept(&turn, KeepEnd::Messages(1)), whole);
        assert_eq!(kept(&turn, KeepEnd::Messages(2)), whole);
        let orphans = [
            message(Kind::Ai, "old"),
            result("x"),
            result("y"),
            message(Kind::Ai, "new"),
        ];
        assert_eq!(
            kept(&orphans, KeepEnd::Messages(3)),
            Some(vec!["new".into()])
        );
        let first = [ai(&["a"]), result("a"), message(Kind::Ai, "x")];
        assert_eq!(
            kept(&first, KeepEnd::Messages(2)),
            None,
            "back to the beginning"
        );
    }

    #[test]
    fn a_result_behind_a_word_of_the_user_stays_with_its_call() {
        let turn = [
            message(Kind::Ai, "old"),
            ai(&["a"]),
            message(Kind::Human, "meanwhile"),
            result("a"),
        ];
        let whole = Some(vec!["ai a".into(), "meanwhile".into(), "result a".into()]);
        assert_eq!(kept(&turn, KeepEnd::Messages(2)), whole);
    }

    #[test]
    fn sum_4_system_messages_reminders_and_the_request_stay_and_older_requests_go() {
        let reminder = "dynamic_context_reminder";
        let all = [
            marked(Kind::System, reminder, "date"),
            marked(Kind::Human, reminder, "memory"),
            message(Kind::Human, "first request"),
            message(Kind::System, "rule"),
            message(Kind::Human, "request"),
            marked(Kind::Human, "hide_from_ui", "hidden"),
            marked(Kind::Human, reminder, "memory that is not hidden"),
            ai(&["a"]),
            result("a"),
            message(Kind::Ai, "end"),
        ];
        let stay = [
            "date",
            "memory",
            "rule",
            "request",
            "memory that is not hidden",
            "end",
        ];
        let stay = stay.map(str::to_owned);
        assert_eq!(kept(&all, KeepEnd::Messages(1)), Some(stay.to_vec()));
        let parts = divide(&all, KeepEnd::Messages(1), |_| 1).expect("something goes");
        assert_eq!(divide(&parts.kept, KeepEnd::Messages(1), |_| 1), None);
    }
}
