//! The authorization port: who may use which model and which tool.

use std::sync::Arc;

use serde_json::{Map, Value};

/// On whose behalf an agent works (MD-3).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Principal {
    /// The user.
    pub user_id: String,
    /// Their role; the default role when none is given.
    pub role: String,
    /// Who vouched for them.
    pub oauth_provider: Option<String>,
    /// What they are called there.
    pub oauth_id: Option<String>,
    /// What they are called in the channel that the request came by.
    pub channel_user_id: Option<String>,
    /// Whether the request comes from the host itself.
    pub is_internal: bool,
    /// Whatever else the host says of them.
    pub attributes: Map<String, Value>,
}

/// What is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// A model, by name.
    Model,
    /// A tool, by name.
    Tool,
}

impl Resource {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Model => "model",
            Resource::Tool => "tool",
        }
    }
}

/// Whether something may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allow,
    /// It may not, and why.
    Deny(String),
}

/// Decides who may use what. Answers at once; whoever has to ask further away fails instead.
pub trait Authorizer: Send + Sync + 'static {
    /// Name of the provider, for descriptors.
    fn name(&self) -> &str;

    /// Whether `principal` may do `action` (`use`, `call`) with the resource named `target`.
    ///
    /// # Errors
    /// Why it cannot tell. What follows is up to `fail_closed`.
    fn authorize(
        &self,
        principal: &Principal,
        resource: Resource,
        action: &str,
        target: &str,
    ) -> Result<Verdict, String>;

    /// Those of `names` that `principal` may use, in the order given.
    ///
    /// # Errors
    /// Why it cannot tell.
    fn filter_resources(
        &self,
        principal: &Principal,
        resource: Resource,
        names: &[&str],
    ) -> Result<Vec<String>, String>;

    /// What a descriptor says about its settings.
    fn policy(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// Who is asked, for whom, and what follows when they cannot tell.
#[derive(Clone)]
pub struct Access {
    /// Who decides.
    pub authorizer: Arc<dyn Authorizer>,
    /// For whom.
    pub principal: Principal,
    /// Whether what cannot be decided is denied.
    pub fail_closed: bool,
}
