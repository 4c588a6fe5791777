//! What a subagent is made of: its tools, skills, model and prompt, from what its agent has.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::ports::BoxFuture;
use crate::ports::authorization::{Authorizer, Resource, Verdict};
use crate::protocol::app_config::TokenBudgetConfig;
use crate::protocol::decode::from_value;
use crate::protocol::error::ErrorCode;
use crate::protocol::trust::OperatorText;
use crate::protocol::warning::Warning;
use crate::skills::Category;
use crate::skills::parse::parse;
use crate::tools::testing::{host, mcp};

fn grouped(group: &str, tool: Arc<dyn DynTool>) -> ConfiguredTool {
    ConfiguredTool {
        group: (!group.is_empty()).then(|| group.to_owned()),
        tool,
    }
}

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn definition() -> SubagentDefinition {
    SubagentDefinition {
        name: "reviewer".to_owned(),
        kind: SubagentKind::Custom {
            description: OperatorText::from_operator_directory("Reviews."),
            system_prompt: OperatorText::from_operator_directory("You review."),
        },
        tools: None,
        disallowed_tools: Vec::new(),
        skills: None,
        model: None,
        max_turns: 50,
        timeout: Duration::from_secs(900),
        token_budget: TokenBudgetConfig::default(),
    }
}

struct NoFiles;

impl SkillLibrary for NoFiles {
    fn load(&self) -> BoxFuture<'_, Result<Arc<Catalog>, Error>> {
        Box::pin(async { Err(Error::new(ErrorCode::Internal, "no folders")) })
    }
    fn read(&self, _: Arc<Skill>) -> BoxFuture<'_, Result<Arc<str>, Error>> {
        Box::pin(async { Err(Error::new(ErrorCode::Internal, "no folders")) })
    }
}

/// What an agent has, of which subagents are made.
struct Agent {
    app: AppConfig,
    tools: Vec<ConfiguredTool>,
    groups: Option<Vec<String>>,
    is_lead: bool,
    access: Option<Access>,
    catalog: Catalog,
    skills: Option<Vec<String>>,
}

impl Agent {
    fn new(app: Value, tools: Vec<ConfiguredTool>) -> Self {
        let skills = ["alpha", "beta", "gamma"].map(|name| {
            let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\nbody");
            let location = format!("/mnt/skills/public/{name}/SKILL.md");
            let parsed = parse(text.into(), Category::Public, &location);
            Arc::new(parsed.expect("a skill").skill)
        });
        Agent {
            app: from_value(app).expect("a configuration"),
            tools,
            groups: None,
            is_lead: true,
            access: None,
            catalog: Catalog::new(skills.to_vec()).0,
            skills: None,
        }
    }

    fn child(&self, definition: &SubagentDefinition) -> Subagent {
        let installed: Arc<dyn SkillLibrary> = Arc::new(NoFiles);
        let made = compose(SubagentInputs {
            app: &self.app,
            definition,
            vision: false,
            tools: SubagentTools {
                configured: &self.tools,
                groups: self.groups.as_deref(),
                is_lead: self.is_lead,
            },
            access: self.access.clone(),
            principal: None,
            skills: Some(AgentSkills {
                catalog: &self.catalog,
                installed: &installed,
                allowed: self.skills.as_deref(),
            }),
            thread_files: None,
            sandbox: None,
            file_turns: FileTurns::default(),
            summary_models: None,
        });
        made.expect("a subagent")
    }

    fn tools_of(&self, definition: &SubagentDefinition) -> Vec<String> {
        let child = self.child(definition);
        let names = child.tools.iter().map(|tool| tool.spec().name.clone());
        names.collect()
    }
}

fn middlewares(child: &Subagent) -> Vec<&str> {
    child.middleware.iter().map(|part| part.name()).collect()
}

#[test]
fn sub_15_a_child_has_its_agent_s_tools_of_its_groups_less_what_the_definition_takes() {
    let tools = vec![
        grouped("web", host("search")),
        grouped("file", host("read")),
        grouped("", host("free")),
        grouped("", mcp("remote")),
    ];
    let mut agent = Agent::new(json!({}), tools);
    let with = |agent: &Agent, only: Option<&[&str]>, without: &[&str]| {
        agent.tools_of(&SubagentDefinition {
            tools: only.map(named),
            disallowed_tools: named(without),
            ..definition()
        })
    };
    let all = ["search", "read", "free", "present_files", "remote"];
    assert_eq!(with(&agent, None, &[]), all);
    assert_eq!(
        with(&agent, None, &["present_files", "read", "nobody"]),
        ["search", "free", "remote"]
    );
    assert_eq!(
        with(&agent, Some(&["remote", "read", "gone"]), &["remote"]),
        ["read"],
        "the deny-list comes last"
    );
    assert_eq!(with(&agent, Some(&[]), &[]), [""; 0]);
    agent.groups = Some(named(&["file"]));
    assert_eq!(
        with(&agent, None, &[]),
        ["read", "free", "present_files", "remote"],
        "a child has no more groups than its agent"
    );
    assert_eq!(
        with(&agent, Some(&["search"]), &[]),
        [""; 0],
        "naming a tool of another group does not give it"
    );
}

#[test]
fn u9_no_definition_gives_a_child_the_tool_that_delegates() {
    for tool in [host("task"), mcp("task")] {
        let agent = Agent::new(json!({}), vec![grouped("", tool)]);
        for tools in [None, Some(named(&["task"]))] {
            let lax = SubagentDefinition {
                tools,
                disallowed_tools: Vec::new(),
                ..definition()
            };
            let names = agent.tools_of(&lax);
            assert!(!names.contains(&"task".to_owned()), "{names:?}");
        }
    }
}

#[test]
fn sub_15_a_child_asks_nobody_whatever_its_definition_leaves_it() {
    let agent = Agent::new(json!({}), Vec::new());
    let asks = SubagentDefinition {
        tools: Some(named(&["ask_clarification", "present_files"])),
        ..definition()
    };
    assert_eq!(agent.tools_of(&asks), ["present_files"]);
    assert!(!middlewares(&agent.child(&asks)).contains(&"clarification"));
}

#[test]
fn rt_10_a_child_of_plain_arguments_has_what_its_agent_was_given_and_nothing_else() {
    let tools = vec![grouped("", host("a")), grouped("", mcp("m"))];
    let mut agent = Agent::new(json!({"tool_search": {"enabled": true}}), tools);
    agent.is_lead = false;
    assert_eq!(agent.tools_of(&definition()), ["a", "m"]);
}

/// Lets a user have the tools of a list.
struct Only(&'static [&'static str]);

impl Authorizer for Only {
    fn name(&self) -> &str {
        "only"
    }
    fn authorize(&self, _: &Principal, _: Resource, _: &str, _: &str) -> Result<Verdict, String> {
        Ok(Verdict::Allow)
    }
    fn filter_resources(
        &self,
        _: &Principal,
        _: Resource,
        names: &[&str],
    ) -> Result<Vec<String>, String> {
        let kept = names.iter().filter(|name| self.0.contains(name));
        Ok(kept.map(|name| (*name).to_owned()).collect())
    }
}

#[test]
fn sub_16_authorization_follows_the_lists_and_the_search_is_asked_of_neither() {
    let tools = vec![
        grouped("", host("a")),
        grouped("", host("b")),
        grouped("", mcp("m1")),
        grouped("", mcp("m2")),
    ];
    let app = json!({
        "tool_search": {"enabled": true},
        "skills": {"deferred_discovery": true},
    });
    let mut agent = Agent::new(app, tools);
    agent.access = Some(Access {
        authorizer: Arc::new(Only(&["a", "m1", "m2", "describe_skill"])),
        principal: Principal::default(),
        fail_closed: true,
    });
    let limited = SubagentDefinition {
        tools: Some(named(&["a", "b", "m2"])),
        ..definition()
    };
    let child = agent.child(&limited);
    let names: Vec<&str> = child
        .tools
        .iter()
        .map(|tool| tool.spec().name.as_str())
        .collect();
    assert_eq!(names, ["a", "m2", "tool_search", "describe_skill"]);
    assert_eq!(*child.facts.deferred, ["m2"]);
    let chain = middlewares(&child);
    for part in ["authorization_gate", "deferred_tool_filter"] {
        assert!(chain.contains(&part), "{part} is not in {chain:?}");
    }
    let prompt = child.prompt.data.as_deref().unwrap_or_default();
    assert!(prompt.contains("m2") && !prompt.contains("m1"), "{prompt}");

    let without = SubagentDefinition {
        tools: Some(Vec::new()),
        skills: Some(Vec::new()),
        ..definition()
    };
    assert_eq!(agent.tools_of(&without), [""; 0], "nothing is deferred");
}

#[test]
fn sub_17_the_skills_of_a_child_are_its_own_as_far_as_its_agent_has_them() {
    let list = |names: &[&str]| Some(named(names));
    for (agent, own, both) in [
        (None, None, None),
        (None, list(&["b", "a"]), list(&["b", "a"])),
        (None, list(&[]), list(&[])),
        (list(&["b", "a"]), None, list(&["b", "a"])),
        (list(&[]), None, list(&[])),
        (list(&[]), list(&["a"]), list(&[])),
        (
            list(&["c", "b", "a"]),
            list(&["a", "x", "c"]),
            list(&["a", "c"]),
        ),
        (list(&["a"]), list(&["b"]), list(&[])),
    ] {
        let found = common(agent.as_deref(), own.as_deref());
        assert_eq!(found, both, "{agent:?} and {own:?}");
    }
}

#[test]
fn sub_17_what_a_child_is_told_of_and_may_activate_is_the_same_scope() {
    let mut agent = Agent::new(json!({}), vec![grouped("", host("read_file"))]);
    agent.skills = Some(named(&["alpha", "beta"]));
    let own = SubagentDefinition {
        skills: Some(named(&["gamma", "beta"])),
        ..definition()
    };
    let child = agent.child(&own);
    let names: Vec<&str> = child
        .facts
        .skills
        .iter()
        .map(|skill| skill.name())
        .collect();
    assert_eq!(names, ["beta"]);
    let told = format!(
        "{}{}",
        child.prompt.system.as_str(),
        child.prompt.data.as_deref().unwrap_or_default()
    );
    assert!(told.contains("beta"), "{told}");
    assert!(!told.contains("alpha") && !told.contains("gamma"), "{told}");
    let policy = |name: &str| {
        let part = child.middleware.iter().find(|part| part.name() == name);
        part.expect("it is there").policy()
    };
    for name in ["skill_activation", "skill_tool_policy"] {
        let policy = Value::Object(policy(name)).to_string();
        assert!(
            policy.contains("beta") && !policy.contains("gamma"),
            "{policy}"
        );
    }

    for none in [Some(Vec::new()), Some(named(&["gamma"]))] {
        let none = SubagentDefinition {
            skills: none,
            ..definition()
        };
        let child = agent.child(&none);
        assert!(child.facts.skills.is_empty());
        let chain = middlewares(&child);
        assert!(
            !chain.contains(&"skill_activation"),
            "without a skill no folder is looked into: {chain:?}"
        );
    }
}

#[test]
fn sub_17_a_skill_that_there_is_not_is_a_warning() {
    let agent = Agent::new(json!({}), Vec::new());
    let slip = SubagentDefinition {
        skills: Some(named(&["beta", "alhpa"])),
        ..definition()
    };
    let child = agent.child(&slip);
    let warnings: Vec<_> = child.warnings.iter().collect();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].0, Warning::SkillUnknown);
    assert!(warnings[0].1.contains("\"reviewer\""), "{warnings:?}");
}

#[test]
fn sub_14_a_child_counts_by_its_own_tokens() {
    let agent = Agent::new(
        json!({"token_budget": {"enabled": true, "max_tokens": 5_000}}),
        Vec::new(),
    );
    let own = SubagentDefinition {
        token_budget: TokenBudgetConfig {
            enabled: Some(true),
            max_tokens: 77_000,
            ..TokenBudgetConfig::default()
        },
        ..definition()
    };
    let child = agent.child(&own);
    let budget = child
        .middleware
        .iter()
        .find(|part| part.name() == "token_budget");
    let policy = Value::Object(budget.expect("a budget").policy()).to_string();
    assert!(policy.contains("77000"), "{policy}");
}

#[test]
fn sub_7_the_operator_s_text_is_what_a_child_of_his_is_told() {
    let agent = Agent::new(json!({}), Vec::new());
    let child = agent.child(&definition());
    assert!(child.prompt.system.as_str().contains("You review."));
    let built_in = SubagentDefinition {
        kind: SubagentKind::GeneralPurpose,
        ..definition()
    };
    let child = agent.child(&built_in);
    assert!(!child.prompt.system.as_str().contains("You review."));
}
