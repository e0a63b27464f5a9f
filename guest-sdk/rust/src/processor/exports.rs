//! The export of a component's processors, for whatever implements [`Plugin`].
#![allow(missing_docs, reason = "the items of a trait that is generated from wit/, where each has its document")]

use super::run::{ProcessorType, RegisteredProcessor};
use super::variable::{VariableKind, VariableType};
use super::{OutputMode, TimeMode, wire};
use crate::bindings::describing::millstream::plugin::types;
use crate::bindings::processors::exports::millstream::plugin::processor;
use crate::bindings::{batch, row_errors, wire as wire_batch, wire_fields};
use crate::plugin::Plugin;

impl<P: Plugin> processor::Guest for P {
    fn describe() -> Vec<processor::ProcessorType> {
        crate::log::log_panics();
        P::processors().into_iter().map(|processor| described((processor.describe)())).collect()
    }

    fn process(number: u32, call: processor::Invocation) -> Result<processor::Outcome, types::Error> {
        run::<P>(number, wire::Step::Process, call)
    }

    fn expire(
        number: u32,
        call: processor::Invocation,
        due: processor::Timers,
    ) -> Result<processor::Outcome, types::Error> {
        run::<P>(number, wire::Step::Expire(timers(due)), call)
    }

    fn initialise(number: u32, call: processor::Invocation) -> Result<processor::Outcome, types::Error> {
        run::<P>(number, wire::Step::Initialise, call)
    }
}

fn run<P: Plugin>(
    number: u32,
    step: wire::Step,
    call: processor::Invocation,
) -> Result<processor::Outcome, types::Error> {
    crate::log::log_panics();
    let all = P::processors();
    let processor: Option<&RegisteredProcessor> = usize::try_from(number).ok().and_then(|number| all.get(number));
    let processor = processor.ok_or_else(|| types::Error::Internal(format!("no processor {number}")))?;
    Ok(outcome((processor.run)(&step, &invocation(call))))
}

fn described(described: ProcessorType) -> processor::ProcessorType {
    let mut modes = processor::OutputModes::empty();
    for mode in described.output_modes {
        let mode = match mode {
            OutputMode::Append => processor::OutputModes::APPEND,
            OutputMode::Update => processor::OutputModes::UPDATE,
        };
        modes = modes | mode;
    }
    processor::ProcessorType {
        name: described.name.to_owned(),
        key: wire_fields(described.key),
        input: wire_fields(described.input),
        output: wire_fields(described.output),
        initial: wire_fields(described.initial),
        variables: described.variables.into_iter().map(variable).collect(),
        time_mode: match described.time_mode {
            TimeMode::None => processor::TimeMode::None,
            TimeMode::ProcessingTime => processor::TimeMode::ProcessingTime,
            TimeMode::EventTime => processor::TimeMode::EventTime,
        },
        output_modes: modes,
    }
}

fn variable(described: VariableType) -> processor::Variable {
    processor::Variable {
        name: described.name,
        kind: match described.kind {
            VariableKind::Value => processor::VariableKind::Value,
            VariableKind::List => processor::VariableKind::List,
            VariableKind::Map => processor::VariableKind::Map,
        },
        map_key: wire_fields(described.map_key),
        columns: wire_fields(described.columns),
        state_id: described.state_id,
        ttl_ms: described.ttl_ms,
    }
}

fn timers(timers: processor::Timers) -> wire::Timers {
    wire::Timers { key_of_timer: timers.key_of_timer, due_ms: timers.due_ms }
}

fn wired_timers(timers: wire::Timers) -> processor::Timers {
    processor::Timers { key_of_timer: timers.key_of_timer, due_ms: timers.due_ms }
}

fn invocation(call: processor::Invocation) -> wire::Invocation {
    let entries = |entries: processor::Entries| wire::Entries {
        key_of_entry: entries.key_of_entry,
        map_keys: batch(entries.map_keys),
        columns: batch(entries.columns),
    };
    wire::Invocation {
        keys: batch(call.keys),
        key_of_row: call.key_of_row,
        rows: batch(call.rows),
        state: call.state.into_iter().map(entries).collect(),
        timers: timers(call.timers),
        batch_time_ms: call.batch_time_ms,
        watermark_ms: call.watermark_ms,
    }
}

fn outcome(outcome: wire::Outcome) -> processor::Outcome {
    let changes = |changes: wire::VariableChanges| processor::VariableChanges {
        cleared: changes.cleared,
        key_of_removed: changes.key_of_removed,
        removed: wire_batch(changes.removed),
        put: processor::Entries {
            key_of_entry: changes.put.key_of_entry,
            map_keys: wire_batch(changes.put.map_keys),
            columns: wire_batch(changes.put.columns),
        },
    };
    processor::Outcome {
        rows: wire_batch(outcome.rows),
        key_of_row: outcome.key_of_row,
        changes: outcome.changes.into_iter().map(changes).collect(),
        deleted_timers: wired_timers(outcome.deleted_timers),
        registered_timers: wired_timers(outcome.registered_timers),
        key_errors: row_errors(outcome.key_errors),
    }
}
