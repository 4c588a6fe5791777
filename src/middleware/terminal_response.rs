//! Sees to it that a turn with tools ends with something to read.
//!
//! An empty reply after tool results is thrown away and the model is asked once more, with a hidden word why. If it says
//! nothing again, the reply is rewritten into a visible failure, and the run counts as failed
//! ([`super::is_error_fallback`]). One more try in each run, whatever the model does in between.
//!
//! Source: DeerFlow `TerminalResponseMiddleware`, MW-TRM-1 to 4. Every run of ours has an id, so that no other identity
//! stands in for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use super::bounded::{BoundedMap, REMEMBERED_RUNS};
use super::message_marks::{ERROR_FALLBACK, HIDDEN, hidden_human};
use super::remembered::{RunKey, run_key, thread_key};
use super::reply::{FinishReason, has_tool_intent, has_visible_content, last_reply, members};
use super::request::run_with_note;
use super::{Hook, HookContext, HookOutput, Hooks, Jump, Middleware, ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::canonical_json::text_hash;
use crate::protocol::error::Error;
use crate::protocol::message::{Fields, Kind, Message};
use crate::state::View;
use crate::state::python;
use crate::state::update::StateUpdate;

const RECOVERY: &str = "<system_reminder>\nYour last reply, after the tools had answered, had no text. Look at the tool \
    results above and give the user a short answer that can be read. Call another tool only if there is no other \
    way.\n</system_reminder>";

const FAILURE: &str = "The tools have done their work, but the model gave no answer, and none when it was asked again. \
    Try once more, or choose another model.";

const FAILURE_REASON: &str = "the model's last reply was empty, also when it was asked again";

/// What a run that got its second try is waiting for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// The next model call brings the word why.
    Announced,
    /// It was brought.
    Under,
}

/// See the module.
pub struct TerminalResponse {
    retries: Mutex<BoundedMap<RunKey, Retry>>,
}

impl TerminalResponse {
    /// A guard that has seen nothing yet.
    #[allow(clippy::new_without_default, reason = "made once, by an assembly")]
    pub fn new() -> Self {
        TerminalResponse {
            retries: Mutex::new(BoundedMap::new(REMEMBERED_RUNS)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<RunKey, Retry>> {
        self.retries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn after_model(&self, context: &HookContext<'_>) -> HookOutput {
        let Some(reply) = last_reply(&context.state) else {
            return HookOutput::Continue;
        };
        let fields = reply.fields();
        if has_visible_content(&fields.content)
            || has_tool_intent(fields, FinishReason::Counts)
            || !has_tool_results(&context.state)
        {
            return HookOutput::Continue;
        }
        let key = run_key(context.run);
        let is_second = {
            let mut retries = self.lock();
            let is_second = retries.get(&key).is_some();
            if !is_second {
                retries.insert(key, Retry::Announced);
            }
            is_second
        };
        if is_second {
            return HookOutput::Update(StateUpdate::messages(vec![failure(fields)]));
        }
        let empty = reply.id().map(|id| {
            let mut fields = Fields::new(Kind::Remove, "");
            fields.id = Some(id.to_owned());
            StateUpdate::messages(vec![Message::new(fields)])
        });
        HookOutput::Jump(Jump::Model, empty.unwrap_or_default())
    }
}

/// Whether a tool has answered since the user spoke. Without a word of the user there is no turn to end.
fn has_tool_results(state: &View<'_>) -> bool {
    let mut found = false;
    for message in state.messages().rev() {
        match message.kind() {
            Kind::Tool => found = true,
            Kind::Human => {
                let kwargs = &message.fields().additional_kwargs;
                if python::truthy_member(kwargs, HIDDEN).is_none() {
                    return found;
                }
            }
            _ => {}
        }
    }
    false
}

fn failure(empty: &Fields) -> Message {
    let mut fields = empty.clone();
    fields.content = FAILURE.into();
    fields
        .additional_kwargs
        .insert(ERROR_FALLBACK.to_owned(), true.into());
    fields
        .additional_kwargs
        .insert("error_reason".to_owned(), FAILURE_REASON.into());
    Message::new(fields)
}

impl Middleware for TerminalResponse {
    fn name(&self) -> &str {
        "terminal_response"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_agent: true,
            wrap_model_call: true,
            after_model: true,
            after_agent: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        members([
            ("post_tool_empty_retry_limit", 1.into()),
            ("recovery_prompt_hash", text_hash(RECOVERY).into()),
            ("fallback_content_hash", text_hash(FAILURE).into()),
        ])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        match hook {
            Hook::AfterModel => return Ok(self.after_model(context)),
            // A run that an answer ended passed by `after_agent`; when it goes on it has its try again (MW-TRM-4).
            Hook::BeforeAgent => {
                let thread = thread_key(context.run);
                self.lock().retain(|(of, _), _| of != thread);
            }
            Hook::AfterAgent => {
                self.lock().remove(&run_key(context.run));
            }
            Hook::BeforeModel => {}
        }
        Ok(HookOutput::Continue)
    }

    fn wrap_model_call<'a>(
        &'a self,
        request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let key = run_key(&request.run.facts);
        let is_announced = match self.lock().get_mut(&key) {
            Some(retry) => std::mem::replace(retry, Retry::Under) == Retry::Announced,
            None => false,
        };
        if !is_announced {
            return next.run(request);
        }
        let note = hidden_human("terminal_response_recovery", RECOVERY.to_owned());
        run_with_note(request, note, next, move || {
            if let Some(retry) = self.lock().get_mut(&key) {
                *retry = Retry::Announced;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::middleware::message_marks::is_error_fallback;
    use crate::middleware::reply::tests::{call, reply};
    use crate::middleware::stage::{Answers, Stage, heard, run_as};

    fn human(text: &str, kwargs: Value) -> Message {
        let mut fields = Fields::new(Kind::Human, text);
        fields.id = Some(text.to_owned());
        fields.additional_kwargs = kwargs.as_object().cloned().unwrap_or_default();
        Message::new(fields)
    }

    fn result(id: &str) -> Message {
        let mut fields = Fields::new(Kind::Tool, "result");
        fields.id = Some(format!("t-{id}"));
        fields.tool_call_id = id.to_owned();
        Message::new(fields)
    }

    /// A turn with a tool, and the reply after it.
    fn turn(last: Value) -> Stage {
        Stage::new(vec![
            human("hello", json!({})),
            reply(json!({"id": "first", "tool_calls": [call("f", "c1")]})),
            result("c1"),
            reply(last),
        ])
    }

    fn jump(stage: &mut Stage, guard: &TerminalResponse) -> Option<Jump> {
        stage.hook(guard, Hook::AfterModel, &run_as("t", "r")).0
    }

    #[test]
    fn trm_2_the_first_empty_reply_goes_and_the_model_is_asked_again_with_a_hidden_word() {
        let guard = TerminalResponse::new();
        let facts = run_as("t", "r");
        let mut stage = turn(json!({"content": " "}));
        assert_eq!(jump(&mut stage, &guard), Some(Jump::Model));
        assert_eq!(stage.last().kind(), Kind::Tool);
        let other = heard(&guard, stage.messages(), &run_as("t", "q"), Answers::Yes);
        assert_eq!(other.len(), 3, "it is for this run only");
        // A call that fails does not use it up.
        heard(&guard, stage.messages(), &facts, Answers::No);
        let request = heard(&guard, stage.messages(), &facts, Answers::Yes);
        let note = request.last().expect("a note");
        assert_eq!(
            note.fields().name.as_deref(),
            Some("terminal_response_recovery")
        );
        assert_eq!(note.fields().additional_kwargs["hide_from_ui"], true);
        let after = heard(&guard, stage.messages(), &facts, Answers::Yes);
        assert_eq!(after.len(), 3, "it is said once");
    }

    #[test]
    fn trm_3_and_4_the_second_becomes_a_visible_failure_whatever_came_between() {
        let guard = TerminalResponse::new();
        let mut stage = turn(json!({}));
        assert_eq!(jump(&mut stage, &guard), Some(Jump::Model));
        stage.write(StateUpdate::messages(vec![
            reply(json!({"id": "b", "tool_calls": [call("f", "c2")]})),
            result("c2"),
            reply(json!({"id": "c", "response_metadata": {"model": "m"}})),
        ]));
        assert_eq!(jump(&mut stage, &guard), None);
        let last = stage.last();
        assert_eq!((last.id(), &*last.text()), (Some("c"), FAILURE));
        assert_eq!(
            last.fields().additional_kwargs["error_reason"],
            FAILURE_REASON
        );
        assert!(is_error_fallback(&last));
        assert_eq!(last.fields().response_metadata["model"], "m");
    }

    #[test]
    fn trm_1_only_an_empty_reply_after_results_of_this_turn_counts() {
        for last in [
            json!({"content": "x"}),
            json!({"tool_calls": [call("f", "c2")]}),
            json!({"response_metadata": {"finish_reason": "tool_calls"}}),
        ] {
            assert_eq!(jump(&mut turn(last), &TerminalResponse::new()), None);
        }
        let empty = || reply(json!({}));
        let called = || reply(json!({"id": "first", "tool_calls": [call("f", "c1")]}));
        let hidden = || human("note", json!({"hide_from_ui": true}));
        for (messages, expected) in [
            (vec![human("x", json!({})), empty()], None),
            // No word of the user at all.
            (vec![called(), result("c1"), empty()], None),
            (vec![hidden(), called(), result("c1"), empty()], None),
            // The results are of an earlier turn.
            (
                vec![called(), result("c1"), human("x", json!({})), empty()],
                None,
            ),
            // A hidden message begins no turn.
            (
                vec![
                    human("x", json!({})),
                    called(),
                    result("c1"),
                    hidden(),
                    empty(),
                ],
                Some(Jump::Model),
            ),
        ] {
            let mut stage = Stage::new(messages);
            assert_eq!(jump(&mut stage, &TerminalResponse::new()), expected);
        }
    }

    #[test]
    fn trm_4_a_run_that_ends_or_begins_leaves_nothing_behind() {
        let guard = TerminalResponse::new();
        for (hook, run) in [
            (Hook::AfterAgent, "r"),
            (Hook::BeforeAgent, "r"),
            (Hook::BeforeAgent, "q"),
        ] {
            assert_eq!(jump(&mut turn(json!({})), &guard), Some(Jump::Model));
            Stage::new(vec![]).hook(&guard, hook, &run_as("t", run));
            let request = heard(&guard, vec![], &run_as("t", "r"), Answers::Yes);
            assert!(request.is_empty(), "{hook:?} of {run}");
        }
        // Runs of other threads are not touched.
        assert_eq!(jump(&mut turn(json!({})), &guard), Some(Jump::Model));
        Stage::new(vec![]).hook(&guard, Hook::BeforeAgent, &run_as("u", "r"));
        assert_eq!(jump(&mut turn(json!({})), &guard), None);
    }
}
