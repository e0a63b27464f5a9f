//! The event time of a union: that of its first branch.
//!
//! ```text
//!   a UNION ALL b              a has a watermark with a delay of 1 minute, b one of 5 minutes
//!     →  a UNION ALL (SELECT __event_time_as(at, '60000000') AS at, … FROM b)
//! ```
//!
//! Where it stands: asked before a window is planned above a union, and for the whole plan before it is analysed.
//!
//! Rule of its life: after it all branches agree on what their columns are marked with, so that no later pass can make
//! something else of it. The planner would keep what the branches have in common, or what only one of them has. Which
//! watermarks the query has is not touched: every stream's counts. Source: Spark's `Union.output`.

use crate::event_time;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Union, Volatility, lit,
};
use std::sync::Arc;

/// A plan whose unions have the event time of their first branches, and so all that stands on them.
///
/// # Errors
/// When a schema cannot be derived anew.
pub(crate) fn of_first_branch(plan: LogicalPlan) -> Result<LogicalPlan> {
    let settled = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Union(union) => as_first(union),
        plan => Ok(Transformed::no(plan)),
    })?;
    if !settled.transformed {
        return Ok(settled.data);
    }
    let derived = settled.data.transform_up_with_subqueries(|plan| plan.recompute_schema().map(Transformed::yes))?;
    Ok(derived.data)
}

fn as_first(union: Union) -> Result<Transformed<LogicalPlan>> {
    let first = Arc::clone(union.inputs[0].schema());
    let agrees = |input: &LogicalPlan| {
        let delays = input.schema().fields().iter().map(|field| event_time::delay_us(field));
        delays.eq(first.fields().iter().map(|field| event_time::delay_us(field)))
    };
    if union.inputs.iter().all(|input| agrees(input) || input.schema().fields().len() != first.fields().len()) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let mut inputs = Vec::new();
    for input in union.inputs {
        let input = Arc::unwrap_or_clone(input);
        inputs.push(Arc::new(if agrees(&input) { input } else { marked_as(input, first.fields())? }));
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new(inputs)?)))
}

/// The same rows, with the marks of these columns.
fn marked_as(input: LogicalPlan, first: &[FieldRef]) -> Result<LogicalPlan> {
    let function = ScalarUDF::from(EventTimeAs { signature: Signature::any(2, Volatility::Immutable) });
    let columns = input.schema().iter().zip(first).map(|((qualifier, field), first)| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        let wanted = event_time::delay_us(first);
        if event_time::delay_us(field) == wanted {
            return column;
        }
        let delay = lit(ScalarValue::Utf8(wanted.map(|delay| delay.to_string())));
        function.call(vec![column, delay]).alias_qualified(qualifier.cloned(), field.name())
    });
    let columns = columns.collect::<Vec<_>>();
    LogicalPlanBuilder::from(input).project(columns)?.build()
}

/// `__event_time_as(value, delay)`: the value, marked as event time with a delay in microseconds, or with no mark for NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EventTimeAs {
    signature: Signature,
}

impl ScalarUDFImpl for EventTimeAs {
    fn name(&self) -> &str {
        "__event_time_as"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value, _] => Ok(value.clone()),
            _ => internal_err!("{} takes a value and a delay", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let ([value, _], [_, Some(ScalarValue::Utf8(delay))]) = (args.arg_fields, args.scalar_arguments) else {
            return internal_err!("{} takes a value and a delay", self.name());
        };
        let field: Field = event_time::unmark(value).with_name(self.name());
        let delay = delay.as_ref().and_then(|delay| delay.parse().ok());
        Ok(Arc::new(match delay {
            Some(delay) => event_time::mark(&field, delay),
            None => field,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => internal_err!("{} takes a value and a delay", self.name()),
        }
    }
}
