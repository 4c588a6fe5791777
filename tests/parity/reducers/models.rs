//! Slow, obvious versions of the reducers: nested scans, whole copies, no indexes. They take values of the right
//! shape; a missing member is the one failure they know.

use fawn::protocol::error::ErrorCode;
use serde_json::{Value, json};

type Outcome = Result<Value, ErrorCode>;

/// Equality of the scalars that the generated cases use.
fn same(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        value => value.as_f64(),
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn is_false(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(number) => same(number, &json!(0)),
    }
}

fn items(value: &Value) -> Vec<Value> {
    value.as_array().unwrap().clone()
}

fn without_repeats(list: Vec<Value>) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for item in list {
        if !kept.iter().any(|other| same(other, &item)) {
            kept.push(item);
        }
    }
    Value::Array(kept)
}

/// ST-6.
pub fn artifacts(existing: &Value, new: &Value) -> Outcome {
    Ok(match (existing, new) {
        (Value::Null, Value::Null) => json!([]),
        (Value::Null, new) => new.clone(),
        (existing, Value::Null) => existing.clone(),
        (existing, new) => without_repeats([items(existing), items(new)].concat()),
    })
}

/// ST-10.
pub fn promoted(existing: &Value, new: &Value) -> Outcome {
    if is_false(Some(new)) {
        return Ok(existing.clone());
    }
    let member = |value: &Value, name: &str| value.get(name).cloned().ok_or(ErrorCode::EntryMember);
    let hash = member(new, "catalog_hash")?;
    let held = existing.get("catalog_hash").cloned().unwrap_or_default();
    let same_catalog = !existing.is_null() && same(&held, &hash);
    let mut names = Vec::new();
    if same_catalog {
        member(existing, "catalog_hash")?;
        names = items(&member(existing, "names")?);
    }
    names.extend(items(&member(new, "names")?));
    let hash = if same_catalog { held } else { hash };
    Ok(json!({"catalog_hash": hash, "names": without_repeats(names)}))
}

/// ST-13, run-scoped.
pub fn delegations(existing: &Value, new: &Value) -> Outcome {
    if is_false(Some(new)) {
        return Ok(if is_false(Some(existing)) {
            json!([])
        } else {
            existing.clone()
        });
    }
    let terminal = |entry: &Value| -> Result<bool, ErrorCode> {
        let status = entry.get("status").ok_or(ErrorCode::EntryMember)?;
        let ends = [
            "completed",
            "failed",
            "cancelled",
            "timed_out",
            "polling_timed_out",
        ];
        Ok(ends.iter().any(|end| status == end))
    };
    // (run, id, entry), by first appearance.
    let mut ledger: Vec<(Value, Value, Value)> = Vec::new();
    let held = if existing.is_null() {
        vec![]
    } else {
        items(existing)
    };
    for entry in [held, items(new)].concat() {
        let id = entry.get("id").cloned().ok_or(ErrorCode::EntryMember)?;
        let mut run = if is_false(entry.get("run_id")) {
            Value::Null
        } else {
            entry["run_id"].clone()
        };
        let latest = ledger.iter().rev().find(|(_, other, _)| same(other, &id));
        if let (true, Some((known, ..))) = (run.is_null(), latest) {
            run = known.clone();
        }
        let place = ledger
            .iter()
            .position(|(a, b, _)| same(a, &run) && same(b, &id));
        let Some(place) = place else {
            ledger.push((run, id, entry));
            continue;
        };
        let previous = ledger[place].2.clone();
        if terminal(&previous)? && !terminal(&entry)? {
            continue;
        }
        let mut merged = entry.clone();
        if !is_false(previous.get("created_at")) {
            merged["created_at"] = previous["created_at"].clone();
            if !is_false(previous.get("run_id")) && is_false(entry.get("run_id")) {
                merged["run_id"] = previous["run_id"].clone();
            }
        }
        ledger[place].2 = merged;
    }
    while ledger.len() > 50 {
        ledger.remove(0);
    }
    Ok(ledger.into_iter().map(|(.., entry)| entry).collect())
}

/// ST-14, for names and paths that are text.
pub fn skill_context(existing: &Value, new: &Value) -> Outcome {
    let normal = |entry: &Value| -> Outcome {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = entry.get("path").ok_or(ErrorCode::EntryMember)?;
        let spaced: String = text("description")
            .chars()
            .map(|c| {
                if c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c) {
                    ' '
                } else {
                    c
                }
            })
            .collect();
        let words: Vec<_> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
        let description: String = words.join(" ").chars().take(500).collect();
        let loaded_at = entry
            .get("loaded_at")
            .filter(|at| at.is_i64() || at.is_boolean());
        let loaded_at = loaded_at.cloned().unwrap_or(json!(0));
        Ok(json!({
            "name": text("name"), "path": path, "description": description, "loaded_at": loaded_at,
        }))
    };
    let held = if existing.is_null() {
        vec![]
    } else {
        items(existing)
    };
    let held: Vec<Value> = held.iter().map(normal).collect::<Result<_, _>>()?;
    if is_false(Some(new)) {
        return Ok(Value::Array(held));
    }
    let mut skills: Vec<Value> = Vec::new();
    for skill in held {
        match skills
            .iter()
            .position(|other| other["path"] == skill["path"])
        {
            Some(place) => skills[place] = skill,
            None => skills.push(skill),
        }
    }
    for entry in items(new) {
        let skill = normal(&entry)?;
        skills.retain(|other| other["path"] != skill["path"]);
        skills.push(skill);
    }
    while skills.len() > 8 {
        skills.remove(0);
    }
    Ok(Value::Array(skills))
}
