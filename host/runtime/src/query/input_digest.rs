//! Holds what a batch read against what it read before, for sources that are only on their word that a range gives the same
//! rows again: those of plugins.
//!
//! Within a run a batch that is tried again must have the same rows as before; later the digests are in the commit log, and
//! a replay compares them. That tells the source's fault from that of the code that made something of its rows.
//!
//! Rule of its life: rows are looked at and never changed; where digests are off, nothing is.

use super::output_digest::output_digest;
use super::run::QueryRun;
use crate::RuntimeError;
use arrow::array::RecordBatch;
use millstream_checkpoint::{OffsetEntry, OutputPin};
use millstream_source::SourceError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was read, by stream.
pub(crate) type InputPins = BTreeMap<String, OutputPin>;

/// The digests of what was read for a batch, slot by slot; compared with those of an earlier attempt of this run.
pub(super) fn take(
    run: &mut QueryRun,
    entry: &OffsetEntry,
    inputs: &[Vec<RecordBatch>],
) -> Result<InputPins, RuntimeError> {
    let (mut pins, mut read) = (InputPins::new(), BTreeMap::new());
    if !run.settings.output_digests {
        return Ok(pins);
    }
    for (slot, rows) in run.slots.iter().zip(inputs) {
        let source = run.sources.iter().find(|running| running.name == slot.stream);
        let Some(running) = source.filter(|running| running.source.is_on_its_word()) else { continue };
        let schema = running.source.schema();
        let schema = Arc::new(schema.project(&slot.projection).map_err(|error| undigested(entry, &error))?);
        let pin = output_digest(&schema, rows).map_err(|error| undigested(entry, &error))?;
        let place = (&slot.stream, &slot.projection);
        match read.insert(place, pin.clone()) {
            None => {}
            Some(before) if before == pin => continue,
            Some(_) => return Err(broken_word(run, entry, &slot.stream).into()),
        }
        let all = pins.entry(slot.stream.clone()).or_insert_with(|| OutputPin { rows: 0, digest: String::new() });
        all.rows += pin.rows;
        // A stream that is read twice by other columns has two digests, one after the other.
        all.digest.push_str(&pin.digest);
    }
    if let Some((batch, before)) = &run.read_before
        && *batch == entry.batch
        && let Some(stream) = before.keys().find(|stream| before.get(*stream) != pins.get(*stream))
    {
        return Err(broken_word(run, entry, stream).into());
    }
    if !pins.is_empty() {
        run.read_before = Some((entry.batch, pins.clone()));
    }
    Ok(pins)
}

fn broken_word(run: &QueryRun, entry: &OffsetEntry, stream: &str) -> SourceError {
    let place = run.connectors.get(stream).and_then(|pin| pin.place.clone()).unwrap_or_default();
    let plugin = place.split('.').next().unwrap_or_default().to_owned();
    let reason = format!("the range of batch {} has other rows when it is read again", entry.batch);
    SourceError::BrokenWord { name: stream.to_owned(), plugin, reason }
}

fn undigested(entry: &OffsetEntry, error: &arrow::error::ArrowError) -> RuntimeError {
    RuntimeError::Invalid {
        reason: format!("batch {} read rows of which there is no digest: {error}", entry.batch),
        hint: None,
    }
}
