//! The query, in a process that is killed.

use super::WINDOW_MS;
use anyhow::{Result, bail};
use millstream_runtime::{OutputMode, Session, Trigger};

/// Runs the query until the process is killed. The arguments: brokers, topic to read, topic to write, checkpoint, records
/// per batch, milliseconds that a record may be late.
///
/// # Errors
/// When the query cannot start or fails.
pub fn host(arguments: &[String]) -> Result<()> {
    let [brokers, input, output, checkpoint, per_batch, delay] = arguments else {
        bail!("a host needs brokers, two topics, a checkpoint, records per batch and a delay");
    };
    // However the parent ends, the host does not outlive it.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
    let session = Session::new()?;
    let records = session.read_stream().format("kafka").option("kafka.bootstrap.servers", brokers);
    let records = records.option("subscribe", input).option("startingOffsets", "earliest");
    let records = records.option("maxOffsetsPerTrigger", per_batch).load()?;
    records.with_watermark("timestamp", &format!("{delay} milliseconds"))?.create_or_replace_temp_view("records")?;
    let seconds = WINDOW_MS / 1000;
    let counts = session.sql(&format!(
        "SELECT key, concat(CAST(unix_seconds(start) AS STRING), '|', CAST(n AS STRING)) AS value FROM (
           SELECT window(timestamp, '{seconds} seconds').start AS start, CAST(key AS STRING) AS key, count(*) AS n
           FROM records GROUP BY window(timestamp, '{seconds} seconds'), CAST(key AS STRING)
         ) c"
    ))?;
    let writer = counts.write_stream().query_name("counts").output_mode(OutputMode::Append).trigger(Trigger::Default);
    let writer = writer.format("kafka").option("kafka.bootstrap.servers", brokers).option("topic", output);
    let query = writer.option("checkpointLocation", checkpoint).start()?;
    query.await_termination().map_err(|error| anyhow::anyhow!(millstream_common::describe_chain(&*error)))
}
