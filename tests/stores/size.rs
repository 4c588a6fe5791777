//! Figures that must hold: size of a file, bytes and syncs of a checkpoint, time to open a long thread.

use std::path::Path;
use std::time::Instant;

use fawn::adapters::store::sqlite::{Offload, SqliteStore};
use fawn::ports::checkpoint::DynCheckpointStore;

use crate::support::*;
use crate::traffic::{self, Traffic};

const T: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

/// Turn number `turn`: 128 bytes from the user, a checkpoint, 128 bytes back, a checkpoint.
///
/// Only the checkpoint is kept in the model: it would copy the message list each time.
struct Talk {
    model: Model,
    seq: u64,
}

impl Talk {
    fn new() -> Self {
        Talk {
            model: Model::default(),
            seq: 0,
        }
    }

    fn turns(&mut self, store: &dyn DynCheckpointStore, count: u64) {
        for _ in 0..2 * count {
            let seq = self.seq;
            let text = format!("{:0>128}", seq * 7919);
            let id = message_id(seq);
            let message = if seq.is_multiple_of(2) {
                human(&id, &text)
            } else {
                ai(&id, &text)
            };
            let parent = self.model.checkpoints.len().checked_sub(1);
            let mut next = self.model.next(parent, appended([(seq, message)]));
            next.meta.run_id = Some(message_id(1_000_000 + seq / 2).into());
            next.meta.metadata.clear();
            wait(store.put(T, next.clone())).unwrap();
            self.seq += 1;
            next.delta = Default::default();
            self.model.add(&next);
            self.model
                .checkpoints
                .drain(..self.model.checkpoints.len() - 1);
        }
    }
}

/// Size of the file with everything in it.
fn closed_size(path: &Path) -> u64 {
    let log = path.with_extension("db-wal");
    let left = std::fs::metadata(log).map_or(0, |log| log.len());
    assert_eq!(left, 0, "closing the last connection leaves no log");
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn a_thousand_turns_take_less_than_their_share_and_growth_is_linear() {
    let folder = Folder::new();
    let path = folder.file("size.db");
    let mut talk = Talk::new();
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let store = erased(SqliteStore::new(&path, Offload::Inline));
        talk.turns(&*store, 1000);
        drop(store);
        sizes.push(closed_size(&path));
    }
    eprintln!("file after 1000, 2000, 3000, 4000 turns: {sizes:?} bytes");
    assert!(sizes[0] <= 650_000, "{sizes:?}");
    let steps: Vec<f64> = sizes
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    for step in steps {
        assert!((step / sizes[0] as f64 - 1.0).abs() < 0.1, "{sizes:?}");
    }
}

#[test]
fn a_checkpoint_is_one_sync_and_the_same_bytes_however_long_the_thread_is() {
    traffic::watch();
    let folder = Folder::new();
    let path = folder.file(&format!("{}.db", traffic::WATCHED));
    let store = erased(SqliteStore::new(&path, Offload::Inline));
    let mut talk = Talk::new();
    talk.turns(&*store, 10);

    // One by one, until the log wraps: nothing but the log is touched.
    let mut before = traffic::so_far();
    for _ in 0..100 {
        talk.turns(&*store, 1);
        let now = traffic::so_far();
        assert_eq!(
            now.log_syncs - before.log_syncs,
            2,
            "one sync for each checkpoint"
        );
        let file = |traffic: Traffic| (traffic.file_bytes, traffic.file_syncs);
        assert_eq!(file(now), file(before), "the file itself waits");
        before = now;
    }

    // Bytes over spans of a thousand checkpoints; a span evens out new pages and snapshots.
    let span = |talk: &mut Talk| {
        let start = traffic::so_far();
        let clock = Instant::now();
        talk.turns(&*store, 500);
        let time = clock.elapsed() / 1000;
        let end = traffic::so_far();
        let per_put = |from: u64, to: u64| (to - from) as f64 / 1000.0;
        let log = per_put(start.log_bytes, end.log_bytes);
        let file = per_put(start.file_bytes, end.file_bytes);
        let syncs = per_put(
            start.log_syncs + start.file_syncs,
            end.log_syncs + end.file_syncs,
        );
        let turn = talk.seq / 2;
        eprintln!(
            "up to turn {turn}: {log:.0} bytes to the log and {file:.0} to the file per checkpoint, {syncs:.3} syncs, {time:?}"
        );
        (log, file, syncs)
    };
    let early = span(&mut talk);
    talk.turns(&*store, 10_000 - talk.seq / 2 - 500);
    let late = span(&mut talk);
    assert!((late.0 / early.0 - 1.0).abs() < 0.1, "{early:?} {late:?}");
    assert!((late.1 / early.1 - 1.0).abs() < 0.2, "{early:?} {late:?}");
    assert!(early.2 < 1.02 && late.2 < 1.02, "{early:?} {late:?}");

    // The log stays bounded.
    let log = std::fs::metadata(folder.file(&format!("{}.db-wal", traffic::WATCHED))).unwrap();
    assert!(log.len() < 5 << 20, "{} bytes of log", log.len());

    let clock = Instant::now();
    let newest = wait(store.open(T)).unwrap().unwrap();
    eprintln!(
        "{} messages opened in {:?}",
        newest.state.messages.len(),
        clock.elapsed()
    );
    assert_eq!(newest.state.messages.len(), 20_000);
    assert_eq!(newest.meta.id, checkpoint_id(19_999));
    for number in [0, 1, 63, 64, 9_999, 19_998] {
        let old = wait(store.load(T, checkpoint_id(number))).unwrap().unwrap();
        assert_eq!(old.state.messages.len() as u64, number + 1);
    }
    assert_eq!(
        wait(store.list(T, Default::default())).unwrap().len(),
        20_000
    );
}
