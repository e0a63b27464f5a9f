//! `kafka-exactly-once [N [KILLS [SEED]]]`: N records through a windowed count from Kafka to Kafka, on three brokers, while
//! the host is killed so many times, and brokers between.
//!
//! The last line is `kafka: N records, N kills, N lost, N doubled`; the exit code is 0 only when nothing was lost or doubled.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use anyhow::Result;
use kafka_tests::proof::{Plan, host, storm};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((word, rest)) if word == "host" => host(rest).map(|()| true),
        _ => prove(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn prove(arguments: &[String]) -> Result<bool> {
    let began = Instant::now();
    let plan = Plan::of("kafka-exactly-once", arguments)?;
    let outcome = storm(&plan, &mut |line| println!("{:>6.1} s  {line}", began.elapsed().as_secs_f64()))?;
    println!(
        "{} windows and keys in {:.0} s, {} deaths of brokers, {} records of the output are aborted ones that nobody sees",
        outcome.windows,
        began.elapsed().as_secs_f64(),
        outcome.brokers,
        outcome.aborted
    );
    println!(
        "kafka: {} records, {} kills, {} lost, {} doubled",
        outcome.records, outcome.kills, outcome.lost, outcome.doubled
    );
    Ok(outcome.lost == 0 && outcome.doubled == 0)
}
