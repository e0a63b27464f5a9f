//! A state that is larger than its memory: counts of many keys in update mode, under a limit from a host file.
//!
//! ```text
//!   rate-micro-batch ──► GROUP BY value % keys ──► noop, or a sink of the test
//!   0 1 2 … keys-1 0 1 2 …        each key once, then the first ones again
//! ```

use anyhow::{Context, Result, ensure};
use millstream_common::{Options, StopSignal};
use millstream_runtime::query_file::{self, Overrides};
use millstream_runtime::{Progress, QueryRun, Session};
use millstream_sink::SinkSpec;
use std::path::Path;

/// What is to grow.
#[derive(Debug, Clone)]
pub struct Growth {
    /// Different keys.
    pub keys: u64,
    /// Keys that come a second time, after all of them have come once.
    pub again: u64,
    /// Rows of one batch.
    pub rows_per_batch: u64,
    /// The limit, as the host file has it.
    pub memory: String,
    /// The sink; it must take update mode.
    pub sink: &'static str,
    /// After so many batches the run is dropped where it stands, and another one goes on.
    pub restart_after: Option<u64>,
}

/// What it came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grown {
    /// Batches.
    pub batches: u64,
    /// Keys at the end.
    pub keys: u64,
    /// The most bytes that the state took in memory after any batch.
    pub memory_bytes: u64,
    /// Keys at the end whose rows are not in memory.
    pub spilled_keys: u64,
    /// The bytes that they take on disk.
    pub spilled_bytes: u64,
}

/// Lets the state grow, in `folder`; `each` sees the progress of every batch.
///
/// # Errors
/// When the query fails.
pub fn grow(session: &Session, folder: &Path, growth: &Growth, mut each: impl FnMut(&Progress)) -> Result<Grown> {
    let Growth { keys, again, rows_per_batch, memory, .. } = growth;
    ensure!((keys + again) % rows_per_batch == 0, "the rows do not make whole batches");
    let host = format!("[directories]\nspill = \"{}\"\n[state]\nmemory = \"{memory}\"\n", folder.display());
    let query = format!(
        "name = \"growth\"\noutput_mode = \"update\"\ncheckpoint = \"checkpoint\"\n\
         sql = \"SELECT value % {keys} AS k, count(*) AS n FROM numbers GROUP BY value % {keys}\"\n\
         [[source]]\nname = \"numbers\"\nformat = \"rate-micro-batch\"\noptions = {{ rowsPerBatch = {rows_per_batch} }}\n\
         [sink]\nformat = \"noop\"\n"
    );
    std::fs::write(folder.join("host.toml"), host).context("the host file")?;
    std::fs::write(folder.join("query.toml"), query).context("the query file")?;
    let (query, host) = (folder.join("query.toml"), folder.join("host.toml"));
    let mut spec = query_file::load(&query, Some(&host), &[], Overrides::default())?.spec;
    spec.sink = SinkSpec { format: growth.sink.into(), options: Options::new() };

    let mut grown = Grown::default();
    let mut run = QueryRun::open(session, spec.clone(), StopSignal::new())?;
    for batch in 0..(keys + again) / rows_per_batch {
        if growth.restart_after == Some(batch) {
            run.close();
            run = QueryRun::open(session, spec.clone(), StopSignal::new())?;
        }
        let progress = run.run_next()?.with_context(|| format!("batch {batch} has nothing to do"))?;
        let [operator] = progress.state_operators.as_slice() else {
            anyhow::bail!("one stateful operator was expected: {progress:?}");
        };
        let custom = |name: &str| operator.custom_metrics.get(name).copied().with_context(|| format!("no {name}"));
        grown = Grown {
            batches: batch + 1,
            keys: operator.num_rows_total,
            memory_bytes: grown.memory_bytes.max(operator.memory_used_bytes),
            spilled_keys: custom("stateSpilledKeys")?,
            spilled_bytes: custom("stateSpilledBytes")?,
        };
        each(&progress);
    }
    run.close();
    Ok(grown)
}

/// The most memory that this process has had, in bytes, as the system counts it.
///
/// # Errors
/// On a system that does not tell.
pub fn peak_memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().context("VmHWM is no number")?;
    Ok(kib << 10)
}
