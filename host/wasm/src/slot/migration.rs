//! Stored state of older code through a migration step of a component, which need not be the one that runs.
//!
//! Rows go in as many calls as the limits ask for. Rows at fault are found by halving, whatever the policy of the plugin:
//! a migration that leaves rows out is none, so all that is done with them is to name them.

use arrow::array::ArrayRef;
use std::ops::Range;
use std::sync::Arc;

use super::PluginSlot;
use super::caller::Caller;
use super::code::{Code, Request, Role};
use super::columns::{self, Encoded};
use super::outcome::RowFault;
use crate::call::Failure;
use crate::component::Component;
use crate::error::WasmError;
use crate::signature::MigrationStep;
use crate::wire::migration::Migrate;

/// The most rows at fault that are named.
const NAMED: usize = 5;

/// Rows of state after a step.
#[derive(Debug, Clone)]
pub struct MigratedRows {
    /// The columns that come out; meaningless when rows are at fault.
    pub columns: Vec<ArrayRef>,
    /// Some rows at fault, ascending.
    pub faults: Vec<RowFault>,
}

impl PluginSlot {
    /// Migrates `rows` rows of state by a step of `component`, under the limits of this slot. `keys` are the columns of
    /// their keys.
    ///
    /// # Errors
    ///
    /// What is not the rows' fault: columns that are not the step's, [`WasmError::Unavailable`], [`WasmError::Engine`].
    pub fn migrate(
        &self,
        component: &Arc<Component>,
        step: u32,
        keys: &[ArrayRef],
        state: &[ArrayRef],
        rows: usize,
    ) -> Result<MigratedRows, WasmError> {
        let signature = component.migrations().get(step as usize);
        let signature = signature.ok_or_else(|| self.bad_call("migrate", format!("there is no step {step}")))?;
        let bad = |reason: String| self.bad_call("migrate", reason);
        let state = columns::normalised(state, &signature.from_columns, rows).map_err(bad)?;
        let keys = sendable(keys, rows);
        let code = match self.code() {
            code if Arc::ptr_eq(&code.component, component) => code,
            _ => Code::new(Arc::clone(component)),
        };
        let request = Request { code, stamp: self.take_stamp(), role: Role::Answer, canary: None };
        let mut work = Migration { caller: Caller::new(self, &request), step, signature, keys, state };
        let done = work.run(self, rows);
        work.caller.end(rows, rows, 0);
        done
    }
}

/// The keys as far as they have a form that a guest can get; none of them when one has not.
fn sendable(keys: &[ArrayRef], rows: usize) -> Vec<ArrayRef> {
    match Encoded::of(keys, rows) {
        Ok(_) => keys.to_vec(),
        Err(_) => Vec::new(),
    }
}

struct Migration<'a> {
    caller: Caller<'a>,
    step: u32,
    signature: &'a MigrationStep,
    keys: Vec<ArrayRef>,
    state: Vec<ArrayRef>,
}

impl Migration<'_> {
    fn run(&mut self, slot: &PluginSlot, rows: usize) -> Result<MigratedRows, WasmError> {
        let mut open: Vec<Range<usize>> = Vec::new();
        let (mut next, mut failed_calls) = (0, 0);
        let (mut pieces, mut faults): (Vec<Vec<ArrayRef>>, Vec<RowFault>) = (Vec::new(), Vec::new());
        while faults.len() < NAMED {
            let range = match open.pop() {
                Some(range) => range,
                None if next < rows => {
                    let range = next..next + columns::call_len(&self.state, next..rows, &slot.limits);
                    next = range.end;
                    range
                }
                None => break,
            };
            match self.call(&range) {
                Ok((piece, errors)) => {
                    let fault = |(row, error): (u32, String)| RowFault { row: row + range.start as u32, error };
                    faults.extend(errors.into_iter().map(fault));
                    pieces.push(piece);
                }
                Err(failure)
                    if failure.is_of_rows() && range.len() > 1 && failed_calls < slot.limits.isolation_calls =>
                {
                    failed_calls += 1;
                    let middle = range.start + range.len() / 2;
                    open.push(middle..range.end);
                    open.push(range.start..middle);
                }
                Err(failure) if failure.is_of_rows() => {
                    let error = failure.into_error(&slot.name, "migrate").to_string();
                    faults.push(RowFault { row: range.start as u32, error });
                }
                Err(failure) => return Err(failure.into_error(&slot.name, "migrate")),
            }
        }
        if !faults.is_empty() {
            return Ok(MigratedRows { columns: Vec::new(), faults });
        }
        let fields = self.signature.to_columns.iter().enumerate();
        let joined = fields.map(|(index, field)| {
            let parts: Vec<&ArrayRef> = pieces.iter().filter_map(|piece| piece.get(index)).collect();
            columns::joined(field, &parts)
        });
        let columns = joined.collect::<Result<Vec<_>, _>>().map_err(|reason| slot.bad_call("migrate", reason))?;
        Ok(MigratedRows { columns, faults })
    }

    fn call(&mut self, range: &Range<usize>) -> Result<(Vec<ArrayRef>, columns::RowErrors), Failure> {
        let rows = range.len();
        let keys = Encoded::of(&columns::sliced(&self.keys, range), rows)?;
        let state = Encoded::of(&columns::sliced(&self.state, range), rows)?;
        let (key_slices, state_slices) = (keys.slices(), state.slices());
        let params = (self.step, keys.batch(&key_slices), state.batch(&state_slices));
        let fields = &self.signature.to_columns;
        self.caller.call::<Migrate, _>(params, |output| {
            let errors = columns::row_errors(output.row_errors, rows)?;
            Ok((columns::states(fields, output.rows, rows)?, errors))
        })
    }
}
