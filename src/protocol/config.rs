//! Configuration of a runtime, a model and a queue.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::app_config::{AppConfig, Unavailable};
use super::decode::{carry, from_value, tagged, wrong_type};
use super::environment::{self, References};
use super::error::{Error, ErrorCode};
use super::json::parse;
use super::model::{AnthropicConfig, OpenAiConfig, ScriptedConfig};
use super::model_entry::ModelEntry;
use super::time::Timestamp;

/// Most worker threads a runtime may have.
pub const MAX_WORKERS: u32 = 64;
/// Steps of a run unless the host says otherwise (DeerFlow CTX-2).
pub const DEFAULT_RECURSION_LIMIT: u32 = 100;
/// Most steps a run may be given (DeerFlow CTX-2).
pub const MAX_RECURSION_LIMIT: u32 = 1000;
/// Longest deadline or timeout, in milliseconds: 30 days.
pub const MAX_DEADLINE_MS: u64 = 30 * 24 * 3600 * 1000;

/// Configuration of a runtime. `{}` is valid: memory store, no files, no network, nobody listening.
///
/// In JSON one object: its own members, and the sections of [`AppConfig`].
#[derive(Clone, Debug, Default)]
pub struct RuntimeConfig {
    /// Threads of the runtime's own, 0 to 64; see [`RuntimeConfig::worker_threads`].
    pub workers: Option<u32>,
    /// Where threads are kept.
    pub database: DatabaseConfig,
    /// Deterministic mode, for tests and replays.
    pub testing: Option<TestingConfig>,
    /// The sections that say what agents are made of.
    pub app: AppConfig,
}

/// The members that are the runtime's own.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OwnMembers {
    /// Threads of the runtime's own, 0 to 64; they start with the first run. 0 means that the host's threads drive
    /// everything while they are inside `fawn_queue_take` or `fawn_run_wait`. Default 2.
    #[serde(default)]
    #[schemars(range(max = 64))]
    workers: Option<u32>,
    /// Where threads are kept.
    #[serde(default)]
    database: DatabaseConfig,
    /// Deterministic mode, for tests and replays.
    #[serde(default)]
    testing: Option<TestingConfig>,
}

impl OwnMembers {
    const NAMES: &'static [&'static str] = &["workers", "database", "testing"];
}

impl<'de> Deserialize<'de> for RuntimeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let decoded = match Value::deserialize(deserializer)? {
            Value::Object(members) => RuntimeConfig::from_members(members),
            value => Err(wrong_type(&value, "an object")),
        };
        decoded.map_err(|error| carry(&error))
    }
}

impl JsonSchema for RuntimeConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RuntimeConfig".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = OwnMembers::json_schema(generator);
        schema.remove("description");
        let sections = AppConfig::member_schemas(generator);
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.extend(sections);
        }
        schema
    }
}

impl RuntimeConfig {
    fn from_members(mut members: Map<String, Value>) -> Result<RuntimeConfig, Error> {
        let own: Map<String, Value> = OwnMembers::NAMES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), members.shift_remove(*name)?)))
            .filter(|(_, value)| !value.is_null())
            .collect();
        let OwnMembers {
            workers,
            database,
            testing,
        } = from_value(Value::Object(own))?;
        Ok(RuntimeConfig {
            workers,
            database,
            testing,
            app: AppConfig::from_members(members, OwnMembers::NAMES)?,
        })
    }

    /// Reads a configuration: parses it, resolves its references to the environment by `lookup`, decodes and checks it.
    /// Answers what was resolved as well.
    ///
    /// # Errors
    /// Those of each of these, at the member at fault; no value of a variable stands in their text.
    pub fn read(
        json: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Self, References), Error> {
        environment::read(parse(json)?, lookup, RuntimeConfig::validate)
    }

    /// Checks bounds and contradictions that the types do not hold.
    ///
    /// # Errors
    /// `OutOfRange`, `Conflict` or `Unsupported` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        if self.workers.is_some_and(|workers| workers > MAX_WORKERS) {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/workers",
                format!("workers must be 0 to {MAX_WORKERS}"),
            ));
        }
        self.database
            .validate()
            .map_err(|error| error.below("/database"))?;
        self.app.validate()?;
        if let Some(testing) = &self.testing {
            testing
                .validate()
                .map_err(|error| error.below("/testing"))?;
            if let (Some(workers), Some(other)) = (self.workers, testing.workers)
                && workers != other
            {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    "/testing/workers",
                    format!("workers is {workers} and testing.workers is {other}"),
                ));
            }
        }
        Ok(())
    }

    /// How many worker threads the runtime has.
    pub fn worker_threads(&self) -> usize {
        // Written out: as a chain of options it is compiled to a branch on what a missing `testing` would have held.
        let workers = match (self.workers, &self.testing) {
            (Some(workers), _) => Some(workers),
            (None, Some(testing)) => testing.workers,
            (None, None) => None,
        };
        workers.unwrap_or(2) as usize
    }
}

/// Deterministic mode: clock, ids and order of events are fixed by the input alone.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestingConfig {
    /// The time that the clock always tells, RFC 3339 in UTC.
    #[serde(default)]
    pub clock: Option<String>,
    /// Where ids come from. Default `random`. Ids that count from 1 again meet those of an earlier process on the same
    /// thread: give `{"sequential_from": n}` then.
    #[serde(default)]
    pub ids: IdsConfig,
    /// As `workers` of the runtime; at most 64.
    #[serde(default)]
    #[schemars(range(max = 64))]
    pub workers: Option<u32>,
}

impl TestingConfig {
    fn validate(&self) -> Result<(), Error> {
        if let Some(clock) = &self.clock
            && Timestamp::parse(clock).is_none()
        {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/clock",
                "clock must be a time such as \"2026-01-01T00:00:00Z\"",
            ));
        }
        if self.workers.is_some_and(|workers| workers > MAX_WORKERS) {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/workers",
                format!("workers must be 0 to {MAX_WORKERS}"),
            ));
        }
        Ok(())
    }
}

/// Where ids come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdsConfig {
    /// Counting up instead of random.
    pub is_sequential: bool,
    /// Number of the first id, when counting.
    pub first: u64,
}

impl IdsConfig {
    /// Counting up from `first`.
    pub fn counting(first: u64) -> Self {
        IdsConfig {
            is_sequential: true,
            first,
        }
    }
}

impl<'de> Deserialize<'de> for IdsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct From {
            sequential_from: u64,
        }
        let decoded = match Value::deserialize(deserializer)? {
            Value::String(name) => match name.as_str() {
                "random" => Ok(IdsConfig::default()),
                "sequential" => Ok(IdsConfig::counting(1)),
                other => Err(Error::at(
                    ErrorCode::UnknownVariant,
                    "",
                    format!("{other:?} is not one of \"random\", \"sequential\""),
                )),
            },
            value => from_value(value)
                .map(|From { sequential_from }| IdsConfig::counting(sequential_from)),
        };
        decoded.map_err(|error| carry(&error))
    }
}

impl JsonSchema for IdsConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IdsConfig".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Where ids come from: random, or counting up, from 1 or from a number.",
            "anyOf": [
                {"enum": ["random", "sequential"]},
                {
                    "type": "object",
                    "required": ["sequential_from"],
                    "properties": {"sequential_from": {"type": "integer", "minimum": 0}},
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// Where threads are kept.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatabaseConfig {
    /// The kind of store. Default `memory`.
    #[serde(default)]
    pub backend: Backend,
    /// `sqlite`: the folder that holds `fawn.db`. It must exist.
    #[serde(default)]
    pub sqlite_dir: Option<String>,
    /// `sqlite`: the file itself, instead of `sqlite_dir`.
    #[serde(default)]
    pub sqlite_path: Option<String>,
    /// How DeerFlow keeps messages in checkpoints. Default `full`; both read the same, and `delta` is not available in this
    /// version: here no checkpoint copies a message.
    #[serde(default)]
    pub checkpoint_channel_mode: ChannelMode,
    /// Settings of the mode `delta`.
    #[serde(default)]
    pub checkpoint_delta: CheckpointDeltaConfig,
    /// Size of a cache of DeerFlow's server; nothing here.
    #[serde(default)]
    pub checkpoint_graph_cache: Map<String, Value>,
    /// A cache of DeerFlow's server; nothing here.
    #[serde(default)]
    pub checkpoint_cache: Map<String, Value>,
    /// `postgres`: where the server is. Not available in this version.
    #[serde(default)]
    pub postgres_url: Unavailable,
    /// `postgres`: the schema for the tables. Not available in this version.
    #[serde(default)]
    pub postgres_schema: Unavailable,
    /// `postgres`: connections that are kept; nothing to other backends.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub pool_size: Option<u64>,
    /// `postgres`: seconds after which a connection is made anew; nothing to other backends.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub pool_recycle: Option<u64>,
    /// `postgres`: longest time for one command, in seconds; nothing to other backends.
    #[serde(default)]
    pub command_timeout: Option<f64>,
}

/// How DeerFlow keeps messages in checkpoints (EP-4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelMode {
    /// All of them in each.
    #[default]
    Full,
    /// What was written, and all of them now and then. Not available in this version.
    Delta,
}

/// Settings of the mode `delta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointDeltaConfig {
    /// Writes between two checkpoints with all messages. Default 10.
    #[schemars(range(min = 1))]
    pub snapshot_frequency: u64,
}

impl Default for CheckpointDeltaConfig {
    fn default() -> Self {
        CheckpointDeltaConfig {
            snapshot_frequency: 10,
        }
    }
}

impl DatabaseConfig {
    fn validate(&self) -> Result<(), Error> {
        let given = |member: &str, value: &Option<String>| match value {
            Some(text) if text.is_empty() => Err(Error::at(
                ErrorCode::OutOfRange,
                format!("/{member}"),
                format!("{member} must not be empty"),
            )),
            Some(_) if self.backend != Backend::Sqlite => Err(Error::at(
                ErrorCode::Conflict,
                format!("/{member}"),
                format!("{member} belongs to the backend \"sqlite\""),
            )),
            _ => Ok(value.is_some()),
        };
        if self.checkpoint_channel_mode == ChannelMode::Delta {
            return Err(Error::at(
                ErrorCode::Unsupported,
                "/checkpoint_channel_mode",
                "the mode \"delta\" is not available in this version",
            ));
        }
        for (path, number) in [
            (
                "/checkpoint_delta/snapshot_frequency",
                Some(self.checkpoint_delta.snapshot_frequency),
            ),
            ("/pool_size", self.pool_size),
            ("/pool_recycle", self.pool_recycle),
        ] {
            if number == Some(0) {
                let text = "this must be at least 1";
                return Err(Error::at(ErrorCode::OutOfRange, path, text));
            }
        }
        if self.command_timeout.is_some_and(|seconds| seconds <= 0.0) {
            let text = "command_timeout must be more than 0";
            return Err(Error::at(ErrorCode::OutOfRange, "/command_timeout", text));
        }
        let dir = given("sqlite_dir", &self.sqlite_dir)?;
        let path = given("sqlite_path", &self.sqlite_path)?;
        match self.backend {
            Backend::Sqlite if dir && path => Err(Error::at(
                ErrorCode::Conflict,
                "/sqlite_path",
                "give sqlite_dir or sqlite_path, not both",
            )),
            Backend::Sqlite if !dir && !path => Err(Error::at(
                ErrorCode::MissingMember,
                "/sqlite_dir",
                "the backend \"sqlite\" needs sqlite_dir or sqlite_path",
            )),
            Backend::Postgres => Err(Error::at(
                ErrorCode::Unsupported,
                "/backend",
                "the backend \"postgres\" is not available in this version",
            )),
            Backend::Memory | Backend::Sqlite => Ok(()),
        }
    }

    /// The SQLite file, when the backend is one.
    pub fn sqlite_file(&self) -> Option<std::path::PathBuf> {
        match (&self.sqlite_path, &self.sqlite_dir) {
            _ if self.backend != Backend::Sqlite => None,
            (Some(path), _) => Some(path.into()),
            (None, Some(dir)) => Some(std::path::Path::new(dir).join("fawn.db")),
            (None, None) => None,
        }
    }
}

/// The kind of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The process's memory; threads end with the runtime.
    #[default]
    Memory,
    /// One SQLite file.
    Sqlite,
    /// PostgreSQL. Not available in this version.
    Postgres,
}

/// A model, told apart by `provider`.
#[derive(Clone, Debug, JsonSchema)]
#[serde(tag = "provider", rename_all = "snake_case")]
pub enum ModelConfig {
    /// Replies from the configuration or a file; for tests, and for a first try without a key.
    Scripted(ScriptedConfig),
    /// Any endpoint that speaks OpenAI's chat completions.
    Openai(Box<OpenAiConfig>),
    /// Any endpoint that speaks Anthropic's messages.
    Anthropic(Box<AnthropicConfig>),
    /// The host answers, through host calls.
    Host(HostModelConfig),
}

/// Names of the providers, as `provider` has them.
pub const PROVIDER_NAMES: &[&str] = &["scripted", "openai", "anthropic", "host"];

impl<'de> Deserialize<'de> for ModelConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        tagged(value, "provider", PROVIDER_NAMES)
            .and_then(|(provider, rest)| match provider.as_str() {
                "scripted" => from_value(rest).map(ModelConfig::Scripted),
                "openai" => from_value(rest).map(Box::new).map(ModelConfig::Openai),
                "anthropic" => from_value(rest).map(Box::new).map(ModelConfig::Anthropic),
                _ => from_value(rest).map(ModelConfig::Host),
            })
            .map_err(|error| carry(&error))
    }
}

impl ModelConfig {
    /// Name of the provider.
    pub const fn provider(&self) -> &'static str {
        match self {
            ModelConfig::Scripted(_) => "scripted",
            ModelConfig::Openai(_) => "openai",
            ModelConfig::Anthropic(_) => "anthropic",
            ModelConfig::Host(_) => "host",
        }
    }

    /// Checks bounds.
    ///
    /// # Errors
    /// `OutOfRange` or `Conflict` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        match self {
            ModelConfig::Scripted(config) => config.validate(),
            ModelConfig::Openai(config) => config.validate(),
            ModelConfig::Anthropic(config) => config.validate(),
            ModelConfig::Host(config) => check_deadline("/deadline_ms", config.deadline_ms),
        }
    }
}

/// A model that the host answers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostModelConfig {
    /// Told to the host in each call, so that one host can answer several models.
    #[serde(default)]
    pub model: Option<String>,
    /// How long the host has for one reply, in milliseconds. Default 600000.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
}

/// A model given in place, or the name of one of the runtime's.
#[derive(Clone, Debug)]
pub enum ModelRef {
    /// Name of a model of the runtime.
    Named(String),
    /// A model of this assembly alone.
    Inline(Box<ModelEntry>),
}

impl<'de> Deserialize<'de> for ModelRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(name) => Ok(ModelRef::Named(name)),
            value => from_value(value)
                .map(|model| ModelRef::Inline(Box::new(model)))
                .map_err(|error| carry(&error)),
        }
    }
}

impl JsonSchema for ModelRef {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ModelRef".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A model given in place, or the name of one of the runtime's.",
            "anyOf": [{"type": "string"}, generator.subschema_for::<ModelEntry>()],
        })
    }
}

/// Checks a recursion limit at `/recursion_limit`.
pub(crate) fn check_recursion_limit(limit: Option<u32>) -> Result<(), Error> {
    match limit {
        Some(limit) if !(1..=MAX_RECURSION_LIMIT).contains(&limit) => Err(Error::at(
            ErrorCode::OutOfRange,
            "/recursion_limit",
            format!("recursion_limit must be 1 to {MAX_RECURSION_LIMIT}, not {limit}"),
        )),
        _ => Ok(()),
    }
}

pub(crate) fn check_deadline(path: &str, deadline_ms: Option<u64>) -> Result<(), Error> {
    match deadline_ms {
        Some(ms) if !(1..=MAX_DEADLINE_MS).contains(&ms) => Err(Error::at(
            ErrorCode::OutOfRange,
            path,
            format!("a deadline must be 1 to {MAX_DEADLINE_MS} milliseconds, not {ms}"),
        )),
        _ => Ok(()),
    }
}

/// Configuration of a queue.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// Events that may wait before producing runs wait, 16 to 1048576. Default 4096.
    #[serde(default)]
    #[schemars(range(min = 16, max = 1048576))]
    pub high_mark_events: Option<u32>,
    /// Bytes that may wait before producing runs wait, 65536 to 1073741824. Default 16777216.
    #[serde(default)]
    #[schemars(range(min = 65536, max = 1073741824))]
    pub high_mark_bytes: Option<u64>,
    /// Above the marks, drop what is not a control event instead of making runs wait; a `gap` event tells of it.
    #[serde(default)]
    pub lossy: bool,
    /// Runtime-wide events that come here too.
    #[serde(default)]
    pub subscribe: Vec<Subscription>,
}

impl QueueConfig {
    /// Checks bounds.
    ///
    /// # Errors
    /// `OutOfRange` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        if self
            .high_mark_events
            .is_some_and(|mark| !(16..=1 << 20).contains(&mark))
        {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/high_mark_events",
                "high_mark_events must be 16 to 1048576",
            ));
        }
        if self
            .high_mark_bytes
            .is_some_and(|mark| !(1 << 16..=1 << 30).contains(&mark))
        {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/high_mark_bytes",
                "high_mark_bytes must be 65536 to 1073741824",
            ));
        }
        Ok(())
    }
}

/// Runtime-wide events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subscription {
    /// `log` events: warnings with a stable code.
    Log,
    /// Events and host calls that belong to no run.
    Runtime,
}
