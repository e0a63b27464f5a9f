//! One call: the handlers of a processor over its keys.

use super::call::Call;
use super::columns::{RowsBuilder, decoded, described};
use super::variable::{Handle, VariableType};
use super::wire::{ByKey, Invocation, Outcome, Step};
use super::{KeyError, KeyResult, OutputMode, Processor, TimeMode};
use crate::schema::Field;

/// A processor as it is described to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorType {
    /// The name.
    pub name: &'static str,
    /// The columns of a key.
    pub key: Vec<Field>,
    /// The columns of the input.
    pub input: Vec<Field>,
    /// The columns of the output.
    pub output: Vec<Field>,
    /// The columns of initial rows.
    pub initial: Vec<Field>,
    /// The state variables.
    pub variables: Vec<VariableType>,
    /// Which time its timers go by.
    pub time_mode: TimeMode,
    /// Which output modes it may have.
    pub output_modes: &'static [OutputMode],
}

/// A processor of a component.
#[derive(Debug, Clone, Copy)]
pub struct RegisteredProcessor {
    /// Describes it.
    pub describe: fn() -> ProcessorType,
    /// Calls it.
    pub run: fn(&Step, &Invocation) -> Outcome,
}

/// A processor as a component lists it.
pub fn registered<P: Processor>() -> RegisteredProcessor {
    RegisteredProcessor { describe: describe::<P>, run: run::<P> }
}

fn describe<P: Processor>() -> ProcessorType {
    let mut handle = Handle::default();
    let _ = P::init(&mut handle);
    ProcessorType {
        name: P::NAME,
        key: described::<P::Key>(P::KEY),
        input: described::<P::Input>("value"),
        output: described::<P::Output>("value"),
        initial: described::<P::Initial>("value"),
        variables: handle.variables.into_iter().map(|(described, _)| described).collect(),
        time_mode: P::TIME_MODE,
        output_modes: P::OUTPUT_MODES,
    }
}

/// Calls the handlers of a new `P` for every key.
pub(super) fn run<P: Processor>(step: &Step, call: &Invocation) -> Outcome {
    let mut handle = Handle::default();
    let mut processor = P::init(&mut handle);
    for ((_, variable), entries) in handle.variables.iter().zip(&call.state) {
        variable.load(entries);
    }
    let mut keys = Keys::<P>::new(step, call);
    let mut timers = call.timers.by_key();
    let mut outcome = Outcome::default();
    let mut rows = RowsBuilder::default();
    for (number, key) in (0..).zip(decoded::<P::Key>(&call.keys)) {
        handle.variables.iter().for_each(|(_, variable)| variable.enter(number));
        let mut context =
            Call::new(timers.take(number).into_iter(), P::TIME_MODE, call.batch_time_ms, call.watermark_ms);
        let result = match key {
            Some(key) => keys.handle(&mut processor, number, &key, &mut context),
            None => Err(KeyError::new("the key is null, and the processor does not take nulls")),
        };
        handle.variables.iter().for_each(|(_, variable)| variable.leave(number, result.is_ok()));
        if let Err(KeyError(message)) = result {
            outcome.key_errors.push((number, message));
            continue;
        }
        let (lost, got) = context.timer_changes();
        lost.into_iter().for_each(|due| outcome.deleted_timers.push(number, due));
        got.into_iter().for_each(|due| outcome.registered_timers.push(number, due));
        for row in context.out {
            outcome.key_of_row.extend(number.to_le_bytes());
            rows.push(row);
        }
    }
    outcome.rows = rows.finish();
    outcome.changes = handle.variables.iter().map(|(_, variable)| variable.finish()).collect();
    outcome
}

/// What each key gets.
enum Keys<P: Processor> {
    Rows(ByKey<Option<P::Input>>),
    Initial(ByKey<Option<P::Initial>>),
    Due(ByKey<i64>),
}

impl<P: Processor> Keys<P> {
    fn new(step: &Step, call: &Invocation) -> Self {
        match step {
            Step::Process => Self::Rows(ByKey::new(&call.key_of_row, decoded(&call.rows))),
            Step::Initialise => Self::Initial(ByKey::new(&call.key_of_row, decoded(&call.rows))),
            Step::Expire(due) => Self::Due(due.by_key()),
        }
    }

    fn handle(&mut self, processor: &mut P, number: u32, key: &P::Key, call: &mut Call<P::Output>) -> KeyResult {
        match self {
            Self::Rows(rows) => processor.handle_input_rows(key, whole(rows.take(number))?, call),
            Self::Initial(rows) => {
                whole(rows.take(number))?.into_iter().try_for_each(|row| processor.handle_initial_state(key, row, call))
            }
            Self::Due(due) => {
                due.take(number).into_iter().try_for_each(|due| processor.handle_expired_timer(key, due, call))
            }
        }
    }
}

/// The rows, if all of them are what the type takes.
fn whole<T>(rows: Vec<Option<T>>) -> Result<Vec<T>, KeyError> {
    rows.into_iter()
        .collect::<Option<Vec<T>>>()
        .ok_or_else(|| KeyError::new("a row has a null in a column that does not take nulls"))
}
