//! What sections have in common: switches, what is not available, and settings that are not to be shown.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::protocol::decode::carry;
use crate::protocol::error::{Error, ErrorCode};

/// A section that can be switched on and off.
pub trait Feature: Default + PartialEq {
    /// Whether DeerFlow has it on where nothing is said.
    const ON_BY_DEFAULT: bool;

    /// What the section says, if anything.
    fn switch(&self) -> Option<bool>;

    /// Whether it is on.
    fn is_enabled(&self) -> bool {
        self.switch().unwrap_or(Self::ON_BY_DEFAULT)
    }

    /// Whether it has settings and is off only because nobody said `enabled`, which is mostly an oversight.
    fn is_forgotten(&self) -> bool {
        !Self::ON_BY_DEFAULT && self.switch().is_none() && *self != Self::default()
    }
}

/// A member that DeerFlow has and this version does not. Only null is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unavailable;

impl<'de> Deserialize<'de> for Unavailable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Null => Ok(Unavailable),
            _ => Err(carry(&Error::at(
                ErrorCode::Unsupported,
                "",
                "this is not available in this version",
            ))),
        }
    }
}

impl JsonSchema for Unavailable {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Unavailable".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "null"})
    }
}

/// Settings that belong to somebody else and may hold keys: debug output shows their names only.
#[derive(Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct OpaqueSettings(pub Map<String, Value>);

impl fmt::Debug for OpaqueSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The error of something that is switched on and not there.
pub(super) fn not_available(path: &str, what: &str) -> Error {
    let text = format!("{what:?} is not available in this version");
    Error::at(ErrorCode::Unsupported, path, text)
}

/// Checks a whole number.
pub(super) fn within(path: &str, value: u64, least: u64, most: u64) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let text = if most == u64::MAX {
        format!("{value} is less than {least}")
    } else {
        format!("{value} is not within {least} to {most}")
    };
    Err(Error::at(ErrorCode::OutOfRange, path, text))
}

/// Checks a whole number that need not be there.
pub(super) fn least(path: &str, value: Option<u64>, least: u64) -> Result<(), Error> {
    value.map_or(Ok(()), |value| within(path, value, least, u64::MAX))
}

/// Checks a number with a fraction.
pub(super) fn between(path: &str, value: f64, least: f64, most: f64) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let text = format!("{value} is not within {least} to {most}");
    Err(Error::at(ErrorCode::OutOfRange, path, text))
}

/// Checks that a text says something.
pub(super) fn not_blank(path: &str, text: &str) -> Result<(), Error> {
    if text.trim().is_empty() {
        let message = "this must not be blank";
        return Err(Error::at(ErrorCode::OutOfRange, path, message));
    }
    Ok(())
}
