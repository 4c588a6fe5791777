//! What a long text seems to be, told in a few lines: enough to know where to look.
//!
//! Deterministic, local and linear in the text. Nothing is decoded, expanded or resolved: names are shown as they are written,
//! so that an escape in the text cannot become a tag here. Whatever the text is, the lines stay within [`MAX_CHARS`].
//!
//! Source: DeerFlow `tool_output_synopsis`, MW-TOB-5.

mod code;
mod json;
mod plain;
mod table;
mod xml;
mod yaml;

use crate::middleware::message_marks::first_chars;
use crate::prompt::sanitize::neutralize;

/// Most characters of a synopsis.
pub(in crate::middleware) const MAX_CHARS: usize = 1_500;
/// Texts of more bytes are not looked into (MW-TOB-5).
pub(in crate::middleware) const MAX_BYTES: usize = 5_000_000;

/// Most names that are listed of one thing.
const MAX_NAMES: usize = 20;
/// Most characters of a name.
const NAME_CHARS: usize = 48;
/// Most characters of a line that is shown.
const LINE_CHARS: usize = 160;
/// Characters from the beginning by which a binary is told.
const BINARY_SAMPLE: usize = 8_192;

/// What a text seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::middleware) enum Kind {
    /// White space alone.
    Empty,
    /// More than [`MAX_BYTES`].
    TooLarge,
    /// No text that anybody would read.
    Binary,
    Json,
    Xml,
    Tsv,
    Csv,
    Yaml,
    Code,
    Text,
}

/// The kind of a text, and lines about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::middleware) struct Synopsis {
    pub kind: Kind,
    /// At most [`MAX_CHARS`], without tags of the framework.
    pub lines: String,
}

/// Tells what `text` seems to be. O(text).
pub(in crate::middleware) fn synopsis(text: &str) -> Synopsis {
    let (kind, lines) = describe(text);
    let clean = neutralize(&lines);
    Synopsis {
        kind,
        lines: first_chars(&clean, MAX_CHARS).to_owned(),
    }
}

fn describe(text: &str) -> (Kind, String) {
    if text.len() > MAX_BYTES {
        let told = format!("Not looked into: it has {} bytes.", text.len());
        return (Kind::TooLarge, told);
    }
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    if body.trim().is_empty() {
        return (Kind::Empty, "Nothing but white space.".to_owned());
    }
    if is_binary(body) {
        let told = "Binary data, or text in another encoding.".to_owned();
        return (Kind::Binary, told);
    }
    let told = json::describe(body)
        .map(|told| (Kind::Json, told))
        .or_else(|| xml::describe(body).map(|told| (Kind::Xml, told)))
        .or_else(|| table::tsv(body).map(|told| (Kind::Tsv, told)))
        .or_else(|| table::csv(body).map(|told| (Kind::Csv, told)))
        .or_else(|| yaml::describe(body).map(|told| (Kind::Yaml, told)))
        .or_else(|| code::describe(body).map(|told| (Kind::Code, told)));
    told.unwrap_or_else(|| (Kind::Text, plain::describe(body)))
}

/// Whether the beginning has a NUL, or one character in ten is none that text has.
fn is_binary(text: &str) -> bool {
    let mut all = 0;
    let mut odd = 0;
    for c in text.chars().take(BINARY_SAMPLE) {
        all += 1;
        match c {
            '\0' => return true,
            '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}' => {}
            '\u{fffd}' => odd += 1,
            c if c.is_control() => odd += 1,
            _ => {}
        }
    }
    odd * 10 > all
}

/// A piece of the text on one line: white space and control characters become single spaces, and what is longer than
/// `max_chars` ends with an ellipsis.
fn shown(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            gap = count > 0;
            continue;
        }
        let room = 1 + usize::from(gap);
        if count + room > max_chars {
            out.push('…');
            break;
        }
        if gap {
            out.push(' ');
        }
        out.push(c);
        count += room;
        gap = false;
    }
    out
}

/// The first names of a list, and how many more there are of `count`.
fn names<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> String {
    let list: Vec<String> = names
        .take(MAX_NAMES)
        .map(|name| shown(name, NAME_CHARS))
        .collect();
    let more = more(count, list.len());
    list.join(", ") + &more
}

/// What is said of those that are not listed.
fn more(count: usize, listed: usize) -> String {
    match count.saturating_sub(listed) {
        0 => String::new(),
        left => format!(" and {left} more"),
    }
}

/// Number of lines, as a tool that shows a file by lines counts them.
fn line_count(text: &str) -> usize {
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    breaks + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// A number and its noun.
fn count_of(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

#[cfg(test)]
mod tests;
