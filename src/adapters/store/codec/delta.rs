//! Deltas and snapshots as bytes: messages by number, channels by name. The values themselves are stored beside them.

use super::seq_list::{MAX_SEQ, SeqList};
use super::varint::{self, Reader};
use crate::state::channels::Channel;
use crate::state::delta::{Seq, StateDelta};

const RESET: u8 = 1;
const REMOVED: u8 = 2;
const REPLACED: u8 = 4;
const APPENDED: u8 = 8;
const CHANNELS: u8 = 16;

/// A [`StateDelta`] that names messages instead of holding them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeltaRefs {
    /// Drop every message first.
    pub reset: bool,
    /// Messages that are gone.
    pub removed: SeqList,
    /// Messages replaced in place, old number and new number.
    pub replaced: Vec<(Seq, Seq)>,
    /// Messages added at the end.
    pub appended: SeqList,
    /// Channels that changed, each once, and whether they have a value now.
    pub channels: Vec<(Channel, bool)>,
}

impl DeltaRefs {
    /// The names of what `delta` holds.
    pub fn of(delta: &StateDelta) -> Self {
        let messages = &delta.messages;
        let mut channels: Vec<(Channel, bool)> = Vec::with_capacity(delta.channels.len());
        for (channel, value) in &delta.channels {
            match channels.iter_mut().find(|(known, _)| known == channel) {
                Some(known) => known.1 = value.is_some(),
                None => channels.push((*channel, value.is_some())),
            }
        }
        DeltaRefs {
            reset: messages.reset,
            removed: messages.removed.iter().copied().collect(),
            replaced: messages
                .replaced
                .iter()
                .map(|(old, new, _)| (*old, *new))
                .collect(),
            appended: messages.appended.iter().map(|(seq, _)| *seq).collect(),
            channels,
        }
    }

    /// The bytes: which parts there are, then each part.
    pub fn encode(&self) -> Vec<u8> {
        let part = |is: bool, flag: u8| if is { flag } else { 0 };
        let mut out = vec![
            part(self.reset, RESET)
                | part(!self.removed.is_empty(), REMOVED)
                | part(!self.replaced.is_empty(), REPLACED)
                | part(!self.appended.is_empty(), APPENDED)
                | part(!self.channels.is_empty(), CHANNELS),
        ];
        if !self.removed.is_empty() {
            self.removed.encode(&mut out);
        }
        if !self.replaced.is_empty() {
            varint::put(&mut out, self.replaced.len() as u64);
            for (old, new) in &self.replaced {
                varint::put(&mut out, *old);
                varint::put_signed(&mut out, *new as i64 - *old as i64);
            }
        }
        if !self.appended.is_empty() {
            self.appended.encode(&mut out);
        }
        if !self.channels.is_empty() {
            varint::put(&mut out, self.channels.len() as u64);
            for (channel, has_value) in &self.channels {
                out.push(u8::from(*has_value));
                varint::put_bytes(&mut out, channel.name().as_bytes());
            }
        }
        out
    }

    /// Reads a delta; `None` when the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let parts = reader.byte()?;
        if parts & !(RESET | REMOVED | REPLACED | APPENDED | CHANNELS) != 0 {
            return None;
        }
        let mut delta = DeltaRefs {
            reset: parts & RESET != 0,
            ..DeltaRefs::default()
        };
        if parts & REMOVED != 0 {
            delta.removed = SeqList::decode(&mut reader)?;
        }
        if parts & REPLACED != 0 {
            for _ in 0..reader.count()? {
                let old = reader.number().filter(|old| *old < MAX_SEQ)?;
                let new = (old as i64).checked_add(reader.signed()?)?;
                let new = Seq::try_from(new).ok().filter(|new| *new < MAX_SEQ)?;
                delta.replaced.push((old, new));
            }
        }
        if parts & APPENDED != 0 {
            delta.appended = SeqList::decode(&mut reader)?;
        }
        if parts & CHANNELS != 0 {
            for _ in 0..reader.count()? {
                let has_value = match reader.byte()? {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                delta
                    .channels
                    .push((Channel::from_name(reader.text()?)?, has_value));
            }
        }
        reader.is_empty().then_some(delta)
    }
}

/// A state by reference: which messages, and for each channel the checkpoint whose delta set it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The messages, in order.
    pub messages: SeqList,
    /// Channels with a value, and the ordinal of the checkpoint that holds it.
    pub channels: Vec<(Channel, u64)>,
}

impl Snapshot {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.messages.encode(&mut out);
        varint::put(&mut out, self.channels.len() as u64);
        for (channel, ordinal) in &self.channels {
            varint::put(&mut out, *ordinal);
            varint::put_bytes(&mut out, channel.name().as_bytes());
        }
        out
    }

    /// Reads a snapshot; `None` when the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let messages = SeqList::decode(&mut reader)?;
        let mut channels = Vec::new();
        for _ in 0..reader.count()? {
            let ordinal = reader.number()?;
            channels.push((Channel::from_name(reader.text()?)?, ordinal));
        }
        reader.is_empty().then_some(Snapshot { messages, channels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> DeltaRefs {
        DeltaRefs {
            reset: true,
            removed: [9, 3, 4].into_iter().collect(),
            replaced: vec![(7, 12), (12, 2)],
            appended: [13, 14, 15].into_iter().collect(),
            channels: vec![(Channel::Title, true), (Channel::Goal, false)],
        }
    }

    #[test]
    fn a_delta_comes_back_from_its_bytes_and_an_append_takes_five() {
        assert_eq!(DeltaRefs::decode(&sample().encode()), Some(sample()));
        let append = DeltaRefs {
            appended: std::iter::once(1000).collect(),
            ..DeltaRefs::default()
        };
        assert_eq!(append.encode().len(), 5);
    }

    #[test]
    fn no_bytes_panic() {
        let bytes = sample().encode();
        for cut in 0..bytes.len() {
            assert_eq!(DeltaRefs::decode(&bytes[..cut]), None, "cut at {cut}");
        }
        for place in 0..bytes.len() {
            for value in 0..=255 {
                let mut bytes = bytes.clone();
                bytes[place] = value;
                let _ = DeltaRefs::decode(&bytes);
                let _ = Snapshot::decode(&bytes);
            }
        }
    }
}
