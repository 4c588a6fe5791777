//! The checkpoint port: where threads live between runs.
//!
//! A store keeps each message once per thread and lets checkpoints refer to it. A checkpoint's delta belongs to the
//! checkpoint that it leads to, so that any two branches of a thread read exactly. `open` and `load` answer whole states.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::BoxFuture;
use crate::protocol::error::Error;
use crate::protocol::time::Timestamp;
use crate::state::delta::{Seq, StateDelta, StoredState};

/// Why a checkpoint was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The input of a run.
    Input,
    /// A step of a run.
    Loop,
    /// A write from outside a run.
    Update,
    /// A branch from an older checkpoint.
    Fork,
}

impl Source {
    /// Name in JSON and in stores.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Input => "input",
            Source::Loop => "loop",
            Source::Update => "update",
            Source::Fork => "fork",
        }
    }

    /// The source of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Source::Input, Source::Loop, Source::Update, Source::Fork]
            .into_iter()
            .find(|source| source.name() == name)
    }
}

/// What a checkpoint is, without the state.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointMeta {
    /// UUIDv6; ids of a thread only ever grow.
    pub id: Uuid,
    /// The checkpoint this one follows; `None` for the first.
    pub parent: Option<Uuid>,
    /// -1 for the input of a fresh thread, then counting up along the lineage.
    pub step: i64,
    /// Why it was taken.
    pub source: Source,
    /// When.
    pub at: Timestamp,
    /// The run that took it.
    pub run_id: Option<Arc<str>>,
    /// What the writer adds; without secrets.
    pub metadata: Map<String, Value>,
}

/// A write that a task of a step has finished, kept on the checkpoint that the step started from until the step's own
/// checkpoint exists (LG-26).
#[derive(Clone, Debug, PartialEq)]
pub struct PendingWrite {
    /// The task: the id of the tool call, or the name of the node.
    pub task_id: String,
    /// Position among the task's writes.
    pub index: i32,
    /// Channel, or one of the reserved names of interrupts and errors.
    pub channel: String,
    /// JSON text of the value.
    pub value: String,
}

/// One checkpoint to store: what it is, and what changed against its parent.
#[derive(Clone, Debug)]
pub struct NewCheckpoint {
    /// What it is.
    pub meta: CheckpointMeta,
    /// What changed.
    pub delta: StateDelta,
    /// The thread's next message number once this checkpoint is stored.
    pub next_seq: Seq,
}

/// A stored checkpoint with its state.
#[derive(Clone, Debug)]
pub struct StoredCheckpoint {
    /// What it is.
    pub meta: CheckpointMeta,
    /// The state at this checkpoint; `next_seq` is the thread's.
    pub state: StoredState,
}

/// Which checkpoints of a thread to list, newest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// At most so many; `None` for all.
    pub limit: Option<usize>,
    /// Only checkpoints older than this one.
    pub before: Option<Uuid>,
}

/// Keeps the checkpoints of threads. Every call is atomic; a call that returned `Ok` is on disk for durable stores.
pub trait CheckpointStore: Send + Sync + 'static {
    /// The newest checkpoint of a thread; `None` when the thread has none.
    ///
    /// # Errors
    /// `Store` when the store cannot be read, `StoreCorrupt` when what it holds makes no sense. So for every call.
    fn open(
        &self,
        thread_id: &str,
    ) -> impl Future<Output = Result<Option<StoredCheckpoint>, Error>> + Send;

    /// One checkpoint with its state; `None` when there is none of this id.
    fn load(
        &self,
        thread_id: &str,
        id: Uuid,
    ) -> impl Future<Output = Result<Option<StoredCheckpoint>, Error>> + Send;

    /// Adds a checkpoint, and drops the pending writes of its parent. `meta.parent` must be stored already, and it must
    /// be the newest checkpoint of the thread unless `meta.source` is `Fork`.
    ///
    /// # Errors
    /// Also `ThreadStale` when the parent is not the newest checkpoint, or is not there any more (another writer was
    /// there); `UnknownCheckpoint` for a fork whose parent does not exist. Nothing is stored then.
    fn put(
        &self,
        thread_id: &str,
        checkpoint: NewCheckpoint,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Lists checkpoints, newest first.
    fn list(
        &self,
        thread_id: &str,
        query: HistoryQuery,
    ) -> impl Future<Output = Result<Vec<CheckpointMeta>, Error>> + Send;

    /// The deltas that lead from checkpoint `after` (excluded) to `upto` (included), oldest first; `None` when `after`
    /// is not an ancestor of `upto`.
    fn deltas(
        &self,
        thread_id: &str,
        after: Uuid,
        upto: Uuid,
    ) -> impl Future<Output = Result<Option<Vec<StateDelta>>, Error>> + Send;

    /// Adds pending writes to a checkpoint; a write of the same task and index replaces the earlier one.
    fn put_writes(
        &self,
        thread_id: &str,
        checkpoint: Uuid,
        writes: Vec<PendingWrite>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The pending writes of a checkpoint, by task and index.
    fn writes(
        &self,
        thread_id: &str,
        checkpoint: Uuid,
    ) -> impl Future<Output = Result<Vec<PendingWrite>, Error>> + Send;

    /// Forgets a thread.
    fn delete(&self, thread_id: &str) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Declares the erased twin of [`CheckpointStore`] and its blanket implementation.
macro_rules! dyn_store {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)+) => {
        /// The erased twin of [`CheckpointStore`].
        pub trait DynCheckpointStore: Send + Sync + 'static {
            $($(#[$doc])* fn $name<'a>(&'a self, $($arg: $ty),*) -> BoxFuture<'a, Result<$out, Error>>;)+
        }
        impl<S: CheckpointStore> DynCheckpointStore for S {
            $(fn $name<'a>(&'a self, $($arg: $ty),*) -> BoxFuture<'a, Result<$out, Error>> {
                Box::pin(CheckpointStore::$name(self, $($arg),*))
            })+
        }
    };
}

dyn_store! {
    /// See [`CheckpointStore::open`].
    fn open(thread_id: &'a str) -> Option<StoredCheckpoint>;
    /// See [`CheckpointStore::load`].
    fn load(thread_id: &'a str, id: Uuid) -> Option<StoredCheckpoint>;
    /// See [`CheckpointStore::put`].
    fn put(thread_id: &'a str, checkpoint: NewCheckpoint) -> ();
    /// See [`CheckpointStore::list`].
    fn list(thread_id: &'a str, query: HistoryQuery) -> Vec<CheckpointMeta>;
    /// See [`CheckpointStore::deltas`].
    fn deltas(thread_id: &'a str, after: Uuid, upto: Uuid) -> Option<Vec<StateDelta>>;
    /// See [`CheckpointStore::put_writes`].
    fn put_writes(thread_id: &'a str, checkpoint: Uuid, writes: Vec<PendingWrite>) -> ();
    /// See [`CheckpointStore::writes`].
    fn writes(thread_id: &'a str, checkpoint: Uuid) -> Vec<PendingWrite>;
    /// See [`CheckpointStore::delete`].
    fn delete(thread_id: &'a str) -> ();
}
