//! A query on a fork of its checkpoint: batches are run again as they were defined, with the code that they had or with
//! other code, and what comes out is kept and reaches nobody.
//!
//! ```text
//!   checkpoint ──ForkedFiles──► QueryRun, recovered as after a crash in batch N ──► N, N+1, … ──► rows, state files
//!        │                          │ sources read what the offset log says           (collector)   (the fork's own)
//!        └─ never written           └─ components of the log, or a candidate's
//! ```
//!
//! Beside the loop: replay, the dry run before a swap, and a shadow are made of it. It is the code of a run and nothing
//! else, so what a fork shows is what a run would do.
//!
//! Rule of its life: no row leaves it, no source is told to forget, nothing is written to the checkpoint below.

mod collector;

pub(crate) use collector::Output;

use super::batch::{inputs, probe};
use super::input_digest::InputPins;
use super::progress::Progress;
use super::run::{Ground, QueryRun};
use super::tap::LiveBatch;
use crate::{QuerySpec, RuntimeError, Session};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use collector::{Collector, FORMAT};
use millstream_checkpoint::{ForkedFiles, OffsetEntry};
use millstream_common::{BatchId, DurableFiles, OperatorUid, Options, StopSignal, Trigger};
use millstream_plan::SourceSlot;
use millstream_sink::SinkSpec;
use millstream_state::StateManifest;
use millstream_wasm::FaultPolicy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What runs on a fork.
#[derive(Clone)]
pub(crate) struct ForkOptions {
    /// Takes what the fork writes.
    pub(crate) own: Arc<dyn DurableFiles>,
    /// Components in place of those that the log names, by plugin.
    pub(crate) components: BTreeMap<String, Vec<u8>>,
    /// Whether every call gets a fresh instance: what an instance remembers then shows.
    pub(crate) is_forgetful: bool,
    /// Whether rows at which a plugin fails become dead letters, whatever the query says.
    pub(crate) keeps_failing_rows: bool,
    /// Whether rows are handed over, so that no source is opened.
    pub(crate) is_fed: bool,
}

impl ForkOptions {
    /// A fork in memory that runs the code of the log.
    pub(crate) fn in_memory() -> Result<Self, RuntimeError> {
        Ok(Self {
            own: millstream_checkpoint::open_files("memory:///", &[])?,
            components: BTreeMap::new(),
            is_forgetful: false,
            keeps_failing_rows: false,
            is_fed: false,
        })
    }
}

/// A query on a fork.
pub(crate) struct Fork {
    run: QueryRun,
    collector: Collector,
}

/// A batch that was run on a fork.
pub(crate) struct Ran {
    /// The rows that would have gone to the sink.
    pub(crate) output: Output,
    /// What the run told of it.
    pub(crate) progress: Progress,
}

impl Ran {
    /// How many rows came out.
    pub(crate) fn rows(&self) -> u64 {
        self.output.rows.iter().map(|rows| rows.num_rows() as u64).sum()
    }

    /// Microseconds in a plugin.
    pub(crate) fn time_us(&self, plugin: &str) -> u64 {
        self.progress.plugins.iter().filter(|told| told.name == plugin).map(|told| told.time_us).sum()
    }
}

impl Fork {
    /// Forks the checkpoint in `base` where batch `first` is defined and not done. The next call of
    /// [`run`](Self::run) must be for that batch.
    ///
    /// # Errors
    /// As when a query is started.
    pub(crate) fn before(
        session: &Session,
        spec: &QuerySpec,
        base: Arc<dyn DurableFiles>,
        first: BatchId,
        options: ForkOptions,
    ) -> Result<Self, RuntimeError> {
        let files = ForkedFiles::before(base, Arc::clone(&options.own), first);
        Self::on(session, spec, Arc::new(files), options)
    }

    fn on(
        session: &Session,
        spec: &QuerySpec,
        files: Arc<dyn DurableFiles>,
        options: ForkOptions,
    ) -> Result<Self, RuntimeError> {
        for stream in &spec.streams {
            if !options.is_fed && !session.sources().factory(&stream.source)?.can_be_read_twice() {
                let (name, format) = (&stream.source.name, &stream.source.format);
                let reason = format!("what source `{name}` ({format}) gave cannot be read a second time");
                return Err(RuntimeError::Invalid { reason, hint: None });
            }
        }
        let collector = Collector::default();
        let session = session.with_sink(FORMAT, Arc::new(collector.clone()));
        let mut spec = spec.clone();
        spec.sink = SinkSpec { format: FORMAT.to_owned(), options: Options::new() };
        spec.checkpoint = Some(files.location());
        spec.late_rows = None;
        spec.trigger = Trigger::Default;
        // Nothing is cleaned up, and nothing is written that nobody will read.
        spec.settings.batches_retained = u64::MAX;
        spec.settings.changelogs_before_snapshot = usize::MAX;
        for plugin in &mut spec.plugins {
            plugin.limits.recycle_every_call |= options.is_forgetful;
            if options.keeps_failing_rows {
                plugin.on_fault = FaultPolicy::DeadLetter;
            }
        }
        let place = files.location();
        let ground =
            Ground { place, files, temporary: None, components: Some(options.components), is_fed: options.is_fed };
        Ok(Self { run: QueryRun::open_on(&session, spec, StopSignal::new(), ground)?, collector })
    }

    /// Runs a batch as it was defined. After the first, each must follow the one before.
    ///
    /// # Errors
    /// As when it was run the first time.
    pub(crate) fn run(&mut self, entry: &OffsetEntry) -> Result<Ran, RuntimeError> {
        if entry.batch != self.run.next {
            let reason = format!("batch {} cannot be run on a fork whose next batch is {}", entry.batch, self.run.next);
            return Err(RuntimeError::Invalid { reason, hint: None });
        }
        self.run.unfinished = Some(Arc::new(entry.clone()));
        let progress = self.run.run_next()?.ok_or_else(|| RuntimeError::Invalid {
            reason: format!("batch {} gave no answer on a fork", entry.batch),
            hint: None,
        })?;
        Ok(Ran { output: self.collector.take(), progress })
    }

    /// Runs a batch that a running query has done, on the rows that it read.
    ///
    /// # Errors
    /// When the code fails, or wants other columns of the sources.
    pub(crate) fn run_on(&mut self, live: &LiveBatch) -> Result<Ran, RuntimeError> {
        if self.run.slots != live.slots {
            let reason = "it wants other columns of the sources than the running code".to_owned();
            return Err(RuntimeError::Invalid { reason, hint: None });
        }
        self.run.fed = Some(live.inputs.clone());
        self.run(&live.entry)
    }

    /// The rows that a batch reads, per place where they enter.
    ///
    /// # Errors
    /// When they are no longer there.
    pub(crate) fn read_inputs(&mut self, entry: &OffsetEntry) -> Result<Vec<Vec<RecordBatch>>, RuntimeError> {
        inputs(&mut self.run, entry)
    }

    /// What a batch gives on other rows than its own; the state stays as it was before, so that it can be asked again.
    ///
    /// # Errors
    /// When the batch is not the next one, or the code fails.
    pub(crate) fn probe(
        &mut self,
        entry: &OffsetEntry,
        inputs: &[Vec<RecordBatch>],
    ) -> Result<Vec<RecordBatch>, RuntimeError> {
        if entry.batch != self.run.next {
            let reason = format!("batch {} cannot be run on a fork whose next batch is {}", entry.batch, self.run.next);
            return Err(RuntimeError::Invalid { reason, hint: None });
        }
        probe(&mut self.run, entry, inputs.to_vec())
    }

    /// The columns of a source that the query reads.
    pub(crate) fn source_schema(&self, stream: &str) -> Option<SchemaRef> {
        self.run.sources.iter().find(|source| source.name == stream).map(|source| source.source.schema())
    }

    /// Where rows enter.
    pub(crate) fn slots(&self) -> &[SourceSlot] {
        &self.run.slots
    }

    /// The columns of the result.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.run.schema)
    }

    /// Passes over a batch that only made state anew.
    pub(crate) fn pass(&mut self, entry: &OffsetEntry) {
        self.run.unfinished = None;
        self.run.next = entry.batch.next();
    }

    /// What the last batch read of sources that are on their word.
    pub(crate) fn inputs(&self) -> InputPins {
        self.run.read_before.as_ref().map(|(_, pins)| pins.clone()).unwrap_or_default()
    }

    /// The state files after the last batch, per operator and partition.
    pub(crate) fn state(&self) -> BTreeMap<OperatorUid, Vec<StateManifest>> {
        self.run.retained.back().map(|(_, manifests)| manifests.clone()).unwrap_or_default()
    }

    /// The fork's checkpoint, for reading.
    pub(crate) fn checkpoint(&self) -> &millstream_checkpoint::Checkpoint {
        &self.run.checkpoint
    }
}
