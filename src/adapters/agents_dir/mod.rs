//! Custom agents in folders, laid out as DeerFlow has them, so that either may go on with the other's (CA-3).
//!
//! ```text
//! {home}/users/{user}/agents/{name}/config.yaml   the record; a folder without one is no agent
//! {home}/users/{user}/agents/{name}/SOUL.md       its soul
//! {home}/agents/{name}/...                        the same for all users, from before users had folders: read only
//! {home}/SOUL.md                                  the soul of the default agent
//! ```
//!
//! Users and models write these files. What is read is bounded and untrusted; what is written never leaves `home`, not by a
//! link either. Reading follows links, which an operator may have set. What is read again is compared by the stamps of
//! the files, one or two `stat` calls; within two seconds of a change, when stamps cannot be told apart for sure, it is read.
//!
//! Rewriting a record keeps every key of it, but no comments. Several processes may share a folder: writers wait for each
//! other where the system locks folders (not on NFS).

mod cache;
mod commit;
mod files;

use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value};

use self::cache::{Cache, Seen};
use self::commit::{CONFIG, SOUL};
use super::offload::Offload;
use crate::ports::BoxFuture;
use crate::ports::agents::{AgentList, AgentStore, EditMode, EditOutcome, Layout, StoredAgent};
use crate::protocol::agent_edit::AgentEdit;
use crate::protocol::agent_record::{AgentRecord, agent_name, trim};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::trust::{Identifier, UntrustedText};
use crate::protocol::user_id::UserId;
use crate::protocol::yaml::{from_yaml, to_yaml};

pub use self::files::MAX_FILE_BYTES;

/// How long ago a file must have changed for its stamp to tell; the coarsest clocks of file systems tick once in 2 s.
const SETTLING: Duration = Duration::from_secs(2);
/// How long a writer waits for one of another process.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often an agent is read again because another process changed it meanwhile.
const MAX_READS: u32 = 8;
/// Locks that the agents share. Two agents on one lock wait for each other, which is harmless.
const LOCKS: usize = 64;

/// Keeps custom agents in folders under a home.
pub struct AgentsDir {
    inner: Arc<Inner>,
    offload: Offload,
}

struct Inner {
    home: PathBuf,
    /// Held by whoever writes an agent, and by whoever reads its files rather than the cache.
    locks: [Mutex<()>; LOCKS],
    agents: Cache<(UserId, Identifier), Arc<StoredAgent>>,
    souls: Cache<(), Option<UntrustedText>>,
    settling: Duration,
}

impl AgentsDir {
    /// A store of the agents under `home`, which need not exist. Does no I/O. A relative path means the working directory of
    /// now.
    pub fn new(home: impl Into<PathBuf>, offload: Offload) -> Self {
        AgentsDir::with_settling(home, offload, SETTLING)
    }

    /// Like [`AgentsDir::new`], for file systems with finer clocks: how long ago a file must have changed for its stamp
    /// to tell.
    pub fn with_settling(home: impl Into<PathBuf>, offload: Offload, settling: Duration) -> Self {
        let home = home.into();
        let inner = Inner {
            home: std::path::absolute(&home).unwrap_or(home),
            locks: std::array::from_fn(|_| Mutex::new(())),
            agents: Cache::new(),
            souls: Cache::new(),
            settling,
        };
        AgentsDir {
            inner: Arc::new(inner),
            offload,
        }
    }
}

impl AgentStore for AgentsDir {
    fn load(&self, user: &UserId, name: &Identifier) -> Result<Option<Arc<StoredAgent>>, Error> {
        self.inner.load(user, name)
    }

    fn list(&self, user: &UserId) -> Result<AgentList, Error> {
        self.inner.list(user)
    }

    fn default_soul(&self) -> Result<Option<UntrustedText>, Error> {
        self.inner.default_soul()
    }

    fn edit(
        &self,
        user: UserId,
        name: Identifier,
        edit: AgentEdit,
        mode: EditMode,
    ) -> BoxFuture<'_, Result<EditOutcome, Error>> {
        let inner = self.inner.clone();
        Box::pin(
            self.offload
                .run(move || inner.edit(&user, &name, &edit, mode)),
        )
    }

    fn write_default_soul(&self, soul: String) -> BoxFuture<'_, Result<(), Error>> {
        let inner = self.inner.clone();
        Box::pin(self.offload.run(move || inner.write_default_soul(&soul)))
    }
}

/// What one folder holds.
struct Read {
    agent: Option<StoredAgent>,
    /// The files that it was read from; empty when it may not be kept, because a change is unfinished.
    seen: Seen,
}

impl Inner {
    fn load(&self, user: &UserId, name: &Identifier) -> Result<Option<Arc<StoredAgent>>, Error> {
        let key = (user.clone(), name.clone());
        if let Some(agent) = self.agents.fresh(&key) {
            return Ok(Some(agent));
        }
        let _held = self.lock(user, name);
        let now = SystemTime::now();
        let mut seen = Seen::new();
        for layout in [Layout::User, Layout::Legacy] {
            let read = self.read(layout, user, name)?;
            let may_keep = !read.seen.is_empty();
            seen.extend(read.seen);
            let Some(agent) = read.agent else { continue };
            let agent = Arc::new(agent);
            let settled = |stamp: &files::Stamp| files::is_settled(stamp, now, self.settling);
            if may_keep
                && seen
                    .iter()
                    .all(|(_, stamp)| stamp.as_ref().is_none_or(settled))
            {
                self.agents.keep(key, seen, agent.clone());
            }
            return Ok(Some(agent));
        }
        Ok(None)
    }

    /// Reads an agent in one layout. The caller holds its lock.
    fn read(&self, layout: Layout, user: &UserId, name: &Identifier) -> Result<Read, Error> {
        let dir = self.dir(layout, user, name);
        let called = |file: &str| format!("the {file} of the agent {:?}", name.as_str());
        if self.leads_elsewhere(&dir) {
            let text = format!("a folder of the agent {:?} is a link", name.as_str());
            return Err(Error::new(ErrorCode::AssemblyInvalid, text));
        }
        let mut attempts = 0;
        let (current, config, soul) = loop {
            let current = match layout {
                Layout::User => commit::current(&dir),
                // Nobody writes there.
                Layout::Legacy => (dir.join(CONFIG), dir.join(SOUL), false),
            };
            let config = files::read(&current.0, &called(CONFIG))?;
            let soul = match config {
                Some(_) => files::read(&current.1, &called(SOUL))?,
                None => None,
            };
            // Another process may have changed both in between, and then one is older than the other.
            let stamp = config.as_ref().map(|(_, stamp)| *stamp);
            let is_same = || {
                commit::current(&dir) == current
                    && files::stamp(&current.0).is_ok_and(|now| now == stamp)
            };
            attempts += 1;
            if layout == Layout::Legacy || attempts == MAX_READS || is_same() {
                break (current, config, soul);
            }
        };
        let (config_path, soul_path, is_unfinished) = current;
        let Some((text, config_stamp)) = config else {
            return Ok(Read {
                agent: None,
                seen: vec![(config_path, None)],
            });
        };
        let (soul_text, soul_stamp) = match &soul {
            Some((text, stamp)) => (Some(text.as_str()), Some(*stamp)),
            None => (None, None),
        };
        let record = from_yaml(&text).and_then(|document| {
            let record = AgentRecord::from_file_value(name, document.clone(), soul_text)?;
            Ok((record, document))
        });
        let (record, document) = record.map_err(|error| fault(&called(CONFIG), error))?;
        let document = match document {
            Value::Object(document) => document,
            // An empty file.
            _ => Map::new(),
        };
        let seen = match is_unfinished {
            true => Seen::new(),
            false => vec![(config_path, Some(config_stamp)), (soul_path, soul_stamp)],
        };
        Ok(Read {
            agent: Some(StoredAgent {
                record,
                document,
                layout,
            }),
            seen,
        })
    }

    fn list(&self, user: &UserId) -> Result<AgentList, Error> {
        let mut names = BTreeSet::new();
        for parent in [self.user_agents(user), self.home.join("agents")] {
            let entries = match fs::read_dir(&parent) {
                Ok(entries) => entries,
                Err(error) if files::is_absent(&error) => continue,
                Err(error) => return Err(store_error("the agents cannot be listed", &error)),
            };
            for entry in entries {
                let entry = entry.map_err(|e| store_error("the agents cannot be listed", &e))?;
                // A folder of any other name is no agent: nothing could ask for it.
                names.extend(
                    entry
                        .file_name()
                        .to_str()
                        .and_then(|name| agent_name(name).ok()),
                );
            }
        }
        let mut list = AgentList::default();
        for name in names {
            match self.load(user, &name) {
                Ok(agent) => list.agents.extend(agent),
                Err(error) => list.skipped.push((name.as_str().to_owned(), error)),
            }
        }
        Ok(list)
    }

    fn default_soul(&self) -> Result<Option<UntrustedText>, Error> {
        if let Some(soul) = self.souls.fresh(&()) {
            return Ok(soul);
        }
        let path = self.home.join(SOUL);
        let now = SystemTime::now();
        let Some((text, stamp)) = files::read(&path, "the SOUL.md of the default agent")? else {
            return Ok(None);
        };
        let soul = match trim(&text) {
            "" => None,
            text => Some(UntrustedText::model(text)),
        };
        if files::is_settled(&stamp, now, self.settling) {
            self.souls.keep((), vec![(path, Some(stamp))], soul.clone());
        }
        Ok(soul)
    }

    fn edit(
        &self,
        user: &UserId,
        name: &Identifier,
        edit: &AgentEdit,
        mode: EditMode,
    ) -> Result<EditOutcome, Error> {
        check_soul(edit.soul.as_deref())?;
        let _held = self.lock(user, name);
        let called = format!("the agent {:?}", name.as_str());
        let stored = |error: io::Error| store_error(&format!("{called} cannot be stored"), &error);
        let dir = self.dir(Layout::User, user, name);
        let is_new = match mode {
            EditMode::Update => false,
            EditMode::Upsert => self.make_dir(&dir).map_err(stored)?.1,
        };
        // Before reading, so that no other process writes in between.
        let _lock = lock_dir(&dir, &called)?;
        let outcome = self.edit_locked(user, name, edit, mode);
        if is_new && !matches!(outcome, Ok(EditOutcome::Changed(_))) {
            // Only if it is empty: what others put there in the meantime is theirs.
            let _ = fs::remove_dir(&dir);
        }
        outcome
    }

    fn edit_locked(
        &self,
        user: &UserId,
        name: &Identifier,
        edit: &AgentEdit,
        mode: EditMode,
    ) -> Result<EditOutcome, Error> {
        let called = format!("the agent {:?}", name.as_str());
        let existing = match self.read(Layout::User, user, name) {
            Ok(read) => read.agent,
            Err(error) if error.code == ErrorCode::Store => return Err(error),
            Err(error) => return Ok(EditOutcome::Unreadable(error)),
        };
        if existing.is_none() && mode == EditMode::Update {
            let legacy = self.dir(Layout::Legacy, user, name).join(CONFIG);
            return Ok(match files::stamp(&legacy) {
                Ok(Some(_)) => EditOutcome::OnlyLegacy,
                _ => EditOutcome::Missing,
            });
        }
        let before = existing.as_ref().map(|agent| &agent.document);
        let (document, mut changed) = edit.apply(name, before);
        let must_write = before.is_none() || !changed.is_empty();
        let config = match must_write {
            true => Some(checked_yaml(name, document, &called)?),
            false => None,
        };
        if config.is_none() && edit.soul.is_none() {
            return Ok(EditOutcome::Unchanged);
        }
        self.make_dir(&self.dir(Layout::User, user, name))
            .and_then(|(dir, _)| commit::replace(&dir, config.as_deref(), edit.soul.as_deref()))
            .map_err(|error| store_error(&format!("{called} cannot be stored"), &error))?;
        changed.extend(edit.soul.as_ref().map(|_| "soul"));
        Ok(EditOutcome::Changed(changed))
    }

    fn write_default_soul(&self, soul: &str) -> Result<(), Error> {
        check_soul(Some(soul))?;
        let _held = locked(&self.locks[0]);
        let called = "the soul of the default agent";
        let stored = |error: io::Error| store_error(&format!("{called} cannot be stored"), &error);
        let (home, _) = self.make_dir(&self.home).map_err(stored)?;
        let _lock = lock_dir(&home, called)?;
        commit::replace(&home, None, Some(soul)).map_err(stored)
    }

    fn user_agents(&self, user: &UserId) -> PathBuf {
        self.home.join("users").join(user.as_str()).join("agents")
    }

    /// The folder of an agent. Users and names are safe in paths, by their types.
    fn dir(&self, layout: Layout, user: &UserId, name: &Identifier) -> PathBuf {
        let parent = match layout {
            Layout::User => self.user_agents(user),
            Layout::Legacy => self.home.join("agents"),
        };
        parent.join(name.as_str())
    }

    /// Whether a link stands among the folders between the home and `dir`. Users write there, and by a link one could read and
    /// change what is another's.
    fn leads_elsewhere(&self, dir: &Path) -> bool {
        let Ok(below) = dir.strip_prefix(&self.home) else {
            return true;
        };
        let mut path = self.home.clone();
        below.components().any(|part| {
            path.push(part);
            path.is_symlink()
        })
    }

    /// Makes a folder under the home, and whatever is missing above it, for its owner alone. Answers its path without links,
    /// and whether it is new.
    ///
    /// # Errors
    /// Also when a link stands on the way. Nothing is made behind it.
    fn make_dir(&self, dir: &Path) -> io::Result<(PathBuf, bool)> {
        if !self.home.is_dir() {
            new_dir_options().recursive(true).create(&self.home)?;
        }
        let home = self.home.canonicalize()?;
        let mut path = home;
        let mut is_new = false;
        let below = dir.strip_prefix(&self.home).map_err(io::Error::other)?;
        for part in below.components() {
            let parent = path.clone();
            path.push(part);
            is_new = match new_dir_options().create(&path) {
                Ok(()) => {
                    commit::sync_dir(&parent)?;
                    true
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
                Err(error) => return Err(error),
            };
            if path.is_symlink() {
                return Err(io::Error::other("a link stands in the way"));
            }
        }
        Ok((path, is_new))
    }

    fn lock(&self, user: &UserId, name: &Identifier) -> MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((user, name));
        locked(&self.locks[(hash % LOCKS as u64) as usize])
    }
}

/// The text of a record, once it is proved that it reads back as what it should say.
fn checked_yaml(
    name: &Identifier,
    document: Map<String, Value>,
    called: &str,
) -> Result<String, Error> {
    let document = Value::Object(document);
    let text = to_yaml(&document);
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large("record"));
    }
    let read = from_yaml(&text);
    if read.as_ref() != Ok(&document) {
        let message = format!("the record of {called} does not survive being written as YAML");
        return Err(Error::new(ErrorCode::Internal, message));
    }
    AgentRecord::from_file_value(name, document, None).map_err(|error| fault(called, error))?;
    Ok(text)
}

fn check_soul(soul: Option<&str>) -> Result<(), Error> {
    match soul {
        Some(soul) if soul.len() as u64 > MAX_FILE_BYTES => Err(too_large("soul")),
        _ => Ok(()),
    }
}

fn too_large(what: &str) -> Error {
    let message = format!("the {what} is larger than {MAX_FILE_BYTES} bytes");
    Error::new(ErrorCode::OutOfRange, message)
}

/// A fault inside a file: what the file is called, the place in it, the fault. The path is not the caller's, so it goes into
/// the message.
fn fault(called: &str, error: Error) -> Error {
    let place = match error.path.as_deref() {
        None | Some("") => String::new(),
        Some(path) => format!(" at {path}"),
    };
    let message = format!("{called} is wrong{place}: {}", error.message);
    Error::new(ErrorCode::AssemblyInvalid, message)
}

fn store_error(what: &str, error: &io::Error) -> Error {
    Error::new(ErrorCode::Store, format!("{what}: {error}"))
}

fn new_dir_options() -> fs::DirBuilder {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "folders have no mode there"))]
    let mut options = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        options.mode(0o700);
    }
    options
}

/// Holds a folder against writers in other processes, until the file is dropped. `None` where there is no folder, or none
/// that can be locked.
fn lock_dir(dir: &Path, called: &str) -> Result<Option<fs::File>, Error> {
    let Ok(file) = files::open_dir(dir) else {
        return Ok(None);
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(fs::TryLockError::WouldBlock) => {
                let message = format!("another process is changing {called}");
                return Err(Error::new(ErrorCode::Store, message).retryable());
            }
            Err(fs::TryLockError::Error(_)) => return Ok(None),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, unix))]
mod tests;
