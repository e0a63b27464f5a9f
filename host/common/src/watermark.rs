//! The watermark: the promise that nothing older is waited for. Milliseconds, never backwards.
//!
//! Source of the semantics: Spark's `WatermarkTracker`. The global watermark starts at 1970, is the
//! minimum (or maximum) over the watermark operators, and a node that has seen no row in this run counts
//! as 1970. Batch N evicts with the watermark that batches before N made; it judges late rows by the one
//! that batch N-1 evicted with.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A point in event time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watermark(pub i64);

impl Watermark {
    /// Where every query's watermark starts: 1970.
    pub const START: Self = Self(0);

    /// The watermark in microseconds, the unit of event times; saturating.
    pub fn as_micros(self) -> i64 {
        self.0.saturating_mul(1000)
    }
}

/// The two watermarks of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// Rows at or before it are late: the eviction watermark of the batch before.
    pub late: Watermark,
    /// State at or before it is final: from all batches before this one.
    pub eviction: Watermark,
}

/// How several watermark operators make one global watermark (`spark.sql.streaming.multipleWatermarkPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WatermarkPolicy {
    /// The slowest input decides: nothing is dropped that the slowest still brings. The default.
    #[default]
    Min,
    /// The fastest input decides: silent inputs hold nothing back, slow ones lose rows.
    Max,
}

/// Follows the event times of one run and makes the global watermark.
#[derive(Debug)]
pub struct WatermarkTracker {
    policy: WatermarkPolicy,
    nodes: BTreeMap<String, Watermark>,
    global: Watermark,
}

impl WatermarkTracker {
    /// Starts with the watermark that the logs name; `nodes` are the watermark operators of the plan.
    pub fn resume(policy: WatermarkPolicy, nodes: impl IntoIterator<Item = String>, global: Watermark) -> Self {
        Self { policy, nodes: nodes.into_iter().map(|node| (node, Watermark::START)).collect(), global }
    }

    /// Takes what one batch showed: the greatest event time (µs) that `node` saw, less its delay (µs).
    /// Microseconds are cut off towards the past, as Spark does.
    pub fn observe(&mut self, node: &str, max_event_time_us: i64, delay_us: i64) {
        let seen = Watermark(max_event_time_us.div_euclid(1000).saturating_sub(delay_us / 1000));
        let entry = self.nodes.entry(node.to_owned()).or_insert(Watermark::START);
        *entry = (*entry).max(seen);
    }

    /// Ends the batch: the global watermark for the next one.
    pub fn advance(&mut self) -> Watermark {
        let made = match self.policy {
            WatermarkPolicy::Min => self.nodes.values().min(),
            WatermarkPolicy::Max => self.nodes.values().max(),
        };
        self.global = self.global.max(made.copied().unwrap_or(Watermark::START));
        self.global
    }

    /// The global watermark as of the last [`advance`](Self::advance).
    pub fn global(&self) -> Watermark {
        self.global
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_node_decides_and_nothing_goes_back() {
        let mut tracker = WatermarkTracker::resume(WatermarkPolicy::Min, ["a".into(), "b".into()], Watermark::START);
        tracker.observe("a", 20_000_999, 5_000_000);
        assert_eq!(tracker.advance(), Watermark(0), "b is silent");
        tracker.observe("b", 30_000_000, 0);
        assert_eq!(tracker.advance(), Watermark(15_000));
        tracker.observe("a", 1_000_000, 0);
        assert_eq!(tracker.advance(), Watermark(15_000));
    }

    #[test]
    fn the_fastest_node_decides_under_max() {
        let mut tracker = WatermarkTracker::resume(WatermarkPolicy::Max, ["a".into(), "b".into()], Watermark::START);
        tracker.observe("a", 20_000_000, 5_000_000);
        assert_eq!(tracker.advance(), Watermark(15_000));
    }
}
