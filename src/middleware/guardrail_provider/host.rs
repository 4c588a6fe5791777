//! The guardrail that asks the host: a host call of the kind `guardrail` for each tool call.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::middleware::reply::members;
use crate::ports::BoxFuture;
use crate::ports::call_key::call_key;
use crate::ports::guardrail::{GuardrailProvider, GuardrailQuestion};
use crate::ports::host::{AnswerCheck, HostCall, HostCallKind, HostReply, until_cancelled};
use crate::protocol::app_config::HostGuardrailConfig;
use crate::protocol::decode::from_value;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::guardrail::{GuardrailDecision, GuardrailRequest};

/// Asks the host.
pub(super) struct AskHost {
    name: String,
    deadline: Duration,
}

impl AskHost {
    /// As configured.
    pub(super) fn new(config: &HostGuardrailConfig) -> Self {
        AskHost {
            name: config.name.clone(),
            deadline: Duration::from_millis(config.timeout_ms),
        }
    }

    async fn ask(&self, question: &GuardrailQuestion<'_>) -> Result<GuardrailDecision, Error> {
        let invocation = question.invocation;
        let run = &invocation.run;
        let mut handle = run.host.open(HostCall {
            kind: HostCallKind::Guardrail,
            name: self.name.clone(),
            args: request_json(question),
            tool_call_id: Some(invocation.call_id.clone()),
            deadline: self.deadline,
            // That of the tool call, so that a run that goes on where another stopped asks with the same key.
            idempotency_key: format!("{}/guardrail", call_key(invocation)),
            also: AnswerCheck::default(),
        })?;
        loop {
            match handle.next().await? {
                HostReply::Emitted(_) => {}
                HostReply::Answered(value) => return decision(value),
                HostReply::Refused(refusal) => {
                    return Err(Error::new(ErrorCode::Internal, refusal.message));
                }
            }
        }
    }
}

impl GuardrailProvider for AskHost {
    fn name(&self) -> &str {
        "host"
    }

    fn policy(&self) -> Map<String, Value> {
        let timeout_ms = u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX);
        members([
            ("name", self.name.as_str().into()),
            ("timeout_ms", timeout_ms.into()),
        ])
    }

    fn asks_host(&self) -> bool {
        true
    }

    fn evaluate<'a>(
        &'a self,
        question: &'a GuardrailQuestion<'a>,
    ) -> BoxFuture<'a, Result<GuardrailDecision, String>> {
        Box::pin(async move {
            match self.ask(question).await {
                Err(error) if error.code == ErrorCode::Closed => until_cancelled().await,
                decided => decided.map_err(|error| error.message),
            }
        })
    }
}

/// The `args` of the host call (schema `guardrail_request`).
fn request_json(question: &GuardrailQuestion<'_>) -> String {
    let GuardrailQuestion {
        invocation,
        principal,
        ..
    } = question;
    let said = |text: &'_ str| !text.is_empty();
    let request = GuardrailRequest {
        tool_name: &invocation.name,
        tool_input: &invocation.args,
        agent_id: question.agent_id,
        thread_id: &invocation.run.thread_id,
        run_id: &invocation.run.run_id,
        tool_call_id: &invocation.call_id,
        is_subagent: question.is_subagent,
        timestamp: invocation.run.host.now().to_string(),
        user_id: Some(principal.user_id.as_str()).filter(|text| said(text)),
        user_role: Some(principal.role.as_str()).filter(|text| said(text)),
        oauth_provider: principal.oauth_provider.as_deref(),
        oauth_id: principal.oauth_id.as_deref(),
        channel_user_id: principal.channel_user_id.as_deref(),
        is_internal: principal.is_internal,
        attributes: &principal.attributes,
    };
    serde_json::to_string(&request).expect("text, flags and JSON values always serialise")
}

/// Checks an answer when the host hands it in, so that it hears of a mistake at once and can mend it (schema
/// `guardrail_answer`).
///
/// # Errors
/// Those of decoding, with the path in the answer.
pub fn check_answer(value: &Value) -> Result<(), Error> {
    decision(value.clone()).map(|_| ())
}

fn decision(value: Value) -> Result<GuardrailDecision, Error> {
    from_value(value)
}
