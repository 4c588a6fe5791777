//! Text to JSON values, with the limits that hold for every input.

use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::{Error, ErrorCode};
use super::scan;

/// Largest text that is accepted, in bytes.
pub const MAX_BYTES: usize = 1 << 30;
/// Deepest nesting that is accepted.
pub const MAX_DEPTH: usize = 128;

/// Parses one JSON document.
///
/// # Errors
/// [`ErrorCode::TooLarge`], [`ErrorCode::JsonDepth`] or [`ErrorCode::JsonSyntax`]; the message says line and column.
pub fn parse(text: &str) -> Result<Value, Error> {
    if text.len() > MAX_BYTES {
        return Err(Error::new(
            ErrorCode::TooLarge,
            format!("{} bytes are more than 1 GiB", text.len()),
        ));
    }
    match serde_json::from_str(text) {
        // serde_json stops at a depth of 127; the scanner knows whether it is one level more, or too many.
        Err(error) if is_depth(&error) => {
            scan::document(text)?;
            decode_own(text).map_err(|error| syntax(text, &error))
        }
        decoded => decoded.map_err(|error| syntax(text, &error)),
    }
}

/// Decodes text that was made or checked here, so that its depth has a bound already.
pub(crate) fn decode_own(text: &str) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    let value = Value::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

fn is_depth(error: &serde_json::Error) -> bool {
    error.is_syntax() && error.to_string().starts_with("recursion limit")
}

/// Maps a parser failure to its code.
pub fn syntax(text: &str, error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or_default();
    if text.trim_ascii().is_empty() {
        Error::new(
            ErrorCode::JsonSyntax,
            "the text is empty where JSON is needed",
        )
    } else if is_depth(error) {
        Error::new(
            ErrorCode::JsonDepth,
            format!("JSON is nested deeper than {MAX_DEPTH} at line {line}, column {column}"),
        )
    } else {
        // The parser has two texts for it; the scanner has the one that says what it is.
        let is_surrogate = matches!(
            what,
            "lone leading surrogate in hex escape" | "unexpected end of hex escape"
        );
        if is_surrogate && let Err(error) = scan::document(text) {
            return error;
        }
        Error::new(
            ErrorCode::JsonSyntax,
            format!("no JSON: {what} at line {line}, column {column}"),
        )
    }
}

/// `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    out
}

/// Adds `text` as a JSON string, quotes included. Escapes what has to be, as serde_json does; what has nothing to escape,
/// which is nearly all, is found so eight bytes at a time and copied whole.
pub fn push_quoted(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = write_quoted(out, text);
}

/// Writes `text` as [`push_quoted`] does.
///
/// # Errors
/// Those of the writer.
pub fn write_quoted<W: fmt::Write>(out: &mut W, text: &str) -> fmt::Result {
    out.write_str("\"")?;
    let mut rest = text;
    while let Some(at) = first_to_escape(rest.as_bytes()) {
        out.write_str(&rest[..at])?;
        match rest.as_bytes()[at] {
            b'"' => out.write_str("\\\""),
            b'\\' => out.write_str("\\\\"),
            b'\n' => out.write_str("\\n"),
            b'\r' => out.write_str("\\r"),
            b'\t' => out.write_str("\\t"),
            8 => out.write_str("\\b"),
            12 => out.write_str("\\f"),
            control => {
                let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
                out.write_str("\\u00")?;
                out.write_char(digit(control >> 4))?;
                out.write_char(digit(control & 15))
            }
        }?;
        rest = &rest[at + 1..];
    }
    out.write_str(rest)?;
    out.write_str("\"")
}

/// Adds a value as JSON, as serde_json writes it but without its own text between.
pub fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => match number.as_u64() {
            Some(number) => push_number(out, number),
            None => {
                // Writing to a String cannot fail.
                let _ = write!(out, "{number}");
            }
        },
        Value::String(text) => push_quoted(out, text),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                push_value(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => push_members(out, members),
    }
}

/// Adds an object as JSON; see [`push_value`].
pub fn push_members(out: &mut String, members: &Map<String, Value>) {
    out.push('{');
    for (place, (name, value)) in members.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_quoted(out, name);
        out.push(':');
        push_value(out, value);
    }
    out.push('}');
}

/// Where the first byte stands that a JSON string cannot hold as it is.
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);
    let needs = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let (words, tail) = bytes.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let word = u64::from_ne_bytes(*word);
        // The top bit of a byte comes up when the byte is zero, or less than 0x20, after the tricks below; a byte above 0x7f
        // never counts. A false alarm costs only the look at each byte.
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = zero(word ^ (ONES * u64::from(b'"')));
        let backslash = zero(word ^ (ONES * u64::from(b'\\')));
        if (control | quote | backslash) & TOPS != 0
            && let Some(at) = bytes[place * 8..place * 8 + 8].iter().position(needs)
        {
            return Some(place * 8 + at);
        }
    }
    let at = tail.iter().position(needs)?;
    Some(bytes.len() - tail.len() + at)
}

/// Adds a number in decimal; what the formatter does, at a fraction of its cost.
pub fn push_number(out: &mut String, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[from..]).unwrap_or_default());
}

/// Escapes one member name for a JSON pointer.
pub fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_values_are_written_as_serde_json_writes_them() {
        let mut texts: Vec<String> = (0..=0x2ff)
            .filter_map(char::from_u32)
            .map(String::from)
            .collect();
        texts.push("\u{2028}\u{ffff}\u{10ffff}".to_owned());
        // Each of them at each place of a word of eight bytes, alone and beside another.
        for text in &texts {
            for before in 0..9 {
                for after in ["", "plain", "\"\\\n and then some more"] {
                    let text = format!(
                        "{}{text}{after}",
                        "é".repeat(before / 2) + &"x".repeat(before % 2)
                    );
                    assert_eq!(quote(&text), serde_json::to_string(&text).expect("text"));
                }
            }
        }
        for text in [
            r#"{"a":[1,-1,0,18446744073709551615,-9223372036854775808,1.0,-0.0,1e300,5e-324,0.1],"\u0001":{"":null}}"#,
            r#"[true,false,null,"",[],{},[[{"x":"\ud83d\ude00"}]]]"#,
        ] {
            let value: Value = serde_json::from_str(text).expect("JSON");
            let mut out = String::new();
            push_value(&mut out, &value);
            assert_eq!(out, value.to_string());
        }
    }
}
