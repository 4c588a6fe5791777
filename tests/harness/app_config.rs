//! The sections of the configuration: what is taken, with which defaults, and what is refused by name and path.

use fawn::protocol::app_config::{
    AppConfig, AuthorizationProviderConfig, ConfiguredTool, Feature, MemoryMode,
};
use fawn::protocol::config::{ModelConfig, RuntimeConfig};
use fawn::protocol::decode::from_value;
use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::named_model::NamedModel;
use serde_json::{Value, json};

const DEERFLOW: &str = include_str!("../../include/schema/examples/runtime_config/deerflow.json");

fn app(value: Value) -> Result<AppConfig, Error> {
    let config: AppConfig = from_value(value)?;
    config.validate()?;
    Ok(config)
}

fn runtime(value: &Value) -> Result<RuntimeConfig, Error> {
    RuntimeConfig::read(&value.to_string(), &|_| None).map(|(config, _)| config)
}

/// The code and path of what refuses a value, the same through a runtime's configuration and through the sections alone.
fn refused(value: Value) -> (ErrorCode, String) {
    let alone = app(value.clone()).expect_err(&value.to_string());
    let whole = runtime(&value).expect_err(&value.to_string());
    assert_eq!(
        (whole.code, whole.path, whole.message),
        (alone.code, alone.path.clone(), alone.message)
    );
    (alone.code, alone.path.unwrap())
}

#[test]
fn a_whole_configuration_of_deerflow_is_read() {
    let (config, _) = RuntimeConfig::read(DEERFLOW, &|_| None).unwrap();
    let app = &config.app;
    let names: Vec<&str> = app.models.iter().map(|model| &*model.name).collect();
    assert_eq!(names, ["gpt", "doubao", "claude", "local"]);
    assert_eq!(app.models[0].metadata.context_window, Some(128_000));
    assert_eq!(app.home.as_deref(), Some("/srv/agents"));
    assert_eq!(app.max_recursion_limit, Some(500));
    assert_eq!(app.subagent_runtime.max_running, 8);
    assert_eq!(app.subagents.custom_agents["analysis"].max_turns, 80);
    let disallowed = app.subagents.custom_agents["analysis"]
        .disallowed_tools
        .clone();
    assert_eq!(
        disallowed.unwrap(),
        ["task", "ask_clarification", "present_files"]
    );
    assert_eq!(app.subagents.agents["bash"].skills, Some(Vec::new()));
    assert!(app.skills.deferred_discovery);
    assert_eq!(app.extensions.skill_switch("old"), Some(false));
    assert_eq!(app.extensions.skill_switch("new"), None);
    assert_eq!(app.summarization.trim_tokens_to_summarize, None);
    assert_eq!(app.summarization.trigger.len(), 2);
    let ConfiguredTool::Class(search) = &app.tools[0] else {
        panic!("a tool by class")
    };
    assert_eq!(search.settings.0["max_results"], 5);
    assert_eq!(app.tools[1].group(), Some("web"));
    let Some(AuthorizationProviderConfig::Roles(roles)) = &app.authorization.provider else {
        panic!("roles")
    };
    assert_eq!(roles.len(), 3);
}

/// What DeerFlow has where a section is not there, and where it is there and null.
#[test]
fn absent_and_null_sections_have_their_defaults() {
    let nulls: serde_json::Map<String, Value> = AppConfig::SECTIONS
        .iter()
        .chain(&["config_version", "channels", "auth", "database", "workers"])
        .map(|name| ((*name).to_owned(), Value::Null))
        .collect();
    for config in [json!({}), Value::Object(nulls)] {
        let config = runtime(&config).unwrap().app;
        assert!(config.models.is_empty() && config.tools.is_empty());
        assert_eq!(config.skills.container_path.as_str(), "/mnt/skills");
        assert_eq!(
            (config.memory.enabled, config.memory.mode),
            (true, MemoryMode::Middleware)
        );
        assert!(!config.memory.has_tools());
        assert_eq!(config.subagents.max_total_per_run, 6);
        assert_eq!(config.subagents.timeout_seconds, 1_800);
        assert_eq!(config.subagent_runtime.max_running, 3);
        assert_eq!(config.tool_search.promoted_at_once(), 3);
        assert!(!config.authorization.enabled && config.authorization.fail_closed);
        assert_eq!(config.authorization.default_role, "user");
        assert!(!config.skill_evolution.enabled && config.skill_evolution.security_fail_closed);
        // On or off where nothing is said, as in DeerFlow.
        assert!(config.title.is_enabled() && config.loop_detection.is_enabled());
        assert!(config.token_usage.is_enabled() && config.tool_output.is_enabled());
        assert!(config.read_before_write.is_enabled() && config.safety_finish_reason.is_enabled());
        assert!(!config.summarization.is_enabled() && !config.token_budget.is_enabled());
        assert!(!config.tool_progress.is_enabled() && !config.guardrails.is_enabled());
        assert_eq!(config.summarization.trim_tokens_to_summarize, Some(4_000));
        assert_eq!((config.title.max_words, config.title.max_chars), (6, 60));
        assert_eq!(
            (
                config.loop_detection.warn_threshold,
                config.loop_detection.hard_limit
            ),
            (3, 5)
        );
        assert_eq!(config.llm_call.retry_max_attempts, 3);
        assert_eq!(config.circuit_breaker.failure_threshold, 5);
    }
}

/// MC-6: a subagent's tokens depend on summaries unless somebody says.
#[test]
fn the_tokens_of_a_subagent_follow_the_nearest_word() {
    let config =
        app(json!({"subagents": {"agents": {"own": {"token_budget": {"max_tokens": 5_000}}}}}));
    let config = config.unwrap().subagents;
    assert_eq!(config.token_budget_of("own", true).max_tokens, 5_000);
    let default = config.token_budget_of("other", true);
    assert_eq!(
        (default.max_tokens, default.warn_threshold),
        (1_000_000, 0.7)
    );
    assert!(default.is_enabled());
    assert_eq!(config.token_budget_of("other", false).max_tokens, 2_000_000);
}

#[test]
fn what_is_switched_on_and_not_there_is_refused_by_its_path() {
    for (value, path) in [
        (
            json!({"guardrails": {"enabled": true, "provider": {"use": "a:B"}}}),
            "/guardrails/provider/use",
        ),
        (
            json!({"sandbox": {"use": "deerflow.sandbox.local:LocalSandboxProvider"}}),
            "/sandbox/use",
        ),
        (
            json!({"sandbox": {"allow_host_bash": true}}),
            "/sandbox/allow_host_bash",
        ),
        (json!({"sandbox": {"image": "x"}}), "/sandbox/image"),
        (
            json!({"sandbox": {"environment": {"A": "b"}}}),
            "/sandbox/environment/A",
        ),
        (
            json!({"sandbox": {"mounts": [{"host_path": "/a", "container_path": "/b"}]}}),
            "/sandbox/mounts",
        ),
        (
            json!({"acp_agents": {"codex": {"command": "npx"}}}),
            "/acp_agents/codex",
        ),
        (json!({"acp_agents": {"codex": null}}), "/acp_agents/codex"),
        (
            json!({"extensions": {"mcpServers": {"a/b": {"command": "npx"}}}}),
            "/extensions/mcpServers/a~1b",
        ),
        (
            json!({"extensions": {"middlewares": ["a:B"]}}),
            "/extensions/middlewares",
        ),
        (json!({"skills": {"use": "my:Storage"}}), "/skills/use"),
        (
            json!({"memory": {"manager_class": "mem0"}}),
            "/memory/manager_class",
        ),
        (
            json!({"uploads": {"auto_convert_documents": true}}),
            "/uploads/auto_convert_documents",
        ),
        (
            json!({"authorization": {"provider": {"use": "my:Authz"}}}),
            "/authorization/provider/use",
        ),
        (
            json!({"authorization": {"provider": {"use": "rbac", "config": {"roles": {"a": {"skills": {}}}}}}}),
            "/authorization/provider/config/roles/a/skills",
        ),
        (
            json!({"subagent_batches": {"enabled": true}}),
            "/subagent_batches/enabled",
        ),
        (
            json!({"suggestions": {"enabled": true}}),
            "/suggestions/enabled",
        ),
        (
            json!({"suggestions": {"enabled": "yes"}}),
            "/suggestions/enabled",
        ),
        (json!({"scheduler": true}), "/scheduler"),
        (
            json!({"logging": {"enhance": {"enabled": true}}}),
            "/logging/enhance/enabled",
        ),
        (
            json!({"channels": {"slack": {"enabled": true}}}),
            "/channels/slack/enabled",
        ),
        (
            json!({"auth": {"oidc": {"enabled": true}}}),
            "/auth/oidc/enabled",
        ),
        (
            json!({"run_events": {"backend": "db"}}),
            "/run_events/backend",
        ),
        (
            json!({"agent_storage": {"backend": "db"}}),
            "/agent_storage/backend",
        ),
        (
            json!({"stream_bridge": {"type": "redis"}}),
            "/stream_bridge/type",
        ),
        (
            json!({"run_ownership": {"heartbeat_enabled": true}}),
            "/run_ownership/heartbeat_enabled",
        ),
        (json!({"checkpointer": {"type": "sqlite"}}), "/checkpointer"),
        (
            json!({"models": [{"name": "m", "use": "langchain_google_genai:ChatGoogleGenerativeAI"}]}),
            "/models/0/use",
        ),
    ] {
        let found = refused(value.clone());
        assert_eq!(found, (ErrorCode::Unsupported, path.to_owned()), "{value}");
    }
    for (value, path) in [
        (
            json!({"checkpoint_channel_mode": "delta"}),
            "/database/checkpoint_channel_mode",
        ),
        (
            json!({"postgres_url": "postgresql://u:sk-1@h"}),
            "/database/postgres_url",
        ),
        (json!({"backend": "postgres"}), "/database/backend"),
    ] {
        let error = runtime(&json!({ "database": value })).unwrap_err();
        assert_eq!(
            (error.code, error.path.as_deref()),
            (ErrorCode::Unsupported, Some(path))
        );
        assert!(!error.message.contains("sk-1"));
    }
}

#[test]
fn what_does_not_fit_is_refused_by_its_path() {
    use ErrorCode::{
        Conflict, MissingMember, OutOfRange, UnknownMember, UnknownVariant, WrongType,
    };
    for (value, code, path) in [
        (json!({"modells": []}), UnknownMember, "/modells"),
        (
            json!({"memory": {"max_facts": 5}}),
            UnknownMember,
            "/memory/max_facts",
        ),
        (json!({"title": []}), WrongType, "/title"),
        (
            json!({"max_recursion_limit": 0}),
            OutOfRange,
            "/max_recursion_limit",
        ),
        (
            json!({"max_recursion_limit": 1001}),
            OutOfRange,
            "/max_recursion_limit",
        ),
        (json!({"home": " "}), OutOfRange, "/home"),
        (
            json!({"tool_search": {"auto_promote_top_k": true}}),
            WrongType,
            "/tool_search/auto_promote_top_k",
        ),
        (
            json!({"tools": [{"name": "a b"}]}),
            OutOfRange,
            "/tools/0/name",
        ),
        (
            json!({"tools": [{"name": "a", "max_results": 5}]}),
            UnknownMember,
            "/tools/0/max_results",
        ),
        (
            json!({"tools": [{"use": "a:b"}]}),
            MissingMember,
            "/tools/0/name",
        ),
        (
            json!({"tool_groups": [{"name": "a"}, {"name": ""}]}),
            OutOfRange,
            "/tool_groups/1/name",
        ),
        (
            json!({"tool_output": {"enabled": false, "storage_subdir": "a/b"}}),
            OutOfRange,
            "/tool_output/storage_subdir",
        ),
        (
            json!({"skills": {"container_path": "mnt"}}),
            OutOfRange,
            "/skills/container_path",
        ),
        (json!({"skills": {"path": ""}}), OutOfRange, "/skills/path"),
        (
            json!({"memory": {"mode": "both"}}),
            UnknownVariant,
            "/memory/mode",
        ),
        (
            json!({"memory": {"shutdown_flush_timeout_seconds": 0.5}}),
            OutOfRange,
            "/memory/shutdown_flush_timeout_seconds",
        ),
        (
            json!({"subagents": {"max_total_per_run": 51}}),
            OutOfRange,
            "/subagents/max_total_per_run",
        ),
        (
            json!({"subagents": {"timeout_seconds": 0}}),
            OutOfRange,
            "/subagents/timeout_seconds",
        ),
        (
            json!({"subagents": {"agents": {"a": {"max_turns": 0}}}}),
            OutOfRange,
            "/subagents/agents/a/max_turns",
        ),
        (
            json!({"subagents": {"agents": {"a": {"model": ""}}}}),
            OutOfRange,
            "/subagents/agents/a/model",
        ),
        (
            json!({"subagents": {"custom_agents": {"a": {"description": "d"}}}}),
            MissingMember,
            "/subagents/custom_agents/a/system_prompt",
        ),
        (
            json!({"subagent_runtime": {"max_running": 0}}),
            OutOfRange,
            "/subagent_runtime/max_running",
        ),
        (
            json!({"subagent_runtime": {"max_queued": 10_001}}),
            OutOfRange,
            "/subagent_runtime/max_queued",
        ),
        (
            json!({"subagent_runtime": {"queue_timeout_seconds": 86_401}}),
            OutOfRange,
            "/subagent_runtime/queue_timeout_seconds",
        ),
        (
            json!({"subagent_runtime": {"admission_policy": "drop"}}),
            UnknownVariant,
            "/subagent_runtime/admission_policy",
        ),
        (
            json!({"summarization": {"trigger": {"type": "fraction", "value": 1.5}}}),
            OutOfRange,
            "/summarization/trigger/value",
        ),
        (
            json!({"summarization": {"keep": {"type": "tokens", "value": 0}}}),
            OutOfRange,
            "/summarization/keep/value",
        ),
        (
            json!({"title": {"enabled": false, "max_words": 21}}),
            OutOfRange,
            "/title/max_words",
        ),
        (
            json!({"title": {"enabled": false, "max_chars": 9}}),
            OutOfRange,
            "/title/max_chars",
        ),
        (
            json!({"token_budget": {"max_tokens": 999}}),
            OutOfRange,
            "/token_budget/max_tokens",
        ),
        (
            json!({"token_budget": {"hard_stop_threshold": 0.5}}),
            Conflict,
            "/token_budget/hard_stop_threshold",
        ),
        (
            json!({"loop_detection": {"hard_limit": 2}}),
            Conflict,
            "/loop_detection/hard_limit",
        ),
        (
            json!({"loop_detection": {"tool_freq_overrides": {"a": {"warn": 3, "hard_limit": 2}}}}),
            Conflict,
            "/loop_detection/tool_freq_overrides/a/hard_limit",
        ),
        (
            json!({"safety_finish_reason": {"detectors": []}}),
            OutOfRange,
            "/safety_finish_reason/detectors",
        ),
        (
            json!({"llm_call": {"retry_max_attempts": 0}}),
            OutOfRange,
            "/llm_call/retry_max_attempts",
        ),
        (
            json!({"llm_call": {"burst_retry_base_delay_ms": 86_400_001}}),
            OutOfRange,
            "/llm_call/burst_retry_base_delay_ms",
        ),
        (
            json!({"circuit_breaker": {"failure_threshold": 0}}),
            OutOfRange,
            "/circuit_breaker/failure_threshold",
        ),
        (
            json!({"authorization": {"default_role": ""}}),
            OutOfRange,
            "/authorization/default_role",
        ),
        (
            json!({"models": [{"name": "a", "provider": "host"}, {"name": "a", "provider": "host"}]}),
            Conflict,
            "/models/1/name",
        ),
        (
            json!({"models": [{"name": "a", "provider": "host", "context_window": 0}]}),
            OutOfRange,
            "/models/0/context_window",
        ),
        (
            json!({"models": [{"name": "a", "provider": "host", "fallbacks": ["b"]}]}),
            ErrorCode::UnknownModel,
            "/models/0/fallbacks/0",
        ),
    ] {
        let found = refused(value.clone());
        assert_eq!(found, (code, path.to_owned()), "{value}");
    }
    // The hints know the members of both.
    for (name, near) in [
        ("worker", "workers"),
        ("modles", "models"),
        ("log_levl", "log_level"),
    ] {
        let error = runtime(&json!({ name: 1 })).unwrap_err();
        assert!(
            error.message.contains(&format!("{near:?}")),
            "{}",
            error.message
        );
    }
    assert!(app(json!({"x-note": 1, "skills": {"x-note": 2}})).is_ok());
}

/// MD-4, P7: an empty list allows nothing, and what nobody can mean is refused.
#[test]
fn policies_of_roles_are_read_strictly() {
    let of = |policy: Value| {
        app(
            json!({"authorization": {"enabled": true, "provider": {"use": "rbac", "config": {"roles": {"user": {"tools": policy}}}}}}),
        )
    };
    for (policy, allows) in [
        (json!({}), true),
        (json!({"allow": "*"}), true),
        (json!({"allow": true}), true),
        (json!({"allow": false}), false),
        (json!({"allow": []}), false),
        (json!({"allow": ["a"]}), true),
        (json!({"allow": ["A"]}), false),
        (json!({"allow": ["a"], "deny": ["a"]}), false),
        (json!({"deny": ["a"]}), false),
    ] {
        let config = of(policy.clone()).unwrap();
        let Some(AuthorizationProviderConfig::Roles(roles)) = config.authorization.provider else {
            panic!("roles")
        };
        let tools = roles["user"].tools.as_ref().unwrap();
        assert_eq!(tools.allows("a"), allows, "{policy}");
    }
    for (policy, code, path) in [
        (json!({"allow": null}), ErrorCode::WrongType, "/allow"),
        (json!({"deny": null}), ErrorCode::WrongType, "/deny"),
        (json!({"allow": "a"}), ErrorCode::WrongType, "/allow"),
        (json!({"allow": ["a", 1]}), ErrorCode::WrongType, "/allow/1"),
        (json!({"allow": [""]}), ErrorCode::OutOfRange, "/allow/0"),
        (json!({"alow": ["a"]}), ErrorCode::UnknownMember, "/alow"),
    ] {
        let error = of(policy.clone()).unwrap_err();
        let at = format!("/authorization/provider/config/roles/user/tools{path}");
        assert_eq!((error.code, error.path), (code, Some(at)), "{policy}");
    }
    let error = app(
        json!({"authorization": {"enabled": true, "default_role": "guest",
        "provider": {"use": "rbac", "config": {"roles": {"user": {}}}}}}),
    );
    assert_eq!(
        error.unwrap_err().path.unwrap(),
        "/authorization/default_role"
    );
}

fn model(members: Value) -> Result<NamedModel, Error> {
    let mut whole = json!({"name": "n", "model": "m"});
    whole
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    let model: NamedModel = from_value(whole)?;
    model.validate()?;
    Ok(model)
}

/// The settings of a model given by class, those that are set.
fn settings(members: Value) -> Value {
    let model = model(members).unwrap();
    let mut settings = match &model.model.config {
        ModelConfig::Openai(config) => json!(config),
        ModelConfig::Anthropic(config) => json!(config),
        other => panic!("{other:?}"),
    };
    let members = settings.as_object_mut().unwrap();
    members.retain(|_, value| !value.is_null() && *value != json!({}) && *value != json!([]));
    for name in ["model", "auth", "stream", "timeout_ms", "api_version"] {
        if members.get(name) != Some(&json!(false)) {
            members.remove(name);
        }
    }
    settings
}

/// MD-6, MD-9: the members of a class become those of our providers.
#[test]
fn models_by_class_become_models_of_ours() {
    assert_eq!(
        settings(json!({
            "use": "langchain_openai:ChatOpenAI", "api_base": "http://h/v1", "request_timeout": 2.5, "max_tokens": 9,
            "temperature": 0.7, "default_headers": {"x-a": "$A"}, "organization": "$ORG", "model_kwargs": {"user": "u"},
            "frequency_penalty": 1, "stream_usage": false, "streaming": false, "top_p": null, "use_responses_api": false,
        })),
        json!({
            "base_url": "http://h/v1", "api_key": "$OPENAI_API_KEY", "headers": {"OpenAI-Organization": "$ORG", "x-a": "$A"},
            "stream": false, "connect_timeout_ms": 2500, "first_byte_timeout_ms": 2500, "between_bytes_timeout_ms": 2500,
            "temperature": 0.7, "max_completion_tokens": 9, "replay_reasoning": false,
            "extra_body": {"user": "u", "frequency_penalty": 1, "stream_options": null},
        })
    );
    assert_eq!(
        settings(
            json!({"use": "deerflow.models.patched_deepseek:PatchedChatDeepSeek", "max_tokens": 9, "api_key": "sk-1"})
        ),
        json!({
            "base_url": "https://api.deepseek.com/v1", "api_key": "[secret]", "connect_timeout_ms": 10_000,
            "first_byte_timeout_ms": 600_000, "between_bytes_timeout_ms": 240_000, "max_tokens": 9, "replay_reasoning": true,
        })
    );
    let chunk = |timeout: Value| {
        settings(json!({"use": "langchain_xai:ChatXAI", "stream_chunk_timeout": timeout}))
            ["between_bytes_timeout_ms"].clone()
    };
    assert_eq!(
        (chunk(json!(9)), chunk(json!(0))),
        (json!(9_000), json!(600_000))
    );
    assert_eq!(
        settings(json!({
            "use": "langchain_anthropic:ChatAnthropic", "model_name": null, "anthropic_api_url": "http://h",
            "default_request_timeout": 600, "max_tokens_to_sample": 9, "betas": ["a", "b"], "stop": ["x"], "effort": "low",
            "thinking": {"type": "enabled", "budget_tokens": 5},
        })),
        json!({
            "base_url": "http://h", "api_key": "$ANTHROPIC_API_KEY", "headers": {"anthropic-beta": "[secret]"},
            "connect_timeout_ms": 10_000, "first_byte_timeout_ms": 600_000, "between_bytes_timeout_ms": 600_000,
            "max_tokens": 9, "stop_sequences": ["x"], "thinking": {"type": "enabled", "budget_tokens": 5},
            "reasoning_effort": "low",
        })
    );
    let claude = model(
        json!({"use": "deerflow.models.claude_provider:ClaudeChatModel", "max_tokens": 1000,
        "retry_max_attempts": 4, "thinking": {"type": "enabled"}, "enable_prompt_caching": false}),
    );
    let claude = claude.unwrap();
    assert_eq!(claude.model.retry.max_retries, Some(3));
    let ModelConfig::Anthropic(config) = claude.model.config else {
        panic!("anthropic")
    };
    assert_eq!(
        json!(config.thinking),
        json!({"type": "enabled", "budget_tokens": 800})
    );
    let minimax = settings(json!({"use": "deerflow.models.patched_minimax:PatchedChatMiniMax"}));
    assert_eq!(minimax["extra_body"], json!({"reasoning_split": true}));
}

#[test]
fn a_model_by_class_keeps_its_class_and_our_members() {
    let found = model(
        json!({"use": "langchain_groq:ChatGroq", "base_url": "http://a/v1", "api_base": "http://b/v1",
        "fallbacks": [{"provider": "host"}], "retry_after_partial": true, "x-note": 1}),
    );
    let found = found.unwrap();
    let class = found.class.unwrap();
    assert_eq!(class.class, "langchain_groq:ChatGroq");
    assert_eq!(class.void_members, ["api_base"]);
    assert_eq!(found.model.retry.retry_after_partial, Some(true));
    assert_eq!(found.model.fallbacks.len(), 1);
    let ModelConfig::Openai(config) = found.model.config else {
        panic!("openai")
    };
    assert_eq!(config.base_url.expose(), "http://a/v1");
}

#[test]
fn what_a_class_cannot_have_is_refused_where_it_was_written() {
    use ErrorCode::{Conflict, MissingMember, OutOfRange, UnknownMember, Unsupported, WrongType};
    const OPENAI: &str = "langchain_openai:ChatOpenAI";
    const CLAUDE: &str = "deerflow.models.claude_provider:ClaudeChatModel";
    for (class, members, code, path) in [
        (OPENAI, json!({"n": 2}), UnknownMember, "/n"),
        (
            OPENAI,
            json!({"thinking": {"type": "enabled"}}),
            UnknownMember,
            "/thinking",
        ),
        (
            OPENAI,
            json!({"use_responses_api": true}),
            Unsupported,
            "/use_responses_api",
        ),
        (
            OPENAI,
            json!({"output_version": "responses/v1"}),
            Unsupported,
            "/output_version",
        ),
        (
            OPENAI,
            json!({"api_base": "ftp://h"}),
            OutOfRange,
            "/api_base",
        ),
        (
            OPENAI,
            json!({"openai_api_base": 5}),
            WrongType,
            "/openai_api_base",
        ),
        (OPENAI, json!({"timeout": "1"}), WrongType, "/timeout"),
        (OPENAI, json!({"timeout": -1}), OutOfRange, "/timeout"),
        (
            OPENAI,
            json!({"timeout": 1, "request_timeout": 1}),
            Conflict,
            "/request_timeout",
        ),
        (OPENAI, json!({"model_name": "m"}), Conflict, "/model_name"),
        (OPENAI, json!({"max_tokens": 0}), OutOfRange, "/max_tokens"),
        (
            OPENAI,
            json!({"default_headers": {"Host": "x"}}),
            Conflict,
            "/default_headers/Host",
        ),
        (
            OPENAI,
            json!({"model_kwargs": {"messages": []}}),
            Conflict,
            "/model_kwargs/messages",
        ),
        (
            OPENAI,
            json!({"model_kwargs": {"a": 1}, "extra_body": {"a": 2}}),
            Conflict,
            "/extra_body",
        ),
        (OPENAI, json!({"provider": "openai"}), Conflict, "/provider"),
        (
            OPENAI,
            json!({"when_thinking_enabled": {"max_tokens": "x"}}),
            WrongType,
            "/when_thinking_enabled/max_tokens",
        ),
        (OPENAI, json!({"model": null}), MissingMember, "/model"),
        (
            CLAUDE,
            json!({"enable_prompt_caching": true}),
            Unsupported,
            "/enable_prompt_caching",
        ),
        (
            CLAUDE,
            json!({"retry_max_attempts": 0}),
            OutOfRange,
            "/retry_max_attempts",
        ),
        (
            "langchain_anthropic:ChatAnthropic",
            json!({"retry_max_attempts": 2}),
            UnknownMember,
            "/retry_max_attempts",
        ),
        (
            "deerflow.models.openai_codex_provider:CodexChatModel",
            json!({}),
            Unsupported,
            "/use",
        ),
    ] {
        let mut members = members;
        members["use"] = class.into();
        let error = model(members.clone()).expect_err(&members.to_string());
        assert_eq!(
            (error.code, error.path.as_deref()),
            (code, Some(path)),
            "{members}"
        );
    }
}

/// The value of a variable may be a secret, wherever it was put.
#[test]
fn references_resolve_and_their_values_stay_out_of_errors() {
    let lookup = |name: &str| (name == "CANARY").then(|| "sk-canary-1".to_owned());
    let read =
        |value: Value| RuntimeConfig::read(&value.to_string(), &lookup).map(|(config, _)| config);
    let config = read(
        json!({"home": "$CANARY", "models": [{"name": "a", "provider": "openai", "model": "$CANARY", "api_key": "$LATER"}]}),
    );
    let config = config.unwrap().app;
    assert_eq!(config.home.as_deref(), Some("sk-canary-1"));
    assert_eq!(config.models[0].model.label, "sk-canary-1");
    for value in [
        json!({"models": [{"name": "a", "provider": "$CANARY"}]}),
        json!({"models": [{"name": "a", "use": "$CANARY"}]}),
        json!({"memory": {"manager_class": "$CANARY"}}),
        json!({"subagent_runtime": {"admission_policy": "$CANARY"}}),
        json!({"authorization": {"enabled": true, "default_role": "$CANARY", "provider": {"use": "rbac", "config": {"roles": {"a": {}}}}}}),
        json!({"models": [{"name": "a", "provider": "host", "fallbacks": ["$CANARY"]}]}),
    ] {
        let error = read(value.clone()).unwrap_err();
        assert!(
            !error.message.contains("canary"),
            "{value}: {}",
            error.message
        );
        assert!(
            error.message.contains("$CANARY"),
            "{value}: {}",
            error.message
        );
    }
    let error = read(json!({"skills": {"path": "$UNSET"}})).unwrap_err();
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::MissingMember, Some("/skills/path"))
    );
    let tools =
        read(json!({"tools": [{"name": "s", "use": "a:b", "api_key": "$CANARY"}]})).unwrap();
    assert!(!format!("{tools:?}").contains("canary"));
}
