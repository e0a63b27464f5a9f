//! The options of the Kafka source, with Spark's names and defaults.

use super::admission::Patience;
use super::starting::Bounds;
use super::topics::Topics;
use crate::headers::headers_field;
use crate::{SourceError, SourceSpec};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_client::kafka::{KafkaOptions, KafkaRole};
use millstream_common::{Options, duration};
use std::sync::Arc;
use std::time::Duration;

/// How long a source waits for records that are there, where the user does not say.
const POLL_TIMEOUT: Duration = Duration::from_secs(120);
/// More pieces than this are a mistake.
const MOST_PARTITIONS: usize = 100_000;

const KNOWN: [&str; 14] = [
    "assign",
    "subscribe",
    "subscribePattern",
    "failOnDataLoss",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "groupIdPrefix",
    "includeHeaders",
];

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct KafkaConfig {
    pub(super) client: KafkaOptions,
    pub(super) topics: Topics,
    pub(super) bounds: Bounds,
    pub(super) fails_on_loss: bool,
    pub(super) poll_timeout: Duration,
    pub(super) attempts: u32,
    pub(super) retry_interval: Duration,
    pub(super) most_offsets: Option<u64>,
    pub(super) patience: Option<Patience>,
    pub(super) least_pieces: Option<usize>,
    pub(super) most_records: Option<u64>,
    pub(super) group_prefix: String,
    pub(super) has_headers: bool,
}

impl KafkaConfig {
    /// Checks the options; connects to nothing.
    pub(super) fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let owner = owner.as_str();
        let client = KafkaOptions::new(owner, &spec.options, KafkaRole::Source)?;
        let options = KafkaOptions::others(&spec.options);
        options.only(owner, &[&KNOWN[..], &Bounds::KNOWN[..], &["kafka.*"]].concat())?;
        if spec.schema.is_some() {
            let reason =
                "it has columns of its own, `key`, `value`, `topic` and more; leave the schema out, and decode \
                          `value` in the query"
                    .into();
            return Err(SourceError::Schema { name: spec.name.clone(), reason });
        }
        let (least_offsets, most_offsets) =
            (positive(owner, &options, "minOffsetsPerTrigger")?, positive(owner, &options, "maxOffsetsPerTrigger")?);
        let least_pieces = positive(owner, &options, "minPartitions")?;
        if let Some(least) = least_pieces.filter(|least| *least > MOST_PARTITIONS as u64) {
            let reason = format!("write a number up to {MOST_PARTITIONS}");
            return Err(Options::invalid(owner, "minPartitions", &least.to_string(), &reason).into());
        }
        Ok(Self {
            topics: Topics::new(owner, &options)?,
            bounds: Bounds::new(owner, &options)?,
            fails_on_loss: options.flag(owner, "failOnDataLoss", true)?,
            poll_timeout: positive(owner, &options, "kafkaConsumer.pollTimeoutMs")?
                .map_or(POLL_TIMEOUT, Duration::from_millis),
            attempts: options.parse(owner, "fetchOffset.numRetries", "write a number of attempts")?.unwrap_or(3),
            retry_interval: Duration::from_millis(
                options.parse(owner, "fetchOffset.retryIntervalMs", "write milliseconds")?.unwrap_or(10),
            ),
            patience: patience(owner, &options, (least_offsets, most_offsets))?,
            most_offsets,
            least_pieces: least_pieces.and_then(|least| usize::try_from(least).ok()),
            most_records: positive(owner, &options, "maxRecordsPerPartition")?,
            group_prefix: options.get("groupIdPrefix").unwrap_or("spark-kafka-source").to_owned(),
            has_headers: options.flag(owner, "includeHeaders", false)?,
            client,
        })
    }

    /// The columns: Spark's.
    pub(super) fn schema(&self) -> SchemaRef {
        let mut fields = vec![
            Field::new("key", DataType::Binary, true),
            Field::new("value", DataType::Binary, true),
            Field::new("topic", DataType::Utf8, true),
            Field::new("partition", DataType::Int32, true),
            Field::new("offset", DataType::Int64, true),
            Field::new("timestamp", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
            Field::new("timestampType", DataType::Int32, true),
        ];
        if self.has_headers {
            fields.push(headers_field());
        }
        Arc::new(Schema::new(fields))
    }
}

fn positive(owner: &str, options: &Options, name: &str) -> Result<Option<u64>, SourceError> {
    let expected = "write a whole number greater than 0";
    match options.parse::<u64>(owner, name, expected)? {
        Some(0) => Err(Options::invalid(owner, name, "0", expected).into()),
        number => Ok(number),
    }
}

/// Options `minOffsetsPerTrigger` and `maxTriggerDelay`.
fn patience(
    owner: &str,
    options: &Options,
    (least, most): (Option<u64>, Option<u64>),
) -> Result<Option<Patience>, SourceError> {
    let text = options.get("maxTriggerDelay").unwrap_or("15m");
    let invalid = |reason: &str| Options::invalid(owner, "maxTriggerDelay", text, reason).into();
    let delay_ms = match text.trim().parse::<i64>() {
        // A bare number is milliseconds.
        Ok(ms) => ms,
        Err(_) => duration::parse_micros(text).map_err(|error| invalid(&error.to_string()))? / 1000,
    };
    if delay_ms < 0 {
        return Err(invalid("it cannot be negative"));
    }
    let Some(least) = least else { return Ok(None) };
    if most.is_some_and(|most| most < least) {
        let reason = "maxOffsetsPerTrigger is less; a batch would be held back and then cut";
        return Err(Options::invalid(owner, "minOffsetsPerTrigger", &least.to_string(), reason).into());
    }
    Ok(Some(Patience { least, delay_ms, last_ms: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(options: &[(&str, &str)]) -> Result<KafkaConfig, SourceError> {
        let sound = Options::new().with("kafka.bootstrap.servers", "localhost:1").with("subscribe", "t");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        KafkaConfig::new(&SourceSpec { name: "t".into(), format: "kafka".into(), schema: None, options })
    }

    #[test]
    fn defaults_are_those_of_spark() {
        let config = config(&[]).unwrap();
        assert!(config.fails_on_loss && !config.has_headers);
        assert_eq!((config.attempts, config.retry_interval), (3, Duration::from_millis(10)));
        assert_eq!(config.poll_timeout, Duration::from_secs(120));
        assert_eq!(config.group_prefix, "spark-kafka-source");
        let names: Vec<_> = config.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]);
    }

    #[test]
    fn values_that_mean_nothing_and_names_that_nobody_reads_are_refused() {
        for (name, value) in [
            ("maxOffsetsPerTrigger", "0"),
            ("maxOffsetsPerTrigger", "many"),
            ("minPartitions", "1000000"),
            ("maxRecordsPerPartition", "-5"),
            ("maxTriggerDelay", "soon"),
            ("maxTriggerDelay", "-1s"),
            ("failOnDataLoss", "maybe"),
            ("kafkaConsumer.pollTimeoutMs", "0"),
            ("fetchOffset.numRetries", "-1"),
            ("startingOffset", "earliest"),
        ] {
            let error = config(&[(name, value)]).unwrap_err();
            assert!(matches!(error, SourceError::Option(_)) && error.to_string().contains(name), "{error}");
        }
        assert!(config(&[("minOffsetsPerTrigger", "10"), ("maxOffsetsPerTrigger", "5")]).is_err());
        let held =
            config(&[("minOffsetsPerTrigger", "10"), ("maxTriggerDelay", "2 minutes")]).unwrap().patience.unwrap();
        assert_eq!((held.least, held.delay_ms), (10, 120_000));
        let fifteen_minutes = config(&[("minOffsetsPerTrigger", "10")]).unwrap().patience.unwrap();
        assert_eq!(fifteen_minutes.delay_ms, 900_000);
    }

    #[test]
    fn headers_are_a_column_when_asked_for() {
        let schema = config(&[("includeHeaders", "true")]).unwrap().schema();
        assert_eq!(schema.fields().len(), 8);
        assert_eq!(schema.field(7).name(), "headers");
    }
}
