//! A piece of DataFusion's own physical plan, run once per batch: joins with static tables.
//!
//! ```text
//!   rows of the batch ──► slot ──► [ HashJoin ◄── static table ] ──► rows
//! ```
//! `SELECT e.*, c.name FROM events e JOIN campaigns c ON e.ad = c.ad` with a static `campaigns`.
//!
//! The plan is made once per run; per batch its slot is filled and it is executed anew, with the build side read
//! again from memory. It keeps no state between batches.

use crate::{BatchContext, Operator, OperatorError};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, reset_plan_states};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, collect};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the rows of a batch enter a [`Segment`].
#[derive(Debug, Clone)]
pub struct SegmentSlot {
    schema: SchemaRef,
    rows: Arc<Mutex<Vec<RecordBatch>>>,
}

impl SegmentSlot {
    /// An empty slot for rows of that schema.
    pub fn new(schema: SchemaRef) -> Self {
        Self { schema, rows: Arc::default() }
    }

    /// Puts rows in the place of those that are there.
    pub fn fill(&self, rows: Vec<RecordBatch>) {
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = rows;
    }
}

#[async_trait]
impl TableProvider for SegmentSlot {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(Arc::new(SlotExec { slot: self.clone(), projection: projection.cloned(), schema, properties }))
    }
}

/// The leaf of the plan that hands out what is in the slot.
#[derive(Debug)]
struct SlotExec {
    slot: SegmentSlot,
    projection: Option<Vec<usize>>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for SlotExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SlotExec")
    }
}

impl ExecutionPlan for SlotExec {
    fn name(&self) -> &str {
        "SlotExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.slot.rows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Box::pin(MemoryStream::try_new(rows, Arc::clone(&self.schema), self.projection.clone())?))
    }
}

/// A prepared plan with one slot.
pub struct Segment {
    describe: String,
    slot: Arc<SegmentSlot>,
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    runtime: tokio::runtime::Runtime,
    gathered: Vec<RecordBatch>,
}

impl Segment {
    /// The segment that runs `plan`, whose leaf is `slot`; `describe` is its line in `explain`.
    ///
    /// # Errors
    /// When no executor can be made for it.
    pub fn try_new(
        describe: String,
        slot: Arc<SegmentSlot>,
        plan: Arc<dyn ExecutionPlan>,
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> std::result::Result<Self, OperatorError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| OperatorError::Misfit {
            operator: describe.clone(),
            reason: format!("no executor could be made: {error}"),
        })?;
        Ok(Self { describe, slot, plan, schema, context, runtime, gathered: Vec::new() })
    }

    fn run(&mut self) -> Result<Vec<RecordBatch>> {
        self.slot.fill(std::mem::take(&mut self.gathered));
        // Metrics and the build side of joins belong to one execution.
        let plan = reset_plan_states(Arc::clone(&self.plan))?;
        let rows = self.runtime.block_on(collect(plan, Arc::clone(&self.context)));
        self.slot.fill(Vec::new());
        rows
    }
}

impl Operator for Segment {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn describe(&self) -> String {
        self.describe.clone()
    }

    fn push(
        &mut self,
        _port: usize,
        rows: &RecordBatch,
        _context: &BatchContext,
        _out: &mut Vec<RecordBatch>,
    ) -> std::result::Result<(), OperatorError> {
        if rows.num_rows() > 0 {
            self.gathered.push(rows.clone());
        }
        Ok(())
    }

    fn barrier(
        &mut self,
        _context: &BatchContext,
        out: &mut Vec<RecordBatch>,
    ) -> std::result::Result<(), OperatorError> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let rows = self.run().map_err(|error| OperatorError::from_expression(&self.describe, error))?;
        for batch in rows {
            let batch = batch
                .with_schema(Arc::clone(&self.schema))
                .map_err(|error| OperatorError::from_expression(&self.describe, error.into()))?;
            out.push(batch);
        }
        Ok(())
    }

    fn abort(&mut self) {
        self.gathered.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::prelude::SessionContext;
    use millstream_common::BatchId;

    #[test]
    fn a_batch_that_failed_after_some_rows_and_is_run_again_has_each_row_once() {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let slot = Arc::new(SegmentSlot::new(Arc::clone(&schema)));
        let session = SessionContext::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let scan = runtime.block_on(slot.scan(&session.state(), None, &[], None)).unwrap();
        let context = BatchContext { batch: BatchId(0), batch_time_ms: 0, watermarks: None };
        let mut segment = Segment::try_new("Join".into(), slot, scan, Arc::clone(&schema), session.task_ctx()).unwrap();
        let rows = |n: i64| {
            let column: ArrayRef = Arc::new(Int64Array::from(vec![n]));
            RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap()
        };
        let mut out = Vec::new();
        segment.push(0, &rows(1), &context, &mut out).unwrap();
        // Another operator fails.
        segment.abort();
        for n in [1, 2] {
            segment.push(0, &rows(n), &context, &mut out).unwrap();
        }
        segment.barrier(&context, &mut out).unwrap();
        let numbers = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(out.iter().flat_map(numbers).collect::<Vec<_>>(), [1, 2]);
    }
}
