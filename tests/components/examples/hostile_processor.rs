//! Processors whose answers are not what a call asked for, each in another way. `honest` keeps the last number of each
//! key and gives it out.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, unsafe_code, reason = "generated exports")]

wit_bindgen::generate!({ path: "../../wit", world: "processor-plugin" });

use exports::millstream::plugin::{describe, processor};
use millstream::plugin::types::{Batch, Error, Field, RowError};

const NAMES: [&str; 16] = [
    "honest",
    "rows_of_no_key",
    "unsorted_rows",
    "missing_variable",
    "extra_variable",
    "two_values",
    "entries_of_no_key",
    "short_numbers",
    "short_column",
    "failed_with_rows",
    "failed_beyond",
    "timers_without_mode",
    "removed_from_value",
    "traps_at_seven",
    "loops_at_seven",
    "huge_state",
];

struct Hostile;

impl describe::Guest for Hostile {
    fn describe() -> Vec<describe::Function> {
        Vec::new()
    }
}

fn field(name: &str, format: &str) -> Field {
    Field { name: name.into(), format: format.into(), nullable: true, children: 0 }
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn column(values: &[i64]) -> Batch {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Batch { rows: values.len() as u32, buffers: vec![vec![], bytes] }
}

fn nothing() -> Batch {
    Batch { rows: 0, buffers: vec![] }
}

fn timers(keys: &[u32], due: &[i64]) -> processor::Timers {
    let due_ms = due.iter().flat_map(|due| due.to_le_bytes()).collect();
    processor::Timers { key_of_timer: numbers(keys), due_ms }
}

fn changes(keys: &[u32], values: &[i64]) -> processor::VariableChanges {
    processor::VariableChanges {
        cleared: vec![],
        key_of_removed: vec![],
        removed: nothing(),
        put: processor::Entries { key_of_entry: numbers(keys), map_keys: nothing(), columns: column(values) },
    }
}

/// The last number of each key of the call.
fn last_of(call: &processor::Invocation) -> (Vec<u32>, Vec<i64>) {
    let of_row =
        call.key_of_row.chunks_exact(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let values = call.rows.buffers[1].chunks_exact(8).map(|bytes| {
        let mut whole = [0; 8];
        whole.copy_from_slice(bytes);
        i64::from_le_bytes(whole)
    });
    let (mut keys, mut last): (Vec<u32>, Vec<i64>) = (vec![], vec![]);
    for (key, value) in of_row.zip(values) {
        if keys.last() == Some(&key) {
            last.pop();
        } else {
            keys.push(key);
        }
        last.push(value);
    }
    (keys, last)
}

impl processor::Guest for Hostile {
    fn describe() -> Vec<processor::ProcessorType> {
        let of = |name: &&str| processor::ProcessorType {
            name: (*name).to_owned(),
            key: vec![field("k", "u")],
            input: vec![field("v", "l")],
            output: vec![field("v", "l")],
            initial: vec![],
            variables: vec![processor::Variable {
                name: "last".into(),
                kind: processor::VariableKind::Value,
                map_key: vec![],
                columns: vec![field("v", "l")],
                state_id: "1".into(),
                ttl_ms: None,
            }],
            time_mode: processor::TimeMode::None,
            output_modes: processor::OutputModes::APPEND | processor::OutputModes::UPDATE,
        };
        NAMES.iter().map(of).collect()
    }

    fn process(number: u32, call: processor::Invocation) -> Result<processor::Outcome, Error> {
        let keys = call.keys.rows;
        let (owners, last) = last_of(&call);
        let mut outcome = processor::Outcome {
            rows: column(&last),
            key_of_row: numbers(&owners),
            changes: vec![changes(&owners, &last)],
            deleted_timers: timers(&[], &[]),
            registered_timers: timers(&[], &[]),
            key_errors: vec![],
        };
        match NAMES[number as usize] {
            "rows_of_no_key" => outcome.key_of_row = numbers(&owners.iter().map(|key| key + keys).collect::<Vec<_>>()),
            "unsorted_rows" => {
                outcome.key_of_row = numbers(&owners.iter().rev().copied().collect::<Vec<_>>());
                if owners.len() < 2 {
                    outcome.key_of_row = numbers(&[keys]);
                }
            }
            "missing_variable" => outcome.changes.clear(),
            "extra_variable" => outcome.changes.push(changes(&[], &[])),
            "two_values" => outcome.changes = vec![changes(&[0, 0], &[1, 2])],
            "entries_of_no_key" => outcome.changes = vec![changes(&[u32::MAX], &[1])],
            "short_numbers" => outcome.key_of_row.truncate(3),
            "short_column" => outcome.rows.buffers[1].truncate(7),
            "failed_with_rows" => outcome.key_errors = vec![RowError { row: 0, message: "no".into() }],
            "failed_beyond" => outcome.key_errors = vec![RowError { row: keys + 3, message: "no".into() }],
            "timers_without_mode" => outcome.registered_timers = timers(&[0], &[1]),
            "removed_from_value" => outcome.changes[0].key_of_removed = numbers(&[0]),
            "traps_at_seven" if last.contains(&7) => core::arch::wasm32::unreachable(),
            "loops_at_seven" if last.contains(&7) => loop {
                core::hint::spin_loop();
            },
            "huge_state" => {
                let many = vec![0; 40 << 20];
                outcome.changes = vec![changes(&[], &[])];
                outcome.changes[0].put.columns.buffers[1] = many.clone();
                outcome.rows.buffers[1] = many;
            }
            _ => {}
        }
        Ok(outcome)
    }

    fn expire(
        _number: u32,
        _call: processor::Invocation,
        _due: processor::Timers,
    ) -> Result<processor::Outcome, Error> {
        Err(Error::Internal("no timers".into()))
    }

    fn initialise(_number: u32, _call: processor::Invocation) -> Result<processor::Outcome, Error> {
        Err(Error::Internal("no initial rows".into()))
    }
}

export!(Hostile);
