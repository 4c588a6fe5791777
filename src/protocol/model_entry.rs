//! A model as a configuration names it: its provider, what happens when a call fails, and which models stand in for it.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::config::{ModelConfig, ModelRef};
use super::decode::{carry, from_value, hint, unknown_member};
use super::error::{Error, ErrorCode};
use super::model::RetryConfig;

/// Most models that one assembly may come to, the first included.
pub const MAX_MODELS: usize = 16;

/// A model with everything around it. In JSON one object: the members of the provider, those of [`RetryConfig`], and
/// `fallbacks`.
#[derive(Clone, Debug)]
pub struct ModelEntry {
    /// The provider.
    pub config: ModelConfig,
    /// What events and messages call the model unless it has a name: the provider's `model`, else the provider. Where an
    /// assembly comes to two of one name, the later one has `#` and its place added.
    pub label: String,
    /// What happens when a call fails.
    pub retry: RetryConfig,
    /// The models that are asked, in order, once this one has failed for good: names, or models in place. A fallback's own
    /// fallbacks follow it.
    pub fallbacks: Vec<ModelRef>,
}

impl<'de> Deserialize<'de> for ModelEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decode(Value::deserialize(deserializer)?).map_err(|error| carry(&error))
    }
}

fn decode(value: Value) -> Result<ModelEntry, Error> {
    let Value::Object(mut members) = value else {
        // Says what is expected instead.
        return from_value(value).map(|config| ModelEntry {
            config,
            label: String::new(),
            retry: RetryConfig::default(),
            fallbacks: Vec::new(),
        });
    };
    let mut retry = Map::new();
    for name in RetryConfig::MEMBERS {
        if let Some(value) = members.shift_remove(*name) {
            retry.insert((*name).to_owned(), value);
        }
    }
    let fallbacks = match members.shift_remove("fallbacks") {
        Some(list) => from_value(list).map_err(|error| error.below("/fallbacks"))?,
        None => Vec::new(),
    };
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let label = text("model").or(text("provider")).unwrap_or_default();
    Ok(ModelEntry {
        label: label.to_owned(),
        retry: from_value(Value::Object(retry))?,
        fallbacks,
        config: from_value(Value::Object(members)).map_err(mistyped)?,
    })
}

/// A provider that does not know a member cannot know that it is nearly one of those around it.
fn mistyped(error: Error) -> Error {
    let name = match (error.code, error.path.as_deref()) {
        (ErrorCode::UnknownMember, Some(path)) => path.trim_start_matches('/'),
        _ => return error,
    };
    let known = [RetryConfig::MEMBERS, &["fallbacks"]].concat();
    let guess = unknown_member(name, &known);
    if guess.message.contains("did you mean") {
        guess
    } else {
        error
    }
}

impl ModelEntry {
    /// Checks bounds, those of models given in place included.
    ///
    /// # Errors
    /// `OutOfRange` or `Conflict` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        self.config.validate()?;
        self.retry.validate()?;
        if self.fallbacks.len() >= MAX_MODELS {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/fallbacks",
                format!("at most {} models may stand in for another", MAX_MODELS - 1),
            ));
        }
        self.each_inline(&|model| model.validate())
    }

    /// Checks that every name among the fallbacks is known.
    ///
    /// # Errors
    /// `UnknownModel` at the name.
    pub fn check_names(&self, known: &[&str]) -> Result<(), Error> {
        for (place, fallback) in self.fallbacks.iter().enumerate() {
            if let ModelRef::Named(name) = fallback
                && !known.contains(&name.as_str())
            {
                return Err(unknown_model(name, known).below(&format!("/fallbacks/{place}")));
            }
        }
        self.each_inline(&|model| model.check_names(known))
    }

    fn each_inline(&self, check: &dyn Fn(&ModelEntry) -> Result<(), Error>) -> Result<(), Error> {
        for (place, fallback) in self.fallbacks.iter().enumerate() {
            if let ModelRef::Inline(model) = fallback {
                check(model).map_err(|error| error.below(&format!("/fallbacks/{place}")))?;
            }
        }
        Ok(())
    }
}

/// The error of a name that none of the runtime's models has.
pub fn unknown_model(name: &str, known: &[&str]) -> Error {
    let hint = hint(name, known);
    Error::at(
        ErrorCode::UnknownModel,
        "",
        format!("the runtime has no model named {name:?}{hint}"),
    )
}

impl JsonSchema for ModelEntry {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Model".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = ModelConfig::json_schema(generator);
        let common = RetryConfig::json_schema(generator).to_value();
        let fallbacks = json!({
            "description": "Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it.",
            "type": "array",
            "maxItems": MAX_MODELS - 1,
            "items": generator.subschema_for::<ModelRef>().to_value(),
        });
        for variant in schema
            .get_mut("oneOf")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(properties) = variant["properties"].as_object_mut() {
                let members = common["properties"].as_object().into_iter().flatten();
                properties.extend(members.map(|(name, value)| (name.clone(), value.clone())));
                properties.insert("fallbacks".to_owned(), fallbacks.clone());
            }
        }
        schema
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    fn entry(value: Value) -> Result<ModelEntry, (ErrorCode, String)> {
        let decoded = from_value::<ModelEntry>(value);
        decoded
            .and_then(|entry| entry.validate().map(|()| entry))
            .map_err(|error| (error.code, error.path.unwrap_or_default()))
    }

    #[test]
    fn the_members_go_where_they_belong() {
        let entry = entry(json!({
            "provider": "openai", "model": "m", "base_url": "http://h", "max_retries": 5,
            "fallbacks": ["b", {"provider": "host", "retry_after_partial": true}],
        }))
        .unwrap();
        assert_eq!(
            (entry.label.as_str(), entry.retry.max_retries),
            ("m", Some(5))
        );
        assert!(matches!(&entry.fallbacks[0], ModelRef::Named(name) if name == "b"));
        let ModelRef::Inline(inline) = &entry.fallbacks[1] else {
            panic!("a model in place")
        };
        assert_eq!(inline.label, "host");
        assert_eq!(inline.retry.retry_after_partial, Some(true));
    }

    #[test]
    fn a_slip_in_a_member_around_the_provider_is_recognised() {
        let value = json!({"provider": "host", "max_retrys": 1});
        let error = from_value::<ModelEntry>(value).unwrap_err();
        assert_eq!(error.path.as_deref(), Some("/max_retrys"));
        assert!(
            error.message.contains("\"max_retries\""),
            "{}",
            error.message
        );
    }

    #[test]
    fn faults_are_found_with_their_path() {
        for (value, code, path) in [
            (json!(5), ErrorCode::WrongType, ""),
            (
                json!({"max_retries": 1}),
                ErrorCode::MissingMember,
                "/provider",
            ),
            (
                json!({"provider": "host", "max_retries": "2"}),
                ErrorCode::WrongType,
                "/max_retries",
            ),
            (
                json!({"provider": "host", "max_retries": 101}),
                ErrorCode::OutOfRange,
                "/max_retries",
            ),
            (
                json!({"provider": "host", "retries": 1}),
                ErrorCode::UnknownMember,
                "/retries",
            ),
            (
                json!({"provider": "host", "fallbacks": "b"}),
                ErrorCode::WrongType,
                "/fallbacks",
            ),
            (
                json!({"provider": "host", "fallbacks": ["b", {"provider": "none"}]}),
                ErrorCode::UnknownVariant,
                "/fallbacks/1/provider",
            ),
            (
                json!({"provider": "host", "fallbacks": [{"provider": "host", "retry_deadline_ms": 0}]}),
                ErrorCode::OutOfRange,
                "/fallbacks/0/retry_deadline_ms",
            ),
            (
                json!({"provider": "host", "fallbacks": vec!["b"; 16]}),
                ErrorCode::OutOfRange,
                "/fallbacks",
            ),
        ] {
            let found = entry(value.clone()).unwrap_err();
            assert_eq!(found, (code, path.to_owned()), "{value}");
        }
    }
}
