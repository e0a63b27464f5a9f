//! GROUP BY as a stateful operator.

use super::{Lowering, arrow_schema, from_operator, unary};
use crate::plugins::plugins_of;
use crate::{PlanError, event_time};
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, GroupingSet};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregateBuilder};
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_plan::aggregates::PhysicalGroupBy;
use datafusion::scalar::ScalarValue;
use millstream_common::OutputMode;
use millstream_operators::{self as ops, AggregateSpec, EventTimeKey, EventTimeKind, Node};
use std::sync::Arc;

impl Lowering<'_> {
    /// The aggregate of that scope.
    pub(super) fn aggregate(&mut self, aggregate: &Aggregate, scope: &str) -> Result<Node, PlanError> {
        let session = session_key(&aggregate.group_expr, aggregate.input.schema());
        let uid = self.uids.assign(scope, if session.is_some() { "session" } else { "aggregate" })?;
        // An aggregation below this one in the same scope is told from it by standing at its input.
        let child = self.node(&aggregate.input, &format!("{scope}-input"))?;
        let schema = aggregate.input.schema();
        let (functions, filters) = self.functions(&aggregate.aggr_expr, schema)?;
        let spec = AggregateSpec {
            uid,
            group_by: self.group_by(&aggregate.group_expr, schema)?,
            functions,
            filters,
            plugins: plugins_of(&aggregate.aggr_expr),
            input: arrow_schema(&aggregate.input),
            output: Arc::new(aggregate.schema.as_arrow().clone()),
            mode: self.input.mode,
            event_time: event_time_key(&aggregate.group_expr, schema),
            partitions: self.input.settings.partitions,
        };
        if let Some(session) = session {
            if spec.group_by.expr().len() == 1 {
                return Err(PlanError::Unsupported {
                    rule: "session-without-key",
                    reason: "a session of a stream needs a grouping key that is no constant".into(),
                    hint: "group by what the sessions belong to as well, for example a user".into(),
                });
            }
            // Of several keys with event time the session is the one that counts.
            let field = aggregate.group_expr[session].to_field(schema);
            let (_, field) = field.map_err(|error| PlanError::from_datafusion(&error))?;
            let key = EventTimeKey { index: session, kind: EventTimeKind::Window };
            let event_time = event_time::is_marked(&field).then_some(key);
            let spec = AggregateSpec { event_time, ..spec };
            let child = self.late_rows(&spec.uid, time_of(&spec), &spec.input, child)?;
            return unary(ops::SessionWindows::try_new(spec, session), child);
        }
        // In mode complete nothing is late.
        let time = time_of(&spec).filter(|_| spec.mode != OutputMode::Complete);
        let child = self.late_rows(&spec.uid, time, &spec.input, child)?;
        let operator = ops::Aggregate::try_new(spec).map_err(from_operator)?;
        Ok(Node::Operator { operator: Box::new(operator), inputs: vec![child] })
    }

    #[allow(clippy::type_complexity, reason = "two columns of one table, taken apart at once by the only caller")]
    fn functions(
        &self,
        exprs: &[Expr],
        schema: &DFSchema,
    ) -> Result<(Vec<Arc<AggregateFunctionExpr>>, Vec<Option<PhysicalExprRef>>), PlanError> {
        let context = PhysicalPlanningContext::default();
        let (mut functions, mut filters) = (Vec::new(), Vec::new());
        for expr in exprs {
            let name = expr.schema_name().to_string();
            let lowered =
                LoweredAggregateBuilder::new(expr, schema, schema.as_arrow(), self.session.execution_props(), &context)
                    .with_name(name)
                    .with_human_display(expr.human_display().to_string())
                    .build()
                    .map_err(|error| PlanError::from_datafusion(&error))?;
            // Functions with WITHIN GROUP keep their input and sort it at the end.
            if !lowered.order_bys.is_empty() && !lowered.aggregate.fun().supports_within_group_clause() {
                return Err(PlanError::Unsupported {
                    rule: "ordered-aggregate",
                    reason: format!(
                        "`{expr}` sorts its input, and the rows of a stream come in the order of their batches"
                    ),
                    hint: "leave ORDER BY out and sort the collected list: sort_array(collect_list(x))".into(),
                });
            }
            functions.push(lowered.aggregate);
            filters.push(lowered.filter);
        }
        Ok((functions, filters))
    }

    fn group_by(&self, keys: &[Expr], schema: &DFSchema) -> Result<PhysicalGroupBy, PlanError> {
        let [Expr::GroupingSet(sets)] = keys else {
            return Ok(PhysicalGroupBy::new_single(self.named(keys, schema)?));
        };
        let columns: Vec<Expr> = sets.distinct_expr().into_iter().cloned().collect();
        let mut nulls: Vec<(PhysicalExprRef, String)> = Vec::new();
        for column in &columns {
            let data_type = column.get_type(schema).map_err(|error| PlanError::from_datafusion(&error))?;
            let null = ScalarValue::try_from(&data_type).map_err(|error| PlanError::from_datafusion(&error))?;
            nulls.push((lit(null), column.schema_name().to_string()));
        }
        Ok(PhysicalGroupBy::new(self.named(&columns, schema)?, nulls, masks(sets, &columns), true))
    }

    fn named(&self, exprs: &[Expr], schema: &DFSchema) -> Result<Vec<(PhysicalExprRef, String)>, PlanError> {
        let physical = self.columns(exprs, schema)?;
        Ok(physical.into_iter().zip(exprs.iter().map(|expr| expr.schema_name().to_string())).collect())
    }
}

/// What an aggregation judges its input by.
fn time_of(spec: &AggregateSpec) -> Option<PhysicalExprRef> {
    let key = spec.event_time?;
    // In a set that leaves the key out a row is never late, so rows cannot be judged one by one.
    (!spec.group_by.has_grouping_set()).then(|| Arc::clone(&spec.group_by.expr()[key.index].0))
}

/// Per grouping set, which columns are null in it.
fn masks(sets: &GroupingSet, columns: &[Expr]) -> Vec<Vec<bool>> {
    let null_in = |kept: &[Expr]| columns.iter().map(|column| !kept.contains(column)).collect::<Vec<bool>>();
    match sets {
        GroupingSet::Rollup(exprs) => (0..=exprs.len()).map(|length| null_in(&exprs[..length])).collect(),
        GroupingSet::Cube(exprs) => (0..1_usize << exprs.len())
            .map(|bits| {
                let kept: Vec<Expr> =
                    exprs.iter().enumerate().filter(|(i, _)| bits & (1 << i) == 0).map(|(_, e)| e.clone()).collect();
                null_in(&kept)
            })
            .collect(),
        GroupingSet::GroupingSets(sets) => sets.iter().map(|kept| null_in(kept)).collect(),
    }
}

/// The key that is a session, if one is.
fn session_key(keys: &[Expr], schema: &DFSchema) -> Option<usize> {
    keys.iter().position(|key| key.to_field(schema).is_ok_and(|(_, field)| event_time::is_session(&field)))
}

/// The key that carries event time, if one does.
fn event_time_key(keys: &[Expr], schema: &DFSchema) -> Option<EventTimeKey> {
    let columns: Vec<Expr> = match keys {
        [Expr::GroupingSet(sets)] => sets.distinct_expr().into_iter().cloned().collect(),
        keys => keys.to_vec(),
    };
    columns.iter().enumerate().find_map(|(index, key)| {
        let (_, field) = key.to_field(schema).ok()?;
        let kind = match field.data_type() {
            DataType::Struct(_) => EventTimeKind::Window,
            _ => EventTimeKind::Timestamp,
        };
        event_time::is_marked(&field).then_some(EventTimeKey { index, kind })
    })
}
