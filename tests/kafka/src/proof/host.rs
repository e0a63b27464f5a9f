//! The query, in a process that is killed.

use super::WINDOW_MS;
use anyhow::{Result, bail};
use millstream_runtime::{DataFrame, OutputMode, Session, Trigger};

/// What a host is told by its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    brokers: &'a str,
    input: &'a str,
    per_batch: &'a str,
    delay_ms: &'a str,
    /// The checkpoint of its query, or a folder for those of several.
    pub checkpoint: &'a str,
    /// What the output wants it to know.
    pub output: &'a [String],
}

impl<'a> Given<'a> {
    /// Understands the arguments. From here on the process does not outlive its parent.
    ///
    /// # Errors
    /// When there are too few.
    pub fn new(arguments: &'a [String]) -> Result<Self> {
        let [brokers, input, checkpoint, per_batch, delay_ms, output @ ..] = arguments else {
            bail!("a host needs brokers, a topic, a checkpoint, records per batch, a delay, and what its output needs");
        };
        std::thread::spawn(|| {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            std::process::exit(1);
        });
        Ok(Self { brokers, input, per_batch, delay_ms, checkpoint, output })
    }

    /// The counts of the records as a stream of `start timestamp, key string, n bigint`.
    ///
    /// # Errors
    /// When the query does not plan.
    pub fn counts(&self, session: &Session) -> Result<DataFrame> {
        let records = session.read_stream().format("kafka").option("kafka.bootstrap.servers", self.brokers);
        let records = records.option("subscribe", self.input).option("startingOffsets", "earliest");
        let records = records.option("maxOffsetsPerTrigger", self.per_batch).load()?;
        let delay = format!("{} milliseconds", self.delay_ms);
        records.with_watermark("timestamp", &delay)?.create_or_replace_temp_view("records")?;
        let seconds = WINDOW_MS / 1000;
        Ok(session.sql(&format!(
            "SELECT window(timestamp, '{seconds} seconds').start AS start, CAST(key AS STRING) AS key, count(*) AS n
             FROM records GROUP BY window(timestamp, '{seconds} seconds'), CAST(key AS STRING)"
        ))?)
    }
}

/// Runs the query into a topic until the process is killed.
///
/// # Errors
/// When the query cannot start or fails.
pub fn host(arguments: &[String]) -> Result<()> {
    let given = Given::new(arguments)?;
    let [output] = given.output else { bail!("a host needs a topic to write") };
    let session = Session::new()?;
    given.counts(&session)?.create_or_replace_temp_view("counts")?;
    let counts = session
        .sql("SELECT key, concat(CAST(unix_seconds(start) AS STRING), '|', CAST(n AS STRING)) AS value FROM counts")?;
    let writer = counts.write_stream().query_name("counts").output_mode(OutputMode::Append).trigger(Trigger::Default);
    let writer = writer.format("kafka").option("kafka.bootstrap.servers", given.brokers).option("topic", output);
    let query = writer.option("checkpointLocation", given.checkpoint).start()?;
    query.await_termination().map_err(|error| anyhow::anyhow!(millstream_common::describe_chain(&*error)))
}
