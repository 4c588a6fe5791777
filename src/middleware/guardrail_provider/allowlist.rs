//! The guardrail that goes by lists of tools.
//!
//! Source: DeerFlow `AllowlistProvider`: no list of allowed tools allows all, an empty one none.

use std::collections::BTreeSet;
use std::future::ready;

use serde_json::{Map, Value};

use crate::middleware::reply::{members, quoted_name};
use crate::ports::BoxFuture;
use crate::ports::guardrail::{GuardrailProvider, GuardrailQuestion};
use crate::protocol::app_config::AllowlistConfig;
use crate::protocol::guardrail::GuardrailDecision;

/// The code of its denials.
const NOT_ALLOWED: &str = "oap.tool_not_allowed";

/// Lists of tools.
pub(super) struct Allowlist {
    allowed: Option<BTreeSet<String>>,
    denied: BTreeSet<String>,
}

impl Allowlist {
    /// As configured.
    pub(super) fn new(config: &AllowlistConfig) -> Self {
        let set = |names: &Vec<String>| names.iter().cloned().collect();
        Allowlist {
            allowed: config.allowed_tools.as_ref().map(set),
            denied: config.denied_tools.as_ref().map(set).unwrap_or_default(),
        }
    }

    fn decide(&self, tool: &str) -> GuardrailDecision {
        let denied = |why: &str| {
            GuardrailDecision::denied(NOT_ALLOWED, format!("the tool {} {why}", quoted_name(tool)))
        };
        match &self.allowed {
            Some(allowed) if !allowed.contains(tool) => {
                denied("is not on the list of allowed ones")
            }
            _ if self.denied.contains(tool) => denied("is on the list of denied ones"),
            _ => GuardrailDecision {
                allow: true,
                ..GuardrailDecision::default()
            },
        }
    }
}

impl GuardrailProvider for Allowlist {
    fn name(&self) -> &str {
        "allowlist"
    }

    fn policy(&self) -> Map<String, Value> {
        let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Value>();
        members([
            (
                "allowed_tools",
                self.allowed.as_ref().map_or(Value::Null, list),
            ),
            ("denied_tools", list(&self.denied)),
        ])
    }

    fn evaluate<'a>(
        &'a self,
        question: &'a GuardrailQuestion<'a>,
    ) -> BoxFuture<'a, Result<GuardrailDecision, String>> {
        Box::pin(ready(Ok(self.decide(&question.invocation.name))))
    }
}
