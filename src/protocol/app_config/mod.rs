//! The application's configuration: DeerFlow's `config.yaml` as JSON, section by section.

mod access;
mod conversation;
mod feature;
mod gateway;
mod guardrails;
mod limits;
mod memory;
mod sandbox;
mod skills;
mod subagents;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

pub use access::{
    AccessPolicy, Allowed, AuthorizationConfig, AuthorizationLists, AuthorizationProviderConfig,
    RoleConfig,
};
pub use conversation::{
    ContextSize, ContextSizeKind, PdfConverter, SummarizationConfig, TitleConfig, Triggers,
    UploadsConfig,
};
pub use feature::{Feature, OpaqueSettings, Unavailable};
pub use guardrails::{
    AllowlistConfig, ClassGuardrailConfig, GuardrailProviderConfig, GuardrailsConfig,
    HostGuardrailConfig,
};
pub use limits::{
    CircuitBreakerConfig, LlmCallConfig, LoopDetectionConfig, SafetyDetectorConfig,
    SafetyFinishReasonConfig, TokenBudgetConfig, TokenUsageConfig, ToolFrequencyConfig,
};
pub use memory::{MemoryConfig, MemoryMode};
pub use sandbox::{MountConfig, SandboxClass, SandboxConfig};
pub use skills::{ExtensionsConfig, SkillEvolutionConfig, SkillStateConfig, SkillsConfig};
pub use subagents::{
    AdmissionPolicy, CustomSubagentConfig, MAX_RUNNING_SUBAGENTS, MAX_TOTAL_SUBAGENTS,
    SubagentOverrideConfig, SubagentRuntimeConfig, SubagentsConfig,
};
pub use tools::{
    ClassTool, ConfiguredTool, ReadBeforeWriteConfig, ToolGroupConfig, ToolOutputConfig,
    ToolProgressConfig, ToolSearchConfig,
};

use self::feature::{not_available, within};
use super::agent_record::AgentRecord;
use super::config::MAX_RECURSION_LIMIT;
use super::decode::{carry, from_value, unknown_member, wrong_type};
use super::environment::{self, References};
use super::error::{Error, ErrorCode};
use super::host_tool::HostToolConfig;
use super::json::pointer_token;
use super::named_model::NamedModel;

/// Declares the sections once: documentation, member, type. Where a section is absent or null its default stands, as
/// DeerFlow has it.
macro_rules! sections {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty,)+) => {
        /// The sections of DeerFlow's `config.yaml` as JSON, with DeerFlow's names, defaults and bounds, and one member of
        /// our own: `home`.
        ///
        /// A section that switches something on that this version does not have is refused by its path
        /// ([`ErrorCode::Unsupported`]); where DeerFlow has it on by default, so is one that changes its settings, while an
        /// absent one asks for nothing. Text that begins with `$` names a variable of the environment: see
        /// [`environment`](super::environment).
        ///
        /// Sections that only mean something to DeerFlow's server are taken as long as they ask for nothing that a library
        /// would have to do, and are forgotten: `config_version`, `log_level`; `logging`, `agents_api`, `suggestions`,
        /// `input_polish`, `scheduler`, `mcp_tasks`, `channels`, `channel_connections`, `auth`, `run_ownership`,
        /// `skill_scan`, `subagent_batches` while switched off; `run_events`, `stream_bridge`, `dedupe_storage` in memory;
        /// `agent_storage` in files.
        #[derive(Clone, Debug, Default)]
        pub struct AppConfig {
            $($(#[doc = $doc])+ pub $name: $type,)+
        }

        impl AppConfig {
            /// Names of the sections, those of DeerFlow's server not included.
            pub const SECTIONS: &'static [&'static str] = &[$(stringify!($name),)+];

            /// Takes the sections out of `members`.
            fn take(members: &mut Map<String, Value>) -> Result<AppConfig, Error> {
                Ok(AppConfig {
                    $($name: match members.shift_remove(stringify!($name)) {
                        None | Some(Value::Null) => Default::default(),
                        Some(section) => from_value(section)
                            .map_err(|error| error.below(concat!("/", stringify!($name))))?,
                    },)+
                })
            }

            fn properties(generator: &mut schemars::SchemaGenerator) -> Map<String, Value> {
                let mut properties = Map::new();
                $(
                    let mut schema = generator.subschema_for::<Option<$type>>();
                    let doc = concat!($($doc),+).trim();
                    schema.insert("description".to_owned(), doc.into());
                    properties.insert(stringify!($name).to_owned(), schema.to_value());
                )+
                properties
            }
        }
    };
}

sections! {
    /// Models that assemblies name. Each needs a `name` of its own; the first is the default.
    models: Vec<NamedModel>,
    /// Tools that lead agents have, in order: those of the host, and those that DeerFlow would load by class.
    tools: Vec<ConfiguredTool>,
    /// Groups of tools, for the record: what counts is the `group` of a tool.
    tool_groups: Vec<ToolGroupConfig>,
    /// Whether tools of MCP servers are kept back until they are searched for.
    tool_search: ToolSearchConfig,
    /// What happens to tool results that are too long.
    tool_output: ToolOutputConfig,
    /// Stops tools that get nowhere.
    tool_progress: ToolProgressConfig,
    /// Wants a file to be read before it is written.
    read_before_write: ReadBeforeWriteConfig,
    /// Where commands and files live.
    sandbox: SandboxConfig,
    /// Where skills are found, and how the model learns of them.
    skills: SkillsConfig,
    /// Whether agents write skills.
    skill_evolution: SkillEvolutionConfig,
    /// Which skills are on; MCP servers and middleware by class are not available in this version.
    extensions: ExtensionsConfig,
    /// What is remembered between threads.
    memory: MemoryConfig,
    /// Subagents: kinds, limits and overrides.
    subagents: SubagentsConfig,
    /// How many subagents run at once.
    subagent_runtime: SubagentRuntimeConfig,
    /// Shortens long threads: a summary takes the place of their beginning.
    summarization: SummarizationConfig,
    /// Gives threads a title.
    title: TitleConfig,
    /// Bounds of uploaded files.
    uploads: UploadsConfig,
    /// Counts tokens.
    token_usage: TokenUsageConfig,
    /// Bounds the tokens of a run.
    token_budget: TokenBudgetConfig,
    /// Stops models that repeat themselves.
    loop_detection: LoopDetectionConfig,
    /// Recognises replies that a provider cut for safety.
    safety_finish_reason: SafetyFinishReasonConfig,
    /// Asks somebody before each tool call: lists of tools, or the host.
    guardrails: GuardrailsConfig,
    /// Who may use which model and tool.
    authorization: AuthorizationConfig,
    /// How many model calls of lead agents run at once, and how they are tried again.
    llm_call: LlmCallConfig,
    /// Stops calling a model that keeps failing, in lead agents.
    circuit_breaker: CircuitBreakerConfig,
    /// Agents behind the Agent Client Protocol. Not available in this version.
    acp_agents: BTreeMap<String, Unavailable>,
    /// Custom agents, by name: what DeerFlow keeps in a `config.yaml` each, with a `soul`. They are the operator's, come before
    /// those of users, and do not change themselves.
    agents: Vec<Arc<AgentRecord>>,
    /// Most steps that a run may ask for, 1 to 1000. Default 1000.
    max_recursion_limit: Option<u32>,
    /// The directory that holds `users/…` and `agents/…`: DeerFlow's `DEER_FLOW_HOME`. Default: none, and then nothing is
    /// read or written there.
    home: Option<String>,
}

impl AppConfig {
    /// Reads a configuration of its own: resolves its references to the environment by `lookup`, decodes and checks it.
    /// Answers what was resolved as well.
    ///
    /// # Errors
    /// Those of each of these, at the member at fault; no value of a variable stands in their text.
    pub fn read(
        value: Value,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(AppConfig, References), Error> {
        environment::read(value, lookup, AppConfig::validate)
    }

    /// Decodes the members of an object. `also` are members that the object has besides, for the hints of errors.
    ///
    /// # Errors
    /// Those of the sections, and `UnknownMember`, with their path in the object.
    pub fn from_members(
        mut members: Map<String, Value>,
        also: &[&str],
    ) -> Result<AppConfig, Error> {
        gateway::take(&mut members)?;
        let config = AppConfig::take(&mut members)?;
        members.retain(|name, value| !name.starts_with("x-") && !value.is_null());
        match members.keys().next() {
            Some(name) => {
                let known = [AppConfig::SECTIONS, also, gateway::NAMES].concat();
                Err(unknown_member(name, &known))
            }
            None => Ok(config),
        }
    }

    /// The JSON Schemas of the members, by name.
    pub(crate) fn member_schemas(generator: &mut schemars::SchemaGenerator) -> Map<String, Value> {
        let mut properties = AppConfig::properties(generator);
        properties.extend(gateway::NAMES.iter().map(|name| {
            let doc =
                "A section of DeerFlow's server; taken while it asks for nothing of a library.";
            ((*name).to_owned(), json!({ "description": doc }))
        }));
        // Bounds that the types do not say.
        for (name, keyword, bound) in [
            ("max_recursion_limit", "minimum", 1),
            ("max_recursion_limit", "maximum", MAX_RECURSION_LIMIT),
            ("home", "minLength", 1),
        ] {
            properties[name][keyword] = bound.into();
        }
        properties
    }

    /// Checks bounds, contradictions, and that nothing is switched on that this version does not have.
    ///
    /// # Errors
    /// `OutOfRange`, `Conflict`, `MissingMember`, `UnknownModel` or `Unsupported` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        self.check_models()?;
        for (place, tool) in self.tools.iter().enumerate() {
            let checked = tool.validate();
            checked.map_err(|error| error.below(&format!("/tools/{place}")))?;
        }
        for (place, group) in self.tool_groups.iter().enumerate() {
            let checked = group.validate();
            checked.map_err(|error| error.below(&format!("/tool_groups/{place}")))?;
        }
        for (place, agent) in self.agents.iter().enumerate() {
            let same = |earlier: &Arc<AgentRecord>| earlier.name == agent.name;
            if self.agents[..place].iter().any(same) {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    format!("/agents/{place}/name"),
                    format!("a second agent is named {:?}", agent.name.as_str()),
                ));
            }
        }
        let checks: &[(&str, Result<(), Error>)] = &[
            ("tool_output", self.tool_output.validate()),
            ("tool_progress", self.tool_progress.validate()),
            ("sandbox", self.sandbox.validate()),
            ("skills", self.skills.validate()),
            ("extensions", self.extensions.validate()),
            ("memory", self.memory.validate()),
            ("subagents", self.subagents.validate()),
            ("subagent_runtime", self.subagent_runtime.validate()),
            ("summarization", self.summarization.validate()),
            ("title", self.title.validate()),
            ("uploads", self.uploads.validate()),
            ("token_budget", self.token_budget.validate()),
            ("loop_detection", self.loop_detection.validate()),
            ("safety_finish_reason", self.safety_finish_reason.validate()),
            ("guardrails", self.guardrails.validate()),
            ("authorization", self.authorization.validate()),
            ("llm_call", self.llm_call.validate()),
            ("circuit_breaker", self.circuit_breaker.validate()),
        ];
        for (section, checked) in checks {
            if let Err(error) = checked {
                return Err(error.clone().below(&format!("/{section}")));
            }
        }
        if let Some(limit) = self.max_recursion_limit {
            let (limit, most) = (u64::from(limit), u64::from(MAX_RECURSION_LIMIT));
            within("/max_recursion_limit", limit, 1, most)?;
        }
        if self
            .home
            .as_ref()
            .is_some_and(|home| home.trim().is_empty())
        {
            let text = "home must name a directory";
            return Err(Error::at(ErrorCode::OutOfRange, "/home", text));
        }
        self.check_available()
    }

    fn check_models(&self) -> Result<(), Error> {
        let names: Vec<&str> = self.models.iter().map(|model| &*model.name).collect();
        for (place, model) in self.models.iter().enumerate() {
            let at = format!("/models/{place}");
            if names[..place].contains(&&*model.name) {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    format!("{at}/name"),
                    format!("a second model is named {:?}", model.name),
                ));
            }
            let checked = model.validate();
            checked
                .and_then(|()| model.model.check_names(&names))
                .map_err(|error| error.below(&at))?;
        }
        Ok(())
    }

    /// Refuses what is asked for and not there.
    fn check_available(&self) -> Result<(), Error> {
        match self.acp_agents.keys().next() {
            Some(name) => {
                let path = format!("/acp_agents/{}", pointer_token(name));
                Err(not_available(&path, "acp_agents"))
            }
            None => Ok(()),
        }
    }

    /// The tools of the section `tools` that the host runs, each with its place there.
    pub fn host_tools(&self) -> Vec<(usize, &HostToolConfig)> {
        let tools = self.tools.iter().enumerate();
        let of_host = tools.filter_map(|(place, tool)| match tool {
            ConfiguredTool::Host(config) => Some((place, config)),
            ConfiguredTool::Class(_) => None,
        });
        of_host.collect()
    }

    /// Sections with settings that nothing switches on.
    pub fn forgotten_sections(&self) -> Vec<&'static str> {
        let sections = [
            ("summarization", self.summarization.is_forgotten()),
            ("title", self.title.is_forgotten()),
            ("tool_output", self.tool_output.is_forgotten()),
            ("tool_progress", self.tool_progress.is_forgotten()),
            ("read_before_write", self.read_before_write.is_forgotten()),
            ("guardrails", self.guardrails.is_forgotten()),
            ("token_usage", self.token_usage.is_forgotten()),
            ("token_budget", self.token_budget.is_forgotten()),
            ("loop_detection", self.loop_detection.is_forgotten()),
            (
                "safety_finish_reason",
                self.safety_finish_reason.is_forgotten(),
            ),
        ];
        let forgotten = sections
            .into_iter()
            .filter(|(_, is_forgotten)| *is_forgotten);
        forgotten.map(|(name, _)| name).collect()
    }

    /// The model of this name.
    pub fn model(&self, name: &str) -> Option<&NamedModel> {
        self.models.iter().find(|model| model.name == name)
    }
}

impl<'de> Deserialize<'de> for AppConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let decoded = match Value::deserialize(deserializer)? {
            Value::Object(members) => AppConfig::from_members(members, &[]),
            value => Err(wrong_type(&value, "an object")),
        };
        decoded.map_err(|error| carry(&error))
    }
}

impl JsonSchema for AppConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AppConfig".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let properties = AppConfig::member_schemas(generator);
        schemars::json_schema!({
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}
