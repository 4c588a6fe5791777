//! The channels of a thread's state: one ordered list, name -> how its writes combine.

use crate::protocol::decode::hint;

/// How the writes of a channel combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Semantics {
    /// The message fold.
    Messages,
    /// A reducer; the channel starts at an empty list or object, so its reducer never sees null.
    Reduced,
    /// A reducer; the channel starts missing and its first write is stored verbatim.
    Seeded,
    /// The newest write wins; two writes in one step are an error.
    LastValue,
    /// Like [`Semantics::LastValue`], and gone at the next step that does not write it.
    Ephemeral,
}

/// One channel of the thread state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// The conversation.
    Messages,
    /// Where a hook sends the run next.
    JumpTo,
    /// A reply that fits the schema that the caller asked for.
    StructuredResponse,
    /// The sandbox that the thread's tools share.
    Sandbox,
    /// Directories of the thread.
    ThreadData,
    /// Title of the conversation.
    Title,
    /// Files the agent presents.
    Artifacts,
    /// The plan.
    Todos,
    /// The goal.
    Goal,
    /// Files the user gave.
    UploadedFiles,
    /// Images the model looked at.
    ViewedImages,
    /// Deferred tools made visible.
    Promoted,
    /// The delegation ledger.
    Delegations,
    /// Skills in use.
    SkillContext,
    /// What summarisation kept.
    SummaryText,
    /// Work that goes on outside the run.
    BackgroundTasks,
}

/// All channels, in the order in which a state lists them.
pub const CHANNELS: &[(Channel, &str, Semantics)] = &[
    (Channel::Messages, "messages", Semantics::Messages),
    (Channel::JumpTo, "jump_to", Semantics::Ephemeral),
    (
        Channel::StructuredResponse,
        "structured_response",
        Semantics::LastValue,
    ),
    (Channel::Sandbox, "sandbox", Semantics::Seeded),
    (Channel::ThreadData, "thread_data", Semantics::LastValue),
    (Channel::Title, "title", Semantics::LastValue),
    (Channel::Artifacts, "artifacts", Semantics::Reduced),
    (Channel::Todos, "todos", Semantics::Seeded),
    (Channel::Goal, "goal", Semantics::Seeded),
    (
        Channel::UploadedFiles,
        "uploaded_files",
        Semantics::LastValue,
    ),
    (Channel::ViewedImages, "viewed_images", Semantics::Reduced),
    (Channel::Promoted, "promoted", Semantics::Seeded),
    (Channel::Delegations, "delegations", Semantics::Reduced),
    (Channel::SkillContext, "skill_context", Semantics::Reduced),
    (Channel::SummaryText, "summary_text", Semantics::LastValue),
    (
        Channel::BackgroundTasks,
        "background_tasks",
        Semantics::LastValue,
    ),
];

impl Channel {
    /// Name in a state.
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// How its writes combine.
    pub fn semantics(self) -> Semantics {
        self.entry().2
    }

    /// The channel of this name.
    pub fn from_name(name: &str) -> Option<Channel> {
        CHANNELS
            .iter()
            .find(|(_, known, _)| *known == name)
            .map(|(channel, ..)| *channel)
    }

    /// The refusal of a name that no channel has.
    pub fn unknown(name: &str) -> String {
        let known: Vec<&str> = CHANNELS.iter().map(|(_, known, _)| *known).collect();
        let clipped: String = name.chars().take(80).collect();
        format!("there is no channel {clipped:?}{}", hint(name, &known))
    }

    fn entry(self) -> &'static (Channel, &'static str, Semantics) {
        // The list is in the order of the enum; a test holds that.
        &CHANNELS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_the_order_of_the_enum() {
        for (place, (channel, name, _)) in CHANNELS.iter().enumerate() {
            assert_eq!(*channel as usize, place);
            assert_eq!(Channel::from_name(name), Some(*channel));
        }
    }
}
