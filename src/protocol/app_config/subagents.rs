//! Sections about subagents: kinds, limits, and how many run at once.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::feature::{least, not_blank, within};
use super::limits::TokenBudgetConfig;
use crate::protocol::error::Error;
use crate::protocol::json::pointer_token;
use crate::protocol::trust::OperatorText;

/// Most subagents that may run at once (FA-13).
pub const MAX_RUNNING_SUBAGENTS: u64 = 64;
/// Most delegations of one run (RT-40).
pub const MAX_TOTAL_SUBAGENTS: u64 = 50;

/// Subagents: kinds, limits and overrides (SUB-6 to SUB-12).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubagentsConfig {
    /// Longest time of a built-in subagent, in seconds. Default 1800.
    #[schemars(range(min = 1))]
    pub timeout_seconds: u64,
    /// Most turns of a built-in subagent. Default: its own.
    #[schemars(range(min = 1))]
    pub max_turns: Option<u64>,
    /// Most delegations of one run, 1 to 50, unless the request says otherwise: the option `max_total_subagents` comes first,
    /// more or less. Default 6.
    #[schemars(range(min = 1, max = 50))]
    pub max_total_per_run: u64,
    /// Tokens of one subagent. Default: on, 2000000, or 1000000 while threads are summarised, with a warning at 0.7.
    pub token_budget: Option<TokenBudgetConfig>,
    /// What is different for a subagent, by name. One that there is not is a warning of the assembly.
    pub agents: BTreeMap<String, SubagentOverrideConfig>,
    /// More subagents, by name; models are told of them in this order. One with the name of a built-in subagent is not used,
    /// which is a warning of the assembly; a blank name is refused.
    #[schemars(with = "BTreeMap<String, CustomSubagentConfig>")]
    pub custom_agents: IndexMap<String, CustomSubagentConfig>,
}

/// What is different for one subagent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubagentOverrideConfig {
    /// Longest time, in seconds.
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<u64>,
    /// Most turns.
    #[schemars(range(min = 1))]
    pub max_turns: Option<u64>,
    /// Its model. Default: its agent's.
    #[schemars(length(min = 1))]
    pub model: Option<String>,
    /// Skills that it may find and activate; empty for none. Default: all that are on.
    pub skills: Option<Vec<String>>,
    /// Its tokens.
    pub token_budget: Option<TokenBudgetConfig>,
}

/// A subagent of the operator's.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomSubagentConfig {
    /// When to delegate to it.
    pub description: OperatorText,
    /// What it is told.
    pub system_prompt: OperatorText,
    /// Tools that it has; empty for none. One that its agent does not have is a warning of the assembly. Default: those of its
    /// agent.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Tools that it does not have. Default `task`, `ask_clarification`, `present_files`.
    #[serde(default = "default_disallowed_tools")]
    pub disallowed_tools: Option<Vec<String>>,
    /// Skills that it may find and activate; empty for none. Default: all that are on.
    #[serde(default)]
    pub skills: Option<Vec<String>>,
    /// Its model; `inherit` for its agent's. Default `inherit`.
    #[serde(default = "default_model")]
    pub model: String,
    /// Most turns. Default 50.
    #[serde(default = "default_max_turns")]
    #[schemars(range(min = 1))]
    pub max_turns: u64,
    /// Longest time, in seconds. Default 900.
    #[serde(default = "default_timeout_seconds")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: u64,
}

fn default_disallowed_tools() -> Option<Vec<String>> {
    let names = ["task", "ask_clarification", "present_files"];
    Some(names.map(str::to_owned).to_vec())
}
fn default_model() -> String {
    "inherit".to_owned()
}
fn default_max_turns() -> u64 {
    50
}
fn default_timeout_seconds() -> u64 {
    900
}

impl Default for SubagentsConfig {
    fn default() -> Self {
        SubagentsConfig {
            timeout_seconds: 1_800,
            max_turns: None,
            max_total_per_run: 6,
            token_budget: None,
            agents: BTreeMap::new(),
            custom_agents: IndexMap::new(),
        }
    }
}

impl SubagentsConfig {
    /// The tokens of the subagent of this name (MC-6). A budget that is given is on unless it says otherwise: it is stricter or
    /// wider than the one that would be there without it, and not none.
    pub fn token_budget_of(&self, name: &str, is_summarized: bool) -> TokenBudgetConfig {
        let own = self
            .agents
            .get(name)
            .and_then(|own| own.token_budget.as_ref());
        own.or(self.token_budget.as_ref())
            .map(|given| TokenBudgetConfig {
                enabled: Some(given.enabled.unwrap_or(true)),
                ..given.clone()
            })
            .unwrap_or_else(|| TokenBudgetConfig {
                enabled: Some(true),
                max_tokens: if is_summarized { 1_000_000 } else { 2_000_000 },
                warn_threshold: 0.7,
                ..TokenBudgetConfig::default()
            })
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        within("/timeout_seconds", self.timeout_seconds, 1, u64::MAX)?;
        least("/max_turns", self.max_turns, 1)?;
        within(
            "/max_total_per_run",
            self.max_total_per_run,
            1,
            MAX_TOTAL_SUBAGENTS,
        )?;
        if let Some(budget) = &self.token_budget {
            budget
                .validate()
                .map_err(|error| error.below("/token_budget"))?;
        }
        for (name, own) in &self.agents {
            let at = format!("/agents/{}", pointer_token(name));
            own.validate().map_err(|error| error.below(&at))?;
        }
        for (name, agent) in &self.custom_agents {
            let at = format!("/custom_agents/{}", pointer_token(name));
            // No model can ask for it, and no message can name it.
            not_blank(&at, name)?;
            agent.validate().map_err(|error| error.below(&at))?;
        }
        Ok(())
    }
}

impl SubagentOverrideConfig {
    fn validate(&self) -> Result<(), Error> {
        least("/timeout_seconds", self.timeout_seconds, 1)?;
        least("/max_turns", self.max_turns, 1)?;
        if let Some(model) = &self.model {
            not_blank("/model", model)?;
        }
        match &self.token_budget {
            Some(budget) => budget
                .validate()
                .map_err(|error| error.below("/token_budget")),
            None => Ok(()),
        }
    }
}

impl CustomSubagentConfig {
    fn validate(&self) -> Result<(), Error> {
        not_blank("/description", self.description.as_str())?;
        not_blank("/system_prompt", self.system_prompt.as_str())?;
        not_blank("/model", &self.model)?;
        within("/max_turns", self.max_turns, 1, u64::MAX)?;
        within("/timeout_seconds", self.timeout_seconds, 1, u64::MAX)
    }
}

/// How many subagents run at once (FA-13, RT-30).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubagentRuntimeConfig {
    /// How many run at once, 1 to 64. Default 3.
    #[schemars(range(min = 1, max = 64))]
    pub max_running: u64,
    /// How many may wait, 0 to 10000. Default 64.
    #[schemars(range(max = 10_000))]
    pub max_queued: u64,
    /// What happens when all places are taken. Default `queue`.
    pub admission_policy: AdmissionPolicy,
    /// Longest wait, in seconds, 1 to 86400. Default 300.
    #[schemars(range(min = 1, max = 86_400))]
    pub queue_timeout_seconds: u64,
}

/// What happens to a subagent when all places are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionPolicy {
    /// It waits.
    #[default]
    Queue,
    /// It is refused.
    Reject,
}

impl Default for SubagentRuntimeConfig {
    fn default() -> Self {
        SubagentRuntimeConfig {
            max_running: 3,
            max_queued: 64,
            admission_policy: AdmissionPolicy::Queue,
            queue_timeout_seconds: 300,
        }
    }
}

impl SubagentRuntimeConfig {
    /// Checks the bounds (RT-30).
    pub(in crate::protocol) fn validate(&self) -> Result<(), Error> {
        within("/max_running", self.max_running, 1, MAX_RUNNING_SUBAGENTS)?;
        within("/max_queued", self.max_queued, 0, 10_000)?;
        within(
            "/queue_timeout_seconds",
            self.queue_timeout_seconds,
            1,
            86_400,
        )
    }
}
