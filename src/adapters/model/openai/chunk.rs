//! The wire form of replies, read leniently: servers that claim the format differ in what they leave out, write as
//! null or put in another type.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// A member that the format does not know, as raw text.
pub(super) type Extra<'a> = (Cow<'a, str>, &'a RawValue);

/// One chunk of a stream, or a whole reply.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    pub(super) id: Loose<'a>,
    pub(super) model: Loose<'a>,
    pub(super) choices: Vec<Choice<'a>>,
    pub(super) usage: Loose<'a>,
    pub(super) error: Loose<'a>,
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
    pub(super) content: Loose<'a>,
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
    pub(super) arguments: Loose<'a>,
}

/// A value of any type. Text that needs no unescaping is borrowed.
#[derive(Debug, Default)]
pub(super) enum Loose<'a> {
    #[default]
    Null,
    Text(Cow<'a, str>),
    Other(Value),
}

impl<'a> Loose<'a> {
    /// Text that is not empty; anything else counts as not said.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Loose::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Whether this is null or empty text.
    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Loose::Null => true,
            Loose::Text(text) => text.is_empty(),
            Loose::Other(_) => false,
        }
    }

    /// A non-negative integer, also when it is written as text.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Loose::Other(Value::Number(number)) => number.as_u64(),
            Loose::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Loose<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Loose::Null)
    }
    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Loose::Other(value.into()))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Loose::Other(value.into()))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Loose::Other(value.into()))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Loose::Other(value.into()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(list)).map(Loose::Other)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(Loose::Other)
    }
}

/// A member name; borrowed when it holds no escapes, as member names do.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }
            fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(name)))
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// An object of the wire form that is filled member by member.
trait Members<'de>: Default {
    /// What the value must be, for errors.
    const EXPECTED: &'static str;
    /// Takes the value of one member out of `map`.
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error>;
}

/// Reads an object as `T`; null is `None`.
struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Members<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Option<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_unit<E: de::Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        let mut object = T::default();
        while let Some(Key(name)) = map.next_key()? {
            object.member(name, &mut map)?;
        }
        Ok(Some(object))
    }
}

struct Object<T>(Option<T>);

impl<'de, T: Members<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(ObjectVisitor(PhantomData))
            .map(Object)
    }
}

/// A list of objects; null is an empty list, null in it is skipped.
struct List<T>(Vec<T>);

impl<'de, T: Members<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);
        impl<'de, T: Members<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list, each of it {}", T::EXPECTED)
            }
            fn visit_unit<E: de::Error>(self) -> Result<List<T>, E> {
                Ok(List(Vec::new()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
                let mut objects = Vec::new();
                while let Some(Object(object)) = list.next_element()? {
                    objects.extend(object);
                }
                Ok(List(objects))
            }
        }
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Chunk<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(chunk) = Object::deserialize(deserializer)?;
        chunk.ok_or_else(|| de::Error::custom("null is no chunk"))
    }
}

impl<'de> Members<'de> for Chunk<'de> {
    const EXPECTED: &'static str = "an object";
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
            _ => self.extra.push((name, map.next_value()?)),
        }
        Ok(())
    }
}

impl<'de> Members<'de> for Choice<'de> {
    const EXPECTED: &'static str = "a choice, which is an object";
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
            _ => self.extra.push((name, map.next_value()?)),
        }
        Ok(())
    }
}

impl<'de> Members<'de> for Delta<'de> {
    const EXPECTED: &'static str = "a delta, which is an object";
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
            _ => self.extra.push((name, map.next_value()?)),
        }
        Ok(())
    }
}

impl<'de> Members<'de> for CallPiece<'de> {
    const EXPECTED: &'static str = "a tool call, which is an object";
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
    fn member<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "name" => self.name = map.next_value()?,
            "arguments" => self.arguments = map.next_value()?,
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}
