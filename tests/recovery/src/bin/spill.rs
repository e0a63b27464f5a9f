//! `spill [KEYS [MIB [ROWS_PER_BATCH]]]`: counts KEYS different keys in update mode (10000000), with a limit of so many MiB
//! for state in the host file (256), and tells what was in memory and what was spilled. The last batch counts the first keys
//! once more.
//!
//! The last line is `spill: N keys, …, limit …`; the exit code is 0 only when the state stayed within the limit and all keys
//! were counted.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use anyhow::{Context, Result, ensure};
use millstream_runtime::Session;
use recovery_tests::spill::{Growth, grow, peak_memory};
use std::process::ExitCode;
use std::time::Instant;

const MIB: u64 = 1 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.len() > 3 {
        eprintln!("usage: spill [KEYS [MIB [ROWS_PER_BATCH]]]");
        return ExitCode::from(2);
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let number = |index: usize, default: u64| {
        arguments.get(index).map_or(Ok(default), |text| text.parse().with_context(|| format!("`{text}` is no number")))
    };
    let (keys, rows_per_batch) = (number(0, 10_000_000)?, number(2, 100_000)?);
    let limit = number(1, 256)?.saturating_mul(MIB);
    let memory = format!("{} MiB", limit / MIB);
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let session = Session::new()?;
    let growth = Growth {
        keys,
        again: rows_per_batch,
        rows_per_batch,
        memory: memory.clone(),
        sink: "noop",
        restart_after: None,
    };
    let (began, before) = (Instant::now(), peak_memory()?);
    println!("batch       keys   in memory     spilled keys   on disk     peak of the process   seconds");
    let batches = keys / rows_per_batch.max(1) + 1;
    let grown = grow(&session, folder.path(), &growth, |progress| {
        let Some(operator) = progress.state_operators.first() else { return };
        if !progress.batch_id.is_multiple_of((batches / 20).max(1)) && progress.batch_id + 1 != batches {
            return;
        }
        let custom = |name: &str| operator.custom_metrics.get(name).copied().unwrap_or(0);
        println!(
            "{:5}   {:8}   {:5} MiB   {:14}   {:5} MiB   {:12} MiB   {:10.1}",
            progress.batch_id,
            operator.num_rows_total,
            operator.memory_used_bytes.div_ceil(MIB),
            custom("stateSpilledKeys"),
            custom("stateSpilledBytes").div_ceil(MIB),
            peak_memory().unwrap_or(0) / MIB,
            began.elapsed().as_secs_f64(),
        );
    })?;
    println!("the process had {} MiB before the query began", before / MIB);
    ensure!(grown.keys == keys, "{} keys were counted, not {keys}", grown.keys);
    ensure!(grown.memory_bytes <= limit, "the state took {} bytes, the limit is {limit}", grown.memory_bytes);
    println!(
        "spill: {} keys, {} spilled, {} MiB on disk, at most {} MiB in memory, limit {memory}, peak of the process {} MiB",
        grown.keys,
        grown.spilled_keys,
        grown.spilled_bytes.div_ceil(MIB),
        grown.memory_bytes.div_ceil(MIB),
        peak_memory()? / MIB,
    );
    Ok(())
}
