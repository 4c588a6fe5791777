//! `skill_context`: the skills in use, the one read last at the end.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Fault, Side};
use crate::state::python;

/// Most skills that are kept; those read longest ago go first. Source: DeerFlow `thread_state.py`.
pub const MAX_SKILLS: usize = 8;

/// Longest description, in code points. Source: DeerFlow `thread_state.py`.
pub const MAX_DESCRIPTION_CHARS: usize = 500;

/// Records skills that were read; reading one again moves it to the end.
///
/// Every entry becomes exactly `{name, path, description, loaded_at}`: `name` and `path` as text, the description with
/// single spaces and at most [`MAX_DESCRIPTION_CHARS`] code points (no text: `""`), `loaded_at` if it is an integer or
/// a boolean, else 0. A write that counts as false gives the existing entries in this form and nothing else. Otherwise
/// entries of one `path` collapse, existing ones at their first place, written ones at the end, and the last
/// [`MAX_SKILLS`] remain.
///
/// # Errors
/// [`ErrorCode::EntryMember`](crate::protocol::error::ErrorCode::EntryMember) when `path` is missing,
/// [`ErrorCode::EntryType`](crate::protocol::error::ErrorCode::EntryType) when a value is no list or an entry no object.
///
/// Source: DeerFlow `merge_skill_context`, ST-14.
pub fn merge_skill_context(existing: Value, update: Value) -> Result<Value, Fault> {
    let held = if python::truthy(&existing) {
        entries(existing, Side::Existing)?
            .into_iter()
            .enumerate()
            .map(|(place, entry)| Skill::normalise(entry, Side::Existing, place))
            .collect::<Result<Vec<_>, _>>()?
    } else {
        Vec::new()
    };
    if !python::truthy(&update) {
        return Ok(held.into_iter().map(Value::from).collect());
    }

    let mut slots: Vec<Option<Skill>> = Vec::with_capacity(held.len());
    let mut places: HashMap<String, usize> = HashMap::with_capacity(held.len());
    for skill in held {
        match places.get(&skill.path) {
            Some(place) => slots[*place] = Some(skill),
            None => {
                places.insert(skill.path.clone(), slots.len());
                slots.push(Some(skill));
            }
        }
    }
    for (place, entry) in entries(update, Side::Update)?.into_iter().enumerate() {
        let skill = Skill::normalise(entry, Side::Update, place)?;
        if let Some(old) = places.insert(skill.path.clone(), slots.len()) {
            slots[old] = None;
        }
        slots.push(Some(skill));
    }
    // Every path has one filled slot.
    let dropped = places.len().saturating_sub(MAX_SKILLS);
    Ok(slots
        .into_iter()
        .flatten()
        .skip(dropped)
        .map(Value::from)
        .collect())
}

fn entries(list: Value, side: Side) -> Result<Vec<Value>, Fault> {
    match list {
        Value::Array(entries) => Ok(entries),
        other => Err(Fault::wrong_type(side, "", "a list of skills", &other)),
    }
}

/// One entry in its stored form.
struct Skill {
    name: String,
    path: String,
    description: String,
    loaded_at: Value,
}

impl Skill {
    fn normalise(entry: Value, side: Side, place: usize) -> Result<Skill, Fault> {
        let mut entry = match entry {
            Value::Object(members) => members,
            other => {
                return Err(Fault::wrong_type(
                    side,
                    format!("/{place}"),
                    "an object",
                    &other,
                ));
            }
        };
        let mut take = |member: &str| entry.get_mut(member).map(Value::take);
        let path = take("path")
            .map(|value| python::str_of(&value))
            .ok_or_else(|| Fault::missing(side, &format!("/{place}"), "path"))?;
        let name = take("name")
            .filter(python::truthy)
            .map(|value| python::str_of(&value))
            .unwrap_or_default();
        let description = match take("description") {
            Some(Value::String(text)) => python::collapse_whitespace(&text, MAX_DESCRIPTION_CHARS),
            _ => String::new(),
        };
        let loaded_at = match take("loaded_at") {
            Some(Value::Number(number)) if !number.is_f64() => Value::Number(number),
            Some(flag @ Value::Bool(_)) => flag,
            _ => Value::from(0),
        };
        Ok(Skill {
            name,
            path,
            description,
            loaded_at,
        })
    }
}

impl From<Skill> for Value {
    fn from(skill: Skill) -> Value {
        let mut members = Map::new();
        members.insert("name".to_owned(), Value::String(skill.name));
        members.insert("path".to_owned(), Value::String(skill.path));
        members.insert("description".to_owned(), Value::String(skill.description));
        members.insert("loaded_at".to_owned(), skill.loaded_at);
        Value::Object(members)
    }
}
