//! A file that users or models may have put there: read without trusting it, and known again by its stamp.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

/// Largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// What is compared to see whether a file or folder is as it was. The time of the last change of the inode cannot be set
/// back, so neither an edit that keeps size and time nor another file in its place goes unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// When the content changed last.
    pub modified: Option<SystemTime>,
    /// When content or attributes changed last.
    pub changed: Option<SystemTime>,
}

impl Stamp {
    /// The stamp of what these facts describe.
    #[cfg(unix)]
    pub fn of(facts: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        use std::time::Duration;
        let nanos = u32::try_from(facts.ctime_nsec()).unwrap_or(0);
        let seconds = u64::try_from(facts.ctime()).ok();
        let changed = seconds
            .and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos)));
        Stamp {
            device: facts.dev(),
            inode: facts.ino(),
            size: facts.len(),
            modified: facts.modified().ok(),
            changed,
        }
    }

    /// The stamp of what these facts describe.
    #[cfg(not(unix))]
    pub fn of(facts: &Metadata) -> Self {
        let modified = facts.modified().ok();
        Stamp {
            device: 0,
            inode: 0,
            size: facts.len(),
            modified,
            changed: modified,
        }
    }

    /// The stamp of the file at `path`, a link itself and not what it leads to; `None` when there is none.
    pub fn of_file(path: &Path) -> Option<Self> {
        fs::symlink_metadata(path)
            .ok()
            .map(|facts| Stamp::of(&facts))
    }

    /// The stamp of the folder at `path` or at the end of the links there; `None` when there is none.
    pub fn of_folder(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|facts| Stamp::of(&facts))
    }
}

/// Why there is no text.
#[derive(Debug)]
pub enum Unreadable {
    /// The system says so; a link gives one of these too.
    Io(io::Error),
    /// It is a folder, a pipe or a device.
    NotRegular,
    /// It has more than [`MAX_FILE_BYTES`].
    TooLarge,
    /// It is no UTF-8 from this byte on.
    NotUtf8(usize),
}

/// The text of a regular file of at most [`MAX_FILE_BYTES`], with its stamp from before it was read.
///
/// Links are not followed, and nothing waits: a pipe or a device in the file's place is opened without blocking and
/// refused.
///
/// # Errors
/// Why there is none.
pub fn read_text(path: &Path) -> Result<(String, Stamp), Unreadable> {
    let file = open(path, 0).map_err(Unreadable::Io)?;
    let facts = file.metadata().map_err(Unreadable::Io)?;
    if !facts.is_file() {
        return Err(Unreadable::NotRegular);
    }
    if facts.len() > MAX_FILE_BYTES {
        return Err(Unreadable::TooLarge);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).unwrap_or(0) + 1);
    // It may have grown since.
    let mut limited = file.take(MAX_FILE_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(Unreadable::Io)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Unreadable::TooLarge);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, Stamp::of(&facts))),
        Err(error) => Err(Unreadable::NotUtf8(error.utf8_error().valid_up_to())),
    }
}

/// Opens for reading, without following a link and without waiting for a writer where the file is a FIFO. `flags` are more
/// flags of `open(2)`.
pub fn open(path: &Path, flags: i32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY | flags);
    }
    let _ = flags;
    options.open(path)
}
