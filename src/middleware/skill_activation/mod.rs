//! Activates the skill that a user names with a slash: `/name task`.
//!
//! The model is given the whole SKILL.md in a hidden message before the user's, in the request alone: nothing of it is stored.
//! A skill that cannot be activated is answered in the model's place, so that the user learns why. Skills are looked up when the
//! model is called: what was switched off, changed or taken away since the agent was assembled counts.
//!
//! A slash activates once in a run. The text is kept with the run until the model has answered, so that whoever outside calls
//! again after a failure passes on the same words (against hazard A-2); a run that goes on where an earlier one stopped
//! activates anew. What is active lives in [`ActiveSkills`](crate::ports::active_skills::ActiveSkills), where no caller can write.
//!
//! Each model call also binds the secrets that active skills may use (see `secrets`).
//!
//! Source: DeerFlow `SkillActivationMiddleware`, MW-SKA-1 to MW-SKA-6, SKL-9, SKL-9a, SKL-19.

mod message;
mod secrets;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

pub(super) use self::secrets::in_context;

use self::message::{Activated, Failure, activation_message, is_activation_of};
use super::message_marks::first_chars;
use super::user_message::{is_real, newest_real, original_text};
use super::{Hooks, Middleware, ModelResponse, NextModel, RunFacts};
use crate::ports::BoxFuture;
use crate::ports::active_skills::SlashActivation;
use crate::ports::model::{ModelError, ModelReply, ModelRequest};
use crate::ports::signals::{AuditRecord, RunSignals};
use crate::protocol::hash::sha256;
use crate::protocol::message::{Kind, Message};
use crate::protocol::request_secrets::RequestSecrets;
use crate::protocol::warning::Warning;
use crate::skills::catalog::Catalog;
use crate::skills::library::SkillAccess;
use crate::skills::parse::parse;
use crate::skills::slash;
use crate::state::channels::Channel;
use crate::state::transcript::Transcript;

/// What the records of this middleware are about (JRN-3a).
const ACTIVATION_TAG: &str = "skill_activation";

static NO_SECRETS: LazyLock<RequestSecrets> = LazyLock::new(RequestSecrets::default);

/// The middleware.
#[derive(Clone, Debug)]
pub struct SkillActivation {
    access: SkillAccess,
    /// Those of the request that the agent was made for; a run that brings its own does not see them.
    secrets: RequestSecrets,
}

/// What is to be done about the newest message of the user.
enum Slash {
    /// Nothing: it names no skill, or was answered with one.
    Nothing,
    /// The call that gave the skill to the model is made again.
    Again(usize, Message),
    /// It names a skill that this run has not looked at.
    New(Target),
}

/// A message that names a skill.
struct Target {
    place: usize,
    /// Its id, or the digest of its text.
    key: Arc<str>,
    text: String,
}

impl SkillActivation {
    /// The middleware of an agent. `secrets` are those of the request that it was made for.
    pub fn new(access: SkillAccess, secrets: RequestSecrets) -> Self {
        SkillActivation { access, secrets }
    }

    /// The secrets that skills of a run may ask for: those that the run brought, else those of the agent. A subagent inherits
    /// none (SUB-19).
    fn secrets_of<'a>(&'a self, run: &'a RunFacts) -> &'a RequestSecrets {
        match &run.subagent {
            Some(_) => &NO_SECRETS,
            None => run.secrets.as_ref().unwrap_or(&self.secrets),
        }
    }

    /// Finds the skill, or the reason why there is none to activate (MW-SKA-2).
    async fn resolve(
        &self,
        target: &Target,
        signals: &RunSignals,
    ) -> Result<(SlashActivation, Arc<Catalog>), Failure> {
        let command = slash::parse(&target.text).ok_or(Failure::Unresolved)?;
        let catalog = self.access.installed.load().await.map_err(|error| {
            let message = format!("a skill was asked for by its name: {}", error.message);
            signals.warn(Warning::SkillsUnreadable, message);
            Failure::Unresolved
        })?;
        let skill = slash::resolve(&catalog, &self.access.scope, command.name)
            .map_err(Failure::Refused)?
            .clone();
        let unreadable = |reason: String| {
            let message = format!(
                "{:?}, which was asked for by its name: {reason}",
                skill.location.expose()
            );
            signals.warn(Warning::SkillSkipped, message);
            Failure::Unreadable
        };
        let text = self.access.installed.read(skill.clone()).await;
        let text = text.map_err(|error| unreadable(error.message))?;
        // Between the two looks at it the file may have become another one.
        if *text != *skill.content {
            let parsed = parse(text.clone(), skill.category, skill.location.expose());
            let is_same = parsed.map_err(unreadable)?.skill.name() == skill.name();
            if !is_same {
                return Err(unreadable("it is another skill by now".to_owned()));
            }
        }
        let activated = Activated {
            skill: &skill,
            text: &text,
            sha256: &sha256(&text),
            task: command.task,
        };
        signals.record(AuditRecord {
            tag: ACTIVATION_TAG,
            action: "activate",
            changes: activated.record(),
        });
        let activation = SlashActivation {
            message: activation_message(&target.key, &activated),
            target: target.key.clone(),
            location: skill.location.expose().into(),
        };
        Ok((activation, catalog))
    }
}

impl Middleware for SkillActivation {
    fn name(&self) -> &str {
        "skill_activation"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_model_call: true,
            ..Hooks::default()
        }
    }

    fn reads(&self) -> &[Channel] {
        &[Channel::SkillContext]
    }

    fn policy(&self) -> Map<String, Value> {
        Map::from_iter([("available_skills".to_owned(), self.access.policy())])
    }

    fn wrap_model_call<'a>(
        &'a self,
        mut request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let facts = request.run.facts.clone();
        let active = facts.signals.skills();
        // From here on this run knows itself what its user asked for.
        active.set_open_request(None);
        let known = active.activation();
        let slash = look(&request.messages, known.as_deref());
        if matches!(slash, Slash::Nothing) && self.secrets_of(&facts).is_empty() {
            return next.run(request);
        }
        Box::pin(async move {
            let active = facts.signals.skills();
            let secrets = self.secrets_of(&facts);
            let mut catalog = None;
            match slash {
                Slash::Nothing => {}
                Slash::Again(place, message) => insert(&mut request, place, message),
                Slash::New(target) => match self.resolve(&target, &facts.signals).await {
                    Ok((activation, found)) => {
                        insert(&mut request, target.place, activation.message.clone());
                        active.activate(activation);
                        catalog = Some(found);
                    }
                    Err(failure) => return Ok(said(failure.text(&target.text))),
                },
            }
            // A skill that has just become active is told without secrets too, so that missing ones are said.
            if catalog.is_some() || !secrets.is_empty() {
                let catalog = catalog.as_deref();
                secrets::bind(
                    &self.access,
                    secrets,
                    &request.reads,
                    &facts.signals,
                    catalog,
                )
                .await;
            }
            next.run(request).await
        })
    }
}

/// What the newest message of the user asks for (MW-SKA-1, MW-SKA-4). Looks no further back than to the user's message before.
fn look(messages: &Transcript, known: Option<&SlashActivation>) -> Slash {
    let Some(place) = newest_real(messages) else {
        return Slash::Nothing;
    };
    let message = &messages[place];
    let text = original_text(message);
    if slash::parse(&text).is_none() {
        return Slash::Nothing;
    }
    let key: Arc<str> = match message.id().filter(|id| !id.is_empty()) {
        Some(id) => id.into(),
        None => format!("sha256:{}", sha256(&text)).into(),
    };
    if let Some(known) = known.filter(|known| known.target == key) {
        let is_answered = messages[place + 1..]
            .iter()
            .any(|message| message.kind() == Kind::Ai);
        return match is_answered {
            true => Slash::Nothing,
            false => Slash::Again(place, known.message.clone()),
        };
    }
    let between = messages[..place].iter().rev();
    let mut between = between.take_while(|message| !is_real(message)).enumerate();
    let has_one = between.any(|(back, message)| is_activation_of(message, &key, back == 0));
    match has_one {
        true => Slash::Nothing,
        false => Slash::New(Target {
            place,
            key,
            text: text.into_owned(),
        }),
    }
}

/// Puts a message before the one at `place`, in the request alone.
fn insert(request: &mut ModelRequest, place: usize, message: Message) {
    let sound = request.messages.sound_prefix().min(place);
    let (before, after) = request.messages.split_at(place);
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    messages.extend_from_slice(before);
    messages.push(message);
    messages.extend_from_slice(after);
    let transcript = Transcript::from(messages);
    transcript.note_sound(sound);
    request.messages = Arc::new(transcript);
}

/// An answer in the model's place.
fn said(text: String) -> ModelResponse {
    let reply = ModelReply {
        content: text.into(),
        ..ModelReply::default()
    };
    reply.into()
}

/// The name in a command, short enough for a sentence: it may be of any length.
fn shown(name: &str) -> &str {
    first_chars(name, crate::skills::validate::MAX_NAME_CHARS)
}

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
