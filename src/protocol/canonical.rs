//! Reads the class and the id out of a canonical message's text, and checks its shape, without building values.

use super::error::{Error, ErrorCode};
use super::message::Kind;
use super::scan::{RawStr, Scanner, Type};

/// One canonical message as it stands in a text.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The text of the message.
    pub json: &'a str,
    /// Class.
    pub kind: Kind,
    /// Id; `None` when it is null or missing.
    pub id: Option<RawStr<'a>>,
    /// Where in `json` the value of `id` begins; `None` when the member is missing.
    pub id_at: Option<usize>,
    /// A member occurs twice or has an escaped name, so that only a decoder can tell what the message says.
    pub untidy: bool,
}

/// The members of the canonical form. The order is that of the bits in `seen`.
const MEMBERS: [&str; 13] = [
    "content",
    "additional_kwargs",
    "response_metadata",
    "type",
    "name",
    "id",
    "tool_calls",
    "invalid_tool_calls",
    "usage_metadata",
    "tool_call_id",
    "artifact",
    "status",
    "role",
];

/// Passes one message in canonical form.
///
/// The shape is checked as strictly as the decoder of [`super::message::Fields`] checks it: whatever passes here can be
/// decoded later. Untidy messages ([`Parts::untidy`]) are only passed; the decoder checks them.
///
/// # Errors
/// [`ErrorCode::NotAMessage`] when it is no object; [`ErrorCode::UnknownRole`], [`ErrorCode::MessageInvalid`] or
/// [`ErrorCode::MessageMember`] with the path of the member; those of the scanner.
pub fn inspect<'a>(scanner: &mut Scanner<'a>) -> Result<Parts<'a>, Error> {
    if scanner.peek() != Some(b'{') {
        scanner.value()?;
        return Err(Error::new(
            ErrorCode::NotAMessage,
            "a message in canonical form is an object",
        ));
    }
    let start = scanner.at();
    let mut spans: [Option<&'a str>; MEMBERS.len()] = [None; MEMBERS.len()];
    let mut extra: Vec<&str> = Vec::new();
    let mut untidy = false;
    let mut id_at = None;
    scanner.enter_object()?;
    let mut first = true;
    while let Some(name) = scanner.member(std::mem::take(&mut first))? {
        scanner.peek();
        let at = scanner.at() - start;
        let span = scanner.value()?;
        untidy |= name.escaped;
        match place(name.raw) {
            Some(place) => {
                untidy |= spans[place].replace(span).is_some();
                if place == ID {
                    id_at = Some(at);
                }
            }
            None => {
                untidy |= extra.len() > 16 || extra.contains(&name.raw);
                extra.push(name.raw);
            }
        }
    }
    let json = scanner.passed(start);
    if untidy {
        return Ok(Parts {
            json,
            kind: Kind::Human,
            id: None,
            id_at: None,
            untidy: true,
        });
    }
    let kind = check(&spans)?;
    if let Some(calls) = spans[TOOL_CALLS]
        && kind == Kind::Ai
    {
        untidy |= calls_are_untidy(calls, "tool_calls", CALL)?;
    }
    if let Some(calls) = spans[INVALID_TOOL_CALLS]
        && kind == Kind::Ai
    {
        untidy |= calls_are_untidy(calls, "invalid_tool_calls", INVALID_CALL)?;
    }
    Ok(Parts {
        json,
        kind,
        id: spans[ID].and_then(RawStr::of),
        id_at,
        untidy,
    })
}

const CONTENT: usize = 0;
const ADDITIONAL_KWARGS: usize = 1;
const RESPONSE_METADATA: usize = 2;
const TYPE: usize = 3;
const NAME: usize = 4;
const ID: usize = 5;
const TOOL_CALLS: usize = 6;
const INVALID_TOOL_CALLS: usize = 7;
const USAGE_METADATA: usize = 8;
const TOOL_CALL_ID: usize = 9;
const ARTIFACT: usize = 10;
const STATUS: usize = 11;
const ROLE: usize = 12;

fn place(name: &str) -> Option<usize> {
    Some(match name {
        "content" => CONTENT,
        "additional_kwargs" => ADDITIONAL_KWARGS,
        "response_metadata" => RESPONSE_METADATA,
        "type" => TYPE,
        "name" => NAME,
        "id" => ID,
        "tool_calls" => TOOL_CALLS,
        "invalid_tool_calls" => INVALID_TOOL_CALLS,
        "usage_metadata" => USAGE_METADATA,
        "tool_call_id" => TOOL_CALL_ID,
        "artifact" => ARTIFACT,
        "status" => STATUS,
        "role" => ROLE,
        _ => return None,
    })
}

/// Checks the types of the members that the class has, and answers the class.
fn check(spans: &[Option<&str>; MEMBERS.len()]) -> Result<Kind, Error> {
    let kind = match spans[TYPE].map(|span| (span, RawStr::of(span))) {
        Some((_, Some(name))) => Kind::from_name(&name.text()).ok_or_else(|| {
            Error::at(
                ErrorCode::UnknownRole,
                "/type",
                format!("unknown message type {:?}", name.text()),
            )
        })?,
        _ => return Err(invalid("type", "the name of a message class")),
    };
    let expect = |place: usize, allowed: &[Type], what: &str| match spans[place] {
        Some(span) if !allowed.contains(&Type::of(span)) => Err(invalid(MEMBERS[place], what)),
        _ => Ok(()),
    };
    match spans[CONTENT] {
        None if kind == Kind::Remove => {}
        None => return Err(invalid("content", "text or a list of content blocks")),
        Some(_) => expect(
            CONTENT,
            &[Type::String, Type::Array],
            "text or a list of content blocks",
        )?,
    }
    for place in [ADDITIONAL_KWARGS, RESPONSE_METADATA] {
        expect(place, &[Type::Object, Type::Null], "an object")?;
    }
    for place in [NAME, ID] {
        expect(place, &[Type::String, Type::Null], "text or null")?;
    }
    match kind {
        Kind::Ai => {
            for place in [TOOL_CALLS, INVALID_TOOL_CALLS] {
                expect(place, &[Type::Array, Type::Null], "a list")?;
            }
        }
        Kind::Tool => {
            expect(TOOL_CALL_ID, &[Type::String, Type::Null], "text")?;
            if spans[TOOL_CALL_ID].is_none_or(|span| span == "null") {
                return Err(Error::at(
                    ErrorCode::MessageMember,
                    "/tool_call_id",
                    "a tool message needs tool_call_id",
                ));
            }
            if let Some(span) = spans[STATUS]
                && span != "null"
                && !RawStr::of(span)
                    .is_some_and(|status| matches!(status.text().as_ref(), "success" | "error"))
            {
                return Err(invalid("status", "\"success\" or \"error\""));
            }
        }
        Kind::Chat => expect(ROLE, &[Type::String, Type::Null], "text")?,
        Kind::Human | Kind::System | Kind::Function | Kind::Remove => {}
    }
    Ok(kind)
}

/// Members of a call and the types they may have; `required` ones must be there.
struct CallShape {
    members: [(&'static str, &'static [Type], bool); 4],
    what: &'static str,
}

const ANY: &[Type] = &[
    Type::Null,
    Type::Bool,
    Type::Number,
    Type::String,
    Type::Array,
    Type::Object,
];

const OPTIONAL_TEXT: &[Type] = &[Type::String, Type::Null];

const CALL: &CallShape = &CallShape {
    members: [
        ("name", &[Type::String], true),
        ("args", &[Type::Object], true),
        ("id", OPTIONAL_TEXT, false),
        ("type", ANY, false),
    ],
    what: "a list of calls with name, args and id",
};

const INVALID_CALL: &CallShape = &CallShape {
    members: [
        ("id", OPTIONAL_TEXT, false),
        ("name", OPTIONAL_TEXT, false),
        ("args", OPTIONAL_TEXT, false),
        ("error", OPTIONAL_TEXT, false),
    ],
    what: "a list of objects",
};

/// Checks a list of calls; answers whether only a decoder can tell what they say.
fn calls_are_untidy(span: &str, member: &str, shape: &CallShape) -> Result<bool, Error> {
    if matches!(span, "[]" | "null") {
        return Ok(false);
    }
    let mut untidy = false;
    let mut scanner = Scanner::new(span);
    scanner.enter_array()?;
    let mut first = true;
    while scanner.element(std::mem::take(&mut first))? {
        if scanner.peek() != Some(b'{') {
            return Err(invalid(member, shape.what));
        }
        let mut seen = [false; 4];
        scanner.enter_object()?;
        let mut first = true;
        while let Some(name) = scanner.member(std::mem::take(&mut first))? {
            untidy |= name.escaped;
            let value = scanner.value()?;
            let found = shape
                .members
                .iter()
                .position(|(known, ..)| *known == name.raw);
            let Some(found) = found else { continue };
            untidy |= std::mem::replace(&mut seen[found], true);
            if !shape.members[found].1.contains(&Type::of(value)) && !untidy {
                return Err(invalid(member, shape.what));
            }
        }
        let complete = shape
            .members
            .iter()
            .zip(seen)
            .all(|((_, _, required), seen)| seen || !required);
        if !complete && !untidy {
            return Err(invalid(member, shape.what));
        }
    }
    Ok(untidy)
}

/// Whether a list of calls is as the canonical form writes it: every call with exactly its members, in order, of the right
/// types.
pub(crate) fn calls_are_canonical(span: &str) -> bool {
    let check = || -> Result<bool, Error> {
        let mut scanner = Scanner::new(span);
        scanner.enter_array()?;
        let mut first = true;
        while scanner.element(std::mem::take(&mut first))? {
            if scanner.peek() != Some(b'{') {
                return Ok(false);
            }
            scanner.enter_object()?;
            let mut first = true;
            for (name, types, _) in CALL.members {
                let member = scanner.member(std::mem::take(&mut first))?;
                if member.is_none_or(|member| member.raw != name) {
                    return Ok(false);
                }
                let value = scanner.value()?;
                if !types.contains(&Type::of(value)) || (name == "type" && value != "\"tool_call\"")
                {
                    return Ok(false);
                }
            }
            if scanner.member(false)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    Type::of(span) == Type::Array && check().unwrap_or(false)
}

fn invalid(member: &str, what: &str) -> Error {
    Error::at(
        ErrorCode::MessageInvalid,
        format!("/{member}"),
        format!("{member} must be {what}"),
    )
}
