//! The connections to the file: one that writes, a few that read, opened when they are first needed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::errors::failed;
use super::schema;
use crate::protocol::error::{Error, ErrorCode};

/// Reads that go on at the same time; more wait.
const READERS: usize = 4;
/// Pages in the log at which the writer moves them to the file: 4 MB, SQLite's own default.
const LOG_PAGES: i64 = 1000;
/// What stays of the log file afterwards, should a long read have let it grow.
const LOG_BYTES: i64 = 8 << 20;
/// The store has some thirty statements.
const STATEMENTS: usize = 48;

/// A slot is empty until its connection is needed, and again after the connection failed.
type Slot = Mutex<Option<Connection>>;

/// The connections of one store.
#[derive(Debug)]
pub struct Connections {
    path: PathBuf,
    patience: Duration,
    writer: Slot,
    readers: [Slot; READERS],
    turn: AtomicUsize,
}

impl Connections {
    /// Connections to `path`, none open yet. `patience` is how long a call waits for other processes.
    pub fn new(path: PathBuf, patience: Duration) -> Self {
        Connections {
            path,
            patience,
            writer: Slot::default(),
            readers: Default::default(),
            turn: AtomicUsize::new(0),
        }
    }

    /// Opens the file, if it is not open yet.
    pub fn prepare(&self) -> Result<(), Error> {
        let mut slot = lock(&self.writer);
        self.connection(&mut slot).map(|_| ())
    }

    /// Runs `job` in one writing transaction, which is committed with one sync when the job succeeds and leaves nothing
    /// when it fails.
    pub fn write<T>(
        &self,
        job: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // One writer at a time here, so that SQLite's own waiting is only needed between processes.
        let mut slot = lock(&self.writer);
        self.transaction(&mut slot, TransactionBehavior::Immediate, job)
    }

    /// Runs `job` on one state of the file.
    pub fn read<T>(
        &self,
        job: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut slot = self.reader();
        self.transaction(&mut slot, TransactionBehavior::Deferred, job)
    }

    fn reader(&self) -> MutexGuard<'_, Option<Connection>> {
        // From the first on, so that a quiet store opens one connection.
        match self.readers.iter().find_map(|slot| slot.try_lock().ok()) {
            Some(slot) => slot,
            None => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                lock(&self.readers[turn % READERS])
            }
        }
    }

    fn transaction<T>(
        &self,
        slot: &mut Option<Connection>,
        behavior: TransactionBehavior,
        job: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let conn = self.connection(slot)?;
        let result = (|| {
            let tx = conn.transaction_with_behavior(behavior).map_err(failed)?;
            // An early return drops the transaction, which rolls back.
            let answer = job(&tx)?;
            tx.commit().map_err(failed)?;
            Ok(answer)
        })();
        if let Err(Error {
            code: ErrorCode::Store | ErrorCode::StoreCorrupt,
            retryable: false,
            ..
        }) = &result
        {
            // The next call starts from the file and checks it anew.
            *slot = None;
        }
        result
    }

    fn connection<'a>(
        &self,
        slot: &'a mut Option<Connection>,
    ) -> Result<&'a mut Connection, Error> {
        match slot {
            Some(conn) => Ok(conn),
            None => Ok(slot.insert(connect(&self.path, self.patience)?)),
        }
    }
}

/// A panic inside a lock has rolled its transaction back on the way out; the connection is as good as before.
fn lock(slot: &Slot) -> MutexGuard<'_, Option<Connection>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path, patience: Duration) -> Result<Connection, Error> {
    let place = path.display();
    match path.parent() {
        Some(folder) if !folder.is_dir() => {
            return Err(Error::new(
                ErrorCode::Store,
                format!(
                    "{place} cannot be opened: there is no folder {}",
                    folder.display()
                ),
            ));
        }
        _ if path.is_dir() => {
            return Err(Error::new(
                ErrorCode::Store,
                format!("{place} cannot be opened: it is a folder"),
            ));
        }
        _ => {}
    }
    // No URI, so that no file name has a second meaning. A connection is used by one thread at a time.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let mut conn = Connection::open_with_flags(path, flags)
        .map_err(|error| failed(error).caused_by(&place))?;
    configure(&conn, patience).map_err(failed)?;
    schema::prepare(&mut conn, path, patience)?;
    Ok(conn)
}

fn configure(conn: &Connection, patience: Duration) -> rusqlite::Result<()> {
    conn.busy_timeout(patience)?;
    // What the file says may be hostile: no code in it runs, and every page is checked when it is read.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    // With WAL, FULL is one sync of the log for each commit: what was reported survives a loss of power.
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update_and_check(None, "wal_autocheckpoint", LOG_PAGES, |_| Ok(()))?;
    conn.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}
