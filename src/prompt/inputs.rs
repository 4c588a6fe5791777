//! What a prompt is rendered from: plain facts about an agent, each text with its source.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ports::tool::DynTool;
use crate::protocol::trust::{Identifier, OperatorText, SourcedText};
use crate::skills::Skill;

/// Facts about an agent. The default is an agent without a name, tools or skills.
#[derive(Clone, Debug, Default)]
pub struct PromptInputs<'a> {
    /// Name of the custom agent; none for the default agent and while an agent is being made (CA-12).
    pub agent_name: Option<&'a Identifier>,
    /// The agent's personality. Blank counts as none.
    pub soul: Option<&'a SourcedText>,
    /// Whether somebody can answer questions during a run.
    pub interaction: Interaction,
    /// Names of the tools that are bound to the model and are this library's or the operator's. A tool is mentioned by name
    /// only if it is among them. Leave out the tools of MCP servers: a server could take a name that the prompt knows.
    pub bound_tools: BTreeSet<&'a str>,
    /// Skills.
    pub skills: PromptSkills<'a>,
    /// Whether the agent has a memory that it manages by tools. Each memory tool is described if it is bound as well.
    pub memory_tools: bool,
    /// Names of tools that are there but not bound: the operator's and, as remote text, those of MCP servers (TL-16).
    pub deferred_tools: &'a [SourcedText],
    /// Which tools suit which topics; see [`routing_hints`].
    pub routing_hints: &'a [RoutingHint],
    /// Delegation to subagents; `None` when it is off.
    pub delegation: Option<Delegation<'a>>,
    /// Whether ACP agents are configured (PR-2).
    pub acp_agents: bool,
    /// Further folders of the sandbox (PR-3).
    pub mounts: &'a [Mount],
    /// Whether commands can be run at all (PR-4, PR-17).
    pub shell_available: bool,
}

/// Whether somebody can answer questions during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interaction {
    /// A user reads along and can answer.
    #[default]
    Interactive,
    /// Nobody answers: the run goes on by its own judgement.
    NonInteractive,
}

/// Skills as a prompt lists them.
#[derive(Clone, Debug, Default)]
pub struct PromptSkills<'a> {
    /// The installed skills of the user, those that are switched off among them.
    pub installed: &'a [Arc<Skill>],
    /// Names that the agent is limited to; `None` for all.
    pub available: Option<&'a [String]>,
    /// How they are listed.
    pub listing: SkillListing,
    /// Whether the agent may make and mend skills (`skill_manage` has to be bound as well).
    pub evolution: bool,
    /// Whether a message that begins with `/name` activates the skill of that name.
    pub slash_activation: bool,
    /// Where the skills are in the sandbox. Default `/mnt/skills`.
    pub container_path: Option<&'a OperatorText>,
}

/// How skills are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SkillListing {
    /// Each with its description and its file (PR-6).
    #[default]
    Full,
    /// Names alone; `describe_skill` tells the rest (PR-5). Without that tool, or without a skill, it is as `Full` (PR-9).
    Index,
}

/// A tool of an MCP server with the topics that it suits. All of it is the server's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingHint {
    /// Name of the tool.
    pub tool: String,
    /// The highest comes first.
    pub priority: u8,
    /// Words of a request that speak for the tool.
    pub keywords: Vec<String>,
    /// Whether the tool has to be fetched with `tool_search` first.
    pub deferred: bool,
}

/// The hints of the tools that an agent is authorised to use, the highest priority first and then by name (TL-19).
pub fn routing_hints(
    authorised: &[Arc<dyn DynTool>],
    is_deferred: impl Fn(&str) -> bool,
) -> Vec<RoutingHint> {
    let mut hints: Vec<RoutingHint> = authorised
        .iter()
        .filter_map(|tool| {
            let routing = tool.origin().mcp()?.routing.as_ref()?;
            let tool = &tool.spec().name;
            (!routing.keywords.is_empty()).then(|| RoutingHint {
                tool: tool.clone(),
                priority: routing.priority,
                keywords: routing.keywords.clone(),
                deferred: is_deferred(tool),
            })
        })
        .collect();
    hints.sort_by(|a, b| {
        b.priority
            .cmp(&a.priority)
            .then_with(|| a.tool.cmp(&b.tool))
    });
    hints
}

/// Delegation to subagents.
#[derive(Clone, Debug)]
pub struct Delegation<'a> {
    /// Most `task` calls of one response, clamped; at least 1.
    pub max_per_response: u32,
    /// Most `task` calls of one run, clamped; at least 1.
    pub max_per_run: u32,
    /// The subagents that the agent may delegate to. With none of them there is no delegation, and the prompt does not speak
    /// of it.
    pub subagents: &'a [SubagentEntry],
    /// Whether batches that outlive a run can be submitted (`batch_task` has to be bound as well; PR-19).
    pub batches: bool,
}

/// A subagent that can be delegated to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubagentEntry {
    /// The built-in `general-purpose`.
    GeneralPurpose,
    /// The built-in `bash`.
    Bash,
    /// Any other. It is the operator's if both its name and its description are.
    Custom {
        /// What a `task` call names it by.
        name: SourcedText,
        /// What it is for; the first line is shown.
        description: SourcedText,
    },
}

/// A folder of the sandbox besides the standard ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its path in the sandbox.
    pub container_path: OperatorText,
    /// Whether it cannot be written to.
    pub read_only: bool,
}
