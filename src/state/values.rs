//! Placeholder of the non-message channels: the newest value wins.

use serde_json::Value;

use super::channels::Channel;
use super::update::Write;
use crate::protocol::error::Error;

/// Committed values of the non-message channels.
#[derive(Clone, Debug, Default)]
pub struct ChannelValues(Vec<(Channel, Value)>);

/// Changed values.
#[derive(Clone, Debug, Default)]
pub struct ChannelOverlay(Vec<(Channel, Option<Value>)>);

impl ChannelValues {
    /// From stored values.
    pub fn restore(values: Vec<(Channel, Value)>) -> Self {
        ChannelValues(values)
    }
    /// One superstep.
    pub fn stage(
        &self,
        overlay: &mut ChannelOverlay,
        step: &[(Channel, &Write, Option<&str>)],
    ) -> Result<(), Error> {
        for (channel, write, _) in step {
            if let Write::Value(value) | Write::Overwrite(value) = write {
                overlay.0.retain(|(known, _)| known != channel);
                overlay.0.push((*channel, Some(value.clone())));
            }
        }
        Ok(())
    }
    /// Current value.
    pub fn get<'a>(&'a self, overlay: &'a ChannelOverlay, channel: Channel) -> Option<&'a Value> {
        match overlay.0.iter().find(|(known, _)| *known == channel) {
            Some((_, value)) => value.as_ref(),
            None => self
                .0
                .iter()
                .find(|(known, _)| *known == channel)
                .map(|(_, value)| value),
        }
    }
    /// Makes the overlay the committed state.
    pub fn commit(&mut self, overlay: ChannelOverlay) {
        for (channel, value) in overlay.0 {
            self.0.retain(|(known, _)| *known != channel);
            if let Some(value) = value {
                self.0.push((channel, value));
            }
        }
    }
}

impl ChannelOverlay {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The changes, for a checkpoint.
    pub fn changes(&self) -> Vec<(Channel, Option<Value>)> {
        self.0.clone()
    }
}
