//! DataFusion's session, set up for Spark's SQL over streams.

use crate::batch_query::{BatchPlanner, BoundedTable};
use crate::dedup::DedupNode;
use crate::functions;
use crate::input::{DropDuplicates, Query, QueryInput};
use crate::plan::Purpose;
use crate::plugins::{self, IsolatePluginFaults};
use crate::processor::Processors;
use crate::sql::casts;
use crate::sql::generator::{GeneratorPlanner, ListHelpers};
use crate::sql::processor_call::ProcessorPlanner;
use crate::sql::relations::{InputPlanner, Relations};
use crate::stream_table::StreamTable;
use crate::watermark::WatermarkNode;
use crate::{PlanError, time_window};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::Column;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, LogicalPlanBuilder, ScalarUDF};
use datafusion::optimizer::{Analyzer, Optimizer};
use datafusion::prelude::{SessionConfig, SessionContext};
use millstream_operators::LateRowsPolicy;
use millstream_wasm::FunctionKind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Optimizer rules that are off: `extract_leaf_expressions` and `push_down_leaf_projections` copy a call under each
/// field that is taken of its result, so a guarded call of a plugin would be made twice per row, and its faults counted
/// twice.
const RULES_OFF: [&str; 2] = ["extract_leaf_expressions", "push_down_leaf_projections"];

/// Optimizer rules that would change what a stream means.
///
/// - `propagate_empty_relation` removes streams under `WHERE false`: the query would lose its source and its batches.
/// - `push_down_limit` splits one LIMIT into several, each of which would count on its own over the query's life.
/// - `single_distinct_aggregation_to_group_by` makes two stateful aggregations of one.
/// - `eliminate_limit`, like the first, for `LIMIT 0`.
/// - `eliminate_join` turns an inner join below DISTINCT into a semi join of either side, and takes an outer join out of
///   the plan: other state, and other batches in which rows come out.
const STREAM_RULES_OFF: [&str; 5] = [
    "propagate_empty_relation",
    "push_down_limit",
    "single_distinct_aggregation_to_group_by",
    "eliminate_limit",
    "eliminate_join",
];

/// The names of the plugins' table functions, in lower case.
pub(crate) fn table_function_names(input: &QueryInput) -> BTreeSet<String> {
    plugin_functions(input, FunctionKind::Table).map(|(_, function)| function.name.to_ascii_lowercase()).collect()
}

fn plugin_functions(
    input: &QueryInput,
    kind: FunctionKind,
) -> impl Iterator<Item = (&Arc<millstream_wasm::PluginSlot>, millstream_wasm::FunctionSignature)> {
    input.plugins.iter().flat_map(move |slot| {
        let component = slot.component();
        let functions: Vec<_> = component.functions().iter().filter(|f| f.kind == kind).cloned().collect();
        functions.into_iter().map(move |function| (slot, function))
    })
}

/// A session that knows the query's streams, tables and functions.
///
/// # Errors
/// When two functions have one name, or a stream's declaration does not fit.
pub(crate) fn build(
    input: &QueryInput,
    purpose: &Purpose,
    relations: (&Relations, &Processors),
) -> std::result::Result<SessionContext, PlanError> {
    let state = build_state(input, purpose, relations)?;
    let context = SessionContext::new_with_state(state);
    if let Query::Frame(_) = input.query {
        // A frame brings its relations.
        return Ok(context);
    }
    for stream in &input.streams {
        let plan = stream_plan(stream, purpose)?;
        context
            .register_table(quoted(&stream.name), Arc::new(ViewTable::new(plan, None)))
            .map_err(|error| PlanError::from_datafusion(&error))?;
    }
    for table in &input.tables {
        table
            .provider()
            .and_then(|rows| context.register_table(quoted(&table.name), rows))
            .map_err(|error| PlanError::from_datafusion(&error))?;
    }
    Ok(context)
}

pub(crate) fn quoted(name: &str) -> datafusion::common::TableReference {
    datafusion::common::TableReference::bare(name.to_owned())
}

fn build_state(
    input: &QueryInput,
    purpose: &Purpose,
    (relations, processors): (&Relations, &Processors),
) -> std::result::Result<SessionState, PlanError> {
    let settings = &input.settings.sql;
    let mut config = SessionConfig::new().with_target_partitions(1).with_information_schema(false);
    let options = config.options_mut();
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.default_null_ordering = "nulls_min".into();
    options.execution.time_zone = Some("UTC".into());
    options.sql_parser.parse_float_as_decimal = true;
    // Spark keeps the order of a subquery, and refuses it where a stream has none.
    options.sql_parser.enable_subquery_sort_elimination = false;

    plugin_names(input)?;
    let table_functions: BTreeMap<String, Arc<ScalarUDF>> = plugin_functions(input, FunctionKind::Table)
        .map(|(slot, function)| {
            (function.name.to_ascii_lowercase(), Arc::new(plugins::table_function(slot, &function)))
        })
        .collect();
    let parts = functions::all(settings);
    let planner = GeneratorPlanner::new(relations.clone(), list_helpers(&parts.scalar)?, table_functions);
    let mut scalar = parts.scalar;
    scalar.push(Arc::new(time_window::window_time_function()));
    scalar.push(Arc::new(casts::typed_function()));
    for (slot, function) in plugin_functions(input, FunctionKind::Scalar) {
        scalar.push(Arc::new(plugins::scalar_function(slot, &function)));
    }
    let rules_off: &[&str] = match purpose {
        Purpose::Stream => &STREAM_RULES_OFF,
        Purpose::Batch(_) => &[],
    };
    // Late rows that are kept are kept whole, so columns that the query itself does not need are carried along.
    let keeps_whole_rows = input.settings.beyond.late_rows == Some(LateRowsPolicy::Keep);
    let off = |name: &str| {
        RULES_OFF.contains(&name) || rules_off.contains(&name) || (keeps_whole_rows && name == "optimize_projections")
    };
    let kept = Optimizer::new().rules.into_iter().filter(|rule| !off(rule.name()));
    let rules = kept.chain(parts.optimizer_rules).collect();
    let mut builder = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_optimizer_rules(rules)
        .with_type_planner(Arc::new(functions::SparkTypes));
    builder.expr_planners().get_or_insert_default().splice(0..0, parts.expr_planners);
    let mut analyzer_rules = parts.analyzer_rules;
    analyzer_rules.extend(Analyzer::new().rules);
    analyzer_rules.push(Arc::new(IsolatePluginFaults));
    builder = builder
        .with_relation_planners(vec![
            Arc::new(planner),
            Arc::new(InputPlanner::new(relations.clone())),
            Arc::new(ProcessorPlanner::new(processors.clone())),
        ])
        .with_query_planner(Arc::new(BatchPlanner::new(settings.batch_time.clone())))
        .with_analyzer_rules(analyzer_rules);
    // Functions are registered last, one by one: the last one of a name or alias counts.
    let mut state = builder.build();
    for function in scalar {
        register_scalar(&mut state, function);
    }
    for function in parts.aggregate {
        register_aggregate(&mut state, function);
    }
    for slot in &input.plugins {
        for function in slot.component().aggregates() {
            register_aggregate(&mut state, Arc::new(plugins::aggregate_function(slot, function)));
        }
    }
    for function in parts.higher_order {
        register_higher_order(&mut state, function);
    }
    Ok(state)
}

fn register_scalar(state: &mut SessionState, function: Arc<ScalarUDF>) {
    use datafusion::execution::FunctionRegistry;
    state.register_udf(function).expect("a session registry takes every function");
}

fn register_aggregate(state: &mut SessionState, function: Arc<datafusion::logical_expr::AggregateUDF>) {
    use datafusion::execution::FunctionRegistry;
    state.register_udaf(function).expect("a session registry takes every function");
}

fn register_higher_order(state: &mut SessionState, function: Arc<datafusion::logical_expr::HigherOrderUDF>) {
    use datafusion::execution::FunctionRegistry;
    state.register_higher_order_function(function).expect("a session registry takes every function");
}

/// The names of all functions and processors of plugins, in lower case.
///
/// # Errors
/// When two plugins have a function of one name.
pub(crate) fn plugin_names(input: &QueryInput) -> std::result::Result<BTreeSet<String>, PlanError> {
    let mut names = BTreeSet::new();
    for slot in &input.plugins {
        for name in slot.component().names() {
            if !names.insert(name.to_ascii_lowercase()) {
                let message = format!("two plugins have a function `{name}`; leave one of them out");
                return Err(PlanError::Sql { message });
            }
        }
    }
    Ok(names)
}

fn list_helpers(scalar: &[Arc<ScalarUDF>]) -> std::result::Result<ListHelpers, PlanError> {
    let find = |name: &str| {
        scalar
            .iter()
            .find(|function| function.name() == name)
            .cloned()
            .ok_or_else(|| PlanError::Sql { message: format!("the function `{name}` is not registered") })
    };
    Ok(ListHelpers {
        list_or_null: find("__list_or_null")?,
        with_position: find("__with_position")?,
        map_entries: find("__map_entries")?,
        json_tuple: find("json_tuple")?,
        array: find("array")?,
        arrays_zip: find("__arrays_zip")?,
    })
}

/// A stream as a plan: its scan, the watermark above it, and above that the end of its duplicates.
pub(crate) fn stream_plan(
    stream: &crate::StreamInput,
    purpose: &Purpose,
) -> std::result::Result<LogicalPlan, PlanError> {
    let fail = |reason: String| PlanError::Stream { stream: stream.name.clone(), reason };
    let (name, schema) = (stream.name.clone(), nullable(&stream.schema));
    let table: Arc<dyn TableProvider> = match purpose {
        Purpose::Stream => Arc::new(StreamTable::new(name, schema)),
        Purpose::Batch(inputs) => Arc::new(BoundedTable::new(name, schema, Arc::clone(inputs))),
    };
    let scan = scan(&stream.name, table).map_err(|error| PlanError::from_datafusion(&error))?;
    let Some(event_time) = &stream.event_time else {
        return match purpose {
            Purpose::Stream => deduplicated(stream, scan),
            Purpose::Batch(_) => without_duplicates(stream, scan),
        };
    };
    let field = field_of(&stream.schema, &event_time.column).ok_or_else(|| {
        let known = stream.schema.fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>().join(", ");
        fail(format!("the watermark is on the column `{}`, which is not there; it has {known}", event_time.column))
    })?;
    if field.data_type() != &time_window::timestamp_type() {
        let have = field.data_type();
        return Err(fail(format!("the watermark column `{}` must be a TIMESTAMP and is {have}", event_time.column)));
    }
    if event_time.delay_us < 0 {
        return Err(fail("the delay of a watermark must not be negative".into()));
    }
    if let Purpose::Batch(_) = purpose {
        return without_duplicates(stream, scan);
    }
    let column = Column::new(Some(stream.name.clone()), field.name().clone());
    let node = WatermarkNode::new(stream.name.clone(), column, event_time.delay_us, scan)
        .map_err(|error| PlanError::from_datafusion(&error))?;
    deduplicated(stream, LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

/// A stream without its duplicates, if it is to be so.
fn deduplicated(stream: &crate::StreamInput, input: LogicalPlan) -> std::result::Result<LogicalPlan, PlanError> {
    let Some(duplicates) = &stream.drop_duplicates else { return Ok(input) };
    let keys = duplicate_keys(stream, duplicates, &input)?;
    let within_us = match (&stream.event_time, duplicates.within_watermark) {
        (_, false) => None,
        (Some(event_time), true) => Some(event_time.delay_us),
        (None, true) => {
            return Err(PlanError::Unsupported {
                rule: "dedup-within-without-watermark",
                reason: format!("duplicates of `{}` cannot be dropped within a watermark: it has none", stream.name),
                hint: "give the stream a watermark, or drop duplicates for ever".into(),
            });
        }
    };
    DedupNode::new(Some(stream.name.clone()), keys, within_us, input)
        .map(|node| LogicalPlan::Extension(Extension { node: Arc::new(node) }))
        .map_err(|error| PlanError::from_datafusion(&error))
}

/// The same of rows that are all there.
fn without_duplicates(stream: &crate::StreamInput, input: LogicalPlan) -> std::result::Result<LogicalPlan, PlanError> {
    let Some(duplicates) = &stream.drop_duplicates else { return Ok(input) };
    let keys = duplicate_keys(stream, duplicates, &input)?.into_iter().map(Expr::Column).collect();
    let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
    LogicalPlanBuilder::from(input)
        .distinct_on(keys, columns, None)
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| PlanError::from_datafusion(&error))
}

/// The column of that name; letters may differ, as everywhere in Spark.
fn field_of<'a>(schema: &'a Schema, name: &str) -> Option<&'a Field> {
    let exact = schema.field_with_name(name).ok();
    exact.or_else(|| schema.fields().iter().find(|field| field.name().eq_ignore_ascii_case(name)).map(AsRef::as_ref))
}

/// The columns that make a row a duplicate.
fn duplicate_keys(
    stream: &crate::StreamInput,
    duplicates: &DropDuplicates,
    input: &LogicalPlan,
) -> std::result::Result<Vec<Column>, PlanError> {
    let mut keys = Vec::new();
    for name in &duplicates.columns {
        let Some(field) = field_of(&stream.schema, name) else {
            let known = stream.schema.fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>().join(", ");
            let reason =
                format!("duplicates are to be dropped by the column `{name}`, which is not there; it has {known}");
            return Err(PlanError::Stream { stream: stream.name.clone(), reason });
        };
        keys.push(Column::new(Some(stream.name.clone()), field.name().clone()));
    }
    Ok(if keys.is_empty() { input.schema().columns() } else { keys })
}

fn scan(name: &str, table: Arc<dyn TableProvider>) -> Result<LogicalPlan> {
    LogicalPlanBuilder::scan(quoted(name), provider_as_source(table), None)?.build()
}

pub(crate) fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<FieldRef> =
        schema.fields().iter().map(|field| Arc::new(field.as_ref().clone().with_nullable(true))).collect();
    Arc::new(Schema::new(fields))
}

/// Whether a type can be a column at all here.
pub(crate) fn is_plain(data_type: &DataType) -> bool {
    !matches!(data_type, DataType::Null | DataType::Union(_, _) | DataType::RunEndEncoded(_, _))
}
