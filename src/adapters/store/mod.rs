//! Checkpoint stores: memory for threads that live as long as the process, SQLite for threads in one file.
//!
//! To add a store, implement [`CheckpointStore`](crate::ports::checkpoint::CheckpointStore) here and add it to the list
//! of the suite in `tests/stores`. The rules that every store shares are in this file.

#[cfg(feature = "sqlite")]
mod codec;
pub mod memory;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use uuid::Uuid;

use crate::ports::checkpoint::{CheckpointMeta, Source};
use crate::protocol::error::{Error, ErrorCode};

/// Longest id of a thread, in bytes. Any UTF-8 up to this length is an id, U+0000 included; ids are compared byte for
/// byte.
pub const MAX_THREAD_ID_BYTES: usize = 1024;

/// Refuses ids that are too long.
fn check_thread_id(thread_id: &str) -> Result<(), Error> {
    if thread_id.len() <= MAX_THREAD_ID_BYTES {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::OutOfRange,
        format!(
            "the thread id has {} bytes, more than {MAX_THREAD_ID_BYTES}",
            thread_id.len()
        ),
    ))
}

/// Decides whether a checkpoint may be added to a thread whose newest checkpoint is `newest`. `parent_exists` says
/// whether the parent that it names is stored.
///
/// Ids must grow, because stores find checkpoints by the order of their ids: whoever makes an id starts from the newest
/// one, so that a clock that was set back does no harm.
fn admit(meta: &CheckpointMeta, newest: Option<Uuid>, parent_exists: bool) -> Result<(), Error> {
    if let Some(parent) = meta.parent
        && !parent_exists
    {
        // Only a fork names its parent; everything else follows what its writer took for the newest.
        return Err(match meta.source {
            Source::Fork => unknown_checkpoint(parent),
            _ => stale("another writer deleted the thread"),
        });
    }
    // A fork without a parent starts the thread anew and keeps what there was.
    if meta.parent != newest && meta.source != Source::Fork {
        return Err(stale("another writer added a checkpoint to the thread"));
    }
    match newest {
        Some(newest) if meta.id <= newest => Err(Error::new(
            ErrorCode::Conflict,
            format!(
                "checkpoint ids of a thread must grow, and {} does not follow {newest}",
                meta.id
            ),
        )),
        _ => Ok(()),
    }
}

fn unknown_checkpoint(id: Uuid) -> Error {
    Error::new(
        ErrorCode::UnknownCheckpoint,
        format!("the thread has no checkpoint {id}"),
    )
}

fn stale(what: &str) -> Error {
    Error::new(ErrorCode::ThreadStale, what)
}

/// A number of the delta belongs to another message already: its writer had not seen the newest state of the thread.
fn taken_number() -> Error {
    stale("another writer gave a message number of this checkpoint to another message")
}
