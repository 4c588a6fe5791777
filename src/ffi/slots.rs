//! A table whose keys are never mixed up: slot numbers with generations. Handles and buffers are kept in such tables.

/// Where a value is, and which value of those that were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Index of the slot.
    pub(super) slot: u32,
    /// Which use of the slot; never 0.
    pub(super) generation: u32,
}

/// Values under [`Key`]s. A key is good for one value only, for ever: a slot whose generations are used up is retired.
pub(super) struct Slots<T, const GENERATION_BITS: u32> {
    entries: Vec<Entry<T>>,
    /// Slots without a value that may be used again.
    free: Vec<u32>,
}

struct Entry<T> {
    /// Generation of the value, or of the next one while there is none.
    generation: u32,
    value: Option<T>,
}

impl<T, const GENERATION_BITS: u32> Slots<T, GENERATION_BITS> {
    const MASK: u32 = u32::MAX >> (32 - GENERATION_BITS);

    /// An empty table, which has not allocated.
    pub(super) const fn new() -> Self {
        Slots {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The first generation of a slot: unlike those of its neighbours and of other tables.
    fn first_generation(seed: u64, slot: u32) -> u32 {
        // One step of SplitMix64.
        let mut mixed =
            seed.wrapping_add((u64::from(slot) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed >> 32) as u32) & Self::MASK).max(1)
    }

    /// Adds a value. Gives it back if `most` slots exist already and none is free.
    pub(super) fn insert(&mut self, seed: u64, most: u32, value: T) -> Result<Key, T> {
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.entries[slot as usize];
            entry.value = Some(value);
            let generation = entry.generation;
            return Ok(Key { slot, generation });
        }
        match u32::try_from(self.entries.len()) {
            Ok(slot) if slot < most => {
                let generation = Self::first_generation(seed, slot);
                self.entries.push(Entry {
                    generation,
                    value: Some(value),
                });
                Ok(Key { slot, generation })
            }
            _ => Err(value),
        }
    }

    /// The value of a key, if it is still there.
    pub(super) fn get(&self, key: Key) -> Option<&T> {
        let entry = self.entries.get(key.slot as usize)?;
        (entry.generation == key.generation).then_some(entry.value.as_ref())?
    }

    /// Takes the value out. The key is spent.
    pub(super) fn remove(&mut self, seed: u64, key: Key) -> Option<T> {
        let entry = self.entries.get_mut(key.slot as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = match entry.generation.wrapping_add(1) & Self::MASK {
            0 => 1,
            next => next,
        };
        // Back at the first generation: an old key would fit again, so the slot is left empty for good.
        if entry.generation != Self::first_generation(seed, key.slot) {
            self.free.push(key.slot);
        }
        Some(value)
    }

    /// Every value with its key, by slot.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        (0..).zip(&self.entries).filter_map(|(slot, entry)| {
            let generation = entry.generation;
            Some((Key { slot, generation }, entry.value.as_ref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_whose_generations_are_used_up_is_retired_and_no_key_comes_twice() {
        let mut slots = Slots::<u32, 4>::new();
        let mut seen = std::collections::HashSet::new();
        // 15 generations per slot (0 is none), two slots.
        for n in 0..30 {
            let key = slots.insert(99, 2, n).unwrap();
            assert!(key.generation > 0 && key.generation < 16);
            assert!(
                seen.insert((key.slot, key.generation)),
                "{key:?} came twice"
            );
            assert_eq!(slots.get(key), Some(&n));
            assert_eq!(slots.remove(99, key), Some(n));
            assert_eq!(slots.get(key), None);
            assert_eq!(slots.remove(99, key), None);
        }
        assert_eq!(slots.insert(99, 2, 0), Err(0), "both slots are retired");
    }

    #[test]
    fn keys_of_another_generation_or_slot_find_nothing() {
        let mut slots = Slots::<&str, 24>::new();
        let key = slots.insert(1, 8, "here").unwrap();
        for other in [
            Key {
                slot: key.slot,
                generation: key.generation + 1,
            },
            Key {
                slot: key.slot,
                generation: 0,
            },
            Key {
                slot: 1,
                generation: key.generation,
            },
            Key {
                slot: u32::MAX,
                generation: u32::MAX,
            },
        ] {
            assert_eq!(slots.get(other), None);
            assert_eq!(slots.remove(1, other), None);
        }
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(key, &"here")]);
    }

    #[test]
    fn first_generations_depend_on_the_seed() {
        let first = |seed| {
            Slots::<(), 24>::new()
                .insert(seed, 1, ())
                .unwrap()
                .generation
        };
        assert_ne!(first(1), first(2));
    }
}
