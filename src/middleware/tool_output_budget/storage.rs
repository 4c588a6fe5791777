//! Where an output goes that is too long: to the files of the thread on this machine, or into its sandbox (MW-TOB-2).

use std::sync::Arc;

use crate::ports::host::RunContext;
use crate::ports::sandbox::Sandbox;
use crate::ports::thread_files::ThreadFiles;
use crate::protocol::error::{Error, ErrorCode};

/// The place that the agent's tools see as `/mnt/user-data`.
pub(super) enum Storage {
    /// There is none.
    Nowhere,
    /// Directories of this machine.
    Host(Arc<dyn ThreadFiles>),
    /// A sandbox with files of its own.
    Sandbox(Arc<dyn Sandbox>),
}

impl Storage {
    /// A sandbox that has the directories of this machine mounted, and one that has not, see different files.
    pub(super) fn of(
        thread_files: Option<Arc<dyn ThreadFiles>>,
        sandbox: Option<Arc<dyn Sandbox>>,
    ) -> Self {
        match (sandbox, thread_files) {
            (Some(sandbox), Some(files)) if sandbox.has_host_mounts() => Storage::Host(files),
            (Some(sandbox), _) => Storage::Sandbox(sandbox),
            (None, Some(files)) => Storage::Host(files),
            (None, None) => Storage::Nowhere,
        }
    }

    /// What a policy calls it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Storage::Nowhere => "none",
            Storage::Host(_) => "thread_files",
            Storage::Sandbox(_) => "sandbox",
        }
    }

    /// Writes a file; the id of the sandbox that it is in, if it is in one. A file in a sandbox is read back, since what
    /// answers there may be anything.
    ///
    /// # Errors
    /// Whatever keeps the file from being there.
    pub(super) async fn write(
        &self,
        run: &Arc<RunContext>,
        path: &str,
        text: &str,
    ) -> Result<Option<String>, Error> {
        match self {
            Storage::Nowhere => Err(Error::new(
                ErrorCode::Unsupported,
                "there is no place for files",
            )),
            Storage::Host(files) => {
                let thread = run.thread_id.to_string();
                files
                    .write(thread, path.to_owned(), text.to_owned())
                    .await?;
                Ok(None)
            }
            Storage::Sandbox(sandbox) => {
                let id = sandbox.acquire(run.clone()).await?;
                let (at, text) = (path.to_owned(), text.to_owned());
                sandbox
                    .write_file(run.clone(), id.clone(), at, text)
                    .await?;
                let at = path.to_owned();
                let found = sandbox.read_file(run.clone(), id.clone(), at).await?;
                match found.is_some_and(|text| !text.is_empty()) {
                    true => Ok(Some(id)),
                    false => Err(Error::new(
                        ErrorCode::Store,
                        "the file is not there after it was written",
                    )),
                }
            }
        }
    }
}
