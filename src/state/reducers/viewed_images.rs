//! `viewed_images`: path -> facts about an image, in the order in which they were first viewed.

use serde_json::{Map, Value};

use super::{Fault, Side};
use crate::state::python;

/// Adds images; a path that is written again gets the new facts whole and keeps its place.
///
/// A null `existing` takes the write, or `{}` when the write is empty. A null write keeps `existing`. An empty write
/// clears: the result is `{}`.
///
/// # Errors
/// [`ErrorCode::EntryType`](crate::protocol::error::ErrorCode::EntryType) when a value is no object.
///
/// Source: DeerFlow `merge_viewed_images`, ST-9.
pub fn merge_viewed_images(existing: Value, update: Value) -> Result<Value, Fault> {
    if existing.is_null() {
        return Ok(if python::truthy(&update) {
            update
        } else {
            Value::Object(Map::new())
        });
    }
    match update {
        Value::Null => Ok(existing),
        // Clearing comes before `existing` is looked at, and any empty container clears.
        Value::Array(items) if items.is_empty() => Ok(Value::Object(Map::new())),
        Value::String(text) if text.is_empty() => Ok(Value::Object(Map::new())),
        Value::Object(images) if images.is_empty() => Ok(Value::Object(images)),
        Value::Object(images) => match existing {
            Value::Object(mut all) => {
                all.extend(images);
                Ok(Value::Object(all))
            }
            other => Err(Fault::wrong_type(
                Side::Existing,
                "",
                "an object of images",
                &other,
            )),
        },
        other => Err(Fault::wrong_type(
            Side::Update,
            "",
            "an object of images",
            &other,
        )),
    }
}
