//! Rows into Redis, exactly once: as entries of a stream, or as one key each.
//!
//! ```text
//!   config    which keys, by which columns         text   values as Redis has them: bytes
//!   rows      rows to commands                     book   the newest batch and who may write
//!   sink      one transaction per batch
//! ```
//!
//! Rule of its life: the commands of a batch and its id in the book are one MULTI … EXEC. The book, and every key whose
//! kind matters, is watched from before it was looked at: when any of that changes, the server does nothing of the
//! transaction, and it is tried from the start. So a batch counts once, and a run that another has replaced writes nothing
//! more. A key of another kind is found before anything is written, for inside of a transaction the server does not take
//! back what went well.
//!
//! It gives no ids to entries; the server does. Options, guarantee and limits: `README.md` beside this file.

mod book;
mod config;
mod rows;
mod sink;
mod text;

pub use sink::RedisSinkFactory;

/// The name of the format.
pub const FORMAT: &str = "redis";
