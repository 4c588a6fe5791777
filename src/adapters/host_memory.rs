//! The memory that the host has: what a run said goes out as a host call of the kind `memory`, named `add`. Its args are
//! `user_id`, `agent_name` (null for the agent without a record), `thread_id`, `trace_id` and `messages` in canonical form;
//! the host takes them in, answers null and remembers later.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::ports::BoxFuture;
use crate::ports::host::{
    AnswerCheck, HostCall, HostCallKind, HostReply, RunContext, until_cancelled,
};
use crate::ports::memory_policy::MemoryAccess;
use crate::ports::memory_queue::{MemoryQueue, MemoryTurn};
use crate::protocol::decode::wrong_type;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::trust::Identifier;

/// How long the host has: it only has to take the turn in, and a run waits for it at its end.
const DEADLINE: Duration = Duration::from_secs(10);

/// The host as a memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostMemory;

impl MemoryQueue for HostMemory {
    fn asks_host(&self) -> bool {
        true
    }

    fn enqueue(
        &self,
        run: Arc<RunContext>,
        access: MemoryAccess,
        turn: MemoryTurn,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let opened = run.host.open(HostCall {
                kind: HostCallKind::Memory,
                name: "add".to_owned(),
                args: args(&run, &access, &turn),
                tool_call_id: None,
                deadline: DEADLINE,
                idempotency_key: format!("{}/memory/add", run.run_id),
                also: AnswerCheck::default(),
            });
            let mut handle = match opened {
                Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
                opened => opened?,
            };
            loop {
                match handle.next().await {
                    Err(error) if error.code == ErrorCode::Closed => {
                        return until_cancelled().await;
                    }
                    Err(error) => return Err(error),
                    Ok(HostReply::Emitted(_)) => {}
                    Ok(HostReply::Answered(value)) => return check_answer(&value),
                    Ok(HostReply::Refused(refusal)) => {
                        let text: String = refusal.message.chars().take(2000).collect();
                        return Err(Error::new(ErrorCode::Store, text));
                    }
                }
            }
        })
    }
}

fn args(run: &RunContext, access: &MemoryAccess, turn: &MemoryTurn) -> String {
    let facts = json!({
        "user_id": access.user().as_str(),
        "agent_name": access.agent().map(Identifier::as_str),
        "thread_id": &*run.thread_id,
        "trace_id": turn.trace_id,
    });
    let mut text = facts.to_string();
    text.pop();
    text.push_str(",\"messages\":[");
    for (place, message) in turn.messages.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(message.json());
    }
    text.push_str("]}");
    text
}

/// Checks an answer when the host hands it in.
///
/// # Errors
/// `WrongType` for anything but null.
pub fn check_answer(value: &Value) -> Result<(), Error> {
    match value {
        Value::Null => Ok(()),
        other => Err(wrong_type(other, "null")),
    }
}
