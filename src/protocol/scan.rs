//! A validating JSON scanner that finds spans and builds no values.
//!
//! Large inputs are mostly passed on as they are; building a value for each of them costs ten times what finding its end
//! costs. The scanner checks the whole grammar of RFC 8259 and accepts exactly what the value decoder
//! ([`super::json::parse`]) accepts: no unpaired surrogate escapes (`"\ud800"` is refused, since Rust text cannot hold
//! one), no numbers beyond the range of a double, no depth beyond [`MAX_DEPTH`].

use std::borrow::Cow;

use memchr::memchr2;

use super::error::{Error, ErrorCode};
use super::json::MAX_DEPTH;

/// What is wrong with an escape of `\ud800` to `\udfff` that stands alone.
const UNPAIRED_SURROGATE: &str = "a string has half of a surrogate pair, an escape from \\ud800 to \\udfff without its other half: that is no \
     character; write U+FFFD in its place, or the whole pair,";

/// The type of a JSON value, seen from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Type {
    /// The type of a value's text that a scanner has passed.
    pub fn of(span: &str) -> Type {
        match span.as_bytes().first() {
            Some(b'n') => Type::Null,
            Some(b't' | b'f') => Type::Bool,
            Some(b'"') => Type::String,
            Some(b'[') => Type::Array,
            Some(b'{') => Type::Object,
            _ => Type::Number,
        }
    }
}

/// A string of the text, between its quotes, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawStr<'a> {
    /// The text between the quotes.
    pub raw: &'a str,
    /// Whether there is an escape in it.
    pub escaped: bool,
}

impl<'a> RawStr<'a> {
    /// The string of a value's text that a scanner has passed; `None` when it is no string.
    pub fn of(span: &'a str) -> Option<Self> {
        let raw = span.strip_prefix('"')?.strip_suffix('"')?;
        let escaped = memchr::memchr(b'\\', raw.as_bytes()).is_some();
        Some(RawStr { raw, escaped })
    }

    /// The string with its escapes resolved.
    pub fn text(self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let quoted = format!("\"{}\"", self.raw);
        // The scanner passed it, so it parses.
        Cow::Owned(serde_json::from_str(&quoted).unwrap_or_default())
    }
}

/// Walks over one JSON text. Positions only move forward; after an error the scanner is of no further use.
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Containers that the caller has entered.
    depth: usize,
}

impl<'a> Scanner<'a> {
    /// Starts at the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Scanner {
            text,
            at: 0,
            depth: 0,
        }
    }

    /// Starts at a value that stands in `text` at `at`, for a second look at what was passed before.
    pub fn again(text: &'a str, at: usize) -> Self {
        Scanner { text, at, depth: 0 }
    }

    /// Where the scanner is, in bytes.
    pub fn at(&self) -> usize {
        self.at
    }

    /// How much of the text is left, in bytes.
    pub fn left(&self) -> usize {
        self.text.len() - self.at
    }

    /// The text from `start` to here.
    pub fn passed(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    /// The next byte that is no space, without passing it.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Checks that nothing but space is left.
    ///
    /// # Errors
    /// [`ErrorCode::JsonSyntax`]
    pub fn end(&mut self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.syntax("trailing characters")),
        }
    }

    /// Passes the opening of an object. Then call [`Scanner::member`] until it answers `None`.
    ///
    /// # Errors
    /// [`ErrorCode::JsonSyntax`], [`ErrorCode::JsonDepth`]
    pub fn enter_object(&mut self) -> Result<(), Error> {
        self.enter(b'{', "expected an object")
    }

    /// Passes the opening of an array. Then call [`Scanner::element`] until it answers `false`.
    ///
    /// # Errors
    /// [`ErrorCode::JsonSyntax`], [`ErrorCode::JsonDepth`]
    pub fn enter_array(&mut self) -> Result<(), Error> {
        self.enter(b'[', "expected an array")
    }

    fn enter(&mut self, open: u8, what: &str) -> Result<(), Error> {
        if self.peek() != Some(open) {
            return Err(self.syntax(what));
        }
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        Ok(())
    }

    /// Passes to the next member of the object and over its name; the value is next. `None` at the end, which is passed.
    ///
    /// # Errors
    /// [`ErrorCode::JsonSyntax`]
    pub fn member(&mut self, first: bool) -> Result<Option<RawStr<'a>>, Error> {
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                self.depth -= 1;
                return Ok(None);
            }
            Some(b',') if !first => {
                self.at += 1;
                self.peek();
            }
            _ if first => {}
            _ => return Err(self.syntax("expected `,` or `}`")),
        }
        let name = self.name()?;
        Ok(Some(name))
    }

    /// Passes to the next element of the array, which is next. `false` at the end, which is passed.
    ///
    /// # Errors
    /// [`ErrorCode::JsonSyntax`]
    pub fn element(&mut self, first: bool) -> Result<bool, Error> {
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                self.depth -= 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                Ok(true)
            }
            _ if first => Ok(true),
            _ => Err(self.syntax("expected `,` or `]`")),
        }
    }

    /// Passes one value, checks all of it, and answers its text.
    ///
    /// # Errors
    /// [`ErrorCode::JsonSyntax`], [`ErrorCode::JsonDepth`]
    pub fn value(&mut self) -> Result<&'a str, Error> {
        self.peek();
        let start = self.at;
        let base = self.depth;
        // One bit for each open container of this value: set for an object.
        let mut objects: u128 = 0;
        'value: loop {
            let opened = match self.peek() {
                Some(b'"') => {
                    self.string()?;
                    false
                }
                Some(open @ (b'{' | b'[')) => {
                    self.enter(open, "")?;
                    objects = objects << 1 | u128::from(open == b'{');
                    true
                }
                Some(b'-' | b'0'..=b'9') => {
                    self.number()?;
                    false
                }
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                Some(_) => return Err(self.syntax("expected value")),
                None => return Err(self.syntax("the text ends where a value is needed")),
            };
            let mut first = opened;
            // A value is complete, or a container has begun: go on to the next value, or close containers.
            while self.depth > base {
                let more = if objects & 1 == 1 {
                    self.member(first)?.is_some()
                } else {
                    self.element(first)?
                };
                if more {
                    continue 'value;
                }
                objects >>= 1;
                first = false;
            }
            return Ok(&self.text[start..self.at]);
        }
    }

    fn name(&mut self) -> Result<RawStr<'a>, Error> {
        if self.text.as_bytes().get(self.at) != Some(&b'"') {
            return Err(self.syntax("expected a member name in double quotes"));
        }
        let name = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.syntax("expected `:`"));
        }
        self.at += 1;
        Ok(name)
    }

    /// Passes a string; the scanner is at its opening quote.
    fn string(&mut self) -> Result<RawStr<'a>, Error> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            at = plain_run(bytes, at);
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at = self.escape(at)?;
                }
                Some(_) => {
                    self.at = at;
                    return Err(self.syntax("control character in a string"));
                }
                None => {
                    self.at = bytes.len();
                    return Err(self.syntax("the text ends within a string"));
                }
            }
        }
        self.at = at + 1;
        Ok(RawStr {
            raw: &self.text[start..at],
            escaped,
        })
    }

    /// Checks the escape at `at` and answers what follows it.
    fn escape(&mut self, at: usize) -> Result<usize, Error> {
        let bytes = self.text.as_bytes();
        self.at = at;
        match bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u') => match self.hex(at + 2)? {
                0xD800..=0xDBFF => {
                    let paired = bytes.get(at + 6..at + 8) == Some(b"\\u")
                        && matches!(self.hex(at + 8)?, 0xDC00..=0xDFFF);
                    if paired {
                        Ok(at + 12)
                    } else {
                        Err(self.syntax(UNPAIRED_SURROGATE))
                    }
                }
                0xDC00..=0xDFFF => Err(self.syntax(UNPAIRED_SURROGATE)),
                _ => Ok(at + 6),
            },
            _ => Err(self.syntax("invalid escape in a string")),
        }
    }

    fn hex(&self, at: usize) -> Result<u32, Error> {
        let digits = self.text.as_bytes().get(at..at + 4);
        let value = digits.and_then(|digits| {
            digits.iter().try_fold(0, |value, digit| {
                let digit = char::from(*digit).to_digit(16)?;
                Some(value * 16 + digit)
            })
        });
        value.ok_or_else(|| self.syntax("invalid escape in a string"))
    }

    fn literal(&mut self, word: &str) -> Result<bool, Error> {
        let end = self.at + word.len();
        if self.text.as_bytes().get(self.at..end) != Some(word.as_bytes()) {
            return Err(self.syntax("expected value"));
        }
        self.at = end;
        Ok(false)
    }

    fn number(&mut self) -> Result<(), Error> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start + usize::from(bytes[start] == b'-');
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let whole = at;
        at = digits(at);
        let mut bad = at == whole || (bytes[whole] == b'0' && at > whole + 1);
        if bytes.get(at) == Some(&b'.') {
            let fraction = at + 1;
            at = digits(fraction);
            bad |= at == fraction;
        }
        let mut wide = at - start > 300;
        if let Some(b'e' | b'E') = bytes.get(at) {
            at += 1;
            at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
            let exponent = at;
            at = digits(at);
            bad |= at == exponent;
            wide = true;
        }
        self.at = at;
        if bad {
            return Err(self.syntax("invalid number"));
        }
        if wide
            && !self.text[start..at]
                .parse::<f64>()
                .is_ok_and(f64::is_finite)
        {
            return Err(self.syntax("number out of range"));
        }
        Ok(())
    }

    /// A failure here.
    pub fn syntax(&self, what: &str) -> Error {
        if self.text.trim_ascii().is_empty() {
            let empty = "the text is empty where JSON is needed";
            return Error::new(ErrorCode::JsonSyntax, empty);
        }
        let (line, column) = self.position();
        Error::new(
            ErrorCode::JsonSyntax,
            format!("no JSON: {what} at line {line}, column {column}"),
        )
    }

    fn too_deep(&self) -> Error {
        let (line, column) = self.position();
        Error::new(
            ErrorCode::JsonDepth,
            format!("JSON is nested deeper than {MAX_DEPTH} at line {line}, column {column}"),
        )
    }

    /// Line and column, from 1, columns in bytes as serde_json counts them.
    fn position(&self) -> (usize, usize) {
        let passed = &self.text.as_bytes()[..self.at.min(self.text.len())];
        let line = memchr::memchr_iter(b'\n', passed).count() + 1;
        let column = passed.len() - memchr::memrchr(b'\n', passed).map_or(0, |at| at + 1) + 1;
        (line, column)
    }
}

/// The first byte from `at` on that ends a run of plain string bytes: a quote, a backslash or a control character.
#[inline]
fn plain_run(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // Names and short texts: eight bytes at a time in a register.
    for _ in 0..4 {
        let Some(chunk) = bytes.get(at..at + 8) else {
            break;
        };
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let equals = |byte: u8| {
            let diff = word ^ (ONES * u64::from(byte));
            diff.wrapping_sub(ONES) & !diff
        };
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let hits = (equals(b'"') | equals(b'\\') | control) & HIGH;
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = &bytes[at.min(bytes.len())..];
    let end = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    let run = &rest[..end];
    // Without an early exit the compiler checks many bytes at once.
    let control = run.iter().fold(false, |found, byte| found | (*byte < 0x20));
    if control {
        at + run.iter().position(|byte| *byte < 0x20).unwrap_or(end)
    } else {
        at + end
    }
}

/// The string whose opening quote stands at `at`, in text that a scanner has passed.
pub(crate) fn string_at(text: &str, at: usize) -> RawStr<'_> {
    let mut scanner = Scanner { text, at, depth: 0 };
    // Passed text has a whole string here.
    scanner.string().unwrap_or(RawStr {
        raw: "",
        escaped: false,
    })
}

/// Checks a whole document and answers the text of its one value.
///
/// # Errors
/// [`ErrorCode::JsonSyntax`], [`ErrorCode::JsonDepth`]
pub fn document(text: &str) -> Result<&str, Error> {
    let mut scanner = Scanner::new(text);
    let value = scanner.value()?;
    scanner.end()?;
    Ok(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the unexpected")]
mod tests {
    use super::*;
    use crate::protocol::json;

    #[test]
    fn scanner_and_decoder_agree_on_what_is_json() {
        let long = format!("\"{}\\n{}\"", "x".repeat(100), "é".repeat(70));
        let control = format!("\"{}\u{1}\"", "x".repeat(70));
        let digits = "9".repeat(400);
        let cases = [
            "",
            " ",
            "null",
            "nul",
            "true",
            "tru",
            "false",
            "0",
            "-0",
            "-",
            "01",
            "1.",
            "1.5",
            ".5",
            "1e5",
            "1e",
            "1e+",
            "1E-7",
            "1e999",
            "-1e999",
            "1e-999",
            "\"a\"",
            "\"",
            "\"\\\"",
            "\"\\u00e9\"",
            "\"\\ud800\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud83dx\"",
            "\"\\ude00\"",
            "\"\\ud83d\\u0041\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u00g0\"",
            "\"a\tb\"",
            "\"a\nb\"",
            "[]",
            "[1]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1]]",
            "[",
            "]",
            "{}",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{\"a\"}",
            "{a:1}",
            "{\"a\" : [ { } , null ] }",
            "{\"a\":1 \"b\":2}",
            "{,}",
            "[}",
            "{]",
            "\u{feff}1",
            "1 x",
            "NaN",
            "Infinity",
            "'a'",
            "{\"a\":1}}",
            "\"\u{7f}\"",
            "\"\\/\\b\\f\\r\\t\"",
            "{\"a\":{\"b\":{\"c\":[[[{}]]]}}}",
            "[1.5e3,-2,0.0,0e0]",
            "\u{a0}1",
            long.as_str(),
            control.as_str(),
            digits.as_str(),
            "[\"\\ud83d\",1]",
            "{\"\\ud800\":1}",
            "\"0123456789abcdef0123456789abcdef\u{1f}\"",
            "+1",
            "--1",
            "1e5.5",
            "\"\\u+123\"",
        ];
        for text in cases {
            let scanned = document(text);
            let decoded = json::parse(text);
            assert_eq!(
                scanned.is_ok(),
                decoded.is_ok(),
                "{text:?}: {scanned:?} {decoded:?}"
            );
            if let (Err(scanned), Err(decoded)) = (scanned, decoded) {
                assert_eq!(scanned.code, decoded.code, "{text:?}");
            }
        }
    }

    #[test]
    fn depth_128_is_read_and_129_is_refused_by_scanner_and_decoder() {
        for (depth, good) in [
            (1, true),
            (127, true),
            (128, true),
            (129, false),
            (100_000, false),
        ] {
            for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
                let inner = if open == "[" { "" } else { "1" };
                let text = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
                assert_eq!(document(&text).is_ok(), good, "{open} {depth}");
                let decoded = json::parse(&text);
                assert_eq!(decoded.is_ok(), good, "{open} {depth}");
                if let Err(error) = decoded {
                    assert_eq!(error.code, ErrorCode::JsonDepth);
                    assert_eq!(document(&text).unwrap_err().code, ErrorCode::JsonDepth);
                }
            }
        }
    }

    #[test]
    fn errors_say_line_and_column() {
        let error = document("{\n  \"a\": 1,\n  \"b\" 2}").unwrap_err();
        assert_eq!(error.message, "no JSON: expected `:` at line 3, column 7");
    }

    #[test]
    fn every_prefix_and_every_changed_byte_is_an_answer_and_agrees_with_the_decoder() {
        let text = r#"{"a":[1,-2.5e3,"x\u00e9\n",{"b":null,"c":[true,false,{}]}],"0123456789":"é日😀","d":""}"#;
        for end in 0..text.len() {
            if let Some(prefix) = text.get(..end) {
                assert!(document(prefix).is_err());
            }
        }
        for at in 0..text.len() {
            for byte in [
                b'"', b'\\', b'{', b'}', b'[', b']', b',', b':', b'0', b'e', b' ', b'\n', 1, b'x',
            ] {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                if let Ok(changed) = std::str::from_utf8(&bytes) {
                    assert_eq!(
                        document(changed).is_ok(),
                        json::parse(changed).is_ok(),
                        "{changed}"
                    );
                }
            }
        }
    }
}
