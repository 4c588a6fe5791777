//! Files of custom agents, which users and models write: read in words fit for errors, and known again by their stamps.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, SystemTime};

pub use crate::adapters::untrusted_file::{MAX_FILE_BYTES, Stamp};
use crate::adapters::untrusted_file::{Unreadable, open, read_text};
use crate::protocol::error::{Error, ErrorCode};

/// Whether the file was last changed at least `settling` ago. The clocks of file systems are coarse: a file that was
/// changed just now may change again and keep its stamp.
pub fn is_settled(stamp: &Stamp, now: SystemTime, settling: Duration) -> bool {
    let times = [stamp.modified, stamp.changed];
    times.iter().all(|time| match time {
        Some(time) => now.duration_since(*time).is_ok_and(|age| age >= settling),
        None => false,
    })
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
/// # Errors
/// `Store` when it cannot be read, `AssemblyInvalid` when it is a link or no regular file, too large or no UTF-8.
pub fn read(path: &Path, what: &str) -> Result<Option<(String, Stamp)>, Error> {
    let invalid = |fault: String| Error::new(ErrorCode::AssemblyInvalid, format!("{what} {fault}"));
    read_text(path).map(Some).or_else(|why| match why {
        Unreadable::Io(error) if is_absent(&error) => Ok(None),
        Unreadable::Io(_) if path.is_symlink() => Err(invalid("is a link".to_owned())),
        Unreadable::Io(error) => {
            let text = format!("{what} cannot be read: {error}");
            Err(Error::new(ErrorCode::Store, text))
        }
        Unreadable::NotRegular => Err(invalid("is no regular file".to_owned())),
        Unreadable::TooLarge => Err(invalid(format!("has more than {MAX_FILE_BYTES} bytes"))),
        Unreadable::NotUtf8(at) => Err(invalid(format!("is no UTF-8 text, from byte {at} on"))),
    })
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
