//! A folder of very many small files, read by a query to its end, and listed again.

use anyhow::{Context, Result, anyhow, ensure};
use millstream_common::{DurableFiles, MemoryFiles, Options, ReadLimit, StopSignal, SystemClock, describe_chain};
use millstream_runtime::{Session, Trigger};
use millstream_source::{SourceContext, SourceRegistry, SourceSpec};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Lines in each file.
const ROWS_PER_FILE: usize = 3;
/// How many files a batch reads.
const FILES_PER_BATCH: u64 = 5_000;

/// What was measured.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Files in the folder.
    pub files: u64,
    /// Seconds of the first listing, which looks at every file.
    pub first_listing: f64,
    /// Seconds of a listing when nothing has changed.
    pub idle_listing: f64,
    /// Seconds of a listing after one more file came.
    pub next_listing: f64,
    /// Seconds of a query that reads all of it.
    pub query: f64,
    /// Rows that it read.
    pub rows: u64,
    /// Bytes that the log of the source takes in the checkpoint.
    pub log_bytes: u64,
    /// Bytes that the listing and what is remembered of the files added to the process.
    pub listing_memory: u64,
    /// Bytes that the process had at its peak.
    pub peak_memory: u64,
}

/// Makes the files below `folder` and measures.
///
/// # Errors
/// When a file cannot be made, or the query does not see every row once.
pub fn measure(folder: &Path, files: u64) -> Result<Figures> {
    let input = folder.join("input");
    fs::create_dir_all(&input)?;
    for number in 0..files {
        write(&input, number)?;
    }
    // A folder that changed a moment ago may be changing still: whoever lists looks again.
    std::thread::sleep(Duration::from_millis(2_100));
    let before = memory("VmRSS:")?;
    let (first_listing, idle_listing, next_listing) = listings(&input, files)?;
    let listing_memory = memory("VmHWM:")?.saturating_sub(before);
    let began = Instant::now();
    let rows = query(folder, &input)?;
    let query = began.elapsed().as_secs_f64();
    let wanted = (files + 1) * ROWS_PER_FILE as u64;
    ensure!(rows == wanted, "the query read {rows} rows of {wanted}");
    let log = folder.join("checkpoint/sources/lines");
    let mut log_bytes = 0;
    for entry in fs::read_dir(&log).with_context(|| format!("no log in {}", log.display()))? {
        log_bytes += entry?.metadata()?.len();
    }
    Ok(Figures {
        files,
        first_listing,
        idle_listing,
        next_listing,
        query,
        rows,
        log_bytes,
        listing_memory,
        peak_memory: memory("VmHWM:")?,
    })
}

fn write(input: &Path, number: u64) -> Result<()> {
    let lines: String = (0..ROWS_PER_FILE).map(|line| format!("{{\"file\":{number},\"line\":{line}}}\n")).collect();
    Ok(fs::write(input.join(format!("part-{number:08}.json")), lines)?)
}

/// Seconds of the first listing, of one without anything new, and of one with one more file.
fn listings(input: &Path, files: u64) -> Result<(f64, f64, f64)> {
    let options = Options::new().with("path", input.to_str().context("a path is no UTF-8")?);
    let spec = SourceSpec { name: "lines".into(), format: "text".into(), schema: None, options };
    let context = SourceContext {
        files: Arc::new(MemoryFiles::default()) as Arc<dyn DurableFiles>,
        clock: Arc::new(SystemClock::default()),
        stop: StopSignal::new(),
        default_parallelism: 2,
    };
    let mut source = SourceRegistry::with_builtins().factory(&spec)?.open(&spec, context)?;
    let began = Instant::now();
    let first = source.latest_offset(None, ReadLimit::AllAvailable)?.context("there is no file")?;
    let first_listing = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let idle = source.latest_offset(Some(&first), ReadLimit::AllAvailable)?;
    let idle_listing = began.elapsed().as_secs_f64();
    ensure!(idle.as_ref() == Some(&first), "a listing without a new file found one");
    write(input, files)?;
    let began = Instant::now();
    let next = source.latest_offset(Some(&first), ReadLimit::AllAvailable)?;
    let next_listing = began.elapsed().as_secs_f64();
    ensure!(next.is_some() && next != Some(first), "a new file was not found");
    Ok((first_listing, idle_listing, next_listing))
}

/// Reads everything with a query; answers how many rows there were.
fn query(folder: &Path, input: &Path) -> Result<u64> {
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is no UTF-8");
    let session = Session::new()?;
    let lines = session.read_stream().name("lines").format("text").option("maxFilesPerTrigger", FILES_PER_BATCH);
    let lines = lines.load_path(&text(input)?)?;
    let writer = lines.write_stream().format("noop").trigger(Trigger::AvailableNow);
    let query = writer.option("checkpointLocation", text(&folder.join("checkpoint"))?).start()?;
    query.await_termination().map_err(|error| anyhow!(describe_chain(&*error)))?;
    Ok(query.recent_progress().iter().map(|progress| progress.num_input_rows).sum())
}

/// A line of what the system says of this process, in bytes.
fn memory(name: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("there is no {name}"))?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<u64>()? * 1024)
}
