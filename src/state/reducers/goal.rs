//! `goal`: the newest goal. Null keeps it; clearing one is an operation of its own, not a write.

use serde_json::Value;

use super::Fault;

/// Replaces the goal with the one written, without merging members; null keeps `existing`.
///
/// An ordinary write can therefore never clear a goal: see `ChannelValues::clear`.
///
/// # Errors
/// None; the type is that of all reducers.
///
/// Source: DeerFlow `merge_goal`, ST-8.
pub fn merge_goal(existing: Value, update: Value) -> Result<Value, Fault> {
    Ok(if update.is_null() { existing } else { update })
}
