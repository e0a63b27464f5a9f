//! Functions whose answers are no batches, each in another way.
#![cfg(target_arch = "wasm32")]
#![allow(unsafe_code, reason = "the exports")]

use test_components::raw::{Batch, Error, RowError, describe, export, field, function, scalar, table};

const SCALARS: [&str; 10] = [
    "short_values",
    "long_values",
    "missing_buffer",
    "extra_buffer",
    "wrong_rows",
    "short_bitmap",
    "falling_offsets",
    "offset_beyond_values",
    "bad_utf8",
    "row_error_beyond",
];
const TABLES: [&str; 4] = ["unordered_rows", "rows_beyond", "short_input_rows", "null_where_none"];

struct Garbage;

impl describe::Guest for Garbage {
    fn describe() -> Vec<describe::Function> {
        let strings = ["falling_offsets", "offset_beyond_values", "bad_utf8"];
        let format = |name: &str| if strings.contains(&name) { "u" } else { "l" };
        let scalars = SCALARS.iter().map(|name| function(name, describe::Kind::Scalar, field("y", format(name), true)));
        let tables = TABLES.iter().map(|name| function(name, describe::Kind::Table, field("y", "l", false)));
        scalars.chain(tables).collect()
    }
}

fn offsets(offsets: &[i32]) -> Vec<u8> {
    offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect()
}

impl scalar::Guest for Garbage {
    fn call(function: u32, arguments: Batch) -> Result<scalar::ScalarOutput, Error> {
        let rows = arguments.rows;
        let n = rows as usize;
        let values = vec![0; 8 * n];
        let mut row_errors = Vec::new();
        let mut said = rows;
        let text = |last: i32| {
            let mut all: Vec<i32> = vec![0; n];
            all.push(last);
            all
        };
        let buffers = match SCALARS[function as usize] {
            "short_values" => vec![vec![], values[..8 * n - 1].to_vec()],
            "long_values" => vec![vec![], [values, vec![0]].concat()],
            "missing_buffer" => vec![vec![]],
            "extra_buffer" => vec![vec![], values, vec![]],
            "wrong_rows" => {
                said = rows + 1;
                vec![vec![], vec![0; 8 * (n + 1)]]
            }
            "short_bitmap" => vec![vec![0; n.div_ceil(8) + 1], values],
            "falling_offsets" => {
                let mut falling = text(4);
                falling[n / 2] = -4;
                vec![vec![], offsets(&falling), b"abcd".to_vec()]
            }
            "offset_beyond_values" => vec![vec![], offsets(&text(1_000_000_000)), b"abcd".to_vec()],
            "bad_utf8" => vec![vec![], offsets(&text(4)), vec![b'a', 0xff, 0xfe, b'b']],
            _ => {
                row_errors.push(RowError { row: rows + 7, message: "far away".into() });
                vec![vec![], values]
            }
        };
        Ok(scalar::ScalarOutput { values: Batch { rows: said, buffers }, row_errors })
    }
}

impl table::Guest for Garbage {
    fn call(function: u32, arguments: Batch) -> Result<table::TableOutput, Error> {
        let rows = arguments.rows;
        let n = rows as usize;
        let ascending: Vec<u8> = (0..rows).flat_map(u32::to_le_bytes).collect();
        let values = vec![0; 8 * n];
        let (input_rows, buffers) = match TABLES[function as usize - SCALARS.len()] {
            "unordered_rows" => ((0..rows).rev().flat_map(u32::to_le_bytes).collect(), vec![vec![], values]),
            "rows_beyond" => ((1..=rows).flat_map(u32::to_le_bytes).collect(), vec![vec![], values]),
            "short_input_rows" => (ascending[..4 * n - 4].to_vec(), vec![vec![], values]),
            _ => (ascending, vec![vec![0; n.div_ceil(8)], values]),
        };
        Ok(table::TableOutput { input_rows, rows: Batch { rows, buffers }, row_errors: vec![] })
    }
}

export!(Garbage with_types_in test_components::raw);
