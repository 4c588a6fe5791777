//! `todos`: the newest plan.

use serde_json::Value;

use super::Fault;

/// Replaces the plan with the one written, an empty one included; null keeps `existing`. Nothing is checked or merged.
///
/// # Errors
/// None; the type is that of all reducers.
///
/// Source: DeerFlow `merge_todos`, ST-7.
pub fn merge_todos(existing: Value, update: Value) -> Result<Value, Fault> {
    Ok(if update.is_null() { existing } else { update })
}
