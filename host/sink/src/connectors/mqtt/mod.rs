//! Rows as messages to a broker of MQTT, at least once.
//!
//! ```text
//!   config    which topic, how, and how many at a time     columns   rows to messages, without copies
//!   delivery  which messages are under way                 sink      a batch, until the broker has all of it
//! ```
//!
//! Rule of its life: a batch is done when the broker has acknowledged each of its messages. A broker has no transactions and
//! no place for the number of a batch, so what is written again is there again: messages without an answer when a connection
//! broke, and all of a batch that is run again.
//!
//! It gives messages no numbers of their own. Options, guarantee and limits: `README.md` beside this file.

mod columns;
mod config;
mod delivery;
mod sink;

pub use sink::MqttSinkFactory;

/// The name of the format.
pub const FORMAT: &str = "mqtt";
