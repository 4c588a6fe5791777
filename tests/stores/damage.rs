//! Damaged and hostile files: every call answers or fails, and nothing panics or hangs.

use std::fs;
use std::path::Path;

use fawn::adapters::store::sqlite::{Offload, SqliteStore};
use fawn::ports::checkpoint::{DynCheckpointStore, HistoryQuery, PendingWrite};
use fawn::state::channels::Channel;
use fawn::state::delta::StateDelta;
use serde_json::json;

use crate::support::*;

const ROUNDS: u64 = 240;
const LENGTH: u64 = 160;
const LAST: usize = LENGTH as usize - 1;

/// A file with two threads of the same history: forks, snapshots, channels, pending writes.
fn sample(path: &Path) -> Model {
    let store = erased(SqliteStore::new(path, Offload::Inline));
    let mut model = Model::default();
    for name in ["t", "other"] {
        model = Model::default();
        for n in 0..LENGTH {
            let mut delta = appended([(2 * n, rich(&message_id(n), n))]);
            if n % 9 == 3 {
                let title = json!("x".repeat(n as usize * 8));
                delta.channels = vec![(Channel::Title, Some(title))];
            }
            if n % 11 == 5 {
                delta.messages.removed = vec![2 * n - 2];
                delta.messages.replaced = vec![(2 * n - 4, 2 * n + 1, rich("r", n))];
            }
            let parent = match n {
                0 => None,
                100 | 150 => Some(n as usize - 20),
                n => Some(n as usize - 1),
            };
            model.put(&*store, name, parent, delta);
        }
        let newest = model.newest().unwrap().meta.id;
        wait(store.put_writes(name, newest, (0..5).map(write).collect())).unwrap();
        model.assert_all(&*store, name);
    }
    model
}

fn write(index: i32) -> PendingWrite {
    PendingWrite {
        task_id: "task".into(),
        index,
        channel: "messages".into(),
        value: "[]".into(),
    }
}

/// Every call of the store. What matters is that each comes back.
fn exercise(store: &dyn DynCheckpointStore, model: &Model) {
    let id = |place: usize| model.checkpoints[place].meta.id;
    for name in ["t", "other"] {
        let newest = wait(store.open(name));
        for place in [0, 30, 63, 64, 65, 149, LAST] {
            let _ = wait(store.load(name, id(place)));
        }
        let listed = wait(store.list(name, HistoryQuery::default()));
        let _ = wait(store.list(
            name,
            HistoryQuery {
                limit: Some(3),
                before: Some(id(50)),
            },
        ));
        let _ = wait(store.deltas(name, id(0), id(LAST)));
        let _ = wait(store.deltas(name, id(140), id(149)));
        let _ = wait(store.writes(name, id(LAST)));
        let _ = wait(store.put_writes(name, id(LAST), vec![write(9)]));
        let mut next = model.next(Some(LAST), said(1000, "x"));
        let _ = wait(store.put(name, next.clone()));
        if let Ok(Some(newest)) = newest {
            next.meta.parent = Some(newest.meta.id);
            next.meta.id = checkpoint_id(5000);
            let _ = wait(store.put(name, next));
        }
        if let Ok(listed) = listed {
            for meta in listed.iter().take(5) {
                let _ = wait(store.load(name, meta.id));
            }
        }
    }
    let _ = wait(store.delete("t"));
}

#[test]
fn flipped_bytes_cut_files_and_blank_pages_never_panic() {
    let folder = Folder::new();
    let whole = folder.file("whole.db");
    let model = sample(&whole);
    let bytes = fs::read(&whole).unwrap();
    let path = folder.file("damaged.db");
    let mut dice = Dice::new(5);
    let mut refused = 0;
    for round in 0..ROUNDS {
        let mut damaged = bytes.clone();
        match round % 8 {
            0 => damaged.truncate(dice.below(bytes.len() as u64) as usize),
            1 => {
                let page = dice.below(bytes.len() as u64 / 4096) as usize * 4096;
                damaged[page..page + 4096].fill(if round % 16 == 1 { 0 } else { 0xff });
            }
            2 => {
                // One page over another.
                let pages = bytes.len() as u64 / 4096;
                let (from, to) = (
                    dice.below(pages) as usize * 4096,
                    dice.below(pages) as usize * 4096,
                );
                damaged.copy_within(from..from + 4096, to);
            }
            3 => {
                // Headers of pages decide most.
                let page = dice.below(bytes.len() as u64 / 4096) as usize * 4096;
                for _ in 0..3 {
                    damaged[page + dice.below(24) as usize] = dice.next() as u8;
                }
            }
            _ => {
                for _ in 0..1 + dice.below(30) {
                    let place = dice.below(bytes.len() as u64) as usize;
                    damaged[place] ^= 1 << dice.below(8);
                }
            }
        }
        for left in ["damaged.db-wal", "damaged.db-shm"] {
            let _ = fs::remove_file(folder.file(left));
        }
        fs::write(&path, &damaged).unwrap();
        let store = SqliteStore::new(&path, Offload::Inline);
        refused += u32::from(wait(store.prepare()).is_err());
        exercise(&*erased(store), &model);
    }
    eprintln!("{refused} of {ROUNDS} files were refused at the door");
}

#[test]
fn a_damaged_log_never_panics() {
    let folder = Folder::new();
    let live = folder.file("live.db");
    let model = sample(&live);
    // A log that was never moved into the file.
    let keeper = rusqlite::Connection::open(&live).unwrap();
    keeper
        .execute_batch("BEGIN; SELECT * FROM threads;")
        .unwrap();
    let store = erased(SqliteStore::new(&live, Offload::Inline));
    let mut grown = model.clone();
    for n in 0..20 {
        grown.grow(&*store, "other", said(2000 + n, "in the log"));
    }
    let (file, log) = (
        fs::read(&live).unwrap(),
        fs::read(folder.file("live.db-wal")).unwrap(),
    );
    let path = folder.file("copy.db");
    let mut dice = Dice::new(9);
    for round in 0..150 {
        let mut damaged = log.clone();
        if round % 3 == 0 {
            damaged.truncate(dice.below(log.len() as u64) as usize);
        } else {
            for _ in 0..1 + dice.below(8) {
                let place = dice.below(log.len() as u64) as usize;
                damaged[place] ^= 1 << dice.below(8);
            }
        }
        let _ = fs::remove_file(folder.file("copy.db-shm"));
        fs::write(&path, &file).unwrap();
        fs::write(folder.file("copy.db-wal"), &damaged).unwrap();
        let store = erased(SqliteStore::new(&path, Offload::Inline));
        // A log is checked by sums, so what is read is a state that was once there.
        let newest = wait(store.open("other")).unwrap().unwrap();
        let place = grown
            .checkpoints
            .iter()
            .position(|it| it.meta.id == newest.meta.id);
        let place = place.expect("a checkpoint that was written");
        assert_eq!(newest.meta, grown.checkpoints[place].meta);
        assert_eq!(newest.state.messages, grown.checkpoints[place].messages);
        exercise(&*store, &model);
    }
}

#[test]
fn hostile_rows_are_refused() {
    let folder = Folder::new();
    let whole = folder.file("whole.db");
    let model = sample(&whole);
    let path = folder.file("hostile.db");
    // Whatever stands in the rows, by one who knows the layout.
    for (sql, must_fail) in [
        ("UPDATE checkpoints SET parent = key & 4294967295", true),
        (
            "UPDATE checkpoints SET parent = (key & 4294967295) + 1",
            true,
        ),
        ("UPDATE checkpoints SET parent = -1", true),
        ("UPDATE checkpoints SET parent = NULL", true),
        (
            "UPDATE checkpoints SET parent = 0, base = NULL, replay = 9223372036854775807",
            true,
        ),
        ("UPDATE checkpoints SET base = 4294967295", true),
        ("UPDATE checkpoints SET replay = -1", true),
        ("UPDATE checkpoints SET replay = 0", true),
        ("UPDATE checkpoints SET next_seq = -1", true),
        (
            "UPDATE checkpoints SET next_seq = 9223372036854775807",
            true,
        ),
        ("UPDATE checkpoints SET id = zeroblob(16)", false),
        ("UPDATE checkpoints SET id = x'00'", true),
        (
            "UPDATE checkpoints SET id = zeroblob(20000000) WHERE key % 160 = 0",
            true,
        ),
        ("UPDATE checkpoints SET source = 77", true),
        (
            "UPDATE checkpoints SET at = 9223372036854775807, step = -9223372036854775808",
            false,
        ),
        ("UPDATE checkpoints SET run = x'0102'", true),
        ("UPDATE checkpoints SET run = 1.5", true),
        ("UPDATE checkpoints SET metadata = '[1]'", true),
        ("UPDATE checkpoints SET metadata = '{'", true),
        ("UPDATE checkpoints SET delta = x''", true),
        ("UPDATE checkpoints SET delta = x'ff'", true),
        // Removes and appends four billion numbers.
        ("UPDATE checkpoints SET delta = x'0201008080808010'", true),
        ("UPDATE checkpoints SET delta = x'0801008080808010'", true),
        ("UPDATE checkpoints SET delta = x'08ffffffff0f0001'", true),
        // Number 0 twice.
        ("UPDATE checkpoints SET delta = x'080200010101'", true),
        ("UPDATE snapshots SET body = x''", true),
        ("UPDATE snapshots SET body = x'ff'", true),
        ("UPDATE snapshots SET body = x'0100808080801000'", true),
        ("DELETE FROM snapshots", true),
        ("DELETE FROM channels", true),
        ("DELETE FROM messages WHERE key % 7 = 0", true),
        ("DELETE FROM checkpoints WHERE key % 7 = 0", true),
        ("UPDATE channels SET value = '{'", true),
        ("UPDATE channels SET name = name || 'x'", true),
        ("UPDATE messages SET body = x''", true),
        ("UPDATE messages SET body = x'00'", true),
        (
            "UPDATE messages SET body = CAST(x'00' || '[]' AS BLOB)",
            true,
        ),
        (
            "UPDATE messages SET body = CAST(x'00' || '{}' AS BLOB)",
            true,
        ),
        ("UPDATE messages SET body = zeroblob(1000)", true),
        ("UPDATE threads SET key = -key", true),
        ("UPDATE threads SET key = key << 40", true),
        (
            "UPDATE writes SET idx = 9223372036854775807 WHERE idx = 1",
            true,
        ),
        (
            "CREATE TRIGGER x AFTER INSERT ON messages BEGIN DELETE FROM threads; END",
            false,
        ),
    ] {
        for left in ["hostile.db-wal", "hostile.db-shm"] {
            let _ = fs::remove_file(folder.file(left));
        }
        fs::copy(&whole, &path).unwrap();
        let conn = rusqlite::Connection::open(&path).unwrap();
        if let Err(error) = conn.execute_batch(sql) {
            // STRICT or the size limit did not let it in.
            eprintln!("{sql}: {error}");
            continue;
        }
        drop(conn);
        let store = erased(SqliteStore::new(&path, Offload::Inline));
        let mut failures = Vec::new();
        let mut note = |result: Result<(), fawn::protocol::error::Error>| {
            failures.extend(result.err().map(|error| (error.code.name(), error.message)));
        };
        note(wait(store.open("t")).map(|_| ()));
        note(wait(store.load("t", model.checkpoints[30].meta.id)).map(|_| ()));
        note(wait(store.list("t", HistoryQuery::default())).map(|_| ()));
        let ids = (model.checkpoints[0].meta.id, model.checkpoints[30].meta.id);
        note(wait(store.deltas("t", ids.0, ids.1)).map(|_| ()));
        note(wait(store.writes("t", model.checkpoints[LAST].meta.id)).map(|_| ()));
        assert!(!must_fail || !failures.is_empty(), "{sql}: nothing failed");
        for (code, message) in &failures {
            assert_eq!(*code, "store_corrupt", "{sql}: {message}");
        }
        exercise(&*store, &model);
    }
}

#[test]
fn code_inside_a_file_does_not_run() {
    let folder = Folder::new();
    let path = folder.file("trigger.db");
    let mut model = Model::default();
    model.grow(
        &*erased(SqliteStore::new(&path, Offload::Inline)),
        "t",
        said(0, "x"),
    );
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TRIGGER x AFTER INSERT ON messages BEGIN DELETE FROM messages; END")
        .unwrap();
    let store = erased(SqliteStore::new(&path, Offload::Inline));
    model.grow(&*store, "t", said(1, "y"));
    model.grow(&*store, "t", StateDelta::default());
    model.assert_all(&*store, "t");
}
