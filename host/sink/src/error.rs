//! What can go wrong with a sink.

use millstream_client::database::DatabaseError;
use millstream_client::kafka::KafkaError;
use millstream_client::mqtt::MqttError;
use millstream_client::nats::NatsError;
use millstream_client::redis::RedisError;
use millstream_common::{BatchId, Fault, Hint, OptionError, OutputMode, QueryId};
use millstream_wasm::WasmError;

/// A sink could not be opened or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// An option does not fit.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// No connector of that name.
    #[error("the sink has the unknown format `{format}`; there are {known}")]
    UnknownFormat {
        /// What was asked for.
        format: String,
        /// What exists.
        known: String,
    },
    /// The sink cannot take this output mode.
    #[error("sink `{sink}` cannot take output mode {mode}; it takes {known}")]
    Mode {
        /// The connector.
        sink: String,
        /// The query's mode.
        mode: OutputMode,
        /// The modes it takes.
        known: String,
    },
    /// The columns do not fit the sink.
    #[error("sink `{sink}` cannot write these columns: {reason}")]
    Schema {
        /// The connector.
        sink: String,
        /// What does not fit, and what to write.
        reason: String,
    },
    /// The place cannot be written.
    #[error("sink `{sink}` cannot {action} `{place}` in batch {batch}")]
    Unavailable {
        /// The connector.
        sink: String,
        /// `write`, `read`, `list`.
        action: &'static str,
        /// File, folder, address.
        place: String,
        /// The batch.
        batch: BatchId,
        /// What the world said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The place cannot be opened.
    #[error("sink `{sink}` cannot {action} `{place}`")]
    Open {
        /// The connector.
        sink: String,
        /// `open`, `claim`, `read`, `list`.
        action: &'static str,
        /// File, folder, address.
        place: String,
        /// What the world said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A database could not be reached, or did not take the rows.
    #[error("sink `{sink}` cannot {action} `{place}`")]
    Database {
        /// The connector.
        sink: String,
        /// `open`, `write`.
        action: &'static str,
        /// Database and table.
        place: String,
        /// What the database said.
        #[source]
        source: Box<DatabaseError>,
    },
    /// Redis could not be reached, or did not take the rows.
    #[error("sink `redis` cannot {action} `{place}`")]
    Redis {
        /// `open`, `write`.
        action: &'static str,
        /// Server and keys.
        place: String,
        /// What the server or the network said.
        #[source]
        source: Box<RedisError>,
    },
    /// A broker of MQTT could not be reached, or did not take the messages.
    #[error("sink `mqtt` cannot {action} `{place}`")]
    Mqtt {
        /// `open`, `write`.
        action: &'static str,
        /// Broker and topic.
        place: String,
        /// What the broker or the network said.
        #[source]
        source: Box<MqttError>,
    },
    /// NATS could not be reached, or did not take the messages.
    #[error("sink `nats` cannot {action} `{place}`")]
    Nats {
        /// `open`, `write`.
        action: &'static str,
        /// Servers and stream.
        place: String,
        /// What the server or the network said.
        #[source]
        source: Box<NatsError>,
    },
    /// Nobody can say any more which rows of a batch are there that did not come to its end.
    #[error("sink `{sink}` cannot go on with batch {batch} in `{place}`: {reason}")]
    Uncertain {
        /// The connector.
        sink: String,
        /// Servers and stream.
        place: String,
        /// The batch.
        batch: BatchId,
        /// What is not there any more.
        reason: String,
    },
    /// What the server had confirmed is no longer there.
    #[error(
        "sink `{sink}` cannot write batch {batch} into `{place}`: the server had confirmed batch {confirmed}, and has {found} now"
    )]
    WentBack {
        /// The connector.
        sink: String,
        /// Server and keys.
        place: String,
        /// The batch.
        batch: BatchId,
        /// The newest batch that was confirmed.
        confirmed: BatchId,
        /// What there is: `batch 3`, `none`.
        found: String,
    },
    /// A later run of the same query writes there now.
    #[error("sink `{sink}` cannot write batch {batch} into `{place}`: another run of the query has taken its place")]
    Fenced {
        /// The connector.
        sink: String,
        /// Database and table.
        place: String,
        /// The batch.
        batch: BatchId,
    },
    /// Rows hold what the place does not have.
    #[error("sink `{sink}` cannot write batch {batch} into `{place}`: {reason}")]
    Rows {
        /// The connector.
        sink: String,
        /// Database and table.
        place: String,
        /// The batch.
        batch: BatchId,
        /// Which value, in which column.
        reason: String,
    },
    /// A function of the program that embeds the host failed.
    #[error("sink `{sink}` failed in a function of the program in batch {batch}")]
    Function {
        /// The connector.
        sink: String,
        /// The batch.
        batch: BatchId,
        /// What the function said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A plugin failed.
    #[error("sink `{sink}` cannot write batch {batch}")]
    Plugin {
        /// The sink's name in the plugin.
        sink: String,
        /// The batch.
        batch: BatchId,
        /// What became of the call.
        #[source]
        source: Box<WasmError>,
    },
    /// A batch is prepared elsewhere.
    #[error("sink `{sink}` cannot end batch {batch}, whose rows are prepared in {by}")]
    NotPrepared {
        /// The sink.
        sink: String,
        /// The batch.
        batch: BatchId,
        /// Who has them.
        by: String,
    },
    /// Another query writes there.
    #[error("sink `{sink}` cannot write `{place}`: it belongs to query {owner}, and this is query {query}")]
    Foreign {
        /// The connector.
        sink: String,
        /// Folder, table.
        place: String,
        /// Whose it is.
        owner: QueryId,
        /// Who wanted it.
        query: QueryId,
    },
    /// The batches before are somewhere else.
    #[error(
        "sink `{sink}` cannot go on in `{place}`: batch {next} is next, and none of the batches before it are there"
    )]
    Elsewhere {
        /// The connector.
        sink: String,
        /// File, folder, table.
        place: String,
        /// The batch that would be the first one there.
        next: BatchId,
    },
    /// What the sink wrote earlier is damaged or not its own.
    #[error("sink `{sink}` does not understand `{place}`: {reason}")]
    Corrupt {
        /// The connector.
        sink: String,
        /// File or folder.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// Another run of the query writes there now.
    #[error("sink `{sink}` cannot write to {place}: another run of query {query} has taken over")]
    TakenOver {
        /// The connector.
        sink: String,
        /// Where.
        place: String,
        /// The query.
        query: QueryId,
        /// What the world said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Kafka's brokers or its client refuse.
    #[error(transparent)]
    Kafka(Box<KafkaError>),
}

impl From<KafkaError> for SinkError {
    fn from(error: KafkaError) -> Self {
        Self::Kafka(Box::new(error))
    }
}

impl Hint for SinkError {
    fn fault(&self) -> Fault {
        match self {
            Self::Option(_) | Self::UnknownFormat { .. } | Self::Mode { .. } | Self::Schema { .. } => Fault::Query,
            Self::Plugin { source, .. } => source.fault(),
            Self::Database { source, .. } => source.fault(),
            Self::Redis { source, .. } => source.fault(),
            Self::Nats { source, .. } => source.fault(),
            Self::Mqtt { source, .. } => source.fault(),
            Self::WentBack { .. } | Self::Uncertain { .. } => Fault::Outside,
            Self::Rows { .. } => Fault::Data,
            Self::Fenced { .. } => Fault::Outside,
            Self::NotPrepared { .. } | Self::Foreign { .. } | Self::Elsewhere { .. } | Self::Function { .. } => {
                Fault::Query
            }
            Self::Unavailable { .. } | Self::Open { .. } | Self::TakenOver { .. } => Fault::Outside,
            Self::Kafka(error) => error.fault(),
            Self::Corrupt { .. } => Fault::Corrupt,
        }
    }

    /// The sinks of Kafka, databases, Redis, NATS and MQTT wait for their servers themselves; and what another run or a server's
    /// loss has decided stays so until the next start.
    fn may_pass(&self) -> bool {
        match self {
            Self::Database { .. } | Self::Redis { .. } | Self::Nats { .. } | Self::Mqtt { .. } => false,
            Self::Kafka(error) => error.may_pass(),
            Self::Fenced { .. } | Self::TakenOver { .. } | Self::WentBack { .. } | Self::Uncertain { .. } => false,
            other => other.fault() == Fault::Outside,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Plugin { source, .. } => match **source {
                WasmError::Deadline { .. } => Some("raise `deadline` of the plugin in the query file".into()),
                WasmError::Memory { .. } => Some("raise `memory` of the plugin in the query file".into()),
                WasmError::Trap { .. } | WasmError::Garbage { .. } | WasmError::Refused { .. } => Some(
                    "fix the plugin and start the query again with it: the batch is written again; only rows that the plugin \
                     names can be skipped by `on_fault`"
                        .into(),
                ),
                _ => source.hint(),
            },
            Self::Database { source, .. } => source.hint(),
            Self::Redis { source, .. } => source.hint(),
            Self::Mqtt { source, .. } => source.hint(),
            Self::Nats { source, .. } => source.hint(),
            Self::Uncertain { .. } => Some(
                "let the stream keep messages until a batch is done; set onLostMessages to write for one start to go on: at most \
                 the rows of this batch are there twice"
                    .into(),
            ),
            Self::WentBack { sink, .. } if sink == "nats" => Some(
                "the server lost what it had confirmed, or somebody has removed the bucket: let it be kept by several servers, or \
                 synced always; started again, the query goes on without what is lost"
                    .into(),
            ),
            Self::WentBack { .. } => Some(
                "the server lost what it had confirmed: let it keep all with `appendfsync always` and evict nothing; started \
                 again, the query goes on without what is lost"
                    .into(),
            ),
            Self::Rows { .. } => Some("let the query leave the row out, or put another value in its place".into()),
            Self::Fenced { .. } => Some("let only one run of the query go on: stop this one or the other".into()),
            Self::NotPrepared { .. } => {
                Some("start the query once with the sink that it had, so that the batch comes to its end there".into())
            }
            Self::Foreign { .. } => Some(
                "give each query an output of its own; a new checkpoint makes a new query, which needs a new output"
                    .into(),
            ),
            Self::Elsewhere { sink, .. } if sink == "kafka" => Some(
                "name the topic that the query wrote to; when the brokers have forgotten the offset of the group, which they do \
                 when a query stands for longer than offsets.retention.minutes, set onLostMarker to write for one start: at \
                 most the batch that was not done is there twice"
                    .into(),
            ),
            Self::Elsewhere { .. } => {
                Some("name the place where the batches before are, or start a new checkpoint with a new output".into())
            }
            Self::TakenOver { .. } => Some(
                "run each query once at a time; when this is its only run, a transaction took longer than the brokers allow: \
                 raise kafka.transaction.timeout.ms, or make batches smaller"
                    .into(),
            ),
            Self::Kafka(error) => error.hint(),
            Self::Corrupt { .. } => Some("restore the file from a backup, or write to a new place".into()),
            _ => None,
        }
    }
}
