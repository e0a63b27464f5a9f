//! Aggregate functions: rows into states, states into states, states into values.
//!
//! ```text
//!   rows ──accumulate──► states ─┐
//!                stored states ──┴─merge──► states ──evaluate──► values
//! ```
//!
//! The caller keeps the states, one row of columns per group. Rows at fault are found by halving and left out as the
//! policy says; so are states without a value, which have null. A state that cannot be merged is never left out:
//! that would lose rows that were counted, so it fails the request under every policy.
//!
//! Rule of its life: a request that is too large for one call is cut, and the states of the pieces are merged in the
//! order of the rows. A state merged with nothing is that state, so groups with one are not sent.

mod accumulation;
mod groups;
mod merging;
mod retraction;

use arrow::array::{Array, ArrayRef};
use std::slice;

use super::PluginSlot;
use super::caller::Caller;
use super::code::Request;
use super::columns;
use super::function::{Asked, Invocation, Target};
use super::outcome::{ScalarOutcome, StatesOutcome};
use crate::error::WasmError;
use crate::signature::AggregateSignature;
use accumulation::Accumulation;
use groups::Lists;
use merging::merged;
use retraction::retracted;

/// An aggregate function of a component.
#[derive(Clone, Copy)]
struct Aggregate<'a> {
    slot: &'a PluginSlot,
    request: &'a Request,
    number: u32,
    signature: &'a AggregateSignature,
}

impl<'a> Aggregate<'a> {
    fn of(slot: &'a PluginSlot, request: &'a Request, function: &str) -> Result<Self, WasmError> {
        let found = request.component().aggregate(function);
        let (number, signature) =
            found.ok_or_else(|| slot.bad_call(function, "the component has no such aggregate function".into()))?;
        Ok(Self { slot, request, number, signature })
    }

    fn bad_call(&self, reason: String) -> WasmError {
        self.slot.bad_call(&self.signature.name, reason)
    }

    fn arguments(&self, arguments: &[ArrayRef], rows: usize) -> Result<Vec<ArrayRef>, WasmError> {
        columns::normalised(arguments, &self.signature.arguments, rows).map_err(|reason| self.bad_call(reason))
    }

    /// States as the guest wants them. It may trust what it gets, so nulls where it has none are refused here.
    fn states(&self, states: &[ArrayRef], rows: usize) -> Result<Vec<ArrayRef>, WasmError> {
        let fields = &self.signature.state;
        let states = columns::normalised(states, fields, rows).map_err(|reason| self.bad_call(reason))?;
        let wrong = states.iter().zip(fields).find(|(column, field)| column.null_count() > 0 && !field.is_nullable());
        match wrong {
            Some((_, field)) => Err(self.bad_call(format!("null in the state column `{}`", field.name()))),
            None => Ok(states),
        }
    }

    fn check_groups(&self, group_of_row: &[u32], groups: usize) -> Result<(), WasmError> {
        if u32::try_from(groups).is_err() {
            return Err(self.bad_call(format!("{groups} groups in one batch")));
        }
        match group_of_row.iter().find(|group| **group as usize >= groups) {
            Some(group) => Err(self.bad_call(format!("group {group} of {groups}"))),
            None => Ok(()),
        }
    }
}

impl PluginSlot {
    /// The states of `groups` groups over these rows alone; row `i` belongs to group `group_of_row[i]`. A group without
    /// rows has the state of no rows.
    ///
    /// # Errors
    ///
    /// Under [`FaultPolicy::Fail`](super::FaultPolicy::Fail) the first fault. Under the other policies what is not the
    /// rows' fault, and states that cannot be merged.
    pub fn accumulate(
        &self,
        function: &str,
        groups: usize,
        group_of_row: &[u32],
        arguments: &[ArrayRef],
    ) -> Result<StatesOutcome, WasmError> {
        self.of_keys(group_of_row.len(), |request| {
            let aggregate = Aggregate::of(self, request, function)?;
            aggregate.check_groups(group_of_row, groups)?;
            let arguments = aggregate.arguments(arguments, group_of_row.len())?;
            Accumulation::new(aggregate, groups, group_of_row, arguments).run()
        })
    }

    /// Many states into one per group, in the order of the rows; row `i` belongs to group `group_of_row[i]`, and every
    /// group has a row.
    ///
    /// # Errors
    ///
    /// Every fault, under every policy.
    pub fn merge(
        &self,
        function: &str,
        groups: usize,
        group_of_row: &[u32],
        states: &[ArrayRef],
    ) -> Result<Vec<ArrayRef>, WasmError> {
        self.of_keys(0, |request| {
            let aggregate = Aggregate::of(self, request, function)?;
            aggregate.check_groups(group_of_row, groups)?;
            let states = aggregate.states(states, group_of_row.len())?;
            let lists = Lists::by_group(groups, group_of_row.iter().copied());
            if lists.has_empty() {
                return Err(aggregate.bad_call("a group without a state".into()));
            }
            let mut caller = Caller::new(self, request);
            let result = merged(&mut caller, aggregate, vec![states], lists);
            caller.end(0, groups, 0);
            result.map_err(|failure| failure.into_error(&self.name, function))
        })
    }

    /// States without these rows, which they were accumulated with; row `i` belongs to the state in row
    /// `group_of_row[i]` of `states`.
    ///
    /// # Errors
    ///
    /// Every fault, under every policy; [`WasmError::BadCall`] for a function that does not retract.
    pub fn retract(
        &self,
        function: &str,
        states: &[ArrayRef],
        group_of_row: &[u32],
        arguments: &[ArrayRef],
    ) -> Result<Vec<ArrayRef>, WasmError> {
        // Only windows of rows take rows back, and those stand in no stream: no canary has a say in it.
        let request = self.request();
        let aggregate = Aggregate::of(self, &request, function)?;
        if !aggregate.signature.retracts {
            return Err(aggregate.bad_call("it does not retract".into()));
        }
        let groups = states.first().map_or(0, |column| column.len());
        aggregate.check_groups(group_of_row, groups)?;
        let states = aggregate.states(states, groups)?;
        let arguments = aggregate.arguments(arguments, group_of_row.len())?;
        let mut caller = Caller::new(self, &request);
        let result = retracted(&mut caller, aggregate, states, group_of_row, &arguments);
        caller.end(group_of_row.len(), groups, 0);
        result.map_err(|failure| failure.into_error(&self.name, function))
    }

    /// One value per state.
    ///
    /// # Errors
    ///
    /// As [`Self::call_scalar`]; a fault is a state without a value.
    pub fn evaluate(&self, function: &str, states: &[ArrayRef]) -> Result<ScalarOutcome, WasmError> {
        self.of_keys(0, |request| {
            let aggregate = Aggregate::of(self, request, function)?;
            let rows = states.first().map_or(0, |column| column.len());
            let states = aggregate.states(states, rows)?;
            let signature = aggregate.signature;
            let asked = Asked {
                target: Target::Evaluate,
                number: aggregate.number,
                name: &signature.name,
                arguments: &signature.state,
                results: slice::from_ref(&signature.result),
                nulls_passed: true,
            };
            let (pieces, faults) = Invocation::new(self, request, asked, states).run(rows)?;
            let values = self.per_row(function, asked.results, &pieces)?;
            Ok(ScalarOutcome { values, faults })
        })
    }
}
