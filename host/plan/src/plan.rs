//! From a query to its streaming plan: parse → rewrite → plan → check → optimise → lower.

use crate::deep_stack::on_deep_stack;
use crate::front::Front;
use crate::input::{Query, QueryInput};
use crate::lower::Lowering;
use crate::sql::{names::Names, parse::parse_query};
use crate::{PlanError, static_subquery, unsupported};
use arrow::datatypes::SchemaRef;
use millstream_operators::Pipeline;

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
}

/// Plans a query as a stream.
///
/// # Errors
/// [`PlanError`] when the SQL is wrong, or when Spark's rules (or ours) do not let it stream in that output mode.
pub fn plan(input: &QueryInput) -> Result<StreamingPlan, PlanError> {
    on_deep_stack(|| planned(input))
}

fn planned(input: &QueryInput) -> Result<StreamingPlan, PlanError> {
    let mut front = Front::new(input)?;
    let written = match &input.query {
        Query::Sql(sql) => front.statement(parse_query(sql)?, names_of(input), Vec::new())?,
        Query::Frame(frame) => frame.plan(&mut front, &input.tables)?,
    };
    let logical = front.analyze(written)?;
    let session = front.context().state();
    unsupported::check_analyzed(&logical, input)?;
    let logical = static_subquery::answer(logical, &session)?;
    let optimized = session.optimize(&logical).map_err(|error| PlanError::from_datafusion(&error))?;
    unsupported::check_optimized(&optimized)?;
    let text = optimized.display_indent().to_string();
    Lowering::new(&session, input).lower(&optimized, text)
}

/// The names that the query may use, spelled as they were declared.
fn names_of(input: &QueryInput) -> Names {
    let mut names = Names::default();
    let streams = input.streams.iter().map(|stream| (&stream.name, &stream.schema));
    for (name, schema) in streams.chain(input.tables.iter().map(|table| (&table.name, &table.schema))) {
        names.add(name);
        names.add_fields(schema.fields());
    }
    names
}
