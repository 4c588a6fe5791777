//! `delegations`: the ledger of what the agent gave to subagents, kept outside the messages so that no summary loses it.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Fault, Side};
use crate::state::python::{self, Key};

/// Most entries in the ledger; older ones go first. Source: DeerFlow `thread_state.py`.
pub const MAX_DELEGATIONS: usize = 50;

/// Statuses that no running entry replaces. Source: DeerFlow `thread_state.py`.
pub const TERMINAL_STATUSES: [&str; 5] = [
    "completed",
    "failed",
    "cancelled",
    "timed_out",
    "polling_timed_out",
];

/// Folds entries into the ledger.
///
/// `existing` is the ledger, oldest first. A write that counts as false keeps it, without a check or a cap (`[]` when
/// it counts as false itself). Otherwise the entries of both are folded one by one:
///
/// - An entry is identified by (`run_id`, `id`). One without a `run_id` belongs to the identity of the same `id` that
///   came last; one with a `run_id` never joins an entry without.
/// - A terminal entry stays when a running one arrives; otherwise the newer entry replaces the older one whole, in its
///   place. It keeps the older `created_at`, if there was one, and then also the older `run_id` if it has none itself.
/// - The last [`MAX_DELEGATIONS`] identities remain, by first appearance.
///
/// # Errors
/// [`ErrorCode::EntryMember`](crate::protocol::error::ErrorCode::EntryMember) when `id` is missing, or a `status` that
/// has to be compared; [`ErrorCode::EntryType`](crate::protocol::error::ErrorCode::EntryType) when a value is no list,
/// an entry no object, or an id or status a list or an object.
///
/// Source: DeerFlow `merge_delegations` (the run-scoped one), ST-12, ST-13.
pub fn merge_delegations(existing: Value, update: Value) -> Result<Value, Fault> {
    if !python::truthy(&update) {
        return Ok(if python::truthy(&existing) {
            existing
        } else {
            Value::Array(Vec::new())
        });
    }
    let held = match existing {
        Value::Array(entries) => entries,
        other if python::truthy(&other) => return Err(not_entries(Side::Existing, &other)),
        _ => Vec::new(),
    };
    let written = match update {
        Value::Array(entries) => Ok(entries),
        // The reference joins both before it looks at an entry. Text and objects can be joined, so that their fault
        // comes after those of the existing entries.
        other @ (Value::String(_) | Value::Object(_)) => Err(not_entries(Side::Update, &other)),
        other => return Err(not_entries(Side::Update, &other)),
    };

    let mut ledger = Ledger::default();
    ledger.fold_all(held, Side::Existing)?;
    ledger.fold_all(written?, Side::Update)?;
    Ok(ledger.finish())
}

fn not_entries(side: Side, found: &Value) -> Fault {
    Fault::wrong_type(side, "", "a list of entries", found)
}

/// Where an entry came from, for messages.
#[derive(Clone, Copy)]
struct Origin {
    side: Side,
    place: usize,
}

impl Origin {
    fn path(self) -> String {
        format!("/{}", self.place)
    }
}

/// (`run_id`, `id`), the former `None` when it counts as false.
type Identity = (Option<Key<'static>>, Key<'static>);

#[derive(Default)]
struct Ledger {
    slots: Vec<(Map<String, Value>, Origin)>,
    by_identity: HashMap<Identity, usize>,
    /// The slot that came last for an `id`, whatever its run.
    latest: HashMap<Key<'static>, usize>,
}

impl Ledger {
    fn fold_all(&mut self, entries: Vec<Value>, side: Side) -> Result<(), Fault> {
        entries
            .into_iter()
            .enumerate()
            .try_for_each(|(place, entry)| self.fold(entry, Origin { side, place }))
    }

    fn fold(&mut self, entry: Value, origin: Origin) -> Result<(), Fault> {
        let Value::Object(entry) = entry else {
            return Err(Fault::wrong_type(
                origin.side,
                origin.path(),
                "an object",
                &entry,
            ));
        };
        let id = entry
            .get("id")
            .ok_or_else(|| Fault::missing(origin.side, &origin.path(), "id"))?;
        let run = python::truthy_member(&entry, "run_id")
            .map(|run| key(run, "run_id", origin))
            .transpose()?;
        let id = key(id, "id", origin)?;

        let known = match &run {
            // The identity of a slot is that of its first entry, whatever entries took it since.
            Some(_) => self.by_identity.get(&(run.clone(), id.clone())),
            None => self.latest.get(&id),
        };
        match known.copied() {
            Some(slot) => self.replace(slot, entry, origin),
            None => {
                let slot = self.slots.len();
                self.latest.insert(id.clone(), slot);
                self.by_identity.insert((run, id), slot);
                self.slots.push((entry, origin));
                Ok(())
            }
        }
    }

    fn replace(
        &mut self,
        slot: usize,
        mut entry: Map<String, Value>,
        origin: Origin,
    ) -> Result<(), Fault> {
        let (previous, from) = &mut self.slots[slot];
        if is_terminal(previous, *from)? && !is_terminal(&entry, origin)? {
            return Ok(());
        }
        if python::truthy_member(previous, "created_at").is_some() {
            inherit(&mut entry, previous, "created_at");
            if python::truthy_member(previous, "run_id").is_some()
                && python::truthy_member(&entry, "run_id").is_none()
            {
                inherit(&mut entry, previous, "run_id");
            }
        }
        *previous = entry;
        *from = origin;
        Ok(())
    }

    fn finish(mut self) -> Value {
        let dropped = self.slots.len().saturating_sub(MAX_DELEGATIONS);
        Value::Array(
            self.slots
                .drain(dropped..)
                .map(|(entry, _)| Value::Object(entry))
                .collect(),
        )
    }
}

fn inherit(entry: &mut Map<String, Value>, previous: &mut Map<String, Value>, member: &str) {
    if let Some(value) = previous.get_mut(member) {
        entry.insert(member.to_owned(), value.take());
    }
}

fn key(value: &Value, member: &str, origin: Origin) -> Result<Key<'static>, Fault> {
    match Key::of(value) {
        Some(key) => Ok(key.into_owned()),
        None => Err(Fault::wrong_type(
            origin.side,
            format!("{}/{member}", origin.path()),
            "text",
            value,
        )),
    }
}

fn is_terminal(entry: &Map<String, Value>, origin: Origin) -> Result<bool, Fault> {
    match entry.get("status") {
        None => Err(Fault::missing(origin.side, &origin.path(), "status")),
        Some(Value::String(status)) => Ok(TERMINAL_STATUSES.contains(&status.as_str())),
        Some(status @ (Value::Array(_) | Value::Object(_))) => Err(Fault::wrong_type(
            origin.side,
            format!("{}/status", origin.path()),
            "text",
            status,
        )),
        Some(_) => Ok(false),
    }
}
