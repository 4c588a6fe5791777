//! Asks the guardrail of the configuration about every tool call, before it is made.
//!
//! Inside of the authorization: what that denies, nobody else is asked about. A denied call is an error result that the model
//! can act on. Where the guardrail cannot tell (the host is late, refuses, or has gone), `fail_closed` decides.
//!
//! Source: DeerFlow `GuardrailMiddleware`, MW-GRD-1 to MW-GRD-3. Where it is for whom the agent works that cannot be told,
//! that too is a question without an answer.

mod allowlist;
mod host;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::allowlist::Allowlist;
use self::host::AskHost;
use super::guardrail_record::{Decider, NOT_EVALUATED, first_reason, is_of_subagent};
use super::refusal::refused;
use super::reply::{members, quoted_name};
use super::tool_result_class::of_refusal;
use super::{Hooks, Middleware, NextTool, RunFacts};
use crate::ports::BoxFuture;
use crate::ports::authorization::Principal;
use crate::ports::guardrail::{GuardrailProvider, GuardrailQuestion};
use crate::ports::tool::{ToolInvocation, ToolOutcome};
use crate::protocol::app_config::{Feature as _, GuardrailProviderConfig, GuardrailsConfig};
use crate::protocol::canonical_json::text_hash;
use crate::protocol::error::Error;
use crate::protocol::guardrail::GuardrailDecision;
use crate::protocol::warning::Warning;

pub use self::host::check_answer;

/// What it is called in a chain.
pub const NAME: &str = "guardrail_provider";

/// The middleware.
pub struct Guardrail {
    provider: Arc<dyn GuardrailProvider>,
    fail_closed: bool,
    passport: Option<String>,
    /// For whom the agent was made; without it, the context of a run says.
    principal: Option<Principal>,
}

impl Guardrail {
    /// As configured; `None` when nobody is to be asked.
    ///
    /// # Errors
    /// Those of the section's own checks.
    pub fn of_section(
        section: &GuardrailsConfig,
        principal: Option<Principal>,
    ) -> Result<Option<Self>, Error> {
        section.validate()?;
        let provider: Arc<dyn GuardrailProvider> = match &section.provider {
            _ if !section.is_enabled() => return Ok(None),
            Some(GuardrailProviderConfig::Allowlist(lists)) => Arc::new(Allowlist::new(lists)),
            Some(GuardrailProviderConfig::Host(host)) => Arc::new(AskHost::new(host)),
            // Validation has refused these.
            Some(GuardrailProviderConfig::Class(_)) | None => return Ok(None),
        };
        Ok(Some(Guardrail {
            provider,
            fail_closed: section.fail_closed,
            passport: section.passport.clone(),
            principal,
        }))
    }

    /// For whom a run works.
    fn principal(&self, facts: &RunFacts) -> Result<Principal, String> {
        match &self.principal {
            Some(principal) => Ok(principal.clone()),
            None => principal_of_run(facts),
        }
    }

    async fn judge(
        &self,
        invocation: &ToolInvocation,
    ) -> Result<(GuardrailDecision, Principal), String> {
        let principal = self.principal(&invocation.run.facts)?;
        let question = GuardrailQuestion {
            invocation,
            agent_id: self.passport.as_deref(),
            principal: &principal,
            is_subagent: is_of_subagent(invocation),
        };
        let decision = self.provider.evaluate(&question).await?;
        Ok((decision, principal))
    }

    /// Why a call is not made; `None` when it is. Whoever listens to the logs hears of all but plain allowances.
    async fn refusal(&self, invocation: &ToolInvocation) -> Option<String> {
        let facts = &invocation.run.facts;
        let decider = |user_role| Decider {
            middleware: NAME,
            provider: self.provider.name(),
            agent_id: self.passport.as_deref(),
            user_role,
            fail_closed: self.fail_closed,
        };
        let name = quoted_name(&invocation.name);
        match self.judge(invocation).await {
            Ok((decision, _)) if decision.allow => None,
            Ok((decision, principal)) => {
                let (code, message) = first_reason(&decision);
                decider(&principal.role).record(invocation, &decision, false);
                let told = format!("the call of {name} is not allowed ({code}): {message}");
                let signals = &facts.signals;
                signals.warn(Warning::GuardrailDenied, told.clone());
                Some(told)
            }
            Err(why) => {
                let follows = match self.fail_closed {
                    true => "it was not made",
                    false => "it was made",
                };
                let decision = GuardrailDecision {
                    allow: !self.fail_closed,
                    ..GuardrailDecision::denied(
                        NOT_EVALUATED,
                        format!("the guardrail could not tell; {follows}"),
                    )
                };
                decider("").record(invocation, &decision, true);
                let message =
                    format!("no guardrail decided on the call of {name} ({why}); {follows}");
                let signals = &facts.signals;
                signals.warn(Warning::GuardrailFailed, message);
                // What went wrong inside is no business of the model's.
                self.fail_closed.then(|| {
                    format!(
                        "the call of {name} is not allowed ({NOT_EVALUATED}): it could not be checked"
                    )
                })
            }
        }
    }
}

/// For whom a run works, by its context.
fn principal_of_run(facts: &RunFacts) -> Result<Principal, String> {
    let text = |name: &str| match facts.context.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{name} of the run's context is no text")),
    };
    let attributes = match facts.context.get("authz_attributes") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(attributes)) => attributes.clone(),
        Some(_) => return Err("authz_attributes of the run's context is no object".to_owned()),
    };
    Ok(Principal {
        user_id: text("user_id")?.unwrap_or_default(),
        role: text("user_role")?.unwrap_or_default(),
        oauth_provider: text("oauth_provider")?,
        oauth_id: text("oauth_id")?,
        channel_user_id: text("channel_user_id")?,
        is_internal: facts.context.get("is_internal") == Some(&Value::Bool(true)),
        attributes,
    })
}

impl Middleware for Guardrail {
    fn name(&self) -> &str {
        NAME
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_tool_call: true,
            ..Hooks::default()
        }
    }

    fn asks_host(&self) -> bool {
        self.provider.asks_host()
    }

    fn policy(&self) -> Map<String, Value> {
        let passport = self.passport.as_deref().map(text_hash);
        members([
            ("provider", self.provider.name().into()),
            ("provider_policy", self.provider.policy().into()),
            ("fail_closed", self.fail_closed.into()),
            ("passport_hash", passport.into()),
        ])
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            match self.refusal(&invocation).await {
                Some(text) => refused(&text, of_refusal()),
                None => next.run(invocation).await,
            }
        })
    }
}

#[cfg(test)]
mod tests;
