//! Reads one file of a skill folder without trusting it, and tells whether a file or folder is still what it was.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Largest SKILL.md or state file, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// What is compared to see whether a file or folder is as it was. The time of the last change of the inode cannot be set
/// back, so neither an edit that keeps size and time nor another file in its place goes unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: Option<SystemTime>,
    changed: Option<SystemTime>,
}

impl Stamp {
    /// The stamp of what these facts describe.
    #[cfg(unix)]
    pub fn of(facts: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
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

    /// Whether a change after `time` would show. File systems stamp changes with a clock that ticks: two changes within a
    /// tick look the same, so what changed just before it was read cannot be told from what changed just after.
    pub fn is_settled(&self, time: SystemTime) -> bool {
        /// Twice the longest tick of Linux.
        const TICK: Duration = Duration::from_millis(20);
        /// A stamp further in the future is of a clock that was wrong, not of a change just now.
        const SKEW: Duration = Duration::from_secs(2);
        let newest = self.changed.max(self.modified);
        let recent = newest.is_some_and(|newest| match time.duration_since(newest) {
            Ok(age) => age < TICK,
            Err(ahead) => ahead.duration() < SKEW,
        });
        !recent
    }
}

/// The text of a regular file of at most [`MAX_FILE_BYTES`], with its stamp from before it was read.
///
/// Links are not followed, and nothing waits: a pipe or a device in the file's place is opened without blocking and
/// refused.
///
/// # Errors
/// Why there is no text, in words that follow the file's path.
pub fn read(path: &Path) -> Result<(String, Stamp), String> {
    let failed = |error: io::Error| format!("it cannot be read: {error}");
    let file = open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    if !facts.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let too_large = || format!("it is larger than {MAX_FILE_BYTES} bytes");
    if facts.len() > MAX_FILE_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).unwrap_or(0) + 1);
    // It may have grown since.
    let mut limited = file.take(MAX_FILE_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is no UTF-8 from byte {at} on")
    })?;
    Ok((text, Stamp::of(&facts)))
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY);
    }
    options.open(path)
}
