//! What a tool result amounts to: success, part of one, or an error of a kind, with what the model had best do next.
//!
//! Source: DeerFlow `tool_result_meta`, MW-TEH-6 to MW-TEH-11. Words are looked for as substrings, so that any error that
//! mentions a connection counts as transient (A-17); numbers must stand alone.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::protocol::message::ToolStatus;
use crate::state::python::truthy;

/// Where the class of a result stands in its message.
pub const TOOL_META: &str = "deerflow_tool_meta";

/// How a result that is an error begins.
pub(super) const ERROR_PREFIX: &str = "Error:";

/// The tool whose results are pages of somebody else's.
const PAGE_TOOL: &str = "web_fetch";

/// A kind of error (MW-TEH-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    is_recoverable: bool,
    next: &'static str,
}

const fn kind(name: &'static str, is_recoverable: bool, next: &'static str) -> Kind {
    Kind {
        name,
        is_recoverable,
        next,
    }
}

const AUTH: Kind = kind("auth", false, "stop");
const RATE_LIMITED: Kind = kind("rate_limited", false, "summarize");
const TRANSIENT: Kind = kind("transient", false, "try_alternative");
const CONFIG: Kind = kind("config", false, "stop");
const PERMISSION: Kind = kind("permission", true, "try_alternative");
const NO_RESULTS: Kind = kind("no_results", true, "rewrite_query");
const NOT_FOUND: Kind = kind("not_found", true, "rewrite_query");
const INTERNAL: Kind = kind("internal", false, "stop");
const UNKNOWN: Kind = kind("unknown", true, "try_alternative");

/// Words of an error and what kind they make it; the first kind that fits counts (MW-TEH-9).
const RULES: &[(&[&str], Kind)] = &[
    (
        &[
            "401",
            "403",
            "unauthorized",
            "authentication",
            "invalid api key",
        ],
        AUTH,
    ),
    (&["rate limit", "rate limited", "rate_limit"], RATE_LIMITED),
    (
        &[
            "timeout",
            "timed out",
            "connection",
            "network error",
            "temporarily unavailable",
        ],
        TRANSIENT,
    ),
    (
        &[
            "not configured",
            "not installed",
            "missing required",
            "disabled",
            "no api key",
        ],
        CONFIG,
    ),
    (
        &[
            "permission denied",
            "access denied",
            "path traversal",
            "forbidden",
        ],
        PERMISSION,
    ),
    (
        &[
            "no results found",
            "no content found",
            "no images found",
            "no results",
        ],
        NO_RESULTS,
    ),
    (
        &["not found", "no such file", "does not exist", "404"],
        NOT_FOUND,
    ),
    (&["unexpected error", "internal error", "500"], INTERNAL),
];

/// Words by which a result says that it is not all there is (MW-TEH-10).
const PARTIAL: &[&str] = &[
    "partial results",
    "limited results",
    "truncated",
    "results may be incomplete",
    "no results found",
    "no content found",
    "no images found",
];

/// Titles of pages that servers send in place of what was asked for (MW-TEH-11).
const STATUS_TITLES: &[(&str, Kind)] = &[
    ("unauthorized", AUTH),
    ("proxy authentication required", AUTH),
    ("forbidden", PERMISSION),
    ("access denied", PERMISSION),
    ("permission denied", PERMISSION),
    ("not found", NOT_FOUND),
    ("too many requests", RATE_LIMITED),
    ("internal server error", INTERNAL),
    ("not implemented", INTERNAL),
    ("bad gateway", TRANSIENT),
    ("service unavailable", TRANSIENT),
    ("service temporarily unavailable", TRANSIENT),
    ("gateway timeout", TRANSIENT),
];

/// Words that servers put before the title of such a page.
const TITLE_FILLER: &[&str] = &[
    "http",
    "error",
    "page",
    "the",
    "file",
    "or",
    "directory",
    "url",
    "resource",
];

/// Values of an `error` member that say that there is none (MW-TEH-8).
const NO_ERROR: &[&str] = &["none", "null", "false", "no", "ok", "success", "n/a", ""];

/// The class of a failure of the tool itself.
pub(super) fn of_failure(detail: &str) -> Value {
    error(of_text(detail), "exception")
}

/// The class of a refusal by a middleware of the host: no failure of the tool's, and the model may try something else.
pub(super) fn of_denial() -> Value {
    error(PERMISSION, "host_middleware")
}

/// The class of what a tool answered. `tool` is its name (MW-TEH-7).
pub(super) fn of_answer(tool: &str, status: ToolStatus, content: &Value) -> Value {
    let content = content.as_str().unwrap_or_default();
    if let Some(rest) = content.strip_prefix(ERROR_PREFIX) {
        return error(of_text(rest), "tool_return");
    }
    let object = Object::read(content);
    let told = object.as_ref().and_then(Object::error);
    if let Some(text) = &told {
        return error(of_text(text), "tool_return");
    }
    if status == ToolStatus::Error {
        // Members of an object that says nothing of an error may hold any number.
        let kind = object.map_or_else(|| of_text(content), |_| UNKNOWN);
        return error(kind, "tool_return");
    }
    if tool == PAGE_TOOL
        && let Some(kind) = of_page(content)
    {
        return error(kind, "content_analysis");
    }
    let lower = content.to_lowercase();
    if PARTIAL.iter().any(|marker| lower.contains(marker)) {
        return meta(
            "partial_success",
            None,
            true,
            "rewrite_query",
            "content_analysis",
        );
    }
    meta("success", None, true, "continue", "content_analysis")
}

fn error(kind: Kind, source: &str) -> Value {
    meta(
        "error",
        Some(kind.name),
        kind.is_recoverable,
        kind.next,
        source,
    )
}

fn meta(status: &str, kind: Option<&str>, recoverable: bool, next: &str, source: &str) -> Value {
    json!({
        "status": status,
        "error_type": kind,
        "recoverable_by_model": recoverable,
        "recommended_next_action": next,
        "source": source,
    })
}

fn of_text(text: &str) -> Kind {
    let lower = text.to_lowercase();
    let fits = |words: &[&str]| words.iter().any(|word| has(&lower, word));
    let rule = RULES.iter().find(|(words, _)| fits(words));
    rule.map_or(UNKNOWN, |(_, kind)| *kind)
}

/// Whether `lower` has the word; one of digits alone must not be part of a longer word.
fn has(lower: &str, word: &str) -> bool {
    if !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return lower.contains(word);
    }
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    lower.match_indices(word).any(|(at, _)| {
        let before = lower[..at].chars().next_back();
        let after = lower[at + word.len()..].chars().next();
        !is_word(before) && !is_word(after)
    })
}

/// The kind of error that a page is, if it is one that a server sent in place of what was asked for.
fn of_page(content: &str) -> Option<Kind> {
    let is_break = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let title = content
        .split(is_break)
        .find(|line| !line.trim().is_empty())?;
    let title = title.trim_start_matches('#').to_lowercase();
    let words = title.split(|c: char| !c.is_ascii_digit() && !c.is_ascii_lowercase());
    let is_filler = |word: &str| {
        let status = word.parse::<u16>().ok().filter(|_| word.len() == 3);
        TITLE_FILLER.contains(&word) || status.is_some_and(|status| (400..=599).contains(&status))
    };
    let words = words.filter(|word| !word.is_empty());
    let phrase: Vec<&str> = words.skip_while(|word| is_filler(word)).collect();
    let phrase = phrase.join(" ");
    let found = STATUS_TITLES.iter().find(|(title, _)| *title == phrase);
    found.map(|(_, kind)| *kind)
}

/// A JSON object, of which only the member `error` is decoded.
struct Object<'a>(HashMap<String, &'a RawValue>);

impl<'a> Object<'a> {
    fn read(content: &'a str) -> Option<Self> {
        let is_object = content.trim_start().starts_with('{');
        let members = is_object.then(|| serde_json::from_str(content))?;
        members.ok().map(Object)
    }

    /// What the member `error` says, if it says that there is one (MW-TEH-8).
    fn error(&self) -> Option<String> {
        let error: Value = serde_json::from_str(self.0.get("error")?.get()).ok()?;
        if !truthy(&error) {
            return None;
        }
        match error {
            Value::String(text) => {
                let says_none = NO_ERROR.contains(&text.to_lowercase().trim());
                (!says_none).then_some(text)
            }
            other => Some(other.to_string()),
        }
    }
}

/// Adds the class unless there is one.
pub(super) fn stamp(kwargs: &mut Map<String, Value>, class: impl FnOnce() -> Value) {
    if kwargs.get(TOOL_META).is_none_or(Value::is_null) {
        kwargs.insert(TOOL_META.into(), class());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(tool: &str, status: ToolStatus, content: &str) -> (String, Value, String, String) {
        let meta = of_answer(tool, status, &content.into());
        let text = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
        (
            text("status"),
            meta["error_type"].clone(),
            text("recommended_next_action"),
            text("source"),
        )
    }

    #[test]
    fn teh_9_the_first_rule_that_fits_counts() {
        for (text, name, recoverable, next) in [
            ("got 401", "auth", false, "stop"),
            ("Invalid API key", "auth", false, "stop"),
            ("rate limited", "rate_limited", false, "summarize"),
            ("timeout: not found", "transient", false, "try_alternative"),
            ("Connection refused", "transient", false, "try_alternative"),
            ("module not installed", "config", false, "stop"),
            ("Permission denied", "permission", true, "try_alternative"),
            ("no results", "no_results", true, "rewrite_query"),
            ("no such file", "not_found", true, "rewrite_query"),
            ("HTTP 500", "internal", false, "stop"),
            ("took 500ms", "unknown", true, "try_alternative"),
            ("error 14040", "unknown", true, "try_alternative"),
            ("x_404", "unknown", true, "try_alternative"),
            ("(404)", "not_found", true, "rewrite_query"),
            ("odd", "unknown", true, "try_alternative"),
        ] {
            let expected = json!({
                "status": "error", "error_type": name, "recoverable_by_model": recoverable,
                "recommended_next_action": next, "source": "exception",
            });
            assert_eq!(of_failure(text), expected, "{text}");
        }
    }

    #[test]
    fn teh_7_the_decision_follows_its_order() {
        use ToolStatus::{Error, Success};
        let error = |kind: &str, source: &str| {
            let rule = RULES.iter().find(|(_, it)| it.name == kind);
            let next = rule.map_or(UNKNOWN, |(_, it)| *it).next;
            ("error".into(), kind.into(), next.into(), source.into())
        };
        for (status, content, kind) in [
            (
                Error,
                r#"{"error": "HTTP 404", "query": "401"}"#,
                "not_found",
            ),
            (Error, r#"{"user_id": 401}"#, "unknown"),
            (Error, r#"{"error": "none", "code": 401}"#, "unknown"),
            (Error, "forbidden", "permission"),
            (Success, "Error: connection reset", "transient"),
            (Error, "Error: 403", "auth"),
            (Success, r#" {"error": {"code": 500}}"#, "internal"),
            (Success, r#"{"error": 404}"#, "not_found"),
        ] {
            assert_eq!(
                class("t", status, content),
                error(kind, "tool_return"),
                "{content}"
            );
        }
        let success = (
            "success".into(),
            Value::Null,
            "continue".into(),
            "content_analysis".into(),
        );
        for content in [
            "fine",
            "",
            r#"{"error": null, "x": 1}"#,
            r#"{"error": false}"#,
            r#"{"error": 0}"#,
            r#"{"error": " N/A "}"#,
            r#"["error"]"#,
            "{not json",
            "the error: 404",
        ] {
            assert_eq!(class("t", Success, content), success, "{content}");
        }
        let blocks = of_answer("t", Success, &json!([{"type": "text", "text": "Error: x"}]));
        assert_eq!(blocks["status"], "success");
        let partial = class("t", Success, "[output TRUNCATED]");
        assert_eq!(
            (&*partial.0, &*partial.2),
            ("partial_success", "rewrite_query")
        );
        assert_eq!(partial.1, Value::Null);
    }

    #[test]
    fn teh_11_pages_of_servers_are_errors_and_articles_about_them_are_not() {
        for (page, kind) in [
            ("# 404 Not Found\nnginx/1.24.0", "not_found"),
            ("\n \n404 - File or directory not found.", "not_found"),
            ("HTTP Error 503 - Service Unavailable", "transient"),
            ("## Page Not Found", "not_found"),
            ("403 Forbidden", "permission"),
            ("Error 429: Too Many Requests", "rate_limited"),
            ("401 Unauthorized", "auth"),
            ("501 Not Implemented", "internal"),
        ] {
            let found = class("web_fetch", ToolStatus::Success, page);
            assert_eq!(
                (found.1, &*found.3),
                (kind.into(), "content_analysis"),
                "{page}"
            );
            let other = class("other", ToolStatus::Success, page);
            assert_eq!(other.0, "success", "only pages have titles: {page}");
        }
        for page in [
            "404 Ways to Cook Rice",
            "Not Found: a short history of the 404",
            "# 200 Not Found",
            "# 0404 not found",
            "the error",
            "",
        ] {
            assert_eq!(
                class("web_fetch", ToolStatus::Success, page).0,
                "success",
                "{page}"
            );
        }
    }

    #[test]
    fn teh_6_a_class_that_is_there_is_kept() {
        let mut kwargs = Map::new();
        stamp(&mut kwargs, || json!(1));
        stamp(&mut kwargs, || json!(2));
        assert_eq!(kwargs[TOOL_META], 1);
    }
}
