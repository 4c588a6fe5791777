//! What a host hears of one delegation while it lasts: that it began, its steps, its end; and the tokens that it took.
//!
//! Source: the stream payloads of DeerFlow's `task` tool, SUB-49, SUB-50; its token records, SUB-54.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::events::RunEvents;
use super::sync::lock;
use crate::agent::step::Note;
use crate::ports::delegate::{DelegationCap, DelegationEnd, DelegationStatus};
use crate::ports::model::Usage;
use crate::protocol::json::{push_number, push_quoted, quote};
use crate::protocol::message::{Kind, Message};

/// Whom somebody ended, when a delegation was cancelled.
pub enum CancelledBy {
    /// It alone was, with this reason.
    Task(Option<String>),
    /// The run that delegates was, with this reason, or it let go of its calls.
    Run(Option<String>),
}

/// The events of one delegation.
pub struct TaskEvents {
    /// Those of the run that delegates, whose queue and numbers they share.
    parent: Arc<RunEvents>,
    task_id: Arc<str>,
    model_name: Option<String>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Ids of the messages that were told of.
    told: HashSet<String>,
    usage: Option<Usage>,
}

impl TaskEvents {
    /// Of a delegation that has not begun.
    pub fn new(parent: Arc<RunEvents>, task_id: Arc<str>, model_name: Option<String>) -> Self {
        TaskEvents {
            parent,
            task_id,
            model_name,
            progress: Mutex::default(),
        }
    }

    /// The `task` call.
    pub fn task_id(&self) -> &Arc<str> {
        &self.task_id
    }

    /// The model that works on it.
    pub fn model_name(&self) -> Option<&str> {
        self.model_name.as_deref()
    }

    /// The events of the run that delegates.
    pub fn parent(&self) -> &Arc<RunEvents> {
        &self.parent
    }

    /// Whether anybody sees steps.
    pub fn wants_steps(&self) -> bool {
        self.parent.streams_steps()
    }

    /// Tokens of all model calls so far; `None` when none were told of.
    pub fn usage(&self) -> Option<Usage> {
        lock(&self.progress).usage.clone()
    }

    /// Counts the tokens of a model call. A total that is missing is the sum; without tokens there is nothing to count (SUB-54).
    pub fn count(&self, usage: &Usage) {
        let mut usage = usage.clone();
        if usage.total_tokens == 0 {
            usage.total_tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        }
        if usage.total_tokens > 0 {
            lock(&self.progress)
                .usage
                .get_or_insert_default()
                .add(&usage);
        }
    }

    /// `task_started`: somebody is to do it; it may wait for a place yet.
    pub fn started(&self, subagent: &str, description: &str) {
        self.parent.task("task_started", || {
            self.data([
                ("subagent_type", subagent.into()),
                ("description", description.into()),
            ])
        });
    }

    /// `task_running` for each ai and tool message that was not told of (SUB-50).
    pub fn steps(&self, notes: &[Note]) {
        for message in notes.iter().flat_map(|note| note.update.typed_messages()) {
            if matches!(message.kind(), Kind::Ai | Kind::Tool) {
                self.step(message);
            }
        }
    }

    fn step(&self, message: &Message) {
        let (index, usage) = {
            let mut progress = lock(&self.progress);
            let id = message.id().unwrap_or(message.json());
            if !progress.told.insert(id.to_owned()) {
                return;
            }
            (progress.told.len(), progress.usage.clone())
        };
        self.parent.task_running(|| {
            let message = message.json();
            let mut text = String::with_capacity(message.len() + 192);
            text.push_str("{\"task_id\":");
            push_quoted(&mut text, &self.task_id);
            text.push_str(",\"message\":");
            text.push_str(message);
            text.push_str(",\"message_index\":");
            push_number(&mut text, index as u64);
            text.push_str(",\"total_messages\":");
            push_number(&mut text, index as u64);
            text.push_str(",\"usage\":");
            text.push_str(&usage_value(usage).to_string());
            text.push_str(",\"model_name\":");
            match &self.model_name {
                Some(name) => text.push_str(&quote(name)),
                None => text.push_str("null"),
            }
            text.push('}');
            text
        });
    }

    /// The event of the end. `cancelled_by` is asked where it was cancelled.
    pub fn ended(&self, end: &DelegationEnd, cancelled_by: impl Fn() -> CancelledBy) {
        let kind = match end.status {
            DelegationStatus::Completed => "task_completed",
            DelegationStatus::Failed => "task_failed",
            DelegationStatus::Cancelled => "task_cancelled",
            DelegationStatus::TimedOut => "task_timed_out",
        };
        self.parent.task(kind, || {
            let usage = usage_value(end.usage.clone());
            let error = ("error", json!(end.error));
            let cap = ("stop_reason", json!(end.cap.map(DelegationCap::name)));
            match end.status {
                DelegationStatus::Completed => {
                    self.data([("result", json!(end.result)), cap, ("usage", usage)])
                }
                DelegationStatus::Failed => self.data([error, cap, ("usage", usage)]),
                DelegationStatus::Cancelled => {
                    let (scope, reason) = match cancelled_by() {
                        CancelledBy::Task(reason) => ("task", reason),
                        CancelledBy::Run(reason) => ("run", reason),
                    };
                    let (scope, reason) = (("scope", scope.into()), ("reason", json!(reason)));
                    self.data([error, scope, reason, ("usage", usage)])
                }
                DelegationStatus::TimedOut => self.data([error, ("usage", usage)]),
            }
        });
    }

    fn data<const N: usize>(&self, members: [(&str, Value); N]) -> String {
        let mut data = Map::new();
        data.insert("task_id".to_owned(), (*self.task_id).into());
        data.extend(members.map(|(name, value)| (name.to_owned(), value)));
        data.insert("model_name".to_owned(), json!(self.model_name));
        Value::Object(data).to_string()
    }
}

fn usage_value(usage: Option<Usage>) -> Value {
    usage.map_or(Value::Null, |usage| usage.to_value())
}
