//! Joins of two frames.

use super::step::find_column;
use super::{Column, JoinKind, select};
use crate::PlanError;
use crate::front::Front;
use crate::sql::relations::input_name;
use datafusion::common::{Column as Name, DFSchema, JoinType, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{JoinConstraint, JoinOperator};

type Planned = Result<LogicalPlan, PlanError>;

/// Rows that belong together by a condition. Without one, all pairs.
pub(super) fn on(
    condition: Option<&Column>,
    kind: JoinKind,
    left: LogicalPlan,
    right: LogicalPlan,
    front: &mut Front,
) -> Planned {
    let word = match (kind, condition) {
        (JoinKind::Inner | JoinKind::Cross, None) => "CROSS JOIN",
        (_, None) => return Err(PlanError::Sql { message: "this kind of join needs columns or a condition".into() }),
        (JoinKind::Inner | JoinKind::Cross, Some(_)) => "JOIN",
        (JoinKind::Left, _) => "LEFT JOIN",
        (JoinKind::Right, _) => "RIGHT JOIN",
        (JoinKind::Full, _) => "FULL JOIN",
        (JoinKind::LeftSemi, _) => "LEFT SEMI JOIN",
        (JoinKind::LeftAnti, _) => "LEFT ANTI JOIN",
    };
    let on = if condition.is_some() { "ON TRUE" } else { "" };
    let text = format!("SELECT * FROM {} {word} {} {on}", input_name(0), input_name(1));
    let condition = condition.cloned().map(Column::into_expr).transpose()?;
    let query = select::written(&text, |select| {
        for join in select.from.iter_mut().flat_map(|table| &mut table.joins) {
            if let Some(condition) = &condition {
                set_condition(&mut join.join_operator, condition.clone());
            }
        }
    });
    let names = select::names_of(&[&left, &right]);
    front.statement(query, names, vec![left, right]).map_err(|error| match error {
        PlanError::Sql { message } if message.contains("duplicate") || message.contains("mbiguous") => {
            let hint = "give the sides names with alias(\"a\") and alias(\"b\")";
            PlanError::Sql { message: format!("{message}; {hint}") }
        }
        other => other,
    })
}

fn set_condition(operator: &mut JoinOperator, condition: datafusion::sql::sqlparser::ast::Expr) {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::LeftAnti(constraint) => *constraint = JoinConstraint::On(condition),
        _ => {}
    }
}

/// Rows that are equal in columns of these names, which come out once and first.
pub(super) fn using(
    names: &[String],
    kind: JoinKind,
    left: LogicalPlan,
    right: LogicalPlan,
    front: &mut Front,
) -> Planned {
    let fail = |error| PlanError::from_datafusion(&error);
    let (left_keys, right_keys) = (keys(names, left.schema())?, keys(names, right.schema())?);
    if left_keys.is_empty() {
        return Err(PlanError::Sql { message: "a join needs at least one column".into() });
    }
    let left_columns = columns(&left, "__left");
    let right_columns = columns(&right, "__right");
    let joined = LogicalPlanBuilder::from(under_name(left, "__left").map_err(fail)?)
        .join(
            under_name(right, "__right").map_err(fail)?,
            join_type(kind),
            (inside(&left_keys, "__left"), inside(&right_keys, "__right")),
            None,
        )
        .map_err(fail)?;
    let mut result = Vec::new();
    for (a, b) in left_keys.iter().zip(&right_keys) {
        let (left, right) = (inner(&a.name, "__left"), inner(&b.name, "__right"));
        let value = match kind {
            JoinKind::Right => right,
            JoinKind::Full => {
                let state = front.context().state();
                let coalesce = state.scalar_functions().get("coalesce").cloned();
                let coalesce = coalesce.ok_or_else(|| PlanError::Sql { message: "there is no coalesce".into() })?;
                coalesce.call(vec![left, right])
            }
            _ => left,
        };
        result.push(value.alias_qualified(a.relation.clone(), a.name.clone()));
    }
    let rest = |columns: Vec<(Name, Expr)>, keys: &[Name]| {
        let kept = columns.into_iter().filter(|(name, _)| !keys.contains(name)).collect::<Vec<_>>();
        kept.into_iter().map(|(name, expr)| expr.alias_qualified(name.relation, name.name))
    };
    result.extend(rest(left_columns, &left_keys));
    if !matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti) {
        result.extend(rest(right_columns, &right_keys));
    }
    joined.project(result).and_then(LogicalPlanBuilder::build).map_err(fail)
}

fn keys(names: &[String], schema: &DFSchema) -> Result<Vec<Name>, PlanError> {
    names.iter().map(|name| find_column(schema, name)).collect()
}

/// The columns of a side under their own names, and as they are called inside the join.
fn columns(side: &LogicalPlan, table: &str) -> Vec<(Name, Expr)> {
    side.schema().columns().into_iter().map(|name| (name.clone(), inner(&name.name, table))).collect()
}

fn inner(name: &str, table: &str) -> Expr {
    Expr::Column(Name::new(Some(TableReference::bare(table)), name))
}

fn inside(keys: &[Name], table: &str) -> Vec<Name> {
    keys.iter().map(|key| Name::new(Some(TableReference::bare(table)), key.name.clone())).collect()
}

/// The side with its columns under a name of ours, so that the sides can be told apart. No alias: that would be a scope.
fn under_name(side: LogicalPlan, table: &str) -> datafusion::error::Result<LogicalPlan> {
    let columns = side.schema().columns();
    let renamed = columns.into_iter().map(|column| {
        let name = column.name.clone();
        Expr::Column(column).alias_qualified(Some(TableReference::bare(table)), name)
    });
    let renamed = renamed.collect::<Vec<_>>();
    LogicalPlanBuilder::from(side).project(renamed)?.build()
}

fn join_type(kind: JoinKind) -> JoinType {
    match kind {
        JoinKind::Inner | JoinKind::Cross => JoinType::Inner,
        JoinKind::Left => JoinType::Left,
        JoinKind::Right => JoinType::Right,
        JoinKind::Full => JoinType::Full,
        JoinKind::LeftSemi => JoinType::LeftSemi,
        JoinKind::LeftAnti => JoinType::LeftAnti,
    }
}
