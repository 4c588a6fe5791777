//! The values of some channels at one moment, for those who cannot hold on to the state: wrap hooks and tools.

use std::sync::Arc;

use serde_json::Value;

use super::View;
use super::channels::Channel;
use super::transcript::Transcript;
use crate::protocol::message::Message;

type Values = Arc<[(Channel, Arc<Value>)]>;

/// Values of some channels as they stood when a step began. Empty costs nothing, copying is counting references.
#[derive(Clone, Debug, Default)]
pub struct ChannelReads {
    values: Option<Values>,
    messages: Option<Arc<Transcript>>,
}

impl ChannelReads {
    /// The values of `channels` in `view`, besides `messages`; those that are missing stay away. O(values).
    pub fn of(view: &View<'_>, channels: &[Channel]) -> Self {
        channels
            .iter()
            .filter_map(|channel| Some((*channel, view.channel(*channel)?.clone())))
            .collect()
    }

    /// The same with the messages, if they are among `channels`: see [`View::transcript`] for what they cost.
    pub fn with_messages(view: &View<'_>, channels: &[Channel]) -> Self {
        let wanted = channels.contains(&Channel::Messages);
        ChannelReads {
            messages: wanted.then(|| view.transcript()),
            ..ChannelReads::of(view, channels)
        }
    }

    /// Only the values of `channels`, besides `messages`: whoever keeps them long does not keep the others.
    pub fn only(&self, channels: &[Channel]) -> Self {
        let values = self.values.iter().flat_map(|values| values.iter());
        let kept: Vec<_> = values
            .filter(|(channel, _)| channels.contains(channel))
            .cloned()
            .collect();
        ChannelReads {
            values: (!kept.is_empty()).then(|| kept.into()),
            messages: None,
        }
    }

    /// The value of a channel besides `messages`; `None` when it is missing, or was not asked for.
    pub fn get(&self, channel: Channel) -> Option<&Value> {
        let values = self.values.as_deref()?;
        let found = values.iter().find(|(known, _)| *known == channel);
        found.map(|(_, value)| &**value)
    }

    /// The messages in order; none when they were not asked for.
    pub fn messages(&self) -> &[Message] {
        self.messages.as_deref().map_or(&[], |messages| messages)
    }
}

impl PartialEq for ChannelReads {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values && self.messages() == other.messages()
    }
}

impl FromIterator<(Channel, Value)> for ChannelReads {
    fn from_iter<I: IntoIterator<Item = (Channel, Value)>>(values: I) -> Self {
        let values = values.into_iter();
        let values: Vec<_> = values
            .map(|(channel, value)| (channel, Arc::new(value)))
            .collect();
        ChannelReads {
            values: (!values.is_empty()).then(|| values.into()),
            messages: None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::ids::SequentialIds;
    use crate::state::update::StateUpdate;
    use crate::state::{Overlay, ThreadState};

    #[test]
    fn only_what_was_asked_for_and_is_there_can_be_read() {
        let state = ThreadState::new();
        let mut overlay = Overlay::new();
        let update = StateUpdate::decode(json!({"goal": {"a": 1}, "title": "t"})).unwrap();
        let mut ids = SequentialIds::starting_at(1);
        state.stage(&mut overlay, &[update], &mut ids).unwrap();
        let view = state.view(&overlay);
        let reads = ChannelReads::of(&view, &[Channel::Goal, Channel::Promoted]);
        assert_eq!(reads.get(Channel::Goal), Some(&json!({"a": 1})));
        assert_eq!(reads.get(Channel::Promoted), None);
        assert_eq!(reads.get(Channel::Title), None);
        assert_eq!(
            ChannelReads::of(&view, &[Channel::Promoted]),
            ChannelReads::default()
        );
    }

    #[test]
    fn messages_come_only_where_they_are_asked_for() {
        let state = ThreadState::new();
        let mut overlay = Overlay::new();
        let update = StateUpdate::decode(json!({"messages": "hi"})).unwrap();
        let mut ids = SequentialIds::starting_at(1);
        state.stage(&mut overlay, &[update], &mut ids).unwrap();
        let view = state.view(&overlay);
        let asked = [Channel::Goal, Channel::Messages];
        assert_eq!(ChannelReads::of(&view, &asked), ChannelReads::default());
        let reads = ChannelReads::with_messages(&view, &asked);
        assert_eq!(reads.messages().len(), 1);
        assert_ne!(reads, ChannelReads::default());
        let reads = ChannelReads::with_messages(&view, &asked[..1]);
        assert!(reads.messages().is_empty());
    }
}
