//! Ordered lists of message numbers, kept as ranges: a thread that only grew is one range, however long it is.

use std::collections::BTreeMap;
use std::ops::Range;

use super::delta::DeltaRefs;
use super::varint::{self, Reader};
use crate::state::delta::Seq;

/// One more than the largest number that stores can hold; they pack thread and number into 63 bits.
pub const MAX_SEQ: Seq = 1 << 32;

/// Numbers in the order of the message list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeqList {
    ranges: Vec<Range<Seq>>,
}

impl SeqList {
    /// Adds a number at the end.
    pub fn push(&mut self, seq: Seq) {
        self.push_range(seq..seq + 1);
    }

    /// Adds a run of numbers at the end.
    pub fn push_range(&mut self, range: Range<Seq>) {
        match self.ranges.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
    }

    /// The runs, in order. None is empty.
    pub fn ranges(&self) -> &[Range<Seq>] {
        &self.ranges
    }

    /// The numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = Seq> + '_ {
        self.ranges.iter().cloned().flatten()
    }

    /// Whether there is no number.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether no number is in the list twice. A list of a store must pass this before anything is read by it, or a few
    /// damaged bytes could ask for the same messages without end.
    pub fn is_distinct(&self) -> bool {
        let mut sorted = self.ranges.clone();
        sorted.sort_unstable_by_key(|range| range.start);
        sorted.windows(2).all(|pair| pair[0].end <= pair[1].start)
    }

    /// Appends the bytes of the list: the number of runs, then for each the distance from the end of the one before and
    /// its length.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.ranges.len() as u64);
        let mut last = 0i64;
        for range in &self.ranges {
            varint::put_signed(out, range.start as i64 - last);
            varint::put(out, range.end - range.start);
            last = range.end as i64;
        }
    }

    /// Reads a list; `None` when the bytes are none.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.count()?;
        let mut list = SeqList {
            ranges: Vec::with_capacity(count),
        };
        let mut last = 0i64;
        for _ in 0..count {
            let start = last.checked_add(reader.signed()?)?;
            let length = reader.number()?;
            let range =
                Seq::try_from(start).ok()?..u64::try_from(start).ok()?.checked_add(length)?;
            if range.is_empty() || range.end > MAX_SEQ {
                return None;
            }
            last = range.end as i64;
            list.push_range(range);
        }
        Some(list)
    }
}

impl FromIterator<Seq> for SeqList {
    fn from_iter<I: IntoIterator<Item = Seq>>(numbers: I) -> Self {
        let mut list = SeqList::default();
        for seq in numbers {
            list.push(seq);
        }
        list
    }
}

/// Replays deltas over a list without expanding it: changes are collected and applied in one pass.
///
/// O((runs + changes) · log changes) for any number of deltas, as long as numbers that were removed or replaced do not
/// come back; each one that does costs a pass.
#[derive(Debug, Default)]
pub struct ListReplay {
    list: SeqList,
    removed: Vec<Range<Seq>>,
    replaced: BTreeMap<Seq, Seq>,
    tail: SeqList,
    /// One more than the largest number that `removed` and `replaced` speak of.
    touched_end: Seq,
}

impl ListReplay {
    /// Starts from `base`.
    pub fn from_base(base: SeqList) -> Self {
        ListReplay {
            list: base,
            ..ListReplay::default()
        }
    }

    /// Applies the next delta. Numbers that are not there are ignored.
    pub fn apply(&mut self, delta: &DeltaRefs) {
        if delta.reset {
            *self = ListReplay::default();
        }
        for range in delta.removed.ranges() {
            self.touched_end = self.touched_end.max(range.end);
            self.removed.push(range.clone());
        }
        for &(old, new) in &delta.replaced {
            self.returns(new);
            self.touched_end = self.touched_end.max(old + 1);
            self.replaced.insert(old, new);
        }
        for range in delta.appended.ranges() {
            self.returns(range.start);
            self.tail.push_range(range.clone());
        }
    }

    /// The list that results.
    pub fn finish(mut self) -> SeqList {
        self.settle();
        self.list
    }

    /// `seq` enters the list. If what was collected speaks of it, that is about its earlier life and must be settled.
    /// It also keeps chains of replacements free of cycles: a new number is never one that was replaced before.
    fn returns(&mut self, seq: Seq) {
        if seq < self.touched_end {
            self.settle();
        }
    }

    fn settle(&mut self) {
        let tail = std::mem::take(&mut self.tail);
        if self.touched_end == 0 {
            for range in tail.ranges {
                self.list.push_range(range);
            }
            return;
        }
        self.removed.sort_unstable_by_key(|range| range.start);
        self.removed.dedup_by(|next, kept| {
            let meets = next.start <= kept.end;
            if meets {
                kept.end = kept.end.max(next.end);
            }
            meets
        });
        let base = std::mem::take(&mut self.list);
        let mut out = SeqList::default();
        for range in base.ranges.into_iter().chain(tail.ranges) {
            self.pass(range, &mut out);
        }
        self.list = out;
        self.removed.clear();
        self.replaced.clear();
        self.touched_end = 0;
    }

    /// Copies one run without what was removed and with what was replaced.
    fn pass(&self, range: Range<Seq>, out: &mut SeqList) {
        let mut at = range.start;
        while at < range.end {
            let gone = self.gone_from(at);
            let gone_start = gone.as_ref().map_or(range.end, |gone| gone.start.max(at));
            let swap = self.replaced.range(at..range.end).next();
            let swap_at = swap.map_or(range.end, |(old, _)| *old);
            let next = gone_start.min(swap_at).min(range.end);
            out.push_range(at..next);
            at = next;
            if at == range.end {
                return;
            }
            match (gone, swap) {
                (Some(gone), _) if gone_start == at => at = gone.end.min(range.end),
                (_, Some((_, new))) => {
                    if let Some(last) = self.last_of(*new) {
                        out.push(last);
                    }
                    at += 1;
                }
                _ => return,
            }
        }
    }

    /// The first removed run that ends after `seq`.
    fn gone_from(&self, seq: Seq) -> Option<Range<Seq>> {
        let place = self.removed.partition_point(|gone| gone.end <= seq);
        self.removed.get(place).cloned()
    }

    /// What stands in the place of a replaced message by now: `None` when it is gone.
    fn last_of(&self, mut seq: Seq) -> Option<Seq> {
        loop {
            if self.gone_from(seq).is_some_and(|gone| gone.start <= seq) {
                return None;
            }
            match self.replaced.get(&seq) {
                Some(next) => seq = *next,
                None => return Some(seq),
            }
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges are what is tested"
)]
mod tests {
    use super::*;

    fn list(ranges: &[Range<Seq>]) -> SeqList {
        SeqList {
            ranges: ranges.to_vec(),
        }
    }

    #[test]
    fn a_list_comes_back_from_its_bytes_and_a_grown_thread_is_one_run() {
        let grown: SeqList = (0..100_000).collect();
        let mut out = Vec::new();
        grown.encode(&mut out);
        assert!(out.len() <= 6, "{} bytes", out.len());
        assert_eq!(SeqList::decode(&mut Reader(&out)), Some(grown));
        let mixed = list(&[7..9, 2..3, 20..21, 4..5]);
        let mut out = Vec::new();
        mixed.encode(&mut out);
        assert_eq!(SeqList::decode(&mut Reader(&out)), Some(mixed));
    }

    #[test]
    fn numbers_that_are_in_a_list_twice_are_seen() {
        assert!(list(&[5..9, 0..5]).is_distinct());
        assert!(!list(&[5..9, 0..6]).is_distinct());
        assert!(!list(&[5..9, 5..9]).is_distinct());
    }

    #[test]
    fn a_number_that_comes_back_after_its_removal_is_there() {
        let delta = |removed: &[Seq], replaced: &[(Seq, Seq)], appended: &[Seq]| DeltaRefs {
            removed: removed.iter().copied().collect(),
            replaced: replaced.to_vec(),
            appended: appended.iter().copied().collect(),
            ..DeltaRefs::default()
        };
        let mut replay = ListReplay::from_base(list(&[0..5]));
        replay.apply(&delta(&[1, 2], &[(3, 5)], &[6]));
        replay.apply(&delta(&[6], &[(5, 3)], &[1, 7]));
        replay.apply(&delta(&[], &[(3, 8), (7, 9)], &[]));
        assert_eq!(replay.finish(), list(&[0..1, 8..9, 4..5, 1..2, 9..10]));
    }

    #[test]
    fn a_removed_run_may_be_absurdly_long() {
        let mut replay = ListReplay::from_base(list(&[0..5, 9..MAX_SEQ]));
        replay.apply(&DeltaRefs {
            removed: list(&[3..MAX_SEQ]),
            ..DeltaRefs::default()
        });
        assert_eq!(replay.finish(), list(&[0..3]));
    }
}
