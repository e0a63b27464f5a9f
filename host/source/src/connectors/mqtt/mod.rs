//! Messages of a broker of MQTT, each in the order in which it came.
//!
//! ```text
//!   config     which topics, how much at a time          session   the name by which the broker knows us, and its filters
//!   receiver   a thread: messages in, spool, acknowledge  inbox     what has come and is in no file yet
//!   spool      files of messages in the checkpoint        rows      messages to Arrow
//!   source     numbers in the spool as offsets            loss      a session that the broker no longer has
//!   released   which batches may still be read again
//! ```
//!
//! ```text
//!   broker ──► inbox ──► spool (a file, durable) ──► acknowledgement ──► broker
//!                          └──► rows of a range, as often as they are asked for
//! ```
//!
//! Rule of its life: a broker forgets what was acknowledged, so a message is acknowledged only when a file of the
//! checkpoint has it. Until then it is the broker's, which keeps a session for the query while that is away. What is in
//! the spool is numbered, and a number has the same row each time it is read.
//!
//! It gives nothing twice that is in the spool once; with quality 1 the broker may give a message again that a crash has
//! left between file and acknowledgement. Options, promises and limits: `README.md` beside this file.

mod config;
mod inbox;
mod loss;
mod receiver;
mod released;
mod rows;
mod session;
mod source;
mod spool;

pub use source::MqttSourceFactory;

/// The name of the format.
pub const FORMAT: &str = "mqtt";
