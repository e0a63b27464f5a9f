//! A query over everything that its inputs hold now: Spark's batch query.
//!
//! ```text
//!   the same QueryInput ──► the same front end ──► analysed plan, streams as bounded tables
//!                                                         │  DataFusion optimises and executes
//!                                                         ▼
//!                                                       rows, once
//! ```
//!
//! Beside the data path: [`plan_batch_query`] plans what [`plan`](crate::plan()) plans, up to the point where the
//! streaming plan begins. From there on nothing is shared with it: no operator, no state, no watermark. So the result
//! of a stream can be held against the result of the batch query over the same rows.
//!
//! A watermark has no effect, as in Spark; `drop_duplicates` keeps one row per key; what may not stream (ORDER BY,
//! OFFSET, OVER, INTERSECT, …) may run here.
//!
//! It opens no source: rows come from whoever calls it, through [`BoundedInputs`].

mod grouping_sets;
mod processors;
mod sessions;
mod table;

use crate::plan::{Purpose, analyzed};
use crate::{PlanError, QueryInput};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use millstream_operators::OperatorError;
use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

pub(crate) use processors::BatchPlanner;
pub(crate) use table::BoundedTable;

/// An error of whoever reads the rows; it comes out of [`BatchQueryError::Input`] as it was.
pub type InputError = Box<dyn Error + Send + Sync>;

/// The rows of one input, read as they are asked for.
pub type BoundedRows = Box<dyn Iterator<Item = Result<RecordBatch, InputError>> + Send>;

/// Where the rows of the streams come from.
pub trait BoundedInputs: Debug + Send + Sync {
    /// All rows of `stream`, once more at each call; `projection` names the wanted columns by their index in the
    /// stream's schema, ascending, and the batches hold exactly those.
    ///
    /// # Errors
    /// When reading cannot begin; what fails later is an item.
    fn read(&self, stream: &str, projection: &[usize]) -> Result<BoundedRows, InputError>;
}

/// A batch query could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum BatchQueryError {
    /// An expression or a plugin.
    #[error(transparent)]
    Execution(#[from] OperatorError),
    /// The rows could not be read.
    #[error("the input of the batch query cannot be read")]
    Input(#[source] InputError),
}

/// A planned batch query.
pub struct BatchQueryPlan {
    /// The columns of the result.
    pub schema: SchemaRef,
    physical: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
}

/// Plans a query over the rows that `inputs` gives.
///
/// # Errors
/// [`PlanError`] when the SQL is wrong, or says what only a stream can do.
pub fn plan_batch_query(input: &QueryInput, inputs: Arc<dyn BoundedInputs>) -> Result<BatchQueryPlan, PlanError> {
    refuse_waiting_for_duplicates(input)?;
    let (context, logical) = analyzed(input, &Purpose::Batch(inputs))?;
    let logical = logical
        .transform_up_with_subqueries(grouping_sets::without_total_of_nothing)
        .and_then(|plan| plan.data.transform_up_with_subqueries(sessions::spell_out))
        .map_err(|error| PlanError::from_datafusion(&error))?
        .data;
    let schema = Arc::new(logical.schema().as_arrow().clone());
    // Planning is asynchronous only for catalogs that look tables up elsewhere; ours are in memory.
    let physical = futures::executor::block_on(context.state().create_physical_plan(&logical))
        .map_err(|error| PlanError::from_datafusion(&error))?;
    Ok(BatchQueryPlan { schema, physical, task: context.task_ctx() })
}

fn refuse_waiting_for_duplicates(input: &QueryInput) -> Result<(), PlanError> {
    let waits = |stream: &&crate::StreamInput| stream.drop_duplicates.as_ref().is_some_and(|by| by.within_watermark);
    match input.streams.iter().find(waits) {
        Some(stream) => Err(PlanError::Unsupported {
            rule: "dedup-within-in-batch",
            reason: format!(
                "duplicates of `{}` are to be dropped within its watermark, and a batch query has no watermark",
                stream.name
            ),
            hint: "drop duplicates for ever, or run the query as a stream".into(),
        }),
        None => Ok(()),
    }
}

impl BatchQueryPlan {
    /// Executes the query; answers the rows, in order where the query orders them.
    ///
    /// `is_stopped` is asked between two batches of rows; when it says yes the rows that are there are dropped and the
    /// answer is `None`.
    ///
    /// # Errors
    /// When an input, an expression or a plugin fails.
    pub fn execute(&self, is_stopped: &dyn Fn() -> bool) -> Result<Option<Vec<RecordBatch>>, BatchQueryError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| OperatorError::Misfit {
            operator: OPERATOR.into(),
            reason: format!("no executor could be made: {error}"),
        })?;
        runtime.block_on(async {
            let plan = Arc::clone(&self.physical);
            let mut stream = execute_stream(plan, Arc::clone(&self.task)).map_err(execution_error)?;
            let mut rows = Vec::new();
            while let Some(batch) = stream.next().await {
                if is_stopped() {
                    return Ok(None);
                }
                let batch = batch.and_then(|batch| Ok(batch.with_schema(Arc::clone(&self.schema))?));
                rows.push(batch.map_err(execution_error)?);
            }
            rows.retain(|batch| batch.num_rows() > 0);
            Ok((!is_stopped()).then_some(rows))
        })
    }
}

/// What errors call it.
const OPERATOR: &str = "the batch query";

/// Takes the input's own error out of what DataFusion wrapped around it.
fn execution_error(error: datafusion::error::DataFusionError) -> BatchQueryError {
    match table::input_error(error) {
        Ok(input) => BatchQueryError::Input(input),
        Err(other) => BatchQueryError::Execution(OperatorError::from_expression(OPERATOR, other)),
    }
}

#[cfg(test)]
mod tests;
