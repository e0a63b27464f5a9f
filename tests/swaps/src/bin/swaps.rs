//! `swaps [N [SEED]]`: N random swaps of code whose state changes its form, with a death at every step of the protocol, a
//! quarter of them in processes that are killed; before them a quarter as many of code without state of its own.
//! `swaps pause [KEYS]`: how long a query with so many keys of state stands still for a swap.
//!
//! The last line is `swaps: N done, N lost, N doubled, …`; the exit code is 0 only when nothing was lost, doubled or left
//! unexplained.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use anyhow::{Result, bail};
use std::process::ExitCode;
use std::time::Instant;
use swap_tests::migrating::{Storm, migrating_storm, serve};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((word, rest)) if word == "host" => serve(rest).map(|()| true),
        Some((word, rest)) if word == "pause" => numbers(rest).and_then(|numbers| {
            swap_tests::pause::report(numbers.first().copied().unwrap_or(1_000_000), &mut |line| println!("{line}"))?;
            Ok(true)
        }),
        _ => numbers(&arguments).and_then(|numbers| match numbers.as_slice() {
            [] => storms(200, 1),
            [swaps] => storms(*swaps, 1),
            [swaps, seed] => storms(*swaps, *seed),
            _ => bail!("usage: swaps [N [SEED]], or swaps pause [KEYS]"),
        }),
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

fn numbers(arguments: &[String]) -> Result<Vec<u64>> {
    arguments.iter().map(|text| Ok(text.parse()?)).collect()
}

fn storms(swaps: u64, seed: u64) -> Result<bool> {
    let plain = swap_tests::storm(swaps.div_ceil(4), seed)?;
    println!(
        "without state of its own: {} swaps, {} refused as they had to be, {} kills and stops, {} batches, {} lost, \
         {} doubled, {} not explained by the offset log, pause p99 {:.1} ms",
        plain.done,
        plain.refused,
        plain.kills,
        plain.batches,
        plain.lost,
        plain.doubled,
        plain.unexplained,
        plain.pause_p99_ms
    );
    let began = Instant::now();
    let mut tell = |storm: &Storm| {
        println!(
            "{:6.0} s: {} swaps, {} refused, {} deaths, {} of them by SIGKILL, {} rows, {} lost, {} doubled",
            began.elapsed().as_secs_f64(),
            storm.done,
            storm.refused,
            storm.all_deaths(),
            storm.kills,
            storm.rows,
            storm.lost,
            storm.doubled
        );
    };
    let storm = migrating_storm(swaps, (swaps / 4, &std::env::current_exe()?), seed, &mut tell)?;
    let list = |counts: &std::collections::BTreeMap<String, u64>| {
        counts.iter().map(|(name, count)| format!("  {count:5} {name}\n")).collect::<String>()
    };
    print!("swaps by kind:\n{}deaths by step:\n{}", list(&storm.kinds), list(&storm.deaths));
    println!(
        "{} batches, {} of them borders, {} rows compared, {} swaps in processes of their own",
        storm.batches, storm.borders, storm.rows, storm.in_processes
    );
    if let Some(example) = &storm.example {
        println!("for example: {example}");
    }
    let (lost, doubled) = (plain.lost + storm.lost, plain.doubled + storm.doubled);
    println!(
        "swaps: {} done, {lost} lost, {doubled} doubled, {} deaths at {} steps, {} by SIGKILL, longest pause {:.1} ms",
        storm.done,
        storm.all_deaths(),
        storm.deaths.len(),
        storm.kills,
        storm.longest_pause_us as f64 / 1e3
    );
    Ok(lost + doubled + plain.unexplained == 0)
}
