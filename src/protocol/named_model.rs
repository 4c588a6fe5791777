//! A model with the name that assemblies use: provider, profile, and what is said about it.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::decode::{carry, from_value, unknown_member, wrong_type};
use super::error::{Error, ErrorCode};
use super::model::{LangchainModel, ModelProfile, langchain_schemas};
use super::model_entry::ModelEntry;

/// A model configuration with the name that assemblies use. In JSON one object: `name`, the members of [`ModelProfile`] and
/// of [`ModelMetadata`], and those of a provider, or `use` with those of a class (DeerFlow's form, [`LangchainModel`]).
#[derive(Clone, Debug)]
pub struct NamedModel {
    /// Name.
    pub name: String,
    /// What it can do, and its settings for thinking.
    pub profile: ModelProfile,
    /// What is said about it.
    pub metadata: ModelMetadata,
    /// The model.
    pub model: ModelEntry,
    /// The class that it was given as, if it was.
    pub class: Option<LangchainModel>,
}

/// What is said about a model, for people and for reckoning; nothing of it reaches the endpoint.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelMetadata {
    /// Its name for people.
    pub display_name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Tokens that it takes and writes together.
    #[schemars(range(min = 1))]
    pub context_window: Option<u64>,
    /// What it costs.
    pub pricing: Option<ModelPricing>,
}

/// What a model costs, for a million tokens.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelPricing {
    /// Of the prices, such as `USD`.
    pub currency: Option<String>,
    /// Read.
    #[schemars(range(min = 0))]
    pub input_per_million: Option<f64>,
    /// Written.
    #[schemars(range(min = 0))]
    pub output_per_million: Option<f64>,
    /// Read from the endpoint's cache. Default: as read.
    #[schemars(range(min = 0))]
    pub input_cache_hit_per_million: Option<f64>,
}

impl ModelMetadata {
    /// The members' names, to tell them from the provider's.
    pub const MEMBERS: &'static [&'static str] =
        &["display_name", "description", "context_window", "pricing"];

    fn validate(&self) -> Result<(), Error> {
        if self.context_window == Some(0) {
            let text = "context_window must be at least 1";
            return Err(Error::at(ErrorCode::OutOfRange, "/context_window", text));
        }
        let Some(pricing) = &self.pricing else {
            return Ok(());
        };
        for (member, price) in [
            ("input_per_million", pricing.input_per_million),
            ("output_per_million", pricing.output_per_million),
            (
                "input_cache_hit_per_million",
                pricing.input_cache_hit_per_million,
            ),
        ] {
            if price.is_some_and(|price| price < 0.0) {
                let path = format!("/pricing/{member}");
                return Err(Error::at(
                    ErrorCode::OutOfRange,
                    path,
                    "a price is 0 or more",
                ));
            }
        }
        Ok(())
    }
}

impl NamedModel {
    /// Checks bounds and contradictions that the types do not hold.
    ///
    /// # Errors
    /// Those of the provider and of the profile, at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        self.metadata.validate()?;
        let checked = self.model.validate();
        checked
            .and_then(|()| self.profile.validate(&self.model.config))
            .map_err(|error| self.in_their_words(error))
    }

    /// An error about the provider's members, with the path that the configuration has.
    pub fn in_their_words(&self, error: Error) -> Error {
        match &self.class {
            Some(class) => class.in_their_words(error),
            None => error,
        }
    }
}

impl<'de> Deserialize<'de> for NamedModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decode(Value::deserialize(deserializer)?).map_err(|error| carry(&error))
    }
}

/// Members of `map` that are named in `names`, taken out of it.
fn split(map: &mut Map<String, Value>, names: &[&str]) -> Value {
    let taken = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), map.shift_remove(*name)?)));
    Value::Object(taken.collect())
}

fn decode(value: Value) -> Result<NamedModel, Error> {
    let Value::Object(mut map) = value else {
        return Err(wrong_type(&value, "an object"));
    };
    let mut profile: ModelProfile = from_value(split(&mut map, ModelProfile::MEMBERS))?;
    let metadata = from_value(split(&mut map, ModelMetadata::MEMBERS))?;
    let name = match map.shift_remove("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        Some(_) => {
            let text = "name must be text";
            return Err(Error::at(ErrorCode::WrongType, "/name", text));
        }
        None => {
            let text = "\"name\" is missing";
            return Err(Error::at(ErrorCode::MissingMember, "/name", text));
        }
    };
    let class = match map.shift_remove("use") {
        None | Some(Value::Null) => None,
        Some(Value::String(class)) => Some(class),
        Some(other) => return Err(wrong_type(&other, "text").below("/use")),
    };
    let Some(class) = class else {
        return Ok(NamedModel {
            name,
            profile,
            metadata,
            model: from_value(Value::Object(map)).map_err(mistyped)?,
            class: None,
        });
    };
    if map.contains_key("provider") {
        let text = "give use or provider, not both";
        return Err(Error::at(ErrorCode::Conflict, "/provider", text));
    }
    map.retain(|name, _| !name.starts_with("x-"));
    let (mut class, members) = LangchainModel::translate(&class, map)?;
    for (member, settings) in [
        ("when_thinking_enabled", &mut profile.when_thinking_enabled),
        (
            "when_thinking_disabled",
            &mut profile.when_thinking_disabled,
        ),
    ] {
        if let Some(settings) = settings {
            class.translate_settings(member, settings);
        }
    }
    let model = from_value(Value::Object(members));
    Ok(NamedModel {
        name,
        profile,
        metadata,
        model: model.map_err(|error| class.in_their_words(error))?,
        class: Some(class),
    })
}

/// A provider that does not know a member cannot know that it is nearly one of those around it.
fn mistyped(error: Error) -> Error {
    let name = match (error.code, error.path.as_deref()) {
        (ErrorCode::UnknownMember, Some(path)) => path.trim_start_matches('/'),
        (ErrorCode::MissingMember, Some("/provider")) => {
            return Error {
                message: format!("{}; or give \"use\" with a class", error.message),
                ..error
            };
        }
        _ => return error,
    };
    let known = [
        ModelProfile::MEMBERS,
        ModelMetadata::MEMBERS,
        &["name", "use"],
    ]
    .concat();
    let guess = unknown_member(name, &known);
    if guess.message.contains("did you mean") {
        guess
    } else {
        error
    }
}

impl JsonSchema for NamedModel {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NamedModel".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = ModelEntry::json_schema(generator);
        let name =
            json!({"description": "What assemblies call it.", "type": "string", "minLength": 1});
        let around: Map<String, Value> = [
            ModelProfile::json_schema(generator),
            ModelMetadata::json_schema(generator),
        ]
        .iter()
        .filter_map(|schema| schema.get("properties").and_then(Value::as_object).cloned())
        .flatten()
        .collect();
        // What is common to all providers stands in each of their schemas; the classes have it too.
        let common: Map<String, Value> = schema
            .pointer("/oneOf/0/properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter(|(name, _)| name.contains("retr") || *name == "fallbacks")
            .map(|(name, schema)| (name.clone(), schema.clone()))
            .collect();
        let mut classes = langchain_schemas(generator);
        for class in &mut classes {
            if let Some(properties) = class["properties"].as_object_mut() {
                properties.extend(common.clone());
            }
        }
        if let Some(variants) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
            variants.append(&mut classes);
            for variant in variants {
                variant["properties"]["name"] = name.clone();
                for (member, schema) in &around {
                    variant["properties"][member] = schema.clone();
                }
                if let Some(required) = variant["required"].as_array_mut() {
                    required.push("name".into());
                }
            }
        }
        schema.insert(
            "description".to_owned(),
            "A model configuration with the name that assemblies use.".into(),
        );
        schema
    }
}
