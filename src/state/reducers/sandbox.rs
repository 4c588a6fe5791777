//! `sandbox`: one sandbox per thread; several writers may name the same one.

use serde_json::{Map, Value};

use super::{Fault, Side};
use crate::protocol::error::ErrorCode;
use crate::state::python;

/// Keeps the sandbox that is there.
///
/// A null write keeps `existing`; a null `existing` takes the write as it is. Otherwise both must have the same
/// `sandbox_id`, absent counting as null, and `existing` stays whole: other members of the write are dropped.
///
/// # Errors
/// [`ErrorCode::SandboxConflict`] when the ids differ; [`ErrorCode::EntryType`] when a value is no object.
///
/// Source: DeerFlow `merge_sandbox`, ST-5.
pub fn merge_sandbox(existing: Value, update: Value) -> Result<Value, Fault> {
    if update.is_null() {
        return Ok(existing);
    }
    if existing.is_null() {
        return Ok(update);
    }
    let held = sandbox_id(&existing, Side::Existing)?;
    let written = sandbox_id(&update, Side::Update)?;
    if !python::equal(held, written) {
        return Err(Fault::new(
            Side::Update,
            ErrorCode::SandboxConflict,
            "/sandbox_id",
            format!("the thread is bound to sandbox {held}; sandbox {written} cannot replace it"),
        ));
    }
    Ok(existing)
}

fn sandbox_id(value: &Value, side: Side) -> Result<&Value, Fault> {
    let members: &Map<String, Value> = value
        .as_object()
        .ok_or_else(|| Fault::wrong_type(side, "", "an object with sandbox_id", value))?;
    Ok(members.get("sandbox_id").unwrap_or(&Value::Null))
}
