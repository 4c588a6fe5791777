//! Which of a user's skills are on: a small JSON file beside their folders (SKL-7).

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::file::{self, Stamp};
use super::trail::{Place, Trail};
use crate::protocol::json;
use crate::protocol::warning::Warning;

/// Names of the file in `{home}/users/{user_id}/skills`, the first that is there counts. DeerFlow's own has the underscore.
pub const STATE_FILES: [&str; 2] = ["skill_states.json", "_skill_states.json"];

/// Which skills are on, by name: `{"name": {"enabled": false}}`. What is not named, or not said right, is on, with a
/// warning for the latter.
pub fn read(folder: &Path, trail: &mut Trail) -> HashMap<String, bool> {
    for name in STATE_FILES {
        let path = folder.join(name);
        let stamp = Stamp::of_file(&path);
        let place = trail.saw_file(&path, stamp);
        if stamp.is_some() {
            return match states(&path, place, trail) {
                Ok(states) => states,
                Err(reason) => {
                    let path = path.display();
                    let message = format!("{path}: {reason}; every skill of the user counts as on");
                    trail.warn(Warning::SkillFlawed, message);
                    HashMap::new()
                }
            };
        }
    }
    HashMap::new()
}

fn states(path: &Path, place: Place, trail: &mut Trail) -> Result<HashMap<String, bool>, String> {
    let (text, stamp) = file::read(path)?;
    trail.read_file(place, stamp);
    let Value::Object(members) = json::parse(&text).map_err(|error| error.message)? else {
        return Err("it is no object of skill names".to_owned());
    };
    let mut states = HashMap::with_capacity(members.len());
    for (name, state) in members {
        match state.get("enabled") {
            Some(Value::Bool(enabled)) => {
                states.insert(name, *enabled);
            }
            // As the reference has it: an entry that does not say is on.
            None if state.is_object() => {}
            _ => {
                let path = path.display();
                let message = format!(
                    "{path}: the state of {name:?} is not {{\"enabled\": true}} or {{\"enabled\": false}}; it counts as on"
                );
                trail.warn(Warning::SkillFlawed, message);
            }
        }
    }
    Ok(states)
}
