//! Run options of a lead agent: what `configurable` and `context` ask for, bounded and typed (RC-2 to RC-7).

use serde_json::{Map, Value};

use super::sections::{Sections, is_truthy};
use super::selection::AgentSelection;
use crate::protocol::agent_record::AgentRecord;
use crate::protocol::app_config::{AppConfig, MAX_RUNNING_SUBAGENTS, MAX_TOTAL_SUBAGENTS};
use crate::protocol::config::{DEFAULT_RECURSION_LIMIT, MAX_RECURSION_LIMIT};
use crate::protocol::decode::nearest;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;
use crate::protocol::request_secrets::{RequestSecrets, SECRETS};
use crate::protocol::warning::{Warning, Warnings};

/// What this library looks for in a request; all else is somebody else's.
const OPTIONS: &[&str] = &[
    "agent_name",
    "authz_attributes",
    "channel_name",
    "channel_user_id",
    "disable_clarification",
    "interaction_mode",
    "is_bootstrap",
    "is_internal",
    "is_plan_mode",
    "max_concurrent_subagents",
    "max_total_subagents",
    "model",
    "model_name",
    "non_interactive",
    "oauth_id",
    "oauth_provider",
    "reasoning_effort",
    "run_id",
    "secrets",
    "subagent_enabled",
    "thinking_enabled",
    "thread_id",
    "user_id",
    "user_role",
];

/// Shorter names are near to too many others.
const MIN_MISSPELT_CHARS: usize = 6;
/// Most misspelt names that are told of.
const MAX_MISSPELT: usize = 10;

/// The channel whose requests come from outside.
const WEBHOOK_CHANNEL: &str = "github";

/// How a request is answered: whether somebody is there to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InteractionMode {
    /// Somebody is.
    Interactive,
    /// Nobody, and the agent goes on by itself.
    Autonomous,
    /// The request came from another service.
    Webhook,
    /// The request came from a timetable.
    Scheduled,
}

impl InteractionMode {
    /// All of them.
    pub const ALL: &'static [InteractionMode] = &[
        InteractionMode::Interactive,
        InteractionMode::Autonomous,
        InteractionMode::Webhook,
        InteractionMode::Scheduled,
    ];

    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            InteractionMode::Interactive => "interactive",
            InteractionMode::Autonomous => "autonomous",
            InteractionMode::Webhook => "webhook",
            InteractionMode::Scheduled => "scheduled",
        }
    }
}

/// Limits of delegation before a request narrows them: those of a subagents object, or of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubagentLimits {
    /// How many subagents can run at once, 1 to 64; also the most `task` calls of one reply (RT-39).
    pub max_running: u64,
    /// Most `task` calls of one run unless the request says otherwise, 1 to 50 (RT-40).
    pub max_total: u64,
}

impl SubagentLimits {
    /// Those of a configuration, for assemblies without a subagents object.
    pub fn of(app: &AppConfig) -> Self {
        SubagentLimits {
            max_running: app.subagent_runtime.max_running,
            max_total: app.subagents.max_total_per_run,
        }
    }
}

/// What a run of a lead agent is asked to be.
#[derive(Clone, Debug, PartialEq)]
pub struct LeadOptions {
    /// Which agent, and for whom.
    pub selection: AgentSelection,
    /// The model that the request names. The agent's own is not looked at here.
    pub requested_model: Option<String>,
    /// The model to look for: the request's, else the agent's (RC-3).
    pub wanted_model: Option<String>,
    /// Whether the model is to think, before it is known whether it can (RC-2).
    pub thinking_enabled: bool,
    /// Whether the request or the agent's record says so, or it is the default.
    pub thinking_is_asked_for: bool,
    /// How hard the model is to think (RC-2).
    pub reasoning_effort: Option<String>,
    /// `is_plan_mode` as it was given, for descriptors (AD-21); false where it was not.
    pub plan_mode: Value,
    /// Whether the agent keeps a list of what is to do.
    pub is_plan_mode: bool,
    /// Whether subagents are asked for and the agent may have any (RC-4).
    pub subagent_enabled: bool,
    /// Most `task` calls in one reply, 1 to 64.
    pub max_concurrent_subagents: u64,
    /// Most `task` calls in one run, 1 to 50.
    pub max_total_subagents: u64,
    /// Whether `non_interactive` is set.
    pub non_interactive: bool,
    /// The channel that the request came by.
    pub channel_name: Option<String>,
    /// How the request is answered.
    pub interaction_mode: InteractionMode,
    /// Whether a question to the user is answered by a hint to go on (MW-CLA-3).
    pub disable_clarification: bool,
    /// Secrets for skills.
    pub secrets: RequestSecrets,
}

impl LeadOptions {
    /// Reads the options of a request. `agent` is the record of the custom agent, none for the lead agent itself and for
    /// bootstrap. Members that are not known here are somebody else's and are not looked at. `limits` are what delegation is
    /// limited to at most, and where the request asks for nothing.
    ///
    /// Where the reference cannot take null, null counts as absent.
    ///
    /// # Errors
    /// `WrongType` or `OutOfRange` at the member, in whichever section it stands.
    pub fn resolve(
        sections: Sections<'_>,
        selection: AgentSelection,
        limits: SubagentLimits,
        agent: Option<&AgentRecord>,
    ) -> Result<(LeadOptions, Warnings), Error> {
        let mut warnings = Warnings::new();
        if sections.are_both_given() {
            warnings.add(
                Warning::ContextWins,
                "configurable and context were both given; where both have a member, context's counts",
            );
        }
        tell_misspelt(sections, &mut warnings);
        let requested_model = requested_model(sections)?;
        let own_model = agent.and_then(|agent| agent.model.clone());
        let may_delegate = agent.is_none_or(|agent| {
            let allowed = agent.allowed_subagents.as_ref();
            allowed.is_none_or(|names| !names.is_empty())
        });
        let plan_mode = sections.get("is_plan_mode");
        let channel_name = sections.text("channel_name")?;
        let non_interactive = sections.is_set("non_interactive");
        // Of the runtime's context alone: it is not an option of the agent.
        let disable_clarification = sections
            .in_context("disable_clarification")
            .is_some_and(|member| is_truthy(member.value));
        let is_webhook = channel_name.as_deref() == Some(WEBHOOK_CHANNEL);
        let options = LeadOptions {
            wanted_model: requested_model
                .clone()
                .or(own_model.filter(|model| !model.is_empty())),
            requested_model,
            thinking_enabled: match sections.get("thinking_enabled") {
                Some(member) => is_truthy(member.value),
                None => agent
                    .and_then(|agent| agent.thinking_enabled)
                    .unwrap_or(true),
            },
            thinking_is_asked_for: sections.get("thinking_enabled").is_some()
                || agent.is_some_and(|agent| agent.thinking_enabled.is_some()),
            reasoning_effort: match sections.get("reasoning_effort") {
                Some(member) => member.text()?,
                None => agent
                    .and_then(|agent| agent.reasoning_effort)
                    .map(|effort| effort.name().to_owned()),
            },
            is_plan_mode: plan_mode.is_some_and(|member| is_truthy(member.value)),
            plan_mode: plan_mode.map_or(Value::Bool(false), |member| member.value.clone()),
            subagent_enabled: sections.is_set("subagent_enabled") && may_delegate,
            max_concurrent_subagents: {
                let most = limits.max_running.clamp(1, MAX_RUNNING_SUBAGENTS);
                sections.bounded("max_concurrent_subagents", limits.max_running, most)?
            },
            max_total_subagents: sections.bounded(
                "max_total_subagents",
                limits.max_total,
                MAX_TOTAL_SUBAGENTS,
            )?,
            interaction_mode: match interaction_mode(sections)? {
                Some(mode) => mode,
                None if non_interactive => InteractionMode::Scheduled,
                None if is_webhook => InteractionMode::Webhook,
                None if disable_clarification => InteractionMode::Autonomous,
                None => InteractionMode::Interactive,
            },
            non_interactive,
            channel_name,
            disable_clarification,
            secrets: secrets(sections)?,
            selection,
        };
        Ok((options, warnings))
    }

    /// Whether the request came by a channel from outside, whose agents do not change themselves (TL-5).
    pub fn is_webhook(&self) -> bool {
        self.channel_name.as_deref() == Some(WEBHOOK_CHANNEL)
    }

    /// Whether the agent has no tool to ask the user with (TL-6).
    pub fn withholds_clarification(&self) -> bool {
        self.non_interactive || self.interaction_mode != InteractionMode::Interactive
    }

    /// What is recorded of the run's options (EP-15). `model` is the model that was chosen, `thinking` whether it thinks.
    pub fn run_metadata(
        &self,
        agent: Option<&AgentRecord>,
        model: &str,
        thinking: bool,
    ) -> Map<String, Value> {
        let names = |list: Option<&Vec<String>>| list.map(|names| Value::from(names.clone()));
        let or_null = |value: Option<Value>| value.unwrap_or(Value::Null);
        let skills = match (self.selection.is_bootstrap, agent) {
            (true, _) => Some(vec!["bootstrap".to_owned()]),
            (false, agent) => agent.and_then(|agent| agent.skills.clone()),
        };
        let skills = skills.map(|mut names| {
            names.sort_unstable();
            names
        });
        let name = self.selection.agent_name.as_ref();
        let name = name.map_or("default", |name| name.as_str());
        let effort = self.reasoning_effort.as_deref();
        let subagents = agent.and_then(|agent| agent.allowed_subagents.as_ref());
        let groups = agent.and_then(|agent| agent.tool_groups.as_ref());
        let metadata: [(&str, Value); 10] = [
            ("agent_name", name.into()),
            ("model_name", model.into()),
            ("thinking_enabled", thinking.into()),
            ("reasoning_effort", or_null(effort.map(Value::from))),
            ("is_plan_mode", self.is_plan_mode.into()),
            ("subagent_enabled", self.subagent_enabled.into()),
            ("tool_groups", or_null(names(groups))),
            ("available_skills", or_null(names(skills.as_ref()))),
            ("allowed_subagents", or_null(names(subagents))),
            (
                "memory_enabled",
                agent.is_none_or(|agent| agent.memory_enabled).into(),
            ),
        ];
        metadata
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

/// Warns of members that have nearly the name of an option. They may be somebody else's, so that they are no error.
fn tell_misspelt(sections: Sections<'_>, warnings: &mut Warnings) {
    let is_misspelt = |(section, name): (&'static str, &'_ str)| {
        let is_passed = name.len() < MIN_MISSPELT_CHARS || name.starts_with("__");
        let meant = (!is_passed && !OPTIONS.contains(&name))
            .then(|| nearest(name, OPTIONS))
            .flatten()?;
        Some(format!(
            "/{section}/{} is not looked at; did you mean {meant:?}?",
            pointer_token(name)
        ))
    };
    for text in sections
        .members()
        .filter_map(is_misspelt)
        .take(MAX_MISSPELT)
    {
        warnings.add(Warning::OptionMisspelt, text);
    }
}

/// The first of `model_name` and `model` that says something (RC-3), looked at in the merged sections.
fn requested_model(sections: Sections<'_>) -> Result<Option<String>, Error> {
    for name in ["model_name", "model"] {
        if let Some(member) = sections.get(name)
            && is_truthy(member.value)
        {
            return member.text();
        }
    }
    Ok(None)
}

fn interaction_mode(sections: Sections<'_>) -> Result<Option<InteractionMode>, Error> {
    let Some(member) = sections.get("interaction_mode") else {
        return Ok(None);
    };
    let Some(name) = member.text()? else {
        return Ok(None);
    };
    let mut modes = InteractionMode::ALL.iter();
    match modes.find(|mode| mode.name() == name) {
        Some(mode) => Ok(Some(*mode)),
        None => {
            let names: Vec<&str> = InteractionMode::ALL
                .iter()
                .map(|mode| mode.name())
                .collect();
            Err(Error {
                code: ErrorCode::UnknownVariant,
                ..member.refused(format!(
                    "interaction_mode must be one of {}",
                    names.join(", ")
                ))
            })
        }
    }
}

fn secrets(sections: Sections<'_>) -> Result<RequestSecrets, Error> {
    match sections.in_context(SECRETS) {
        None => Ok(RequestSecrets::default()),
        Some(member) => {
            RequestSecrets::read(member.value).map_err(|error| error.below(&member.path()))
        }
    }
}

/// The steps of a run (RC-7): what is asked for, within the configuration's bound; what is no whole number from 1 counts as
/// not asked for.
pub fn recursion_limit(asked: Option<&Value>, app: &AppConfig) -> u32 {
    let most = app.max_recursion_limit.unwrap_or(MAX_RECURSION_LIMIT);
    let asked = asked
        .and_then(Value::as_u64)
        .filter(|steps| *steps > 0)
        .unwrap_or(u64::from(DEFAULT_RECURSION_LIMIT));
    u32::try_from(asked).unwrap_or(u32::MAX).min(most)
}
