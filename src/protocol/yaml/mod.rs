//! YAML text to JSON values and back, for front matter and small configuration files.
//!
//! Values mean what PyYAML's `safe_load` makes of them (YAML 1.1: `yes` is true, `010` is 8, `1:30` is 90, `1e3` is
//! text), because DeerFlow reads its files with it. Where JSON has no such value, the text as written stands in: dates,
//! `.inf` and `.nan`, and keys that are no text (`1: a` has the key "1", `yes: a` the key "yes").
//!
//! The text may come from anybody, so each of its dimensions has a bound: size ([`MAX_BYTES`]), nesting ([`MAX_DEPTH`]) and
//! what aliases add ([`MAX_ALIASED`]).

mod build;
mod scalar;
mod write;

use serde_json::Value;

use super::error::{Error, ErrorCode};

pub use write::to_yaml;

/// Largest YAML text that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting of lists and mappings, aliases followed.
pub const MAX_DEPTH: usize = 64;
/// Most that anchors and aliases together may add to a document: bytes of text, plus [`NODE_COST`] for each value.
pub const MAX_ALIASED: usize = 1 << 20;
/// What one value counts towards [`MAX_ALIASED`], in bytes.
pub const NODE_COST: usize = 32;

/// Reads one YAML document; a text with nothing in it is null. Of two equal keys the last wins, merge keys (`<<`) are
/// followed, and tags are refused but for those that a JSON value can follow (`!!str`, `!!int`, `!!float`, `!!bool`,
/// `!!null`, `!!seq`, `!!map`, `!!timestamp`).
///
/// # Errors
/// [`ErrorCode::AssemblyInvalid`]: no YAML, more than one document, a bound exceeded, or a construct that has no JSON
/// value. The message says line and column, both from 1.
pub fn from_yaml(text: &str) -> Result<Value, Error> {
    if text.len() > MAX_BYTES {
        let message = format!("{} bytes of YAML are more than {MAX_BYTES}", text.len());
        return Err(Error::new(ErrorCode::AssemblyInvalid, message));
    }
    build::document(text)
}

#[cfg(test)]
mod tests;
