//! Sets of sequence numbers, as ranges.

use serde_json::{Value, json};
use std::fmt;

/// So many ranges are told; of more it is told how many there are.
const TOLD: usize = 20;

/// Sequence numbers: ranges from first to last, in order, with a gap between any two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sequences(Vec<(u64, u64)>);

impl Sequences {
    /// The numbers behind the first, up to the second.
    pub(super) fn between(after: u64, until: u64) -> Self {
        let mut found = Self::default();
        if until > after {
            found.0.push((after + 1, until));
        }
        found
    }

    /// Adds a number behind all others.
    pub(super) fn push(&mut self, number: u64) {
        match self.0.last_mut() {
            Some((_, last)) if number == last.saturating_add(1) => *last = number,
            Some((_, last)) if number <= *last => {}
            _ => self.0.push((number, number)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|(first, last)| last - first + 1).fold(0, u64::saturating_add)
    }

    /// Those that are in both.
    pub(super) fn within(&self, after: u64, until: u64) -> Self {
        let clipped = self.0.iter().map(|(first, last)| ((*first).max(after.saturating_add(1)), (*last).min(until)));
        Self(clipped.filter(|(first, last)| first <= last).collect())
    }

    /// Those that are not in the other.
    pub(super) fn without(&self, other: &Self) -> Self {
        let (mut left, mut holes) = (Vec::new(), other.0.iter().peekable());
        for (first, last) in &self.0 {
            let mut from = *first;
            while holes.next_if(|(_, hole)| *hole < from).is_some() {}
            let mut ahead = holes.clone();
            while let Some((start, end)) = ahead.next_if(|(start, _)| start <= last) {
                if *start > from {
                    left.push((from, start - 1));
                }
                from = end.saturating_add(1);
            }
            if from <= *last {
                left.push((from, *last));
            }
        }
        Self(left)
    }

    /// Those of either.
    pub(super) fn and(&self, other: &Self) -> Self {
        let mut all = [self.0.as_slice(), other.0.as_slice()].concat();
        all.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match joined.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = (*end).max(last),
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }

    pub(super) fn to_json(&self) -> Value {
        self.0.iter().map(|(first, last)| json!([first, last])).collect()
    }

    /// The set in a JSON; `None` when it is none.
    pub(super) fn parse(value: &Value) -> Option<Self> {
        let range = |value: &Value| match value.as_array()?.as_slice() {
            [first, last] => Some((first.as_u64()?, last.as_u64()?)),
            _ => None,
        };
        let ranges: Vec<(u64, u64)> = value.as_array()?.iter().map(range).collect::<Option<_>>()?;
        let is_in_order = ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
        (is_in_order && ranges.iter().all(|(first, last)| first <= last)).then_some(Self(ranges))
    }
}

impl fmt::Display for Sequences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().take(TOLD).enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            match first == last {
                true => write!(f, "{first}")?,
                false => write!(f, "{first} to {last}")?,
            }
        }
        match self.0.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, " and {more} more ranges up to {}", self.0.last().map_or(0, |(_, last)| *last)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ranges: &[(u64, u64)]) -> Sequences {
        Sequences(ranges.to_vec())
    }

    #[test]
    fn numbers_join_to_ranges_and_are_told() {
        let mut found = Sequences::default();
        [2, 3, 3, 4, 7, 9, 10].into_iter().for_each(|number| found.push(number));
        assert_eq!(found, of(&[(2, 4), (7, 7), (9, 10)]));
        assert_eq!((found.to_string().as_str(), found.count()), ("2 to 4, 7, 9 to 10", 6));
        assert_eq!(Sequences::parse(&found.to_json()), Some(found));
        for strange in [json!({}), json!([[1]]), json!([[5, 4]]), json!([[1, 4], [3, 9]]), json!([[-1, 4]])] {
            assert_eq!(Sequences::parse(&strange), None, "{strange}");
        }
        let many: Sequences = Sequences((1..=30).map(|number| (number * 2, number * 2)).collect());
        assert!(many.to_string().ends_with("40 and 10 more ranges up to 60"), "{many}");
    }

    #[test]
    fn sets_are_cut_and_put_together() {
        let all = of(&[(1, 10), (20, 30)]);
        assert_eq!(all.without(&of(&[(1, 2), (5, 5), (9, 21), (30, 40)])), of(&[(3, 4), (6, 8), (22, 29)]));
        assert_eq!(all.without(&Sequences::default()), all);
        assert_eq!(all.without(&of(&[(0, 99)])), Sequences::default());
        assert_eq!(of(&[(3, 4), (6, 8)]).without(&of(&[(4, 6)])), of(&[(3, 3), (7, 8)]));
        assert_eq!(all.within(9, 20), of(&[(10, 10), (20, 20)]));
        assert_eq!(all.within(10, 19), Sequences::default());
        assert_eq!(of(&[(1, 3), (9, 9)]).and(&of(&[(4, 5), (8, 12)])), of(&[(1, 5), (8, 12)]));
        assert_eq!(Sequences::between(4, 6), of(&[(5, 6)]));
        assert!(Sequences::between(6, 6).is_empty());
    }
}
