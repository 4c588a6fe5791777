//! The events of one run, as the host sees them.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::fmt::Hyphenated;

use super::logs::Logs;
use super::queue::{Body, EventSource, Queue, Weight};
use super::run::RunShared;
use super::task_events::TaskEvents;
use crate::agent::step::Note;
use crate::ports::checkpoint::CheckpointMeta;
use crate::ports::clock::Clock;
use crate::ports::host::HostCall;
use crate::ports::model::{FailedAttempt, ModelDelta, NextAttempt, Usage};
use crate::ports::signals::AuditRecord;
use crate::protocol::json::{push_number, push_quoted, push_value, quote};
use crate::protocol::run::{RunRequest, StreamMode};
use crate::protocol::time::Timestamp;
use crate::protocol::warning::Warning;
use crate::state::update::{StateUpdate, Write};

/// Which kinds of events a run sends besides control events.
#[derive(Clone, Copy, Debug)]
struct Modes {
    values: bool,
    updates: bool,
    messages: bool,
    custom: bool,
}

/// Sends the events of one run to its queue.
pub struct RunEvents {
    queue: Option<Arc<Queue>>,
    source: Arc<EventSource>,
    clock: Arc<dyn Clock>,
    logs: Arc<Logs>,
    run: Arc<RunShared>,
    modes: Modes,
    /// Of a subagent's run: what its agent's host hears of it.
    task: Option<Arc<TaskEvents>>,
}

impl RunEvents {
    /// For a run that was asked for by `request`.
    pub fn new(
        queue: Option<Arc<Queue>>,
        clock: Arc<dyn Clock>,
        logs: Arc<Logs>,
        run: Arc<RunShared>,
        request: &RunRequest,
    ) -> Self {
        RunEvents {
            queue,
            source: Arc::new(EventSource::run(&run.run_id, &run.thread_id)),
            clock,
            logs,
            run,
            modes: Modes {
                values: request.streams(StreamMode::Values),
                updates: request.streams(StreamMode::Updates),
                messages: request.streams(StreamMode::Messages),
                custom: request.streams(StreamMode::Custom),
            },
            task: None,
        }
    }

    /// For the run of a subagent: it asks the host and warns it like any other, on the queue of the run that delegates and with
    /// the id of the `task` call in the envelope. What it writes is told by `task_running` alone.
    pub fn of_task(task: Arc<TaskEvents>, run: Arc<RunShared>) -> Self {
        let parent = task.parent();
        RunEvents {
            queue: parent.queue.clone(),
            source: Arc::new(EventSource::task(
                &parent.source,
                &run.run_id,
                &run.thread_id,
                task.task_id(),
            )),
            clock: parent.clock.clone(),
            logs: parent.logs.clone(),
            run,
            modes: Modes {
                values: false,
                updates: false,
                messages: false,
                custom: parent.modes.custom,
            },
            task: Some(task),
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What tells the time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The queue, if anybody listens.
    pub fn queue(&self) -> Option<&Arc<Queue>> {
        self.queue.as_ref()
    }

    /// Whether anybody sees deltas of replies.
    pub fn streams_messages(&self) -> bool {
        self.queue.is_some() && self.modes.messages
    }

    /// Whether anybody sees what nodes write.
    pub fn wants_notes(&self) -> bool {
        match &self.task {
            Some(task) => task.wants_steps(),
            None => self.queue.is_some() && (self.modes.messages || self.modes.updates),
        }
    }

    /// Whether anybody sees the steps of the run's subagents.
    pub fn streams_steps(&self) -> bool {
        self.queue.is_some() && (self.modes.messages || self.modes.custom)
    }

    /// Whether anybody sees whole states.
    pub fn wants_values(&self) -> bool {
        self.queue.is_some() && self.modes.values
    }

    /// `run_start`: the first event of a run.
    pub fn run_start(&self, recursion_limit: u32) {
        if self.task.is_some() {
            return;
        }
        self.json("run_start", Weight::Control, || {
            format!("{{\"recursion_limit\":{recursion_limit}}}")
        });
    }

    /// `message_delta`: a piece of a reply.
    pub fn delta(&self, message_id: &Arc<str>, delta: ModelDelta) {
        let merging = |member, text| {
            let body = Body::Delta {
                message_id: message_id.clone(),
                member,
                text,
            };
            self.push("message_delta", Weight::Ordinary, body);
        };
        match delta {
            ModelDelta::Text(text) => merging("text", text),
            ModelDelta::Reasoning(text) => merging("reasoning", text),
            ModelDelta::ToolCall {
                index,
                id,
                name,
                args,
            } => {
                self.json("message_delta", Weight::Ordinary, || {
                    let mut text = String::with_capacity(160 + args.len());
                    text.push_str("{\"message_id\":");
                    push_quoted(&mut text, message_id);
                    text.push_str(",\"tool_call\":{\"index\":");
                    push_number(&mut text, index.into());
                    text.push_str(",\"id\":");
                    push_or_null(&mut text, id.as_deref());
                    text.push_str(",\"name\":");
                    push_or_null(&mut text, name.as_deref());
                    text.push_str(",\"args\":");
                    push_quoted(&mut text, &args);
                    text.push_str("}}");
                    text
                });
            }
        }
    }

    /// `model_attempt`: an attempt of a model call failed. Only failed ones are told of: that one began needs no event, and
    /// that it succeeded is told by the message.
    pub fn model_attempt(&self, message_id: Option<&str>, failed: &FailedAttempt<'_>) {
        self.json("model_attempt", Weight::Control, || {
            let (next, wait_ms, next_model) = match failed.next {
                NextAttempt::Retry(wait) => ("retry", Some(wait.as_millis() as u64), None),
                NextAttempt::Fallback(model) => ("fallback", None, Some(model)),
                NextAttempt::Nothing => ("none", None, None),
            };
            json!({
                "message_id": message_id, "model": failed.model,
                "attempt": failed.attempt, "max_attempts": failed.max_attempts,
                "reason": failed.reason.name(), "error": failed.error.payload(),
                "next": next, "wait_ms": wait_ms, "next_model": next_model,
            })
            .to_string()
        });
    }

    /// `stream_reset`: the deltas of this message so far are void.
    pub fn stream_reset(&self, message_id: &str) {
        self.json("stream_reset", Weight::Control, || {
            format!("{{\"message_id\":{}}}", quote(message_id))
        });
    }

    /// `message` for each message that a node wrote, then `update` with all of the node's writes.
    pub fn notes(&self, notes: Vec<Note>) {
        if let Some(task) = &self.task {
            return task.steps(&notes);
        }
        for Note { node, update } in notes {
            if self.modes.messages {
                for message in update.typed_messages() {
                    self.json("message", Weight::Ordinary, || {
                        let message = message.json();
                        let mut text = String::with_capacity(message.len() + node.len() + 32);
                        text.push_str("{\"node\":");
                        push_quoted(&mut text, &node);
                        text.push_str(",\"message\":");
                        text.push_str(message);
                        text.push('}');
                        text
                    });
                }
            }
            if self.modes.updates {
                self.json("update", Weight::Ordinary, || {
                    let messages: usize = update
                        .typed_messages()
                        .map(|message| message.json().len() + 1)
                        .sum();
                    let mut text = String::with_capacity(messages + node.len() + 64);
                    text.push_str("{\"node\":");
                    push_quoted(&mut text, &node);
                    text.push_str(",\"update\":");
                    push_update(&mut text, &update);
                    text.push('}');
                    text
                });
            }
        }
    }

    /// `middleware`: a middleware did something that is worth a record.
    pub fn middleware(&self, record: &AuditRecord) {
        self.json("middleware", Weight::Control, || {
            json!({"tag": record.tag, "action": record.action, "changes": record.changes})
                .to_string()
        });
    }

    /// `usage`: tokens of one reply, and of the run so far.
    pub fn usage(&self, message_id: &str, usage: &Usage, total: &Usage) {
        if let Some(task) = &self.task {
            return task.count(usage);
        }
        self.json("usage", Weight::Ordinary, || {
            json!({
                "message_id": message_id, "usage": usage.to_value(), "total": total.to_value(),
            })
            .to_string()
        });
    }

    /// Tokens of a model call of a middleware. They count for a delegation, whose usage is that of all calls (SUB-54).
    pub fn side_usage(&self, usage: &Usage) {
        if let Some(task) = &self.task {
            task.count(usage);
        }
    }

    /// `values`: the whole state.
    pub fn values(&self, values: &str) {
        self.json("values", Weight::Ordinary, || {
            ["{\"values\":", values, "}"].concat()
        });
    }

    /// Tells that a delegation of the run began or ended.
    pub fn task(&self, kind: &'static str, data: impl FnOnce() -> String) {
        self.json(kind, Weight::Control, data);
    }

    /// `task_running`: a step of a subagent.
    pub fn task_running(&self, data: impl FnOnce() -> String) {
        self.json("task_running", Weight::Ordinary, data);
    }

    /// `goal`: a goal is judged, or something came of that.
    pub fn goal(&self, data: impl FnOnce() -> Value) {
        self.json("goal", Weight::Control, || data().to_string());
    }

    /// `checkpoint`: a step is stored.
    pub fn checkpoint(&self, meta: &CheckpointMeta) {
        self.json("checkpoint", Weight::Ordinary, || {
            let mut id = [0; Hyphenated::LENGTH];
            let mut text = String::with_capacity(160);
            text.push_str("{\"checkpoint_id\":\"");
            text.push_str(meta.id.hyphenated().encode_lower(&mut id));
            text.push_str("\",\"parent_checkpoint_id\":");
            match meta.parent {
                Some(parent) => {
                    text.push('"');
                    text.push_str(parent.hyphenated().encode_lower(&mut id));
                    text.push('"');
                }
                None => text.push_str("null"),
            }
            text.push_str(",\"step\":");
            if meta.step < 0 {
                text.push('-');
            }
            push_number(&mut text, meta.step.unsigned_abs());
            text.push_str(",\"source\":\"");
            text.push_str(meta.source.name());
            text.push_str("\"}");
            text
        });
    }

    /// `host_call`: a question to the host.
    pub fn host_call(&self, call_id: u64, call: &HostCall) {
        self.json("host_call", Weight::Control, || {
            let mut text = String::with_capacity(call.args.len() + 256);
            text.push_str("{\"call_id\":");
            push_number(&mut text, call_id);
            text.push_str(",\"kind\":\"");
            text.push_str(call.kind.name());
            text.push_str("\",\"name\":");
            push_quoted(&mut text, &call.name);
            text.push_str(",\"args\":");
            text.push_str(&call.args);
            text.push_str(",\"tool_call_id\":");
            push_or_null(&mut text, call.tool_call_id.as_deref());
            text.push_str(",\"deadline_ms\":");
            push_number(
                &mut text,
                u64::try_from(call.deadline.as_millis()).unwrap_or(u64::MAX),
            );
            text.push_str(",\"idempotency_key\":");
            push_quoted(&mut text, &call.idempotency_key);
            text.push('}');
            text
        });
    }

    /// `host_call_cancelled`: an answer to this call is of no use any more.
    pub fn host_call_cancelled(&self, call_id: u64, reason: &str) {
        self.json("host_call_cancelled", Weight::Control, || {
            format!("{{\"call_id\":{call_id},\"reason\":\"{reason}\"}}")
        });
    }

    /// `custom`: what a tool emits while it runs.
    pub fn custom(&self, tool_call_id: &str, value: &Value) {
        if self.modes.custom {
            self.json("custom", Weight::Ordinary, || {
                format!(
                    "{{\"tool_call_id\":{},\"value\":{value}}}",
                    quote(tool_call_id)
                )
            });
        }
    }

    /// `run_end`: the last event of a run, with its result.
    pub fn run_end(&self, result: &str) {
        self.json("run_end", Weight::Control, || result.to_owned());
    }

    /// Warns whoever subscribed to `log` of something about this run.
    pub fn warn(&self, warning: Warning, message: impl FnOnce() -> String) {
        self.logs.warn(&self.run, warning, message);
    }

    fn json(&self, kind: &'static str, weight: Weight, data: impl FnOnce() -> String) {
        if self.queue.is_some() {
            self.push(kind, weight, Body::Json(data()));
        }
    }

    fn push(&self, kind: &'static str, weight: Weight, body: Body) {
        if let Some(queue) = &self.queue {
            queue.push(&self.source, kind, self.clock.now(), body, weight);
        }
    }
}

fn push_or_null(out: &mut String, text: Option<&str>) {
    match text {
        Some(text) => push_quoted(out, text),
        None => out.push_str("null"),
    }
}

fn push_update(text: &mut String, update: &StateUpdate) {
    text.push('{');
    for (place, (channel, write)) in update.writes.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        push_quoted(text, channel.name());
        text.push(':');
        match write {
            Write::Value(value) => push_value(text, value),
            Write::Overwrite(value) => {
                text.push_str("{\"__overwrite__\":");
                push_value(text, value);
                text.push('}');
            }
            Write::Messages(messages) => {
                text.push('[');
                for (place, message) in messages.iter().enumerate() {
                    if place > 0 {
                        text.push(',');
                    }
                    text.push_str(message.json());
                }
                text.push(']');
            }
        }
    }
    text.push('}');
}
