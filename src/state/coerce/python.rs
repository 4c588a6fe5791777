//! The few habits of Python that the reference's answers depend on: truth, `str()` and `repr()` of JSON values.

use serde_json::{Number, Value};

/// Whether Python takes the value for true.
pub fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// `str()`: a string as it is, everything else as `repr()` has it.
pub fn str_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => repr(other),
    }
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

/// The decimal form of a number: `5`, `1.0`, `1e+16`, `1e-07`.
pub fn number_of(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float_of(float),
        _ => number.to_string(),
    }
}

/// The shortest digits that read back as the same double, laid out as Python lays them out: an exponent of two digits at
/// least, from 1e16 on and below 1e-4.
fn float_of(float: f64) -> String {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        let plain = format!("{float}");
        return if plain.contains('.') {
            plain
        } else {
            format!("{plain}.0")
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Quoted text: single quotes unless the text has some and no double ones. Characters that Python does not print are
/// escaped; which ones those are is approximated by classes, since the full tables are not worth their size here.
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
            _ if is_printed(char) => out.push(char),
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

fn is_printed(char: char) -> bool {
    let hidden = matches!(char,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{10ffff}');
    char == ' ' || !(char.is_control() || char.is_whitespace() || hidden)
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
        if char.is_ascii() {
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
    use super::*;
    use serde_json::json;

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
    }
}
