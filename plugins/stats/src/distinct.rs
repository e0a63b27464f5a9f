//! About how many different items there are, in little memory.
//!
//! Keeps the least 512 hashes of a group's items. With fewer different items it counts them exactly; with more it concludes
//! from the greatest of the hashes how thinly they are spread, and is wrong by about 4 %. Which hashes are kept does not
//! depend on the order of the items or on how they were cut, so neither does the answer.

use millstream_sdk::prelude::*;

/// How many hashes are kept.
const KEPT: usize = 512;

/// The least hashes, ascending.
#[derive(Row, Default, Debug)]
pub struct DistinctEstimate {
    hashes: Vec<u64>,
}

#[aggregate_function(state_id = "least 512 hashes, FNV-1a and a finish")]
impl DistinctEstimate {
    fn accumulate(&mut self, item: &str) {
        self.keep(hash(item.as_bytes()));
    }

    fn merge(&mut self, other: Self) {
        other.hashes.into_iter().for_each(|hash| self.keep(hash));
    }

    fn evaluate(&self) -> i64 {
        match self.hashes.last() {
            Some(last) if self.hashes.len() == KEPT => {
                let share = (*last as f64 + 1.0) / (u64::MAX as f64 + 1.0);
                ((KEPT - 1) as f64 / share).round() as i64
            }
            _ => self.hashes.len() as i64,
        }
    }

    fn keep(&mut self, hash: u64) {
        if self.hashes.len() == KEPT && self.hashes.last().is_some_and(|last| *last <= hash) {
            return;
        }
        if let Err(place) = self.hashes.binary_search(&hash) {
            self.hashes.insert(place, hash);
            self.hashes.truncate(KEPT);
        }
    }
}

/// FNV-1a, and a finish so that every bit counts. Part of what the state means.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(items: impl Iterator<Item = u32>) -> DistinctEstimate {
        let mut estimate = DistinctEstimate::default();
        items.for_each(|item| estimate.accumulate(&item.to_string()));
        estimate
    }

    #[test]
    fn few_items_are_counted_and_many_are_estimated() {
        assert_eq!(of((0..400).chain(0..400)).evaluate(), 400);
        assert_eq!(DistinctEstimate::default().evaluate(), 0);
        for many in [5_000, 100_000] {
            let estimate = of(0..many).evaluate() as f64;
            assert!((estimate / f64::from(many) - 1.0).abs() < 0.12, "{estimate} for {many}");
        }
    }

    #[test]
    fn order_and_cuts_change_nothing() {
        let whole = of(0..3000);
        let mut parts = of((1000..3000).rev());
        parts.merge(of(0..2000));
        assert_eq!(parts.hashes, whole.hashes);
    }
}
