//! A folder that is open, and what is in it by name: the way to a file on which no link is followed.
//!
//! On Unix each step goes from an open folder to the next, so that a folder which is swapped for a link at the wrong moment
//! leads nowhere. Elsewhere each step is looked at before it is taken.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
#[cfg(not(unix))]
use std::path::PathBuf;

/// What a name in a folder is not allowed to be.
#[derive(Debug)]
pub enum Obstacle {
    /// A link, or a file that has other names as well: it may be one of somewhere else (UPL-2).
    LeadsElsewhere,
    /// What the system says.
    Io(io::Error),
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Obstacle::Io(error)
    }
}

/// Whether an error says that there is nothing of a name.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// An open folder.
#[cfg(unix)]
#[derive(Debug)]
pub struct Folder(File);

#[cfg(unix)]
mod unix {
    use std::ffi::CString;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    use super::*;
    use crate::os::at;

    fn c_name(name: &str) -> io::Result<CString> {
        debug_assert!(!name.contains('/') && name != "..", "{name:?}");
        CString::new(name).map_err(|_| io::Error::from(ErrorKind::InvalidInput))
    }

    impl Folder {
        /// The folder at a path of the operator's, links included; `None` when there is none.
        pub fn open(path: &Path) -> io::Result<Option<Self>> {
            let mut options = File::options();
            options.read(true).custom_flags(libc::O_DIRECTORY);
            match options.open(path) {
                Ok(folder) => Ok(Some(Folder(folder))),
                Err(error) if is_absent(&error) => Ok(None),
                Err(error) => Err(error),
            }
        }

        /// The folder of this name in it; `None` when there is nothing of that name, or no folder.
        pub fn folder(&self, name: &str) -> Result<Option<Folder>, Obstacle> {
            let name = c_name(name)?;
            match at::open(&self.0, &name, libc::O_RDONLY | libc::O_DIRECTORY, 0) {
                Ok(folder) => Ok(Some(Folder(folder))),
                // A link that is no folder either gives one of two errors, depending on the system.
                Err(_) if at::facts(&self.0, &name).is_ok_and(|facts| facts.is_link) => {
                    Err(Obstacle::LeadsElsewhere)
                }
                Err(error) if is_absent(&error) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }

        /// The folder of this name in it, made if it is not there.
        pub fn make_folder(&self, name: &str) -> Result<Folder, Obstacle> {
            if let Some(folder) = self.folder(name)? {
                return Ok(folder);
            }
            match at::make_dir(&self.0, &c_name(name)?) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
                _ => match self.folder(name)? {
                    Some(folder) => Ok(folder),
                    None => Err(io::Error::from(ErrorKind::NotADirectory).into()),
                },
            }
        }

        /// The regular file of this name in it, open for reading; `None` when there is none.
        pub fn file(&self, name: &str) -> Result<Option<File>, Obstacle> {
            let name = c_name(name)?;
            // Looked at first, since opening a device may do something.
            let facts = match at::facts(&self.0, &name) {
                Ok(facts) => facts,
                Err(error) if is_absent(&error) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            if facts.is_link || facts.is_regular && facts.has_other_names {
                return Err(Obstacle::LeadsElsewhere);
            }
            if !facts.is_regular {
                return Ok(None);
            }
            let file = match at::open(&self.0, &name, libc::O_RDONLY, 0) {
                Ok(file) => file,
                Err(error) if is_absent(&error) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            // What is open is what counts: another may have taken the name since.
            let found = file.metadata()?;
            if found.nlink() > 1 {
                return Err(Obstacle::LeadsElsewhere);
            }
            Ok(found.is_file().then_some(file))
        }

        /// Whether a file may be written under this name: there is none yet, or a regular one with no other name.
        pub fn check_target(&self, name: &str) -> Result<(), Obstacle> {
            match at::facts(&self.0, &c_name(name)?) {
                Ok(facts) if facts.is_regular && !facts.has_other_names => Ok(()),
                Ok(facts) if facts.is_regular || facts.is_link => Err(Obstacle::LeadsElsewhere),
                Ok(_) => Err(io::Error::other("it is no regular file").into()),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error.into()),
            }
        }

        /// Makes a file of this name, which must be new.
        pub fn create(&self, name: &str) -> io::Result<File> {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
            at::open(&self.0, &c_name(name)?, flags, 0o666)
        }

        /// Gives a file in it another name in it, in place of what had that name.
        pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            at::rename(&self.0, &c_name(from)?, &c_name(to)?)
        }

        /// Removes a file in it.
        pub fn remove(&self, name: &str) -> io::Result<()> {
            at::remove(&self.0, &c_name(name)?)
        }
    }
}

/// The path of a folder.
#[cfg(not(unix))]
#[derive(Debug)]
pub struct Folder(PathBuf);

#[cfg(not(unix))]
mod elsewhere {
    use std::fs;

    use super::*;

    impl Folder {
        /// The folder at a path of the operator's, links included; `None` when there is none.
        pub fn open(path: &Path) -> io::Result<Option<Self>> {
            Ok(path.is_dir().then(|| Folder(path.to_owned())))
        }

        fn facts(&self, name: &str) -> io::Result<Option<fs::Metadata>> {
            match fs::symlink_metadata(self.0.join(name)) {
                Ok(facts) => Ok(Some(facts)),
                Err(error) if is_absent(&error) => Ok(None),
                Err(error) => Err(error),
            }
        }

        /// The folder of this name in it; `None` when there is nothing of that name, or no folder.
        pub fn folder(&self, name: &str) -> Result<Option<Folder>, Obstacle> {
            match self.facts(name)? {
                Some(facts) if facts.is_symlink() => Err(Obstacle::LeadsElsewhere),
                Some(facts) if facts.is_dir() => Ok(Some(Folder(self.0.join(name)))),
                _ => Ok(None),
            }
        }

        /// The folder of this name in it, made if it is not there.
        pub fn make_folder(&self, name: &str) -> Result<Folder, Obstacle> {
            match fs::create_dir(self.0.join(name)) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
                _ => match self.folder(name)? {
                    Some(folder) => Ok(folder),
                    None => Err(io::Error::from(ErrorKind::NotADirectory).into()),
                },
            }
        }

        /// The regular file of this name in it, open for reading; `None` when there is none.
        pub fn file(&self, name: &str) -> Result<Option<File>, Obstacle> {
            match self.facts(name)? {
                Some(facts) if facts.is_symlink() => Err(Obstacle::LeadsElsewhere),
                Some(facts) if facts.is_file() => Ok(Some(File::open(self.0.join(name))?)),
                _ => Ok(None),
            }
        }

        /// Whether a file may be written under this name: there is none yet, or a regular one.
        pub fn check_target(&self, name: &str) -> Result<(), Obstacle> {
            match self.facts(name)? {
                None => Ok(()),
                Some(facts) if facts.is_symlink() => Err(Obstacle::LeadsElsewhere),
                Some(facts) if facts.is_file() => Ok(()),
                Some(_) => Err(io::Error::other("it is no regular file").into()),
            }
        }

        /// Makes a file of this name, which must be new.
        pub fn create(&self, name: &str) -> io::Result<File> {
            File::create_new(self.0.join(name))
        }

        /// Gives a file in it another name in it, in place of what had that name.
        pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            fs::rename(self.0.join(from), self.0.join(to))
        }

        /// Removes a file in it.
        pub fn remove(&self, name: &str) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }
    }
}
