//! What the reference's language says about values: truth, equality, keys, `str()`, `repr()` and `json.dumps()`. Reducers
//! and coercion depend on them.

use std::borrow::Cow;

use serde_json::{Number, Value};

pub use crate::protocol::number_text::number_text as number_of;

/// Whether a value counts as true: not null, false, zero or empty.
pub fn truthy(value: &Value) -> bool {
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
pub fn truthy_member<'a>(
    members: &'a serde_json::Map<String, Value>,
    name: &str,
) -> Option<&'a Value> {
    members.get(name).filter(|value| truthy(value))
}

/// A value as a key of a map. Numbers and booleans of equal value are one key: `1`, `1.0` and `true`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key<'a> {
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
    pub fn of(value: &'a Value) -> Option<Key<'a>> {
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
    pub fn into_owned(self) -> Key<'static> {
        match self {
            Key::Null => Key::Null,
            Key::Whole(whole) => Key::Whole(whole),
            Key::Float(bits) => Key::Float(bits),
            Key::Text(text) => Key::Text(Cow::Owned(text.into_owned())),
        }
    }
}

/// Whether two values are equal; the order of members does not matter, and numbers compare as [`Key`] says.
pub fn equal(a: &Value, b: &Value) -> bool {
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
pub fn iterate(value: Value) -> Result<Vec<Value>, Value> {
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

/// `str()`: a string as it is, everything else as `repr()` has it.
pub fn str_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => repr(other),
    }
}

/// Words joined by single spaces, cut after `max_chars` code points.
pub fn collapse_whitespace(text: &str, max_chars: usize) -> String {
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
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// `repr()` of what a JSON value is in Python.
pub fn repr(value: &Value) -> String {
    let mut out = String::new();
    push_repr(&mut out, value);
    out
}

fn push_repr(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => out.push_str(&number_of(number)),
        Value::String(text) => push_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                push_repr(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (place, (name, value)) in members.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                push_text(out, name);
                out.push_str(": ");
                push_repr(out, value);
            }
            out.push('}');
        }
    }
}

/// Quoted text: single quotes unless the text has some and no double ones. Characters that Python does not print are
/// escaped.
fn push_text(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for char in text.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if char == quote => {
                out.push('\\');
                out.push(char);
            }
            _ if is_printable(char) => out.push(char),
            _ => {
                let code = u32::from(char);
                out.push_str(&match code {
                    0..=0xFF => format!("\\x{code:02x}"),
                    0x100..=0xFFFF => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
        }
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

/// `json.dumps()` with its default settings: spaces after separators, everything outside ASCII escaped.
pub fn dumps(value: &Value) -> String {
    let mut out = String::new();
    push_dumps(&mut out, value);
    out
}

fn push_dumps(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_of(number)),
        Value::String(text) => push_ascii(out, text),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                push_dumps(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (place, (name, value)) in members.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                push_ascii(out, name);
                out.push_str(": ");
                push_dumps(out, value);
            }
            out.push('}');
        }
    }
}

fn push_ascii(out: &mut String, text: &str) {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    for char in quoted.chars() {
        if char.is_ascii() && char != '\u{7f}' {
            out.push(char);
        } else {
            let mut units = [0; 2];
            for unit in char.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
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
            assert_eq!(str_of(&value), expected);
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

    #[test]
    fn numbers_and_texts_read_as_in_python() {
        let value = json!([
            0.1,
            1.0,
            1e16,
            1.5e-7,
            123456789012345680.0,
            -0.0001,
            1e22,
            0.0,
            -5,
            "it's",
            "a\"'b",
            "\u{0}é\u{a0}"
        ]);
        let expected = "[0.1, 1.0, 1e+16, 1.5e-07, 1.2345678901234568e+17, -0.0001, 1e+22, 0.0, -5, \"it's\", 'a\"\\'b', '\\x00é\\xa0']";
        assert_eq!(repr(&value), expected);
        assert_eq!(dumps(&json!({"a": [1, "é"]})), "{\"a\": [1, \"\\u00e9\"]}");
        assert_eq!(
            dumps(&json!("\u{7f}\u{1f600}\u{8}\u{1}/")),
            "\"\\u007f\\ud83d\\ude00\\b\\u0001/\""
        );
    }
}
