//! Parts that tests put together: a model with a script in code, tools in process, middleware that notes what happens.

use std::sync::{Arc, Mutex};

use fawn::agent::assembly::{Assembly, AssemblyParts};
use fawn::middleware::{
    CallTool, Hook, HookContext, HookOutput, Hooks, Middleware, ModelResponse, NextModel, NextTool,
};
use fawn::ports::BoxFuture;
use fawn::ports::model::{
    DeltaSink, ModelDelta, ModelError, ModelProvider, ModelReply, ModelRequest,
};
use fawn::ports::tool::{DynTool, Tool, ToolAnswer, ToolInvocation, ToolOutcome, ToolSpec};
use fawn::protocol::error::Error;
use fawn::protocol::message::{Fields, Kind, Message, ToolCall};
use serde_json::{Value, json};

/// A shared list of what happened.
pub type Log = Arc<Mutex<Vec<String>>>;

/// A reply of text.
pub fn says(text: &str) -> ModelReply {
    ModelReply {
        content: text.into(),
        ..ModelReply::default()
    }
}

/// A reply that calls tools: name, id, arguments.
pub fn calls(list: &[(&str, &str, Value)]) -> ModelReply {
    let tool_calls = list.iter().map(|(name, id, args)| ToolCall {
        name: (*name).to_owned(),
        id: (!id.is_empty()).then(|| (*id).to_owned()),
        args: args.as_object().cloned().unwrap_or_default(),
    });
    ModelReply {
        tool_calls: tool_calls.collect(),
        ..ModelReply::default()
    }
}

/// Answers the n-th ai turn of a transcript with the n-th reply; records every request.
pub struct ScriptModel {
    replies: Vec<ModelReply>,
    pub requests: Arc<Mutex<Vec<Vec<Message>>>>,
}

impl ScriptModel {
    pub fn new(replies: Vec<ModelReply>) -> Self {
        ScriptModel {
            replies,
            requests: Arc::default(),
        }
    }
}

impl ModelProvider for ScriptModel {
    async fn call(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let turn = request
            .messages
            .iter()
            .filter(|m| m.kind() == Kind::Ai)
            .count();
        self.requests
            .lock()
            .unwrap()
            .push(request.messages.to_vec());
        let reply = self.replies[turn % self.replies.len()].clone();
        if let Value::String(text) = &reply.content
            && !text.is_empty()
        {
            sink.push(ModelDelta::Text(text.clone()));
        }
        Ok(reply)
    }
}

/// A tool made of a function.
pub struct FnTool<F> {
    pub spec: ToolSpec,
    pub direct: bool,
    pub run: F,
}

impl<F, R> Tool for FnTool<F>
where
    F: Fn(ToolInvocation) -> R + Send + Sync + 'static,
    R: Future<Output = ToolOutcome> + Send + 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn return_direct(&self) -> bool {
        self.direct
    }
    fn call(&self, invocation: ToolInvocation) -> impl Future<Output = ToolOutcome> + Send {
        (self.run)(invocation)
    }
}

/// A tool that takes any object.
pub fn tool<F, R>(name: &str, run: F) -> Arc<dyn DynTool>
where
    F: Fn(ToolInvocation) -> R + Send + Sync + 'static,
    R: Future<Output = ToolOutcome> + Send + 'static,
{
    let spec = ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}).into(),
    };
    Arc::new(FnTool {
        spec,
        direct: false,
        run,
    })
}

/// An answer of text.
pub fn answer(text: &str) -> ToolOutcome {
    ToolOutcome::Answer(ToolAnswer {
        content: text.into(),
        ..ToolAnswer::default()
    })
}

/// A message of a person.
pub fn human(text: &str) -> Message {
    let mut fields = Fields::new(Kind::Human, text);
    fields.id = Some(format!("h-{text}"));
    Message::new(fields)
}

type HookFn = Box<dyn Fn(Hook, &HookContext<'_>) -> Result<HookOutput, Error> + Send + Sync>;

/// A middleware that notes each hook, and does what `act` says.
pub struct Noting {
    name: String,
    log: Log,
    act: HookFn,
}

impl Noting {
    pub fn quiet(name: &str, log: &Log) -> Arc<dyn Middleware> {
        Self::acting(name, log, |_, _| Ok(HookOutput::Continue))
    }

    pub fn acting(
        name: &str,
        log: &Log,
        act: impl Fn(Hook, &HookContext<'_>) -> Result<HookOutput, Error> + Send + Sync + 'static,
    ) -> Arc<dyn Middleware> {
        Arc::new(Noting {
            name: name.to_owned(),
            log: log.clone(),
            act: Box::new(act),
        })
    }

    fn note(&self, what: &str) {
        self.log
            .lock()
            .unwrap()
            .push(format!("{}.{what}", self.name));
    }
}

impl Middleware for Noting {
    fn name(&self) -> &str {
        &self.name
    }
    fn hooks(&self) -> Hooks {
        Hooks {
            before_agent: true,
            before_model: true,
            after_model: true,
            after_agent: true,
            wrap_model_call: true,
            wrap_tool_call: true,
        }
    }
    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        self.note(hook.name());
        (self.act)(hook, context)
    }
    fn wrap_model_call<'a>(
        &'a self,
        request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            self.note("model>");
            let response = next.run(request).await;
            self.note("<model");
            response
        })
    }
    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            self.note("tool>");
            let outcome = next.run(invocation).await;
            self.note("<tool");
            outcome
        })
    }
}

/// The tools of an agent, inside of all wrappers.
pub struct Tools<'a>(pub &'a Assembly);

impl CallTool for Tools<'_> {
    fn call(&self, invocation: ToolInvocation) -> BoxFuture<'_, ToolOutcome> {
        match self.0.tool(&invocation.name) {
            Some(entry) => entry.tool.call_boxed(invocation),
            None => Box::pin(async { ToolOutcome::Failed("there is no such tool".into()) }),
        }
    }
}

/// Parts without tools and middleware.
pub fn parts(model: ScriptModel) -> AssemblyParts {
    AssemblyParts {
        model: Arc::new(model),
        system_prompt: None,
        data: None,
        checks: None,
        tools: Vec::new(),
        middleware: Vec::new(),
        recursion_limit: None,
        needs_host: false,
    }
}

/// A composed agent.
pub fn assembly(parts: AssemblyParts) -> Arc<Assembly> {
    Arc::new(Assembly::new(parts).expect("sound parts"))
}
