//! What happened to a list: which items came, went, stayed, and which of those that stayed were moved.

use std::collections::HashMap;

/// How the items of two lists belong together. Places count from 0.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Matching {
    /// Items in both: place before, place after; in the order of the later list.
    pub(super) kept: Vec<(usize, usize)>,
    /// Places, in the later list, of items that came.
    pub(super) added: Vec<usize>,
    /// Places, in the earlier list, of items that went.
    pub(super) removed: Vec<usize>,
}

/// Matches items by name; the n-th of a name belongs to the n-th of it. O(before + after).
pub(super) fn matching(before: &[&str], after: &[&str]) -> Matching {
    let mut places: HashMap<(&str, usize), usize> = HashMap::with_capacity(before.len());
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (place, name) in before.iter().enumerate() {
        let count = seen.entry(name).or_default();
        places.insert((name, *count), place);
        *count += 1;
    }
    seen.clear();
    let mut matching = Matching::default();
    for (place, name) in after.iter().enumerate() {
        let count = seen.entry(name).or_default();
        match places.remove(&(*name, *count)) {
            Some(earlier) => matching.kept.push((earlier, place)),
            None => matching.added.push(place),
        }
        *count += 1;
    }
    matching.removed = places.into_values().collect();
    matching.removed.sort_unstable();
    matching
}

impl Matching {
    /// Whether what is in both stands in the same order in both.
    pub(super) fn is_in_order(&self) -> bool {
        self.kept.is_sorted_by_key(|(earlier, _)| *earlier)
    }

    /// The fewest kept items that have to be moved so that the earlier order becomes the later one, as indices into `kept`.
    ///
    /// Those that need not move are a longest run of items in the same order in both lists. O(kept × log kept).
    pub(super) fn moved(&self) -> Vec<usize> {
        // The last item of the best run of each length, and what comes before each item in its run.
        let mut ends: Vec<usize> = Vec::new();
        let mut previous = vec![usize::MAX; self.kept.len()];
        for (index, (earlier, _)) in self.kept.iter().enumerate() {
            let length = ends.partition_point(|end| self.kept[*end].0 < *earlier);
            if length > 0 {
                previous[index] = ends[length - 1];
            }
            if length == ends.len() {
                ends.push(index);
            } else {
                ends[length] = index;
            }
        }
        let mut stays = vec![false; self.kept.len()];
        let mut next = ends.last().copied().unwrap_or(usize::MAX);
        while let Some(stay) = stays.get_mut(next) {
            *stay = true;
            next = previous[next];
        }
        let indices = 0..self.kept.len();
        indices.filter(|index| !stays[*index]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_one_name_are_matched_in_their_order() {
        let found = matching(&["a", "b", "a", "c"], &["a", "d", "a", "a", "b"]);
        assert_eq!(
            found,
            Matching {
                kept: vec![(0, 0), (2, 2), (1, 4)],
                added: vec![1, 3],
                removed: vec![3],
            }
        );
    }

    #[test]
    fn the_fewest_items_are_moved() {
        let moved = |before: &[&str], after: &[&str]| -> Vec<usize> {
            let found = matching(before, after);
            let moved = found.moved();
            moved.into_iter().map(|index| found.kept[index].1).collect()
        };
        assert_eq!(
            moved(&["a", "b", "c"], &["a", "b", "c"]),
            Vec::<usize>::new()
        );
        assert_eq!(moved(&["a", "b", "c", "d"], &["b", "c", "d", "a"]), [3]);
        assert_eq!(moved(&["a", "b", "c", "d"], &["d", "a", "b", "c"]), [0]);
        assert_eq!(moved(&["a", "b"], &["b", "a"]).len(), 1);
        assert_eq!(moved(&["a", "b", "c"], &["c", "b", "a"]).len(), 2);
        // What came or went moves nothing.
        assert_eq!(
            moved(&["a", "x", "b"], &["y", "a", "z", "b"]),
            Vec::<usize>::new()
        );
        assert_eq!(moved(&[], &["a"]), Vec::<usize>::new());
    }
}
