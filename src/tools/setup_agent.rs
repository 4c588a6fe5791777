//! `setup_agent`: the bootstrap agent makes a custom agent, or gives the default agent its soul (TL-20).

use serde_json::{Value, json};

use super::self_management::{AgentScope, names, text};
use crate::ports::agents::{EditMode, EditOutcome};
use crate::ports::tool::{Tool, ToolAnswer, ToolInvocation, ToolOutcome, ToolSpec};
use crate::protocol::agent_edit::AgentEdit;
use crate::protocol::agent_record::{agent_name, trim};

/// Name of the tool.
pub const SETUP_AGENT: &str = "setup_agent";

/// Makes the agent that the request names, or replaces the soul of the default agent when it names none.
///
/// An agent of that name that the user has already is changed: what the call does not set stays, so that the call lifts no
/// restriction (`allowed_subagents`, `memory_enabled`) that somebody set by hand. DeerFlow drops it there.
#[derive(Debug)]
pub struct SetupAgent {
    spec: ToolSpec,
    scope: AgentScope,
}

impl SetupAgent {
    /// The tool of one assembly.
    pub fn new(scope: AgentScope) -> Self {
        SetupAgent {
            spec: spec(),
            scope,
        }
    }

    async fn set_up(&self, invocation: &ToolInvocation) -> Result<ToolAnswer, String> {
        let args = &invocation.args;
        let soul = match args.get("soul") {
            Some(Value::String(soul)) if !trim(soul).is_empty() => soul.clone(),
            Some(Value::String(_)) | Some(Value::Null) | None => {
                return Err(
                    "the soul is empty, so nothing was stored; write the agent's personality \
                            and rules into it"
                        .to_owned(),
                );
            }
            Some(_) => return Err("soul must be text".to_owned()),
        };
        let description = text(args, "description")?.filter(|text| !text.is_empty());
        let skills = names(args, "skills")?;
        let Some(raw) = &self.scope.agent_name else {
            let written = self.scope.store.write_default_soul(soul).await;
            written.map_err(|error| error.message)?;
            return Ok(answer(
                "The default agent has its new soul. It speaks with it from the next turn on."
                    .to_owned(),
                None,
            ));
        };
        let name = agent_name(raw).map_err(|error| error.message)?;
        let edit = AgentEdit {
            description,
            skills,
            soul: Some(soul),
            ..AgentEdit::default()
        };
        let user = self.scope.user_of(&invocation.run);
        let edited = self
            .scope
            .store
            .edit(user, name.clone(), edit, EditMode::Upsert);
        match edited.await.map_err(|error| error.message)? {
            EditOutcome::Unreadable(error) => Err(format!(
                "there is an agent {:?} already that cannot be read, and it was left as it is: {}",
                name.as_str(),
                error.message
            )),
            _ => Ok(answer(
                format!(
                    "The agent {:?} is set up and can be talked to now.",
                    name.as_str()
                ),
                Some(name.as_str()),
            )),
        }
    }
}

/// `created_agent_name` is for the host; it is null when the default agent was meant.
fn answer(content: String, created: Option<&str>) -> ToolAnswer {
    ToolAnswer {
        content: content.into(),
        artifact: json!({ "created_agent_name": created }),
        ..ToolAnswer::default()
    }
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: SETUP_AGENT.to_owned(),
        description: "Stores the agent that this conversation has worked out. Call it once, when \
                      the user agrees with the soul."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "soul": {
                    "type": "string",
                    "description": "The whole text of the agent's soul, in Markdown: who it is, how it talks, what it does and never does.",
                },
                "description": {
                    "type": "string",
                    "description": "What the agent is for, in one line.",
                },
                "skills": {
                    "description": "Names of the skills that it may use. Leave it out for all; an empty list is none.",
                    "anyOf": [
                        {"type": "array", "items": {"type": "string"}},
                        {"type": "string"},
                        {"type": "null"},
                    ],
                },
            },
            "required": ["soul", "description"],
        })
        .into(),
    }
}

impl Tool for SetupAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        match self.set_up(&invocation).await {
            Ok(answer) => ToolOutcome::Answer(answer),
            Err(fault) => ToolOutcome::Failed(fault),
        }
    }
}
