//! Settings of subagents that are hardly meant as they stand, as whoever makes an assembly hears of them.

use fawn::protocol::error::ErrorCode;
use fawn::runtime::{Queue, Runtime};
use serde_json::{Value, json};

use super::support::talk::logged;

fn runtime(sections: Value) -> Runtime {
    let mut config = json!({"workers": 0, "models": [{"name": "m", "provider": "host"}]});
    let sections = sections.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(sections);
    Runtime::new(&config.to_string()).unwrap()
}

fn logs(runtime: &Runtime) -> Queue {
    runtime.new_queue(r#"{"subscribe": ["log"]}"#).unwrap()
}

/// What is told of an assembly.
fn told(runtime: &Runtime, queue: &Queue, request: Value) -> Vec<String> {
    let made = runtime.new_assembly(&request.to_string());
    made.unwrap_or_else(|error| panic!("{error:?}"));
    logged(queue, "subagent_setting_doubtful")
}

fn reviewer(more: Value) -> Value {
    let mut agent = json!({"description": "Reviews", "system_prompt": "Review."});
    let more = more.as_object().unwrap().clone();
    agent.as_object_mut().unwrap().extend(more);
    agent
}

#[test]
fn an_assembly_that_delegates_tells_of_names_that_nobody_has() {
    let sections = json!({
        "tools": [{"name": "look_up"}],
        "agents": [{"name": "boss", "allowed_subagents": ["reviewer", "reviwer"]}],
        "subagents": {
            "agents": {"general-purpos": {"max_turns": 3}},
            "custom_agents": {
                "reviewer": reviewer(json!({"tools": ["lookup", "mine"], "disallowed_tools": ["shred"]})),
                "bash": reviewer(json!({})),
            },
        },
    });
    let runtime_ = runtime(sections.clone());
    let queue = logs(&runtime_);
    let lead = |more: Value| {
        let mut request = json!({
            "factory": "lead",
            "configurable": {"subagent_enabled": true, "agent_name": "boss"},
            "tools": [{"name": "mine"}],
        });
        let more = more.as_object().unwrap().clone();
        request.as_object_mut().unwrap().extend(more);
        request
    };
    let expected = [
        "/subagents/agents/general-purpos: there is no subagent",
        "/agents/0/allowed_subagents/1: this agent has no subagent \"reviwer\"; did you mean \"reviewer\"?",
        "/subagents/custom_agents/reviewer/tools/0: this agent has no tool \"lookup\"; did you mean \"look_up\"?",
        "/subagents/custom_agents/reviewer/disallowed_tools/0: this agent has no tool \"shred\"; known here: ",
        "/subagents/custom_agents/bash is never used: ",
    ];
    let check = |found: Vec<String>, at: &str| {
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (text, expected) in found.iter().zip(expected) {
            let text = text.strip_prefix(at).unwrap_or_else(|| panic!("{text}"));
            assert!(text.starts_with(expected), "{text}");
        }
    };
    check(told(&runtime_, &queue, lead(json!({}))), "");
    // What the request says itself is named by its place in the request.
    let mut own = sections;
    own["models"] = json!([{"name": "m", "provider": "host"}]);
    let plain = runtime(json!({}));
    let queue_of_plain = logs(&plain);
    let request = lead(json!({ "app_config": own }));
    check(told(&plain, &queue_of_plain, request), "/app_config");
    // Who does not delegate is told nothing.
    let request = lead(json!({"configurable": {"agent_name": "boss"}}));
    assert_eq!(told(&runtime_, &queue, request), [""; 0]);
}

#[test]
fn a_direct_agent_tells_of_tools_that_it_was_not_given() {
    let runtime = runtime(json!({
        "tools": [{"name": "look_up"}],
        "subagents": {"custom_agents": {"reviewer": reviewer(json!({"tools": ["look_up"]}))}},
    }));
    let queue = logs(&runtime);
    let direct = |tools: Value| json!({"factory": "direct", "model": "m", "features": {"subagent": true}, "tools": tools});
    assert_eq!(
        told(&runtime, &queue, direct(json!([{"name": "look_up"}]))),
        [""; 0]
    );
    let found = told(&runtime, &queue, direct(json!([])));
    let at = "/subagents/custom_agents/reviewer/tools/0: this agent has no tool \"look_up\"";
    assert!(found.len() == 1 && found[0].starts_with(at), "{found:?}");
}

#[test]
fn a_subagent_without_a_name_is_refused() {
    for (name, at) in [("", ""), (" \t", " \t")] {
        let mut custom = json!({});
        custom[name] = reviewer(json!({}));
        let config = json!({"workers": 0, "subagents": {"custom_agents": custom}});
        let error = Runtime::new(&config.to_string()).err().unwrap();
        assert_eq!(error.code, ErrorCode::OutOfRange);
        let path = format!("/subagents/custom_agents/{at}");
        assert_eq!(error.path.as_deref(), Some(&*path));
    }
}
