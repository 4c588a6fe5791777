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
use super::tool_contents::rewrite_contents;
use super::{Hooks, Middleware, NextTool};
use crate::ports::BoxFuture;
use crate::ports::tool::{ToolInvocation, ToolOutcome};
use crate::prompt::sanitize::neutralize;

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
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        if !self.is_remote(&invocation.name) {
            return next.run(invocation);
        }
        let call = next.run(invocation);
        Box::pin(async move {
            let mut outcome = call.await;
            match &mut outcome {
                ToolOutcome::Answer(answer) => {
                    if let Some(clean) = neutralized(&answer.content) {
                        answer.content = clean;
                    }
                    if let Some(update) = &mut answer.update {
                        rewrite_contents(update, &mut neutralized);
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

/// What becomes of a string, or of the texts of a list; `None` when nothing does.
fn neutralized(content: &Value) -> Option<Value> {
    match content {
        Value::String(text) => match neutralize(text) {
            Cow::Owned(clean) => Some(Value::String(clean)),
            Cow::Borrowed(_) => None,
        },
        Value::Array(blocks) => {
            let mut blocks = blocks.clone();
            neutralize_blocks(&mut blocks).then_some(Value::Array(blocks))
        }
        _ => None,
    }
}
