//! The record of a decision about a tool call, for the host: names, ids and codes, never the arguments (MW-GRD-3).

use serde_json::Value;

use super::message_marks::first_chars;
use super::reply::members;
use crate::ports::signals::AuditRecord;
use crate::ports::tool::ToolInvocation;
use crate::protocol::guardrail::GuardrailDecision;

/// Longest reason in a record, and to a model, in characters (MW-GRD-3).
pub(super) const MAX_REASON_CHARS: usize = 500;
/// Longest code, name of a tool or of a policy, in characters.
pub(super) const MAX_NAME_CHARS: usize = 100;
/// Most reasons of a record.
const MAX_REASONS: usize = 20;

/// The code of a denial that gives none.
pub(super) const DENIED: &str = "oap.denied";
/// The code of a decision that nobody could make.
pub(super) const NOT_EVALUATED: &str = "oap.evaluator_error";

/// Who decided about a call.
pub(super) struct Decider<'a> {
    /// Name of the middleware.
    pub(super) middleware: &'a str,
    /// Name of the provider.
    pub(super) provider: &'a str,
    /// What names the agent to it.
    pub(super) agent_id: Option<&'a str>,
    /// The role of whom it works for.
    pub(super) user_role: &'a str,
    /// Whether what cannot be decided is denied.
    pub(super) fail_closed: bool,
}

impl Decider<'_> {
    /// Records a decision of its own, or, with `provider_error`, what `fail_closed` made of none.
    pub(super) fn record(
        &self,
        invocation: &ToolInvocation,
        decision: &GuardrailDecision,
        provider_error: bool,
    ) {
        let action = match (decision.allow, provider_error) {
            (false, _) => "deny_tool_call",
            (true, true) => "allow_tool_call_after_provider_error",
            (true, false) => "allow_tool_call",
        };
        let reasons = decision.reasons.iter().take(MAX_REASONS);
        let codes: Value = reasons
            .clone()
            .filter_map(|reason| reason.code.as_deref())
            .map(|code| first_chars(code, MAX_NAME_CHARS))
            .collect();
        let messages: Value = reasons
            .filter_map(|reason| reason.message.as_deref())
            .map(|message| first_chars(message, MAX_REASON_CHARS))
            .collect();
        let policy = decision.policy_id.as_deref();
        let changes = members([
            ("middleware", self.middleware.into()),
            ("hook", "wrap_tool_call".into()),
            ("provider", self.provider.into()),
            (
                "tool_name",
                first_chars(&invocation.name, MAX_NAME_CHARS).into(),
            ),
            ("tool_call_id", invocation.call_id.as_str().into()),
            ("agent_id", self.agent_id.into()),
            ("is_subagent", is_of_subagent(invocation).into()),
            (
                "user_role",
                Some(self.user_role).filter(|role| !role.is_empty()).into(),
            ),
            ("allow", decision.allow.into()),
            (
                "policy_id",
                policy.map(|id| first_chars(id, MAX_NAME_CHARS)).into(),
            ),
            ("reason_codes", codes),
            ("reason_messages", messages),
            ("fail_closed", self.fail_closed.into()),
            ("provider_error", provider_error.into()),
        ]);
        invocation.run.facts.signals.record(AuditRecord {
            tag: "guardrail",
            action,
            changes,
        });
    }
}

/// Whether a subagent makes a call (SUB-20). What the context of a request says of it is not asked: a policy may let
/// subagents do more or less than their agents.
pub(super) fn is_of_subagent(invocation: &ToolInvocation) -> bool {
    invocation.run.facts.subagent.is_some()
}

/// The first code and message of a denial, for the model.
pub(super) fn first_reason(decision: &GuardrailDecision) -> (&str, &str) {
    let first = decision.reasons.first();
    let code = first.and_then(|reason| reason.code.as_deref());
    let message = first.and_then(|reason| reason.message.as_deref());
    let said = |text: &&str| !text.trim().is_empty();
    (
        first_chars(code.filter(said).unwrap_or(DENIED), MAX_NAME_CHARS),
        first_chars(
            message.filter(said).unwrap_or("a policy forbids it"),
            MAX_REASON_CHARS,
        ),
    )
}
