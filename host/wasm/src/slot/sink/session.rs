//! From `open` to `close`, in one instance.

use std::ops::Range;
use std::time::Instant;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::FieldRef;
use millstream_common::OutputMode;

use super::{SinkOutcome, SinkTarget, agreed, flattened};
use crate::account::CpuClock;
use crate::call::{Failure, Instance};
use crate::error::WasmError;
use crate::export::Export;
use crate::signature::SinkSignature;
use crate::slot::code::Request;
use crate::slot::columns::{self, Encoded};
use crate::slot::faults::Faults;
use crate::slot::outcome::RowFault;
use crate::slot::{PluginMetrics, PluginSlot, locked, micros};
use crate::stamp::CallStamp;
use crate::wire::sink::{Close, FieldRef as WireField, Open, Prepare, ProcessRows, SinkMode};

/// Bytes that a token may have.
const TOKEN: usize = 64 << 10;

pub(super) struct Session<'a> {
    slot: &'a PluginSlot,
    request: &'a Request,
    number: u32,
    sink: &'a SinkSignature,
    target: &'a SinkTarget,
    /// Gone when it did not answer as it should.
    instance: Option<Instance>,
    stamp: CallStamp,
    clock: CpuClock,
    start: Instant,
    metrics: PluginMetrics,
}

/// What was taken so far.
#[derive(Default)]
struct Taken<'a> {
    rows: u64,
    faults: Vec<Faults<'a>>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        slot: &'a PluginSlot,
        request: &'a Request,
        (number, sink): (u32, &'a SinkSignature),
        target: &'a SinkTarget,
    ) -> Result<Self, WasmError> {
        let (clock, start) = (slot.admit()?, Instant::now());
        let instance = Some(slot.make_instance(request.component())?);
        let metrics = PluginMetrics::default();
        Ok(Self { slot, request, number, sink, target, instance, stamp: request.stamp, clock, start, metrics })
    }

    /// All of it.
    pub(super) fn write(
        mut self,
        (mode, fields): (OutputMode, &[FieldRef]),
        batches: &[RecordBatch],
    ) -> Result<SinkOutcome, WasmError> {
        let written = self.steps((mode, fields), batches);
        let (slot, cpu_us) = (self.slot, self.slot.settle(self.clock));
        let rows = batches.iter().map(|rows| rows.num_rows() as u64).sum();
        for account in &slot.accounts {
            account.count(self.metrics.calls, rows, self.metrics.traps);
        }
        let total = &mut *locked(&slot.metrics);
        total.cpu_us += cpu_us;
        total.calls += self.metrics.calls;
        total.traps += self.metrics.traps;
        total.rows += rows;
        total.faults += written.iter().map(|outcome| outcome.faults.len() as u64).sum::<u64>();
        total.time_us += micros(self.start.elapsed());
        written
    }

    fn steps(
        &mut self,
        (mode, fields): (OutputMode, &[FieldRef]),
        batches: &[RecordBatch],
    ) -> Result<SinkOutcome, WasmError> {
        let is_wanted = self.open(mode, fields).map_err(|failure| self.error("open", failure))?;
        let taken = if is_wanted { self.rows(fields, batches) } else { Ok(Taken::default()) };
        let prepared = taken.and_then(|taken| Ok((taken, self.prepare(is_wanted)?)));
        let (taken, token) = match prepared {
            Ok(done) => done,
            Err(error) => {
                self.close_after(&error);
                return Err(error);
            }
        };
        if let Err(failure) = self.call::<Close, _>((None,), Ok) {
            let error = self.error("close", failure);
            self.give_up(token.as_deref());
            return Err(error);
        }
        let faults: Vec<RowFault> = taken.faults.into_iter().flat_map(Faults::end).collect();
        Ok(SinkOutcome { is_wanted, rows: taken.rows, faults, token })
    }

    fn open(&mut self, mode: OutputMode, fields: &[FieldRef]) -> Result<bool, Failure> {
        let nodes = flattened(fields).map_err(Failure::Engine)?;
        let columns: Vec<WireField<'_>> = nodes
            .iter()
            .map(|(name, format, nullable, children)| WireField {
                name,
                format,
                nullable: *nullable,
                children: *children,
            })
            .collect();
        let mode = match mode {
            OutputMode::Append => SinkMode::Append,
            OutputMode::Update => SinkMode::Update,
            OutputMode::Complete => SinkMode::Complete,
        };
        let (number, target) = (self.number, self.target);
        target.lowered(|target| self.call::<Open, _>((number, target, mode, &columns), Ok))
    }

    /// Hands all rows over, in calls as large as the limits let them be.
    fn rows(&mut self, fields: &[FieldRef], batches: &[RecordBatch]) -> Result<Taken<'a>, WasmError> {
        let mut taken = Taken::default();
        let mut before = 0;
        for batch in batches {
            let columns = agreed(batch, fields).map_err(|reason| self.slot.bad_call(&self.named("process"), reason))?;
            let shown = (fields.to_vec(), columns.clone());
            let mut faults = Faults::of_rows_after(self.slot, self.request, &self.sink.name, shown, before);
            let mut next = 0;
            while next < batch.num_rows() {
                let len = columns::call_len(&columns, next..batch.num_rows(), &self.slot.limits);
                let range = next..next + len;
                next = range.end;
                self.stamp.row = (before + range.start) as u64;
                let mut errors = self.process(&columns, &range).map_err(|failure| self.error("process", failure))?;
                taken.rows += (range.len() - errors.len()) as u64;
                let start = u32::try_from(range.start).unwrap_or(u32::MAX);
                errors.iter_mut().for_each(|(row, _)| *row += start);
                faults.keep(&errors)?;
            }
            before += batch.num_rows();
            taken.faults.push(faults);
        }
        Ok(taken)
    }

    fn process(&mut self, columns: &[ArrayRef], range: &Range<usize>) -> Result<columns::RowErrors, Failure> {
        let encoded = Encoded::of(&columns::sliced(columns, range), range.len())?;
        let slices = encoded.slices();
        self.call::<ProcessRows, _>((encoded.batch(&slices),), |errors| columns::row_errors(errors, range.len()))
    }

    fn prepare(&mut self, is_wanted: bool) -> Result<Option<Vec<u8>>, WasmError> {
        if !is_wanted || !self.sink.transactional {
            return Ok(None);
        }
        let token = self.call::<Prepare, _>((), Ok).map_err(|failure| self.error("prepare", failure))?;
        if token.len() > TOKEN {
            self.give_up(Some(&token));
            let reason = format!("a token of {} bytes, more than {TOKEN}", token.len());
            return Err(WasmError::Garbage { plugin: self.slot.name.clone(), function: self.named("prepare"), reason });
        }
        Ok(Some(token))
    }

    /// Closes what failed, if there is somebody left to be told.
    fn close_after(&mut self, error: &WasmError) {
        if self.instance.is_none() {
            return;
        }
        let text = error.to_string();
        if let Err(failure) = self.call::<Close, _>((Some(text.as_str()),), Ok) {
            let error = self.error("close", failure);
            tracing::warn!(plugin = %self.slot.name, "after a failure it did not close either: {error}");
        }
    }

    /// The rows were prepared, and the partition failed all the same.
    fn give_up(&self, token: Option<&[u8]>) {
        let Some(token) = token else { return };
        if let Err(error) = self.slot.abort_sink(&self.sink.name, self.target, token) {
            tracing::warn!(plugin = %self.slot.name, "prepared rows could not be dropped: {error}");
        }
    }

    fn call<E: Export, T>(
        &mut self,
        params: E::Params<'_>,
        check: impl FnOnce(E::Output) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let Some(mut instance) = self.instance.take() else {
            return Err(Failure::Engine("a call without an instance".into()));
        };
        self.metrics.calls += 1;
        instance.stamp(self.stamp);
        let result =
            instance.call::<E>(&self.slot.limits, params).and_then(|output| check(output).map_err(Failure::Garbage));
        match result {
            Ok(_) | Err(Failure::Refused(_) | Failure::Unavailable(_)) => self.instance = Some(instance),
            Err(_) => self.metrics.traps += 1,
        }
        result
    }

    fn named(&self, function: &str) -> String {
        format!("{}.{function}", self.sink.name)
    }

    fn error(&self, function: &str, failure: Failure) -> WasmError {
        failure.into_error(&self.slot.name, &self.named(function))
    }
}
