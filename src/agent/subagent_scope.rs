//! Which subagents an agent may delegate to, and whether it may delegate at all (CA-2, CA-11, RC-4).

use serde_json::{Map, Value};

use crate::protocol::agent_record::AgentRecord;
use crate::state::python::truthy;

/// The option by which a request asks for delegation.
const SUBAGENT_ENABLED: &str = "subagent_enabled";

/// `allowed_subagents` of an agent: all, some or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SubagentScope {
    /// All there are: the agent says nothing, or there is no record.
    #[default]
    All,
    /// These names, exactly. Names that no subagent has count too: they let the agent delegate to nobody, but are no denial.
    Only(Vec<String>),
    /// Delegation is denied, whatever a request says.
    Denied,
}

impl SubagentScope {
    /// The scope of an agent; without a record it is all.
    pub fn of(record: Option<&AgentRecord>) -> Self {
        match record.and_then(|record| record.allowed_subagents.as_ref()) {
            None => SubagentScope::All,
            Some(names) if names.is_empty() => SubagentScope::Denied,
            Some(names) => SubagentScope::Only(names.clone()),
        }
    }

    /// The list as run metadata and descriptors show it (EP-15); `None` for all.
    pub fn names(&self) -> Option<&[String]> {
        match self {
            SubagentScope::All => None,
            SubagentScope::Only(names) => Some(names),
            SubagentScope::Denied => Some(&[]),
        }
    }

    /// Whether the agent may delegate to a subagent of this name.
    pub fn allows(&self, name: &str) -> bool {
        self.names()
            .is_none_or(|names| names.iter().any(|allowed| allowed == name))
    }

    /// Those of `known` that the agent may delegate to, in the order given: what the prompt lists and `task` takes.
    pub fn filter<'n>(&self, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
        known.into_iter().filter(|name| self.allows(name)).collect()
    }

    /// Whether a run delegates: asked for, and not denied. The answer is written back to `configurable`, and to `context` if that
    /// is an object, so that tools, prompt and limiter, which read them again, agree (RC-4).
    ///
    /// What was asked for is the member of `context` if it has one, else that of `configurable` (RC-1), by truthiness.
    pub fn settle(&self, configurable: &mut Map<String, Value>, context: &mut Value) -> bool {
        let asked = context.get(SUBAGENT_ENABLED);
        let asked = asked.or_else(|| configurable.get(SUBAGENT_ENABLED));
        let enabled = asked.is_some_and(truthy) && *self != SubagentScope::Denied;
        configurable.insert(SUBAGENT_ENABLED.to_owned(), enabled.into());
        if let Value::Object(context) = context {
            context.insert(SUBAGENT_ENABLED.to_owned(), enabled.into());
        }
        enabled
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::agent_record::agent_name;

    fn scope(allowed: Value) -> SubagentScope {
        let name = agent_name("a").expect("a name");
        let value = json!({ "allowed_subagents": allowed });
        let record = AgentRecord::from_file_value(&name, value, None).expect("a record");
        SubagentScope::of(Some(&record))
    }

    fn settled(
        scope: &SubagentScope,
        configurable: Value,
        mut context: Value,
    ) -> (bool, Value, Value) {
        let mut map = configurable.as_object().cloned().expect("an object");
        let enabled = scope.settle(&mut map, &mut context);
        (enabled, Value::Object(map), context)
    }

    #[test]
    fn ca2_null_is_all_a_list_is_a_scope_and_an_empty_one_a_denial() {
        let known = ["general-purpose", "bash", "reviewer"];
        assert_eq!(SubagentScope::of(None), SubagentScope::All);
        assert_eq!(scope(Value::Null).filter(known), known);
        let some = scope(json!(["reviewer", "bash", "Bash", "gone"]));
        assert_eq!(some.filter(known), ["bash", "reviewer"]);
        assert_eq!(scope(json!([])), SubagentScope::Denied);
        assert_eq!(scope(json!([])).filter(known), Vec::<&str>::new());
        assert_eq!(scope(json!([])).names(), Some(&[][..]));
    }

    #[test]
    fn rc4_a_denial_wins_over_a_request_and_is_written_back_to_both() {
        let denied = scope(json!([]));
        let off = json!({"subagent_enabled": false, "x": 1});
        let asked = json!({"subagent_enabled": true, "x": 1});
        assert_eq!(
            settled(&denied, asked.clone(), asked.clone()),
            (false, off.clone(), off)
        );
        assert_eq!(
            settled(&denied, json!({}), asked),
            (
                false,
                json!({"subagent_enabled": false}),
                json!({"subagent_enabled": false, "x": 1})
            )
        );
    }

    #[test]
    fn rc4_what_holds_is_written_back_whatever_was_asked() {
        let on = json!({"subagent_enabled": true});
        let off = json!({"subagent_enabled": false});
        for (configurable, context, enabled) in [
            (json!({}), json!({}), false),
            (on.clone(), json!({}), true),
            (json!({}), on.clone(), true),
            // RC-1: what the context has wins, null included.
            (on.clone(), off.clone(), false),
            (off.clone(), on.clone(), true),
            (on.clone(), json!({"subagent_enabled": null}), false),
            (json!({"subagent_enabled": "no"}), json!({}), true),
            (json!({"subagent_enabled": 0}), json!({}), false),
        ] {
            let expected = if enabled { on.clone() } else { off.clone() };
            for scope in [
                scope(Value::Null),
                scope(json!(["bash"])),
                scope(json!(["gone"])),
            ] {
                let found = settled(&scope, configurable.clone(), context.clone());
                assert_eq!(found, (enabled, expected.clone(), expected.clone()));
            }
        }
    }

    #[test]
    fn rc4_a_context_that_is_no_object_is_left_alone() {
        for context in [Value::Null, json!([1]), json!("subagent_enabled")] {
            let asked = json!({"subagent_enabled": true});
            let found = settled(&SubagentScope::All, asked.clone(), context.clone());
            assert_eq!(found, (true, asked, context));
        }
    }
}
