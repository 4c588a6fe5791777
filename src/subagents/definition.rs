//! Which subagents there are, and how each is set up once all overrides are applied.

use std::time::Duration;

use crate::protocol::app_config::TokenBudgetConfig;
use crate::protocol::trust::OperatorText;

/// What kind of subagent it is.
#[derive(Clone, Debug, PartialEq)]
pub enum SubagentKind {
    /// The built-in `general-purpose`.
    GeneralPurpose,
    /// The built-in `bash`.
    Bash,
    /// One of the operator's (`subagents.custom_agents`).
    Custom {
        /// When to delegate to it.
        description: OperatorText,
        /// What it is told.
        system_prompt: OperatorText,
    },
}

/// A subagent with its overrides applied (SUB-9 to SUB-14).
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentDefinition {
    /// Its name.
    pub name: String,
    /// Where it comes from, and what it is told.
    pub kind: SubagentKind,
    /// Tools that it has, of those that there are; `None` for all.
    pub tools: Option<Vec<String>>,
    /// Tools that it does not have.
    pub disallowed_tools: Vec<String>,
    /// Skills that it may find and activate; `None` for all, empty for none.
    pub skills: Option<Vec<String>>,
    /// Its model; `None` for that of the agent that delegates (`inherit`).
    pub model: Option<String>,
    /// Most turns, at least 1.
    pub max_turns: u64,
    /// Longest time, waiting for a place included.
    pub timeout: Duration,
    /// Its tokens.
    pub token_budget: TokenBudgetConfig,
}
