//! What a named model is said to be able to do, and the settings that follow from it for one agent.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

use super::{AnthropicConfig, OpenAiConfig};
use crate::protocol::config::ModelConfig;
use crate::protocol::decode::from_value;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;

/// Members of a named model beside the provider's own.
///
/// Source: DeerFlow's model profiles (MD-5 to MD-8).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelProfile {
    /// Whether the model can think before it answers. Default false.
    #[serde(default)]
    pub supports_thinking: bool,
    /// Whether the model takes `reasoning_effort`. Default false: a lead agent then never sends it.
    #[serde(default)]
    pub supports_reasoning_effort: bool,
    /// Whether the model can look at images. Default false.
    #[serde(default)]
    pub supports_vision: bool,
    /// Settings of the provider that replace its own while a lead agent thinks.
    #[serde(default)]
    pub when_thinking_enabled: Option<Map<String, Value>>,
    /// Settings of the provider that replace its own while a lead agent does not think. Without it they are derived from
    /// `when_thinking_enabled`.
    #[serde(default)]
    pub when_thinking_disabled: Option<Map<String, Value>>,
}

/// What one agent asks of its model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelWishes {
    /// To think before it answers.
    pub thinking: bool,
    /// How hard to think.
    pub reasoning_effort: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<Number>,
    /// Most tokens to write.
    pub max_tokens: Option<u64>,
}

impl ModelProfile {
    /// The members' names, to tell them from the provider's.
    pub const MEMBERS: &'static [&'static str] = &[
        "supports_thinking",
        "supports_reasoning_effort",
        "supports_vision",
        "when_thinking_enabled",
        "when_thinking_disabled",
    ];

    /// Checks that the settings are ones that the provider of `model` has, with values it takes.
    ///
    /// # Errors
    /// `UnknownMember` or those of the provider, with the path in the profile.
    pub fn validate(&self, model: &ModelConfig) -> Result<(), Error> {
        for (name, settings) in [
            ("when_thinking_enabled", &self.when_thinking_enabled),
            ("when_thinking_disabled", &self.when_thinking_disabled),
        ] {
            let Some(settings) = settings else { continue };
            let known = tunable(model);
            let unknown = settings.keys().find(|key| !known.contains(&key.as_str()));
            if let Some(key) = unknown {
                return Err(Error::at(
                    ErrorCode::UnknownMember,
                    format!("/{name}/{}", pointer_token(key)),
                    format!("{key:?} is no setting that can change here"),
                ));
            }
            let mut whole = settings.clone();
            if let (ModelConfig::Anthropic(config), Some(_)) = (model, whole.get("thinking"))
                && let Some(shorthand) = &config.thinking
                && name == "when_thinking_enabled"
            {
                merge_into(&mut whole, "thinking", Value::Object(shorthand.clone()));
            }
            let whole = with_settings(model, whole);
            whole.map_err(|error| error.below(&format!("/{name}")))?;
        }
        Ok(())
    }
}

/// Settings that a profile or an agent may change, by provider.
fn tunable(model: &ModelConfig) -> &'static [&'static str] {
    match model {
        ModelConfig::Openai(_) => &[
            "temperature",
            "max_tokens",
            "max_completion_tokens",
            "top_p",
            "seed",
            "reasoning_effort",
            "replay_reasoning",
            "extra_body",
        ],
        ModelConfig::Anthropic(_) => &[
            "temperature",
            "max_tokens",
            "top_p",
            "top_k",
            "stop_sequences",
            "thinking",
            "reasoning_effort",
            "parallel_tool_calls",
            "extra_body",
        ],
        ModelConfig::Scripted(_) | ModelConfig::Host(_) => &[],
    }
}

/// The configuration of `model` for one agent: its own settings, those of the profile for thinking or not thinking, then
/// what the agent asks for.
///
/// The provider's own `thinking` is a shorthand here, as in the reference: it belongs to `when_thinking_enabled` and is
/// sent only while the agent thinks. Models of the host and of scripts have no settings and stay as they are.
///
/// # Errors
/// `AssemblyInvalid` when thinking is asked for and configured, but not supported; those of the provider for settings
/// that contradict each other.
///
/// Source: DeerFlow `create_chat_model`, MD-6 to MD-8.
pub fn settled(
    model: &ModelConfig,
    profile: &ModelProfile,
    wishes: &ModelWishes,
) -> Result<ModelConfig, Error> {
    let known = tunable(model);
    if known.is_empty() {
        return Ok(model.clone());
    }
    let mut settings = own_settings(model, known);
    let mut enabled = profile.when_thinking_enabled.clone();
    if let Some(shorthand) = settings.shift_remove("thinking") {
        let enabled = enabled.get_or_insert_default();
        merge_into(enabled, "thinking", shorthand);
    }
    if wishes.thinking {
        if let Some(enabled) = enabled {
            if !profile.supports_thinking {
                return Err(Error::new(
                    ErrorCode::AssemblyInvalid,
                    "the model has settings for thinking, but \"supports_thinking\" is not true",
                ));
            }
            settings.extend(enabled);
        }
    } else if let Some(disabled) = &profile.when_thinking_disabled {
        settings.extend(disabled.clone());
    } else if let Some(enabled) = enabled {
        switch_off(&Value::Object(enabled), &mut settings);
    }
    if let Some(effort) = &wishes.reasoning_effort {
        settings.insert("reasoning_effort".into(), effort.as_str().into());
    }
    if let Some(temperature) = &wishes.temperature {
        settings.insert("temperature".into(), temperature.clone().into());
    }
    if let Some(max_tokens) = wishes.max_tokens {
        // The endpoint takes one of the two names; the configuration says which.
        let name = match settings.get("max_completion_tokens") {
            None | Some(Value::Null) => "max_tokens",
            Some(_) => "max_completion_tokens",
        };
        settings.insert(name.into(), max_tokens.into());
    }
    if !profile.supports_reasoning_effort {
        settings.shift_remove("reasoning_effort");
    }
    with_settings(model, settings)
}

/// Says "do not think" in the way in which `enabled` says to think (MD-7).
fn switch_off(enabled: &Value, settings: &mut Map<String, Value>) {
    let says = |pointer: &str| enabled.pointer(pointer).is_some_and(is_truthy);
    let template = enabled.pointer("/extra_body/chat_template_kwargs");
    let switches: Map<String, Value> = ["thinking", "enable_thinking"]
        .into_iter()
        .filter(|name| template.is_some_and(|template| template.get(name).is_some()))
        .map(|name| (name.to_owned(), Value::Bool(false)))
        .collect();
    if says("/extra_body/thinking/type") {
        merge_into(
            settings,
            "extra_body",
            json!({"thinking": {"type": "disabled"}}),
        );
        settings.insert("reasoning_effort".into(), "minimal".into());
    } else if !switches.is_empty() {
        merge_into(
            settings,
            "extra_body",
            json!({ "chat_template_kwargs": switches }),
        );
    } else if says("/thinking/type") {
        settings.insert("thinking".into(), json!({"type": "disabled"}));
    }
}

fn is_truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value.as_str() != Some("")
}

/// Puts `value` at `name`; objects are merged member by member, at every depth.
fn merge_into(map: &mut Map<String, Value>, name: &str, value: Value) {
    match (map.get_mut(name), value) {
        (Some(Value::Object(known)), Value::Object(more)) => {
            for (name, value) in more {
                merge_into(known, &name, value);
            }
        }
        (_, value) => {
            map.insert(name.to_owned(), value);
        }
    }
}

/// The settings that `model` has now, without those that are not set.
fn own_settings(model: &ModelConfig, known: &[&str]) -> Map<String, Value> {
    let whole = match model {
        ModelConfig::Openai(config) => json!(config),
        ModelConfig::Anthropic(config) => json!(config),
        ModelConfig::Scripted(_) | ModelConfig::Host(_) => Value::Null,
    };
    let Value::Object(members) = whole else {
        return Map::new();
    };
    members
        .into_iter()
        .filter(|(name, value)| known.contains(&name.as_str()) && !value.is_null())
        .collect()
}

/// `model` with exactly these settings; what is not among them goes back to its default.
fn with_settings(model: &ModelConfig, settings: Map<String, Value>) -> Result<ModelConfig, Error> {
    let changed = match model {
        ModelConfig::Openai(config) => {
            let tuned: OpenAiConfig = tuned(&config.model, settings)?;
            let config = (**config).clone();
            ModelConfig::Openai(Box::new(OpenAiConfig {
                temperature: tuned.temperature,
                max_tokens: tuned.max_tokens,
                max_completion_tokens: tuned.max_completion_tokens,
                top_p: tuned.top_p,
                seed: tuned.seed,
                reasoning_effort: tuned.reasoning_effort,
                replay_reasoning: tuned.replay_reasoning,
                extra_body: tuned.extra_body,
                ..config
            }))
        }
        ModelConfig::Anthropic(config) => {
            let tuned: AnthropicConfig = tuned(&config.model, settings)?;
            let config = (**config).clone();
            ModelConfig::Anthropic(Box::new(AnthropicConfig {
                temperature: tuned.temperature,
                max_tokens: tuned.max_tokens,
                top_p: tuned.top_p,
                top_k: tuned.top_k,
                stop_sequences: tuned.stop_sequences,
                thinking: tuned.thinking,
                reasoning_effort: tuned.reasoning_effort,
                parallel_tool_calls: tuned.parallel_tool_calls,
                extra_body: tuned.extra_body,
                ..config
            }))
        }
        ModelConfig::Scripted(_) | ModelConfig::Host(_) => model.clone(),
    };
    changed.validate()?;
    Ok(changed)
}

fn tuned<C: DeserializeOwned>(model: &str, mut settings: Map<String, Value>) -> Result<C, Error> {
    settings.insert("model".to_owned(), model.into());
    from_value(Value::Object(settings))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::protocol::named_model::NamedModel;

    fn named(members: Value) -> Result<NamedModel, Error> {
        let mut whole = json!({"name": "n", "model": "m", "api_key": "sk-1"});
        whole
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let model: NamedModel = from_value(whole)?;
        model.validate()?;
        Ok(model)
    }

    /// The settings for an agent that thinks, or not, and nothing else.
    fn settings(members: Value, thinking: bool) -> Value {
        let named = named(members).unwrap();
        let wishes = ModelWishes {
            thinking,
            ..ModelWishes::default()
        };
        let model = settled(&named.model.config, &named.profile, &wishes).unwrap();
        let mut settings = own_settings(&model, tunable(&model));
        settings.retain(|_, value| {
            *value != json!({}) && *value != json!([]) && *value != json!(false)
        });
        Value::Object(settings)
    }

    /// MD-7: each way to say "think" has its way to say "do not".
    #[test]
    fn thinking_is_switched_off_in_the_way_it_is_switched_on() {
        let body = json!({"provider": "openai", "supports_thinking": true, "supports_reasoning_effort": true,
            "temperature": 1, "extra_body": {"user": "u"},
            "when_thinking_enabled": {"extra_body": {"thinking": {"type": "enabled", "x": 1}}}});
        assert_eq!(
            settings(body.clone(), true),
            json!({"temperature": 1, "extra_body": {"thinking": {"type": "enabled", "x": 1}}})
        );
        assert_eq!(
            settings(body, false),
            json!({"temperature": 1, "reasoning_effort": "minimal",
                "extra_body": {"user": "u", "thinking": {"type": "disabled"}}})
        );
        let template = json!({"provider": "openai", "supports_thinking": true,
            "when_thinking_enabled": {"extra_body": {"chat_template_kwargs": {"enable_thinking": true, "x": 1}}}});
        assert_eq!(
            settings(template, false),
            json!({"extra_body": {"chat_template_kwargs": {"enable_thinking": false}}})
        );
        let blocks = json!({"provider": "anthropic", "supports_thinking": true,
            "thinking": {"type": "enabled", "budget_tokens": 9},
            "when_thinking_enabled": {"max_tokens": 100, "thinking": {"budget_tokens": 8}}});
        assert_eq!(
            settings(blocks.clone(), true),
            json!({"max_tokens": 100, "thinking": {"budget_tokens": 9, "type": "enabled"}})
        );
        assert_eq!(
            settings(blocks, false),
            json!({"thinking": {"type": "disabled"}})
        );
        let verbatim = json!({"provider": "anthropic", "supports_thinking": true,
            "thinking": {"type": "enabled"}, "when_thinking_disabled": {"temperature": 0}});
        assert_eq!(settings(verbatim, false), json!({"temperature": 0}));
    }

    #[test]
    fn thinking_without_support_is_refused_only_when_it_is_configured() {
        let think = ModelWishes {
            thinking: true,
            ..ModelWishes::default()
        };
        let plain = named(json!({"provider": "anthropic"})).unwrap();
        assert!(settled(&plain.model.config, &plain.profile, &think).is_ok());
        let shorthand =
            named(json!({"provider": "anthropic", "thinking": {"type": "adaptive"}})).unwrap();
        let error = settled(&shorthand.model.config, &shorthand.profile, &think).unwrap_err();
        assert_eq!(error.code, ErrorCode::AssemblyInvalid);
    }

    /// MD-6, MD-8: what the agent asks for comes last, and effort only goes where it is understood.
    #[test]
    fn wishes_come_last_and_keys_stay() {
        let wishes = ModelWishes {
            reasoning_effort: Some("high".into()),
            temperature: Number::from_f64(0.5),
            max_tokens: Some(7),
            ..ModelWishes::default()
        };
        for (supports, effort) in [(true, Some("high")), (false, None)] {
            let named = named(
                json!({"provider": "openai", "max_completion_tokens": 5, "temperature": 1,
                "reasoning_effort": "low", "supports_reasoning_effort": supports}),
            )
            .unwrap();
            let ModelConfig::Openai(config) =
                settled(&named.model.config, &named.profile, &wishes).unwrap()
            else {
                panic!("another provider");
            };
            assert_eq!(config.max_completion_tokens, Some(7));
            assert_eq!(config.max_tokens, None);
            assert_eq!(json!(config.temperature), json!(0.5));
            assert_eq!(config.reasoning_effort.as_deref(), effort);
            assert_eq!(config.api_key.unwrap().expose(), "sk-1");
        }
    }

    #[test]
    fn settings_that_the_provider_does_not_have_are_refused_with_their_path() {
        for (members, code, path) in [
            (
                json!({"provider": "openai", "when_thinking_enabled": {"thinking": {}}}),
                ErrorCode::UnknownMember,
                "/when_thinking_enabled/thinking",
            ),
            (
                json!({"provider": "anthropic", "when_thinking_disabled": {"api_key": "x"}}),
                ErrorCode::UnknownMember,
                "/when_thinking_disabled/api_key",
            ),
            (
                json!({"provider": "anthropic", "when_thinking_enabled": {"max_tokens": "many"}}),
                ErrorCode::WrongType,
                "/when_thinking_enabled/max_tokens",
            ),
            (
                json!({"provider": "anthropic", "when_thinking_enabled": {"thinking": {"type": ""}}}),
                ErrorCode::OutOfRange,
                "/when_thinking_enabled/thinking/type",
            ),
            (
                json!({"provider": "anthropic", "supports_thinking": "yes"}),
                ErrorCode::WrongType,
                "/supports_thinking",
            ),
        ] {
            let error = named(members.clone()).unwrap_err();
            assert_eq!(
                (error.code, error.path.as_deref()),
                (code, Some(path)),
                "{members}"
            );
        }
    }
}
