//! What SQLite says, as errors of the store. Texts name tables and what is wrong, never the values.

use rusqlite::ffi;

use crate::protocol::error::{Error, ErrorCode};

/// The error for a call of SQLite that failed.
pub fn failed(error: rusqlite::Error) -> Error {
    match &error {
        rusqlite::Error::SqliteFailure(failure, said) => {
            from_code(failure.extended_code, said.as_deref())
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => {
            from_code(error.extended_code, Some(msg))
        }
        // Everything else comes from reading a column that is not what the schema says.
        rusqlite::Error::InvalidColumnType(_, column, found) => {
            corrupt(format!("column {column} holds {found}"))
        }
        rusqlite::Error::IntegralValueOutOfRange(column, _) => {
            corrupt(format!("column {column} holds a number out of range"))
        }
        rusqlite::Error::FromSqlConversionFailure(column, ..)
        | rusqlite::Error::Utf8Error(column, _) => {
            corrupt(format!("column {column} does not hold what it should"))
        }
        rusqlite::Error::QueryReturnedNoRows => corrupt("a row is missing"),
        _ => Error::new(ErrorCode::Store, "SQLite refused the call").caused_by(error),
    }
}

/// What the store holds makes no sense.
pub fn corrupt(what: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorCode::StoreCorrupt,
        format!("the database is damaged: {what}"),
    )
}

/// Whether the failure only says that another connection was in the way.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

fn from_code(code: i32, said: Option<&str>) -> Error {
    let said = said.unwrap_or("SQLite gave no reason");
    let store = |what: &str| Error::new(ErrorCode::Store, what).caused_by(said);
    match code & 0xff {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => {
            store("the database is locked by another connection").retryable()
        }
        ffi::SQLITE_FULL => store("the disk is full").retryable(),
        ffi::SQLITE_NOMEM => store("SQLite ran out of memory").retryable(),
        ffi::SQLITE_IOERR if code == ffi::SQLITE_IOERR_SHORT_READ => {
            corrupt("the file ends too early")
        }
        ffi::SQLITE_IOERR if code == ffi::SQLITE_IOERR_CORRUPTFS => {
            corrupt("the file system is damaged")
        }
        ffi::SQLITE_IOERR => store("reading or writing the database file failed").retryable(),
        ffi::SQLITE_CANTOPEN => store("the database file cannot be opened"),
        ffi::SQLITE_READONLY => store("the database file cannot be written"),
        ffi::SQLITE_PERM | ffi::SQLITE_AUTH => store("access to the database file is denied"),
        ffi::SQLITE_TOOBIG => store("a value is larger than SQLite can hold"),
        ffi::SQLITE_NOTADB => corrupt("it is no SQLite database, or its header is damaged"),
        ffi::SQLITE_CORRUPT => corrupt(said),
        // The statements are fixed, so a row in the way or a missing table is the file's fault.
        ffi::SQLITE_CONSTRAINT | ffi::SQLITE_ERROR | ffi::SQLITE_MISMATCH | ffi::SQLITE_SCHEMA => {
            corrupt(said)
        }
        _ => store("SQLite failed"),
    }
}
