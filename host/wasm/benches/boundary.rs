//! What the boundary costs: the same functions as a plugin and as native code over Arrow arrays.
//!
//! Cost model: a call costs a fixed part (entering the guest, allocating, one transfer each way) and a part per row (the
//! copies, the guest's own compute with bounds checks and deadline checks). Where the fixed part goes is told at the end.
//! Thread CPU time, candidates interleaved, medians. Outputs are compared before anything is timed. Run with `./x bench boundary`; behind it a case's name leaves
//! the others out, and a number of rows behind that calls with so many rows until it is stopped, for a profiler.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]
#![allow(unsafe_code, reason = "clock_gettime")]

#[path = "boundary/fixed.rs"]
mod fixed;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringArray, StringBuilder, UInt32Array};
use arrow::datatypes::{Float64Type, Int64Type};
use millstream_wasm::build::{self, Part, Profile};
use millstream_wasm::{FaultPolicy, PluginHost, PluginLimits, PluginSlot};

const ROWS: [usize; 5] = [1, 64, 1024, 8192, 65536];

/// The result of either side: input rows (of table functions) and the column.
type Output = (Option<UInt32Array>, ArrayRef);

struct Case {
    name: &'static str,
    native: fn(&[ArrayRef]) -> Output,
    plugin: fn(&PluginSlot, usize, &[ArrayRef]) -> Output,
    arguments: fn(usize) -> Vec<ArrayRef>,
}

fn numbers(rows: usize) -> Vec<ArrayRef> {
    let a = (0..rows as i64).map(|i| (i % 10 != 3).then_some(i * 7919 % 100_003));
    let b = (0..rows).map(|i| i as f64 * 1.25);
    vec![Arc::new(a.collect::<Int64Array>()), Arc::new(Float64Array::from_iter_values(b))]
}

fn lines(rows: usize) -> Vec<ArrayRef> {
    let line = |i: usize| {
        format!(
            "  {i},click by user {},https://shop{}.example.org/items/{}/view?from=mail,{}  ",
            i % 977,
            i % 37,
            i % 1009,
            i * 3
        )
    };
    vec![Arc::new(StringArray::from_iter_values((0..rows).map(line)))]
}

fn sentences(rows: usize) -> Vec<ArrayRef> {
    let words = ["the", "stream", "of", "a", "river", "carries", "in", "every", "drop", "an", "offset", "to", "sea"];
    let sentence = |i: usize| (0..9).map(|j| words[(i * 31 + j * 7) % words.len()]).collect::<Vec<_>>().join(" ");
    vec![Arc::new(StringArray::from_iter_values((0..rows).map(sentence)))]
}

fn mix(arguments: &[ArrayRef]) -> Output {
    let (a, b) = (arguments[0].as_primitive::<Int64Type>(), arguments[1].as_primitive::<Float64Type>());
    let values: Vec<f64> = a.values().iter().zip(b.values()).map(|(a, b)| *a as f64 * 0.5 + b.sqrt() * 3.0).collect();
    (None, Arc::new(Float64Array::new(values.into(), a.nulls().cloned())))
}

fn host(arguments: &[ArrayRef]) -> Output {
    let lines = arguments[0].as_string::<i32>();
    let mut builder = StringBuilder::with_capacity(lines.len(), lines.len() * 20);
    for line in lines {
        builder.append_option(line.map(|line| {
            let field = line.trim().split(',').nth(2).unwrap_or("");
            let rest = field.split_once("://").map_or(field, |(_, rest)| rest);
            rest.split('/').next().unwrap_or("").to_uppercase()
        }));
    }
    (None, Arc::new(builder.finish()))
}

fn long_words(arguments: &[ArrayRef]) -> Output {
    let lines = arguments[0].as_string::<i32>();
    let mut builder = StringBuilder::with_capacity(lines.len() * 8, lines.len() * 50);
    let mut input_rows = Vec::with_capacity(lines.len() * 8);
    for (row, line) in (0..).zip(lines) {
        for word in line.unwrap_or("").split(' ').filter(|word| word.len() >= 3) {
            builder.append_value(word);
            input_rows.push(row);
        }
    }
    (Some(UInt32Array::from(input_rows)), Arc::new(builder.finish()))
}

const CASES: [Case; 3] = [
    Case {
        name: "scalar",
        native: mix,
        plugin: |slot, rows, arguments| (None, slot.call_scalar("mix", rows, arguments).unwrap().values),
        arguments: numbers,
    },
    Case {
        name: "string",
        native: host,
        plugin: |slot, rows, arguments| (None, slot.call_scalar("host", rows, arguments).unwrap().values),
        arguments: lines,
    },
    Case {
        name: "flat-map",
        native: long_words,
        plugin: |slot, rows, arguments| {
            let mut outcome = slot.call_table("long_words", rows, arguments).unwrap();
            (Some(outcome.input_rows), outcome.columns.remove(0))
        },
        arguments: sentences,
    },
];

/// CPU time of this thread, in nanoseconds.
fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec and outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds per call of both sides: medians over interleaved rounds of about a millisecond and more.
fn measure(slot: &PluginSlot, case: &Case, rows: usize) -> (f64, f64) {
    let arguments = (case.arguments)(rows);
    assert_eq!((case.native)(&arguments), (case.plugin)(slot, rows, &arguments), "{} of {rows} rows differ", case.name);
    let repeat = (200_000 / (rows * 50 + 1000)).max(1);
    let rounds = if rows > 10_000 { 25 } else { 61 };
    let time = |run: &dyn Fn()| {
        let start = cpu_ns();
        (0..repeat).for_each(|_| run());
        (cpu_ns() - start) / repeat as f64
    };
    let (mut native, mut plugin) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        native.push(time(&|| drop(std::hint::black_box((case.native)(&arguments)))));
        plugin.push(time(&|| drop(std::hint::black_box((case.plugin)(slot, rows, &arguments)))));
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    (median(&mut native), median(&mut plugin))
}

/// Least squares with weights 1/rows², so that small and large batches count alike: fixed ns, ns per row.
fn fit(points: &[(usize, f64)]) -> (f64, f64) {
    let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(rows, y) in points {
        let (x, weight) = (rows as f64, 1.0 / (y * y));
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    let slope = (w * wxy - wx * wy) / (w * wxx - wx * wx);
    ((wy - slope * wx) / w, slope)
}

fn main() {
    let target = build::guest_target_dir();
    let toolchain = build::find_toolchain(&target, &|_| {}).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/components");
    let built = build::build_with(&toolchain, &folder, Part::Examples, Profile::Release, &target, &|_| {}).unwrap();
    let file = built.iter().find(|file| file.file_stem().is_some_and(|stem| stem == "bench")).unwrap();
    let host = PluginHost::new().unwrap();
    let bytes = std::fs::read(file).unwrap();
    let component = host.load("bench", &bytes).unwrap();
    let limits = PluginLimits { deadline: Duration::from_secs(10), ..PluginLimits::default() };
    let slot = PluginSlot::new("bench", host, component, limits, FaultPolicy::Fail);

    let mut wanted = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let (case, rows) = (wanted.next(), wanted.next());
    let cases = || CASES.iter().filter(|it| case.as_ref().is_none_or(|name| name == it.name));
    if let Some(rows) = rows {
        let rows = rows.parse().unwrap();
        let case = cases().next().unwrap();
        let arguments = (case.arguments)(rows);
        loop {
            (case.plugin)(&slot, rows, &arguments);
        }
    }
    println!("plugin against native, thread CPU time, ns per row");
    for case in cases() {
        println!("\n{:<10}{:>10}{:>12}{:>12}{:>8}", case.name, "rows", "native", "plugin", "ratio");
        let mut points = Vec::new();
        for rows in ROWS {
            let (native, plugin) = measure(&slot, case, rows);
            let n = rows as f64;
            println!("{:<10}{rows:>10}{:>12.1}{:>12.1}{:>8.2}", "", native / n, plugin / n, plugin / native);
            points.push((rows, plugin));
        }
        let (fixed, per_row) = fit(&points);
        println!("{:<10}{:.0} ns per call + {per_row:.1} ns per row", "fitted", fixed);
    }
    if case.is_none() {
        fixed::print(&slot, &bytes, "mix", &numbers(1), cpu_ns);
    }
}
