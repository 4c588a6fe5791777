//! Many writers at once: on threads of their own, on one thread, in several processes.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::*;

const WRITERS: usize = 8;

#[test]
fn eight_os_threads_write_eight_threads() {
    on_every_store(|fixture| {
        let store = &*fixture.store;
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                scope.spawn(move || {
                    let name = format!("thread {writer}");
                    let mut model = Model::default();
                    for n in 0..100 {
                        model.grow(store, &name, said(n, &format!("{writer}/{n}")));
                        if n % 10 == 0 {
                            let newest = wait(store.open(&name)).unwrap().unwrap();
                            model.assert_is(n as usize, &newest);
                        }
                    }
                    model.assert_all(store, &name);
                });
            }
        });
    });
}

#[test]
fn of_eight_writers_after_one_checkpoint_exactly_one_wins() {
    // C7: one writer per thread
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let mut model = Model::default();
        for round in 0..40 {
            let (barrier, wins) = (Barrier::new(WRITERS), AtomicUsize::new(0));
            let (model_now, barrier, wins) = (&model, &barrier, &wins);
            thread::scope(|scope| {
                for writer in 0..WRITERS {
                    scope.spawn(move || {
                        let text = format!("{writer}/{round}");
                        let parent = model_now.checkpoints.len().checked_sub(1);
                        let mut mine = model_now.next(parent, said(round, &text));
                        mine.meta.id = checkpoint_id(round * WRITERS as u64 + writer as u64);
                        barrier.wait();
                        match wait(store.put("t", mine)) {
                            Ok(()) => {
                                wins.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => assert_eq!(error.code.name(), "thread_stale"),
                        }
                    });
                }
            });
            assert_eq!(wins.load(Ordering::Relaxed), 1);
            let newest = wait(store.open("t")).unwrap().unwrap();
            let last = newest.state.messages.last().unwrap().clone();
            let parent = model.checkpoints.len().checked_sub(1);
            let mut winner = model.next(parent, appended([last]));
            winner.meta = newest.meta.clone();
            model.add(&winner);
            model.assert_is(round as usize, &newest);
        }
    });
}

#[cfg(feature = "sqlite")]
mod processes {
    use std::process::{Command, Stdio};

    use fawn::adapters::store::sqlite::{Offload, SqliteStore};

    use super::*;

    const PATH: &str = "FAWN_STORES_WRITER";
    const PROCESSES: usize = 3;
    const THREADS: usize = 4;
    const CHECKPOINTS: u64 = 60;

    /// Not a test of its own: what each process of the test below does.
    #[test]
    fn writer() {
        let Ok(path) = std::env::var(PATH) else {
            return;
        };
        let name = std::env::var("FAWN_STORES_NAME").unwrap();
        let (path, name) = (&path, &name);
        thread::scope(|scope| {
            for n in 0..THREADS {
                // Every OS thread with a store of its own, so that stores of one process meet as well.
                scope.spawn(move || {
                    let store = erased(SqliteStore::new(path, Offload::Inline));
                    let mut model = Model::default();
                    for seq in 0..CHECKPOINTS {
                        model.grow(&*store, &format!("{name} {n}"), said(seq, "x"));
                    }
                    model.assert_all(&*store, &format!("{name} {n}"));
                });
            }
        });
    }

    #[test]
    fn processes_share_a_file_that_none_of_them_has_made_before() {
        // C14
        let folder = Folder::new();
        let path = folder.file("shared.db");
        let children: Vec<_> = (0..PROCESSES)
            .map(|process| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["concurrency::processes::writer", "--exact"])
                    .env(PATH, &path)
                    .env("FAWN_STORES_NAME", format!("process {process}"))
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{said}");
        }
        let conn = rusqlite::Connection::open(&path).unwrap();
        let count: i64 = conn
            .query_row("SELECT count(*) FROM checkpoints", [], |row| row.get(0))
            .unwrap();
        assert_eq!(count as u64, (PROCESSES * THREADS) as u64 * CHECKPOINTS);
        let check: String = conn
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
    }

    #[test]
    fn sixteen_os_threads_open_a_new_file_at_once() {
        // C14, C19
        for _ in 0..5 {
            let folder = Folder::new();
            let path = &folder.file("new.db");
            let barrier = &Barrier::new(16);
            thread::scope(|scope| {
                for n in 0..16 {
                    scope.spawn(move || {
                        let store = SqliteStore::new(path, Offload::Inline);
                        barrier.wait();
                        wait(store.prepare()).unwrap();
                        Model::default().grow(&*erased(store), &format!("t{n}"), said(0, "x"));
                    });
                }
            });
        }
    }

    #[test]
    fn a_writer_of_another_process_makes_this_one_stale() {
        let folder = Folder::new();
        let open = || erased(SqliteStore::new(folder.file("two.db"), Offload::Inline));
        let (one, two) = (open(), open());
        let mut model = Model::default();
        model.grow(&*one, "t", said(0, "a"));
        let mut other = model.clone();
        other.grow(&*two, "t", said(1, "b"));
        let late = model.next(Some(0), said(1, "c"));
        assert_eq!(code(wait(one.put("t", late))), "thread_stale");
        other.assert_all(&*one, "t");
    }

    #[test]
    fn a_file_that_stays_locked_is_a_failure_that_may_pass() {
        let folder = Folder::new();
        let path = folder.file("locked.db");
        let patience = std::time::Duration::from_millis(30);
        let store = SqliteStore::with_patience(&path, Offload::Inline, patience);
        wait(store.prepare()).unwrap();
        let store = erased(store);
        let mut model = Model::default();
        model.grow(&*store, "t", said(0, "a"));
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let next = model.next(Some(0), said(1, "b"));
        let error = wait(store.put("t", next)).unwrap_err();
        assert_eq!((error.code.name(), error.retryable), ("store", true));
        model.assert_all(&*store, "t");
        other.execute_batch("COMMIT").unwrap();
        model.grow(&*store, "t", said(1, "b"));
        model.assert_all(&*store, "t");
    }
}
