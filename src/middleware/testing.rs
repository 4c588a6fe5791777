//! What unit tests of middlewares share: the inside of a wrapper, and hooks on a state made of messages.

use std::sync::Arc;

use super::{
    CallTool, HookContext, HookOutput, Middleware, ModelResponse, NextModel, NextTool, RunFacts,
};
use crate::middleware::Hook;
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest, Purpose};
use crate::ports::tool::{ToolAnswer, ToolInvocation, ToolOutcome, ToolSpec};
use crate::protocol::message::Message;
use crate::state::ids::SequentialIds;
use crate::state::reads::ChannelReads;
use crate::state::update::StateUpdate;
use crate::state::{Overlay, ThreadState, View};
use crate::tools::testing::{ready, run_with};

struct Inside;

impl CallTool for Inside {
    fn call(&self, _: ToolInvocation) -> BoxFuture<'_, ToolOutcome> {
        let answer = ToolAnswer {
            content: "ran".into(),
            ..ToolAnswer::default()
        };
        Box::pin(std::future::ready(ToolOutcome::Answer(answer)))
    }
}

/// The answer to a call through one wrapper, or what the model is told of its failure.
pub(crate) fn called(
    middleware: &dyn Middleware,
    invocation: ToolInvocation,
) -> Result<ToolAnswer, String> {
    match ready(middleware.wrap_tool_call(invocation, NextTool::new(&[], &Inside))) {
        ToolOutcome::Answer(answer) => Ok(answer),
        ToolOutcome::Failed(fault) => Err(fault),
    }
}

#[derive(Default)]
struct Noting(Option<ModelRequest>);

impl NextModel for Noting {
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>> {
        self.0 = Some(request);
        Box::pin(std::future::ready(Ok(ModelResponse::default())))
    }
}

/// A request with these tools.
pub(crate) fn request(tools: Arc<[ToolSpec]>, reads: ChannelReads) -> ModelRequest {
    ModelRequest {
        purpose: Purpose::Lead,
        system: None,
        preamble: None,
        messages: Arc::default(),
        tools,
        tool_choice: None,
        attempt: 0,
        reads,
        run: run_with(RunFacts::default()),
    }
}

/// The request that a wrapper passes on.
pub(crate) fn passed_on(middleware: &dyn Middleware, request: ModelRequest) -> ModelRequest {
    let mut inside = Noting::default();
    let response = ready(middleware.wrap_model_call(request, &mut inside));
    assert!(response.is_ok(), "{response:?}");
    inside.0.expect("a wrapper that passes on")
}

/// What `look` makes of a state of these messages and this update.
pub(crate) fn on_state<T>(
    messages: Vec<Message>,
    update: StateUpdate,
    look: impl FnOnce(View<'_>) -> T,
) -> T {
    let state = ThreadState::new();
    let mut overlay = Overlay::new();
    let mut ids = SequentialIds::starting_at(1);
    let writes = [StateUpdate::messages(messages), update];
    state
        .stage(&mut overlay, &writes, &mut ids)
        .expect("a sound state");
    look(state.view(&overlay))
}

/// What a hook does on a state of these messages and this update.
pub(crate) fn hooked(
    middleware: &dyn Middleware,
    hook: Hook,
    messages: Vec<Message>,
    update: StateUpdate,
    run: &RunFacts,
) -> HookOutput {
    on_state(messages, update, |state| {
        let context = HookContext {
            state,
            run,
            answer: None,
        };
        middleware.hook(hook, &context).expect("no error")
    })
}
