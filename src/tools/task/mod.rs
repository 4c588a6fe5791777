//! `task`: the agent gives a piece of work to a subagent and waits for what comes of it.
//!
//! The call itself never fails: whatever becomes of the work is an answer whose metadata says so (`subagents::status`), and that
//! is what the ledger reads. Who runs the subagent is the [`Delegate`]'s business.
//!
//! Source: DeerFlow's `task` tool, SUB-1 to SUB-5, SUB-19, SUB-25, SUB-48; its newest form where that differs.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::BuiltinInputs;
use crate::ports::delegate::{Delegate, Delegation, DelegationEnd};
use crate::ports::tool::{DynTool, Tool, ToolAnswer, ToolInvocation, ToolOutcome, ToolSpec};
use crate::prompt::sanitize::neutralize;
use crate::protocol::message::Message;
use crate::state::channels::Channel;
use crate::state::python::{collapse_whitespace, is_space};
use crate::state::reads::ChannelReads;
use crate::subagents::result::failed;
use crate::subagents::{TASK_TOOL, criteria, snapshot, status};

/// Name of the tool.
pub const NAME: &str = TASK_TOOL;

/// What a subagent begins with, and what a snapshot is made of.
const READS: [Channel; 5] = [
    Delegation::INHERITED[0],
    Delegation::INHERITED[1],
    Delegation::INHERITED[2],
    Channel::SummaryText,
    Channel::Messages,
];

/// Most characters of a name that nobody has, when it is told.
const MAX_NAME: usize = 80;
/// Most names of subagents in the tool's description.
const MAX_LISTED: usize = 50;

const DESCRIPTION: &str = "\
Give a piece of work to a subagent and wait for its result. The subagent works on its own: it sees none of this conversation \
(unless context_mode is snapshot), cannot ask back, cannot delegate further, and has limits of turns, tokens and time. You get \
the text of its final message and nothing else; files that it changed in the workspace stay changed. The result says whether \
the work was completed, stopped at a limit with what there was by then, failed, was cancelled or ran out of time. It is the \
subagent's own account: check what matters. Calls in the same response run side by side, as far as there are places.";

const PROMPT: &str = "\
The whole task, so that somebody who knows nothing of this conversation can do it: goal, what is known, paths, what to leave \
alone, and what the result must contain.";

/// There where the agent may delegate.
pub(super) fn build(inputs: &BuiltinInputs) -> Option<Arc<dyn DynTool>> {
    let delegate = inputs.delegate.clone()?;
    Some(Arc::new(TaskTool::new(delegate)))
}

/// The tool.
pub struct TaskTool {
    spec: ToolSpec,
    delegate: Arc<dyn Delegate>,
}

impl TaskTool {
    /// The tool that gives work to `delegate`, whose subagents its description names.
    pub fn new(delegate: Arc<dyn Delegate>) -> Self {
        let names = delegate.names();
        let mut kind = "Which subagent is to do it, by its name.".to_owned();
        if !names.is_empty() {
            let listed = names.iter().take(MAX_LISTED).map(String::as_str);
            let listed: Vec<&str> = listed.collect();
            kind.push_str(&format!(" There is: {}", listed.join(", ")));
            if names.len() > MAX_LISTED {
                kind.push_str(&format!(" and {} more", names.len() - MAX_LISTED));
            }
            kind.push('.');
        }
        let criteria = format!(
            "Optional: what the result is going to be checked against, such as files that have to exist. The subagent sees them \
             below its task. At most {} of at most {} characters; what is beyond that is left out.",
            criteria::MAX_CRITERIA,
            criteria::MAX_CRITERION_CHARS
        );
        TaskTool {
            spec: ToolSpec {
                name: NAME.to_owned(),
                description: DESCRIPTION.to_owned(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "description": {
                            "type": "string",
                            "description": "What the work is called, in 3 to 5 words, for people who watch.",
                        },
                        "prompt": {"type": "string", "description": PROMPT},
                        // Any text: a name that there is not is answered with those that there are (SUB-3).
                        "subagent_type": {"type": "string", "description": kind},
                        "acceptance_criteria": {
                            "type": "array", "items": {"type": "string"}, "description": criteria,
                        },
                        "context_mode": {
                            "type": "string", "enum": ["isolated", "snapshot"],
                            "description": "snapshot shows the subagent the recent part of this conversation as background; \
                                use it when telling it again would be long. Default isolated.",
                        },
                    },
                    "required": ["prompt", "subagent_type"],
                })
                .into(),
            },
            delegate,
        }
    }

    /// The work that a call asks for, or why there is none to do.
    fn delegation(&self, invocation: ToolInvocation) -> Result<Delegation, String> {
        let args = &invocation.args;
        let subagent = text(args, "subagent_type").ok_or("subagent_type must be text")?;
        self.check(subagent)?;
        let prompt = text(args, "prompt").ok_or("prompt must be text")?;
        if prompt.chars().all(is_space) {
            return Err("The prompt is empty: say what is to be done.".to_owned());
        }
        let given = args.get("acceptance_criteria").and_then(Value::as_array);
        let given = given.into_iter().flatten().filter_map(Value::as_str);
        let task = criteria::below(prompt, &criteria::normalized(given));
        let background = match text(args, "context_mode") {
            None | Some("isolated") => None,
            Some("snapshot") => background(&invocation.reads),
            Some(_) => return Err("context_mode must be isolated or snapshot".to_owned()),
        };
        Ok(Delegation {
            subagent: subagent.to_owned(),
            description: text(args, "description").unwrap_or_default().to_owned(),
            task,
            background,
            state: invocation.reads.only(&Delegation::INHERITED),
            message_id: invocation.message_id,
            task_id: invocation.call_id,
            run: invocation.run,
        })
    }

    /// Whether the agent may give work to the subagent of this name (SUB-3, SUB-4).
    fn check(&self, name: &str) -> Result<(), String> {
        let names = self.delegate.names();
        // One that is there and cannot be used need not be among the names (SUB-8).
        if let Some(why) = self.delegate.unavailable(name) {
            return Err(why);
        }
        if names.iter().any(|known| known == name) {
            return Ok(());
        }
        let available = match names.is_empty() {
            true => "none: this agent may delegate to nobody".to_owned(),
            false => names.join(", "),
        };
        let shown = collapse_whitespace(name, MAX_NAME);
        Err(format!(
            "Unknown subagent type '{shown}'. Available: {available}"
        ))
    }
}

fn text<'a>(args: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    args.get(name).and_then(Value::as_str)
}

fn background(reads: &ChannelReads) -> Option<Message> {
    let summary = reads.get(Channel::SummaryText).and_then(Value::as_str);
    snapshot::message(summary, reads.messages())
}

/// The answer that tells of an end. A subagent may have read anything, and its result reads like the framework's own text: it
/// stands there without the framework's tags and marks, as the results of other machines do (MW-TRS-1).
fn answer(end: &DelegationEnd) -> ToolAnswer {
    let text = status::text(end);
    ToolAnswer {
        content: neutralize(&text).into(),
        status: status::tool_status(end.status),
        additional_kwargs: status::additional_kwargs(end),
        ..ToolAnswer::default()
    }
}

impl Tool for TaskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn reads(&self) -> &[Channel] {
        &READS
    }

    fn call(&self, invocation: ToolInvocation) -> impl Future<Output = ToolOutcome> + Send {
        // What was read is gone before the wait begins: it may be long.
        let delegation = self.delegation(invocation);
        let begun = delegation.map(|delegation| self.delegate.delegate(delegation));
        async move {
            let end = match begun {
                Ok(execution) => execution.await,
                Err(why) => failed(why),
            };
            ToolOutcome::Answer(answer(&end))
        }
    }
}

#[cfg(test)]
mod tests;
