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
//! Innermost of the chain: it sees a reply before any other hook does, and whoever wraps tool calls sees its question as a
//! result like any other.
//!
//! Source: DeerFlow `ClarificationMiddleware`, MW-CLA-1 to 8, HIL-1 to HIL-7.

use crate::ports::BoxFuture;
use crate::ports::tool::{ToolInvocation, ToolOutcome};
use crate::protocol::error::Error;
use crate::protocol::message::{Kind, Message};
use crate::state::update::StateUpdate;
use crate::tools::ask_clarification::NAME;
use crate::tools::clarification_request;

use super::reply::with_calls;
use super::{Hook, HookContext, HookOutput, Hooks, Middleware, NextTool};

/// The middleware.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clarification;

impl Middleware for Clarification {
    fn name(&self) -> &str {
        "clarification"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            after_model: true,
            wrap_tool_call: true,
            ..Hooks::default()
        }
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
        next: &'a mut dyn NextTool,
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
    use serde_json::{Value, json};

    use super::super::RunFacts;
    use super::super::testing::{called, hooked};
    use super::*;
    use crate::protocol::message::{Fields, InvalidToolCall, ToolCall};
    use crate::state::update::Write;
    use crate::tools::testing::{call, run_with};

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
        match hooked(&Clarification, Hook::AfterModel, vec![reply], update, &run) {
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
        let answer = called(&Clarification, call(NAME, odd)).expect("an answer");
        assert!(answer.end_run);
        assert_eq!(answer.content, "❓ 7\n\n  1. 1\n  2. 2");
        assert_eq!(
            answer.artifact["human_input"]["request_id"],
            "clarification:c1"
        );
        let other = called(&Clarification, call("other", json!({}))).expect("an answer");
        assert_eq!(other.content, "ran");
    }

    #[test]
    fn mw_cla_3_switched_off_the_run_goes_on() {
        let mut invocation = call(NAME, json!({"question": "q"}));
        invocation.run = run_with(facts(json!({"disable_clarification": 1})));
        let answer = called(&Clarification, invocation).expect("an answer");
        assert!(!answer.end_run);
        assert_eq!(answer.artifact, Value::Null);
    }
}
