//! The connectors that every host has, one folder each.
//!
//! A folder holds the options of the connector (`config`), the source itself, and its tests; each passes the
//! suite in [`contract`](crate::contract). Connectors know nothing of each other.

mod attempt;
mod database;
pub mod delta;
pub mod file;
pub mod kafka;
pub mod memory;
pub mod mqtt;
pub mod mysql;
pub mod nats;
pub mod plugin;
pub mod postgres;
pub mod rate;
pub mod rate_micro_batch;
pub mod redis;
pub mod socket;

use crate::SourceRegistry;
use file::{FileFormat, FileSourceFactory};
use std::sync::Arc;

impl SourceRegistry {
    /// The connectors `file`, `text`, `json`, `csv`, `parquet`, `avro`, `orc`, `delta`, `kafka`, `postgresql` and `mysql` (tables),
    /// `postgresql-cdc`, `mysql-cdc`, `redis`, `nats`, `mqtt`, `socket`, `rate`, `rate-micro-batch` and `plugin`.
    /// The format `plugin` comes with the plugins of a query, memory streams are handles of the library: register a [`memory::MemoryStreams`] or a
    /// [`memory::MemoryStream`].
    pub fn with_builtins() -> Self {
        let mut registry = Self::empty();
        registry.register("file", Arc::new(FileSourceFactory::new(None)));
        for format in FileFormat::ALL {
            registry.register(format.name(), Arc::new(FileSourceFactory::new(Some(format))));
        }
        registry.register(mqtt::FORMAT, Arc::new(mqtt::MqttSourceFactory::default()));
        registry.register(mysql::FORMAT, Arc::new(mysql::tables()));
        registry.register(mysql::CDC_FORMAT, Arc::new(mysql::MysqlCdcFactory));
        registry.register(nats::FORMAT, Arc::new(nats::NatsSourceFactory));
        registry.register(postgres::FORMAT, Arc::new(postgres::tables()));
        registry.register(postgres::CDC_FORMAT, Arc::new(postgres::PostgresCdcFactory));
        registry.register(redis::FORMAT, Arc::new(redis::RedisSourceFactory));
        registry.register("kafka", Arc::new(kafka::KafkaSourceFactory));
        registry.register("delta", Arc::new(delta::DeltaSourceFactory::default()));
        registry.register("socket", Arc::new(socket::SocketSourceFactory));
        registry.register("rate", Arc::new(rate::RateSourceFactory));
        registry.register(plugin::FORMAT, Arc::new(plugin::PluginSourceFactory::default()));
        registry.register("rate-micro-batch", Arc::new(rate_micro_batch::RateMicroBatchSourceFactory));
        registry
    }
}
