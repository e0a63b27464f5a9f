//! Messages of a stream of NATS' JetStream, in the order of their sequence numbers.
//!
//! ```text
//!   config     which stream and subjects, from where, how much at a time     starting   earliest, latest, a number, a time
//!   offset     {"stream":"ORDERS","sequence":17,"created":"2026-…"}           sequences  sets of sequence numbers
//!   outlook    pure: what is new behind a position, and what is gone         loss       what becomes of the query then
//!   columns    messages to Arrow
//! ```
//!
//! Rule of its life: the checkpoint alone says where to go on; nothing is acknowledged, and no consumer outlives the reading of
//! a batch. A range of sequence numbers has the same rows each time it is read, as long as the stream keeps the messages. Numbers
//! that a range should have and does not are messages that were removed: that ends the query, or is counted and warned of when
//! `failOnDataLoss` is false. What other subjects have is not missed. When the stream was made is part of the offset, so that
//! another stream of its name is never taken for it.
//!
//! It knows nothing of core NATS. Options and limits: `README.md` beside this file.

mod columns;
mod config;
mod loss;
mod offset;
mod outlook;
mod sequences;
mod source;
mod starting;

pub use source::NatsSourceFactory;

/// The name of the format.
pub const FORMAT: &str = "nats";
