//! Aggregate functions: from buffers of rows and states to buffers of states and values.

use crate::argument::Argument;
use crate::call::{Batch, ScalarOutput, scalar};
use crate::error::CallError;
use crate::outcome::{Done, Failure, Outcome};
use crate::schema::Schema;
use crate::value::Value;

/// The state of a group, one row of columns: a struct that derives [`Row`](crate::Row) and `Default`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the state of an aggregate function",
    note = "write `#[derive(Row, Default)]` on it: its fields become the columns of the state, and its default is the \
            state of no rows"
)]
pub trait State: Value + Default + for<'a> Argument<'a> {}

impl<S: Value + Default + for<'a> Argument<'a>> State for S {}

/// A state type whose `impl` has the attribute `#[aggregate_function]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no aggregate function",
    note = "write `#[aggregate_function]` on the `impl` that has its `accumulate`, `merge` and `evaluate`"
)]
pub trait Aggregation {
    /// The function.
    const AGGREGATE: &'static Aggregate;
}

/// The states of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatesOutput {
    /// One row per group.
    pub states: Batch,
    /// The rows that failed.
    pub row_errors: Vec<(u32, String)>,
}

/// The answer of a call that gives states.
pub type States = Result<StatesOutput, CallError>;

/// From states, the group of each row and the arguments to states without these rows.
pub type Retract = fn(&Batch, &[u8], &Batch) -> States;

/// An aggregate function of a plugin, as the attribute macro registers it. Groups of rows are 32-bit numbers,
/// little-endian.
#[derive(Debug)]
pub struct Aggregate {
    /// The name in SQL.
    pub name: &'static str,
    /// The author's name for what the state's columns mean.
    pub state_id: &'static str,
    /// Appends the arguments.
    pub arguments: fn(&mut Schema),
    /// Appends the result.
    pub result: fn(&mut Schema),
    /// Appends the columns of the state.
    pub state: fn(&mut Schema),
    /// From the number of groups, the group of each row and the arguments.
    pub accumulate: fn(u32, &[u8], &Batch) -> States,
    /// From the number of groups, the group of each state and the states.
    pub merge: fn(u32, &[u8], &Batch) -> States,
    /// From the states, the group of each row and the arguments.
    pub retract: Option<Retract>,
    /// From the states.
    pub evaluate: fn(&Batch) -> Result<ScalarOutput, CallError>,
}

fn numbers(groups: &[u8]) -> impl Iterator<Item = usize> + Clone {
    groups.as_chunks::<4>().0.iter().map(|group| u32::from_le_bytes(*group) as usize)
}

pub(crate) fn finished<S: State>(states: impl IntoIterator<Item = S>, row_errors: Vec<(u32, String)>) -> StatesOutput {
    let mut builder = S::Builder::default();
    let mut rows = 0;
    for state in states {
        state.append(&mut builder);
        rows += 1;
    }
    let mut buffers = Vec::new();
    S::finish_columns(builder, &mut buffers);
    StatesOutput { states: Batch { rows, buffers }, row_errors }
}

/// The states of a batch, row by row.
pub(crate) fn read<S: State>(batch: &Batch) -> impl Iterator<Item = Result<S, CallError>> {
    let column = S::open_columns(&mut batch.reader());
    (0..batch.rows as usize)
        .map(move |row| S::get(&column, row).ok_or_else(|| CallError::internal(format!("state {row} is null"))))
}

/// Adds rows to states; `call` gives `None` for rows with a null that the function does not take.
///
/// A row that fails leaves no trace, although it may fail half-way: its group is made anew from its rows before it.
///
/// # Errors
///
/// The function's refusal of the whole call.
#[inline(always)]
pub fn accumulate<S: State, D: Done>(
    groups: u32,
    group_of_row: &[u8],
    call: impl Fn(&mut S, usize) -> Option<D>,
) -> States {
    let mut states: Vec<S> = (0..groups).map(|_| S::default()).collect();
    let mut row_errors: Vec<(u32, String)> = Vec::new();
    for (row, group) in numbers(group_of_row).enumerate() {
        let Some(done) = call(&mut states[group], row) else { continue };
        match done.done() {
            Ok(()) => {}
            Err(Failure::Call(error)) => return Err(error),
            Err(Failure::Row(message)) => {
                let mut again = S::default();
                for (before, _) in numbers(group_of_row).enumerate().take(row).filter(|(_, of)| *of == group) {
                    let failed = row_errors.binary_search_by_key(&before, |(row, _)| *row as usize).is_ok();
                    if !failed && let Some(done) = call(&mut again, before) {
                        // It went well the first time, from the same state.
                        let _ = done.done();
                    }
                }
                states[group] = again;
                row_errors.push((u32::try_from(row).unwrap_or(u32::MAX), message));
            }
        }
    }
    Ok(finished(states, row_errors))
}

/// Merges states.
///
/// # Errors
///
/// The function's refusal of the whole call.
#[inline(always)]
pub fn merge<S: State, D: Done>(
    groups: u32,
    group_of_row: &[u8],
    batch: &Batch,
    call: impl Fn(&mut S, S) -> D,
) -> States {
    let mut states: Vec<Option<S>> = (0..groups).map(|_| None).collect();
    let mut row_errors = Vec::new();
    for ((row, group), state) in (0..).zip(numbers(group_of_row)).zip(read::<S>(batch)) {
        let state = state?;
        let Some(known) = &mut states[group] else {
            states[group] = Some(state);
            continue;
        };
        match call(known, state).done() {
            Ok(()) => {}
            Err(Failure::Call(error)) => return Err(error),
            Err(Failure::Row(message)) => row_errors.push((row, message)),
        }
    }
    Ok(finished(states.into_iter().map(Option::unwrap_or_default), row_errors))
}

/// Takes rows back out of states; `call` as for [`accumulate`].
///
/// # Errors
///
/// The function's refusal of the whole call.
#[inline(always)]
pub fn retract<S: State, D: Done>(
    batch: &Batch,
    group_of_row: &[u8],
    call: impl Fn(&mut S, usize) -> Option<D>,
) -> States {
    let mut states = read::<S>(batch).collect::<Result<Vec<S>, _>>()?;
    let mut row_errors = Vec::new();
    for (row, group) in numbers(group_of_row).enumerate() {
        match call(&mut states[group], row).map(Done::done) {
            None | Some(Ok(())) => {}
            Some(Err(Failure::Call(error))) => return Err(error),
            Some(Err(Failure::Row(message))) => row_errors.push((u32::try_from(row).unwrap_or(u32::MAX), message)),
        }
    }
    Ok(finished(states, row_errors))
}

/// Evaluates states.
///
/// # Errors
///
/// The function's refusal of the whole call.
#[inline(always)]
pub fn evaluate<S: State, R: Outcome>(batch: &Batch, call: impl Fn(&S) -> R) -> Result<ScalarOutput, CallError> {
    let column = S::open_columns(&mut batch.reader());
    scalar(batch, |row| S::get(&column, row).map(|state| call(&state)))
}
