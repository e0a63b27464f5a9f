//! Rows that come by themselves, so many per second: columns `timestamp` and `value`, counting from 0.
//!
//! An offset is a number of whole seconds since the source was created; the time of creation is kept in the
//! checkpoint, so that every range can be made again. Source of the semantics: Spark's `rate`.
//!
//! Rule of its life: the rows of a range depend on nothing but the range, the options and the time of
//! creation. A clock that is set back stands still until it is passed.

pub(crate) mod config;
mod source;
#[cfg(test)]
mod tests;

pub use source::RateSourceFactory;
pub(crate) use source::{counting_schema, deal};
