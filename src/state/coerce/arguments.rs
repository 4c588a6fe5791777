//! The arguments text of a tool call: JSON as Python reads it, and the lenient reading of text that is cut short.
//!
//! Differences to the JSON of documents: `NaN`, `Infinity` and `-Infinity` are values (kept as null inside an object, since
//! JSON has no such numbers), numbers beyond a double are null, an unpaired surrogate escape becomes U+FFFD, and control
//! characters may stand in strings unless the reading is strict. Nesting deeper than [`MAX_DEPTH`] is an error, so that the
//! message around the arguments stays within the depth of a document.

use serde_json::{Map, Number, Value};

/// Deepest nesting of arguments.
pub const MAX_DEPTH: usize = 100;

/// Why a text is no arguments, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    what: &'static str,
    /// In bytes.
    at: usize,
}

impl Fault {
    /// What is wrong, with line and column (from 1, in characters) in `text`.
    pub fn describe(&self, text: &str) -> String {
        let passed = text.get(..self.at).unwrap_or(text);
        let line = passed.matches('\n').count() + 1;
        let column = passed
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        format!("{} at line {line}, column {column}", self.what)
    }
}

/// Whether control characters may stand in strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// They may not.
    Strict,
    /// They may.
    Lax,
}

/// Reads the whole text as one value.
pub fn parse(text: &str, strictness: Strictness) -> Result<Value, Fault> {
    let mut parser = Parser {
        text,
        at: 0,
        strictness,
    };
    if text.starts_with('\u{feff}') {
        return Err(parser.fault("a byte order mark"));
    }
    parser.space();
    let value = parser.value(0)?;
    parser.space();
    if parser.at < text.len() {
        return Err(parser.fault("extra text"));
    }
    // A bare NaN is a number to Python: true, and no object.
    Ok(value.unwrap_or(Value::Bool(true)))
}

/// Reads text that may be cut short: open strings and brackets are closed, and what cannot be completed is dropped from the
/// end. `Ok(Null)` when a bracket is closed that is not open.
///
/// Source: spec 10, lenient parse. The reference tries every shorter text in turn; here the place of the failure tells how
/// many tries must fail alike, so that the work stays near linear.
pub fn parse_partial(text: &str) -> Result<Value, Fault> {
    let first = match parse(text, Strictness::Lax) {
        Ok(value) => return Ok(value),
        Err(fault) => fault,
    };
    let mut repaired = String::with_capacity(text.len() + 8);
    // Closing brackets that are due, each with a fingerprint of all of them up to it.
    let mut due: Vec<(char, u64)> = Vec::new();
    // Ends outside of strings, each with the fingerprint of what is due there.
    let mut ends: Vec<(usize, u64)> = Vec::new();
    let fingerprint = |due: &[(char, u64)]| due.last().map_or(0, |(_, print)| *print);
    let (mut in_string, mut escaped) = (false, false);
    for char in text.chars() {
        if in_string {
            match char {
                '"' if !escaped => in_string = false,
                '\n' if !escaped => {
                    repaired.push_str("\\n");
                    continue;
                }
                '\\' => escaped = !escaped,
                _ => escaped = false,
            }
        } else {
            match char {
                '"' => (in_string, escaped) = (true, false),
                '{' | '[' => {
                    let close = if char == '{' { '}' } else { ']' };
                    let mixed = fingerprint(&due).wrapping_add(u64::from(close));
                    due.push((
                        close,
                        mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23),
                    ));
                }
                '}' | ']' => match due.pop() {
                    Some((open, _)) if open == char => {}
                    _ => return Ok(Value::Null),
                },
                _ => {}
            }
        }
        repaired.push(char);
        if !in_string {
            ends.push((repaired.len(), fingerprint(&due)));
        }
    }
    if in_string {
        if escaped {
            repaired.pop();
        }
        repaired.push('"');
        ends.push((repaired.len(), fingerprint(&due)));
    }
    let closers: String = due.iter().rev().map(|(close, _)| *close).collect();
    // A shorter text can be JSON with these closers only where the same brackets are open; and every text that still has
    // the place of a failure fails there again.
    let mut bound = repaired.len();
    while let Some((end, print)) = ends.pop() {
        if end > bound || print != fingerprint(&due) {
            continue;
        }
        repaired.truncate(end);
        repaired.push_str(&closers);
        match parse(&repaired, Strictness::Lax) {
            Ok(value) => return Ok(value),
            Err(fault) => bound = bound.min(fault.at),
        }
    }
    Err(first)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    strictness: Strictness,
}

impl Parser<'_> {
    fn fault(&self, what: &'static str) -> Fault {
        Fault { what, at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// One value; `None` for a number that JSON does not have.
    fn value(&mut self, depth: usize) -> Result<Option<Value>, Fault> {
        if depth > MAX_DEPTH {
            return Err(self.fault("nesting deeper than 100"));
        }
        match self.peek() {
            Some(b'"') => Ok(Some(Value::String(self.string()?))),
            Some(b'{') => self
                .object(depth)
                .map(|members| Some(Value::Object(members))),
            Some(b'[') => self.array(depth).map(|items| Some(Value::Array(items))),
            _ => {
                let words = [
                    ("null", Some(Value::Null)),
                    ("true", Some(Value::Bool(true))),
                    ("false", Some(Value::Bool(false))),
                    ("NaN", None),
                    ("Infinity", None),
                    ("-Infinity", None),
                ];
                for (word, value) in words {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                self.number()
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Map<String, Value>, Fault> {
        let mut members = Map::new();
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(members);
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.fault("expected a member name in double quotes"));
            }
            let name = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.fault("expected `:`"));
            }
            self.at += 1;
            self.space();
            let value = self.value(depth + 1)?.unwrap_or(Value::Null);
            members.insert(name, value);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(members);
                }
                _ => return Err(self.fault("expected `,`")),
            }
            self.space();
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Value>, Fault> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(items);
        }
        loop {
            items.push(self.value(depth + 1)?.unwrap_or(Value::Null));
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(items);
                }
                _ => return Err(self.fault("expected `,`")),
            }
            self.space();
        }
    }

    fn number(&mut self) -> Result<Option<Value>, Fault> {
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let start = self.at;
        let whole = start + usize::from(self.peek() == Some(b'-'));
        let mut end = match bytes.get(whole) {
            Some(b'0') => whole + 1,
            Some(b'1'..=b'9') => digits(whole),
            _ => return Err(self.fault("expected a value")),
        };
        let mut integer = true;
        if bytes.get(end) == Some(&b'.') && digits(end + 1) > end + 1 {
            end = digits(end + 1);
            integer = false;
        }
        if let Some(b'e' | b'E') = bytes.get(end) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = end + 1 + sign;
            if digits(exponent) > exponent {
                end = digits(exponent);
                integer = false;
            }
        }
        self.at = end;
        let text = &self.text[start..end];
        let number = if integer {
            let signed = text.parse::<i64>().map(Number::from);
            signed
                .or_else(|_| text.parse::<u64>().map(Number::from))
                .ok()
        } else {
            None
        };
        let float = || text.parse().ok().and_then(Number::from_f64);
        Ok(number.or_else(float).map(Value::Number))
    }

    fn string(&mut self) -> Result<String, Fault> {
        let start = self.at;
        let mut out = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let stop = rest
                .bytes()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            let Some(stop) = stop else {
                self.at = start;
                return Err(self.fault("unterminated string"));
            };
            out.push_str(&rest[..stop]);
            self.at += stop;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.escape(start, &mut out)?,
                Some(control) => {
                    if self.strictness == Strictness::Strict {
                        return Err(self.fault("control character in a string"));
                    }
                    out.push(char::from(control));
                    self.at += 1;
                }
                None => {}
            }
        }
    }

    fn escape(&mut self, start: usize, out: &mut String) -> Result<(), Fault> {
        let bytes = self.text.as_bytes();
        let char = match bytes.get(self.at + 1) {
            None => {
                self.at = start;
                return Err(self.fault("unterminated string"));
            }
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let unit = self.hex(self.at + 2)?;
                self.at += 6;
                let pair = (0xD800..0xDC00).contains(&unit) && bytes[self.at..].starts_with(b"\\u");
                if pair && let Ok(low @ 0xDC00..0xE000) = self.hex(self.at + 2) {
                    self.at += 6;
                    let code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                } else {
                    out.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                return Ok(());
            }
            Some(_) => return Err(self.fault("invalid escape")),
        };
        self.at += 2;
        out.push(char);
        Ok(())
    }

    fn hex(&self, at: usize) -> Result<u32, Fault> {
        let digits = self.text.as_bytes().get(at..at + 4);
        let value = digits.and_then(|digits| {
            digits.iter().try_fold(0, |value, digit| {
                let digit = char::from(*digit).to_digit(16)?;
                Some(value * 16 + digit)
            })
        });
        value.ok_or_else(|| self.fault("invalid escape"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lenient_reading_completes_what_is_cut_short() {
        for (text, value) in [
            ("{\"a\": [1, {\"b\": 2", json!({"a": [1, {"b": 2}]})),
            ("{\"a\":\"b\\", json!({"a": "b"})),
            ("{\"a\":1} x", json!({"a": 1})),
            ("{\"a\":1e", json!({"a": 1})),
            ("{\"u\":\"\\u65e", json!({})),
            ("{\"a\":nul", json!({})),
            ("{\"a\":", json!({})),
            ("{\"a\":\t\"x\ty", json!({"a": "x\ty"})),
            ("{\"a\":\"x\ny", json!({"a": "x\ny"})),
            ("{]", Value::Null),
        ] {
            assert_eq!(parse_partial(text), Ok(value), "{text}");
        }
        assert!(parse_partial(" ").is_err());
        assert!(parse_partial("{\"a\":1,}").is_err());
    }

    /// The lenient reading as the reference does it: every shorter text in turn.
    fn slow(text: &str) -> Option<Value> {
        if let Ok(value) = parse(text, Strictness::Lax) {
            return Some(value);
        }
        let mut chars: Vec<String> = Vec::new();
        let mut due = Vec::new();
        let (mut in_string, mut escaped) = (false, false);
        for char in text.chars() {
            let mut kept = char.to_string();
            if in_string {
                match char {
                    '"' if !escaped => in_string = false,
                    '\n' if !escaped => kept = "\\n".into(),
                    '\\' => escaped = !escaped,
                    _ => escaped = false,
                }
            } else {
                match char {
                    '"' => (in_string, escaped) = (true, false),
                    '{' => due.push('}'),
                    '[' => due.push(']'),
                    '}' | ']' if due.pop() != Some(char) => return Some(Value::Null),
                    _ => {}
                }
            }
            chars.push(kept);
        }
        if in_string {
            if escaped {
                chars.pop();
            }
            chars.push("\"".into());
        }
        let closers: String = due.iter().rev().collect();
        while !chars.is_empty() {
            if let Ok(value) = parse(&(chars.concat() + &closers), Strictness::Lax) {
                return Some(value);
            }
            chars.pop();
        }
        None
    }

    #[test]
    fn lenient_reading_equals_trying_every_shorter_text() {
        let parts = [
            "{", "}", "[", "]", "\"", "\"a\"", ":", ",", "1", "-", "1.5", "e3", "nul", "true",
            "\\", "\\u00", "\n", " ", "x",
        ];
        let mut seed: u64 = 7;
        for _ in 0..60_000 {
            let mut text = String::new();
            for _ in 0..(seed >> 40) % 12 {
                seed = seed
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                text.push_str(parts[(seed >> 33) as usize % parts.len()]);
            }
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            assert_eq!(parse_partial(&text).ok(), slow(&text), "{text:?}");
        }
    }

    #[test]
    fn deep_and_broken_arguments_are_refused_quickly() {
        assert!(parse(&"[".repeat(1_000_000), Strictness::Lax).is_err());
        assert!(parse_partial(&format!("[[{}]  {{bad", "1,".repeat(100_000))).is_err());
        let _ = parse_partial(&"{\"a\":".repeat(100_000));
    }
}
