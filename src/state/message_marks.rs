//! The marks that the framework puts on messages, what they say of a message, and the text of contents.

use serde_json::Value;

use super::python::truthy_member;
use crate::protocol::message::{Fields, Kind, Message};

/// Hides a message from whoever shows the thread to a person.
pub(crate) const HIDDEN: &str = "hide_from_ui";
/// Marks what `DynamicContext` injected.
pub(crate) const REMINDER: &str = "dynamic_context_reminder";
/// Name of a message that stands for a summary.
pub(crate) const SUMMARY: &str = "summary";

/// Says that a reply stands in for an answer which never came; its run failed.
pub(crate) const ERROR_FALLBACK: &str = "deerflow_error_fallback";

/// Whether a message stands in for an answer that never came, so that whoever drives the run reports an error (MW-LLM-5,
/// MW-TRM-3, SUB-35).
pub fn is_error_fallback(message: &Message) -> bool {
    message.kind() == Kind::Ai
        && message.fields().additional_kwargs.get(ERROR_FALLBACK) == Some(&Value::Bool(true))
}

/// A human message that the model sees and nobody is shown.
pub(crate) fn hidden_human(name: &str, content: String) -> Message {
    let mut fields = Fields::new(Kind::Human, content);
    fields.name = Some(name.to_owned());
    fields.additional_kwargs.insert(HIDDEN.into(), true.into());
    Message::new(fields)
}

/// Whether `DynamicContext` injected the message. Only what might be is decoded: most messages of a thread are not.
pub(crate) fn is_reminder(message: &Message) -> bool {
    matches!(message.kind(), Kind::Human | Kind::System)
        && message.json().contains(REMINDER)
        && truthy_member(&message.fields().additional_kwargs, REMINDER).is_some()
}

/// The text of a content: a string as it is; of a list the strings and the `text` of blocks that are not empty, on lines of
/// their own (HP-6).
pub(crate) fn content_lines(content: &Value) -> String {
    let Value::Array(items) = content else {
        return content.as_str().unwrap_or_default().to_owned();
    };
    let texts = items.iter().filter_map(|item| match item {
        Value::String(text) => Some(text.as_str()),
        item => item.get("text").and_then(Value::as_str),
    });
    let filled: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    filled.join("\n")
}

/// The first `max_chars` characters (B-4).
pub(crate) fn first_chars(text: &str, max_chars: usize) -> &str {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

/// The last `max_chars` characters (B-4).
pub(crate) fn last_chars(text: &str, max_chars: usize) -> &str {
    match max_chars.checked_sub(1) {
        None => "",
        Some(before) => match text.char_indices().rev().nth(before) {
            Some((at, _)) => &text[at..],
            None => text,
        },
    }
}

/// The text without its `<think>` blocks; one that is not closed reaches to the end.
pub(crate) fn without_thinking(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, thought)) = rest.split_once("<think>") {
        out.push_str(before);
        rest = thought
            .split_once("</think>")
            .map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// At most `cap` characters: the first two thirds of the cap, a mark, and the end; without room for an end, the beginning
/// alone (HP-3).
pub(crate) fn bounded(text: &str, cap: usize) -> String {
    const MARK: &str = "\n...\n";
    let head = 2 * cap / 3;
    let tail = cap.saturating_sub(head + MARK.len());
    if first_chars(text, cap).len() == text.len() {
        text.to_owned()
    } else if tail == 0 {
        first_chars(text, cap).to_owned()
    } else {
        format!(
            "{}{MARK}{}",
            first_chars(text, head),
            last_chars(text, tail)
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn human(kwargs: Value) -> Message {
        let mut fields = Fields::new(Kind::Human, "x");
        fields.additional_kwargs = kwargs.as_object().cloned().unwrap_or_default();
        Message::new(fields)
    }

    #[test]
    fn hp_6_content_is_text_by_lines() {
        let blocks =
            json!(["a", "", {"type": "text", "text": "b"}, {"type": "image"}, {"text": ""}]);
        assert_eq!(content_lines(&blocks), "a\nb");
    }

    #[test]
    fn hp_3_text_is_bounded_in_characters() {
        assert_eq!(bounded("äöü", 3), "äöü");
        assert_eq!(
            bounded(&"ä".repeat(30), 18),
            format!("{}\n...\nä", "ä".repeat(12))
        );
        assert_eq!(bounded("0123456789", 5), "01234");
        assert_eq!(bounded("0123456789", 0), "");
        assert_eq!(
            (
                last_chars("aäo", 2),
                last_chars("aäo", 9),
                last_chars("a", 0)
            ),
            ("äo", "aäo", "")
        );
    }

    #[test]
    fn a_flag_that_only_stands_in_the_text_marks_no_reminder() {
        assert!(is_reminder(&human(
            json!({"dynamic_context_reminder": true})
        )));
        assert!(!is_reminder(&human(
            json!({"dynamic_context_reminder": false})
        )));
        let mut fields = Fields::new(Kind::Human, "dynamic_context_reminder");
        assert!(!is_reminder(&Message::new(fields.clone())));
        fields.kind = Kind::Ai;
        assert!(!is_reminder(&Message::new(fields)));
    }
}
