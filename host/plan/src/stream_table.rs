//! A stream as a table of DataFusion's catalog: a name and a schema, never scanned by DataFusion itself.

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// The place where the rows of a stream enter a plan.
#[derive(Debug)]
pub(crate) struct StreamTable {
    /// The stream.
    pub(crate) name: String,
    schema: SchemaRef,
}

impl StreamTable {
    /// The stream `name`.
    pub(crate) fn new(name: String, schema: SchemaRef) -> Self {
        Self { name, schema }
    }
}

#[async_trait]
impl TableProvider for StreamTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        internal_err!("stream `{}` was to be scanned as a table", self.name)
    }
}
