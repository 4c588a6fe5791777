//! What was looked at on the way to a catalogue, so that it can be asked later whether anything changed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::file::{Stamp, is_settled};
use crate::protocol::warning::{Warning, Warnings};

/// Most warnings about one user's skills; one more says how many were left away.
pub const MAX_WARNINGS: usize = 100;

/// The files and folders that were looked at, each with its stamp from before that, and the warnings.
pub struct Trail {
    /// When the looking began.
    pub began: SystemTime,
    seen: Vec<Seen>,
    warnings: Warnings,
    /// Warnings beyond the bound.
    unsaid: usize,
}

struct Seen {
    path: PathBuf,
    is_folder: bool,
    /// `None`: it was not there.
    stamp: Option<Stamp>,
}

/// Where a trail notes a file.
#[derive(Clone, Copy)]
pub struct Place(usize);

impl Trail {
    /// Begins now.
    pub fn new() -> Self {
        Trail {
            began: SystemTime::now(),
            seen: Vec::new(),
            warnings: Warnings::new(),
            unsaid: 0,
        }
    }

    /// Notes a folder with its stamp from before it was listed; `None` when it is not there.
    pub fn saw_folder(&mut self, path: &Path, stamp: Option<Stamp>) {
        self.see(path, true, stamp);
    }

    /// Notes a file with its stamp; `None` when it is not there.
    pub fn saw_file(&mut self, path: &Path, stamp: Option<Stamp>) -> Place {
        self.see(path, false, stamp)
    }

    /// Notes that a file was read, with the stamp that it had then.
    pub fn read_file(&mut self, place: Place, stamp: Stamp) {
        self.seen[place.0].stamp = Some(stamp);
    }

    /// The stamp of a file as noted.
    pub fn stamp(&self, place: Place) -> Option<Stamp> {
        self.seen[place.0].stamp
    }

    fn see(&mut self, path: &Path, is_folder: bool, stamp: Option<Stamp>) -> Place {
        let path = path.to_owned();
        self.seen.push(Seen {
            path,
            is_folder,
            stamp,
        });
        Place(self.seen.len() - 1)
    }

    /// Notes a warning, as long as there are not too many.
    pub fn warn(&mut self, warning: Warning, message: String) {
        match self.warnings.len() < MAX_WARNINGS {
            true => self.warnings.add(warning, message),
            false => self.unsaid += 1,
        }
    }

    /// The warnings so far.
    pub fn take_warnings(&mut self) -> Warnings {
        let unsaid = std::mem::take(&mut self.unsaid);
        if unsaid > 0 {
            let message = format!("{unsaid} more warnings about skills are left away");
            self.warnings.add(Warning::SkillSkipped, message);
        }
        std::mem::take(&mut self.warnings)
    }

    /// Whether every change since the beginning would show in a stamp.
    pub fn is_settled(&self) -> bool {
        let mut stamps = self.seen.iter().filter_map(|seen| seen.stamp.as_ref());
        stamps.all(|stamp| is_settled(stamp, self.began))
    }

    /// Whether everything is as it was. One system call for each file and folder.
    pub fn still_holds(&self) -> bool {
        self.seen.iter().all(|seen| {
            let now = match seen.is_folder {
                true => Stamp::of_folder(&seen.path),
                false => Stamp::of_file(&seen.path),
            };
            now == seen.stamp
        })
    }
}
