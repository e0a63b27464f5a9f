//! Rows as messages of a stream of NATS' JetStream, exactly once.
//!
//! ```text
//!   config    which stream, which subjects           columns   the columns that become parts of a message
//!   messages  rows to messages, each with its id     book      what a query has written, and which run may write
//!   sink      a batch, until the stream has all of it
//! ```
//!
//! Rule of its life: before a batch goes out, the book says behind which message of the stream it begins; when the stream has
//! all of it, the book says that it is done. A message's id tells query, batch and content. So when a batch comes again, the
//! stream is read from where the batch began, and only what is not there goes out. The stream's own window for duplicates is
//! needed for the short while in which a connection that broke may still deliver what was sent over it.
//!
//! It makes no streams, but for the bucket of the book. Options, guarantee and limits: `README.md` beside this file.

mod book;
mod columns;
mod config;
mod messages;
mod sink;

pub use sink::NatsSinkFactory;

/// The name of the format.
pub const FORMAT: &str = "nats";
