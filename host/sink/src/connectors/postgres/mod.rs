//! Rows into a table of PostgreSQL, exactly once: by COPY, in one transaction per batch with the batch's id.
//!
//! What all databases share is in [`database`](super::database); here are PostgreSQL's words ([`dialect`]), its form of
//! a row ([`text`]), and how rows are loaded ([`session`]).
//!
//! Rows that are only added are copied into the table itself. Rows that are written by key are copied into a temporary
//! table first, where the last row of each key wins, and go from there into the table with two statements.

mod dialect;
mod session;
mod text;

use super::database::DatabaseSinkFactory;
use crate::SinkFactory;
use dialect::Postgres;

/// The name of the format.
pub const FORMAT: &str = "postgresql";

/// What makes sinks of PostgreSQL.
pub fn factory() -> impl SinkFactory {
    DatabaseSinkFactory::new(Postgres)
}
