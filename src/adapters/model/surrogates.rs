//! Text that an endpoint cut between the two UTF-16 halves of a character.
//!
//! Servers written in JavaScript or Java cut text by UTF-16 units: `"…\ud83d"` in one chunk, `"\ude42…"` in the next.
//! A JSON text with half a character is refused by JSON parsers, so such halves are marked before parsing and joined
//! when the pieces are.

use serde_json::Value;

/// The private characters that stand for halves: U+10F800 for 0xD800, and so on. Nobody writes them: they are the
/// end of a plane for private use.
const MARKS: u32 = 0x10_F800;
const HALVES: u32 = 0xD800;
const LOW_HALVES: u32 = 0xDC00;
const END: u32 = 0xE000;

/// JSON text with every lone half in its escapes written as its mark; `None` when there are no lone halves.
pub(super) fn mark(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut marked = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'\\', &bytes[at..]) {
        at += offset;
        match half(bytes, at) {
            None => at += 2,
            Some(high) if high < LOW_HALVES && half(bytes, at + 6).is_some_and(is_low) => at += 12,
            Some(lone) => {
                marked.push_str(&json[copied..at]);
                marked.extend(char::from_u32(lone - HALVES + MARKS));
                at += 6;
                copied = at;
            }
        }
        if at >= bytes.len() {
            break;
        }
    }
    if copied == 0 {
        return None;
    }
    marked.push_str(&json[copied..]);
    Some(marked)
}

/// The half that the escape at `at` stands for, if it is one.
fn half(json: &[u8], at: usize) -> Option<u32> {
    let escape = json.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    let number = digits.iter().try_fold(0, |number, digit| {
        Some(number * 16 + char::from(*digit).to_digit(16)?)
    })?;
    (HALVES..END).contains(&number).then_some(number)
}

fn is_low(half: u32) -> bool {
    half >= LOW_HALVES
}

/// Replaces what is left of marks in all texts of a value.
pub(super) fn clean(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().any(|c| unmark(c).is_some()) => {
            let mut joined = Joined::default();
            joined.push(text);
            *text = joined.finish();
        }
        Value::Array(list) => list.iter_mut().for_each(clean),
        Value::Object(map) => map.values_mut().for_each(clean),
        _ => {}
    }
}

/// The half that a marked character stands for.
fn unmark(c: char) -> Option<u32> {
    (c as u32).checked_sub(MARKS).map(|offset| HALVES + offset)
}

/// Text that is put together from pieces, with halves of characters joined.
#[derive(Debug, Default)]
pub(super) struct Joined {
    text: String,
    /// A first half at the end of the last piece.
    pending: Option<u32>,
}

impl Joined {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.pending.is_none()
    }

    /// The text so far, without a half at its end.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Adds a piece; what is new in the text.
    pub(super) fn push(&mut self, piece: &str) -> &str {
        let before = self.text.len();
        // The first byte of every character of the last plane: a quick look that hardly ever finds one.
        if self.pending.is_none() && memchr::memchr(0xF4, piece.as_bytes()).is_none() {
            self.text.push_str(piece);
        } else if !piece.is_empty() {
            piece.chars().for_each(|c| self.push_char(c));
        }
        &self.text[before..]
    }

    fn push_char(&mut self, c: char) {
        let new = unmark(c);
        if let Some(high) = self.pending.take() {
            if let Some(low) = new.filter(|half| is_low(*half)) {
                let code = 0x1_0000 + ((high - HALVES) << 10) + (low - LOW_HALVES);
                self.text.extend(char::from_u32(code));
                return;
            }
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        match new {
            None => self.text.push(c),
            Some(half) if is_low(half) => self.text.push(char::REPLACEMENT_CHARACTER),
            Some(half) => self.pending = Some(half),
        }
    }

    /// The whole text; a half that never met its other is replaced.
    pub(super) fn finish(mut self) -> String {
        if self.pending.is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.text
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn only_lone_halves_are_marked() {
        for whole in [
            "",
            "plain",
            r#""\ud83d\ude42""#,
            r#""\\ud83d""#,
            r#""\u00e9\n\"""#,
            r#""\ud83"#,
            "\\",
        ] {
            assert_eq!(mark(whole), None, "{whole}");
        }
        let marked = mark(r#"["a\ud83d","\uDE42b\\ud83d\ud83d\ud83d\ude42"]"#).unwrap();
        let texts: Vec<String> = serde_json::from_str(&marked).unwrap();
        let mut joined = Joined::default();
        texts.iter().for_each(|text| {
            joined.push(text);
        });
        assert_eq!(joined.finish(), "a🙂b\\ud83d\u{FFFD}🙂");
    }

    #[test]
    fn pieces_give_what_is_new() {
        let marked: Vec<String> =
            serde_json::from_str(&mark(r#"["\ud83d","\ude42!","\ude42"]"#).unwrap()).unwrap();
        let mut joined = Joined::default();
        let new: Vec<String> = marked
            .iter()
            .map(|piece| joined.push(piece).to_owned())
            .collect();
        assert_eq!(new, ["", "🙂!", "\u{FFFD}"]);
    }
}
