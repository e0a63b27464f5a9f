//! A windowed count from files to files, as a process of its own runs it.

use anyhow::{Context, Result};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use millstream_runtime::{DataFrame, DataStreamWriter, OutputMode, Session, Trigger};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folders of one query.
#[derive(Debug, Clone)]
pub struct Folders {
    /// Where lines `time,key` appear, file by file.
    pub input: PathBuf,
    /// What the file sink writes.
    pub output: PathBuf,
    /// The checkpoint.
    pub checkpoint: PathBuf,
}

impl Folders {
    /// The three folders below `root`; the input may be another.
    pub fn below(root: &Path, input: PathBuf) -> Self {
        Self { input, output: root.join("output"), checkpoint: root.join("checkpoint") }
    }
}

/// The query in a session.
///
/// # Errors
/// When a folder cannot be used.
pub fn writer(session: &Session, folders: &Folders, trigger: Trigger) -> Result<DataStreamWriter> {
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is no UTF-8");
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let schema = Schema::new(vec![Field::new("at", time, true), Field::new("k", DataType::Utf8, true)]);
    let reader = session.read_stream().format("csv").schema(Arc::new(schema));
    let events: DataFrame = reader.option("path", text(&folders.input)?).option("maxFilesPerTrigger", 1).load()?;
    events.with_watermark("at", "5 seconds")?.create_or_replace_temp_view("events")?;
    let counts = session.sql(
        "SELECT window(at, '10 seconds').start AS start, k, count(*) AS n FROM events GROUP BY window(at, '10 seconds'), k",
    )?;
    let writer = counts.write_stream().query_name("counts").output_mode(OutputMode::Append).trigger(trigger);
    let writer = writer.format("json").option("path", text(&folders.output)?);
    Ok(writer.option("checkpointLocation", text(&folders.checkpoint)?))
}

/// Runs the query to the end of what is there, or with `stay` until it is killed.
///
/// # Errors
/// When the query cannot start or fails.
pub fn run(folders: &Folders, stay: bool) -> Result<()> {
    let session = Session::new()?;
    let trigger = if stay { Trigger::Default } else { Trigger::AvailableNow };
    let query = writer(&session, folders, trigger)?.start()?;
    query.await_termination().map_err(|error| anyhow::anyhow!(millstream_common::describe_chain(&*error)))
}
