//! JSON values to option types, with the exact path of whatever is wrong.
//!
//! Option objects refuse members they do not know, except `x-…` members, which are let through. Unions that are told
//! apart by a member keep exact paths too, see [`tagged`].

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, IntoDeserializer, Visitor};
use serde_json::{Map, Value};

use super::error::{Error, ErrorCode};
use super::json::{parse, pointer_token};

/// Parses text and decodes it.
///
/// # Errors
/// Those of [`parse`], and `UnknownMember`, `WrongType`, `OutOfRange`, `MissingMember` or `UnknownVariant` at the path
/// of the fault.
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    from_value(parse(text)?)
}

/// Decodes a value.
///
/// # Errors
/// See [`from_text`].
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(Decoder::<false>(value)).map_err(|fault| fault.0)
}

/// Decodes a value in which objects may have members that are not known here: what this library, or a newer one, answered
/// before. Answers only ever gain members.
///
/// # Errors
/// See [`from_text`], `UnknownMember` excepted.
pub fn from_open_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(Decoder::<true>(value)).map_err(|fault| fault.0)
}

/// Splits an object by the member that tells its variants apart, and decodes the rest as the chosen variant.
///
/// `known` lists the variants for the error text. The inner error keeps its path.
///
/// # Errors
/// `WrongType` when the value is no object, `MissingMember` without the member, `UnknownVariant` for another name.
pub fn tagged(value: Value, member: &str, known: &[&str]) -> Result<(String, Value), Error> {
    let Value::Object(mut map) = value else {
        return Err(wrong_type(
            &value,
            &format!("an object with the member {member:?}"),
        ));
    };
    let path = format!("/{}", pointer_token(member));
    match map.shift_remove(member) {
        Some(Value::String(name)) if known.contains(&name.as_str()) => {
            Ok((name, Value::Object(map)))
        }
        Some(Value::String(name)) => Err(Error::at(
            ErrorCode::UnknownVariant,
            path,
            format!("{name:?} is not one of {}", list(known)),
        )),
        Some(other) => Err(wrong_type(&other, "text").below(&path)),
        None => Err(Error::at(
            ErrorCode::MissingMember,
            path,
            format!("{member:?} is missing; it is one of {}", list(known)),
        )),
    }
}

/// A `WrongType` error that says what stands there and what should.
pub fn wrong_type(found: &Value, expected: &str) -> Error {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Error::at(
        ErrorCode::WrongType,
        "",
        format!("expected {expected}, found {found}"),
    )
}

fn list(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// What travels through serde: our error, whole.
#[derive(Debug)]
pub struct Fault(Error);

/// Lets a hand-written `Deserialize` pass an [`Error`] through whatever deserializer is at work.
///
/// serde offers text only, so the error is written between marks and read back by [`Fault`].
pub fn carry<E: de::Error>(error: &Error) -> E {
    let path = error.path.as_deref().unwrap_or_default();
    E::custom(format_args!(
        "\u{1}{}\u{1}{path}\u{1}{}",
        error.code.status(),
        error.message
    ))
}

impl Fault {
    fn below(self, token: &str) -> Self {
        Fault(self.0.below(&format!("/{}", pointer_token(token))))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        let text = text.to_string();
        if let Some(carried) = text.strip_prefix('\u{1}') {
            let mut parts = carried.splitn(3, '\u{1}');
            let status = parts.next().and_then(|status| status.parse::<i32>().ok());
            let path = parts.next().unwrap_or_default();
            let message = parts.next().unwrap_or_default();
            let code = ErrorCode::ALL
                .iter()
                .find(|code| Some(code.status()) == status);
            return Fault(Error::at(
                *code.unwrap_or(&ErrorCode::WrongType),
                path,
                message,
            ));
        }
        Fault(Error::at(ErrorCode::OutOfRange, "", text))
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Fault(Error::at(
            ErrorCode::WrongType,
            "",
            format!("expected {}, found {}", plain(expected), found_name(&found)),
        ))
    }

    fn invalid_value(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Fault(Error::at(
            ErrorCode::OutOfRange,
            "",
            format!("expected {}, found {}", plain(expected), found_name(&found)),
        ))
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> Self {
        Fault(Error::at(
            ErrorCode::OutOfRange,
            "",
            format!("expected {}, found {length} elements", plain(expected)),
        ))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Fault(Error::at(
            ErrorCode::UnknownVariant,
            "",
            format!(
                "{:?} is not known{}",
                clip(variant),
                hint(variant, expected)
            ),
        ))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Fault(unknown_member(field, expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Fault(Error::at(
            ErrorCode::MissingMember,
            format!("/{}", pointer_token(field)),
            format!("{field:?} is missing"),
        ))
    }
}

fn found_name(found: &de::Unexpected<'_>) -> String {
    match found {
        de::Unexpected::Unit | de::Unexpected::Option => "null".to_owned(),
        de::Unexpected::Bool(_) => "a boolean".to_owned(),
        de::Unexpected::Unsigned(number) => format!("the number {number}"),
        de::Unexpected::Signed(number) => format!("the number {number}"),
        de::Unexpected::Float(number) => format!("the number {number:?}"),
        de::Unexpected::Str(_) | de::Unexpected::Char(_) => "text".to_owned(),
        de::Unexpected::Seq => "a list".to_owned(),
        de::Unexpected::Map | de::Unexpected::StructVariant => "an object".to_owned(),
        other => other.to_string(),
    }
}

/// What was expected, in words of JSON where serde has words of Rust.
fn plain(expected: &dyn de::Expected) -> String {
    let expected = expected.to_string();
    let whole = |least: &str, most: String| format!("a whole number from {least} to {most}");
    match expected.as_str() {
        "u8" => whole("0", u8::MAX.to_string()),
        "u16" => whole("0", u16::MAX.to_string()),
        "u32" => whole("0", u32::MAX.to_string()),
        "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "i32" => whole(&i32::MIN.to_string(), i32::MAX.to_string()),
        "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a string" => "text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "unit" => "null".to_owned(),
        _ => expected,
    }
}

/// The error for a member that an object does not have, with the nearest name it does have.
pub fn unknown_member(name: &str, known: &[&str]) -> Error {
    Error::at(
        ErrorCode::UnknownMember,
        format!("/{}", pointer_token(name)),
        format!("unknown member {:?}{}", clip(name), hint(name, known)),
    )
}

/// Most names that an error tells.
const MAX_TOLD: usize = 50;

/// The known name that this one is meant to be, by the look of it.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|k| (distance(name, k), *k)).min();
    let near = near.filter(|(d, k)| {
        let longest = name.chars().count().max(k.len());
        *d <= 2 && *d < longest
    });
    near.map(|(_, near)| near)
}

/// What to try instead of a name that is not known: the nearest one, or all of them.
pub fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("; did you mean {near:?}?"),
        None if known.is_empty() => "; there are none here".to_owned(),
        None if known.len() > MAX_TOLD => {
            format!(
                "; known here: {} and {} more",
                list(&known[..MAX_TOLD]),
                known.len() - MAX_TOLD
            )
        }
        None => format!("; known here: {}", list(known)),
    }
}

fn clip(name: &str) -> String {
    name.chars().take(80).collect()
}

/// Edit distance, cut off for long names.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 40 || b.len() > 40 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (corner + usize::from(x != *y))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}

/// A serde deserializer over one value. Each container puts its path in front of the errors from inside. Members that are
/// not known are refused unless it is `OPEN`.
struct Decoder<const OPEN: bool>(Value);

impl<const OPEN: bool> Decoder<OPEN> {
    fn unexpected<E: de::Error>(value: &Value, visitor: &dyn de::Expected) -> E {
        let found = match value {
            Value::Null => de::Unexpected::Unit,
            Value::Bool(flag) => de::Unexpected::Bool(*flag),
            Value::Number(number) => {
                if let Some(number) = number.as_u64() {
                    de::Unexpected::Unsigned(number)
                } else if let Some(number) = number.as_i64() {
                    de::Unexpected::Signed(number)
                } else {
                    de::Unexpected::Float(number.as_f64().unwrap_or(f64::NAN))
                }
            }
            Value::String(text) => de::Unexpected::Str(text),
            Value::Array(_) => de::Unexpected::Seq,
            Value::Object(_) => de::Unexpected::Map,
        };
        E::invalid_type(found, visitor)
    }
}

/// Whole numbers that a float holds exactly.
const EXACT: f64 = (1_u64 << 53) as f64;

macro_rules! whole_numbers {
    ($($name:ident)*) => {
        $(fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match self.0.as_f64() {
                Some(float) if self.0.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT => {
                    if float < 0.0 {
                        visitor.visit_i64(float as i64)
                    } else {
                        visitor.visit_u64(float as u64)
                    }
                }
                _ => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'de, const OPEN: bool> de::Deserializer<'de> for Decoder<OPEN> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::Number(number) => {
                if let Some(number) = number.as_u64() {
                    visitor.visit_u64(number)
                } else if let Some(number) = number.as_i64() {
                    visitor.visit_i64(number)
                } else {
                    visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN))
                }
            }
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => visitor.visit_seq(Items::<OPEN> {
                next: 0,
                items: items.into_iter(),
            }),
            Value::Object(map) => visitor.visit_map(Members::<OPEN> {
                map: map.into_iter(),
                value: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            value => visitor.visit_some(Decoder::<OPEN>(value)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Value::Object(mut map) = self.0 else {
            return Err(Self::unexpected(&self.0, &"an object"));
        };
        map.retain(|name, _| !(OPEN || name.starts_with("x-")) || fields.contains(&name.as_str()));
        if let Some(name) = map.keys().find(|name| !fields.contains(&name.as_str())) {
            return Err(Fault(unknown_member(name, fields)));
        }
        visitor.visit_map(Members::<OPEN> {
            map: map.into_iter(),
            value: None,
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(name.into_deserializer()),
            other => Err(Self::unexpected(&other, &"one of the known names")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    // Where a whole number is asked for, `1.0` is one, as it is for the schemas.
    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    serde::forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Items<const OPEN: bool> {
    next: usize,
    items: std::vec::IntoIter<Value>,
}

impl<'de, const OPEN: bool> de::SeqAccess<'de> for Items<OPEN> {
    type Error = Fault;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.items.next() else {
            return Ok(None);
        };
        let place = self.next;
        self.next += 1;
        seed.deserialize(Decoder::<OPEN>(item))
            .map(Some)
            .map_err(|fault| fault.below(&place.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Members<const OPEN: bool> {
    map: <Map<String, Value> as IntoIterator>::IntoIter,
    value: Option<(String, Value)>,
}

impl<'de, const OPEN: bool> de::MapAccess<'de> for Members<OPEN> {
    type Error = Fault;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some((name, value)) = self.map.next() else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Fault> = name.as_str().into_deserializer();
        let key = seed.deserialize(key)?;
        self.value = Some((name, value));
        Ok(Some(key))
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((name, value)) = self.value.take() else {
            return Err(de::Error::custom("a value was asked for before its name"));
        };
        seed.deserialize(Decoder::<OPEN>(value))
            .map_err(|fault| fault.below(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(default)]
        size: Option<u32>,
        #[serde(default)]
        any: Value,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only whether it decodes matters")]
    struct Outer {
        items: Vec<Inner>,
        #[serde(default)]
        union: Option<Union>,
    }

    #[derive(Debug)]
    #[allow(dead_code, reason = "only whether it decodes matters")]
    struct Union(Inner);

    impl<'de> Deserialize<'de> for Union {
        fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let value = Value::deserialize(deserializer)?;
            tagged(value, "kind", &["one"])
                .and_then(|(_, rest)| from_value(rest))
                .map(Union)
                .map_err(|error| carry(&error))
        }
    }

    fn fault(text: &str) -> (ErrorCode, String) {
        let error = from_text::<Outer>(text).expect_err(text);
        (error.code, error.path.unwrap_or_default())
    }

    #[test]
    fn every_fault_has_its_code_and_path() {
        assert_eq!(
            fault(r#"{"items":[{"siz":1}]}"#),
            (ErrorCode::UnknownMember, "/items/0/siz".into())
        );
        assert_eq!(
            fault(r#"{"items":[{},{"size":"1"}]}"#),
            (ErrorCode::WrongType, "/items/1/size".into())
        );
        assert_eq!(
            fault(r#"{"items":[{"size":-1}]}"#),
            (ErrorCode::OutOfRange, "/items/0/size".into())
        );
        assert_eq!(
            fault(r#"{"items":[{"size":1.5}]}"#),
            (ErrorCode::WrongType, "/items/0/size".into())
        );
        assert_eq!(fault(r#"{}"#), (ErrorCode::MissingMember, "/items".into()));
        assert_eq!(
            fault(r#"{"items":[],"union":{"kind":"two"}}"#),
            (ErrorCode::UnknownVariant, "/union/kind".into())
        );
        assert_eq!(
            fault(r#"{"items":[],"union":{"kind":"one","a/b":1}}"#),
            (ErrorCode::UnknownMember, "/union/a~1b".into())
        );
        assert_eq!(fault("[]"), (ErrorCode::WrongType, String::new()));
        assert_eq!(fault(""), (ErrorCode::JsonSyntax, String::new()));
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_point() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Sizes {
            count: u32,
            offset: i64,
            kept: Value,
        }
        let sizes: Sizes = from_text(r#"{"count":2.0,"offset":-3e2,"kept":1.0}"#).unwrap();
        assert_eq!((sizes.count, sizes.offset), (2, -300));
        assert_eq!(sizes.kept.to_string(), "1.0", "values keep their form");
        for text in [
            r#"{"count":2.5,"offset":0,"kept":0}"#,
            r#"{"count":-1.0,"offset":0,"kept":0}"#,
            r#"{"count":0,"offset":1e16,"kept":0}"#,
        ] {
            assert!(from_text::<Sizes>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn answers_may_have_members_that_are_not_known() {
        let value = parse(r#"{"more":1,"items":[{"siz":1},{"size":2,"x-":3}]}"#).expect("JSON");
        let outer: Outer = from_open_value(value).expect("open");
        assert_eq!(outer.items[1].size, Some(2));
        let value = parse(r#"{"items":[{"more":1,"size":"2"}]}"#).expect("JSON");
        let error = from_open_value::<Outer>(value).expect_err("a wrong type");
        assert_eq!(error.path.as_deref(), Some("/items/0/size"));
    }

    #[test]
    fn x_members_are_let_through_and_values_keep_theirs() {
        let outer: Outer =
            from_text(r#"{"x-note":1,"items":[{"any":{"x-kept":2.0,"n":3}}]}"#).expect("valid");
        assert_eq!(outer.items[0].any.to_string(), r#"{"x-kept":2.0,"n":3}"#);
    }
}
