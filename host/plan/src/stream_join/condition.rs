//! The condition of a join, taken apart.

use crate::functions::expr::behind_shield;
use datafusion::common::{DFSchema, JoinSide, NullEquality};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{BinaryExpr, Expr, Join, Operator};

/// The condition of a join, taken apart. Together the parts are the condition.
#[derive(Debug, Clone, Default)]
pub(crate) struct JoinCondition {
    /// What must be equal, left and right.
    pub(crate) keys: Vec<(Expr, Expr)>,
    /// Conjuncts that read left columns only.
    pub(crate) left_only: Vec<Expr>,
    /// Conjuncts that read right columns only.
    pub(crate) right_only: Vec<Expr>,
    /// The others.
    pub(crate) both: Vec<Expr>,
    /// Keys with nulls match by the condition itself (`<=>`).
    pub(crate) nulls_are_equal: bool,
}

impl JoinCondition {
    /// The condition of `join`, wherever the optimiser has put its parts.
    pub(crate) fn of(join: &Join) -> Self {
        let (left, right) = (join.left.schema(), join.right.schema());
        let mut condition = Self {
            keys: join.on.iter().map(|(l, r)| (l.clone(), r.clone())).collect(),
            nulls_are_equal: join.null_equality == NullEquality::NullEqualsNull,
            ..Self::default()
        };
        for conjunct in join.filter.clone().map_or_else(Vec::new, split_conjunction_owned) {
            if conjunct.is_volatile() {
                condition.both.push(conjunct);
                continue;
            }
            match sides_of(&conjunct, left, right) {
                Sides::Left => condition.left_only.push(conjunct),
                Sides::Right => condition.right_only.push(conjunct),
                Sides::Neither => {
                    condition.left_only.push(conjunct.clone());
                    condition.right_only.push(conjunct);
                }
                Sides::Both => match key_of(&conjunct, left, right) {
                    Some(key) if !condition.nulls_are_equal => condition.keys.push(key),
                    _ => condition.both.push(conjunct),
                },
            }
        }
        condition
    }
}

/// Which inputs an expression reads.
enum Sides {
    Neither,
    Left,
    Right,
    Both,
}

fn sides_of(expr: &Expr, left: &DFSchema, right: &DFSchema) -> Sides {
    let columns = expr.column_refs();
    let reads = |schema: &DFSchema| columns.iter().any(|column| schema.is_column_from_schema(column));
    match (reads(left), reads(right)) {
        (false, false) => Sides::Neither,
        (true, false) => Sides::Left,
        (false, true) => Sides::Right,
        (true, true) => Sides::Both,
    }
}

/// The two sides of an equality between the inputs. A shield is no obstacle: keys are computed for every row.
fn key_of(conjunct: &Expr, left: &DFSchema, right: &DFSchema) -> Option<(Expr, Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left: a, op: Operator::Eq, right: b }) = behind_shield(conjunct) else {
        return None;
    };
    match (sides_of(a, left, right), sides_of(b, left, right)) {
        (Sides::Left, Sides::Right) => Some((a.as_ref().clone(), b.as_ref().clone())),
        (Sides::Right, Sides::Left) => Some((b.as_ref().clone(), a.as_ref().clone())),
        _ => None,
    }
}

/// The schema of a side.
pub(super) fn schema_of(join: &Join, side: JoinSide) -> &DFSchema {
    match side {
        JoinSide::Right => join.right.schema(),
        _ => join.left.schema(),
    }
}
