//! A schema registry: what values in Kafka are written with, by number.
//!
//! Where it stands: functions that decode or encode framed values ask here, when a query is planned for the schemas of a
//! subject, and while it runs for each number that they have not seen. The protocol is that of Confluent's registry, which
//! others speak too.
//!
//! The rule of its life: what a number stands for never changes, so it is asked for once. Every question has a limit of
//! time and of size and is asked again a few times when the registry is busy. A question waits in the thread that asks.
//!
//! It knows nothing of Avro, JSON or rows; a schema is a text here.

mod address;
mod client;
mod error;
mod exchange;
mod framing;
mod schema;
#[cfg(test)]
mod tests;

pub use address::{REGISTRY_OPTIONS, RegistryAddress};
pub use client::SchemaRegistry;
pub use error::RegistryError;
pub use framing::{HEADER, frame_of, header};
pub use schema::{Reference, Schema, SchemaKind, Subject, Version};
