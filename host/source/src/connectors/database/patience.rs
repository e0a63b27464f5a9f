//! Trying again while a server is away, as long as nobody wants to stop.

use crate::SourceError;
use millstream_common::StopSignal;
use std::time::Duration;

/// For how long it is tried again in all.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait before the next attempt.
fn delay(attempt: u32) -> Duration {
    Duration::from_millis(100 << attempt.min(4)).min(Duration::from_secs(1))
}

/// Tries until it goes well, or fails in a way that waiting does not mend, or has waited long enough.
pub(crate) fn patiently<T>(
    stop: &StopSignal,
    mut attempt: impl FnMut() -> Result<T, SourceError>,
) -> Result<T, SourceError> {
    let (mut waited, mut attempts) = (Duration::ZERO, 0);
    loop {
        let error = match attempt() {
            Err(error) if is_transient(&error) => error,
            other => return other,
        };
        let pause = delay(attempts);
        if stop.is_set() || waited + pause > PATIENCE {
            return Err(error);
        }
        tracing::warn!(error = millstream_common::describe_chain(&error), "the database is away; trying again");
        std::thread::sleep(pause);
        waited += pause;
        attempts += 1;
    }
}

fn is_transient(error: &SourceError) -> bool {
    match error {
        SourceError::Database { source, .. } => source.is_transient(),
        SourceError::Redis { source, .. } => source.is_transient(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_client::database::DatabaseError;

    fn error(is_transient: bool) -> SourceError {
        let (place, message) = ("db".to_owned(), "no".to_owned());
        let source = match is_transient {
            true => DatabaseError::Busy { place, message },
            false => DatabaseError::Missing { place, message },
        };
        SourceError::Database { name: "s".into(), action: "read the log", source: Box::new(source) }
    }

    #[test]
    fn only_what_waiting_may_mend_is_tried_again() {
        let mut attempts = 0;
        let mut failing = |times: u32, is_transient: bool, stop: &StopSignal| {
            attempts = 0;
            let result = patiently(stop, || {
                attempts += 1;
                if attempts <= times { Err(error(is_transient)) } else { Ok(()) }
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
