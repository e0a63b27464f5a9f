//! `equivalence [SEEDS [FIRST]]`: that many seeds on all cores; the first that fails ends it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for developers")]

use equivalence_tests::Outcome;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Ok(seeds), Ok(first)) = (arguments.next().unwrap_or(Ok(1000)), arguments.next().unwrap_or(Ok(0))) else {
        eprintln!("usage: equivalence [SEEDS [FIRST]]");
        return ExitCode::from(2);
    };
    let (next, failed, total) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::new(Outcome::default()));
    let began = Instant::now();
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        for _ in 0..cores {
            scope.spawn(|| work(first, seeds, &next, &failed, &total));
        }
        let mut said = Instant::now();
        while next.load(Ordering::Relaxed) < seeds && !failed.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
            if said.elapsed() > Duration::from_secs(20) {
                said = Instant::now();
                eprintln!("{} of {seeds} seeds", next.load(Ordering::Relaxed).min(seeds));
            }
        }
    });
    if failed.load(Ordering::Relaxed) {
        return ExitCode::FAILURE;
    }
    let outcome = *total.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    println!(
        "{seeds} seeds from {first}: {} batches, {} restarts and crashes, {} rows compared, all equal, in {:.0} s",
        outcome.batches,
        outcome.restarts,
        outcome.rows,
        began.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}

fn work(first: u64, seeds: u64, next: &AtomicU64, failed: &AtomicBool, total: &Mutex<Outcome>) {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= seeds || failed.load(Ordering::Relaxed) {
            return;
        }
        match equivalence_tests::run(first + index) {
            Ok(outcome) => {
                let mut total = total.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                total.batches += outcome.batches;
                total.restarts += outcome.restarts;
                total.rows += outcome.rows;
            }
            Err(error) => {
                failed.store(true, Ordering::Relaxed);
                eprintln!("{error:#}");
            }
        }
    }
}
