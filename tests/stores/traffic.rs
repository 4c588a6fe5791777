//! What a checkpoint costs the disk: bytes and syncs, counted below SQLite.
#![allow(
    unsafe_code,
    reason = "SQLite's file layer can only be watched through its C interface"
)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rusqlite::ffi;

/// Files with this in their name are watched; others pass untouched.
pub const WATCHED: &str = "watched";

static LOG_BYTES: AtomicU64 = AtomicU64::new(0);
static LOG_SYNCS: AtomicU64 = AtomicU64::new(0);
static FILE_BYTES: AtomicU64 = AtomicU64::new(0);
static FILE_SYNCS: AtomicU64 = AtomicU64::new(0);

/// Bytes written and syncs so far, to the log and to the database file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    pub log_bytes: u64,
    pub log_syncs: u64,
    pub file_bytes: u64,
    pub file_syncs: u64,
}

pub fn so_far() -> Traffic {
    Traffic {
        log_bytes: LOG_BYTES.load(Ordering::SeqCst),
        log_syncs: LOG_SYNCS.load(Ordering::SeqCst),
        file_bytes: FILE_BYTES.load(Ordering::SeqCst),
        file_syncs: FILE_SYNCS.load(Ordering::SeqCst),
    }
}

static BELOW: AtomicPtr<ffi::sqlite3_vfs> = AtomicPtr::new(ptr::null_mut());
/// The methods of one kind of file: those below, and the copy that counts. Logs need no locks, so SQLite has two kinds.
struct Methods(OnceLock<[usize; 2]>);

static LOG: Methods = Methods(OnceLock::new());
static DATA: Methods = Methods(OnceLock::new());

type File = *mut ffi::sqlite3_file;

impl Methods {
    fn below(&self) -> &'static ffi::sqlite3_io_methods {
        let [methods, _] = self.0.get().expect("a file was opened");
        // SAFETY: the address is that of a static table of SQLite, stored by `open`.
        unsafe { &*(*methods as *const ffi::sqlite3_io_methods) }
    }
}

unsafe extern "C" fn write_log(file: File, from: *const c_void, bytes: c_int, at: i64) -> c_int {
    LOG_BYTES.fetch_add(bytes as u64, Ordering::SeqCst);
    // SAFETY: SQLite's own arguments go on to SQLite's own method.
    unsafe { LOG.below().xWrite.unwrap()(file, from, bytes, at) }
}

unsafe extern "C" fn write_data(file: File, from: *const c_void, bytes: c_int, at: i64) -> c_int {
    FILE_BYTES.fetch_add(bytes as u64, Ordering::SeqCst);
    // SAFETY: as above.
    unsafe { DATA.below().xWrite.unwrap()(file, from, bytes, at) }
}

unsafe extern "C" fn sync_log(file: File, flags: c_int) -> c_int {
    LOG_SYNCS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: as above.
    unsafe { LOG.below().xSync.unwrap()(file, flags) }
}

unsafe extern "C" fn sync_data(file: File, flags: c_int) -> c_int {
    FILE_SYNCS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: as above.
    unsafe { DATA.below().xSync.unwrap()(file, flags) }
}

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: File,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let vfs = BELOW.load(Ordering::SeqCst);
    // SAFETY: SQLite's own arguments go on to the file layer that was there before.
    let status = unsafe { (*vfs).xOpen.unwrap()(vfs, name, file, flags, out) };
    if status != ffi::SQLITE_OK || name.is_null() {
        return status;
    }
    // SAFETY: file names are NUL-terminated.
    let name = unsafe { CStr::from_ptr(name) };
    let is_log = flags & ffi::SQLITE_OPEN_WAL != 0;
    let is_counted = is_log || flags & ffi::SQLITE_OPEN_MAIN_DB != 0;
    if !is_counted || !name.to_string_lossy().contains(WATCHED) {
        return status;
    }
    // SAFETY: a file that was opened has its methods set.
    let methods = unsafe { (*file).pMethods };
    let kind = if is_log { &LOG } else { &DATA };
    let [known, counting] = kind.0.get_or_init(|| {
        // SAFETY: as above; the table is static.
        let mut table = unsafe { *methods };
        table.xWrite = Some(if is_log { write_log } else { write_data });
        table.xSync = Some(if is_log { sync_log } else { sync_data });
        let copy = Box::leak(Box::new(table));
        [methods as usize, ptr::from_ref(copy) as usize]
    });
    assert_eq!(*known, methods as usize, "a kind of file has one table");
    // SAFETY: the copy is a whole table that lives as long as the process.
    unsafe { (*file).pMethods = *counting as *const ffi::sqlite3_io_methods };
    status
}

/// Watches files opened from now on.
pub fn watch() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // SAFETY: the layer that is found is static; the copy is leaked, so it lives as long as SQLite may use it.
        unsafe {
            let vfs = ffi::sqlite3_vfs_find(ptr::null());
            BELOW.store(vfs, Ordering::SeqCst);
            let mut copy = *vfs;
            copy.zName = c"watching".as_ptr();
            copy.pNext = ptr::null_mut();
            copy.xOpen = Some(open);
            let copy = Box::leak(Box::new(copy));
            assert_eq!(ffi::sqlite3_vfs_register(copy, 1), ffi::SQLITE_OK);
        }
    });
}
