//! What can go wrong with a source.

use millstream_client::database::DatabaseError;
use millstream_client::kafka::KafkaError;
use millstream_client::mqtt::MqttError;
use millstream_client::nats::NatsError;
use millstream_client::redis::RedisError;
use millstream_common::{DurableError, Fault, Hint, OptionError};
use millstream_wasm::WasmError;

/// A source could not be opened, asked or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// An option does not fit.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// No connector of that name.
    #[error("source `{name}` has the unknown format `{format}`; there are {known}")]
    UnknownFormat {
        /// The stream.
        name: String,
        /// What was asked for.
        format: String,
        /// What exists.
        known: String,
    },
    /// A schema is needed, or must not be given, or does not fit.
    #[error("source `{name}`: {reason}")]
    Schema {
        /// The stream.
        name: String,
        /// What is wrong with the schema, and what to write.
        reason: String,
    },
    /// The place cannot be looked at or read.
    #[error("source `{name}` cannot {action} `{place}`")]
    Unavailable {
        /// The stream.
        name: String,
        /// `connect to`, `list`, `read`.
        action: &'static str,
        /// File, folder, address.
        place: String,
        /// What the world said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A database could not be reached, or did not do what it was asked.
    #[error("source `{name}` cannot {action}")]
    Database {
        /// The stream.
        name: String,
        /// `connect`, `read the table`, `read the log`.
        action: &'static str,
        /// What the database said.
        #[source]
        source: Box<DatabaseError>,
    },
    /// Redis could not be reached, or did not do what it was asked.
    #[error("source `{name}` cannot {action}")]
    Redis {
        /// The stream.
        name: String,
        /// `look at` or `read`, and the stream.
        action: String,
        /// What the server or the network said.
        #[source]
        source: Box<RedisError>,
    },
    /// A broker of MQTT could not be reached, or did not do what it was asked.
    #[error("source `{name}` cannot {action}")]
    Mqtt {
        /// The stream.
        name: String,
        /// `receive messages`.
        action: &'static str,
        /// What the broker or the network said.
        #[source]
        source: Box<MqttError>,
    },
    /// NATS could not be reached, or did not do what it was asked.
    #[error("source `{name}` cannot {action}")]
    Nats {
        /// The stream.
        name: String,
        /// `look at` or `read`, and the stream.
        action: String,
        /// What the server or the network said.
        #[source]
        source: Box<NatsError>,
    },
    /// A table has other columns than before.
    #[error("source `{name}` cannot go on: table `{table}` has changed: {reason}")]
    TableChanged {
        /// The stream.
        name: String,
        /// The table.
        table: String,
        /// Which column, and how.
        reason: String,
    },
    /// A row or file cannot be decoded.
    #[error("source `{name}` cannot decode `{place}`: {reason}")]
    Malformed {
        /// The stream.
        name: String,
        /// File, and line where known.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The range was released or lost and cannot be read again.
    #[error("source `{name}` no longer has the rows of offsets {range}: {reason}")]
    Lost {
        /// The stream.
        name: String,
        /// The range.
        range: String,
        /// Why they are gone.
        reason: String,
    },
    /// Kafka could not be asked or read.
    #[error("source `{name}` cannot read from Kafka")]
    Kafka {
        /// The stream.
        name: String,
        /// What was tried, and what became of it.
        #[source]
        source: Box<KafkaError>,
    },
    /// Rows that were never read are gone where they came from, and the user wants to know.
    #[error("source `{name}` has lost data: {what}")]
    DataLoss {
        /// The stream.
        name: String,
        /// What is gone, from where to where, and why.
        what: String,
    },
    /// Offsets were to be written where other programs look for them, and there is no such place.
    #[error("offsets of `{place}` cannot be committed: it has no groups of consumers")]
    CannotCommit {
        /// The source, as it describes itself.
        place: String,
    },
    /// An offset in the log is not one of this source.
    #[error("source `{name}` does not understand the logged offset {offset}")]
    ForeignOffset {
        /// The stream.
        name: String,
        /// The offset.
        offset: String,
    },
    /// The source's own log in the checkpoint failed.
    #[error("source `{name}` cannot use its log in the checkpoint")]
    Log {
        /// The stream.
        name: String,
        /// What failed.
        #[source]
        source: DurableError,
    },
    /// The plugin that the source is of failed.
    #[error("source `{name}` cannot {action}")]
    Plugin {
        /// The stream.
        name: String,
        /// `say where to begin`, `say what is new`, `read its rows`.
        action: &'static str,
        /// How it failed, with the plugin's own words.
        #[source]
        source: Box<WasmError>,
    },
    /// The plugin that the source is of does not do what a source promises.
    #[error("source `{name}` of plugin `{plugin}` breaks its word: {reason}")]
    BrokenWord {
        /// The stream.
        name: String,
        /// The plugin.
        plugin: String,
        /// What it did.
        reason: String,
    },
    /// What the source reads has changed in a way that is no new rows.
    #[error("source `{name}` cannot go on at version {version} of `{place}`: {reason}")]
    NotAppended {
        /// The stream.
        name: String,
        /// The table.
        place: String,
        /// The version that brings the change.
        version: u64,
        /// What it does, and what to set.
        reason: String,
    },
    /// A file of the source's own log in the checkpoint is not whole.
    #[error("source `{name}` cannot trust `{place}`: {reason}")]
    Damaged {
        /// The stream.
        name: String,
        /// The file.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Hint for SourceError {
    fn fault(&self) -> Fault {
        match self {
            Self::Option(_) | Self::UnknownFormat { .. } | Self::Schema { .. } => Fault::Query,
            Self::Unavailable { .. } => Fault::Outside,
            Self::Database { source, .. } => source.fault(),
            Self::Redis { source, .. } => source.fault(),
            Self::Nats { source, .. } => source.fault(),
            Self::Mqtt { source, .. } => source.fault(),
            Self::TableChanged { .. } | Self::CannotCommit { .. } => Fault::Query,
            Self::Plugin { source, .. } => source.fault(),
            Self::Kafka { source, .. } => source.fault(),
            Self::BrokenWord { .. } => Fault::Plugin,
            Self::Malformed { .. } | Self::Lost { .. } | Self::DataLoss { .. } | Self::NotAppended { .. } => {
                Fault::Data
            }
            Self::Log { source: DurableError::Storage { .. }, .. } => Fault::Outside,
            Self::ForeignOffset { .. } | Self::Log { .. } | Self::Damaged { .. } => Fault::Corrupt,
        }
    }

    /// The sources of Kafka, databases, Redis, NATS and MQTT wait for their servers themselves.
    fn may_pass(&self) -> bool {
        match self {
            Self::Kafka { source, .. } => source.may_pass(),
            Self::Database { .. } | Self::Redis { .. } | Self::Nats { .. } | Self::Mqtt { .. } => false,
            other => other.fault() == Fault::Outside,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::ForeignOffset { .. } => Some(
                "the checkpoint belongs to another source of this name: give back the old source or start a new \
                 checkpoint"
                    .into(),
            ),
            Self::Database { source, .. } => source.hint(),
            Self::Redis { source, .. } => match **source {
                RedisError::Old { .. } => Some(
                    "use a server from 7.0 on, or set failOnDataLoss to false: then losses are not looked for".into(),
                ),
                _ => source.hint(),
            },
            Self::Mqtt { source, .. } => source.hint(),
            Self::Nats { source, .. } => source.hint(),
            Self::TableChanged { .. } => Some(
                "start the query again: it takes the columns as they are then; what its SQL names must still be there"
                    .into(),
            ),
            Self::Lost { .. } => Some("start a new checkpoint, or bring the rows back where they were".into()),
            Self::Kafka { source, .. } => source.hint(),
            Self::DataLoss { .. } => Some(
                "set failOnDataLoss to false to go on with what is still there; the loss is then warned of and counted"
                    .into(),
            ),
            Self::Unavailable { action: "connect to", place, .. } => {
                let port = place.rsplit(':').next().unwrap_or("PORT");
                Some(format!("start a server there first, for example `nc -lk {port}`"))
            }
            Self::Log { source: DurableError::Exists { .. }, .. } => {
                Some("another query writes the same checkpoint: give each query a checkpoint of its own".into())
            }
            Self::Plugin { source, .. } => match &**source {
                WasmError::Deadline { .. } => Some("raise `deadline` of the plugin in the query file".into()),
                WasmError::Memory { .. } => Some("raise `memory` of the plugin in the query file".into()),
                WasmError::Trap { .. } | WasmError::Garbage { .. } | WasmError::Refused { .. } => {
                    Some("fix the plugin and swap it; the batch is then run again".into())
                }
                other => other.hint(),
            },
            Self::BrokenWord { .. } => Some("fix the plugin and swap it".into()),
            Self::Damaged { .. } => Some("restore the file from a backup, or start a new checkpoint".into()),
            _ => None,
        }
    }
}
