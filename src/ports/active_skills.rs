//! What a run has active of skills: the one that its user named with a slash, the tools that follow from it, and the secrets
//! that tools may use.
//!
//! It lives and dies with the run, is never stored, and only code of this library can write to it. The reference keeps this
//! under reserved keys of the caller's context and has to authenticate it there; here nothing that a caller sends can look
//! like it (B-11).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use crate::protocol::message::Message;
use crate::protocol::request_secrets::RequestSecrets;

/// A skill that the user named with a slash, once it was found and read.
#[derive(Clone, Debug)]
pub struct SlashActivation {
    /// The message that named it: its id, or a digest of its text.
    pub target: Arc<str>,
    /// Path of its SKILL.md as the agent sees it.
    pub location: Arc<str>,
    /// The message that gives the skill to the model.
    pub message: Message,
}

/// Which tools a run may use, and what that was decided by (MW-STP-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDecision {
    /// Whether a slash decided, and not what the thread has in context.
    pub is_slash: bool,
    /// Paths of the SKILL.md files that it was decided by, as they were found.
    pub paths: Vec<String>,
    /// Names of the tools; `None` for all.
    pub allowed: Option<BTreeSet<String>>,
}

/// See the module. Shared by all parts of a run.
#[derive(Default)]
pub struct ActiveSkills(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    activation: Option<Arc<SlashActivation>>,
    open_request: Option<Arc<str>>,
    decision: Option<Arc<ToolDecision>>,
    secrets: Arc<RequestSecrets>,
    audit: Option<Map<String, Value>>,
}

impl ActiveSkills {
    /// The skill of the run's slash. It stays for the rest of the run.
    pub fn activation(&self) -> Option<Arc<SlashActivation>> {
        self.lock().activation.clone()
    }

    /// Notes that a skill was activated, in place of one before (MW-SKA-5).
    pub fn activate(&self, activation: SlashActivation) {
        self.lock().activation = Some(Arc::new(activation));
    }

    /// What the user had asked for when an earlier run stopped before the calls that this run begins with. It decides about
    /// those calls, since no model call of this run comes before them.
    pub fn open_request(&self) -> Option<Arc<str>> {
        self.lock().open_request.clone()
    }

    /// Notes what the user had asked for.
    pub fn set_open_request(&self, text: Option<String>) {
        self.lock().open_request = text.map(Arc::from);
    }

    /// The newest decision about tools; none before the first model call of a run.
    pub fn decision(&self) -> Option<Arc<ToolDecision>> {
        self.lock().decision.clone()
    }

    /// Notes a decision about tools; `None` when no skill decides.
    pub fn decide(&self, decision: Option<Arc<ToolDecision>>) {
        self.lock().decision = decision;
    }

    /// The secrets that the active skills of the run may use now, for tools that hand them to what they start. Never put them
    /// into a result, an event, an error or the state. Empty until a model call of the run has bound some.
    pub fn secrets(&self) -> Arc<RequestSecrets> {
        self.lock().secrets.clone()
    }

    /// Puts other secrets in place of those that were bound (MW-SKA-6). `audit` says by names what was bound; answers whether
    /// that is news.
    pub fn bind(&self, secrets: RequestSecrets, audit: Option<Map<String, Value>>) -> bool {
        let mut inner = self.lock();
        inner.secrets = Arc::new(secrets);
        let is_news = inner.audit != audit;
        inner.audit = audit;
        is_news
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without texts of messages.
impl fmt::Debug for ActiveSkills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        let activation = inner.activation.as_ref();
        f.debug_struct("ActiveSkills")
            .field("activation", &activation.map(|active| &active.location))
            .field("decision", &inner.decision)
            .field("secrets", &inner.secrets)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn binding_replaces_and_tells_what_is_news() {
        let active = ActiveSkills::default();
        let secrets = RequestSecrets::read(&json!({"KEY": "hunter2"})).expect("sound");
        let audit = json!({"secrets": ["KEY"]}).as_object().cloned();
        assert!(!active.bind(RequestSecrets::default(), None));
        assert!(active.bind(secrets.clone(), audit.clone()));
        assert!(!active.bind(secrets, audit));
        assert_eq!(active.secrets().expose("KEY"), Some("hunter2"));
        assert!(!format!("{active:?}").contains("hunter2"));
        assert!(active.bind(RequestSecrets::default(), None));
        assert!(active.secrets().is_empty());
    }
}
