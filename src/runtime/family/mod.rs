//! The subagents of one assembly: what they take from their agent, and each of them once it was asked for.
//!
//! An agent that never delegates has paid for a list of definitions. Who is asked for first is composed then, once, even when
//! several calls ask at the same time, and serves all executions from then on.

use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Map, Value, json};

use super::Runtime;
use super::capacity::configure_process_capacity;
use super::delegation::Delegations;
use super::lead::{LeadScope, plain};
use super::model_chain::{self, CallPolicy};
use super::subagents::Subagents;
use super::sync::lock;
use crate::agent::assembly::{Assembly, AssemblyParts};
use crate::agent::model_choice::{self, ModelChoice};
use crate::agent::subagent::{self, AgentSkills, ModelFacts, SubagentInputs, SubagentTools};
use crate::agent::subagent_scope::SubagentScope;
use crate::agent::tool_list::ConfiguredTool;
use crate::middleware::read_before_write::FileTurns;
use crate::middleware::run_sandboxes::RunSandboxes;
use crate::middleware::summarization::SummaryModels;
use crate::ports::authorization::{Access, Principal};
use crate::ports::delegate::Delegate;
use crate::ports::model::DynModelProvider;
use crate::ports::thread_files::ThreadFiles;
use crate::protocol::app_config::{AppConfig, SubagentRuntimeConfig};
use crate::protocol::assembly::BuildLabels;
use crate::protocol::config::{ModelConfig, ModelRef};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::model::{ModelProfile, ModelWishes, settled};
use crate::protocol::model_entry::ModelEntry;
use crate::protocol::warning::{Warning, Warnings};
use crate::skills::catalog::Catalog;
use crate::skills::library::SkillLibrary;
use crate::subagents::definition::{BASH, BASH_WITHHELD, Registry, SubagentDefinition};

/// A subagent, composed.
pub struct Child {
    /// What its executions run, all of them.
    pub assembly: Arc<Assembly>,
    /// What it was made of.
    pub definition: SubagentDefinition,
    /// The model that works on its tasks, as events and results name it.
    pub model_name: String,
}

/// What subagents take from the agent that delegates to them. Nothing of it changes while the agent lives.
pub struct Parent {
    /// What the agent was made from, and what its models are kept in.
    pub scope: Arc<LeadScope>,
    /// The configuration.
    pub app: Arc<AppConfig>,
    /// The agent's model.
    pub model: ParentModel,
    /// The tools that were configured for the agent, in order.
    pub tools: Arc<[ConfiguredTool]>,
    /// Its groups of tools (TL-2).
    pub groups: Option<Vec<String>>,
    /// Whether it is a lead agent, or one of plain arguments.
    pub is_lead: bool,
    /// Whom to ask what it may use.
    pub access: Option<Access>,
    /// For whom it works, where somebody is asked about calls.
    pub principal: Option<Principal>,
    /// Its skills; `None` where it has no folders of skills.
    pub skills: Option<ParentSkills>,
    /// The files of its user's threads.
    pub thread_files: Option<Arc<dyn ThreadFiles>>,
    /// Its sandboxes.
    pub sandbox: Option<Arc<RunSandboxes>>,
    /// Its turns at files.
    pub file_turns: FileTurns,
    /// What the operator says was built; `None` for a bare graph, of which nothing is told.
    pub described: Option<BuildLabels>,
    /// What it was warned of, and need not be again for each of its subagents.
    pub told: Warnings,
}

/// The model that a subagent inherits (SUB-13).
pub enum ParentModel {
    /// One of the configuration's, as it was chosen. Its subagents have it as the configuration says, without what the agent's
    /// record or the request set.
    Named(String),
    /// One that was given in place.
    Given(Box<ModelEntry>),
}

/// The skills of an agent.
pub struct ParentSkills {
    /// All skills of its user, as they were read for it.
    pub catalog: Arc<Catalog>,
    /// The same as they are while it runs.
    pub installed: Arc<dyn SkillLibrary>,
    /// Those that it may find and activate; `None` for all.
    pub allowed: Option<Vec<String>>,
}

/// Who runs the subagents of an assembly, and whether any of them asks the host.
pub(super) type ReadyDelegate = (Arc<dyn Delegate>, bool);

/// The subagents of one assembly.
pub struct Family {
    runtime: Runtime,
    parent: Parent,
    registry: Arc<Registry>,
    scope: SubagentScope,
    /// One for each definition of the registry, in its order.
    places: Vec<Place>,
}

/// A subagent that may have been asked for.
#[derive(Default)]
struct Place {
    child: OnceLock<Arc<Child>>,
    /// Held by whoever composes it.
    composing: Mutex<()>,
}

/// A model that is ready to answer.
struct ReadyModel {
    name: String,
    provider: Arc<dyn DynModelProvider>,
    asks_host: bool,
    supports_vision: bool,
    parameters: Map<String, Value>,
    summary_models: Option<SummaryModels>,
}

impl Family {
    /// Those of `registry` that are in `scope`; none is composed yet. `None` where there is not a single one.
    ///
    /// # Errors
    /// `UnknownModel` for a subagent that is set up with a model that there is not, so that no call fails over it.
    pub fn new(
        runtime: &Runtime,
        parent: Parent,
        registry: Arc<Registry>,
        scope: SubagentScope,
    ) -> Result<Option<Self>, Error> {
        let models = parent.app.models.iter();
        let models: Vec<&str> = models.map(|model| model.name.as_str()).collect();
        registry.check_models(&models)?;
        let places: Vec<Place> = registry.iter().map(|_| Place::default()).collect();
        let family = Family {
            runtime: runtime.clone(),
            parent,
            registry,
            scope,
            places,
        };
        let has_any = family.members().next().is_some();
        Ok(has_any.then_some(family))
    }

    /// The names of those that the agent may delegate to, in the order of the prompt (SUB-8, CA-11).
    pub fn names(&self) -> Vec<String> {
        self.members()
            .map(|definition| definition.name.clone())
            .collect()
    }

    /// Why a subagent that exists cannot be used here; `None` when it can, or when the agent is not to know of it.
    pub fn unavailable(&self, name: &str) -> Option<String> {
        let is_withheld = name == BASH && self.registry.is_bash_withheld();
        (is_withheld && self.scope.allows(name)).then(|| BASH_WITHHELD.to_owned())
    }

    /// Whether a subagent needs a model that its agent does not have and the host answers, so that runs of the agent need a
    /// queue. The agent's own tools, guards and model are not looked at: what of them asks the host asks it for the agent, too.
    pub fn asks_host(&self) -> bool {
        let mut named = self.members().filter_map(|member| member.model.as_deref());
        let mut seen = Vec::new();
        named.any(|name| asks_the_host(&self.parent.app, name, &mut seen))
    }

    /// The subagent of this name, composed when it is asked for the first time. What went wrong once is tried again by the next
    /// who asks.
    ///
    /// # Errors
    /// `UnknownAgent` for one that there is not, or that is out of scope; those of its model, its tools and its chain.
    pub fn child(&self, name: &str) -> Result<Arc<Child>, Error> {
        let found = self.registry.iter().zip(&self.places);
        let found = found
            .filter(|(definition, _)| self.scope.allows(&definition.name))
            .find(|(definition, _)| definition.name == name);
        let Some((definition, place)) = found else {
            return Err(Error::new(
                ErrorCode::UnknownAgent,
                format!("there is no subagent {name:?}"),
            ));
        };
        if let Some(child) = place.child.get() {
            return Ok(child.clone());
        }
        let _composing = lock(&place.composing);
        if let Some(child) = place.child.get() {
            return Ok(child.clone());
        }
        let child = self.compose(definition).map_err(|error| Error {
            path: None,
            message: format!(
                "the subagent {name:?} cannot be composed: {}",
                error.message
            ),
            ..error
        })?;
        Ok(place.child.get_or_init(|| Arc::new(child)).clone())
    }

    /// Those that the agent may delegate to.
    fn members(&self) -> impl Iterator<Item = &SubagentDefinition> {
        let all = self.registry.iter();
        all.filter(|definition| self.scope.allows(&definition.name))
    }

    fn compose(&self, definition: &SubagentDefinition) -> Result<Child, Error> {
        let Family {
            runtime, parent, ..
        } = self;
        let mut warnings = Warnings::new();
        let model = self.model(definition, &mut warnings)?;
        let subagent = subagent::compose(SubagentInputs {
            app: &parent.app,
            definition,
            vision: model.supports_vision,
            tools: SubagentTools {
                configured: &parent.tools,
                groups: parent.groups.as_deref(),
                is_lead: parent.is_lead,
            },
            access: parent.access.clone(),
            principal: parent.principal.clone(),
            skills: parent.skills.as_ref().map(|skills| AgentSkills {
                catalog: &skills.catalog,
                installed: &skills.installed,
                allowed: skills.allowed.as_deref(),
            }),
            thread_files: parent.thread_files.clone(),
            sandbox: parent.sandbox.clone(),
            file_turns: parent.file_turns.clone(),
            summary_models: model.summary_models,
        })?;
        warnings.extend(subagent.warnings);
        let assembly = Assembly::new(AssemblyParts {
            model: model.provider,
            system_prompt: Some(subagent.prompt.system),
            data: subagent.prompt.data,
            tools: subagent.tools,
            middleware: subagent.middleware,
            // Its executions have theirs from its turns.
            recursion_limit: None,
            needs_host: model.asks_host,
            checks: Some(runtime.0.checks.clone()),
        })?;
        runtime.0.logs.warn_all(&self.news(warnings));
        if let Some(build) = &parent.described {
            let of = ModelFacts {
                name: &model.name,
                parameters: &model.parameters,
            };
            runtime.0.logs.agent_assembled(|| {
                let descriptor = subagent.facts.describe(definition, &of, build, &assembly);
                let metadata = json!({
                    "agent_name": definition.name,
                    "model_name": model.name,
                    "thinking_enabled": false,
                    "is_subagent": true,
                });
                Ok(Some(
                    json!({"descriptor": descriptor, "metadata": metadata}).to_string(),
                ))
            })?;
        }
        Ok(Child {
            assembly: Arc::new(assembly),
            definition: definition.clone(),
            model_name: model.name,
        })
    }

    /// Those warnings that the agent has not been told of itself. Tools whose names were taken are its own, all of them.
    fn news(&self, warnings: Warnings) -> Warnings {
        let mut news = Warnings::new();
        for (warning, message) in warnings.iter() {
            let mut told = self.parent.told.iter();
            if warning != Warning::ToolDuplicate && !told.any(|known| known == (warning, message)) {
                news.add(warning, message);
            }
        }
        news
    }

    /// The model of a subagent, made to answer without thinking (SUB-13, SUB-24).
    fn model(
        &self,
        definition: &SubagentDefinition,
        warnings: &mut Warnings,
    ) -> Result<ReadyModel, Error> {
        let Parent {
            app, access, model, ..
        } = &self.parent;
        let name = match (&definition.model, model) {
            (Some(name), _) | (None, ParentModel::Named(name)) => name,
            (None, ParentModel::Given(entry)) => return self.given(entry),
        };
        let (choice, found) = model_choice::choose(&app.models, &plain(name), access.as_ref())?;
        warnings.extend(found);
        self.chosen(choice)
    }

    fn chosen(&self, mut choice: ModelChoice) -> Result<ReadyModel, Error> {
        let (runtime, scope) = (&self.runtime, &self.parent.scope);
        scope.leave_out_references(&mut choice.parameters);
        let (provider, asks_host) = runtime.ready_model(scope, &choice)?;
        Ok(ReadyModel {
            provider,
            asks_host,
            supports_vision: choice.supports_vision,
            parameters: choice.parameters,
            summary_models: runtime.summary_models(scope, Some(&choice.name))?,
            name: choice.name,
        })
    }

    /// A model that an agent of plain arguments was given in place. Those that stand in for it stay as they are.
    fn given(&self, entry: &ModelEntry) -> Result<ReadyModel, Error> {
        let runtime = &self.runtime;
        // Nothing is known of it; what it says of efforts is its own.
        let profile = ModelProfile {
            supports_reasoning_effort: true,
            ..ModelProfile::default()
        };
        let own = ModelRef::Inline(Box::new(ModelEntry {
            config: settled(&entry.config, &profile, &ModelWishes::default())?,
            ..entry.clone()
        }));
        let policy = CallPolicy::plain(runtime.0.jitter);
        let chain = model_chain::chain(&own, &runtime.0.models, policy)?;
        Ok(ReadyModel {
            name: entry.label.clone(),
            provider: chain.model,
            asks_host: chain.needs_host,
            supports_vision: false,
            parameters: Map::new(),
            summary_models: runtime.summary_models(&self.parent.scope, None)?,
        })
    }
}

impl Runtime {
    /// Who runs the subagents of an assembly, in the places of `subagents` or else of the process, and whether they may ask the host
    /// where their agent does not.
    pub(super) fn delegation(
        &self,
        family: Family,
        subagents: Option<&Subagents>,
        warnings: &mut Warnings,
    ) -> ReadyDelegate {
        let asks_host = family.asks_host();
        if subagents.is_none() {
            share_process_capacity(&family.parent.app.subagent_runtime, warnings);
        }
        let capacity = subagents.map(Subagents::capacity);
        let delegations = Delegations::new(self.clone(), family, capacity);
        (Arc::new(delegations), asks_host)
    }
}

/// Sets up the places of the process as a configuration says (RT-37). While some are taken they stay as they are.
pub(super) fn share_process_capacity(wanted: &SubagentRuntimeConfig, warnings: &mut Warnings) {
    if let Err(error) = configure_process_capacity(wanted) {
        let text = format!("subagent_runtime does not hold: {}", error.message);
        warnings.add(Warning::ConcurrencyFixed, text);
    }
}

/// Whether the host answers a model of the configuration, or one that stands in for it. `seen` are those that were looked at.
fn asks_the_host<'a>(app: &'a AppConfig, name: &'a str, seen: &mut Vec<&'a str>) -> bool {
    if seen.contains(&name) {
        return false;
    }
    seen.push(name);
    let model = app.model(name);
    model.is_some_and(|model| entry_asks_the_host(app, &model.model, seen))
}

fn entry_asks_the_host<'a>(
    app: &'a AppConfig,
    entry: &'a ModelEntry,
    seen: &mut Vec<&'a str>,
) -> bool {
    let is_host = matches!(entry.config, ModelConfig::Host(_));
    is_host
        || entry.fallbacks.iter().any(|fallback| match fallback {
            ModelRef::Named(name) => asks_the_host(app, name, seen),
            ModelRef::Inline(entry) => entry_asks_the_host(app, entry, seen),
        })
}

#[cfg(test)]
mod tests;
