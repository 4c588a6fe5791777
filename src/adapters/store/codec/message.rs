//! Messages as bytes: canonical JSON without the members that have their usual value, and with UUIDs packed. What comes
//! back is the canonical text, byte for byte.

use super::varint::{self, Reader};
use crate::protocol::error::Error;
use crate::protocol::message::{Kind, Message};

/// The members of a class after `type`, in canonical order, each with its usual value; `type` itself is the class.
const HEAD: [(&str, &str); 3] = [
    ("content", "\"\""),
    ("additional_kwargs", "{}"),
    ("response_metadata", "{}"),
];
const NAMES: [(&str, &str); 2] = [("name", "null"), ("id", "null")];
const AI: [(&str, &str); 3] = [
    ("tool_calls", "[]"),
    ("invalid_tool_calls", "[]"),
    ("usage_metadata", "null"),
];
const TOOL: [(&str, &str); 3] = [
    ("tool_call_id", "\"\""),
    ("artifact", "null"),
    ("status", "\"success\""),
];
const CHAT: [(&str, &str); 1] = [("role", "\"\"")];

/// Codes of the classes. They are in files: never change one. 0 is text as it is.
const KINDS: [Kind; 7] = [
    Kind::Human,
    Kind::Ai,
    Kind::System,
    Kind::Tool,
    Kind::Function,
    Kind::Chat,
    Kind::Remove,
];
const AS_IT_IS: u64 = 0;
const KIND_BITS: u32 = 3;

/// How a value is written; the low two bits of its length.
const FORM_BITS: u32 = 2;
const FORM_JSON: u64 = 0;
const FORM_STRING: u64 = 1;
const FORM_UUID: u64 = 2;

fn members(kind: Kind) -> impl Iterator<Item = (&'static str, &'static str)> {
    let own: &[_] = match kind {
        Kind::Ai => &AI,
        Kind::Tool => &TOOL,
        Kind::Chat => &CHAT,
        Kind::Human | Kind::System | Kind::Function | Kind::Remove => &[],
    };
    HEAD.iter().chain(&NAMES).chain(own).copied()
}

/// The bytes of a message.
pub fn encode(message: &Message) -> Vec<u8> {
    let text = message.json();
    // The scan trusts the layout; the comparison is what makes it safe to.
    if let Some(bytes) = compact(message.kind(), text)
        && decode(&bytes).as_deref() == Some(text)
    {
        return bytes;
    }
    let mut out = Vec::with_capacity(text.len() + 1);
    varint::put(&mut out, AS_IT_IS);
    out.extend_from_slice(text.as_bytes());
    out
}

/// The canonical text; `None` when the bytes are no message. It may still be text that is no message.
pub fn decode(bytes: &[u8]) -> Option<String> {
    let mut reader = Reader(bytes);
    let head = reader.number()?;
    let code = head & ((1 << KIND_BITS) - 1);
    let present = head >> KIND_BITS;
    if code == AS_IT_IS {
        return (present == 0).then(|| String::from_utf8(reader.0.to_vec()).ok())?;
    }
    let kind = *KINDS.get(usize::try_from(code - 1).ok()?)?;
    let mut text = String::with_capacity(bytes.len() + 160);
    text.push('{');
    let mut bit = 1;
    for (place, (name, usual)) in members(kind).enumerate() {
        if place == HEAD.len() {
            text.push_str("\"type\":\"");
            text.push_str(kind.name());
            text.push_str("\",");
        }
        text.push('"');
        text.push_str(name);
        text.push_str("\":");
        if present & bit == 0 {
            text.push_str(usual);
        } else {
            decode_value(&mut reader, &mut text)?;
        }
        text.push(',');
        bit <<= 1;
    }
    text.pop();
    if present & bit != 0 {
        text.push(',');
        decode_value(&mut reader, &mut text)?;
    }
    text.push('}');
    (reader.is_empty() && present < bit << 1).then_some(text)
}

/// A message of stored canonical text.
///
/// # Errors
/// The code of whatever is wrong with the text.
pub fn message_from_text(text: &str) -> Result<Message, Error> {
    Message::from_canonical_text(text)
}

fn compact(kind: Kind, text: &str) -> Option<Vec<u8>> {
    let code = KINDS.iter().position(|known| *known == kind)? as u64 + 1;
    let mut scan = Scan { text, at: 0 };
    let mut values = Vec::with_capacity(text.len());
    let mut present = 0u64;
    let mut bit = 1;
    scan.expect("{")?;
    for (place, (name, usual)) in members(kind).enumerate() {
        if place > 0 {
            scan.expect(",")?;
        }
        if place == HEAD.len() {
            scan.expect("\"type\":\"")?;
            scan.expect(kind.name())?;
            scan.expect("\",")?;
        }
        scan.expect("\"")?;
        scan.expect(name)?;
        scan.expect("\":")?;
        let value = scan.value()?;
        if value != usual {
            present |= bit;
            encode_value(value, &mut values);
        }
        bit <<= 1;
    }
    // Members outside the class stay as one piece.
    if let Some(rest) = scan.rest().strip_prefix(',') {
        present |= bit;
        let extra = rest.strip_suffix('}')?;
        varint::put(&mut values, (extra.len() as u64) << FORM_BITS | FORM_JSON);
        values.extend_from_slice(extra.as_bytes());
    }
    let mut out = Vec::with_capacity(values.len() + 2);
    varint::put(&mut out, present << KIND_BITS | code);
    out.extend_from_slice(&values);
    Some(out)
}

fn encode_value(value: &str, out: &mut Vec<u8>) {
    let inside = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    match inside {
        Some(inside) => match packed_uuid(inside) {
            Some(id) => {
                varint::put(out, FORM_UUID);
                out.extend_from_slice(&id);
            }
            None => {
                varint::put(out, (inside.len() as u64) << FORM_BITS | FORM_STRING);
                out.extend_from_slice(inside.as_bytes());
            }
        },
        None => {
            varint::put(out, (value.len() as u64) << FORM_BITS | FORM_JSON);
            out.extend_from_slice(value.as_bytes());
        }
    }
}

fn decode_value(reader: &mut Reader<'_>, text: &mut String) -> Option<()> {
    let head = reader.number()?;
    let length = head >> FORM_BITS;
    match head & ((1 << FORM_BITS) - 1) {
        FORM_JSON => text.push_str(std::str::from_utf8(reader.take(length)?).ok()?),
        FORM_STRING => {
            text.push('"');
            text.push_str(std::str::from_utf8(reader.take(length)?).ok()?);
            text.push('"');
        }
        FORM_UUID if length == 0 => {
            text.push('"');
            text.push_str(&unpacked_uuid(reader.take(16)?)?);
            text.push('"');
        }
        _ => return None,
    }
    Some(())
}

/// The sixteen bytes of a UUID in its usual spelling: lower case, with hyphens.
pub fn packed_uuid(text: &str) -> Option<[u8; 16]> {
    if text.len() != 36 || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    Some(uuid::Uuid::try_parse(text).ok()?.into_bytes())
}

/// The usual spelling of sixteen bytes.
pub fn unpacked_uuid(bytes: &[u8]) -> Option<String> {
    let id = uuid::Uuid::from_slice(bytes).ok()?;
    Some(id.hyphenated().to_string())
}

/// Walks over JSON text that is known to be valid.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn expect(&mut self, what: &str) -> Option<()> {
        self.rest().starts_with(what).then(|| self.at += what.len())
    }

    /// The text of the value that starts here.
    fn value(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut depth = 0usize;
        loop {
            match *bytes.get(self.at)? {
                b'"' => {
                    self.skip_string()?;
                    if depth == 0 {
                        break;
                    }
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                    if depth == 0 {
                        break;
                    }
                }
                b',' | b'}' | b']' if depth == 0 => break,
                _ => self.at += 1,
            }
        }
        self.text.get(start..self.at)
    }

    fn skip_string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        loop {
            self.at += memchr::memchr2(b'"', b'\\', bytes.get(self.at..)?)?;
            if bytes[self.at] == b'"' {
                self.at += 1;
                return Some(());
            }
            self.at += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        let message = message_from_text(text).expect(text);
        assert_eq!(message.json(), text, "the sample is not canonical");
        message
    }

    const ID: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

    fn samples() -> Vec<Message> {
        let head = |content: &str, kind: &str, id: &str| {
            format!(
                r#""content":{content},"additional_kwargs":{{}},"response_metadata":{{}},"type":"{kind}","name":null,"id":{id}"#
            )
        };
        [
            format!("{{{}}}", head("\"hi\"", "human", &format!("\"{ID}\""))),
            format!("{{{}}}", head("\"\"", "system", "null")),
            format!("{{{}}}", head(r#""a\"}\\,\u0000é🎈""#, "human", "\"x\"")),
            format!(r#"{{{},"role":"guide"}}"#, head("[]", "chat", "null")),
            format!(
                r#"{{{},"role":"guide","zeta":[{{"]":"}}"}}],"a":1.5}}"#,
                head(r#"[{"type":"text","text":"x]"},"y"]"#, "chat", "\"AB-1\"")
            ),
            format!(
                r#"{{{},"tool_calls":[{{"name":"f","args":{{"a":[1,2]}},"id":"c1","type":"tool_call"}}],"invalid_tool_calls":[],"usage_metadata":{{"input_tokens":1}}}}"#,
                head("\"\"", "ai", &format!("\"{}\"", ID.to_uppercase()))
            ),
            format!(
                r#"{{{},"tool_call_id":"{ID}","artifact":null,"status":"error"}}"#,
                head("\"done\"", "tool", &format!("\"{ID}\""))
            ),
        ]
        .iter()
        .map(|text| message(text))
        .collect()
    }

    #[test]
    fn text_comes_back_byte_for_byte() {
        for message in samples() {
            let bytes = encode(&message);
            assert_eq!(decode(&bytes).as_deref(), Some(message.json()));
            assert_ne!(bytes[0], 0, "not compact: {}", message.json());
        }
    }

    #[test]
    fn a_plain_message_costs_its_text_its_id_and_six_bytes() {
        let plain = &samples()[0];
        assert!(encode(plain).len() <= 2 + 16 + 6, "{}", encode(plain).len());
    }

    #[test]
    fn no_bytes_panic() {
        for message in samples() {
            let bytes = encode(&message);
            for place in 0..bytes.len() {
                let _ = decode(&bytes[..place]);
                for value in 0..=255 {
                    let mut bytes = bytes.clone();
                    bytes[place] = value;
                    if let Some(text) = decode(&bytes) {
                        let _ = message_from_text(&text);
                    }
                }
            }
        }
    }
}
