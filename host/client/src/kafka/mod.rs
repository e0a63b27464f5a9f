//! Kafka: options with the prefix `kafka.` become the configuration of a client.
//!
//! First thing that source and sink of Kafka do: [`KafkaOptions`] takes the options of a query, whose names are those of
//! Kafka's own Java clients as in Spark, and makes the configuration of librdkafka of them. What Spark refuses is refused,
//! what has another name is renamed, what cannot be had is named with the way out. [`KafkaLog`] takes what the client
//! says while it runs, and [`KafkaError`] tells what its errors mean and who must act; [`Asking`] puts a question to the brokers
//! as long as there is hope.
//!
//! Rule of its life: nothing here connects by itself. Values of secrets are never shown: not in an error, a log line or a debug print.
//!
//! It neither reads nor writes a record; which offsets are read and how rows become records is the connectors' affair.

mod asking;
mod error;
mod jaas;
mod log;
mod names;
mod options;

pub use asking::Asking;
pub use error::KafkaError;
pub use log::KafkaLog;
pub use options::{KafkaOptions, KafkaRole};
