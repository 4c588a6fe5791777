//! For tests of guards: a thread in memory that one hook after the other works on, and a model that hears what a wrapper passes on.

use std::sync::Arc;

use super::testing::request;
use super::{Hook, HookContext, HookOutput, Jump, Middleware, ModelResponse, NextModel, RunFacts};
use crate::ports::BoxFuture;
use crate::ports::call_key::AskedCalls;
use crate::ports::delegate::SubagentRun;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::Message;
use crate::state::ids::SequentialIds;
use crate::state::reads::ChannelReads;
use crate::state::update::StateUpdate;
use crate::state::{Overlay, ThreadState};
use crate::tools::testing::{ready, run_with};

/// Facts of a run of a thread.
pub(crate) fn run_as(thread: &str, run: &str) -> RunFacts {
    RunFacts {
        thread_id: thread.into(),
        run_id: run.into(),
        ..RunFacts::default()
    }
}

/// Facts of an execution of a subagent that the run delegates to.
pub(crate) fn execution(thread: &str, run: &str, execution: &str) -> RunFacts {
    RunFacts {
        subagent: Some(Arc::new(SubagentRun {
            execution_id: execution.into(),
            message_id: "m0".into(),
            task_id: format!("task of {execution}").into(),
            name: "general-purpose".into(),
            asked: AskedCalls::default(),
        })),
        ..run_as(thread, run)
    }
}

/// A thread with pending writes.
pub(crate) struct Stage {
    state: ThreadState,
    overlay: Overlay,
    ids: SequentialIds,
}

impl Stage {
    /// A thread of these messages.
    pub(crate) fn new(messages: Vec<Message>) -> Self {
        let mut stage = Stage {
            state: ThreadState::new(),
            overlay: Overlay::new(),
            ids: SequentialIds::starting_at(1000),
        };
        stage.write(StateUpdate::messages(messages));
        stage
    }

    /// Writes to it.
    pub(crate) fn write(&mut self, update: StateUpdate) {
        self.state
            .stage(
                &mut self.overlay,
                std::slice::from_ref(&update),
                &mut self.ids,
            )
            .expect("a sound write");
    }

    /// Runs a hook and writes what it writes; tells where it jumps, and whether it wrote.
    pub(crate) fn hook(
        &mut self,
        middleware: &dyn Middleware,
        hook: Hook,
        facts: &RunFacts,
    ) -> (Option<Jump>, Option<StateUpdate>) {
        let context = HookContext {
            state: self.state.view(&self.overlay),
            run: facts,
            answer: None,
        };
        let (jump, update) = match middleware.hook(hook, &context).expect("no error") {
            HookOutput::Continue => (None, None),
            HookOutput::Update(update) => (None, Some(update)),
            HookOutput::Jump(jump, update) => (Some(jump), Some(update)),
            HookOutput::Await(_) => panic!("no hook here asks for anything"),
        };
        if let Some(update) = &update {
            self.write(update.clone());
        }
        (jump, update)
    }

    /// Runs `after_model`, which must not jump.
    pub(crate) fn after_model(
        &mut self,
        middleware: &dyn Middleware,
        facts: &RunFacts,
    ) -> Option<StateUpdate> {
        let (jump, update) = self.hook(middleware, Hook::AfterModel, facts);
        assert_eq!(jump, None);
        update
    }

    /// The newest message.
    pub(crate) fn last(&self) -> Message {
        self.state
            .view(&self.overlay)
            .last()
            .expect("a message")
            .clone()
    }

    /// All messages.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let view = self.state.view(&self.overlay);
        view.messages().cloned().collect()
    }
}

struct Model {
    fails: bool,
    heard: Vec<Message>,
}

impl NextModel for Model {
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>> {
        self.heard = request.messages.to_vec();
        let result = if self.fails {
            Err(Error::new(ErrorCode::ModelServer, "down").into())
        } else {
            Ok(ModelResponse::default())
        };
        Box::pin(async move { result })
    }
}

/// Whether the model behind a wrapper answers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Answers {
    Yes,
    No,
}

/// The messages that a model hears through a wrapper in a run.
pub(crate) fn heard(
    middleware: &dyn Middleware,
    messages: Vec<Message>,
    facts: &RunFacts,
    answers: Answers,
) -> Vec<Message> {
    let request = ModelRequest {
        messages: Arc::new(messages.into()),
        run: run_with(facts.clone()),
        ..request(Arc::from([]), ChannelReads::default())
    };
    let mut model = Model {
        fails: answers == Answers::No,
        heard: Vec::new(),
    };
    let result = ready(middleware.wrap_model_call(request, &mut model));
    assert_eq!(result.is_ok(), answers == Answers::Yes);
    model.heard
}
