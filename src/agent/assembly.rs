//! An assembly: model, system text, tools and middleware, composed once and never changed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::goal::Evaluator;
use crate::middleware::{Hook, Middleware, check_order};
use crate::ports::model::DynModelProvider;
use crate::ports::tool::{DynTool, ToolSpec};
use crate::protocol::config::DEFAULT_RECURSION_LIMIT;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{Fields, Kind, Message, ToolCall};
use crate::protocol::trust::SystemText;
use crate::state::channels::Channel;
use crate::tools::arguments::{ArgumentCheck, ArgumentChecks, KnownTools};

/// What an assembly is made of.
pub struct AssemblyParts {
    /// The model.
    pub model: Arc<dyn DynModelProvider>,
    /// System text.
    pub system_prompt: Option<SystemText>,
    /// What users and models wrote for it, framed as data (`prompt`): a human message before the transcript of each request.
    pub data: Option<Arc<str>>,
    /// Tools, in the order in which the model is told of them.
    pub tools: Vec<Arc<dyn DynTool>>,
    /// The chain, outermost first.
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// Steps of a run unless the run says otherwise.
    pub recursion_limit: Option<u32>,
    /// Whether a run needs a queue because the host answers its model or runs its tools. A middleware that asks the host
    /// says so itself.
    pub needs_host: bool,
    /// Where compiled schemas are kept between assemblies; `None` compiles all of them.
    pub checks: Option<Arc<ArgumentChecks>>,
}

/// One tool with its compiled schema.
pub struct ToolEntry {
    /// The tool.
    pub tool: Arc<dyn DynTool>,
    /// The check of its arguments.
    pub check: Arc<ArgumentCheck>,
}

/// A composed agent.
pub struct Assembly {
    /// The model.
    pub model: Arc<dyn DynModelProvider>,
    /// System text.
    pub system_prompt: Option<SystemText>,
    /// The data message of each request.
    pub preamble: Option<Message>,
    /// What the model is told about the tools.
    pub tool_specs: Arc<[ToolSpec]>,
    /// Steps of a run unless the run says otherwise.
    pub recursion_limit: u32,
    /// Whether a run needs a queue.
    pub needs_host: bool,
    data: Option<Arc<str>>,
    own_tools: Vec<Arc<dyn DynTool>>,
    tools: Vec<ToolEntry>,
    by_name: HashMap<String, usize>,
    middleware: Vec<Arc<dyn Middleware>>,
    hooks: [Vec<usize>; 4],
    model_wrappers: Vec<Arc<dyn Middleware>>,
    tool_wrappers: Vec<Arc<dyn Middleware>>,
    wrapped_reads: Vec<Channel>,
    evaluator: Evaluator,
}

impl Assembly {
    /// Composes an agent.
    ///
    /// # Errors
    /// `Conflict` when two tools or two middlewares share a name, `AssemblyInvalid` when a tool's schema is none or a
    /// middleware stands where it cannot work.
    pub fn new(parts: AssemblyParts) -> Result<Self, Error> {
        let AssemblyParts {
            model,
            system_prompt,
            data,
            tools,
            middleware,
            recursion_limit,
            needs_host,
            checks,
        } = parts;
        let checks = checks.unwrap_or_default();
        let mut by_name = HashMap::new();
        let mut entries = Vec::with_capacity(tools.len());
        let own = tools.iter().cloned().enumerate();
        let own = own.map(|(place, tool)| (format!("/tools/{place}"), tool));
        // AD-13: what the middlewares bring comes after the agent's own, in the order of the chain.
        let brought = middleware.iter().enumerate().flat_map(|(place, part)| {
            let tools = part.tools().iter().cloned().enumerate();
            tools.map(move |(nth, tool)| (format!("/middleware/{place}/tools/{nth}"), tool))
        });
        for (place, (at, tool)) in own.chain(brought).enumerate() {
            let check = checks
                .check(&tool.spec().parameters)
                .map_err(|error| error.below(&format!("{at}/parameters")))?;
            if let Some(first) = by_name.insert(tool.spec().name.clone(), place) {
                let name = &tool.spec().name;
                let is_brought = place >= tools.len() && first < tools.len();
                return Err(match is_brought {
                    // Whoever made the agent chose that name, and can choose another.
                    true => Error::at(
                        ErrorCode::Conflict,
                        format!("/tools/{first}/name"),
                        format!(
                            "{name:?} is the name of a built-in tool, which a middleware of this agent brings; give yours another"
                        ),
                    ),
                    false => Error::at(
                        ErrorCode::Conflict,
                        format!("{at}/name"),
                        format!("a second tool is named {name:?}"),
                    ),
                });
            }
            entries.push(ToolEntry { tool, check });
        }
        for (place, part) in middleware.iter().enumerate() {
            if middleware[..place]
                .iter()
                .any(|earlier| earlier.name() == part.name())
            {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    format!("/middleware/{place}"),
                    format!("a second middleware is named {:?}", part.name()),
                ));
            }
        }
        check_order(&middleware)?;
        let known = entries
            .iter()
            .map(|entry: &ToolEntry| (entry.tool.spec().name.clone(), entry.check.clone()));
        let known = Arc::new(KnownTools::from_iter(known));
        for part in &middleware {
            part.bound(&known);
        }
        let having = |pick: fn(&dyn Middleware) -> bool| -> Vec<usize> {
            (0..middleware.len())
                .filter(|place| pick(middleware[*place].as_ref()))
                .collect()
        };
        let reversed = |mut places: Vec<usize>| {
            places.reverse();
            places
        };
        let hooks = [
            having(|part| part.hooks().before_agent),
            having(|part| part.hooks().before_model),
            reversed(having(|part| part.hooks().after_model)),
            reversed(having(|part| part.hooks().after_agent)),
        ];
        let wrappers = |pick: fn(&dyn Middleware) -> bool| {
            having(pick)
                .into_iter()
                .map(|place| middleware[place].clone())
                .collect()
        };
        let mut wrapped_reads: Vec<Channel> = Vec::new();
        for channel in middleware.iter().flat_map(|part| part.reads()) {
            if !wrapped_reads.contains(channel) {
                wrapped_reads.push(*channel);
            }
        }
        Ok(Assembly {
            model,
            system_prompt,
            preamble: data.as_deref().map(data_message),
            data,
            own_tools: tools,
            tool_specs: entries
                .iter()
                .map(|entry| entry.tool.spec().clone())
                .collect(),
            recursion_limit: recursion_limit.unwrap_or(DEFAULT_RECURSION_LIMIT),
            needs_host: needs_host || middleware.iter().any(|part| part.asks_host()),
            tools: entries,
            by_name,
            hooks,
            model_wrappers: wrappers(|part| part.hooks().wrap_model_call),
            tool_wrappers: wrappers(|part| part.hooks().wrap_tool_call),
            wrapped_reads,
            middleware,
            evaluator: Evaluator::default(),
        })
    }

    /// The same agent, with `evaluator` to judge the goals of its threads.
    #[must_use]
    pub fn judged_by(mut self, evaluator: Evaluator) -> Self {
        self.evaluator = evaluator;
        self
    }

    /// Who judges the goals of its threads.
    pub fn evaluator(&self) -> &Evaluator {
        &self.evaluator
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&ToolEntry> {
        self.by_name.get(name).map(|place| &self.tools[*place])
    }

    /// The middlewares that have a state hook, in the order in which they run.
    pub fn hook(&self, hook: Hook, position: usize) -> Option<&Arc<dyn Middleware>> {
        self.hooks[hook as usize]
            .get(position)
            .map(|place| &self.middleware[*place])
    }

    /// The chain, outermost first.
    pub fn middleware(&self) -> &[Arc<dyn Middleware>] {
        &self.middleware
    }

    /// The agent's own tools, in order; those that middlewares bring are not among them.
    pub fn own_tools(&self) -> &[Arc<dyn DynTool>] {
        &self.own_tools
    }

    /// Text of the data message.
    pub fn data(&self) -> Option<&str> {
        self.data.as_deref()
    }

    /// The middlewares that wrap model calls, outermost first.
    pub fn model_wrappers(&self) -> &[Arc<dyn Middleware>] {
        &self.model_wrappers
    }

    /// The channels that wrap hooks read.
    pub fn wrapped_reads(&self) -> &[Channel] {
        &self.wrapped_reads
    }

    /// The channels that wrap hooks and the called tools read.
    pub fn call_reads(&self, calls: &[ToolCall]) -> Cow<'_, [Channel]> {
        let mut reads = Cow::Borrowed(self.wrapped_reads());
        for call in calls {
            let wanted = self.tool(&call.name).map(|entry| entry.tool.reads());
            for channel in wanted.into_iter().flatten() {
                if !reads.contains(channel) {
                    reads.to_mut().push(*channel);
                }
            }
        }
        reads
    }

    /// The middlewares that wrap tool calls, outermost first.
    pub fn tool_wrappers(&self) -> &[Arc<dyn Middleware>] {
        &self.tool_wrappers
    }
}

/// The human message that carries the data of an assembly. It stands in requests only and is never stored.
fn data_message(text: &str) -> Message {
    let mut fields = Fields::new(Kind::Human, Value::String(text.to_owned()));
    fields
        .additional_kwargs
        .insert("hide_from_ui".to_owned(), Value::Bool(true));
    Message::new(fields)
}
