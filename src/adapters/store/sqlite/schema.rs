//! The tables, and the check that a file is ours before anything in it is touched.
//!
//! A row of a thread is found by `thread key << 32 | number`, so that the rows of a thread lie together, in order, and a new
//! one goes to their end: an append fills the last page of the table and touches no other. The number is the ordinal
//! of a checkpoint or the number of a message.
//!
//! Nothing in `threads` changes after its first checkpoint. The newest checkpoint is the last row of the thread, and the
//! thread's next message number stands in it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};

use super::errors::{corrupt, failed, is_busy};
use crate::protocol::error::{Error, ErrorCode};

/// Marks a database file as one of fawn: "fawn" in ASCII.
pub const APPLICATION_ID: i32 = 0x6661_776e;
/// Layout of the tables. A file with a greater number is refused.
pub const VERSION: i32 = 1;

/// Every table with the statement that makes it; the file keeps the text, which is how a changed table is noticed.
const TABLES: [(&str, &str); 6] = [
    (
        "threads",
        "CREATE TABLE threads (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT",
    ),
    // body: see `codec::message`.
    (
        "messages",
        "CREATE TABLE messages (key INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT",
    ),
    // parent and base are ordinals. base is the nearest snapshot on the way to the root (NULL: the empty state) and
    // replay how many deltas follow it; 0 says that the snapshot is of this checkpoint. run is a BLOB of 16 bytes when it is a
    // UUID, else TEXT. metadata is NULL for {}. delta: see `codec::delta`.
    (
        "checkpoints",
        "CREATE TABLE checkpoints (key INTEGER PRIMARY KEY, id BLOB NOT NULL, parent INTEGER, base INTEGER, \
         replay INTEGER NOT NULL, next_seq INTEGER NOT NULL, step INTEGER NOT NULL, source INTEGER NOT NULL, \
         at INTEGER NOT NULL, run ANY, metadata TEXT, delta BLOB NOT NULL) STRICT",
    ),
    // The value of a channel that changed in a checkpoint; one that went missing has no row.
    (
        "channels",
        "CREATE TABLE channels (checkpoint INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, \
         PRIMARY KEY (checkpoint, name)) STRICT, WITHOUT ROWID",
    ),
    (
        "writes",
        "CREATE TABLE writes (checkpoint INTEGER NOT NULL, task TEXT NOT NULL, idx INTEGER NOT NULL, \
         channel TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (checkpoint, task, idx)) STRICT, WITHOUT ROWID",
    ),
    // body: see `codec::delta::Snapshot`.
    (
        "snapshots",
        "CREATE TABLE snapshots (key INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT",
    ),
];

/// What a file is, by what it says about itself.
enum File {
    Fresh,
    Ours,
}

/// Checks that the file is ours, or makes it ours when it is empty, and switches it to WAL.
///
/// # Errors
/// `Store` for another program's database, `Unsupported` for one of a newer version, `StoreCorrupt` for one whose tables are
/// not what they should be. Nothing is written to any of these.
pub fn prepare(conn: &mut Connection, path: &Path, patience: Duration) -> Result<(), Error> {
    let deadline = Instant::now() + patience;
    let fresh = matches!(examine(conn, path)?, File::Fresh);
    switch_to_wal(conn, deadline)?;
    if fresh {
        let tx = conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        // Another process may have been faster.
        if matches!(examine_in(&tx, path)?, File::Fresh) {
            for (_, statement) in TABLES {
                tx.execute_batch(statement).map_err(failed)?;
            }
            tx.pragma_update(None, "application_id", APPLICATION_ID)
                .and_then(|()| tx.pragma_update(None, "user_version", VERSION))
                .map_err(failed)?;
        }
        tx.commit().map_err(failed)?;
    }
    Ok(())
}

fn examine(conn: &mut Connection, path: &Path) -> Result<File, Error> {
    // One transaction, or a file that another process is just making would look foreign half way.
    let tx = conn.transaction().map_err(failed)?;
    examine_in(&tx, path)
}

fn examine_in(conn: &Connection, path: &Path) -> Result<File, Error> {
    let number = |pragma: &str| {
        conn.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0))
            .map_err(failed)
    };
    let application = number("application_id")?;
    let version = number("user_version")?;
    if application == APPLICATION_ID {
        if version > VERSION {
            return Err(Error::new(
                ErrorCode::Unsupported,
                format!(
                    "{} was written by a newer version of fawn (layout {version}, this one knows {VERSION})",
                    path.display()
                ),
            ));
        }
        if version < VERSION {
            return Err(corrupt(format!("there is no layout {version}")));
        }
        check_tables(conn)?;
        return Ok(File::Ours);
    }
    let objects: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    if application == 0 && version == 0 && objects == 0 {
        return Ok(File::Fresh);
    }
    Err(Error::new(
        ErrorCode::Store,
        format!(
            "{} is another program's database (application id {application}), and is left alone",
            path.display()
        ),
    ))
}

fn check_tables(conn: &Connection) -> Result<(), Error> {
    let mut find = conn
        .prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1")
        .map_err(failed)?;
    for (name, statement) in TABLES {
        let mut rows = find.query([name]).map_err(failed)?;
        let found = match rows.next().map_err(failed)? {
            Some(row) => row.get::<_, String>(0).map_err(failed)?,
            None => return Err(corrupt(format!("table {name} is missing"))),
        };
        if found != statement {
            return Err(corrupt(format!("table {name} was changed")));
        }
    }
    Ok(())
}

/// WAL lets readers and one writer go on side by side. The switch needs the file alone for a moment, and SQLite does not always
/// wait for that by itself.
fn switch_to_wal(conn: &Connection, deadline: Instant) -> Result<(), Error> {
    loop {
        let mode = conn
            .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                return Err(Error::new(
                    ErrorCode::Store,
                    format!("the file system allows no write-ahead log (journal mode {mode})"),
                ));
            }
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(failed(error)),
        }
    }
}
