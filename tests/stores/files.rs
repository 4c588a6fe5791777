//! What file a store opens, and what it says about one that it will not.

use std::fs;
use std::path::Path;

use fawn::adapters::store::sqlite::{APPLICATION_ID, Offload, SqliteStore, VERSION};
use fawn::protocol::error::Error;
use rusqlite::Connection;

use crate::support::*;

fn prepare(path: &Path) -> Result<(), Error> {
    wait(SqliteStore::new(path, Offload::Inline).prepare())
}

/// Makes a database file by SQL.
fn database(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

fn refused(path: &Path, code: &str, says: &str) {
    let before = fs::read(path).unwrap();
    for _ in 0..2 {
        let error = prepare(path).unwrap_err();
        assert_eq!(error.code.name(), code, "{error}");
        assert!(error.message.contains(says), "{error}");
        assert!(!error.retryable);
    }
    let store = erased(SqliteStore::new(path, Offload::Inline));
    assert_eq!(
        code,
        super::support::code(wait(store.open("t")).map(|_| ()))
    );
    let put = Model::default().next(None, said(0, "x"));
    assert_eq!(code, super::support::code(wait(store.put("t", put))));
    assert_eq!(fs::read(path).unwrap(), before, "the file was touched");
}

#[test]
fn another_programs_database_is_left_alone() {
    let folder = Folder::new();
    let path = folder.file("other.db");
    database(
        &path,
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, text TEXT)",
    );
    refused(&path, "store", "another program's database");
    let path = folder.file("marked.db");
    database(&path, "PRAGMA application_id = 77");
    refused(
        &path,
        "store",
        "another program's database (application id 77)",
    );
    let path = folder.file("versioned.db");
    database(&path, "PRAGMA user_version = 1");
    refused(&path, "store", "another program's database");
}

#[test]
fn a_newer_layout_is_refused_and_said_to_be_newer() {
    let folder = Folder::new();
    let path = folder.file("newer.db");
    prepare(&path).unwrap();
    database(&path, &format!("PRAGMA user_version = {}", VERSION + 1));
    refused(&path, "unsupported", "newer version of fawn");
}

#[test]
fn files_that_are_no_database_or_not_whole_are_damaged() {
    let folder = Folder::new();
    let path = folder.file("text.db");
    fs::write(&path, "This is the diary of an agent. ".repeat(100)).unwrap();
    refused(&path, "store_corrupt", "no SQLite database");
    for (name, sql, says) in [
        ("a.db", "DROP TABLE snapshots", "table snapshots is missing"),
        (
            "b.db",
            "ALTER TABLE messages ADD COLUMN extra TEXT",
            "table messages was changed",
        ),
        ("c.db", "PRAGMA user_version = 0", "no layout 0"),
        ("d.db", "PRAGMA user_version = -5", "no layout -5"),
    ] {
        let path = folder.file(name);
        prepare(&path).unwrap();
        database(&path, sql);
        refused(&path, "store_corrupt", says);
    }
}

#[test]
fn places_that_cannot_hold_a_file_are_named() {
    let folder = Folder::new();
    let missing = folder.file("no/such/threads.db");
    let error = prepare(&missing).unwrap_err();
    assert_eq!(error.code.name(), "store");
    assert!(error.message.contains("there is no folder"), "{error}");
    assert!(!missing.parent().unwrap().exists(), "no folder is made");
    let error = prepare(folder.path()).unwrap_err();
    assert!(error.message.contains("it is a folder"), "{error}");
    assert!(prepare(Path::new("")).is_err());
    assert!(prepare(Path::new("/dev/null/x")).is_err());
}

#[test]
fn the_constructor_touches_nothing_and_an_empty_file_is_as_good_as_none() {
    let folder = Folder::new();
    let path = folder.file("new.db");
    let store = SqliteStore::new(&path, Offload::Inline);
    assert!(!path.exists());
    wait(store.prepare()).unwrap();
    assert!(path.exists());
    let path = folder.file("empty.db");
    fs::write(&path, "").unwrap();
    prepare(&path).unwrap();
    let conn = Connection::open(&path).unwrap();
    let pragma = |name: &str| -> i32 {
        conn.pragma_query_value(None, name, |row| row.get(0))
            .unwrap()
    };
    assert_eq!(pragma("application_id"), APPLICATION_ID);
    assert_eq!(pragma("user_version"), VERSION);
    let mode: String = conn
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn file_names_have_no_second_meaning() {
    let folder = Folder::new();
    for name in [":memory:", "file:x?mode=memory", "ü 'q'.db", "%41.db"] {
        let path = folder.file(name);
        let store = erased(SqliteStore::new(&path, Offload::Inline));
        let mut model = Model::default();
        model.grow(&*store, "t", said(0, "x"));
        assert!(path.exists(), "{name}");
        model.assert_all(&*erased(SqliteStore::new(&path, Offload::Inline)), "t");
    }
}

#[test]
fn the_pool_is_left_out_where_there_is_no_runtime() {
    let folder = Folder::new();
    let store = erased(SqliteStore::new(folder.file("t.db"), Offload::Pool));
    let mut put = store.put("t", Model::default().next(None, said(0, "x")));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(put.as_mut().poll(&mut context).is_ready());
    drop(put);
    assert!(wait(store.open("t")).unwrap().is_some());
}

#[test]
fn errors_hold_nothing_of_what_was_stored() {
    // P11
    const CANARY: &str = "canary-7f3a";
    let folder = Folder::new();
    let path = folder.file("t.db");
    let store = erased(SqliteStore::new(&path, Offload::Inline));
    let mut model = Model::default();
    model.grow(&*store, CANARY, said(0, CANARY));
    database(
        &path,
        &format!("UPDATE messages SET body = CAST('{CANARY}' AS BLOB)"),
    );
    let error = wait(store.open(CANARY)).unwrap_err();
    assert_eq!(error.code.name(), "store_corrupt");
    assert!(!format!("{error:?}").contains(CANARY), "{error:?}");
}
