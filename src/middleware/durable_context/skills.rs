//! Notes which skills were read: the calls that read a SKILL.md, with the mark that their results carry.
//!
//! Source: MW-DUR-7; the mark is that of `ToolErrorHandling` (MW-TEH-4). A body is never noted.

use serde_json::{Value, json};

use super::DurableContextConfig;
use super::tail::Tail;
use crate::middleware::message_marks::bounded;
use crate::middleware::tool_error_handling::{SKILL_CONTEXT_ENTRY, skill_file};
use crate::ports::signals::RunSignals;
use crate::protocol::message::{Message, ToolStatus};
use crate::protocol::warning::Warning;

/// The skills that were read in a tail, as `skill_context` takes them: `{name, path, description, loaded_at}`, the last a place
/// in the thread. A result without the right mark is a warning.
pub(super) fn captured(
    tail: &Tail<'_>,
    config: &DurableContextConfig,
    signals: &RunSignals,
) -> Vec<Value> {
    let mut read = Vec::new();
    for (place, result, turn) in tail.results() {
        let Some(path) = path(result, turn, config) else {
            continue;
        };
        match description(result, &path) {
            Some(description) => read.push(json!({
                "name": folder(&path), "path": path, "description": description, "loaded_at": place,
            })),
            None => signals.warn(
                Warning::SkillReadUnmarked,
                format!(
                    "{} was read, but its result does not say so; the skill is not noted",
                    bounded(&path, 200)
                ),
            ),
        }
    }
    read
}

/// The skill file that a result has, if it is one's.
fn path(result: &Message, turn: &Message, config: &DurableContextConfig) -> Option<String> {
    let fields = result.fields();
    if fields.status == ToolStatus::Error {
        return None;
    }
    let mut calls = turn.fields().tool_calls.iter();
    let call = calls.find(|call| call.id.as_ref() == Some(&fields.tool_call_id))?;
    skill_file(
        &config.skill_file_read_tool_names,
        &config.skills_container_path,
        &call.name,
        &call.args,
    )
}

/// What the mark of a result says, if it is about this file.
fn description<'a>(result: &'a Message, path: &str) -> Option<&'a str> {
    let entry = result.fields().additional_kwargs.get(SKILL_CONTEXT_ENTRY)?;
    let is_same = entry.get("path")?.as_str()? == path;
    is_same.then(|| {
        entry
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or("")
    })
}

/// The folder that a file stands in.
fn folder(path: &str) -> &str {
    path.rsplit('/').nth(1).unwrap_or_default()
}
