//! Aggregate functions whose answers are no states, each in another way, where an argument is 13 or a state is.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, unsafe_code, reason = "generated exports")]

wit_bindgen::generate!({ path: "../../wit", world: "aggregate-plugin" });

use exports::millstream::plugin::{aggregate, describe};
use millstream::plugin::types::{Batch, Error, Field, Nulls, RowError};

const NAMES: [&str; 8] = [
    "fewer_groups",
    "more_groups",
    "short_states",
    "extra_buffer",
    "missing_buffer",
    "null_state",
    "row_error_beyond",
    "group_of_nowhere",
];

struct Garbage;

impl describe::Guest for Garbage {
    fn describe() -> Vec<describe::Function> {
        Vec::new()
    }
}

/// A function of one number, whose state is one number that is never null.
fn function(name: &str) -> aggregate::AggregateFunction {
    let field = |name: &str, nullable| Field { name: name.into(), format: "l".into(), nullable, children: 0 };
    aggregate::AggregateFunction {
        name: name.into(),
        arguments: vec![field("x", true)],
        result: vec![field("value", true)],
        state: vec![field("sum", false)],
        state_id: String::new(),
        nulls: Nulls::Skipped,
        retracts: false,
    }
}

fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks::<8>().0.iter().map(|value| i64::from_le_bytes(*value)).collect()
}

fn column(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Sums, and garbage where a 13 is among the values.
fn sums(number: u32, groups: u32, group_of_row: &[u8], values: &Batch) -> Result<aggregate::StatesOutput, Error> {
    let values = numbers(&values.buffers[1]);
    let mut sums = vec![0; groups as usize];
    for (group, value) in group_of_row.as_chunks::<4>().0.iter().zip(&values) {
        sums[u32::from_le_bytes(*group) as usize] += value;
    }
    let mut states = Batch { rows: groups, buffers: vec![vec![], column(&sums)] };
    let mut row_errors = Vec::new();
    if values.contains(&13) {
        match NAMES[number as usize] {
            "fewer_groups" => states = Batch { rows: groups - 1, buffers: vec![vec![], column(&sums[1..])] },
            "more_groups" => {
                sums.push(1);
                states = Batch { rows: groups + 1, buffers: vec![vec![], column(&sums)] };
            }
            "short_states" => {
                states.buffers[1].pop();
            }
            "extra_buffer" => states.buffers.push(vec![]),
            "missing_buffer" => {
                states.buffers.pop();
            }
            "null_state" => states.buffers[0] = vec![0; sums.len().div_ceil(8)],
            "row_error_beyond" => row_errors.push(RowError { row: u32::MAX, message: "far away".into() }),
            _ => {
                let far = group_of_row.len() * 1000;
                sums[far] = 1;
            }
        }
    }
    Ok(aggregate::StatesOutput { states, row_errors })
}

impl aggregate::Guest for Garbage {
    fn describe() -> Vec<aggregate::AggregateFunction> {
        NAMES.iter().map(|name| function(name)).collect()
    }

    fn accumulate(
        number: u32,
        groups: u32,
        group_of_row: Vec<u8>,
        arguments: Batch,
    ) -> Result<aggregate::StatesOutput, Error> {
        sums(number, groups, &group_of_row, &arguments)
    }

    fn merge(number: u32, groups: u32, group_of_row: Vec<u8>, states: Batch) -> Result<aggregate::StatesOutput, Error> {
        sums(number, groups, &group_of_row, &states)
    }

    fn retract(_: u32, _: Batch, _: Vec<u8>, _: Batch) -> Result<aggregate::StatesOutput, Error> {
        Err(Error::Internal("it does not retract".into()))
    }

    fn evaluate(_: u32, states: Batch) -> Result<aggregate::ResultsOutput, Error> {
        Ok(aggregate::ResultsOutput { values: states, row_errors: vec![] })
    }
}

export!(Garbage);
