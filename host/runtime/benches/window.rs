//! A windowed count per key, and what a batch costs before its first row.
//!
//! Baseline: a loop over the same Arrow batches that counts in one hash map per window and drops windows that the
//! watermark has passed. It has no log, no state files, no recovery. CPU time of the process, candidates interleaved,
//! medians. Run with `./x bench window`, the fixed cost alone with `./x bench
//! window fixed`, one size alone with `./x bench window 10000`.

#![allow(clippy::print_stdout, clippy::panic, reason = "a program for people")]

mod support;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;
use hashbrown::HashMap;
use millstream_runtime::OutputMode;
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{Bench, Query, median, schema, timed};

const WINDOW_US: i64 = 10_000_000;
const DELAY_US: i64 = 5_000_000;
const KEYS: u64 = 1000;
const ROUNDS: usize = 7;

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        fixed_cost();
    }
    if std::env::args().any(|argument| argument == "fixed") {
        return;
    }
    for rows in [1_000, 10_000, 100_000] {
        if sizes.is_empty() || sizes.contains(&rows) {
            windowed_count(rows);
        }
    }
}

/// What one row costs, in a batch of its own.
fn fixed_cost() {
    println!("fixed cost: CPU µs of a batch of 1 row, memory source, noop sink, checkpoint in memory");
    let stateless = "SELECT k, v + 1 AS v FROM t WHERE v % 2 = 0";
    let windowed = "SELECT window.start AS s, k, count(*) AS n FROM t GROUP BY window(at, '10 seconds'), k";
    for (name, sql, mode, aim) in
        [("stateless", stateless, OutputMode::Append, 50), ("windowed count", windowed, OutputMode::Update, 150)]
    {
        let columns = schema("at timestamp, k string, v bigint");
        let delay_s = (mode == OutputMode::Update).then_some(5);
        let mut bench = Bench::new(Query { sql, mode, schema: columns, delay_s, partitions: 1, tables: Vec::new() });
        let mut costs = Vec::new();
        for round in 0..30 {
            let batches = 100;
            for batch in 0..batches {
                // One key and one window: the state does not grow.
                bench.add(rows_of(1, 5000 + (round * batches + batch) as u64 % 4));
            }
            let (cpu, (ran, _)) = timed(|| bench.run());
            costs.push(cpu * 1e6 / ran as f64);
        }
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        println!("  {name:<16}{:>8.1} median {least:>8.1} least   (aim: at most {aim})", median(costs));
    }
}

/// Rows of about a thousand per second of event time, with some disorder.
fn rows_of(rows: usize, unit: u64) -> RecordBatch {
    let first = unit * rows as u64;
    let mix = |i: u64| (i ^ (i >> 7)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let times = (first..first + rows as u64).map(|i| (i * 1000) as i64 - (mix(i) % 2_000_000) as i64);
    let times = TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC");
    let keys = StringArray::from_iter_values((first..first + rows as u64).map(|i| format!("key-{}", mix(i) % KEYS)));
    let values = Int64Array::from_iter_values((first..first + rows as u64).map(|i| (i % 100) as i64));
    let columns: Vec<ArrayRef> = vec![Arc::new(times), Arc::new(keys), Arc::new(values)];
    RecordBatch::try_new(schema("at timestamp, k string, v bigint"), columns).expect("the columns fit")
}

fn windowed_count(rows: usize) {
    let sql = "SELECT window.start AS s, k, count(*) AS n FROM t GROUP BY window(at, '10 seconds'), k";
    let columns = schema("at timestamp, k string, v bigint");
    let delay_s = Some(DELAY_US / 1_000_000);
    let query = Query { sql, mode: OutputMode::Append, schema: columns, delay_s, partitions: 1, tables: Vec::new() };
    let (mut bench, mut native) = (Bench::new(query), Loop::default());
    let units = (400_000 / rows).max(4) as u64;
    let (mut engine_cpu, mut loop_cpu) = (Vec::new(), Vec::new());
    let (mut engine_rows, mut loop_rows) = (0, 0);
    for round in 0..ROUNDS as u64 {
        let input: Vec<RecordBatch> = (0..units).map(|unit| rows_of(rows, round * units + unit)).collect();
        input.iter().for_each(|unit| drop(bench.add(unit.clone())));
        let (cpu, (_, out)) = timed(|| bench.run());
        engine_cpu.push(cpu);
        engine_rows += out;
        let (cpu, out) = timed(|| input.iter().map(|unit| native.batch(unit)).sum::<usize>());
        loop_cpu.push(cpu);
        loop_rows += out;
    }
    // The engine closes what the last batch's watermark passed in a batch without rows; the loop does it as it goes.
    loop_rows += native.evict().num_rows();
    assert!(engine_rows > 0 && engine_rows == loop_rows as i64, "{engine_rows} rows, and the loop has {loop_rows}");
    let total = (units as usize * rows) as f64;
    let (engine, native) = (median(engine_cpu) / total, median(loop_cpu) / total);
    println!(
        "windowed count, {rows:>6} rows per batch: {:>6.2} M rows per CPU second, the loop {:>6.2}, ratio {:.2}   (aim: at most 2.5)",
        1e-6 / engine,
        1e-6 / native,
        engine / native
    );
}

/// The hand-written loop.
#[derive(Default)]
struct Loop {
    windows: BTreeMap<i64, HashMap<String, i64>>,
    watermark: i64,
    greatest: i64,
}

impl Loop {
    /// Counts a batch; answers how many rows went out.
    fn batch(&mut self, rows: &RecordBatch) -> usize {
        // As the engine: late is what the batch before has closed, closed is what the batches before have shown.
        let out = self.evict().num_rows();
        let late = self.watermark;
        let times = rows.column(0).as_primitive::<TimestampMicrosecondType>();
        let keys = rows.column(1).as_string::<i32>();
        for row in 0..rows.num_rows() {
            let time = times.value(row);
            let start = time - time.rem_euclid(WINDOW_US);
            self.greatest = self.greatest.max(time);
            if start + WINDOW_US > late {
                *self.windows.entry(start).or_default().entry_ref(keys.value(row)).or_insert(0) += 1;
            }
        }
        out
    }

    /// Takes out the windows that the watermark has passed, as rows.
    fn evict(&mut self) -> RecordBatch {
        self.watermark = self.watermark.max((self.greatest / 1000 * 1000) - DELAY_US);
        let (mut starts, mut keys, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(window) = self.windows.first_entry() {
            if window.key() + WINDOW_US > self.watermark {
                break;
            }
            let (start, groups) = window.remove_entry();
            for (key, count) in groups {
                starts.push(start);
                keys.push(key);
                counts.push(count);
            }
        }
        let starts = TimestampMicrosecondArray::from(starts).with_timezone("UTC");
        let columns: Vec<ArrayRef> =
            vec![Arc::new(starts), Arc::new(StringArray::from(keys)), Arc::new(Int64Array::from(counts))];
        RecordBatch::try_new(schema("s timestamp, k string, n bigint"), columns).expect("the columns fit")
    }
}
