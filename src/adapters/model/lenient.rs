//! JSON of endpoints, read leniently: servers that claim a format differ in what they leave out, write as null or put in
//! another type.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::reply::weight;

/// Most values inside of one [`Tree`]: a dense list takes many times its text.
const MAX_VALUES: usize = 512;
/// Most unknown members of one object that are looked at.
const MAX_EXTRAS: usize = 64;

/// A member that the format does not know, as raw text.
pub(super) type Extra<'a> = (Cow<'a, str>, &'a RawValue);

/// Adds the value of an unknown member to `extras`, up to a bound.
pub(super) fn push_extra<'de, A: MapAccess<'de>>(
    extras: &mut Vec<Extra<'de>>,
    name: Cow<'de, str>,
    map: &mut A,
) -> Result<(), A::Error> {
    if extras.len() < MAX_EXTRAS {
        extras.push((name, map.next_value()?));
    } else {
        map.next_value::<IgnoredAny>()?;
    }
    Ok(())
}

/// A single value of any type. Text that needs no unescaping is borrowed; lists and objects are not read.
#[derive(Debug, Default)]
pub(super) enum Loose<'a> {
    #[default]
    Null,
    Text(Cow<'a, str>),
    Number(u64),
    Other,
}

impl<'a> Loose<'a> {
    /// Text that is not empty; anything else counts as not said.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Loose::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Loose::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A non-negative integer, also when it is written as text.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Loose::Number(number) => Some(*number),
            other => other.as_str()?.parse().ok(),
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
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Loose::Other)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Loose::Number(value))
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Loose::Other)
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Loose::Other)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::Other)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::Other)
    }
}

/// A small value of any type, whole.
#[derive(Debug, Default)]
pub(super) struct Tree(pub(super) Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Bounded(&Cell::new(MAX_VALUES))
            .deserialize(deserializer)
            .map(Tree)
    }
}

/// Reads a value that holds no more values than the cell says.
#[derive(Clone, Copy)]
struct Bounded<'a>(&'a Cell<usize>);

impl Bounded<'_> {
    fn count<E: de::Error>(self) -> Result<(), E> {
        let left = self.0.get().checked_sub(1);
        self.0.set(left.ok_or_else(|| {
            E::custom(format_args!("a member holds more than {MAX_VALUES} values"))
        })?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            members.insert(name, map.next_value_seed(self)?);
        }
        Ok(Value::Object(members))
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
pub(super) trait Members<'de>: Default {
    /// What the value must be, for errors.
    const EXPECTED: &'static str;
    /// Most of them in one list.
    const MOST: usize;
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

/// An object that is filled member by member; null is `None`.
pub(super) struct Object<T>(pub(super) Option<T>);

impl<'de, T: Members<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(ObjectVisitor(PhantomData))
            .map(Object)
    }
}

/// A list of objects; null is an empty list, null in it is skipped. Longer ones than [`Members::MOST`] are refused.
pub(super) struct List<T>(pub(super) Vec<T>);

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
                    if objects.len() == T::MOST {
                        return Err(de::Error::custom(format_args!(
                            "a list holds more than {} objects",
                            T::MOST
                        )));
                    }
                    objects.extend(object);
                }
                Ok(List(objects))
            }
        }
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

/// Reads a list of objects one by one, so that a long one is never held at once. Null is an empty list.
///
/// # Errors
/// `Err` when the text is no such list; `Ok(Err)` with what `take` said, which ends the reading.
pub(super) fn each<'a, T: Members<'a>, E>(
    json: &'a str,
    take: impl FnMut(T) -> Result<(), E>,
) -> Result<Result<(), E>, serde_json::Error> {
    struct EachVisitor<T, F>(F, PhantomData<T>);
    impl<'de, T, E, F> Visitor<'de> for EachVisitor<T, F>
    where
        T: Members<'de>,
        F: FnMut(T) -> Result<(), E>,
    {
        type Value = Result<(), E>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list, each of it {}", T::EXPECTED)
        }
        fn visit_unit<D: de::Error>(self) -> Result<Self::Value, D> {
            Ok(Ok(()))
        }
        fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut outcome = Ok(());
            while let Some(Object(object)) = list.next_element()? {
                if let (Some(object), true) = (object, outcome.is_ok()) {
                    outcome = (self.0)(object);
                }
            }
            Ok(outcome)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.deserialize_any(EachVisitor(take, PhantomData))
}

/// What such members may take of the smallest input.
pub(super) const BUDGET_BYTES: usize = 512 << 10;

/// What parsed members that nobody knows may take: twice the input and half a MiB, so that dense lists from a hostile
/// endpoint do not take many times what was sent.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { left: BUDGET_BYTES }
    }
}

impl Budget {
    /// So many bytes came.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(2 * bytes);
    }

    /// Takes what `json` will weigh; false when it does not fit.
    pub(super) fn take(&mut self, json: &str) -> bool {
        let left = self.left.checked_sub(weight(json));
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}
