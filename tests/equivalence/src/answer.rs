//! The batch side, and how the batches of a stream are put together to be compared with it.

use crate::input::{MARKS, Unit};
use crate::play::{rows, spec};
use crate::shape::{Compare, Shape};
use anyhow::{Context, Result, anyhow};
use millstream_common::{StopSignal, describe_chain};
use millstream_runtime::batch_query::run_batch_query;
use std::collections::BTreeMap;
use streaming_stories::World;

/// The rows of the batch query over all units, sorted.
///
/// # Errors
/// When the query fails.
pub(crate) fn answer(shape: &Shape, units: &[Unit]) -> Result<Vec<String>> {
    let world = World::new()?;
    let all = |of: fn(&Unit) -> &Vec<crate::input::Row>| units.iter().flat_map(of).cloned().collect::<Vec<_>>();
    for (name, value, of) in [("a", "v", all(|unit| &unit.a)), ("b", "w", all(|unit| &unit.b))] {
        let rows = rows(&of, value)?;
        world.streams.create(name, rows.schema()).add_data(rows)?;
    }
    let done = run_batch_query(&world.session, &spec(shape), &StopSignal::new());
    done.map_err(|error| anyhow!(describe_chain(&error)))?.context("nobody stopped it")?;
    let mut rows = world.recorder.batches().remove(&0).unwrap_or_default();
    rows.sort();
    Ok(rows)
}

/// The result that the batches make, sorted, without the rows that only closed what was open.
pub(crate) fn result(shape: &Shape, batches: &BTreeMap<u64, Vec<String>>) -> Vec<String> {
    let mut rows: Vec<String> = match shape.compare {
        Compare::All => batches.values().flatten().cloned().collect(),
        Compare::Last => batches.values().next_back().cloned().unwrap_or_default(),
        Compare::Upsert(keys) => {
            let key = |row: &str| row.split(" | ").take(keys).collect::<Vec<_>>().join(" | ");
            let latest: BTreeMap<String, String> =
                batches.values().flatten().map(|row| (key(row), row.clone())).collect();
            latest.into_values().collect()
        }
    };
    rows.retain(|row| !MARKS.iter().any(|mark| row.contains(mark)));
    rows.sort();
    rows
}
