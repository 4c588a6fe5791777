//! Takes out of a result of `tool_search` what the active skills do not allow: schemas and promotions (MW-STP-5).

use serde_json::Value;

use crate::ports::tool::{ToolAnswer, ToolOutcome};
use crate::prompt::sanitize::neutralize;
use crate::state::channels::Channel;
use crate::state::update::{StateUpdate, Write};

/// What is said when a result has another shape than that of the search, so that nobody can tell what it lets through.
const UNKNOWN_SHAPE: &str = "the result of the search cannot be checked against what the skills in use allow, so it is withheld";
const NOTHING_LEFT: &str = "No deferred tool that the skills in use allow fits.";

/// The result with what is `allowed`; a failure when it is not of the shape of the search.
pub(super) fn filtered(mut answer: ToolAnswer, allowed: impl Fn(&str) -> bool) -> ToolOutcome {
    let Some(names) = answer.update.as_mut().and_then(promoted_names) else {
        return ToolOutcome::Failed(UNKNOWN_SHAPE.to_owned());
    };
    let found_some = !names.is_empty();
    names.retain(|name| name.as_str().is_some_and(&allowed));
    let Some(text) = answer.content.as_str() else {
        return ToolOutcome::Failed(UNKNOWN_SHAPE.to_owned());
    };
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(mut schemas)) => {
            let count = schemas.len();
            schemas.retain(|schema| name_of(schema).is_some_and(&allowed));
            if schemas.is_empty() {
                answer.content = NOTHING_LEFT.into();
            } else if schemas.len() < count {
                let text = format!("{:#}", Value::Array(schemas));
                answer.content = neutralize(&text).into_owned().into();
            }
        }
        // In words, it says that nothing was found.
        Err(_) if !found_some => {}
        _ => return ToolOutcome::Failed(UNKNOWN_SHAPE.to_owned()),
    }
    // What a program is given besides could hold the schemas again.
    answer.artifact = Value::Null;
    ToolOutcome::Answer(answer)
}

/// The names that an update promotes, if that is all it does.
fn promoted_names(update: &mut StateUpdate) -> Option<&mut Vec<Value>> {
    let [(Channel::Promoted, Write::Value(promotion))] = &mut update.writes[..] else {
        return None;
    };
    let names = promotion.get_mut("names")?.as_array_mut()?;
    names.iter().all(Value::is_string).then_some(names)
}

/// The tool that a schema is of, bare or as OpenAI wraps it.
fn name_of(schema: &Value) -> Option<&str> {
    let name = schema
        .get("name")
        .or_else(|| schema.get("function")?.get("name"));
    name?.as_str()
}
