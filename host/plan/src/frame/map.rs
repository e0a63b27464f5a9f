//! A function of the program as a node of the logical plan.
//!
//! What the function gives has nothing to do with the columns that it takes: no filter passes it, and it needs all columns.

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DFSchema, DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use millstream_operators::MapFunction;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Rows made of rows.
#[derive(Clone)]
pub(crate) struct MapNode {
    function: MapFunction,
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl MapNode {
    /// The node above `input`.
    ///
    /// # Errors
    /// When two columns have one name.
    pub(crate) fn new(function: MapFunction, schema: &SchemaRef, input: LogicalPlan) -> Result<Self> {
        // Event time is what a watermark declares; a function may have changed the times.
        let fields = schema.fields().iter().map(|field| crate::event_time::unmark(field).with_nullable(true));
        let schema = DFSchema::try_from(Schema::new(fields.collect::<Vec<_>>()))?;
        Ok(Self { function, input, schema: Arc::new(schema) })
    }

    /// What the rows come from.
    pub(crate) fn input(&self) -> &LogicalPlan {
        &self.input
    }

    /// The function.
    pub(crate) fn function(&self) -> &MapFunction {
        &self.function
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.function).cast::<()>() as usize
    }
}

impl fmt::Debug for MapNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapNode").field("schema", &self.schema).field("input", &self.input).finish_non_exhaustive()
    }
}

impl PartialEq for MapNode {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address() && self.schema == other.schema && self.input == other.input
    }
}

impl Eq for MapNode {}

impl Hash for MapNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
        self.input.hash(state);
    }
}

impl PartialOrd for MapNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for MapNode {
    fn name(&self) -> &str {
        "MapBatches"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>();
        write!(f, "MapBatches: {}", columns.join(", "))
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.pop() else { return plan_err!("a function has one input") };
        Ok(Self { input, ..self.clone() })
    }

    fn necessary_children_exprs(&self, _output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![(0..self.input.schema().fields().len()).collect()])
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }
}
