//! Which model a lead agent gets, and how it is set up (MD-1 to MD-8, MD-11).

use std::collections::HashSet;

use serde_json::{Map, Number, Value, json};

use super::authorization::stranger;
use super::model_parameters::model_parameters;
use crate::ports::authorization::{Access, Resource, Verdict};
use crate::protocol::agent_record::AgentModelSettings;
use crate::protocol::config::{ModelConfig, ModelRef};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::model::{ModelWishes, settled};
use crate::protocol::model_entry::{ModelEntry, unknown_model};
use crate::protocol::named_model::NamedModel;
use crate::protocol::warning::{Warning, Warnings};

/// Most tokens that an agent's record may ask for (MD-11).
const MAX_AGENT_TOKENS: u64 = 200_000;
/// Hottest temperature that an agent's record may ask for (MD-11).
const MAX_AGENT_TEMPERATURE: f64 = 2.0;

/// What is asked of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelQuestion<'a> {
    /// The model that is wanted, if one is: the request's, else the agent's (RC-3).
    pub wanted: Option<&'a str>,
    /// Whether it is to think.
    pub thinking: bool,
    /// How hard. Bootstrap asks for none (MD-11).
    pub reasoning_effort: Option<&'a str>,
    /// What the agent's record sets. Bootstrap has none (MD-11).
    pub settings: AgentModelSettings,
}

/// The model of a lead agent.
#[derive(Clone, Debug)]
pub struct ModelChoice {
    /// Its name, after authorization.
    pub name: String,
    /// Its configuration, set up for the agent, with the models that stand in for it: as an entry in place, labelled with
    /// its name.
    pub entry: ModelEntry,
    /// Whether it thinks.
    pub thinking_enabled: bool,
    /// How hard it was asked to think, as in the question (AD-9).
    pub reasoning_effort: Option<String>,
    /// Whether it looks at images.
    pub supports_vision: bool,
    /// What a descriptor says of it (AD-10): `provider`, and every setting that is no secret.
    pub parameters: Map<String, Value>,
}

/// Chooses the model and sets it up.
///
/// Models that stand in for it are set up alike, each by its own profile; one that the principal may not use is left out.
///
/// # Errors
/// `UnknownModel` without any model, or at a fallback that is none; `NotAuthorized` when no model may be used, or cannot be
/// told and that means no; `OutOfRange` for settings of the agent; those of the provider for settings that contradict each
/// other.
///
/// Source: DeerFlow `_resolve_model_name`, `create_chat_model`.
pub fn choose(
    models: &[NamedModel],
    question: &ModelQuestion<'_>,
    access: Option<&Access>,
) -> Result<(ModelChoice, Warnings), Error> {
    check_settings(&question.settings)?;
    let mut warnings = Warnings::new();
    let model = wanted(models, question.wanted, &mut warnings)?;
    let model = match access {
        Some(access) => authorized(models, model, access, &mut warnings)?,
        None => model,
    };
    if let Some(class) = &model.class {
        for member in &class.void_members {
            let text = format!(
                "model {:?}: {member:?} is void beside \"base_url\"",
                model.name
            );
            warnings.add(Warning::ModelSettingVoid, text);
        }
    }
    let thinking_enabled = question.thinking && model.profile.supports_thinking;
    if question.thinking && !thinking_enabled {
        let text = format!(
            "model {:?} does not support thinking; it is off",
            model.name
        );
        warnings.add(Warning::ThinkingUnsupported, text);
    }
    let mut entry = set_up(model, question)?;
    let mut found = HashSet::from([model.name.as_str()]);
    let mut fallbacks = Vec::new();
    for fallback in &model.model.fallbacks {
        stand_in(
            models,
            fallback,
            question,
            access,
            &mut found,
            &mut fallbacks,
            &mut warnings,
        )?;
    }
    entry.fallbacks = fallbacks;
    let choice = ModelChoice {
        name: model.name.clone(),
        entry,
        thinking_enabled,
        reasoning_effort: question.reasoning_effort.map(str::to_owned),
        supports_vision: model.profile.supports_vision,
        parameters: parameters(model, &question.settings),
    };
    Ok((choice, warnings))
}

fn check_settings(settings: &AgentModelSettings) -> Result<(), Error> {
    let temperature = settings.temperature.as_ref().and_then(Number::as_f64);
    if temperature.is_some_and(|heat| !(0.0..=MAX_AGENT_TEMPERATURE).contains(&heat)) {
        let text = "temperature must be 0 to 2";
        return Err(Error::at(
            ErrorCode::OutOfRange,
            "/model_settings/temperature",
            text,
        ));
    }
    let tokens = settings.max_tokens;
    if tokens.is_some_and(|tokens| !(1..=MAX_AGENT_TOKENS).contains(&tokens)) {
        let text = format!("max_tokens must be 1 to {MAX_AGENT_TOKENS}");
        return Err(Error::at(
            ErrorCode::OutOfRange,
            "/model_settings/max_tokens",
            text,
        ));
    }
    Ok(())
}

/// The model that is wanted if there is one of that name, else the first (MD-1).
fn wanted<'a>(
    models: &'a [NamedModel],
    name: Option<&str>,
    warnings: &mut Warnings,
) -> Result<&'a NamedModel, Error> {
    let Some(first) = models.first() else {
        return Err(Error::at(
            ErrorCode::UnknownModel,
            "/models",
            "no models are configured",
        ));
    };
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(first);
    };
    Ok(find(models, name).unwrap_or_else(|| {
        let text = format!("there is no model {name:?}; {:?} stands in", first.name);
        warnings.add(Warning::ModelUnknown, text);
        first
    }))
}

fn find<'a>(models: &'a [NamedModel], name: &str) -> Option<&'a NamedModel> {
    models.iter().find(|model| model.name == name)
}

/// The model itself where it may be used, else the first that may (MD-2).
fn authorized<'a>(
    models: &'a [NamedModel],
    model: &'a NamedModel,
    access: &Access,
    warnings: &mut Warnings,
) -> Result<&'a NamedModel, Error> {
    let may_use = |name: &str| {
        access
            .authorizer
            .authorize(&access.principal, Resource::Model, "use", name)
    };
    let mut undecided = |why: String| {
        let text = format!("the model {:?} could not be authorized: {why}", model.name);
        if access.fail_closed {
            return Err(Error::new(ErrorCode::NotAuthorized, text));
        }
        warnings.add(Warning::AuthorizationFailed, format!("{text}; it is used"));
        Ok(model)
    };
    let denied = match may_use(&model.name) {
        Ok(Verdict::Allow) => return Ok(model),
        Ok(Verdict::Deny(why)) => why,
        Err(why) => return undecided(why),
    };
    let names: Vec<&str> = models.iter().map(|model| &*model.name).collect();
    let others = access
        .authorizer
        .filter_resources(&access.principal, Resource::Model, &names);
    let others = match others {
        Ok(others) => others,
        Err(why) => return undecided(why),
    };
    if let Some(name) = stranger(&others, &names) {
        return undecided(format!("{name:?} was allowed, which nobody asked about"));
    }
    for name in others.iter().filter(|name| **name != model.name) {
        match may_use(name) {
            Ok(Verdict::Allow) => {
                let Some(other) = find(models, name) else {
                    continue;
                };
                let text = format!("{denied}; the model {name:?} stands in");
                warnings.add(Warning::ModelReplaced, text);
                return Ok(other);
            }
            Ok(Verdict::Deny(_)) => {}
            Err(why) => return undecided(why),
        }
    }
    undecided(format!("{denied}, and no other model is allowed"))
}

/// The entry of one model, set up for the agent, without its fallbacks.
fn set_up(model: &NamedModel, question: &ModelQuestion<'_>) -> Result<ModelEntry, Error> {
    let wishes = ModelWishes {
        thinking: question.thinking && model.profile.supports_thinking,
        reasoning_effort: question.reasoning_effort.map(str::to_owned),
        temperature: question.settings.temperature.clone(),
        max_tokens: question.settings.max_tokens,
    };
    let mut config = model.model.config.clone();
    // `settled` goes by the name that the settings have already, and a class may have none yet.
    let renames = model
        .class
        .as_ref()
        .is_some_and(|class| class.renames_max_tokens());
    if let (ModelConfig::Openai(config), true, Some(tokens)) =
        (&mut config, renames, wishes.max_tokens)
    {
        config.max_completion_tokens.get_or_insert(tokens);
    }
    let settled = settled(&config, &model.profile, &wishes);
    Ok(ModelEntry {
        config: settled.map_err(|error| {
            let error = model.in_their_words(error);
            error.below(&format!("/models/{}", model.name))
        })?,
        label: model.name.clone(),
        retry: model.model.retry.clone(),
        fallbacks: Vec::new(),
    })
}

/// Adds the model that `fallback` names and those that stand in for it, in the order in which they are asked. A name comes
/// once. Models given in place are the operator's word for exactly that model and stay as they are.
fn stand_in<'a>(
    models: &'a [NamedModel],
    fallback: &'a ModelRef,
    question: &ModelQuestion<'_>,
    access: Option<&Access>,
    found: &mut HashSet<&'a str>,
    entries: &mut Vec<ModelRef>,
    warnings: &mut Warnings,
) -> Result<(), Error> {
    let entry = match fallback {
        ModelRef::Inline(entry) => {
            let mut own = (**entry).clone();
            own.fallbacks = Vec::new();
            entries.push(ModelRef::Inline(Box::new(own)));
            entry
        }
        ModelRef::Named(name) => {
            if found.contains(name.as_str()) {
                return Ok(());
            }
            let Some(model) = find(models, name) else {
                let known: Vec<&str> = models.iter().map(|model| &*model.name).collect();
                return Err(unknown_model(name, &known).below("/models"));
            };
            found.insert(&model.name);
            if is_usable(model, access, warnings) {
                entries.push(ModelRef::Inline(Box::new(set_up(model, question)?)));
            }
            &model.model
        }
    };
    for fallback in &entry.fallbacks {
        stand_in(models, fallback, question, access, found, entries, warnings)?;
    }
    Ok(())
}

/// Whether a model may stand in for another.
fn is_usable(model: &NamedModel, access: Option<&Access>, warnings: &mut Warnings) -> bool {
    let Some(access) = access else { return true };
    let verdict =
        access
            .authorizer
            .authorize(&access.principal, Resource::Model, "use", &model.name);
    match verdict {
        Ok(Verdict::Allow) => true,
        Ok(Verdict::Deny(why)) => {
            warnings.add(
                Warning::ModelReplaced,
                format!("{why}; it does not stand in for another"),
            );
            false
        }
        Err(why) => {
            let follows = if access.fail_closed {
                "left out"
            } else {
                "kept"
            };
            let text = format!("the model {:?} could not be authorized: {why}", model.name);
            warnings.add(
                Warning::AuthorizationFailed,
                format!("{text}; it is {follows}"),
            );
            !access.fail_closed
        }
    }
}

/// What a descriptor says of a model: the provider, the settings of its configuration with the agent's on top, and its
/// profile; never what is named like a secret (AD-10, AD-11). Counts of tokens are none, whatever their name.
fn parameters(model: &NamedModel, overrides: &AgentModelSettings) -> Map<String, Value> {
    let (provider, settings) = match &model.model.config {
        ModelConfig::Openai(config) => ("openai", json!(config)),
        ModelConfig::Anthropic(config) => ("anthropic", json!(config)),
        ModelConfig::Scripted(config) => (
            "scripted",
            json!({"file": config.file, "repeat": config.repeat}),
        ),
        ModelConfig::Host(config) => (
            "host",
            json!({"model": config.model, "deadline_ms": config.deadline_ms}),
        ),
    };
    let provider = model.class.as_ref().map_or(provider, |class| &class.class);
    let mut profile = Map::new();
    profile.insert("provider".to_owned(), provider.into());
    for part in [settings, json!(model.model.retry), json!(model.profile)] {
        if let Value::Object(members) = part {
            profile.extend(members);
        }
    }
    let mut given = Map::new();
    if let Some(temperature) = &overrides.temperature {
        given.insert("temperature".to_owned(), temperature.clone().into());
    }
    if let Some(tokens) = overrides.max_tokens {
        let is_set = |name: &str| profile.get(name).is_some_and(|value| !value.is_null());
        let renames = model
            .class
            .as_ref()
            .is_some_and(|class| class.renames_max_tokens());
        let name = if renames || is_set("max_completion_tokens") {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        given.insert(name.to_owned(), tokens.into());
    }
    model_parameters(&profile, &given)
}
