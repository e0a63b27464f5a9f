//! Sessions over rows that are all there.
//!
//! ```text
//!   Aggregate by k, session
//!     →  Aggregate by k, [least start, greatest end of the number]
//!          Window  least start, greatest end  of k and number
//!            Window  number = how many sessions of k have opened so far
//!              Project  opens = starts after all that came before has ended
//!                Window  greatest end of the rows of k before, in the order of their starts
//! ```
//!
//! A row's range is [time, time + gap); ranges that overlap or touch are one session. Source of the semantics: Spark's
//! `session_window`.

use crate::event_time;
use crate::time_window::window_fields;
use arrow::array::{ArrayRef, StructArray};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, exec_err};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::functions_aggregate::{min_max, sum};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, ColumnarValue, Expr, ExprFunctionExt, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, WindowFrame, WindowFrameBound,
    WindowFrameUnits, WindowFunctionDefinition, lit, when,
};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

const KEY: &str = "__key_";
const RANGE: &str = "__range";
const BEFORE: &str = "__before";
const OPENS: &str = "__opens";
const NUMBER: &str = "__number";
const START: &str = "__start";
const END: &str = "__end";

/// The node with its sessions spelled out, if it groups by one.
pub(super) fn spell_out(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = node else { return node.recompute_schema().map(Transformed::yes) };
    let Some(session) = session_key(&aggregate.group_expr, aggregate.input.schema()) else {
        return LogicalPlan::Aggregate(aggregate).recompute_schema().map(Transformed::yes);
    };
    let (relation, name) = aggregate.schema.qualified_field(session);
    let (relation, name) = (relation.cloned(), name.name().clone());
    let numbered = numbered(&aggregate, session)?;
    let mut keys = aggregate.group_expr;
    let bounds = ScalarUDF::from(Bounds { signature: Signature::any(2, Volatility::Immutable) });
    keys[session] = bounds.call(vec![column(START), column(END)]).alias_qualified(relation, name);
    Aggregate::try_new(Arc::new(numbered), keys, aggregate.aggr_expr).map(LogicalPlan::Aggregate).map(Transformed::yes)
}

fn session_key(keys: &[Expr], schema: &DFSchema) -> Option<usize> {
    keys.iter().position(|key| key.to_field(schema).is_ok_and(|(_, field)| event_time::is_session(&field)))
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The rows of the aggregation's input, each with the start and the end of its session.
fn numbered(aggregate: &Aggregate, session: usize) -> Result<LogicalPlan> {
    let input = aggregate.input.as_ref().clone();
    let mut columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut keys = Vec::new();
    for (index, key) in aggregate.group_expr.iter().enumerate() {
        if index == session {
            columns.push(key.clone().unalias().alias(RANGE));
        } else {
            let name = format!("{KEY}{index}");
            keys.push(column(&name));
            columns.push(key.clone().unalias().alias(name));
        }
    }
    let (start, end) = (get_field(column(RANGE), "start"), get_field(column(RANGE), "end"));
    let order = vec![start.clone().sort(true, true)];
    let rows_through = |end: WindowFrameBound| {
        let from = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
        WindowFrame::new_bounds(WindowFrameUnits::Rows, from, end)
    };
    let before = over(min_max::max_udaf(), end.clone())
        .partition_by(keys.clone())
        .order_by(order.clone())
        .window_frame(rows_through(WindowFrameBound::Preceding(ScalarValue::UInt64(Some(1)))))
        .build()?;
    let number = over(sum::sum_udaf(), column(OPENS))
        .partition_by(keys.clone())
        .order_by(order)
        .window_frame(rows_through(WindowFrameBound::CurrentRow))
        .build()?;
    let mut of_session = keys;
    of_session.push(column(NUMBER));
    let least = over(min_max::min_udaf(), start.clone()).partition_by(of_session.clone()).build()?;
    let greatest = over(min_max::max_udaf(), end).partition_by(of_session).build()?;

    let ranged = LogicalPlanBuilder::from(input).project(columns)?;
    let ranged = ranged.window(vec![before.alias(BEFORE)])?.build()?;
    let mut columns: Vec<Expr> = ranged.schema().columns().into_iter().map(Expr::Column).collect();
    let is_first = column(BEFORE).is_null().or(start.gt(column(BEFORE)));
    columns.push(when(is_first, lit(1_i64)).otherwise(lit(0_i64))?.alias(OPENS));
    LogicalPlanBuilder::from(ranged)
        .project(columns)?
        .window(vec![number.alias(NUMBER)])?
        .window(vec![least.alias(START), greatest.alias(END)])?
        .build()
}

fn over(function: Arc<AggregateUDF>, argument: Expr) -> Expr {
    Expr::from(WindowFunction::new(WindowFunctionDefinition::AggregateUDF(function), vec![argument]))
}

/// A session from its start and its end.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounds {
    signature: Signature,
}

impl ScalarUDFImpl for Bounds {
    fn name(&self) -> &str {
        "__session"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(window_fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let [start, end] = columns.as_slice() else { return exec_err!("__session takes a start and an end") };
        let nulls = start.nulls().cloned();
        let session = StructArray::try_new(window_fields(), vec![Arc::clone(start), Arc::clone(end)], nulls)?;
        Ok(ColumnarValue::Array(Arc::new(session) as ArrayRef))
    }
}
