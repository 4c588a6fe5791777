//! Generated histories: the linear fold against the slow model, on values, texts and resident threads.
//!
//! `FAWN_HISTORIES` sets how many, `FAWN_SEED` where they begin.

use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::message::Message;
use fawn::state::channels::Channel;
use fawn::state::delta::{Replay, StateDelta, StoredState};
use fawn::state::ids::{IdSource, SequentialIds};
use fawn::state::messages::fold_messages;
use fawn::state::reduce::reduce_document;
use fawn::state::thread::{Overlay, Selection, ThreadState};
use fawn::state::update::{StateUpdate, Write};
use serde_json::{Value, json};

use crate::model::{Ids, Msg, Random, fold, text};

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |given| given.parse().unwrap())
}

/// Runs `check` on `share` percent of as many histories as asked, each with its own seed, so that one that fails can be run alone.
fn each_history(share: u64, mut check: impl FnMut(&mut Random)) {
    let seed = number("FAWN_SEED", 2026);
    for history in 0..(number("FAWN_HISTORIES", 200_000) * share).div_ceil(100) {
        let mut random = Random(
            seed.wrapping_add(history)
                .wrapping_mul(0x2545_F491_4F6C_DD1D),
        );
        let run = std::panic::AssertUnwindSafe(|| check(&mut random));
        let failed = std::panic::catch_unwind(run).is_err();
        assert!(
            !failed,
            "run it alone: FAWN_SEED={} FAWN_HISTORIES=1",
            seed.wrapping_add(history)
        );
    }
}

fn typed(messages: &[Msg]) -> Vec<Message> {
    let read = |message: &Msg| Message::from_canonical_text(&message.json()).unwrap();
    messages.iter().map(read).collect()
}

fn agree<T: PartialEq + std::fmt::Debug>(answer: &Result<T, Error>, expected: &Result<T, String>) {
    match (answer, expected) {
        (Ok(answer), Ok(expected)) => assert_eq!(answer, expected),
        (Err(error), Err(expected)) => {
            assert_eq!(&error.message, expected);
            let code = if expected.starts_with("Must") {
                ErrorCode::NullWrite
            } else {
                ErrorCode::UnknownMessageId
            };
            assert_eq!(error.code, code);
        }
        (answer, expected) => panic!("{answer:?} is not {expected:?}"),
    }
}

fn texts(messages: &[Message]) -> String {
    let texts: Vec<&str> = messages.iter().map(Message::json).collect();
    format!("[{}]", texts.join(","))
}

/// What the state text becomes as a document, and what the fold makes of it.
#[test]
fn linear_fold_of_texts_equals_add_messages() {
    each_history(50, |random| {
        let state = random.state();
        let mut writes = random.writes(4);
        writes.push(random.write());
        let mut ids = Ids(random.below(300));
        let first = ids.0;
        let canonical = random.one_in(2);
        let update = |write: &Option<Vec<Msg>>, random: &mut Random| match write {
            None => "null".to_owned(),
            Some(messages) => match messages.as_slice() {
                [alone] if random.one_in(2) => alone.loose().to_string(),
                messages if random.one_in(2) => text(messages),
                messages => {
                    let loose: Vec<Value> = messages.iter().map(Msg::loose).collect();
                    json!(loose).to_string()
                }
            },
        };
        // A dumped AI message loses members when it is coerced; those go in as objects a caller writes.
        let loose = |text: String| {
            text.replace(
                r#","tool_calls":[],"invalid_tool_calls":[],"usage_metadata":null"#,
                "",
            )
        };
        let updates: Vec<String> = writes
            .iter()
            .map(|write| loose(update(write, random)))
            .collect();
        let existing = text(&state);
        let (existing, form) = match canonical {
            true => (existing, r#","form":"canonical""#),
            false => (loose(existing), ""),
        };
        let document = format!(
            r#"{{"existing":{existing},"updates":[{}],"ids":{{"sequential_from":{first}}}{form}}}"#,
            updates.join(",")
        );
        let answer = reduce_document("messages", &document);
        // A removal without an id can be given as an object only.
        let expected = fold(&state, &writes, &mut ids);
        // The very first write is looked at before the state is.
        agree(&answer, &expected.map(|messages| text(&messages)));
    });
}

/// A thread and what the model says it holds.
struct Twin {
    random: Random,
    thread: ThreadState,
    overlay: Overlay,
    ids: SequentialIds,
    stored: StoredState,
    deltas: Vec<StateDelta>,
    model: Vec<Msg>,
    title: Option<String>,
    model_ids: Ids,
}

impl Twin {
    fn new(random: Random) -> Self {
        Twin {
            random,
            thread: ThreadState::new(),
            overlay: Overlay::new(),
            ids: SequentialIds::starting_at(1),
            stored: StoredState::default(),
            deltas: Vec::new(),
            model: Vec::new(),
            title: None,
            model_ids: Ids(1),
        }
    }

    /// One superstep of a few updates, which may fail at any write of any channel.
    fn step(&mut self) {
        let random = &mut self.random;
        let mut step = Vec::new();
        let mut writes = Vec::new();
        let mut titles = Vec::new();
        for _ in 0..random.below(4) {
            let mut update = StateUpdate::default();
            for _ in 0..=random.below(2) {
                let write = random.write();
                let value = match &write {
                    None => Write::Value(Value::Null),
                    Some(messages) if random.one_in(2) => Write::Messages(typed(messages)),
                    Some(messages) => Write::Value(messages.iter().map(Msg::loose).collect()),
                };
                writes.push(write);
                update.writes.push((Channel::Messages, value));
            }
            if random.one_in(6) {
                let title = format!("t{}", random.below(10));
                update
                    .writes
                    .push((Channel::Title, Write::Value(json!(title))));
                titles.push(title);
            }
            step.push(update);
        }
        let before = (
            self.state(),
            self.ids.mark(),
            self.thread.delta(&self.overlay),
        );
        let mut ids = self.model_ids.clone();
        let expected = fold(&self.model, &writes, &mut ids);
        let answer = self.thread.stage(&mut self.overlay, &step, &mut self.ids);
        if let (Ok(_), true) = (&expected, titles.len() > 1) {
            assert_eq!(answer.unwrap_err().code, ErrorCode::ConflictingWrites);
        } else {
            agree(&answer, &expected.clone().map(|_| ()));
            if let Ok(model) = expected {
                self.model = model;
                self.model_ids = ids;
                self.title = titles.pop().or(self.title.take());
                self.read();
                return;
            }
        }
        // A failed step changes nothing: not the state, not the next id, not what would be saved.
        let after = (
            self.state(),
            self.ids.mark(),
            self.thread.delta(&self.overlay),
        );
        assert_eq!(before.0, after.0);
        assert_eq!(before.1, after.1);
        assert_eq!(format!("{:?}", before.2), format!("{:?}", after.2));
    }

    fn state(&self) -> String {
        let mut out = String::new();
        let selection = Selection {
            channels: Some(vec![Channel::Messages, Channel::Title]),
            last_messages: None,
        };
        self.thread
            .view(&self.overlay)
            .write_json(&mut out, &selection);
        out
    }

    fn read(&mut self) {
        let title = self
            .title
            .as_ref()
            .map_or(String::new(), |title| format!(r#","title":"{title}""#));
        assert_eq!(
            self.state(),
            format!(r#"{{"messages":{}{title}}}"#, text(&self.model))
        );
        let view = self.thread.view(&self.overlay);
        assert_eq!(view.len(), self.model.len());
        assert_eq!(view.messages().len(), self.model.len());
        let count = self.random.below(5) as usize;
        let last: Vec<&str> = view.last_n(count).into_iter().map(Message::json).collect();
        let start = self.model.len().saturating_sub(count);
        let expected: Vec<String> = self.model[start..].iter().map(Msg::json).collect();
        assert_eq!(last, expected);
        for id in ["a", "", "quote\" and \n é", "__remove_all__", "zz"] {
            let expected = self
                .model
                .iter()
                .rfind(|message| message.id.as_deref() == Some(id));
            let found = view.by_id(id).map(|message| message.json().to_owned());
            assert_eq!(found, expected.map(Msg::json), "{id:?}");
        }
        assert_eq!(self.ids.mark(), self.model_ids.0);
    }

    /// Saves: the delta on top of what is stored reads as the thread does, and its numbers are new.
    fn commit(&mut self) {
        let delta = self.thread.delta(&self.overlay);
        let changed = !delta.is_empty();
        assert_eq!(
            changed,
            !delta.messages.is_empty() || !delta.channels.is_empty()
        );
        let next = self.thread.next_seq();
        let new = delta.messages.replaced.iter().map(|(_, seq, _)| *seq);
        let new: Vec<_> = new
            .chain(delta.messages.appended.iter().map(|(seq, _)| *seq))
            .collect();
        assert!(
            new.iter().copied().eq(next..next + new.len() as u64),
            "{new:?} from {next}"
        );
        let known: Vec<_> = self.stored.messages.iter().map(|(seq, _)| *seq).collect();
        let gone = delta
            .messages
            .replaced
            .iter()
            .map(|(seq, ..)| seq)
            .chain(&delta.messages.removed);
        assert!(gone.clone().all(|seq| known.contains(seq)));
        self.thread.commit(std::mem::take(&mut self.overlay));
        assert_eq!(self.thread.next_seq(), next + new.len() as u64);
        let mut replay = Replay::from_base(std::mem::take(&mut self.stored));
        replay.apply(delta.clone());
        self.deltas.push(delta);
        self.stored = replay.finish(self.thread.next_seq());
        self.check_stored(&self.stored);
        self.read();
    }

    fn check_stored(&self, stored: &StoredState) {
        let messages: Vec<Message> = stored
            .messages
            .iter()
            .map(|(_, message)| message.clone())
            .collect();
        assert_eq!(texts(&messages), text(&self.model));
        let title = stored
            .channels
            .iter()
            .find(|(channel, _)| *channel == Channel::Title);
        let expected = self.title.as_ref().map(|title| json!(title));
        assert_eq!(title.map(|(_, value)| value), expected.as_ref());
    }
}

#[test]
fn linear_fold_on_resident_threads_equals_add_messages() {
    each_history(50, |random| {
        let mut twin = Twin::new(Random(random.0));
        for _ in 0..=random.below(4) {
            for _ in 0..=random.below(2) {
                twin.step();
            }
            twin.commit();
            if random.one_in(4) {
                twin.thread = ThreadState::restore(twin.stored.clone());
                twin.read();
            }
        }
        // All deltas from the beginning give the same state as each on top of the one before.
        let mut replay = Replay::default();
        for delta in std::mem::take(&mut twin.deltas) {
            replay.apply(delta);
        }
        let stored = replay.finish(twin.thread.next_seq());
        assert_eq!(
            format!("{:?}", stored.messages),
            format!("{:?}", twin.stored.messages)
        );
        twin.check_stored(&stored);
    });
}

#[test]
fn batching_never_matters() {
    each_history(20, |random| {
        let state = random.state();
        let (first, second) = (random.writes(3), random.writes(3));
        let typed_writes = |writes: &[Option<Vec<Msg>>]| -> Vec<Option<Vec<Message>>> {
            writes
                .iter()
                .map(|write| write.as_deref().map(typed))
                .collect()
        };
        let all: Vec<_> = first.iter().chain(&second).cloned().collect();
        let mut ids = SequentialIds::default();
        let at_once = fold_messages(typed(&state), typed_writes(&all), &mut ids);
        let mut split_ids = SequentialIds::default();
        let split = fold_messages(typed(&state), typed_writes(&first), &mut split_ids)
            .and_then(|state| fold_messages(state, typed_writes(&second), &mut split_ids));
        match (at_once, split) {
            (Ok(at_once), Ok(split)) => {
                assert_eq!(texts(&at_once), texts(&split));
                assert_eq!(ids.mark(), split_ids.mark());
            }
            (Err(at_once), Err(split)) => {
                assert_eq!((at_once.code, at_once.message), (split.code, split.message));
            }
            (at_once, split) => panic!("{at_once:?} is not {split:?}"),
        }
        // The same on canonical texts.
        let document = |state: &str, writes: &[Option<Vec<Msg>>], first: u64| {
            let updates: Vec<Value> = writes
                .iter()
                .map(|write| {
                    write
                        .as_ref()
                        .map_or(Value::Null, |write| write.iter().map(Msg::loose).collect())
                })
                .collect();
            let updates = Value::Array(updates);
            let text = format!(
                r#"{{"form":"canonical","existing":{state},"updates":{updates},"ids":{{"sequential_from":{first}}}}}"#
            );
            reduce_document("messages", &text)
        };
        let mut ids = Ids(1);
        if let (Ok(_), false, false) = (
            fold(&state, &first, &mut ids),
            first.is_empty(),
            second.is_empty(),
        ) {
            let half = document(&text(&state), &first, 1).unwrap();
            let split = document(&half, &second, ids.0);
            let at_once = document(&text(&state), &all, 1);
            match (at_once, split) {
                (Ok(at_once), Ok(split)) => assert_eq!(at_once, split),
                (Err(at_once), Err(split)) => assert_eq!(at_once.message, split.message),
                (at_once, split) => panic!("{at_once:?} is not {split:?}"),
            }
        }
    });
}
