//! The sandbox that the host has: each thing asked of it goes out as a host call of the kind `sandbox`, named after what is
//! asked, and has a deadline.
//!
//! | name | args | `ok` |
//! | --- | --- | --- |
//! | `acquire` | `user_id`, `thread_id` | `{"sandbox_id": text}` |
//! | `release` | these and `sandbox_id` | null |
//! | `read_file` | these and `path` | `{"text": text}`, or null when there is no such file |
//! | `write_file` | these and `text` | null |

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ports::BoxFuture;
use crate::ports::host::{
    AnswerCheck, HostCall, HostCallKind, HostReply, RunContext, until_cancelled,
};
use crate::ports::sandbox::{Sandbox, SandboxOp};
use crate::protocol::decode::{from_value, wrong_type};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::user_id::UserId;

/// Longest id of a sandbox, in bytes.
const MAX_ID_BYTES: usize = 255;
/// Largest file that is taken, in bytes.
const MAX_FILE_BYTES: usize = 16 << 20;
/// A run that is at its end does not wait longer than this.
const MAX_RELEASE_DEADLINE: Duration = Duration::from_secs(10);

/// The host as a sandbox, for the threads of one user.
#[derive(Debug)]
pub struct HostSandbox {
    user: UserId,
    deadline: Duration,
    has_host_mounts: bool,
    /// How many calls there were: two questions in the same words are two questions.
    calls: AtomicU64,
}

impl HostSandbox {
    /// For `user`. `deadline` bounds each call; `has_host_mounts` as in [`Sandbox::has_host_mounts`].
    pub fn new(user: UserId, deadline: Duration, has_host_mounts: bool) -> Self {
        HostSandbox {
            user,
            deadline,
            has_host_mounts,
            calls: AtomicU64::new(0),
        }
    }

    /// Asks, and answers what stood under `ok`.
    async fn ask(
        &self,
        op: SandboxOp,
        run: &RunContext,
        more: &[(&str, &str)],
    ) -> Result<Value, Error> {
        let mut args = json!({"user_id": self.user.as_str(), "thread_id": &*run.thread_id});
        for (name, value) in more {
            args[*name] = (*value).into();
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let deadline = match op {
            SandboxOp::Release => self.deadline.min(MAX_RELEASE_DEADLINE),
            _ => self.deadline,
        };
        let opened = run.host.open(HostCall {
            kind: HostCallKind::Sandbox(op),
            name: op.name().to_owned(),
            args: args.to_string(),
            tool_call_id: None,
            deadline,
            idempotency_key: format!("{}/sandbox/{}/{number}", run.run_id, op.name()),
            also: AnswerCheck::default(),
        });
        let failed = |error: Error| Error {
            message: format!("the sandbox's {}: {}", op.name(), error.message),
            ..error
        };
        let mut handle = match opened {
            Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
            opened => opened.map_err(failed)?,
        };
        loop {
            match handle.next().await {
                Err(error) if error.code == ErrorCode::Closed => return until_cancelled().await,
                Err(error) => return Err(failed(error)),
                Ok(HostReply::Emitted(_)) => {}
                Ok(HostReply::Answered(value)) => return Ok(value),
                Ok(HostReply::Refused(refusal)) => {
                    let text: String = refusal.message.chars().take(2000).collect();
                    return Err(failed(Error::new(ErrorCode::Store, text)));
                }
            }
        }
    }
}

impl Sandbox for HostSandbox {
    fn acquire(&self, run: Arc<RunContext>) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move { acquired(self.ask(SandboxOp::Acquire, &run, &[]).await?) })
    }

    fn release(&self, run: Arc<RunContext>, id: String) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let more = [("sandbox_id", &*id)];
            nothing(&self.ask(SandboxOp::Release, &run, &more).await?)
        })
    }

    fn read_file(
        &self,
        run: Arc<RunContext>,
        id: String,
        path: String,
    ) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async move {
            let more = [("sandbox_id", &*id), ("path", &*path)];
            file(self.ask(SandboxOp::ReadFile, &run, &more).await?)
        })
    }

    fn write_file(
        &self,
        run: Arc<RunContext>,
        id: String,
        path: String,
        text: String,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let more = [("sandbox_id", &*id), ("path", &*path), ("text", &*text)];
            nothing(&self.ask(SandboxOp::WriteFile, &run, &more).await?)
        })
    }

    fn asks_host(&self) -> bool {
        true
    }

    fn has_host_mounts(&self) -> bool {
        self.has_host_mounts
    }
}

/// Checks an answer when the host hands it in, so that the host hears of a mistake at once and can mend it.
///
/// # Errors
/// Those of decoding, with the path in the answer; `OutOfRange` for an id or a file that is too long.
pub fn check_answer(op: SandboxOp, value: &Value) -> Result<(), Error> {
    match op {
        SandboxOp::Acquire => acquired(value.clone()).map(drop),
        SandboxOp::ReadFile => file(value.clone()).map(drop),
        SandboxOp::Release | SandboxOp::WriteFile => nothing(value),
    }
}

fn acquired(value: Value) -> Result<String, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Acquired {
        sandbox_id: String,
    }
    let Acquired { sandbox_id: id } = from_value(value)?;
    if id.trim().is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        return Err(Error::at(
            ErrorCode::OutOfRange,
            "/sandbox_id",
            format!("sandbox_id must be 1 to {MAX_ID_BYTES} bytes without control characters"),
        ));
    }
    Ok(id)
}

fn file(value: Value) -> Result<Option<String>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        text: String,
    }
    if value.is_null() {
        return Ok(None);
    }
    let File { text } = from_value(value)?;
    if text.len() > MAX_FILE_BYTES {
        let message = format!(
            "a file of {} bytes is more than {MAX_FILE_BYTES}",
            text.len()
        );
        return Err(Error::at(ErrorCode::OutOfRange, "/text", message));
    }
    Ok(Some(text))
}

fn nothing(value: &Value) -> Result<(), Error> {
    match value {
        Value::Null => Ok(()),
        other => Err(wrong_type(other, "null")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_checked_strictly() {
        use SandboxOp::{Acquire, ReadFile, Release, WriteFile};
        let long = "x".repeat(256);
        let refused = [
            (Acquire, json!(null), ""),
            (Acquire, json!("s1"), ""),
            (Acquire, json!({}), "/sandbox_id"),
            (Acquire, json!({"sandbox_id": 1}), "/sandbox_id"),
            (Acquire, json!({"sandbox_id": " "}), "/sandbox_id"),
            (Acquire, json!({"sandbox_id": "a\u{0}"}), "/sandbox_id"),
            (Acquire, json!({"sandbox_id": long}), "/sandbox_id"),
            (Acquire, json!({"sandbox_id": "s", "more": 1}), "/more"),
            (ReadFile, json!("text"), ""),
            (ReadFile, json!({"text": null}), "/text"),
            (
                ReadFile,
                json!({"text": "x".repeat(MAX_FILE_BYTES + 1)}),
                "/text",
            ),
            (Release, json!({}), ""),
            (Release, json!(true), ""),
            (WriteFile, json!("ok"), ""),
        ];
        for (op, answer, path) in refused {
            let error = check_answer(op, &answer).expect_err(op.name());
            assert_eq!(
                error.path.as_deref().unwrap_or(""),
                path,
                "{op:?}: {error:?}"
            );
        }
        for (op, answer) in [
            (Acquire, json!({"sandbox_id": "s"})),
            (ReadFile, json!(null)),
            (ReadFile, json!({"text": ""})),
            (Release, json!(null)),
            (WriteFile, json!(null)),
        ] {
            assert_eq!(check_answer(op, &answer), Ok(()), "{op:?}");
        }
    }
}
