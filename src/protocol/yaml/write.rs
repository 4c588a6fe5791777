//! Writes JSON values as YAML that PyYAML and [`super::from_yaml`] read back as the same value.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use super::scalar;

/// Longest key that stands before its colon as it is. A reader gives up on a longer one, which therefore gets the `?` of
/// an explicit key.
const MAX_SIMPLE_KEY: usize = 512;

/// `value` in block style: members in their order, two spaces for each level, text quoted where it has to be, one line
/// feed at the end.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0),
        Value::Object(members) if !members.is_empty() => mapping(&mut out, members, 0),
        _ => {
            scalar(&mut out, value);
            out.push('\n');
        }
    }
    out
}

/// Writes a list, the first dash where `out` stands and the others at `indent`.
fn list(out: &mut String, items: &[Value], indent: usize) {
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            pad(out, indent);
        }
        out.push_str("- ");
        below(out, item, indent + 2);
    }
}

/// Writes a mapping, the first key where `out` stands and the others at `indent`.
fn mapping(out: &mut String, members: &Map<String, Value>, indent: usize) {
    for (place, (key, value)) in members.iter().enumerate() {
        if place > 0 {
            pad(out, indent);
        }
        if key.len() > MAX_SIMPLE_KEY {
            out.push_str("? ");
            text(out, key);
            out.push('\n');
            pad(out, indent);
            out.push_str(": ");
            below(out, value, indent + 2);
            continue;
        }
        text(out, key);
        out.push(':');
        match value {
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                pad(out, indent + 2);
                list(out, items, indent + 2);
            }
            Value::Object(members) if !members.is_empty() => {
                out.push('\n');
                pad(out, indent + 2);
                mapping(out, members, indent + 2);
            }
            _ => {
                out.push(' ');
                scalar(out, value);
                out.push('\n');
            }
        }
    }
}

/// Writes a value on the line that a dash or a mark began.
fn below(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Array(items) if !items.is_empty() => list(out, items, indent),
        Value::Object(members) if !members.is_empty() => mapping(out, members, indent),
        _ => {
            scalar(out, value);
            out.push('\n');
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn scalar(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(value) => number(out, value),
        Value::String(value) => text(out, value),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// YAML 1.1 takes a float only with a dot, and an exponent only with a sign.
fn number(out: &mut String, number: &Number) {
    let digits = number.to_string();
    let Some((mantissa, exponent)) = digits.split_once('e') else {
        out.push_str(&digits);
        return;
    };
    out.push_str(mantissa);
    if !mantissa.contains('.') {
        out.push_str(".0");
    }
    out.push('e');
    if !exponent.starts_with(['+', '-']) {
        out.push('+');
    }
    out.push_str(exponent);
}

fn text(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        quoted(out, text);
    }
}

/// Whether the text may stand without quotes: plain words that no reader takes for anything but text.
fn is_plain(text: &str) -> bool {
    let inner = |c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ' | ',' | '(' | ')' | '+')
    };
    let begins = text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '/');
    let in_block = text.len() <= MAX_SIMPLE_KEY && !text.ends_with(' ');
    begins
        && in_block
        && text.chars().all(inner)
        && matches!(scalar::implicit(text), Value::String(_))
}

/// In double quotes, with escapes for what YAML does not let stand or folds.
fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\x{:02X}", u32::from(c));
            }
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
