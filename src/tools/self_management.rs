//! What the two tools share by which an agent makes or changes itself: whose agent it is, and how arguments are read.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::ports::agents::AgentStore;
use crate::ports::host::{RunContext, RunFacts};
use crate::protocol::user_id::UserId;

/// Channels whose messages come from people outside, who must not change an agent (TL-21).
pub const UNTRUSTED_CHANNELS: &[&str] = &["github"];

/// Whose agent a tool makes or changes. The assembly knows it, a model cannot say it.
#[derive(Clone)]
pub struct AgentScope {
    /// Where agents are kept.
    pub store: Arc<dyn AgentStore>,
    /// The user whom the assembly was made for; a run may be another user's.
    pub user: UserId,
    /// `agent_name` of the request, as it came.
    pub agent_name: Option<String>,
    /// `channel_name` of the request; a run may come in by another channel.
    pub channel_name: Option<String>,
    /// Names of the models that an agent may ask for.
    pub models: Arc<[String]>,
}

impl AgentScope {
    /// The user whose agents a run may change (RC-5): whoever the platform knows, then whoever the run names, then the user of
    /// the assembly.
    pub(super) fn user_of(&self, run: &RunContext) -> UserId {
        let RunFacts {
            configurable,
            context,
            ..
        } = &*run.facts;
        let identity = configurable
            .get("langgraph_auth_user")
            .and_then(|user| user.get("identity"));
        [
            configurable.get("langgraph_auth_user_id"),
            identity,
            context.get("user_id"),
        ]
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .find(|id| !id.is_empty())
        .map_or_else(|| self.user.clone(), UserId::new)
    }

    /// The channel by which anybody outside may have asked for this call; `None` when it is the user who asks.
    pub(super) fn untrusted_channel(&self, run: &RunContext) -> Option<&'static str> {
        let of_run = run
            .facts
            .context
            .get("channel_name")
            .and_then(Value::as_str);
        [self.channel_name.as_deref(), of_run]
            .into_iter()
            .flatten()
            .find_map(|name| UNTRUSTED_CHANNELS.iter().find(|channel| **channel == name))
            .copied()
    }
}

impl std::fmt::Debug for AgentScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentScope")
            .field("user", &self.user)
            .field("agent_name", &self.agent_name)
            .field("channel_name", &self.channel_name)
            .finish_non_exhaustive()
    }
}

/// The words that models write where they mean nothing (TL-21).
fn is_nullish(text: &str) -> bool {
    ["null", "none", "undefined"]
        .iter()
        .any(|word| text.trim().eq_ignore_ascii_case(word))
}

/// A text argument; absent when it is null or a word for it.
///
/// # Errors
/// For the model, when it is something else.
pub(super) fn text(args: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if is_nullish(text) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{name} must be text")),
    }
}

/// An argument that is a list of names; absent when it is null or a word for it.
///
/// # Errors
/// As [`text`].
pub(super) fn names(args: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, String> {
    let wrong = || format!("{name} must be a list of names");
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if is_nullish(text) => Ok(None),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect::<Result<_, _>>()
            .map(Some),
        Some(_) => Err(wrong()),
    }
}
