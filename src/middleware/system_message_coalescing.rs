//! Makes one system text of all system messages of a request, because strict endpoints take one, at the front.
//!
//! The system messages of a transcript are the framework's and the host's (see
//! [`SystemWriter::system_message`]). They follow the agent's own system text in their order; of the reminders that
//! `DynamicContext` left only the newest stays, so that the model is told one date. A request without system messages in
//! its list passes as it is, and the thread's state is never touched.
//!
//! Source: DeerFlow `SystemMessageCoalescingMiddleware`, MW-COA. A system text has no id and no kwargs here: providers send
//! neither.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::user_messages::is_reminder;
use super::{Hooks, Middleware, ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::message::{Kind, Message};
use crate::protocol::trust::{SystemText, SystemWriter};
use crate::state::transcript::Transcript;

/// The middleware; it has no settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemMessageCoalescing;

impl SystemMessageCoalescing {
    /// The middleware.
    pub fn new() -> Self {
        SystemMessageCoalescing
    }
}

impl Middleware for SystemMessageCoalescing {
    fn name(&self) -> &str {
        "system_message_coalescing"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_model_call: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let settings = [
            ("strategy", "merge_leading_system_message"),
            ("dynamic_context_reminder_dedup", "keep_last"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.into()));
        Map::from_iter(settings)
    }

    fn wrap_model_call<'a>(
        &'a self,
        mut request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        if request.messages.system_messages() > 0 {
            let (system, rest) = coalesce(request.system.as_ref(), &request.messages);
            request.system = system;
            request.messages = Arc::new(rest);
        }
        next.run(request)
    }
}

/// The one system text, and the messages without those that went into it.
fn coalesce(
    system: Option<&SystemText>,
    messages: &Transcript,
) -> (Option<SystemText>, Transcript) {
    let is_system = |message: &&Message| message.kind() == Kind::System;
    let parts = messages.iter().filter(is_system);
    let newest_reminder = parts.clone().rev().find(|part| is_reminder(part));
    let is_stale = |part: &Message| {
        is_reminder(part) && newest_reminder.is_some_and(|newest| !newest.same(part))
    };
    let mut whole = SystemWriter::new();
    let mut add = |write: &dyn Fn(&mut SystemWriter)| {
        let mut part = SystemWriter::new();
        write(&mut part);
        if !whole.is_empty() && !part.is_empty() {
            whole.framework("\n\n");
        }
        whole.append(part);
    };
    if let Some(system) = system {
        add(&|part| {
            part.system(system);
        });
    }
    for message in parts.filter(|part| !is_stale(part)) {
        add(&|part| {
            part.system_message(message);
        });
    }
    let rest = messages.iter().filter(|message| !is_system(message));
    let system = (!whole.is_empty()).then(|| whole.finish());
    (system, rest.cloned().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::message::Fields;

    fn message(kind: Kind, content: impl Into<Value>) -> Message {
        Message::new(Fields::new(kind, content))
    }

    fn reminder(kind: Kind, text: &str) -> Message {
        let mut fields = Fields::new(kind, text);
        fields
            .additional_kwargs
            .insert("dynamic_context_reminder".into(), true.into());
        Message::new(fields)
    }

    fn texts(messages: &[Message]) -> Vec<String> {
        messages.iter().map(Message::text).collect()
    }

    fn coalesced(system: Option<&'static str>, messages: Vec<Message>) -> (String, Vec<String>) {
        let system = system.map(SystemText::from);
        let (system, rest) = coalesce(system.as_ref(), &messages.into());
        let system = system.map(|text| text.as_str().to_owned());
        (system.unwrap_or_default(), texts(&rest))
    }

    #[test]
    fn coa_2_all_system_messages_follow_the_systems_own_text_in_order() {
        let messages = vec![
            message(Kind::System, "a"),
            message(Kind::Human, "h"),
            message(Kind::System, json!(["b", {"type": "text", "text": "c"}])),
            message(Kind::Ai, "i"),
        ];
        assert_eq!(
            coalesced(Some("base"), messages.clone()),
            ("base\n\na\n\nb\nc".into(), vec!["h".into(), "i".into()])
        );
        assert_eq!(coalesced(None, messages).0, "a\n\nb\nc");
        assert_eq!(coalesced(None, vec![message(Kind::System, "")]).0, "");
    }

    #[test]
    fn coa_3_only_the_newest_reminder_stays() {
        let messages = vec![
            reminder(Kind::System, "monday"),
            reminder(Kind::Human, "memory"),
            message(Kind::System, "rule"),
            reminder(Kind::System, "tuesday"),
            message(Kind::Human, "h"),
        ];
        assert_eq!(
            coalesced(Some("base"), messages),
            (
                "base\n\nrule\n\ntuesday".into(),
                vec!["memory".into(), "h".into()]
            )
        );
    }
}
