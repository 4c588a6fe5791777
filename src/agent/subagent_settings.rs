//! Settings of subagents that are hardly meant as they stand: names that nobody has, of subagents and of tools.
//!
//! Each of them is taken, as in the reference, where it says nothing or restricts to nothing. A misspelt one looks like a
//! restriction that is there, or like a subagent that works otherwise than it does, so that an assembly which delegates says so.
//! Nothing is said of tools that may be there in another version, or while a server is on that is off now.

use super::subagent_scope::SubagentScope;
use super::tool_list::ConfiguredTool;
use crate::protocol::agent_record::AgentRecord;
use crate::protocol::app_config::{self, AppConfig};
use crate::protocol::decode::hint;
use crate::protocol::json::pointer_token;
use crate::protocol::warning::{Warning, Warnings};
use crate::subagents::definition::{BASH, BASH_TOOLS, GENERAL_PURPOSE, Registry};
use crate::tools::{TOOLS, describe_skill, setup_agent, tool_search, update_agent};

/// Most names of one list that are told of.
const MAX_TOLD: usize = 20;
/// Most characters of a name, when it is told.
const MAX_NAME: usize = 80;

/// Tools that come and go with what else is set up.
const OCCASIONAL: [&str; 4] = [
    tool_search::NAME,
    describe_skill::NAME,
    setup_agent::SETUP_AGENT,
    update_agent::UPDATE_AGENT,
];

/// What is looked through.
pub struct SubagentSettings<'a> {
    /// The configuration.
    pub app: &'a AppConfig,
    /// Where its sections stand in what was given, as a JSON pointer.
    pub at: &'a str,
    /// The subagents that it makes.
    pub registry: &'a Registry,
    /// Those that the agent may delegate to.
    pub scope: &'a SubagentScope,
    /// The agent's record, if it has one.
    pub agent: Option<&'a AgentRecord>,
    /// The configured tools of the agent, whatever its groups are.
    pub tools: &'a [ConfiguredTool],
}

impl SubagentSettings<'_> {
    /// Warns of what is hardly meant.
    pub fn check(&self, warnings: &mut Warnings) {
        self.check_overrides(warnings);
        self.check_scope(warnings);
        let names = self.known_tools();
        for (name, custom) in &self.app.subagents.custom_agents {
            let at = format!(
                "{}/subagents/custom_agents/{}",
                self.at,
                pointer_token(&shown(name))
            );
            if matches!(name.as_str(), GENERAL_PURPOSE | BASH) {
                let text = format!(
                    "{at} is never used: {name:?} is a built-in subagent, which nothing replaces; {}/subagents/agents changes it",
                    self.at
                );
                warnings.add(Warning::SubagentSettingDoubtful, text);
                continue;
            }
            if !self.scope.allows(name) {
                continue;
            }
            if !name.chars().all(is_plain) {
                let text = format!(
                    "{at}: a model may not write this name as it stands; letters, digits and -_.: are safe"
                );
                warnings.add(Warning::SubagentSettingDoubtful, text);
            }
            let lists = [
                ("tools", &custom.tools, &[][..]),
                // Whoever denies a command's tools need not have them.
                ("disallowed_tools", &custom.disallowed_tools, &BASH_TOOLS),
            ];
            for (member, list, passed) in lists {
                let unknown = list.iter().flatten().enumerate().filter(|(_, name)| {
                    !self.is_known_tool(name, &names) && !passed.contains(&name.as_str())
                });
                told(&format!("{at}/{member}"), "tool", unknown, &names, warnings);
            }
        }
    }

    /// `subagents.agents`.
    fn check_overrides(&self, warnings: &mut Warnings) {
        let names = self.known_subagents();
        let section = self.app.subagents.agents.keys();
        let unknown = section.filter(|name| !self.is_subagent(name));
        for name in unknown.take(MAX_TOLD) {
            let name = shown(name);
            let text = format!(
                "{}/subagents/agents/{}: there is no subagent {name:?}{}",
                self.at,
                pointer_token(&name),
                hint(&name, &names)
            );
            warnings.add(Warning::SubagentSettingDoubtful, text);
        }
    }

    /// `allowed_subagents` of the agent.
    fn check_scope(&self, warnings: &mut Warnings) {
        let Some(agent) = self.agent else {
            return;
        };
        let mut operators = self.app.agents.iter();
        // The operator's record is the one that counts, if there is one (CA-3).
        let at = match operators.position(|one| one.name == agent.name) {
            Some(place) => format!("{}/agents/{place}/allowed_subagents", self.at),
            None => format!("allowed_subagents of the agent {:?}", agent.name.as_str()),
        };
        let listed = agent.allowed_subagents.iter().flatten().enumerate();
        let unknown = listed.filter(|(_, name)| !self.is_subagent(name));
        told(&at, "subagent", unknown, &self.known_subagents(), warnings);
    }

    fn known_subagents(&self) -> Vec<&str> {
        self.registry.names().collect()
    }

    /// Whether a subagent has this name, be it withheld (SUB-8).
    fn is_subagent(&self, name: &str) -> bool {
        name == BASH || self.registry.get(name).is_some()
    }

    /// The tools of which there is no doubt.
    fn known_tools(&self) -> Vec<&str> {
        let configured = self.tools.iter();
        let configured = configured.map(|configured| configured.tool.spec().name.as_str());
        configured
            .chain(TOOLS.iter().map(|(name, _)| *name))
            .collect()
    }

    /// Whether a tool of this name is there, or may be some day.
    fn is_known_tool(&self, name: &str, known: &[&str]) -> bool {
        let mut configured = self.app.tools.iter();
        // One of a class that this version does not have was told of where it stands (TL-3).
        let mut is_of_a_class = || {
            configured.any(|tool| match tool {
                app_config::ConfiguredTool::Class(class) => class.name == name,
                app_config::ConfiguredTool::Host(_) => false,
            })
        };
        let mut servers = self.app.extensions.mcp_servers.keys();
        let mut is_of_a_server = || {
            servers.any(|server| {
                let rest = name.strip_prefix(server.as_str());
                rest.is_some_and(|rest| rest.starts_with('_'))
            })
        };
        known.contains(&name) || OCCASIONAL.contains(&name) || is_of_a_class() || is_of_a_server()
    }
}

/// Warns of the `unknown` names of the list at `at`.
fn told<'a>(
    at: &str,
    what: &str,
    unknown: impl Iterator<Item = (usize, &'a String)>,
    known: &[&str],
    warnings: &mut Warnings,
) {
    for (place, name) in unknown.take(MAX_TOLD) {
        let name = shown(name);
        let text = format!(
            "{at}/{place}: this agent has no {what} {name:?}{}",
            hint(&name, known)
        );
        warnings.add(Warning::SubagentSettingDoubtful, text);
    }
}

/// What a model writes without being asked to quote it; letters of all languages are.
fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '-' | '_' | '.' | ':')
}

/// As much of a name as is told.
fn shown(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::agent_record::agent_name;
    use crate::protocol::decode::from_value;
    use crate::tools::testing::{host, mcp};

    /// The warnings of a lead agent with the tools `look_up` and `files_read`, which a server brings.
    fn found(sections: Value, allowed: Value) -> Vec<String> {
        let app: AppConfig = from_value(sections).expect("a configuration");
        let name = agent_name("a").expect("a name");
        let record = json!({"allowed_subagents": allowed});
        let agent = AgentRecord::from_file_value(&name, record, None).expect("a record");
        let tools = [host("look_up"), mcp("files_read")];
        let tools = tools.map(|tool| ConfiguredTool { group: None, tool });
        let mut warnings = Warnings::new();
        SubagentSettings {
            app: &app,
            at: "/app_config",
            registry: &Registry::of(&app),
            scope: &SubagentScope::of(Some(&agent)),
            agent: Some(&agent),
            tools: &tools,
        }
        .check(&mut warnings);
        let told = warnings.iter().map(|(warning, text)| {
            assert_eq!(warning, Warning::SubagentSettingDoubtful);
            text.to_owned()
        });
        told.collect()
    }

    fn agents(custom: Value) -> Value {
        let mut custom = custom;
        for agent in custom.as_object_mut().expect("agents").values_mut() {
            agent["description"] = "d".into();
            agent["system_prompt"] = "s".into();
        }
        json!({"subagents": {"custom_agents": custom}})
    }

    #[test]
    fn a_tool_that_the_agent_does_not_have_is_told_of_with_its_place() {
        let custom = agents(json!({
            "reviewer": {"tools": ["look_up", "look_upp"], "disallowed_tools": ["task", "delete_everything"]},
        }));
        assert_eq!(
            found(custom, Value::Null),
            [
                "/app_config/subagents/custom_agents/reviewer/tools/1: this agent has no tool \"look_upp\"; did you mean \
                 \"look_up\"?",
                "/app_config/subagents/custom_agents/reviewer/disallowed_tools/1: this agent has no tool \
                 \"delete_everything\"; known here: \"look_up\", \"files_read\", \"present_files\", \"ask_clarification\", \
                 \"task\", \"view_image\"",
            ]
        );
    }

    #[test]
    fn nothing_is_said_of_tools_that_may_come_or_are_there_at_times() {
        let mut sections = agents(json!({
            "reviewer": {
                "tools": ["files_read", "tool_search", "describe_skill", "view_image", "web_search", "github_get_issue"],
                "disallowed_tools": ["bash", "write_file", "update_agent"],
            },
            "plain": {},
        }));
        sections["tools"] = json!([{"name": "web_search", "use": "a.b:c"}]);
        sections["extensions"] = json!({"mcpServers": {"github": {"enabled": false}}});
        assert_eq!(found(sections, Value::Null), [""; 0]);
    }

    #[test]
    fn settings_of_a_subagent_that_there_is_not_are_told_of() {
        let mut sections = agents(json!({"reviewer": {}}));
        sections["subagents"]["agents"] = json!({
            "general_purpose": {"max_turns": 3}, "bash": {"max_turns": 3}, "reviewer": {"max_turns": 3},
        });
        assert_eq!(
            found(sections, json!(["reviewer", "bash", "revewer"])),
            [
                "/app_config/subagents/agents/general_purpose: there is no subagent \"general_purpose\"; did you mean \
                 \"general-purpose\"?",
                "allowed_subagents of the agent \"a\"/2: this agent has no subagent \"revewer\"; did you mean \"reviewer\"?",
            ]
        );
    }

    #[test]
    fn the_list_of_an_operators_agent_is_named_by_its_place() {
        let sections = json!({"agents": [{"name": "b"}, {"name": "a"}]});
        let told = found(sections, json!(["gone"]));
        let at = "/app_config/agents/1/allowed_subagents/0: ";
        assert!(told.len() == 1 && told[0].starts_with(at), "{told:?}");
    }

    #[test]
    fn sub_7_an_agent_with_a_built_in_name_is_told_to_be_of_no_use() {
        let custom = agents(json!({"general-purpose": {"tools": ["gone"]}, "bash": {}}));
        let told = found(custom, Value::Null);
        assert_eq!(told.len(), 2, "{told:?}");
        for (text, name) in told.iter().zip(["general-purpose", "bash"]) {
            let at = format!("/app_config/subagents/custom_agents/{name} is never used: ");
            assert!(text.starts_with(&at), "{text}");
        }
    }

    #[test]
    fn a_name_that_is_no_word_is_told_of_and_letters_of_any_language_are_words() {
        let custom = agents(json!({"code reviewer": {}, "审核员": {}, "team.a:b_c-1": {}}));
        let told = found(custom, Value::Null);
        let at = "/app_config/subagents/custom_agents/code reviewer: ";
        assert!(told.len() == 1 && told[0].starts_with(at), "{told:?}");
    }

    #[test]
    fn what_the_agent_may_not_delegate_to_is_nothing_to_it() {
        let custom = agents(json!({"reviewer": {"tools": ["gone"]}, "a b": {}}));
        assert_eq!(found(custom, json!(["general-purpose"])), [""; 0]);
    }

    #[test]
    fn a_list_of_nonsense_is_told_of_in_part() {
        let names: Vec<String> = (0..500)
            .map(|n| format!("{n}{}", "x".repeat(5_000)))
            .collect();
        let told = found(agents(json!({"reviewer": {"tools": names}})), Value::Null);
        assert_eq!(told.len(), MAX_TOLD);
        assert!(told.iter().all(|text| text.len() < 500));
    }
}
