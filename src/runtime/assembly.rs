//! Assemblies of a runtime: what each factory is given, and what comes out.

use std::sync::{Arc, OnceLock};

use serde_json::Map;

use super::Runtime;
use super::model_chain::{self, CallPolicy};
use super::subagents::{FindSubagents, Subagents};
use crate::adapters::host_tool::HostTool;
use crate::agent::assembly::AssemblyParts;
use crate::agent::direct;
use crate::agent::goal::Evaluator;
use crate::agent::lead::LeadFacts;
use crate::middleware::Middleware;
use crate::ports::tool::DynTool;
use crate::protocol::assembly::{AssemblyConfig, MiddlewareConfig};
use crate::protocol::config::ModelRef;
use crate::protocol::decode::from_text;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::host_tool::HostToolConfig;
use crate::protocol::trust::OperatorText;

/// An assembly of a runtime.
#[derive(Clone)]
pub struct Assembly {
    runtime: Runtime,
    pub(super) assembly: Arc<crate::agent::assembly::Assembly>,
    /// `None` for a bare graph.
    described: Option<Arc<Described>>,
    subagents: Option<Subagents>,
}

/// A descriptor, made when it is first asked for (B-7).
struct Described {
    facts: LeadFacts,
    descriptor: OnceLock<Result<Arc<str>, Error>>,
}

impl Described {
    fn descriptor(&self, assembly: &crate::agent::assembly::Assembly) -> Result<Arc<str>, Error> {
        let made = self.descriptor.get_or_init(|| {
            let descriptor = self.facts.describe(assembly);
            serde_json::to_string(&descriptor)
                .map(Into::into)
                .map_err(|error| Error::new(ErrorCode::Internal, error.to_string()))
        });
        made.clone()
    }
}

impl Assembly {
    /// Its runtime.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The subagents object that it named, if it did.
    pub fn subagents(&self) -> Option<&Subagents> {
        self.subagents.as_ref()
    }

    /// `fawn_assembly_descriptor`: `null` for a bare graph, and only what the factory `lead` makes is none.
    ///
    /// # Errors
    /// `Closed`; `Internal` when it cannot be written.
    pub fn descriptor(&self) -> Result<String, Error> {
        self.runtime.check_open()?;
        match &self.described {
            Some(described) => Ok(described.descriptor(&self.assembly)?.to_string()),
            None => Ok("null".to_owned()),
        }
    }

    /// The data of the event `agent_assembled`; none for a bare graph.
    ///
    /// # Errors
    /// See [`Assembly::descriptor`].
    pub(super) fn assembled(&self) -> Result<Option<String>, Error> {
        let Some(described) = &self.described else {
            return Ok(None);
        };
        let descriptor = described.descriptor(&self.assembly)?;
        let metadata = serde_json::Value::Object(described.facts.metadata.clone());
        Ok(Some(format!(
            "{{\"descriptor\":{descriptor},\"metadata\":{metadata}}}"
        )))
    }
}

/// What a host composes itself.
pub(super) struct Given {
    pub model: ModelRef,
    pub system_prompt: Option<OperatorText>,
    pub tools: Vec<HostToolConfig>,
    /// The tools that the factory adds, after the others.
    pub brought: Vec<Arc<dyn DynTool>>,
    /// Whether any of those may ask the host.
    pub asks_host: bool,
    pub middleware: Vec<Arc<dyn Middleware>>,
    pub recursion_limit: Option<u32>,
    /// The subagents object that it delegates through, if it names one.
    pub subagents: Option<Subagents>,
}

/// Checks that the middlewares of the host among `list`, which stands at `path`, ask about nothing but `tools` and those that
/// the chain brings.
///
/// # Errors
/// `UnknownVariant` at the name.
pub(super) fn check_host_tools<'a>(
    path: &str,
    list: impl Iterator<Item = &'a MiddlewareConfig>,
    chain: &'a [Arc<dyn Middleware>],
    tools: impl Iterator<Item = &'a str>,
) -> Result<(), Error> {
    let mut hosts = list
        .enumerate()
        .filter_map(|(place, member)| Some((place, member.host.as_ref()?)))
        .peekable();
    if hosts.peek().is_none() {
        return Ok(());
    }
    let brought = chain.iter().flat_map(|part| part.tools());
    let known: Vec<&str> = tools
        .chain(brought.map(|tool| tool.spec().name.as_str()))
        .collect();
    for part in chain {
        part.heard_of(&known);
    }
    hosts.try_for_each(|(place, host)| {
        host.check_tools(&known)
            .map_err(|error| error.below(&format!("{path}/{place}/host")))
    })
}

impl Runtime {
    /// An assembly that names no subagents object. For Rust code, which has no handles.
    ///
    /// # Errors
    /// Those of [`Runtime::new_assembly_with`]; `Handle` where it does name one.
    pub fn new_assembly(&self, json: &str) -> Result<Assembly, Error> {
        self.new_assembly_with(json, &|_| {
            Err(Error::new(
                ErrorCode::Handle,
                "handles are not known here: look the object up for new_assembly_with",
            ))
        })
    }

    /// `fawn_assembly_new`. `find` knows the object behind a handle that the configuration names.
    ///
    /// # Errors
    /// Those of decoding and of [`AssemblyConfig::validate`]; those of `find`, and `Handle` for an object of another runtime, at
    /// `/subagent_runtime`; `UnknownModel`, `AssemblyInvalid`, `Closed`.
    pub fn new_assembly_with(
        &self,
        json: &str,
        find: FindSubagents<'_>,
    ) -> Result<Assembly, Error> {
        self.check_open()?;
        let config: AssemblyConfig = from_text(json)?;
        config.validate()?;
        let subagents = self.named_subagents(&config, find)?;
        match config {
            AssemblyConfig::Custom(config) => {
                let middleware = match &config.middleware {
                    Some(chain) => direct::given(chain).map_err(|error| error.below("/middleware")),
                    None => direct::given(&[MiddlewareConfig {
                        name: "dangling_tool_call".to_owned(),
                        settings: Map::new(),
                        host: None,
                    }]),
                };
                let middleware = middleware?;
                let list = config.middleware.as_deref().unwrap_or_default();
                let tools = config.tools.iter().map(|tool| tool.name.as_str());
                check_host_tools("/middleware", list.iter(), &middleware, tools)?;
                self.compose_given(Given {
                    model: config.model,
                    system_prompt: config.system_prompt,
                    tools: config.tools,
                    brought: Vec::new(),
                    asks_host: false,
                    middleware,
                    recursion_limit: config.recursion_limit,
                    subagents,
                })
            }
            AssemblyConfig::Direct(config) => self.assemble_direct(*config, subagents),
            AssemblyConfig::Lead(config) => self.assemble_lead(*config, true, subagents),
            AssemblyConfig::LeadGraph(config) => self.assemble_lead(*config, false, subagents),
        }
    }

    /// A bare graph of what the host composed itself.
    pub(super) fn compose_given(&self, given: Given) -> Result<Assembly, Error> {
        let policy = CallPolicy::plain(self.0.jitter);
        let chain = model_chain::chain(&given.model, &self.0.models, policy)
            .map_err(|error| error.below("/model"))?;
        let needs_host = chain.needs_host || given.asks_host || !given.tools.is_empty();
        let tools = given
            .tools
            .into_iter()
            .map(|tool| Arc::new(HostTool::new(tool)) as Arc<dyn DynTool>);
        let tools = tools.chain(given.brought);
        let parts = AssemblyParts {
            model: chain.model,
            system_prompt: given.system_prompt.as_ref().map(Into::into),
            data: None,
            tools: tools.collect(),
            middleware: given.middleware,
            recursion_limit: given.recursion_limit,
            needs_host,
            checks: Some(self.0.checks.clone()),
        };
        self.compose_described(parts, None, Evaluator::default(), given.subagents)
    }

    /// An assembly of parts that live in this process. For Rust code: tests and benchmarks.
    ///
    /// # Errors
    /// Those of [`crate::agent::assembly::Assembly::new`]; `Closed`.
    pub fn compose(&self, parts: AssemblyParts) -> Result<Assembly, Error> {
        self.compose_described(parts, None, Evaluator::default(), None)
    }

    /// An assembly, with what its descriptor says besides; a bare graph without that. `evaluator` judges goals. The object of its
    /// subagents lives as long as it.
    pub(super) fn compose_described(
        &self,
        parts: AssemblyParts,
        facts: Option<LeadFacts>,
        evaluator: Evaluator,
        subagents: Option<Subagents>,
    ) -> Result<Assembly, Error> {
        self.check_open()?;
        let assembly = crate::agent::assembly::Assembly::new(parts)?.judged_by(evaluator);
        Ok(Assembly {
            runtime: self.clone(),
            assembly: Arc::new(assembly),
            subagents,
            described: facts.map(|facts| {
                Arc::new(Described {
                    facts,
                    descriptor: OnceLock::new(),
                })
            }),
        })
    }
}
