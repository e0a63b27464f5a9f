//! Patience with a server that is away: how often it is tried again, for how long, and until nobody wants it any more.
//!
//! One for each thing that is tried. The pauses grow to a second; whoever asks the query to stop ends them at once.
//!
//! What is tried, and over which connection, is the caller's; which errors time mends the errors say themselves.

use millstream_common::{StopSignal, describe_chain};
use std::time::{Duration, Instant};

/// How often who waits looks whether to stop.
const NAP: Duration = Duration::from_millis(50);

/// An error that may pass.
pub trait Transient: std::error::Error + 'static {
    /// Whether the same may go well a little later, over a new connection.
    fn is_transient(&self) -> bool;
}

/// Tries until it goes well, or fails in a way that time does not mend, or has taken as long as `limit`, or is to stop.
/// `who` is what waits for its server, for the log. A failed attempt must leave no connection to the next.
///
/// # Errors
/// That of the last attempt.
pub fn patiently<T, E: Transient>(
    who: &str,
    (stop, limit): (&StopSignal, Duration),
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut patience = Patience::new(stop, limit);
    loop {
        let error = match attempt() {
            Err(error) => error,
            done => return done,
        };
        let warn = || tracing::warn!(who, error = describe_chain(&error), "the server is away; trying again");
        if !patience.has_more(error.is_transient(), warn) {
            return Err(error);
        }
    }
}

/// What is left of it.
#[derive(Debug)]
pub struct Patience {
    stop: StopSignal,
    limit: Duration,
    began: Instant,
    attempts: u32,
}

impl Patience {
    /// Patience for so long, counted from now.
    pub fn new(stop: &StopSignal, limit: Duration) -> Self {
        Self { stop: stop.clone(), limit, began: Instant::now(), attempts: 0 }
    }

    /// After a failed attempt: waits, and answers whether to try again. If so, `warn` is called before the pause.
    pub fn has_more(&mut self, is_transient: bool, warn: impl FnOnce()) -> bool {
        let time = delay(self.attempts);
        if !is_transient || self.stop.is_set() || self.began.elapsed() + time > self.limit {
            return false;
        }
        self.attempts += 1;
        warn();
        pause(time, &self.stop)
    }
}

/// Waits, but no longer than until a stop is asked for; answers whether nobody asked.
pub fn pause(duration: Duration, stop: &StopSignal) -> bool {
    let begin = Instant::now();
    while !stop.is_set() {
        let left = duration.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(NAP));
    }
    false
}

/// How long to wait before the next attempt.
fn delay(attempt: u32) -> Duration {
    Duration::from_millis(100 << attempt.min(4)).min(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_come_slower_and_slower_up_to_a_second() {
        let delays: Vec<u128> = (0..6).map(|attempt| delay(attempt).as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1000, 1000]);
    }

    #[test]
    fn patience_ends_with_its_time_with_the_wish_to_stop_and_where_time_mends_nothing() {
        let (going, stopping) = (StopSignal::new(), StopSignal::new());
        stopping.set();
        let minute = Duration::from_secs(60);
        let mut warnings = 0;
        let mut has_more =
            |stop, limit, is_transient| Patience::new(stop, limit).has_more(is_transient, || warnings += 1);
        assert!(has_more(&going, minute, true));
        assert!(!has_more(&going, minute, false));
        assert!(!has_more(&going, Duration::from_millis(50), true));
        assert!(!has_more(&stopping, minute, true));
        assert_eq!(warnings, 1, "only who tries again says so");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("no")]
    struct No {
        is_transient: bool,
    }

    impl Transient for No {
        fn is_transient(&self) -> bool {
            self.is_transient
        }
    }

    #[test]
    fn only_what_time_may_mend_is_tried_again() {
        let failing = |times: u32, is_transient: bool, stop: &StopSignal| {
            let mut attempts = 0;
            let result = patiently("test", (stop, Duration::from_secs(30)), || {
                attempts += 1;
                if attempts <= times { Err(No { is_transient }) } else { Ok(()) }
            });
            (result.is_ok(), attempts)
        };
        let (going, stopping) = (StopSignal::new(), StopSignal::new());
        stopping.set();
        assert_eq!(failing(1, true, &going), (true, 2));
        assert_eq!(failing(1, false, &going), (false, 1));
        assert_eq!(failing(1, true, &stopping), (false, 1));
    }
}
