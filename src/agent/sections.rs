//! The two sections of a request, `configurable` and `context`, as one (RC-1).

use serde_json::{Map, Value};

use crate::protocol::decode::wrong_type;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;

/// Both sections of a request as one, with `context` above `configurable` (RC-1). Members that begin with `__` belong to
/// nobody outside and are not seen (RC-6).
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a> {
    configurable: &'a Map<String, Value>,
    context: &'a Map<String, Value>,
}

/// A member of a request: its value, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    section: &'static str,
    name: &'a str,
    pub(super) value: &'a Value,
}

impl Member<'_> {
    pub(super) fn path(&self) -> String {
        format!("/{}/{}", self.section, pointer_token(self.name))
    }

    pub(super) fn wrong(&self, expected: &str) -> Error {
        wrong_type(self.value, expected).below(&self.path())
    }

    pub(super) fn refused(&self, text: impl Into<String>) -> Error {
        Error::at(ErrorCode::OutOfRange, self.path(), text)
    }

    /// Text; null is none.
    pub(super) fn text(&self) -> Result<Option<String>, Error> {
        match self.value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(self.wrong("text or null")),
        }
    }
}

impl<'a> Sections<'a> {
    /// Takes the sections of a request.
    pub fn new(configurable: &'a Map<String, Value>, context: &'a Map<String, Value>) -> Self {
        Sections {
            configurable,
            context,
        }
    }

    pub(super) fn get<'n>(&self, name: &'n str) -> Option<Member<'n>>
    where
        'a: 'n,
    {
        self.in_context(name).or_else(|| self.in_configurable(name))
    }

    pub(super) fn in_context<'n>(&self, name: &'n str) -> Option<Member<'n>>
    where
        'a: 'n,
    {
        member("context", self.context, name)
    }

    pub(super) fn in_configurable<'n>(&self, name: &'n str) -> Option<Member<'n>>
    where
        'a: 'n,
    {
        member("configurable", self.configurable, name)
    }

    /// The members of both, with the name of the section.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let of = |section, members: &'a Map<String, Value>| {
            members.keys().map(move |name| (section, name.as_str()))
        };
        of("configurable", self.configurable).chain(of("context", self.context))
    }

    /// Where a member stands; `otherwise` where it does not.
    pub fn path_of(&self, name: &str, otherwise: &str) -> String {
        let member = self.get(name).filter(|member| !member.value.is_null());
        member.map_or_else(|| otherwise.to_owned(), |member| member.path())
    }

    /// Whether both sections say something (RC-8).
    pub(super) fn are_both_given(&self) -> bool {
        !self.configurable.is_empty() && !self.context.is_empty()
    }

    /// Text; absent or null is none.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        self.get(name).map_or(Ok(None), |member| member.text())
    }

    /// A whole number from 1 to `most`; absent or null gives `default`, within the same bounds.
    pub(super) fn bounded(&self, name: &str, default: u64, most: u64) -> Result<u64, Error> {
        let asked = match self.get(name) {
            None => default,
            Some(member) if member.value.is_null() => default,
            Some(member) => whole(member.value)
                .ok_or_else(|| member.wrong("a whole number"))?
                .try_into()
                .unwrap_or(0),
        };
        Ok(asked.clamp(1, most))
    }

    /// Whether a member is there and true, as Python sees it.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|member| is_truthy(member.value))
    }
}

fn member<'n>(
    section: &'static str,
    members: &'n Map<String, Value>,
    name: &'n str,
) -> Option<Member<'n>> {
    let value = members.get(name).filter(|_| !name.starts_with("__"))?;
    Some(Member {
        section,
        name,
        value,
    })
}

/// Whether Python takes a value for true: not null, false, 0, `""`, `[]` and `{}`.
pub fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// A whole number as Python's `int` reads it: fractions are cut off, true is 1, digits may come as text. Numbers beyond 64
/// bits become the largest or smallest.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(flag) => Some(i64::from(*flag)),
        // A cast saturates.
        Value::Number(number) => number.as_i64().or_else(|| Some(number.as_f64()? as i64)),
        Value::String(text) => digits(text.trim()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn digits(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let groups: Vec<&str> = digits.split('_').collect();
    let is_number = |group: &&str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit());
    if !groups.iter().all(is_number) {
        return None;
    }
    let number = groups.concat().parse::<i64>().unwrap_or(i64::MAX);
    Some(if is_negative { -number } else { number })
}
