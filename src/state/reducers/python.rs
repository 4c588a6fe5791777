//! What the reference's language says about values: truth, equality, keys, text. Reducers depend on all four.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Whether a value counts as true: not null, false, zero or empty.
pub(super) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// A member that counts as true.
pub(super) fn truthy_member<'a>(
    members: &'a serde_json::Map<String, Value>,
    name: &str,
) -> Option<&'a Value> {
    members.get(name).filter(|value| truthy(value))
}

/// A value as a key of a map. Numbers and booleans of equal value are one key: `1`, `1.0` and `true`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key<'a> {
    /// Null.
    Null,
    /// An integer, a boolean, or a float without a fraction.
    Whole(i128),
    /// Bits of any other float.
    Float(u64),
    /// Text, by code points.
    Text(Cow<'a, str>),
}

impl<'a> Key<'a> {
    /// The key of a value; `None` for lists and objects, which cannot be keys.
    pub(super) fn of(value: &'a Value) -> Option<Key<'a>> {
        Some(match value {
            Value::Null => Key::Null,
            Value::Bool(value) => Key::Whole(i128::from(*value)),
            Value::Number(number) => Key::of_number(number),
            Value::String(text) => Key::Text(Cow::Borrowed(text)),
            Value::Array(_) | Value::Object(_) => return None,
        })
    }

    fn of_number(number: &Number) -> Key<'a> {
        /// Beyond this a float equals no integer that JSON text gives us as one.
        const EXACT: f64 = (1_u128 << 100) as f64;
        if let Some(whole) = number.as_i64() {
            return Key::Whole(i128::from(whole));
        }
        if let Some(whole) = number.as_u64() {
            return Key::Whole(i128::from(whole));
        }
        let float = number.as_f64().unwrap_or_default();
        if float.fract() == 0.0 && float.abs() < EXACT {
            Key::Whole(float as i128)
        } else {
            Key::Float(float.to_bits())
        }
    }

    /// The same key, independent of the value it came from.
    pub(super) fn into_owned(self) -> Key<'static> {
        match self {
            Key::Null => Key::Null,
            Key::Whole(whole) => Key::Whole(whole),
            Key::Float(bits) => Key::Float(bits),
            Key::Text(text) => Key::Text(Cow::Owned(text.into_owned())),
        }
    }
}

/// Whether two values are equal; the order of members does not matter, and numbers compare as [`Key`] says.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        // Two containers of different kinds have no key either, and must not be equal for that.
        (Value::Array(_) | Value::Object(_), _) => false,
        (a, b) => Key::of(a) == Key::of(b),
    }
}

/// What a loop over a value sees: items, characters or member names; the value itself when it cannot be looped over.
pub(super) fn iterate(value: Value) -> Result<Vec<Value>, Value> {
    match value {
        Value::Array(items) => Ok(items),
        Value::String(text) => Ok(text.chars().map(|c| Value::String(c.into())).collect()),
        Value::Object(members) => Ok(members
            .into_iter()
            .map(|(name, _)| Value::String(name))
            .collect()),
        other => Err(other),
    }
}

/// A value as text: `None`, `True`, `1e+16`; text is itself.
pub(super) fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => {
            let mut out = String::new();
            write_literal(&other, &mut out);
            out
        }
    }
}

/// Words joined by single spaces, cut after `max_chars` code points.
pub(super) fn collapse_whitespace(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    let mut left = max_chars;
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if left == 0 {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
            left -= 1;
        }
        for c in word.chars().take(left) {
            out.push(c);
            left -= 1;
        }
    }
    out
}

/// The whitespace of the reference: Rust's set and U+001C to U+001F.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

fn write_literal(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => write_float(float, out),
            _ => out.push_str(&number.to_string()),
        },
        Value::String(text) => write_quoted(text, out),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                write_literal(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (place, (name, member)) in members.iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                write_quoted(name, out);
                out.push_str(": ");
                write_literal(member, out);
            }
            out.push('}');
        }
    }
}

/// Shortest digits that read back; an exponent of at least two digits below 1e-4 and from 1e16.
fn write_float(float: f64, out: &mut String) {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = if (-4..16).contains(&exponent) {
        let point = if float.fract() == 0.0 { ".0" } else { "" };
        write!(out, "{float}{point}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{digits}e{sign}{:02}", exponent.abs())
    };
}

fn write_quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            '\\' => out.write_str("\\\\"),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            c if c == quote => write!(out, "\\{c}"),
            c if is_printable(c) => out.write_char(c),
            c if u32::from(c) < 0x100 => write!(out, "\\x{:02x}", u32::from(c)),
            c if u32::from(c) < 0x1_0000 => write!(out, "\\u{:04x}", u32::from(c)),
            c => write!(out, "\\U{:08x}", u32::from(c)),
        };
    }
    out.push(quote);
}

/// Neither a control, format, private, unassigned nor separator character, the space excepted.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // The standard library escapes by the same classes, but a combining character only at the start of a text.
    let mut pair = String::from("a");
    pair.push(c);
    pair.escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_written_as_the_reference_writes_it() {
        for (value, expected) in [
            (json!(null), "None"),
            (json!(true), "True"),
            (json!(5), "5"),
            (
                json!(18_446_744_073_709_551_615_u64),
                "18446744073709551615",
            ),
            (json!(1.0), "1.0"),
            (json!(-0.0), "-0.0"),
            (json!(2.5), "2.5"),
            (json!(1e15), "1000000000000000.0"),
            (json!(1e16), "1e+16"),
            (json!(1.25e22), "1.25e+22"),
            (json!(1e-4), "0.0001"),
            (json!(1e-5), "1e-05"),
            (json!(1e-300), "1e-300"),
            (json!("a'b"), "a'b"),
            (json!(["a'b"]), "[\"a'b\"]"),
            (json!(["a'b\"c"]), "['a\\'b\"c']"),
            (
                json!(["\\ \n\t\r\u{0}\u{7f}"]),
                "['\\\\ \\n\\t\\r\\x00\\x7f']",
            ),
            (
                json!(["é日\u{301}\u{200b}\u{a0}\u{e000}"]),
                "['é日\u{301}\\u200b\\xa0\\ue000']",
            ),
            (json!(["\u{10fffe}"]), "['\\U0010fffe']"),
            (json!({"k": [1, {"n": null}]}), "{'k': [1, {'n': None}]}"),
            (json!({}), "{}"),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    #[test]
    fn numbers_and_booleans_of_one_value_are_one_key() {
        assert_eq!(Key::of(&json!(1)), Key::of(&json!(1.0)));
        assert_eq!(Key::of(&json!(1)), Key::of(&json!(true)));
        assert_eq!(Key::of(&json!(0)), Key::of(&json!(-0.0)));
        assert_eq!(
            Key::of(&json!(1e16)),
            Key::of(&json!(10_000_000_000_000_000_u64))
        );
        // 2^53 + 1 has no float of its own; comparing as floats would take the two for equal.
        assert_ne!(
            Key::of(&json!(9_007_199_254_740_993_u64)),
            Key::of(&json!(9_007_199_254_740_992.0))
        );
        assert_ne!(Key::of(&json!(1)), Key::of(&json!("1")));
        assert_ne!(Key::of(&json!(0)), Key::of(&json!(null)));
        assert_eq!(Key::of(&json!([])), None);
    }

    #[test]
    fn equality_looks_into_containers() {
        assert!(equal(
            &json!({"a": [1], "b": 0}),
            &json!({"b": false, "a": [1.0]})
        ));
        assert!(!equal(&json!({"a": null}), &json!({"b": null})));
        assert!(!equal(&json!([]), &json!({})));
        assert!(!equal(&json!([]), &json!(null)));
        assert!(!equal(&json!(null), &json!([])));
    }

    #[test]
    fn whitespace_collapses_and_the_cut_counts_code_points() {
        assert_eq!(
            collapse_whitespace(" a\u{1c}b\u{3000}\u{85}c ", 99),
            "a b c"
        );
        assert_eq!(
            collapse_whitespace("a\u{200b}b\u{feff}", 99),
            "a\u{200b}b\u{feff}"
        );
        assert_eq!(collapse_whitespace("日本 語", 3), "日本 ");
        assert_eq!(collapse_whitespace("日本 語", 2), "日本");
        assert_eq!(collapse_whitespace(" \n", 5), "");
    }

    #[test]
    fn the_whitespace_set_is_the_documented_one() {
        let listed = |c: char| {
            matches!(u32::from(c),
                0x09..=0x0d | 0x1c..=0x20 | 0x85 | 0xa0 | 0x1680 | 0x2000..=0x200a
                | 0x2028 | 0x2029 | 0x202f | 0x205f | 0x3000)
        };
        for c in '\0'..=char::MAX {
            assert_eq!(is_space(c), listed(c), "{:x}", u32::from(c));
        }
    }
}
