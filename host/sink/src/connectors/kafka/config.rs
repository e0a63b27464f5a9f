//! The options of the Kafka sink: Spark's, those of the client, and what exactly once needs.

use super::FORMAT;
use crate::{SinkError, SinkSpec};
use millstream_client::kafka::{KafkaOptions, KafkaRole};
use millstream_common::{OptionError, Options, QueryId, StopSignal};
use rdkafka::ClientConfig;
use std::time::Duration;

const OWNER: &str = "sink `kafka`";
/// What records may wait in before the brokers have them, where the user does not say: `kafka.buffer.memory`.
const BUFFER_BYTES: u64 = 64 << 20;
/// How long a transaction may take, where the user does not say. A third of what brokers allow by themselves.
const TRANSACTION_MS: u64 = 300_000;
/// How long a record may wait for room, where the user does not say: `kafka.max.block.ms`.
const BLOCK_MS: u64 = 60_000;

/// What becomes of a batch that is written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Its records are there once.
    ExactlyOnce(Transactional),
    /// Its records are there again.
    AtLeastOnce,
}

/// How batches are kept apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transactional {
    /// What the names of transactions and groups begin with.
    prefix: String,
    /// The topic under which the group has its offset: the last batch.
    pub(super) marker_topic: String,
    /// Whether a query goes on when the brokers have no last batch of it.
    pub(super) goes_on_without_marker: bool,
}

impl Transactional {
    /// The name of the transactions of a query.
    pub(super) fn transaction(&self, query: QueryId) -> String {
        format!("{}-{query}", self.prefix)
    }

    /// The group whose offset is the last batch of a query.
    pub(super) fn group(&self, query: QueryId) -> String {
        format!("{}-sink-{query}", self.prefix)
    }
}

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct KafkaConfig {
    pub(super) client: KafkaOptions,
    /// Where all rows go, whatever their column `topic` says.
    pub(super) topic: Option<String>,
    pub(super) delivery: Delivery,
    /// How long the brokers may take nothing.
    pub(super) block: Duration,
    /// Ends what is waited for.
    pub(super) stop: StopSignal,
}

impl KafkaConfig {
    pub(super) fn new(spec: &SinkSpec) -> Result<Self, SinkError> {
        let client = KafkaOptions::new(OWNER, &spec.options, KafkaRole::Sink)?;
        let options = KafkaOptions::others(&spec.options);
        let known =
            ["topic", "includeHeaders", "deliveryGuarantee", "transactionalIdPrefix", "markerTopic", "onLostMarker"];
        options.only(OWNER, &known)?;
        // As in Spark, headers are written when there is a column of them.
        options.flag(OWNER, "includeHeaders", false)?;
        for name in ["transactional.id", "group.id"] {
            if let Some(value) = client.get(name) {
                let reason = "it is made of transactionalIdPrefix and the identity of the query";
                return Err(invalid(name, value, reason).into());
            }
        }
        let topic = topic(&options, "topic")?;
        let delivery = match options.get("deliveryGuarantee").map(str::to_ascii_lowercase).as_deref() {
            None | Some("exactly-once") => Delivery::ExactlyOnce(transactional(&options, &client, topic.as_ref())?),
            Some("at-least-once") => {
                for name in ["transactionalIdPrefix", "markerTopic", "onLostMarker"] {
                    if let Some(value) = options.get(name) {
                        let reason = "it is for deliveryGuarantee exactly-once";
                        return Err(Options::invalid(OWNER, name, value, reason).into());
                    }
                }
                Delivery::AtLeastOnce
            }
            Some(other) => {
                let reason = "write exactly-once or at-least-once";
                return Err(Options::invalid(OWNER, "deliveryGuarantee", other, reason).into());
            }
        };
        let block = Duration::from_millis(number(&client, "max.block.ms")?.unwrap_or(BLOCK_MS));
        number(&client, "buffer.memory")?;
        Ok(Self { client, topic, delivery, block, stop: StopSignal::new() })
    }

    /// What a producer is made of; with the name of its transactions, if it has some.
    pub(super) fn producer(&self, transaction: Option<&str>) -> Result<ClientConfig, SinkError> {
        let mut config = self.client.client_config();
        let default = |config: &mut ClientConfig, name: &str, value: &str| self.client.default_to(config, name, value);
        // As Java's clients choose partitions: rows with one key stay together, whoever writes them.
        default(&mut config, "partitioner", "murmur2_random");
        let kbytes = number(&self.client, "buffer.memory")?.unwrap_or(BUFFER_BYTES).div_ceil(1024).clamp(1, 2_097_151);
        default(&mut config, "queue.buffering.max.kbytes", &kbytes.to_string());
        default(&mut config, "queue.buffering.max.messages", "1000000");
        // That a record has arrived needs no word; one that has not does.
        config.set("delivery.report.only.error", "true");
        match transaction {
            Some(id) => {
                config.set("transactional.id", id);
                default(&mut config, "transaction.timeout.ms", &TRANSACTION_MS.to_string());
            }
            None if self.client.get("acks").is_none_or(is_all) => {
                default(&mut config, "enable.idempotence", "true");
            }
            None => {}
        }
        Ok(config)
    }
}

fn transactional(
    options: &Options,
    client: &KafkaOptions,
    topic_of_all: Option<&String>,
) -> Result<Transactional, OptionError> {
    let way_out = "a transaction needs it; leave it out, or set deliveryGuarantee to at-least-once";
    if let Some(acks) = client.get("acks").filter(|acks| !is_all(acks)) {
        return Err(invalid("acks", acks, way_out));
    }
    if let Some(value) = client.get("enable.idempotence").filter(|value| !value.trim().eq_ignore_ascii_case("true")) {
        return Err(invalid("enable.idempotence", value, way_out));
    }
    let prefix = options.get("transactionalIdPrefix").unwrap_or("millstream").trim().to_owned();
    if prefix.is_empty() || prefix.len() > 200 || prefix.contains(char::is_control) {
        let reason = "write a name, for example that of the team, which the permissions at the brokers name";
        return Err(Options::invalid(OWNER, "transactionalIdPrefix", &prefix, reason));
    }
    let marker_topic = match (topic(options, "markerTopic")?, topic_of_all) {
        (Some(topic), _) => topic,
        (None, Some(topic)) => topic.clone(),
        (None, None) => {
            return Err(OptionError::Missing { owner: OWNER.into(), option: "markerTopic (or topic)".into() });
        }
    };
    let goes_on_without_marker = match options.get("onLostMarker").map(str::to_ascii_lowercase).as_deref() {
        None | Some("fail") => false,
        Some("write") => true,
        Some(other) => return Err(Options::invalid(OWNER, "onLostMarker", other, "write fail or write")),
    };
    Ok(Transactional { prefix, marker_topic, goes_on_without_marker })
}

/// Whether all copies of a record must be written.
fn is_all(acks: &str) -> bool {
    matches!(acks.trim().to_ascii_lowercase().as_str(), "all" | "-1")
}

/// A topic that an option names.
fn topic(options: &Options, name: &str) -> Result<Option<String>, OptionError> {
    let Some(topic) = options.get(name).map(str::trim) else { return Ok(None) };
    match topic_fault(topic) {
        None => Ok(Some(topic.to_owned())),
        Some(reason) => Err(Options::invalid(OWNER, name, topic, reason)),
    }
}

/// What is wrong with the name of a topic.
pub(super) fn topic_fault(name: &str) -> Option<&'static str> {
    let is_fine = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
    match name {
        "" | "." | ".." => Some("this is no name of a topic"),
        name if name.len() > 249 => Some("names of topics have at most 249 characters"),
        name if !name.chars().all(is_fine) => Some("names of topics have ASCII letters, digits, `.`, `_` and `-` only"),
        _ => None,
    }
}

fn number(client: &KafkaOptions, name: &str) -> Result<Option<u64>, OptionError> {
    let Some(text) = client.get(name) else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err(invalid(name, text, "write a number above 0")),
    }
}

fn invalid(name: &str, value: &str, reason: &str) -> OptionError {
    Options::invalid(OWNER, &format!("{FORMAT}.{name}"), value, reason)
}
