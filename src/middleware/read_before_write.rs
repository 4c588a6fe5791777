//! Lets an agent change a file only after it has read the file as it is now.
//!
//! A result of `read_file` is marked with the hash of the whole file. `write_file` and `str_replace` run on a file that is there
//! only when the newest mark of its path in the thread has the hash of now. Writes make no marks, so that a second write needs
//! another read, and a read that leaves the thread takes its permission along. What cannot be looked at is not guarded: tools of
//! a host that keep their files elsewhere work as if this were not there. Inside of what runs a tool again or audits it,
//! outside of what classifies results.
//!
//! Source: DeerFlow `ReadBeforeWriteMiddleware`, MW-RBW, SBX-10. The hash is taken before the tool reads: if the file changes
//! meanwhile, the agent has to read again.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::agent_path::{READ_FILE, STR_REPLACE, WRITE_FILE, normalized};
use super::tool_result_class::{ERROR_PREFIX, of_answer, stamp};
use super::turns::Turns;
use super::{Hooks, Middleware, NextTool};
use crate::ports::BoxFuture;
use crate::ports::host::RunContext;
use crate::ports::sandbox::Sandbox;
use crate::ports::thread_files::ThreadFiles;
use crate::ports::tool::{ToolAnswer, ToolInvocation, ToolOutcome};
use crate::protocol::hash::sha256;
use crate::protocol::message::{Kind, Message, ToolStatus};
use crate::state::channels::Channel;

/// Where the mark of a read stands in the message of its result: `{path, hash}`, the path without `.` and `..`, the hash that
/// of the whole file, SHA-256 in hex (MW-RBW-1).
pub const READ_MARK: &str = "deerflow_read_mark";

/// Where agents see the directories that [`ThreadFiles`] has.
const USER_DATA: &str = "/mnt/user-data/";
/// Larger files are not looked at, and so not guarded.
const MAX_BYTES: u64 = 64 << 20;
/// Most characters of a path in what the model is told.
const PATH_CHARS: usize = 500;

/// The middleware.
pub struct ReadBeforeWrite {
    files: Files,
    turns: FileTurns,
}

/// Turns at files: of the calls for one file of a thread one is at work at a time, from the look at the file to the end of the
/// tool. Clones share them: an agent and its subagents, which work on the same files, have the same turns.
#[derive(Clone, Debug)]
pub struct FileTurns(Turns<(Scope, String)>);

impl Default for FileTurns {
    fn default() -> Self {
        FileTurns(Turns::new())
    }
}

/// Where files can be looked at.
struct Files {
    thread_files: Option<Arc<dyn ThreadFiles>>,
    sandbox: Option<Arc<dyn Sandbox>>,
}

/// Whose files they are (MW-RBW-4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Scope {
    Thread(Arc<str>),
    Sandbox(String),
    Global,
}

/// What a call does to a file.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
}

impl ReadBeforeWrite {
    /// The middleware. Files are looked at through `thread_files` where these are what the agent's tools see, else through
    /// the `sandbox`; without both every call runs as it is.
    pub fn new(
        thread_files: Option<Arc<dyn ThreadFiles>>,
        sandbox: Option<Arc<dyn Sandbox>>,
    ) -> Self {
        ReadBeforeWrite {
            files: Files {
                thread_files,
                sandbox,
            },
            turns: FileTurns::default(),
        }
    }

    /// The same with turns that it shares with whoever works on the same files.
    pub fn taking(self, turns: FileTurns) -> Self {
        ReadBeforeWrite { turns, ..self }
    }
}

impl Files {
    fn are_seen(&self) -> bool {
        self.thread_files.is_some() || self.sandbox.is_some()
    }

    /// The hash of a file as it is now: `Ok(None)` when there is no file, `Err` when that cannot be told.
    async fn hash(&self, run: &Arc<RunContext>, path: &str) -> Result<Option<String>, Unknown> {
        let is_mounted = match &self.sandbox {
            None => true,
            Some(sandbox) => sandbox.has_host_mounts() && path.starts_with(USER_DATA),
        };
        let text = match (&self.thread_files, &self.sandbox) {
            (Some(files), _) if is_mounted => {
                let thread = run.thread_id.to_string();
                let content = files.read(thread, path.to_owned(), MAX_BYTES).await;
                let Some(content) = content.map_err(|_| Unknown)? else {
                    return Ok(None);
                };
                if content.size > MAX_BYTES || content.head.len() as u64 != content.size {
                    return Err(Unknown);
                }
                String::from_utf8(content.head).map_err(|_| Unknown)?
            }
            (_, Some(sandbox)) => {
                let id = sandbox.acquire(run.clone()).await.map_err(|_| Unknown)?;
                let read = sandbox.read_file(run.clone(), id, path.to_owned()).await;
                match read.map_err(|_| Unknown)? {
                    None => return Ok(None),
                    Some(text) => text,
                }
            }
            _ => return Err(Unknown),
        };
        // How sandboxes say that they cannot read.
        if text.starts_with(ERROR_PREFIX) {
            return Err(Unknown);
        }
        Ok(Some(sha256(&text)))
    }
}

/// A file could not be looked at.
struct Unknown;

impl Middleware for ReadBeforeWrite {
    fn name(&self) -> &str {
        "read_before_write"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_tool_call: self.files.are_seen(),
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        Map::from_iter([("guards".to_owned(), self.files.are_seen().into())])
    }

    fn reads(&self) -> &[Channel] {
        match self.files.are_seen() {
            true => &[Channel::Messages, Channel::Sandbox],
            false => &[],
        }
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        let Some((access, path)) = access(&invocation) else {
            return next.run(invocation);
        };
        Box::pin(async move {
            let run = invocation.run.clone();
            let _turn = self.turns.0.turn((scope(&invocation), path.clone())).await;
            let hash = self.files.hash(&run, &path).await;
            match (access, hash) {
                (Access::Write, Ok(Some(hash)))
                    if newest_mark(invocation.reads.messages(), &path) != Some(&hash) =>
                {
                    ToolOutcome::Answer(refusal(&invocation.name, &path))
                }
                (Access::Read, Ok(Some(hash))) => {
                    let mut outcome = next.run(invocation).await;
                    if let ToolOutcome::Answer(answer) = &mut outcome {
                        mark(answer, &path, &hash);
                    }
                    outcome
                }
                _ => next.run(invocation).await,
            }
        })
    }
}

/// What a call does to which file; `None` when it is no such call, or says of no file.
fn access(invocation: &ToolInvocation) -> Option<(Access, String)> {
    let access = match &*invocation.name {
        READ_FILE => Access::Read,
        WRITE_FILE | STR_REPLACE => Access::Write,
        _ => return None,
    };
    let path = invocation.args.get("path")?.as_str()?;
    (!path.trim().is_empty()).then(|| (access, normalized(path)))
}

fn scope(invocation: &ToolInvocation) -> Scope {
    if !invocation.run.thread_id.is_empty() {
        return Scope::Thread(invocation.run.thread_id.clone());
    }
    let sandbox = invocation.reads.get(Channel::Sandbox);
    let id = sandbox.and_then(|sandbox| sandbox.get("sandbox_id")?.as_str());
    id.map_or(Scope::Global, |id| Scope::Sandbox(id.to_owned()))
}

/// Marks the result of a read, unless it says that the read failed.
fn mark(answer: &mut ToolAnswer, path: &str, hash: &str) {
    let says_error = match &answer.content {
        Value::String(text) => text.starts_with(ERROR_PREFIX),
        _ => false,
    };
    if answer.status == ToolStatus::Success && !says_error {
        let mark = json!({"path": path, "hash": hash});
        answer.additional_kwargs.insert(READ_MARK.into(), mark);
    }
}

/// The hash of the newest read of a file.
fn newest_mark<'a>(messages: &'a [Message], path: &str) -> Option<&'a str> {
    messages.iter().rev().find_map(|message| {
        // Most messages are not decoded.
        if message.kind() != Kind::Tool || !message.json().contains(READ_MARK) {
            return None;
        }
        let mark = message.fields().additional_kwargs.get(READ_MARK)?;
        (mark.get("path")? == path).then_some(mark.get("hash")?.as_str()?)
    })
}

fn refusal(tool: &str, path: &str) -> ToolAnswer {
    const ADVICE: &str =
        "it was not read as it is now. Read it with read_file first, then change it.";
    let shown: String = path.chars().take(PATH_CHARS).collect();
    let mut kwargs = Map::new();
    // The words of a path say nothing about the error.
    let content = Value::String(format!("{ERROR_PREFIX} {ADVICE}"));
    stamp(&mut kwargs, || of_answer(tool, ToolStatus::Error, &content));
    ToolAnswer {
        content: format!("{ERROR_PREFIX} {tool} did not change {shown}: {ADVICE}").into(),
        status: ToolStatus::Error,
        additional_kwargs: kwargs,
        ..ToolAnswer::default()
    }
}
