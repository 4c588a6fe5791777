//! The `github` block of a custom agent: the repositories that it answers on, and what wakes it there (CA-10).
//!
//! Source: DeerFlow `config/agents_config.py::GitHubAgentConfig`. Nothing of it reaches a prompt.

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::agent_record::{read_flag, read_number, trim};
use super::error::{Error, ErrorCode};

/// Steps of a run that came in from GitHub, unless the agent says otherwise (CA-10).
pub const GITHUB_RECURSION_LIMIT: u64 = 250;

/// The repositories that a custom agent answers on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GithubConfig {
    /// The app installation whose tokens its runs get. Default: no tokens.
    #[serde(default)]
    pub installation_id: Option<i64>,
    /// The login that it posts as, by which its own events are known. Blank counts as none. Default: none.
    #[serde(default, deserialize_with = "trimmed")]
    pub bot_login: Option<String>,
    /// Steps of a run; taken as it is when positive, else the channel's 250 hold.
    #[serde(default)]
    pub recursion_limit: Option<i64>,
    /// The repositories, each at most once. Without any the agent never wakes.
    #[serde(default)]
    pub bindings: Vec<GithubBinding>,
}

/// A repository that a custom agent answers on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GithubBinding {
    /// `owner/name`.
    pub repo: String,
    /// What of an event wakes the agent, by the event's name. Events that are not named have the channel's defaults.
    #[serde(default)]
    pub triggers: BTreeMap<String, GithubTrigger>,
}

/// What of an event wakes a custom agent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GithubTrigger {
    /// Actions that wake it. Default: all.
    #[serde(default)]
    pub actions: Option<Vec<String>>,
    /// Whether a comment must mention it. Default false.
    #[serde(default)]
    pub require_mention: bool,
    /// Logins that need not mention it.
    #[serde(default)]
    pub allow_authors: Vec<String>,
    /// The login that counts as its mention. Blank counts as none. Default: the agent's `bot_login`.
    #[serde(default, deserialize_with = "trimmed")]
    pub mention_login: Option<String>,
}

impl GithubConfig {
    /// Steps of a run: what the agent says, verbatim and below the general default too, or the channel's.
    pub fn steps(&self) -> u64 {
        match self.recursion_limit.map(u64::try_from) {
            Some(Ok(limit)) if limit > 0 => limit,
            _ => GITHUB_RECURSION_LIMIT,
        }
    }

    /// Checks that no repository is bound twice.
    ///
    /// # Errors
    /// `Conflict` at the second binding.
    pub(super) fn validate(&self) -> Result<(), Error> {
        let mut seen = HashSet::new();
        match self
            .bindings
            .iter()
            .position(|binding| !seen.insert(&*binding.repo))
        {
            None => Ok(()),
            Some(place) => Err(Error::at(
                ErrorCode::Conflict,
                format!("/bindings/{place}/repo"),
                format!(
                    "{:?} is bound a second time; one binding holds all its triggers",
                    self.bindings[place].repo
                ),
            )),
        }
    }

    /// Drops what a `github` block does not have, and reads its flags and numbers leniently. For files only.
    pub(super) fn prepare_file_value(value: &mut Value) {
        keep(
            value,
            &[
                "installation_id",
                "bot_login",
                "recursion_limit",
                "bindings",
            ],
        );
        for number in ["installation_id", "recursion_limit"] {
            value.get_mut(number).into_iter().for_each(read_number);
        }
        let bindings = value.get_mut("bindings").and_then(Value::as_array_mut);
        for binding in bindings.into_iter().flatten() {
            keep(binding, &["repo", "triggers"]);
            let triggers = binding.get_mut("triggers").and_then(Value::as_object_mut);
            for trigger in triggers.into_iter().flat_map(|map| map.values_mut()) {
                keep(
                    trigger,
                    &[
                        "actions",
                        "require_mention",
                        "allow_authors",
                        "mention_login",
                    ],
                );
                trigger
                    .get_mut("require_mention")
                    .into_iter()
                    .for_each(read_flag);
            }
        }
    }
}

fn keep(value: &mut Value, known: &[&str]) {
    if let Value::Object(map) = value {
        map.retain(|key, _| known.contains(&key.as_str()));
    }
}

/// A login without the whitespace around it; a blank one is none, so that whatever stands in for it does.
fn trimmed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let login = Option::<String>::deserialize(deserializer)?;
    Ok(login
        .map(|login| trim(&login).to_owned())
        .filter(|login| !login.is_empty()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::super::agent_record::{AgentRecord, agent_name};
    use super::super::decode::from_value;
    use super::*;

    fn file(github: Value) -> Result<GithubConfig, Error> {
        let name = agent_name("bot").unwrap();
        AgentRecord::from_file_value(&name, json!({ "github": github }), None)
            .map(|record| record.github.unwrap())
    }

    #[test]
    fn ca10_a_block_is_read_with_its_defaults() {
        let github = file(json!({
            "bot_login": "  bot-x ", "unknown": 1, "installation_id": "12",
            "bindings": [{"repo": "a/b", "triggers": {
                "issues": {}, "issue_comment": {"actions": [], "require_mention": "yes", "mention_login": " \t"},
            }}],
        }))
        .unwrap();
        assert_eq!(github.bot_login.as_deref(), Some("bot-x"));
        assert_eq!((github.installation_id, github.steps()), (Some(12), 250));
        let triggers = &github.bindings[0].triggers;
        assert_eq!(triggers["issues"], GithubTrigger::default());
        let expected = GithubTrigger {
            actions: Some(vec![]),
            require_mention: true,
            ..GithubTrigger::default()
        };
        assert_eq!(triggers["issue_comment"], expected);
    }

    #[test]
    fn ca10_a_positive_limit_holds_verbatim_and_any_other_is_the_channels() {
        for (limit, steps) in [
            (json!(50), 50),
            (json!(5000), 5000),
            (json!(0), 250),
            (json!(-3), 250),
            (json!(null), 250),
        ] {
            assert_eq!(
                file(json!({"recursion_limit": limit})).unwrap().steps(),
                steps
            );
        }
    }

    #[test]
    fn ca10_a_repository_is_bound_once() {
        let bindings = json!({"bindings": [{"repo": "a/b"}, {"repo": "A/b"}, {"repo": "a/b"}]});
        let error = file(bindings.clone()).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict);
        assert_eq!(error.path.as_deref(), Some("/github/bindings/2/repo"));
        let record = json!({"name": "bot", "github": bindings});
        assert_eq!(
            from_value::<AgentRecord>(record).unwrap_err().path,
            error.path
        );
    }

    #[test]
    fn what_the_operator_gives_is_read_strictly() {
        for (github, path) in [
            (json!({"unknown": 1}), "/github/unknown"),
            (json!({"bindings": [{}]}), "/github/bindings/0/repo"),
            (
                json!({"bindings": [{"repo": "a/b", "triggers": {"issues": null}}]}),
                "/github/bindings/0/triggers/issues",
            ),
        ] {
            let record = json!({"name": "bot", "github": github});
            let error = from_value::<AgentRecord>(record).unwrap_err();
            assert_eq!(error.path.as_deref(), Some(path));
        }
    }
}
