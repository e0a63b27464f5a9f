//! The proof: rows through a query into a server, with the query's process and the server killed at random.
//!
//! [`child`] is the query, which counts upwards without end. [`run`] starts it again and again, kills it, kills the
//! server under it, and looks at the end whether the table has each number once.

use crate::{Database, has_table, rows};
use anyhow::{Context, Result, bail, ensure};
use millstream_runtime::{OutputMode, Session, Trigger};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the rows may take to come while nothing is killed.
const PATIENCE: Duration = Duration::from_secs(120);

/// What came of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// Rows in the table.
    pub rows: u64,
    /// How often the process was killed.
    pub kills: u32,
    /// How often the server was.
    pub restarts: u32,
}

/// The query: numbers into a table, until it is killed.
///
/// # Errors
/// When the query fails.
pub fn child(format: &str, url: &str, checkpoint: &str, rows_per_batch: &str) -> Result<()> {
    let session = Session::new()?;
    let numbers = session.read_stream().format("rate-micro-batch").name("numbers");
    numbers.option("rowsPerBatch", rows_per_batch).load()?.create_or_replace_temp_view("numbers")?;
    let rows = session.sql("SELECT value, CAST(value % 10 AS STRING) AS digit FROM numbers")?;
    let writer = rows.write_stream().output_mode(OutputMode::Append).trigger(Trigger::Default).format(format);
    let writer = writer.option("url", url).option("dbtable", "numbers").option("checkpointLocation", checkpoint);
    let query = writer.start()?;
    query.await_termination().map_err(|error| anyhow::anyhow!(millstream_common::describe_chain(&*error)))
}

const FIGURES: &str = "SELECT count(*), count(DISTINCT value), coalesce(max(value), 0) FROM numbers";

/// Count, count of different numbers, greatest number; nothing before there is a table.
fn figures(url: &str) -> Option<[u64; 3]> {
    let rows = if has_table(url, "numbers") { rows(url, FIGURES) } else { Vec::new() };
    let numbers: Vec<u64> = rows.first()?.split('|').map(|text| text.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// Rows into a server.
///
/// # Errors
/// When the table does not have each number once.
pub fn into(server: &Database, program: &Path, rows: u64, kills: u32) -> Result<Proof> {
    let url = server.database();
    let folder = tempfile::tempdir()?;
    let checkpoint = folder.path().join("checkpoint");
    let checkpoint = checkpoint.to_str().context("a path is no UTF-8")?;
    // Enough batches for all kills to find one.
    let per_batch = (rows / u64::from(kills.max(10) * 4)).max(1).to_string();
    let spawn = || -> Result<Child> {
        let arguments = ["child", server.format(), &url, checkpoint, &per_batch];
        Ok(Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?)
    };
    let mut random = StdRng::seed_from_u64(rows ^ u64::from(kills));
    let (mut seen, mut restarts) = (0, 0);
    for kill in 0..kills {
        let mut child = spawn()?;
        // Most die within a few batches, every fourth one while it starts.
        let wanted = if kill % 4 == 3 { seen } else { seen + 1 };
        wait(&mut child, &url, wanted)?;
        if kill % 5 == 4 && server.is_own() {
            server.kill();
            server.restart();
            restarts += 1;
            let now = figures(&url).map_or(0, |figures| figures[0]);
            wait(&mut child, &url, now + 1)?;
        }
        std::thread::sleep(Duration::from_micros(random.random_range(0..60_000)));
        child.kill()?;
        child.wait()?;
        seen = figures(&url).map_or(0, |figures| figures[0]);
    }
    let mut child = spawn()?;
    wait(&mut child, &url, rows.max(seen + 1))?;
    child.kill()?;
    child.wait()?;
    // What the killed process had sent may still be on its way.
    std::thread::sleep(Duration::from_millis(500));
    let [count, different, greatest] = figures(&url).context("there is no table")?;
    ensure!(
        count == different && greatest + 1 == count,
        "{}: {count} rows with {different} numbers up to {greatest}",
        server.name()
    );
    Ok(Proof { rows: count, kills, restarts })
}

fn wait(child: &mut Child, url: &str, rows: u64) -> Result<()> {
    let begin = Instant::now();
    while figures(url).map_or(0, |figures| figures[0]) < rows {
        if child.try_wait()?.is_some() {
            let mut said = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                std::io::Read::read_to_string(&mut stderr, &mut said)?;
            }
            bail!("the query ended: {said}");
        }
        ensure!(begin.elapsed() < PATIENCE, "{rows} rows do not come");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
