//! Rows into Redis, exactly once: as entries of a stream, or as one key each.
//!
//! ```text
//!   config    which keys, by which columns         text   values as Redis has them: bytes
//!   rows      rows to commands                     book   the newest batch and who may write
//!   sink      one transaction per batch
//! ```
//!
//! Rule of its life: the commands of a batch and its id in the book are one MULTI … EXEC. The book is watched from before it
//! was looked at: when it changes, the server does nothing of the transaction. So a batch counts once, and a run that
//! another has replaced writes nothing more. Keys of another kind are found before anything is written; and because the
//! server does not take back what went well inside of a transaction, its last command is a script that leaves the batch out
//! of the book when a key has become another kind of value meanwhile.
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
