//! One function over one batch: split into calls, each checked.
//!
//! Serves every call that gives something per row: scalar functions, table functions, and the evaluation of states,
//! whose rows are states.

use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::datatypes::FieldRef;

use super::piece::Piece;
use crate::call::Failure;
use crate::error::WasmError;
use crate::slot::PluginSlot;
use crate::slot::caller::Caller;
use crate::slot::code::Request;
use crate::slot::columns::{self, Encoded};
use crate::slot::faults::Faults;
use crate::slot::isolation::{self, Work};
use crate::slot::outcome::RowFault;
use crate::wire::aggregate::Evaluate;
use crate::wire::function::{CallScalar, CallTable};

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::slot) enum Target {
    Scalar,
    Table,
    Evaluate,
}

/// A function and its columns.
#[derive(Debug, Clone, Copy)]
pub(in crate::slot) struct Asked<'a> {
    pub(in crate::slot) target: Target,
    pub(in crate::slot) number: u32,
    pub(in crate::slot) name: &'a str,
    pub(in crate::slot) arguments: &'a [FieldRef],
    pub(in crate::slot) results: &'a [FieldRef],
    pub(in crate::slot) nulls_passed: bool,
}

impl Asked<'_> {
    /// Whether there is one result per row.
    fn is_per_row(&self) -> bool {
        self.target != Target::Table
    }
}

pub(in crate::slot) struct Invocation<'a> {
    slot: &'a PluginSlot,
    asked: Asked<'a>,
    arguments: Vec<ArrayRef>,
    caller: Caller<'a>,
    faults: Faults<'a>,
}

impl<'a> Invocation<'a> {
    pub(in crate::slot) fn new(
        slot: &'a PluginSlot,
        request: &'a Request,
        asked: Asked<'a>,
        arguments: Vec<ArrayRef>,
    ) -> Self {
        let faults = Faults::new(slot, request, asked.name, asked.arguments, arguments.clone());
        Self { slot, asked, arguments, caller: Caller::new(slot, request), faults }
    }

    /// Computes all rows.
    pub(in crate::slot) fn run(mut self, rows: usize) -> Result<(Vec<Piece>, Vec<RowFault>), WasmError> {
        let slot = self.slot;
        let result = isolation::pieces(&mut self, rows, slot.policy, &slot.limits);
        let output_rows = result.iter().flatten().map(Piece::output_rows).sum();
        // States that are evaluated were counted as rows when they were accumulated.
        let rows = if self.asked.target == Target::Evaluate { 0 } else { rows };
        self.caller.end(rows, output_rows, self.faults.len());
        Ok((result?, self.faults.end()))
    }

    fn attempt(&mut self, columns: &[ArrayRef], rows: usize) -> Result<Piece, Failure> {
        let encoded = Encoded::of(columns, rows)?;
        let slices = encoded.slices();
        let params = (self.asked.number, encoded.batch(&slices));
        let results = self.asked.results;
        match self.asked.target {
            Target::Scalar => self.caller.call::<CallScalar, _>(params, |output| {
                Piece::of_values(results, output.values, output.row_errors, rows)
            }),
            Target::Evaluate => self.caller.call::<Evaluate, _>(params, |output| {
                Piece::of_values(results, output.values, output.row_errors, rows)
            }),
            Target::Table => self.caller.call::<CallTable, _>(params, |output| Piece::of_table(results, output, rows)),
        }
    }
}

impl Work for Invocation<'_> {
    type Piece = Piece;

    fn call_len(&self, rest: Range<usize>) -> usize {
        columns::call_len(&self.arguments, rest, &self.slot.limits)
    }

    fn compute(&mut self, range: &Range<usize>) -> Result<Piece, Failure> {
        let rows = range.len();
        self.caller.begin_at(range.start);
        let arguments = columns::sliced(&self.arguments, range);
        if self.asked.nulls_passed {
            return self.attempt(&arguments, rows);
        }
        let Some(kept) = columns::rows_without_nulls(&arguments) else { return self.attempt(&arguments, rows) };
        let per_row = self.asked.is_per_row();
        if kept.is_empty() {
            return Ok(Piece::of_faulty_rows(self.asked.results, per_row, rows));
        }
        let piece = self.attempt(&columns::taken(&arguments, &kept)?, kept.len())?;
        piece.spread(&kept, rows, per_row).map_err(Failure::Engine)
    }

    fn accept(&mut self, mut piece: Piece, range: &Range<usize>) -> Result<Piece, WasmError> {
        piece.shift(range);
        self.faults.keep(&piece.row_errors)?;
        Ok(piece)
    }

    fn error(&self, failure: Failure, range: &Range<usize>) -> WasmError {
        self.faults.error(failure, range)
    }

    fn fault(&mut self, range: &Range<usize>, error: &str) -> Result<Piece, WasmError> {
        self.faults.record(range, error)?;
        Ok(Piece::of_faulty_rows(self.asked.results, self.asked.is_per_row(), range.len()))
    }
}
