//! Open threads: resident state, head checkpoint, and the run that holds the thread.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::ids::Ids;
use super::inject;
use super::run::RunShared;
use super::sync::{block_on, lock};
use crate::ports::checkpoint::{
    CheckpointMeta, DynCheckpointStore, HistoryQuery, NewCheckpoint, Source, StoredCheckpoint,
};
use crate::ports::clock::Clock;
use crate::protocol::decode::from_text;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::{MAX_BYTES, push_quoted};
use crate::protocol::run::{ThreadHistoryQuery, ThreadStateQuery, ThreadUpdate};
use crate::protocol::scan::Scanner;
use crate::state::channels::{CHANNELS, Channel};
use crate::state::coerce;
use crate::state::delta::{Seq, StateDelta};
use crate::state::update::StateUpdate;
use crate::state::{Overlay, Selection, ThreadState};

/// What threads need from their runtime.
pub struct ThreadServices {
    /// The store. Outside the driver its futures are ready at once, so that a call of the host's can wait for them.
    pub store: Arc<dyn DynCheckpointStore>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Ids of messages and checkpoints.
    pub ids: Ids,
}

/// A thread that is open in this process. All handles of one thread id share it.
pub struct OpenThread {
    /// Its id.
    pub id: Arc<str>,
    /// Whether its checkpoints are stored.
    pub(super) is_stored: bool,
    pub(super) services: Arc<ThreadServices>,
    resident: Mutex<Resident>,
    /// The newest run that was admitted; it may have ended. Taken before `resident`.
    pub(super) run: Mutex<Option<Arc<RunShared>>>,
}

/// The state in memory.
#[derive(Default)]
pub(super) struct Resident {
    pub(super) state: ThreadState,
    pub(super) head: Option<CheckpointMeta>,
    /// Set when the store may hold something else; the next use reads it again.
    pub(super) is_stale: bool,
}

impl Resident {
    fn of(stored: Option<StoredCheckpoint>) -> Self {
        match stored {
            Some(StoredCheckpoint { meta, state }) => Resident {
                state: ThreadState::restore(state),
                head: Some(meta),
                is_stale: false,
            },
            None => Resident::default(),
        }
    }
}

impl OpenThread {
    /// Reads a thread from the store, or begins it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open(id: Arc<str>, services: Arc<ThreadServices>) -> Result<Self, Error> {
        let stored = block_on(services.store.open(&id))?;
        Ok(OpenThread {
            id,
            is_stored: true,
            services,
            resident: Mutex::new(Resident::of(stored)),
            run: Mutex::new(None),
        })
    }

    /// A thread without anything in it that lives in memory alone, as long as the one run on it: that of a subagent (SUB-21). Its
    /// id is that of the thread on whose behalf it is there; the store never sees it.
    pub fn of_subagent(id: Arc<str>, services: Arc<ThreadServices>) -> Self {
        OpenThread {
            id,
            is_stored: false,
            services,
            resident: Mutex::default(),
            run: Mutex::new(None),
        }
    }

    /// `fawn_thread_update`: one step of writes from outside a run.
    ///
    /// # Errors
    /// Those of decoding and of the fold, at the path of the fault; `ThreadBusy` while a run is in flight; those of the
    /// store. Nothing is changed then.
    pub fn update(&self, json: &str) -> Result<String, Error> {
        let DecodedUpdate {
            step,
            prefix,
            as_node,
        } = decode_thread_update(json)?;
        // Held to the end, so that no run starts in between.
        let run = lock(&self.run);
        if run.as_ref().is_some_and(|run| !run.has_ended()) {
            return Err(busy(&self.id));
        }
        let mut resident = self.fresh()?;
        let mut overlay = Overlay::new();
        let mut ids = self.services.ids.clone();
        resident
            .state
            .stage(&mut overlay, &step, &mut ids)
            .map_err(|error| match prefix {
                "/values" => {
                    let path = error.path.as_deref().unwrap_or_default();
                    let path = format!("/values{}", path.strip_prefix("/0").unwrap_or(path));
                    Error {
                        path: Some(path),
                        ..error
                    }
                }
                prefix => error.below(prefix),
            })?;
        inject::point("state");
        let delta = resident.state.delta(&overlay);
        let mut metadata = Map::new();
        if let Some(node) = as_node {
            metadata.insert("as_node".into(), node.into());
        }
        let checkpoint = self.checkpoint(&resident, delta, Source::Update, None, metadata);
        let meta = checkpoint.meta.clone();
        if let Err(error) = block_on(self.services.store.put(&self.id, checkpoint)) {
            let is_stale = error.code == ErrorCode::ThreadStale;
            resident.is_stale |= is_stale;
            // The next call reads the thread again.
            return Err(if is_stale { error.retryable() } else { error });
        }
        resident.state.commit(overlay);
        let answer = format!(
            "{{\"checkpoint_id\":\"{}\",\"step\":{}}}",
            meta.id, meta.step
        );
        resident.head = Some(meta);
        Ok(answer)
    }

    /// `fawn_thread_state`: a state or a part of it.
    ///
    /// # Errors
    /// Those of decoding; `UnknownChannel`; `UnknownCheckpoint`; those of the store.
    pub fn state(&self, json: &str) -> Result<String, Error> {
        let query: ThreadStateQuery = from_text(json)?;
        let channels = match &query.channels {
            None => None,
            Some(names) => Some(decode_channels(names)?),
        };
        let selection = Selection {
            channels,
            last_messages: query.last_messages,
        };
        let at = decode_checkpoint("checkpoint_id", query.checkpoint_id.as_deref())?;
        let since = decode_checkpoint("since", query.since.as_deref())?;
        let resident = self.fresh()?;
        let is_head = at.is_none() || at == resident.head.as_ref().map(|head| head.id);
        if is_head {
            let head = resident.head.clone();
            return match since {
                Some(since) => self.changes(&resident.state, head.as_ref(), since, &selection),
                None => Ok(self.state_json(&resident.state, head.as_ref(), &selection)),
            };
        }
        drop(resident);
        let id = at.unwrap_or_default();
        let stored = block_on(self.services.store.load(&self.id, id))?
            .ok_or_else(|| unknown_checkpoint("/checkpoint_id", id))?;
        let state = ThreadState::restore(stored.state);
        match since {
            Some(since) => self.changes(&state, Some(&stored.meta), since, &selection),
            None => Ok(self.state_json(&state, Some(&stored.meta), &selection)),
        }
    }

    /// `fawn_thread_history`: checkpoints, newest first.
    ///
    /// # Errors
    /// Those of decoding; `UnknownCheckpoint`; those of the store.
    pub fn history(&self, json: &str) -> Result<String, Error> {
        let query: ThreadHistoryQuery = from_text(json)?;
        let before = decode_checkpoint("before", query.before.as_deref())?;
        let store = &self.services.store;
        let list = block_on(store.list(
            &self.id,
            HistoryQuery {
                limit: query.limit,
                before,
            },
        ))?;
        let mut text = String::from("[");
        for (place, meta) in list.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            text.push('{');
            write_meta(&mut text, Some(meta));
            if query.values {
                let stored = block_on(store.load(&self.id, meta.id))?
                    .ok_or_else(|| unknown_checkpoint("/before", meta.id))?;
                let state = ThreadState::restore(stored.state);
                text.push_str(",\"values\":");
                state
                    .view(&Overlay::new())
                    .write_json(&mut text, &Selection::default());
            }
            text.push('}');
        }
        text.push(']');
        Ok(text)
    }

    /// Reads the state. The lock is held for as long as `read` runs.
    pub(super) fn with_state<T>(&self, read: impl FnOnce(&ThreadState) -> T) -> T {
        read(&lock(&self.resident).state)
    }

    /// Reads the thread from the store again if something else may be there.
    pub(super) fn refresh(&self) -> Result<(), Error> {
        self.fresh().map(drop)
    }

    /// Makes the next use read the store: a run on this thread came to a bad end.
    pub(super) fn distrust(&self) {
        lock(&self.resident).is_stale = true;
    }

    /// Takes what the store has in place of what is in memory.
    pub(super) fn replace(&self, stored: Option<StoredCheckpoint>) {
        *lock(&self.resident) = Resident::of(stored);
    }

    /// The checkpoint that a run's pending changes make.
    pub(super) fn next_checkpoint(
        &self,
        delta: StateDelta,
        source: Source,
        run_id: &Arc<str>,
    ) -> NewCheckpoint {
        let resident = lock(&self.resident);
        self.checkpoint(&resident, delta, source, Some(run_id.clone()), Map::new())
    }

    /// Stores a run's checkpoint; the caller commits the state afterwards.
    pub(super) async fn put(&self, checkpoint: NewCheckpoint) -> Result<(), Error> {
        inject::point("store");
        let stored = self.services.store.put(&self.id, checkpoint).await;
        if let Err(error) = &stored
            && error.code == ErrorCode::ThreadStale
        {
            self.distrust();
        }
        stored
    }

    /// Commits what a run has stored as checkpoint `meta`.
    pub(super) fn commit(
        &self,
        meta: Option<CheckpointMeta>,
        commit: impl FnOnce(&mut ThreadState),
    ) {
        let mut resident = lock(&self.resident);
        commit(&mut resident.state);
        if meta.is_some() {
            resident.head = meta;
        }
    }

    /// The newest checkpoint.
    pub(super) fn head_id(&self) -> Option<Uuid> {
        lock(&self.resident).head.as_ref().map(|head| head.id)
    }

    /// The checkpoint that `delta` makes after the newest one.
    pub(super) fn checkpoint(
        &self,
        resident: &Resident,
        delta: StateDelta,
        source: Source,
        run_id: Option<Arc<str>>,
        metadata: Map<String, Value>,
    ) -> NewCheckpoint {
        let head = resident.head.as_ref();
        let messages = delta.messages.replaced.len() + delta.messages.appended.len();
        NewCheckpoint {
            meta: CheckpointMeta {
                id: self.services.ids.checkpoint(head.map(|head| head.id)),
                parent: head.map(|head| head.id),
                step: match (head, source) {
                    (Some(head), _) => head.step + 1,
                    (None, Source::Input) => -1, // LG-21
                    (None, _) => 0,              // LG-37
                },
                source,
                at: self.services.clock.now(),
                run_id,
                metadata,
            },
            delta,
            next_seq: resident.state.next_seq() + messages as Seq,
        }
    }

    /// The state in memory, read from the store again if something else may be there.
    pub(super) fn fresh(&self) -> Result<std::sync::MutexGuard<'_, Resident>, Error> {
        let mut resident = lock(&self.resident);
        if resident.is_stale {
            *resident = Resident::of(block_on(self.services.store.open(&self.id))?);
        }
        Ok(resident)
    }

    fn state_json(
        &self,
        state: &ThreadState,
        head: Option<&CheckpointMeta>,
        selection: &Selection,
    ) -> String {
        let mut text = self.state_head(head);
        text.push_str(",\"values\":");
        state.view(&Overlay::new()).write_json(&mut text, selection);
        text.push('}');
        text
    }

    /// The beginning of an answer about a state: the thread and the checkpoint.
    fn state_head(&self, meta: Option<&CheckpointMeta>) -> String {
        let mut text = String::from("{\"thread_id\":");
        push_quoted(&mut text, &self.id);
        text.push(',');
        write_meta(&mut text, meta);
        text
    }

    /// What changed between `since` and `state`, the state at checkpoint `meta`.
    fn changes(
        &self,
        state: &ThreadState,
        meta: Option<&CheckpointMeta>,
        since: Uuid,
        selection: &Selection,
    ) -> Result<String, Error> {
        let store = &self.services.store;
        let upto = meta.ok_or_else(|| unknown_checkpoint("/since", since))?;
        let deltas = block_on(store.deltas(&self.id, since, upto.id))?
            .ok_or_else(|| unknown_checkpoint("/since", since))?;
        let wanted = |channel: Channel| match &selection.channels {
            Some(channels) => channels.contains(&channel),
            None => true,
        };
        let mut net = NetChanges::default();
        for delta in &deltas {
            net.add(delta);
        }
        let removed = if net.removed.is_empty() || net.reset {
            Vec::new()
        } else {
            // The ids of old messages stand only in the old state.
            let old = block_on(store.load(&self.id, since))?
                .ok_or_else(|| unknown_checkpoint("/since", since))?;
            let messages = old.state.messages.iter();
            messages
                .filter(|(seq, _)| net.removed.contains(seq))
                .filter_map(|(_, message)| message.id().map(str::to_owned))
                .collect()
        };
        let mut text = self.state_head(Some(upto));
        let _ = write!(text, ",\"since\":\"{since}\",\"values\":{{");
        let mut first = true;
        for (channel, name, _) in CHANNELS {
            if let Some(value) = net.channels.get(*channel as usize).and_then(Option::as_ref)
                && wanted(*channel)
            {
                if !std::mem::take(&mut first) {
                    text.push(',');
                }
                let _ = write!(text, "\"{name}\":{value}");
            }
        }
        text.push('}');
        if wanted(Channel::Messages) {
            let overlay = Overlay::new();
            let view = state.view(&overlay);
            let upserted: Vec<_> = if net.reset {
                view.messages().collect()
            } else {
                net.upserted.values().collect()
            };
            let skip = selection
                .last_messages
                .map_or(0, |last| upserted.len().saturating_sub(last));
            let _ = write!(text, ",\"messages\":{{\"reset\":{},\"removed\":", net.reset);
            text.push_str(&json!(removed).to_string());
            text.push_str(",\"upserted\":[");
            for (place, message) in upserted.iter().skip(skip).enumerate() {
                if place > 0 {
                    text.push(',');
                }
                text.push_str(message.json());
            }
            text.push_str("]}");
        }
        text.push('}');
        Ok(text)
    }
}

/// Several deltas as one.
#[derive(Default)]
struct NetChanges {
    reset: bool,
    /// Numbers of messages of the old state that are gone.
    removed: std::collections::HashSet<Seq>,
    /// Messages that are new or replaced, in the order of their numbers.
    upserted: std::collections::BTreeMap<Seq, crate::protocol::message::Message>,
    /// By channel; `Null` for one that is missing again.
    channels: Vec<Option<Value>>,
}

impl NetChanges {
    fn add(&mut self, delta: &StateDelta) {
        if delta.messages.reset {
            self.reset = true;
            self.upserted.clear();
        }
        for seq in &delta.messages.removed {
            if self.upserted.remove(seq).is_none() {
                self.removed.insert(*seq);
            }
        }
        for (old, new, message) in &delta.messages.replaced {
            self.upserted.remove(old);
            self.upserted.insert(*new, message.clone());
        }
        for (seq, message) in &delta.messages.appended {
            self.upserted.insert(*seq, message.clone());
        }
        self.channels.resize(CHANNELS.len(), None);
        for (channel, value) in &delta.channels {
            self.channels[*channel as usize] = Some(value.clone().unwrap_or(Value::Null));
        }
    }
}

/// A decoded input of `fawn_thread_update`.
struct DecodedUpdate {
    step: Vec<StateUpdate>,
    /// Where the writes stand in the input.
    prefix: &'static str,
    as_node: Option<String>,
}

fn decode_thread_update(json: &str) -> Result<DecodedUpdate, Error> {
    if let Some(list) = messages_alone(json) {
        let messages = coerce::write_text(list).map_err(|error| error.below("/values/messages"))?;
        return Ok(DecodedUpdate {
            step: vec![StateUpdate::messages(messages)],
            prefix: "/values",
            as_node: None,
        });
    }
    let ThreadUpdate {
        values,
        writes,
        as_node,
    } = from_text(json)?;
    let (step, prefix) = match (values, writes) {
        (Some(values), None) => (vec![decode_update(values, "/values")?], "/values"),
        (None, Some(writes)) => {
            let decode = |(place, write)| decode_update(write, &format!("/writes/{place}"));
            let step = writes.into_iter().enumerate().map(decode);
            (step.collect::<Result<Vec<_>, _>>()?, "/writes")
        }
        (Some(_), Some(_)) => {
            return Err(Error::at(
                ErrorCode::Conflict,
                "/writes",
                "give values or writes, not both",
            ));
        }
        (None, None) => {
            return Err(Error::at(
                ErrorCode::MissingMember,
                "/values",
                "an update needs values or writes",
            ));
        }
    };
    Ok(DecodedUpdate {
        step,
        prefix,
        as_node,
    })
}

/// The list in `{"values": {"messages": [ … ]}}`, the commonest update by far: its messages are read from the text
/// without a tree of values between. `None` for every other input, sound or not.
fn messages_alone(json: &str) -> Option<&str> {
    if json.len() > MAX_BYTES {
        return None;
    }
    let mut scanner = Scanner::new(json);
    let enter = |scanner: &mut Scanner<'_>, name: &str| {
        scanner.enter_object().ok()?;
        (scanner.member(true).ok()??.text() == name).then_some(())
    };
    enter(&mut scanner, "values")?;
    enter(&mut scanner, "messages")?;
    if scanner.peek() != Some(b'[') {
        return None;
    }
    let list = scanner.value().ok()?;
    let closed = scanner.member(false).ok()?.is_none() && scanner.member(false).ok()?.is_none();
    scanner.end().ok()?;
    closed.then_some(list)
}

/// The refusal of a thread that a run holds.
pub(super) fn busy(thread_id: &str) -> Error {
    Error::new(
        ErrorCode::ThreadBusy,
        format!("thread {thread_id:?} has a run in flight"),
    )
    .retryable()
}

/// Decodes one set of writes that stands at `at` in the caller's input.
pub(super) fn decode_update(value: Value, at: &str) -> Result<StateUpdate, Error> {
    StateUpdate::decode(value).map_err(|error| error.below(at))
}

fn decode_channels(names: &[String]) -> Result<Vec<Channel>, Error> {
    let decode = |(place, name): (usize, &String)| {
        Channel::from_name(name).ok_or_else(|| {
            Error::at(
                ErrorCode::UnknownChannel,
                format!("/channels/{place}"),
                Channel::unknown(name),
            )
        })
    };
    names.iter().enumerate().map(decode).collect()
}

/// Reads a checkpoint id that the caller gave as `member`.
pub(super) fn decode_checkpoint(member: &str, id: Option<&str>) -> Result<Option<Uuid>, Error> {
    let Some(id) = id else { return Ok(None) };
    let id = Uuid::parse_str(id).map_err(|_| {
        Error::at(
            ErrorCode::UnknownCheckpoint,
            format!("/{member}"),
            format!("{member} is no checkpoint id; it looks like a UUID"),
        )
    })?;
    Ok(Some(id))
}

fn unknown_checkpoint(path: &str, id: Uuid) -> Error {
    let text = format!("checkpoint {id} is not on this thread, or not before the one that is read");
    Error::at(ErrorCode::UnknownCheckpoint, path, text)
}

/// The members that tell of a checkpoint; all null for a thread that has none.
fn write_meta(text: &mut String, meta: Option<&CheckpointMeta>) {
    // Writing to a String cannot fail.
    let _ = match meta {
        None => write!(
            text,
            "\"checkpoint_id\":null,\"parent_checkpoint_id\":null,\"step\":null,\"source\":null,\
             \"created_at\":null,\"run_id\":null,\"metadata\":{{}}"
        ),
        Some(meta) => write!(
            text,
            "\"checkpoint_id\":\"{}\",\"parent_checkpoint_id\":{},\"step\":{},\"source\":\"{}\",\
             \"created_at\":\"{}\",\"run_id\":{},\"metadata\":{}",
            meta.id,
            json!(meta.parent.map(|parent| parent.to_string())),
            meta.step,
            meta.source.name(),
            meta.at,
            json!(meta.run_id.as_deref()),
            json!(meta.metadata),
        ),
    };
}
