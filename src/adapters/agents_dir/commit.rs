//! Replaces the record and the soul of an agent together: after a crash both are new or both are old.
//!
//! Both are written beside their places and synced. Then a mark is made, which is the moment of the change: from there on
//! whoever reads takes what is staged, and the next writer finishes. Without a mark, what is staged is nothing. One file alone
//! needs no mark, since a rename is whole.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The record.
pub const CONFIG: &str = "config.yaml";
/// The soul.
pub const SOUL: &str = "SOUL.md";

/// What is staged, with its place. The soul goes first: a folder is an agent once it has a record.
const PARTS: [(&str, &str); 2] = [(".SOUL.md.fawn", SOUL), (".config.yaml.fawn", CONFIG)];
/// Says that what is staged counts.
const MARK: &str = ".commit.fawn";

/// Where the record and the soul of a folder are to be read now, and whether a change is unfinished. Writes nothing, so
/// that it serves folders that cannot be written.
pub fn current(dir: &Path) -> (PathBuf, PathBuf, bool) {
    let is_marked = exists(&dir.join(MARK));
    let [soul, config] = PARTS.map(|(staged, place)| {
        let staged = dir.join(staged);
        match is_marked && exists(&staged) {
            true => staged,
            false => dir.join(place),
        }
    });
    (config, soul, is_marked)
}

/// Replaces what is given and leaves the rest. The folder must exist; the caller holds its lock.
///
/// # Errors
/// Nothing has changed then, unless it is the folder itself that cannot be synced.
pub fn replace(dir: &Path, config: Option<&str>, soul: Option<&str>) -> io::Result<()> {
    finish(dir)?;
    for (given, place) in [(config, CONFIG), (soul, SOUL)] {
        let is_dir = fs::symlink_metadata(dir.join(place)).is_ok_and(|place| place.is_dir());
        if given.is_some() && is_dir {
            return Err(io::Error::other(format!("{place} is a folder")));
        }
    }
    let staged = stage(dir, config, soul).and_then(|()| match (config, soul) {
        (Some(_), Some(_)) => mark(dir),
        _ => Ok(()),
    });
    if let Err(error) = staged {
        discard(dir);
        return Err(error);
    }
    match apply(dir) {
        // Marked and in part in place: the change has happened, and the next writer finishes what is left of it.
        Err(_)
            if exists(&dir.join(MARK))
                && PARTS.iter().any(|(staged, _)| !exists(&dir.join(staged))) =>
        {
            Ok(())
        }
        Err(error) => {
            discard(dir);
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

/// Finishes what an earlier writer left: puts in place what counts, removes what does not.
///
/// # Errors
/// The folder is as it was, for those who read it by [`current`].
pub fn finish(dir: &Path) -> io::Result<()> {
    if exists(&dir.join(MARK)) {
        return apply(dir);
    }
    discard(dir);
    Ok(())
}

/// Writes what is given beside its place.
pub(super) fn stage(dir: &Path, config: Option<&str>, soul: Option<&str>) -> io::Result<()> {
    for ((staged, place), text) in PARTS.iter().zip([soul, config]) {
        if let Some(text) = text {
            write_new(&dir.join(staged), text, mode_of(&dir.join(place)))?;
        }
    }
    sync_dir(dir)
}

/// Makes what is staged count.
pub(super) fn mark(dir: &Path) -> io::Result<()> {
    write_new(&dir.join(MARK), "", None)?;
    sync_dir(dir)
}

/// Puts what is staged in its place, and takes the mark away.
pub(super) fn apply(dir: &Path) -> io::Result<()> {
    for (staged, place) in PARTS {
        match fs::rename(dir.join(staged), dir.join(place)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    sync_dir(dir)?;
    match fs::remove_file(dir.join(MARK)) {
        // Synced too: a mark that came back after a crash would make a later half-written stage count.
        Ok(()) => sync_dir(dir),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes what is staged, the mark first. What cannot be removed does not count without the mark.
fn discard(dir: &Path) {
    for name in [MARK, PARTS[0].0, PARTS[1].0] {
        let _ = fs::remove_file(dir.join(name));
    }
}

/// Writes and syncs a file that must not exist, so that no link is followed. `mode`: that of the file that it replaces; else
/// it is its owner's alone.
fn write_new(path: &Path, text: &str, mode: Option<u32>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    #[cfg(unix)]
    if let Some(mode) = mode {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    let _ = mode;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The permissions of a regular file.
fn mode_of(path: &Path) -> Option<u32> {
    let metadata = fs::symlink_metadata(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        metadata
            .is_file()
            .then(|| metadata.permissions().mode() & 0o777)
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}

/// Makes the names in a folder durable. Where a folder cannot be opened as a file, renames are as durable as it gets.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::File::open(dir)?.sync_all()?;
    let _ = dir;
    Ok(())
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
