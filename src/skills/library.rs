//! The way from a running agent to the skills as they are now. A port that stands here because it speaks of skills.

use std::sync::Arc;

use serde_json::Value;

use super::Skill;
use super::catalog::Catalog;
use super::scope::Scope;
use crate::ports::BoxFuture;
use crate::protocol::error::Error;

/// The skills of one user, read when they are asked for: what was switched off, changed, added or taken away since the agent
/// was assembled shows in the next answer.
pub trait SkillLibrary: Send + Sync + 'static {
    /// The skills as they are now, switched off ones too. The same object as before when nothing changed.
    ///
    /// # Errors
    /// When they cannot be read at all. What is wrong with single files leaves their skills out.
    fn load(&self) -> BoxFuture<'_, Result<Arc<Catalog>, Error>>;

    /// The text of a skill's SKILL.md as it stands in its folder at this moment, at most 1 MiB. Neither a link nor anything but
    /// a regular file is read, and no file outside of the folder of the skill's category.
    ///
    /// # Errors
    /// Why there is none; the text of the error holds nothing of the file.
    fn read(&self, skill: Arc<Skill>) -> BoxFuture<'_, Result<Arc<str>, Error>>;
}

/// The skills that one agent may use while it runs.
#[derive(Clone)]
pub struct SkillAccess {
    /// All skills of its user.
    pub installed: Arc<dyn SkillLibrary>,
    /// Those of them that the agent may find and activate.
    pub scope: Scope,
}

impl SkillAccess {
    /// What a descriptor says of it: the names of the agent's list, sorted; null for all (AD-16).
    pub fn policy(&self) -> Value {
        self.scope.names().map_or(Value::Null, |names| {
            names.map(Value::from).collect::<Vec<_>>().into()
        })
    }
}

impl std::fmt::Debug for SkillAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SkillAccess").field(&self.scope).finish()
    }
}
