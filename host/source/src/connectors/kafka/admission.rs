//! How much of what is there one batch takes, and how much waits in memory: pure arithmetic, the first as in Spark.

use super::offset::Positions;

/// Memory for records that are fetched ahead, for all partitions together, in KiB.
const AHEAD_KIB: usize = 128 << 10;
/// What a partition may have of it, in KiB.
const AHEAD_OF_ONE: (usize, usize) = (16, 64 << 10);

/// What is fetched ahead of each of so many partitions, in KiB.
pub(super) fn ahead(partitions: usize) -> usize {
    (AHEAD_KIB / partitions.max(1)).clamp(AHEAD_OF_ONE.0, AHEAD_OF_ONE.1)
}

/// The end of a batch of about `limit` offsets: each partition gives its share by how far it is behind, small ones at
/// least one offset. Partitions without a beginning begin at 0.
pub(super) fn limited(from: &Positions, until: &Positions, limit: u64) -> Positions {
    let begin = |place| from.get(place).copied().unwrap_or(0);
    let behind = |place, end: i64| end.saturating_sub(begin(place)).max(0);
    let total: f64 = until.iter().map(|(place, end)| behind(place, *end) as f64).sum();
    if total < 1.0 {
        return until.clone();
    }
    let share = |size: i64| {
        let share = limit as f64 * (size as f64 / total);
        // A partition with little to give is not starved.
        if share < 1.0 { share.ceil() } else { share.floor() }
    };
    until
        .iter()
        .map(|(place, end)| match behind(place, *end) {
            0 => (place.clone(), *end),
            size => (place.clone(), begin(place).saturating_add(share(size) as i64).min(*end)),
        })
        .collect()
}

/// The same end, with no more than `most` offsets of any partition.
pub(super) fn capped(from: &Positions, mut until: Positions, most: u64) -> Positions {
    for (place, end) in &mut until {
        let begin = from.get(place).copied().unwrap_or(0);
        *end = begin.saturating_add_unsigned(most).min(*end);
    }
    until
}

/// Holds batches back until there is enough for one, or long enough nothing was read.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    /// New offsets that are worth a batch.
    pub(super) least: u64,
    /// How long they are waited for.
    pub(super) delay_ms: i64,
    /// When the last batch was let go; the first is never held back.
    pub(super) last_ms: Option<i64>,
}

impl Patience {
    /// Whether a batch may go now.
    pub(super) fn lets_go(&mut self, from: &Positions, until: &Positions, now_ms: i64) -> bool {
        let is_due = self.last_ms.is_none_or(|last| now_ms.saturating_sub(last) >= self.delay_ms);
        let new = |(place, end): (_, &i64)| end.saturating_sub(from.get(place).copied().unwrap_or(0)).max(0) as u64;
        let lets_go = is_due || until.iter().map(new).fold(0, u64::saturating_add) >= self.least;
        if lets_go {
            self.last_ms = Some(now_ms);
        }
        lets_go
    }
}

/// How far positions are behind the newest offsets: the least, the most, the average. `None` without partitions.
pub(super) fn behind(at: &Positions, latest: &Positions) -> Option<(i64, i64, f64)> {
    let behind: Vec<i64> =
        at.iter().filter_map(|(place, offset)| Some(latest.get(place)?.saturating_sub(*offset).max(0))).collect();
    let sum: i128 = behind.iter().map(|size| i128::from(*size)).sum();
    Some((*behind.iter().min()?, *behind.iter().max()?, sum as f64 / behind.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::super::offset::TopicPartition;
    use super::*;

    fn positions(offsets: &[i64]) -> Positions {
        (0..).zip(offsets).map(|(partition, offset)| (TopicPartition::new("t", partition), *offset)).collect()
    }

    #[test]
    fn a_limit_is_shared_by_how_far_partitions_are_behind() {
        let (from, until) = (positions(&[0, 10, 5]), positions(&[300, 110, 5]));
        assert_eq!(limited(&from, &until, 100), positions(&[75, 35, 5]));
        assert_eq!(limited(&from, &until, 1000), until);
        // 1 of 1000 and 999: the small one is not starved, the large one gets what is left, rounded down.
        assert_eq!(limited(&positions(&[0, 0]), &positions(&[1, 999]), 10), positions(&[1, 9]));
        assert_eq!(limited(&positions(&[0, 0]), &positions(&[3, 3]), 1), positions(&[1, 1]));
        assert_eq!(limited(&until, &until, 10), until);
    }

    #[test]
    fn many_partitions_share_what_is_fetched_ahead() {
        assert_eq!([1, 4, 1_000, 8_192, 100_000].map(ahead), [64 << 10, 32 << 10, 131, 16, 16]);
    }

    #[test]
    fn each_partition_gives_no_more_than_its_own_limit() {
        let (from, until) = (positions(&[0, 10, 7]), positions(&[300, 12, 5]));
        assert_eq!(capped(&from, until.clone(), 5), positions(&[5, 12, 5]));
        assert_eq!(capped(&from, until.clone(), u64::MAX), until);
        assert_eq!(capped(&Positions::new(), positions(&[9]), 4), positions(&[4]));
    }

    #[test]
    fn numbers_at_their_ends_do_not_overflow() {
        let (from, until) = (positions(&[0, 0]), positions(&[i64::MAX, i64::MAX]));
        assert_eq!(limited(&from, &until, u64::MAX), until);
        assert_eq!(
            limited(&positions(&[5]), &positions(&[3]), 10),
            positions(&[3]),
            "an end before the beginning stays"
        );
        assert_eq!(limited(&Positions::new(), &positions(&[4]), 10), positions(&[4]), "a new partition begins at 0");
    }

    #[test]
    fn a_batch_waits_for_enough_offsets_or_for_the_delay() {
        let mut patience = Patience { least: 10, delay_ms: 1000, last_ms: None };
        let (from, few, many) = (positions(&[0, 0]), positions(&[4, 5]), positions(&[4, 6]));
        assert!(patience.lets_go(&from, &few, 5), "the first goes at once");
        assert!(!patience.lets_go(&from, &few, 1004));
        assert!(patience.lets_go(&from, &few, 1005), "the delay is over");
        assert!(!patience.lets_go(&from, &few, 1006));
        assert!(patience.lets_go(&from, &many, 1007), "there is enough");
    }

    #[test]
    fn distances_are_of_partitions_that_are_read() {
        assert_eq!(behind(&positions(&[1, 5]), &positions(&[4, 5, 9])), Some((0, 3, 1.5)));
        assert_eq!(behind(&Positions::new(), &positions(&[4])), None);
    }
}
