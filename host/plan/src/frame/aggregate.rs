//! GROUP BY over a frame: the keys come out first, then what is computed.

use super::{Column, select, window_column};
use crate::PlanError;
use crate::front::Front;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{GroupByExpr, SelectItem};

/// One row per key; one row in all when there is no key.
pub(super) fn aggregate(
    keys: &[Column],
    values: &[Column],
    input: LogicalPlan,
    front: &mut Front,
) -> Result<LogicalPlan, PlanError> {
    let mut items = Vec::new();
    let mut group_by = Vec::new();
    for key in keys {
        let item = key.clone().into_item()?;
        match &item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => group_by.push(expr.clone()),
            other => return Err(PlanError::Sql { message: format!("rows cannot be grouped by `{other}`") }),
        }
        items.push(item);
    }
    for value in values {
        items.push(value.clone().into_item()?);
    }
    if values.is_empty() {
        return Err(PlanError::Sql { message: "an aggregation computes at least one column".into() });
    }
    let mut query = select::everything(|select| {
        select.projection = items;
        select.group_by = GroupByExpr::Expressions(group_by, Vec::new());
    });
    let input = window_column::step_aside(&mut query, input)?;
    let names = select::names_of(&[&input]);
    front.statement(query, names, vec![input])
}
