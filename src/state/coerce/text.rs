//! Coercion straight from text: plain messages become canonical text without a value in between.
//!
//! Most messages are plain: a known role, text or blocks, ids, and members that are passed on as they are. Their canonical
//! text is put together from the spans of the input. Everything else (aliases that move members, OpenAI tool calls,
//! serialised objects, faults of any kind) takes the way over values, [`super::element()`], whose answers this must equal; a
//! test holds that.

use super::element;
use crate::protocol::canonical::calls_are_canonical;
use crate::protocol::error::Error;
use crate::protocol::json;
use crate::protocol::message::{Kind, Message};
use crate::protocol::scan::{RawStr, Scanner, Type};

/// Most members outside the class that a plain message may have.
const MAX_EXTRA: usize = 4;

/// One message-like value of a text that was passed.
#[allow(
    clippy::large_enum_variant,
    reason = "one at a time lives, on the stack, between being read and being written"
)]
pub(crate) enum Element<'a> {
    /// A plain message.
    Plain(Plain<'a>),
    /// Anything else: its text.
    Other(&'a str),
}

/// A plain message as spans of the text.
pub(crate) struct Plain<'a> {
    kind: Kind,
    content: &'a str,
    kwargs: &'a str,
    metadata: &'a str,
    name: &'a str,
    /// The id as written, in quotes; `None` when there is none.
    id: Option<&'a str>,
    /// `ai`: the list; `tool`: the id of the call.
    call: &'a str,
    artifact: &'a str,
    status: &'a str,
    extra: [(&'a str, &'a str); MAX_EXTRA],
    extras: usize,
}

/// Coerces one write given as text: a list of message-likes, or one alone. Ids are not given.
///
/// # Errors
/// Those of [`super::write()`], and those of the scanner, which come first.
pub fn write_text(text: &str) -> Result<Vec<Message>, Error> {
    let mut scanner = Scanner::new(text);
    if scanner.peek() != Some(b'[') {
        let alone = scan(&mut scanner)?;
        scanner.end()?;
        return Ok(vec![alone.into_message()?]);
    }
    let mut messages = Vec::new();
    let mut fault = None;
    let mut first = true;
    scanner.enter_array()?;
    let mut place = 0;
    while scanner.element(std::mem::take(&mut first))? {
        let element = scan(&mut scanner)?;
        if fault.is_none() {
            match element.into_message() {
                Ok(message) => messages.push(message),
                // Text that is no JSON further on is the graver fault.
                Err(error) => fault = Some(error.below(&format!("/{place}"))),
            }
        }
        place += 1;
    }
    scanner.end()?;
    fault.map_or(Ok(messages), Err)
}

/// Passes one message-like value.
///
/// # Errors
/// Those of the scanner.
pub(crate) fn scan<'a>(scanner: &mut Scanner<'a>) -> Result<Element<'a>, Error> {
    match scanner.peek() {
        Some(b'{') => object(scanner),
        Some(b'"') => {
            let content = scanner.value()?;
            Ok(Element::Plain(Plain::new(Kind::Human, content)))
        }
        _ => Ok(Element::Other(scanner.value()?)),
    }
}

impl<'a> Element<'a> {
    /// The message, by whichever way.
    ///
    /// # Errors
    /// Those of [`element()`].
    pub(crate) fn into_message(self) -> Result<Message, Error> {
        match self {
            Element::Plain(plain) => {
                let mut text = String::with_capacity(plain.content.len() + 160);
                let id_at = plain.render(&mut text);
                Ok(Message::from_written(plain.kind, text, Some(id_at)))
            }
            Element::Other(span) => {
                let value = json::decode_own(span).map_err(|error| json::syntax(span, &error))?;
                element(value)
            }
        }
    }
}

impl<'a> Plain<'a> {
    fn new(kind: Kind, content: &'a str) -> Self {
        Plain {
            kind,
            content,
            kwargs: "{}",
            metadata: "{}",
            name: "null",
            id: None,
            call: if kind == Kind::Ai { "[]" } else { "" },
            artifact: "null",
            status: "\"success\"",
            extra: [("", ""); MAX_EXTRA],
            extras: 0,
        }
    }

    /// The id between its quotes, as written.
    pub(crate) fn id(&self) -> Option<RawStr<'a>> {
        self.id.and_then(RawStr::of)
    }

    /// Appends the canonical text, and answers where in `out` the value of `id` begins.
    pub(crate) fn render(&self, out: &mut String) -> usize {
        for part in ["{\"content\":", self.content, ",\"additional_kwargs\":"] {
            out.push_str(part);
        }
        if self.extras == 0 {
            out.push_str(self.kwargs);
        } else {
            for (place, (name, value)) in self.extra[..self.extras].iter().enumerate() {
                out.push_str(if place == 0 { "{\"" } else { ",\"" });
                for part in [name, "\":", value] {
                    out.push_str(part);
                }
            }
            out.push('}');
        }
        for part in [
            ",\"response_metadata\":",
            self.metadata,
            ",\"type\":\"",
            self.kind.name(),
            "\",\"name\":",
            self.name,
            ",\"id\":",
        ] {
            out.push_str(part);
        }
        let id_at = out.len();
        out.push_str(self.id.unwrap_or("null"));
        match self.kind {
            Kind::Ai => {
                for part in [
                    ",\"tool_calls\":",
                    self.call,
                    ",\"invalid_tool_calls\":[],\"usage_metadata\":null",
                ] {
                    out.push_str(part);
                }
            }
            Kind::Tool => {
                for part in [
                    ",\"tool_call_id\":",
                    self.call,
                    ",\"artifact\":",
                    self.artifact,
                    ",\"status\":",
                    self.status,
                ] {
                    out.push_str(part);
                }
            }
            _ => {}
        }
        out.push('}');
        id_at
    }
}

/// The members of an object as they stand; each at most once.
#[derive(Default)]
struct Members<'a> {
    role: Option<&'a str>,
    type_name: Option<&'a str>,
    content: Option<&'a str>,
    kwargs: Option<&'a str>,
    metadata: Option<&'a str>,
    name: Option<&'a str>,
    id: Option<&'a str>,
    tool_calls: Option<&'a str>,
    tool_call_id: Option<&'a str>,
    artifact: Option<&'a str>,
    status: Option<&'a str>,
    extra: [(&'a str, &'a str); MAX_EXTRA],
    extras: usize,
}

fn object<'a>(scanner: &mut Scanner<'a>) -> Result<Element<'a>, Error> {
    let start = scanner.at();
    let mut members = Members::default();
    let mut plain = true;
    scanner.enter_object()?;
    let mut first = true;
    while let Some(name) = scanner.member(std::mem::take(&mut first))? {
        let span = scanner.value()?;
        plain &= !name.escaped;
        let place = match name.raw {
            "role" => &mut members.role,
            "type" => &mut members.type_name,
            "content" => &mut members.content,
            "additional_kwargs" => &mut members.kwargs,
            "response_metadata" => &mut members.metadata,
            "name" => &mut members.name,
            "id" => &mut members.id,
            "tool_calls" => &mut members.tool_calls,
            "tool_call_id" => &mut members.tool_call_id,
            "artifact" => &mut members.artifact,
            "status" => &mut members.status,
            other => {
                let known = &members.extra[..members.extras];
                let taken = matches!(other, "example" | "message_type" | "lc");
                if taken
                    || members.extras == MAX_EXTRA
                    || known.iter().any(|(name, _)| *name == other)
                {
                    plain = false;
                } else {
                    members.extra[members.extras] = (other, span);
                    members.extras += 1;
                }
                continue;
            }
        };
        plain &= place.replace(span).is_none();
    }
    let found = if plain { members.plain() } else { None };
    Ok(match found {
        Some(plain) => Element::Plain(plain),
        None => Element::Other(scanner.passed(start)),
    })
}

impl<'a> Members<'a> {
    /// The plain message that these members make; `None` when it takes more than putting spans together.
    fn plain(mut self) -> Option<Plain<'a>> {
        let role = match (self.role, self.type_name) {
            (Some(role), None) | (None, Some(role)) => role,
            _ => return None,
        };
        let kind = match role {
            "\"user\"" | "\"human\"" => Kind::Human,
            "\"assistant\"" | "\"ai\"" => Kind::Ai,
            "\"system\"" => Kind::System,
            "\"tool\"" => Kind::Tool,
            _ => return None,
        };
        let mut plain = Plain::new(kind, content(self.content?)?);
        let text_or_null = |span: Option<&'a str>| match span {
            None => Some(None),
            Some("null") => Some(None),
            Some(span) => (Type::of(span) == Type::String).then_some(Some(span)),
        };
        plain.name = text_or_null(self.name)?.unwrap_or("null");
        plain.id = text_or_null(self.id)?;
        if let Some(metadata) = self.metadata {
            plain.metadata = (Type::of(metadata) == Type::Object).then_some(metadata)?;
        }
        let call_id = text_or_null(self.tool_call_id)?;
        let calls = self.tool_calls.filter(|calls| *calls != "null");
        match kind {
            Kind::Tool => {
                plain.call = call_id?;
                plain.artifact = self.artifact.unwrap_or("null");
                if let Some(status) = self.status.filter(|status| *status != "null") {
                    plain.status =
                        matches!(status, "\"success\"" | "\"error\"").then_some(status)?;
                }
            }
            _ if call_id.is_some() => return None,
            _ => {
                self.push_extra("artifact", self.artifact)?;
                self.push_extra("status", self.status)?;
            }
        }
        match (kind, calls) {
            (_, None) => {}
            (Kind::Ai, Some(calls)) if calls_are_canonical(calls) => plain.call = calls,
            _ => return None,
        }
        if let Some(kwargs) = self.kwargs {
            let is_plain = kwargs == "{}" || (self.extras == 0 && kwargs_are_plain(kwargs));
            plain.kwargs = is_plain.then_some(kwargs)?;
        }
        (plain.extra, plain.extras) = (self.extra, self.extras);
        Some(plain)
    }

    fn push_extra(&mut self, name: &'a str, span: Option<&'a str>) -> Option<()> {
        if let Some(span) = span {
            // The order of members would have to be kept; two of them are rare enough for the other way.
            if self.extras > 0 {
                return None;
            }
            self.extra[0] = (name, span);
            self.extras = 1;
        }
        Some(())
    }
}

/// Text, or a list of texts and objects that is not empty.
fn content(span: &str) -> Option<&str> {
    match Type::of(span) {
        Type::String => Some(span),
        Type::Array => {
            let mut scanner = Scanner::new(span);
            scanner.enter_array().ok()?;
            let mut first = true;
            let mut empty = true;
            while scanner.element(std::mem::take(&mut first)).ok()? {
                if !matches!(scanner.peek(), Some(b'"' | b'{')) {
                    return None;
                }
                scanner.value().ok()?;
                empty = false;
            }
            (!empty).then_some(span)
        }
        _ => None,
    }
}

/// Whether an object has no member that coercion takes out of it, and none twice.
fn kwargs_are_plain(span: &str) -> bool {
    let names = || -> Result<bool, Error> {
        let mut scanner = Scanner::new(span);
        scanner.enter_object()?;
        let mut first = true;
        let mut names: Vec<&str> = Vec::new();
        while let Some(name) = scanner.member(std::mem::take(&mut first))? {
            let taken = matches!(name.raw, "tool_calls" | "example" | "artifact" | "status");
            if name.escaped || taken || names.len() > 16 || names.contains(&name.raw) {
                return Ok(false);
            }
            names.push(name.raw);
            scanner.value()?;
        }
        Ok(true)
    };
    Type::of(span) == Type::Object && names().unwrap_or(false)
}
