//! Keeps the output of tools within bounds: what is too long goes to a file, and the model reads what it is and where.
//!
//! A result is judged once, when its tool has answered: beyond one bound its whole text is written to the files of the thread or
//! into its sandbox, and a synopsis with the virtual path takes its place. Where there is no place for files, what is beyond
//! another bound is cut in its middle. Results that are in the thread already are cut in requests only.
//! Texts alone are judged: what has an image in it stays. Inside of what frames the user's words, outside of what
//! neutralises results, so that a cut cannot make a tag (MW-TRS-3).
//!
//! Source: DeerFlow `ToolOutputBudgetMiddleware`, MW-TOB, SBX-10a, L16, L17. Failures of tools are cut as well.

mod cut;
mod history;
mod limits;
mod reference;
mod storage;
mod synopsis;

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use self::history::History;
use self::limits::{Limits, Verdict, text_of};
use self::reference::{Reference, path};
use self::storage::Storage;
use super::tool_contents::rewrite_contents;
use super::{Hooks, Middleware, ModelResponse, NextModel, NextTool};
use crate::ports::BoxFuture;
use crate::ports::host::RunContext;
use crate::ports::model::{ModelError, ModelRequest};
use crate::ports::sandbox::Sandbox;
use crate::ports::thread_files::ThreadFiles;
use crate::ports::tool::{ToolAnswer, ToolInvocation, ToolOutcome};
use crate::protocol::app_config::ToolOutputConfig;
use crate::protocol::hash::hex;
use crate::protocol::warning::Warning;

/// What the thread's message of a failure begins with, besides what the tool says.
const FAILURE_PREFIX: usize = "Error: ".len();
/// Bytes at each end of an output that its file is named after.
const NAMING_BYTES: usize = 64 * 1024;

/// The middleware.
pub struct ToolOutputBudget {
    limits: Arc<Limits>,
    key: u64,
    storage: Storage,
}

impl ToolOutputBudget {
    /// The middleware, by the section `tool_output`. Output goes to `thread_files`, or into a `sandbox` that has files of its
    /// own; without both it is only cut.
    pub fn new(
        config: &ToolOutputConfig,
        thread_files: Option<Arc<dyn ThreadFiles>>,
        sandbox: Option<Arc<dyn Sandbox>>,
    ) -> Self {
        let limits = Limits::new(config);
        ToolOutputBudget {
            key: limits.key(),
            limits: Arc::new(limits),
            storage: Storage::of(thread_files, sandbox),
        }
    }

    /// The answer with what is too long in it, and in the tool messages that it writes, replaced.
    async fn budgeted(&self, call: Call, mut answer: ToolAnswer) -> ToolOutcome {
        if let Some(short) = self.shortened(&call, 0, &answer.content).await {
            answer.content = short;
        }
        if let Some(update) = &mut answer.update {
            let mut long = Vec::new();
            rewrite_contents(update, &mut |content| {
                if !self.is_kept(&call, content) {
                    long.push(content.clone());
                }
                None
            });
            let mut short = VecDeque::with_capacity(long.len());
            for (nth, content) in long.iter().enumerate() {
                short.push_back(self.shortened(&call, nth + 1, content).await);
            }
            if !short.is_empty() {
                rewrite_contents(update, &mut |content| match self.is_kept(&call, content) {
                    true => None,
                    false => short.pop_front().flatten(),
                });
            }
        }
        ToolOutcome::Answer(answer)
    }

    /// Whether a content is plainly short enough, or no text.
    fn is_kept(&self, call: &Call, content: &Value) -> bool {
        let bytes = match content {
            Value::String(text) => text.len(),
            content => text_of(content).map_or(0, |text| text.len()),
        };
        bytes <= self.limits.safe_bytes(&call.tool)
    }

    /// What takes the place of the `nth` content of a call; `None` when it stays.
    async fn shortened(&self, call: &Call, nth: usize, content: &Value) -> Option<Value> {
        let text = text_of(content)?;
        if text.len() <= self.limits.safe_bytes(&call.tool) {
            return None;
        }
        let count = text.chars().count();
        match self.limits.judge(&call.tool, &text, count) {
            Verdict::Keep => return None,
            Verdict::Cut => {}
            Verdict::Store => {
                if let Some(told) = self.store(call, nth, &text, count).await {
                    return Some(told.into());
                }
            }
        }
        self.limits.cut(&text).map(Value::from)
    }

    /// Writes an output to a file; what the model reads instead. `None` when that cannot be.
    async fn store(&self, call: &Call, nth: usize, text: &str, count: usize) -> Option<String> {
        if matches!(self.storage, Storage::Nowhere) {
            return None;
        }
        let path = path(&self.limits.folder, &call.tool, &call.digest(nth, text));
        let reference = Reference {
            tool: &call.tool,
            path: &path,
            text,
            count,
            preview: self.limits.preview,
        };
        let told = reference.told(self.limits.reference_chars())?;
        match self.storage.write(&call.run, &path, text).await {
            Ok(()) => Some(told),
            Err(error) => {
                let message = format!(
                    "the output of call {:?} could not be written to {path}: {}",
                    call.call_id, error.message
                );
                call.run
                    .facts
                    .signals
                    .warn(Warning::OutputNotStored, message);
                None
            }
        }
    }
}

/// The call whose output is judged.
struct Call {
    tool: String,
    message_id: Arc<str>,
    call_id: String,
    run: Arc<RunContext>,
}

impl Call {
    fn of(invocation: &ToolInvocation) -> Self {
        Call {
            tool: invocation.name.clone(),
            message_id: invocation.message_id.clone(),
            call_id: invocation.call_id.clone(),
            run: invocation.run.clone(),
        }
    }

    /// What a file is named after: the same for the same output of the same call, so that a call that is made again after a
    /// crash leaves one file. Subagents of a run write to one folder, so that their executions count.
    fn digest(&self, nth: usize, text: &str) -> String {
        let bytes = text.as_bytes();
        let ends = NAMING_BYTES.min(bytes.len());
        let mut hasher = Sha256::new();
        for part in [self.message_id.as_bytes(), self.call_id.as_bytes()] {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
        if let Some(subagent) = &self.run.facts.subagent {
            hasher.update(subagent.execution_id.as_bytes());
        }
        hasher.update(nth.to_le_bytes());
        hasher.update(bytes.len().to_le_bytes());
        hasher.update(&bytes[..ends]);
        hasher.update(&bytes[bytes.len() - ends..]);
        hex(&hasher.finalize())
    }
}

impl Middleware for ToolOutputBudget {
    fn name(&self) -> &str {
        "tool_output_budget"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_model_call: self.limits.enabled,
            wrap_tool_call: self.limits.enabled,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let mut policy = self.limits.policy();
        policy.insert("storage".to_owned(), self.storage.name().into());
        policy
    }

    fn wrap_model_call<'a>(
        &'a self,
        mut request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let make = || Box::new(History::new(self.limits.clone())) as _;
        if let Some(messages) = request.messages.rewritten(self.key, make) {
            request.messages = messages;
        }
        next.run(request)
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        if self.limits.is_exempt(&invocation.name) {
            return next.run(invocation);
        }
        let call = Call::of(&invocation);
        let answer = next.run(invocation);
        Box::pin(async move {
            // On its own: while a tool works, this is not begun and takes no room.
            let budgeted = match answer.await {
                ToolOutcome::Answer(answer) => Box::pin(self.budgeted(call, answer)),
                ToolOutcome::Failed(reason) => {
                    let short = self.limits.cut_failure(&reason, FAILURE_PREFIX);
                    return ToolOutcome::Failed(short.unwrap_or(reason));
                }
            };
            budgeted.await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::RunFacts;
    use crate::middleware::stage::{execution, run_as};
    use crate::tools::testing::{call, run_with};
    use serde_json::json;

    #[test]
    fn executions_of_a_run_write_no_files_of_the_same_name() {
        let digest = |facts: RunFacts| {
            let mut invocation = call("bash", json!({}));
            invocation.run = run_with(facts);
            Call::of(&invocation).digest(0, "text")
        };
        let run = || digest(run_as("t", "r"));
        let of = |id| digest(execution("t", "r", id));
        assert_eq!(run(), run());
        assert_eq!(of("a"), of("a"));
        assert!(of("a") != of("b") && of("a") != run());
    }
}
