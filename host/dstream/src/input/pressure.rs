//! Backpressure: the rate of an input that adapts to how fast batches are worked off.

use super::pid::{Pid, Worked};
use crate::BatchInfo;
use crate::context::frame::Frame;
use crate::context::settings::rows_per_batch;
use crate::lock::locked;
use std::sync::Mutex;

/// The rate of one input. Nothing is limited unless `spark.streaming.backpressure.enabled` says so.
#[derive(Debug, Default)]
pub(crate) struct Pressure(Mutex<Option<Controlled>>);

#[derive(Debug)]
struct Controlled {
    pid: Pid,
    /// Records per second.
    rate: Option<u64>,
}

impl Pressure {
    /// Takes the settings, when the context is started.
    pub(crate) fn begin(&self, frame: &Frame) {
        let settings = frame.settings();
        *locked(&self.0) = settings.backpressure.map(|pressure| Controlled {
            pid: Pid::new(pressure.gains, frame.interval_ms),
            rate: pressure.initial_rate,
        });
    }

    /// How many records a batch may have.
    pub(crate) fn rows(&self, interval_ms: i64) -> Option<u64> {
        let rate = locked(&self.0).as_ref().and_then(|controlled| controlled.rate);
        rate.map(|rate| rows_per_batch(rate, interval_ms))
    }

    /// Learns from a batch that is done.
    pub(crate) fn learn(&self, input: &str, batch: &BatchInfo) {
        let mut controlled = locked(&self.0);
        let Some(controlled) = controlled.as_mut() else { return };
        let (Some(end_ms), Some(processing_ms), Some(scheduling_ms)) =
            (batch.processing_end_ms, batch.processing_delay(), batch.scheduling_delay())
        else {
            return;
        };
        let records = batch.records.get(input).copied().unwrap_or(0);
        if let Some(rate) = controlled.pid.next(Worked { end_ms, records, processing_ms, scheduling_ms }) {
            controlled.rate = Some(rate as u64);
            tracing::debug!(input, rate, "backpressure sets a rate");
        }
    }
}
