//! The guardrail port: somebody who is asked before each tool call.

use serde_json::{Map, Value};

use super::BoxFuture;
use super::authorization::Principal;
use super::tool::ToolInvocation;
use crate::protocol::guardrail::GuardrailDecision;

/// A tool call that somebody is asked about.
#[derive(Clone, Copy, Debug)]
pub struct GuardrailQuestion<'a> {
    /// The call, and the run that makes it.
    pub invocation: &'a ToolInvocation,
    /// What names the agent.
    pub agent_id: Option<&'a str>,
    /// For whom the agent works; empty texts where nobody said.
    pub principal: &'a Principal,
    /// Whether a subagent calls.
    pub is_subagent: bool,
}

/// Decides about tool calls.
pub trait GuardrailProvider: Send + Sync + 'static {
    /// Name of the provider, for descriptors and records.
    fn name(&self) -> &str;

    /// What a descriptor says about its settings.
    fn policy(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Whether it asks the host, so that a run needs a queue.
    fn asks_host(&self) -> bool {
        false
    }

    /// Whether the call may be made. Dropping the future withdraws the question.
    ///
    /// The error says why it cannot tell; what follows is up to `fail_closed`.
    fn evaluate<'a>(
        &'a self,
        question: &'a GuardrailQuestion<'a>,
    ) -> BoxFuture<'a, Result<GuardrailDecision, String>>;
}
