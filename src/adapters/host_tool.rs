//! A tool that the host runs: the call goes out as a host call, the answer comes back as the tool's outcome.

use std::future::pending;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::ports::call_key::call_key;
use crate::ports::host::{
    AnswerCheck, HostCall, HostCallKind, HostReply, RunContext, until_cancelled,
};
use crate::ports::host_answer::tool_answer;
use crate::ports::signals::Halt;
use crate::ports::tool::{
    McpOrigin, McpRouting, Tool, ToolInvocation, ToolOrigin, ToolOutcome, ToolSpec,
};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::host_tool::{HostToolConfig, McpRoutingMode, McpToolConfig};

/// How long the host has unless the configuration says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(600);

/// A tool of the host.
#[derive(Debug)]
pub struct HostTool {
    spec: ToolSpec,
    origin: ToolOrigin,
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
                parameters: Value::Object(parameters).into(),
            },
            origin: config
                .mcp
                .map_or(ToolOrigin::Host, |mcp| ToolOrigin::Mcp(mcp_origin(mcp))),
            deadline: config
                .deadline_ms
                .map_or(DEFAULT_DEADLINE, Duration::from_millis),
            return_direct: config.return_direct,
        }
    }
}

fn mcp_origin(config: McpToolConfig) -> McpOrigin {
    // Only what is preferred for certain words takes part (TL-17).
    let routing = config
        .routing
        .filter(|routing| routing.mode == McpRoutingMode::Prefer && !routing.keywords.is_empty());
    McpOrigin {
        server: config.server,
        transport: config.transport,
        routing: routing.map(|routing| McpRouting {
            priority: u8::try_from(routing.priority.clamp(0, 100)).unwrap_or(100),
            keywords: routing.keywords,
        }),
    }
}

impl Tool for HostTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn origin(&self) -> &ToolOrigin {
        &self.origin
    }

    fn return_direct(&self) -> bool {
        self.return_direct
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let idempotency_key = call_key(&invocation);
        let ToolInvocation {
            call_id,
            name,
            args,
            run,
            ..
        } = invocation;
        let args = serde_json::to_string(&args).expect("a JSON object always serialises");
        let opened = run.host.open(HostCall {
            kind: HostCallKind::Tool,
            name,
            args,
            deadline: self.deadline,
            idempotency_key,
            tool_call_id: Some(call_id.clone()),
            also: AnswerCheck::default(),
        });
        let mut handle = match opened {
            Ok(handle) => handle,
            Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
            Err(error) if error.code == ErrorCode::QueueClosed => {
                return given_up(&run, &call_id, error).await;
            }
            Err(error) => return ToolOutcome::Failed(error.message),
        };
        loop {
            match handle.next().await {
                Ok(HostReply::Emitted(value)) => {
                    if let Some(room) = run.host.emit_custom(&call_id, value) {
                        room.await;
                    }
                }
                Ok(HostReply::Answered(value)) => {
                    return match tool_answer(value) {
                        Ok(answer) => ToolOutcome::Answer(answer),
                        Err(error) => ToolOutcome::Failed(error.message),
                    };
                }
                Ok(HostReply::Refused(refusal)) => return ToolOutcome::Failed(refusal.message),
                Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
                Err(error) if error.code == ErrorCode::QueueClosed => {
                    return given_up(&run, &call_id, error).await;
                }
                Err(error) if error.code == ErrorCode::DeadlineExceeded => {
                    let seconds = self.deadline.as_secs_f64();
                    return ToolOutcome::Failed(format!("no answer within {seconds} s"));
                }
                Err(error) => return ToolOutcome::Failed(error.message),
            }
        }
    }
}

/// Ends the run, which nobody hears any more. The call stays open, so that a later run makes it.
async fn given_up(run: &RunContext, call_id: &str, error: Error) -> ToolOutcome {
    run.facts.signals.halt(call_id, Halt::Failed(error));
    pending().await
}

/// Checks a tool's answer when the host hands it in, so that the host hears of a mistake at once and can mend it.
///
/// # Errors
/// Those of decoding, with the path in the answer.
pub fn check_answer(value: &Value) -> Result<(), Error> {
    let is_plain = match value {
        Value::Object(members) => !members.contains_key("content") || members.len() == 1,
        _ => true,
    };
    if is_plain {
        return Ok(());
    }
    tool_answer(value.clone()).map(|_| ())
}
