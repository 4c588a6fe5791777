//! Which model a lead agent gets, how it is set up, and who may use what.

use std::sync::Arc;

use fawn::agent::authorization::{access_of_request, filter_tools, principal};
use fawn::agent::model_choice::{ModelChoice, ModelQuestion, choose};
use fawn::agent::sections::Sections;
use fawn::agent::selection::AgentSelection;
use fawn::ports::authorization::{Access, Authorizer, Principal, Resource, Verdict};
use fawn::protocol::agent_record::AgentModelSettings;
use fawn::protocol::app_config::{AppConfig, AuthorizationLists};
use fawn::protocol::config::{ModelConfig, ModelRef};
use fawn::protocol::decode::from_value;
use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::named_model::NamedModel;
use fawn::protocol::warning::{Warning, Warnings};
use serde_json::{Map, Number, Value, json};

fn models(list: Value) -> Vec<NamedModel> {
    let app: AppConfig = from_value(json!({ "models": list })).unwrap();
    app.validate().unwrap();
    app.models
}

fn three() -> Vec<NamedModel> {
    models(json!([
        {"name": "a", "provider": "openai", "model": "m-a", "api_key": "sk-1"},
        {"name": "b", "provider": "anthropic", "model": "m-b", "supports_thinking": true, "supports_vision": true},
        {"name": "c", "provider": "host"},
    ]))
}

fn codes(warnings: &Warnings) -> Vec<Warning> {
    warnings.iter().map(|(warning, _)| warning).collect()
}

fn wanted(name: &str) -> ModelQuestion<'_> {
    ModelQuestion {
        wanted: Some(name),
        ..ModelQuestion::default()
    }
}

/// MD-1.
#[test]
fn an_unknown_model_gives_way_to_the_first() {
    let models = three();
    for (name, chosen, warned) in [
        (None, "a", vec![]),
        (Some(""), "a", vec![]),
        (Some("b"), "b", vec![]),
        (Some("z"), "a", vec![Warning::ModelUnknown]),
    ] {
        let question = ModelQuestion {
            wanted: name,
            ..ModelQuestion::default()
        };
        let (choice, warnings) = choose(&models, &question, None).unwrap();
        assert_eq!(
            (&*choice.name, codes(&warnings)),
            (chosen, warned),
            "{name:?}"
        );
        assert_eq!(choice.entry.label, chosen);
    }
    let error = choose(&[], &wanted("a"), None).unwrap_err();
    assert_eq!(error.code, ErrorCode::UnknownModel);
}

/// MD-5, MD-8: thinking and effort go where they are understood.
#[test]
fn thinking_is_switched_off_with_a_warning_where_it_is_not_supported() {
    let models = three();
    let question = |name| ModelQuestion {
        thinking: true,
        reasoning_effort: Some("high"),
        ..wanted(name)
    };
    let (choice, warnings) = choose(&models, &question("a"), None).unwrap();
    assert_eq!(
        (choice.thinking_enabled, choice.supports_vision),
        (false, false)
    );
    assert_eq!(codes(&warnings), [Warning::ThinkingUnsupported]);
    assert_eq!(
        choice.reasoning_effort.as_deref(),
        Some("high"),
        "AD-9: as asked"
    );
    let ModelConfig::Openai(config) = choice.entry.config else {
        panic!("openai")
    };
    assert_eq!(
        config.reasoning_effort, None,
        "MD-8: not supported, so not sent"
    );
    let (choice, warnings) = choose(&models, &question("b"), None).unwrap();
    assert_eq!(
        (
            choice.thinking_enabled,
            choice.supports_vision,
            warnings.len()
        ),
        (true, true, 0)
    );
}

/// MD-11.
#[test]
fn settings_of_an_agent_are_bounded_and_come_last() {
    let models = models(json!([
        {"name": "class", "use": "langchain_openai:ChatOpenAI", "model": "m", "temperature": 1},
        {"name": "plain", "provider": "openai", "model": "m", "max_tokens": 5},
    ]));
    let settings = |temperature: f64, max_tokens| AgentModelSettings {
        temperature: Number::from_f64(temperature),
        max_tokens: Some(max_tokens),
    };
    let ask = |name, settings| {
        choose(
            &models,
            &ModelQuestion {
                settings,
                ..wanted(name)
            },
            None,
        )
    };
    let sent = |choice: ModelChoice| match choice.entry.config {
        ModelConfig::Openai(config) => (
            json!(config.temperature),
            config.max_tokens,
            config.max_completion_tokens,
        ),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        sent(ask("class", settings(0.5, 7)).unwrap().0),
        (json!(0.5), None, Some(7))
    );
    assert_eq!(
        sent(ask("plain", settings(0.0, 7)).unwrap().0),
        (json!(0.0), Some(7), None)
    );
    for (settings, path) in [
        (settings(2.1, 7), "/model_settings/temperature"),
        (settings(-0.1, 7), "/model_settings/temperature"),
        (settings(1.0, 0), "/model_settings/max_tokens"),
        (settings(1.0, 200_001), "/model_settings/max_tokens"),
    ] {
        let error = ask("plain", settings).unwrap_err();
        assert_eq!(
            (error.code, error.path.as_deref()),
            (ErrorCode::OutOfRange, Some(path))
        );
    }
}

/// AD-10, AD-11, and A-13 put right: the number of tokens is part of it.
#[test]
fn parameters_tell_everything_but_secrets() {
    let models = models(json!([{
        "name": "a", "display_name": "A", "description": "d", "context_window": 5, "pricing": {"currency": "USD"},
        "use": "deerflow.models.patched_deepseek:PatchedChatDeepSeek", "model": "m", "api_key": "sk-canary",
        "api_base": "https://h/v1?key=sk-canary", "max_tokens": 9, "openai_proxy": "http://u:sk-canary@p",
        "default_headers": {"x-secret": "sk-canary", "x-other": "sk-canary"},
        "extra_body": {"token": "sk-canary", "thinking": {"budget_tokens": 3}}, "supports_thinking": true,
    }]));
    let settings = AgentModelSettings {
        temperature: Number::from_f64(0.5),
        max_tokens: None,
    };
    let question = ModelQuestion {
        settings,
        ..wanted("a")
    };
    let found = choose(&models, &question, None).unwrap().0.parameters;
    let text = json!(found).to_string();
    assert!(!text.contains("canary"), "{text}");
    assert_eq!(
        found["provider"],
        "deerflow.models.patched_deepseek:PatchedChatDeepSeek"
    );
    assert_eq!(
        (&found["max_tokens"], &found["temperature"]),
        (&json!(9), &json!(0.5))
    );
    assert_eq!(
        found["extra_body"],
        json!({"thinking": {"budget_tokens": 3}})
    );
    assert_eq!(
        (&found["base_url"], &found["model"]),
        (&json!("https://h/v1"), &json!("m"))
    );
    assert_eq!(
        (&found["supports_thinking"], &found["top_p"]),
        (&json!(true), &json!(null))
    );
    for name in [
        "name",
        "display_name",
        "description",
        "use",
        "context_window",
        "pricing",
        "api_key",
        "thinking_enabled",
    ] {
        assert!(!found.contains_key(name), "{name}");
    }
}

#[test]
fn what_was_void_in_a_class_is_told_when_it_is_chosen() {
    let models = models(
        json!([{"name": "a", "use": "langchain_openai:ChatOpenAI", "model": "m",
        "base_url": "http://a", "api_base": "http://b"}]),
    );
    let (_, warnings) = choose(&models, &wanted("a"), None).unwrap();
    assert_eq!(codes(&warnings), [Warning::ModelSettingVoid]);
}

/// Whatever stands in is set up alike and authorized alike, in the order in which it will be asked.
#[test]
fn models_that_stand_in_are_set_up_and_authorized_too() {
    let models = models(json!([
        {"name": "a", "provider": "openai", "model": "m-a", "fallbacks": ["b", {"provider": "host", "model": "h", "fallbacks": ["d"]}, "a"]},
        {"name": "b", "provider": "anthropic", "model": "m-b", "supports_thinking": true, "thinking": {"type": "adaptive"}, "fallbacks": ["c", "a"]},
        {"name": "c", "provider": "openai", "model": "m-c"},
        {"name": "d", "provider": "openai", "model": "m-d"},
    ]));
    let question = ModelQuestion {
        settings: AgentModelSettings {
            temperature: Number::from_f64(0.5),
            max_tokens: None,
        },
        ..wanted("a")
    };
    let labels = |choice: &ModelChoice| -> Vec<String> {
        let entries = choice
            .entry
            .fallbacks
            .iter()
            .map(|fallback| match fallback {
                ModelRef::Inline(entry) if entry.fallbacks.is_empty() => entry.label.clone(),
                other => panic!("{other:?}"),
            });
        entries.collect()
    };
    let (choice, _) = choose(&models, &question, None).unwrap();
    assert_eq!(labels(&choice), ["b", "c", "h", "d"]);
    let ModelRef::Inline(b) = &choice.entry.fallbacks[0] else {
        panic!("in place")
    };
    let ModelConfig::Anthropic(b) = &b.config else {
        panic!("anthropic")
    };
    assert_eq!(
        (json!(b.temperature), json!(b.thinking)),
        (json!(0.5), json!({"type": "disabled"}))
    );
    let access = access(json!({"models": {"deny": ["c"]}}));
    let (choice, warnings) = choose(&models, &question, Some(&access)).unwrap();
    assert_eq!(labels(&choice), ["b", "h", "d"]);
    assert_eq!(codes(&warnings), [Warning::ModelReplaced]);
}

fn access(lists: Value) -> Access {
    let lists: AuthorizationLists = from_value(lists).unwrap();
    let (configurable, context) = (Map::new(), Map::new());
    let sections = Sections::new(&configurable, &context);
    let selection = AgentSelection::new(sections, None).unwrap();
    let found = access_of_request(&AppConfig::default(), Some(&lists), sections, &selection);
    found.unwrap().unwrap()
}

/// An authorizer whose answers are written down.
struct Told {
    /// By name; a name that is not here cannot be told.
    verdicts: Vec<(&'static str, bool)>,
    filter: Result<Vec<&'static str>, &'static str>,
}

impl Authorizer for Told {
    fn name(&self) -> &str {
        "told"
    }
    fn authorize(
        &self,
        _: &Principal,
        _: Resource,
        _: &str,
        target: &str,
    ) -> Result<Verdict, String> {
        match self.verdicts.iter().find(|(name, _)| *name == target) {
            Some((_, true)) => Ok(Verdict::Allow),
            Some((_, false)) => Ok(Verdict::Deny("denied".into())),
            None => Err("broken".into()),
        }
    }
    fn filter_resources(
        &self,
        _: &Principal,
        _: Resource,
        _: &[&str],
    ) -> Result<Vec<String>, String> {
        let names = self.filter.clone().map_err(str::to_owned)?;
        Ok(names.into_iter().map(str::to_owned).collect())
    }
}

fn told(
    verdicts: &[(&'static str, bool)],
    filter: Result<Vec<&'static str>, &'static str>,
    fail_closed: bool,
) -> Access {
    Access {
        authorizer: Arc::new(Told {
            verdicts: verdicts.to_vec(),
            filter,
        }),
        principal: Principal::default(),
        fail_closed,
    }
}

/// MD-2, point by point.
#[test]
fn a_model_that_may_not_be_used_is_replaced_or_refused() {
    use Warning::{AuthorizationFailed, ModelReplaced};
    let models = three();
    type Row = (
        &'static [(&'static str, bool)],
        Result<Vec<&'static str>, &'static str>,
        Result<(&'static str, Vec<Warning>), ()>,
        Result<(&'static str, Vec<Warning>), ()>,
    );
    let kept = || Ok(("a", vec![AuthorizationFailed]));
    let rows: Vec<Row> = vec![
        // 1. allowed
        (
            &[("a", true)],
            Err("unused"),
            Ok(("a", vec![])),
            Ok(("a", vec![])),
        ),
        // 2. cannot be told
        (&[], Ok(vec!["b"]), Err(()), kept()),
        // 3. denied, and the others cannot be told, or make no sense
        (&[("a", false)], Err("broken"), Err(()), kept()),
        (
            &[("a", false), ("zz", true)],
            Ok(vec!["zz"]),
            Err(()),
            kept(),
        ),
        // 4. the first that is allowed when asked again, the denied one passed over
        (
            &[("a", false), ("b", false), ("c", true)],
            Ok(vec!["a", "b", "c"]),
            Ok(("c", vec![ModelReplaced])),
            Ok(("c", vec![ModelReplaced])),
        ),
        (
            &[("a", false), ("b", true), ("c", true)],
            Ok(vec!["c", "b"]),
            Ok(("c", vec![ModelReplaced])),
            Ok(("c", vec![ModelReplaced])),
        ),
        // 5. cannot be told while looking
        (
            &[("a", false), ("c", true)],
            Ok(vec!["b", "c"]),
            Err(()),
            kept(),
        ),
        // 6. none
        (
            &[("a", false), ("b", false)],
            Ok(vec!["a", "b"]),
            Err(()),
            kept(),
        ),
        (&[("a", false)], Ok(vec![]), Err(()), kept()),
    ];
    for (verdicts, filter, closed, open) in rows {
        for (fail_closed, expected) in [(true, &closed), (false, &open)] {
            let access = told(verdicts, filter.clone(), fail_closed);
            let found = choose(&models, &wanted("a"), Some(&access));
            let found = found.map(|(choice, warnings)| (choice.name, codes(&warnings)));
            match (found, expected) {
                (Ok((name, warned)), Ok((chosen, warnings))) => assert_eq!(
                    (&*name, &warned),
                    (*chosen, warnings),
                    "{verdicts:?} {filter:?}"
                ),
                (Err(error), Err(())) => assert_eq!(error.code, ErrorCode::NotAuthorized),
                (found, _) => panic!("{verdicts:?} {filter:?} {fail_closed}: {found:?}"),
            }
        }
    }
}

/// TL-8.
#[test]
fn tools_are_filtered_in_their_order() {
    let names = ["c", "a", "b"];
    let (all, warnings) = filter_tools(None, &names);
    assert_eq!(
        (all, warnings.len()),
        (vec!["c".to_owned(), "a".into(), "b".into()], 0)
    );
    for (filter, fail_closed, kept, warned) in [
        (Ok(vec!["b", "c"]), true, vec!["c", "b"], 0),
        (Ok(vec![]), false, vec![], 0),
        (Err("broken"), true, vec![], 1),
        (Err("broken"), false, vec!["c", "a", "b"], 1),
        (Ok(vec!["c", "zz"]), true, vec![], 1),
        (Ok(vec!["c", "zz"]), false, vec!["c", "a", "b"], 1),
    ] {
        let access = told(&[], filter.clone(), fail_closed);
        let (found, warnings) = filter_tools(Some(&access), &names);
        assert_eq!(
            (found, warnings.len()),
            (kept.into_iter().map(str::to_owned).collect(), warned),
            "{filter:?}"
        );
    }
    // P7: an empty list is no tool at all.
    assert!(
        filter_tools(Some(&access(json!({"tools": {"allow": []}}))), &names)
            .0
            .is_empty()
    );
}

fn of_request(
    section: Value,
    lists: Option<Value>,
    request: Value,
) -> Result<Option<Access>, Error> {
    let app: AppConfig = from_value(json!({ "authorization": section })).unwrap();
    let lists: Option<AuthorizationLists> = lists.map(|lists| from_value(lists).unwrap());
    let (configurable, request) = (Map::new(), request.as_object().unwrap().clone());
    let sections = Sections::new(&configurable, &request);
    let selection = AgentSelection::new(sections, None)?;
    access_of_request(&app, lists.as_ref(), sections, &selection)
}

/// MD-4.
#[test]
fn roles_decide_and_unknown_ones_are_an_error() {
    let section = json!({"enabled": true, "provider": {"use": "rbac", "config": {"roles": {
        "user": {"tools": {"allow": ["a", "b"], "deny": ["b"]}},
        "admin": {},
        "nobody": {"tools": {"allow": []}, "models": {"allow": false}},
    }}}});
    let ask = |role: Value, resource, target| {
        let access = of_request(section.clone(), None, json!({ "user_role": role }))
            .unwrap()
            .unwrap();
        access
            .authorizer
            .authorize(&access.principal, resource, "use", target)
    };
    assert_eq!(ask(json!("user"), Resource::Tool, "a"), Ok(Verdict::Allow));
    assert!(
        matches!(
            ask(json!("user"), Resource::Tool, "b"),
            Ok(Verdict::Deny(_))
        ),
        "deny beats allow"
    );
    assert!(matches!(
        ask(json!("user"), Resource::Tool, "c"),
        Ok(Verdict::Deny(_))
    ));
    assert_eq!(
        ask(json!("user"), Resource::Model, "m"),
        Ok(Verdict::Allow),
        "no list, no restriction"
    );
    assert_eq!(ask(json!("admin"), Resource::Tool, "c"), Ok(Verdict::Allow));
    assert!(matches!(
        ask(json!("nobody"), Resource::Model, "m"),
        Ok(Verdict::Deny(_))
    ));
    for empty in [json!(null), json!("")] {
        assert_eq!(
            ask(empty, Resource::Tool, "a"),
            Ok(Verdict::Allow),
            "the default role"
        );
    }
    assert!(
        ask(json!("root"), Resource::Tool, "a").is_err(),
        "an unknown role is kept, and nobody knows it"
    );
    let access = of_request(section.clone(), None, json!({"user_role": "root"}))
        .unwrap()
        .unwrap();
    assert!(filter_tools(Some(&access), &["a"]).0.is_empty());
    let access = of_request(section, None, json!({})).unwrap().unwrap();
    assert_eq!(access.authorizer.name(), "rbac");
    assert_eq!(
        Value::Object(access.authorizer.policy()),
        json!({"default_role": "user", "roles": {
            "admin": {}, "nobody": {"models": {"allow": [], "deny": []}, "tools": {"allow": [], "deny": []}},
            "user": {"tools": {"allow": ["a", "b"], "deny": ["b"]}},
        }})
    );
}

/// An assembly can narrow what the application allows, and not widen it.
#[test]
fn lists_of_the_host_hold_besides_the_roles() {
    let section = json!({"enabled": true, "provider": {"use": "rbac", "config": {"roles": {"user": {"tools": {"allow": ["a", "b"]}}}}}});
    let both = of_request(
        section.clone(),
        Some(json!({"tools": {"allow": ["b", "c"]}})),
        json!({}),
    )
    .unwrap()
    .unwrap();
    assert_eq!(filter_tools(Some(&both), &["a", "b", "c"]).0, ["b"]);
    let ask = |name| {
        both.authorizer
            .authorize(&both.principal, Resource::Tool, "call", name)
    };
    assert_eq!(ask("b"), Ok(Verdict::Allow));
    assert!(matches!(ask("a"), Ok(Verdict::Deny(_))) && matches!(ask("c"), Ok(Verdict::Deny(_))));
    // A denial stands although the other cannot tell.
    let lost = of_request(
        section,
        Some(json!({"tools": {"deny": ["a"]}})),
        json!({"user_role": "x"}),
    )
    .unwrap()
    .unwrap();
    let ask = |name| {
        lost.authorizer
            .authorize(&lost.principal, Resource::Tool, "call", name)
    };
    assert!(matches!(ask("a"), Ok(Verdict::Deny(_))) && ask("b").is_err());
    // Lists hold without a section, and a section that is on needs somebody to ask.
    assert!(
        of_request(json!({}), Some(json!({})), json!({}))
            .unwrap()
            .is_some()
    );
    assert!(of_request(json!({}), None, json!({})).unwrap().is_none());
    assert!(
        of_request(
            json!({"enabled": false, "provider": {"use": "lists"}}),
            None,
            json!({})
        )
        .unwrap()
        .is_none()
    );
    let error = of_request(json!({"enabled": true}), None, json!({}))
        .err()
        .unwrap();
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::MissingMember, Some("/authorization/provider"))
    );
}

/// MD-3.
#[test]
fn the_principal_is_what_the_request_says() {
    let of = |context: Value| {
        let (configurable, context) = (Map::new(), context.as_object().unwrap().clone());
        let sections = Sections::new(&configurable, &context);
        let selection = AgentSelection::new(sections, None).unwrap();
        principal(sections, &selection, "user")
    };
    let attributes = json!({"team": "x"});
    assert_eq!(
        of(
            json!({"user_id": "u", "user_role": "strange", "oauth_provider": "p", "oauth_id": "o", "channel_user_id": "c",
            "is_internal": true, "authz_attributes": attributes})
        ),
        Ok(Principal {
            user_id: "u".into(),
            role: "strange".into(),
            oauth_provider: Some("p".into()),
            oauth_id: Some("o".into()),
            channel_user_id: Some("c".into()),
            is_internal: true,
            attributes: attributes.as_object().unwrap().clone(),
        })
    );
    let plain = Principal {
        user_id: "default".into(),
        role: "user".into(),
        ..Principal::default()
    };
    for context in [
        json!({}),
        json!({"user_role": "", "is_internal": 1, "authz_attributes": null}),
        json!({"is_internal": "true"}),
    ] {
        assert_eq!(of(context), Ok(plain.clone()));
    }
    let error = of(json!({"authz_attributes": ["x"]})).unwrap_err();
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::WrongType, Some("/context/authz_attributes"))
    );
}
