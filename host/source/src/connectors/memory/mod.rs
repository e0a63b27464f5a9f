//! Rows that the program itself adds: for tests, and for embedding.
//!
//! Each [`MemoryStream::add_data`] is one unit, and units are never split. The handle keeps all units, so a
//! query may stop and start again in the same process, from any retained batch; [`MemoryStream::forget`] is
//! the caller's to use.
//!
//! Rule of its life: unit k has the offset k, from 0; an empty unit counts too.

mod config;
mod source;
#[cfg(test)]
mod tests;

pub use source::{MemoryStream, MemoryStreams};
