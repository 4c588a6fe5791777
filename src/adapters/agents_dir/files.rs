//! Files that users and models write: read with bounds, and known again by their stamps.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::protocol::error::{Error, ErrorCode};

/// Largest file that is read or written, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// What tells one content of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    size: u64,
    /// Device, inode, time of the last change of either content or attributes in seconds and nanoseconds.
    identity: (u64, u64, i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            (
                metadata.dev(),
                metadata.ino(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            )
        };
        #[cfg(not(unix))]
        let identity = (0, 0, 0, 0);
        Stamp {
            modified: metadata.modified().ok(),
            size: metadata.len(),
            identity,
        }
    }

    /// The size of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the file was last changed at least `settling` ago. The clocks of file systems are coarse: a file that was
    /// changed just now may change again and keep its stamp.
    pub fn is_settled(&self, now: SystemTime, settling: Duration) -> bool {
        let changed = u64::try_from(self.identity.2).unwrap_or(0);
        let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(changed));
        [self.modified, changed].iter().all(|time| match time {
            Some(time) => now.duration_since(*time).is_ok_and(|age| age >= settling),
            None => false,
        })
    }
}

/// Whether an error says that there is no file at a path.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The stamp of the file at `path`; `None` when there is none. One system call.
pub fn stamp(path: &Path) -> io::Result<Option<Stamp>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(Stamp::of(&metadata))),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The text of the file at `path`, with the stamp it had before it was read; `None` when there is none. `what` is what
/// errors call it: paths of this machine are nobody's business.
///
/// Only regular files are read, so that a FIFO in its place neither blocks nor feeds us for ever.
///
/// # Errors
/// `Store` when it cannot be read, `AssemblyInvalid` when it is no regular file, too large or no UTF-8.
pub fn read(path: &Path, what: &str) -> Result<Option<(String, Stamp)>, Error> {
    let unreadable =
        |error: io::Error| Error::new(ErrorCode::Store, format!("{what} cannot be read: {error}"));
    let invalid = |fault: String| Error::new(ErrorCode::AssemblyInvalid, format!("{what} {fault}"));
    let file = match open(path, 0) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(_) if path.is_symlink() => return Err(invalid("is a link".to_owned())),
        Err(error) => return Err(unreadable(error)),
    };
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(invalid("is no regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(invalid(format!("has more than {MAX_FILE_BYTES} bytes")));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some((text, Stamp::of(&metadata)))),
        Err(error) => Err(invalid(format!(
            "is no UTF-8 text, from byte {} on",
            error.utf8_error().valid_up_to()
        ))),
    }
}

/// Opens the folder at `path`, to lock it; whatever else stands there is an error.
pub fn open_dir(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    return open(path, libc::O_DIRECTORY);
    #[cfg(not(unix))]
    Err(io::Error::new(
        ErrorKind::Unsupported,
        format!("{} is a folder", path.display()),
    ))
}

/// Opens for reading, without waiting for a writer where the file is a FIFO, and without following a link: users write into
/// these folders, and a link would show them what they may not read.
fn open(path: &Path, flags: i32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW | flags);
    }
    let _ = flags;
    options.open(path)
}
