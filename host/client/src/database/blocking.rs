//! A connection's own thread of control: what the clients do asynchronously is waited for here.
//!
//! The loop of a query is one plain thread, so a connection lives only while somebody waits for it. Whoever asks the query
//! to stop does not wait for a server that does not answer.

use futures::future::{Either, select};
use millstream_common::StopSignal;
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How often it is looked whether to stop.
const NAP: Duration = Duration::from_millis(50);

/// How long a statement may still take after that: what is about to be done shall be done.
const GRACE: Duration = Duration::from_secs(2);

/// Why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It takes too long.
    Late,
    /// Nobody wants it any more.
    Stopped,
}

/// Runs the futures of one connection.
#[derive(Debug)]
pub(crate) struct Driver {
    runtime: Option<Runtime>,
    stop: StopSignal,
}

impl Driver {
    pub(crate) fn new(stop: &StopSignal) -> std::io::Result<Self> {
        Ok(Self { runtime: Some(Builder::new_current_thread().enable_all().build()?), stop: stop.clone() })
    }

    /// One whose futures go on while nobody waits, too, on a thread of their own: for a client that answers its server by
    /// itself.
    pub(crate) fn attended(stop: &StopSignal) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Self { runtime: Some(runtime), stop: stop.clone() })
    }

    /// One that runs nothing, in the place of one that was taken away.
    pub(crate) fn none() -> Self {
        Self { runtime: None, stop: StopSignal::new() }
    }

    /// What opens a connection; not a moment longer than it is wanted.
    pub(crate) fn connect<F: Future>(&self, limit: Duration, future: F) -> Result<F::Output, Unanswered> {
        self.wait_for(Some(limit), Duration::ZERO, future)
    }

    /// The answer to a statement, or why there is none.
    pub(crate) fn wait<F: Future>(&self, limit: Option<Duration>, future: F) -> Result<F::Output, Unanswered> {
        self.wait_for(limit, GRACE, future)
    }

    /// As [`wait`](Self::wait), whoever wants to stop.
    pub(crate) fn finish<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        self.runtime.as_ref()?.block_on(async { tokio::time::timeout(limit, future).await.ok() })
    }

    fn wait_for<F: Future>(
        &self,
        limit: Option<Duration>,
        grace: Duration,
        future: F,
    ) -> Result<F::Output, Unanswered> {
        let Some(runtime) = &self.runtime else { return Err(Unanswered::Stopped) };
        runtime.block_on(async {
            let limited = async {
                match limit {
                    Some(limit) => tokio::time::timeout(limit, future).await.map_err(|_| Unanswered::Late),
                    None => Ok(future.await),
                }
            };
            let stopped = async {
                while !self.stop.is_set() {
                    tokio::time::sleep(NAP).await;
                }
                tokio::time::sleep(grace).await;
            };
            // What has come is taken, before it is looked whether to stop.
            match select(pin!(limited), pin!(stopped)).await {
                Either::Left((value, _)) => value,
                Either::Right(_) => Err(Unanswered::Stopped),
            }
        })
    }

    /// Lets a future run whenever somebody waits.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            drop(runtime.spawn(future));
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Not by the runtime's own drop, which may wait and must not on some threads.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use std::time::Instant;

    #[test]
    fn nobody_who_wants_to_stop_waits_for_what_does_not_come() {
        let stop = StopSignal::new();
        let driver = Driver::new(&stop).unwrap();
        assert_eq!(driver.wait(None, ready(1)), Ok(1));
        assert_eq!(driver.wait(Some(Duration::from_millis(1)), pending::<()>()), Err(Unanswered::Late));
        stop.set();
        let began = Instant::now();
        assert_eq!(driver.connect(Duration::from_secs(60), pending::<()>()), Err(Unanswered::Stopped));
        assert!(began.elapsed() < Duration::from_secs(1));
        assert_eq!(driver.wait(None, pending::<()>()), Err(Unanswered::Stopped));
        assert_eq!(driver.wait(None, ready(1)), Ok(1), "what is there is taken");
    }
}
