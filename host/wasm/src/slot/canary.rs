//! A canary: a candidate computes a slice of the keys, the running code the rest.
//!
//! ```text
//!   rows, keys ──► slice ──► candidate ────► answers ──► the query
//!            │         └───► running code ──► answers ──► compared, and forgotten
//!            └────► rest ──► running code ──► answers ──► the query
//! ```
//!
//! Stateful operators say by their [`Scope`] whether the keys of a call are of the slice. Scalar and table functions know
//! no keys: their rows are chosen by a hash of the arguments, here. The running code computes the slice as well, from the
//! same rows and the same state, so that what the candidate costs and changes is told by the same work.
//!
//! Rule of its life: a candidate that fails where the running code does not ends the canary. Then the request fails, and
//! whoever runs the batch runs it again without the candidate: a batch never has answers of a candidate that failed in it.
//!
//! It decides nothing about what comes after the batch.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{interleave, take};
use arrow::row::{RowConverter, SortField};
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::code::{Code, Request, Role};
use super::outcome::{RowFault, ScalarOutcome, TableOutcome};
use super::{PluginSlot, locked};
use crate::component::Component;
use crate::error::WasmError;
use crate::scope::Scope;
use crate::slice::Slice;

/// What a canary has shown since it was last asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanaryFigures {
    /// Calls of operators.
    pub calls: u64,
    /// Rows in them.
    pub rows: u64,
    /// CPU time of the candidate, in microseconds.
    pub candidate_us: u64,
    /// CPU time of the running code for the same, in microseconds.
    pub current_us: u64,
    /// Rows, groups and keys at which the two answered otherwise.
    pub differing: u64,
    /// One of them, for people.
    pub example: Option<String>,
}

/// A candidate at work.
pub(super) struct Canary {
    pub(super) code: Arc<Code>,
    pub(super) slice: Slice,
    expects_same: bool,
    figures: Mutex<CanaryFigures>,
    failure: Mutex<Option<String>>,
}

impl Canary {
    /// Adds CPU time of the candidate, or of the running code that it is held against.
    pub(super) fn count(&self, role: Role, cpu_us: u64) {
        let mut figures = locked(&self.figures);
        match role {
            Role::Answer => figures.candidate_us += cpu_us,
            Role::Check => figures.current_us += cpu_us,
        }
    }
}

impl PluginSlot {
    /// Lets a candidate compute a slice of the keys from the next call on; whoever asks has checked that it fits, as
    /// [`check_swap`](Self::check_swap) does. With `expects_same` an answer that differs is a failure.
    pub fn begin_canary(&self, candidate: Arc<Component>, slice: Slice, expects_same: bool) {
        let mut place = self.canary.write().unwrap_or_else(PoisonError::into_inner);
        let known = place.take();
        // The same candidate keeps its instances.
        let code =
            known.filter(|known| Arc::ptr_eq(&known.code.component, &candidate)).map(|known| Arc::clone(&known.code));
        let (figures, failure) = (Mutex::default(), Mutex::default());
        let code = code.unwrap_or_else(|| Code::new(candidate));
        *place = Some(Arc::new(Canary { code, slice, expects_same, figures, failure }));
    }

    /// Lets the running code compute all keys from the next call on.
    pub fn end_canary(&self) {
        *self.canary.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The slice that a candidate computes, while one does.
    pub fn slice(&self) -> Option<Slice> {
        self.canary().map(|canary| canary.slice)
    }

    /// The candidate that computes a slice, while one does.
    pub fn candidate(&self) -> Option<Arc<Component>> {
        self.canary().map(|canary| Arc::clone(&canary.code.component))
    }

    /// What the canary has shown since the last question; `None` without one.
    pub fn take_canary_figures(&self) -> Option<CanaryFigures> {
        self.canary().map(|canary| std::mem::take(&mut *locked(&canary.figures)))
    }

    /// Why the candidate has failed, if it has.
    pub fn canary_failure(&self) -> Option<String> {
        self.canary().and_then(|canary| locked(&canary.failure).clone())
    }

    pub(super) fn canary(&self) -> Option<Arc<Canary>> {
        self.canary.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(Arc::clone)
    }

    /// Answers a call about keys, of which this thread's scope says whether they are of the slice.
    pub(super) fn of_keys<T: Answer>(
        &self,
        rows: usize,
        run: impl Fn(&Request) -> Result<T, WasmError>,
    ) -> Result<T, WasmError> {
        match self.canary() {
            Some(canary) if Scope::current().is_slice => self.of_slice(&canary, rows, run),
            _ => run(&self.request()),
        }
    }

    /// Answers a call about rows of the slice.
    fn of_slice<T: Answer>(
        &self,
        canary: &Arc<Canary>,
        rows: usize,
        run: impl Fn(&Request) -> Result<T, WasmError>,
    ) -> Result<T, WasmError> {
        let check = Request { role: Role::Check, canary: Some(Arc::clone(canary)), ..self.request() };
        let request = Request { code: Arc::clone(&canary.code), role: Role::Answer, ..check.clone() };
        {
            let mut figures = locked(&canary.figures);
            figures.calls += 1;
            figures.rows += rows as u64;
        }
        let answer = run(&request);
        if let Err(WasmError::Overdrawn { .. } | WasmError::Engine { .. }) = &answer {
            return answer;
        }
        let usual = run(&check);
        let failed = |reason: String| {
            locked(&canary.failure).get_or_insert_with(|| reason.clone());
            Err(WasmError::CanaryFailed { plugin: self.name.clone(), reason })
        };
        match (answer, usual) {
            (Ok(answer), Ok(usual)) => {
                let known: Vec<u32> = usual.faults().into_iter().map(|(row, _)| row).collect();
                if let Some((_, error)) = answer.faults().into_iter().find(|(row, _)| !known.contains(row)) {
                    return failed(format!("it fails where the running code does not: {error}"));
                }
                let differing = answer.differing(&usual);
                if let Some(first) = differing.first() {
                    let example = match (usual.shown(*first), answer.shown(*first)) {
                        (Some(before), Some(now)) => Some(format!("{before} -> {now}")),
                        _ => None,
                    };
                    if canary.expects_same {
                        let such = example.map(|example| format!(", such as {example}")).unwrap_or_default();
                        let count = differing.len();
                        return failed(format!("{count} answers of the call differ from the running code's{such}"));
                    }
                    let mut figures = locked(&canary.figures);
                    figures.differing += differing.len() as u64;
                    figures.example = figures.example.take().or(example);
                }
                Ok(answer)
            }
            (Ok(answer), Err(_)) => {
                locked(&canary.figures).differing += 1;
                Ok(answer)
            }
            // It is not worse than the running code: what becomes of the batch does not depend on it.
            (Err(_), Err(error)) => Err(error),
            (Err(error), Ok(_)) => failed(millstream_common::describe_chain(&error)),
        }
    }

    /// The values of a scalar function, some of them by the candidate.
    pub(super) fn scalar_with_canary(
        &self,
        canary: &Arc<Canary>,
        arguments: &[ArrayRef],
        rows: usize,
        run: impl Fn(&Request, usize, &[ArrayRef]) -> Result<ScalarOutcome, WasmError>,
    ) -> Result<ScalarOutcome, WasmError> {
        let shares = self.shares(canary, arguments, rows)?;
        if let Some(all) = shares.all(rows) {
            return match all {
                true => self.of_slice(canary, rows, |request| run(request, rows, arguments)),
                false => run(&self.request(), rows, arguments),
            };
        }
        let rest = run(&self.request(), shares.rest.len(), &self.taken(arguments, &shares.rest)?)?;
        let of_slice = self.taken(arguments, &shares.slice)?;
        let slice = self.of_slice(canary, shares.slice.len(), |request| run(request, shares.slice.len(), &of_slice))?;
        let mut order = vec![(0, 0); rows];
        for (source, part) in [&shares.rest, &shares.slice].into_iter().enumerate() {
            part.iter().enumerate().for_each(|(place, row)| order[*row as usize] = (source, place));
        }
        let values = interleave(&[rest.values.as_ref(), slice.values.as_ref()], &order);
        let values = values.map_err(|error| self.bad_call("canary", error.to_string()))?;
        Ok(ScalarOutcome { values, faults: shares.faults(rest.faults, slice.faults) })
    }

    /// The rows of a table function, some of them by the candidate.
    pub(super) fn table_with_canary(
        &self,
        canary: &Arc<Canary>,
        arguments: &[ArrayRef],
        rows: usize,
        run: impl Fn(&Request, usize, &[ArrayRef]) -> Result<TableOutcome, WasmError>,
    ) -> Result<TableOutcome, WasmError> {
        let shares = self.shares(canary, arguments, rows)?;
        if let Some(all) = shares.all(rows) {
            return match all {
                true => self.of_slice(canary, rows, |request| run(request, rows, arguments)),
                false => run(&self.request(), rows, arguments),
            };
        }
        let rest = run(&self.request(), shares.rest.len(), &self.taken(arguments, &shares.rest)?)?;
        let of_slice = self.taken(arguments, &shares.slice)?;
        let slice = self.of_slice(canary, shares.slice.len(), |request| run(request, shares.slice.len(), &of_slice))?;
        let mut order: Vec<(u32, usize, usize)> = Vec::new();
        for (source, (outcome, part)) in [(&rest, &shares.rest), (&slice, &shares.slice)].into_iter().enumerate() {
            let rows = outcome.input_rows.values().iter().enumerate();
            order.extend(rows.filter_map(|(place, row)| Some((*part.get(*row as usize)?, source, place))));
        }
        order.sort_unstable();
        let places: Vec<(usize, usize)> = order.iter().map(|(_, source, place)| (*source, *place)).collect();
        let columns = rest.columns.iter().zip(&slice.columns);
        let columns = columns.map(|(rest, slice)| interleave(&[rest.as_ref(), slice.as_ref()], &places));
        let columns = columns.collect::<Result<Vec<_>, _>>();
        Ok(TableOutcome {
            input_rows: UInt32Array::from_iter_values(order.into_iter().map(|(row, _, _)| row)),
            columns: columns.map_err(|error| self.bad_call("canary", error.to_string()))?,
            faults: shares.faults(rest.faults, slice.faults),
        })
    }

    /// Which rows are of the slice, by the bytes of their arguments.
    fn shares(&self, canary: &Canary, arguments: &[ArrayRef], rows: usize) -> Result<Shares, WasmError> {
        let mut shares = Shares::default();
        let count = u32::try_from(rows).map_err(|_| self.bad_call("canary", format!("{rows} rows in one batch")))?;
        if arguments.is_empty() {
            shares.rest = (0..count).collect();
            return Ok(shares);
        }
        let fields = arguments.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let encoded = RowConverter::new(fields).and_then(|converter| converter.convert_columns(arguments));
        let encoded = encoded.map_err(|error| self.bad_call("canary", error.to_string()))?;
        for row in 0..count {
            match canary.slice.has(encoded.row(row as usize).data()) {
                true => shares.slice.push(row),
                false => shares.rest.push(row),
            }
        }
        Ok(shares)
    }

    fn taken(&self, columns: &[ArrayRef], rows: &[u32]) -> Result<Vec<ArrayRef>, WasmError> {
        let places = UInt32Array::from(rows.to_vec());
        let taken = columns.iter().map(|column| take(column, &places, None)).collect::<Result<Vec<_>, _>>();
        taken.map_err(|error| self.bad_call("canary", error.to_string()))
    }
}

/// The rows of a batch, shared out.
#[derive(Default)]
struct Shares {
    rest: Vec<u32>,
    slice: Vec<u32>,
}

impl Shares {
    /// Whether all rows are of the slice, or none; `None` when there are some of both.
    fn all(&self, rows: usize) -> Option<bool> {
        match (self.rest.len() == rows, self.slice.len() == rows) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        }
    }

    /// Faults of both, by the rows of the batch.
    fn faults(&self, rest: Vec<RowFault>, slice: Vec<RowFault>) -> Vec<RowFault> {
        let placed = |of: &[u32], faults: Vec<RowFault>| {
            let place = |fault: RowFault| Some(RowFault { row: *of.get(fault.row as usize)?, error: fault.error });
            faults.into_iter().filter_map(place).collect::<Vec<_>>()
        };
        let mut all = placed(&self.rest, rest);
        all.extend(placed(&self.slice, slice));
        all.sort_by_key(|fault| fault.row);
        all
    }
}
