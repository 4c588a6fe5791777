//! The sandbox port: where an agent's commands run and its files live, which may be another machine.

use std::sync::Arc;

use super::BoxFuture;
use super::host::RunContext;
use crate::protocol::error::Error;

/// What is asked of a sandbox that is somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SandboxOp {
    /// See [`Sandbox::acquire`].
    Acquire,
    /// See [`Sandbox::release`].
    Release,
    /// See [`Sandbox::read_file`].
    ReadFile,
    /// See [`Sandbox::write_file`].
    WriteFile,
}

impl SandboxOp {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            SandboxOp::Acquire => "acquire",
            SandboxOp::Release => "release",
            SandboxOp::ReadFile => "read_file",
            SandboxOp::WriteFile => "write_file",
        }
    }
}

/// Gives threads their sandboxes and reaches into them.
///
/// Nothing here waits for ever: an implementation gives up in the end, with an error. Paths are the agent's own, below `/mnt/user-data` and what else is mounted for it.
pub trait Sandbox: Send + Sync + 'static {
    /// The sandbox of the run's thread, made or woken if need be; the same thread gets the same while it is alive. Its id.
    ///
    /// # Errors
    /// Whatever keeps it from being there.
    fn acquire(&self, run: Arc<RunContext>) -> BoxFuture<'_, Result<String, Error>>;

    /// Gives a sandbox back. One that is unknown or was given back before is no error.
    ///
    /// # Errors
    /// When it cannot be reached.
    fn release(&self, run: Arc<RunContext>, id: String) -> BoxFuture<'_, Result<(), Error>>;

    /// A whole text file. `None` when there is none.
    ///
    /// # Errors
    /// When the sandbox cannot be reached, or what is there is no text file that can be read.
    fn read_file(
        &self,
        run: Arc<RunContext>,
        id: String,
        path: String,
    ) -> BoxFuture<'_, Result<Option<String>, Error>>;

    /// Replaces a text file, and makes the directories on the way to it.
    ///
    /// # Errors
    /// When the file may have another text now than the one given.
    fn write_file(
        &self,
        run: Arc<RunContext>,
        id: String,
        path: String,
        text: String,
    ) -> BoxFuture<'_, Result<(), Error>>;

    /// Whether `/mnt/user-data` in the sandbox is a directory of this machine, the one that [`super::thread_files`] reaches.
    fn has_host_mounts(&self) -> bool;

    /// Whether it asks the host, so that a run with it needs a queue.
    fn asks_host(&self) -> bool {
        false
    }
}
