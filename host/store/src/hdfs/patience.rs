//! How long HDFS is waited for.
//!
//! The client below waits for an answer without an end, and gives up at once when nobody listens. Here every question has a
//! limit; within it, a name node that was there before is asked again while it is restarted or hands over to another one.
//! The first question of all is not repeated: whoever wrote a wrong address hears of it at once.

use super::failure::is_outage;
use hdfs_native::HdfsError;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Between two questions, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Missed {
    /// There was one, and it was no.
    Refused(HdfsError),
    /// There was none in this time.
    Silent(Duration),
}

/// The patience with one cluster.
#[derive(Debug)]
pub(super) struct Patience {
    limit: Duration,
    /// Whether it has answered before.
    was_reached: AtomicBool,
}

impl Patience {
    /// Patience for so long with each question.
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, was_reached: AtomicBool::new(false) }
    }

    /// Asks what may be asked twice, until there is an answer or the time is over.
    pub(super) async fn ask<T, F>(&self, mut question: impl FnMut() -> F) -> Result<T, Missed>
    where
        F: Future<Output = hdfs_native::Result<T>>,
    {
        let deadline = Instant::now() + self.limit;
        let mut pause = PAUSE.0;
        loop {
            let Ok(answer) = timeout_at(deadline, question()).await else { return Err(Missed::Silent(self.limit)) };
            match answer {
                Err(error) if is_outage(&error) => {
                    if !self.was_reached.load(Ordering::Relaxed) || Instant::now() + pause >= deadline {
                        return Err(Missed::Refused(error));
                    }
                    tracing::warn!(error = %super::failure::short(&error.to_string()), "HDFS is away; asking again");
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE.1);
                }
                answer => {
                    self.was_reached.store(true, Ordering::Relaxed);
                    return answer.map_err(Missed::Refused);
                }
            }
        }
    }

    /// Waits for one step of something that cannot be repeated.
    pub(super) async fn wait<T>(&self, step: impl Future<Output = T>) -> Result<T, Missed> {
        timeout(self.limit, step).await.map_err(|_| Missed::Silent(self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn away() -> HdfsError {
        HdfsError::IOError(io::Error::from(io::ErrorKind::ConnectionRefused))
    }

    #[tokio::test]
    async fn a_wrong_address_is_told_at_once_and_a_restart_is_waited_for() {
        let patience = Patience::new(Duration::from_secs(30));
        let mut asked = 0;
        let first = patience.ask(|| {
            asked += 1;
            async { Err::<(), _>(away()) }
        });
        assert!(matches!(first.await, Err(Missed::Refused(_))));
        assert_eq!(asked, 1);

        patience.ask(|| async { Ok(()) }).await.unwrap();
        let mut asked = 0;
        let later = patience.ask(|| {
            asked += 1;
            let is_back = asked == 3;
            async move { if is_back { Ok(7) } else { Err(away()) } }
        });
        assert_eq!(later.await.unwrap(), 7);
    }

    #[tokio::test]
    async fn silence_and_an_outage_have_an_end_and_a_refusal_is_an_answer() {
        let patience = Patience::new(Duration::from_millis(300));
        let refused = patience.ask(|| async { Err::<(), _>(HdfsError::InvalidPath("x".into())) }).await;
        assert!(matches!(refused, Err(Missed::Refused(HdfsError::InvalidPath(_)))));
        let silent = patience.ask(std::future::pending::<hdfs_native::Result<()>>).await;
        assert!(matches!(silent, Err(Missed::Silent(_))));
        let away = patience.ask(|| async { Err::<(), _>(away()) }).await;
        assert!(matches!(away, Err(Missed::Refused(HdfsError::IOError(_)))));
        assert!(matches!(patience.wait(std::future::pending::<()>()).await, Err(Missed::Silent(_))));
    }
}
