//! Stores under test, a plain model of a thread, and builders.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use fawn::adapters::store::memory::MemoryStore;
#[cfg(feature = "sqlite")]
use fawn::adapters::store::sqlite::{Offload, SqliteStore};
use fawn::ports::checkpoint::{
    CheckpointMeta, CheckpointStore, DynCheckpointStore, NewCheckpoint, Source, StoredCheckpoint,
};
use fawn::protocol::error::Error;
use fawn::protocol::message::Message;
use fawn::protocol::time::Timestamp;
use fawn::state::channels::Channel;
use fawn::state::delta::{MessageDelta, Seq, StateDelta, StoredState};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Makes a fresh store.
type Make = fn() -> Fixture;

/// Every store, by name. A new one gets a line here.
pub const STORES: &[(&str, Make)] = &[
    ("memory", Fixture::memory),
    #[cfg(feature = "sqlite")]
    ("sqlite inline", || Fixture::sqlite(Offload::Inline)),
    #[cfg(feature = "sqlite")]
    ("sqlite pool", || Fixture::sqlite(Offload::Pool)),
];

/// Runs a test on every store.
pub fn on_every_store(test: impl Fn(&mut Fixture)) {
    for (name, make) in STORES {
        eprintln!("store: {name}");
        test(&mut make());
    }
}

/// A store, and how to open what it holds once more.
pub struct Fixture {
    pub store: Box<dyn DynCheckpointStore>,
    remake: Option<Box<dyn Fn() -> Box<dyn DynCheckpointStore>>>,
    #[expect(dead_code, reason = "removes its folder when it is dropped")]
    folder: Option<Folder>,
}

impl Fixture {
    fn memory() -> Self {
        Fixture {
            store: Box::new(MemoryStore::new()),
            remake: None,
            folder: None,
        }
    }

    #[cfg(feature = "sqlite")]
    fn sqlite(offload: Offload) -> Self {
        let folder = Folder::new();
        let path = folder.file("threads.db");
        let remake =
            move || Box::new(SqliteStore::new(&path, offload)) as Box<dyn DynCheckpointStore>;
        Fixture {
            store: remake(),
            remake: Some(Box::new(remake)),
            folder: Some(folder),
        }
    }

    /// Closes the store and opens it again, where it outlives its process.
    pub fn reopen(&mut self) {
        if let Some(remake) = &self.remake {
            self.store = remake();
        }
    }
}

/// A folder of a test, removed with it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("fawn-stores-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits for a future on the tests' runtime.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap()
    });
    RUNTIME.block_on(future)
}

/// Numbers that look random and are the same in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Checkpoint id number `n`: a UUIDv6, growing with `n`.
pub fn checkpoint_id(n: u64) -> Uuid {
    let time = 0x1f0_0000_0000_0000 + u128::from(n);
    let bits = (time >> 12) << 80 | 6 << 76 | (time & 0xfff) << 64 | 0x8000_0000_0000_0001;
    Uuid::from_u128(bits)
}

/// Message id number `n`: looks like a random UUID.
pub fn message_id(n: u64) -> String {
    let mut dice = Dice::new(n + 77);
    let bits = u128::from(dice.next()) << 80 | u128::from(dice.next()) << 40 | u128::from(n);
    uuid::Builder::from_random_bytes(bits.to_be_bytes())
        .into_uuid()
        .to_string()
}

pub fn human(id: &str, text: &str) -> Message {
    Message::from_canonical(json!({"type": "human", "content": text, "id": id})).unwrap()
}

pub fn ai(id: &str, text: &str) -> Message {
    Message::from_canonical(json!({"type": "ai", "content": text, "id": id})).unwrap()
}

/// Messages of every class, with every member in use.
pub fn rich(id: &str, n: u64) -> Message {
    let value = match n % 6 {
        0 => {
            json!({"type": "human", "content": format!("text {n} \"q\" \\ \u{0}\u{1f388}"), "id": id, "name": "ann"})
        }
        1 => json!({"type": "ai", "content": [{"type": "text", "text": "]}"}, "s"], "id": id,
            "additional_kwargs": {"a": {"b": [1, 2.5, null]}}, "response_metadata": {"m": "x"},
            "tool_calls": [{"name": "f", "args": {"n": n}, "id": format!("call-{n}"), "type": "tool_call"}],
            "invalid_tool_calls": [{"type": "invalid_tool_call", "id": null, "name": "g", "args": "{", "error": "no"}],
            "usage_metadata": {"input_tokens": n, "output_tokens": 2, "total_tokens": n + 2}}),
        2 => {
            json!({"type": "tool", "content": "done", "id": id, "tool_call_id": format!("call-{n}"),
            "artifact": {"rows": [[1], {}]}, "status": "error"})
        }
        3 => {
            json!({"type": "chat", "content": "", "id": id, "role": "critic", "extra_member": [true, "}"]})
        }
        4 => json!({"type": "system", "content": "rules", "id": id}),
        _ => json!({"type": "ai", "content": "short", "id": id}),
    };
    Message::from_canonical(value).unwrap()
}

/// A thread as anybody would write it down: every checkpoint with its whole state.
#[derive(Clone, Default)]
pub struct Model {
    pub checkpoints: Vec<ModelCheckpoint>,
    pub next_seq: Seq,
    pub next_id: u64,
}

#[derive(Clone)]
pub struct ModelCheckpoint {
    pub meta: CheckpointMeta,
    /// Place of the parent.
    pub parent: Option<usize>,
    pub delta: StateDelta,
    pub messages: Vec<(Seq, Message)>,
    pub channels: BTreeMap<Channel, Value>,
}

impl Model {
    pub fn newest(&self) -> Option<&ModelCheckpoint> {
        self.checkpoints.last()
    }

    /// The next checkpoint after the one at `parent`; the model has it once [`Model::add`] was called.
    pub fn next(&self, parent: Option<usize>, delta: StateDelta) -> NewCheckpoint {
        let newest = self.checkpoints.len().checked_sub(1);
        let step = parent.map_or(-1, |parent| self.checkpoints[parent].meta.step + 1);
        let source = match (parent == newest, step) {
            (false, _) => Source::Fork,
            (true, -1) => Source::Input,
            (true, step) if step % 5 == 0 => Source::Update,
            (true, _) => Source::Loop,
        };
        let mut metadata = Map::new();
        if step % 3 == 0 {
            metadata.insert(
                "a".into(),
                json!({"b": [1, {"c": null}], "z": 1.5, "y": "\u{0}"}),
            );
            metadata.insert("e".into(), json!({}));
        }
        let incoming = delta.messages.appended.iter().map(|(seq, _)| *seq);
        let incoming = incoming.chain(delta.messages.replaced.iter().map(|(_, new, _)| *new));
        let next_seq = incoming.map(|seq| seq + 1).max().unwrap_or(0);
        NewCheckpoint {
            meta: CheckpointMeta {
                id: checkpoint_id(self.next_id),
                parent: parent.map(|parent| self.checkpoints[parent].meta.id),
                step,
                source,
                at: Timestamp(1_790_000_000_000_000 + self.next_id as i64 * 1_234_567),
                run_id: match step % 4 {
                    0 => None,
                    1 => Some("run-7".into()),
                    _ => Some(message_id(self.next_id / 8).into()),
                },
                metadata,
            },
            delta,
            next_seq: self.next_seq.max(next_seq),
        }
    }

    pub fn add(&mut self, checkpoint: &NewCheckpoint) {
        let parent = checkpoint.meta.parent.map(|id| {
            let place = self
                .checkpoints
                .iter()
                .rposition(|known| known.meta.id == id);
            place.expect("the parent is in the model")
        });
        let (mut messages, mut channels) = match parent {
            Some(parent) => {
                let parent = &self.checkpoints[parent];
                (parent.messages.clone(), parent.channels.clone())
            }
            None => Default::default(),
        };
        let delta = &checkpoint.delta;
        if delta.messages.reset {
            messages.clear();
        }
        messages.retain(|(seq, _)| !delta.messages.removed.contains(seq));
        for (old, new, message) in &delta.messages.replaced {
            if let Some(place) = messages.iter().position(|(seq, _)| seq == old) {
                messages[place] = (*new, message.clone());
            }
        }
        messages.extend(delta.messages.appended.iter().cloned());
        for (channel, value) in &delta.channels {
            match value {
                Some(value) => channels.insert(*channel, value.clone()),
                None => channels.remove(channel),
            };
        }
        self.next_seq = checkpoint.next_seq;
        self.next_id += 1;
        self.checkpoints.push(ModelCheckpoint {
            meta: checkpoint.meta.clone(),
            parent,
            delta: delta.clone(),
            messages,
            channels,
        });
    }

    /// Puts a checkpoint into the store and into the model.
    pub fn put(
        &mut self,
        store: &dyn DynCheckpointStore,
        thread: &str,
        parent: Option<usize>,
        delta: StateDelta,
    ) {
        let checkpoint = self.next(parent, delta);
        self.add(&checkpoint);
        wait(store.put(thread, checkpoint)).unwrap();
    }

    /// Puts a checkpoint after the newest one.
    pub fn grow(&mut self, store: &dyn DynCheckpointStore, thread: &str, delta: StateDelta) {
        let parent = self.checkpoints.len().checked_sub(1);
        self.put(store, thread, parent, delta);
    }

    /// Holds a loaded checkpoint against the one at `place`.
    pub fn assert_is(&self, place: usize, loaded: &StoredCheckpoint) {
        let expected = &self.checkpoints[place];
        assert_eq!(loaded.meta, expected.meta);
        assert_states(
            &loaded.state,
            &StoredState {
                messages: expected.messages.clone(),
                channels: expected.channels.clone().into_iter().collect(),
                next_seq: self.next_seq,
            },
        );
    }

    /// Loads every checkpoint and compares all there is.
    pub fn assert_all(&self, store: &dyn DynCheckpointStore, thread: &str) {
        for (place, expected) in self.checkpoints.iter().enumerate() {
            let loaded = wait(store.load(thread, expected.meta.id)).unwrap();
            self.assert_is(place, &loaded.expect("it is stored"));
        }
        if let Some(last) = self.checkpoints.len().checked_sub(1) {
            let newest = wait(store.open(thread)).unwrap().expect("it is stored");
            self.assert_is(last, &newest);
        }
        let listed = wait(store.list(thread, Default::default())).unwrap();
        let expected: Vec<_> = self.checkpoints.iter().rev().map(|it| &it.meta).collect();
        assert_eq!(listed.iter().collect::<Vec<_>>(), expected);
    }

    /// Whether the checkpoint at `older` is the one at `place` or an ancestor of it, and the deltas between.
    pub fn path(&self, older: usize, place: usize) -> Option<Vec<StateDelta>> {
        let mut deltas = Vec::new();
        let mut at = place;
        while at != older {
            deltas.push(self.checkpoints[at].delta.clone());
            at = self.checkpoints[at].parent?;
        }
        deltas.reverse();
        Some(deltas)
    }
}

/// Compares states to the byte of each message.
pub fn assert_states(found: &StoredState, expected: &StoredState) {
    let texts = |state: &StoredState| -> Vec<(Seq, String)> {
        let messages = state.messages.iter();
        messages
            .map(|(seq, message)| (*seq, message.json().to_owned()))
            .collect()
    };
    assert_eq!(texts(found), texts(expected));
    assert_eq!(found.channels, expected.channels);
    assert_eq!(found.next_seq, expected.next_seq);
}

/// A delta that appends messages.
pub fn appended(messages: impl IntoIterator<Item = (Seq, Message)>) -> StateDelta {
    StateDelta {
        messages: MessageDelta {
            appended: messages.into_iter().collect(),
            ..MessageDelta::default()
        },
        channels: Vec::new(),
    }
}

/// A delta that appends one message of this text.
pub fn said(seq: Seq, text: &str) -> StateDelta {
    appended([(seq, human(&message_id(seq), text))])
}

/// A delta that changes one channel.
pub fn wrote(channel: Channel, value: Option<Value>) -> StateDelta {
    StateDelta {
        channels: vec![(channel, value)],
        ..StateDelta::default()
    }
}

/// The texts of a state's messages.
pub fn texts(checkpoint: &StoredCheckpoint) -> Vec<String> {
    let messages = checkpoint.state.messages.iter();
    messages.map(|(_, message)| message.text()).collect()
}

/// The code of a failure.
pub fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.expect_err("it fails").code.name()
}

/// Only here so that stores are used as the runtime does, behind `dyn`.
pub fn erased(store: impl CheckpointStore) -> Box<dyn DynCheckpointStore> {
    Box::new(store)
}
