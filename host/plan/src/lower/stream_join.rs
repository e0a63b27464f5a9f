//! Joins of two streams.

use super::{Lowering, arrow_schema, from_operator, not_lowered};
use crate::PlanError;
use crate::stream_join::{EventTimes, JoinCondition, event_time_of};
use datafusion::common::JoinType;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use datafusion::physical_expr::PhysicalExprRef;
use millstream_operators as ops;
use millstream_operators::{JoinKind, JoinSide, JoinSpec, Node, TimeBound};
use std::sync::Arc;

impl Lowering<'_> {
    /// A join in which both sides have streams. The left input is in the scope `<scope>-input`, the right one in
    /// `<scope>-right`, unless they have names of their own.
    pub(super) fn stream_join(&mut self, join: &Join, scope: &str) -> Result<Node, PlanError> {
        let kind = match join.join_type {
            JoinType::Inner => JoinKind::Inner,
            JoinType::Left => JoinKind::LeftOuter,
            JoinType::Right => JoinKind::RightOuter,
            JoinType::Full => JoinKind::FullOuter,
            JoinType::LeftSemi => JoinKind::LeftSemi,
            other => return Err(not_lowered(&format!("a {other} join of two streams"))),
        };
        let uid = self.uids.assign(scope, "join")?;
        let left = self.node(&join.left, &format!("{scope}-input"))?;
        let right = self.node(&join.right, &format!("{scope}-right"))?;
        let condition = JoinCondition::of(join);
        let times = EventTimes::of(join, &condition);
        let (left_keys, right_keys): (Vec<Expr>, Vec<Expr>) = condition.keys.iter().cloned().unzip();
        let joined =
            join.left.schema().join(join.right.schema()).map_err(|error| PlanError::from_datafusion(&error))?;
        let both = conjunction(condition.both).map(|both| self.expression(&both, &joined)).transpose()?;
        let spec = JoinSpec {
            uid,
            kind,
            left: self.join_side(&join.left, &left_keys, condition.left_only, times.left)?,
            right: self.join_side(&join.right, &right_keys, condition.right_only, times.right)?,
            condition: both,
            // Spark compares the bytes of keys, and takes rows with a NULL key out of every join but this one.
            nulls_match: condition.nulls_are_equal || kind == JoinKind::FullOuter,
            event_time_key: times.key,
            output: Arc::new(join.schema.as_arrow().clone()),
            partitions: self.input.settings.partitions,
        };
        let operator = ops::Join::try_new(spec).map_err(from_operator)?;
        Ok(Node::Operator { operator: Box::new(operator), inputs: vec![left, right] })
    }

    fn join_side(
        &self,
        input: &LogicalPlan,
        keys: &[Expr],
        filter: Vec<Expr>,
        bounds: Vec<TimeBound>,
    ) -> Result<JoinSide, PlanError> {
        let schema = input.schema();
        let keys: Vec<PhysicalExprRef> = self.columns(keys, schema)?;
        let filter = conjunction(filter).map(|filter| self.expression(&filter, schema)).transpose()?;
        Ok(JoinSide { schema: arrow_schema(input), keys, filter, event_time: event_time_of(schema), bounds })
    }
}
