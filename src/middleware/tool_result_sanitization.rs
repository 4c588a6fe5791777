//! Takes framework tags and markers out of what remote tools answer: web pages, and tools of MCP servers.
//!
//! Files and commands of the agent's own are not touched: their text has to arrive byte by byte. Inside of what shortens long
//! results, so that a cut cannot make a tag (MW-TRS-3).
//!
//! Source: DeerFlow `ToolResultSanitizationMiddleware`, MW-TRS-1 and MW-TRS-2. Failures are neutralised as well, because their
//! text comes from the same place.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::input_sanitization::neutralize_blocks;
use super::{Hooks, Middleware, NextTool};
use crate::ports::BoxFuture;
use crate::ports::tool::{ToolInvocation, ToolOutcome};
use crate::prompt::sanitize::neutralize;
use crate::protocol::message::{Kind, Message};
use crate::state::channels::Channel;
use crate::state::update::{StateUpdate, Write};

/// Tools that answer with pages of others, wherever they come from.
const WEB_TOOLS: &[&str] = &["web_fetch", "web_search", "image_search", "web_capture"];

/// Neutralises the results of remote tools.
#[derive(Clone, Debug, Default)]
pub struct ToolResultSanitization {
    remote: BTreeSet<String>,
}

impl ToolResultSanitization {
    /// `remote` names the tools of MCP servers.
    pub fn new(remote: impl IntoIterator<Item = String>) -> Self {
        ToolResultSanitization {
            remote: remote.into_iter().collect(),
        }
    }

    fn is_remote(&self, tool: &str) -> bool {
        WEB_TOOLS.contains(&tool) || self.remote.contains(tool)
    }
}

impl Middleware for ToolResultSanitization {
    fn name(&self) -> &str {
        "tool_result_sanitization"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_tool_call: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let names = |names: &mut dyn Iterator<Item = &str>| names.map(Value::from).collect();
        Map::from_iter([
            (
                "web_tools".to_owned(),
                names(&mut WEB_TOOLS.iter().copied()),
            ),
            (
                "remote_tools".to_owned(),
                names(&mut self.remote.iter().map(String::as_str)),
            ),
        ])
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: &'a mut dyn NextTool,
    ) -> BoxFuture<'a, ToolOutcome> {
        if !self.is_remote(&invocation.name) {
            return next.run(invocation);
        }
        Box::pin(async move {
            let mut outcome = next.run(invocation).await;
            match &mut outcome {
                ToolOutcome::Answer(answer) => {
                    neutralize_content(&mut answer.content);
                    if let Some(update) = &mut answer.update {
                        neutralize_update(update);
                    }
                }
                ToolOutcome::Failed(text) => neutralize_text(text),
            }
            outcome
        })
    }
}

fn neutralize_text(text: &mut String) {
    if let Cow::Owned(clean) = neutralize(text) {
        *text = clean;
    }
}

/// A string, or the texts of a list; whether anything changed.
fn neutralize_content(content: &mut Value) -> bool {
    match content {
        Value::String(text) => match neutralize(text) {
            Cow::Owned(clean) => {
                *text = clean;
                true
            }
            Cow::Borrowed(_) => false,
        },
        Value::Array(blocks) => neutralize_blocks(blocks),
        _ => false,
    }
}

/// The tool messages that an update writes; other writes stay.
fn neutralize_update(update: &mut StateUpdate) {
    for (channel, write) in &mut update.writes {
        if *channel != Channel::Messages {
            continue;
        }
        match write {
            Write::Messages(messages) => {
                for message in messages
                    .iter_mut()
                    .filter(|message| message.kind() == Kind::Tool)
                {
                    let mut content = message.fields().content.clone();
                    if neutralize_content(&mut content) {
                        let mut fields = message.fields().clone();
                        fields.content = content;
                        *message = Message::new(fields);
                    }
                }
            }
            Write::Value(Value::Array(messages)) | Write::Overwrite(Value::Array(messages)) => {
                messages.iter_mut().for_each(neutralize_loose);
            }
            Write::Value(message) | Write::Overwrite(message) => neutralize_loose(message),
        }
    }
}

/// A message that was not read yet: by its `type` or `role`, dumped with its members under `data`, or a pair of role and
/// content.
fn neutralize_loose(message: &mut Value) {
    match message {
        Value::Object(members) => {
            let is = |name: &str| members.get(name).and_then(Value::as_str) == Some("tool");
            if !is("type") && !is("role") {
                return;
            }
            if let Some(content) = members.get_mut("content") {
                neutralize_content(content);
            }
            if let Some(content) = members
                .get_mut("data")
                .and_then(|data| data.get_mut("content"))
            {
                neutralize_content(content);
            }
        }
        Value::Array(pair) => {
            if let [Value::String(role), content] = pair.as_mut_slice()
                && role == "tool"
            {
                neutralize_content(content);
            }
        }
        _ => {}
    }
}
