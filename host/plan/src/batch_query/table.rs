//! A stream as a table that ends: what a batch query scans.

use super::{BoundedInputs, InputError};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// All rows of one stream.
#[derive(Debug)]
pub(crate) struct BoundedTable {
    stream: String,
    schema: SchemaRef,
    inputs: Arc<dyn BoundedInputs>,
}

impl BoundedTable {
    /// The rows of `stream` that `inputs` reads.
    pub(crate) fn new(stream: String, schema: SchemaRef, inputs: Arc<dyn BoundedInputs>) -> Self {
        Self { stream, schema, inputs }
    }
}

#[async_trait]
impl TableProvider for BoundedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.schema.fields().len()).collect();
        let wanted = projection.cloned().unwrap_or_else(all);
        let mut columns = wanted.clone();
        columns.sort_unstable();
        columns.dedup();
        let schema = Arc::new(self.schema.project(&columns)?);
        // Sources give columns in their own order; the plan may want another one.
        let order = wanted.iter().filter_map(|column| columns.iter().position(|read| read == column)).collect();
        let rows = Rows {
            stream: self.stream.clone(),
            columns,
            schema: Arc::clone(&schema),
            inputs: Arc::clone(&self.inputs),
        };
        let exec = StreamingTableExec::try_new(schema, vec![Arc::new(rows)], Some(&order), [], false, limit)?;
        Ok(Arc::new(exec))
    }
}

#[derive(Debug)]
struct Rows {
    stream: String,
    columns: Vec<usize>,
    schema: SchemaRef,
    inputs: Arc<dyn BoundedInputs>,
}

impl PartitionStream for Rows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let failed = |error: InputError| DataFusionError::External(Box::new(Unreadable(error)));
        let rows: Box<dyn Iterator<Item = Result<_>> + Send> = match self.inputs.read(&self.stream, &self.columns) {
            Ok(rows) => Box::new(rows.map(move |batch| {
                let batch = batch.map_err(failed)?;
                Ok(batch.with_schema(Arc::clone(&schema))?)
            })),
            Err(error) => Box::new(std::iter::once(Err(failed(error)))),
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter(rows)))
    }
}

/// An error of the input on its way through DataFusion.
#[derive(Debug)]
struct Unreadable(InputError);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Unreadable {}

/// The error of the input inside `error`, or `error` itself.
pub(super) fn input_error(error: DataFusionError) -> std::result::Result<InputError, DataFusionError> {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Unreadable>() {
            Ok(unreadable) => Ok(unreadable.0),
            Err(other) => Err(DataFusionError::External(other)),
        },
        DataFusionError::Context(text, inner) => {
            input_error(*inner).map_err(|inner| DataFusionError::Context(text, Box::new(inner)))
        }
        other => Err(other),
    }
}
