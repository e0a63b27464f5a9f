//! Joins of a stream with a static table: DataFusion's join, fed through a slot.

use super::{Lowering, arrow_schema, has_stream, unary};
use crate::PlanError;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Join, LogicalPlan, LogicalPlanBuilder};
use millstream_operators as ops;
use millstream_operators::Node;
use std::sync::Arc;

/// The name under which the stream's side enters DataFusion's plan.
const SLOT: &str = "__stream";

impl Lowering<'_> {
    /// A join in which one side has no stream: planned once, run again per batch.
    pub(super) fn static_join(&mut self, join: &Join, scope: &str) -> Result<Node, PlanError> {
        let fail = |error| PlanError::from_datafusion(&error);
        let stream_is_left = has_stream(&join.left);
        let stream = if stream_is_left { &join.left } else { &join.right };
        let child = self.node(stream, scope)?;
        let slot = Arc::new(ops::SegmentSlot::new(numbered(&arrow_schema(stream))));
        let scan = LogicalPlanBuilder::scan(SLOT, provider_as_source(Arc::clone(&slot) as _), None)
            .and_then(LogicalPlanBuilder::build)
            .map_err(fail)?;
        // The scan's columns take the place of the stream's, under the stream's names.
        let renamed = scan
            .schema()
            .columns()
            .into_iter()
            .zip(stream.schema().iter())
            .map(|(column, (qualifier, field))| {
                datafusion::logical_expr::Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
            })
            .collect::<Vec<_>>();
        let stand_in =
            LogicalPlanBuilder::from(scan).project(renamed).and_then(LogicalPlanBuilder::build).map_err(fail)?;
        let inputs = if stream_is_left {
            vec![stand_in, join.right.as_ref().clone()]
        } else {
            vec![join.left.as_ref().clone(), stand_in]
        };
        let plan = LogicalPlan::Join(join.clone());
        let plan = plan.with_new_exprs(plan.expressions(), inputs).map_err(fail)?;
        let schema = arrow_schema(&plan);
        let physical =
            futures::executor::block_on(self.session.query_planner().create_physical_plan(&plan, self.session))
                .map_err(fail)?;
        let describe = format!("StaticJoin: {}", LogicalPlan::Join(join.clone()).display());
        unary(ops::Segment::try_new(describe, slot, physical, schema, self.session.task_ctx()), child)
    }
}

/// The columns under names of their own: what was joined before may have brought some of the same name.
fn numbered(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().enumerate();
    let fields = fields.map(|(at, field)| field.as_ref().clone().with_name(format!("c{at}"))).collect::<Vec<_>>();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
