//! Keeps what a long thread must not forget outside its messages, and tells the model of it with each request.
//!
//! Before and after each model call the new messages of the run are looked at: delegations go to the ledger (see `ledger`), skills
//! that were read to the list of skills in use (see `skills`). Both are in the state before a summary takes the messages away.
//! Each request carries them, with the summary, in a hidden message of data, behind system text that says it is data (see
//! `telling`). Nothing of that is stored.
//!
//! Source: DeerFlow `DurableContextMiddleware`, MW-DUR, LED-1 to 12. Beyond the reference, a look costs what came since the last
//! one, not the whole run, and a result that a run brings for a delegation of an earlier run settles it.

mod ledger;
mod skills;
mod tail;
mod telling;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use self::tail::Tail;
use super::remembered::{Remembered, RunKey, run_key};
use super::tool_error_handling::ToolErrorHandlingConfig;
use super::{Hook, HookContext, HookOutput, Hooks, Middleware, ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::error::Error;
use crate::state::channels::Channel;
use crate::state::update::{StateUpdate, Write};

/// Settings, gathered from the sections `summarization` and `skills`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DurableContextConfig {
    /// `summarization.skill_file_read_tool_names`: tools that read files.
    pub skill_file_read_tool_names: Vec<String>,
    /// `skills.container_path`: where the agent sees the skills.
    pub skills_container_path: String,
}

impl Default for DurableContextConfig {
    /// The defaults of `ToolErrorHandling`, which marks the results that this looks for.
    fn default() -> Self {
        let ToolErrorHandlingConfig {
            skill_file_read_tool_names,
            skills_container_path,
        } = ToolErrorHandlingConfig::default();
        DurableContextConfig {
            skill_file_read_tool_names,
            skills_container_path,
        }
    }
}

/// The middleware.
pub struct DurableContext {
    config: DurableContextConfig,
    /// By run: the newest message that was looked at.
    seen: Remembered<RunKey, Arc<str>>,
}

impl DurableContext {
    /// The middleware.
    pub fn new(config: DurableContextConfig) -> Self {
        DurableContext {
            config,
            seen: Remembered::new(),
        }
    }

    /// What the new messages of the run add to ledger and skills.
    fn capture(&self, context: &HookContext<'_>) -> HookOutput {
        let HookContext { state, run, .. } = context;
        let key = run_key(run);
        let seen = self.seen.get(&key);
        let tail = Tail::of(*state, run, seen.as_deref());
        if let Some(newest) = state.last().and_then(|message| message.id())
            && !run.run_id.is_empty()
            && seen.as_deref() != Some(newest)
        {
            self.seen.set(key, newest.into());
        }
        let mut update = StateUpdate::default();
        for (channel, entries) in [
            (Channel::Delegations, ledger::captured(&tail, *state, run)),
            (
                Channel::SkillContext,
                skills::captured(&tail, &self.config, &run.signals),
            ),
        ] {
            if !entries.is_empty() {
                update = update.and(channel, Write::Value(entries.into()));
            }
        }
        match update.is_empty() {
            true => HookOutput::Continue,
            false => HookOutput::Update(update),
        }
    }
}

impl Middleware for DurableContext {
    fn name(&self) -> &str {
        "durable_context"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_model: true,
            after_model: true,
            wrap_model_call: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let mut names = self.config.skill_file_read_tool_names.clone();
        names.sort();
        let root = self.config.skills_container_path.trim_end_matches('/');
        Map::from_iter([
            ("skill_file_read_tool_names".to_owned(), names.into()),
            ("skills_root".to_owned(), root.into()),
        ])
    }

    fn reads(&self) -> &[Channel] {
        &[
            Channel::SummaryText,
            Channel::Delegations,
            Channel::SkillContext,
        ]
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        Ok(match hook {
            Hook::BeforeModel | Hook::AfterModel => self.capture(context),
            Hook::BeforeAgent | Hook::AfterAgent => HookOutput::Continue,
        })
    }

    fn wrap_model_call<'a>(
        &'a self,
        mut request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        if let Some(data) = telling::data(&request.reads) {
            request.messages = Arc::new(telling::told(&request.messages, data));
        }
        next.run(request)
    }
}

#[cfg(test)]
mod tests;
