//! `kafka-databases [N [KILLS [SEED]]]`: N records through a windowed count from Kafka to PostgreSQL and to MariaDB, on three
//! brokers, while the host is killed so many times, and brokers and both servers between.
//!
//! The last line is `kafka-databases: N records into each of 2 tables, N kills, …, N lost, N doubled`; the exit code is 0 only
//! when nothing was lost or doubled.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use anyhow::Result;
use databases_tests::kafka::{Tables, host};
use kafka_tests::proof::{Plan, storm_into};
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
    let plan = Plan::of("kafka-databases", arguments)?;
    let tables = Tables::start();
    let mut tell = |line| println!("{:>6.1} s  {line}", began.elapsed().as_secs_f64());
    let outcome = storm_into(&plan, &tables, &mut tell)?;
    let (stops, crashes) = tables.deaths();
    println!(
        "{} windows and keys in each table in {:.0} s, {} deaths of brokers, the host ended by itself {} times",
        outcome.windows,
        began.elapsed().as_secs_f64(),
        outcome.brokers,
        outcome.failures
    );
    println!(
        "kafka-databases: {} records into each of 2 tables, {} kills, {stops} stops and {crashes} crashes of servers, \
         {} lost, {} doubled",
        outcome.records, outcome.kills, outcome.lost, outcome.doubled
    );
    Ok(outcome.lost == 0 && outcome.doubled == 0)
}
