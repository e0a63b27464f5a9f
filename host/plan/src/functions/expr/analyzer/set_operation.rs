//! Widening the columns of UNION's inputs to a common type.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Union};
use millstream_common::SqlSettings;

use super::super::cast::udf::cast_expr;
use super::super::common_type::widest_of;
use super::super::type_name::shown_type;

/// Casts every input's columns to the widest type of the column, by position.
pub(super) fn widen(union: Union, settings: &SqlSettings) -> Result<LogicalPlan> {
    let width = union.schema.fields().len();
    if union.inputs.iter().any(|input| input.schema().fields().len() != width) {
        // By name, or an error that the planner words better.
        return Ok(LogicalPlan::Union(union));
    }
    let mut types = Vec::with_capacity(width);
    for column in 0..width {
        let of_inputs: Vec<&DataType> =
            union.inputs.iter().map(|input| input.schema().field(column).data_type()).collect();
        match widest_of(of_inputs.iter().copied(), settings.ansi) {
            Some(common) => types.push(common),
            None => {
                let shown: Vec<String> = of_inputs.into_iter().map(shown_type).collect();
                return plan_err!(
                    "[INCOMPATIBLE_COLUMN_TYPE] the column `{}` of a set operation has types without a common one: {}",
                    union.schema.field(column).name(),
                    shown.join(", ")
                );
            }
        }
    }
    let inputs = union.inputs.into_iter().map(|input| input_as(input, &types, settings)).collect::<Result<Vec<_>>>()?;
    let fields = union
        .schema
        .iter()
        .enumerate()
        .map(|(column, (qualifier, field))| {
            let nullable = inputs.iter().any(|input| input.schema().field(column).is_nullable());
            let field =
                Field::new(field.name(), types[column].clone(), nullable).with_metadata(field.metadata().clone());
            (qualifier.cloned(), Arc::new(field))
        })
        .collect();
    let schema = DFSchema::new_with_metadata(fields, union.schema.metadata().clone())?;
    Ok(LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) }))
}

fn input_as(input: Arc<LogicalPlan>, types: &[DataType], settings: &SqlSettings) -> Result<Arc<LogicalPlan>> {
    let schema = Arc::clone(input.schema());
    if schema.fields().iter().zip(types).all(|(field, wanted)| field.data_type() == wanted) {
        return Ok(input);
    }
    let cast = |expr: Expr, column: usize| -> Result<Expr> {
        let (qualifier, field) = schema.qualified_field(column);
        if field.data_type() == &types[column] {
            return Ok(expr);
        }
        let cast = cast_expr(expr.unalias(), field.data_type(), &types[column], settings)?;
        Ok(cast.alias_qualified(qualifier.cloned(), field.name()))
    };
    let projection = match input.as_ref() {
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let exprs =
                expr.iter().cloned().enumerate().map(|(column, expr)| cast(expr, column)).collect::<Result<_>>()?;
            Projection::try_new(exprs, Arc::clone(input))?
        }
        _ => {
            let columns =
                schema.iter().map(|(qualifier, field)| Expr::Column(Column::new(qualifier.cloned(), field.name())));
            let exprs = columns.enumerate().map(|(column, expr)| cast(expr, column)).collect::<Result<_>>()?;
            Projection::try_new(exprs, input)?
        }
    };
    Ok(Arc::new(LogicalPlan::Projection(projection)))
}
