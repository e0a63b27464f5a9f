//! Migrations: stored state of older code becomes state of this code, row by row.

use crate::aggregate::{State, StatesOutput, finished, read};
use crate::call::Batch;
use crate::error::CallError;
use crate::outcome::{Failure, Outcome};
use crate::schema::Schema;

/// One step of a migration, as the attribute macro registers it.
#[derive(Debug)]
pub struct Migration {
    /// What it is about: the name of an aggregate function, or `processor.variable`.
    pub state: &'static str,
    /// The meaning of what is stored.
    pub from_id: &'static str,
    /// Appends the stored columns.
    pub from_columns: fn(&mut Schema),
    /// The meaning of what comes out.
    pub to_id: &'static str,
    /// Appends the columns that come out.
    pub to_columns: fn(&mut Schema),
    /// From rows of stored state.
    pub migrate: fn(&Batch) -> Result<StatesOutput, CallError>,
}

/// Migrates the rows of a call.
///
/// # Errors
///
/// The function's refusal of the whole call.
#[inline(always)]
pub fn migrate<S: State, R: Outcome>(rows: &Batch, call: impl Fn(S) -> R) -> Result<StatesOutput, CallError>
where
    R::Value: State,
{
    let mut states = Vec::with_capacity(rows.rows as usize);
    let mut row_errors = Vec::new();
    for (row, state) in (0..).zip(read::<S>(rows)) {
        match call(state?).outcome() {
            Ok(state) => states.push(state),
            Err(Failure::Call(error)) => return Err(error),
            Err(Failure::Row(message)) => {
                states.push(R::Value::default());
                row_errors.push((row, message));
            }
        }
    }
    Ok(finished(states, row_errors))
}
