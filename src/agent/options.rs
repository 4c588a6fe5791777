//! Run options of a lead agent: what `configurable` and `context` ask for, merged, bounded and typed (RC-1 to RC-8).

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::protocol::agent_record::AgentRecord;
use crate::protocol::app_config::{AppConfig, MAX_RUNNING_SUBAGENTS, MAX_TOTAL_SUBAGENTS};
use crate::protocol::config::{DEFAULT_RECURSION_LIMIT, MAX_RECURSION_LIMIT};
use crate::protocol::decode::wrong_type;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;
use crate::protocol::trust::Identifier;
use crate::protocol::warning::{Warning, Warnings};

/// The assistant that is no custom agent (RC-8).
const LEAD_ASSISTANT: &str = "lead_agent";
/// The channel whose requests come from outside.
const WEBHOOK_CHANNEL: &str = "github";
/// The user of requests that name none (RC-5).
const DEFAULT_USER: &str = "default";
/// Characters of the digest behind a user's name that was changed. Source: DeerFlow `make_safe_user_id`.
const USER_DIGEST_CHARS: usize = 16;

/// Both sections of a request as one, with `context` above `configurable` (RC-1). Members that begin with `__` belong to
/// nobody outside and are not seen (RC-6).
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a> {
    configurable: &'a Map<String, Value>,
    context: &'a Map<String, Value>,
}

/// A member of a request: its value, and where it stands.
#[derive(Clone, Copy)]
struct Member<'a> {
    section: &'static str,
    name: &'a str,
    value: &'a Value,
}

impl Member<'_> {
    fn path(&self) -> String {
        format!("/{}/{}", self.section, pointer_token(self.name))
    }

    fn wrong(&self, expected: &str) -> Error {
        wrong_type(self.value, expected).below(&self.path())
    }

    fn refused(&self, text: impl Into<String>) -> Error {
        Error::at(ErrorCode::OutOfRange, self.path(), text)
    }

    /// Text; null is none.
    fn text(&self) -> Result<Option<String>, Error> {
        match self.value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(self.wrong("text or null")),
        }
    }
}

impl<'a> Sections<'a> {
    /// Takes the sections of a request.
    pub fn new(configurable: &'a Map<String, Value>, context: &'a Map<String, Value>) -> Self {
        Sections {
            configurable,
            context,
        }
    }

    fn get<'n>(&self, name: &'n str) -> Option<Member<'n>>
    where
        'a: 'n,
    {
        self.in_context(name).or_else(|| self.in_configurable(name))
    }

    fn in_context<'n>(&self, name: &'n str) -> Option<Member<'n>>
    where
        'a: 'n,
    {
        member("context", self.context, name)
    }

    fn in_configurable<'n>(&self, name: &'n str) -> Option<Member<'n>>
    where
        'a: 'n,
    {
        member("configurable", self.configurable, name)
    }

    /// Whether a member is there and true, as Python sees it.
    fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|member| is_truthy(member.value))
    }
}

fn member<'n>(
    section: &'static str,
    members: &'n Map<String, Value>,
    name: &'n str,
) -> Option<Member<'n>> {
    let value = members.get(name).filter(|_| !name.starts_with("__"))?;
    Some(Member {
        section,
        name,
        value,
    })
}

/// Whether Python takes a value for true: not null, false, 0, `""`, `[]` and `{}`.
pub fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// What has to be known before a custom agent's record can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSelection {
    /// The custom agent, if one is asked for.
    pub agent_name: Option<Identifier>,
    /// Whether this is the agent that makes custom agents: then no record is read (CA-12).
    pub is_bootstrap: bool,
    /// Whose request it is: `A-Z a-z 0-9 _ -`, fit to name a directory.
    pub user_id: String,
}

impl AgentSelection {
    /// Reads the selection. `assistant_id` counts where no `agent_name` is given; `lead_agent` names no custom agent.
    ///
    /// # Errors
    /// `WrongType` or `OutOfRange` at a name that is none, `/assistant_id` included.
    pub fn new(sections: Sections<'_>, assistant_id: Option<&str>) -> Result<Self, Error> {
        let given = sections.get("agent_name").filter(|member| !member.value.is_null());
        let agent_name = match given {
            Some(member) => {
                let Value::String(name) = member.value else {
                    return Err(member.wrong("text or null"));
                };
                Some(agent_name(name).ok_or_else(|| member.refused(BAD_AGENT_NAME))?)
            }
            None => assistant(assistant_id)?,
        };
        Ok(AgentSelection {
            agent_name,
            is_bootstrap: sections.is_set("is_bootstrap"),
            user_id: user(sections)?,
        })
    }
}

const BAD_AGENT_NAME: &str = "an agent's name must be 1 to 64 characters of A-Z, a-z, 0-9 and -";

/// A custom agent's name (CA-1).
fn agent_name(name: &str) -> Option<Identifier> {
    Identifier::new(name).filter(|name| !name.as_str().contains('_'))
}

fn assistant(id: Option<&str>) -> Result<Option<Identifier>, Error> {
    let id = id.unwrap_or_default();
    if id.is_empty() || id == LEAD_ASSISTANT {
        return Ok(None);
    }
    let name = id.trim().to_lowercase().replace('_', "-");
    match agent_name(&name) {
        Some(name) => Ok(Some(name)),
        None => Err(Error::at(
            ErrorCode::OutOfRange,
            "/assistant_id",
            BAD_AGENT_NAME,
        )),
    }
}

/// Whose request it is (RC-5): whoever the platform knows, then whoever the request names.
fn user(sections: Sections<'_>) -> Result<String, Error> {
    if let Some(member) = sections.in_configurable("langgraph_auth_user_id")
        && is_truthy(member.value)
    {
        let id = member.value.as_str().ok_or_else(|| member.wrong("text"))?;
        return Ok(safe_user_id(id));
    }
    let mut candidates = Vec::new();
    if let Some(member) = sections.in_configurable("langgraph_auth_user")
        && let Some(identity) = member.value.get("identity")
    {
        candidates.push((format!("{}/identity", member.path()), identity));
    }
    for member in [
        sections.in_context("user_id"),
        sections.in_configurable("user_id"),
    ] {
        candidates.extend(member.map(|member| (member.path(), member.value)));
    }
    for (path, value) in candidates {
        if !is_truthy(value) {
            continue;
        }
        let Value::String(id) = value else {
            return Err(wrong_type(value, "text").below(&path));
        };
        if safe_user_id(id) != *id {
            let text = "a user's id must be of A-Z, a-z, 0-9, _ and -";
            return Err(Error::at(ErrorCode::OutOfRange, path, text));
        }
        return Ok(id.clone());
    }
    Ok(DEFAULT_USER.to_owned())
}

/// A user's name from elsewhere, in characters that may name a directory. What had to be changed gets a digest of the whole
/// behind it, so that two users never share a directory.
///
/// Source: DeerFlow `make_safe_user_id`.
pub fn safe_user_id(raw: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !raw.is_empty() && raw.chars().all(is_safe) {
        return raw.to_owned();
    }
    let plain: String = raw
        .chars()
        .map(|c| if is_safe(c) { c } else { '-' })
        .collect();
    let digest: String = Sha256::digest(raw.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{plain}-{}", &digest[..USER_DIGEST_CHARS])
}

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

/// Secrets of one request for its skills, by name. Debug output shows the names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RequestSecrets(BTreeMap<String, String>);

impl RequestSecrets {
    /// The secret of this name.
    pub fn expose(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for RequestSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
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
    /// bootstrap. Members that are not known here are somebody else's and are not looked at.
    ///
    /// Where the reference cannot take null, null counts as absent.
    ///
    /// # Errors
    /// `WrongType` or `OutOfRange` at the member, in whichever section it stands.
    pub fn resolve(
        sections: Sections<'_>,
        selection: AgentSelection,
        app: &AppConfig,
        agent: Option<&AgentRecord>,
    ) -> Result<(LeadOptions, Warnings), Error> {
        let mut warnings = Warnings::new();
        if !sections.configurable.is_empty() && !sections.context.is_empty() {
            warnings.add(
                Warning::ContextWins,
                "configurable and context were both given; where both have a member, context's counts",
            );
        }
        let requested_model = requested_model(sections)?;
        let own_model = agent.and_then(|agent| agent.model.clone());
        let may_delegate = agent.is_none_or(|agent| {
            let allowed = agent.allowed_subagents.as_ref();
            allowed.is_none_or(|names| !names.is_empty())
        });
        let plan_mode = sections.get("is_plan_mode");
        let channel_name = match sections.get("channel_name") {
            Some(member) => member.text()?,
            None => None,
        };
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
                None => agent.and_then(|agent| agent.thinking_enabled).unwrap_or(true),
            },
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
                let capacity = app.subagent_runtime.max_running;
                let most = capacity.clamp(1, MAX_RUNNING_SUBAGENTS);
                bounded(sections, "max_concurrent_subagents", capacity, most)?
            },
            max_total_subagents: bounded(
                sections,
                "max_total_subagents",
                app.subagents.max_total_per_run,
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

/// A whole number from 1 to `most`; absent or null gives `default`, within the same bounds.
fn bounded(sections: Sections<'_>, name: &str, default: u64, most: u64) -> Result<u64, Error> {
    let asked = match sections.get(name) {
        None => default,
        Some(member) if member.value.is_null() => default,
        Some(member) => whole(member.value)
            .ok_or_else(|| member.wrong("a whole number"))?
            .try_into()
            .unwrap_or(0),
    };
    Ok(asked.clamp(1, most))
}

/// A whole number as Python's `int` reads it: fractions are cut off, true is 1, digits may come as text. Numbers beyond 64
/// bits become the largest or smallest.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(flag) => Some(i64::from(*flag)),
        // A cast saturates.
        Value::Number(number) => number.as_i64().or_else(|| Some(number.as_f64()? as i64)),
        Value::String(text) => digits(text.trim()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn digits(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let groups: Vec<&str> = digits.split('_').collect();
    let is_number = |group: &&str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit());
    if !groups.iter().all(is_number) {
        return None;
    }
    let number = groups.concat().parse::<i64>().unwrap_or(i64::MAX);
    Some(if is_negative { -number } else { number })
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
            let names: Vec<&str> = InteractionMode::ALL.iter().map(|mode| mode.name()).collect();
            Err(Error {
                code: ErrorCode::UnknownVariant,
                ..member.refused(format!("interaction_mode must be one of {}", names.join(", ")))
            })
        }
    }
}

/// The values are never part of an error.
fn secrets(sections: Sections<'_>) -> Result<RequestSecrets, Error> {
    let Some(member) = sections.in_context("secrets") else {
        return Ok(RequestSecrets::default());
    };
    let members = match member.value {
        Value::Null => return Ok(RequestSecrets::default()),
        Value::Object(members) => members,
        _ => return Err(member.wrong("an object")),
    };
    let mut secrets = BTreeMap::new();
    for (name, value) in members {
        let Value::String(secret) = value else {
            let path = format!("{}/{}", member.path(), pointer_token(name));
            return Err(wrong_type(value, "text").below(&path));
        };
        secrets.insert(name.clone(), secret.clone());
    }
    Ok(RequestSecrets(secrets))
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

/// The parts of a request that a [`Principal`](crate::ports::authorization::Principal) is made of (MD-3).
pub(super) struct IdentityMembers {
    pub(super) role: Option<String>,
    pub(super) oauth_provider: Option<String>,
    pub(super) oauth_id: Option<String>,
    pub(super) channel_user_id: Option<String>,
    pub(super) is_internal: bool,
    pub(super) attributes: Map<String, Value>,
}

impl IdentityMembers {
    pub(super) fn read(sections: Sections<'_>) -> Result<Self, Error> {
        let text = |name| match sections.get(name) {
            Some(member) => member.text(),
            None => Ok(None),
        };
        let attributes = match sections.get("authz_attributes") {
            None => Map::new(),
            Some(member) => match member.value {
                Value::Null => Map::new(),
                Value::Object(attributes) => attributes.clone(),
                _ => return Err(member.wrong("an object")),
            },
        };
        Ok(IdentityMembers {
            role: text("user_role")?,
            oauth_provider: text("oauth_provider")?,
            oauth_id: text("oauth_id")?,
            channel_user_id: text("channel_user_id")?,
            is_internal: sections
                .get("is_internal")
                .is_some_and(|member| *member.value == Value::Bool(true)),
            attributes,
        })
    }
}
