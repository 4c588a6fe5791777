//! Leaves an agent the tools that its active skills allow.
//!
//! A skill decides once it is active: the user named it with a slash in this run, or the agent has read its SKILL.md. That a skill
//! is installed decides nothing. The skill of a slash dominates the run, so that reading another one does not widen what it
//! allows. `task` is a tool like the others; only [`ALWAYS_ALLOWED`] stays.
//!
//! What a restriction says is looked up at each model call, in the skills as they are then; the calls of its reply go by the same
//! decision as long as the same skills are active. What cannot be looked up restricts to what is always allowed.
//!
//! Source: DeerFlow `SkillToolPolicyMiddleware`, MW-STP-1 to MW-STP-5, SKL-18. The decision is kept with the run, where no caller
//! can write, so it carries no token.

mod search_result;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::filtered_lists::FilteredLists;
use super::message_marks::first_chars;
use super::skill_activation::in_context;
use super::{Hooks, Middleware, ModelResponse, NextModel, NextTool};
use crate::ports::BoxFuture;
use crate::ports::active_skills::{ActiveSkills, ToolDecision};
use crate::ports::model::{ModelError, ModelRequest};
use crate::ports::signals::RunSignals;
use crate::ports::tool::{ToolInvocation, ToolOutcome, ToolSpec};
use crate::protocol::warning::Warning;
use crate::skills::library::SkillAccess;
use crate::skills::policy::{ALWAYS_ALLOWED, decide};
use crate::skills::slash;
use crate::state::channels::Channel;
use crate::state::reads::ChannelReads;
use crate::tools::tool_search;

/// Most characters of a tool's name in words of ours: the name is the model's.
const MAX_NAME_CHARS: usize = 100;

/// The middleware.
pub struct SkillToolPolicy {
    access: SkillAccess,
    /// By what is allowed. Whoever comes after keeps what they make of a list by its identity.
    lists: FilteredLists<BTreeSet<String>>,
}

/// What decides.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// Nothing does.
    Passive,
    /// The skill of the run's slash, by its path.
    Slash(String),
    /// The slash of the run that stopped before the calls of this one; it was not looked up yet.
    OpenRequest(Arc<str>),
    /// The skills in context, by their paths.
    InContext(Vec<String>),
}

impl Source {
    /// MW-STP-1.
    fn of(active: &ActiveSkills, reads: &ChannelReads) -> Self {
        if let Some(activation) = active.activation() {
            return Source::Slash(activation.location.to_string());
        }
        if let Some(text) = active.open_request()
            && slash::parse(&text).is_some()
        {
            return Source::OpenRequest(text);
        }
        let paths = in_context(reads);
        match paths.is_empty() {
            true => Source::Passive,
            false => Source::InContext(paths.into_iter().map(str::to_owned).collect()),
        }
    }

    /// Whether a decision was made by just this.
    fn made(&self, decision: &ToolDecision) -> bool {
        match self {
            Source::Passive | Source::OpenRequest(_) => false,
            Source::Slash(path) => decision.is_slash && decision.paths == [path.as_str()],
            Source::InContext(paths) => !decision.is_slash && decision.paths == *paths,
        }
    }
}

/// Whether a decision leaves a tool.
fn allows(allowed: &BTreeSet<String>, tool: &str) -> bool {
    allowed.contains(tool) || ALWAYS_ALLOWED.contains(&tool)
}

impl SkillToolPolicy {
    /// The middleware of an agent.
    pub fn new(access: SkillAccess) -> Self {
        SkillToolPolicy {
            access,
            lists: FilteredLists::new(),
        }
    }

    /// Decides by the skills as they are now (MW-STP-2, MW-STP-3).
    async fn decide(&self, source: &Source, signals: &RunSignals) -> ToolDecision {
        let catalog = match self.access.installed.load().await {
            Ok(catalog) => Some(catalog),
            Err(error) => {
                let message = format!(
                    "active skills restrict the tools to what is always allowed: {}",
                    error.message
                );
                signals.warn(Warning::SkillsUnreadable, message);
                None
            }
        };
        let catalog = catalog.as_deref();
        let scope = &self.access.scope;
        let named = |text: &str| {
            let command = slash::parse(text)?;
            let skill = slash::resolve(catalog?, scope, command.name).ok()?;
            Some(skill.location.expose().to_owned())
        };
        let (is_slash, paths) = match source {
            Source::Passive => (false, Vec::new()),
            Source::Slash(path) => (true, vec![path.clone()]),
            // A path that nothing has: what cannot be found restricts all the same.
            Source::OpenRequest(text) => (true, vec![named(text).unwrap_or_default()]),
            Source::InContext(paths) => (false, paths.clone()),
        };
        let in_context: Vec<&str> = paths.iter().map(String::as_str).collect();
        let decided = match is_slash {
            true => decide(catalog, scope, in_context.first().copied(), &[]),
            false => decide(catalog, scope, None, &in_context),
        };
        ToolDecision {
            is_slash,
            allowed: decided.allowed,
            paths,
        }
    }

    fn filtered(&self, tools: &Arc<[ToolSpec]>, allowed: &BTreeSet<String>) -> Arc<[ToolSpec]> {
        self.lists
            .get(tools, allowed, |spec| allows(allowed, &spec.name))
    }
}

impl Middleware for SkillToolPolicy {
    fn name(&self) -> &str {
        "skill_tool_policy"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_model_call: true,
            wrap_tool_call: true,
            ..Hooks::default()
        }
    }

    fn reads(&self) -> &[Channel] {
        &[Channel::SkillContext]
    }

    fn policy(&self) -> Map<String, Value> {
        Map::from_iter([
            ("available_skills".to_owned(), self.access.policy()),
            (
                "always_allowed".to_owned(),
                ALWAYS_ALLOWED.as_slice().into(),
            ),
        ])
    }

    fn wrap_model_call<'a>(
        &'a self,
        mut request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let active = request.run.facts.signals.skills();
        let source = Source::of(active, &request.reads);
        if source == Source::Passive {
            active.decide(None);
            return next.run(request);
        }
        Box::pin(async move {
            let signals = request.run.facts.signals.clone();
            let decision = self.decide(&source, &signals).await;
            if let Some(allowed) = &decision.allowed {
                request.tools = self.filtered(&request.tools, allowed);
            }
            signals.skills().decide(Some(Arc::new(decision)));
            next.run(request).await
        })
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        let active = invocation.run.facts.signals.skills();
        let source = Source::of(active, &invocation.reads);
        if source == Source::Passive {
            return next.run(invocation);
        }
        let known = active.decision().filter(|known| source.made(known));
        Box::pin(async move {
            let decision = match known {
                Some(known) => known,
                None => {
                    let signals = &invocation.run.facts.signals;
                    Arc::new(self.decide(&source, signals).await)
                }
            };
            let Some(allowed) = &decision.allowed else {
                return next.run(invocation).await;
            };
            if !allows(allowed, &invocation.name) {
                let shown = first_chars(&invocation.name, MAX_NAME_CHARS);
                return ToolOutcome::Failed(format!(
                    "{shown} was not called: the skills in use do not allow it. Work with the tools that you are given now."
                ));
            }
            let is_search = invocation.name == tool_search::NAME;
            let outcome = next.run(invocation).await;
            match (is_search, outcome) {
                (true, ToolOutcome::Answer(answer)) => {
                    search_result::filtered(answer, |tool| allows(allowed, tool))
                }
                (_, outcome) => outcome,
            }
        })
    }
}

#[cfg(test)]
mod tests;
