//! Notes in the ledger what the agent gave to subagents and what came of it.
//!
//! An entry is `{id, run_id?, description, subagent_type, status, result_brief?, result_sha256?, result_ref?, stop_reason?,
//! created_at}` (ST-12). Each `task` call with an id makes one; the result with that id settles it, by its metadata (see
//! `subagents::outcome`). An entry is known by run and call, as in the reducer: call ids come back in later runs.
//!
//! Source: DeerFlow `DurableContextMiddleware`, MW-DUR-2 to 6 and 15, LED-1 to 8.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::tail::{Beginning, Tail};
use crate::middleware::RunFacts;
use crate::middleware::message_marks::first_chars;
use crate::protocol::json::quote;
use crate::protocol::message::{Kind, Message, ToolCall};
use crate::state::View;
use crate::state::channels::Channel;
use crate::state::reducers::{MAX_DELEGATIONS, TERMINAL_STATUSES};
use crate::subagents::TASK_TOOL;
use crate::subagents::outcome::Outcome;

/// Most characters of what a subagent was asked, and of its type (LED-2).
pub(super) const MAX_DESCRIPTION: usize = 200;

const IN_PROGRESS: &str = "in_progress";
const CANCELLED: &str = "cancelled";

/// The members by which an entry counts as changed (LED-7). What was stored without them is as if they were null.
const COMPARED: [&str; 7] = [
    "description",
    "subagent_type",
    "status",
    "run_id",
    "result_brief",
    "result_sha256",
    "result_ref",
];

type Entry = Map<String, Value>;

/// The entries that a tail makes or changes, in the order of their first appearance; those of earlier runs come first.
pub(super) fn captured(tail: &Tail<'_>, state: View<'_>, run: &RunFacts) -> Vec<Value> {
    let stored = state.channel(Channel::Delegations);
    let stored = stored.and_then(Value::as_array).map_or(&[][..], |it| it);
    let ledger = Ledger {
        stored,
        run: &run.run_id,
        certain: tail.certain,
    };
    let mut drafts = Drafts::new();
    let mut turn = tail.open_turn;
    for (_, message) in &tail.new {
        match message.kind() {
            Kind::Ai => {
                turn = Some(message);
                for (id, call) in tasks(message) {
                    begin(&mut drafts, id, call, &ledger, run);
                }
            }
            Kind::Tool if !(stored.is_empty() && drafts.is_empty()) => {
                if let Some(outcome) = Outcome::of(message) {
                    let id = &message.fields().tool_call_id;
                    settle(&mut drafts, id, outcome, &ledger, turn);
                }
            }
            _ => {}
        }
    }
    let earlier = match tail.first_look {
        Some(beginning) if tail.certain => {
            ledger.settled_since(state, tail.new.len(), beginning, &drafts)
        }
        _ => Vec::new(),
    };
    ledger.within_room(&mut drafts);
    let all = earlier.into_iter().chain(drafts.into_values());
    let changed = all.filter(Draft::is_change);
    changed.map(|draft| Value::Object(draft.entry)).collect()
}

/// The delegations of a reply, each with its id.
fn tasks(message: &Message) -> impl Iterator<Item = (&str, &ToolCall)> {
    let calls = message.fields().tool_calls.iter();
    let tasks = calls.filter(|call| call.name == TASK_TOOL);
    tasks.filter_map(|call| Some((call.id.as_deref().filter(|id| !id.is_empty())?, call)))
}

/// The ledger as it is stored, read for one run.
struct Ledger<'a> {
    stored: &'a [Value],
    run: &'a str,
    certain: bool,
}

impl<'a> Ledger<'a> {
    fn entries(&self) -> impl DoubleEndedIterator<Item = &'a Entry> {
        self.stored.iter().filter_map(Value::as_object)
    }

    /// The entry of a call of this run. One of no run is any run's; one of another run is another delegation, unless it is in
    /// doubt whose call this is (LED-6).
    fn known(&self, id: &str) -> Option<&'a Entry> {
        let ours = |entry: &&Entry| member(entry, "run_id") == Some(self.run);
        let stands_for_ours = |latest: &&Entry| !self.certain || member(latest, "run_id").is_none();
        let found = self.of_id(id).find(ours);
        found.or_else(|| self.of_id(id).next().filter(stands_for_ours))
    }

    /// The entries of an id, the latest first.
    fn of_id(&self, id: &str) -> impl Iterator<Item = &'a Entry> {
        let entries = self.entries().rev();
        entries.filter(move |entry| member(entry, "id") == Some(id))
    }

    /// The entry that a result settles whose call is not looked at: one of this run, or an earlier one that is still open.
    fn awaiting(&self, id: &str) -> Option<&'a Entry> {
        let known = self.known(id);
        known.or_else(|| self.of_id(id).next().filter(|latest| !is_settled(latest)))
    }

    /// What became of the open delegations of earlier runs, when this run is looked at for the first time: their results may
    /// have come when nobody looked, as when a run was cancelled. What nobody answered is not waited for once the user has
    /// said something else (MW-DUR-15). Entries of no run stay as they are.
    fn settled_since(
        &self,
        state: View<'_>,
        new: usize,
        beginning: Beginning,
        drafts: &Drafts<'_>,
    ) -> Vec<Draft<'a>> {
        let is_drafted = |id: &str, entry: &Entry| {
            let draft = drafts.get(id).and_then(|draft| draft.stored);
            draft.is_some_and(|stored| std::ptr::eq(stored, entry))
        };
        let is_earlier = |entry: &Entry| {
            member(entry, "run_id").is_some_and(|of| of != self.run) && !is_settled(entry)
        };
        let open = self.entries().filter(|entry| is_earlier(entry));
        let mut open: Vec<(&str, &Entry)> = open
            .filter_map(|entry| Some((member(entry, "id")?, entry)))
            .filter(|(id, entry)| !is_drafted(id, entry))
            .collect();
        // Of an id that came again only the latest call can be told from the messages.
        let is_latest = |id: &str| self.of_id(id).next().is_some_and(is_earlier);
        let latest = open.iter().filter(|(id, _)| is_latest(id));
        let mut sought: Vec<(&str, String)> = latest.map(|(id, _)| (*id, quote(id))).collect();
        let mut settled = Vec::new();
        for message in state.messages().rev().skip(new) {
            if sought.is_empty() {
                break;
            }
            let names = |(_, quoted): &(&str, String)| message.json().contains(quoted.as_str());
            match message.kind() {
                Kind::Tool if sought.iter().any(names) => {
                    let answered = message.fields().tool_call_id.as_str();
                    let place = open.iter().rposition(|(id, _)| *id == answered);
                    sought.retain(|(id, _)| *id != answered);
                    if let Some(place) = place {
                        let (_, entry) = open.remove(place);
                        settled.extend(Outcome::of(message).map(|outcome| {
                            let mut draft = Draft::of(entry);
                            outcome.note_in(&mut draft.entry);
                            draft
                        }));
                    }
                }
                Kind::Ai if sought.iter().any(names) => {
                    for (called, _) in tasks(message) {
                        sought.retain(|(id, _)| *id != called);
                    }
                }
                _ => {}
            }
        }
        if beginning == Beginning::NewTurn {
            settled.extend(open.into_iter().map(|(_, entry)| {
                let mut draft = Draft::of(entry);
                draft.entry.insert("status".into(), CANCELLED.into());
                draft
            }));
        }
        settled
    }

    /// Takes out what a full ledger has dropped, so that it does not come back (LED-8).
    fn within_room(&self, drafts: &mut Drafts<'_>) {
        let Some(oldest) = self.entries().next() else {
            return;
        };
        if self.stored.len() < MAX_DELEGATIONS {
            return;
        }
        let same = |draft: &Draft<'_>| {
            ["id", "run_id"]
                .iter()
                .all(|name| member(&draft.entry, name) == member(oldest, name))
        };
        let first = drafts.values().position(same);
        let first = first.unwrap_or_else(|| drafts.len().saturating_sub(MAX_DELEGATIONS));
        drafts.drain(..first);
    }
}

/// Entries as they are to be, by the ids of their calls.
type Drafts<'a> = IndexMap<String, Draft<'a>>;

/// An entry as it is to be, and as it is stored.
struct Draft<'a> {
    entry: Entry,
    stored: Option<&'a Entry>,
}

impl<'a> Draft<'a> {
    fn of(stored: &'a Entry) -> Self {
        Draft {
            entry: stored.clone(),
            stored: Some(stored),
        }
    }

    /// Whether the entry has to be written (LED-7). What is settled is never opened again.
    fn is_change(&self) -> bool {
        let Some(stored) = self.stored else {
            return true;
        };
        if is_settled(stored) && !is_settled(&self.entry) {
            return false;
        }
        fn said<'a>(entry: &'a Entry, name: &str) -> Option<&'a Value> {
            entry.get(name).filter(|value| !value.is_null())
        }
        let mut names = COMPARED.iter();
        names.any(|name| said(stored, name) != said(&self.entry, name))
    }
}

/// Notes a call.
fn begin<'a>(
    drafts: &mut Drafts<'a>,
    id: &str,
    call: &ToolCall,
    ledger: &Ledger<'a>,
    run: &RunFacts,
) {
    let stored = ledger.known(id);
    let mut entry = match stored {
        Some(stored) => stored.clone(),
        None => {
            let mut entry = Map::from_iter([("id".to_owned(), id.into())]);
            if !ledger.run.is_empty() {
                entry.insert("run_id".into(), ledger.run.into());
            }
            entry
        }
    };
    for name in ["result_brief", "result_sha256", "result_ref", "stop_reason"] {
        entry.shift_remove(name);
    }
    describe(&mut entry, call);
    entry.insert("status".into(), IN_PROGRESS.into());
    if stored.is_none() {
        entry.insert("created_at".into(), run.now().to_string().into());
    }
    drafts.insert(id.to_owned(), Draft { entry, stored });
}

/// Notes a result. `turn` is the message of the model that it answers.
fn settle<'a>(
    drafts: &mut Drafts<'a>,
    id: &str,
    outcome: Outcome,
    ledger: &Ledger<'a>,
    turn: Option<&Message>,
) {
    let mut calls = turn.into_iter().flat_map(|turn| &turn.fields().tool_calls);
    let call = calls.find(|call| call.id.as_deref() == Some(id));
    if call.is_some_and(|call| call.name != TASK_TOOL) {
        return;
    }
    if let Some(draft) = drafts.get_mut(id) {
        return outcome.note_in(&mut draft.entry);
    }
    let Some(stored) = ledger.awaiting(id) else {
        return;
    };
    let mut draft = Draft::of(stored);
    // The id may have come again within the run: the entry is about the call that is answered now.
    if let Some(call) = call {
        describe(&mut draft.entry, call);
    }
    outcome.note_in(&mut draft.entry);
    drafts.insert(id.to_owned(), draft);
}

/// Says in an entry what a call asks of whom (LED-2).
fn describe(entry: &mut Entry, call: &ToolCall) {
    let said = |name: &str| {
        let text = call.args.get(name)?.as_str()?;
        (!text.is_empty()).then(|| first_chars(text, MAX_DESCRIPTION))
    };
    let description = said("description").or_else(|| said("prompt"));
    let kind = said("subagent_type");
    entry.insert("description".into(), description.unwrap_or("").into());
    entry.insert("subagent_type".into(), kind.unwrap_or("").into());
}

/// A member that is text and not empty.
fn member<'a>(entry: &'a Entry, name: &str) -> Option<&'a str> {
    let text = entry.get(name)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

fn is_settled(entry: &Entry) -> bool {
    member(entry, "status").is_some_and(|status| TERMINAL_STATUSES.contains(&status))
}
