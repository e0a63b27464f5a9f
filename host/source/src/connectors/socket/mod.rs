//! Lines from a TCP connection: for trying things out.
//!
//! A thread of its own ([`receiver`]) reads lines into a bounded buffer; the source numbers them. When the
//! buffer is full the thread stops reading, and TCP holds the sender back.
//!
//! Rule of its life: lines are kept until they are released, and only in memory. After a restart the lines of
//! an unfinished batch are gone for good, which the source says instead of guessing; lines that come after
//! are numbered on. When the other side closes the connection, no more lines come.

mod config;
mod receiver;
mod source;
#[cfg(test)]
mod tests;

pub use source::SocketSourceFactory;
