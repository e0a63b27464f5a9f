//! A function for which the host leaves out rows with nulls: it would fail on them.
#![cfg(target_arch = "wasm32")]
#![allow(unsafe_code, reason = "the exports")]

use test_components::raw::{Batch, Error, RowError, describe, export, field, function, scalar, table};

struct Skips;

impl describe::Guest for Skips {
    fn describe() -> Vec<describe::Function> {
        let mut functions = vec![
            function("negate", describe::Kind::Scalar, field("y", "l", true)),
            function("same", describe::Kind::Table, field("y", "l", false)),
        ];
        functions.iter_mut().for_each(|function| function.nulls = describe::Nulls::Skipped);
        functions
    }
}

fn numbers(arguments: &Batch) -> Result<Vec<i64>, Error> {
    if !arguments.buffers[0].is_empty() {
        return Err(Error::Internal("there are nulls".into()));
    }
    let (values, _) = arguments.buffers[1].as_chunks::<8>();
    Ok(values.iter().map(|value| i64::from_le_bytes(*value)).collect())
}

impl scalar::Guest for Skips {
    fn call(_: u32, arguments: Batch) -> Result<scalar::ScalarOutput, Error> {
        let numbers = numbers(&arguments)?;
        let values = numbers.iter().flat_map(|number| (-number).to_le_bytes()).collect();
        let thirteen = (0..).zip(&numbers).filter(|(_, number)| **number == 13);
        let row_errors = thirteen.map(|(row, _)| RowError { row, message: "13".into() }).collect();
        Ok(scalar::ScalarOutput { values: Batch { rows: arguments.rows, buffers: vec![vec![], values] }, row_errors })
    }
}

impl table::Guest for Skips {
    fn call(_: u32, arguments: Batch) -> Result<table::TableOutput, Error> {
        let values = numbers(&arguments)?.iter().flat_map(|number| number.to_le_bytes()).collect();
        let input_rows = (0..arguments.rows).flat_map(u32::to_le_bytes).collect();
        let rows = Batch { rows: arguments.rows, buffers: vec![vec![], values] };
        Ok(table::TableOutput { input_rows, rows, row_errors: vec![] })
    }
}

export!(Skips with_types_in test_components::raw);
