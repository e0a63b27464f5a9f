//! How many records per second an input should give, from how the last batches went: a controller of the kind that thermostats
//! have, as in Spark. Pure arithmetic.
//!
//! ```text
//!   error      = rate that was asked for − rate at which the batch was worked off
//!   piled up   = delay before the batch · rate at which it was worked off / interval
//!   next rate  = last rate − proportional·error − integral·piled up − derived·change of error per second,  at least the least
//! ```

/// How strongly the controller answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gains {
    pub(crate) proportional: f64,
    pub(crate) integral: f64,
    pub(crate) derived: f64,
    /// Records per second, at least.
    pub(crate) least: f64,
}

impl Default for Gains {
    fn default() -> Self {
        Self { proportional: 1.0, integral: 0.2, derived: 0.0, least: 100.0 }
    }
}

/// A batch that is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Worked {
    pub(crate) end_ms: i64,
    pub(crate) records: u64,
    pub(crate) processing_ms: i64,
    pub(crate) scheduling_ms: i64,
}

/// The controller of one input.
#[derive(Debug)]
pub(crate) struct Pid {
    gains: Gains,
    interval_ms: f64,
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    end_ms: i64,
    rate: f64,
    error: f64,
}

impl Pid {
    pub(crate) fn new(gains: Gains, interval_ms: i64) -> Self {
        Self { gains, interval_ms: interval_ms.max(1) as f64, last: None }
    }

    /// The next rate; `None` when the batch tells nothing: the first one, one without records, or one that took no time.
    pub(crate) fn next(&mut self, worked: Worked) -> Option<f64> {
        let Worked { end_ms, records, processing_ms, scheduling_ms } = worked;
        let is_new = self.last.as_ref().is_none_or(|last| end_ms > last.end_ms);
        if !is_new || records == 0 || processing_ms <= 0 {
            return None;
        }
        let worked_off = records as f64 * 1000.0 / processing_ms as f64;
        let Some(last) = &self.last else {
            self.last = Some(Last { end_ms, rate: worked_off, error: 0.0 });
            return None;
        };
        let seconds = (end_ms - last.end_ms) as f64 / 1000.0;
        let error = last.rate - worked_off;
        let piled_up = scheduling_ms.max(0) as f64 * worked_off / self.interval_ms;
        let Gains { proportional, integral, derived, least } = self.gains;
        let change = (error - last.error) / seconds;
        let rate = (last.rate - proportional * error - integral * piled_up - derived * change).max(least);
        self.last = Some(Last { end_ms, rate, error });
        Some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(proportional: f64, integral: f64, derived: f64) -> Pid {
        Pid::new(Gains { proportional, integral, derived, least: 10.0 }, 20)
    }

    fn next(pid: &mut Pid, end_ms: i64, records: u64, processing_ms: i64, scheduling_ms: i64) -> Option<f64> {
        pid.next(Worked { end_ms, records, processing_ms, scheduling_ms })
    }

    #[test]
    fn what_tells_nothing_changes_nothing() {
        let mut pid = pid(1.0, 0.0, 0.0);
        assert_eq!(next(&mut pid, 0, 10, 10, 0), None, "the first is what others are measured by");
        assert_eq!(next(&mut pid, 0, 10, 10, 0), None, "no time has passed");
        assert_eq!(next(&mut pid, 10, 0, 10, 0), None, "no records");
        assert_eq!(next(&mut pid, 10, 10, 0, 0), None, "it took no time");
        assert!(next(&mut pid, 10, 10, 10, 0).is_some());
    }

    #[test]
    fn a_batch_that_is_worked_off_as_fast_as_before_changes_nothing() {
        let mut pid = pid(1.0, 0.2, 0.5);
        for end in 0..50 {
            let rate = next(&mut pid, end * 20, 20, 20, 0);
            assert_eq!(rate, (end > 0).then_some(1000.0));
        }
    }

    #[test]
    fn the_rate_follows_the_speed_of_the_work_and_never_falls_below_the_least() {
        let mut pid = pid(1.0, 0.0, 0.0);
        next(&mut pid, 0, 100, 20, 0);
        for slower in 1..=20 {
            let rate = next(&mut pid, slower * 20, 100, 20 * slower + 20, 0).unwrap();
            assert!((rate - 100_000.0 / (20 * slower + 20) as f64).abs() < 1e-6, "{slower}: {rate}");
        }
        assert_eq!(next(&mut pid, 1000, 1, 10_000, 0), Some(10.0));
    }

    #[test]
    fn what_has_piled_up_is_worked_off() {
        // 1000 records per second, and 100 ms of delay: 50 batches' worth of a fifth is taken off.
        let mut pid = pid(1.0, 0.1, 0.0);
        next(&mut pid, 0, 20, 20, 0);
        assert_eq!(next(&mut pid, 20, 20, 20, 100), Some(500.0));
        // The way back is by the error: work is as fast as ever.
        assert_eq!(next(&mut pid, 40, 20, 20, 0), Some(1000.0));
    }

    #[test]
    fn a_quick_change_of_the_error_is_damped() {
        let mut pid = pid(0.0, 0.0, 0.01);
        next(&mut pid, 0, 20, 20, 0);
        // The error goes from 0 to 500 within half a second.
        assert_eq!(next(&mut pid, 500, 10, 20, 0), Some(990.0));
    }
}
