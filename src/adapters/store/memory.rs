//! Threads in memory, for as long as the process lives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use hashbrown::{DefaultHashBuilder, HashMap};
use serde_json::Value;
use std::hash::BuildHasher;
use uuid::Uuid;

use crate::ports::checkpoint::{
    CheckpointMeta, CheckpointStore, HistoryQuery, NewCheckpoint, PendingWrite, StoredCheckpoint,
};
use crate::protocol::error::Error;
use crate::protocol::message::Message;
use crate::state::channels::Channel;
use crate::state::delta::{Replay, Seq, StateDelta, StoredState};

/// Maps of threads; writers of different threads rarely meet in one.
const SHARDS: usize = 64;
/// Replays up to so many changes are not worth a snapshot.
const CHEAP_REPLAY: usize = 64;

/// Keeps threads in memory.
///
/// `put` costs what the delta costs, however long the thread is: it appends to the thread's chain of checkpoints and makes
/// no snapshot. Reads make them, at checkpoints where the replay since the last one has cost more than the state
/// is big, so that a read costs what its answer costs, plus once what was written since.
#[derive(Debug)]
pub struct MemoryStore {
    shards: Box<[Shard]>,
    hasher: DefaultHashBuilder,
}

type Shard = RwLock<HashMap<Box<str>, Arc<Mutex<Thread>>>>;

/// The checkpoints of one thread.
#[derive(Debug, Default)]
struct Thread {
    /// In the order of their ids, which is the order in which they came.
    nodes: Vec<Arc<Node>>,
    /// Every message once, by number.
    messages: Vec<(Seq, Message)>,
    next_seq: Seq,
    pending: HashMap<Uuid, BTreeMap<(String, i32), PendingWrite>>,
}

#[derive(Debug)]
struct Node {
    meta: CheckpointMeta,
    /// Place of the parent in [`Thread::nodes`].
    parent: Option<usize>,
    delta: StateDelta,
    /// The state here, once a read found it worth keeping. Its `next_seq` means nothing.
    snapshot: OnceLock<Box<StoredState>>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    fn shard(&self, thread_id: &str) -> &Shard {
        let hash = self.hasher.hash_one(thread_id) as usize;
        &self.shards[hash % SHARDS]
    }

    fn thread(&self, thread_id: &str) -> Option<Arc<Mutex<Thread>>> {
        let shard = self.shard(thread_id).read();
        shard
            .unwrap_or_else(PoisonError::into_inner)
            .get(thread_id)
            .cloned()
    }

    fn add(&self, thread_id: &str, checkpoint: NewCheckpoint) -> Result<(), Error> {
        super::check_thread_id(thread_id)?;
        let thread = match self.thread(thread_id) {
            Some(thread) => thread,
            None => {
                // Refused before the thread comes into being.
                super::admit(&checkpoint.meta, None, false)?;
                let mut shard = self
                    .shard(thread_id)
                    .write()
                    .unwrap_or_else(PoisonError::into_inner);
                shard.entry_ref(thread_id).or_default().clone()
            }
        };
        lock(&thread).put(checkpoint)
    }

    fn state(
        &self,
        thread_id: &str,
        place: impl FnOnce(&Thread) -> Option<usize>,
    ) -> Option<StoredCheckpoint> {
        let thread = self.thread(thread_id)?;
        let (path, next_seq) = {
            let thread = lock(&thread);
            (thread.path(place(&thread)?), thread.next_seq)
        };
        // The replay needs no lock: nodes never change but for their snapshots.
        Some(StoredCheckpoint {
            meta: path.first()?.meta.clone(),
            state: replay(&path, next_seq),
        })
    }
}

fn lock(thread: &Mutex<Thread>) -> MutexGuard<'_, Thread> {
    thread.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Thread {
    fn newest(&self) -> Option<&CheckpointMeta> {
        self.nodes.last().map(|node| &node.meta)
    }

    fn find(&self, id: Uuid) -> Option<usize> {
        match self.newest() {
            Some(newest) if newest.id == id => Some(self.nodes.len() - 1),
            _ => self
                .nodes
                .binary_search_by_key(&id, |node| node.meta.id)
                .ok(),
        }
    }

    fn put(&mut self, checkpoint: NewCheckpoint) -> Result<(), Error> {
        let NewCheckpoint {
            meta,
            delta,
            next_seq,
        } = checkpoint;
        let parent = meta.parent.and_then(|id| self.find(id));
        super::admit(&meta, self.newest().map(|meta| meta.id), parent.is_some())?;
        let mut end = self.next_seq.max(next_seq);
        for (seq, message) in incoming(&delta) {
            end = end.max(seq.saturating_add(1));
            if seq < self.next_seq
                && let Ok(place) = self.place_of(seq)
                && !is_same(&self.messages[place].1, message)
            {
                return Err(super::taken_number());
            }
        }
        for (seq, message) in incoming(&delta) {
            match self.messages.last() {
                Some((last, _)) if *last >= seq => {
                    if let Err(place) = self.place_of(seq) {
                        self.messages.insert(place, (seq, message.clone()));
                    }
                }
                _ => self.messages.push((seq, message.clone())),
            }
        }
        self.next_seq = end;
        if !self.pending.is_empty()
            && let Some(parent) = meta.parent
        {
            self.pending.remove(&parent);
        }
        self.nodes.push(Arc::new(Node {
            meta,
            parent,
            delta,
            snapshot: OnceLock::new(),
        }));
        Ok(())
    }

    fn place_of(&self, seq: Seq) -> Result<usize, usize> {
        self.messages.binary_search_by_key(&seq, |(seq, _)| *seq)
    }

    /// The nodes from `place` back to the nearest snapshot, or to the first checkpoint of the lineage.
    fn path(&self, place: usize) -> Vec<Arc<Node>> {
        let mut path = Vec::new();
        let mut at = Some(place);
        while let Some(node) = at.map(|place| &self.nodes[place]) {
            path.push(node.clone());
            at = node.parent.filter(|_| node.snapshot.get().is_none());
        }
        path
    }
}

fn incoming(delta: &StateDelta) -> impl Iterator<Item = (Seq, &Message)> {
    let messages = &delta.messages;
    let replaced = messages.replaced.iter();
    let appended = messages.appended.iter();
    replaced
        .map(|(_, new, message)| (*new, message))
        .chain(appended.map(|(seq, message)| (*seq, message)))
}

fn is_same(one: &Message, other: &Message) -> bool {
    one.same(other) || one.json() == other.json()
}

/// The state at the first node of `path`, which goes back to a snapshot or to the first checkpoint. Leaves snapshots
/// where they pay.
fn replay(path: &[Arc<Node>], next_seq: Seq) -> StoredState {
    let base = path.last().and_then(|node| node.snapshot.get());
    let mut channels: BTreeMap<Channel, &Value> = base
        .iter()
        .flat_map(|base| &base.channels)
        .map(|(channel, value)| (*channel, value))
        .collect();
    let mut messages = Replay::from_base(StoredState {
        messages: base.map_or_else(Vec::new, |base| base.messages.clone()),
        ..StoredState::default()
    });
    let mut work = 0;
    for node in path.iter().rev().skip(usize::from(base.is_some())) {
        let delta = &node.delta;
        let changes = &delta.messages;
        work += 1
            + changes.removed.len()
            + changes.replaced.len()
            + changes.appended.len()
            + delta.channels.len();
        messages.apply(StateDelta {
            messages: changes.clone(),
            channels: Vec::new(),
        });
        for (channel, value) in &delta.channels {
            match value {
                Some(value) => channels.insert(*channel, value),
                None => channels.remove(channel),
            };
        }
        if work > CHEAP_REPLAY + messages.live() + channels.len() {
            work = 0;
            let state = state_of(messages, &channels, 0);
            messages = Replay::from_base(StoredState {
                messages: state.messages.clone(),
                ..StoredState::default()
            });
            // Another reader may have been here first, with the same state.
            let _ = node.snapshot.set(Box::new(state));
        }
    }
    state_of(messages, &channels, next_seq)
}

fn state_of(messages: Replay, channels: &BTreeMap<Channel, &Value>, next_seq: Seq) -> StoredState {
    StoredState {
        channels: channels
            .iter()
            .map(|(channel, value)| (*channel, (*value).clone()))
            .collect(),
        ..messages.finish(next_seq)
    }
}

impl CheckpointStore for MemoryStore {
    async fn open(&self, thread_id: &str) -> Result<Option<StoredCheckpoint>, Error> {
        super::check_thread_id(thread_id)?;
        Ok(self.state(thread_id, |thread| thread.nodes.len().checked_sub(1)))
    }

    async fn load(&self, thread_id: &str, id: Uuid) -> Result<Option<StoredCheckpoint>, Error> {
        super::check_thread_id(thread_id)?;
        Ok(self.state(thread_id, |thread| thread.find(id)))
    }

    async fn put(&self, thread_id: &str, checkpoint: NewCheckpoint) -> Result<(), Error> {
        self.add(thread_id, checkpoint)
    }

    async fn list(
        &self,
        thread_id: &str,
        query: HistoryQuery,
    ) -> Result<Vec<CheckpointMeta>, Error> {
        super::check_thread_id(thread_id)?;
        let Some(thread) = self.thread(thread_id) else {
            return Ok(Vec::new());
        };
        let thread = lock(&thread);
        let end = query.before.map_or(thread.nodes.len(), |before| {
            thread.nodes.partition_point(|node| node.meta.id < before)
        });
        let limit = query.limit.unwrap_or(usize::MAX);
        let nodes = thread.nodes[..end].iter().rev().take(limit);
        Ok(nodes.map(|node| node.meta.clone()).collect())
    }

    async fn deltas(
        &self,
        thread_id: &str,
        after: Uuid,
        upto: Uuid,
    ) -> Result<Option<Vec<StateDelta>>, Error> {
        super::check_thread_id(thread_id)?;
        let Some(thread) = self.thread(thread_id) else {
            return Ok(None);
        };
        let mut path = Vec::new();
        {
            let thread = lock(&thread);
            let (Some(after), Some(mut at)) = (thread.find(after), thread.find(upto)) else {
                return Ok(None);
            };
            while at > after {
                let node = &thread.nodes[at];
                path.push(node.clone());
                match node.parent {
                    Some(parent) => at = parent,
                    None => return Ok(None),
                }
            }
            if at != after {
                return Ok(None);
            }
        }
        let deltas = path.iter().rev().map(|node| node.delta.clone());
        Ok(Some(deltas.collect()))
    }

    async fn put_writes(
        &self,
        thread_id: &str,
        checkpoint: Uuid,
        writes: Vec<PendingWrite>,
    ) -> Result<(), Error> {
        super::check_thread_id(thread_id)?;
        let thread = self
            .thread(thread_id)
            .ok_or_else(|| super::unknown_checkpoint(checkpoint))?;
        let mut thread = lock(&thread);
        if thread.find(checkpoint).is_none() {
            return Err(super::unknown_checkpoint(checkpoint));
        }
        let pending = thread.pending.entry(checkpoint).or_default();
        for write in writes {
            pending.insert((write.task_id.clone(), write.index), write);
        }
        Ok(())
    }

    async fn writes(&self, thread_id: &str, checkpoint: Uuid) -> Result<Vec<PendingWrite>, Error> {
        super::check_thread_id(thread_id)?;
        let Some(thread) = self.thread(thread_id) else {
            return Ok(Vec::new());
        };
        let thread = lock(&thread);
        let pending = thread.pending.get(&checkpoint);
        Ok(pending.map_or_else(Vec::new, |pending| pending.values().cloned().collect()))
    }

    async fn delete(&self, thread_id: &str) -> Result<(), Error> {
        super::check_thread_id(thread_id)?;
        let removed = {
            let mut shard = self
                .shard(thread_id)
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            shard.remove(thread_id)
        };
        // Freed after the lock is gone; a thread can be large.
        drop(removed);
        Ok(())
    }
}
