//! Processors in a batch query: all rows of a key in one call, initial rows before them, no timer ever.

use crate::processor::ProcessorNode;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties, collect,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use futures::{StreamExt, TryStreamExt};
use millstream_common::{BatchTime, OperatorUid};
use millstream_operators::{OperatorError, Processor, ProcessorSpec};
use std::fmt;
use std::sync::Arc;

/// DataFusion's planner, and processors.
#[derive(Debug)]
pub(crate) struct BatchPlanner {
    batch_time: BatchTime,
}

impl BatchPlanner {
    /// A planner for queries at that time.
    pub(crate) fn new(batch_time: BatchTime) -> Self {
        Self { batch_time }
    }
}

#[async_trait]
impl QueryPlanner for BatchPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let processors = ProcessorsOfBatch { batch_time: self.batch_time.clone() };
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(processors)]);
        planner.create_physical_plan(plan, session).await
    }
}

struct ProcessorsOfBatch {
    batch_time: BatchTime,
}

#[async_trait]
impl ExtensionPlanner for ProcessorsOfBatch {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical: &[&LogicalPlan],
        physical: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<ProcessorNode>() else { return Ok(None) };
        let schema: SchemaRef = Arc::new(UserDefinedLogicalNodeCore::schema(node).as_arrow().clone());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(Some(Arc::new(ProcessorExec {
            node: node.clone(),
            inputs: physical.to_vec(),
            schema,
            properties: Arc::new(properties),
            batch_time: self.batch_time.clone(),
        })))
    }
}

/// Runs a processor once, over all rows.
#[derive(Debug)]
struct ProcessorExec {
    node: ProcessorNode,
    /// The rows, and the initial rows if there are any.
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    batch_time: BatchTime,
}

impl ProcessorExec {
    fn spec(&self, input: SchemaRef) -> Result<ProcessorSpec> {
        let known = &self.node.processor;
        let uid = OperatorUid::new("query-processor").map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(ProcessorSpec {
            uid,
            plugin: known.plugin.clone(),
            signature: known.signature.clone(),
            code: Arc::clone(&known.code),
            input,
            event_time: None,
            output: Arc::clone(&self.schema),
            output_time: None,
            initial: Vec::new(),
            partitions: 1,
        })
    }
}

impl DisplayAs for ProcessorExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessorExec: {}", self.node.processor_name())
    }
}

impl ExecutionPlan for ProcessorExec {
    fn name(&self) -> &str {
        "ProcessorExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.inputs.iter().map(|_| Distribution::SinglePartition).collect()
    }

    fn with_new_children(self: Arc<Self>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self {
            node: self.node.clone(),
            inputs,
            schema: Arc::clone(&self.schema),
            properties: Arc::clone(&self.properties),
            batch_time: self.batch_time.clone(),
        }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(input) = self.inputs.first().filter(|_| partition == 0) else {
            return internal_err!("a processor has an input and one partition");
        };
        let (input, initial) = (Arc::clone(input), self.inputs.get(1).map(Arc::clone));
        let spec = self.spec(input.schema())?;
        let now_ms = self.batch_time.get_ms();
        let rows = async move {
            let initial = match initial {
                Some(initial) => collect(initial, Arc::clone(&context)).await?,
                None => Vec::new(),
            };
            let rows: Vec<RecordBatch> = collect(input, context).await?;
            let out = Processor::run_once(ProcessorSpec { initial, ..spec }, &rows, now_ms);
            let out = out.map_err(|error| match error {
                // Found again by whoever tells of faults.
                OperatorError::Plugin { source, .. } => DataFusionError::External(source),
                other => DataFusionError::External(Box::new(other)),
            })?;
            Ok::<_, DataFusionError>(futures::stream::iter(out.into_iter().map(Ok)))
        };
        let stream = futures::stream::once(rows).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream)))
    }
}
