//! Which subagents there are, and how each is set up once all overrides are applied.

use std::time::Duration;

use super::TASK_TOOL;
use crate::prompt::SubagentEntry;
use crate::protocol::app_config::{
    AppConfig, CustomSubagentConfig, Feature as _, SubagentsConfig, TokenBudgetConfig,
};
use crate::protocol::descriptor::RuntimeLimits;
use crate::protocol::error::Error;
use crate::protocol::json::pointer_token;
use crate::protocol::model_entry::unknown_model;
use crate::protocol::trust::{OperatorText, SourcedText};

/// The built-in subagent for work of any kind.
pub const GENERAL_PURPOSE: &str = "general-purpose";
/// The built-in subagent that runs commands.
pub const BASH: &str = "bash";

/// Why `bash` cannot be delegated to where it exists and is withheld (SUB-3).
pub const BASH_WITHHELD: &str = "\
The bash subagent is disabled: commands would run on the host itself, and the sandbox's settings do not allow that \
(sandbox.allow_host_bash). Do without commands, or ask for another way.";

/// The model of a subagent that works with that of the agent that delegates.
const INHERIT: &str = "inherit";
/// What the built-in subagents, and those of the operator unless told otherwise, do not have (SUB-10, SUB-11).
const DISALLOWED: [&str; 3] = [TASK_TOOL, "ask_clarification", "present_files"];
/// Tools of the subagent `bash` (SUB-10).
pub const BASH_TOOLS: [&str; 5] = ["bash", "ls", "read_file", "write_file", "str_replace"];
/// Turns of the built-in subagents (SUB-10).
const GENERAL_PURPOSE_TURNS: u64 = 150;
const BASH_TURNS: u64 = 60;

/// What kind of subagent it is.
#[derive(Clone, Debug, PartialEq)]
pub enum SubagentKind {
    /// The built-in `general-purpose`.
    GeneralPurpose,
    /// The built-in `bash`.
    Bash,
    /// One of the operator's (`subagents.custom_agents`).
    Custom {
        /// When to delegate to it.
        description: OperatorText,
        /// What it is told.
        system_prompt: OperatorText,
    },
}

/// A subagent with its overrides applied (SUB-9 to SUB-14).
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentDefinition {
    /// Its name.
    pub name: String,
    /// Where it comes from, and what it is told.
    pub kind: SubagentKind,
    /// Tools that it has, of those that there are; `None` for all.
    pub tools: Option<Vec<String>>,
    /// Tools that it does not have.
    pub disallowed_tools: Vec<String>,
    /// Skills that it may find and activate; `None` for all, empty for none.
    pub skills: Option<Vec<String>>,
    /// Its model; `None` for that of the agent that delegates (`inherit`).
    pub model: Option<String>,
    /// Most turns, at least 1.
    pub max_turns: u64,
    /// Longest time, waiting for a place included.
    pub timeout: Duration,
    /// Its tokens.
    pub token_budget: TokenBudgetConfig,
}

impl SubagentDefinition {
    /// How a prompt lists it.
    pub fn entry(&self) -> SubagentEntry {
        match &self.kind {
            SubagentKind::GeneralPurpose => SubagentEntry::GeneralPurpose,
            SubagentKind::Bash => SubagentEntry::Bash,
            SubagentKind::Custom { description, .. } => SubagentEntry::Custom {
                name: SourcedText::Operator(OperatorText::from_operator_directory(
                    self.name.as_str(),
                )),
                description: SourcedText::Operator(description.clone()),
            },
        }
    }

    /// Its limits, as a descriptor tells them.
    pub fn limits(&self) -> RuntimeLimits {
        RuntimeLimits {
            max_turns: self.max_turns,
            timeout_seconds: self.timeout.as_secs(),
        }
    }
}

/// The subagents of a configuration, in the order in which models are told of them: built-in ones, then those of the operator as
/// the configuration has them (SUB-6 to SUB-8).
///
/// `bash` is not among them where commands would run on the host and may not ([`Registry::is_bash_withheld`]). An agent of the
/// operator's that has the name of a built-in one is none (SUB-7).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    entries: Vec<Entry>,
    is_bash_withheld: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    definition: SubagentDefinition,
    /// Where its model is named, if it is.
    model_path: Option<String>,
}

impl Registry {
    /// The subagents that `app` has.
    pub fn of(app: &AppConfig) -> Self {
        let section = &app.subagents;
        let is_bash_withheld = !app.sandbox.allow_host_bash;
        let is_summarized = app.summarization.is_enabled();
        let mut bases = vec![general_purpose(section)];
        if !is_bash_withheld {
            bases.push(bash(section));
        }
        let customs = section.custom_agents.iter();
        bases.extend(
            customs
                .filter(|(name, _)| !matches!(name.as_str(), GENERAL_PURPOSE | BASH))
                .map(|(name, config)| custom(name, config)),
        );
        let entries = bases
            .into_iter()
            .map(|base| base.with_overrides(section, is_summarized))
            .collect();
        Registry {
            entries,
            is_bash_withheld,
        }
    }

    /// The subagent of this name.
    pub fn get(&self, name: &str) -> Option<&SubagentDefinition> {
        self.iter().find(|definition| definition.name == name)
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|definition| definition.name.as_str())
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &SubagentDefinition> {
        self.entries.iter().map(|entry| &entry.definition)
    }

    /// Whether `bash` is missing because the host's shell may not be used, which a call for it is told ([`BASH_WITHHELD`]).
    pub fn is_bash_withheld(&self) -> bool {
        self.is_bash_withheld
    }

    /// Checks that there are the models that subagents name, so that no call fails over it. `known` are all there are.
    ///
    /// # Errors
    /// `UnknownModel` at the name, in the configuration's terms.
    pub fn check_models(&self, known: &[&str]) -> Result<(), Error> {
        for Entry {
            definition,
            model_path,
        } in &self.entries
        {
            if let (Some(model), Some(path)) = (&definition.model, model_path)
                && !known.contains(&model.as_str())
            {
                return Err(unknown_model(model, known).below(path));
            }
        }
        Ok(())
    }
}

impl Entry {
    /// The subagent with what the configuration says of it by name (SUB-12, SUB-14).
    fn with_overrides(mut self, section: &SubagentsConfig, is_summarized: bool) -> Self {
        let definition = &mut self.definition;
        definition.token_budget = section.token_budget_of(&definition.name, is_summarized);
        if let Some(own) = section.agents.get(&definition.name) {
            definition.max_turns = own.max_turns.unwrap_or(definition.max_turns);
            if let Some(seconds) = own.timeout_seconds {
                definition.timeout = Duration::from_secs(seconds);
            }
            if let Some(skills) = &own.skills {
                definition.skills = Some(skills.clone());
            }
            if let Some(model) = &own.model {
                definition.model = own_model(model);
                let name = pointer_token(&definition.name);
                self.model_path = Some(format!("/subagents/agents/{name}/model"));
            }
        }
        self
    }
}

fn general_purpose(section: &SubagentsConfig) -> Entry {
    builtin(
        GENERAL_PURPOSE,
        SubagentKind::GeneralPurpose,
        None,
        GENERAL_PURPOSE_TURNS,
        section,
    )
}

fn bash(section: &SubagentsConfig) -> Entry {
    let tools = BASH_TOOLS.map(str::to_owned).to_vec();
    builtin(BASH, SubagentKind::Bash, Some(tools), BASH_TURNS, section)
}

/// A built-in subagent, for which alone the settings count that are everybody's (SUB-12).
fn builtin(
    name: &str,
    kind: SubagentKind,
    tools: Option<Vec<String>>,
    turns: u64,
    section: &SubagentsConfig,
) -> Entry {
    Entry {
        definition: SubagentDefinition {
            name: name.to_owned(),
            kind,
            tools,
            disallowed_tools: DISALLOWED.map(str::to_owned).to_vec(),
            skills: None,
            model: None,
            max_turns: section.max_turns.unwrap_or(turns),
            timeout: Duration::from_secs(section.timeout_seconds),
            token_budget: TokenBudgetConfig::default(),
        },
        model_path: None,
    }
}

fn custom(name: &str, config: &CustomSubagentConfig) -> Entry {
    // Null says nothing of the tools: then it is the bare definition that counts (SUB-9).
    let disallowed = config.disallowed_tools.clone();
    let at = format!("/subagents/custom_agents/{}/model", pointer_token(name));
    Entry {
        definition: SubagentDefinition {
            name: name.to_owned(),
            kind: SubagentKind::Custom {
                description: config.description.clone(),
                system_prompt: config.system_prompt.clone(),
            },
            tools: config.tools.clone(),
            disallowed_tools: disallowed.unwrap_or_else(|| vec![TASK_TOOL.to_owned()]),
            skills: config.skills.clone(),
            model: own_model(&config.model),
            max_turns: config.max_turns,
            timeout: Duration::from_secs(config.timeout_seconds),
            token_budget: TokenBudgetConfig::default(),
        },
        model_path: Some(at),
    }
}

/// The model that is named, unless it is that of the agent that delegates (SUB-13).
fn own_model(name: &str) -> Option<String> {
    (name != INHERIT).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::decode::from_value;
    use crate::protocol::error::ErrorCode;

    fn app(sections: Value) -> AppConfig {
        from_value(sections).expect("a configuration")
    }

    fn registry(subagents: Value) -> Registry {
        Registry::of(&app(json!({ "subagents": subagents })))
    }

    fn named(registry: &Registry, name: &str) -> SubagentDefinition {
        registry.get(name).expect(name).clone()
    }

    fn reviewer(more: Value) -> Value {
        let mut agent = json!({"description": "Reviews code.", "system_prompt": "You review."});
        let members = more.as_object().cloned().unwrap_or_default();
        agent.as_object_mut().expect("an object").extend(members);
        agent
    }

    fn budget(max_tokens: u64) -> TokenBudgetConfig {
        TokenBudgetConfig {
            enabled: Some(true),
            max_tokens,
            warn_threshold: 0.7,
            ..TokenBudgetConfig::default()
        }
    }

    #[test]
    fn sub_10_the_built_in_subagents() {
        let all = Registry::of(&app(json!({"sandbox": {"allow_host_bash": true}})));
        let disallowed = ["task", "ask_clarification", "present_files"].map(str::to_owned);
        let general = SubagentDefinition {
            name: "general-purpose".to_owned(),
            kind: SubagentKind::GeneralPurpose,
            tools: None,
            disallowed_tools: disallowed.to_vec(),
            skills: None,
            model: None,
            max_turns: 150,
            timeout: Duration::from_secs(1800),
            token_budget: budget(2_000_000),
        };
        let bash = SubagentDefinition {
            name: "bash".to_owned(),
            kind: SubagentKind::Bash,
            tools: Some(
                ["bash", "ls", "read_file", "write_file", "str_replace"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
            max_turns: 60,
            ..general.clone()
        };
        assert_eq!(all.iter().cloned().collect::<Vec<_>>(), [general, bash]);
    }

    #[test]
    fn sub_8_built_in_ones_then_custom_ones_as_configured_and_bash_where_it_may_run() {
        let customs = json!({"z": reviewer(json!({})), "a": reviewer(json!({}))});
        let with = |allow: bool| {
            let app = app(json!({
                "sandbox": {"allow_host_bash": allow}, "subagents": {"custom_agents": customs},
            }));
            Registry::of(&app)
        };
        let (without, all) = (with(false), with(true));
        assert_eq!(
            without.names().collect::<Vec<_>>(),
            ["general-purpose", "z", "a"]
        );
        assert_eq!(
            all.names().collect::<Vec<_>>(),
            ["general-purpose", "bash", "z", "a"]
        );
        assert!(without.is_bash_withheld() && !all.is_bash_withheld());
        assert_eq!((without.get("bash"), without.get("nobody")), (None, None));
    }

    #[test]
    fn sub_7_a_custom_agent_never_takes_the_place_of_a_built_in_one() {
        let mine = json!({"max_turns": 1, "model": "nowhere"});
        let customs = json!({"general-purpose": reviewer(mine.clone()), "bash": reviewer(mine)});
        let found = registry(json!({ "custom_agents": customs }));
        assert_eq!(found.names().collect::<Vec<_>>(), ["general-purpose"]);
        let general = named(&found, "general-purpose");
        assert_eq!(
            (general.kind, general.max_turns),
            (SubagentKind::GeneralPurpose, 150)
        );
        assert_eq!(found.check_models(&[]), Ok(()));
    }

    #[test]
    fn sub_11_custom_agents_have_defaults_of_their_own() {
        let found = registry(json!({
            "timeout_seconds": 60, "max_turns": 9,
            "custom_agents": {
                "reviewer": reviewer(json!({})),
                "narrow": reviewer(json!({
                    "tools": [], "disallowed_tools": ["x"], "skills": [], "model": "small", "max_turns": 3, "timeout_seconds": 4,
                })),
                "open": reviewer(json!({"disallowed_tools": null})),
            },
        }));
        let plain = named(&found, "reviewer");
        let text = |text: &str| OperatorText::from_operator_directory(text);
        assert_eq!(
            plain,
            SubagentDefinition {
                name: "reviewer".to_owned(),
                kind: SubagentKind::Custom {
                    description: text("Reviews code."),
                    system_prompt: text("You review."),
                },
                tools: None,
                disallowed_tools: DISALLOWED.map(str::to_owned).to_vec(),
                skills: None,
                model: None,
                // SUB-12: what is everybody's is for built-in ones.
                max_turns: 50,
                timeout: Duration::from_secs(900),
                token_budget: budget(2_000_000),
            }
        );
        let general = named(&found, "general-purpose");
        assert_eq!((general.max_turns, general.timeout.as_secs()), (9, 60));
        let narrow = named(&found, "narrow");
        assert_eq!(
            (narrow.tools, narrow.skills),
            (Some(Vec::new()), Some(Vec::new()))
        );
        assert_eq!(narrow.disallowed_tools, ["x"]);
        assert_eq!(narrow.model.as_deref(), Some("small"));
        assert_eq!((narrow.max_turns, narrow.timeout.as_secs()), (3, 4));
        assert_eq!(named(&found, "open").disallowed_tools, ["task"], "SUB-9");
    }

    #[test]
    fn sub_12_what_is_said_of_one_by_name_wins() {
        let own = json!({"timeout_seconds": 1, "max_turns": 2, "model": "big", "skills": ["s"]});
        let found = registry(json!({
            "timeout_seconds": 60, "max_turns": 9,
            "agents": {"general-purpose": own, "reviewer": own, "plain": {"model": "inherit"}, "nobody": own},
            "custom_agents": {
                "reviewer": reviewer(json!({"model": "small", "skills": ["t"]})),
                "plain": reviewer(json!({"model": "small", "skills": ["t"]})),
            },
        }));
        for name in ["general-purpose", "reviewer"] {
            let it = named(&found, name);
            assert_eq!((it.max_turns, it.timeout.as_secs()), (2, 1), "{name}");
            assert_eq!(it.model.as_deref(), Some("big"), "{name}");
            assert_eq!(it.skills, Some(vec!["s".to_owned()]), "{name}");
            let limits = RuntimeLimits {
                max_turns: 2,
                timeout_seconds: 1,
            };
            assert_eq!(it.limits(), limits);
        }
        let plain = named(&found, "plain");
        assert_eq!(
            (plain.model, plain.skills),
            (None, Some(vec!["t".to_owned()]))
        );
        assert_eq!(found.names().count(), 3);
    }

    #[test]
    fn sub_14_own_budget_then_everybody_s_then_one_by_whether_threads_are_summarised() {
        let with = |global: Value, own: Value, summarized: bool| {
            let app = app(json!({
                "summarization": {"enabled": summarized},
                "subagents": {
                    "token_budget": global, "agents": {"reviewer": {"token_budget": own}},
                    "custom_agents": {"reviewer": reviewer(json!({}))},
                },
            }));
            let found = Registry::of(&app);
            let tokens = |name: &str| named(&found, name).token_budget;
            (tokens("general-purpose"), tokens("reviewer"))
        };
        let set =
            |tokens: u64| json!({"enabled": true, "max_tokens": tokens, "warn_threshold": 0.7});
        let none = || Value::Null;
        assert_eq!(
            with(none(), none(), false),
            (budget(2_000_000), budget(2_000_000))
        );
        assert_eq!(
            with(none(), none(), true),
            (budget(1_000_000), budget(1_000_000))
        );
        for summarized in [false, true] {
            assert_eq!(
                with(set(5000), none(), summarized),
                (budget(5000), budget(5000))
            );
            assert_eq!(
                with(set(5000), set(7000), summarized),
                (budget(5000), budget(7000))
            );
        }
        // One that is given is on; whoever wants none says so.
        let is_on = |given: Value| with(given, none(), false).0.enabled;
        assert_eq!(is_on(json!({"max_tokens": 5000})), Some(true));
        assert_eq!(is_on(json!({"enabled": false})), Some(false));
    }

    #[test]
    fn a_model_that_nobody_has_is_an_error_where_it_is_named() {
        let fault = |subagents: Value| {
            let error = registry(subagents)
                .check_models(&["small", "big"])
                .expect_err("unknown");
            assert_eq!(error.code, ErrorCode::UnknownModel);
            assert!(
                error.message.contains("did you mean \"small\"?"),
                "{}",
                error.message
            );
            error.path.expect("a path")
        };
        let customs = json!({"a/b": reviewer(json!({"model": "smal"}))});
        let path = fault(json!({ "custom_agents": customs }));
        assert_eq!(path, "/subagents/custom_agents/a~1b/model");
        let path = fault(json!({"agents": {"general-purpose": {"model": "smal"}}}));
        assert_eq!(path, "/subagents/agents/general-purpose/model");
        // What another model stands in for is not asked for.
        let found =
            registry(json!({"custom_agents": customs, "agents": {"a/b": {"model": "big"}}}));
        assert_eq!(found.check_models(&["small", "big"]), Ok(()));
        assert_eq!(registry(json!({})).check_models(&[]), Ok(()));
    }
}
