//! `promoted`: deferred tools made visible, scoped by the hash of the catalog they are in.

use serde_json::{Map, Value};

use super::artifacts::{first_of_each, union};
use super::{Fault, Side};
use crate::state::python;

/// Adds names to those of the same catalog; another catalog starts over.
///
/// A write that counts as false keeps `existing`. When `existing` is null, or its `catalog_hash` (absent counts as
/// null) differs from the write's, the write's names replace the old ones; otherwise they follow them. Either way each
/// name is kept once, at its first place, and the result has the members `catalog_hash` and `names` only.
///
/// # Errors
/// [`ErrorCode::EntryMember`](crate::protocol::error::ErrorCode::EntryMember) when a needed `catalog_hash` or `names`
/// is missing, [`ErrorCode::EntryType`](crate::protocol::error::ErrorCode::EntryType) when a value is no object, or
/// names are no list of names.
///
/// Source: DeerFlow `merge_promoted`, ST-10.
pub fn merge_promoted(existing: Value, update: Value) -> Result<Value, Fault> {
    if !python::truthy(&update) {
        return Ok(existing);
    }
    let held = match existing {
        Value::Null => None,
        Value::Object(members) => Some(members),
        other => return Err(not_an_object(Side::Existing, &other)),
    };
    let mut written = match update {
        Value::Object(members) => members,
        other => return Err(not_an_object(Side::Update, &other)),
    };
    let hash = take(&mut written, "catalog_hash", Side::Update)?;

    let same_catalog = |held: &Map<String, Value>| {
        python::equal(held.get("catalog_hash").unwrap_or(&Value::Null), &hash)
    };
    match held {
        Some(mut held) if same_catalog(&held) => {
            let hash = take(&mut held, "catalog_hash", Side::Existing)?;
            let old = take(&mut held, "names", Side::Existing)?;
            let new = take(&mut written, "names", Side::Update)?;
            Ok(promotion(hash, union(old, new, "/names")?))
        }
        _ => {
            let names = take(&mut written, "names", Side::Update)?;
            let names = python::iterate(names)
                .map_err(|names| Fault::wrong_type(Side::Update, "/names", "a list", &names))?;
            let names = first_of_each(names, |place| (Side::Update, format!("/names/{place}")))?;
            Ok(promotion(hash, names))
        }
    }
}

fn promotion(hash: Value, names: Vec<Value>) -> Value {
    let mut members = Map::new();
    members.insert("catalog_hash".to_owned(), hash);
    members.insert("names".to_owned(), Value::Array(names));
    Value::Object(members)
}

fn take(members: &mut Map<String, Value>, name: &str, side: Side) -> Result<Value, Fault> {
    members
        .get_mut(name)
        .map(Value::take)
        .ok_or_else(|| Fault::missing(side, "", name))
}

fn not_an_object(side: Side, found: &Value) -> Fault {
    Fault::wrong_type(side, "", "an object with catalog_hash and names", found)
}
