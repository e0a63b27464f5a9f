//! A running aggregate over a million keys, in update mode.
//!
//! Baseline: a loop over the same Arrow batches that keeps count and sum per key in one hash map and gives the rows of
//! the keys that the batch touched. It has no log, no state files, no recovery. CPU time of the process, candidates
//! interleaved, medians. Run with `./x bench keys`.

#![allow(clippy::print_stdout, clippy::panic, reason = "a program for people")]

mod support;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use hashbrown::{HashMap, HashSet};
use millstream_runtime::OutputMode;
use std::sync::Arc;
use support::{Bench, Query, median, schema, timed};

const KEYS: u64 = 1_000_000;
const ROUNDS: u64 = 7;

fn main() {
    for rows in [10_000, 100_000] {
        running_aggregate(rows);
    }
}

fn mix(i: u64) -> u64 {
    let i = (i ^ (i >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (i ^ (i >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 11
}

fn rows_of(rows: usize, key: impl Fn(u64) -> u64) -> RecordBatch {
    let keys = Int64Array::from_iter_values((0..rows as u64).map(|i| key(i) as i64));
    let values = Int64Array::from_iter_values((0..rows as u64).map(|i| (mix(i) % 1000) as i64));
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(values)];
    RecordBatch::try_new(schema("k bigint, v bigint"), columns).expect("the columns fit")
}

fn running_aggregate(rows: usize) {
    let query = Query {
        sql: "SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k",
        mode: OutputMode::Update,
        schema: schema("k bigint, v bigint"),
        delay_s: None,
        partitions: 1,
        tables: Vec::new(),
    };
    let (mut bench, mut native) = (Bench::new(query), HashMap::new());
    // Every key is there before anything is timed.
    for chunk in 0..KEYS / 100_000 {
        let unit = rows_of(100_000, |i| chunk * 100_000 + i);
        bench.add(unit.clone());
        bench.run();
        update(&mut native, &unit);
    }
    let units = (500_000 / rows) as u64;
    let (mut engine_cpu, mut loop_cpu) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let unit_of = |unit: u64| rows_of(rows, |i| mix((round * units + unit) * rows as u64 + i) % KEYS);
        let input: Vec<RecordBatch> = (0..units).map(unit_of).collect();
        input.iter().for_each(|unit| drop(bench.add(unit.clone())));
        let (cpu, (_, out)) = timed(|| bench.run());
        engine_cpu.push(cpu);
        let (cpu, expected) = timed(|| input.iter().map(|unit| update(&mut native, unit).num_rows()).sum::<usize>());
        loop_cpu.push(cpu);
        assert_eq!(out, expected as i64, "rows of touched keys");
    }
    let total = (units as usize * rows) as f64;
    let (engine, native) = (median(engine_cpu) / total, median(loop_cpu) / total);
    println!(
        "running aggregate, 1 M keys, {rows:>6} rows per batch: {:>5.2} M rows per CPU second, the loop {:>5.2}, ratio {:.2}   (aim: at most 4)",
        1e-6 / engine,
        1e-6 / native,
        engine / native
    );
}

/// The hand-written loop: count and sum per key, and the rows of the keys of this batch.
fn update(state: &mut HashMap<i64, (i64, i64)>, rows: &RecordBatch) -> RecordBatch {
    let keys = rows.column(0).as_primitive::<Int64Type>().values();
    let values = rows.column(1).as_primitive::<Int64Type>().values();
    let (mut seen, mut touched) = (HashSet::with_capacity(rows.num_rows()), Vec::with_capacity(rows.num_rows()));
    for (key, value) in keys.iter().zip(values) {
        let (count, sum) = state.entry(*key).or_insert((0, 0));
        *count += 1;
        *sum += value;
        if seen.insert(*key) {
            touched.push(*key);
        }
    }
    let counts = Int64Array::from_iter_values(touched.iter().map(|key| state[key].0));
    let sums = Int64Array::from_iter_values(touched.iter().map(|key| state[key].1));
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(touched)), Arc::new(counts), Arc::new(sums)];
    RecordBatch::try_new(schema("k bigint, n bigint, s bigint"), columns).expect("the columns fit")
}
