//! What subagents are made of, in whole runs: their tools, models and skills, as their models and hosts see them.

use std::collections::HashMap;
use std::path::PathBuf;

use fawn::protocol::error::Error;
use fawn::runtime::{Answer, Assembly, Runtime, Wait};
use serde_json::{Value, json};

fn runtime(sections: Value) -> Runtime {
    let mut config = json!({
        "models": [
            {"name": "main", "provider": "host", "model": "main-m", "supports_thinking": true},
            {"name": "quick", "provider": "host", "model": "quick-m"},
        ],
        "testing": {"clock": "2026-01-01T00:00:00Z", "ids": "sequential", "workers": 0},
    });
    let members = config.as_object_mut().unwrap();
    members.extend(sections.as_object().unwrap().clone());
    Runtime::new(&config.to_string()).unwrap_or_else(|error| panic!("{error:?}"))
}

/// The section `subagents` with one subagent of the operator's, named `own`.
fn own(more: Value) -> Value {
    let mut own = json!({"description": "Helps.", "system_prompt": "OWN-PROMPT", "model": "quick"});
    let members = own.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    json!({"custom_agents": {"own": own}})
}

fn try_lead(runtime: &Runtime, mut request: Value) -> Result<Assembly, Error> {
    request["factory"] = "lead".into();
    request["configurable"]["subagent_enabled"] = true.into();
    runtime.new_assembly(&request.to_string())
}

fn lead(runtime: &Runtime, request: Value) -> Assembly {
    try_lead(runtime, request).unwrap_or_else(|error| panic!("{error:?}"))
}

fn direct(runtime: &Runtime, more: Value) -> Assembly {
    let mut request = json!({
        "factory": "direct", "model": "main", "features": {"subagent": true},
    });
    let members = request.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    let made = runtime.new_assembly(&request.to_string());
    made.unwrap_or_else(|error| panic!("{error:?}"))
}

fn task(id: &str, subagent: &str) -> Value {
    let args = json!({"description": "Work", "prompt": "Do the work.", "subagent_type": subagent});
    json!({"name": "task", "args": args, "id": id})
}

fn call(name: &str, id: &str) -> Value {
    json!({"name": name, "args": {}, "id": id})
}

/// One run, as its host saw it.
struct Told {
    /// The requests of each model, by its name with the provider.
    requests: HashMap<String, Vec<Value>>,
    /// The tools that the host was asked to run.
    ran: Vec<String>,
    messages: Vec<Value>,
    end: Value,
}

impl Told {
    fn tools(&self, model: &str) -> Vec<&str> {
        let tools = self.requests[model][0]["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect()
    }

    fn results(&self) -> Vec<&str> {
        let tools = self.messages.iter().filter(|it| it["type"] == "tool");
        tools.map(|it| it["content"].as_str().unwrap()).collect()
    }
}

/// Runs one message. Each model gives its replies in order. An heir, which has its agent's model, is told apart from it by the
/// system text.
fn talk(runtime: &Runtime, agent: &Assembly, replies: &[(&str, &[Value])]) -> Told {
    let thread = runtime.open_thread("{}").unwrap();
    let queue = runtime.new_queue("{}").unwrap();
    let message = json!({"role": "user", "content": "Go"});
    let request = json!({"input": {"messages": [message]}});
    let run = runtime
        .start_run(agent, &thread, Some(&queue), &request.to_string())
        .unwrap();
    let mut told = Told {
        requests: HashMap::new(),
        ran: Vec::new(),
        messages: Vec::new(),
        end: Value::Null,
    };
    let replies: HashMap<&str, &[Value]> = replies.iter().copied().collect();
    loop {
        let Answer::Done(events) = queue.take(Wait::Forever, 64).unwrap() else {
            panic!("no events");
        };
        let events: Vec<Value> = serde_json::from_str(&events).unwrap();
        for event in &events {
            let data = &event["data"];
            match event["type"].as_str().unwrap() {
                "host_call" if data["kind"] == "model" => {
                    let mut name = data["name"].as_str().unwrap().to_owned();
                    let is_child = !data["args"]["system"]
                        .to_string()
                        .contains("<subagent_system>");
                    // An heir has its agent's model.
                    if is_child && name == "main-m" && replies.contains_key("heir") {
                        name = "heir".to_owned();
                    }
                    let seen = told.requests.entry(name.clone()).or_default();
                    seen.push(data["args"].clone());
                    let script = replies.get(name.as_str()).copied().unwrap_or_default();
                    let reply = script.get(seen.len() - 1);
                    let reply = reply.unwrap_or_else(|| panic!("a reply of {name}"));
                    let answer = json!({ "ok": reply });
                    let id = data["call_id"].as_u64().unwrap();
                    runtime.finish(id, &answer.to_string()).unwrap();
                }
                "host_call" => {
                    let name = data["name"].as_str().unwrap().to_owned();
                    let answer = json!({"ok": format!("{name} did it")});
                    told.ran.push(name);
                    let id = data["call_id"].as_u64().unwrap();
                    runtime.finish(id, &answer.to_string()).unwrap();
                }
                "run_end" => {
                    let state: Value = serde_json::from_str(&thread.state("{}").unwrap()).unwrap();
                    let messages = state["values"]["messages"].as_array().unwrap();
                    told.messages = messages.clone();
                    told.end = data.clone();
                    drop(run);
                    return told;
                }
                _ => {}
            }
        }
    }
}

/// The same with an agent that makes these calls once, and then says that it is done.
fn talk_once(
    runtime: &Runtime,
    agent: &Assembly,
    calls: Value,
    others: &[(&str, &[Value])],
) -> Told {
    let main = [json!({ "tool_calls": calls }), json!({"content": "Done."})];
    let mut replies: Vec<(&str, &[Value])> = vec![("main-m", &main)];
    replies.extend_from_slice(others);
    talk(runtime, agent, &replies)
}

fn descriptor(agent: &Assembly) -> Value {
    serde_json::from_str(&agent.descriptor().unwrap()).unwrap()
}

fn bound(agent: &Assembly) -> Vec<String> {
    let described = descriptor(agent);
    let tools = described["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn warnings(runtime: &Runtime, request: Value) -> (Result<Assembly, Error>, Vec<Value>) {
    let queue = runtime.new_queue(r#"{"subscribe": ["log"]}"#).unwrap();
    let made = try_lead(runtime, request);
    let no_wait = Wait::For(std::time::Duration::ZERO);
    let events = match queue.take(no_wait, 64).unwrap() {
        Answer::Done(events) => serde_json::from_str(&events).unwrap(),
        _ => Vec::new(),
    };
    (made, events)
}

#[test]
fn rc_4_the_tool_is_there_when_there_is_somebody_to_delegate_to() {
    let agents = json!([
        {"name": "free"},
        {"name": "alone", "allowed_subagents": []},
        {"name": "lost", "allowed_subagents": ["gone"]},
        {"name": "some", "allowed_subagents": ["own"]},
    ]);
    let runtime = runtime(json!({"agents": agents, "subagents": own(json!({}))}));
    let has = |name: &str| {
        let request = json!({"configurable": {"agent_name": name}});
        bound(&lead(&runtime, request)).contains(&"task".to_owned())
    };
    assert_eq!(
        ["free", "alone", "lost", "some"].map(has),
        [true, false, false, true]
    );
    let off = json!({"factory": "lead", "configurable": {"subagent_enabled": false}});
    let off = runtime.new_assembly(&off.to_string()).unwrap();
    assert!(!bound(&off).contains(&"task".to_owned()));
}

#[test]
fn tl_1_a_configured_tool_named_task_wins_and_is_the_host_s() {
    let runtime = runtime(json!({}));
    let request = json!({"tools": [{"name": "task", "description": "Mine."}]});
    let (agent, told) = warnings(&runtime, request);
    let agent = agent.unwrap();
    let codes: Vec<&str> = told
        .iter()
        .map(|event| event["data"]["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["tool_duplicate"]);
    let described = descriptor(&agent);
    let tools = described["tools"].as_array().unwrap().iter();
    let sources: Vec<&Value> = tools
        .filter(|tool| tool["name"] == "task")
        .map(|tool| &tool["source"])
        .collect();
    assert_eq!(sources, ["host"]);
    let told = talk_once(&runtime, &agent, json!([call("task", "c1")]), &[]);
    assert_eq!(
        (told.ran, told.end["status"].as_str()),
        (vec!["task".to_owned()], Some("success"))
    );
}

#[test]
fn tl_8_what_the_user_may_not_use_is_neither_bound_nor_spoken_of() {
    let runtime = runtime(json!({}));
    let agent = lead(
        &runtime,
        json!({"authorization": {"tools": {"deny": ["task"]}}}),
    );
    assert!(!bound(&agent).contains(&"task".to_owned()));
    let told = talk(
        &runtime,
        &agent,
        &[
            ("main-m", &[json!({"content": "Hi."})]),
            ("heir", &[json!({"content": "Hi."})]),
        ],
    );
    let system = told.requests.values().next().unwrap()[0]["system"].to_string();
    assert!(!system.contains("`task`"), "{system}");
}

#[test]
fn sub_15_a_child_sees_the_tools_that_its_definition_leaves_it_and_runs_them() {
    let runtime = runtime(json!({
        "subagents": own(json!({"tools": ["look", "note", "task"], "disallowed_tools": ["note"]})),
    }));
    let tools = json!([{"name": "look"}, {"name": "note"}, {"name": "other"}]);
    let agent = lead(&runtime, json!({ "tools": tools }));
    let told = talk_once(
        &runtime,
        &agent,
        json!([task("t1", "own")]),
        &[(
            "quick-m",
            &[
                json!({"tool_calls": [call("look", "l1")]}),
                json!({"content": "I looked."}),
            ],
        )],
    );
    assert_eq!(told.tools("quick-m"), ["look"]);
    assert!(told.tools("main-m").contains(&"task"));
    assert_eq!(told.ran, ["look"]);
    assert!(
        told.results()[0].contains("I looked."),
        "{:?}",
        told.results()
    );
    let system = told.requests["quick-m"][0]["system"].to_string();
    assert!(system.contains("OWN-PROMPT") && !system.contains("<subagent_system>"));
}

#[test]
fn u9_a_forged_call_of_task_in_a_child_is_an_error_and_makes_no_grandchild() {
    let runtime = runtime(json!({"subagents": own(json!({"disallowed_tools": []}))}));
    let agent = lead(&runtime, json!({}));
    let told = talk_once(
        &runtime,
        &agent,
        json!([task("t1", "own")]),
        &[(
            "quick-m",
            &[
                json!({"tool_calls": [task("f1", "own")]}),
                json!({"content": "I could not."}),
            ],
        )],
    );
    assert!(!told.tools("quick-m").contains(&"task"));
    assert_eq!(told.requests["quick-m"].len(), 2, "no grandchild asked it");
    let messages = told.requests["quick-m"][1]["messages"].as_array().unwrap();
    let refused = messages.last().unwrap();
    assert_eq!(
        (refused["type"].as_str(), refused["status"].as_str()),
        (Some("tool"), Some("error"))
    );
    let text = refused["content"].as_str().unwrap();
    assert!(text.contains("task"), "{text}");
    assert_eq!(told.end["status"], "success");
}

#[test]
fn sub_13_an_heir_works_with_its_agent_s_model() {
    let runtime = runtime(json!({}));
    let agent = lead(&runtime, json!({"configurable": {"model_name": "main"}}));
    let told = talk_once(
        &runtime,
        &agent,
        json!([task("t1", "general-purpose")]),
        &[("heir", &[json!({"content": "Inherited."})])],
    );
    assert_eq!(told.requests["heir"].len(), 1);
    assert!(told.results()[0].contains("Inherited."));
    let tools = told.tools("heir");
    assert!(
        !tools.contains(&"task") && !tools.contains(&"ask_clarification"),
        "{tools:?}"
    );
}

/// A folder that goes away with the test.
struct Tree(PathBuf);

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn sub_17_a_child_is_told_of_the_skills_that_it_shares_with_its_agent() {
    let root = std::env::temp_dir().join(format!("fawn-families-{}", std::process::id()));
    let tree = Tree(root);
    for name in ["alpha", "beta", "gamma"] {
        let folder = tree.0.join("public").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: Skill {name}.\n---\n\nBody\n");
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    let runtime = runtime(json!({
        "skills": {"path": tree.0},
        "agents": [{"name": "some", "skills": ["alpha", "beta"]}],
        "subagents": own(json!({"skills": ["beta", "gamma"]})),
        "tools": [{"name": "read_file"}],
    }));
    let told_of = |agent: Assembly| {
        let told = talk_once(
            &runtime,
            &agent,
            json!([task("t1", "own")]),
            &[("quick-m", &[json!({"content": "Done."})])],
        );
        let request = told.requests["quick-m"][0].to_string();
        ["alpha", "beta", "gamma"].map(|name| request.contains(&format!("Skill {name}.")))
    };
    let some = json!({"configurable": {"agent_name": "some"}});
    assert_eq!(told_of(lead(&runtime, some)), [false, true, false]);
    assert_eq!(told_of(lead(&runtime, json!({}))), [false, true, true]);
}

#[test]
fn a_model_of_the_host_in_a_child_alone_makes_runs_need_a_queue() {
    let scripted = json!([
        {"name": "main", "provider": "scripted", "replies": [{"content": "Done."}]},
        {"name": "quick", "provider": "host", "model": "quick-m"},
    ]);
    for (model, is_needed) in [("quick", true), ("inherit", false), ("main", false)] {
        let runtime = runtime(json!({
            "models": scripted, "subagents": own(json!({ "model": model })),
        }));
        let starts = |agent: &Assembly| {
            let thread = runtime.open_thread("{}").unwrap();
            let request = json!({"input": {"messages": [{"role": "user", "content": "Go"}]}});
            let started = runtime.start_run(agent, &thread, None, &request.to_string());
            started.map(|_| ()).map_err(|error| error.code.name())
        };
        let expected = match is_needed {
            true => Err("no_queue"),
            false => Ok(()),
        };
        assert_eq!(starts(&lead(&runtime, json!({}))), expected, "{model}");
        assert_eq!(starts(&direct(&runtime, json!({}))), expected, "{model}");
    }
}

#[test]
fn sub_13_a_subagent_s_model_that_there_is_not_is_an_error_of_the_assembly() {
    let runtime = runtime(json!({"subagents": own(json!({"model": "quik"}))}));
    let plain = json!({"factory": "direct", "model": "main", "features": {"subagent": true}});
    for made in [
        try_lead(&runtime, json!({})),
        runtime.new_assembly(&plain.to_string()),
    ] {
        let error = made.map(|_| ()).unwrap_err();
        assert_eq!(error.code.name(), "unknown_model");
        assert!(error.message.contains("quik"), "{error:?}");
    }
}

#[test]
fn rt_10_a_direct_agent_delegates_with_its_own_tools_and_model() {
    let runtime = runtime(json!({"subagents": own(json!({}))}));
    let agent = direct(
        &runtime,
        json!({"tools": [{"name": "look"}], "system_prompt": "<subagent_system> of the host's"}),
    );
    let told = talk_once(
        &runtime,
        &agent,
        json!([task("t1", "own"), task("t2", "general-purpose")]),
        &[
            (
                "quick-m",
                &[
                    json!({"tool_calls": [call("look", "l1")]}),
                    json!({"content": "I looked."}),
                ],
            ),
            ("heir", &[json!({"content": "Inherited."})]),
        ],
    );
    assert_eq!(told.tools("main-m"), ["look", "task", "ask_clarification"]);
    assert_eq!(told.tools("quick-m"), ["look"]);
    assert_eq!(told.tools("heir"), ["look"]);
    let results = told.results();
    assert!(
        results[0].contains("I looked.") && results[1].contains("Inherited."),
        "{results:?}"
    );
}

#[test]
fn fa_5_a_direct_agent_s_own_task_wins_over_the_factory_s() {
    let runtime = runtime(json!({}));
    let agent = direct(&runtime, json!({"tools": [{"name": "task"}]}));
    let told = talk_once(&runtime, &agent, json!([call("task", "c1")]), &[]);
    assert_eq!(told.ran, ["task"]);
    assert_eq!(told.tools("main-m"), ["task", "ask_clarification"]);
}

#[test]
fn rt_29b_the_limit_of_a_run_holds_over_the_replies_of_a_direct_agent() {
    let runtime = runtime(json!({"subagents": own(json!({}))}));
    let agent = direct(
        &runtime,
        json!({
            "features": {"subagent": {"max_concurrent": 2, "max_total": 3}},
            "system_prompt": "<subagent_system> of the host's",
        }),
    );
    let done = json!({"content": "Done."});
    let told = talk(
        &runtime,
        &agent,
        &[
            (
                "main-m",
                &[
                    json!({"tool_calls": [task("a1", "own"), task("a2", "own"), task("a3", "own")]}),
                    json!({"tool_calls": [task("b1", "own"), task("b2", "own")]}),
                    done.clone(),
                ],
            ),
            ("quick-m", &[done.clone(), done.clone(), done.clone()]),
        ],
    );
    assert_eq!(told.requests["quick-m"].len(), 3, "2 of 3, then 1 of 2");
    assert_eq!(told.end["status"], "success");
}

#[test]
fn who_guards_a_direct_agent_guards_its_children() {
    let runtime = runtime(json!({"subagents": own(json!({}))}));
    let agent = direct(
        &runtime,
        json!({
            "tools": [{"name": "look"}, {"name": "wipe"}],
            "features": {
                "subagent": true,
                "guardrail": {"provider": {"use": "allowlist", "config": {"denied_tools": ["wipe"]}}},
            },
            "system_prompt": "<subagent_system> of the host's",
        }),
    );
    let told = talk_once(
        &runtime,
        &agent,
        json!([task("t1", "own")]),
        &[(
            "quick-m",
            &[
                json!({"tool_calls": [call("wipe", "w1"), call("look", "l1")]}),
                json!({"content": "Tried."}),
            ],
        )],
    );
    assert_eq!(told.ran, ["look"]);
}
