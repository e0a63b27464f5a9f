//! Sources that do what none should, each in another way; `honest` counts to a hundred in steps of ten.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, unsafe_code, reason = "generated exports")]

wit_bindgen::generate!({ path: "../../wit", world: "source-plugin" });

use core::hint::black_box;
use core::sync::atomic::{AtomicI64, Ordering};
use exports::millstream::plugin::{describe, source};
use millstream::plugin::types::{Batch, Error, Field};

const NAMES: [&str; 27] = [
    "honest",
    "spins_at_the_start",
    "spins_when_asked",
    "spins_while_reading",
    "spins_in_commit",
    "traps_at_the_start",
    "traps_when_asked",
    "traps_while_reading",
    "traps_in_commit",
    "huge_offset",
    "huge_cursor",
    "goes_back",
    "endless_pages",
    "endless_empty_pages",
    "page_to_itself",
    "too_many_rows",
    "short_column",
    "missing_column",
    "extra_column",
    "bad_text",
    "null_where_none",
    "lying_rows",
    "hoards",
    "refuses",
    "not_now",
    "other_rows_again",
    "remembers",
];

struct Hostile;

impl describe::Guest for Hostile {
    fn describe() -> Vec<describe::Function> {
        Vec::new()
    }
}

fn spin() {
    let mut n = 0_u64;
    while black_box(true) {
        n = black_box(n.wrapping_add(1));
    }
}

fn trap() {
    if black_box(true) {
        core::arch::wasm32::unreachable();
    }
}

fn name(number: u32) -> &'static str {
    NAMES[number as usize]
}

fn number(offset: &str) -> i64 {
    offset.parse().unwrap_or(0)
}

/// The column `n`, and a text for each.
fn rows(values: &[i64]) -> Batch {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let offsets = (0..=values.len() as u32).flat_map(u32::to_le_bytes).collect();
    Batch { rows: values.len() as u32, buffers: vec![vec![], bytes, vec![], offsets, vec![b'x'; values.len()]] }
}

impl source::Guest for Hostile {
    fn describe() -> Vec<source::SourceType> {
        let field =
            |name: &str, format: &str| Field { name: name.into(), format: format.into(), nullable: false, children: 0 };
        let of = |name: &&str| source::SourceType {
            name: (*name).to_owned(),
            columns: vec![field("n", "l"), field("t", "u")],
            options: vec![],
        };
        NAMES.iter().map(of).collect()
    }

    fn initial_offset(number: u32, _options: source::Options) -> Result<String, Error> {
        match name(number) {
            "spins_at_the_start" => spin(),
            "traps_at_the_start" => trap(),
            _ => {}
        }
        Ok("0".to_owned())
    }

    fn latest_offset(
        source: u32,
        _options: source::Options,
        start: String,
        _limits: source::Limits,
    ) -> Result<String, Error> {
        match name(source) {
            "spins_when_asked" => spin(),
            "traps_when_asked" => trap(),
            "huge_offset" => return Ok("9".repeat(1 << 20)),
            "goes_back" if number(&start) >= 20 => return Ok("10".to_owned()),
            _ => {}
        }
        Ok((number(&start) + 10).min(100).to_string())
    }

    fn read(
        source: u32,
        _options: source::Options,
        start: String,
        end: String,
        cursor: Option<String>,
    ) -> Result<source::Page, Error> {
        static CALLS: AtomicI64 = AtomicI64::new(0);
        let calls = CALLS.fetch_add(1, Ordering::Relaxed);
        let mut values: Vec<i64> = (number(&start)..number(&end)).collect();
        let mut next = None;
        match name(source) {
            "spins_while_reading" => spin(),
            "traps_while_reading" => trap(),
            "huge_cursor" => next = Some("9".repeat(1 << 20)),
            "endless_pages" => next = Some((number(&cursor.unwrap_or_default()) + 1).to_string()),
            "endless_empty_pages" => {
                values.clear();
                next = Some((number(&cursor.unwrap_or_default()) + 1).to_string());
            }
            "page_to_itself" => next = Some("here".to_owned()),
            "too_many_rows" => {
                values = vec![7; 2_000_000];
                next = Some((number(&cursor.unwrap_or_default()) + 1).to_string());
            }
            "hoards" => {
                let mut all = Vec::new();
                while black_box(true) {
                    all.push(vec![1_u8; 1 << 20]);
                    black_box(&all);
                }
            }
            "refuses" => return Err(Error::InvalidInput("no such rows, said the source".to_owned())),
            "not_now" => return Err(Error::Unavailable("the sea is rough".to_owned())),
            "remembers" => values.iter_mut().for_each(|value| *value += calls),
            _ => {}
        }
        let mut rows = rows(&values);
        match name(source) {
            "short_column" => rows.buffers[1].truncate(7),
            "missing_column" => rows.buffers.truncate(2),
            "extra_column" => rows.buffers.push(vec![1, 2, 3]),
            "bad_text" => rows.buffers[4].fill(0xff),
            "null_where_none" => rows.buffers[0] = vec![0; values.len().div_ceil(8)],
            "lying_rows" => rows.rows = u32::MAX,
            "other_rows_again" => rows.buffers[1][0] = calls as u8,
            _ => {}
        }
        Ok(source::Page { rows, next })
    }

    fn commit(number: u32, _options: source::Options, _offset: String) -> Result<(), Error> {
        match name(number) {
            "spins_in_commit" => spin(),
            "traps_in_commit" => trap(),
            _ => {}
        }
        Ok(())
    }
}

export!(Hostile);
