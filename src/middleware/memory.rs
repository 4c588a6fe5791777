//! Hands the thread to the memory when a run is at its end, for the user and the agent that the run was made for.
//!
//! Which messages are worth remembering is the memory's business. Without the right to touch memory there is no such part; a
//! memory that does not take the turn in is a warning.
//!
//! Source: DeerFlow `MemoryMiddleware`, MW-MEM-1, MEM-3.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Effect, Hook, HookContext, HookOutput, Hooks, Middleware, Work};
use crate::ports::memory_policy::MemoryAccess;
use crate::ports::memory_queue::{MemoryQueue, MemoryTurn};
use crate::protocol::error::Error;
use crate::protocol::message::Message;
use crate::protocol::warning::Warning;

/// Where a request says what it is followed by.
const TRACE_ID: &str = "deerflow_trace_id";

/// The middleware.
pub struct Memory {
    access: MemoryAccess,
    queue: Arc<dyn MemoryQueue>,
}

impl Memory {
    /// Hands turns to `queue`, by the right that `access` is.
    pub fn new(access: MemoryAccess, queue: Arc<dyn MemoryQueue>) -> Self {
        Memory { access, queue }
    }

    fn after_agent(&self, context: &HookContext<'_>) -> HookOutput {
        let run = context.run;
        if let Some(done) = context.performed() {
            if let Err(error) = done {
                run.signals
                    .warn(Warning::MemoryFailed, error.message.clone());
            }
            return HookOutput::Continue;
        }
        if run.thread_id.is_empty() || context.state.is_empty() {
            return HookOutput::Continue;
        }
        let messages: Vec<Message> = context.state.messages().cloned().collect();
        let trace_id = run.context.get(TRACE_ID).and_then(Value::as_str);
        let turn = MemoryTurn {
            messages,
            trace_id: trace_id.map(str::to_owned),
        };
        let (queue, access) = (self.queue.clone(), self.access.clone());
        HookOutput::Await(Effect::Perform(Work::new(move |run| {
            let (queue, access, turn) = (queue.clone(), access.clone(), turn.clone());
            async move { queue.enqueue(run, access, turn).await.map(|()| Value::Null) }
        })))
    }
}

impl Middleware for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            after_agent: true,
            ..Hooks::default()
        }
    }

    fn asks_host(&self) -> bool {
        self.queue.asks_host()
    }

    fn policy(&self) -> Map<String, Value> {
        let agent = self.access.agent();
        let agent = agent.map_or(Value::Null, |agent| agent.as_str().into());
        Map::from_iter([("agent_name".to_owned(), agent)])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        Ok(match hook {
            Hook::AfterAgent => self.after_agent(context),
            _ => HookOutput::Continue,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::middleware::testing::on_state;
    use crate::middleware::{EffectAnswer, RunFacts};
    use crate::ports::BoxFuture;
    use crate::ports::host::RunContext;
    use crate::ports::memory_policy::{AgentBinding, MemoryPolicies};
    use crate::protocol::error::ErrorCode;
    use crate::protocol::message::{Fields, Kind};
    use crate::protocol::user_id::UserId;
    use crate::protocol::warning::Warnings;
    use crate::state::update::StateUpdate;
    use crate::tools::testing::{ready, run_with};

    /// Thread, user, number of messages, trace id.
    type Told = (String, String, usize, Option<String>);

    #[derive(Default)]
    struct Queue {
        turns: Mutex<Vec<Told>>,
        is_full: bool,
    }

    impl MemoryQueue for Queue {
        fn enqueue(
            &self,
            run: Arc<RunContext>,
            access: MemoryAccess,
            turn: MemoryTurn,
        ) -> BoxFuture<'_, Result<(), Error>> {
            let (user, count) = (access.user().as_str().to_owned(), turn.messages.len());
            let told = (run.thread_id.to_string(), user, count, turn.trace_id);
            self.turns.lock().expect("a lock").push(told);
            let full = Err(Error::new(ErrorCode::Store, "full"));
            Box::pin(std::future::ready(if self.is_full { full } else { Ok(()) }))
        }
    }

    fn access() -> MemoryAccess {
        let policy = MemoryPolicies::new(true).resolve(
            AgentBinding::Default,
            &UserId::new("ann"),
            |_, _| Ok(None),
            &mut Warnings::new(),
        );
        policy.access().expect("memory is on")
    }

    fn acted(queue: &Arc<Queue>, thread: &str, messages: Vec<Message>) -> usize {
        let part = Memory::new(access(), queue.clone());
        let run = RunFacts {
            thread_id: thread.into(),
            context: Map::from_iter([(TRACE_ID.to_owned(), "tr".into())]),
            ..RunFacts::default()
        };
        on_state(messages, StateUpdate::default(), |state| {
            let hook = |answer: Option<&EffectAnswer>| {
                let context = HookContext {
                    state,
                    run: &run,
                    answer,
                };
                part.hook(Hook::AfterAgent, &context).expect("no error")
            };
            if let HookOutput::Await(Effect::Perform(work)) = hook(None) {
                let done = ready(work.begin(run_with(run.clone())));
                let after = hook(Some(&EffectAnswer::Performed(Box::new(done))));
                assert!(matches!(after, HookOutput::Continue), "no state is written");
            }
        });
        let warnings = run.signals.take_warnings();
        warnings.map_or(0, |warnings| warnings.len())
    }

    #[test]
    fn mem_1_the_messages_are_handed_over_as_they_are() {
        let queue = Arc::new(Queue::default());
        let messages = [Kind::Human, Kind::Ai].map(|kind| Message::new(Fields::new(kind, "x")));
        assert_eq!(acted(&queue, "t", messages.to_vec()), 0);
        let told = ("t".to_owned(), "ann".to_owned(), 2, Some("tr".to_owned()));
        assert_eq!(*queue.turns.lock().expect("a lock"), [told]);
        acted(&queue, "t", Vec::new());
        acted(&queue, "", messages.to_vec());
        assert_eq!(
            queue.turns.lock().expect("a lock").len(),
            1,
            "nothing to remember"
        );
    }

    #[test]
    fn a_memory_that_takes_nothing_in_is_a_warning() {
        let queue = Arc::new(Queue {
            is_full: true,
            ..Queue::default()
        });
        let message = Message::new(Fields::new(Kind::Human, "x"));
        assert_eq!(acted(&queue, "t", vec![message]), 1);
    }
}
