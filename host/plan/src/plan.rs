//! From a query to its streaming plan: parse → rewrite → plan → check → optimise → lower.

use crate::batch_query::BoundedInputs;
use crate::called_functions::called_functions;
use crate::deep_stack::on_deep_stack;
use crate::front::Front;
use crate::input::{Query, QueryInput};
use crate::lower::Lowering;
use crate::sql::{create_function::without_functions, names::Names, parse::parse_query};
use crate::{PlanError, session, session_window, static_subquery, stream_join, unsupported};
use arrow::datatypes::SchemaRef;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use millstream_operators::Pipeline;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where the rows of a stream enter the pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSlot {
    /// The stream.
    pub stream: String,
    /// The columns that the query uses, as indices into the stream's schema, ascending.
    pub projection: Vec<usize>,
}

/// A query, ready to see batches.
pub struct StreamingPlan {
    /// The operators; its inputs are the rows of `slots`, in their order.
    pub pipeline: Pipeline,
    /// Where the rows come from.
    pub slots: Vec<SourceSlot>,
    /// The columns of the result.
    pub schema: SchemaRef,
    /// The watermark nodes, by name of their stream; empty when the query has no watermark.
    pub watermark_nodes: Vec<String>,
    /// The optimised logical plan, for `explain`.
    pub logical: String,
    /// The names of all functions that the query calls.
    pub functions: BTreeSet<String>,
}

/// Plans a query as a stream.
///
/// # Errors
/// [`PlanError`] when the SQL is wrong, or when Spark's rules (or ours) do not let it stream in that output mode.
pub fn plan(input: &QueryInput) -> Result<StreamingPlan, PlanError> {
    on_deep_stack(|| planned(input))
}

fn planned(input: &QueryInput) -> Result<StreamingPlan, PlanError> {
    let (context, logical) = analyzed(input, &Purpose::Stream)?;
    unsupported::check_analyzed(&logical, input)?;
    let functions = called_functions(&logical).map_err(|error| PlanError::from_datafusion(&error))?;
    let logical = static_subquery::answer(logical, &context.state())?;
    let logical = session_window::fence(logical).map_err(|error| PlanError::from_datafusion(&error))?;
    let optimized = optimize(&context.state(), logical)?;
    unsupported::check_optimized(&optimized)?;
    let text = optimized.display_indent().to_string();
    let plan = Lowering::new(&context.state(), input).lower(&optimized, text)?;
    Ok(StreamingPlan { functions, ..plan })
}

/// What a query is planned for.
#[derive(Debug, Clone)]
pub(crate) enum Purpose {
    /// Batch by batch, with state.
    Stream,
    /// Once, over all rows of its inputs.
    Batch(Arc<dyn BoundedInputs>),
}

/// The front end: parse → rewrite → plan → analyse. The context knows the query's inputs and functions.
pub(crate) fn analyzed(input: &QueryInput, purpose: &Purpose) -> Result<(SessionContext, LogicalPlan), PlanError> {
    let mut front = Front::new(input, purpose)?;
    let written = match &input.query {
        Query::Sql(sql) => {
            let sql = without_functions(sql, &session::plugin_names(input)?)?;
            front.statement(parse_query(sql)?, names_of(input), Vec::new())?
        }
        Query::Frame(frame) => frame.plan(&mut front, &input.tables)?,
    };
    let logical = front.analyze(written)?;
    Ok((front.context().clone(), logical))
}

/// Optimises the plan, and once more where the first run shows that rows can be taken out before a join.
fn optimize(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan, PlanError> {
    let fail = |error| PlanError::from_datafusion(&error);
    let optimized = state.optimize(&plan).map_err(fail)?;
    let filtered = stream_join::filter_inputs(optimized).map_err(fail)?;
    if filtered.transformed { state.optimize(&filtered.data).map_err(fail) } else { Ok(filtered.data) }
}

/// The names that the query may use, spelled as they were declared.
fn names_of(input: &QueryInput) -> Names {
    let mut names = Names::default();
    let streams = input.streams.iter().map(|stream| (&stream.name, &stream.schema));
    for (name, schema) in streams.chain(input.tables.iter().map(|table| (&table.name, &table.schema))) {
        names.add(name);
        names.add_fields(schema.fields());
    }
    for slot in &input.plugins {
        slot.component().processors().iter().for_each(|processor| names.add_fields(&processor.output));
    }
    names.add("window");
    names.add("session_window");
    names
}
