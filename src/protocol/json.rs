//! Text to JSON values, with the limits that hold for every input.

use serde::Deserialize;
use serde_json::Value;

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
        Error::new(
            ErrorCode::JsonSyntax,
            format!("no JSON: {what} at line {line}, column {column}"),
        )
    }
}

/// `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
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
    out.extend(digits[from..].iter().map(|digit| char::from(*digit)));
}

/// Escapes one member name for a JSON pointer.
pub fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
