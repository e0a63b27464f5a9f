//! What the output says: rows lost, doubled, unexplained.

use crate::editions::Edition;
use crate::query::{PLUGIN, ROWS_PER_BATCH};
use crate::storm::Outcome;
use anyhow::{Context, Result, ensure};
use millstream_common::BatchId;
use serde_json::Value;
use std::collections::BTreeMap;
use streaming_stories::World;

/// Counts. Second k holds the rows of batch k, and goes out in batch k + 2: when that begins, the watermark is at
/// second k + 1, the end of the window.
pub(crate) fn count(world: &World, editions: &[Edition], outcome: &mut Outcome) -> Result<()> {
    let by_batch = numbers_by_batch(world, editions)?;
    let output = world.output()?;
    outcome.batches = output.len() as u64;
    let last = *output.keys().next_back().context("there is no output")?;
    ensure!(output.len() as u64 == last + 1, "the output has {} batches up to {last}", output.len());
    let expected = 2 * ROWS_PER_BATCH;
    let mut seen: BTreeMap<i64, i64> = BTreeMap::new();
    for (batch, rows) in &output {
        for row in rows {
            let row: Value = serde_json::from_str(row)?;
            let number = |name: &str| row[name].as_i64().with_context(|| format!("{row} has no number `{name}`"));
            let (second, n) = (number("second")?, number("n")?);
            *seen.entry(second).or_insert(0) += n;
            let read_by = u64::try_from(second).ok().and_then(|second| by_batch.get(&second));
            if read_by != Some(&number("read_by")?) || by_batch.get(batch) != Some(&number("written_by")?) {
                outcome.unexplained += 1;
            }
        }
    }
    for second in 0..=i64::try_from(last)?.saturating_sub(2) {
        let n = seen.remove(&second).unwrap_or(0);
        outcome.lost += (expected - n).max(0).unsigned_abs();
        outcome.doubled += (n - expected).max(0).unsigned_abs();
    }
    ensure!(seen.is_empty(), "there are rows of {seen:?}, which are not closed or never were");
    Ok(())
}

/// The number of the edition that the offset log names for each batch.
fn numbers_by_batch(world: &World, editions: &[Edition]) -> Result<BTreeMap<u64, i64>> {
    let log = world.checkpoint()?.context("there is no checkpoint")?.offset_log();
    let mut numbers = BTreeMap::new();
    for batch in log.batches()? {
        let entry = log.get(BatchId(batch.0))?.context("the entry was listed")?;
        let pin = entry.plugins.get(PLUGIN).context("the entry names no plugin")?;
        let edition = editions.iter().find(|edition| edition.digest == pin.digest);
        numbers.insert(batch.0, edition.context("the entry names an unknown component")?.number);
    }
    Ok(numbers)
}
