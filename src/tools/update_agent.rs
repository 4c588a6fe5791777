//! `update_agent`: a custom agent changes its own soul and record, for the turns to come (TL-21).

use serde_json::{Value, json};

use super::self_management::{AgentScope, names, text};
use crate::ports::agents::{EditMode, EditOutcome};
use crate::ports::tool::{Tool, ToolAnswer, ToolInvocation, ToolOutcome, ToolSpec};
use crate::protocol::agent_edit::AgentEdit;
use crate::protocol::agent_record::{agent_name, trim};

/// Name of the tool.
pub const UPDATE_AGENT: &str = "update_agent";

/// Changes the agent that the request names, as its user has it.
///
/// Only what is given and differs is written; how its model behaves, and every key that this tool does not have, stays as its
/// author wrote it.
#[derive(Debug)]
pub struct UpdateAgent {
    spec: ToolSpec,
    scope: AgentScope,
}

impl UpdateAgent {
    /// The tool of one assembly.
    pub fn new(scope: AgentScope) -> Self {
        UpdateAgent {
            spec: spec(),
            scope,
        }
    }

    /// The checks come in the order of TL-21.
    async fn update(&self, invocation: &ToolInvocation) -> Result<String, String> {
        let scope = &self.scope;
        if let Some(channel) = scope.untrusted_channel(&invocation.run) {
            return Err(format!(
                "{UPDATE_AGENT} is off in the channel {channel:?}: what comes in there may be \
                 anybody's, and only the agent's own user may change it"
            ));
        }
        let args = &invocation.args;
        let edit = AgentEdit {
            soul: text(args, "soul")?,
            description: text(args, "description")?,
            skills: names(args, "skills")?,
            tool_groups: names(args, "tool_groups")?,
            model: text(args, "model")?,
        };
        if edit.is_empty() {
            return Err(
                "nothing to change was given; pass at least one of soul, description, skills, \
                 tool_groups and model, and leave out what stays instead of writing null for it"
                    .to_owned(),
            );
        }
        if edit.soul.as_ref().is_some_and(|soul| trim(soul).is_empty()) {
            return Err(
                "the soul is empty, so nothing was stored; leave it out to keep the one \
                        that there is"
                    .to_owned(),
            );
        }
        let Some(raw) = &scope.agent_name else {
            return Err(format!(
                "{UPDATE_AGENT} changes custom agents, and this conversation is not with one"
            ));
        };
        let name = agent_name(raw).map_err(|error| error.message)?;
        if let Some(model) = &edit.model
            && !scope.models.contains(model)
        {
            return Err(format!("there is no model {model:?}; nothing was changed"));
        }
        let edited = scope.store.edit(
            scope.user_of(&invocation.run),
            name.clone(),
            edit,
            EditMode::Update,
        );
        let name = name.as_str();
        match edited.await {
            Ok(EditOutcome::Changed(changed)) => Ok(format!(
                "The agent {name:?} is stored with its new {}. It takes effect with the next turn.",
                changed.join(", ")
            )),
            Ok(EditOutcome::Unchanged) => Ok(format!(
                "No changes: the agent {name:?} has these values already."
            )),
            Ok(EditOutcome::OnlyLegacy) => Err(format!(
                "the agent {name:?} is one that all users share, from before users had agents of \
                 their own; whoever runs this service has to move it to its user first"
            )),
            Ok(EditOutcome::Missing) => Err(format!(
                "this user has no agent {name:?} that could be changed"
            )),
            Ok(EditOutcome::Unreadable(error)) => Err(format!(
                "the agent {name:?} cannot be read, and it was left as it is: {}",
                error.message
            )),
            Err(error) => Err(error.message),
        }
    }
}

fn spec() -> ToolSpec {
    let list = |description: &str| {
        json!({
            "description": description,
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"type": "string"},
                {"type": "null"},
            ],
        })
    };
    let text = |description: &str| json!({"description": description, "type": ["string", "null"]});
    ToolSpec {
        name: UPDATE_AGENT.to_owned(),
        description:
            "Changes the agent that you are, when its user asks for it: soul, description, \
                      skills, tool groups, model. Pass only what changes. It takes effect with the \
                      user's next turn."
                .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "soul": text("The whole new text of the soul. It replaces the old one, so begin with that and change it."),
                "description": text("What the agent is for, in one line."),
                "skills": list("Names of all skills that it may use from now on; an empty list is none."),
                "tool_groups": list("Names of all tool groups that it has from now on; an empty list is none."),
                "model": text("Name of a model that is set up here."),
            },
        })
        .into(),
    }
}

impl Tool for UpdateAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        match self.update(&invocation).await {
            Ok(content) => ToolOutcome::Answer(ToolAnswer {
                content: Value::String(content),
                ..ToolAnswer::default()
            }),
            Err(fault) => ToolOutcome::Failed(fault),
        }
    }
}
