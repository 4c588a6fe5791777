//! What a host is told when it is asked as a middleware: the `args` of the host call. Bounded by the configuration, and made
//! only where somebody is asked.

use std::time::Duration;

use serde_json::Value;

use crate::ports::call_key::call_key;
use crate::ports::host::{AnswerCheck, HostCall, HostCallKind, RunFacts};
use crate::ports::model::ModelRequest;
use crate::ports::tool::{ToolInvocation, ToolOutcome};
use crate::protocol::canonical_json::text_hash;
use crate::protocol::host_middleware::Point;
use crate::protocol::json::{push_number, push_quoted, push_value};
use crate::protocol::message::{Message, ToolStatus};
use crate::protocol::trust::SystemText;
use crate::state::channels::Channel;

/// A question to the host on its way: the JSON text so far, and the rest of the call.
pub(super) struct Question<'a> {
    /// Where it is asked.
    pub(super) point: Point,
    /// Name of the middleware.
    pub(super) name: &'a str,
    /// The run.
    pub(super) run: &'a RunFacts,
    /// How long the host has.
    pub(super) timeout: Duration,
    args: String,
}

impl<'a> Question<'a> {
    pub(super) fn new(point: Point, name: &'a str, run: &'a RunFacts, timeout: Duration) -> Self {
        let mut args = String::with_capacity(512);
        args.push_str("{\"hook\":\"");
        args.push_str(point.hook().name());
        args.push('"');
        if let Some(phase) = point.phase() {
            args.push_str(",\"phase\":\"");
            args.push_str(phase);
            args.push('"');
        }
        args.push_str(",\"run_id\":");
        push_quoted(&mut args, &run.run_id);
        args.push_str(",\"thread_id\":");
        push_quoted(&mut args, &run.thread_id);
        Question {
            point,
            name,
            run,
            timeout,
            args,
        }
    }

    /// The values of channels that are there.
    pub(super) fn channels<'v>(
        mut self,
        channels: &[Channel],
        value: impl Fn(Channel) -> Option<&'v Value>,
    ) -> Self {
        if channels.is_empty() {
            return self;
        }
        self.args.push_str(",\"channels\":{");
        let mut is_first = true;
        for channel in channels {
            let Some(value) = value(*channel) else {
                continue;
            };
            if !std::mem::take(&mut is_first) {
                self.args.push(',');
            }
            push_quoted(&mut self.args, channel.name());
            self.args.push(':');
            push_value(&mut self.args, value);
        }
        self.args.push('}');
        self
    }

    /// How many messages there are, and the newest of them.
    pub(super) fn messages<'m>(
        mut self,
        count: usize,
        newest: impl Iterator<Item = &'m Message>,
    ) -> Self {
        self.args.push_str(",\"message_count\":");
        push_number(&mut self.args, count as u64);
        self.args.push_str(",\"messages\":[");
        for (place, message) in newest.enumerate() {
            if place > 0 {
                self.args.push(',');
            }
            self.args.push_str(message.json());
        }
        self.args.push(']');
        self
    }

    /// What else there is to know of a model's request.
    pub(super) fn request(mut self, request: &ModelRequest) -> Self {
        self.args.push_str(",\"tools\":[");
        for (place, tool) in request.tools.iter().enumerate() {
            if place > 0 {
                self.args.push(',');
            }
            push_quoted(&mut self.args, &tool.name);
        }
        self.args.push_str("],\"system_hash\":");
        match request.system.as_ref().map(SystemText::as_str) {
            Some(text) => push_quoted(&mut self.args, &text_hash(text)),
            None => self.args.push_str("null"),
        }
        self
    }

    /// The tool call.
    pub(super) fn call(mut self, invocation: &ToolInvocation) -> Self {
        self.args.push_str(",\"message_id\":");
        push_quoted(&mut self.args, &invocation.message_id);
        self.args.push_str(",\"call\":{\"id\":");
        push_quoted(&mut self.args, &invocation.call_id);
        self.args.push_str(",\"name\":");
        push_quoted(&mut self.args, &invocation.name);
        self.args.push_str(",\"args\":{");
        for (place, (name, value)) in invocation.args.iter().enumerate() {
            if place > 0 {
                self.args.push(',');
            }
            push_quoted(&mut self.args, name);
            self.args.push(':');
            push_value(&mut self.args, value);
        }
        self.args.push_str("}}");
        self
    }

    /// What became of the call.
    pub(super) fn result(mut self, outcome: &ToolOutcome) -> Self {
        self.args.push_str(",\"result\":{\"content\":");
        let status = match outcome {
            ToolOutcome::Answer(answer) => {
                match &answer.content {
                    Value::Null => self.args.push_str("\"\""),
                    content => push_value(&mut self.args, content),
                }
                if !answer.artifact.is_null() {
                    self.args.push_str(",\"artifact\":");
                    push_value(&mut self.args, &answer.artifact);
                }
                answer.status
            }
            ToolOutcome::Failed(reason) => {
                push_quoted(&mut self.args, reason);
                ToolStatus::Error
            }
        };
        self.args.push_str(match status {
            ToolStatus::Success => ",\"status\":\"success\"}",
            ToolStatus::Error => ",\"status\":\"error\"}",
        });
        self
    }

    /// The host call about a hook or a model call. `turn` tells one from the next within a run, or within an execution of a
    /// subagent.
    pub(super) fn about_turn(self, turn: usize) -> HostCall {
        let subagent = self.run.subagent.as_ref();
        let execution = subagent.map_or_else(String::new, |it| format!("/{}", it.execution_id));
        let key = format!(
            "{}{execution}/middleware/{}/{}/{turn}",
            self.run.run_id,
            self.name,
            self.point.hook().name()
        );
        self.into_call(None, key)
    }

    /// The host call about a tool call. Like that of the tool itself, its key is the same in a later run that asks again.
    pub(super) fn about_call(self, invocation: &ToolInvocation) -> HostCall {
        let key = format!(
            "{}/middleware/{}/{}",
            call_key(invocation),
            self.name,
            self.point.phase().unwrap_or_default()
        );
        self.into_call(Some(invocation.call_id.clone()), key)
    }

    fn into_call(self, tool_call_id: Option<String>, idempotency_key: String) -> HostCall {
        let mut args = self.args;
        args.push('}');
        HostCall {
            kind: HostCallKind::Middleware(self.point),
            name: self.name.to_owned(),
            args,
            tool_call_id,
            deadline: self.timeout,
            idempotency_key,
            also: AnswerCheck::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::stage::{execution, run_as};

    #[test]
    fn what_executions_of_a_run_ask_is_told_apart_by_its_key() {
        let key = |run: &RunFacts| {
            let question = Question::new(Point::ModelCall, "m", run, Duration::ZERO);
            question.about_turn(2).idempotency_key
        };
        assert_eq!(key(&run_as("t", "r")), "r/middleware/m/wrap_model_call/2");
        let of_subagent = "r/e1/middleware/m/wrap_model_call/2";
        assert_eq!(key(&execution("t", "r", "e1")), of_subagent);
    }
}
