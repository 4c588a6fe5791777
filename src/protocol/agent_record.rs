//! A custom agent: what its record says about it.

use serde::Serialize;
use serde_json::Number;

use super::trust::{Identifier, SourcedText};

/// What a custom agent's record (`config.yaml`, or a member of `agents` in the configuration) says (CA-1).
///
/// Absent and empty differ: no list means no restriction, an empty one means nothing at all (CA-2).
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRecord {
    /// Name: `A-Z a-z 0-9 -`.
    pub name: Identifier,
    /// What it is for; may be empty.
    pub description: SourcedText,
    /// Its personality (`SOUL.md`), trimmed; none when blank.
    pub soul: Option<SourcedText>,
    /// Model it asks for.
    pub model: Option<String>,
    /// Groups of configured tools that it has; `None` for all of them.
    pub tool_groups: Option<Vec<String>>,
    /// Skills that it may find and activate; `None` for all that are enabled.
    pub skills: Option<Vec<String>>,
    /// Settings of its model.
    pub model_settings: AgentModelSettings,
    /// Whether it thinks, unless the request says.
    pub thinking_enabled: Option<bool>,
    /// How hard it thinks, unless the request says.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Subagents that it may delegate to; `None` for all, an empty list forbids delegation.
    pub allowed_subagents: Option<Vec<String>>,
    /// Whether it has memory. Default true.
    pub memory_enabled: bool,
}

/// Settings of a custom agent's model (MD-11).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentModelSettings {
    /// Sampling temperature, 0 to 2.
    pub temperature: Option<Number>,
    /// Most tokens to write, 1 to 200000.
    pub max_tokens: Option<u64>,
}

/// How hard a custom agent thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

impl ReasoningEffort {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            ReasoningEffort::Low => "low",
            ReasoningEffort::Medium => "medium",
            ReasoningEffort::High => "high",
        }
    }
}
