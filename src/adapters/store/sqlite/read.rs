//! Reading: states by the nearest snapshot and the deltas after it, history, deltas, pending writes.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};
use uuid::Uuid;

use super::super::codec::delta::{DeltaRefs, Snapshot};
use super::super::codec::seq_list::ListReplay;
use super::errors::{corrupt, failed};
use super::rows::{self, Link, ThreadKey};
use crate::ports::checkpoint::{CheckpointMeta, HistoryQuery, PendingWrite, StoredCheckpoint};
use crate::protocol::error::Error;
use crate::state::channels::Channel;
use crate::state::delta::{MessageDelta, StateDelta, StoredState};

/// Runs of removed numbers up to this length are taken as they are.
const FEW: u64 = 64;

/// Thread and newest checkpoint; `None` when there is none.
fn thread(conn: &Connection, thread_id: &str) -> Result<Option<(ThreadKey, Link)>, Error> {
    let Some(thread) = ThreadKey::find(conn, thread_id)? else {
        return Ok(None);
    };
    Ok(Link::newest(conn, thread)?.map(|newest| (thread, newest)))
}

/// The newest checkpoint, or the one of `id`, with its state.
pub fn state(
    conn: &Connection,
    thread_id: &str,
    id: Option<Uuid>,
) -> Result<Option<StoredCheckpoint>, Error> {
    let Some((thread, newest)) = thread(conn, thread_id)? else {
        return Ok(None);
    };
    let link = match id {
        Some(id) => match Link::find(conn, thread, &newest, id)? {
            Some(link) => link,
            None => return Ok(None),
        },
        None => newest.clone(),
    };
    let refs = snapshot_at(conn, thread, &link, None)?;
    if !refs.messages.is_distinct() {
        return Err(corrupt(format!(
            "checkpoint {} holds a message twice",
            link.id
        )));
    }
    let mut state = StoredState {
        next_seq: newest.next_seq,
        ..StoredState::default()
    };
    for range in refs.messages.ranges() {
        rows::messages(conn, thread, range.clone(), &mut state.messages)?;
    }
    for (channel, ordinal) in refs.channels {
        let value = rows::channel(conn, thread, ordinal, channel)?;
        state.channels.push((channel, value));
    }
    Ok(Some(StoredCheckpoint {
        meta: rows::meta(conn, thread, &link)?,
        state,
    }))
}

/// The state at `link` by reference, and at a child of it whose ordinal and delta are `child`.
///
/// Reads one snapshot and `link.replay` deltas.
pub fn snapshot_at(
    conn: &Connection,
    thread: ThreadKey,
    link: &Link,
    child: Option<(u64, &DeltaRefs)>,
) -> Result<Snapshot, Error> {
    let mut path = Vec::new();
    let mut at = link.clone();
    while at.replay > 0 {
        path.push((at.ordinal, at.delta(conn, thread)?));
        let Some(parent) = at.parent else { break };
        let parent = Link::at(conn, thread, parent)?;
        if (parent.base, parent.replay + 1) != (at.base, at.replay) {
            return Err(corrupt(format!(
                "checkpoint {} does not fit its parent",
                at.id
            )));
        }
        at = parent;
    }
    let base = match (at.base, at.replay) {
        (Some(base), 0) => rows::snapshot(conn, thread, base)?,
        // The first checkpoint of a lineage follows the empty state.
        (None, 1) => Snapshot::default(),
        _ => {
            return Err(corrupt(format!("checkpoint {} has no base", at.id)));
        }
    };
    let mut channels: BTreeMap<Channel, u64> = base.channels.into_iter().collect();
    let mut messages = ListReplay::from_base(base.messages);
    let path = path.iter().rev().map(|(ordinal, delta)| (*ordinal, delta));
    for (ordinal, delta) in path.chain(child) {
        messages.apply(delta);
        for (channel, has_value) in &delta.channels {
            if *has_value {
                channels.insert(*channel, ordinal);
            } else {
                channels.remove(channel);
            }
        }
    }
    Ok(Snapshot {
        messages: messages.finish(),
        channels: channels.into_iter().collect(),
    })
}

/// See `CheckpointStore::list`.
pub fn list(
    conn: &Connection,
    thread_id: &str,
    query: HistoryQuery,
) -> Result<Vec<CheckpointMeta>, Error> {
    let Some((thread, newest)) = thread(conn, thread_id)? else {
        return Ok(Vec::new());
    };
    let end = match query.before {
        Some(before) => Link::lower_bound(conn, thread, &newest, before)?,
        None => newest.ordinal + 1,
    };
    rows::list(conn, thread, end, query.limit.unwrap_or(usize::MAX))
}

/// See `CheckpointStore::deltas`.
pub fn deltas(
    conn: &Connection,
    thread_id: &str,
    after: Uuid,
    upto: Uuid,
) -> Result<Option<Vec<StateDelta>>, Error> {
    let Some((thread, newest)) = thread(conn, thread_id)? else {
        return Ok(None);
    };
    let after = Link::find(conn, thread, &newest, after)?;
    let upto = Link::find(conn, thread, &newest, upto)?;
    let (Some(after), Some(mut at)) = (after, upto) else {
        return Ok(None);
    };
    let mut path = Vec::new();
    while at.ordinal > after.ordinal {
        let Some(parent) = at.parent else {
            return Ok(None);
        };
        let parent = Link::at(conn, thread, parent)?;
        path.push(std::mem::replace(&mut at, parent));
    }
    if at.ordinal != after.ordinal {
        return Ok(None);
    }
    let mut deltas = Vec::with_capacity(path.len());
    for link in path.iter().rev() {
        deltas.push(delta(conn, thread, link)?);
    }
    Ok(Some(deltas))
}

fn delta(conn: &Connection, thread: ThreadKey, link: &Link) -> Result<StateDelta, Error> {
    let refs = link.delta(conn, thread)?;
    let makes_no_sense = || {
        corrupt(format!(
            "the delta of checkpoint {} makes no sense",
            link.id
        ))
    };
    if !refs.appended.is_distinct() || !refs.removed.is_distinct() {
        return Err(makes_no_sense());
    }
    for range in refs.removed.ranges() {
        // What was removed had been stored. Without the check a few damaged bytes could name billions of numbers.
        if range.end - range.start > FEW && !rows::has_messages(conn, thread, range.clone())? {
            return Err(makes_no_sense());
        }
    }
    let mut messages = MessageDelta {
        reset: refs.reset,
        ..MessageDelta::default()
    };
    for range in refs.appended.ranges() {
        rows::messages(conn, thread, range.clone(), &mut messages.appended)?;
    }
    let mut news = Vec::new();
    for (old, new) in &refs.replaced {
        rows::messages(conn, thread, *new..*new + 1, &mut news)?;
        let (_, message) = news.pop().ok_or_else(|| corrupt("a message is missing"))?;
        messages.replaced.push((*old, *new, message));
    }
    messages.removed = refs.removed.iter().collect();
    let mut channels = Vec::with_capacity(refs.channels.len());
    for (channel, has_value) in refs.channels {
        let value = has_value
            .then(|| rows::channel(conn, thread, link.ordinal, channel))
            .transpose()?;
        channels.push((channel, value));
    }
    Ok(StateDelta { messages, channels })
}

/// See `CheckpointStore::writes`.
pub fn writes(
    conn: &Connection,
    thread_id: &str,
    checkpoint: Uuid,
) -> Result<Vec<PendingWrite>, Error> {
    let Some((thread, newest)) = thread(conn, thread_id)? else {
        return Ok(Vec::new());
    };
    let Some(link) = Link::find(conn, thread, &newest, checkpoint)? else {
        return Ok(Vec::new());
    };
    let sql =
        "SELECT task, idx, channel, value FROM writes WHERE checkpoint = ?1 ORDER BY task, idx";
    let mut statement = conn.prepare_cached(sql).map_err(failed)?;
    let mut found = statement
        .query(params![thread.row(link.ordinal)])
        .map_err(failed)?;
    let mut writes = Vec::new();
    while let Some(row) = found.next().map_err(failed)? {
        writes.push(PendingWrite {
            task_id: row.get(0).map_err(failed)?,
            index: row.get(1).map_err(failed)?,
            channel: row.get(2).map_err(failed)?,
            value: row.get(3).map_err(failed)?,
        });
    }
    Ok(writes)
}
