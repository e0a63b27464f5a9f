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

    /// After everything: the last millisecond of the year 9999. A query that has flushed its windows is there.
    pub const END: Self = Self(253_402_300_799_999);

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
    /// How long a silent watermark operator holds the others back, in milliseconds of batch time; for ever without.
    idle_timeout_ms: Option<i64>,
    /// When the run began: operators that have seen nothing are silent since then.
    began_ms: i64,
    nodes: BTreeMap<String, Node>,
    global: Watermark,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    watermark: Watermark,
    /// The time of the last batch in which it saw a row, or when the run began.
    active_ms: i64,
}

impl WatermarkTracker {
    /// Starts with the watermark that the logs name, at `now_ms`; `nodes` are the watermark operators of the plan.
    pub fn resume(
        policy: WatermarkPolicy,
        nodes: impl IntoIterator<Item = String>,
        global: Watermark,
        now_ms: i64,
    ) -> Self {
        let silent = Node { watermark: Watermark::START, active_ms: now_ms };
        let nodes = nodes.into_iter().map(|node| (node, silent)).collect();
        Self { policy, idle_timeout_ms: None, began_ms: now_ms, nodes, global }
    }

    /// Lets an operator that has seen no row for that long (ms of batch time) hold back nothing under the policy
    /// [`Min`](WatermarkPolicy::Min). When it sees rows again it counts again; the global watermark does not go back, so
    /// its older rows are late. Beyond Spark.
    #[must_use]
    pub fn with_idle_timeout(mut self, idle_timeout_ms: Option<i64>) -> Self {
        self.idle_timeout_ms = idle_timeout_ms;
        self
    }

    /// Takes what one batch showed: the greatest event time (µs) that `node` saw, less its delay (µs), in a batch of
    /// that time. Microseconds are cut off towards the past, as Spark does.
    pub fn observe(&mut self, node: &str, max_event_time_us: i64, delay_us: i64, batch_time_ms: i64) {
        let seen = Watermark(max_event_time_us.div_euclid(1000).saturating_sub(delay_us / 1000));
        let silent = Node { watermark: Watermark::START, active_ms: self.began_ms };
        let entry = self.nodes.entry(node.to_owned()).or_insert(silent);
        entry.watermark = entry.watermark.max(seen);
        entry.active_ms = entry.active_ms.max(batch_time_ms);
    }

    /// Ends the batch of that time: the global watermark for the next one.
    pub fn advance(&mut self, batch_time_ms: i64) -> Watermark {
        let is_idle = |node: &&Node| {
            self.idle_timeout_ms.is_some_and(|timeout| batch_time_ms.saturating_sub(node.active_ms) >= timeout)
        };
        let made = match self.policy {
            WatermarkPolicy::Min => self.nodes.values().filter(|node| !is_idle(node)).map(|node| node.watermark).min(),
            WatermarkPolicy::Max => self.nodes.values().map(|node| node.watermark).max(),
        };
        self.global = self.global.max(made.unwrap_or(Watermark::START));
        self.global
    }

    /// Nothing comes any more: everything is final. Beyond Spark.
    pub fn finish(&mut self) {
        self.global = self.global.max(Watermark::END);
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
        let mut tracker = WatermarkTracker::resume(WatermarkPolicy::Min, ["a".into(), "b".into()], Watermark::START, 0);
        tracker.observe("a", 20_000_999, 5_000_000, 0);
        assert_eq!(tracker.advance(0), Watermark(0), "b is silent");
        tracker.observe("b", 30_000_000, 0, 0);
        assert_eq!(tracker.advance(0), Watermark(15_000));
        tracker.observe("a", 1_000_000, 0, 0);
        assert_eq!(tracker.advance(0), Watermark(15_000));
    }

    #[test]
    fn the_fastest_node_decides_under_max() {
        let mut tracker = WatermarkTracker::resume(WatermarkPolicy::Max, ["a".into(), "b".into()], Watermark::START, 0);
        tracker.observe("a", 20_000_000, 5_000_000, 0);
        assert_eq!(tracker.advance(0), Watermark(15_000));
    }

    #[test]
    fn a_silent_node_holds_back_until_its_timeout_and_never_takes_anything_back() {
        let nodes = ["a".into(), "b".into()];
        let tracker = WatermarkTracker::resume(WatermarkPolicy::Min, nodes, Watermark::START, 1000);
        let mut tracker = tracker.with_idle_timeout(Some(500));
        tracker.observe("a", 20_000_000, 0, 1200);
        assert_eq!(tracker.advance(1200), Watermark(0), "b is silent for 200 ms");
        assert_eq!(tracker.advance(1500), Watermark(20_000), "b is idle");
        tracker.observe("b", 3_000_000, 0, 1600);
        tracker.observe("a", 30_000_000, 0, 1600);
        assert_eq!(tracker.advance(1600), Watermark(20_000), "b is back and far behind");
        assert_eq!(tracker.advance(9000), Watermark(20_000), "all are idle: nobody says where time is");
        tracker.finish();
        assert_eq!(tracker.global(), Watermark::END);
    }
}
