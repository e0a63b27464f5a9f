//! The sink, with both guarantees.

use super::columns::Columns;
use super::config::{Delivery, KafkaConfig};
use super::transaction::Transactions;
use super::writer::{Trouble, Writer};
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::datatypes::SchemaRef;
use millstream_common::{OutputMode, QueryId};

/// Makes sinks that write to Kafka.
#[derive(Debug, Clone, Copy, Default)]
pub struct KafkaSinkFactory;

impl SinkFactory for KafkaSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        KafkaConfig::new(spec).map(drop)
    }

    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        Columns::of(schema, KafkaConfig::new(spec)?.topic.as_deref()).map(drop)
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        let config = KafkaConfig { stop: context.stop, ..KafkaConfig::new(spec)? };
        let output = Output::open(&config, context.query)?;
        Ok(Box::new(KafkaSink { config, query: context.query, output: Some(output) }))
    }
}

/// How batches go out.
enum Output {
    ExactlyOnce(Box<Transactions>),
    AtLeastOnce(Box<Writer>),
}

impl Output {
    fn open(config: &KafkaConfig, query: QueryId) -> Result<Self, SinkError> {
        match &config.delivery {
            Delivery::ExactlyOnce(terms) => {
                Ok(Self::ExactlyOnce(Box::new(Transactions::open(config.clone(), terms.clone(), query)?)))
            }
            Delivery::AtLeastOnce => {
                let mut writer = Writer::new(config, None)?;
                if let Some(topic) = &config.topic {
                    writer.find(topic).map_err(told)?;
                }
                Ok(Self::AtLeastOnce(Box::new(writer)))
            }
        }
    }
}

fn told(trouble: Trouble) -> SinkError {
    match trouble {
        Trouble::Rows(error) => error,
        Trouble::Client(_, error) => error.into(),
    }
}

struct KafkaSink {
    config: KafkaConfig,
    query: QueryId,
    /// None after a failure that leaves nothing to go on with, and after the end.
    output: Option<Output>,
}

impl Sink for KafkaSink {
    fn description(&self) -> String {
        let topic = self.config.topic.as_deref().unwrap_or("by column `topic`");
        format!("KafkaSink[{topic} at {}]", self.config.client.servers())
    }

    fn guarantee(&self) -> Guarantee {
        match self.config.delivery {
            Delivery::ExactlyOnce(_) => Guarantee::ExactlyOnce,
            Delivery::AtLeastOnce => Guarantee::AtLeastOnce,
        }
    }

    fn supports(&self, _mode: OutputMode) -> bool {
        true
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        let columns = Columns::of(batch.schema, self.config.topic.as_deref())?;
        let output = match &mut self.output {
            Some(output) => output,
            None => self.output.insert(Output::open(&self.config, self.query)?),
        };
        match output {
            Output::ExactlyOnce(transactions) => Ok(SinkReport { rows: transactions.add(batch, &columns)? }),
            Output::AtLeastOnce(writer) => {
                let written = writer.write(batch, &columns, self.config.topic.as_deref());
                let arrived = written.and_then(|rows| writer.drain(batch.id).map(|()| rows));
                match arrived {
                    Ok(rows) => Ok(SinkReport { rows }),
                    Err(trouble) => {
                        // The next attempt begins with nothing on its way.
                        self.output = None;
                        Err(told(trouble))
                    }
                }
            }
        }
    }

    fn stop(&mut self) {
        self.output = None;
    }
}
