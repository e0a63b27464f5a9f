//! From the optimised logical plan to operators.
//!
//! One function per kind of node. What has no streaming form is refused by name; nothing is left out silently.

mod aggregate;
mod expressions;
mod processor;
mod static_side;
mod stream_join;

use crate::PlanError;
use crate::dedup::DedupNode;
use crate::frame::MapNode;
use crate::input::QueryInput;
use crate::plan::{SourceSlot, StreamingPlan};
use crate::processor::ProcessorNode;
use crate::session_window::SessionFence;
use crate::sql::unnamed::is_unnamed;
use crate::stream_table::StreamTable;
use crate::uid::{OUTERMOST, Uids};
use crate::unsupported;
use crate::watermark::WatermarkNode;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Distinct, FetchType, Limit, LogicalPlan, SkipType, TableScan, Union, Unnest};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::unnest::ListUnnest;
use millstream_common::{OperatorUid, OutputMode};
use millstream_operators as ops;
use millstream_operators::{Node, Operator, OperatorError, Pipeline};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Lowers one query.
pub(crate) struct Lowering<'a> {
    session: &'a SessionState,
    input: &'a QueryInput,
    slots: Vec<SourceSlot>,
    /// What was declared, a stream's name, column and delay, and the name of the watermark.
    watermarks: Vec<((String, String, i64), String)>,
    uids: Uids<'a>,
}

impl<'a> Lowering<'a> {
    /// A lowering with nothing done yet.
    pub(crate) fn new(session: &'a SessionState, input: &'a QueryInput) -> Self {
        let uids = Uids::new(&input.settings.uids);
        Self { session, input, slots: Vec::new(), watermarks: Vec::new(), uids }
    }

    /// The streaming plan of `logical`; `text` shows it in `explain`.
    pub(crate) fn lower(mut self, logical: &LogicalPlan, text: String) -> Result<StreamingPlan, PlanError> {
        let schema: SchemaRef = Arc::new(logical.schema().as_arrow().clone());
        let root = self.node(logical, OUTERMOST)?;
        self.uids.check_renames()?;
        Ok(StreamingPlan {
            pipeline: Pipeline::new(root),
            slots: self.slots,
            schema,
            watermark_nodes: self.watermarks.into_iter().map(|(_, name)| name).collect(),
            logical: text,
            functions: BTreeSet::new(),
        })
    }

    fn node(&mut self, plan: &LogicalPlan, scope: &str) -> Result<Node, PlanError> {
        match plan {
            LogicalPlan::SubqueryAlias(alias) => {
                let name = alias.alias.table();
                let is_scope = !is_bare_stream(&alias.input) && !is_unnamed(name);
                self.node(&alias.input, if is_scope { name } else { scope })
            }
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::Filter(filter) => {
                let child = self.node(&filter.input, scope)?;
                let condition = self.expression(&filter.predicate, filter.input.schema())?;
                unary(ops::Filter::try_new(condition, arrow_schema(&filter.input)), child)
            }
            LogicalPlan::Projection(projection) => {
                let child = self.node(&projection.input, scope)?;
                let columns = self.columns(&projection.expr, projection.input.schema())?;
                let names = projection.schema.fields().iter().map(|field| field.name().clone());
                let project = ops::Project::try_new(columns.into_iter().zip(names), &arrow_schema(&projection.input))
                    .and_then(|project| project.with_schema(arrow_schema(plan)));
                unary(project, child)
            }
            LogicalPlan::Union(union) => self.union(union, plan, scope),
            LogicalPlan::Unnest(unnest) => self.unnest(unnest, scope),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate, scope),
            LogicalPlan::Distinct(Distinct::All(_)) => {
                Err(not_lowered("DISTINCT should have become an aggregation by now"))
            }
            LogicalPlan::Sort(sort) => {
                let child = self.node(&sort.input, scope)?;
                let by = self.sort_keys(&sort.expr, sort.input.schema())?;
                let sort = ops::Sort::new(by, sort.fetch, arrow_schema(&sort.input));
                Ok(Node::Operator { operator: Box::new(sort), inputs: vec![child] })
            }
            LogicalPlan::Limit(limit) => self.limit(limit, scope),
            // Where rows are worked on says nothing about the result.
            LogicalPlan::Repartition(repartition) => self.node(&repartition.input, scope),
            LogicalPlan::Extension(extension) => {
                let node = extension.node.as_any();
                if let Some(node) = node.downcast_ref::<WatermarkNode>() {
                    return self.watermark(node, scope);
                }
                if let Some(node) = node.downcast_ref::<MapNode>() {
                    let child = self.node(node.input(), scope)?;
                    let map = ops::MapBatches::new(Arc::clone(node.function()), arrow_schema(plan));
                    return Ok(Node::Operator { operator: Box::new(map), inputs: vec![child] });
                }
                if let Some(node) = node.downcast_ref::<ProcessorNode>() {
                    return self.processor(node, scope);
                }
                if let Some(fence) = node.downcast_ref::<SessionFence>() {
                    return self.node(fence.input(), scope);
                }
                match node.downcast_ref::<DedupNode>() {
                    Some(node) => self.deduplicate(node, scope),
                    None => Err(not_lowered(extension.node.name())),
                }
            }
            LogicalPlan::Join(join) if has_stream(&join.left) && has_stream(&join.right) => {
                self.stream_join(join, scope)
            }
            LogicalPlan::Join(join) => self.static_join(join, scope),
            other => Err(not_lowered(&other.display().to_string())),
        }
    }

    fn scan(&mut self, scan: &TableScan) -> Result<Node, PlanError> {
        let provider = source_as_provider(&scan.source).map_err(|error| PlanError::from_datafusion(&error))?;
        let Some(stream) = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<StreamTable>() else {
            return Err(PlanError::Unsupported {
                rule: "static-without-stream",
                reason: format!("`{}` is a static table that is joined with no stream", scan.table_name),
                hint: "join the table with a stream, or declare it as a [[stream]]".into(),
            });
        };
        let all = scan.source.schema().fields().len();
        let projection = scan.projection.clone().unwrap_or_else(|| (0..all).collect());
        self.slots.push(SourceSlot { stream: stream.name.clone(), projection });
        Ok(Node::Slot(self.slots.len() - 1))
    }

    fn watermark(&mut self, node: &WatermarkNode, scope: &str) -> Result<Node, PlanError> {
        let child = self.node(node.input(), scope)?;
        let column =
            node.input().schema().index_of_column(&node.column).map_err(|error| PlanError::from_datafusion(&error))?;
        let name = self.watermark_name(node);
        let watch = ops::WatchEventTime::try_new(name, arrow_schema(node.input()), column, node.delay_us);
        unary(watch.map(|watch| watch.bounded(self.input.settings.beyond.max_ahead_us)), child)
    }

    /// The name under which a watermark counts. A stream that is read several times has one, which goes by the greatest time that
    /// any of them has seen: what one of them filters out does not hold it back. Source: Spark's `EventTimeWatermark.nodeId`,
    /// which all uses of a view share.
    fn watermark_name(&mut self, node: &WatermarkNode) -> String {
        let declared = (node.node.clone(), node.column.name.clone(), node.delay_us);
        let of_stream = self.watermarks.iter().filter(|(other, _)| other.0 == declared.0).count();
        if let Some((_, name)) = self.watermarks.iter().find(|(other, _)| *other == declared) {
            return name.clone();
        }
        let name = if of_stream == 0 { node.node.clone() } else { format!("{}#{}", node.node, of_stream + 1) };
        self.watermarks.push((declared, name.clone()));
        name
    }

    fn deduplicate(&mut self, node: &DedupNode, scope: &str) -> Result<Node, PlanError> {
        let uid = self.uids.assign_numbered(node.scope.as_deref().unwrap_or(scope), "dedup")?;
        let child = self.node(node.input(), scope)?;
        let keys = node.keys.iter().map(|key| node.input().schema().index_of_column(key));
        let spec = ops::DedupSpec {
            uid,
            schema: arrow_schema(node.input()),
            keys: keys.collect::<Result<_, _>>().map_err(|error| PlanError::from_datafusion(&error))?,
            event_time: node.event_time(),
            within_us: node.within_us,
            partitions: self.input.settings.partitions,
        };
        let time = spec.event_time.map(|index| physical_column(&spec.schema, index));
        let child = self.late_rows(&spec.uid, time, &spec.schema, child)?;
        unary(ops::Deduplicate::try_new(spec), child)
    }

    /// The input of a stateful operator without the rows that are late for it, if the query wants to see those. `time`
    /// is what the operator judges its input by, if it does.
    fn late_rows(
        &self,
        uid: &OperatorUid,
        time: Option<PhysicalExprRef>,
        schema: &SchemaRef,
        child: Node,
    ) -> Result<Node, PlanError> {
        let Some((policy, time)) = self.input.settings.beyond.late_rows.zip(time) else { return Ok(child) };
        unary(ops::TakeLate::try_new(uid.clone(), policy, time, Arc::clone(schema)), child)
    }

    fn union(&mut self, union: &Union, plan: &LogicalPlan, scope: &str) -> Result<Node, PlanError> {
        let mut inputs = Vec::new();
        let mut schemas = Vec::new();
        for input in &union.inputs {
            inputs.push(self.node(input, scope)?);
            schemas.push(arrow_schema(input));
        }
        let operator = ops::Union::try_new(arrow_schema(plan), &schemas).map_err(from_operator)?;
        Ok(Node::Operator { operator: Box::new(operator), inputs })
    }

    fn unnest(&mut self, unnest: &Unnest, scope: &str) -> Result<Node, PlanError> {
        let child = self.node(&unnest.input, scope)?;
        let lists = unnest
            .list_type_columns
            .iter()
            .map(|(index, list)| ListUnnest { index_in_input_schema: *index, depth: list.depth })
            .collect();
        let structs = unnest.struct_type_columns.clone();
        let schema = Arc::new(unnest.schema.as_arrow().clone());
        unary(ops::Unnest::try_new(lists, structs, &arrow_schema(&unnest.input), schema, &unnest.options), child)
    }

    fn limit(&mut self, limit: &Limit, scope: &str) -> Result<Node, PlanError> {
        let fail = |error| PlanError::from_datafusion(&error);
        let FetchType::Literal(Some(fetch)) = limit.get_fetch_type().map_err(fail)? else {
            return Err(not_lowered("LIMIT that is no literal number"));
        };
        if !matches!(limit.get_skip_type().map_err(fail)?, SkipType::Literal(0)) {
            return Err(PlanError::Unsupported {
                rule: "offset",
                reason: "OFFSET cannot be used on a stream: which rows it would skip changes with every batch".into(),
                hint: "leave OFFSET out, or number the rows in the sink".into(),
            });
        }
        let child = self.node(&limit.input, scope)?;
        let schema = arrow_schema(&limit.input);
        // The result of an aggregation is whole in every batch; the rows of a stream are not, whatever the mode.
        if self.input.mode == OutputMode::Complete && unsupported::has_aggregation(&limit.input) {
            let operator = ops::BatchLimit::new(0, Some(fetch), schema);
            return Ok(Node::Operator { operator: Box::new(operator), inputs: vec![child] });
        }
        let uid = self.uids.assign(scope, "limit")?;
        let operator = ops::GlobalLimit::new(uid, fetch as u64, schema);
        Ok(Node::Operator { operator: Box::new(operator), inputs: vec![child] })
    }
}

/// Whether rows of a stream are anywhere below.
pub(crate) fn has_stream(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        found |= is_stream(node);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_ok() && found
}

/// Whether this is a stream as it was declared, and no query over it: a name that it has is not the scope of uids.
fn is_bare_stream(plan: &LogicalPlan) -> bool {
    declared_stream(plan).is_some()
}

/// The name of the stream that this is, as it was declared: with its watermark, without its duplicates.
pub(crate) fn declared_stream(plan: &LogicalPlan) -> Option<String> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok()?;
            (provider.as_ref() as &dyn std::any::Any).downcast_ref::<StreamTable>().map(|stream| stream.name.clone())
        }
        LogicalPlan::SubqueryAlias(alias) => declared_stream(&alias.input),
        LogicalPlan::Extension(extension) => {
            let node = extension.node.as_any();
            match (node.downcast_ref::<WatermarkNode>(), node.downcast_ref::<DedupNode>()) {
                (Some(node), _) => declared_stream(node.input()),
                (_, Some(node)) => declared_stream(node.input()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether this node is the scan of a stream, with or without its watermark.
fn is_stream(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => source_as_provider(&scan.source)
            .is_ok_and(|provider| (provider.as_ref() as &dyn std::any::Any).is::<StreamTable>()),
        LogicalPlan::Extension(extension) => {
            let node = extension.node.as_any();
            node.is::<WatermarkNode>() || node.is::<DedupNode>()
        }
        _ => false,
    }
}

fn physical_column(schema: &SchemaRef, index: usize) -> PhysicalExprRef {
    Arc::new(Column::new(schema.field(index).name(), index))
}

fn unary<O: Operator + 'static>(operator: Result<O, OperatorError>, child: Node) -> Result<Node, PlanError> {
    Ok(Node::Operator { operator: Box::new(operator.map_err(from_operator)?), inputs: vec![child] })
}

fn arrow_schema(plan: &LogicalPlan) -> SchemaRef {
    Arc::new(plan.schema().as_arrow().clone())
}

fn from_operator(error: OperatorError) -> PlanError {
    PlanError::Sql { message: millstream_common::describe_chain(&error) }
}

fn not_lowered(what: &str) -> PlanError {
    PlanError::Unsupported {
        rule: "not-streaming",
        reason: format!("this part of the query has no streaming form: {what}"),
        hint: "rewrite that part of the query".into(),
    }
}
