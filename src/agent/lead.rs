//! The lead agent: what the configuration, the options of a request and a custom agent's record make of it.
//!
//! [`compose`] renders the prompt once and composes the chain once (EP-11). Graph and descriptor get the same objects: the
//! assembly is made of them, and [`LeadFacts::describe`] reads them back out of that assembly.
//!
//! Source: DeerFlow `assemble_lead_agent`, EP-1 to EP-16, CA-11, CA-12.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::assembly::Assembly;
use super::descriptor::{BuildInputs, DescriptorInputs, PolicyInputs, describe};
use super::extras::{extras, insert_extras};
use super::model_choice::ModelChoice;
use super::options::{InteractionMode, LeadOptions};
use super::subagent::files_of_tools;
use super::subagent_scope::SubagentScope;
use super::tool_list::{
    ConfiguredTool, NameFilter, SelfTool, ToolListInputs, available_tools, deferred_texts,
};
use crate::middleware::clarification::takes_the_name;
use crate::middleware::read_before_write::FileTurns;
use crate::middleware::run_sandboxes::RunSandboxes;
use crate::middleware::subagent_limit::SubagentLimitConfig;
use crate::middleware::summarization::SummaryModels;
use crate::middleware::{self, ChainInputs, Middleware, OtherModel};
use crate::ports::authorization::{Access, Principal};
use crate::ports::delegate::Delegate;
use crate::ports::memory_policy::MemoryAccess;
use crate::ports::memory_queue::MemoryQueue;
use crate::ports::thread_files::ThreadFiles;
use crate::ports::tool::DynTool;
use crate::prompt::{
    self, Delegation, Interaction, Mount, PromptInputs, PromptSkills, RenderedPrompt, SkillListing,
    SubagentEntry, routing_hints,
};
use crate::protocol::agent_record::AgentRecord;
use crate::protocol::app_config::AppConfig;
use crate::protocol::assembly::{BuildLabels, ExtraMiddleware};
use crate::protocol::decode::hint;
use crate::protocol::descriptor::{AssemblyDescriptor, RuntimeLimits};
use crate::protocol::error::Error;
use crate::protocol::trust::{OperatorText, SourcedText};
use crate::protocol::warning::{Warning, Warnings};
use crate::skills::Skill;
use crate::skills::catalog::Catalog;
use crate::skills::library::{SkillAccess, SkillLibrary};
use crate::skills::scope::Scope;
use crate::skills::validate::MAX_NAME_CHARS;
use crate::subagents::definition::{Registry, SubagentDefinition};
use crate::tools::{BuiltinInputs, describe_skill, task};

/// Name of the lead agent in descriptors (AD-7).
const LEAD: &str = "lead-agent";
/// Name of the agent that makes custom agents, and of the one skill that it has (CA-12).
const BOOTSTRAP: &str = "bootstrap";
/// Which prompt a lead agent is given (AD-6).
const PROMPT_TEMPLATE: &str = "deerflow-lead-agent-v1";

/// The outermost of what checks a reply when all guards have seen it: the caller's own middleware stands right outside of it, at
/// the place 30 of DeerFlow's list.
const INSIDE_EXTRAS: &str = "terminal_response";

/// What a lead agent is made from.
pub struct LeadInputs<'a> {
    /// The configuration.
    pub app: &'a AppConfig,
    /// The options of the request.
    pub options: &'a LeadOptions,
    /// The custom agent's record; none for the lead agent itself and for bootstrap.
    pub agent: Option<&'a AgentRecord>,
    /// The soul of whoever has no record.
    pub default_soul: Option<SourcedText>,
    /// The model, after authorization.
    pub model: &'a ModelChoice,
    /// Whom to ask which tools may be used; `None` when authorization is off.
    pub access: Option<Access>,
    /// For whom the agent works, where somebody is asked about its calls.
    pub principal: Option<Principal>,
    /// The skills of the user.
    pub catalog: Arc<Catalog>,
    /// The same as they are while the agent runs.
    pub installed: Arc<dyn SkillLibrary>,
    /// The tools of the configuration and of the request, in order.
    pub configured: &'a [ConfiguredTool],
    /// The tool by which the agent makes or changes itself.
    pub self_tool: SelfTool,
    /// The model of titles, where it is another than the agent's.
    pub title_model: Option<OtherModel>,
    /// Who writes summaries, if long threads are summarised.
    pub summary_models: Option<SummaryModels>,
    /// The right to touch memory, if the agent has any.
    pub memory: Option<MemoryAccess>,
    /// Middleware in addition to the chain's.
    pub extra_middleware: &'a [ExtraMiddleware],
    /// The memory that hears what runs say, if there is one.
    pub memory_queue: Option<Arc<dyn MemoryQueue>>,
    /// The files of the user's threads, if they are kept on this machine.
    pub thread_files: Option<Arc<dyn ThreadFiles>>,
    /// The sandboxes of the user's threads, if there are any; its subagents have the same.
    pub sandbox: Option<Arc<RunSandboxes>>,
    /// The turns at the files of the user's threads; its subagents have the same.
    pub file_turns: FileTurns,
    /// The subagents that there are, where the agent may delegate.
    pub subagents: Option<&'a Registry>,
    /// Who runs them; `None` where the agent has nobody to delegate to.
    pub delegate: Option<Arc<dyn Delegate>>,
    /// Steps of a run as the request asks for them.
    pub recursion_limit: Option<u32>,
    /// What the operator says was built.
    pub build: BuildLabels,
}

/// A lead agent, before its model's provider is there.
pub struct Lead {
    /// System text and data message, rendered once.
    pub prompt: RenderedPrompt,
    /// Tools, in the order in which the model is told of them.
    pub tools: Vec<Arc<dyn DynTool>>,
    /// The chain, outermost first, composed once.
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// What is known besides.
    pub facts: LeadFacts,
    /// What went otherwise than asked for.
    pub warnings: Warnings,
}

/// What a descriptor says besides what the assembly itself holds.
pub struct LeadFacts {
    agent_name: String,
    requested_model: Option<String>,
    effective_model: String,
    model_parameters: Map<String, Value>,
    thinking_enabled: bool,
    reasoning_effort: Value,
    deferred: Arc<[String]>,
    catalog_hash: Option<Arc<str>>,
    skills: Vec<Arc<Skill>>,
    options: PolicyFacts,
    allowed_subagents: Option<Vec<String>>,
    subagents: Vec<(String, RuntimeLimits)>,
    recursion_limit: Option<u32>,
    build: BuildLabels,
    /// What runs of the agent are labelled with (EP-15).
    pub metadata: Map<String, Value>,
}

struct PolicyFacts {
    bootstrap: bool,
    non_interactive: bool,
    plan_mode: Value,
    subagent_enabled: bool,
    max_concurrent: u64,
    max_total: u64,
    deferred_skills: bool,
}

/// Makes a lead agent.
///
/// # Errors
/// Those of the tool list, of the chain and of what is to join it; `UnknownModel` at a model of a subagent that there is not,
/// where the agent delegates.
pub fn compose(inputs: LeadInputs<'_>) -> Result<Lead, Error> {
    let LeadInputs { app, options, .. } = inputs;
    let bootstrap = options.selection.is_bootstrap;
    let agent = inputs.agent;
    let allowed_skills = allowed_skills(options, agent);
    let allowed_skills = allowed_skills.as_deref();
    let scope = Scope::of(allowed_skills);
    let skills: Vec<Arc<Skill>> = inputs.catalog.enabled(&scope).cloned().collect();
    let deferred_skills = app.skills.deferred_discovery && !skills.is_empty();
    let late = deferred_skills.then(|| describe_skill::build(skills.clone()));

    let (list, mut warnings) = available_tools(ToolListInputs {
        configured: inputs.configured,
        groups: agent.and_then(|agent| agent.tool_groups.as_deref()),
        host_bash: app.sandbox.allow_host_bash,
        builtins: Some(BuiltinInputs {
            thread_files: files_of_tools(&inputs.thread_files, &inputs.sandbox),
            vision: inputs.model.supports_vision,
            delegate: inputs.delegate,
        }),
        self_tool: inputs.self_tool,
        webhook: options.is_webhook(),
        non_interactive: options.withholds_clarification(),
        names: NameFilter::default(),
        late: late.into_iter().collect(),
        access: inputs.access,
        deferral: app.tool_search.enabled,
    })?;
    if let Some(agent) = agent {
        let whom = format!("the agent {:?}", agent.name.as_str());
        let listed = agent.skills.as_deref().unwrap_or_default();
        warn_of_unknown_skills(&whom, listed, &inputs.catalog, &mut warnings);
    }
    let deferred = list.deferred_names();
    let scope_of_subagents = SubagentScope::of(agent);
    let nobody = Registry::default();
    let subagents = inputs.subagents.unwrap_or(&nobody);

    let prompt = render(&RenderFacts {
        app,
        options,
        agent,
        default_soul: inputs.default_soul.as_ref(),
        catalog: &inputs.catalog,
        allowed_skills,
        deferred_skills,
        tools: &list.bound,
        deferred: &deferred,
        subagents,
        scope: &scope_of_subagents,
    });

    let remote_tools = list.remote_names();
    let catalog_hash = list.catalog_hash();
    let middleware = middleware::compose(ChainInputs {
        app,
        remote_tools,
        tools: &list.bound,
        deferred: list.deferred,
        gate: list.gate,
        principal: inputs.principal,
        plan_mode: options.is_plan_mode,
        memory: inputs.memory,
        memory_queue: inputs.memory_queue,
        thread_files: inputs.thread_files,
        sandbox: inputs.sandbox,
        file_turns: inputs.file_turns,
        token_budget: None,
        vision: inputs.model.supports_vision,
        summary_models: inputs.summary_models,
        subagent_limits: options.subagent_enabled.then(|| SubagentLimitConfig {
            max_concurrent: signed(options.max_concurrent_subagents),
            max_total: signed(options.max_total_subagents),
            // What can run at once has narrowed the number already: one number for the limit, the prompt and the descriptor (U1).
            capacity: bounded(options.max_concurrent_subagents),
        }),
        title_model: inputs.title_model,
        skills: Some(SkillAccess {
            installed: inputs.installed,
            scope,
        }),
        secrets: options.secrets.clone(),
    })?;
    let middleware = match inputs.extra_middleware {
        [] => middleware,
        list => insert_extras(middleware, extras(list)?, INSIDE_EXTRAS)?,
    };

    let agent_name = match (bootstrap, &options.selection.agent_name) {
        (true, _) => BOOTSTRAP,
        (false, Some(name)) => name.as_str(),
        (false, None) => LEAD,
    };
    let facts = LeadFacts {
        agent_name: agent_name.to_owned(),
        requested_model: options.wanted_model.clone(),
        effective_model: inputs.model.name.clone(),
        model_parameters: inputs.model.parameters.clone(),
        thinking_enabled: inputs.model.thinking_enabled,
        reasoning_effort: match &inputs.model.reasoning_effort {
            Some(effort) if !bootstrap => effort.as_str().into(),
            _ => Value::Null,
        },
        deferred,
        catalog_hash,
        skills,
        options: PolicyFacts {
            bootstrap,
            non_interactive: options.withholds_clarification(),
            plan_mode: options.plan_mode.clone(),
            subagent_enabled: options.subagent_enabled,
            max_concurrent: options.max_concurrent_subagents,
            max_total: options.max_total_subagents,
            deferred_skills,
        },
        allowed_subagents: scope_of_subagents.names().map(<[String]>::to_vec),
        subagents: subagents
            .iter()
            .map(|definition| (definition.name.clone(), definition.limits()))
            .collect(),
        recursion_limit: inputs.recursion_limit,
        build: inputs.build,
        metadata: options.run_metadata(agent, &inputs.model.name, inputs.model.thinking_enabled),
    };
    Ok(Lead {
        prompt,
        tools: list.bound,
        middleware,
        facts,
        warnings,
    })
}

/// The skills that a lead agent may find and activate, and its subagents at most; `None` for all.
pub fn allowed_skills(options: &LeadOptions, agent: Option<&AgentRecord>) -> Option<Vec<String>> {
    match options.selection.is_bootstrap {
        true => Some(vec![BOOTSTRAP.to_owned()]),
        false => agent.and_then(|agent| agent.skills.clone()),
    }
}

impl LeadFacts {
    /// Describes the agent as the assembly that was made of it stands (AD-7 to AD-22).
    pub fn describe(&self, assembly: &Assembly) -> AssemblyDescriptor {
        let skills: Vec<&Skill> = self.skills.iter().map(Arc::as_ref).collect();
        let enabled: Vec<&str> = skills.iter().map(|skill| skill.name()).collect();
        let deferred: Vec<&str> = self.deferred.iter().map(String::as_str).collect();
        let subagents: Vec<(&str, RuntimeLimits)> = self
            .subagents
            .iter()
            .map(|(name, limits)| (name.as_str(), *limits))
            .collect();
        describe(&DescriptorInputs {
            agent_name: &self.agent_name,
            requested_model: self.requested_model.as_deref(),
            effective_model: &self.effective_model,
            model_parameters: &self.model_parameters,
            thinking_enabled: self.thinking_enabled,
            reasoning_effort: &self.reasoning_effort,
            prompt: assembly.system_prompt.as_ref(),
            data: assembly.data(),
            tools: assembly.own_tools(),
            middlewares: assembly.middleware(),
            deferred_tool_names: &deferred,
            skills: &skills,
            enabled_skills: &enabled,
            policies: PolicyInputs {
                bootstrap: self.options.bootstrap,
                non_interactive: self.options.non_interactive,
                plan_mode: &self.options.plan_mode,
                subagents_enabled: self.options.subagent_enabled,
                max_concurrent_subagents: self.options.max_concurrent,
                max_total_subagents: self.options.max_total,
                subagents: &subagents,
                allowed_subagents: self.allowed_subagents.as_deref(),
                deferred_tools_catalog_hash: self.catalog_hash.as_deref(),
                deferred_skills: self.options.deferred_skills,
                recursion_limit: self.recursion_limit.map(u64::from),
                prompt_template_id: PROMPT_TEMPLATE,
            },
            build: BuildInputs {
                image_digest: self.build.image_digest.as_deref(),
                git_commit: self.build.git_commit.as_deref(),
            },
        })
    }
}

/// Most names of skills that a warning is about; one more says how many were left away.
const MAX_UNKNOWN_SKILLS: usize = 20;

/// Warns of names in somebody's list of skills that no skill has, switched on or not: they are mostly slips.
pub(super) fn warn_of_unknown_skills(
    whom: &str,
    listed: &[String],
    catalog: &Catalog,
    warnings: &mut Warnings,
) {
    let unknown: BTreeSet<&str> = listed
        .iter()
        .map(String::as_str)
        .filter(|name| catalog.get(name).is_none())
        .collect();
    if unknown.is_empty() {
        return;
    }
    let known: Vec<&str> = catalog.skills().iter().map(|skill| skill.name()).collect();
    for name in unknown.iter().take(MAX_UNKNOWN_SKILLS) {
        let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
        let message = format!(
            "{whom} lists a skill {shown:?}, which there is not{}",
            hint(&shown, &known)
        );
        warnings.add(Warning::SkillUnknown, message);
    }
    if let Some(more) = unknown.len().checked_sub(MAX_UNKNOWN_SKILLS)
        && more > 0
    {
        let message = format!("{more} more unknown skills of {whom} are left away");
        warnings.add(Warning::SkillUnknown, message);
    }
}

/// What the prompt is rendered from.
struct RenderFacts<'a> {
    app: &'a AppConfig,
    options: &'a LeadOptions,
    agent: Option<&'a AgentRecord>,
    default_soul: Option<&'a SourcedText>,
    catalog: &'a Catalog,
    allowed_skills: Option<&'a [String]>,
    deferred_skills: bool,
    tools: &'a [Arc<dyn DynTool>],
    deferred: &'a [String],
    subagents: &'a Registry,
    scope: &'a SubagentScope,
}

/// The one rendering of an assembly.
fn render(facts: &RenderFacts<'_>) -> RenderedPrompt {
    let RenderFacts { app, options, .. } = *facts;
    let bootstrap = options.selection.is_bootstrap;
    let is_deferred = |name: &str| facts.deferred.iter().any(|known| known == name);
    let deferred = deferred_texts(facts.deferred);
    let hints = match bootstrap {
        true => Vec::new(),
        false => routing_hints(facts.tools, is_deferred),
    };
    let ours = facts
        .tools
        .iter()
        .filter(|tool| tool.origin().mcp().is_none())
        // What the prompt says of it is not true of another tool of its name.
        .filter(|tool| !takes_the_name(tool.as_ref()));
    let bound_tools: BTreeSet<&str> = ours.map(|tool| tool.spec().name.as_str()).collect();
    let in_scope: Vec<SubagentEntry> = facts
        .subagents
        .iter()
        .filter(|definition| facts.scope.allows(&definition.name))
        .map(SubagentDefinition::entry)
        .collect();
    let mounts = mounts(app);
    let may_delegate = options.subagent_enabled && bound_tools.contains(task::NAME);
    prompt::render(&PromptInputs {
        agent_name: match bootstrap {
            true => None,
            false => options.selection.agent_name.as_ref(),
        },
        soul: match facts.agent {
            Some(agent) => agent.soul.as_ref(),
            None => facts.default_soul,
        },
        interaction: match options.interaction_mode {
            InteractionMode::Interactive => Interaction::Interactive,
            _ => Interaction::NonInteractive,
        },
        bound_tools,
        skills: PromptSkills {
            installed: facts.catalog.skills(),
            available: facts.allowed_skills,
            listing: match facts.deferred_skills {
                true => SkillListing::Index,
                false => SkillListing::Full,
            },
            evolution: app.skill_evolution.enabled,
            slash_activation: true,
            container_path: Some(&app.skills.container_path),
        },
        memory_tools: false,
        deferred_tools: &deferred,
        routing_hints: &hints,
        // Of a tool that is not the user's to use, nothing is said.
        delegation: may_delegate.then(|| Delegation {
            max_per_response: bounded(options.max_concurrent_subagents),
            max_per_run: bounded(options.max_total_subagents),
            subagents: &in_scope,
            batches: false,
        }),
        acp_agents: !app.acp_agents.is_empty(),
        mounts: &mounts,
        shell_available: app.sandbox.allow_host_bash,
    })
}

/// The folders of the sandbox besides the standard ones.
pub(super) fn mounts(app: &AppConfig) -> Vec<Mount> {
    let mounts = app.sandbox.mounts.iter();
    let mounts = mounts.map(|mount| Mount {
        container_path: OperatorText::from_operator_directory(mount.container_path.as_str()),
        read_only: mount.read_only,
    });
    mounts.collect()
}

fn signed(limit: u64) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Limits are at most 64.
fn bounded(limit: u64) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}
