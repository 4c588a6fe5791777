//! The wire form of replies: events of a stream, and the message that a whole reply is.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use crate::adapters::model::lenient::{Extra, Loose, Members, Object, Tree, push_extra};

/// One event of a stream.
#[derive(Debug, Default)]
pub(super) struct Event<'a> {
    pub(super) kind: Loose<'a>,
    pub(super) index: Loose<'a>,
    pub(super) delta: Option<Delta<'a>>,
    pub(super) content_block: Option<Block<'a>>,
    pub(super) message: Option<Message<'a>>,
    pub(super) usage: Tree,
    pub(super) error: Tree,
    pub(super) extra: Vec<Extra<'a>>,
}

/// A message: the beginning of one, or a whole one.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) kind: Loose<'a>,
    /// A list of blocks, which are read one by one; `None` when there is no such member.
    pub(super) content: Option<&'a RawValue>,
    pub(super) usage: Tree,
    pub(super) error: Tree,
    pub(super) extra: Vec<Extra<'a>>,
}

/// A content block: the beginning of one, or a whole one.
#[derive(Debug, Default)]
pub(super) struct Block<'a> {
    pub(super) kind: Loose<'a>,
    pub(super) id: Loose<'a>,
    pub(super) name: Loose<'a>,
    /// Dense at times, so it is parsed when the block is whole.
    pub(super) input: Option<&'a RawValue>,
    /// Everything else; what it means depends on the kind.
    pub(super) extra: Vec<Extra<'a>>,
}

/// What one event adds to a block, or to the message.
#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) kind: Loose<'a>,
    pub(super) text: Loose<'a>,
    pub(super) thinking: Loose<'a>,
    pub(super) signature: Loose<'a>,
    pub(super) partial_json: Loose<'a>,
    pub(super) extra: Vec<Extra<'a>>,
}

impl<'de> Deserialize<'de> for Event<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(event) = Object::deserialize(deserializer)?;
        event.ok_or_else(|| de::Error::custom("null is no event"))
    }
}

impl<'de> Deserialize<'de> for Message<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(message) = Object::deserialize(deserializer)?;
        message.ok_or_else(|| de::Error::custom("null is no message"))
    }
}

impl<'de> Members<'de> for Event<'de> {
    const EXPECTED: &'static str = "an event, which is an object";
    const MOST: usize = 1;
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "type" => self.kind = map.next_value()?,
            "index" => self.index = map.next_value()?,
            "delta" => self.delta = map.next_value::<Object<_>>()?.0,
            "content_block" => self.content_block = map.next_value::<Object<_>>()?.0,
            "message" => self.message = map.next_value::<Object<_>>()?.0,
            "usage" => self.usage = map.next_value()?,
            "error" => self.error = map.next_value()?,
            _ => push_extra(&mut self.extra, name, map)?,
        }
        Ok(())
    }
}

impl<'de> Members<'de> for Message<'de> {
    const EXPECTED: &'static str = "a message, which is an object";
    const MOST: usize = 1;
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "type" => self.kind = map.next_value()?,
            "content" => self.content = Some(map.next_value()?),
            "usage" => self.usage = map.next_value()?,
            "error" => self.error = map.next_value()?,
            "role" => drop(map.next_value::<IgnoredAny>()?),
            _ => push_extra(&mut self.extra, name, map)?,
        }
        Ok(())
    }
}

impl<'de> Members<'de> for Block<'de> {
    const EXPECTED: &'static str = "a content block, which is an object";
    const MOST: usize = 1;
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "type" => self.kind = map.next_value()?,
            "id" => self.id = map.next_value()?,
            "name" => self.name = map.next_value()?,
            "input" => self.input = Some(map.next_value()?),
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
            "type" => self.kind = map.next_value()?,
            "text" => self.text = map.next_value()?,
            "thinking" => self.thinking = map.next_value()?,
            "signature" => self.signature = map.next_value()?,
            "partial_json" => self.partial_json = map.next_value()?,
            _ => push_extra(&mut self.extra, name, map)?,
        }
        Ok(())
    }
}
