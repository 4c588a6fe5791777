//! What a guardrail of the host is asked about a tool call, and what it answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool call that a guardrail is asked about (MW-GRD-1).
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GuardrailRequest<'a> {
    /// The tool.
    pub tool_name: &'a str,
    /// The arguments as the model gave them; they are checked against the tool's schema only after this.
    pub tool_input: &'a Map<String, Value>,
    /// The agent: `passport` of the configuration.
    pub agent_id: Option<&'a str>,
    /// The thread.
    pub thread_id: &'a str,
    /// The run.
    pub run_id: &'a str,
    /// The model's id of the call.
    pub tool_call_id: &'a str,
    /// Whether a subagent calls.
    pub is_subagent: bool,
    /// When it is asked, as RFC 3339 in UTC.
    pub timestamp: String,
    /// For whom the agent works.
    pub user_id: Option<&'a str>,
    /// Their role.
    pub user_role: Option<&'a str>,
    /// Who vouched for them.
    pub oauth_provider: Option<&'a str>,
    /// What they are called there.
    pub oauth_id: Option<&'a str>,
    /// What they are called in the channel that the request came by.
    pub channel_user_id: Option<&'a str>,
    /// Whether the request comes from the host itself.
    pub is_internal: bool,
    /// Whatever else the host said of them: `authz_attributes`.
    pub attributes: &'a Map<String, Value>,
}

/// What a guardrail says about a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardrailDecision {
    /// Whether it may be made.
    pub allow: bool,
    /// Why; the model is told the first reason of a denial.
    #[serde(default)]
    pub reasons: Vec<GuardrailReason>,
    /// The policy that decided, for records.
    #[serde(default)]
    pub policy_id: Option<String>,
}

/// Why a guardrail decided as it did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardrailReason {
    /// For programs. Default `oap.denied`.
    #[serde(default)]
    pub code: Option<String>,
    /// For the model.
    #[serde(default)]
    pub message: Option<String>,
}

impl GuardrailDecision {
    /// A denial for one reason.
    pub fn denied(code: &str, message: impl Into<String>) -> Self {
        GuardrailDecision {
            allow: false,
            reasons: vec![GuardrailReason {
                code: Some(code.to_owned()),
                message: Some(message.into()),
            }],
            policy_id: None,
        }
    }
}
