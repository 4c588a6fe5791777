//! The port to the custom agents that users keep: their records, their souls, and how both change.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::BoxFuture;
use crate::protocol::agent_edit::AgentEdit;
use crate::protocol::agent_record::AgentRecord;
use crate::protocol::error::Error;
use crate::protocol::trust::{Identifier, UntrustedText};
use crate::protocol::user_id::UserId;

/// Where an agent stands (CA-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Under its user. All writes go here.
    User,
    /// Where agents stood before users had directories: everybody's, and never written.
    Legacy,
}

/// An agent as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredAgent {
    /// What the record says. All its texts are untrusted.
    pub record: AgentRecord,
    /// The record as its author wrote it, keys that no record has included.
    pub document: Map<String, Value>,
    /// Where it stands.
    pub layout: Layout,
}

/// The agents of a user.
#[derive(Clone, Debug, Default)]
pub struct AgentList {
    /// Those that can be used, by name.
    pub agents: Vec<Arc<StoredAgent>>,
    /// Those that cannot be read, by name, and why. One bad agent hides no other.
    pub skipped: Vec<(String, Error)>,
}

/// What an edit may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditMode {
    /// Change an agent of the user.
    Update,
    /// Change an agent of the user, or make it.
    Upsert,
}

/// What became of an edit.
#[derive(Clone, Debug, PartialEq)]
pub enum EditOutcome {
    /// It is stored. The members that have another value now, and `soul` if one was given; of a new agent those that are not at
    /// their defaults.
    Changed(Vec<&'static str>),
    /// The agent is so already. Nothing was written.
    Unchanged,
    /// The agent stands in the legacy layout only, which is not written. For updates.
    OnlyLegacy,
    /// There is no such agent. For updates.
    Missing,
    /// What is stored cannot be read, so nothing of it may be overwritten.
    Unreadable(Error),
}

/// Keeps custom agents.
///
/// Reads answer at once, from a file system or a cache: they may wait for a disk, not for a network. Loading an agent again
/// that has not changed is cheap.
pub trait AgentStore: Send + Sync + 'static {
    /// An agent of a user: the user's own, else the legacy one. `None` when there is none (CA-3).
    ///
    /// # Errors
    /// `AssemblyInvalid` when what is stored is no record, `Store` when it cannot be read at all. The message names the agent.
    fn load(&self, user: &UserId, name: &Identifier) -> Result<Option<Arc<StoredAgent>>, Error>;

    /// All agents that [`AgentStore::load`] would find for a user.
    ///
    /// # Errors
    /// `Store` when they cannot be listed.
    fn list(&self, user: &UserId) -> Result<AgentList, Error>;

    /// The soul of the default agent, trimmed; `None` when there is none or it is blank. A model may have written it (TL-20).
    ///
    /// # Errors
    /// As [`AgentStore::load`].
    fn default_soul(&self) -> Result<Option<UntrustedText>, Error>;

    /// Changes an agent of a user, whole or not at all: neither a crash nor another reader sees a record with the soul of
    /// another time. Edits of one agent follow one another, none is lost. Dropping the future leaves the whole edit or
    /// nothing of it.
    ///
    /// # Errors
    /// `Store` when it cannot be stored, `OutOfRange` when it is too large to be read again. Nothing has changed then.
    fn edit(
        &self,
        user: UserId,
        name: Identifier,
        edit: AgentEdit,
        mode: EditMode,
    ) -> BoxFuture<'_, Result<EditOutcome, Error>>;

    /// Replaces the soul of the default agent.
    ///
    /// # Errors
    /// As [`AgentStore::edit`].
    fn write_default_soul(&self, soul: String) -> BoxFuture<'_, Result<(), Error>>;
}
