//! Sections about tools: which there are, how they are found, and what happens to their results.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::feature::{Feature, OpaqueSettings, between, not_blank, within};
use crate::protocol::decode::{carry, from_value, wrong_type};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::host_tool::HostToolConfig;

/// One entry of `tools`.
#[derive(Clone, Debug)]
pub enum ConfiguredTool {
    /// A tool that the host runs.
    Host(HostToolConfig),
    /// A tool that DeerFlow would load by its class.
    Class(ClassTool),
}

/// A tool that DeerFlow would load by its class; whether this library has it is for whoever makes the agent to say (TL-3).
#[derive(Clone, Debug, Deserialize)]
pub struct ClassTool {
    /// Name.
    pub name: String,
    /// The group that agents choose it by.
    #[serde(default)]
    pub group: Option<String>,
    /// Where DeerFlow finds it: `module:variable`.
    #[serde(rename = "use")]
    pub class: String,
    /// Its own settings.
    #[serde(skip)]
    pub settings: OpaqueSettings,
}

impl ConfiguredTool {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            ConfiguredTool::Host(tool) => &tool.name,
            ConfiguredTool::Class(tool) => &tool.name,
        }
    }

    /// The group that agents choose it by.
    pub fn group(&self) -> Option<&str> {
        match self {
            ConfiguredTool::Host(tool) => tool.group.as_deref(),
            ConfiguredTool::Class(tool) => tool.group.as_deref(),
        }
    }

    /// Checks bounds.
    ///
    /// # Errors
    /// `OutOfRange` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        match self {
            ConfiguredTool::Host(tool) => tool.validate(),
            ConfiguredTool::Class(tool) => {
                not_blank("/name", &tool.name)?;
                not_blank("/use", &tool.class)
            }
        }
    }
}

impl<'de> Deserialize<'de> for ConfiguredTool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decode(Value::deserialize(deserializer)?).map_err(|error| carry(&error))
    }
}

fn decode(value: Value) -> Result<ConfiguredTool, Error> {
    let Value::Object(mut members) = value else {
        return Err(wrong_type(&value, "an object"));
    };
    if members.get("use").is_none_or(Value::is_null) {
        members.shift_remove("use");
        return from_value(Value::Object(members)).map(ConfiguredTool::Host);
    }
    let own: Map<String, Value> = ["name", "group", "use"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), members.shift_remove(*name)?)))
        .collect();
    let tool: ClassTool = from_value(Value::Object(own))?;
    Ok(ConfiguredTool::Class(ClassTool {
        settings: OpaqueSettings(members),
        ..tool
    }))
}

impl JsonSchema for ConfiguredTool {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ConfiguredTool".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let host = HostToolConfig::json_schema(generator).to_value();
        let class = json!({
            "description": "A tool that DeerFlow would load by its class; left out, with a warning, where this library does not have it. Other members are its own settings.",
            "type": "object",
            "required": ["name", "use"],
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "group": {
                    "description": "The group that agents choose it by (`tool_groups`).",
                    "type": ["string", "null"],
                },
                "use": {
                    "description": "Where DeerFlow finds it: `module:variable`.",
                    "type": "string",
                    "minLength": 1,
                },
            },
        });
        schemars::json_schema!({"description": "A tool of lead agents.", "anyOf": [host, class]})
    }
}

/// A group of tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolGroupConfig {
    /// Name.
    #[schemars(length(min = 1))]
    pub name: String,
}

impl ToolGroupConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        not_blank("/name", &self.name)
    }
}

/// Whether tools of MCP servers are kept back until they are searched for (TL-11).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSearchConfig {
    /// Whether they are. Default false.
    pub enabled: bool,
    /// How many tools a request may bring forward by its keywords (TL-18); taken as 1 to 5. Default 3.
    pub auto_promote_top_k: i64,
}

impl Default for ToolSearchConfig {
    fn default() -> Self {
        ToolSearchConfig {
            enabled: false,
            auto_promote_top_k: 3,
        }
    }
}

impl ToolSearchConfig {
    /// How many tools a request may bring forward, within bounds.
    pub fn promoted_at_once(&self) -> usize {
        self.auto_promote_top_k.clamp(1, 5) as usize
    }
}

/// What happens to tool results that are too long (MW-TOB).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolOutputConfig {
    /// Whether anything does. Default true.
    pub enabled: Option<bool>,
    /// Characters beyond which a result goes into a file, 0 for never. Default 12000.
    pub externalize_min_chars: u64,
    /// Characters of its beginning that the model still sees. Default 2000.
    pub preview_head_chars: u64,
    /// Characters of its end that the model still sees. Default 1000.
    pub preview_tail_chars: u64,
    /// Characters beyond which a result is cut where there is no file, 0 for never. Default 30000.
    pub fallback_max_chars: u64,
    /// Characters of its beginning that are left then. Default 8000.
    pub fallback_head_chars: u64,
    /// Characters of its end that are left then. Default 3000.
    pub fallback_tail_chars: u64,
    /// Name of the directory for the files, without separators. Default `.tool-results`.
    pub storage_subdir: String,
    /// Tools whose results stay. Default `read_file`, `read_file_tool`.
    pub exempt_tools: Vec<String>,
    /// `externalize_min_chars` by tool.
    pub tool_overrides: BTreeMap<String, u64>,
}

impl Default for ToolOutputConfig {
    fn default() -> Self {
        ToolOutputConfig {
            enabled: None,
            externalize_min_chars: 12_000,
            preview_head_chars: 2_000,
            preview_tail_chars: 1_000,
            fallback_max_chars: 30_000,
            fallback_head_chars: 8_000,
            fallback_tail_chars: 3_000,
            storage_subdir: ".tool-results".to_owned(),
            exempt_tools: vec!["read_file".to_owned(), "read_file_tool".to_owned()],
            tool_overrides: BTreeMap::new(),
        }
    }
}

impl Feature for ToolOutputConfig {
    const ON_BY_DEFAULT: bool = true;
    fn switch(&self) -> Option<bool> {
        self.enabled
    }
}

impl ToolOutputConfig {
    /// Checks the name of the directory.
    ///
    /// # Errors
    /// `OutOfRange` at `/storage_subdir`.
    pub fn validate(&self) -> Result<(), Error> {
        let name = self.storage_subdir.as_str();
        if matches!(name, "" | "." | "..") || name.contains(['/', '\\']) {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/storage_subdir",
                "storage_subdir must be the name of one directory",
            ));
        }
        Ok(())
    }
}

/// Stops tools that get nowhere (MW-TPR).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolProgressConfig {
    /// Whether it does. Default false.
    pub enabled: Option<bool>,
    /// Problems in a row before the model is warned. Default 3.
    #[schemars(range(min = 1))]
    pub stagnation_threshold: u64,
    /// Problems after the warning before the tool is blocked. Default 2.
    #[schemars(range(min = 1))]
    pub warn_escalation_count: u64,
    /// Whether the model is told. Default true.
    pub inject_assessment: bool,
    /// How alike two results are that count as the same, 0 to 1. Default 0.8.
    #[schemars(range(min = 0, max = 1))]
    pub jaccard_similarity_threshold: f64,
    /// Results with fewer different words are not compared. Default 10.
    #[schemars(range(min = 1))]
    pub min_word_count_for_similarity: u64,
    /// Tools that are left alone. Default `ask_clarification`, `write_todos`, `present_files`, `task`.
    pub exempt_tools: Vec<String>,
    /// Threads that are remembered. Default 100.
    #[schemars(range(min = 1))]
    pub max_tracked_threads: u64,
}

impl Default for ToolProgressConfig {
    fn default() -> Self {
        let exempt = ["ask_clarification", "write_todos", "present_files", "task"];
        ToolProgressConfig {
            enabled: None,
            stagnation_threshold: 3,
            warn_escalation_count: 2,
            inject_assessment: true,
            jaccard_similarity_threshold: 0.8,
            min_word_count_for_similarity: 10,
            exempt_tools: exempt.map(str::to_owned).to_vec(),
            max_tracked_threads: 100,
        }
    }
}

impl Feature for ToolProgressConfig {
    const ON_BY_DEFAULT: bool = false;
    fn switch(&self) -> Option<bool> {
        self.enabled
    }
}

impl ToolProgressConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        for (path, value) in [
            ("/stagnation_threshold", self.stagnation_threshold),
            ("/warn_escalation_count", self.warn_escalation_count),
            (
                "/min_word_count_for_similarity",
                self.min_word_count_for_similarity,
            ),
            ("/max_tracked_threads", self.max_tracked_threads),
        ] {
            within(path, value, 1, u64::MAX)?;
        }
        between(
            "/jaccard_similarity_threshold",
            self.jaccard_similarity_threshold,
            0.0,
            1.0,
        )
    }
}

/// Wants a file to be read before it is written (MW-RBW).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReadBeforeWriteConfig {
    /// Whether it does. Default true.
    pub enabled: Option<bool>,
}

impl Feature for ReadBeforeWriteConfig {
    const ON_BY_DEFAULT: bool = true;
    fn switch(&self) -> Option<bool> {
        self.enabled
    }
}
