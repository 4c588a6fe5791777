//! A subagent: what its definition makes of what the agent has that delegates to it.
//!
//! It is an agent of its own, with its own prompt and chain, and of its agent it has as much as the definition leaves it: of
//! the tools, of the skills, the model. What guards its agent guards it too: authorization, guardrails, turns at files.
//!
//! Source: DeerFlow's subagent executor, SUB-13 to SUB-18, SUB-24 to SUB-26, AD-28.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::assembly::Assembly;
use super::descriptor::{BuildInputs, DescriptorInputs, PolicyInputs, describe};
use super::lead::{mounts, warn_of_unknown_skills};
use super::tool_list::{
    ConfiguredTool, NameFilter, SelfTool, ToolListInputs, available_tools, deferred_texts,
};
use crate::middleware::read_before_write::FileTurns;
use crate::middleware::run_sandboxes::RunSandboxes;
use crate::middleware::summarization::SummaryModels;
use crate::middleware::{ChainInputs, Middleware, compose_subagent};
use crate::ports::authorization::{Access, Principal};
use crate::ports::sandbox::Sandbox as _;
use crate::ports::thread_files::ThreadFiles;
use crate::ports::tool::DynTool;
use crate::prompt::{
    self, PromptSkills, RenderedPrompt, SUBAGENT_PROMPT_TEMPLATE, SkillListing,
    SubagentPromptInputs, SubagentRole, routing_hints,
};
use crate::protocol::app_config::AppConfig;
use crate::protocol::assembly::BuildLabels;
use crate::protocol::descriptor::AssemblyDescriptor;
use crate::protocol::error::Error;
use crate::protocol::request_secrets::RequestSecrets;
use crate::protocol::warning::Warnings;
use crate::skills::Skill;
use crate::skills::catalog::Catalog;
use crate::skills::library::{SkillAccess, SkillLibrary};
use crate::skills::scope::Scope;
use crate::subagents::definition::{SubagentDefinition, SubagentKind};
use crate::tools::{BuiltinInputs, describe_skill, task};

/// What a subagent is made from.
pub struct SubagentInputs<'a> {
    /// The configuration.
    pub app: &'a AppConfig,
    /// Which subagent it is.
    pub definition: &'a SubagentDefinition,
    /// Whether its model sees images.
    pub vision: bool,
    /// Which tools there are.
    pub tools: SubagentTools<'a>,
    /// Whom to ask which tools may be used; `None` when authorization is off.
    pub access: Option<Access>,
    /// For whom its agent works, where somebody is asked about its calls.
    pub principal: Option<Principal>,
    /// The skills that there are for its agent; `None` where there are no folders of skills.
    pub skills: Option<AgentSkills<'a>>,
    /// The files of the user's threads, if they are kept on this machine.
    pub thread_files: Option<Arc<dyn ThreadFiles>>,
    /// The sandboxes of its agent.
    pub sandbox: Option<Arc<RunSandboxes>>,
    /// The turns at files of its agent.
    pub file_turns: FileTurns,
    /// Who writes summaries, if long threads are summarised.
    pub summary_models: Option<SummaryModels>,
}

/// The tools that a subagent's are chosen from.
#[derive(Clone, Copy)]
pub struct SubagentTools<'a> {
    /// The configured tools of its agent, in order.
    pub configured: &'a [ConfiguredTool],
    /// Its agent's groups (TL-2).
    pub groups: Option<&'a [String]>,
    /// Whether there are built-in tools besides, and tools of MCP servers may be deferred. An agent of plain arguments has
    /// what it was given, and so have its subagents.
    pub is_lead: bool,
}

/// The skills of the agent that delegates.
#[derive(Clone, Copy)]
pub struct AgentSkills<'a> {
    /// All skills of its user.
    pub catalog: &'a Catalog,
    /// The same as they are while it runs.
    pub installed: &'a Arc<dyn SkillLibrary>,
    /// Those that it may find and activate; `None` for all.
    pub allowed: Option<&'a [String]>,
}

/// A subagent, before its model's provider is there.
pub struct Subagent {
    /// System text and data message.
    pub prompt: RenderedPrompt,
    /// Tools, in the order in which the model is told of them.
    pub tools: Vec<Arc<dyn DynTool>>,
    /// The chain, outermost first.
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// What a descriptor says besides.
    pub facts: SubagentFacts,
    /// What went otherwise than asked for.
    pub warnings: Warnings,
}

/// What a descriptor says of a subagent besides what the assembly itself holds.
pub struct SubagentFacts {
    skills: Vec<Arc<Skill>>,
    deferred: Arc<[String]>,
    catalog_hash: Option<Arc<str>>,
    deferred_skills: bool,
}

/// Makes a subagent.
///
/// # Errors
/// Those of the tool list and of the chain.
pub fn compose(inputs: SubagentInputs<'_>) -> Result<Subagent, Error> {
    let SubagentInputs {
        app, definition, ..
    } = inputs;
    let skills = inputs
        .skills
        .map(|skills| OwnSkills::of(skills, definition));
    // Without a single one allowed there is nothing to look up in folders, now or later (SUB-17).
    let skills = skills.filter(|skills| skills.allowed.as_deref() != Some(&[]));
    let enabled = skills.as_ref().map(OwnSkills::enabled).unwrap_or_default();
    let deferred_skills = app.skills.deferred_discovery && !enabled.is_empty();
    let late = deferred_skills.then(|| describe_skill::build(enabled.clone()));

    let without = without(definition);
    let (list, mut warnings) = available_tools(ToolListInputs {
        configured: inputs.tools.configured,
        groups: inputs.tools.groups,
        host_bash: app.sandbox.allow_host_bash,
        builtins: inputs.tools.is_lead.then(|| BuiltinInputs {
            thread_files: files_of_tools(&inputs.thread_files, &inputs.sandbox),
            vision: inputs.vision,
            // A subagent has no subagents (SUB-15).
            delegate: None,
        }),
        self_tool: SelfTool::None,
        webhook: false,
        // Nobody answers a subagent, whatever its definition leaves it.
        non_interactive: true,
        names: NameFilter {
            only: definition.tools.as_deref(),
            without: &without,
        },
        late: late.into_iter().collect(),
        access: inputs.access,
        deferral: inputs.tools.is_lead && app.tool_search.enabled,
    })?;
    if let (Some(skills), Some(listed)) = (&skills, &definition.skills) {
        let whom = format!("the subagent {:?}", definition.name);
        warn_of_unknown_skills(&whom, listed, skills.catalog, &mut warnings);
    }
    let deferred = list.deferred_names();
    let catalog_hash = list.catalog_hash();
    let prompt = render(
        app,
        definition,
        skills.as_ref(),
        deferred_skills,
        &list.bound,
        &deferred,
    );

    let remote_tools = list.remote_names();
    let middleware = compose_subagent(ChainInputs {
        remote_tools,
        tools: &list.bound,
        deferred: list.deferred,
        gate: list.gate,
        principal: inputs.principal,
        thread_files: inputs.thread_files,
        sandbox: inputs.sandbox,
        file_turns: inputs.file_turns,
        token_budget: Some(definition.token_budget.clone()),
        vision: inputs.vision,
        summary_models: inputs.summary_models,
        skills: skills.map(|skills| SkillAccess {
            installed: skills.installed.clone(),
            scope: skills.scope,
        }),
        secrets: RequestSecrets::default(),
        ..ChainInputs::new(app)
    })?;
    Ok(Subagent {
        prompt,
        tools: list.bound,
        middleware,
        facts: SubagentFacts {
            skills: enabled,
            deferred,
            catalog_hash,
            deferred_skills,
        },
        warnings,
    })
}

/// The tools that a subagent does not have, whatever else is said: those of the definition, and the one that delegates, under
/// whose name nothing else may hide (U9).
fn without(definition: &SubagentDefinition) -> Vec<&str> {
    let denied = definition.disallowed_tools.iter().map(String::as_str);
    denied.chain([task::NAME]).collect()
}

/// The files that built-in tools work on. Where a sandbox has its own, those on this machine are not the ones.
pub(super) fn files_of_tools(
    thread_files: &Option<Arc<dyn ThreadFiles>>,
    sandbox: &Option<Arc<RunSandboxes>>,
) -> Option<Arc<dyn ThreadFiles>> {
    let are_seen = sandbox.as_ref().is_none_or(|it| it.has_host_mounts());
    thread_files.clone().filter(|_| are_seen)
}

/// The skills of a subagent.
struct OwnSkills<'a> {
    catalog: &'a Catalog,
    installed: &'a Arc<dyn SkillLibrary>,
    allowed: Option<Vec<String>>,
    scope: Scope,
}

impl<'a> OwnSkills<'a> {
    fn of(agent: AgentSkills<'a>, definition: &SubagentDefinition) -> Self {
        let allowed = common(agent.allowed, definition.skills.as_deref());
        OwnSkills {
            catalog: agent.catalog,
            installed: agent.installed,
            scope: Scope::of(allowed.as_deref()),
            allowed,
        }
    }

    fn enabled(&self) -> Vec<Arc<Skill>> {
        self.catalog.enabled(&self.scope).cloned().collect()
    }
}

/// The skills that both an agent and its subagent may have, in the order of the subagent's list (SUB-17). `None` is no list,
/// which means all.
fn common(agent: Option<&[String]>, subagent: Option<&[String]>) -> Option<Vec<String>> {
    match (agent, subagent) {
        (None, own) => own.map(<[String]>::to_vec),
        (agent, None) => agent.map(<[String]>::to_vec),
        (Some(agent), Some(own)) => {
            let both = own.iter().filter(|name| agent.contains(name));
            Some(both.cloned().collect())
        }
    }
}

fn render(
    app: &AppConfig,
    definition: &SubagentDefinition,
    skills: Option<&OwnSkills<'_>>,
    deferred_skills: bool,
    tools: &[Arc<dyn DynTool>],
    deferred: &[String],
) -> RenderedPrompt {
    let is_deferred = |name: &str| deferred.iter().any(|known| known == name);
    let ours = tools.iter().filter(|tool| tool.origin().mcp().is_none());
    prompt::render_subagent(&SubagentPromptInputs {
        role: match &definition.kind {
            SubagentKind::GeneralPurpose => SubagentRole::GeneralPurpose,
            SubagentKind::Bash => SubagentRole::Bash,
            SubagentKind::Custom { system_prompt, .. } => SubagentRole::Custom(system_prompt),
        },
        bound_tools: ours.map(|tool| tool.spec().name.as_str()).collect(),
        skills: match skills {
            None => PromptSkills::default(),
            Some(skills) => PromptSkills {
                installed: skills.catalog.skills(),
                available: skills.allowed.as_deref(),
                listing: match deferred_skills {
                    true => SkillListing::Index,
                    false => SkillListing::Full,
                },
                container_path: Some(&app.skills.container_path),
                ..PromptSkills::default()
            },
        },
        deferred_tools: &deferred_texts(deferred),
        routing_hints: &routing_hints(tools, is_deferred),
        mounts: &mounts(app),
        shell_available: app.sandbox.allow_host_bash,
    })
}

/// What is said of a subagent's model.
pub struct ModelFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its settings; nothing secret.
    pub parameters: &'a Map<String, Value>,
}

impl SubagentFacts {
    /// Describes the subagent as the assembly that was made of it stands (AD-28).
    pub fn describe(
        &self,
        definition: &SubagentDefinition,
        model: &ModelFacts<'_>,
        build: &BuildLabels,
        assembly: &Assembly,
    ) -> AssemblyDescriptor {
        let skills: Vec<&Skill> = self.skills.iter().map(Arc::as_ref).collect();
        let enabled: Vec<&str> = skills.iter().map(|skill| skill.name()).collect();
        let deferred: Vec<&str> = self.deferred.iter().map(String::as_str).collect();
        describe(&DescriptorInputs {
            agent_name: &definition.name,
            requested_model: definition.model.as_deref(),
            effective_model: model.name,
            model_parameters: model.parameters,
            thinking_enabled: false,
            reasoning_effort: &Value::Null,
            prompt: assembly.system_prompt.as_ref(),
            data: assembly.data(),
            tools: assembly.own_tools(),
            middlewares: assembly.middleware(),
            deferred_tool_names: &deferred,
            skills: &skills,
            enabled_skills: &enabled,
            policies: PolicyInputs {
                bootstrap: false,
                non_interactive: true,
                plan_mode: &Value::Bool(false),
                subagents_enabled: false,
                max_concurrent_subagents: 0,
                max_total_subagents: 0,
                subagents: &[],
                allowed_subagents: Some(&[]),
                deferred_tools_catalog_hash: self.catalog_hash.as_deref(),
                deferred_skills: self.deferred_skills,
                recursion_limit: None,
                prompt_template_id: SUBAGENT_PROMPT_TEMPLATE,
            },
            build: BuildInputs {
                image_digest: build.image_digest.as_deref(),
                git_commit: build.git_commit.as_deref(),
            },
        })
    }
}

#[cfg(test)]
mod tests;
