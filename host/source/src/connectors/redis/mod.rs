//! Entries of Redis' streams, each stream in the order of its ids.
//!
//! ```text
//!   config     which streams, from where, how much at a time          starting  earliest, latest, ids
//!   offset     {"clicks":{"id":"1700000000000-0","added":134}}         id        what an id is
//!   look       what a stream is like now, as the server tells it
//!   outlook    pure: what is new behind a position, and what is gone   loss      what becomes of the query then
//!   pages      entries of a range, page by page                        columns   entries to Arrow
//! ```
//!
//! Rule of its life: the checkpoint alone says where to go on; nothing is written to the server. A range of ids has the
//! same rows each time it is read, as long as the server keeps the entries: new ones are always greater. How many entries
//! were ever added is part of the offset, so that what was trimmed or deleted before it was read is known by number: it
//! ends the query, or is counted and warned of when `failOnDataLoss` is false.
//!
//! It knows nothing of consumer groups. Options and limits: `README.md` beside this file.

mod columns;
mod config;
mod id;
mod look;
mod loss;
mod offset;
mod outlook;
mod pages;
mod source;
mod starting;

pub use source::RedisSourceFactory;

/// The name of the format.
pub const FORMAT: &str = "redis";
