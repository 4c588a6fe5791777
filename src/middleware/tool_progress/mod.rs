//! Watches what tools return, and stops the use of one that gets nowhere: first the model is told, then the tool is not run.
//!
//! Outside of the handling of errors, whose classes it reads (MC-4). It looks at results, where `loop_detection` looks at calls.
//! What it remembers is of one run: it begins afresh with each (MW-TPR-4), and forgets when one ends.
//!
//! Source: DeerFlow `ToolProgressMiddleware`, MW-TPR-1 to MW-TPR-4. Hints of a model call that fails wait for the next attempt
//! (against hazard A-1).

mod phase;
mod words;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use self::phase::{Phase, ResultClass, Track};
use super::bounded::BoundedMap;
use super::refusal::refused_as;
use super::remembered::{execution_key, id_or_default, thread_key};
use super::reply::members;
use super::request::{note, run_with_note};
use super::tool_result_class::{TOOL_META, of_blocked};
use super::{Hook, HookContext, HookOutput, Hooks, Middleware, ModelResponse, NextModel, NextTool};
use crate::ports::BoxFuture;
use crate::ports::host::RunContext;
use crate::ports::model::{ModelError, ModelRequest};
use crate::ports::tool::{ToolAnswer, ToolInvocation, ToolOutcome};
use crate::protocol::app_config::{Feature as _, ToolProgressConfig};
use crate::protocol::error::Error;

/// Most hints that wait for a run's next model call (MW-TPR-4).
const MAX_PENDING: usize = 3;
/// Most tools of a thread that are remembered: a model may make up names without end.
const MAX_TOOLS: usize = 64;
/// How the result of a blocked tool begins (MW-TPR-3).
const BLOCKED: &str = "[TOOL_BLOCKED]";
/// Name of the message with hints (MW-TPR-4).
const HINT: &str = "progress_hint";

/// What is remembered of a thread.
struct Tracks {
    tools: BoundedMap<String, Track>,
    /// Hints that wait, with the run that they are for.
    pending: Vec<(Arc<str>, String)>,
}

impl Tracks {
    fn new() -> Self {
        Tracks {
            tools: BoundedMap::new(MAX_TOOLS),
            pending: Vec::new(),
        }
    }

    /// Adds a hint unless a run has enough of them.
    fn queue(&mut self, run: &Arc<str>, hint: String) {
        let waiting = self.pending.iter().filter(|(of, _)| of == run).count();
        if waiting < MAX_PENDING {
            self.pending.push((run.clone(), hint));
        }
    }

    /// Takes the hints of a run.
    fn drain(&mut self, run: &Arc<str>) -> Vec<String> {
        let (taken, left) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|(of, _)| of == run);
        self.pending = left;
        let taken: Vec<(Arc<str>, String)> = taken;
        taken.into_iter().map(|(_, hint)| hint).collect()
    }
}

/// See the module.
pub struct ToolProgress {
    config: ToolProgressConfig,
    threads: Mutex<BoundedMap<Arc<str>, Tracks>>,
}

impl ToolProgress {
    /// As configured.
    pub fn new(config: ToolProgressConfig) -> Self {
        let capacity = usize::try_from(config.max_tracked_threads).unwrap_or(usize::MAX);
        ToolProgress {
            config,
            threads: Mutex::new(BoundedMap::new(capacity)),
        }
    }

    fn threads(&self) -> MutexGuard<'_, BoundedMap<Arc<str>, Tracks>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watches(&self, tool: &str) -> bool {
        let exempt = &self.config.exempt_tools;
        self.config.is_enabled() && !tool.is_empty() && !exempt.iter().any(|name| name == tool)
    }

    /// Why a tool is blocked, if it is. Asking makes no thread younger: one whose tools are all blocked must not push others
    /// out.
    fn blocked(&self, thread: &Arc<str>, tool: &str) -> Option<&'static str> {
        match self.threads().get(thread)?.tools.get(tool)?.phase {
            Phase::Blocked(reason) => Some(reason),
            Phase::Active | Phase::Warned => None,
        }
    }

    /// Takes a result in. One that writes to the state carries no class and is left alone (MW-TPR-4).
    fn assess(&self, run: &RunContext, tool: String, answer: &ToolAnswer) {
        if answer.update.is_some() || answer.end_run {
            return;
        }
        let class = answer.additional_kwargs.get(TOOL_META);
        let Some(class) = class.and_then(ResultClass::read) else {
            return;
        };
        let content = answer.content.as_str().unwrap_or_default();
        let thread = id_or_default(thread_key(&run.facts));
        let mut threads = self.threads();
        threads.refresh(&thread);
        let tracks = threads.get_or_insert_with(thread, Tracks::new);
        tracks.tools.refresh(&tool);
        let track = tracks.tools.get_or_insert_with(tool, Track::default);
        let hint = track.assess(&class, content, &self.config);
        if let Some(hint) = hint
            && self.config.inject_assessment
        {
            tracks.queue(execution_key(&run.facts), hint);
        }
    }
}

impl Middleware for ToolProgress {
    fn name(&self) -> &str {
        "tool_progress"
    }

    fn hooks(&self) -> Hooks {
        let on = self.config.is_enabled();
        Hooks {
            before_agent: on,
            after_agent: on,
            wrap_model_call: on,
            wrap_tool_call: on,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let config = &self.config;
        let mut exempt: Vec<&str> = config.exempt_tools.iter().map(String::as_str).collect();
        exempt.sort_unstable();
        exempt.dedup();
        members([
            ("stagnation_threshold", config.stagnation_threshold.into()),
            ("warn_escalation_count", config.warn_escalation_count.into()),
            ("inject_assessment", config.inject_assessment.into()),
            (
                "jaccard_similarity_threshold",
                config.jaccard_similarity_threshold.into(),
            ),
            (
                "min_word_count_for_similarity",
                config.min_word_count_for_similarity.into(),
            ),
            ("exempt_tools", exempt.into()),
            ("max_tracked_threads", config.max_tracked_threads.into()),
        ])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        let thread = id_or_default(thread_key(context.run));
        match hook {
            Hook::BeforeAgent => {
                if let Some(tracks) = self.threads().get_mut(&thread) {
                    tracks.tools.clear();
                    let run = execution_key(context.run);
                    tracks.pending.retain(|(of, _)| of == run);
                }
            }
            // The next run would begin afresh anyway: nothing is kept for nobody.
            Hook::AfterAgent => drop(self.threads().remove(&thread)),
            Hook::BeforeModel | Hook::AfterModel => {}
        }
        Ok(HookOutput::Continue)
    }

    fn wrap_model_call<'a>(
        &'a self,
        request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let thread = id_or_default(thread_key(&request.run.facts));
        let run = execution_key(&request.run.facts).clone();
        let hints = match self.threads().get_mut(&thread) {
            Some(tracks) => tracks.drain(&run),
            None => Vec::new(),
        };
        if hints.is_empty() {
            return next.run(request);
        }
        let mut words: Vec<&str> = Vec::with_capacity(hints.len());
        for hint in &hints {
            if !words.contains(&hint.as_str()) {
                words.push(hint);
            }
        }
        let words = note(HINT, words.join("\n\n"));
        run_with_note(request, words, next, move || {
            if let Some(tracks) = self.threads().get_mut(&thread) {
                let newer = tracks.drain(&run);
                for hint in hints.into_iter().chain(newer) {
                    tracks.queue(&run, hint);
                }
            }
        })
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        if !self.watches(&invocation.name) {
            return next.run(invocation);
        }
        let run = invocation.run.clone();
        let thread = id_or_default(thread_key(&run.facts));
        if let Some(reason) = self.blocked(&thread, &invocation.name) {
            let content = format!("{BLOCKED} this tool is not run again: {reason}");
            let blocked = refused_as(content, of_blocked());
            return Box::pin(std::future::ready(blocked));
        }
        let tool = invocation.name.clone();
        let call = next.run(invocation);
        Box::pin(async move {
            let outcome = call.await;
            if let ToolOutcome::Answer(answer) = &outcome {
                self.assess(&run, tool, answer);
            }
            outcome
        })
    }
}

#[cfg(test)]
mod tests;
