//! The wire form of replies.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::adapters::model::calls::MAX_CALLS;
use crate::adapters::model::lenient::{Extra, List, Loose, Members, Object, Tree, push_extra};

/// Most choices that are read; one was asked for.
const MAX_CHOICES: usize = 8;
/// Most parts of one content.
const MAX_PARTS: usize = 64;

/// One chunk of a stream, or a whole reply.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    pub(super) id: Loose<'a>,
    pub(super) model: Loose<'a>,
    pub(super) choices: Vec<Choice<'a>>,
    pub(super) usage: Tree,
    pub(super) error: Tree,
    pub(super) extra: Vec<Extra<'a>>,
}

/// One choice: its delta, or its whole message.
#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) index: Loose<'a>,
    pub(super) delta: Option<Delta<'a>>,
    pub(super) message: Option<Delta<'a>>,
    pub(super) finish_reason: Loose<'a>,
    pub(super) extra: Vec<Extra<'a>>,
}

/// What one chunk adds to the message.
#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) content: Content<'a>,
    pub(super) reasoning_content: Loose<'a>,
    pub(super) reasoning: Loose<'a>,
    pub(super) refusal: Loose<'a>,
    pub(super) tool_calls: Vec<CallPiece<'a>>,
    /// The older form: one call, without an id.
    pub(super) function_call: Option<FunctionPiece<'a>>,
    pub(super) extra: Vec<Extra<'a>>,
}

/// A piece of a tool call.
#[derive(Debug, Default)]
pub(super) struct CallPiece<'a> {
    pub(super) index: Loose<'a>,
    pub(super) id: Loose<'a>,
    pub(super) function: Option<FunctionPiece<'a>>,
}

/// Name and arguments, or pieces of them.
#[derive(Debug, Default)]
pub(super) struct FunctionPiece<'a> {
    pub(super) name: Loose<'a>,
    pub(super) arguments: Arguments<'a>,
}

/// Content: text, or parts.
#[derive(Debug, Default)]
pub(super) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// A part of content: text, or reasoning in one of its forms.
#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    pub(super) text: Loose<'a>,
    pub(super) thinking: Content<'a>,
}

/// Arguments: text, or the object itself from endpoints that send it so.
#[derive(Debug, Default)]
pub(super) enum Arguments<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Raw(&'a RawValue),
}

impl<'de> Deserialize<'de> for Chunk<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(chunk) = Object::deserialize(deserializer)?;
        chunk.ok_or_else(|| de::Error::custom("null is no chunk"))
    }
}

impl<'de> Members<'de> for Chunk<'de> {
    const EXPECTED: &'static str = "an object";
    const MOST: usize = 1;
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "id" => self.id = map.next_value()?,
            "model" => self.model = map.next_value()?,
            "choices" => self.choices = map.next_value::<List<_>>()?.0,
            "usage" => self.usage = map.next_value()?,
            "error" => self.error = map.next_value()?,
            // The kind of the document, and padding against traffic analysis, say nothing about the reply.
            "object" | "obfuscation" => drop(map.next_value::<IgnoredAny>()?),
            _ => push_extra(&mut self.extra, name, map)?,
        }
        Ok(())
    }
}

impl<'de> Members<'de> for Choice<'de> {
    const EXPECTED: &'static str = "a choice, which is an object";
    const MOST: usize = MAX_CHOICES;
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "index" => self.index = map.next_value()?,
            "delta" => self.delta = map.next_value::<Object<_>>()?.0,
            "message" => self.message = map.next_value::<Object<_>>()?.0,
            "finish_reason" => self.finish_reason = map.next_value()?,
            _ => push_extra(&mut self.extra, name, map)?,
        }
        Ok(())
    }
}

impl<'de> Members<'de> for Delta<'de> {
    const EXPECTED: &'static str = "a delta, which is an object";
    const MOST: usize = 1;
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "content" => self.content = map.next_value()?,
            "reasoning_content" => self.reasoning_content = map.next_value()?,
            "reasoning" => self.reasoning = map.next_value()?,
            "refusal" => self.refusal = map.next_value()?,
            "tool_calls" => self.tool_calls = map.next_value::<List<_>>()?.0,
            "function_call" => self.function_call = map.next_value::<Object<_>>()?.0,
            "role" => drop(map.next_value::<IgnoredAny>()?),
            _ => push_extra(&mut self.extra, name, map)?,
        }
        Ok(())
    }
}

impl<'de> Members<'de> for CallPiece<'de> {
    const EXPECTED: &'static str = "a tool call, which is an object";
    const MOST: usize = MAX_CALLS;
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "index" => self.index = map.next_value()?,
            "id" => self.id = map.next_value()?,
            "function" => self.function = map.next_value::<Object<_>>()?.0,
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

impl<'de> Members<'de> for FunctionPiece<'de> {
    const EXPECTED: &'static str = "a function, which is an object";
    const MOST: usize = 1;
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "name" => self.name = map.next_value()?,
            "arguments" => self.arguments = Arguments::read(map.next_value()?),
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

impl<'a> Arguments<'a> {
    /// An object is not built here: it is dense at times, and is parsed when the call is whole.
    fn read(raw: &'a RawValue) -> Self {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'n') => Arguments::Nothing,
            Some(b'"') => match serde_json::from_str(text) {
                Ok(Loose::Text(text)) if !text.is_empty() => Arguments::Text(text),
                _ => Arguments::Nothing,
            },
            _ => Arguments::Raw(raw),
        }
    }
}

impl<'de> Members<'de> for Part<'de> {
    const EXPECTED: &'static str = "a part of the content, which is an object";
    const MOST: usize = MAX_PARTS;
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "text" => self.text = map.next_value()?,
            "thinking" => self.thinking = map.next_value()?,
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Content<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("content: text, or a list of parts")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Content::Nothing)
    }
    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Content::Nothing)
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Content::Nothing)
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Content::Nothing)
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Content::Nothing)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        let List(parts) = List::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(Content::Parts(parts))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::Nothing)
    }
}
