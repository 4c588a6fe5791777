//! The port to the files of a thread that stand on this machine: what its user uploaded, and what its agent works on and makes.

use super::BoxFuture;
use crate::protocol::error::Error;

/// Where a thread's files stand on this machine, as the channel `thread_data` has it (MW-THD-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPaths {
    /// What agents see as `/mnt/user-data/workspace`.
    pub workspace: String,
    /// What agents see as `/mnt/user-data/uploads`.
    pub uploads: String,
    /// What agents see as `/mnt/user-data/outputs`.
    pub outputs: String,
}

/// A file as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    /// Size of the whole file, in bytes.
    pub size: u64,
    /// Its first bytes, as many as were asked for.
    pub head: Vec<u8>,
}

/// The files of one user's threads.
///
/// Virtual paths are what agents see, below `/mnt/user-data/{workspace,uploads,outputs}`. Neither `..` nor a link leads out of
/// these three (SBX-15, UPL-2).
pub trait ThreadFiles: Send + Sync + 'static {
    /// Where the files of a thread stand. Touches no disk.
    ///
    /// # Errors
    /// `OutOfRange` when the id of the thread can be no name of a directory.
    fn paths(&self, thread_id: &str) -> Result<ThreadPaths, Error>;

    /// Makes the three directories of a thread.
    ///
    /// # Errors
    /// `Store` when that cannot be done.
    fn make_directories(&self, thread_id: String) -> BoxFuture<'_, Result<(), Error>>;

    /// The size of a file and at most its first `max_bytes` bytes. `None` when there is no regular file.
    ///
    /// # Errors
    /// `OutOfRange` for a path that leads elsewhere, `Store` when what is there cannot be read.
    fn read(
        &self,
        thread_id: String,
        virtual_path: String,
        max_bytes: u64,
    ) -> BoxFuture<'_, Result<Option<FileContent>, Error>>;

    /// Writes a file, whole or not at all, and makes the directories on the way to it.
    ///
    /// # Errors
    /// As [`ThreadFiles::read`].
    fn write(
        &self,
        thread_id: String,
        virtual_path: String,
        text: String,
    ) -> BoxFuture<'_, Result<(), Error>>;
}
