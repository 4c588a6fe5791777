//! Puts a summary in the place of the beginning of a thread that has grown long.
//!
//! Before a model call that meets a trigger, the thread is divided (see `compaction`), a model is asked for a summary of the
//! part that goes (see `prompt`), and only when there is one the part leaves the thread, in one write with the
//! channel `summary_text`. The summary is no message: the request tells of it as data. When no model can summarise, the
//! thread stays as it is and the host is warned; a run asks no more than [`MAX_FAILED_CALLS`] times in vain.
//!
//! Source: DeerFlow `DeerFlowSummarizationMiddleware`, MW-SUM, CK-29, Z1 to Z9.

mod compaction;
mod prompt;
mod token_estimate;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use self::compaction::{KeepEnd, Parts, divide};
use self::prompt::{PROMPT, SummaryInput, SummaryPrompt};
use self::token_estimate::TokenEstimate;
use super::message_marks::SUMMARY;
use super::remembered::{Remembered, execution_key};
use super::{
    Effect, Hook, HookContext, HookOutput, Hooks, Middleware, OtherModel, Question, RunFacts,
};
use crate::ports::model::{ModelError, ModelReply};
use crate::protocol::app_config::{ContextSize, ContextSizeKind, SummarizationConfig, Triggers};
use crate::protocol::canonical_json::text_hash;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{Fields, Kind, Message, REMOVE_ALL_MESSAGES, content_text};
use crate::protocol::trust::OperatorText;
use crate::protocol::warning::Warning;
use crate::state::View;
use crate::state::channels::Channel;
use crate::state::update::{StateUpdate, Write};

/// How many model calls of a run may fail before it stops trying (Z6).
pub const MAX_FAILED_CALLS: u32 = 2;

/// Who writes summaries, and what is known of the model by whose limits a thread is measured.
#[derive(Clone, Debug, Default)]
pub struct SummaryModels {
    /// What `summarization.model_name` names, made to answer without thinking. It is asked first.
    pub configured: Option<OtherModel>,
    /// The run's model, made to answer without thinking. It is asked when there is no other, or the other fails; without it
    /// the run's model is asked as it is.
    pub run: Option<OtherModel>,
    /// How many tokens the model can read; fractions need it.
    pub max_input_tokens: Option<u64>,
    /// What replies of the model name as `model_provider`: `anthropic` where that counts. Tokens that a reply reports count
    /// when it names the same.
    pub provider: Option<String>,
}

/// What is told before messages leave a thread (MW-SUM-8).
#[derive(Clone, Copy, Debug)]
pub struct CompactionEvent<'a> {
    /// The messages that leave.
    pub removed: &'a [Message],
    /// The messages that stay.
    pub kept: &'a [Message],
    /// The thread.
    pub thread_id: &'a str,
    /// The custom agent at work, if it is one.
    pub agent_name: Option<&'a str>,
}

/// Hears of messages before they leave a thread, once there is a summary. What it fails with is a warning to the host.
pub type CompactionHook = Arc<dyn Fn(&CompactionEvent<'_>) -> Result<(), Error> + Send + Sync>;

/// Whether a thread is summarised when it is long, or in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionMode {
    /// When a trigger is met.
    Automatic,
    /// In any case: the host asks for it (MW-SUM-9).
    Forced,
}

/// The middleware.
pub struct Summarization {
    config: SummarizationConfig,
    triggers: Vec<Trigger>,
    keep: KeepEnd,
    estimate: TokenEstimate,
    provider: Option<String>,
    /// Whom to ask, in order; `None` is the run's model as it is.
    candidates: Vec<Option<OtherModel>>,
    hooks: Vec<CompactionHook>,
    /// By run.
    attempts: Remembered<Arc<str>, Attempts>,
}

#[derive(Clone, Copy, Debug)]
enum Trigger {
    Messages(u64),
    Tokens(u64),
}

/// How far a run has come with asking.
#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    /// Place of the model that is being asked.
    asking: usize,
    /// Calls that failed since the last summary of the run.
    failed: u32,
}

impl Summarization {
    /// The middleware, by the section `summarization`, whether or not it is enabled there. `hooks` run in order before
    /// messages leave.
    ///
    /// # Errors
    /// `OutOfRange` for a size that is none, `AssemblyInvalid` for a fraction of a model of which it is not known how much
    /// it can read; both with the path in the section.
    pub fn new(
        config: SummarizationConfig,
        models: SummaryModels,
        hooks: Vec<CompactionHook>,
    ) -> Result<Self, Error> {
        let limit = models.max_input_tokens;
        let triggers = config.trigger.iter().enumerate();
        let triggers = triggers
            .map(|(place, size)| {
                let end = resolve(
                    *size,
                    limit,
                    &format!("trigger{}", config.trigger.path(place)),
                )?;
                Ok(match end {
                    KeepEnd::Messages(count) => Trigger::Messages(count),
                    KeepEnd::Tokens(tokens) => Trigger::Tokens(tokens),
                })
            })
            .collect::<Result<_, Error>>()?;
        let mut candidates: Vec<Option<OtherModel>> = Vec::new();
        if let Some(configured) = models.configured {
            candidates.push(Some(configured));
        }
        let names = |it: &Option<OtherModel>| it.as_ref().map(|model| model.name.clone());
        if !candidates.iter().any(|it| names(it) == names(&models.run)) {
            candidates.push(models.run);
        }
        Ok(Summarization {
            triggers,
            keep: resolve(config.keep, limit, "keep")?,
            estimate: TokenEstimate::for_provider(models.provider.as_deref()),
            provider: models.provider,
            candidates,
            hooks,
            attempts: Remembered::new(),
            config,
        })
    }

    /// The middleware of an agent that names it with settings: the run's model writes the summaries. With `"enabled": false` it
    /// does nothing.
    ///
    /// # Errors
    /// Those of [`Summarization::new`], and `Unsupported` for a `model_name`: names are those of a configuration with models,
    /// which such an agent does not have.
    pub fn outright(mut config: SummarizationConfig) -> Result<Self, Error> {
        if config.model_name.is_some() {
            let text = "the run's model writes the summaries of an agent that is not a lead agent";
            return Err(Error::at(ErrorCode::Unsupported, "/model_name", text));
        }
        if config.enabled == Some(false) {
            config.trigger = Triggers::default();
        }
        Summarization::new(config, SummaryModels::default(), Vec::new())
    }

    /// What a summary would do to a thread; `None` when there is nothing to summarise, or no trigger is met.
    pub fn compaction(&self, state: View<'_>, mode: CompactionMode) -> Option<Compaction> {
        let previous = state.channel(Channel::SummaryText);
        let previous = previous.and_then(Value::as_str);
        let previous = previous.filter(|text| !text.is_empty());
        if mode == CompactionMode::Automatic && !self.is_triggered(state, previous) {
            return None;
        }
        let transcript = state.transcript();
        let parts = divide(&transcript, self.keep, |message| self.estimate.of(message))?;
        Some(Compaction {
            parts,
            previous: previous.map(str::to_owned),
        })
    }

    /// What to ask whom for the summary of a compaction. `attempt` counts from 0; the summary itself where there is nothing
    /// to ask; `None` when nobody is left to ask.
    pub fn ask(&self, compaction: &Compaction, attempt: usize) -> Option<SummaryStep> {
        let prompt = SummaryPrompt {
            template: self.config.summary_prompt.as_ref(),
            budget: self.config.trim_tokens_to_summarize,
            estimate: self.estimate,
        };
        let model = self.candidates.get(attempt)?;
        let input = prompt.ask(&compaction.parts.removed, compaction.previous.as_deref());
        Some(match input {
            SummaryInput::Fixed(text) => SummaryStep::Fixed(text),
            SummaryInput::Ask(text) => SummaryStep::Ask(Question::new(text, model.clone())),
        })
    }

    /// Whether the thread is long enough (MW-SUM-1).
    fn is_triggered(&self, state: View<'_>, previous: Option<&str>) -> bool {
        let met = |trigger: &Trigger| match *trigger {
            Trigger::Messages(count) => state.len() as u64 + u64::from(previous.is_some()) >= count,
            Trigger::Tokens(tokens) => {
                self.reported(state)
                    .is_some_and(|reported| reported >= tokens)
                    || self.estimated(state, previous) >= tokens
            }
        };
        self.triggers.iter().any(met)
    }

    fn estimated(&self, state: View<'_>, previous: Option<&str>) -> u64 {
        let summary = previous.map_or(0, |text| self.estimate.of_text(text, SUMMARY));
        self.estimate.of_all(&state.transcript()) + summary
    }

    /// The tokens that the newest reply says it took, if it came from the model's provider.
    fn reported(&self, state: View<'_>) -> Option<u64> {
        let mut messages = state.messages().rev();
        let ai = messages
            .find(|message| message.kind() == Kind::Ai)?
            .fields();
        let provider = ai.response_metadata.get("model_provider");
        if provider.and_then(Value::as_str) != self.provider.as_deref() {
            return None;
        }
        ai.usage_metadata.get("total_tokens")?.as_u64()
    }

    fn before_model(&self, context: &HookContext<'_>) -> HookOutput {
        let run = context.run;
        let mut attempts = self.attempts.get(execution_key(run)).unwrap_or_default();
        if context.answer.is_none() {
            attempts.asking = 0;
            if self.triggers.is_empty() || attempts.failed >= MAX_FAILED_CALLS {
                return HookOutput::Continue;
            }
        }
        let Some(compaction) = self.compaction(context.state, CompactionMode::Automatic) else {
            return HookOutput::Continue;
        };
        if let Some(answer) = context.reply() {
            if let Some(summary) = summary_of(answer) {
                self.attempts.forget(execution_key(run));
                return self.finish(&compaction, &summary, run);
            }
            attempts.failed += 1;
            attempts.asking += 1;
        }
        let next = self.ask(&compaction, attempts.asking);
        self.attempts.set(execution_key(run).clone(), attempts);
        match next {
            Some(SummaryStep::Fixed(summary)) => self.finish(&compaction, summary, run),
            Some(SummaryStep::Ask(question)) => {
                HookOutput::Await(Effect::CallModel(Box::new(question)))
            }
            None => {
                let text = "the thread is long, and no model could summarise it; it stays as it is";
                run.signals.warn(Warning::SummaryFailed, text);
                HookOutput::Continue
            }
        }
    }

    fn finish(&self, compaction: &Compaction, summary: &str, run: &RunFacts) -> HookOutput {
        let named =
            |facts: &Map<String, Value>| Some(facts.get("agent_name")?.as_str()?.to_owned());
        let agent_name = named(&run.context).or_else(|| named(&run.configurable));
        compaction.tell(
            &self.hooks,
            &run.thread_id,
            agent_name.as_deref(),
            |error| {
                let signals = &run.signals;
                signals.warn(Warning::CompactionHookFailed, error.message);
            },
        );
        HookOutput::Update(compaction.update(summary))
    }
}

impl Middleware for Summarization {
    fn name(&self) -> &str {
        "summarization"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_model: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let size = |size: &ContextSize| match size.kind {
            ContextSizeKind::Messages => json!(["messages", size.value as u64]),
            ContextSizeKind::Tokens => json!(["tokens", size.value as u64]),
            ContextSizeKind::Fraction => json!(["fraction", size.value]),
        };
        let triggers: Vec<Value> = self.config.trigger.iter().map(size).collect();
        let prompt = self.config.summary_prompt.as_ref();
        let model = self.candidates.first().and_then(Option::as_ref);
        Map::from_iter([
            ("trigger".to_owned(), triggers.into()),
            ("keep".to_owned(), size(&self.config.keep)),
            (
                "trim_tokens_to_summarize".to_owned(),
                self.config.trim_tokens_to_summarize.into(),
            ),
            (
                "summary_prompt_hash".to_owned(),
                text_hash(prompt.map_or(PROMPT, OperatorText::as_str)).into(),
            ),
            ("summary_model".to_owned(), model.map(|it| &*it.name).into()),
        ])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        Ok(match hook {
            Hook::BeforeModel => self.before_model(context),
            _ => HookOutput::Continue,
        })
    }
}

/// The next thing to do for a summary.
#[derive(Clone, Debug)]
pub enum SummaryStep {
    /// Ask this.
    Ask(Question),
    /// There is nothing to ask; this is the summary.
    Fixed(&'static str),
}

/// The summary in an answer; `None` when the model failed or said nothing (Z4).
pub fn summary_of(answer: &Result<ModelReply, ModelError>) -> Option<String> {
    let text = content_text(&answer.as_ref().ok()?.content);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What a summary does to a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    parts: Parts,
    previous: Option<String>,
}

impl Compaction {
    /// The messages that leave; never empty.
    pub fn removed(&self) -> &[Message] {
        &self.parts.removed
    }

    /// The messages that stay.
    pub fn kept(&self) -> &[Message] {
        &self.parts.kept
    }

    /// Tells hooks of it, all of them, and `failed` of those that fail.
    pub fn tell(
        &self,
        hooks: &[CompactionHook],
        thread_id: &str,
        agent_name: Option<&str>,
        failed: impl Fn(Error),
    ) {
        let event = CompactionEvent {
            removed: &self.parts.removed,
            kept: &self.parts.kept,
            thread_id,
            agent_name,
        };
        let failures = hooks.iter().filter_map(|hook| hook(&event).err());
        failures.for_each(failed);
    }

    /// The write of a run: what stays after a removal of all, and the summary in place of the one before, which is part of it
    /// (MW-SUM-7).
    pub fn update(&self, summary: &str) -> StateUpdate {
        let mut remove_all = Fields::new(Kind::Remove, "");
        remove_all.id = Some(REMOVE_ALL_MESSAGES.to_owned());
        let mut messages = vec![Message::new(remove_all)];
        messages.extend(self.parts.kept.iter().cloned());
        StateUpdate::messages(messages).and(Channel::SummaryText, Write::Value(summary.into()))
    }
}

/// A size in messages or tokens.
fn resolve(size: ContextSize, limit: Option<u64>, member: &str) -> Result<KeepEnd, Error> {
    let path = format!("/{member}");
    let ContextSize { kind, value } = size;
    let is_size = match kind {
        ContextSizeKind::Fraction => value > 0.0 && value <= 1.0,
        ContextSizeKind::Messages | ContextSizeKind::Tokens => value >= 1.0,
    };
    if !is_size {
        let text = "a fraction must be above 0 and at most 1, anything else at least 1";
        return Err(Error::at(ErrorCode::OutOfRange, path, text));
    }
    Ok(match kind {
        ContextSizeKind::Messages => KeepEnd::Messages(value as u64),
        ContextSizeKind::Tokens => KeepEnd::Tokens(value as u64),
        ContextSizeKind::Fraction => {
            let limit = limit.ok_or_else(|| {
                Error::at(
                    ErrorCode::AssemblyInvalid,
                    path,
                    "a fraction needs a model of which it is known how much it can read; \
                     give its context_window, or a number of tokens or messages",
                )
            })?;
            KeepEnd::Tokens(((limit as f64 * value) as u64).max(1))
        }
    })
}
