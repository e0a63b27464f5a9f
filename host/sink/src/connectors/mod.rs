//! The connectors that every host has, one folder each; each passes the suite in
//! [`contract`](crate::contract). Connectors know nothing of each other.

mod attempt;
pub mod console;
mod database;
pub mod delta;
pub mod file;
pub mod foreach;
pub mod foreach_batch;
pub mod kafka;
pub mod memory;
pub mod mqtt;
pub mod mysql;
pub mod nats;
pub mod noop;
pub mod plugin;
pub mod postgres;
pub mod redis;

use crate::SinkRegistry;
use std::sync::Arc;

impl SinkRegistry {
    /// The connectors `console`, `memory`, `noop`, `delta`, `kafka`, `postgresql`, `mysql`, `redis`, `nats`, `mqtt`, `file`,
    /// `parquet`, `json`, `csv`, `text`, `avro` and `orc`, writing to standard output, to memory tables of their own, to servers, folders and
    /// object stores.
    pub fn with_builtins() -> Self {
        Self::with_builtins_over(memory::MemorySinkTables::new())
    }

    /// As [`with_builtins`](Self::with_builtins), with memory tables that the caller can read.
    pub fn with_builtins_over(tables: memory::MemorySinkTables) -> Self {
        let mut registry = Self::empty();
        registry.register("console", Arc::new(console::ConsoleSinkFactory::stdout()));
        registry.register("delta", Arc::new(delta::DeltaSinkFactory));
        registry.register("memory", Arc::new(tables));
        registry.register("noop", Arc::new(noop::NoopSinkFactory));
        registry.register(mqtt::FORMAT, Arc::new(mqtt::MqttSinkFactory));
        registry.register(mysql::FORMAT, Arc::new(mysql::factory()));
        registry.register(nats::FORMAT, Arc::new(nats::NatsSinkFactory));
        registry.register(postgres::FORMAT, Arc::new(postgres::factory()));
        registry.register(redis::FORMAT, Arc::new(redis::RedisSinkFactory));
        registry.register("kafka", Arc::new(kafka::KafkaSinkFactory));
        registry.register("file", Arc::new(file::FileSinkFactory::new(None)));
        for format in file::FileFormat::ALL {
            registry.register(format.name(), Arc::new(file::FileSinkFactory::new(Some(format))));
        }
        registry
    }
}
