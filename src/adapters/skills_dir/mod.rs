//! The skills on disk, as catalogues that are kept and checked before each use.
//!
//! Which folders there are, and who writes them:
//!
//! | folder | category | written by |
//! |---|---|---|
//! | `{path}/public` | public | the operator |
//! | `{home}/users/{user_id}/skills/integrations` | integrations | what a user set up |
//! | `{home}/users/{user_id}/skills/custom` | custom | a user and their agents |
//! | `{path}/custom` | legacy | from before users had folders; counts for users without custom skills |
//!
//! Nothing in them can stop or stall an assembly: whatever is no usable skill becomes a warning, and each dimension of a
//! tree has a bound. Files are read when something changed: a catalogue remembers the state of every file and folder that
//! it came from and is asked for again only when one of them differs, so that an edit is seen by the next assembly.

mod cache;
mod file;
mod library;
mod scan;
mod states;
mod trail;
mod walk;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::protocol::warning::Warnings;
use crate::skills::catalog::Catalog;

pub use cache::{MAX_CATALOGS, SkillsDir};
pub use file::MAX_FILE_BYTES;
pub use library::UserSkills;
pub use scan::MAX_TOTAL_BYTES;
pub use states::STATE_FILES;
pub use trail::MAX_WARNINGS;
pub use walk::{MAX_DEPTH, MAX_ENTRIES, MAX_SKILLS};

/// Where skills stand, and what the configuration says about them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SkillSettings {
    /// `skills.path`, above the folders `public` and `custom`; without it there are no public and no legacy skills.
    pub path: Option<PathBuf>,
    /// The data directory, above `users`; without it users have no skills of their own.
    pub home: Option<PathBuf>,
    /// Where the agent sees the skills, such as `/mnt/skills`.
    pub container_path: String,
    /// Which public skills are on, by name, from the extensions of the configuration. Those not named are on (SKL-7).
    pub public_states: BTreeMap<String, bool>,
}

/// The skills of a user, and what was wrong with their files. The same two objects as the time before when nothing changed.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The skills, switched off ones too.
    pub catalog: Arc<Catalog>,
    /// What was left out or passed over, in the order of the folders.
    pub warnings: Arc<Warnings>,
}

// The hostile trees are made of links, pipes and permissions.
#[cfg(all(test, unix))]
mod tests;
