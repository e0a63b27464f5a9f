//! What a plugin costs in each language: the same functions, the guests of `tests/languages`.
//!
//! Per component: its size, how long it takes to build (when it was not built already), to compile for this machine, to
//! make an instance and call it for the first time, and how much memory an instance holds. Per function: the fixed cost
//! of a call and the cost of a row, fitted over four sizes; thread CPU time, medians. Run with `./x bench languages`;
//! `NAME=FILE` adds a component that is not built here.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]
#![allow(unsafe_code, reason = "clock_gettime")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int64Array, StringArray};
use millstream_wasm::build::{Profile, Project, build_plugin, guest_target_dir};
use millstream_wasm::{FaultPolicy, PluginHost, PluginLimits, PluginSlot};

const ROWS: [usize; 4] = [1, 64, 1024, 8192];
/// Instances that are alive at a time, to see what one takes.
const INSTANCES: usize = 8;

/// CPU time of this thread, in nanoseconds.
fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec and outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Resident memory of the process, in bytes.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}

fn numbers(rows: usize) -> Vec<ArrayRef> {
    let column = |factor: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|i| i * factor % 100_003)))
    };
    vec![column(7919), column(104_729)]
}

fn lines(rows: usize) -> Vec<ArrayRef> {
    let words = ["the", "stream", "of", "a", "river", "carries", "in", "every", "drop", "an", "offset", "to", "sea"];
    let line = |i: usize| (0..9).map(|j| words[(i * 31 + j * 7) % words.len()]).collect::<Vec<_>>().join(" ");
    vec![Arc::new(StringArray::from_iter_values((0..rows).map(line)))]
}

struct Case {
    name: &'static str,
    call: fn(&PluginSlot, usize, &[ArrayRef]),
    arguments: fn(usize) -> Vec<ArrayRef>,
}

const CASES: [Case; 3] = [
    Case {
        name: "heat (two numbers)",
        call: |slot, rows, arguments| drop(slot.call_scalar("heat", rows, arguments).unwrap()),
        arguments: numbers,
    },
    Case {
        name: "shout (a text of 40 bytes)",
        call: |slot, rows, arguments| drop(slot.call_scalar("shout", rows, arguments).unwrap()),
        arguments: lines,
    },
    Case {
        name: "words (9 rows per row)",
        call: |slot, rows, arguments| drop(slot.call_table("words", rows, arguments).unwrap()),
        arguments: lines,
    },
];

/// Nanoseconds of one call, the median of rounds of some milliseconds.
fn measure(slot: &PluginSlot, case: &Case, rows: usize) -> f64 {
    let arguments = (case.arguments)(rows);
    let call = || (case.call)(slot, rows, &arguments);
    call();
    let start = cpu_ns();
    call();
    let once = cpu_ns() - start;
    let repeat = ((2e6 / once) as usize).clamp(1, 1000);
    let rounds = ((3e8 / (once * repeat as f64)) as usize).clamp(5, 31);
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = cpu_ns();
            (0..repeat).for_each(|_| call());
            (cpu_ns() - start) / repeat as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Least squares with weights 1/y², so that small and large batches count alike: fixed ns, ns per row.
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

fn limits() -> PluginLimits {
    PluginLimits { deadline: Duration::from_secs(60), memory_bytes: 256 << 20, ..PluginLimits::default() }
}

/// The components: every language's, and those that are named.
fn components() -> Vec<(String, PathBuf, f64)> {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/languages/guests");
    let mut folders: Vec<_> = guests.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort_by_key(|folder| (!folder.ends_with("rust"), folder.clone()));
    let mut components = Vec::new();
    for folder in folders {
        let start = Instant::now();
        let file =
            build_plugin(&Project::open(&folder).unwrap(), Profile::Release, &guest_target_dir(), &|_| {}).unwrap();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        components.push((name, file, start.elapsed().as_secs_f64()));
    }
    for argument in std::env::args().skip(1) {
        if let Some((name, file)) = argument.split_once('=') {
            components.push((name.to_owned(), file.into(), 0.0));
        }
    }
    components
}

fn main() {
    println!(
        "{:<14}{:>10}{:>9}{:>11}{:>10}{:>12}",
        "language", "size KiB", "build s", "compile s", "start ms", "memory KiB"
    );
    let mut slots = Vec::new();
    for (name, file, built) in components() {
        let bytes = std::fs::read(&file).unwrap();
        // An engine of its own: what was compiled for another measurement is not there.
        let host = PluginHost::new().unwrap();
        let start = Instant::now();
        let component = host.load(&name, &bytes).unwrap();
        let compiled = start.elapsed().as_secs_f64();
        let slot = || PluginSlot::new(&name, Arc::clone(&host), Arc::clone(&component), limits(), FaultPolicy::Fail);
        let mut starts = Vec::new();
        let before = resident();
        let alive: Vec<_> = (0..INSTANCES)
            .map(|_| {
                let slot = slot();
                let start = Instant::now();
                (CASES[0].call)(&slot, 1, &numbers(1));
                starts.push(start.elapsed().as_secs_f64() * 1e3);
                (CASES[1].call)(&slot, 1024, &lines(1024));
                slot
            })
            .collect();
        let memory = (resident() - before) / INSTANCES as f64 / 1024.0;
        starts.sort_by(f64::total_cmp);
        let (size, start) = (bytes.len() as f64 / 1024.0, starts[starts.len() / 2]);
        println!("{name:<14}{size:>10.0}{built:>9.1}{compiled:>11.2}{start:>10.2}{memory:>12.0}");
        drop(alive);
        slots.push((name.clone(), slot()));
    }
    for case in &CASES {
        println!("\n{:<28}{:>12}{:>12}{:>14}{:>12}", case.name, "1 row", "8192 rows", "fixed ns", "ns per row");
        for (name, slot) in &slots {
            let points: Vec<_> = ROWS.iter().map(|&rows| (rows, measure(slot, case, rows))).collect();
            let (fixed, per_row) = fit(&points);
            let (one, most) = (points[0].1, points[ROWS.len() - 1].1 / ROWS[ROWS.len() - 1] as f64);
            println!("{name:<28}{one:>12.0}{most:>12.1}{fixed:>14.0}{per_row:>12.1}");
        }
    }
}
