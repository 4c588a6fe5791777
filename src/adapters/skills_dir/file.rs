//! One file of a skill folder: its text in words fit for warnings, and whether a change of it would show.

use std::path::Path;
use std::time::{Duration, SystemTime};

pub use crate::adapters::untrusted_file::{MAX_FILE_BYTES, Stamp};
use crate::adapters::untrusted_file::{Unreadable, read_text};

/// Whether a change after `time` would show in the stamp. File systems stamp changes with a clock that ticks: two changes
/// within a tick look the same, so what changed just before it was read cannot be told from what changed just after.
pub fn is_settled(stamp: &Stamp, time: SystemTime) -> bool {
    /// Twice the longest tick of Linux.
    const TICK: Duration = Duration::from_millis(20);
    /// A stamp further in the future is of a clock that was wrong, not of a change just now.
    const SKEW: Duration = Duration::from_secs(2);
    let newest = stamp.changed.max(stamp.modified);
    let recent = newest.is_some_and(|newest| match time.duration_since(newest) {
        Ok(age) => age < TICK,
        Err(ahead) => ahead.duration() < SKEW,
    });
    !recent
}

/// The text of a file, with its stamp from before it was read.
///
/// # Errors
/// Why there is no text, in words that follow the file's path.
pub fn read(path: &Path) -> Result<(String, Stamp), String> {
    read_text(path).map_err(|why| match why {
        Unreadable::Io(error) => format!("it cannot be read: {error}"),
        Unreadable::NotRegular => "it is no regular file".to_owned(),
        Unreadable::TooLarge => format!("it is larger than {MAX_FILE_BYTES} bytes"),
        Unreadable::NotUtf8(at) => format!("it is no UTF-8 from byte {at} on"),
    })
}
