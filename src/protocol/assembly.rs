//! Configuration of an assembly: which factory composes the agent, and what it is given.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::app_config::{AppConfig, AuthorizationLists};
use super::config::{ModelRef, check_recursion_limit};
use super::decode::{carry, from_value, unknown_member, wrong_type};
use super::error::{Error, ErrorCode};
use super::host_middleware::HostMiddlewareConfig;
use super::host_tool::HostToolConfig;
use super::json::pointer_token;
use super::trust::OperatorText;

/// Configuration of an assembly, told apart by `factory`.
#[derive(Clone, Debug)]
pub enum AssemblyConfig {
    /// `custom`, and what no factory is named for: exactly what is given.
    Custom(CustomConfig),
    /// `direct`: plain arguments and features.
    Direct(Box<DirectConfig>),
    /// `lead`: the lead agent with its descriptor.
    Lead(Box<LeadConfig>),
    /// `lead_graph`: the lead agent as a bare graph.
    LeadGraph(Box<LeadConfig>),
}

/// Names of the factories, as `factory` has them.
pub const FACTORY_NAMES: &[&str] = &["custom", "direct", "lead", "lead_graph"];

impl AssemblyConfig {
    /// Checks bounds and contradictions that the types do not hold.
    ///
    /// # Errors
    /// `OutOfRange`, `Conflict` or `Unsupported` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        match self {
            AssemblyConfig::Custom(config) => config.validate(),
            AssemblyConfig::Direct(config) => config.validate(),
            AssemblyConfig::Lead(config) | AssemblyConfig::LeadGraph(config) => config.validate(),
        }
    }
}

impl AssemblyConfig {
    /// The handle of the subagents object that the agent delegates through, if one is named.
    pub fn subagent_runtime(&self) -> Option<u64> {
        match self {
            AssemblyConfig::Custom(_) => None,
            AssemblyConfig::Direct(config) => config.subagent_runtime,
            AssemblyConfig::Lead(config) | AssemblyConfig::LeadGraph(config) => {
                config.subagent_runtime
            }
        }
    }
}

impl<'de> Deserialize<'de> for AssemblyConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decode(Value::deserialize(deserializer)?).map_err(|error| carry(&error))
    }
}

fn decode(value: Value) -> Result<AssemblyConfig, Error> {
    let Value::Object(mut members) = value else {
        return Err(wrong_type(&value, "an object"));
    };
    let factory = match members.shift_remove("factory") {
        None => "custom".to_owned(),
        Some(Value::String(name)) => name,
        Some(other) => return Err(wrong_type(&other, "text").below("/factory")),
    };
    let rest = Value::Object(members);
    match factory.as_str() {
        "custom" => from_value(rest).map(AssemblyConfig::Custom),
        "direct" => from_value(rest).map(|config| AssemblyConfig::Direct(Box::new(config))),
        "lead" => from_value(rest).map(|config| AssemblyConfig::Lead(Box::new(config))),
        "lead_graph" => from_value(rest).map(|config| AssemblyConfig::LeadGraph(Box::new(config))),
        other => {
            let known: Vec<String> = FACTORY_NAMES.iter().map(|n| format!("{n:?}")).collect();
            Err(Error::at(
                ErrorCode::UnknownVariant,
                "/factory",
                format!("{other:?} is not one of {}", known.join(", ")),
            ))
        }
    }
}

impl JsonSchema for AssemblyConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AssemblyConfig".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let variant = |name: &str, schema: schemars::Schema, about: &str| {
            let mut schema = schema.to_value();
            schema["properties"]["factory"] = json!({"const": name, "description": about});
            if name != "custom" {
                match schema["required"].as_array_mut() {
                    Some(required) => required.push("factory".into()),
                    None => schema["required"] = json!(["factory"]),
                }
            }
            schema
        };
        let custom = CustomConfig::json_schema(generator);
        let direct = DirectConfig::json_schema(generator);
        let lead = LeadConfig::json_schema(generator);
        schemars::json_schema!({
            "oneOf": [
                variant("custom", custom, "Exactly what is given; the default."),
                variant("direct", direct, "Plain arguments and features."),
                variant("lead", lead.clone(), "The lead agent, with its descriptor."),
                variant("lead_graph", lead, "The lead agent as a bare graph: its descriptor is null."),
            ],
        })
    }
}

/// An agent given outright: model, system text, tools and middleware, and nothing else.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomConfig {
    /// The model.
    pub model: ModelRef,
    /// System text, as it is.
    #[serde(default)]
    pub system_prompt: Option<OperatorText>,
    /// Tools that the host runs.
    #[serde(default)]
    pub tools: Vec<HostToolConfig>,
    /// The chain, outermost first. Default: `["dangling_tool_call"]`, which repairs what a cancelled run left open.
    #[serde(default)]
    pub middleware: Option<Vec<MiddlewareConfig>>,
    /// Steps of a run unless the run says otherwise, 1 to 1000. Default 100.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub recursion_limit: Option<u32>,
}

impl CustomConfig {
    fn validate(&self) -> Result<(), Error> {
        check_model(&self.model)?;
        check_recursion_limit(self.recursion_limit)?;
        check_tools(&self.tools)
    }
}

/// An agent of plain arguments: no configuration file, no prompt of ours (FA-1).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectConfig {
    /// The model.
    pub model: ModelRef,
    /// Name of the agent. Default `default`.
    #[serde(default)]
    pub name: Option<String>,
    /// System text, as it is.
    #[serde(default)]
    pub system_prompt: Option<OperatorText>,
    /// Tools that the host runs. They win over the factory's own of the same name: the calls of an `ask_clarification` of yours are
    /// made like any others, and a warning (`tool_duplicate`) says so.
    #[serde(default)]
    pub tools: Vec<HostToolConfig>,
    /// What the agent is made of besides. Not together with `middleware`.
    #[serde(default)]
    pub features: Option<Features>,
    /// Full takeover: this chain, outermost first, instead of the factory's.
    #[serde(default)]
    pub middleware: Option<Vec<MiddlewareConfig>>,
    /// Middleware in addition to the factory's. Not together with `middleware`.
    #[serde(default)]
    pub extra_middleware: Vec<ExtraMiddleware>,
    /// Whether the agent keeps a list of todos. Not together with `middleware`.
    #[serde(default)]
    pub plan_mode: bool,
    /// The `fawn_subagents` whose capacity and limits the agent's subagents have, by its handle. Needs `features.subagent`.
    /// Default: the capacity that all assemblies of the process without one share.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub subagent_runtime: Option<u64>,
    /// Steps of a run unless the run says otherwise, 1 to 1000. Default 100.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub recursion_limit: Option<u32>,
}

impl DirectConfig {
    /// FA-2, in its order: features beside a takeover, then extras beside it, then a subagents object that nothing binds to
    /// (RT-25), then the rest.
    fn validate(&self) -> Result<(), Error> {
        if self.middleware.is_some() && self.features.is_some() {
            return Err(Error::at(
                ErrorCode::Conflict,
                "/features",
                "\"middleware\" is the whole chain, so \"features\" has nothing to add; give one of them",
            ));
        }
        if self.middleware.is_some() && !self.extra_middleware.is_empty() {
            return Err(Error::at(
                ErrorCode::Conflict,
                "/extra_middleware",
                "\"middleware\" is the whole chain, so \"extra_middleware\" has no place; give one of them",
            ));
        }
        if self.middleware.is_some() && self.plan_mode {
            return Err(Error::at(
                ErrorCode::Conflict,
                "/plan_mode",
                "\"middleware\" is the whole chain, so \"plan_mode\" has nothing to add; name \"todo\" in it",
            ));
        }
        if self.subagent_runtime.is_some() {
            self.check_delegates()?;
        }
        check_model(&self.model)?;
        check_recursion_limit(self.recursion_limit)?;
        check_tools(&self.tools)
    }

    /// Whether the host brings a tool of this name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// Whether its features let the agent delegate.
    pub fn delegates(&self) -> bool {
        let feature = self.features.as_ref().and_then(|it| it.subagent.as_ref());
        feature.is_some_and(|feature| *feature != Feature::Off)
    }

    /// Checks that the subagents object has something to bind to (RT-25).
    fn check_delegates(&self) -> Result<(), Error> {
        let refused = |text: &str| {
            let text = format!("{text}, so \"subagent_runtime\" has nothing to bind to");
            Err(Error::at(ErrorCode::Conflict, "/subagent_runtime", text))
        };
        if self.middleware.is_some() {
            return refused("\"middleware\" is the whole chain");
        }
        match &self.features {
            None => refused("without \"features\" the agent has no subagents"),
            Some(features) => match features.subagent {
                None => refused("\"features\" without \"subagent\" gives the agent no subagents"),
                Some(Feature::Off) => refused("\"features\" has \"subagent\" false"),
                Some(Feature::On | Feature::With(_)) => Ok(()),
            },
        }
    }
}

/// What `direct` makes an agent of (FA-3). Each is `false`, `true`, or an object of settings.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// What tells the model of uploads, on your word: such an agent keeps no files. Default true. A sandbox is a lead agent's, so that
    /// `true` here asks for something that is not there and is refused.
    #[serde(default)]
    pub sandbox: Option<Feature>,
    /// Memory. Only lead agents have one; `true` is refused.
    #[serde(default)]
    pub memory: Option<Feature>,
    /// Compaction of long threads; needs settings, those of the section `summarization` without `model_name`. Default false.
    #[serde(default)]
    pub summarization: Option<Feature>,
    /// Delegation to subagents; settings are those of the middleware `subagent_limit` and replace the limits that it is given
    /// otherwise. Default false.
    #[serde(default)]
    pub subagent: Option<Feature>,
    /// Looking at images. Only lead agents have files to look at; `true` is refused.
    #[serde(default)]
    pub vision: Option<Feature>,
    /// Titles for new threads. Default false.
    #[serde(default)]
    pub auto_title: Option<Feature>,
    /// A guard of tool calls; needs settings. Default false.
    #[serde(default)]
    pub guardrail: Option<Feature>,
    /// Breaking loops of repeated calls. Default true.
    #[serde(default)]
    pub loop_detection: Option<Feature>,
    /// A limit of tokens. Default false. `true` is a limit that is on, with the default amount.
    #[serde(default)]
    pub token_budget: Option<Feature>,
}

/// Whether an agent has something, and with which settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Feature {
    /// It has not.
    Off,
    /// It has, with the default settings.
    On,
    /// It has, with these settings.
    With(Map<String, Value>),
}

impl<'de> Deserialize<'de> for Feature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Feature::Off),
            Value::Bool(true) => Ok(Feature::On),
            Value::Object(settings) => Ok(Feature::With(settings)),
            other => Err(carry(&wrong_type(&other, "true, false or an object"))),
        }
    }
}

impl JsonSchema for Feature {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Feature".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Whether an agent has something; an object holds its settings.",
            "anyOf": [{"type": "boolean"}, {"type": "object"}],
        })
    }
}

/// A middleware by name, with settings if it takes some; or one that the host is.
#[derive(Clone, Debug, PartialEq)]
pub struct MiddlewareConfig {
    /// Name in the chain; `fawn_describe("middleware")` lists them.
    pub name: String,
    /// Its settings.
    pub settings: Map<String, Value>,
    /// What makes it one that the host is, under a name of the host's choice.
    pub host: Option<Box<HostMiddlewareConfig>>,
}

impl MiddlewareConfig {
    fn decode(value: Value) -> Result<Self, Error> {
        match value {
            Value::String(name) => Ok(MiddlewareConfig {
                name,
                settings: Map::new(),
                host: None,
            }),
            Value::Object(mut settings) => match settings.shift_remove("name") {
                Some(Value::String(name)) => {
                    let host = decode_host(&name, &mut settings)?;
                    Ok(MiddlewareConfig {
                        name,
                        settings,
                        host,
                    })
                }
                Some(other) => Err(wrong_type(&other, "text").below("/name")),
                None => Err(Error::at(
                    ErrorCode::MissingMember,
                    "/name",
                    "\"name\" is missing: which middleware it is",
                )),
            },
            other => Err(wrong_type(
                &other,
                "the name of a middleware, or an object with it",
            )),
        }
    }
}

/// Takes the member `host` out of an entry of a chain; beside it nothing but the name may stand.
fn decode_host(
    name: &str,
    settings: &mut Map<String, Value>,
) -> Result<Option<Box<HostMiddlewareConfig>>, Error> {
    let Some(host) = settings.shift_remove("host").filter(|host| !host.is_null()) else {
        return Ok(None);
    };
    settings.retain(|member, _| !member.starts_with("x-"));
    if let Some(member) = settings.keys().next() {
        return Err(unknown_member(member, &["name", "host", "after", "before"]));
    }
    let fits = (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !fits {
        return Err(Error::at(
            ErrorCode::OutOfRange,
            "/name",
            "the name of a middleware of the host must be 1 to 64 characters of A-Z, a-z, 0-9, _ and -",
        ));
    }
    let decoded = from_value(host).and_then(|config: HostMiddlewareConfig| {
        config.validate()?;
        Ok(config)
    });
    decoded
        .map(|config| Some(Box::new(config)))
        .map_err(|error| error.below("/host"))
}

impl<'de> Deserialize<'de> for MiddlewareConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        MiddlewareConfig::decode(Value::deserialize(deserializer)?).map_err(|error| carry(&error))
    }
}

impl JsonSchema for MiddlewareConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MiddlewareConfig".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let host = generator.subschema_for::<HostMiddlewareConfig>();
        schemars::json_schema!({
            "description": "A middleware by name; an object has its settings beside the name, or the member host, which makes it one that the host is, under a name of its own.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "host": host},
                    "required": ["name"],
                },
            ],
        })
    }
}

/// A middleware in addition to those of a factory, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraMiddleware {
    /// The middleware.
    pub middleware: MiddlewareConfig,
    /// Right inside of (after) the middleware of this name.
    pub after: Option<String>,
    /// Right outside of (before) the middleware of this name.
    pub before: Option<String>,
}

impl<'de> Deserialize<'de> for ExtraMiddleware {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let decoded = || {
            let mut value = Value::deserialize(deserializer)?;
            let mut anchor = |name: &str| match value
                .as_object_mut()
                .and_then(|members| members.shift_remove(name))
            {
                None | Some(Value::Null) => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(other) => {
                    let at = format!("/{}", pointer_token(name));
                    Err(carry(&wrong_type(&other, "text").below(&at)))
                }
            };
            let (after, before) = (anchor("after")?, anchor("before")?);
            Ok(ExtraMiddleware {
                middleware: MiddlewareConfig::decode(value).map_err(|error| carry(&error))?,
                after,
                before,
            })
        };
        decoded()
    }
}

impl JsonSchema for ExtraMiddleware {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExtraMiddleware".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let host = generator.subschema_for::<HostMiddlewareConfig>();
        schemars::json_schema!({
            "description": "A middleware by name; an object has its settings beside the name, or the member host, which makes it one that the host is, and at most one anchor. Without an anchor it stands before the last of a direct agent, which is the clarification, and outside of a lead agent's last checks of a reply.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "host": host,
                        "after": {"description": "Right after the middleware of this name.", "type": ["string", "null"]},
                        "before": {"description": "Right before the middleware of this name.", "type": ["string", "null"]},
                    },
                    "required": ["name"],
                },
            ],
        })
    }
}

/// The lead agent, as the runtime's configuration and the options of a request make it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeadConfig {
    /// Options by key: `model_name`, `thinking_enabled`, `reasoning_effort`, `is_plan_mode`, `subagent_enabled`,
    /// `max_concurrent_subagents`, `max_total_subagents`, `agent_name`, `is_bootstrap`, `non_interactive`,
    /// `interaction_mode`, `channel_name`, `user_id`, `user_role`, `authz_attributes`. Others are let through.
    #[serde(default)]
    pub configurable: Map<String, Value>,
    /// Options by key as well, and facts about the request; they win over `configurable` (RC-1).
    #[serde(default)]
    pub context: Map<String, Value>,
    /// `lead_agent`, or the name of a custom agent (RC-8).
    #[serde(default)]
    pub assistant_id: Option<String>,
    /// Tools that the host runs for this agent, besides those of the configuration.
    #[serde(default)]
    pub tools: Vec<HostToolConfig>,
    /// Middleware in addition to the agent's: beside another by `after` or `before`, else after the limits of tokens and loops
    /// (the place of the caller's own in DeerFlow's list).
    #[serde(default)]
    pub extra_middleware: Vec<ExtraMiddleware>,
    /// Sections of the configuration for this agent alone, in place of all of the runtime's (EP-3). References to the
    /// environment are resolved when the agent is assembled.
    #[serde(default)]
    #[schemars(with = "Option<AppConfig>")]
    pub app_config: Option<Value>,
    /// What the host lets this agent use, besides what the configuration says: it can only narrow that.
    #[serde(default)]
    pub authorization: Option<AuthorizationLists>,
    /// Facts about the build that runs, for the descriptor.
    #[serde(default)]
    pub build: BuildLabels,
    /// The `fawn_subagents` whose capacity and limits the agent's subagents have, by its handle. Default: the capacity that all
    /// assemblies of the process without one share, and the limits of the configuration.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub subagent_runtime: Option<u64>,
    /// Steps of a run unless the run says otherwise, 1 to 1000. Default 100.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub recursion_limit: Option<u32>,
}

impl LeadConfig {
    fn validate(&self) -> Result<(), Error> {
        check_recursion_limit(self.recursion_limit)?;
        check_tools(&self.tools)
    }
}

/// Facts about the build that runs; no part of an agent's fingerprint (AD-22, AD-25).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildLabels {
    /// Digest of the image. Default `unknown`.
    #[serde(default)]
    pub image_digest: Option<String>,
    /// Commit of the sources. Default `unknown`.
    #[serde(default)]
    pub git_commit: Option<String>,
}

fn check_model(model: &ModelRef) -> Result<(), Error> {
    match model {
        ModelRef::Inline(model) => model.validate().map_err(|error| error.below("/model")),
        ModelRef::Named(_) => Ok(()),
    }
}

fn check_tools(tools: &[HostToolConfig]) -> Result<(), Error> {
    for (place, tool) in tools.iter().enumerate() {
        let at = format!("/tools/{place}");
        tool.validate().map_err(|error| error.below(&at))?;
        if tools[..place]
            .iter()
            .any(|earlier| earlier.name == tool.name)
        {
            return Err(Error::at(
                ErrorCode::Conflict,
                format!("{at}/name"),
                format!("a second tool is named {:?}", tool.name),
            ));
        }
    }
    Ok(())
}
