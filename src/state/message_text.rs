//! Messages on their way from text to text: ranges of the input, or of an arena where coercion rewrites them.

use std::borrow::Cow;
use std::ops::Range;

use super::coerce::text::{self, Element};
use super::ids::IdSource;
use super::messages::Entry;
use crate::protocol::canonical;
use crate::protocol::error::Error;
use crate::protocol::json::push_quoted;
use crate::protocol::message::{Kind, Message, hash_id};
use crate::protocol::scan::{RawStr, Scanner};

/// How messages of a text are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// In any accepted form.
    Coerced,
    /// In canonical form, taken as they are.
    Canonical,
}

/// How a write is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Null,
    List,
    /// One message that is not in a list.
    Alone,
}

/// One write, or the existing list; its messages are the next ones of the [`TextList`] that read it.
pub(super) struct Write {
    pub(super) shape: Shape,
    /// Number of messages read.
    pub(super) items: usize,
    /// The first element that is no message. It matters only when the fold gets there.
    fault: Option<Box<Error>>,
}

impl Write {
    /// The failure of the write, below the place of the element when it is a list.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        match self.fault.take() {
            None => Ok(()),
            Some(error) if self.shape == Shape::List => {
                // What was read before it is what stands before it.
                Err(error.below(&format!("/{}", self.items)))
            }
            Some(error) => Err(*error),
        }
    }
}

/// A message on its way through a text.
pub(super) struct Item<'a> {
    text: ItemText,
    /// The id; empty until one is given to a message that has none.
    id: Cow<'a, str>,
    /// `hash_id` of the id.
    hash: u64,
    /// Where in the text a null stands in for the id.
    null_at: Option<u32>,
    remove: bool,
}

pub(super) enum ItemText {
    /// As it stands in the input.
    Input(Range<usize>),
    /// As it was written into the arena of its list.
    Arena(u32, Range<usize>),
    /// Made over values.
    Message(Message),
}

impl Entry for Item<'_> {
    fn id(&self) -> &str {
        &self.id
    }
    fn id_hash(&self) -> u64 {
        self.hash
    }
    fn is_remove(&self) -> bool {
        self.remove
    }
}

/// Messages read from a text, those of one write behind those of the one before.
pub(super) struct TextList<'a> {
    pub(super) items: Vec<Item<'a>>,
    pub(super) arena: String,
    /// Place of the arena in [`Texts::arenas`].
    place: u32,
}

impl<'a> TextList<'a> {
    pub(super) fn new(place: u32) -> Self {
        TextList {
            items: Vec::new(),
            arena: String::new(),
            place,
        }
    }

    /// Passes a write.
    ///
    /// # Errors
    /// Those of the scanner only.
    pub(super) fn read(&mut self, scanner: &mut Scanner<'a>, form: Form) -> Result<Write, Error> {
        if self.items.capacity() == 0 {
            // Growing step by step would copy everything a few times. Room that is not used is not touched.
            let left = scanner.left();
            self.items.reserve((left / 128).min(1 << 18) + 1);
            if form == Form::Coerced {
                self.arena.reserve((2 * left).min(64 << 20));
            }
        }
        let before = self.items.len();
        let mut fault = None;
        let shape = match scanner.peek() {
            Some(b'[') => {
                scanner.enter_array()?;
                let mut first = true;
                while scanner.element(std::mem::take(&mut first))? {
                    if fault.is_some() {
                        scanner.value()?;
                    } else {
                        fault = self.read_one(scanner, form)?;
                    }
                }
                Shape::List
            }
            Some(b'n') => {
                scanner.value()?;
                Shape::Null
            }
            _ => {
                fault = self.read_one(scanner, form)?;
                Shape::Alone
            }
        };
        Ok(Write {
            shape,
            items: self.items.len() - before,
            fault: fault.map(Box::new),
        })
    }

    /// Passes one element; answers why it is no message.
    fn read_one(&mut self, scanner: &mut Scanner<'a>, form: Form) -> Result<Option<Error>, Error> {
        scanner.peek();
        let start = scanner.at();
        let item = match form {
            Form::Canonical => canonical_item(scanner, start)?,
            Form::Coerced => match text::scan(scanner)? {
                Element::Plain(plain) => {
                    let before = self.arena.len();
                    if before > 0 {
                        self.arena.push(',');
                    }
                    let rendered = self.arena.len();
                    let id_at = plain.render(&mut self.arena) - rendered;
                    // What coercion leaves as it is, as it does a plain message of ours that is fed back, need not be kept
                    // twice: its text is that of the input, which then is copied in long runs.
                    let text = if &self.arena[rendered..] == scanner.passed(start) {
                        self.arena.truncate(before);
                        ItemText::Input(start..scanner.at())
                    } else {
                        ItemText::Arena(self.place, rendered..self.arena.len())
                    };
                    Ok(Item::new(text, plain.id(), Some(id_at), false))
                }
                other => other.into_message().map(Item::of),
            },
        };
        match item {
            Ok(item) => {
                self.items.push(item);
                Ok(None)
            }
            Err(error) => Ok(Some(error)),
        }
    }

    /// The list, which was read from `input`, as JSON. For the list of arena 0, alone.
    pub(super) fn into_json(self, input: &str) -> String {
        let mut out = String::with_capacity(self.arena.len() + input.len() + 2);
        let texts = Texts {
            input,
            arenas: [self.arena, String::new()],
        };
        texts.write(&mut out, self.items.iter());
        out
    }
}

/// The outer failure is text that is no JSON, the inner one a message that is not canonical.
fn canonical_item<'a>(
    scanner: &mut Scanner<'a>,
    start: usize,
) -> Result<Result<Item<'a>, Error>, Error> {
    let mut ahead = scanner.clone();
    let parts = match canonical::inspect(&mut ahead) {
        Ok(parts) => parts,
        Err(fault) => {
            // Whether it is the JSON that is at fault, the scanner says.
            scanner.value()?;
            return Ok(Err(fault));
        }
    };
    *scanner = ahead;
    debug_assert_eq!(parts.json, scanner.passed(start));
    if parts.untidy || parts.id_at.is_none() {
        return Ok(Message::from_parts(&parts).map(Item::of));
    }
    let text = ItemText::Input(start..scanner.at());
    let remove = parts.kind == Kind::Remove;
    Ok(Ok(Item::new(text, parts.id, parts.id_at, remove)))
}

impl<'a> Item<'a> {
    /// A message in a text; `id_at` is where its id stands there, or the null for it.
    fn new(text: ItemText, id: Option<RawStr<'a>>, id_at: Option<usize>, remove: bool) -> Self {
        let null_at = match id {
            Some(_) => None,
            None => id_at.map(|at| at as u32),
        };
        let id = id.map(RawStr::text);
        Item {
            hash: id.as_deref().map_or(0, hash_id),
            id: id.unwrap_or_default(),
            text,
            null_at,
            remove,
        }
    }

    fn give(&mut self, id: String) {
        self.hash = hash_id(&id);
        self.id = id.into();
    }
}

impl Item<'_> {
    fn of(message: Message) -> Self {
        Item {
            id: message.id().unwrap_or_default().to_owned().into(),
            hash: message.id_hash(),
            null_at: None,
            remove: message.kind() == Kind::Remove,
            text: ItemText::Message(message),
        }
    }
}

/// Gives ids, in order, to the messages that have none.
pub(super) fn give_ids(items: &mut [Item<'_>], ids: &mut dyn IdSource) {
    for item in items {
        match &mut item.text {
            ItemText::Message(message) if message.id().is_none() => {
                let id = ids.next_id();
                *message = message.with_id(&id);
                item.give(id);
            }
            ItemText::Input(_) | ItemText::Arena(..) if item.null_at.is_some() => {
                item.give(ids.next_id());
            }
            _ => {}
        }
    }
}

/// The texts that messages are ranges of.
pub(super) struct Texts<'a> {
    pub(super) input: &'a str,
    /// That of the existing list, and that of the writes.
    pub(super) arenas: [String; 2],
}

impl Texts<'_> {
    /// Appends the list as JSON. Neighbours that are neighbours in their text are copied together.
    pub(super) fn write<'i>(&self, out: &mut String, items: impl Iterator<Item = &'i Item<'i>>) {
        out.push('[');
        let mut first = true;
        let mut run: Option<(&str, Range<usize>)> = None;
        for item in items {
            let (text, range) = match &item.text {
                ItemText::Input(range) => (self.input, range.clone()),
                ItemText::Arena(arena, range) => {
                    (self.arenas[*arena as usize].as_str(), range.clone())
                }
                ItemText::Message(message) => (message.json(), 0..message.json().len()),
            };
            if let Some((run_text, run_range)) = &mut run {
                let goes_on = std::ptr::eq(*run_text, text)
                    && range.start == run_range.end + 1
                    && text.as_bytes()[run_range.end] == b','
                    && item.null_at.is_none();
                if goes_on {
                    run_range.end = range.end;
                    continue;
                }
                out.push_str(&run_text[run_range.clone()]);
                run = None;
            }
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            match item.null_at {
                // A given id takes the place of the null; a conversion gives none.
                Some(at) if !item.id.is_empty() => {
                    let at = range.start + at as usize;
                    out.push_str(&text[range.start..at]);
                    push_quoted(out, &item.id);
                    out.push_str(&text[at + "null".len()..range.end]);
                }
                _ => run = Some((text, range)),
            }
        }
        if let Some((text, range)) = run {
            out.push_str(&text[range]);
        }
        out.push(']');
    }
}
