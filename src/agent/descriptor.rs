//! Describes an assembly: the very prompt, tools and middleware that it is made of, as facts and hashes (EP-11, AD-7 to
//! AD-22).
//!
//! What is described is handed in as plain references, so that the assembly and its descriptor cannot be about different
//! things: the caller passes the same [`SystemText`], the same list of tools and the same chain to both.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::middleware::{Hooks, Middleware};
use crate::ports::tool::{DynTool, ToolOrigin};
use crate::protocol::canonical_json::{canonical_hash, text_hash};
use crate::protocol::credential_names::without_credentials;
use crate::protocol::descriptor::{
    AssemblyDescriptor, BuildFacts, DeferredToolPolicies, EffectivePolicies, FRAMEWORK_DEFAULT,
    MiddlewareDescriptor, NAMESPACE, RuntimeLimits, SkillDescriptor, SubagentPolicies,
    ToolDescriptor, UNKNOWN, skill_catalog_hash,
};
use crate::protocol::trust::SystemText;
use crate::skills::{AllowedTools, Skill};

/// What a descriptor is made from.
#[derive(Clone, Copy)]
pub struct DescriptorInputs<'a> {
    /// `bootstrap`, the custom agent's name, or `lead-agent` (AD-7).
    pub agent_name: &'a str,
    /// The model of the request, else that of the custom agent (AD-8).
    pub requested_model: Option<&'a str>,
    /// The model that works, after resolution and authorization (AD-8).
    pub effective_model: &'a str,
    /// Its settings, as [`super::model_parameters`] gives them. Credentials are taken out here again.
    pub model_parameters: &'a Map<String, Value>,
    /// Whether it thinks, after the model's abilities were seen to (AD-9).
    pub thinking_enabled: bool,
    /// How hard it thinks; null for the bootstrap agent (AD-9).
    pub reasoning_effort: &'a Value,
    /// The system text that the model is given; none is hashed as empty text.
    pub prompt: Option<&'a SystemText>,
    /// Text that was rendered with the prompt for the human data channel, because it may not stand in the system channel.
    pub data: Option<&'a str>,
    /// The tools that are bound, in their order; those of the middlewares are not among them (AD-13).
    pub tools: &'a [Arc<dyn DynTool>],
    /// The chain, outermost first.
    pub middlewares: &'a [Arc<dyn Middleware>],
    /// Names of the tools whose schemas are held back, in any order (AD-18).
    pub deferred_tool_names: &'a [&'a str],
    /// The skills of the catalog, in its order (AD-19).
    pub skills: &'a [&'a Skill],
    /// Names of the skills that the agent may find, in catalog order (AD-18).
    pub enabled_skills: &'a [&'a str],
    /// The policies of its runs.
    pub policies: PolicyInputs<'a>,
    /// What the operator says was built.
    pub build: BuildInputs<'a>,
}

/// What [`EffectivePolicies`] are made from.
#[derive(Clone, Copy)]
pub struct PolicyInputs<'a> {
    /// Whether it is the agent that makes agents.
    pub bootstrap: bool,
    /// Whether nobody is there to be asked.
    pub non_interactive: bool,
    /// `is_plan_mode` as it was given.
    pub plan_mode: &'a Value,
    /// Whether the agent may delegate, after its `allowed_subagents` were seen to.
    pub subagents_enabled: bool,
    /// Most subagents that work at one time.
    pub max_concurrent_subagents: u64,
    /// Most delegations of a run.
    pub max_total_subagents: u64,
    /// The subagents that there are, in any order: name and limits.
    pub subagents: &'a [(&'a str, RuntimeLimits)],
    /// Those of them that the custom agent may delegate to; `None` for all. The reference's allowlist ignores this, so that
    /// only the prompt tells the scope; here the list says what holds.
    pub allowed_subagents: Option<&'a [String]>,
    /// Hash of the catalog of deferred tools; `None` when no tool is deferred.
    pub deferred_tools_catalog_hash: Option<&'a str>,
    /// Whether skills are found by name alone.
    pub deferred_skills: bool,
    /// Steps of a run as they were asked for; `None` is told as `framework-default` (EP-14).
    pub recursion_limit: Option<u64>,
    /// Which prompt it is given.
    pub prompt_template_id: &'a str,
}

/// What the operator says was built. A library does not look into the environment of its process, so that both are given.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildInputs<'a> {
    /// Digest of the image that the host runs in.
    pub image_digest: Option<&'a str>,
    /// Commit that the host was built from.
    pub git_commit: Option<&'a str>,
}

/// Describes an assembly. Pure; the time goes into hashing prompt, tool specs and skills, once each.
pub fn describe(inputs: &DescriptorInputs<'_>) -> AssemblyDescriptor {
    let skills: Vec<SkillDescriptor> = inputs.skills.iter().copied().map(skill_entry).collect();
    let mut model_parameters = inputs.model_parameters.clone();
    without_credentials(&mut model_parameters);
    let mut deferred: Vec<String> = owned(inputs.deferred_tool_names);
    deferred.sort_unstable();
    let of_middlewares = inputs.middlewares.iter().flat_map(|part| part.tools());
    AssemblyDescriptor {
        namespace: NAMESPACE.to_owned(),
        agent_name: inputs.agent_name.to_owned(),
        requested_model: inputs.requested_model.map(str::to_owned),
        effective_model: inputs.effective_model.to_owned(),
        model_parameters,
        thinking_enabled: inputs.thinking_enabled,
        reasoning_effort: inputs.reasoning_effort.clone(),
        base_prompt_hash: text_hash(inputs.prompt.map_or("", SystemText::as_str)),
        base_data_hash: inputs.data.map(text_hash),
        tools: inputs
            .tools
            .iter()
            .chain(of_middlewares)
            .map(|tool| tool_descriptor(tool.as_ref()))
            .collect(),
        middlewares: inputs
            .middlewares
            .iter()
            .map(|part| middleware_descriptor(part.as_ref()))
            .collect(),
        deferred_tool_names: deferred,
        enabled_skills: owned(inputs.enabled_skills),
        effective_policies: policies(&inputs.policies, skill_catalog_hash(&skills)),
        skills,
        build: BuildFacts {
            package_version: env!("CARGO_PKG_VERSION").to_owned(),
            image_digest: inputs.build.image_digest.unwrap_or(UNKNOWN).to_owned(),
            git_commit: inputs.build.git_commit.unwrap_or(UNKNOWN).to_owned(),
        },
        fingerprint: String::new(),
    }
    .sealed()
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Describes one tool (AD-13, AD-14).
fn tool_descriptor(tool: &dyn DynTool) -> ToolDescriptor {
    let spec = tool.spec();
    let mcp = tool.origin().mcp();
    ToolDescriptor {
        name: spec.name.clone(),
        description_hash: text_hash(&spec.description),
        schema_hash: canonical_hash(&spec.parameters),
        source: source(tool.origin()),
        mcp_server: mcp.and_then(|mcp| mcp.server.clone()),
        mcp_transport: mcp.and_then(|mcp| mcp.transport.clone()),
    }
}

fn source(origin: &ToolOrigin) -> String {
    match origin {
        ToolOrigin::Builtin => "builtin".to_owned(),
        ToolOrigin::Skill => "skill".to_owned(),
        ToolOrigin::Host => "host".to_owned(),
        ToolOrigin::Mcp(mcp) => {
            let server = mcp.server.as_deref().filter(|server| !server.is_empty());
            format!("mcp:{}", server.unwrap_or(UNKNOWN))
        }
    }
}

/// Describes one middleware by what it declares of itself; nothing is probed (AD-16).
fn middleware_descriptor(part: &dyn Middleware) -> MiddlewareDescriptor {
    MiddlewareDescriptor {
        name: part.name().to_owned(),
        module: match part.extension() {
            None => format!("fawn::middleware::{}", part.name()),
            Some(extension) => format!("fawn::middleware::{extension}_middleware"),
        },
        policy_parameters: part.policy(),
        extension: part.extension().map(str::to_owned),
        hooks: hook_names(part.hooks()),
    }
}

fn hook_names(hooks: Hooks) -> Vec<String> {
    [
        ("before_agent", hooks.before_agent),
        ("before_model", hooks.before_model),
        ("wrap_model_call", hooks.wrap_model_call),
        ("after_model", hooks.after_model),
        ("wrap_tool_call", hooks.wrap_tool_call),
        ("after_agent", hooks.after_agent),
    ]
    .into_iter()
    .filter(|(_, has)| *has)
    .map(|(name, _)| name.to_owned())
    .collect()
}

/// The catalog's entry of a skill (AD-19, AD-20).
pub fn skill_entry(skill: &Skill) -> SkillDescriptor {
    let mut required_secrets: Vec<String> = skill
        .required_secrets
        .iter()
        .map(|secret| {
            // The spelling of the reference's language.
            let optional = if secret.optional { "True" } else { "False" };
            format!("{}:{optional}", secret.name)
        })
        .collect();
    required_secrets.sort_unstable();
    SkillDescriptor {
        name: skill.name().to_owned(),
        description: skill.description.expose().to_owned(),
        allowed_tools: match &skill.allowed_tools {
            AllowedTools::Undeclared => None,
            AllowedTools::Only(tools) => {
                let mut tools = tools.clone();
                tools.sort_unstable();
                Some(tools)
            }
        },
        content_hash: Some(text_hash(&skill.content)),
        secrets_autonomous: skill.secrets_autonomous,
        required_secrets,
    }
}

fn policies(inputs: &PolicyInputs<'_>, skill_catalog_hash: String) -> Map<String, Value> {
    let may_delegate_to = |name: &str| {
        let allowed = inputs.allowed_subagents;
        inputs.subagents_enabled
            && allowed.is_none_or(|allowed| allowed.iter().any(|one| one == name))
    };
    let runtime_limits: BTreeMap<String, RuntimeLimits> = inputs
        .subagents
        .iter()
        .filter(|(name, _)| may_delegate_to(name))
        .map(|(name, limits)| ((*name).to_owned(), *limits))
        .collect();
    let policies = EffectivePolicies {
        bootstrap: inputs.bootstrap,
        non_interactive: inputs.non_interactive,
        plan_mode: inputs.plan_mode.clone(),
        subagents: SubagentPolicies {
            enabled: inputs.subagents_enabled,
            max_concurrent: inputs.max_concurrent_subagents,
            max_total: inputs.max_total_subagents,
            type_allowlist: runtime_limits.keys().cloned().collect(),
            runtime_limits,
        },
        deferred_tools: DeferredToolPolicies {
            enabled: inputs.deferred_tools_catalog_hash.is_some(),
            catalog_hash: inputs.deferred_tools_catalog_hash.map(str::to_owned),
        },
        deferred_skills: inputs.deferred_skills,
        recursion_limit: match inputs.recursion_limit {
            Some(limit) => limit.into(),
            None => FRAMEWORK_DEFAULT.into(),
        },
        prompt_template_id: inputs.prompt_template_id.to_owned(),
        skill_catalog_hash,
    };
    match json!(policies) {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
