//! Trigger: when a batch may start. Source of the semantics: Spark's `Trigger` and `TriggerExecutor`.

use std::fmt;
use std::time::Duration;

/// When the next batch may start, and when the query is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trigger {
    /// As soon as the batch before is done and there is something to do.
    #[default]
    Default,
    /// At multiples of the interval since 1970; the first batch at once; missed ones are skipped.
    ProcessingTime(Duration),
    /// One batch with all that is available, ignoring read limits, then stop.
    Once,
    /// What is available at the start, in batches of the read limits, then stop.
    AvailableNow,
}

impl Trigger {
    /// When the batch after the one that began at `began_ms` may start, if it is done at `now_ms`.
    ///
    /// Pure: the loop waits until that time. An overrun starts at once, at most one missed tick is made up.
    pub fn next_start_ms(self, began_ms: i64, now_ms: i64) -> i64 {
        match self {
            Self::ProcessingTime(interval) if !interval.is_zero() => {
                let interval = interval.as_millis().max(1) as i64;
                let next = (began_ms.div_euclid(interval) + 1) * interval;
                next.max(now_ms)
            }
            _ => now_ms,
        }
    }

    /// Whether the query ends by itself under this trigger.
    pub fn is_bounded(self) -> bool {
        matches!(self, Self::Once | Self::AvailableNow)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::ProcessingTime(interval) => write!(f, "processing time {interval:?}"),
            Self::Once => f.write_str("once"),
            Self::AvailableNow => f.write_str("available now"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processing_time_starts_at_multiples_and_skips_missed_ticks() {
        let trigger = Trigger::ProcessingTime(Duration::from_secs(10));
        assert_eq!(trigger.next_start_ms(12_000, 13_000), 20_000);
        assert_eq!(trigger.next_start_ms(10_000, 10_500), 20_000);
        assert_eq!(trigger.next_start_ms(12_000, 47_000), 47_000);
        assert_eq!(Trigger::Default.next_start_ms(12_000, 13_000), 13_000);
    }
}
