//! Agents that make and change themselves: the tools `setup_agent` and `update_agent` over folders, called and in whole runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fawn::adapters::agents_dir::AgentsDir;
use fawn::adapters::offload::Offload;
use fawn::agent::subagent_scope::SubagentScope;
use fawn::ports::agents::AgentStore;
use fawn::ports::host::{RunContext, RunFacts};
use fawn::ports::memory_policy::{AgentBinding, MemoryPolicies};
use fawn::ports::tool::{Tool, ToolAnswer, ToolInvocation, ToolOutcome};
use fawn::protocol::agent_record::agent_name;
use fawn::protocol::runtime_op::ResetAgent;
use fawn::protocol::user_id::UserId;
use fawn::protocol::warning::Warnings;
use fawn::runtime::{Answer, Runtime, Wait};
use fawn::tools::arguments::ArgumentCheck;
use fawn::tools::self_management::AgentScope;
use fawn::tools::setup_agent::SetupAgent;
use fawn::tools::update_agent::UpdateAgent;
use serde_json::{Map, Value, json};

use crate::host::run_context;
use crate::parts::{ScriptModel, calls, parts, says};

/// A folder of its own, gone at the end.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("fawn-custom-agents-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Home(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    fn store(&self) -> Arc<dyn AgentStore> {
        Arc::new(AgentsDir::new(&self.0, Offload::Pool))
    }

    fn scope(&self, agent_name: Option<&str>) -> AgentScope {
        AgentScope {
            store: self.store(),
            user: UserId::new("u"),
            agent_name: agent_name.map(str::to_owned),
            channel_name: None,
            models: ["small".to_owned(), "large".to_owned()].into(),
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CONFIG: &str = "users/u/agents/bot/config.yaml";
const SOUL: &str = "users/u/agents/bot/SOUL.md";

/// Calls a tool as a run with this context would, its arguments checked by its own schema.
fn call_in(tool: &impl Tool, args: Value, context: Value) -> Result<ToolAnswer, String> {
    let check = ArgumentCheck::compile(&tool.spec().parameters).unwrap();
    let args = check.check(args.as_object().cloned().unwrap())?;
    let facts = RunFacts {
        context: context.as_object().cloned().unwrap(),
        ..RunFacts::default()
    };
    let run = RunContext {
        facts: Arc::new(facts),
        ..(*run_context()).clone()
    };
    let invocation = ToolInvocation {
        message_id: "m".into(),
        call_id: "c".to_owned(),
        name: tool.spec().name.clone(),
        args,
        run: Arc::new(run),
        reads: Default::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    match runtime.block_on(tool.call(invocation)) {
        ToolOutcome::Answer(answer) => Ok(answer),
        ToolOutcome::Failed(fault) => Err(fault),
    }
}

fn call(tool: &impl Tool, args: Value) -> Result<ToolAnswer, String> {
    call_in(tool, args, json!({}))
}

fn content(answer: Result<ToolAnswer, String>) -> String {
    answer.unwrap().content.as_str().unwrap().to_owned()
}

#[test]
fn tl20_setup_makes_the_agent_that_the_request_names() {
    let home = Home::new();
    let tool = SetupAgent::new(home.scope(Some("bot")));
    let answer = call(
        &tool,
        json!({"soul": "Be kind.", "description": "", "skills": []}),
    )
    .unwrap();
    assert_eq!(answer.artifact, json!({"created_agent_name": "bot"}));
    assert_eq!(home.text(CONFIG).unwrap(), "name: bot\nskills: []\n");
    assert_eq!(home.text(SOUL).unwrap(), "Be kind.");

    // Again: what is not given stays, restrictions that somebody set by hand too.
    home.write(
        CONFIG,
        "name: bot\nskills: [a]\nallowed_subagents: []\nmemory_enabled: false\n",
    );
    call(
        &tool,
        json!({"soul": "New.", "description": "d", "skills": "null"}),
    )
    .unwrap();
    let expected =
        "name: bot\nskills:\n  - a\nallowed_subagents: []\nmemory_enabled: false\ndescription: d\n";
    assert_eq!(home.text(CONFIG).unwrap(), expected);
    assert_eq!(home.text(SOUL).unwrap(), "New.");
}

#[test]
fn tl20_setup_without_a_name_replaces_the_soul_of_the_default_agent() {
    let home = Home::new();
    let tool = SetupAgent::new(home.scope(None));
    let answer = call(&tool, json!({"soul": "All of us.", "description": "d"})).unwrap();
    assert_eq!(answer.artifact, json!({"created_agent_name": null}));
    assert_eq!(home.text("SOUL.md").unwrap(), "All of us.");
    assert!(!home.0.join("users").exists());
    let soul = home.store().default_soul().unwrap().unwrap();
    assert!(!soul.source().is_trusted(), "a model wrote it");
}

#[test]
fn tl20_setup_that_cannot_be_done_writes_nothing() {
    let home = Home::new();
    for (name, args) in [
        (Some("bot"), json!({"soul": " \n\t", "description": "d"})),
        (None, json!({"soul": "", "description": "d"})),
        (Some("bot"), json!({"soul": 5, "description": "d"})),
        (Some("bot"), json!({"soul": "s"})),
        (
            Some("bot"),
            json!({"soul": "s", "description": "d", "skills": "all"}),
        ),
        (Some("../x"), json!({"soul": "s", "description": "d"})),
        (Some(""), json!({"soul": "s", "description": "d"})),
        (Some("a_b"), json!({"soul": "s", "description": "d"})),
    ] {
        let tool = SetupAgent::new(home.scope(name));
        assert!(call(&tool, args.clone()).is_err(), "{name:?}: {args}");
        assert_eq!(
            fs::read_dir(&home.0).unwrap().count(),
            0,
            "{name:?}: {args}"
        );
    }
    home.write(CONFIG, "a: [");
    let tool = SetupAgent::new(home.scope(Some("bot")));
    assert!(call(&tool, json!({"soul": "s", "description": "d"})).is_err());
    assert_eq!(
        home.text(CONFIG).unwrap(),
        "a: [",
        "whoever wrote it may want to mend it"
    );
    assert_eq!(home.text(SOUL), None);
}

#[test]
fn tl21_the_first_fault_in_the_order_of_the_checks_is_told() {
    // Every fault at once; then one after the other is mended, and the next is told.
    let home = Home::new();
    home.write("agents/bot/config.yaml", "{}");
    let mut scope = home.scope(Some("a/b"));
    scope.channel_name = Some("github".to_owned());
    let mut args = json!({"soul": "None", "skills": null, "model": " undefined "});
    let mut told = Vec::new();
    for step in 0..9 {
        match step {
            0 => {}
            1 => scope.channel_name = Some("web".to_owned()),
            2 => args = json!({"soul": "  ", "model": "huge"}),
            3 => args["soul"] = "s".into(),
            4 => scope.agent_name = None,
            5 => scope.agent_name = Some("bot".to_owned()),
            6 => args["model"] = "large".into(),
            7 => fs::remove_dir_all(home.0.join("agents")).unwrap(),
            _ => home.write(CONFIG, "skills: all"),
        }
        told.push(call(&UpdateAgent::new(scope.clone()), args.clone()).unwrap_err());
    }
    let expected = [
        "channel \"github\"",
        "nothing to change",
        "soul is empty",
        "which \"a/b\" is not",
        "not with one",
        "no model \"huge\"",
        "all users share",
        "has no agent \"bot\"",
        "cannot be read",
    ];
    for (told, expected) in told.iter().zip(expected) {
        assert!(
            told.contains(expected),
            "{told:?} does not say {expected:?}"
        );
    }
    assert_eq!(home.text(SOUL), None);
    // Last of all, the store.
    home.write(CONFIG, "{}");
    fs::create_dir(home.0.join("users/u/agents/bot/.SOUL.md.fawn")).unwrap();
    let fault = call(&UpdateAgent::new(scope), args).unwrap_err();
    assert!(fault.contains("cannot be stored"), "{fault}");
    assert_eq!(home.text(CONFIG).unwrap(), "{}");
}

#[test]
fn tl21_the_channel_of_the_run_counts_as_that_of_the_assembly_does() {
    let home = Home::new();
    home.write(CONFIG, "{}");
    let tool = UpdateAgent::new(home.scope(Some("bot")));
    let context = json!({"channel_name": "github"});
    assert!(call_in(&tool, json!({"description": "d"}), context).is_err());
    assert_eq!(home.text(CONFIG).unwrap(), "{}");
    let context = json!({"channel_name": "web"});
    assert!(call_in(&tool, json!({"description": "d"}), context).is_ok());
}

#[test]
fn rc5_a_run_changes_the_agent_of_its_own_user() {
    let home = Home::new();
    home.write(CONFIG, "{}");
    home.write("users/v/agents/bot/config.yaml", "{}");
    let tool = UpdateAgent::new(home.scope(Some("bot")));
    let context = json!({"user_id": "v"});
    call_in(&tool, json!({"description": "d"}), context).unwrap();
    assert_eq!(home.text(CONFIG).unwrap(), "{}");
    let theirs = home.text("users/v/agents/bot/config.yaml").unwrap();
    assert_eq!(theirs, "name: bot\ndescription: d\n");
}

#[test]
fn tl21_only_what_differs_is_changed_and_the_rest_is_carried_over() {
    let home = Home::new();
    home.write(
        CONFIG,
        "name: x\nmodel_settings:\n  temperature: 0.1\nskills: [a]\ngithub: {bindings: []}\n",
    );
    let tool = UpdateAgent::new(home.scope(Some("bot")));
    let same = json!({"skills": ["a"], "description": "", "model": "NULL"});
    assert!(content(call(&tool, same)).starts_with("No changes"));
    let change = json!({"skills": [], "tool_groups": ["web"], "model": "large", "soul": "S"});
    let told = content(call(&tool, change));
    assert!(
        told.contains("new model, tool_groups, skills, soul"),
        "{told}"
    );
    assert!(told.contains("next turn"), "{told}");
    let expected = "name: bot\nmodel_settings:\n  temperature: 0.1\nskills: []\ngithub:\n  bindings: []\n\
                    model: large\ntool_groups:\n  - web\n";
    assert_eq!(home.text(CONFIG).unwrap(), expected);
    assert_eq!(home.text(SOUL).unwrap(), "S");
}

#[test]
fn a_run_sets_an_agent_up_and_the_next_turn_has_it() {
    for config in [r#"{"workers": 2}"#, r#"{"workers": 0}"#] {
        let home = Home::new();
        let runtime = Runtime::new(config).unwrap();
        let model = ScriptModel::new(vec![
            calls(&[(
                "setup_agent",
                "c1",
                json!({"soul": "Be kind.", "description": "d"}),
            )]),
            calls(&[("update_agent", "c2", json!({"soul": " "}))]),
            calls(&[
                ("update_agent", "c3", json!({"model": "large"})),
                ("update_agent", "c4", json!({"skills": ["a"]})),
                ("update_agent", "c5", json!({"tool_groups": []})),
            ]),
            says("done"),
        ]);
        let mut parts = parts(model);
        let scope = home.scope(Some("bot"));
        parts.tools = vec![
            Arc::new(SetupAgent::new(scope.clone())),
            Arc::new(UpdateAgent::new(scope)),
        ];
        let agent = runtime.compose(parts).unwrap();
        let thread = runtime.open_thread(r#"{"thread_id": "t"}"#).unwrap();
        let request = r#"{"input": {"messages": ["hello"]}}"#;
        let run = runtime.start_run(&agent, &thread, None, request).unwrap();
        let Ok(Answer::Done(result)) = run.wait(Wait::Forever) else {
            panic!("the run ends")
        };
        assert!(result.contains("\"success\""), "{result}");
        let state: Value = serde_json::from_str(&thread.state("{}").unwrap()).unwrap();
        let messages = state["values"]["messages"].as_array().unwrap();
        assert_eq!(
            messages[2]["artifact"],
            json!({"created_agent_name": "bot"})
        );
        let refused = &messages[4];
        assert_eq!(refused["status"], "error");
        assert!(
            refused["content"]
                .as_str()
                .unwrap()
                .starts_with("Error: the soul is empty")
        );
        // Three calls of one reply, at the same time: none is lost.
        let stored = home
            .store()
            .load(&UserId::new("u"), &agent_name("bot").unwrap());
        let stored = stored.unwrap().unwrap();
        let expected = json!({
            "name": "bot", "description": "d", "model": "large", "skills": ["a"], "tool_groups": [],
        });
        assert_eq!(Value::Object(stored.document.clone()), expected);
        assert_eq!(stored.record.soul.as_ref().unwrap().expose(), "Be kind.");
    }
}

#[test]
fn ca5_to_ca8_a_record_on_disk_decides_about_memory_until_a_reset() {
    let home = Home::new();
    home.write(CONFIG, "memory_enabled: off\n");
    let store = home.store();
    let policies = MemoryPolicies::new(true);
    let name = agent_name("bot").unwrap();
    let user = UserId::new("u");
    let ask = || {
        let mut warnings = Warnings::new();
        let load = |name: &_, user: &_| {
            let agent = store.load(user, name)?;
            Ok(agent.map(|agent| agent.record.memory_enabled))
        };
        let policy = policies.resolve(AgentBinding::Named(&name), &user, load, &mut warnings);
        (policy.access().is_some(), warnings.len())
    };
    assert_eq!(ask(), (false, 0));
    // An agent that its user lets change itself does not get its memory back by that.
    let tool = UpdateAgent::new(home.scope(Some("bot")));
    call(&tool, json!({"description": "remembers everything"})).unwrap();
    assert!(home.text(CONFIG).unwrap().contains("memory_enabled: false"));
    home.write(CONFIG, "memory_enabled: on\n");
    assert_eq!(ask(), (false, 0), "kept");
    policies.reset_agent(&ResetAgent::default());
    assert_eq!(ask(), (true, 0));
    home.write(CONFIG, "memory_enabled: [");
    policies.reset_agent(&ResetAgent::default());
    assert_eq!(ask(), (true, 1));
    assert_eq!(ask(), (true, 1));
}

#[test]
fn rc4_a_denial_on_disk_turns_delegation_off_in_the_request() {
    let home = Home::new();
    home.write(CONFIG, "allowed_subagents: []\n");
    let agent = home
        .store()
        .load(&UserId::new("u"), &agent_name("bot").unwrap());
    let agent = agent.unwrap().unwrap();
    let scope = SubagentScope::of(Some(&agent.record));
    let mut configurable: Map<String, Value> = Map::new();
    let mut context = json!({"subagent_enabled": true});
    assert!(!scope.settle(&mut configurable, &mut context));
    assert_eq!(configurable["subagent_enabled"], false);
    assert_eq!(context["subagent_enabled"], false);
}
