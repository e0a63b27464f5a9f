//! `swaps [N [SEED]]`: N random swaps under load, with kills between.
//!
//! The last line is `swaps: N done, N lost, N doubled, pause p99 N ms`; the exit code is 0 only when nothing was lost,
//! doubled or left unexplained.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::process::ExitCode;

fn main() -> ExitCode {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let (swaps, seed) = match numbers.as_deref() {
        Ok([]) => (200, 1),
        Ok([swaps]) => (*swaps, 1),
        Ok([swaps, seed]) => (*swaps, *seed),
        _ => {
            eprintln!("usage: swaps [N [SEED]]");
            return ExitCode::from(2);
        }
    };
    match swap_tests::storm(swaps, seed) {
        Ok(outcome) => {
            println!(
                "{} batches, {} swaps refused as they had to be, {} kills and stops, {} swaps died with the query, \
                 {} rows not explained by the offset log",
                outcome.batches, outcome.refused, outcome.kills, outcome.unanswered, outcome.unexplained
            );
            println!(
                "swaps: {} done, {} lost, {} doubled, pause p99 {:.1} ms",
                outcome.done, outcome.lost, outcome.doubled, outcome.pause_p99_ms
            );
            if outcome.lost + outcome.doubled + outcome.unexplained == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
