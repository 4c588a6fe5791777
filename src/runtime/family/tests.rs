//! A family from assembly to child: composed late, once, and from what its agent has.

use serde_json::Value;

use super::*;
use crate::runtime::sync::{Answer, Wait};
use crate::subagents::definition::Registry;

/// A runtime with two models, and subagents that are set up as `subagents` says.
fn runtime(subagents: Value) -> Runtime {
    let config = json!({
        "workers": 0,
        "models": [
            {"name": "main", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1", "api_key": "k",
             "supports_thinking": true, "when_thinking_enabled": {"temperature": 1.0}},
            {"name": "quick", "provider": "host", "model": "q"},
        ],
        "subagents": subagents,
    });
    Runtime::new(&config.to_string()).expect("a runtime")
}

fn parent(runtime: &Runtime, model: ParentModel) -> Parent {
    let scope = runtime.0.lead.clone();
    Parent {
        app: scope.shared_app().clone(),
        scope,
        model,
        tools: Arc::new([]),
        groups: None,
        is_lead: true,
        access: None,
        principal: None,
        skills: None,
        thread_files: None,
        sandbox: None,
        file_turns: FileTurns::default(),
        described: Some(BuildLabels::default()),
        told: Warnings::new(),
    }
}

fn family(runtime: &Runtime, scope: SubagentScope) -> Option<Family> {
    let registry = Registry::of(runtime.0.lead.app());
    let parent = parent(runtime, ParentModel::Named("main".to_owned()));
    Family::new(runtime, parent, Arc::new(registry), scope).expect("models that there are")
}

fn custom(more: Value) -> Value {
    let mut own = json!({"description": "d", "system_prompt": "p"});
    let members = own.as_object_mut().expect("an object");
    members.extend(more.as_object().expect("an object").clone());
    json!({"custom_agents": {"own": own}})
}

#[test]
fn ca_11_the_scope_decides_whom_there_is_and_a_family_of_nobody_is_none() {
    let runtime = runtime(custom(json!({})));
    let all = family(&runtime, SubagentScope::All).expect("a family");
    assert_eq!(all.names(), ["general-purpose", "own"]);
    let some = family(&runtime, SubagentScope::Only(vec!["own".to_owned()]));
    let some = some.expect("a family");
    assert_eq!(some.names(), ["own"]);
    let error = some.child("general-purpose").map(|_| ());
    let error = error.expect_err("out of scope");
    let absent = some.child("nobody").map(|_| ()).expect_err("not there");
    assert_eq!(error.code, ErrorCode::UnknownAgent);
    assert_eq!(
        error.message.replace("general-purpose", "nobody"),
        absent.message
    );
    for nobody in [
        SubagentScope::Denied,
        SubagentScope::Only(vec!["gone".to_owned()]),
    ] {
        assert!(family(&runtime, nobody).is_none());
    }
}

#[test]
fn a_child_is_composed_once_even_when_three_ask_at_once() {
    let runtime = runtime(json!({}));
    let queue = runtime.new_queue(r#"{"subscribe": ["runtime"]}"#);
    let queue = queue.expect("a queue");
    let family = family(&runtime, SubagentScope::All).expect("a family");
    let children: Vec<Arc<Child>> = std::thread::scope(|threads| {
        let asking: Vec<_> = (0..3)
            .map(|_| threads.spawn(|| family.child("general-purpose").expect("a child")))
            .collect();
        asking
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    assert!(
        children
            .iter()
            .all(|child| Arc::ptr_eq(child, &children[0]))
    );
    let Answer::Done(events) = queue
        .take(Wait::For(std::time::Duration::ZERO), 8)
        .expect("open")
    else {
        panic!("no events");
    };
    let events: Value = serde_json::from_str(&events).expect("JSON");
    let events = events.as_array().expect("a list");
    assert_eq!(events.len(), 1, "AD-28: it is told of once: {events:?}");
    let descriptor = &events[0]["data"]["descriptor"];
    assert_eq!(events[0]["type"], "agent_assembled");
    assert_eq!(descriptor["agent_name"], "general-purpose");
    assert_eq!(
        descriptor["effective_policies"]["prompt_template_id"],
        "deerflow-subagent-v1"
    );
    assert_eq!(
        descriptor["effective_policies"]["subagents"]["enabled"],
        false
    );
    assert!(descriptor["fingerprint"].is_string());
}

#[test]
fn sub_13_sub_24_a_child_inherits_the_model_and_does_not_think() {
    let runtime = runtime(custom(json!({"model": "quick"})));
    let family = family(&runtime, SubagentScope::All).expect("a family");
    let heir = family.child("general-purpose").expect("a child");
    assert_eq!(heir.model_name, "main");
    assert_eq!(family.child("own").expect("a child").model_name, "quick");
    let made = |thinking: bool| {
        let question = model_choice::ModelQuestion {
            thinking,
            ..plain("main")
        };
        let models = &runtime.0.lead.app().models;
        let (choice, _) = model_choice::choose(models, &question, None).expect("a model");
        let ready = runtime.ready_model(&runtime.0.lead, &choice);
        ready.expect("a model").0
    };
    assert!(Arc::ptr_eq(&heir.assembly.model, &made(false)));
    assert!(!Arc::ptr_eq(&heir.assembly.model, &made(true)));
}

#[test]
fn sub_24_a_model_given_in_place_is_inherited_without_its_thinking() {
    let runtime = runtime(json!({}));
    let given = json!({
        "provider": "anthropic", "model": "claude", "base_url": "http://127.0.0.1:1", "api_key": "k",
        "max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 2048},
    });
    let entry: ModelEntry = crate::protocol::decode::from_value(given).expect("a model");
    let parent = parent(&runtime, ParentModel::Given(Box::new(entry)));
    let registry = Arc::new(Registry::of(runtime.0.lead.app()));
    let family = Family::new(&runtime, parent, registry, SubagentScope::All);
    let family = family.expect("models that there are").expect("a family");
    let child = family.child("general-purpose");
    assert_eq!(child.expect("a child").model_name, "claude");
}

#[test]
fn a_failure_is_not_kept_and_says_of_whom_it_is() {
    let path = std::env::temp_dir().join(format!("fawn-family-{}.json", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let config = json!({
        "workers": 0,
        "models": [
            {"name": "main", "provider": "host", "model": "m"},
            {"name": "script", "provider": "scripted", "file": path},
        ],
        "subagents": custom(json!({"model": "script"})),
    });
    let runtime = Runtime::new(&config.to_string()).expect("a runtime");
    let family = family(&runtime, SubagentScope::All).expect("a family");
    let error = family.child("own").map(|_| ()).expect_err("no file");
    assert!(error.message.contains("the subagent \"own\""), "{error:?}");
    assert_eq!(error.path, None);
    std::fs::write(&path, r#"[{"content": "Done."}]"#).expect("a file");
    let again = family.child("own").map(|child| child.model_name.clone());
    let _ = std::fs::remove_file(&path);
    assert_eq!(again.expect("a child"), "script");
}

#[test]
fn sub_13_a_model_that_there_is_not_is_an_error_where_it_is_named() {
    let runtime = runtime(custom(json!({"model": "quik"})));
    let registry = Arc::new(Registry::of(runtime.0.lead.app()));
    let parent = parent(&runtime, ParentModel::Named("main".to_owned()));
    let family = Family::new(&runtime, parent, registry, SubagentScope::All);
    let error = family.map(|_| ()).expect_err("no model");
    assert_eq!(error.code, ErrorCode::UnknownModel);
    assert_eq!(
        error.path.as_deref(),
        Some("/subagents/custom_agents/own/model")
    );
}

#[test]
fn sub_3_the_shell_that_is_withheld_is_told_to_those_who_may_know_of_it() {
    let runtime = runtime(json!({}));
    let all = family(&runtime, SubagentScope::All).expect("a family");
    assert_eq!(all.unavailable("bash").as_deref(), Some(BASH_WITHHELD));
    assert_eq!(all.unavailable("general-purpose"), None);
    let general = SubagentScope::Only(vec!["general-purpose".to_owned()]);
    let general = family(&runtime, general).expect("a family");
    assert_eq!(general.unavailable("bash"), None);
}

#[test]
fn a_child_whose_model_the_host_answers_makes_its_agent_need_a_queue() {
    let asks = |subagents: Value, scope: SubagentScope| {
        let runtime = runtime(subagents);
        family(&runtime, scope).expect("a family").asks_host()
    };
    let general = || SubagentScope::Only(vec!["general-purpose".to_owned()]);
    let quick = || custom(json!({"model": "quick"}));
    assert!(asks(quick(), SubagentScope::All));
    assert!(!asks(quick(), general()), "it is out of scope");
    assert!(!asks(custom(json!({})), SubagentScope::All));
    let over = json!({"agents": {"general-purpose": {"model": "quick"}}});
    assert!(asks(over, general()));
}

#[test]
fn zz_measure() {
    let runtime = runtime(custom(json!({})));
    for enabled in [false, true, false, true] {
        let request = json!({"factory": "lead_graph", "configurable": {"model_name": "quick", "subagent_enabled": enabled}}).to_string();
        let start = std::time::Instant::now();
        for _ in 0..2000 {
            runtime.new_assembly(&request).expect("an assembly");
        }
        println!(
            "assembly, subagents {enabled}: {:?}",
            start.elapsed() / 2000
        );
    }
    let family = family(&runtime, SubagentScope::All).expect("a family");
    let start = std::time::Instant::now();
    family.child("own").expect("a child");
    println!("first child {:?}", start.elapsed());
    let start = std::time::Instant::now();
    for _ in 0..100_000 {
        std::hint::black_box(family.child("own").expect("a child"));
    }
    println!("next {:?}", start.elapsed() / 100_000);
}
