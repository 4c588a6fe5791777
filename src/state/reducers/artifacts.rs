//! `artifacts`: the files that the agent presents, each once.

use std::collections::HashSet;

use serde_json::Value;

use super::{Fault, Side};
use crate::state::python;

/// Appends artifacts and drops all but the first of equal ones, inside `existing` too.
///
/// A null `existing` takes the write as it is, or `[]` when the write is empty; a null write keeps `existing`: neither
/// way removes duplicates. An empty write clears nothing. Text compares by code points, without normalisation.
///
/// # Errors
/// [`ErrorCode::EntryType`](crate::protocol::error::ErrorCode::EntryType) when a value is no list or an item is a list
/// or an object.
///
/// Source: DeerFlow `merge_artifacts`, ST-6.
pub fn merge_artifacts(existing: Value, update: Value) -> Result<Value, Fault> {
    if existing.is_null() {
        return Ok(if python::truthy(&update) {
            update
        } else {
            Value::Array(Vec::new())
        });
    }
    if update.is_null() {
        return Ok(existing);
    }
    union(existing, update, "").map(Value::Array)
}

/// The items of two values one after the other, the first of equal ones kept. `below` is where the two values are.
pub(super) fn union(existing: Value, update: Value, below: &str) -> Result<Vec<Value>, Fault> {
    let (mut items, more) = match (existing, update) {
        (Value::Array(items), Value::Array(more)) => (items, more),
        // The reference joins two texts, and then takes the result for a list of characters.
        (existing @ Value::String(_), update @ Value::String(_)) => (
            python::iterate(existing).unwrap_or_default(),
            python::iterate(update).unwrap_or_default(),
        ),
        (Value::Array(_), update) => {
            return Err(Fault::wrong_type(Side::Update, below, "a list", &update));
        }
        (existing, _) => {
            return Err(Fault::wrong_type(
                Side::Existing,
                below,
                "a list",
                &existing,
            ));
        }
    };
    let held = items.len();
    items.extend(more);
    first_of_each(items, |place| match place.checked_sub(held) {
        Some(place) => (Side::Update, format!("{below}/{place}")),
        None => (Side::Existing, format!("{below}/{place}")),
    })
}

/// The items without those that equal an earlier one. `place_of` tells where an item came from.
pub(super) fn first_of_each(
    items: Vec<Value>,
    place_of: impl Fn(usize) -> (Side, String),
) -> Result<Vec<Value>, Fault> {
    let mut seen = HashSet::with_capacity(items.len());
    let mut keep = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let Some(key) = python::Key::of(item) else {
            let (side, path) = place_of(place);
            return Err(Fault::wrong_type(side, path, "text", item));
        };
        keep.push(seen.insert(key));
    }
    drop(seen);
    let mut keep = keep.into_iter();
    let mut items = items;
    items.retain(|_| keep.next().unwrap_or(true));
    Ok(items)
}
