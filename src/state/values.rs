//! The values of all channels but `messages`: what is committed, and an overlay of what a run has changed since.
//!
//! Writes go to the overlay, one superstep at a time, and reach the committed values all at once. Dropping an overlay
//! undoes everything in it.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::channels::{CHANNELS, Channel, Semantics};
use super::reducers::{self, Shortcut, Side};
use super::update::Write;
use crate::protocol::error::{Error, ErrorCode};

const COUNT: usize = CHANNELS.len();

/// The committed value of every channel but `messages`.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelValues {
    /// By place in [`CHANNELS`]; `None` is missing.
    slots: [Option<Value>; COUNT],
}

/// What changed over the committed values. Empty when new.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelOverlay {
    /// By place in [`CHANNELS`]; `None` is untouched, `Some(None)` is missing again.
    slots: [Option<Option<Value>>; COUNT],
}

impl ChannelOverlay {
    /// Whether nothing was touched.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }

    /// Sets a channel past its reducer.
    pub fn put(&mut self, channel: Channel, value: Value) {
        self.slots[channel as usize] = Some(Some(value));
    }
}

impl Default for ChannelValues {
    fn default() -> Self {
        ChannelValues::new()
    }
}

impl ChannelValues {
    /// The values of a new thread: reduced channels empty, the others missing (ST-1, LG-3).
    pub fn new() -> Self {
        ChannelValues {
            slots: std::array::from_fn(|place| initial(CHANNELS[place].0)),
        }
    }

    /// The values of a stored state. A null in it is a value, not a missing one. An entry for `messages` is ignored.
    pub fn restore(values: Vec<(Channel, Value)>) -> Self {
        let mut restored = ChannelValues::new();
        for (channel, value) in values {
            if channel != Channel::Messages {
                restored.slots[channel as usize] = Some(value);
            }
        }
        restored
    }

    /// What a reader sees: the overlay's value, or the committed one; `None` when the channel is missing.
    pub fn get<'a>(&'a self, overlay: &'a ChannelOverlay, channel: Channel) -> Option<&'a Value> {
        match &overlay.slots[channel as usize] {
            Some(changed) => changed.as_ref(),
            None => self.slots[channel as usize].as_ref(),
        }
    }

    /// Every channel that has a value, in the order of [`CHANNELS`].
    pub fn iter<'a>(
        &'a self,
        overlay: &'a ChannelOverlay,
    ) -> impl Iterator<Item = (Channel, &'a Value)> {
        CHANNELS
            .iter()
            .filter_map(|(channel, ..)| Some((*channel, self.get(overlay, *channel)?)))
    }

    /// Applies the writes of one superstep, in order.
    ///
    /// Writes to one channel combine as its [`Semantics`] say. Reducers fold left to right; a missing channel takes the
    /// first write as it is, without its reducer; an overwrite sets the value, and plain writes after it in the same
    /// step are ignored (LG-4, LG-6, LG-8, LG-9). Ephemeral channels that the step does not write become missing
    /// (LG-19), so a step without writes is to be staged too.
    ///
    /// Cost: linear in the writes and in the current values of the channels that they reduce. Other values are not
    /// looked at.
    ///
    /// # Errors
    /// [`ErrorCode::ConflictingWrites`] for a second write to a last-value channel or a second overwrite, naming channel
    /// and writers (LG-2, LG-6, LG-13); the codes of [`reducers`]. The path starts with the channel's name, as in the
    /// update `{channel: value}`. After an error the overlay is as it was.
    pub fn stage(
        &self,
        overlay: &mut ChannelOverlay,
        step: &[(Channel, &Write, Option<&str>)],
    ) -> Result<(), Error> {
        let mut written = [false; COUNT];
        let mut staged: Vec<(Channel, Value)> = Vec::new();
        for (first, (channel, ..)) in step.iter().enumerate() {
            if std::mem::replace(&mut written[*channel as usize], true) {
                continue;
            }
            let writes = step[first..]
                .iter()
                .filter(|(other, ..)| other == channel)
                .map(|(_, write, writer)| (*write, *writer));
            let current = self.get(overlay, *channel);
            if let Some(value) = apply(*channel, current, writes)? {
                staged.push((*channel, value));
            }
        }
        // Nothing fails from here on.
        for (channel, value) in staged {
            overlay.slots[channel as usize] = Some(Some(value));
        }
        for (channel, _, semantics) in CHANNELS {
            if *semantics == Semantics::Ephemeral && !written[*channel as usize] {
                self.clear(overlay, *channel);
            }
        }
        Ok(())
    }

    /// Empties a channel: a reduced one is `[]` or `{}` again, any other is missing.
    ///
    /// This, and no write, is how a goal goes away (ST-8, GOAL-20).
    pub fn clear(&self, overlay: &mut ChannelOverlay, channel: Channel) {
        if self.get(overlay, channel) != initial(channel).as_ref() {
            overlay.slots[channel as usize] = Some(initial(channel));
        }
    }

    /// Every channel whose value differs from the committed one, with the new value; `None` when it is missing again.
    /// In the order of [`CHANNELS`].
    pub fn changes(&self, overlay: &ChannelOverlay) -> Vec<(Channel, Option<Value>)> {
        CHANNELS
            .iter()
            .zip(overlay.slots.iter().zip(&self.slots))
            .filter_map(|((channel, ..), (changed, committed))| {
                let changed = changed.as_ref()?;
                let same = match (changed, committed) {
                    (Some(changed), Some(committed)) => identical(changed, committed),
                    (changed, committed) => changed.is_none() && committed.is_none(),
                };
                (!same).then(|| (*channel, changed.clone()))
            })
            .collect()
    }

    /// Makes the overlay's values the committed ones.
    pub fn commit(&mut self, overlay: ChannelOverlay) {
        for (slot, changed) in self.slots.iter_mut().zip(overlay.slots) {
            if let Some(changed) = changed {
                *slot = changed;
            }
        }
    }
}

/// The value of a channel that was never written.
fn initial(channel: Channel) -> Option<Value> {
    match channel {
        Channel::ViewedImages => Some(Value::Object(Map::new())),
        _ if channel.semantics() == Semantics::Reduced => Some(Value::Array(Vec::new())),
        _ => None,
    }
}

/// One channel's part of a superstep: its new value, `None` when it stays. There is at least one write.
fn apply<'a>(
    channel: Channel,
    current: Option<&'a Value>,
    writes: impl Iterator<Item = (&'a Write, Option<&'a str>)>,
) -> Result<Option<Value>, Error> {
    let changed = match channel.semantics() {
        Semantics::LastValue | Semantics::Ephemeral => only_write(channel, writes).map(Some),
        Semantics::Reduced | Semantics::Seeded => fold(channel, current, writes),
        Semantics::Messages => Err(Error::new(
            ErrorCode::Internal,
            "messages have a fold of their own and cannot be staged here",
        )),
    };
    changed.map_err(|error| error.below(&format!("/{}", channel.name())))
}

/// The write of a channel that takes one per step. An overwrite there is no more than a write.
///
/// Source: LangGraph `LastValue.update` and `EphemeralValue.update`, LG-2.
fn only_write<'a>(
    channel: Channel,
    writes: impl Iterator<Item = (&'a Write, Option<&'a str>)>,
) -> Result<Value, Error> {
    let mut only = None;
    let mut writers = Vec::new();
    for (write, writer) in writes {
        only = Some(write);
        writers.push(writer);
    }
    if writers.len() > 1 {
        return Err(conflict(channel, "takes one write per step", &writers));
    }
    match only {
        Some(Write::Value(value) | Write::Overwrite(value)) => Ok(value.clone()),
        Some(Write::Messages(_)) | None => Err(not_messages(channel)),
    }
}

/// The writes of a channel that has a reducer; `None` when the value stays.
///
/// Source: LangGraph `BinaryOperatorAggregate.update` with DeerFlow's patch for a first write that is an overwrite,
/// LG-4 to LG-9.
fn fold<'a>(
    channel: Channel,
    current: Option<&'a Value>,
    writes: impl Iterator<Item = (&'a Write, Option<&'a str>)>,
) -> Result<Option<Value>, Error> {
    let reducer = reducers::reducer(channel).ok_or_else(|| {
        Error::new(
            ErrorCode::Internal,
            format!("channel {:?} has no reducer", channel.name()),
        )
    })?;
    let mut value = current.map(Cow::Borrowed);
    let mut overwritten_by: Option<Option<&str>> = None;
    for (write, writer) in writes {
        match write {
            Write::Messages(_) => return Err(not_messages(channel)),
            Write::Overwrite(new) => {
                if let Some(first) = overwritten_by {
                    let what = "can be overwritten once per step";
                    return Err(conflict(channel, what, &[first, writer]));
                }
                overwritten_by = Some(writer);
                value = Some(Cow::Owned(new.clone()));
            }
            Write::Value(_) if overwritten_by.is_some() => {}
            Write::Value(update) => {
                let Some(existing) = value else {
                    value = Some(Cow::Owned(update.clone()));
                    continue;
                };
                value = Some(match reducers::shortcut(channel, update) {
                    Some(Shortcut::Keep) => existing,
                    Some(Shortcut::Replace) => Cow::Owned(update.clone()),
                    None => reducer(existing.into_owned(), update.clone())
                        .map(Cow::Owned)
                        .map_err(|fault| blame(fault, writer))?,
                });
            }
        }
    }
    Ok(match value {
        Some(Cow::Owned(value)) => Some(value),
        Some(Cow::Borrowed(_)) | None => None,
    })
}

/// The error of a reducer's fault, with the writer where the write is at fault.
fn blame(fault: reducers::Fault, writer: Option<&str>) -> Error {
    let side = fault.side;
    let mut error = Error::from(fault);
    if let (Side::Update, Some(writer)) = (side, writer) {
        error.message = format!("{}; written by {writer}", error.message);
    }
    error
}

fn conflict(channel: Channel, what: &str, writers: &[Option<&str>]) -> Error {
    let writers: Vec<_> = writers
        .iter()
        .map(|writer| writer.unwrap_or("an unnamed writer"))
        .collect();
    Error::at(
        ErrorCode::ConflictingWrites,
        "",
        format!(
            "channel {:?} {what}; written by {}",
            channel.name(),
            writers.join(" and ")
        ),
    )
}

fn not_messages(channel: Channel) -> Error {
    Error::at(
        ErrorCode::EntryType,
        "",
        format!("channel {:?} holds no messages", channel.name()),
    )
}

/// Whether two values are the same JSON text, the order of members and the form of numbers included.
fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| identical(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((a_name, a), (b_name, b))| a_name == b_name && identical(a, b))
        }
        // 0.0 and -0.0 are equal numbers and different text.
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            a.as_f64().map(f64::to_bits) == b.as_f64().map(f64::to_bits)
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn identical_sees_the_order_of_members_and_the_form_of_numbers() {
        assert!(identical(&json!({"a": [1, 2.5]}), &json!({"a": [1, 2.5]})));
        assert!(!identical(
            &json!({"a": 1, "b": 2}),
            &json!({"b": 2, "a": 1})
        ));
        assert!(!identical(&json!(1), &json!(1.0)));
        assert!(!identical(&json!(0.0), &json!(-0.0)));
        assert!(!identical(&json!([1]), &json!([1, 2])));
    }

    #[test]
    fn every_channel_of_one_write_per_step_and_every_reduced_one_has_its_initial_value() {
        let values = ChannelValues::new();
        let overlay = ChannelOverlay::default();
        let seen: Vec<_> = values.iter(&overlay).collect();
        assert_eq!(
            seen,
            [
                (Channel::Artifacts, &json!([])),
                (Channel::ViewedImages, &json!({})),
                (Channel::Delegations, &json!([])),
                (Channel::SkillContext, &json!([])),
            ]
        );
    }
}
