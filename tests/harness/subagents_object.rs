//! Assemblies that name a subagents object: its numbers are the only ones, in the limiter, in the prompt and in the descriptor.

use fawn::protocol::error::{Error, ErrorCode};
use fawn::runtime::capacity::process_capacity;
use fawn::runtime::{Assembly, Runtime, Subagents};
use serde_json::{Value, json};

use super::support::talk::{Talk, logged};

const MODEL: &str = "of the host";

fn runtime(sections: Value) -> Runtime {
    let mut config = json!({
        "workers": 0,
        "models": [{"name": "m", "provider": "host", "model": MODEL}],
    });
    let sections = sections.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(sections);
    Runtime::new(&config.to_string()).unwrap()
}

/// An assembly of the request, which names `subagents` if there are any.
fn assembly(
    runtime: &Runtime,
    mut request: Value,
    subagents: Option<&Subagents>,
) -> Result<Assembly, Error> {
    if subagents.is_some() {
        request["subagent_runtime"] = 4711.into();
    }
    runtime.new_assembly_with(&request.to_string(), &|handle| {
        assert_eq!(handle, 4711);
        Ok(subagents.unwrap().clone())
    })
}

/// A direct agent whose tool `task` is the host's, so that it can be counted.
fn direct(more: Value) -> Value {
    let mut request = json!({
        "factory": "direct",
        "model": "m",
        "features": {"subagent": true},
        "tools": [{"name": "task"}],
    });
    let more = more.as_object().unwrap().clone();
    request.as_object_mut().unwrap().extend(more);
    request
}

fn talk(runtime: &Runtime, assembly: Assembly) -> Talk {
    Talk {
        assembly,
        thread: runtime.open_thread("{}").unwrap(),
        queue: runtime.new_queue("{}").unwrap(),
        runtime: runtime.clone(),
    }
}

/// How many of the calls of `task` in each of the model's replies were made, until a reply has none left.
fn passed(runtime: &Runtime, assembly: Assembly, asked: &[usize]) -> Vec<usize> {
    let talk = talk(runtime, assembly);
    let mut replies = asked.iter().enumerate();
    let mut passed = Vec::new();
    talk.say_with(json!({}), |event, _| {
        if event["type"] != "host_call" {
            return;
        }
        let data = &event["data"];
        let answer = if data["kind"] == "tool" {
            *passed.last_mut().unwrap() += 1;
            json!({"ok": "done"})
        } else {
            let calls: Vec<Value> = match replies.next() {
                Some((reply, count)) => (0..*count)
                    .map(|n| json!({"name": "task", "args": {}, "id": format!("c{reply}-{n}")}))
                    .collect(),
                None => vec![],
            };
            if !calls.is_empty() {
                passed.push(0);
            }
            json!({"ok": {"content": "go on", "tool_calls": calls}})
        };
        let id = data["call_id"].as_u64().unwrap();
        talk.runtime.finish(id, &answer.to_string()).unwrap();
    });
    passed
}

#[test]
fn rt_10_a_direct_agent_is_limited_by_its_object_and_otherwise_by_the_process() {
    // What the runtime's configuration says of lead agents is not asked.
    let runtime = runtime(json!({"subagents": {"max_total_per_run": 2}}));
    let object = r#"{"config": {"max_running": 2}, "max_total_per_run": 5}"#;
    let object = runtime.new_subagents(object).unwrap();
    let bound = assembly(&runtime, direct(json!({})), Some(&object)).unwrap();
    assert!(bound.subagents().is_some());
    assert_eq!(passed(&runtime, bound, &[4, 4, 4, 4]), [2, 2, 1, 0]);
    let before = process_capacity().config().max_running;
    let plain = assembly(&runtime, direct(json!({})), None).unwrap();
    assert!(plain.subagents().is_none());
    let wide = passed(&runtime, plain, &[7; 7]);
    assert_eq!(wide.iter().sum::<usize>(), 6);
    // Other tests may have changed what the process has meanwhile.
    if process_capacity().config().max_running == before {
        assert_eq!(wide[0], before.min(6) as usize);
    }
}

#[test]
fn rt_11_two_objects_bind_two_assemblies_of_one_runtime() {
    let runtime = runtime(json!({}));
    let objects = [1, 7].map(|running| {
        let config = json!({"config": {"max_running": running}, "max_total_per_run": 50});
        runtime.new_subagents(&config.to_string()).unwrap()
    });
    let agents = objects
        .each_ref()
        .map(|object| assembly(&runtime, direct(json!({})), Some(object)).unwrap());
    let passed = agents.map(|agent| passed(&runtime, agent, &[9])[0]);
    assert_eq!(passed, [1, 7]);
}

#[test]
fn rt_12_a_limiter_with_settings_of_the_callers_is_used_as_it_is() {
    let runtime = runtime(json!({}));
    let object = runtime
        .new_subagents(r#"{"config": {"max_running": 2}, "max_total_per_run": 3}"#)
        .unwrap();
    let limit = json!({"max_concurrent": 5, "max_total": 7});
    let mut extra = limit.clone();
    extra["name"] = "subagent_limit".into();
    for own in [
        json!({"features": {"subagent": limit}}),
        json!({"extra_middleware": [extra]}),
    ] {
        for object in [Some(&object), None] {
            let agent = assembly(&runtime, direct(own.clone()), object).unwrap();
            assert_eq!(passed(&runtime, agent, &[6, 6, 6]), [5, 2, 0], "{own}");
        }
    }
    let refused = |more, code, path: &str| {
        let error = assembly(&runtime, direct(more), Some(&object))
            .err()
            .unwrap();
        assert_eq!((error.code, error.path.as_deref()), (code, Some(path)));
    };
    refused(
        json!({"features": {"subagent": {"max_concurent": 5}}}),
        ErrorCode::UnknownMember,
        "/features/subagent/max_concurent",
    );
    refused(
        json!({"features": {"subagent": {"max_total": "7"}}}),
        ErrorCode::WrongType,
        "/features/subagent/max_total",
    );
    // Two limiters with settings contradict each other.
    refused(
        json!({"features": {"subagent": {}}, "extra_middleware": [extra]}),
        ErrorCode::Conflict,
        "/extra_middleware/0",
    );
}

#[test]
fn rt_25_an_object_that_nothing_binds_to_is_refused_in_the_order_of_the_reference() {
    let runtime = runtime(json!({}));
    let object = runtime.new_subagents("{}").unwrap();
    let refused = |more: Value, path: &str| {
        let error = assembly(&runtime, direct(more), Some(&object))
            .err()
            .unwrap();
        assert_eq!(
            (error.code, error.path.as_deref()),
            (ErrorCode::Conflict, Some(path))
        );
        error.message
    };
    let chain = json!(["subagent_limit"]);
    let message = refused(
        json!({"features": null, "middleware": chain}),
        "/subagent_runtime",
    );
    assert!(message.contains("\"middleware\" is the whole chain"));
    let message = refused(json!({"features": null}), "/subagent_runtime");
    assert!(message.contains("without \"features\""));
    let message = refused(json!({"features": {}}), "/subagent_runtime");
    assert!(message.contains("without \"subagent\""));
    let message = refused(
        json!({"features": {"subagent": false}}),
        "/subagent_runtime",
    );
    assert!(message.contains("\"subagent\" false"));
    // FA-2: what comes before it, and what comes after.
    refused(json!({"middleware": chain}), "/features");
    refused(
        json!({"features": null, "middleware": chain, "extra_middleware": ["todo"]}),
        "/extra_middleware",
    );
    refused(
        json!({"features": {}, "extra_middleware": [{"name": "todo", "after": "a", "before": "b"}]}),
        "/subagent_runtime",
    );
}

#[test]
fn an_object_of_another_runtime_or_none_is_a_wrong_handle() {
    let (one, other) = (runtime(json!({})), runtime(json!({})));
    let foreign = other.new_subagents("{}").unwrap();
    for request in [direct(json!({})), json!({"factory": "lead"})] {
        let error = assembly(&one, request.clone(), Some(&foreign))
            .err()
            .unwrap();
        assert_eq!(error.code, ErrorCode::Handle);
        assert_eq!(error.path.as_deref(), Some("/subagent_runtime"));
        let mut named = request;
        named["subagent_runtime"] = 1.into();
        let error = one.new_assembly(&named.to_string()).err().unwrap();
        assert_eq!(error.code, ErrorCode::Handle);
        assert_eq!(error.path.as_deref(), Some("/subagent_runtime"));
    }
}

/// U1, RT-39, RT-40: the request's number, within the object's; the same one everywhere.
#[test]
fn u1_a_lead_agent_has_one_number_of_each_from_its_object() {
    let runtime = runtime(json!({
        "subagent_runtime": {"max_running": 9}, "subagents": {"max_total_per_run": 40},
    }));
    let object = r#"{"config": {"max_running": 5}, "max_total_per_run": 11}"#;
    let object = runtime.new_subagents(object).unwrap();
    let own = json!({"models": [{"name": "m", "provider": "host", "model": MODEL}], "subagent_runtime": {"max_running": 64}});
    for (asked, app, named, concurrent, total) in [
        (json!({}), None, true, 5, 11),
        (json!({}), None, false, 9, 40),
        (json!({"max_concurrent_subagents": 64}), None, true, 5, 11),
        (json!({"max_concurrent_subagents": 64}), None, false, 9, 40),
        (
            json!({"max_concurrent_subagents": 2, "max_total_subagents": 50}),
            None,
            true,
            2,
            50,
        ),
        (
            json!({"max_concurrent_subagents": 0, "max_total_subagents": 0}),
            None,
            true,
            1,
            1,
        ),
        (json!({"max_total_subagents": 99}), Some(&own), true, 5, 50),
        (json!({}), Some(&own), false, 64, 6),
    ] {
        let mut context = asked.clone();
        context["subagent_enabled"] = true.into();
        let request = json!({
            "factory": "lead", "context": context, "app_config": app, "tools": [{"name": "task"}],
        });
        let agent = assembly(&runtime, request, named.then_some(&object)).unwrap();
        let descriptor: Value = serde_json::from_str(&agent.descriptor().unwrap()).unwrap();
        let policies = &descriptor["effective_policies"];
        let told = policies.to_string();
        assert!(
            told.contains(&format!("\"max_concurrent\":{concurrent}"))
                && told.contains(&format!("\"max_total\":{total}")),
            "{told}"
        );
        let limiter = descriptor["middlewares"]
            .as_array()
            .unwrap()
            .iter()
            .find(|part| part.to_string().contains("subagent_limit"))
            .unwrap_or_else(|| panic!("no limiter in {descriptor}"))
            .to_string();
        assert!(
            limiter.contains(&format!("\"max_concurrent\":{concurrent}"))
                && limiter.contains(&format!("\"max_total\":{total}")),
            "{limiter}"
        );
        let talk = talk(&runtime, agent);
        let mut system = String::new();
        talk.say_with(json!({}), |event, _| {
            if event["type"] == "host_call" {
                let data = &event["data"];
                system = data["args"]["system"].as_str().unwrap().to_owned();
                let id = data["call_id"].as_u64().unwrap();
                talk.runtime.finish(id, r#"{"ok": "hi"}"#).unwrap();
            }
        });
        let per_response = format!("at most {concurrent} `task` call");
        let per_run = format!("at most {total} ");
        assert!(
            system.contains(&per_response) && system.contains(&per_run),
            "{asked}: {per_response}, {per_run}"
        );
    }
}

#[test]
fn an_object_that_a_lead_agent_does_not_delegate_through_is_told_of() {
    let agents = json!([{"name": "alone", "allowed_subagents": []}, {"name": "picky", "allowed_subagents": ["bash"]}]);
    let runtime = runtime(json!({ "agents": agents }));
    let object = runtime.new_subagents("{}").unwrap();
    let queue = runtime.new_queue(r#"{"subscribe": ["log"]}"#).unwrap();
    let told = |configurable: Value, object| {
        let request = json!({"factory": "lead", "configurable": configurable});
        let made = assembly(&runtime, request, object);
        made.unwrap_or_else(|error| panic!("{error:?}"));
        let doubtful = logged(&queue, "subagent_setting_doubtful");
        doubtful
            .into_iter()
            .map(|text| {
                let rest = text.strip_prefix("/subagent_runtime is not used: ");
                rest.unwrap_or_else(|| panic!("{text}")).to_owned()
            })
            .collect::<Vec<_>>()
    };
    let on = |name: &str| json!({"subagent_enabled": true, "agent_name": name});
    for (configurable, why) in [
        (json!({}), "nothing sets subagent_enabled"),
        (on("alone"), "its allowed_subagents is empty"),
        // Withheld, as the host's shell may not be used.
        (on("picky"), "none of its allowed_subagents is there"),
    ] {
        assert_eq!(told(configurable.clone(), None), [""; 0]);
        let expected = format!("the agent does not delegate, as {why}");
        assert_eq!(told(configurable, Some(&object)), [expected]);
    }
    let on = json!({"subagent_enabled": true});
    assert_eq!(told(on, Some(&object)), [""; 0]);
}
