//! Which agent a request is for, and whose request it is: what has to be known before anything is read.

use serde_json::Value;

use super::sections::{Sections, is_truthy};
use crate::protocol::agent_record::agent_name;
use crate::protocol::decode::wrong_type;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::trust::Identifier;
use crate::protocol::user_id::UserId;

/// The assistant that is no custom agent (RC-8).
const LEAD_ASSISTANT: &str = "lead_agent";

/// What has to be known before a custom agent's record can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSelection {
    /// The custom agent, if one is asked for.
    pub agent_name: Option<Identifier>,
    /// Whether this is the agent that makes custom agents: then no record is read (CA-12).
    pub is_bootstrap: bool,
    /// Whose request it is: `A-Z a-z 0-9 _ -`, fit to name a directory.
    pub user_id: UserId,
}

impl AgentSelection {
    /// Reads the selection. `assistant_id` counts where no `agent_name` is given; `lead_agent` names no custom agent.
    ///
    /// # Errors
    /// `WrongType` or `OutOfRange` at a name that is none, `/assistant_id` included.
    pub fn new(sections: Sections<'_>, assistant_id: Option<&str>) -> Result<Self, Error> {
        let given = sections
            .get("agent_name")
            .filter(|member| !member.value.is_null());
        let agent_name = match given {
            Some(member) => {
                let Value::String(name) = member.value else {
                    return Err(member.wrong("text or null"));
                };
                Some(agent_name(name).map_err(|_| member.refused(BAD_AGENT_NAME))?)
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

fn assistant(id: Option<&str>) -> Result<Option<Identifier>, Error> {
    let id = id.unwrap_or_default();
    if id.is_empty() || id == LEAD_ASSISTANT {
        return Ok(None);
    }
    let name = id.trim().to_lowercase().replace('_', "-");
    match agent_name(&name) {
        Ok(name) => Ok(Some(name)),
        Err(_) => Err(Error::at(
            ErrorCode::OutOfRange,
            "/assistant_id",
            BAD_AGENT_NAME,
        )),
    }
}

/// Whose request it is (RC-5): whoever the platform knows, then whoever the request names.
fn user(sections: Sections<'_>) -> Result<UserId, Error> {
    if let Some(member) = sections.in_configurable("langgraph_auth_user_id")
        && is_truthy(member.value)
    {
        let id = member.value.as_str().ok_or_else(|| member.wrong("text"))?;
        return Ok(UserId::new(id));
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
        let user = UserId::new(id);
        if user.as_str() != id {
            let text = "a user's id must be of A-Z, a-z, 0-9, _ and -";
            return Err(Error::at(ErrorCode::OutOfRange, path, text));
        }
        return Ok(user);
    }
    Ok(UserId::default())
}
