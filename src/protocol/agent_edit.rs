//! A change of a custom agent's record: which members it sets, and what becomes of the rest.

use serde_json::{Map, Value};

use super::trust::Identifier;

/// Members of a record that surfaces which update agents manage (CA-4). All other keys of a file, `github` among them, are the
/// author's: they stay as they were written.
pub const MANAGED_MEMBERS: &[&str] = &[
    "name",
    "description",
    "model",
    "tool_groups",
    "skills",
    "model_settings",
    "thinking_enabled",
    "reasoning_effort",
    "allowed_subagents",
    "memory_enabled",
];

/// What a change sets. What is `None` stays as it is; an empty list is a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentEdit {
    /// What the agent is for.
    pub description: Option<String>,
    /// Its skills.
    pub skills: Option<Vec<String>>,
    /// Its tool groups.
    pub tool_groups: Option<Vec<String>>,
    /// Its model.
    pub model: Option<String>,
    /// Its soul, whole.
    pub soul: Option<String>,
}

impl AgentEdit {
    /// Whether it sets nothing.
    pub fn is_empty(&self) -> bool {
        *self == AgentEdit::default()
    }

    /// Applies the edit to the content of a `config.yaml`; `None` where there is no agent yet. Answers the new content, and the
    /// members whose values are other ones now.
    ///
    /// Keys stay where they are and new ones come last, so that the author finds the file as it was; nothing that neither
    /// author nor edit wrote appears (CA-4). `name` is that of the folder, whatever the file said; that alone is no change
    /// (TL-21).
    pub fn apply(
        &self,
        name: &Identifier,
        existing: Option<&Map<String, Value>>,
    ) -> (Map<String, Value>, Vec<&'static str>) {
        let mut document = existing.cloned().unwrap_or_default();
        let mut changed = Vec::new();
        match document.get_mut("name") {
            Some(named) => *named = name.as_str().into(),
            None => {
                document.shift_insert(0, "name".to_owned(), name.as_str().into());
            }
        }
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let list = |list: &Option<Vec<String>>| list.clone().map(Value::from);
        let members = [
            ("description", text(&self.description)),
            ("model", text(&self.model)),
            ("tool_groups", list(&self.tool_groups)),
            ("skills", list(&self.skills)),
        ];
        for (member, value) in members {
            let Some(value) = value else { continue };
            let before = match document.get(member) {
                // What a file does not say is an empty description, and no value for all others.
                None | Some(Value::Null) if member == "description" => Value::from(""),
                before => before.cloned().unwrap_or_default(),
            };
            if before != value {
                document.insert(member.to_owned(), value);
                changed.push(member);
            }
        }
        (document, changed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::agent_record::agent_name;
    use super::*;

    fn apply(edit: &AgentEdit, existing: Value) -> (String, Vec<&'static str>) {
        let name = agent_name("bot").expect("a name");
        let (document, changed) = edit.apply(&name, existing.as_object());
        (Value::Object(document).to_string(), changed)
    }

    #[test]
    fn ca4_everything_else_stays_verbatim_and_in_place() {
        let existing = json!({
            "github": {"bindings": [{"repo": "a/b", "note": 1}]}, "name": "drifted", "skills": null,
            "memory_enabled": false, "own": [1.0, "x"], "allowed_subagents": [],
        });
        let edit = AgentEdit {
            skills: Some(vec![]),
            model: Some("m".to_owned()),
            ..AgentEdit::default()
        };
        let (document, changed) = apply(&edit, existing);
        assert_eq!(
            document,
            r#"{"github":{"bindings":[{"repo":"a/b","note":1}]},"name":"bot","skills":[],"memory_enabled":false,"own":[1.0,"x"],"allowed_subagents":[],"model":"m"}"#
        );
        assert_eq!(changed, ["model", "skills"]);
    }

    #[test]
    fn tl21_equal_values_are_no_change_and_a_drifted_name_is_none_either() {
        let existing = json!({"name": "drifted", "model": "m", "skills": ["a"], "tool_groups": []});
        let edit = AgentEdit {
            description: Some(String::new()),
            model: Some("m".to_owned()),
            skills: Some(vec!["a".to_owned()]),
            tool_groups: Some(vec![]),
            soul: None,
        };
        assert_eq!(apply(&edit, existing).1, Vec::<&str>::new());
    }

    #[test]
    fn a_new_agent_has_what_was_given_and_its_name() {
        let edit = AgentEdit {
            description: Some("d".to_owned()),
            ..AgentEdit::default()
        };
        let (document, _) = apply(&edit, Value::Null);
        assert_eq!(document, r#"{"name":"bot","description":"d"}"#);
        assert_eq!(
            apply(&AgentEdit::default(), Value::Null).0,
            r#"{"name":"bot"}"#
        );
    }
}
