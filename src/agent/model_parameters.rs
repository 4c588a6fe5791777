//! What a descriptor says about an agent's model: its settings, without names, prices and secrets (AD-10).

use serde_json::{Map, Value};

use crate::protocol::credential_names::without_credentials;

/// Members of a model's profile that say what it is called or costs, not how it works.
const METADATA: &[&str] = &[
    "name",
    "display_name",
    "description",
    "use",
    "context_window",
    "pricing",
];

/// The settings of a model: `provider`, then those of `profile`, then `overrides` laid over; null overrides nothing.
///
/// `profile` is the model as it is configured, extra members included; `provider` is its `use`, else its `provider`, else null.
/// Metadata is left out, and so is whatever has the name of a credential, at every depth. Counts of tokens stay.
///
/// Source: DeerFlow's assembly descriptor, AD-10, AD-11. The reference looks for credentials at the top only.
pub fn model_parameters(
    profile: &Map<String, Value>,
    overrides: &Map<String, Value>,
) -> Map<String, Value> {
    let provider = ["use", "provider"]
        .iter()
        .find_map(|name| profile.get(*name).filter(|value| value.is_string()));
    let mut settings = Map::new();
    settings.insert(
        "provider".to_owned(),
        provider.cloned().unwrap_or(Value::Null),
    );
    let given = overrides.iter().filter(|(_, value)| !value.is_null());
    for (name, value) in profile.iter().chain(given) {
        if name != "provider" && !METADATA.contains(&name.as_str()) {
            settings.insert(name.clone(), value.clone());
        }
    }
    without_credentials(&mut settings);
    settings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(profile: Value, overrides: Value) -> Value {
        let members = |value: Value| value.as_object().cloned().expect("an object");
        model_parameters(&members(profile), &members(overrides)).into()
    }

    #[test]
    fn ad_10_settings_are_there_and_names_and_secrets_are_not() {
        let settings = of(
            json!({
                "name": "fast", "display_name": "Fast", "description": "d", "use": "langchain_openai:ChatOpenAI",
                "context_window": 1000, "pricing": {"in": 1}, "model": "gpt-x", "api_key": "sk-1",
                "temperature": 0.5, "max_tokens": 100, "top_p": null, "extra": {"password": "p", "kept": [1]},
            }),
            json!({"temperature": 0.1, "max_tokens": null, "seed": 7, "auth_token": "t"}),
        );
        assert_eq!(
            settings,
            json!({
                "provider": "langchain_openai:ChatOpenAI", "model": "gpt-x", "temperature": 0.1,
                "max_tokens": 100, "top_p": null, "extra": {"kept": [1]}, "seed": 7,
            })
        );
        assert_eq!(
            settings.as_object().and_then(|all| all.keys().next()),
            Some(&"provider".to_owned())
        );
    }

    #[test]
    fn the_provider_is_there_even_when_nothing_is_known_of_it() {
        assert_eq!(of(json!({}), json!({})), json!({"provider": null}));
        assert_eq!(
            of(json!({"provider": "openai"}), json!({})),
            json!({"provider": "openai"})
        );
    }
}
