//! A connection's own thread of control: what the clients do asynchronously is waited for here.
//!
//! The loop of a query is one plain thread, so a connection lives only while somebody waits for it.

use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Runs the futures of one connection.
#[derive(Debug)]
pub(crate) struct Driver {
    runtime: Option<Runtime>,
}

impl Driver {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { runtime: Some(Builder::new_current_thread().enable_all().build()?) })
    }

    /// One that runs nothing, in the place of one that was taken away.
    pub(crate) fn none() -> Self {
        Self { runtime: None }
    }

    /// The future's value, or `None` when it takes longer than `limit`.
    pub(crate) fn wait<F: Future>(&self, limit: Option<Duration>, future: F) -> Option<F::Output> {
        let runtime = self.runtime.as_ref()?;
        runtime.block_on(async {
            match limit {
                Some(limit) => tokio::time::timeout(limit, future).await.ok(),
                None => Some(future.await),
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
