//! Writing: a checkpoint, pending writes, the end of a thread. Each runs inside one transaction of the caller.

use rusqlite::{Connection, params};
use serde_json::Value;
use uuid::Uuid;

use super::super::codec::delta::DeltaRefs;
use super::super::codec::message;
use super::super::codec::seq_list::MAX_SEQ;
use super::errors::failed;
use super::read::snapshot_at;
use super::rows::{self, Link, ThreadKey};
use crate::ports::checkpoint::{NewCheckpoint, PendingWrite};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::Message;
use crate::state::channels::Channel;
use crate::state::delta::Seq;

/// Deltas after which a checkpoint gets a snapshot, as long as the snapshot is small.
const SNAPSHOT_EVERY: u64 = 64;
/// A snapshot of so many bytes costs as much to read as one delta. A thread that was edited everywhere has a large one, and
/// gets it so much less often that what snapshots add to a checkpoint stays below this.
const SNAPSHOT_BYTES_A_DELTA: u64 = 16;

/// See `CheckpointStore::put`.
pub fn put(conn: &Connection, thread_id: &str, checkpoint: &NewCheckpoint) -> Result<(), Error> {
    let NewCheckpoint {
        meta,
        delta,
        next_seq,
    } = checkpoint;
    let known = ThreadKey::find(conn, thread_id)?;
    let newest = match known {
        Some(thread) => Link::newest(conn, thread)?,
        None => None,
    };
    let parent = match (known, &newest, meta.parent) {
        (Some(thread), Some(newest), Some(id)) => Link::find(conn, thread, newest, id)?,
        _ => None,
    };
    let newest_id = newest.as_ref().map(|newest| newest.id);
    super::super::admit(meta, newest_id, parent.is_some())?;
    let thread = match known {
        Some(thread) => thread,
        None => ThreadKey::add(conn, thread_id)?,
    };

    let given = newest.as_ref().map_or(0, |newest| newest.next_seq);
    let mut end = given.max(*next_seq);
    let messages = &delta.messages;
    let replaced = messages.replaced.iter().map(|(_, new, it)| (*new, it));
    let appended = messages.appended.iter().map(|(seq, it)| (*seq, it));
    for (seq, message) in replaced.chain(appended) {
        add_message(conn, thread, seq, message, given)?;
        end = end.max(seq + 1);
    }
    let ordinal = newest.map_or(0, |newest| newest.ordinal + 1);
    if ordinal >= MAX_SEQ || end > MAX_SEQ {
        return Err(full("messages or checkpoints"));
    }
    for (channel, value) in &delta.channels {
        set_channel(conn, thread.row(ordinal), *channel, value.as_ref())?;
    }

    let refs = DeltaRefs::of(delta);
    let mut link = Link {
        ordinal,
        id: meta.id,
        parent: parent.as_ref().map(|parent| parent.ordinal),
        base: parent.as_ref().and_then(|parent| parent.base),
        replay: parent.as_ref().map_or(0, |parent| parent.replay) + 1,
        next_seq: end,
    };
    if let Some(parent) = &parent {
        if is_snapshot_due(conn, thread, &link)? {
            let body = snapshot_at(conn, thread, parent, Some((ordinal, &refs)))?.encode();
            let sql = "INSERT INTO snapshots (key, body) VALUES (?1, ?2)";
            execute(conn, sql, params![thread.row(ordinal), body])?;
            (link.base, link.replay) = (Some(ordinal), 0);
        }
        let sql = "DELETE FROM writes WHERE checkpoint = ?1";
        execute(conn, sql, [thread.row(parent.ordinal)])?;
    }
    rows::add_checkpoint(conn, thread, &link, meta, &refs)
}

/// Stores a message under its number. A number below `given`, the thread's next one so far, may only name the message that
/// has it already.
fn add_message(
    conn: &Connection,
    thread: ThreadKey,
    seq: Seq,
    message: &Message,
    given: Seq,
) -> Result<(), Error> {
    if seq >= MAX_SEQ {
        return Err(full("messages"));
    }
    let key = thread.row(seq);
    let body = message::encode(message);
    if seq < given {
        let sql = "SELECT body = ?2 FROM messages WHERE key = ?1";
        match rows::one(conn, sql, params![key, body], |row| {
            row.get(0).map_err(failed)
        })? {
            Some(true) => return Ok(()),
            Some(false) => return Err(super::super::taken_number()),
            None => {}
        }
    }
    let sql = "INSERT INTO messages (key, body) VALUES (?1, ?2)";
    execute(conn, sql, params![key, body])
}

fn set_channel(
    conn: &Connection,
    checkpoint: i64,
    channel: Channel,
    value: Option<&Value>,
) -> Result<(), Error> {
    let Some(value) = value else {
        let sql = "DELETE FROM channels WHERE checkpoint = ?1 AND name = ?2";
        return execute(conn, sql, params![checkpoint, channel.name()]);
    };
    let text = serde_json::to_string(value).map_err(|error| {
        Error::new(ErrorCode::Internal, "a channel's value is no JSON").caused_by(error)
    })?;
    let sql = "INSERT OR REPLACE INTO channels (checkpoint, name, value) VALUES (?1, ?2, ?3)";
    execute(conn, sql, params![checkpoint, channel.name(), text])
}

/// Whether replaying from the last snapshot has become long for what a new one costs.
fn is_snapshot_due(conn: &Connection, thread: ThreadKey, link: &Link) -> Result<bool, Error> {
    if link.replay < SNAPSHOT_EVERY {
        return Ok(false);
    }
    let last = match link.base {
        Some(base) => rows::snapshot_bytes(conn, thread, base)?,
        None => 0,
    };
    Ok(link.replay.saturating_mul(SNAPSHOT_BYTES_A_DELTA) >= last)
}

/// See `CheckpointStore::put_writes`.
pub fn put_writes(
    conn: &Connection,
    thread_id: &str,
    checkpoint: Uuid,
    writes: &[PendingWrite],
) -> Result<(), Error> {
    let found = match ThreadKey::find(conn, thread_id)? {
        Some(thread) => match Link::newest(conn, thread)? {
            Some(newest) => {
                Link::find(conn, thread, &newest, checkpoint)?.map(|link| thread.row(link.ordinal))
            }
            None => None,
        },
        None => None,
    };
    let key = found.ok_or_else(|| super::super::unknown_checkpoint(checkpoint))?;
    for write in writes {
        let sql = "INSERT OR REPLACE INTO writes (checkpoint, task, idx, channel, value) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        execute(
            conn,
            sql,
            params![key, write.task_id, write.index, write.channel, write.value],
        )?;
    }
    Ok(())
}

/// See `CheckpointStore::delete`.
pub fn delete(conn: &Connection, thread_id: &str) -> Result<(), Error> {
    let Some(thread) = ThreadKey::find(conn, thread_id)? else {
        return Ok(());
    };
    let (first, last) = thread.rows();
    for sql in [
        "DELETE FROM messages WHERE key BETWEEN ?1 AND ?2",
        "DELETE FROM checkpoints WHERE key BETWEEN ?1 AND ?2",
        "DELETE FROM channels WHERE checkpoint BETWEEN ?1 AND ?2",
        "DELETE FROM writes WHERE checkpoint BETWEEN ?1 AND ?2",
        "DELETE FROM snapshots WHERE key BETWEEN ?1 AND ?2",
    ] {
        execute(conn, sql, [first, last])?;
    }
    execute(conn, "DELETE FROM threads WHERE id = ?1", [thread_id])
}

fn execute(conn: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<(), Error> {
    let mut statement = conn.prepare_cached(sql).map_err(failed)?;
    statement.execute(params).map_err(failed)?;
    Ok(())
}

fn full(what: &str) -> Error {
    Error::new(
        ErrorCode::OutOfRange,
        format!("a thread holds at most {MAX_SEQ} {what}"),
    )
}
