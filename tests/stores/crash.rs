//! `kill -9` in the middle of writing: what was reported is there, and the file is whole.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fawn::adapters::store::sqlite::{Offload, SqliteStore};
use fawn::ports::checkpoint::DynCheckpointStore;
use fawn::state::channels::Channel;
use fawn::state::delta::{MessageDelta, StateDelta};
use serde_json::json;

use crate::support::*;

const PATH: &str = "FAWN_STORES_CRASH";
const ROUNDS: u64 = 200;
const T: &str = "thread";

/// The delta of checkpoint number `n`, from what the model holds: the same in the writer and in the test.
fn delta(model: &Model) -> StateDelta {
    let n = model.next_id;
    let mut dice = Dice::new(n);
    let live = model.newest().map_or(&[][..], |newest| &newest.messages);
    let mut next = model.next_seq;
    let mut messages = MessageDelta {
        reset: live.len() > 60,
        ..MessageDelta::default()
    };
    if !messages.reset {
        for (seq, _) in live {
            match dice.below(30) {
                0 => messages.removed.push(*seq),
                1 => {
                    messages
                        .replaced
                        .push((*seq, next, rich(&message_id(next), n)));
                    next += 1;
                }
                _ => {}
            }
        }
    }
    for _ in 0..1 + dice.below(3) {
        messages
            .appended
            .push((next, rich(&message_id(next), dice.below(6))));
        next += 1;
    }
    let mut channels = Vec::new();
    if dice.one_in(3) {
        let value = json!("t".repeat(dice.below(9000) as usize));
        channels.push((Channel::Title, (!dice.one_in(4)).then_some(value)));
    }
    StateDelta { messages, channels }
}

/// Drops what a long history does not need, so that the model stays small.
fn forget(model: &mut Model) {
    let keep = model.checkpoints.len().saturating_sub(1);
    model.checkpoints.drain(..keep);
    if let Some(only) = model.checkpoints.first_mut() {
        only.parent = None;
    }
}

fn advance(model: &mut Model) {
    let parent = model.checkpoints.len().checked_sub(1);
    let next = model.next(parent, delta(model));
    model.add(&next);
    forget(model);
}

fn store(path: &Path) -> Box<dyn DynCheckpointStore> {
    erased(SqliteStore::new(path, Offload::Inline))
}

/// Not a test of its own: writes until it is killed.
#[test]
fn writer() {
    let Ok(path) = std::env::var(PATH) else {
        return;
    };
    let store = store(path.as_ref());
    let mut model = Model::default();
    if let Some(newest) = wait(store.open(T)).unwrap() {
        // Goes on from what is stored; the test has compared it with the model.
        model.next_id = (newest.meta.step + 2) as u64;
        model.next_seq = newest.state.next_seq;
        let mut start = Model::default().next(None, appended(newest.state.messages));
        start.delta.channels = newest
            .state
            .channels
            .into_iter()
            .map(|(c, v)| (c, Some(v)))
            .collect();
        start.meta = newest.meta;
        start.meta.parent = None;
        start.next_seq = model.next_seq;
        model.next_id -= 1;
        model.add(&start);
    }
    let mut out = std::io::stdout();
    writeln!(out, "ready").unwrap();
    loop {
        let parent = model.checkpoints.len().checked_sub(1);
        let next = model.next(parent, delta(&model));
        wait(store.put(T, next.clone())).unwrap();
        writeln!(out, "stored {}", model.next_id).unwrap();
        out.flush().unwrap();
        model.add(&next);
        forget(&mut model);
    }
}

#[test]
fn what_was_reported_is_there_after_every_kill() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let mut dice = Dice::new(std::process::id().into());
    let mut model = Model::default();
    let mut reported_in_all = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["crash::writer", "--exact", "--nocapture"])
            .env(PATH, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        // Now and then while it is starting.
        let life = Duration::from_micros(dice.below(if round % 5 == 0 { 15_000 } else { 60_000 }));
        let killer = std::thread::spawn(move || {
            let end = Instant::now() + life;
            while let Some(left) = end.checked_duration_since(Instant::now()) {
                std::thread::sleep(left.min(Duration::from_micros(500)));
            }
            child.kill().unwrap();
            child.wait().unwrap()
        });
        let mut reported = None;
        for line in output.lines().map_while(Result::ok) {
            if let Some(number) = line.strip_prefix("stored ") {
                reported = Some(number.parse::<u64>().unwrap());
                reported_in_all += 1;
            }
        }
        assert!(
            !killer.join().unwrap().success(),
            "the writer ended by itself"
        );

        let store = store(&path);
        let newest = wait(store.open(T)).unwrap();
        let stored = newest.as_ref().map(|newest| (newest.meta.step + 1) as u64);
        assert!(
            stored >= reported,
            "round {round}: {reported:?} reported, {stored:?} stored"
        );
        while stored.is_some_and(|stored| model.next_id <= stored) {
            advance(&mut model);
        }
        if let Some(newest) = &newest {
            let mut newest = newest.clone();
            let place = model.checkpoints.len() - 1;
            newest.meta.parent = model.checkpoints[place].meta.parent;
            model.assert_is(place, &newest);
        }
        drop(store);
        let conn = rusqlite::Connection::open(&path).unwrap();
        let check: String = conn
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok", "round {round}");
    }
    eprintln!("{reported_in_all} checkpoints were reported in {ROUNDS} lives");
    assert!(reported_in_all > ROUNDS, "the writers hardly wrote");
}
