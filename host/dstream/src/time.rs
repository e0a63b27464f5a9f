//! The time of a batch, and the rules of intervals.
//!
//! A batch has the time at which its interval ends. Streams answer at their own slide only: a time is valid for a stream
//! when it is a whole number of slides after the zero time.
//!
//! It knows no clock: what time it is comes in from the schedule.

use std::fmt;
use std::time::Duration;

/// The time of a batch: milliseconds since 1970, the end of its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Time {
    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0
    }

    pub(crate) fn plus(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    pub(crate) fn minus(self, ms: i64) -> Self {
        Self(self.0.saturating_sub(ms))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Whole milliseconds of a duration.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The last time at or before `now` that is a whole number of intervals since 1970: batches are aligned as in Spark.
pub(crate) fn zero_time(now_ms: i64, interval_ms: i64) -> Time {
    Time(now_ms.div_euclid(interval_ms) * interval_ms)
}

/// Whether a stream of that slide answers at `time`.
pub(crate) fn is_valid(zero: Time, slide_ms: i64, time: Time) -> bool {
    time > zero && (time.0 - zero.0) % slide_ms == 0
}

/// The times of a stream from `from` to `to`, both included: each is moved back to the stream's own grid, those up to the
/// zero time are left out.
pub(crate) fn grid(zero: Time, slide_ms: i64, from: Time, to: Time) -> Vec<Time> {
    let aligned = |time: Time| Time(zero.0 + (time.0 - zero.0).div_euclid(slide_ms) * slide_ms);
    let (mut at, end) = (aligned(from).max(zero.plus(slide_ms)), aligned(to));
    let mut times = Vec::new();
    while at <= end {
        times.push(at);
        at = at.plus(slide_ms);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_aligned_to_the_interval() {
        assert_eq!(zero_time(12_345, 1000), Time(12_000));
        assert_eq!(zero_time(-1, 1000), Time(-1000));
    }

    #[test]
    fn a_stream_answers_at_its_slide_after_the_zero_time() {
        let zero = Time(1000);
        assert!(!is_valid(zero, 2000, Time(1000)));
        assert!(!is_valid(zero, 2000, Time(2000)));
        assert!(is_valid(zero, 2000, Time(3000)));
    }

    #[test]
    fn a_grid_leaves_out_what_was_before_the_first_batch() {
        assert_eq!(grid(Time(1000), 1000, Time(-5000), Time(3500)), [Time(2000), Time(3000)]);
        assert_eq!(grid(Time(0), 2000, Time(3000), Time(5000)), [Time(2000), Time(4000)]);
    }
}
