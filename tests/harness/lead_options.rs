//! Run options of a lead agent: each row of the table of options, with its precedence, default, bounds and bad values.

use fawn::agent::options::{InteractionMode, LeadOptions, SubagentLimits, recursion_limit};
use fawn::agent::sections::{Sections, is_truthy};
use fawn::agent::selection::AgentSelection;
use fawn::protocol::agent_record::{AgentRecord, ReasoningEffort};
use fawn::protocol::app_config::AppConfig;
use fawn::protocol::decode::from_value;
use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::trust::Identifier;
use fawn::protocol::user_id::UserId;
use fawn::protocol::warning::{Warning, Warnings};
use serde_json::{Map, Value, json};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn agent() -> AgentRecord {
    AgentRecord {
        model: Some("agents-model".into()),
        ..AgentRecord::named(Identifier::new("coder").unwrap())
    }
}

fn resolve(
    configurable: Value,
    context: Value,
    app: &AppConfig,
    agent: Option<&AgentRecord>,
) -> Result<(LeadOptions, Warnings), Error> {
    let (configurable, context) = (object(configurable), object(context));
    let sections = Sections::new(&configurable, &context);
    let selection = AgentSelection::new(sections, None)?;
    LeadOptions::resolve(sections, selection, SubagentLimits::of(app), agent)
}

/// The options, with the same members given in either section.
fn options(members: Value) -> LeadOptions {
    let app = AppConfig::default();
    let (left, none) = resolve(members.clone(), json!({}), &app, None).unwrap();
    let (right, _) = resolve(json!({}), members, &app, None).unwrap();
    assert_eq!((&left, none.len()), (&right, 0));
    left
}

/// The fault of the same members in either section, whose path has to say in which.
fn refused(members: Value) -> (ErrorCode, String) {
    let app = AppConfig::default();
    let left = resolve(members.clone(), json!({}), &app, None).expect_err(&members.to_string());
    let right = resolve(json!({}), members, &app, None).unwrap_err();
    let path = left.path.unwrap();
    let path = path.strip_prefix("/configurable").unwrap();
    assert_eq!(right.path.unwrap(), format!("/context{path}"));
    assert_eq!(left.code, right.code);
    (left.code, path.to_owned())
}

/// RC-2, RC-3: the defaults.
#[test]
fn nothing_asked_for_gives_the_defaults() {
    let options = options(json!({}));
    assert_eq!(
        options.selection,
        AgentSelection {
            agent_name: None,
            is_bootstrap: false,
            user_id: UserId::new("default")
        }
    );
    assert_eq!(
        (
            options.requested_model.as_ref(),
            options.wanted_model.as_ref()
        ),
        (None, None)
    );
    assert!(options.thinking_enabled && options.reasoning_effort.is_none());
    assert!(!options.is_plan_mode && !options.subagent_enabled && !options.non_interactive);
    assert_eq!(options.plan_mode, json!(false));
    assert_eq!(
        (
            options.max_concurrent_subagents,
            options.max_total_subagents
        ),
        (3, 6)
    );
    assert_eq!(
        (options.channel_name.as_ref(), options.interaction_mode),
        (None, InteractionMode::Interactive)
    );
    assert!(
        !options.disable_clarification
            && !options.withholds_clarification()
            && !options.is_webhook()
    );
    assert_eq!(options.secrets.names().count(), 0);
}

#[test]
fn truth_is_pythons() {
    for value in [
        json!(null),
        json!(false),
        json!(0),
        json!(0.0),
        json!(-0.0),
        json!(""),
        json!([]),
        json!({}),
    ] {
        assert!(!is_truthy(&value), "{value}");
    }
    for value in [
        json!(true),
        json!(1),
        json!(-0.1),
        json!("false"),
        json!(" "),
        json!([0]),
        json!({"a": null}),
    ] {
        assert!(is_truthy(&value), "{value}");
    }
    for value in [json!(true), json!(1), json!("no"), json!([0])] {
        let found = options(
            json!({"is_plan_mode": value, "subagent_enabled": value, "is_bootstrap": value, "non_interactive": value}),
        );
        assert!(
            found.is_plan_mode
                && found.subagent_enabled
                && found.selection.is_bootstrap
                && found.non_interactive
        );
        assert_eq!(found.plan_mode, value, "AD-21: as it was given");
    }
    for value in [json!(null), json!(0), json!(""), json!({})] {
        let found = options(
            json!({"is_plan_mode": value, "subagent_enabled": value, "is_bootstrap": value,
            "non_interactive": value, "thinking_enabled": value}),
        );
        assert!(
            !found.is_plan_mode
                && !found.subagent_enabled
                && !found.selection.is_bootstrap
                && !found.non_interactive
        );
        assert!(!found.thinking_enabled, "an explicit null is no");
    }
}

/// RC-1, RC-8: context wins member by member, and says so.
#[test]
fn context_is_laid_over_configurable() {
    let app = AppConfig::default();
    let (options, warnings) = resolve(
        json!({"model_name": "a", "is_plan_mode": true, "max_total_subagents": 9, "thinking_enabled": true}),
        json!({"model_name": "b", "max_total_subagents": null, "thinking_enabled": null}),
        &app,
        None,
    )
    .unwrap();
    assert_eq!(options.wanted_model.as_deref(), Some("b"));
    assert!(options.is_plan_mode && !options.thinking_enabled);
    assert_eq!(
        options.max_total_subagents, 6,
        "null in context hides the 9"
    );
    let codes: Vec<Warning> = warnings.iter().map(|(warning, _)| warning).collect();
    assert_eq!(codes, [Warning::ContextWins]);
}

/// Members that nobody here knows are somebody else's (RC-6), but for those that only look like it.
#[test]
fn names_that_are_nearly_options_are_told_of() {
    let told = |configurable: Value, context: Value| {
        let found = resolve(configurable, context, &AppConfig::default(), None);
        let (options, warnings) = found.unwrap();
        assert_eq!(options.max_total_subagents, 6);
        let told = warnings
            .iter()
            .filter(|(warning, _)| *warning == Warning::OptionMisspelt);
        told.map(|(_, text)| text.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        told(
            json!({"max_total_subagent": 3, "subagents_enabled": true, "tenant": "x", "thread_ids": []}),
            json!({}),
        ),
        [
            "/configurable/max_total_subagent is not looked at; did you mean \"max_total_subagents\"?",
            "/configurable/subagents_enabled is not looked at; did you mean \"subagent_enabled\"?",
            "/configurable/thread_ids is not looked at; did you mean \"thread_id\"?",
        ]
    );
    assert_eq!(
        told(json!({}), json!({"modell_name": "x"})),
        ["/context/modell_name is not looked at; did you mean \"model_name\"?"]
    );
    let strangers = json!({"checkpoint_ns": "", "__agent_name": "x", "mode": 1, "model": null, "x".repeat(1 << 16): 1});
    assert_eq!(told(strangers, json!({})), [""; 0]);
    let many: Map<String, Value> = ('a'..='z')
        .map(|letter| (format!("user_rol{letter}"), Value::Null))
        .collect();
    assert_eq!(told(many.into(), json!({})).len(), 10);
}

/// RC-6: members of the platform's own never come from outside.
#[test]
fn members_with_two_underscores_are_not_seen() {
    let found =
        options(json!({"__agent_name": "x", "__deerflow_checkpoint_channel_mode": "delta"}));
    assert_eq!(found, options(json!({})));
}

/// RC-2 for both options, RC-3 for the model.
#[test]
fn what_the_request_says_counts_before_what_the_agent_says() {
    let app = AppConfig::default();
    let mut agent = agent();
    agent.thinking_enabled = Some(false);
    agent.reasoning_effort = Some(ReasoningEffort::High);
    let of = |members: Value| resolve(members, json!({}), &app, Some(&agent)).unwrap().0;
    let silent = of(json!({}));
    assert_eq!(
        (silent.thinking_enabled, silent.reasoning_effort.as_deref()),
        (false, Some("high"))
    );
    assert_eq!(
        (
            silent.requested_model.as_ref(),
            silent.wanted_model.as_deref()
        ),
        (None, Some("agents-model"))
    );
    let said = of(json!({"thinking_enabled": true, "reasoning_effort": "xhigh", "model": "m"}));
    assert_eq!(
        (said.thinking_enabled, said.reasoning_effort.as_deref()),
        (true, Some("xhigh"))
    );
    assert_eq!(
        (
            said.requested_model.as_deref(),
            said.wanted_model.as_deref()
        ),
        (Some("m"), Some("m"))
    );
    let nulls = of(
        json!({"thinking_enabled": null, "reasoning_effort": null, "model_name": null, "model": ""}),
    );
    assert_eq!(
        (nulls.thinking_enabled, nulls.reasoning_effort.as_deref()),
        (false, None)
    );
    assert_eq!(
        nulls.wanted_model.as_deref(),
        Some("agents-model"),
        "an empty name is none"
    );
    let both = of(json!({"model_name": "first", "model": "second"}));
    assert_eq!(both.wanted_model.as_deref(), Some("first"));
    agent.model = Some(String::new());
    let (none, _) = resolve(json!({}), json!({}), &app, Some(&agent)).unwrap();
    assert_eq!(none.wanted_model, None);
}

/// RC-4, P7: an agent that may delegate to nobody does not delegate; null and absent say nothing.
#[test]
fn an_empty_list_of_subagents_forbids_delegation() {
    let app = AppConfig::default();
    let mut agent = agent();
    for (allowed, may) in [
        (None, true),
        (Some(vec![]), false),
        (Some(vec!["bash".to_owned()]), true),
    ] {
        agent.allowed_subagents = allowed;
        let (found, _) = resolve(
            json!({"subagent_enabled": true}),
            json!({}),
            &app,
            Some(&agent),
        )
        .unwrap();
        assert_eq!(found.subagent_enabled, may);
        let (found, _) = resolve(json!({}), json!({}), &app, Some(&agent)).unwrap();
        assert!(!found.subagent_enabled);
    }
}

/// The clamp of design.md: 1 to min(64, max_running); A-12.
#[test]
fn subagents_are_bounded() {
    for (running, asked, given) in [
        (3, json!(null), 3),
        (3, json!(2), 2),
        (3, json!(4), 3),
        (64, json!(100), 64),
        (64, json!(5), 5),
        (3, json!(0), 1),
        (3, json!(-7), 1),
        (8, json!(2.9), 2),
        (8, json!(true), 1),
        (8, json!("6"), 6),
        (8, json!(" +1_0 "), 8),
        (8, json!("-5"), 1),
        (8, json!(1e300), 8),
        (8, json!("99999999999999999999"), 8),
    ] {
        let app: AppConfig =
            from_value(json!({"subagent_runtime": {"max_running": running}})).unwrap();
        let (found, _) = resolve(
            json!({"max_concurrent_subagents": asked}),
            json!({}),
            &app,
            None,
        )
        .unwrap();
        assert_eq!(
            found.max_concurrent_subagents, given,
            "{asked} of {running}"
        );
    }
    let app: AppConfig = from_value(json!({"subagents": {"max_total_per_run": 12}})).unwrap();
    for (asked, given) in [
        (json!(null), 12),
        (json!(0), 1),
        (json!(51), 50),
        (json!("7"), 7),
        (json!(20), 20),
    ] {
        let (found, _) =
            resolve(json!({"max_total_subagents": asked}), json!({}), &app, None).unwrap();
        assert_eq!(found.max_total_subagents, given, "{asked}");
    }
    for name in ["max_concurrent_subagents", "max_total_subagents"] {
        for bad in [
            json!("many"),
            json!(""),
            json!("1.5"),
            json!("1__0"),
            json!("_1"),
            json!([1]),
            json!({}),
        ] {
            assert_eq!(
                refused(json!({ name: bad })),
                (ErrorCode::WrongType, format!("/{name}")),
                "{bad}"
            );
        }
    }
}

#[test]
fn text_options_are_text() {
    for name in [
        "model_name",
        "model",
        "reasoning_effort",
        "channel_name",
        "interaction_mode",
    ] {
        assert_eq!(
            refused(json!({ name: 5 })),
            (ErrorCode::WrongType, format!("/{name}"))
        );
    }
}

/// RC-8, CA-1.
#[test]
fn names_of_agents_are_checked_even_for_bootstrap() {
    for bad in ["", "a_b", "a b", "a/b", "../x", "ä", "a\n", &"a".repeat(65)] {
        let found = refused(json!({"agent_name": bad, "is_bootstrap": true}));
        assert_eq!(
            found,
            (ErrorCode::OutOfRange, "/agent_name".to_owned()),
            "{bad:?}"
        );
    }
    assert_eq!(refused(json!({"agent_name": 5})).0, ErrorCode::WrongType);
    let found = options(json!({"agent_name": "Code-Bot2"}));
    assert_eq!(found.selection.agent_name.unwrap().as_str(), "Code-Bot2");
    assert_eq!(
        options(json!({"agent_name": null})).selection.agent_name,
        None
    );
}

#[test]
fn an_assistant_is_an_agent_unless_it_is_the_lead() {
    let empty = Map::new();
    let named = object(json!({"agent_name": "explicit"}));
    let of = |id: &str, context: &Map<String, Value>| {
        let selection = AgentSelection::new(Sections::new(&empty, context), Some(id));
        selection.map(|selection| selection.agent_name.map(|name| name.as_str().to_owned()))
    };
    assert_eq!(of("lead_agent", &empty), Ok(None));
    assert_eq!(of("", &empty), Ok(None));
    assert_eq!(of("  My_Agent ", &empty), Ok(Some("my-agent".into())));
    assert_eq!(of("other", &named), Ok(Some("explicit".into())));
    let error = of("no good", &empty).unwrap_err();
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::OutOfRange, Some("/assistant_id"))
    );
}

/// RC-5, first part.
#[test]
fn the_user_is_whoever_the_platform_knows_first() {
    let user = |configurable: Value, context: Value| {
        let (configurable, context) = (object(configurable), object(context));
        AgentSelection::new(Sections::new(&configurable, &context), None)
            .map(|found| found.user_id.as_str().to_owned())
    };
    let all = json!({"langgraph_auth_user_id": "a", "langgraph_auth_user": {"identity": "b"}, "user_id": "d"});
    assert_eq!(user(all, json!({"user_id": "c"})).unwrap(), "a");
    let some = json!({"langgraph_auth_user_id": "", "langgraph_auth_user": {"identity": "b"}, "user_id": "d"});
    assert_eq!(user(some, json!({"user_id": "c"})).unwrap(), "b");
    assert_eq!(
        user(json!({"user_id": "d"}), json!({"user_id": "c"})).unwrap(),
        "c"
    );
    assert_eq!(
        user(json!({"user_id": "d"}), json!({"user_id": null})).unwrap(),
        "d"
    );
    // The platform's word does not come through the context.
    assert_eq!(
        user(json!({}), json!({"langgraph_auth_user_id": "a"})).unwrap(),
        "default"
    );
    let changed = user(json!({"langgraph_auth_user_id": "../root"}), json!({})).unwrap();
    assert_eq!(changed, UserId::new("../root").as_str());
    for (context, code) in [
        (json!({"user_id": "../root"}), ErrorCode::OutOfRange),
        (json!({"user_id": 5}), ErrorCode::WrongType),
    ] {
        let error = user(json!({}), context).unwrap_err();
        assert_eq!(
            (error.code, error.path.as_deref()),
            (code, Some("/context/user_id"))
        );
    }
}

#[test]
fn unsafe_users_never_share_a_directory() {
    assert_eq!(UserId::new("Ann_1-x").as_str(), "Ann_1-x");
    // sha256 of "a/b", the first 16 digits: as the reference has it.
    assert_eq!(UserId::new("a/b").as_str(), "a-b-c14cddc033f64b9d");
    assert_ne!(UserId::new("a/b").as_str(), UserId::new("a.b").as_str());
    assert!(!UserId::new("").as_str().is_empty());
}

/// [N2]: how a request is answered.
#[test]
fn the_mode_of_interaction_is_said_or_follows() {
    use InteractionMode::{Autonomous, Interactive, Scheduled, Webhook};
    let app = AppConfig::default();
    for (context, mode, withheld) in [
        (json!({}), Interactive, false),
        (
            json!({"non_interactive": true, "channel_name": "github", "disable_clarification": true}),
            Scheduled,
            true,
        ),
        (
            json!({"channel_name": "github", "disable_clarification": true}),
            Webhook,
            true,
        ),
        (
            json!({"channel_name": "slack", "disable_clarification": 1}),
            Autonomous,
            true,
        ),
        (
            json!({"interaction_mode": null, "channel_name": "github"}),
            Webhook,
            true,
        ),
        (
            json!({"interaction_mode": "interactive", "channel_name": "github"}),
            Interactive,
            false,
        ),
        (
            json!({"interaction_mode": "interactive", "non_interactive": true}),
            Interactive,
            true,
        ),
        (json!({"interaction_mode": "autonomous"}), Autonomous, true),
        (json!({"interaction_mode": "webhook"}), Webhook, true),
        (json!({"interaction_mode": "scheduled"}), Scheduled, true),
    ] {
        let (found, _) = resolve(json!({}), context.clone(), &app, None).unwrap();
        assert_eq!(
            (found.interaction_mode, found.withholds_clarification()),
            (mode, withheld),
            "{context}"
        );
        assert_eq!(found.is_webhook(), context["channel_name"] == "github");
    }
    let error = resolve(json!({}), json!({"interaction_mode": "loud"}), &app, None).unwrap_err();
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::UnknownVariant, Some("/context/interaction_mode"))
    );
    assert!(
        error
            .message
            .contains("interactive, autonomous, webhook, scheduled")
    );
}

#[test]
fn disable_clarification_is_of_the_context_alone() {
    let app = AppConfig::default();
    let (found, _) = resolve(
        json!({"disable_clarification": true}),
        json!({}),
        &app,
        None,
    )
    .unwrap();
    assert!(!found.disable_clarification && !found.withholds_clarification());
    let (found, _) = resolve(json!({}), json!({"disable_clarification": "x"}), &app, None).unwrap();
    assert!(found.disable_clarification);
}

#[test]
fn secrets_are_text_by_name_and_are_not_shown() {
    let app = AppConfig::default();
    let (found, _) = resolve(
        json!({"secrets": {"A": "lost"}}),
        json!({"secrets": {"B": "$canary"}}),
        &app,
        None,
    )
    .unwrap();
    assert_eq!(
        (found.secrets.expose("A"), found.secrets.expose("B")),
        (None, Some("$canary"))
    );
    assert!(!format!("{found:?}").contains("canary"));
    for (secrets, path) in [
        (json!("canary"), "/context/secrets"),
        (json!({"a/b": {"canary": 1}}), "/context/secrets/a~1b"),
    ] {
        let error = resolve(json!({}), json!({ "secrets": secrets }), &app, None).unwrap_err();
        assert_eq!(
            (error.code, error.path.as_deref()),
            (ErrorCode::WrongType, Some(path))
        );
        assert!(!error.message.contains("canary"));
    }
    assert!(resolve(json!({}), json!({"secrets": null}), &app, None).is_ok());
}

/// RC-7.
#[test]
fn steps_are_bounded_and_nonsense_is_the_default() {
    let app = AppConfig::default();
    for bad in [
        json!(null),
        json!(true),
        json!("50"),
        json!(0),
        json!(-5),
        json!(50.0),
        json!([]),
    ] {
        assert_eq!(recursion_limit(Some(&bad), &app), 100, "{bad}");
    }
    assert_eq!(recursion_limit(None, &app), 100);
    assert_eq!(recursion_limit(Some(&json!(250)), &app), 250);
    assert_eq!(recursion_limit(Some(&json!(5_000_000_000u64)), &app), 1000);
    let app: AppConfig = from_value(json!({"max_recursion_limit": 40})).unwrap();
    assert_eq!(recursion_limit(None, &app), 40);
}

/// EP-15.
#[test]
fn the_record_of_a_run_says_what_was_settled() {
    let app = AppConfig::default();
    let mut agent = agent();
    agent.skills = Some(vec!["b".into(), "a".into()]);
    agent.tool_groups = Some(vec![]);
    agent.allowed_subagents = Some(vec![]);
    agent.memory_enabled = false;
    let asked = json!({"agent_name": "coder", "is_plan_mode": 1, "subagent_enabled": true, "reasoning_effort": "low"});
    let (found, _) = resolve(asked, json!({}), &app, Some(&agent)).unwrap();
    assert_eq!(
        Value::Object(found.run_metadata(Some(&agent), "m", false)),
        json!({
            "agent_name": "coder", "model_name": "m", "thinking_enabled": false, "reasoning_effort": "low",
            "is_plan_mode": true, "subagent_enabled": false, "tool_groups": [], "available_skills": ["a", "b"],
            "allowed_subagents": [], "memory_enabled": false,
        })
    );
    let lead = options(json!({})).run_metadata(None, "m", true);
    assert_eq!(
        (&lead["agent_name"], &lead["tool_groups"]),
        (&json!("default"), &json!(null))
    );
    assert_eq!(
        (&lead["available_skills"], &lead["allowed_subagents"]),
        (&json!(null), &json!(null))
    );
    let bootstrap = options(json!({"is_bootstrap": true})).run_metadata(None, "m", true);
    assert_eq!(bootstrap["available_skills"], json!(["bootstrap"]));
}
