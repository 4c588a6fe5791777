//! Tells a subagent the date, in one system message at the end of what it begins with.
//!
//! Nothing else is told: memory is the lead agent's. The message is the framework's own text, so it may be system text, and
//! `SystemMessageCoalescing` puts it there. A subagent has one run of one turn, so that its date never changes.
//!
//! Source: DeerFlow `SubagentDateContextMiddleware`, MW-DYN-9, SUB-26.

use serde_json::{Map, Value};

use super::dynamic_context::{DynamicContextConfig, date_reminder, local_date};
use super::message_marks::is_reminder;
use super::{Hook, HookContext, HookOutput, Hooks, Middleware};
use crate::protocol::error::Error;
use crate::protocol::message::Kind;
use crate::state::update::StateUpdate;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct SubagentDate {
    utc_offset_minutes: i32,
}

impl SubagentDate {
    /// With the local time of [`DynamicContextConfig::utc_offset_minutes`], as its lead agent has it.
    pub fn new(config: &DynamicContextConfig) -> Self {
        SubagentDate {
            utc_offset_minutes: config.utc_offset_minutes,
        }
    }
}

impl Middleware for SubagentDate {
    fn name(&self) -> &str {
        "subagent_date"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_agent: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let offset = self.utc_offset_minutes.into();
        Map::from_iter([("utc_offset_minutes".to_owned(), offset)])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        if hook != Hook::BeforeAgent {
            return Ok(HookOutput::Continue);
        }
        let mut messages = context.state.messages().rev();
        if messages.any(|message| message.kind() == Kind::System && is_reminder(message)) {
            return Ok(HookOutput::Continue);
        }
        let date = local_date(context.run.started_at, self.utc_offset_minutes);
        let reminder = date_reminder(&date, None);
        Ok(HookOutput::Update(StateUpdate::messages(vec![reminder])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::stage::{Stage, execution};
    use crate::middleware::testing::{passed_on, request};
    use crate::middleware::{RunFacts, system_message_coalescing::SystemMessageCoalescing};
    use crate::ports::model::ModelRequest;
    use crate::protocol::message::{Fields, Message};
    use crate::protocol::time::Timestamp;
    use crate::state::reads::ChannelReads;
    use std::sync::Arc;

    fn run() -> RunFacts {
        RunFacts {
            started_at: Timestamp::parse("2026-05-08T22:30:00Z").expect("a time"),
            ..execution("t", "r", "e")
        }
    }

    #[test]
    fn mw_dyn_9_the_date_alone_is_appended_once_and_becomes_system_text() {
        let task = Message::new(Fields::new(Kind::Human, "Count the files."));
        let mut stage = Stage::new(vec![task]);
        let part = SubagentDate::new(&DynamicContextConfig::default());
        let (_, update) = stage.hook(&part, Hook::BeforeAgent, &run());
        assert!(update.is_some());
        let all = stage.messages();
        let kinds: Vec<Kind> = all.iter().map(Message::kind).collect();
        assert_eq!(kinds, [Kind::Human, Kind::System]);
        assert!(all[1].id().is_some());
        let told = "<system-reminder>\n<current_date>2026-05-08, Friday</current_date>\n</system-reminder>";
        assert_eq!(all[1].text(), told);
        let (_, again) = stage.hook(&part, Hook::BeforeAgent, &run());
        assert_eq!(again, None, "a single message");

        let request = ModelRequest {
            system: Some("You are a subagent.".into()),
            messages: Arc::new(all.into()),
            ..request(Arc::from([]), ChannelReads::default())
        };
        let passed = passed_on(&SystemMessageCoalescing::new(), request);
        let system = passed.system.expect("a system text");
        assert_eq!(system.as_str(), format!("You are a subagent.\n\n{told}"));
        assert_eq!(passed.messages.len(), 1);
    }
}
