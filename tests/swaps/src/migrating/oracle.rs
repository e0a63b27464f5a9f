//! Holds the whole output against what the editions make of the batches that the offset log names.

use super::Shape;
use super::editions::{self, Edition};
use super::host::{PLUGIN, ROWS, START_MS};
use super::model::{Input, Model};
use anyhow::{Context, Result, ensure};
use millstream_checkpoint::OffsetEntry;
use millstream_common::BatchId;
use std::collections::BTreeMap;
use streaming_stories::World;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) batches: u64,
    pub(super) borders: u64,
    pub(super) rows: u64,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    /// The first row that is missing or too much, and its batch.
    pub(super) example: Option<String>,
}

/// Computes every batch of the log and compares.
pub(super) fn compare(world: &World, shape: Shape, editions: &[Edition]) -> Result<Compared> {
    let checkpoint = world.checkpoint()?.context("there is no checkpoint")?;
    let log = checkpoint.offset_log();
    let done = checkpoint.commit_log().batches()?.last().copied().context("no batch is done")?;
    let mut output = world.output()?;
    let mut compared = Compared::default();
    let mut history: BTreeMap<u64, Model> = BTreeMap::new();
    let mut batches: Vec<(u64, usize, Option<Input>)> = Vec::new();
    let (mut model, mut running, mut read) = (Model::default(), None, 0);
    for batch in log.batches()?.into_iter().filter(|batch| *batch <= done) {
        let entry = log.get(batch)?.context("the entry was listed")?;
        let pin = entry.plugins.get(PLUGIN).context("the entry names no plugin")?;
        let edition = editions::number(editions, pin.digest)?;
        let found = output.remove(&batch.0).unwrap_or_default();
        let input = input(&entry)?;
        match (&entry.border, input) {
            (Some(border), None) => {
                compared.borders += 1;
                match border.restored {
                    None => model.migrate(running.context("a border before the first batch")?, edition),
                    Some(before) => {
                        // The batches since then, with the code that takes over; nothing of it goes out.
                        model = history.get(&before.0).cloned().context("the restored batch is not known")?;
                        for (_, _, input) in batches.iter().filter(|(number, ..)| *number > before.0) {
                            if let Some(input) = input {
                                model.batch(shape, edition, *input);
                            }
                        }
                    }
                }
                ensure!(found.is_empty(), "border {batch} gave {found:?}");
            }
            (None, Some(input)) => {
                ensure!(input.first == read, "batch {batch} begins at {} and not at {read}", input.first);
                read = input.end;
                let wanted = model.batch(shape, edition, input);
                compared.rows += wanted.len() as u64;
                count(batch, &wanted, &found, &mut compared)?;
            }
            _ => anyhow::bail!("batch {batch} reads and is a border, or neither: {entry:?}"),
        }
        compared.batches += 1;
        running = Some(edition);
        batches.push((batch.0, edition, input));
        history.insert(batch.0, model.clone());
    }
    ensure!(output.is_empty(), "there is output of batches {:?}, which are not done", output.keys());
    Ok(compared)
}

/// What a batch read; `None` for one that read nothing.
fn input(entry: &OffsetEntry) -> Result<Option<Input>> {
    let range = entry.sources.get("numbers").context("the entry has no source")?;
    if range.start == range.end {
        return Ok(None);
    }
    let number = |value: &Option<serde_json::Value>, name: &str, at_first: i64| {
        value.as_ref().map_or(Some(at_first), |value| value[name].as_i64()).context("an offset without a number")
    };
    let (first, end) = (number(&range.start, "offset", 0)?, number(&range.end, "offset", 0)?);
    ensure!(end == first + ROWS, "batch {} reads {first} to {end}", entry.batch);
    let watermark_ms = entry.watermark_ms.context("the entry has no watermark")?;
    Ok(Some(Input { first, end, at_ms: number(&range.start, "timestamp", START_MS)?, watermark_ms }))
}

fn count(batch: BatchId, wanted: &[serde_json::Value], found: &[String], compared: &mut Compared) -> Result<()> {
    let mut left: BTreeMap<String, i64> = BTreeMap::new();
    for row in wanted {
        *left.entry(row.to_string()).or_default() += 1;
    }
    for line in found {
        let row: serde_json::Value = serde_json::from_str(line)?;
        *left.entry(row.to_string()).or_default() -= 1;
    }
    if let (None, Some((row, n))) = (&compared.example, left.iter().find(|(_, n)| **n != 0)) {
        let what = if *n > 0 { "misses" } else { "has too much" };
        compared.example = Some(format!("batch {batch} {what} {row}"));
    }
    compared.lost += left.values().filter(|n| **n > 0).sum::<i64>().unsigned_abs();
    compared.doubled += left.values().filter(|n| **n < 0).sum::<i64>().unsigned_abs();
    Ok(())
}
