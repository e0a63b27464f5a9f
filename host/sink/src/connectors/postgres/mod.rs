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
use crate::{Sink, SinkContext, SinkError, SinkFactory, SinkSpec};
use arrow::datatypes::SchemaRef;
use dialect::Postgres;
use std::sync::Arc;

/// The name of the format.
pub const FORMAT: &str = "postgresql";

/// Makes sinks of PostgreSQL.
#[derive(Clone)]
pub struct PostgresSinkFactory(DatabaseSinkFactory);

impl PostgresSinkFactory {
    /// The only one there is.
    pub fn new() -> Self {
        Self(DatabaseSinkFactory::new(Arc::new(Postgres)))
    }
}

impl Default for PostgresSinkFactory {
    fn default() -> Self {
        Self::new()
    }
}

impl SinkFactory for PostgresSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        self.0.check(spec)
    }

    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        self.0.check_columns(spec, schema)
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        self.0.open(spec, context)
    }
}
