//! From a call of a processor to its node: which columns it gets, and what comes out.

use super::known::KnownProcessor;
use super::node::{Form, ProcessorNode};
use crate::functions::expr::widest;
use crate::{event_time, time_window};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::{Expr, ExprSchemable, Extension, LogicalPlan, LogicalPlanBuilder, cast};
use millstream_common::OutputMode;
use std::sync::Arc;

/// A call of a processor.
pub(crate) struct ProcessorCall {
    /// The rows.
    pub(crate) input: LogicalPlan,
    /// What makes their keys.
    pub(crate) keys: Vec<Expr>,
    /// Initial rows, and what makes their keys; no keys: the columns that are named as those of the processor's key.
    pub(crate) initial: Option<(LogicalPlan, Vec<Expr>)>,
    /// The column of the output that carries event time.
    pub(crate) event_time: Option<String>,
    /// How it was called.
    pub(crate) form: Form,
    /// The output mode that was said with the call.
    pub(crate) mode: Option<OutputMode>,
}

/// The plan of a call.
///
/// # Errors
/// When columns are not there or do not fit.
pub(crate) fn plan_call(known: &Arc<KnownProcessor>, call: ProcessorCall) -> Result<LogicalPlan> {
    let signature = &known.signature;
    let name = &signature.name;
    // A text that was made of event time is none.
    let is_time = |kind: &DataType| kind == &time_window::timestamp_type() || matches!(kind, DataType::Struct(_));
    let is_event_time = |field: &Field| event_time::is_marked(field) && is_time(field.data_type());
    let marked = call.input.schema().iter().filter(|(_, field)| is_event_time(field));
    let times: Vec<(Expr, Arc<Field>)> = marked.map(|(q, field)| (Expr::from((q, field)), Arc::clone(field))).collect();
    if times.len() > 1 {
        let times = times.iter().map(|(_, field)| field.name().as_str()).collect::<Vec<_>>().join(", ");
        return plan_err!("{name} has rows with several event times ({times}); select only one of them below it");
    }
    let delay_us = times.first().and_then(|(_, field)| event_time::delay_us(field));
    let mut columns = row_columns(name, call.keys, call.input.schema(), (&signature.key, &signature.input))?;
    let has_event_time = !times.is_empty();
    columns.extend(times.into_iter().map(|(time, _)| time.alias("__event_time")));
    let input = LogicalPlanBuilder::from(call.input).project(columns)?.build()?;
    let initial = match call.initial {
        None => None,
        Some(_) if signature.initial.is_empty() => return plan_err!("{name} takes no initial rows"),
        Some((initial, keys)) => {
            let keys = if keys.is_empty() {
                let keys = signature.key.iter().map(|field| column(name, initial.schema(), field.name()));
                keys.collect::<Result<Vec<_>>>()?
            } else {
                keys
            };
            let columns = row_columns(name, keys, initial.schema(), (&signature.key, &signature.initial))?;
            Some(LogicalPlanBuilder::from(initial).project(columns)?.build()?)
        }
    };
    let (output, output_time) = output_columns(name, &signature.output, call.event_time.as_deref(), delay_us)?;
    let output = DFSchema::try_from(arrow::datatypes::Schema::new(output))?;
    let node = ProcessorNode {
        processor: Arc::clone(known),
        form: call.form,
        mode: call.mode,
        has_event_time,
        wants_event_time: call.event_time.is_some(),
        output_time,
        input,
        initial,
        schema: Arc::new(output),
    };
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

/// The columns of keys, then those of rows.
fn row_columns(name: &str, keys: Vec<Expr>, schema: &DFSchema, (key, row): (&Fields, &Fields)) -> Result<Vec<Expr>> {
    if keys.len() != key.len() {
        let wanted = key.iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        return plan_err!("{name} is partitioned by {} columns ({wanted}), and {} are given", key.len(), keys.len());
    }
    let mut columns = Vec::new();
    for (given, field) in keys.into_iter().zip(key) {
        columns.push(fit(name, given, schema, field)?.alias(format!("__key_{}", field.name())));
    }
    for field in row {
        let given = column(name, schema, field.name())?;
        columns.push(fit(name, given, schema, field)?.alias(format!("__row_{}", field.name())));
    }
    Ok(columns)
}

/// The column of that name, whatever its case.
fn column(processor: &str, schema: &DFSchema, name: &str) -> Result<Expr> {
    let named = |exact: bool| {
        let is_it = |field: &Field| {
            if exact { field.name() == name } else { field.name().eq_ignore_ascii_case(name) }
        };
        schema.iter().find(|(_, field)| is_it(field)).map(|(qualifier, field)| Expr::from((qualifier, field)))
    };
    match named(true).or_else(|| named(false)) {
        Some(column) => Ok(column),
        None => {
            let known = schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
            plan_err!("{processor} takes a column `{name}`, which its input lacks; there are {known}")
        }
    }
}

/// The expression with the type that the processor has described.
fn fit(processor: &str, expr: Expr, schema: &DFSchema, field: &Field) -> Result<Expr> {
    let (has, wants) = (expr.get_type(schema)?, field.data_type());
    if has == *wants {
        return Ok(expr);
    }
    if has.is_null() || is_alike(&has, wants) || widest(&has, wants, true).as_ref() == Some(wants) {
        return Ok(cast(expr, wants.clone()));
    }
    let [has, wants] = [&has, wants].map(crate::ddl::format_data_type);
    plan_err!("{processor} takes `{}` as {wants}, and `{expr}` is {has}; CAST it", field.name())
}

/// Whether types differ only in the names of nested fields, in nullability and in Arrow's layout.
fn is_alike(one: &DataType, other: &DataType) -> bool {
    match (one, other) {
        (DataType::List(one), DataType::List(other)) => is_alike(one.data_type(), other.data_type()),
        (DataType::Struct(one), DataType::Struct(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| one.name() == other.name() && is_alike(one.data_type(), other.data_type()))
        }
        (DataType::Utf8View | DataType::LargeUtf8, DataType::Utf8) => true,
        (DataType::BinaryView | DataType::LargeBinary, DataType::Binary) => true,
        (one, other) => one == other,
    }
}

/// The columns that come out, and which of them carries event time.
fn output_columns(
    name: &str,
    output: &Fields,
    event_time: Option<&str>,
    delay_us: Option<i64>,
) -> Result<(Vec<Field>, Option<usize>)> {
    let mut fields: Vec<Field> = output.iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let Some(wanted) = event_time else { return Ok((fields, None)) };
    let Some(index) = fields.iter().position(|field| field.name().eq_ignore_ascii_case(wanted)) else {
        let known = fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        return plan_err!("{name} gives no column `{wanted}` to carry event time; there are {known}");
    };
    if fields[index].data_type() != &time_window::timestamp_type() {
        let has = crate::ddl::format_data_type(fields[index].data_type());
        return plan_err!("the event time `{wanted}` of {name} must be a TIMESTAMP and is {has}");
    }
    // A batch query has no watermark, and the column is one like others.
    if let Some(delay_us) = delay_us {
        fields[index] = event_time::mark(&fields[index], delay_us);
        return Ok((fields, Some(index)));
    }
    Ok((fields, None))
}
