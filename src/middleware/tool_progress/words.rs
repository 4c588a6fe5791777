//! The words of a result, to tell whether another result says the same.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::middleware::message_marks::first_chars;

/// How much of a result is looked at, in characters (MW-TPR-1).
const MAX_CHARS: usize = 8192;
/// Shortest word that counts, in characters.
const MIN_WORD_CHARS: usize = 3;

/// The different words of a text, by hash, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WordSet(Vec<u64>);

impl WordSet {
    /// The words of the beginning of a text, in lower case: runs of letters, digits and underscores.
    pub(super) fn of(text: &str) -> Self {
        let lower = first_chars(text, MAX_CHARS).to_lowercase();
        let words = lower.split(|c: char| !c.is_alphanumeric() && c != '_');
        let long = |word: &&str| word.chars().nth(MIN_WORD_CHARS - 1).is_some();
        let mut hashes: Vec<u64> = words
            .filter(long)
            .map(|word| {
                let mut hasher = DefaultHasher::new();
                word.hash(&mut hasher);
                hasher.finish()
            })
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        WordSet(hashes)
    }

    /// How many different words there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The part of the words of both that both have, 0 to 1 (Jaccard); 0 when neither has any.
    pub(super) fn similarity(&self, other: &WordSet) -> f64 {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut shared = 0_usize;
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => drop(left.next()),
                std::cmp::Ordering::Greater => drop(right.next()),
                std::cmp::Ordering::Equal => {
                    shared += 1;
                    left.next();
                    right.next();
                }
            }
        }
        match self.len() + other.len() - shared {
            0 => 0.0,
            all => shared as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mw_tpr_1_words_are_long_different_and_in_lower_case() {
        let words = WordSet::of("The the THE_end, of été 123 ab c");
        assert_eq!(words.len(), 4, "the, the_end, été, 123");
        assert_eq!(words, WordSet::of("123 ÉTÉ the_end the"));
        let far = format!("{} late", " ".repeat(8192));
        assert_eq!(WordSet::of(&far).len(), 0, "only the beginning counts");
        let cut = format!("{}word", " ".repeat(8189));
        assert_eq!(WordSet::of(&cut), WordSet::of("wor"));
    }

    #[test]
    fn mw_tpr_1_similarity_is_jaccards() {
        let set = WordSet::of;
        let near = |a: &str, b: &str| set(a).similarity(&set(b));
        assert!((near("one two six", "two six ten") - 0.5).abs() < 1e-9);
        assert!((near("one two", "two one") - 1.0).abs() < 1e-9);
        assert!(near("one", "two").abs() < 1e-9);
        assert!(near("", "").abs() < 1e-9);
    }
}
