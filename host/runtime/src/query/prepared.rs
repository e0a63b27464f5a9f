//! A sink with two phases: what a batch has prepared, from there to its end.
//!
//! ```text
//!   sink: prepared ──► prepared/N ──► commits/N, which has it, too ──► sink: commit ──► prepared/N goes
//!             └─ crash: aborted, N runs again  ─┘              └─ crash: committed, once more if it was
//! ```
//!
//! Rule of its life: nothing is committed that the commit log does not have, and nothing is aborted that it may have. When
//! it is not known whether it has it, the run is over; the next one reads the log. What an earlier life left is brought to
//! its end before anything else, by the code that prepared it.

use super::open::{self, RunningPlugin};
use super::run::QueryRun;
use crate::{QuerySpec, RuntimeError, Session};
use millstream_checkpoint::{Checkpoint, PreparedEntry};
use millstream_common::BatchId;
use millstream_sink::{Sink, SinkContext};
use millstream_wasm::{PluginHost, PluginSlot};
use serde_json::Value;
use std::sync::Arc;

/// How far what was prepared has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The commit log does not have the batch.
    Open,
    /// It may have.
    InDoubt,
    /// It has.
    Done,
}

/// What a batch has prepared.
#[derive(Debug)]
pub(super) struct Prepared {
    batch: BatchId,
    sink: Value,
    stage: Stage,
}

/// Keeps what the sink has just prepared, if it has two phases.
pub(super) fn keep(run: &mut QueryRun, batch: BatchId) -> Result<(), RuntimeError> {
    let Some(sink) = run.sink.take_prepared() else { return Ok(()) };
    run.prepared = Some(Prepared { batch, sink: sink.clone(), stage: Stage::Open });
    Ok(run.checkpoint.prepared().put(&PreparedEntry { batch, sink })?)
}

/// The batch is about to enter the commit log, with what this answers.
pub(super) fn about_to_be_done(run: &mut QueryRun) -> Option<Value> {
    let prepared = run.prepared.as_mut()?;
    prepared.stage = Stage::InDoubt;
    Some(prepared.sink.clone())
}

/// The commit log has the batch.
pub(super) fn is_done(run: &mut QueryRun) {
    if let Some(prepared) = &mut run.prepared {
        prepared.stage = Stage::Done;
    }
}

/// Commits what is done, now or when it could not be before.
///
/// # Errors
/// When the sink cannot, and may later; when it is not known whether the batch is done.
pub(super) fn commit(run: &mut QueryRun) -> Result<(), RuntimeError> {
    let Some(prepared) = run.prepared.as_ref().filter(|prepared| prepared.stage != Stage::Open) else { return Ok(()) };
    let batch = prepared.batch;
    if prepared.stage == Stage::InDoubt {
        return Err(RuntimeError::Invalid {
            reason: format!("it is not known whether batch {batch} is done, and its rows wait for that"),
            hint: Some("start the query again: it reads the commit log, and then commits or aborts them".into()),
        });
    }
    run.sink.commit(batch, &prepared.sink)?;
    run.prepared = None;
    Ok(run.checkpoint.prepared().remove(batch)?)
}

/// The batch has failed. What the commit log may have stays as it is.
pub(super) fn give_up(run: &mut QueryRun) {
    let Some(prepared) = run.prepared.take_if(|prepared| prepared.stage == Stage::Open) else { return };
    let aborted = run.sink.abort(prepared.batch, &prepared.sink).map_err(RuntimeError::from);
    let removed = aborted.and_then(|()| Ok(run.checkpoint.prepared().remove(prepared.batch)?));
    if let Err(error) = removed {
        // The next start finds it.
        tracing::warn!(batch = prepared.batch.0, "what was prepared is not aborted yet: {error}");
    }
}

/// What an earlier life left.
pub(super) struct Remains<'a> {
    pub(super) session: &'a Session,
    pub(super) spec: &'a QuerySpec,
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) host: &'a Arc<PluginHost>,
    pub(super) plugins: &'a [RunningPlugin],
}

impl Remains<'_> {
    /// Commits what is done and aborts what is not.
    ///
    /// # Errors
    /// When the sink cannot, or is not the one that prepared it.
    pub(super) fn end(&self, context: &SinkContext) -> Result<(), RuntimeError> {
        for PreparedEntry { batch, sink: left } in self.checkpoint.prepared().all()? {
            let mut sink = self.sink_of(batch, context.clone())?;
            let done = self.checkpoint.commit_log().get(batch)?;
            match done.and_then(|entry| entry.sink) {
                Some(prepared) => sink.commit(batch, &prepared)?,
                None => sink.abort(batch, &left)?,
            }
            sink.stop();
            self.checkpoint.prepared().remove(batch)?;
        }
        Ok(())
    }

    /// The sink of the query, with the code of a batch.
    fn sink_of(&self, batch: BatchId, context: SinkContext) -> Result<Box<dyn Sink>, RuntimeError> {
        let entry = self.checkpoint.offset_log().get(batch)?;
        let mut slots = Vec::new();
        for plugin in self.plugins {
            let slot = &plugin.slot;
            let pin = entry.as_ref().and_then(|entry| entry.plugins.get(slot.name()));
            slots.push(match pin.filter(|pin| pin.digest != slot.digest()) {
                None => Arc::clone(slot),
                Some(pin) => {
                    let component = self.host.load(slot.name(), &self.checkpoint.plugins().get(&pin.digest)?)?;
                    let (limits, policy) = (slot.limits().clone(), slot.policy());
                    let old = PluginSlot::new(slot.name(), Arc::clone(self.host), component, limits, policy);
                    old.check_granted(&old.component())?;
                    old
                }
            });
        }
        open::sink(&open::with_plugin_sink(self.session, self.spec, slots), self.spec, context)
    }
}
