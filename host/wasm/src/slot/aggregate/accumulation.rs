//! Rows into states: cut into calls, rows at fault found by halving, the states of the pieces merged.

use arrow::array::ArrayRef;
use std::ops::Range;

use super::Aggregate;
use super::groups::{Lists, Place, gathered, numbered};
use super::merging::merged;
use crate::call::Failure;
use crate::error::WasmError;
use crate::slot::caller::Caller;
use crate::slot::columns::{self, Encoded, RowErrors};
use crate::slot::faults::Faults;
use crate::slot::isolation::{self, Work};
use crate::slot::outcome::StatesOutcome;
use crate::wire::aggregate::Accumulate;

pub(super) struct Accumulation<'a> {
    aggregate: Aggregate<'a>,
    groups: usize,
    group_of_row: &'a [u32],
    arguments: Vec<ArrayRef>,
    caller: Caller<'a>,
    faults: Faults<'a>,
}

/// The states of the groups that a piece of the rows has.
pub(super) struct Part {
    groups: Vec<u32>,
    states: Vec<ArrayRef>,
    row_errors: RowErrors,
}

impl<'a> Accumulation<'a> {
    pub(super) fn new(
        aggregate: Aggregate<'a>,
        groups: usize,
        group_of_row: &'a [u32],
        arguments: Vec<ArrayRef>,
    ) -> Self {
        let Aggregate { slot, request, signature, .. } = aggregate;
        let faults = Faults::new(slot, request, &signature.name, &signature.arguments, arguments.clone());
        Self { aggregate, groups, group_of_row, arguments, caller: Caller::new(slot, request), faults }
    }

    pub(super) fn run(mut self) -> Result<StatesOutcome, WasmError> {
        let rows = self.group_of_row.len();
        let slot = self.aggregate.slot;
        let parts = isolation::pieces(&mut self, rows, slot.policy, &slot.limits);
        let states = parts.and_then(|parts| {
            self.joined(parts).map_err(|failure| failure.into_error(&slot.name, &self.aggregate.signature.name))
        });
        self.caller.end(rows, self.groups, self.faults.len());
        Ok(StatesOutcome { states: states?, faults: self.faults.end() })
    }

    /// One state per group of all parts.
    fn joined(&mut self, mut parts: Vec<Part>) -> Result<Vec<ArrayRef>, Failure> {
        parts.retain(|part| !part.groups.is_empty());
        if let [part] = parts.as_slice()
            && part.groups.len() == self.groups
            && (0..).zip(&part.groups).all(|(number, group)| number == *group)
        {
            return Ok(parts.swap_remove(0).states);
        }
        let mut lists: Vec<Vec<Place>> = vec![Vec::new(); self.groups];
        for (source, part) in parts.iter().enumerate() {
            for (row, group) in part.groups.iter().enumerate() {
                lists[*group as usize].push((source, row));
            }
        }
        let mut sources: Vec<Vec<ArrayRef>> = parts.into_iter().map(|part| part.states).collect();
        if lists.iter().any(Vec::is_empty) {
            let no_rows = self.call(&columns::sliced(&self.arguments, &(0..0)), &[], 1)?.0;
            let place = (sources.len(), 0);
            lists.iter_mut().filter(|list| list.is_empty()).for_each(|list| list.push(place));
            sources.push(no_rows);
        }
        let mut all = Lists::default();
        for list in lists {
            list.into_iter().for_each(|place| all.push(place));
            all.end_group();
        }
        if all.are_single() {
            return gathered(&sources, all.places(), &self.aggregate.signature.state);
        }
        merged(&mut self.caller, self.aggregate, sources, all)
    }

    fn call(
        &mut self,
        arguments: &[ArrayRef],
        numbers: &[u32],
        groups: usize,
    ) -> Result<(Vec<ArrayRef>, RowErrors), Failure> {
        let rows = numbers.len();
        let encoded = Encoded::of(arguments, rows)?;
        let (slices, numbers) = (encoded.slices(), columns::numbers(numbers));
        let groups_u32 = u32::try_from(groups).map_err(|_| Failure::Engine(format!("{groups} groups in one call")))?;
        let params = (self.aggregate.number, groups_u32, numbers.as_slice(), encoded.batch(&slices));
        let fields = &self.aggregate.signature.state;
        self.caller.call::<Accumulate, _>(params, |output| {
            let errors = columns::row_errors(output.row_errors, rows)?;
            Ok((columns::states(fields, output.states, groups)?, errors))
        })
    }
}

impl Work for Accumulation<'_> {
    type Piece = Part;

    fn call_len(&self, rest: Range<usize>) -> usize {
        columns::call_len(&self.arguments, rest, &self.aggregate.slot.limits)
    }

    fn compute(&mut self, range: &Range<usize>) -> Result<Part, Failure> {
        self.caller.begin_at(range.start);
        let mut arguments = columns::sliced(&self.arguments, range);
        let mut group_of_row = self.group_of_row[range.clone()].to_vec();
        let kept = match self.aggregate.signature.nulls_passed {
            true => None,
            false => columns::rows_without_nulls(&arguments),
        };
        if let Some(kept) = &kept {
            arguments = columns::taken(&arguments, kept)?;
            group_of_row = kept.iter().map(|row| group_of_row[*row as usize]).collect();
        }
        // All rows in one call: the groups keep their numbers, and those without rows are in it.
        let is_whole = range.len() == self.group_of_row.len()
            && self.groups <= self.aggregate.slot.limits.rows_per_call.max(range.len());
        let (numbers, groups) = match is_whole {
            true => (group_of_row, (0..self.groups as u32).collect()),
            false => numbered(group_of_row.into_iter()),
        };
        if groups.is_empty() {
            return Ok(Part::nothing());
        }
        let (states, mut row_errors) = self.call(&arguments, &numbers, groups.len())?;
        if let Some(kept) = kept {
            row_errors.iter_mut().for_each(|(row, _)| *row = kept[*row as usize]);
        }
        Ok(Part { groups, states, row_errors })
    }

    fn accept(&mut self, mut part: Part, range: &Range<usize>) -> Result<Part, WasmError> {
        let start = u32::try_from(range.start).unwrap_or(u32::MAX);
        part.row_errors.iter_mut().for_each(|(row, _)| *row += start);
        self.faults.keep(&part.row_errors)?;
        Ok(part)
    }

    fn error(&self, failure: Failure, range: &Range<usize>) -> WasmError {
        self.faults.error(failure, range)
    }

    fn fault(&mut self, range: &Range<usize>, error: &str) -> Result<Part, WasmError> {
        self.faults.record(range, error)?;
        Ok(Part::nothing())
    }
}

impl Part {
    fn nothing() -> Self {
        Self { groups: Vec::new(), states: Vec::new(), row_errors: Vec::new() }
    }
}
