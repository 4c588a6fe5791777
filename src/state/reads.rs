//! The values of some channels at one moment, for those who cannot hold on to the state: wrap hooks and tools.

use std::sync::Arc;

use serde_json::Value;

use super::View;
use super::channels::Channel;

/// Values of some channels as they stood when a step began. Empty costs nothing, copying is counting a reference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelReads(Option<Arc<[(Channel, Value)]>>);

impl ChannelReads {
    /// The values of `channels` in `view`; those that are missing stay away. O(values).
    pub fn of(view: &View<'_>, channels: &[Channel]) -> Self {
        channels
            .iter()
            .filter_map(|channel| Some((*channel, view.channel(*channel)?.clone())))
            .collect()
    }

    /// The value of a channel; `None` when it is missing, or was not asked for.
    pub fn get(&self, channel: Channel) -> Option<&Value> {
        let values = self.0.as_deref()?;
        let found = values.iter().find(|(known, _)| *known == channel);
        found.map(|(_, value)| value)
    }
}

impl FromIterator<(Channel, Value)> for ChannelReads {
    fn from_iter<I: IntoIterator<Item = (Channel, Value)>>(values: I) -> Self {
        let values: Vec<_> = values.into_iter().collect();
        ChannelReads((!values.is_empty()).then(|| values.into()))
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
}
