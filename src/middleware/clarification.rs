//! Puts the questions of `ask_clarification` to the user: the call is not executed, its result is the question, and the run
//! ends with it. The answer is a new run.
//!
//! A reply that asks does nothing else: calls beside the question are taken out of it before any is made, for what the user
//! says may make them wrong (MW-CLA-7; the reference's earlier versions made them). Where the run's context switches
//! questions off, nothing is taken out, and the model is told to go on without an answer (MW-CLA-3).
//!
//! How a call is read, and what becomes of it, is in [`clarification_request`]. An answer is a human message with the member
//! `human_input_response` in its `additional_kwargs` (MW-CLA-8); nothing here reads it.
//!
//! A tool of the host's own with that name is the host's: where one is bound, its calls are made like any others (FA-5, TL-1). Who
//! names the middleware itself, in a list of a factory, gives it the calls all the same.
//!
//! Innermost of the chain: it sees a reply before any other hook does, and whoever wraps tool calls sees its question as a
//! result like any other.
//!
//! Source: DeerFlow `ClarificationMiddleware`, MW-CLA-1 to 8, HIL-1 to HIL-7.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::ports::BoxFuture;
use crate::ports::tool::{DynTool, ToolInvocation, ToolOrigin, ToolOutcome};
use crate::protocol::error::Error;
use crate::protocol::message::{Kind, Message};
use crate::state::update::StateUpdate;
use crate::tools::ask_clarification::NAME;
use crate::tools::clarification_request;

use super::reply::with_calls;
use super::{Hook, HookContext, HookOutput, Hooks, Middleware, NextTool};

/// The middleware.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clarification {
    /// Whether calls of the name are another tool's, and none of its business.
    is_idle: bool,
}

impl Clarification {
    /// Takes the calls of `ask_clarification`.
    pub fn new() -> Self {
        Clarification::default()
    }

    /// Stands in the chain and leaves the calls to a tool that has taken the name.
    pub fn idle() -> Self {
        Clarification { is_idle: true }
    }

    /// Which of both it is for an agent with these tools.
    pub fn beside(tools: &[Arc<dyn DynTool>]) -> Self {
        let is_idle = tools.iter().any(|tool| takes_the_name(tool.as_ref()));
        Clarification { is_idle }
    }
}

/// Whether a tool that is none of this library's has the name of `ask_clarification`.
pub fn takes_the_name(tool: &dyn DynTool) -> bool {
    tool.spec().name == NAME && !matches!(tool.origin(), ToolOrigin::Builtin)
}

impl Middleware for Clarification {
    fn name(&self) -> &str {
        "clarification"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            after_model: !self.is_idle,
            wrap_tool_call: !self.is_idle,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let mut policy = Map::new();
        if self.is_idle {
            policy.insert("idle".to_owned(), true.into());
        }
        policy
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        if hook != Hook::AfterModel || clarification_request::is_disabled(&context.run.context) {
            return Ok(HookOutput::Continue);
        }
        let reply = context.state.last().filter(|last| last.kind() == Kind::Ai);
        Ok(match reply.and_then(without_siblings) {
            Some(message) => HookOutput::Update(StateUpdate::messages(vec![message])),
            None => HookOutput::Continue,
        })
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        if invocation.name != NAME {
            return next.run(invocation);
        }
        let answer = clarification_request::answer_call(&invocation);
        Box::pin(std::future::ready(ToolOutcome::Answer(answer)))
    }
}

/// The reply without the calls beside its question; `None` when it asks nothing or has no such calls. A question whose
/// arguments cannot be read counts too: what the model wanted was to ask first.
fn without_siblings(reply: &Message) -> Option<Message> {
    let fields = reply.fields();
    let asks = fields.tool_calls.iter().any(|call| call.name == NAME)
        || fields
            .invalid_tool_calls
            .iter()
            .any(|call| call.name.as_deref() == Some(NAME));
    let has_siblings = fields.tool_calls.iter().any(|call| call.name != NAME);
    (asks && has_siblings).then(|| {
        let questions = fields.tool_calls.iter().filter(|call| call.name == NAME);
        Message::new(with_calls(reply, questions.cloned().collect(), None))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::RunFacts;
    use super::super::testing::{called, hooked};
    use super::*;
    use crate::protocol::message::{Fields, InvalidToolCall, ToolCall};
    use crate::state::update::Write;
    use crate::tools::testing::{call, host, mcp, run_with};

    fn facts(context: Value) -> RunFacts {
        RunFacts {
            context: context.as_object().cloned().expect("an object"),
            ..RunFacts::default()
        }
    }

    fn reply(names: &[&str], invalid: Option<&str>) -> Message {
        let mut fields = Fields::new(Kind::Ai, "t");
        fields.id = Some("ai".into());
        fields.tool_calls = names
            .iter()
            .enumerate()
            .map(|(place, name)| ToolCall {
                name: (*name).to_owned(),
                id: Some(format!("c{place}")),
                ..ToolCall::default()
            })
            .collect();
        fields.invalid_tool_calls = invalid
            .iter()
            .map(|name| InvalidToolCall {
                name: Some((*name).to_owned()),
                ..InvalidToolCall::default()
            })
            .collect();
        Message::new(fields)
    }

    /// The calls that are left; `None` when the hook leaves the reply alone.
    fn left(reply: Message, context: Value) -> Option<Vec<String>> {
        let update = StateUpdate::default();
        let run = facts(context);
        match hooked(
            &Clarification::new(),
            Hook::AfterModel,
            vec![reply],
            update,
            &run,
        ) {
            HookOutput::Continue => None,
            HookOutput::Update(update) => match &update.writes[..] {
                [(_, Write::Messages(messages))] => {
                    assert_eq!(messages[0].id(), Some("ai"), "it replaces the reply");
                    let calls = &messages[0].fields().tool_calls;
                    Some(calls.iter().map(|call| call.name.clone()).collect())
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn mw_cla_7_calls_beside_a_question_are_dropped() {
        let ask = vec![NAME.to_owned()];
        assert_eq!(
            left(reply(&["a", NAME, "b"], None), json!({})),
            Some(ask.clone())
        );
        let twice = Some(vec![NAME.to_owned(), NAME.to_owned()]);
        assert_eq!(left(reply(&[NAME, "a", NAME], None), json!({})), twice);
        assert_eq!(left(reply(&["a"], Some(NAME)), json!({})), Some(Vec::new()));
        for alone in [
            reply(&[NAME], None),
            reply(&["a", "b"], None),
            reply(&["a"], Some("b")),
            reply(&[], Some(NAME)),
        ] {
            assert_eq!(left(alone, json!({})), None);
        }
        let off = json!({"disable_clarification": true});
        assert_eq!(left(reply(&["a", NAME], None), off), None);
        let human = Message::new(Fields::new(Kind::Human, "x"));
        assert_eq!(left(human, json!({})), None);
    }

    #[test]
    fn mw_cla_1_the_call_is_answered_with_the_question_and_other_calls_pass() {
        // Not what the schema wants: the tool would refuse it, the question is put all the same.
        let odd = json!({"question": 7, "options": "[1,2]"});
        let answer = called(&Clarification::new(), call(NAME, odd)).expect("an answer");
        assert!(answer.end_run);
        assert_eq!(answer.content, "❓ 7\n\n  1. 1\n  2. 2");
        assert_eq!(
            answer.artifact["human_input"]["request_id"],
            "clarification:c1"
        );
        let other = called(&Clarification::new(), call("other", json!({}))).expect("an answer");
        assert_eq!(other.content, "ran");
    }

    #[test]
    fn mw_cla_3_switched_off_the_run_goes_on() {
        let mut invocation = call(NAME, json!({"question": "q"}));
        invocation.run = run_with(facts(json!({"disable_clarification": 1})));
        let answer = called(&Clarification::new(), invocation).expect("an answer");
        assert!(!answer.end_run);
        assert_eq!(answer.artifact, Value::Null);
    }

    #[test]
    fn fa_5_beside_a_tool_of_the_host_s_with_its_name_it_is_idle() {
        let ours = crate::tools::ask_clarification::build(&Default::default()).expect("built in");
        for (tool, is_idle) in [
            (host(NAME), true),
            (mcp(NAME), true),
            (host("other"), false),
            (ours, false),
        ] {
            let part = Clarification::beside(&[tool]);
            assert_eq!(part.hooks() == Hooks::default(), is_idle);
            assert_eq!(part.policy().contains_key("idle"), is_idle);
        }
    }
}
