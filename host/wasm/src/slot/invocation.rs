//! One function over one batch: split into calls, each checked; rows at fault found by halving.
//!
//! Under [`FaultPolicy::Fail`] the first fault ends it. Under the other policies a call that fails as a whole is cut
//! in two, and the halves are called again, until single rows are left: those are at fault. That costs calls and
//! time, so both are limited per batch: when `isolation_calls` failed calls are spent, ranges that fail are at fault
//! as a whole; when `isolation_time` is spent too, so is every range not yet computed.
//!
//! Rule of its life: pieces come in the order of the rows and cover them all. A failure in a used instance counts
//! only when a fresh one fails too (except a passed deadline), so output does not depend on what ran before.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute;
use arrow::datatypes::{Field, Schema};
use arrow::json::writer::{LineDelimited, WriterBuilder};

use super::outcome::{DeadLetter, FaultPolicy, PluginMetrics, RowFault};
use super::piece::Piece;
use super::{PluginSlot, locked};
use crate::call::{Failure, Instance, cut};
use crate::component::Component;
use crate::error::WasmError;
use crate::layout::encode;
use crate::signature::{FunctionKind, FunctionSignature};
use crate::stamp::CallStamp;
use crate::wire::BatchRef;

pub(super) struct Invocation<'a> {
    slot: &'a PluginSlot,
    component: &'a Arc<Component>,
    function: u32,
    signature: &'a FunctionSignature,
    arguments: Vec<ArrayRef>,
    instance: Option<(Instance, bool)>,
    faults: Vec<RowFault>,
    letters: Vec<DeadLetter>,
    metrics: PluginMetrics,
    first_failure: Option<Instant>,
    failed_calls: u32,
    stamp: CallStamp,
}

impl<'a> Invocation<'a> {
    pub(super) fn new(
        slot: &'a PluginSlot,
        component: &'a Arc<Component>,
        function: u32,
        signature: &'a FunctionSignature,
        arguments: Vec<ArrayRef>,
    ) -> Self {
        Self {
            slot,
            component,
            function,
            signature,
            arguments,
            instance: None,
            faults: Vec::new(),
            letters: Vec::new(),
            metrics: PluginMetrics::default(),
            first_failure: None,
            failed_calls: 0,
            stamp: slot.take_stamp(),
        }
    }

    /// Computes all rows.
    pub(super) fn run(mut self, rows: usize) -> Result<(Vec<Piece>, Vec<RowFault>), WasmError> {
        let clock = self.slot.admit()?;
        let start = Instant::now();
        let result = self.pieces(rows);
        if let Some((instance, _)) = self.instance.take() {
            self.slot.give_back(self.component, instance);
        }
        let cpu_us = self.slot.settle(clock);
        let total = &mut *locked(&self.slot.metrics);
        total.cpu_us += cpu_us;
        total.calls += self.metrics.calls;
        total.traps += self.metrics.traps;
        total.rows += rows as u64;
        total.faults += self.faults.len() as u64;
        total.time_us += u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let pieces = result?;
        total.output_rows += pieces.iter().map(|piece| piece.output_rows() as u64).sum::<u64>();
        locked(&self.slot.dead_letters).append(&mut self.letters);
        Ok((pieces, self.faults))
    }

    fn pieces(&mut self, rows: usize) -> Result<Vec<Piece>, WasmError> {
        let mut pieces = Vec::new();
        let mut open: Vec<Range<usize>> = Vec::new();
        let mut next = 0;
        loop {
            let range = match open.pop() {
                Some(range) => range,
                None if next < rows => {
                    let range = next..next + self.call_len(next, rows);
                    next = range.end;
                    range
                }
                None => return Ok(pieces),
            };
            if self.out_of_time() {
                let spent = "not computed: the time for finding faulty rows of this batch is spent";
                pieces.push(self.fault(&range, spent)?);
                continue;
            }
            match self.compute(&range) {
                Ok(mut piece) => {
                    piece.shift(&range);
                    self.keep_row_errors(&piece)?;
                    pieces.push(piece);
                }
                Err(failure) => {
                    if self.slot.policy == FaultPolicy::Fail || !failure.is_of_rows() {
                        return Err(self.error(failure, &range));
                    }
                    self.first_failure.get_or_insert_with(Instant::now);
                    self.failed_calls += 1;
                    if range.len() > 1 && self.failed_calls < self.slot.limits.isolation_calls {
                        let middle = range.start + range.len() / 2;
                        open.push(middle..range.end);
                        open.push(range.start..middle);
                    } else {
                        let error = self.error(failure, &range).to_string();
                        pieces.push(self.fault(&range, &error)?);
                    }
                }
            }
        }
    }

    /// How many rows from `start` go into one call.
    fn call_len(&self, start: usize, rows: usize) -> usize {
        let limits = &self.slot.limits;
        let mut len = (rows - start).min(limits.rows_per_call.max(1));
        let bytes =
            |len| self.arguments.iter().map(|column| encode::encoded_len(&column.slice(start, len))).sum::<usize>();
        while len > 1 && bytes(len) > limits.argument_bytes_per_call {
            len = len.div_ceil(2);
        }
        len
    }

    fn out_of_time(&self) -> bool {
        let limit: Duration = self.slot.limits.isolation_time;
        self.first_failure.is_some_and(|first| first.elapsed() > limit)
    }

    fn compute(&mut self, range: &Range<usize>) -> Result<Piece, Failure> {
        let rows = range.len();
        self.stamp.row = range.start as u64;
        let columns: Vec<ArrayRef> = self.arguments.iter().map(|column| column.slice(range.start, rows)).collect();
        if self.signature.nulls_passed {
            return self.attempt(&columns, rows);
        }
        let union = columns.iter().fold(None, |all, column| {
            NullBuffer::union(all.as_ref(), column.nulls().filter(|nulls| nulls.null_count() > 0))
        });
        let Some(nulls) = union else { return self.attempt(&columns, rows) };
        let kept: Vec<u32> = (0..).zip(nulls.iter()).filter_map(|(row, valid)| valid.then_some(row)).collect();
        let scalar = self.is_scalar();
        if kept.is_empty() {
            return Ok(Piece::of_faulty_rows(self.signature, scalar, rows));
        }
        let places = UInt32Array::from(kept.clone());
        let engine = |e: arrow::error::ArrowError| Failure::Engine(e.to_string());
        let taken = columns.iter().map(|column| compute::take(column, &places, None)).collect::<Result<Vec<_>, _>>();
        let piece = self.attempt(&taken.map_err(engine)?, kept.len())?;
        piece.spread(&kept, rows, scalar).map_err(Failure::Engine)
    }

    /// One call; a second one in a fresh instance when a used one may be to blame.
    fn attempt(&mut self, columns: &[ArrayRef], rows: usize) -> Result<Piece, Failure> {
        let mut buffers = Vec::new();
        for column in columns {
            encode::encode(column, &mut buffers).map_err(Failure::Engine)?;
        }
        let buffers: Vec<&[u8]> = buffers.iter().map(|buffer| buffer.as_slice()).collect();
        let rows_u32 = u32::try_from(rows).map_err(|_| Failure::Engine(format!("{rows} rows in one call")))?;
        let batch = BatchRef { rows: rows_u32, buffers: &buffers };
        let start = |error| Failure::Start(Box::new(error));
        let used = self.ensure_instance().map_err(start)?;
        match self.call(batch, rows) {
            Err(failure) if used && failure.may_be_stale() => {
                self.ensure_instance().map_err(start)?;
                self.call(batch, rows)
            }
            result => result,
        }
    }

    /// Makes sure there is an instance; answers whether it has been called before.
    fn ensure_instance(&mut self) -> Result<bool, WasmError> {
        if let Some((_, used)) = &self.instance {
            return Ok(*used);
        }
        let (instance, used) = self.slot.take_instance(self.component)?;
        self.instance = Some((instance, used));
        Ok(used)
    }

    fn call(&mut self, batch: BatchRef<'_>, rows: usize) -> Result<Piece, Failure> {
        let Some((mut instance, _)) = self.instance.take() else {
            return Err(Failure::Engine("a call without an instance".into()));
        };
        self.metrics.calls += 1;
        instance.stamp(self.stamp);
        let limits = &self.slot.limits;
        let fields = &self.signature.results;
        let result = match (self.signature.kind, fields.first()) {
            (FunctionKind::Scalar, Some(field)) => instance
                .call_scalar(limits, self.function, batch)
                .and_then(|output| Piece::of_scalar(field, output, rows).map_err(Failure::Garbage)),
            _ => instance
                .call_table(limits, self.function, batch)
                .and_then(|output| Piece::of_table(fields, output, rows).map_err(Failure::Garbage)),
        };
        let sound = matches!(result, Ok(_) | Err(Failure::Refused(_) | Failure::Unavailable(_)));
        if !sound {
            self.metrics.traps += 1;
        } else if !limits.recycle_every_call {
            self.instance = Some((instance, true));
        }
        result
    }

    fn is_scalar(&self) -> bool {
        self.signature.kind == FunctionKind::Scalar
    }

    fn error(&self, failure: Failure, range: &Range<usize>) -> WasmError {
        let mut error = failure.into_error(&self.slot.name, &self.signature.name);
        if let WasmError::Refused { what, .. } = &mut error
            && range.len() == 1
        {
            *what = format!("row {} of the batch", range.start);
        }
        error
    }

    fn keep_row_errors(&mut self, piece: &Piece) -> Result<(), WasmError> {
        for (row, message) in &piece.row_errors {
            if self.slot.policy == FaultPolicy::Fail {
                return Err(WasmError::Refused {
                    plugin: self.slot.name.clone(),
                    function: self.signature.name.clone(),
                    what: format!("row {row} of the batch"),
                    message: cut(message),
                });
            }
            let row = *row as usize;
            self.record(&(row..row + 1), message)?;
        }
        Ok(())
    }

    /// All rows of `range` are at fault.
    fn fault(&mut self, range: &Range<usize>, error: &str) -> Result<Piece, WasmError> {
        self.record(range, error)?;
        Ok(Piece::of_faulty_rows(self.signature, self.is_scalar(), range.len()))
    }

    fn record(&mut self, range: &Range<usize>, error: &str) -> Result<(), WasmError> {
        let rows = range.clone().filter_map(|row| u32::try_from(row).ok());
        self.faults.extend(rows.map(|row| RowFault { row, error: error.to_owned() }));
        if self.slot.policy == FaultPolicy::DeadLetter {
            let lines = self.json(range).map_err(|e| self.slot.bad_call(&self.signature.name, e.to_string()))?;
            self.letters.extend(lines.into_iter().map(|arguments| DeadLetter {
                function: self.signature.name.clone(),
                digest: self.component.digest(),
                message: error.to_owned(),
                arguments,
            }));
        }
        Ok(())
    }

    /// The arguments of each row of `range` as one JSON object.
    fn json(&self, range: &Range<usize>) -> Result<Vec<String>, arrow::error::ArrowError> {
        if self.arguments.is_empty() {
            return Ok(vec!["{}".to_owned(); range.len()]);
        }
        let nullable = |field: &Arc<Field>| Arc::new(Field::clone(field).with_nullable(true));
        let schema = Schema::new(self.signature.arguments.iter().map(nullable).collect::<Vec<_>>());
        let columns = self.arguments.iter().map(|column| column.slice(range.start, range.len())).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(range.len()));
        let batch = RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?;
        let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
        writer.write(&batch)?;
        writer.finish()?;
        let text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
        Ok(text.lines().map(str::to_owned).collect())
    }
}
