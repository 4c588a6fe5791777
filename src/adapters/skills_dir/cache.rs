//! Keeps catalogues between assemblies. One for each runtime, never for the process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use super::scan::{Shelf, Snapshot, scan};
use super::{Loaded, SkillSettings};
use crate::protocol::error::{Error, ErrorCode};

/// Most catalogues that are kept; the one that was used longest ago goes first (PR-11a).
pub const MAX_CATALOGS: usize = 256;
/// Longest name of a user, in bytes.
const MAX_USER_BYTES: usize = 128;

/// The skills on disk. Shared by all OS threads of a runtime; they read folders at the same time, but each catalogue once.
#[derive(Default)]
pub struct SkillsDir {
    slots: RwLock<HashMap<Key, Arc<Slot>>>,
    uses: AtomicU64,
    shelf: Mutex<Shelf>,
}

/// Whose catalogue it is.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    settings: Arc<SkillSettings>,
    user_id: Option<String>,
}

#[derive(Default)]
struct Slot {
    current: Mutex<Option<Arc<Snapshot>>>,
    /// Held while the folders are read.
    scanning: Mutex<()>,
    last_use: AtomicU64,
}

impl Slot {
    fn current(&self) -> Option<Arc<Snapshot>> {
        lock(&self.current).clone()
    }
}

/// Nothing in here is left half done by a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SkillsDir {
    /// None kept yet.
    pub fn new() -> Self {
        SkillsDir::default()
    }

    /// The skills of a user, or without a user the public and legacy ones alone. Reads what changed since the last time,
    /// on the calling OS thread.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfRange`] for a user whose name cannot stand in a path: anything but 1 to 128 of `A-Z a-z 0-9 _ -`, or
    /// a name that some system keeps for devices. Whatever is wrong with the files themselves is a warning.
    pub fn load(
        &self,
        settings: &Arc<SkillSettings>,
        user_id: Option<&str>,
    ) -> Result<Loaded, Error> {
        let asked = Instant::now();
        if let Some(user_id) = user_id {
            check_user(user_id)?;
        }
        let slot = self.slot(settings, user_id);
        let before = slot.current();
        if let Some(snapshot) = before.as_ref().filter(|snapshot| snapshot.still_holds()) {
            return Ok(snapshot.loaded.clone());
        }
        let _scanning = lock(&slot.scanning);
        // Others may have read it while this one waited; what they began to read after it was asked for is new enough.
        if let Some(snapshot) = slot.current().filter(|snapshot| snapshot.began >= asked) {
            return Ok(snapshot.loaded.clone());
        }
        let mut snapshot = scan(settings, user_id, &self.shelf);
        if let Some(before) = &before
            && is_same(&before.loaded, &snapshot.loaded)
        {
            snapshot.loaded = before.loaded.clone();
        }
        let loaded = snapshot.loaded.clone();
        let replaced = lock(&slot.current).replace(Arc::new(snapshot));
        drop((before, replaced));
        lock(&self.shelf).tidy();
        Ok(loaded)
    }

    /// Forgets what was read, so that the next assembly reads everything anew.
    pub fn reload(&self) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        slots.clear();
        drop(slots);
        *lock(&self.shelf) = Shelf::default();
    }

    /// How many catalogues are kept.
    pub fn kept(&self) -> usize {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.len()
    }

    fn slot(&self, settings: &Arc<SkillSettings>, user_id: Option<&str>) -> Arc<Slot> {
        let key = Key {
            settings: settings.clone(),
            user_id: user_id.map(str::to_owned),
        };
        let used = self.uses.fetch_add(1, Ordering::Relaxed);
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(&key) {
            slot.last_use.store(used, Ordering::Relaxed);
            return slot.clone();
        }
        drop(slots);
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MAX_CATALOGS && !slots.contains_key(&key) {
            let last_use = |slot: &Slot| slot.last_use.load(Ordering::Relaxed);
            let oldest = slots.iter().min_by_key(|(_, slot)| last_use(slot));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                slots.remove(&oldest);
            }
        }
        let slot = slots.entry(key).or_default();
        slot.last_use.store(used, Ordering::Relaxed);
        slot.clone()
    }
}

fn is_same(a: &Loaded, b: &Loaded) -> bool {
    a.catalog == b.catalog && a.warnings == b.warnings
}

fn check_user(user_id: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=MAX_USER_BYTES).contains(&user_id.len())
        && user_id.bytes().all(plain)
        && !is_device(user_id)
    {
        return Ok(());
    }
    let message = format!(
        "the user's name cannot stand in a path: expected 1 to {MAX_USER_BYTES} of A-Z, a-z, 0-9, '_' and '-'"
    );
    Err(Error::new(ErrorCode::OutOfRange, message))
}

/// Whether Windows takes the name for a device, in whatever folder it stands.
fn is_device(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let numbered = |rest: &str| matches!(rest.as_bytes(), [b'0'..=b'9']);
    matches!(&*name, "con" | "prn" | "aux" | "nul")
        || name.strip_prefix("com").is_some_and(numbered)
        || name.strip_prefix("lpt").is_some_and(numbered)
}
