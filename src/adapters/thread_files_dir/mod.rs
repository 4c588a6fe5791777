//! The files of threads in a folder of this machine, laid out as DeerFlow lays them out:
//! `{home}/users/{user}/threads/{thread}/user-data/{workspace,uploads,outputs}`.
//!
//! Users and models put things there, so nothing below `home` is trusted: links are not followed, a file with several names is
//! not touched, pipes and devices are no files, and a file is replaced whole or not at all. Permissions are those that the
//! process gives to what it makes.
//!
//! Source: DeerFlow `config/paths.py`, SBX-14 to SBX-16, UPL-2.

mod folder;
#[cfg(test)]
mod tests;
mod virtual_path;

use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use folder::{Folder, Obstacle};
use virtual_path::{ROOTS, VirtualPath};

use super::offload::Offload;
use crate::ports::BoxFuture;
use crate::ports::thread_files::{FileContent, ThreadFiles, ThreadPaths};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::user_id::UserId;

/// How often another name is tried for a file in the making.
const MAX_TRIES: u32 = 16;

/// The files of one user's threads.
#[derive(Clone, Debug)]
pub struct ThreadFilesDir {
    place: Arc<Place>,
    offload: Offload,
}

#[derive(Debug)]
struct Place {
    home: PathBuf,
    user: UserId,
}

impl ThreadFilesDir {
    /// Those of `user` below `home`. Touches no disk.
    pub fn new(home: impl AsRef<Path>, user: UserId, offload: Offload) -> Self {
        let home = home.as_ref();
        ThreadFilesDir {
            place: Arc::new(Place {
                home: std::path::absolute(home).unwrap_or_else(|_| home.to_owned()),
                user,
            }),
            offload,
        }
    }
}

/// The name of a thread's folder. An id that is safe stays, as DeerFlow has it, which takes no others; any other gets a name
/// of its own, so that no id becomes a path as it is.
fn folder_of(thread_id: &str) -> Result<String, Error> {
    if thread_id.is_empty() {
        let text = "a thread without an id has no files";
        return Err(Error::new(ErrorCode::OutOfRange, text));
    }
    Ok(UserId::new(thread_id).as_str().to_owned())
}

impl Place {
    fn names(&self, thread: &str) -> [String; 5] {
        let user = self.user.as_str();
        ["users", user, "threads", thread, "user-data"].map(str::to_owned)
    }

    /// The folder that a path leads into, if every folder on the way is there.
    fn find(&self, thread: &str, path: &VirtualPath) -> Result<Option<Folder>, Obstacle> {
        let Some(mut folder) = Folder::open(&self.home)? else {
            return Ok(None);
        };
        let names = self.names(thread);
        let below = [path.root].into_iter();
        let below = below.chain(path.folders.iter().map(String::as_str));
        for name in names.iter().map(String::as_str).chain(below) {
            match folder.folder(name)? {
                Some(inner) => folder = inner,
                None => return Ok(None),
            }
        }
        Ok(Some(folder))
    }

    /// The folder `user-data` of a thread, made with all that is on the way.
    fn make(&self, thread: &str) -> Result<Folder, Obstacle> {
        let mut folder = match Folder::open(&self.home)? {
            Some(folder) => folder,
            None => {
                std::fs::create_dir_all(&self.home)?;
                let home = Folder::open(&self.home)?;
                home.ok_or_else(|| io::Error::from(ErrorKind::NotFound))?
            }
        };
        for name in self.names(thread) {
            folder = folder.make_folder(&name)?;
        }
        Ok(folder)
    }

    fn read(
        &self,
        thread: &str,
        path: &VirtualPath,
        max_bytes: u64,
    ) -> Result<Option<FileContent>, Obstacle> {
        let Some(folder) = self.find(thread, path)? else {
            return Ok(None);
        };
        let Some(file) = folder.file(&path.name)? else {
            return Ok(None);
        };
        let size = file.metadata()?.len();
        let expected = usize::try_from(size.min(max_bytes)).unwrap_or(0);
        let mut head = Vec::new();
        // A file of holes may say that it is larger than all memory.
        head.try_reserve(expected)
            .map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        if max_bytes > 0 {
            file.take(max_bytes).read_to_end(&mut head)?;
        }
        Ok(Some(FileContent { size, head }))
    }

    fn write(&self, thread: &str, path: &VirtualPath, text: &str) -> Result<(), Obstacle> {
        let mut folder = self.make(thread)?.make_folder(path.root)?;
        for name in &path.folders {
            folder = folder.make_folder(name)?;
        }
        folder.check_target(&path.name)?;
        let staged = stage(&folder, text)?;
        folder.rename(&staged, &path.name).map_err(|error| {
            let _ = folder.remove(&staged);
            error.into()
        })
    }
}

/// Writes and syncs a file beside its place; its name. It looks like an upload in the making, which nobody lists (UPL-1).
fn stage(folder: &Folder, text: &str) -> io::Result<String> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let mut tries = 0;
    loop {
        tries += 1;
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!(".upload-{:x}-{number:x}.part", std::process::id());
        let mut file = match folder.create(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < MAX_TRIES => continue,
            made => made?,
        };
        let written = file.write_all(text.as_bytes());
        return match written.and_then(|()| file.sync_all()) {
            Ok(()) => Ok(name),
            Err(error) => {
                let _ = folder.remove(&name);
                Err(error)
            }
        };
    }
}

/// An error in the words of whoever asked: paths of this machine are nobody's business.
fn told(obstacle: Obstacle, path: &str) -> Error {
    let path: String = path.chars().take(200).collect();
    match obstacle {
        Obstacle::LeadsElsewhere => Error::new(
            ErrorCode::OutOfRange,
            format!("{path:?} is a link, or lies behind one"),
        ),
        Obstacle::Io(error) => {
            let text = format!("{path:?} cannot be reached: {}", error.kind());
            Error::new(ErrorCode::Store, text)
        }
    }
}

impl ThreadFiles for ThreadFilesDir {
    fn paths(&self, thread_id: &str) -> Result<ThreadPaths, Error> {
        let mut path = self.place.home.clone();
        path.extend(self.place.names(&folder_of(thread_id)?));
        let [workspace, uploads, outputs] =
            ROOTS.map(|root| path.join(root).to_string_lossy().into_owned());
        Ok(ThreadPaths {
            workspace,
            uploads,
            outputs,
        })
    }

    fn make_directories(&self, thread_id: String) -> BoxFuture<'_, Result<(), Error>> {
        let place = self.place.clone();
        Box::pin(self.offload.run(move || {
            let thread = folder_of(&thread_id)?;
            let made = place.make(&thread).and_then(|folder| {
                ROOTS
                    .iter()
                    .try_for_each(|root| folder.make_folder(root).map(drop))
            });
            made.map_err(|obstacle| told(obstacle, "/mnt/user-data"))
        }))
    }

    fn read(
        &self,
        thread_id: String,
        virtual_path: String,
        max_bytes: u64,
    ) -> BoxFuture<'_, Result<Option<FileContent>, Error>> {
        let place = self.place.clone();
        Box::pin(self.offload.run(move || {
            let thread = folder_of(&thread_id)?;
            let path = VirtualPath::parse(&virtual_path)?;
            let read = place.read(&thread, &path, max_bytes);
            read.map_err(|obstacle| told(obstacle, &virtual_path))
        }))
    }

    fn write(
        &self,
        thread_id: String,
        virtual_path: String,
        text: String,
    ) -> BoxFuture<'_, Result<(), Error>> {
        let place = self.place.clone();
        Box::pin(self.offload.run(move || {
            let thread = folder_of(&thread_id)?;
            let path = VirtualPath::parse(&virtual_path)?;
            let written = place.write(&thread, &path, &text);
            written.map_err(|obstacle| told(obstacle, &virtual_path))
        }))
    }
}
