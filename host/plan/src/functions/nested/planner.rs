//! Syntax of nested values: `p.q.z`, `a[i]`, `m['k']`, `[1, 2]`, `map(…)`, `struct(…)` and `||` between arrays.
//!
//! Asked by the SQL planner, before DataFusion's own planners of the same syntax.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, TableReference};
use datafusion::functions::core::get_field;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, ScalarUDF, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans access to elements and fields.
pub(super) struct NestedPlanner {
    item: Arc<ScalarUDF>,
    field: Arc<ScalarUDF>,
    array: Arc<ScalarUDF>,
    map: Arc<ScalarUDF>,
    named_struct: Arc<ScalarUDF>,
    concat: Arc<ScalarUDF>,
}

impl std::fmt::Debug for NestedPlanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NestedPlanner")
    }
}

impl NestedPlanner {
    /// A planner that uses these functions; `None` if one of those it needs is not among them.
    pub(super) fn new(functions: &[Arc<ScalarUDF>]) -> Option<Self> {
        let find = |name: &str| functions.iter().find(|function| function.name() == name).map(Arc::clone);
        Some(Self {
            item: find("__item")?,
            field: find("__field")?,
            array: find("array")?,
            map: find("map")?,
            named_struct: find("named_struct")?,
            concat: find("__concat_arrays")?,
        })
    }

    /// `base.name`. An exact field of a struct is DataFusion's own access, which the optimizer knows.
    fn named(&self, base: Expr, base_type: &DataType, name: &str) -> Expr {
        let known = matches!(base_type, DataType::Struct(fields) if fields.iter().any(|field| field.name() == name));
        if known { get_field().call(vec![base, lit(name)]) } else { self.field.call(vec![base, lit(name)]) }
    }
}

/// The type below `name`, as far as it is a plain field.
fn type_below(base: &DataType, name: &str) -> DataType {
    match base {
        DataType::Struct(fields) => super::structs::position_of(fields, name)
            .map_or(DataType::Null, |position| fields[position].data_type().clone()),
        _ => DataType::Null,
    }
}

impl ExprPlanner for NestedPlanner {
    fn plan_field_access(
        &self,
        expr: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { expr, field_access } = expr;
        let base_type = expr.get_type(schema)?;
        Ok(match (field_access, &base_type) {
            (GetFieldAccess::NamedStructField { name }, DataType::Map(..)) => {
                PlannerResult::Planned(self.item.call(vec![expr, Expr::Literal(name, None)]))
            }
            (GetFieldAccess::NamedStructField { name: ScalarValue::Utf8(Some(name)) }, _) => {
                PlannerResult::Planned(self.named(expr, &base_type, &name))
            }
            (GetFieldAccess::ListIndex { key }, DataType::List(_) | DataType::Map(..) | DataType::Null) => {
                PlannerResult::Planned(self.item.call(vec![expr, *key]))
            }
            (field_access, _) => PlannerResult::Original(RawFieldAccessExpr { expr, field_access }),
        })
    }

    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        nested_names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let mut base_type = field.data_type().clone();
        let mut expr = Expr::Column(Column::from((qualifier, field)));
        for name in nested_names {
            expr = self.named(expr, &base_type, name);
            base_type = type_below(&base_type, name);
        }
        Ok(PlannerResult::Planned(expr))
    }

    fn plan_array_literal(&self, exprs: Vec<Expr>, _schema: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(self.array.call(exprs)))
    }

    fn plan_make_map(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(self.map.call(args)))
    }

    fn plan_struct_literal(&self, args: Vec<Expr>, is_named_struct: bool) -> Result<PlannerResult<Vec<Expr>>> {
        let args = if is_named_struct {
            args
        } else {
            args.into_iter()
                .enumerate()
                .flat_map(|(position, value)| [lit(field_name(&value, position)), value])
                .collect()
        };
        Ok(PlannerResult::Planned(self.named_struct.call(args)))
    }

    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_list = |side: &Expr| {
            Ok::<_, datafusion::error::DataFusionError>(matches!(side.get_type(schema)?, DataType::List(_)))
        };
        if expr.op == BinaryOperator::StringConcat && is_list(&expr.left)? && is_list(&expr.right)? {
            return Ok(PlannerResult::Planned(self.concat.call(vec![expr.left, expr.right])));
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// The name that a value has as a field of `struct(…)`.
fn field_name(value: &Expr, position: usize) -> String {
    match value {
        Expr::Column(column) => column.name.clone(),
        Expr::LambdaVariable(variable) => variable.name.clone(),
        Expr::Alias(alias) => alias.name.clone(),
        Expr::ScalarFunction(call) if matches!(call.name(), "get_field" | "__field") => match call.args.last() {
            Some(Expr::Literal(ScalarValue::Utf8(Some(name)), _)) => name.clone(),
            _ => format!("col{}", position + 1),
        },
        _ => format!("col{}", position + 1),
    }
}
