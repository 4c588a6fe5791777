//! Random JSON values from a fixed seed (splitmix64), so that a failure can be repeated.

use serde_json::{Map, Value, json};

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Any JSON value, with member names that reducers look for.
    pub fn value(&mut self, depth: usize) -> Value {
        const NAMES: [&str; 12] = [
            "id",
            "run_id",
            "status",
            "created_at",
            "sandbox_id",
            "catalog_hash",
            "names",
            "name",
            "path",
            "description",
            "loaded_at",
            "x",
        ];
        match self.below(if depth == 0 { 8 } else { 13 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => json!(self.below(3)),
            3 => json!(self.below(3) as f64 / 2.0),
            4 => json!(self.pick(&[i64::MIN, -1, i64::MAX])),
            5 => json!(self.pick(&[1e16, -0.0, 1e300, 2.5e-8])),
            6 => json!(self.pick(&[
                "",
                "a",
                "completed",
                "in_progress",
                "it's",
                " \u{1c}é\u{301}"
            ])),
            7 => json!(self.pick(&["a", "b"])),
            8 | 9 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let mut members = Map::new();
                for _ in 0..self.below(7) {
                    let name = (*self.pick(&NAMES)).to_owned();
                    members.insert(name, self.value(depth - 1));
                }
                Value::Object(members)
            }
        }
    }
}
