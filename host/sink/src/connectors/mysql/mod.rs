//! Rows into a table of MySQL or MariaDB, exactly once: by inserts of many rows, in one transaction per batch with the
//! batch's id.
//!
//! What all databases share is in [`database`](super::database); here are MySQL's words ([`dialect`]), and how rows are
//! loaded ([`session`]).

mod dialect;
mod session;

use super::database::DatabaseSinkFactory;
use crate::{Sink, SinkContext, SinkError, SinkFactory, SinkSpec};
use arrow::datatypes::SchemaRef;
use dialect::Mysql;
use std::sync::Arc;

/// The name of the format.
pub const FORMAT: &str = "mysql";

/// Makes sinks of MySQL and MariaDB.
#[derive(Clone)]
pub struct MysqlSinkFactory(DatabaseSinkFactory);

impl MysqlSinkFactory {
    /// The only one there is.
    pub fn new() -> Self {
        Self(DatabaseSinkFactory::new(Arc::new(Mysql)))
    }
}

impl Default for MysqlSinkFactory {
    fn default() -> Self {
        Self::new()
    }
}

impl SinkFactory for MysqlSinkFactory {
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
