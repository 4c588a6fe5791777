//! Canonical JSON and its hash: what makes two values the same fact (AD-1 to AD-3).
//!
//! The text is what Python's `json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))` writes: members
//! sorted by code point, no spaces, nothing outside ASCII escaped, floats as [`super::number_text`] has them. Two values
//! that are written alike here are one value; `1` and `1.0` are two. Messages have a canonical form of their own, which has
//! nothing to do with this one: [`super::canonical`].
//!
//! The reference first reduces what it hashes to plain data (AD-4). Values here are JSON already, so there is nothing to
//! reduce, and numbers that JSON cannot write do not occur.

use std::fmt::{self, Write};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::hash::hex;
use super::json::write_quoted;
use super::number_text::number_text;

/// Writes a value in canonical form. Takes no copy of any text in it.
///
/// # Errors
/// Those of the writer.
pub fn write_value<W: Write>(out: &mut W, value: &Value) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(true) => out.write_str("true"),
        Value::Bool(false) => out.write_str("false"),
        Value::Number(number) => out.write_str(&number_text(number)),
        Value::String(text) => write_quoted(out, text),
        Value::Array(items) => {
            out.write_str("[")?;
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.write_str(",")?;
                }
                write_value(out, item)?;
            }
            out.write_str("]")
        }
        Value::Object(members) => write_members(out, members),
    }
}

fn write_members<W: Write>(out: &mut W, members: &Map<String, Value>) -> fmt::Result {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    // The order of UTF-8 bytes is that of code points (B-3).
    sorted.sort_unstable_by_key(|(name, _)| *name);
    out.write_str("{")?;
    for (place, (name, value)) in sorted.into_iter().enumerate() {
        if place > 0 {
            out.write_str(",")?;
        }
        write_quoted(out, name)?;
        out.write_str(":")?;
        write_value(out, value)?;
    }
    out.write_str("}")
}

/// The canonical text of a value.
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_value(&mut out, value);
    out
}

/// SHA-256 of the canonical text, 64 lower-case hexadecimal digits.
pub fn canonical_hash(value: &Value) -> String {
    let mut hasher = Hasher::default();
    // The hasher takes whatever it is given.
    let _ = write_value(&mut hasher, value);
    hasher.finish()
}

/// [`canonical_hash`] of an object with these members.
pub fn members_hash(members: &Map<String, Value>) -> String {
    let mut hasher = Hasher::default();
    // The hasher takes whatever it is given.
    let _ = write_members(&mut hasher, members);
    hasher.finish()
}

/// [`canonical_hash`] of a text: of the JSON string, quotes and escapes included, not of the text itself (AD-3).
pub fn text_hash(text: &str) -> String {
    let mut hasher = Hasher::default();
    // The hasher takes whatever it is given.
    let _ = write_quoted(&mut hasher, text);
    hasher.finish()
}

/// Whether two values have one canonical text. Unlike `==` this tells `0.0` from `-0.0`.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b && number_text(a) == number_text(b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// SHA-256 as a writer. Pieces are small, but gathering them first was measured and is slower: the hash gathers itself.
#[derive(Default)]
struct Hasher(Sha256);

impl Hasher {
    fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

impl Write for Hasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// SHA-256 of a text as it is.
    fn sha256(text: &str) -> String {
        let mut hasher = Hasher::default();
        hasher.write_str(text).expect("a hasher");
        hasher.finish()
    }

    #[test]
    fn ad_1_members_are_sorted_by_code_point_and_nothing_is_spaced_or_escaped_without_need() {
        for (value, expected) in [
            (
                json!({"b": 1, "a": [1, 2.0, {"d": null, "c": true}], "": "x"}),
                r#"{"":"x","a":[1,2.0,{"c":true,"d":null}],"b":1}"#,
            ),
            // By code point: U+FFFF before U+1F600, which UTF-16 has the other way round.
            (
                json!({"😀": 1, "\u{ffff}": 2, "é": 3, "Z": 4, "a": 5}),
                "{\"Z\":4,\"a\":5,\"é\":3,\"\u{ffff}\":2,\"😀\":1}",
            ),
            (
                json!("q\" b\\ n\n r\r t\t b\u{8} f\u{c} \u{1}\u{1f} \u{7f}\u{2028}é/"),
                "\"q\\\" b\\\\ n\\n r\\r t\\t b\\b f\\f \\u0001\\u001f \u{7f}\u{2028}é/\"",
            ),
            (
                json!([1e-5, 1e16, 0.1, -0.0, 5e-324, 10_000_000_000_000_000_u64]),
                "[1e-05,1e+16,0.1,-0.0,5e-324,10000000000000000]",
            ),
        ] {
            assert_eq!(canonical_json(&value), expected);
            assert_eq!(canonical_hash(&value), sha256(expected));
        }
    }

    #[test]
    fn ad_3_texts_are_hashed_with_their_quotes() {
        // echo -n '"a"' | sha256sum
        let expected = "ac8d8342bbb2362d13f0a559a3621bb407011368895164b628a54f7fc33fc43c";
        assert_eq!(canonical_hash(&json!("a")), expected);
        assert_eq!(text_hash("a"), expected);
        assert_ne!(text_hash("a"), sha256("a"));
        for text in [
            "",
            "line\nbreak \"quoted\" \\ é😀\u{1}",
            &"x".repeat(100_000),
        ] {
            assert_eq!(text_hash(text), canonical_hash(&json!(text)));
        }
    }

    #[test]
    fn what_is_written_alike_is_the_same() {
        let values = [
            json!(0.0),
            json!(-0.0),
            json!(0),
            json!(1),
            json!(1.0),
            json!(1e16),
            json!(10_000_000_000_000_000_u64),
            json!(true),
            json!(null),
            json!("1"),
            json!([]),
            json!({}),
            json!([0.0]),
            json!([-0.0]),
            json!({"a": 1, "b": [2]}),
            json!({"b": [2], "a": 1}),
            json!({"b": [2], "a": 1.0}),
        ];
        for a in &values {
            for b in &values {
                let alike = canonical_json(a) == canonical_json(b);
                assert_eq!(same(a, b), alike, "{a} and {b}");
            }
        }
    }
}
