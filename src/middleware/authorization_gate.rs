//! Asks the authorizer about every tool call, before it is made: the second layer of authorization.
//!
//! The first layer decides which tools an agent is composed with; this one holds when a call comes anyway, or when what the
//! user may do has changed since. Both ask the same provider.
//!
//! Source: DeerFlow `GuardrailMiddleware` with the authorization adapter, TL-10, MW-GRD-1 to MW-GRD-4.

use serde_json::{Map, Value};

use super::guardrail_record::{DENIED, Decider, MAX_REASON_CHARS, NOT_EVALUATED};
use super::{Hooks, Middleware, NextTool, RunFacts};
use crate::ports::BoxFuture;
use crate::ports::authorization::{Access, Principal, Resource, Verdict};
use crate::ports::tool::{ToolInvocation, ToolOutcome};
use crate::protocol::guardrail::GuardrailDecision;
use crate::protocol::warning::Warning;
use crate::tools::tool_search;

/// What is asked about a call.
const ACTION: &str = "call";
/// What it is called in records.
const NAME: &str = "authorization_gate";

/// On whose behalf a run calls tools, given whom the agent was composed for; an error is why that cannot be told.
type Identify = dyn Fn(&Principal, &RunFacts) -> Result<Principal, String> + Send + Sync;

/// The middleware.
pub struct AuthorizationGate {
    access: Access,
    identify: Option<Box<Identify>>,
    has_own_search: bool,
}

impl AuthorizationGate {
    /// A gate in front of an agent's tools. `has_own_search` says that `tool_search` is the one that this library made for the
    /// agent, over tools that have passed the first layer; only then is it let through unasked (TL-10).
    pub fn new(access: Access, has_own_search: bool) -> Self {
        AuthorizationGate {
            access,
            identify: None,
            has_own_search,
        }
    }

    /// Asks on behalf of whom a run is for, where that is not the same for all runs of the agent.
    pub fn identified_by(
        mut self,
        identify: impl Fn(&Principal, &RunFacts) -> Result<Principal, String> + Send + Sync + 'static,
    ) -> Self {
        self.identify = Some(Box::new(identify));
        self
    }

    fn decider<'a>(&'a self, user_role: &'a str) -> Decider<'a> {
        Decider {
            middleware: NAME,
            provider: self.access.authorizer.name(),
            agent_id: None,
            user_role,
            fail_closed: self.access.fail_closed,
        }
    }

    /// Why a call may not be made; `None` when it may.
    fn refusal(&self, invocation: &ToolInvocation) -> Option<String> {
        let name = &invocation.name;
        if self.has_own_search && name == tool_search::NAME {
            return None;
        }
        let Access {
            authorizer,
            principal,
            fail_closed,
        } = &self.access;
        let decided = match &self.identify {
            // A person who cannot be told is a question without an answer, and no more than that.
            Some(identify) => identify(principal, &invocation.run.facts).and_then(|principal| {
                authorizer.authorize(&principal, Resource::Tool, ACTION, name)
            }),
            None => authorizer.authorize(principal, Resource::Tool, ACTION, name),
        };
        // A name that no tool has can be of any length.
        let shown: String = name.chars().take(100).collect();
        match decided {
            Ok(Verdict::Allow) => None,
            Ok(Verdict::Deny(reason)) => {
                let decision = GuardrailDecision::denied(DENIED, reason.as_str());
                self.decider(&principal.role)
                    .record(invocation, &decision, false);
                let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
                let told = format!("the call of {shown:?} is not allowed ({DENIED}): {reason}");
                let signals = &invocation.run.facts.signals;
                signals.warn(Warning::GuardrailDenied, told.clone());
                Some(told)
            }
            Err(why) => {
                let follows = match fail_closed {
                    true => "it was not made",
                    false => "it was made",
                };
                let message =
                    format!("the call of {shown:?} could not be authorized ({why}); {follows}");
                let decision = GuardrailDecision {
                    allow: !fail_closed,
                    ..GuardrailDecision::denied(NOT_EVALUATED, message.as_str())
                };
                self.decider("").record(invocation, &decision, true);
                let signals = &invocation.run.facts.signals;
                signals.warn(Warning::AuthorizationFailed, message);
                // What went wrong inside is no business of the model's.
                fail_closed.then(|| {
                    format!(
                        "the call of {shown:?} is not allowed ({NOT_EVALUATED}): its authorization could not be checked"
                    )
                })
            }
        }
    }
}

impl Middleware for AuthorizationGate {
    fn name(&self) -> &str {
        NAME
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_tool_call: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let authorizer = &self.access.authorizer;
        let mut policy = Map::new();
        policy.insert("provider".into(), authorizer.name().into());
        policy.insert("provider_policy".into(), authorizer.policy().into());
        policy.insert("fail_closed".into(), self.access.fail_closed.into());
        policy
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        match self.refusal(&invocation) {
            Some(refusal) => Box::pin(std::future::ready(ToolOutcome::Failed(refusal))),
            None => next.run(invocation),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::called;
    use std::sync::Arc;

    use super::*;
    use crate::ports::authorization::Authorizer;
    use crate::tools::testing::{call, run_with};

    /// Denies what is named `bad`, knows nothing of `odd`, and wants the user `ann`.
    struct Rules;

    impl Authorizer for Rules {
        fn name(&self) -> &str {
            "rules"
        }
        fn authorize(
            &self,
            principal: &Principal,
            resource: Resource,
            action: &str,
            target: &str,
        ) -> Result<Verdict, String> {
            assert_eq!((resource, action), (Resource::Tool, "call"), "MW-GRD-4");
            match target {
                "odd" => Err("the database says: secret".to_owned()),
                "bad" => Ok(Verdict::Deny("x".repeat(1000))),
                _ if principal.user_id != "ann" => Ok(Verdict::Deny("not yours".to_owned())),
                _ => Ok(Verdict::Allow),
            }
        }
        fn filter_resources(
            &self,
            _: &Principal,
            _: Resource,
            _: &[&str],
        ) -> Result<Vec<String>, String> {
            Err("not asked here".to_owned())
        }
    }

    fn gate(fail_closed: bool, has_own_search: bool) -> AuthorizationGate {
        let principal = Principal {
            user_id: "ann".to_owned(),
            ..Principal::default()
        };
        let authorization = Access {
            authorizer: Arc::new(Rules),
            principal,
            fail_closed,
        };
        AuthorizationGate::new(authorization, has_own_search)
    }

    #[test]
    fn mw_grd_1_a_denied_call_is_not_made_and_the_model_hears_why() {
        let gate = gate(true, false);
        assert!(called(&gate, call("good", json!({}))).is_ok());
        let refusal = called(&gate, call("bad", json!({}))).expect_err("denied");
        assert!(
            refusal.contains("\"bad\"") && refusal.contains(DENIED),
            "{refusal}"
        );
        assert!(refusal.len() < 600, "the reason is clipped");
    }

    #[test]
    fn mw_grd_2_without_an_answer_the_setting_decides() {
        assert!(called(&gate(false, false), call("odd", json!({}))).is_ok());
        let odd = call("odd", json!({}));
        let run = odd.run.clone();
        let refusal = called(&gate(true, false), odd).expect_err("denied");
        let warnings = run.facts.signals.take_warnings().expect("a warning");
        let (warning, message) = warnings.iter().next().expect("a warning");
        assert_eq!(warning, Warning::AuthorizationFailed);
        assert!(message.contains("it was not made"), "{message}");
        assert!(
            refusal.contains(NOT_EVALUATED) && !refusal.contains("secret"),
            "{refusal}"
        );
    }

    #[test]
    fn tl_10_only_the_search_of_this_agent_passes_unasked() {
        let stranger =
            |gate: AuthorizationGate| gate.identified_by(|_, _| Ok(Principal::default()));
        let search = || call("tool_search", json!({}));
        assert!(called(&stranger(gate(true, true)), search()).is_ok());
        assert!(called(&stranger(gate(true, false)), search()).is_err());
        assert!(called(&stranger(gate(true, true)), call("good", json!({}))).is_err());
    }

    #[test]
    fn a_run_is_asked_for_on_behalf_of_its_own_user() {
        let by_user = |gate: AuthorizationGate| {
            gate.identified_by(|principal, facts| match facts.context.get("user_id") {
                Some(Value::String(user)) => Ok(Principal {
                    user_id: user.clone(),
                    ..principal.clone()
                }),
                Some(_) => Err("a user id that is no text".to_owned()),
                None => Ok(principal.clone()),
            })
        };
        let as_user = |user: Value| {
            let mut invocation = call("good", json!({}));
            let context = json!({ "user_id": user });
            invocation.run = run_with(RunFacts {
                context: context.as_object().cloned().expect("an object"),
                ..RunFacts::default()
            });
            invocation
        };
        let closed = by_user(gate(true, false));
        assert!(called(&closed, call("good", json!({}))).is_ok());
        assert!(called(&closed, as_user(json!("ann"))).is_ok());
        assert!(called(&closed, as_user(json!("bob"))).is_err());
        assert!(called(&closed, as_user(json!([]))).is_err());
        assert!(called(&by_user(gate(false, false)), as_user(json!([]))).is_ok());
    }

    #[test]
    fn the_policy_names_the_provider_and_what_happens_without_an_answer() {
        let expected = json!({"provider": "rules", "provider_policy": {}, "fail_closed": true});
        assert_eq!(Value::Object(gate(true, false).policy()), expected);
    }
}
