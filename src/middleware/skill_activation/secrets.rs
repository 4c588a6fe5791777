//! Which secrets the tools of a run may use: those that its active skills ask for, out of those that the caller brought.
//!
//! They are bound anew at each model call, to what the skills say at that moment. Tools find them in
//! [`ActiveSkills::secrets`](crate::ports::active_skills::ActiveSkills::secrets); what is told of it names them and never
//! shows a value.
//!
//! Source: DeerFlow `SkillActivationMiddleware._resolve_secret_bindings`, MW-SKA-6, SKL-19.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::ports::signals::{AuditRecord, RunSignals};
use crate::protocol::request_secrets::RequestSecrets;
use crate::protocol::warning::Warning;
use crate::skills::Skill;
use crate::skills::catalog::{Catalog, normal_path};
use crate::skills::library::SkillAccess;
use crate::state::channels::Channel;
use crate::state::reads::ChannelReads;

/// What the records of bound secrets are about (JRN-3a).
const SECRETS_TAG: &str = "skill_secrets";

/// Binds the secrets of the skills that are active now in place of those that were bound before. `catalog` are the skills as they
/// were just loaded; else they are loaded here. When they cannot be, nothing is bound.
pub(super) async fn bind(
    access: &SkillAccess,
    secrets: &RequestSecrets,
    reads: &ChannelReads,
    signals: &RunSignals,
    catalog: Option<&Catalog>,
) {
    let slash = signals.skills().activation();
    let slash = slash.as_ref().map(|active| &*active.location);
    let in_context = in_context(reads);
    if slash.is_none() && in_context.is_empty() {
        return publish(Binding::default(), secrets, signals);
    }
    let loaded;
    let catalog = match catalog {
        Some(catalog) => catalog,
        None => match access.installed.load().await {
            Ok(catalog) => {
                loaded = catalog;
                &*loaded
            }
            Err(error) => {
                let message = format!("no secrets are bound: {}", error.message);
                signals.warn(Warning::SkillsUnreadable, message);
                return publish(Binding::default(), secrets, signals);
            }
        },
    };
    let mut binding = Binding::default();
    for skill in sources(access, catalog, slash, &in_context) {
        binding.add(skill, secrets);
    }
    publish(binding, secrets, signals);
}

/// Paths of the skills in context.
pub(in crate::middleware) fn in_context(reads: &ChannelReads) -> Vec<&str> {
    let entries = reads.get(Channel::SkillContext);
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    entries
        .filter_map(|entry| entry.get("path")?.as_str())
        .filter(|path| !path.is_empty())
        .collect()
}

/// The skills whose secrets count, each once. A skill is known by its path alone: one by a name could be somebody else's.
/// The skill of the slash stands for itself, whatever the thread has of it in context.
fn sources<'a>(
    access: &SkillAccess,
    catalog: &'a Catalog,
    slash: Option<&str>,
    in_context: &[&str],
) -> Vec<&'a Arc<Skill>> {
    let find = |path: &str| {
        let skill = catalog.at_location(path)?;
        let counts = skill.enabled && access.scope.allows(skill.name());
        counts.then_some(skill)
    };
    let named = slash.and_then(find);
    let slash_path = slash.and_then(normal_path);
    let mut found: Vec<&Arc<Skill>> = named.into_iter().collect();
    for path in in_context {
        let is_slash = normal_path(path) == slash_path && slash_path.is_some();
        let Some(skill) = find(path).filter(|skill| !is_slash && skill.secrets_autonomous) else {
            continue;
        };
        if !found.iter().any(|known| known.name() == skill.name()) {
            found.push(skill);
        }
    }
    found
}

/// What is bound, by names.
#[derive(Default)]
struct Binding {
    skills: BTreeSet<String>,
    bound: BTreeSet<String>,
    missing: BTreeMap<String, BTreeSet<String>>,
}

impl Binding {
    fn add(&mut self, skill: &Skill, secrets: &RequestSecrets) {
        for secret in &skill.required_secrets {
            if secrets.expose(&secret.name).is_some() {
                self.bound.insert(secret.name.clone());
                self.skills.insert(skill.name().to_owned());
            } else if !secret.optional {
                let missing = self.missing.entry(skill.name().to_owned()).or_default();
                missing.insert(secret.name.clone());
            }
        }
    }

    /// The record of it; `None` when there is nothing to tell.
    fn audit(&self) -> Option<Map<String, Value>> {
        if self.bound.is_empty() && self.missing.is_empty() {
            return None;
        }
        let audit = json!({
            "skills": self.skills, "secrets": self.bound, "missing": self.missing,
        });
        audit.as_object().cloned()
    }
}

fn publish(binding: Binding, secrets: &RequestSecrets, signals: &RunSignals) {
    let audit = binding.audit();
    let active = secrets.only(binding.bound.iter().map(String::as_str));
    if !signals.skills().bind(active, audit.clone()) {
        return;
    }
    for (skill, names) in &binding.missing {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = format!(
            "the skill {skill:?} is active, and context.secrets lacks what it needs: {}",
            names.join(", ")
        );
        signals.warn(Warning::SkillSecretsMissing, message);
    }
    let nothing = || {
        let empty = json!({"skills": [], "secrets": [], "missing": {}});
        empty.as_object().cloned().unwrap_or_default()
    };
    signals.record(AuditRecord {
        tag: SECRETS_TAG,
        action: "bind_secrets",
        changes: audit.unwrap_or_else(nothing),
    });
}
