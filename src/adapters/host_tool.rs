//! A tool that the host runs: the call goes out as a host call, the answer comes back as the tool's outcome.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::ports::host::{HostCall, HostCallKind, HostReply};
use crate::ports::tool::{Tool, ToolAnswer, ToolInvocation, ToolOutcome, ToolSpec};
use crate::protocol::config::HostToolConfig;
use crate::protocol::error::ErrorCode;
use crate::state::update::StateUpdate;

/// How long the host has unless the configuration says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(600);

/// A tool of the host.
#[derive(Debug)]
pub struct HostTool {
    spec: ToolSpec,
    deadline: Duration,
    return_direct: bool,
}

impl HostTool {
    /// A tool as configured.
    pub fn new(config: HostToolConfig) -> Self {
        let parameters = config.parameters.unwrap_or_else(|| {
            let mut schema = Map::new();
            schema.insert("type".into(), "object".into());
            schema.insert("properties".into(), Value::Object(Map::new()));
            schema
        });
        HostTool {
            spec: ToolSpec {
                name: config.name,
                description: config.description,
                parameters: Value::Object(parameters),
            },
            deadline: config
                .deadline_ms
                .map_or(DEFAULT_DEADLINE, Duration::from_millis),
            return_direct: config.return_direct,
        }
    }
}

impl Tool for HostTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn return_direct(&self) -> bool {
        self.return_direct
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let ToolInvocation {
            call_id,
            name,
            args,
            run,
        } = invocation;
        let args = serde_json::to_string(&args).expect("a JSON object always serialises");
        let opened = run.host.open(HostCall {
            kind: HostCallKind::Tool,
            name,
            args,
            deadline: self.deadline,
            idempotency_key: format!("{}/{call_id}", run.run_id),
        });
        let mut handle = match opened {
            Ok(handle) => handle,
            Err(error) => return ToolOutcome::Failed(error.message),
        };
        loop {
            match handle.next().await {
                Ok(HostReply::Emitted(value)) => run.host.emit_custom(&call_id, value),
                Ok(HostReply::Answered(value)) => return answer(value),
                Ok(HostReply::Refused(message)) => return ToolOutcome::Failed(message),
                Err(error) if error.code == ErrorCode::DeadlineExceeded => {
                    let seconds = self.deadline.as_secs_f64();
                    return ToolOutcome::Failed(format!("no answer within {seconds} s"));
                }
                Err(error) => return ToolOutcome::Failed(error.message),
            }
        }
    }
}

/// Reads `{"content": …, "artifact"?: …, "update"?: {…}, "end_run"?: bool}`; any other value is the content itself.
fn answer(value: Value) -> ToolOutcome {
    let mut map = match value {
        Value::Object(map) if map.contains_key("content") => map,
        other => {
            return ToolOutcome::Answer(ToolAnswer {
                content: content(other),
                ..ToolAnswer::default()
            });
        }
    };
    let update = match map.shift_remove("update") {
        None | Some(Value::Null) => None,
        Some(update) => match StateUpdate::decode(update) {
            Ok(update) => Some(update),
            Err(error) => {
                let path = error.path.unwrap_or_default();
                return ToolOutcome::Failed(format!(
                    "bad update at /ok/update{path}: {}",
                    error.message
                ));
            }
        },
    };
    ToolOutcome::Answer(ToolAnswer {
        content: content(map.shift_remove("content").unwrap_or(Value::Null)),
        artifact: map.shift_remove("artifact").unwrap_or(Value::Null),
        update,
        end_run: map.shift_remove("end_run") == Some(Value::Bool(true)),
    })
}

/// Text and lists of content blocks stay; anything else becomes its JSON text, as a model reads text.
fn content(value: Value) -> Value {
    let is_blocks = |items: &Vec<Value>| {
        items.iter().all(|item| match item {
            Value::String(_) => true,
            Value::Object(block) => block.contains_key("type"),
            _ => false,
        })
    };
    match value {
        Value::String(text) => Value::String(text),
        Value::Null => Value::String(String::new()),
        Value::Array(items) if is_blocks(&items) => Value::Array(items),
        other => Value::String(other.to_string()),
    }
}
