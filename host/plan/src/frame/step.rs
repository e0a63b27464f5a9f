//! How one operation becomes a plan over the plans of its inputs.

use super::{JoinKind, JoinOn, MapNode, Operation, aggregate, join, process, select};
use crate::front::Front;
use crate::input::StreamInput;
use crate::lower::{declared_stream, has_stream};
use crate::sql::names::Names;
use crate::sql::parse::parse_query;
use crate::watermark::WatermarkNode;
use crate::{PlanError, StaticTable, dedup::DedupNode, event_time, session, time_window};
use arrow::datatypes::SchemaRef;
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNode};
use datafusion::sql::sqlparser::ast::{OrderBy, OrderByKind};
use std::sync::Arc;

type Planned = Result<LogicalPlan, PlanError>;

/// The plan of `operation` over `inputs`, as it is written. `tables` have the rows of static tables.
pub(super) fn plan(
    operation: &Operation,
    mut inputs: Vec<LogicalPlan>,
    front: &mut Front,
    tables: &[StaticTable],
) -> Planned {
    match operation {
        Operation::Stream { name, schema } => stream(name, schema, front),
        Operation::Table { name, schema } => table(name, schema, tables),
        Operation::Sql { text, views } => sql(text, views, inputs, front),
        Operation::Process(call) => {
            let mut inputs = inputs.into_iter();
            let input = inputs.next().ok_or_else(|| inputs_missing(operation))?;
            process::process(call, input, inputs.next(), front)
        }
        Operation::Join { on, kind } => match (inputs.pop(), inputs.pop()) {
            (Some(right), Some(left)) => joined(on, *kind, left, right, front),
            _ => Err(inputs_missing(operation)),
        },
        Operation::Union { by_name } => match (inputs.pop(), inputs.pop()) {
            (Some(right), Some(left)) => select::union(left, right, *by_name, front),
            _ => Err(inputs_missing(operation)),
        },
        _ => match inputs.pop() {
            Some(input) => unary(operation, input, front),
            None => Err(inputs_missing(operation)),
        },
    }
}

fn inputs_missing(operation: &Operation) -> PlanError {
    PlanError::Sql { message: format!("{operation:?} lacks an input") }
}

fn unary(operation: &Operation, input: LogicalPlan, front: &mut Front) -> Planned {
    match operation {
        Operation::Select(columns) => select::select(columns, input, front),
        Operation::WithColumn(name, column) => select::with_column(name, column, input, front),
        Operation::Rename { from, to } => select::rename(from, to, input, front),
        Operation::Drop(names) => select::without(names, input, front),
        Operation::Filter(condition) => select::filter(condition, input, front),
        Operation::Aggregate { keys, values } => aggregate::aggregate(keys, values, input, front),
        Operation::Watermark { column, delay_us } => watermark(column, *delay_us, input),
        Operation::DropDuplicates { columns, within_watermark } => duplicates(columns, *within_watermark, input),
        Operation::Distinct => built(LogicalPlanBuilder::from(input).distinct()),
        Operation::OrderBy(columns) => order_by(columns, input, front),
        Operation::Limit(rows) => built(LogicalPlanBuilder::from(input).limit(0, Some(*rows))),
        Operation::Alias(name) => built(LogicalPlanBuilder::from(input).alias(session::quoted(name))),
        Operation::Map { schema, function } => map(schema, function, input),
        _ => Err(inputs_missing(operation)),
    }
}

fn built(builder: datafusion::error::Result<LogicalPlanBuilder>) -> Planned {
    builder.and_then(LogicalPlanBuilder::build).map_err(|error| PlanError::from_datafusion(&error))
}

fn extension(node: datafusion::error::Result<impl UserDefinedLogicalNode + 'static>) -> Planned {
    let node = node.map_err(|error| PlanError::from_datafusion(&error))?;
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

fn stream(name: &str, schema: &SchemaRef, front: &Front) -> Planned {
    let (name, schema) = (name.to_owned(), Arc::clone(schema));
    let stream = StreamInput { name, schema, event_time: None, drop_duplicates: None };
    session::stream_plan(&stream, front.purpose())
}

fn table(name: &str, schema: &SchemaRef, tables: &[StaticTable]) -> Planned {
    let rows = match tables.iter().find(|table| table.name == name) {
        Some(table) => table.provider(),
        None => MemTable::try_new(Arc::clone(schema), vec![vec![]]).map(|rows| Arc::new(rows) as _),
    };
    let rows = rows.map_err(|error| PlanError::from_datafusion(&error))?;
    built(LogicalPlanBuilder::scan(session::quoted(name), provider_as_source(rows), None))
}

/// The views are tables of the session while the statement is planned.
fn sql(text: &str, views: &[String], inputs: Vec<LogicalPlan>, front: &mut Front) -> Planned {
    let fail = |error| PlanError::from_datafusion(&error);
    let query = parse_query(text)?;
    let mut names = Names::default();
    for (name, input) in views.iter().zip(&inputs) {
        names.add(name);
        names.add_fields(input.schema().fields());
    }
    names.add("window");
    names.add("session_window");
    let mut registered = Ok(());
    for (name, input) in views.iter().zip(inputs) {
        let view = Arc::new(ViewTable::new(input, None));
        registered = registered.and(front.context().register_table(session::quoted(name), view).map(|_| ()));
    }
    let planned = match registered {
        Ok(()) => front.statement(query, names, Vec::new()),
        Err(error) => Err(fail(error)),
    };
    for name in views {
        front.context().deregister_table(session::quoted(name)).map_err(fail)?;
    }
    planned
}

fn joined(on: &JoinOn, kind: JoinKind, left: LogicalPlan, right: LogicalPlan, front: &mut Front) -> Planned {
    match on {
        JoinOn::Columns(names) => join::using(names, kind, left, right, front),
        JoinOn::Condition(condition) => join::on(Some(condition), kind, left, right, front),
        JoinOn::Nothing => join::on(None, kind, left, right, front),
    }
}

fn order_by(columns: &[super::Column], input: LogicalPlan, front: &mut Front) -> Planned {
    let keys = columns.iter().cloned().map(super::Column::into_order).collect::<Result<_, _>>()?;
    let mut query = select::everything(|_| {});
    query.order_by = Some(OrderBy { kind: OrderByKind::Expressions(keys), interpolate: None });
    let names = select::names_of(&[&input]);
    front.statement(query, names, vec![input])
}

/// The column of that name, whatever its case.
pub(super) fn find_column(schema: &DFSchema, name: &str) -> Result<Column, PlanError> {
    let mut found = None;
    for (qualifier, field) in schema.iter() {
        let is_exact = field.name() == name;
        if is_exact || (found.is_none() && field.name().eq_ignore_ascii_case(name)) {
            found = Some(Column::new(qualifier.cloned(), field.name().clone()));
        }
        if is_exact {
            break;
        }
    }
    found.ok_or_else(|| {
        let known = schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        PlanError::Sql { message: format!("there is no column `{name}`; there are {known}") }
    })
}

fn watermark(name: &str, delay_us: i64, input: LogicalPlan) -> Planned {
    if !has_stream(&input) {
        return Ok(input);
    }
    let column = find_column(input.schema(), name)?;
    let field = input.schema().field_from_column(&column).map_err(|error| PlanError::from_datafusion(&error))?;
    if field.data_type() != &time_window::timestamp_type() {
        let have = crate::ddl::format_data_type(field.data_type());
        return Err(PlanError::Sql { message: format!("the event time `{name}` must be a TIMESTAMP and is {have}") });
    }
    if delay_us < 0 {
        return Err(PlanError::Sql { message: "the delay of a watermark must not be negative".into() });
    }
    let mut has_one = false;
    let visited = input.apply(|node| {
        if let LogicalPlan::Extension(extension) = node {
            has_one |= extension.node.as_any().is::<WatermarkNode>();
        }
        Ok(if has_one { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.map_err(|error| PlanError::from_datafusion(&error))?;
    if has_one {
        return Err(PlanError::Unsupported {
            rule: "second-watermark",
            reason: format!("event time is declared already below the watermark on `{name}`"),
            hint: "declare one watermark per stream".into(),
        });
    }
    let node = declared_stream(&input).unwrap_or_else(|| column.name.clone());
    extension(WatermarkNode::new(node, column, delay_us, input))
}

fn duplicates(names: &[String], within_watermark: bool, input: LogicalPlan) -> Planned {
    let mut keys = names.iter().map(|name| find_column(input.schema(), name)).collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() {
        keys = input.schema().columns();
    }
    if !has_stream(&input) {
        if within_watermark {
            return Err(PlanError::Unsupported {
                rule: "dedup-within-static",
                reason: "a static table has no watermark to drop duplicates within".into(),
                hint: "call drop_duplicates".into(),
            });
        }
        let all = input.schema().columns().into_iter().map(datafusion::logical_expr::Expr::Column).collect();
        let keys = keys.into_iter().map(datafusion::logical_expr::Expr::Column).collect();
        return built(LogicalPlanBuilder::from(input).distinct_on(keys, all, None));
    }
    let within_us = match (within_watermark, input.schema().fields().iter().find_map(|f| event_time::delay_us(f))) {
        (false, _) => None,
        (true, Some(delay_us)) => Some(delay_us),
        (true, None) => {
            return Err(PlanError::Unsupported {
                rule: "dedup-within-without-watermark",
                reason: "duplicates cannot be dropped within a watermark: there is none".into(),
                hint: "call with_watermark before, or drop duplicates for ever".into(),
            });
        }
    };
    if input.schema().fields().iter().any(|field| event_time::is_marked(field) && field.data_type().is_nested()) {
        return Err(PlanError::Unsupported {
            rule: "dedup-window",
            reason: "duplicates cannot be dropped from rows whose event time is a window".into(),
            hint: "select window_time(window) in place of the window, or leave the window out".into(),
        });
    }
    extension(DedupNode::new(declared_stream(&input), keys, within_us, input))
}

fn map(schema: &SchemaRef, function: &millstream_operators::MapFunction, input: LogicalPlan) -> Planned {
    if !has_stream(&input) {
        return Err(PlanError::Unsupported {
            rule: "map-static",
            reason: "a function of the program takes rows of a stream, and this is a static table".into(),
            hint: "change the rows before the table is made from them".into(),
        });
    }
    if let Some(field) = schema.fields().iter().find(|field| !session::is_plain(field.data_type())) {
        let message = format!("a function cannot give the column `{}` of type {}", field.name(), field.data_type());
        return Err(PlanError::Sql { message });
    }
    extension(MapNode::new(Arc::clone(function), schema, input))
}
