//! Rows of threads, checkpoints, messages and channels: keys, reading, and the checks that every value passes.

use std::ops::Range;

use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;
use uuid::Uuid;

use super::super::codec::delta::{DeltaRefs, Snapshot};
use super::super::codec::message::{self, packed_uuid, unpacked_uuid};
use super::super::codec::seq_list::MAX_SEQ;
use super::errors::{corrupt, failed};
use crate::ports::checkpoint::{CheckpointMeta, Source};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::Message;
use crate::protocol::time::Timestamp;
use crate::state::channels::Channel;
use crate::state::delta::Seq;

/// The sources by the number that stands in files: never change one.
const SOURCES: [Source; 4] = [Source::Input, Source::Loop, Source::Update, Source::Fork];

/// The number of a thread in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadKey(u32);

impl ThreadKey {
    /// The key of the row that is number `number` of the thread.
    pub fn row(self, number: u64) -> i64 {
        i64::from(self.0) << 32 | (number & (MAX_SEQ - 1)) as i64
    }

    /// First and last key of the thread's rows.
    pub fn rows(self) -> (i64, i64) {
        (self.row(0), self.row(MAX_SEQ - 1))
    }

    /// The thread of this id.
    pub fn find(conn: &Connection, thread_id: &str) -> Result<Option<Self>, Error> {
        let found: Option<i64> = conn
            .prepare_cached("SELECT key FROM threads WHERE id = ?1")
            .and_then(|mut statement| {
                statement
                    .query_row([thread_id], |row| row.get(0))
                    .optional()
            })
            .map_err(failed)?;
        found.map(Self::from_column).transpose()
    }

    /// Makes the thread of this id.
    pub fn add(conn: &Connection, thread_id: &str) -> Result<Self, Error> {
        let key: i64 = conn
            .prepare_cached("INSERT INTO threads (id) VALUES (?1) RETURNING key")
            .and_then(|mut statement| statement.query_row([thread_id], |row| row.get(0)))
            .map_err(failed)?;
        Self::from_column(key)
    }

    fn from_column(key: i64) -> Result<Self, Error> {
        match u32::try_from(key) {
            Ok(key) if key <= i32::MAX as u32 => Ok(ThreadKey(key)),
            _ => Err(corrupt("a thread has an impossible key")),
        }
    }
}

/// What finds a checkpoint's state: its place in the lineage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number within the thread.
    pub ordinal: u64,
    /// Its id.
    pub id: Uuid,
    /// Ordinal of its parent.
    pub parent: Option<u64>,
    /// Ordinal of the nearest snapshot towards the root; `None` for the empty state.
    pub base: Option<u64>,
    /// How many deltas follow the base, its own included.
    pub replay: u64,
    /// The thread's next message number once this checkpoint was stored.
    pub next_seq: Seq,
}

macro_rules! link_columns {
    () => {
        "key, id, parent, base, replay, next_seq"
    };
}

impl Link {
    /// The newest checkpoint of the thread.
    pub fn newest(conn: &Connection, thread: ThreadKey) -> Result<Option<Self>, Error> {
        let sql = concat!(
            "SELECT ",
            link_columns!(),
            " FROM checkpoints WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1"
        );
        let (first, last) = thread.rows();
        one(conn, sql, params![first, last], |row| {
            Link::read(row, thread)
        })
    }

    /// The checkpoint of this ordinal, which must be there.
    pub fn at(conn: &Connection, thread: ThreadKey, ordinal: u64) -> Result<Self, Error> {
        let sql = concat!(
            "SELECT ",
            link_columns!(),
            " FROM checkpoints WHERE key = ?1"
        );
        one(conn, sql, [thread.row(ordinal)], |row| {
            Link::read(row, thread)
        })?
        .ok_or_else(|| corrupt(format!("checkpoint number {ordinal} is missing")))
    }

    /// The checkpoint of this id.
    pub fn find(
        conn: &Connection,
        thread: ThreadKey,
        newest: &Link,
        id: Uuid,
    ) -> Result<Option<Self>, Error> {
        if newest.id == id {
            return Ok(Some(newest.clone()));
        }
        let place = Link::lower_bound(conn, thread, newest, id)?;
        if place > newest.ordinal {
            return Ok(None);
        }
        let link = Link::at(conn, thread, place)?;
        Ok((link.id == id).then_some(link))
    }

    /// How many checkpoints of the thread are older than `id`. Ids grow with ordinals, so this is a binary search.
    pub fn lower_bound(
        conn: &Connection,
        thread: ThreadKey,
        newest: &Link,
        id: Uuid,
    ) -> Result<u64, Error> {
        let (mut low, mut high) = (0, newest.ordinal + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if id_of(conn, thread, middle)? < id {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The delta that led from the parent to this checkpoint.
    pub fn delta(&self, conn: &Connection, thread: ThreadKey) -> Result<DeltaRefs, Error> {
        let bytes = blob(
            conn,
            "SELECT delta FROM checkpoints WHERE key = ?1",
            thread.row(self.ordinal),
        )?;
        bytes
            .and_then(|bytes| DeltaRefs::decode(&bytes))
            .ok_or_else(|| corrupt(format!("the delta of checkpoint {} is none", self.id)))
    }

    fn read(row: &Row<'_>, thread: ThreadKey) -> Result<Self, Error> {
        let link = Link {
            ordinal: ordinal(row, thread)?,
            id: uuid(row, 1)?,
            parent: optional(row, 2)?,
            base: optional(row, 3)?,
            replay: unsigned(row, 4)?,
            next_seq: unsigned(row, 5)?,
        };
        // A parent is older than its child, so a walk to the root ends.
        if link.parent.is_some_and(|parent| parent >= link.ordinal)
            || link.next_seq > MAX_SEQ
            || (link.replay == 0) != (link.base == Some(link.ordinal))
        {
            return Err(corrupt(format!(
                "checkpoint {} has an impossible place",
                link.id
            )));
        }
        Ok(link)
    }
}

fn id_of(conn: &Connection, thread: ThreadKey, ordinal: u64) -> Result<Uuid, Error> {
    let sql = "SELECT id FROM checkpoints WHERE key = ?1";
    one(conn, sql, [thread.row(ordinal)], |row| uuid(row, 0))?
        .ok_or_else(|| corrupt(format!("checkpoint number {ordinal} is missing")))
}

/// The snapshot of a checkpoint that has one.
pub fn snapshot(conn: &Connection, thread: ThreadKey, ordinal: u64) -> Result<Snapshot, Error> {
    let bytes = blob(
        conn,
        "SELECT body FROM snapshots WHERE key = ?1",
        thread.row(ordinal),
    )?;
    bytes
        .and_then(|bytes| Snapshot::decode(&bytes))
        .ok_or_else(|| {
            corrupt(format!(
                "the snapshot of checkpoint number {ordinal} is none"
            ))
        })
}

/// Size of that snapshot in bytes, without reading it.
pub fn snapshot_bytes(conn: &Connection, thread: ThreadKey, ordinal: u64) -> Result<u64, Error> {
    let sql = "SELECT length(body) FROM snapshots WHERE key = ?1";
    let bytes = one(conn, sql, [thread.row(ordinal)], |row| unsigned(row, 0))?;
    bytes.ok_or_else(|| {
        corrupt(format!(
            "the snapshot of checkpoint number {ordinal} is missing"
        ))
    })
}

/// Reads the messages of one run of numbers, every one of which must be there, to the end of `out`.
pub fn messages(
    conn: &Connection,
    thread: ThreadKey,
    numbers: Range<Seq>,
    out: &mut Vec<(Seq, Message)>,
) -> Result<(), Error> {
    let mut statement = conn
        .prepare_cached("SELECT key, body FROM messages WHERE key BETWEEN ?1 AND ?2 ORDER BY key")
        .map_err(failed)?;
    let mut rows = statement
        .query(params![
            thread.row(numbers.start),
            thread.row(numbers.end - 1)
        ])
        .map_err(failed)?;
    for seq in numbers {
        let missing = || corrupt(format!("message number {seq} is missing"));
        let row = rows.next().map_err(failed)?.ok_or_else(missing)?;
        if row.get::<_, i64>(0).map_err(failed)? != thread.row(seq) {
            return Err(missing());
        }
        let body = row.get_ref(1).map_err(failed)?;
        let text = body.as_blob().ok().and_then(message::decode);
        let message = text.and_then(|text| message::message_from_text(&text).ok());
        out.push((
            seq,
            message.ok_or_else(|| corrupt(format!("message number {seq} is none")))?,
        ));
    }
    Ok(())
}

/// Whether every message of one run of numbers is there.
pub fn has_messages(
    conn: &Connection,
    thread: ThreadKey,
    numbers: Range<Seq>,
) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM messages WHERE key BETWEEN ?1 AND ?2";
    let keys = params![thread.row(numbers.start), thread.row(numbers.end - 1)];
    let count = one(conn, sql, keys, |row| unsigned(row, 0))?;
    Ok(count == Some(numbers.end - numbers.start))
}

/// The value that the checkpoint of this ordinal gave to a channel.
pub fn channel(
    conn: &Connection,
    thread: ThreadKey,
    ordinal: u64,
    channel: Channel,
) -> Result<Value, Error> {
    let sql = "SELECT value FROM channels WHERE checkpoint = ?1 AND name = ?2";
    let name = channel.name();
    let value = one(conn, sql, params![thread.row(ordinal), name], |row| {
        Ok(text(row, 0)?.and_then(|text| serde_json::from_str(text).ok()))
    })?;
    value.flatten().ok_or_else(|| {
        corrupt(format!(
            "checkpoint number {ordinal} has no readable value for channel {name}"
        ))
    })
}

macro_rules! meta_columns {
    () => {
        "key, id, parent, step, source, at, run, metadata"
    };
}

/// The newest `limit` checkpoints with ordinals below `end`, newest first.
pub fn list(
    conn: &Connection,
    thread: ThreadKey,
    end: u64,
    limit: usize,
) -> Result<Vec<CheckpointMeta>, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    if end == 0 || limit == 0 {
        return Ok(Vec::new());
    }
    let sql = concat!(
        "SELECT ",
        meta_columns!(),
        " FROM checkpoints WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT ?3"
    );
    let mut statement = conn.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement
        .query(params![thread.row(0), thread.row(end - 1), limit])
        .map_err(failed)?;
    let mut found: Vec<(u64, CheckpointMeta, Option<u64>)> = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let (ordinal, meta, parent) = read_meta(row, thread)?;
        if found
            .last()
            .is_some_and(|(later, ..)| *later != ordinal + 1)
        {
            return Err(corrupt(format!(
                "checkpoint number {} is missing",
                ordinal + 1
            )));
        }
        found.push((ordinal, meta, parent));
    }
    let newest = found.first().map_or(0, |(ordinal, ..)| *ordinal);
    let ids: Vec<Uuid> = found.iter().map(|(_, meta, _)| meta.id).collect();
    let mut metas = Vec::with_capacity(found.len());
    for (_, mut meta, parent) in found {
        if let Some(parent) = parent {
            // Most parents are in the list itself.
            let place = usize::try_from(newest - parent).unwrap_or(usize::MAX);
            meta.parent = Some(match ids.get(place) {
                Some(id) => *id,
                None => id_of(conn, thread, parent)?,
            });
        }
        metas.push(meta);
    }
    Ok(metas)
}

/// What the checkpoint at `link` is.
pub fn meta(conn: &Connection, thread: ThreadKey, link: &Link) -> Result<CheckpointMeta, Error> {
    let sql = concat!(
        "SELECT ",
        meta_columns!(),
        " FROM checkpoints WHERE key = ?1"
    );
    let found = one(conn, sql, [thread.row(link.ordinal)], |row| {
        read_meta(row, thread)
    })?;
    let (_, mut meta, parent) = found.ok_or_else(|| corrupt("a checkpoint is missing"))?;
    meta.parent = parent
        .map(|parent| id_of(conn, thread, parent))
        .transpose()?;
    Ok(meta)
}

/// Ordinal, what the checkpoint is without its parent, and the ordinal of the parent.
fn read_meta(
    row: &Row<'_>,
    thread: ThreadKey,
) -> Result<(u64, CheckpointMeta, Option<u64>), Error> {
    let ordinal = ordinal(row, thread)?;
    let id = uuid(row, 1)?;
    let wrong = |what: &str| corrupt(format!("checkpoint {id} has no readable {what}"));
    let parent = optional(row, 2)?;
    if parent.is_some_and(|parent| parent >= ordinal) {
        return Err(wrong("parent"));
    }
    let run_id = match row.get_ref(6).map_err(failed)? {
        ValueRef::Null => None,
        ValueRef::Blob(bytes) => Some(unpacked_uuid(bytes).ok_or_else(|| wrong("run"))?),
        ValueRef::Text(bytes) => Some(String::from_utf8(bytes.to_vec()).map_err(|_| wrong("run"))?),
        _ => return Err(wrong("run")),
    };
    let metadata = match text(row, 7)? {
        None => serde_json::Map::new(),
        Some(text) => serde_json::from_str(text).map_err(|_| wrong("metadata"))?,
    };
    let meta = CheckpointMeta {
        id,
        parent: None,
        step: row.get(3).map_err(failed)?,
        source: unsigned(row, 4)
            .ok()
            .and_then(|place| SOURCES.get(place as usize).copied())
            .ok_or_else(|| wrong("source"))?,
        at: Timestamp(row.get(5).map_err(failed)?),
        run_id: run_id.map(Into::into),
        metadata,
    };
    Ok((ordinal, meta, parent))
}

/// Stores the row of a checkpoint.
pub fn add_checkpoint(
    conn: &Connection,
    thread: ThreadKey,
    link: &Link,
    meta: &CheckpointMeta,
    delta: &DeltaRefs,
) -> Result<(), Error> {
    let run = meta.run_id.as_deref().map(|run| match packed_uuid(run) {
        Some(id) => Sql::Blob(id.to_vec()),
        None => Sql::Text(run.to_owned()),
    });
    let metadata = (!meta.metadata.is_empty())
        .then(|| serde_json::to_string(&meta.metadata))
        .transpose()
        .map_err(|error| Error::new(ErrorCode::Internal, "metadata is no JSON").caused_by(error))?;
    let source = SOURCES.iter().position(|source| *source == meta.source);
    let sql = "INSERT INTO checkpoints \
               (key, id, parent, base, replay, next_seq, step, source, at, run, metadata, delta) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let mut statement = conn.prepare_cached(sql).map_err(failed)?;
    statement
        .execute(params![
            thread.row(link.ordinal),
            link.id.as_bytes(),
            link.parent.map(|parent| parent as i64),
            link.base.map(|base| base as i64),
            link.replay as i64,
            link.next_seq as i64,
            meta.step,
            source.map(|place| place as i64),
            meta.at.0,
            run,
            metadata,
            delta.encode(),
        ])
        .map_err(failed)?;
    Ok(())
}

/// The one row of a statement, read by `read`.
pub fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let mut statement = conn.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query(params).map_err(failed)?;
    rows.next().map_err(failed)?.map(read).transpose()
}

fn blob(conn: &Connection, sql: &str, key: i64) -> Result<Option<Vec<u8>>, Error> {
    one(conn, sql, [key], |row| row.get(0).map_err(failed))
}

fn ordinal(row: &Row<'_>, thread: ThreadKey) -> Result<u64, Error> {
    let key: i64 = row.get(0).map_err(failed)?;
    let ordinal = key.wrapping_sub(thread.row(0));
    u64::try_from(ordinal)
        .ok()
        .filter(|ordinal| *ordinal < MAX_SEQ)
        .ok_or_else(|| corrupt("a checkpoint has an impossible key"))
}

fn uuid(row: &Row<'_>, column: usize) -> Result<Uuid, Error> {
    let bytes: [u8; 16] = row.get(column).map_err(failed)?;
    Ok(Uuid::from_bytes(bytes))
}

fn unsigned(row: &Row<'_>, column: usize) -> Result<u64, Error> {
    let value: i64 = row.get(column).map_err(failed)?;
    u64::try_from(value).map_err(|_| corrupt(format!("column {column} is below zero")))
}

fn optional(row: &Row<'_>, column: usize) -> Result<Option<u64>, Error> {
    let value: Option<i64> = row.get(column).map_err(failed)?;
    value
        .map(u64::try_from)
        .transpose()
        .map_err(|_| corrupt(format!("column {column} is below zero")))
}

/// Text of a column, NULL as `None`.
pub fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, Error> {
    let value = row.get_ref(column).map_err(failed)?;
    value
        .as_str_or_null()
        .map_err(|_| corrupt(format!("column {column} holds no text")))
}
