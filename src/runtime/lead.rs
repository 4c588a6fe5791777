//! Lead agents of a runtime: what an assembly reads before it is composed, and what of that is kept between assemblies.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};

use super::Runtime;
use super::assembly::{Assembly, check_host_tools};
use super::family::{Family, Parent, ParentModel, ParentSkills};
use super::model_chain::{self, CallPolicy};
use super::subagents::Subagents;
use super::sync::lock;
use crate::adapters::agents_dir::AgentsDir;
use crate::adapters::host_memory::HostMemory;
use crate::adapters::host_sandbox::HostSandbox;
use crate::adapters::host_tool::HostTool;
use crate::adapters::offload::Offload;
use crate::adapters::skills_dir::{SkillSettings, SkillsDir, UserSkills};
use crate::adapters::thread_files_dir::ThreadFilesDir;
use crate::agent::assembly::AssemblyParts;
use crate::agent::authorization::{access_of_request, principal};
use crate::agent::goal::Evaluator;
use crate::agent::lead::{self, LeadFacts, LeadInputs};
use crate::agent::model_choice::{self, ModelChoice, ModelQuestion};
use crate::agent::options::{LeadOptions, SubagentLimits, recursion_limit};
use crate::agent::sections::Sections;
use crate::agent::selection::AgentSelection;
use crate::agent::subagent_scope::SubagentScope;
use crate::agent::subagent_settings::SubagentSettings;
use crate::agent::tool_list::{ConfiguredTool, SelfTool};
use crate::middleware::OtherModel;
use crate::middleware::read_before_write::FileTurns;
use crate::middleware::run_sandboxes::RunSandboxes;
use crate::middleware::summarization::SummaryModels;
use crate::ports::agents::AgentStore;
use crate::ports::authorization::Access;
use crate::ports::memory_policy::{AgentBinding, MemoryPolicies};
use crate::ports::memory_queue::MemoryQueue;
use crate::ports::model::DynModelProvider;
use crate::ports::sandbox::Sandbox;
use crate::ports::thread_files::ThreadFiles;
use crate::ports::tool::{DynTool, ToolOrigin};
use crate::protocol::agent_record::{AgentModelSettings, AgentRecord};
use crate::protocol::app_config::{self, AppConfig, Feature as _, SandboxClass};
use crate::protocol::assembly::LeadConfig;
use crate::protocol::config::ModelRef;
use crate::protocol::decode::hint;
use crate::protocol::environment::References;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::host_tool::HostToolConfig;
use crate::protocol::model_entry::unknown_model;
use crate::protocol::runtime_op::ResetAgent;
use crate::protocol::trust::{Identifier, SourcedText};
use crate::protocol::user_id::UserId;
use crate::protocol::warning::{Warning, Warnings};
use crate::skills::library::SkillLibrary;
use crate::subagents::definition::Registry;
use crate::tools::arguments::ArgumentChecks;
use crate::tools::self_management::AgentScope;
use crate::tools::setup_agent::SetupAgent;
use crate::tools::update_agent::UpdateAgent;

/// Most models that are kept ready.
const MAX_READY: usize = 64;

/// What the lead agents of one configuration share.
pub struct LeadScope {
    app: Arc<AppConfig>,
    configured: Vec<ConfiguredTool>,
    /// Tools of the configuration that are not there, and sections that nothing switches on.
    absent: Warnings,
    skills: Arc<SkillsDir>,
    skill_settings: Arc<SkillSettings>,
    agents: Option<Arc<dyn AgentStore>>,
    /// Where work on files is done.
    offload: Offload,
    policies: MemoryPolicies,
    model_names: Arc<[String]>,
    /// Models as agents have asked for them, ready to answer: making a client costs more than all the rest.
    ready: Mutex<HashMap<String, ReadyModel>>,
    /// What came from the environment and is told to nobody.
    references: References,
}

/// A model that is ready to answer, and whether it asks the host.
pub(super) type ReadyModel = (Arc<dyn DynModelProvider>, bool);

impl LeadScope {
    /// Reads nothing yet.
    pub fn new(app: AppConfig, references: References, is_driven: bool) -> Self {
        let mut absent = Warnings::new();
        let mut configured = Vec::new();
        for tool in &app.tools {
            match tool {
                app_config::ConfiguredTool::Host(config) => configured.push(host_tool(config)),
                app_config::ConfiguredTool::Class(class) => absent.add(
                    Warning::ToolUnavailable,
                    format!(
                        "the tool {:?} ({}) is not available in this version; a tool of the host may take its name",
                        class.name, class.class
                    ),
                ),
            }
        }
        for section in app.forgotten_sections() {
            absent.add(
                Warning::SectionOff,
                format!(
                    "the section {section:?} has settings, but it is off: it needs \"enabled\": true"
                ),
            );
        }
        let offload = match is_driven {
            true => Offload::Inline,
            false => Offload::Pool,
        };
        let home = app.home.as_ref().map(PathBuf::from);
        let agents = home
            .as_ref()
            .map(|home| Arc::new(AgentsDir::new(home.clone(), offload)) as Arc<dyn AgentStore>);
        let switches = app.extensions.skills.iter();
        LeadScope {
            configured,
            absent,
            skills: Arc::new(SkillsDir::new()),
            offload,
            skill_settings: Arc::new(SkillSettings {
                path: app.skills.path.as_ref().map(PathBuf::from),
                home,
                container_path: app.skills.container_path.as_str().to_owned(),
                public_states: switches
                    .map(|(name, state)| (name.clone(), state.enabled))
                    .collect(),
            }),
            agents,
            policies: MemoryPolicies::new(app.memory.enabled),
            model_names: app.models.iter().map(|model| model.name.clone()).collect(),
            ready: Mutex::default(),
            references,
            app: Arc::new(app),
        }
    }

    /// Takes out of a model's settings what came from the environment.
    pub(super) fn leave_out_references(&self, parameters: &mut Map<String, Value>) {
        self.references.leave_out(parameters);
    }

    /// The configuration.
    pub fn app(&self) -> &AppConfig {
        &self.app
    }

    /// The same, to be kept.
    pub(super) fn shared_app(&self) -> &Arc<AppConfig> {
        &self.app
    }

    /// The op `reset_agent` (CA-8).
    pub fn reset_agent(&self, which: &ResetAgent) {
        self.policies.reset_agent(which);
    }

    /// The op `reload_skills`.
    pub fn reload_skills(&self) {
        self.skills.reload();
    }

    /// The files of a user's threads; none without a `home`.
    fn thread_files(&self, user: &UserId) -> Option<Arc<dyn ThreadFiles>> {
        let home = self.app.home.as_ref()?;
        Some(Arc::new(ThreadFilesDir::new(
            home,
            user.clone(),
            self.offload,
        )))
    }

    /// The sandboxes of a user's threads.
    fn sandbox(&self, user: &UserId) -> Option<Arc<dyn Sandbox>> {
        let section = &self.app.sandbox;
        match section.class {
            SandboxClass::None => None,
            SandboxClass::Host => Some(Arc::new(HostSandbox::new(
                user.clone(),
                section.deadline(),
                section.thread_data_mounts.unwrap_or(false),
            ))),
        }
    }

    /// The memory that hears what runs say.
    fn memory_queue(&self) -> Option<Arc<dyn MemoryQueue>> {
        let tells = self.app.memory.tells_host();
        tells.then(|| Arc::new(HostMemory) as Arc<dyn MemoryQueue>)
    }

    /// The record of a custom agent: the operator's first, then the user's, then the legacy one (CA-3).
    fn agent(&self, name: &Identifier, user: &UserId) -> Result<Arc<AgentRecord>, Error> {
        if let Some(agent) = self.app.agents.iter().find(|agent| agent.name == *name) {
            return Ok(agent.clone());
        }
        let stored = match &self.agents {
            Some(agents) => agents.load(user, name)?,
            None => None,
        };
        if let Some(stored) = stored {
            return Ok(Arc::new(stored.record.clone()));
        }
        let known: Vec<&str> = self
            .app
            .agents
            .iter()
            .map(|agent| agent.name.as_str())
            .collect();
        let hint = match known.is_empty() {
            true => String::new(),
            false => hint(name.as_str(), &known),
        };
        Err(Error::new(
            ErrorCode::UnknownAgent,
            format!("there is no agent {:?}{hint}", name.as_str()),
        ))
    }
}

fn host_tool(config: &HostToolConfig) -> ConfiguredTool {
    ConfiguredTool {
        group: config.group.clone(),
        tool: Arc::new(HostTool::new(config.clone())),
    }
}

impl Runtime {
    /// The factories `lead` and `lead_graph`.
    pub(super) fn assemble_lead(
        &self,
        config: LeadConfig,
        is_described: bool,
        subagents: Option<Subagents>,
    ) -> Result<Assembly, Error> {
        let has_own = config.app_config.is_some();
        let scope = match config.app_config.clone() {
            None => self.0.lead.clone(),
            Some(app) => {
                let (app, references) = AppConfig::read(app, &|name| std::env::var(name).ok())
                    .and_then(|(app, references)| {
                        check_schemas(&self.0.checks, &app.host_tools())?;
                        Ok((app, references))
                    })
                    .map_err(|error| error.below("/app_config"))?;
                Arc::new(LeadScope::new(app, references, self.0.driver.is_driven()))
            }
        };
        let of_request = config.tools.iter().enumerate().collect::<Vec<_>>();
        check_schemas(&self.0.checks, &of_request)?;
        let mut places = HashMap::new();
        let mut note_places = |tools: Vec<(usize, &HostToolConfig)>, prefix: &str| {
            for (place, tool) in tools {
                let at = format!("{prefix}/tools/{place}");
                places.entry(tool.name.clone()).or_insert(at);
            }
        };
        if has_own {
            note_places(scope.app.host_tools(), "/app_config");
        }
        note_places(of_request, "");
        let made = self.lead_parts(&scope, config, is_described, subagents.as_ref());
        let (parts, facts, evaluator, warnings) = made.map_err(|error| match has_own {
            true => below_own_sections(error),
            false => error,
        })?;
        let tools = parts.tools.clone();
        let facts = is_described.then_some(facts);
        let composed = self.compose_described(parts, facts, evaluator, subagents);
        let assembly = composed.map_err(|error| at_its_tool(error, &tools, &places))?;
        self.0.logs.warn_all(&warnings);
        self.0.logs.agent_assembled(|| assembly.assembled())?;
        Ok(assembly)
    }

    fn lead_parts(
        &self,
        scope: &Arc<LeadScope>,
        config: LeadConfig,
        is_described: bool,
        subagents: Option<&Subagents>,
    ) -> Result<(AssemblyParts, LeadFacts, Evaluator, Warnings), Error> {
        let app = &scope.app;
        let sections = Sections::new(&config.configurable, &config.context);
        let selection = AgentSelection::new(sections, config.assistant_id.as_deref())?;
        let user = selection.user_id.clone();
        let at_name = |error: Error| Error {
            path: Some(sections.path_of("agent_name", "/assistant_id")),
            ..error
        };
        let agent = match &selection.agent_name {
            Some(name) if !selection.is_bootstrap => {
                Some(scope.agent(name, &user).map_err(at_name)?)
            }
            _ => None,
        };
        let agent = agent.as_deref();
        let limits = subagents.map_or_else(|| SubagentLimits::of(app), Subagents::limits);
        let (options, mut warnings) =
            LeadOptions::resolve(sections, selection.clone(), limits, agent)?;
        warnings.extend(scope.absent.clone());
        if options.selection.is_bootstrap && scope.agents.is_none() {
            warnings.add(
                Warning::ToolUnavailable,
                "the tool \"setup_agent\" is not available: the configuration has no \"home\" to keep an agent in",
            );
        }

        let lists = config.authorization.as_ref();
        let access = access_of_request(app, lists, sections, &selection)?;
        let role = &app.authorization.default_role;
        let is_guarded = app.guardrails.is_enabled();
        let whom = is_guarded.then(|| principal(sections, &selection, role));
        let (mut model, model_warnings) = choose(app, &options, agent, access.as_ref())?;
        scope.references.leave_out(&mut model.parameters);
        warnings.extend(model_warnings);
        let (provider, model_asks) = self.ready_model(scope, &model)?;
        let wanted = app.llm_call.max_concurrent_calls;
        let fixed = self.0.in_flight.limit().unwrap_or(wanted);
        if wanted != fixed && wanted > 0 {
            let text = format!(
                "llm_call.max_concurrent_calls is {wanted}, but {fixed} has counted in this runtime since before"
            );
            warnings.add(Warning::ConcurrencyFixed, text);
        }

        let loaded = scope
            .skills
            .load(&scope.skill_settings, Some(user.as_str()))?;
        warnings.extend((*loaded.warnings).clone());

        let policy = scope.policies.resolve(
            match (&selection.agent_name, selection.is_bootstrap) {
                (_, true) => AgentBinding::Bootstrap,
                (Some(name), false) => AgentBinding::Named(name),
                (None, false) => AgentBinding::Default,
            },
            &user,
            |name, user| {
                scope
                    .agent(name, user)
                    .map(|agent| Some(agent.memory_enabled))
            },
            &mut warnings,
        );
        let default_soul = match (agent, &scope.agents) {
            (None, Some(agents)) => agents.default_soul()?.map(SourcedText::Untrusted),
            _ => None,
        };

        let own = config.tools.iter().map(host_tool);
        let configured: Arc<[ConfiguredTool]> =
            scope.configured.iter().cloned().chain(own).collect();
        let whom = whom.transpose()?;
        let installed: Arc<dyn SkillLibrary> = Arc::new(UserSkills::new(
            scope.skills.clone(),
            scope.skill_settings.clone(),
            Some(user.as_str().to_owned()),
            scope.offload,
        ));
        let thread_files = scope.thread_files(&user);
        let sandbox = scope.sandbox(&user);
        let sandbox = sandbox.map(|port| Arc::new(RunSandboxes::new(port)));
        let file_turns = FileTurns::default();
        let registry = options
            .subagent_enabled
            .then(|| Arc::new(Registry::of(app)));
        let scope_of_subagents = SubagentScope::of(agent);
        if let Some(registry) = &registry {
            let settings = SubagentSettings {
                app,
                at: match config.app_config.is_some() {
                    true => "/app_config",
                    false => "",
                },
                registry,
                scope: &scope_of_subagents,
                agent,
                tools: &configured,
            };
            settings.check(&mut warnings);
        }
        let family = registry.as_ref().map(|registry| {
            let parent = Parent {
                scope: scope.clone(),
                app: app.clone(),
                model: ParentModel::Named(model.name.clone()),
                tools: configured.clone(),
                groups: agent.and_then(|agent| agent.tool_groups.clone()),
                is_lead: true,
                access: access.clone(),
                principal: whom.clone(),
                skills: Some(ParentSkills {
                    catalog: loaded.catalog.clone(),
                    installed: installed.clone(),
                    allowed: lead::allowed_skills(&options, agent),
                }),
                thread_files: thread_files.clone(),
                sandbox: sandbox.clone(),
                file_turns: file_turns.clone(),
                described: is_described.then(|| config.build.clone()),
                told: warnings.clone(),
            };
            Family::new(self, parent, registry.clone(), scope_of_subagents.clone())
        });
        let family = family.transpose()?.flatten();
        if subagents.is_some() && family.is_none() {
            let why = match (options.subagent_enabled, &scope_of_subagents) {
                (false, SubagentScope::Denied) => "its allowed_subagents is empty",
                (false, _) => "nothing sets subagent_enabled",
                (true, _) => "none of its allowed_subagents is there",
            };
            let text =
                format!("/subagent_runtime is not used: the agent does not delegate, as {why}");
            warnings.add(Warning::SubagentSettingDoubtful, text);
        }
        let delegation = family.map(|family| self.delegation(family, subagents, &mut warnings));
        let (delegate, children_ask) = delegation.unzip();
        let limit = config.recursion_limit;
        let lead = lead::compose(LeadInputs {
            app,
            options: &options,
            agent,
            default_soul,
            model: &model,
            access,
            principal: whom,
            catalog: loaded.catalog.clone(),
            installed,
            configured: &configured,
            self_tool: self_tool(scope, &options, &user),
            title_model: self.title_model(scope)?,
            summary_models: self.summary_models(scope, Some(&model.name))?,
            memory: policy.access(),
            extra_middleware: &config.extra_middleware,
            memory_queue: scope.memory_queue(),
            thread_files,
            sandbox,
            file_turns,
            subagents: registry.as_deref(),
            delegate,
            recursion_limit: limit,
            build: config.build,
        })?;
        // A tool that this agent is not given is no misspelt one.
        let elsewhere = configured.iter().map(|configured| &configured.tool);
        check_host_tools(
            "/extra_middleware",
            config
                .extra_middleware
                .iter()
                .map(|extra| &extra.middleware),
            &lead.middleware,
            elsewhere
                .chain(&lead.tools)
                .map(|tool| tool.spec().name.as_str()),
        )?;
        warnings.extend(lead.warnings);
        let from_host = |tool: &Arc<dyn DynTool>| {
            matches!(tool.origin(), ToolOrigin::Host | ToolOrigin::Mcp(_))
        };
        let children_ask = children_ask.unwrap_or(false);
        let needs_host = model_asks || children_ask || lead.tools.iter().any(from_host);
        let parts = AssemblyParts {
            model: provider,
            system_prompt: Some(lead.prompt.system),
            data: lead.prompt.data,
            tools: lead.tools,
            middleware: lead.middleware,
            recursion_limit: Some(recursion_limit(limit.map(Value::from).as_ref(), app)),
            needs_host,
            checks: Some(self.0.checks.clone()),
        };
        let evaluator = self.evaluator(app, &model, &options);
        Ok((parts, lead.facts, evaluator, warnings))
    }

    /// Who judges goals for an agent whose model is `of_run`: the same model, made to answer without thinking (GOAL-8). It is
    /// made when a goal is judged for the first time, since most agents never see one.
    fn evaluator(
        &self,
        app: &Arc<AppConfig>,
        of_run: &ModelChoice,
        options: &LeadOptions,
    ) -> Evaluator {
        let (runtime, app, name) = (self.clone(), app.clone(), of_run.name.clone());
        Evaluator {
            model: Some(Arc::new(move || {
                let (model, _) = model_choice::choose(&app.models, &plain(&name), None)?;
                let (provider, _) = runtime.ready_model(&runtime.0.lead, &model)?;
                Ok(provider)
            })),
            unattended: options.withholds_clarification(),
        }
    }

    /// The model as chosen, with its retries and fallbacks, and whether it asks the host. One that was asked for before with
    /// the same settings is the same provider.
    pub(super) fn ready_model(
        &self,
        scope: &LeadScope,
        model: &ModelChoice,
    ) -> Result<ReadyModel, Error> {
        let key = format!("{:?}", (&model.name, &model.entry));
        if let Some((provider, asks)) = lock(&scope.ready).get(&key) {
            return Ok((provider.clone(), *asks));
        }
        let entry = ModelRef::Inline(Box::new(model.entry.clone()));
        let chain = model_chain::chain(&entry, &self.0.models, self.call_policy(scope));
        let chain = chain.map_err(|error| Error {
            path: None,
            message: format!("the model {:?}: {}", model.name, error.message),
            ..error
        })?;
        let mut ready = lock(&scope.ready);
        if ready.len() >= MAX_READY {
            ready.clear();
        }
        ready.insert(key, (chain.model.clone(), chain.needs_host));
        Ok((chain.model, chain.needs_host))
    }

    /// How models of lead agents are called: by the section `llm_call`, where the models say nothing of their own (MW-LLM-2, 3).
    fn call_policy(&self, scope: &LeadScope) -> CallPolicy {
        let section = &scope.app.llm_call;
        CallPolicy {
            jitter: self.0.jitter,
            retry: section.retry_policy(),
            in_flight: self.0.in_flight.resolve(section.max_concurrent_calls),
        }
    }

    /// A model of the configuration, made to answer without thinking, for the questions of middlewares (MW-TTL-3). `path` is
    /// where it is named.
    fn other_model(&self, scope: &LeadScope, name: &str, path: &str) -> Result<OtherModel, Error> {
        if !scope.model_names.iter().any(|known| known == name) {
            let known: Vec<&str> = scope.model_names.iter().map(String::as_str).collect();
            return Err(unknown_model(name, &known).below(path));
        }
        let (model, _) = model_choice::choose(&scope.app.models, &plain(name), None)?;
        let (provider, _) = self.ready_model(scope, &model)?;
        Ok(OtherModel {
            name: model.name.into(),
            provider,
        })
    }

    fn title_model(&self, scope: &LeadScope) -> Result<Option<OtherModel>, Error> {
        let section = &scope.app.title;
        let name = section.model_name.as_ref().filter(|_| section.is_enabled());
        name.map(|name| self.other_model(scope, name, "/title/model_name"))
            .transpose()
    }

    /// Who writes summaries of an agent whose model the configuration names `of_run`, where it has a name there; `None` when
    /// long threads are left as they are.
    pub(super) fn summary_models(
        &self,
        scope: &LeadScope,
        of_run: Option<&str>,
    ) -> Result<Option<SummaryModels>, Error> {
        let section = &scope.app.summarization;
        if !section.is_enabled() {
            return Ok(None);
        }
        let configured = section.model_name.as_ref();
        let configured = configured
            .map(|name| self.other_model(scope, name, "/summarization/model_name"))
            .transpose()?;
        let measured = section.model_name.as_deref().or(of_run);
        let measured = measured.and_then(|name| scope.app.model(name));
        let run = of_run.map(|name| self.other_model(scope, name, ""));
        Ok(Some(SummaryModels {
            configured,
            run: run.transpose()?,
            max_input_tokens: measured.and_then(|model| model.metadata.context_window),
            provider: measured.map(|model| model.model.config.provider().to_owned()),
        }))
    }
}

/// Checks that what tools say of their arguments is a schema each, at the place of the one that is none.
///
/// # Errors
/// Those of compiling, below `/tools/…/parameters`.
pub(super) fn check_schemas(
    checks: &ArgumentChecks,
    tools: &[(usize, &HostToolConfig)],
) -> Result<(), Error> {
    tools.iter().try_for_each(|(place, tool)| {
        let Some(parameters) = tool.parameters.clone() else {
            return Ok(());
        };
        let checked = checks.check(&Value::Object(parameters));
        checked
            .map(|_| ())
            .map_err(|error| error.below(&format!("/tools/{place}/parameters")))
    })
}

/// An error of a section of the assembly's own configuration, at its place there. What the request says besides has members of
/// other names.
fn below_own_sections(error: Error) -> Error {
    let section = error.path.as_deref().and_then(|path| {
        let first = path.strip_prefix('/')?.split('/').next()?;
        // Lists of the request under "authorization" were checked when they were read.
        let is_section = AppConfig::SECTIONS.contains(&first) && first != "tools";
        is_section.then_some(())
    });
    match section {
        Some(()) => error.below("/app_config"),
        None => error,
    }
}

/// An error about a bound tool, at the place where it is configured: its place among the bound ones says nothing to whoever wrote
/// the request. Where that is not the request, by its name.
fn at_its_tool(
    error: Error,
    tools: &[Arc<dyn DynTool>],
    places: &HashMap<String, String>,
) -> Error {
    let found = error.path.as_deref().and_then(|path| {
        let (place, rest) = path.strip_prefix("/tools/")?.split_once('/')?;
        let name = &tools.get(place.parse::<usize>().ok()?)?.spec().name;
        Some((name.clone(), rest.to_owned()))
    });
    let Some((name, rest)) = found else {
        return Error {
            path: None,
            ..error
        };
    };
    match places.get(&name) {
        Some(place) => Error {
            path: Some(format!("{place}/{rest}")),
            ..error
        },
        None => Error {
            path: None,
            message: format!(
                "the tool {name:?} of the runtime's configuration: {}",
                error.message
            ),
            ..error
        },
    }
}

/// Asks for a model that answers without thinking.
pub(super) fn plain(name: &str) -> ModelQuestion<'_> {
    ModelQuestion {
        wanted: Some(name),
        thinking: false,
        reasoning_effort: None,
        settings: AgentModelSettings::default(),
    }
}

/// The model of the options and the agent's record; bootstrap passes neither effort nor settings (MD-11).
fn choose(
    app: &AppConfig,
    options: &LeadOptions,
    agent: Option<&AgentRecord>,
    access: Option<&Access>,
) -> Result<(ModelChoice, Warnings), Error> {
    let bootstrap = options.selection.is_bootstrap;
    let question = ModelQuestion {
        wanted: options.wanted_model.as_deref(),
        thinking: options.thinking_enabled,
        reasoning_effort: match bootstrap {
            true => None,
            false => options.reasoning_effort.as_deref(),
        },
        settings: agent.map_or_else(AgentModelSettings::default, |agent| {
            agent.model_settings.clone()
        }),
    };
    let (choice, warnings) = model_choice::choose(&app.models, &question, access)?;
    Ok(match options.thinking_is_asked_for {
        true => (choice, warnings),
        // It is a default's wish, and nobody's to hear about.
        false => (choice, warnings.without(Warning::ThinkingUnsupported)),
    })
}

/// The tool by which the agent makes or changes itself (TL-5); where no agents are kept there is none.
fn self_tool(scope: &LeadScope, options: &LeadOptions, user: &UserId) -> SelfTool {
    let Some(store) = &scope.agents else {
        return SelfTool::None;
    };
    let name = options.selection.agent_name.as_ref();
    let agent_scope = AgentScope {
        store: store.clone(),
        user: user.clone(),
        agent_name: name.map(|name| name.as_str().to_owned()),
        channel_name: options.channel_name.clone(),
        models: scope.model_names.clone(),
    };
    match (options.selection.is_bootstrap, name) {
        (true, _) => SelfTool::Setup(Arc::new(SetupAgent::new(agent_scope))),
        // An agent of the operator's is not the user's to change.
        (false, Some(name)) if !scope.app.agents.iter().any(|agent| agent.name == *name) => {
            SelfTool::Update(Arc::new(UpdateAgent::new(agent_scope)))
        }
        _ => SelfTool::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::COMPOSED;
    use crate::prompt::RENDERED;

    #[test]
    fn ep_11_the_prompt_is_rendered_once_and_the_chain_composed_once() {
        let runtime = Runtime::new(
            r#"{"workers": 0, "models": [{"name": "m", "provider": "host", "model": "m"}]}"#,
        )
        .expect("a runtime");
        let queue = runtime.new_queue(r#"{"subscribe": ["runtime"]}"#);
        queue.as_ref().expect("a queue");
        let before = (RENDERED.get(), COMPOSED.get());
        let agent = runtime
            .new_assembly(r#"{"factory": "lead", "configurable": {"is_plan_mode": true}}"#)
            .expect("an assembly");
        let described = agent.descriptor().expect("a descriptor");
        assert_eq!(agent.descriptor().expect("a descriptor"), described);
        assert_eq!(
            (RENDERED.get(), COMPOSED.get()),
            (before.0 + 1, before.1 + 1)
        );
    }
}
