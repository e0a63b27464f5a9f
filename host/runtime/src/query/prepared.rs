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
use millstream_checkpoint::{Checkpoint, CheckpointError, CommitEntry, PreparedEntry};
use millstream_common::{BatchId, Hint, describe_chain};
use millstream_sink::{Sink, SinkContext};
use millstream_wasm::{PluginHost, PluginSlot};
use serde_json::Value;
use std::sync::Arc;

/// How far what was prepared has come.
#[derive(Debug, Clone)]
enum Stage {
    /// The commit log does not have the batch.
    Open,
    /// It may have: so its entry failed.
    InDoubt(Arc<CheckpointError>),
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

/// What the entry of the commit log says of it.
pub(super) fn of_entry(run: &QueryRun) -> Option<Value> {
    run.prepared.as_ref().map(|prepared| prepared.sink.clone())
}

/// The entry of the commit log failed. `Ok` when it is there all the same, with what this run has prepared.
///
/// # Errors
/// The failure; with something prepared it is not known whether the batch is done.
pub(super) fn in_doubt(run: &mut QueryRun, batch: BatchId, error: CheckpointError) -> Result<(), RuntimeError> {
    let Some(prepared) = run.prepared.as_mut() else { return Err(error.into()) };
    // That it is not there proves nothing: a store may write late what it has not answered.
    if error.may_pass() && run.checkpoint.commit_log().get(batch).is_ok_and(|entry| is_of(entry, &prepared.sink)) {
        tracing::warn!(batch = batch.0, "the batch is done, though its entry failed: {}", describe_chain(&error));
        return Ok(());
    }
    let source = Arc::new(error);
    prepared.stage = Stage::InDoubt(Arc::clone(&source));
    Err(RuntimeError::InDoubt { batch, source })
}

/// Whether a batch is done with what was prepared.
fn is_of(entry: Option<CommitEntry>, prepared: &Value) -> bool {
    entry.and_then(|entry| entry.sink).as_ref() == Some(prepared)
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
    let Some(prepared) = &run.prepared else { return Ok(()) };
    let batch = prepared.batch;
    match &prepared.stage {
        Stage::Open => return Ok(()),
        Stage::InDoubt(source) => return Err(RuntimeError::InDoubt { batch, source: Arc::clone(source) }),
        Stage::Done => {}
    }
    run.sink.commit(batch, &prepared.sink)?;
    // Forgotten only when the file is gone: as long as it is there, a start would ask what became of it.
    run.checkpoint.prepared().remove(batch)?;
    run.prepared = None;
    Ok(())
}

/// The batch has failed so. What the commit log may have stays as it is.
pub(super) fn give_up(run: &mut QueryRun, failure: &RuntimeError) {
    let Some(prepared) = run.prepared.take_if(|prepared| matches!(prepared.stage, Stage::Open)) else { return };
    let aborted = run.sink.abort(prepared.batch, &prepared.sink).map_err(RuntimeError::from);
    let ended = aborted.and_then(|()| match is_of_another(failure) {
        // The file may be that of the run that has the checkpoint now.
        true => Ok(()),
        false => Ok(run.checkpoint.prepared().remove(prepared.batch)?),
    });
    if let Err(error) = ended {
        // The next start finds it.
        tracing::warn!(batch = prepared.batch.0, "what was prepared is not aborted yet: {error}");
    }
}

/// Whether the checkpoint is another run's.
fn is_of_another(failure: &RuntimeError) -> bool {
    matches!(failure, RuntimeError::Checkpoint(CheckpointError::LeaseLost { .. } | CheckpointError::Fenced { .. }))
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
        let left = self.checkpoint.prepared().all()?;
        let newest = match left.is_empty() {
            true => return Ok(()),
            false => self.checkpoint.commit_log().batches()?.last().copied(),
        };
        for PreparedEntry { batch, sink: left } in left {
            match (self.checkpoint.commit_log().get(batch)?, newest) {
                // So old that its entry is gone: the batches after it are done, and before them its rows were committed.
                (None, Some(newest)) if batch <= newest => {}
                (done, _) => {
                    let mut sink = self.sink_of(batch, context.clone())?;
                    match done.and_then(|entry| entry.sink) {
                        Some(prepared) => sink.commit(batch, &prepared)?,
                        None => sink.abort(batch, &left)?,
                    }
                    sink.stop();
                }
            }
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
