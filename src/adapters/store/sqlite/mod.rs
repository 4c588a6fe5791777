//! Threads in one SQLite file.
//!
//! Messages are stored once; a checkpoint is a small row that names what changed, see [`schema`](self). One `put` is one
//! transaction with one sync of the write-ahead log, and what it writes does not depend on the length of the thread. The log is
//! moved into the file by the writer whenever it has a thousand pages.
//!
//! Any number of stores and processes may use one file at the same time, as long as they all reach it through this
//! library's SQLite or another process: two copies of SQLite in one process break each other's file locks. Network file
//! systems are not supported.

mod connections;
mod errors;
mod read;
mod rows;
mod schema;
mod write;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use self::connections::Connections;
use crate::ports::checkpoint::{
    CheckpointMeta, CheckpointStore, HistoryQuery, NewCheckpoint, PendingWrite, StoredCheckpoint,
};
use crate::protocol::error::Error;
use crate::state::delta::StateDelta;

pub use self::schema::{APPLICATION_ID, VERSION};
pub use crate::adapters::offload::Offload;

/// Keeps threads in one SQLite file.
///
/// A future that is dropped leaves either the whole call or nothing of it: with [`Offload::Pool`] a call that has begun is
/// finished.
#[derive(Debug)]
pub struct SqliteStore {
    connections: Arc<Connections>,
    offload: Offload,
}

/// How long a call waits for other processes before it fails with a retryable error.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(10);

impl SqliteStore {
    /// A store in the file at `path`, which is made when it is first used; its folder must exist. Does no I/O.
    /// A relative path means the working directory of now.
    pub fn new(path: impl Into<PathBuf>, offload: Offload) -> Self {
        SqliteStore::with_patience(path, offload, DEFAULT_PATIENCE)
    }

    /// Like [`SqliteStore::new`], with a limit for how long a call waits for other processes.
    pub fn with_patience(path: impl Into<PathBuf>, offload: Offload, patience: Duration) -> Self {
        let path = path.into();
        // Absolute, so that a host that changes directory keeps its threads, and so that no name is special to SQLite.
        let path = std::path::absolute(&path).unwrap_or(path);
        SqliteStore {
            connections: Arc::new(Connections::new(path, patience)),
            offload,
        }
    }

    /// Opens the file now, so that a wrong path shows before the first thread needs it.
    ///
    /// # Errors
    /// `Store` when the file cannot be opened or belongs to another program, `Unsupported` when a newer version wrote it,
    /// `StoreCorrupt` when it is damaged.
    pub async fn prepare(&self) -> Result<(), Error> {
        self.run(|connections| connections.prepare()).await
    }

    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connections) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let connections = self.connections.clone();
        self.offload.run(move || job(&connections)).await
    }
}

impl CheckpointStore for SqliteStore {
    async fn open(&self, thread_id: &str) -> Result<Option<StoredCheckpoint>, Error> {
        let thread_id = checked(thread_id)?;
        self.run(move |connections| connections.read(|tx| read::state(tx, &thread_id, None)))
            .await
    }

    async fn load(&self, thread_id: &str, id: Uuid) -> Result<Option<StoredCheckpoint>, Error> {
        let thread_id = checked(thread_id)?;
        self.run(move |connections| connections.read(|tx| read::state(tx, &thread_id, Some(id))))
            .await
    }

    async fn put(&self, thread_id: &str, checkpoint: NewCheckpoint) -> Result<(), Error> {
        let thread_id = checked(thread_id)?;
        self.run(move |connections| connections.write(|tx| write::put(tx, &thread_id, &checkpoint)))
            .await
    }

    async fn list(
        &self,
        thread_id: &str,
        query: HistoryQuery,
    ) -> Result<Vec<CheckpointMeta>, Error> {
        let thread_id = checked(thread_id)?;
        self.run(move |connections| connections.read(|tx| read::list(tx, &thread_id, query)))
            .await
    }

    async fn deltas(
        &self,
        thread_id: &str,
        after: Uuid,
        upto: Uuid,
    ) -> Result<Option<Vec<StateDelta>>, Error> {
        let thread_id = checked(thread_id)?;
        self.run(move |connections| {
            connections.read(|tx| read::deltas(tx, &thread_id, after, upto))
        })
        .await
    }

    async fn put_writes(
        &self,
        thread_id: &str,
        checkpoint: Uuid,
        writes: Vec<PendingWrite>,
    ) -> Result<(), Error> {
        let thread_id = checked(thread_id)?;
        self.run(move |connections| {
            connections.write(|tx| write::put_writes(tx, &thread_id, checkpoint, &writes))
        })
        .await
    }

    async fn writes(&self, thread_id: &str, checkpoint: Uuid) -> Result<Vec<PendingWrite>, Error> {
        let thread_id = checked(thread_id)?;
        self.run(move |connections| connections.read(|tx| read::writes(tx, &thread_id, checkpoint)))
            .await
    }

    async fn delete(&self, thread_id: &str) -> Result<(), Error> {
        let thread_id = checked(thread_id)?;
        self.run(move |connections| connections.write(|tx| write::delete(tx, &thread_id)))
            .await
    }
}

fn checked(thread_id: &str) -> Result<String, Error> {
    super::check_thread_id(thread_id)?;
    Ok(thread_id.to_owned())
}
