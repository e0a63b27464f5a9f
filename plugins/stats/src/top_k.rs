//! The most frequent items, in little memory.
//!
//! Space-saving: a group keeps at most eight counters per item that is asked for. As long as it has no more different
//! items than that, counts are exact. Beyond, an item that has no counter takes over the least one: its count is then too
//! high by at most that, which `at_most_too_high` says.

use millstream_sdk::prelude::*;
use std::cmp::Reverse;

/// Counters that are kept for each item that is asked for.
const COUNTERS_PER_ITEM: usize = 8;
/// The most items that may be asked for.
const MOST: i32 = 1000;

/// The counters of a group, ascending by item.
#[derive(Row, Default, Debug)]
pub struct TopK {
    k: i32,
    counters: Vec<Counter>,
}

/// How often an item was seen.
#[derive(Row, Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    item: String,
    count: i64,
    at_most_too_high: i64,
}

#[aggregate_function(state_id = "space-saving counters by item")]
impl TopK {
    fn accumulate(&mut self, item: &str, k: i32) -> Result<(), String> {
        if !(1..=MOST).contains(&k) {
            return Err(format!("top_k gives 1 to {MOST} items, not {k}"));
        }
        self.k = self.k.max(k);
        match self.place(item) {
            Ok(place) => self.counters[place].count += 1,
            Err(_) => {
                let floor = if self.is_full() { self.drop_least() } else { 0 };
                let place = self.place(item).unwrap_or_else(|place| place);
                let counter = Counter { item: item.to_owned(), count: floor + 1, at_most_too_high: floor };
                self.counters.insert(place, counter);
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Self) {
        // What one side does not count may have been seen as often as its least counter says.
        let (floor, others_floor) = (self.floor(), other.floor());
        let mut rest = other.counters.into_iter().peekable();
        let mut merged = Vec::with_capacity(self.counters.len());
        for mut counter in self.counters.drain(..) {
            while let Some(only) = rest.next_if(|only| only.item < counter.item) {
                merged.push(only.raised(floor));
            }
            counter = match rest.next_if(|both| both.item == counter.item) {
                Some(both) => Counter {
                    count: counter.count + both.count,
                    at_most_too_high: counter.at_most_too_high + both.at_most_too_high,
                    ..counter
                },
                None => counter.raised(others_floor),
            };
            merged.push(counter);
        }
        merged.extend(rest.map(|only| only.raised(floor)));
        self.k = self.k.max(other.k);
        self.counters = merged;
        let capacity = self.capacity();
        if self.counters.len() > capacity {
            self.counters.sort_by(|a, b| (Reverse(a.count), &a.item).cmp(&(Reverse(b.count), &b.item)));
            self.counters.truncate(capacity);
            self.counters.sort_by(|a, b| a.item.cmp(&b.item));
        }
    }

    fn evaluate(&self) -> Vec<Counter> {
        let mut best = self.counters.clone();
        best.sort_by(|a, b| (Reverse(a.count), &a.item).cmp(&(Reverse(b.count), &b.item)));
        best.truncate(usize::try_from(self.k).unwrap_or_default());
        best
    }

    fn capacity(&self) -> usize {
        usize::try_from(self.k).unwrap_or_default() * COUNTERS_PER_ITEM
    }

    fn is_full(&self) -> bool {
        self.counters.len() >= self.capacity()
    }

    /// How often an item without a counter may have been seen.
    fn floor(&self) -> i64 {
        if self.is_full() { self.counters.iter().map(|counter| counter.count).min().unwrap_or(0) } else { 0 }
    }

    fn place(&self, item: &str) -> Result<usize, usize> {
        self.counters.binary_search_by(|counter| counter.item.as_str().cmp(item))
    }

    /// Drops the least counter, of several the last by item; answers what it was at.
    fn drop_least(&mut self) -> i64 {
        let least = self.counters.iter().enumerate().min_by_key(|(place, counter)| (counter.count, Reverse(*place)));
        match least.map(|(place, _)| place) {
            Some(place) => self.counters.remove(place).count,
            None => 0,
        }
    }
}

impl Counter {
    fn raised(self, by: i64) -> Self {
        Self { count: self.count + by, at_most_too_high: self.at_most_too_high + by, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(items: &[&str], k: i32) -> TopK {
        let mut top = TopK::default();
        items.iter().for_each(|item| assert_eq!(top.accumulate(item, k), Ok(())));
        top
    }

    fn shown(top: &TopK) -> Vec<(String, i64)> {
        top.evaluate().into_iter().map(|counter| (counter.item, counter.count)).collect()
    }

    #[test]
    fn few_items_are_counted_exactly_however_they_are_cut() {
        let items = ["b", "a", "c", "b", "a", "b", "d"];
        let whole = of(&items, 2);
        assert_eq!(shown(&whole), [("b".to_owned(), 3), ("a".to_owned(), 2)]);
        for cut in 0..=items.len() {
            let mut parts = of(&items[..cut], 2);
            parts.merge(of(&items[cut..], 2));
            assert_eq!(parts.counters, whole.counters);
        }
        assert!(whole.counters.iter().all(|counter| counter.at_most_too_high == 0));
        assert_eq!(shown(&TopK::default()), []);
    }

    #[test]
    fn of_many_items_the_frequent_ones_are_found_and_errors_are_bounded() {
        let mut top = TopK::default();
        for i in 0..5000_i64 {
            let item = if i % 3 == 0 { "hot".to_owned() } else { format!("cold {i}") };
            assert_eq!(top.accumulate(&item, 1), Ok(()));
        }
        assert_eq!(top.counters.len(), 8);
        let best = top.evaluate().remove(0);
        assert_eq!(best.item, "hot");
        assert!((1667..=1667 + best.at_most_too_high).contains(&best.count), "{best:?}");
        assert!(TopK::default().accumulate("x", 0).is_err());
    }
}
