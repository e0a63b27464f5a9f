//! `crash N [FIRST]`: N seeds of random input, batch splits, crashes, restarts and partition counts against the model.
//!
//! The last line is `crash: N seeds, N failed`; the exit code is 0 only when none failed.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use recovery_tests::seed;
use std::process::ExitCode;

fn main() -> ExitCode {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let (seeds, first) = match numbers.as_deref() {
        Ok([]) => (100, 0),
        Ok([seeds]) => (*seeds, 0),
        Ok([seeds, first]) => (*seeds, *first),
        _ => {
            eprintln!("usage: crash [N [FIRST]]");
            return ExitCode::from(2);
        }
    };
    let (mut failed, mut crashes, mut batches) = (0_u64, 0_u64, 0_u64);
    for number in first..first + seeds {
        match seed::run(number) {
            Ok(outcome) => {
                crashes += outcome.crashes;
                batches += outcome.batches;
            }
            Err(error) => {
                failed += 1;
                println!("seed {number}: {error:#}");
            }
        }
    }
    println!("{batches} batches, {crashes} crashes and restarts");
    println!("crash: {seeds} seeds, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
