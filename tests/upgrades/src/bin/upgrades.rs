//! `upgrades`: the whole corpus.
//!
//! The last line is `upgrades: N of N bad refused, N of N good accepted`; the exit code is 0 only when all are.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::process::ExitCode;
use upgrade_tests::{Case, Stage, bad, good};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<bool> {
    let stage = Stage::new()?;
    let fitting = |cases: &[Case]| {
        let mut fitting = 0;
        for case in cases {
            match case.check(&stage) {
                Ok(report) if report.findings.is_empty() => println!("{}: {}", case.name, report.verdict),
                Ok(report) => println!("{}: {}: {}", case.name, report.verdict, report.reasons()),
                Err(error) => {
                    println!("{}: NOT AS EXPECTED: {error:#}", case.name);
                    continue;
                }
            }
            fitting += 1;
        }
        fitting
    };
    let (bad, good) = (bad()?, good()?);
    let (refused, accepted) = (fitting(&bad), fitting(&good));
    println!("upgrades: {refused} of {} bad refused, {accepted} of {} good accepted", bad.len(), good.len());
    Ok(refused == bad.len() && accepted == good.len())
}
