//! Reducing without a runtime: a JSON document with a value and updates in, the merged value out.
//!
//! `messages` never becomes values: canonical messages and plain ones are spans of the input from end to end.

use std::ops::Range;

use serde_json::Value;

use super::channels::Channel;
use super::coerce;
use super::ids::{IdSource, RandomIds, SequentialIds};
use super::message_text::{Form, Item, Shape, TextList, Texts, Write, give_ids};
use super::messages::{self, MessageList, apply_write, null_write};
use super::{python, reducers};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::{self, MAX_BYTES, pointer_token};
use crate::protocol::message::Message;
use crate::protocol::scan::{RawStr, Scanner, Type};

/// Folds the updates of `{"existing": E, "updates": [u1, …]}` into `E`, left to right, by the reducer of `channel`, and
/// answers the merged value as JSON.
///
/// `existing` null means that the reducer receives null. `messages` takes two members more: `ids`
/// (`"random"`, `"sequential"`, `{"sequential_from": n}`) and `form` (`"canonical"`: `existing` is canonical and is taken
/// as it is). Members whose name begins with `x-` are ignored.
///
/// # Errors
/// [`ErrorCode::UnknownChannel`]; the codes of JSON and of options, with paths into the document; those of the reducer,
/// below `/existing` or `/updates/<n>`.
pub fn reduce_document(channel: &str, text: &str) -> Result<String, Error> {
    let channel = Channel::from_name(channel)
        .ok_or_else(|| Error::new(ErrorCode::UnknownChannel, Channel::unknown(channel)))?;
    check_size(text)?;
    if channel == Channel::Messages {
        return reduce_messages(text);
    }
    let mut document = Document::default();
    members(text, &mut |name, scanner| match name {
        "existing" => document.set_existing(scanner),
        "updates" => document.set_updates(scanner),
        _ => Ok(false),
    })?;
    let (existing, updates) = document.whole()?;
    let mut merged = decode(existing)?;
    let Value::Array(updates) = decode(updates)? else {
        return Err(not_a_list("/updates"));
    };
    for (place, update) in updates.into_iter().enumerate() {
        merged = reducers::reduce(channel, merged, update)
            .map_err(|error| error.below(&format!("/updates/{place}")))?;
    }
    Ok(merged.to_string())
}

/// Converts `{"messages": […]}`, of any accepted form, to the canonical list. Ids are not given.
///
/// # Errors
/// The codes of JSON and of coercion, with paths into the document. A failed conversion has no partial answer.
pub fn convert_document(text: &str) -> Result<String, Error> {
    check_size(text)?;
    let mut answer = None;
    members(text, &mut |name, scanner| {
        if name != "messages" {
            return Ok(false);
        }
        if scanner.peek() == Some(b'[') {
            let mut list = TextList::new(0);
            let mut write = list.read(scanner, Form::Coerced)?;
            answer = Some(write.check().map(|()| list.into_json(text)));
        } else {
            let span = scanner.value()?;
            answer = Some(decode(span).and_then(|value| {
                let messages = coerce::convert(&value)?;
                let texts: Vec<&str> = messages.iter().map(Message::json).collect();
                Ok(format!("[{}]", texts.join(",")))
            }));
        }
        Ok(true)
    })?;
    let answer = answer.ok_or_else(|| missing("messages"))?;
    answer.map_err(|error| error.below("/messages"))
}

/// Spans of the two members that every channel has.
#[derive(Default)]
struct Document<'a> {
    existing: Option<&'a str>,
    updates: Option<&'a str>,
}

impl<'a> Document<'a> {
    fn set_existing(&mut self, scanner: &mut Scanner<'a>) -> Result<bool, Error> {
        self.existing = Some(scanner.value()?);
        Ok(true)
    }

    fn set_updates(&mut self, scanner: &mut Scanner<'a>) -> Result<bool, Error> {
        self.updates = Some(scanner.value()?);
        Ok(true)
    }

    fn whole(self) -> Result<(&'a str, &'a str), Error> {
        let existing = self.existing.ok_or_else(|| missing("existing"))?;
        Ok((existing, self.updates.ok_or_else(|| missing("updates"))?))
    }
}

/// Walks over the members of the document. `take` passes the value of a member that it knows; one that it does not know is
/// refused once the whole text is known to be JSON.
fn members<'a>(
    text: &'a str,
    take: &mut dyn FnMut(&str, &mut Scanner<'a>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut scanner = Scanner::new(text);
    let mut unknown = None;
    if scanner.peek() != Some(b'{') {
        scanner.value()?;
        scanner.end()?;
        return Err(Error::at(
            ErrorCode::WrongType,
            "",
            "the document must be an object",
        ));
    }
    scanner.enter_object()?;
    let mut first = true;
    while let Some(name) = scanner.member(std::mem::take(&mut first))? {
        let name = name.text();
        if !take(&name, &mut scanner)? {
            scanner.value()?;
            if unknown.is_none() && !name.starts_with("x-") {
                unknown = Some(name.into_owned());
            }
        }
    }
    scanner.end()?;
    match unknown {
        None => Ok(()),
        Some(name) => Err(Error::at(
            ErrorCode::UnknownMember,
            format!("/{}", pointer_token(&name)),
            format!("the document has no member {name:?}"),
        )),
    }
}

fn check_size(text: &str) -> Result<(), Error> {
    if text.len() > MAX_BYTES {
        let what = format!("{} bytes are more than 1 GiB", text.len());
        return Err(Error::new(ErrorCode::TooLarge, what));
    }
    Ok(())
}

fn missing(member: &str) -> Error {
    let what = format!("the document needs the member {member}");
    Error::at(ErrorCode::MissingMember, format!("/{member}"), what)
}

fn not_a_list(path: &str) -> Error {
    Error::at(
        ErrorCode::WrongType,
        path,
        format!("{} must be a list", &path[1..]),
    )
}

fn decode(span: &str) -> Result<Value, Error> {
    json::decode_own(span).map_err(|error| json::syntax(span, &error))
}

/// The part of a document that `messages` reads.
struct MessagesDocument<'a> {
    text: &'a str,
    /// As which form it was read, where it stands, and what was read.
    existing: Option<(Form, Range<usize>, TextList<'a>, Write)>,
    updates: Option<Result<Updates<'a>, Error>>,
    form: Form,
    ids: Box<dyn IdSource>,
}

/// All writes, and the messages of all of them.
type Updates<'a> = (TextList<'a>, Vec<Write>);

fn reduce_messages(text: &str) -> Result<String, Error> {
    let mut document = MessagesDocument {
        text,
        existing: None,
        updates: None,
        form: Form::Coerced,
        ids: Box::new(RandomIds),
    };
    // The form may stand behind the list. Guessing right saves reading the list twice.
    let canonical = memchr::memmem::rfind(text.as_bytes(), b"\"canonical\"").is_some();
    let guess = if canonical {
        Form::Canonical
    } else {
        Form::Coerced
    };
    let mut option_fault: Option<Error> = None;
    members(text, &mut |name, scanner| {
        match name {
            "existing" => {
                scanner.peek();
                let start = scanner.at();
                let mut list = TextList::new(0);
                let write = list.read(scanner, guess)?;
                document.existing = Some((guess, start..scanner.at(), list, write));
            }
            "updates" => document.updates = Some(updates(scanner)?),
            "form" | "ids" => {
                let span = scanner.value()?;
                let option = if name == "form" {
                    form(span).map(|form| document.form = form)
                } else {
                    ids(span).map(|ids| document.ids = ids)
                };
                option_fault = option_fault.take().or(option.err());
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    match option_fault {
        Some(error) => Err(error),
        None => document.fold(),
    }
}

fn form(span: &str) -> Result<Form, Error> {
    match RawStr::of(span).map(RawStr::text).as_deref() {
        Some("canonical") => Ok(Form::Canonical),
        Some(_) => Err(Error::at(
            ErrorCode::UnknownVariant,
            "/form",
            "form must be \"canonical\", or left out",
        )),
        None => Err(Error::at(
            ErrorCode::WrongType,
            "/form",
            "form must be text",
        )),
    }
}

fn ids(span: &str) -> Result<Box<dyn IdSource>, Error> {
    let wrong = |code, path: &str| {
        let what = "ids must be \"random\", \"sequential\" or {\"sequential_from\": n}";
        Err(Error::at(code, path, what))
    };
    match decode(span)? {
        Value::String(name) if name == "random" => Ok(Box::new(RandomIds)),
        Value::String(name) if name == "sequential" => Ok(Box::new(SequentialIds::default())),
        Value::String(_) => wrong(ErrorCode::UnknownVariant, "/ids"),
        Value::Object(members) => {
            if let Some(name) = members.keys().find(|name| *name != "sequential_from") {
                return wrong(
                    ErrorCode::UnknownMember,
                    &format!("/ids/{}", pointer_token(name)),
                );
            }
            match members.get("sequential_from") {
                None => wrong(ErrorCode::MissingMember, "/ids/sequential_from"),
                Some(first) => match first.as_u64() {
                    Some(first) if first < 1 << 53 => {
                        Ok(Box::new(SequentialIds::starting_at(first)))
                    }
                    _ if first.is_number() => wrong(ErrorCode::OutOfRange, "/ids/sequential_from"),
                    _ => wrong(ErrorCode::WrongType, "/ids/sequential_from"),
                },
            }
        }
        _ => wrong(ErrorCode::WrongType, "/ids"),
    }
}

/// Reads all updates. The outer failure is text that is no JSON, the inner one an `updates` that is no list.
fn updates<'a>(scanner: &mut Scanner<'a>) -> Result<Result<Updates<'a>, Error>, Error> {
    if scanner.peek() != Some(b'[') {
        scanner.value()?;
        return Ok(Err(not_a_list("/updates")));
    }
    let mut list = TextList::new(1);
    let mut writes = Vec::new();
    scanner.enter_array()?;
    let mut first = true;
    while scanner.element(std::mem::take(&mut first))? {
        writes.push(list.read(scanner, Form::Coerced)?);
    }
    Ok(Ok((list, writes)))
}

impl MessagesDocument<'_> {
    fn fold(self) -> Result<String, Error> {
        let existing = self.existing.ok_or_else(|| missing("existing"))?;
        let (read_as, at, mut state, mut given) = existing;
        let (updates, writes) = self.updates.ok_or_else(|| missing("updates"))??;
        let mut ids = self.ids;
        if read_as != self.form {
            // The value has been passed, so that only its messages can be at fault.
            state = TextList::new(0);
            given = state.read(&mut Scanner::again(self.text, at.start), self.form)?;
        }
        let span = &self.text[at];
        match writes.first().map(|write| write.shape) {
            None if self.form == Form::Coerced => return untouched(span),
            Some(Shape::Null) => return Err(null_write(!is_truthy(span)).below("/updates/0")),
            _ => {}
        }
        let checked = match given.shape {
            Shape::Null => Err(not_a_message()),
            Shape::List | Shape::Alone => given.check(),
        };
        checked.map_err(|error| error.below("/existing"))?;
        if writes.is_empty() {
            return Ok(span.to_owned());
        }
        let texts = Texts {
            input: self.text,
            arenas: [state.arena, updates.arena],
        };
        give_ids(&mut state.items, ids.as_mut());
        let mut list = MessageList::from_entries(state.items);
        list.reserve(updates.items.len());
        let mut items = updates.items.into_iter();
        for (place, mut write) in writes.into_iter().enumerate() {
            let mut entries: Vec<Item<'_>> = items.by_ref().take(write.items).collect();
            let folded = match write.shape {
                Shape::Null => Err(null_write(list.is_empty())),
                Shape::List | Shape::Alone => write.check(),
            };
            let folded = folded.and_then(|()| {
                give_ids(&mut entries, ids.as_mut());
                apply_write(&mut list, entries).map_err(|mut error| {
                    if write.shape == Shape::Alone {
                        error.path = None;
                    }
                    error
                })
            });
            folded.map_err(|error| error.below(&format!("/updates/{place}")))?;
        }
        let written: usize = texts.arenas.iter().map(String::len).sum();
        let mut out = String::with_capacity(span.len().max(written) + 40 * list.len() + 64);
        texts.write(&mut out, list.iter());
        Ok(out)
    }
}

/// What no writes at all answer: the state as it was given.
fn untouched(span: &str) -> Result<String, Error> {
    if Type::of(span) == Type::Array {
        return Ok(span.to_owned());
    }
    let state = messages::untouched(&decode(span)?);
    Ok(state.map_err(|error| error.below("/existing"))?.to_string())
}

fn is_truthy(span: &str) -> bool {
    decode(span).is_ok_and(|value| python::truthy(&value))
}

fn not_a_message() -> Error {
    Error::new(
        ErrorCode::NotAMessage,
        "null is no message: one is text, a role and a content, or an object",
    )
}
