//! Plans the relations that stand for generators and windows, and hands those of stars to [`star`].
//!
//! ```text
//!   Project  (all columns, [the element's fields] AS names)
//!     Unnest __generated
//!       Project (all columns, <list> AS __generated)
//!         input
//! ```
//!
//! A tumbling window is no list: it is one column over the rows that have a time.

use super::relations::Relations;
use super::rewrite::{Derived, Generator, WINDOWS, function_name, placeholder_index};
use super::star;
use crate::event_time;
use crate::session_window::plan_session;
use crate::time_window::{WindowSpec, marked_time, time_argument, window_function};
use crate::union_event_time;
use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result, UnnestOptions, plan_err};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, ScalarUDF, lit};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments, TableFactor};
use millstream_common::duration::parse_micros;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How many rows `stack` may make of one.
const STACKED_MAX: i64 = 10_000;

/// The column that holds the list to be unnested.
const GENERATED: &str = "__generated";

/// Plans the derived tables that [`super::rewrite`] made.
pub(crate) struct GeneratorPlanner {
    relations: Relations,
    helpers: ListHelpers,
    table_functions: BTreeMap<String, Arc<ScalarUDF>>,
}

/// Functions that turn the argument of a generator into a list.
pub(crate) struct ListHelpers {
    /// Null and empty lists become a list of one null.
    pub(crate) list_or_null: Arc<ScalarUDF>,
    /// A list becomes a list of (pos, col).
    pub(crate) with_position: Arc<ScalarUDF>,
    /// A map becomes a list of (key, value).
    pub(crate) map_entries: Arc<ScalarUDF>,
    /// Fields of a JSON text become a struct of texts.
    pub(crate) json_tuple: Arc<ScalarUDF>,
    /// Values become a list.
    pub(crate) array: Arc<ScalarUDF>,
    /// Names and lists become a list of structs.
    pub(crate) arrays_zip: Arc<ScalarUDF>,
}

impl fmt::Debug for GeneratorPlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratorPlanner").field("relations", &self.relations).finish_non_exhaustive()
    }
}

impl GeneratorPlanner {
    /// A planner for the generators of each statement; `table_functions` are the plugins', as functions that return lists.
    pub(crate) fn new(
        relations: Relations,
        helpers: ListHelpers,
        table_functions: BTreeMap<String, Arc<ScalarUDF>>,
    ) -> Self {
        Self { relations, helpers, table_functions }
    }

    fn plan(
        &self,
        generator: &Generator,
        input: LogicalPlan,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let name = function_name(&generator.call);
        // A window has the mark of its time from here on.
        let input = if WINDOWS.contains(&name.as_str()) { union_event_time::of_first_branch(input)? } else { input };
        let mut arguments = Vec::new();
        for argument in call_arguments(&generator.call)? {
            arguments.push(context.sql_to_expr(argument.clone(), input.schema())?);
        }
        match name.as_str() {
            "window" => return plan_window(input, arguments),
            "session_window" => return plan_session(input, arguments),
            _ => {}
        }
        let (generated, element, expands) = if name == "json_tuple" {
            // One row per row is no list.
            let fields = self.helpers.json_tuple.call(arguments);
            let element = fields.get_type(input.schema())?;
            (with_generated(input, fields)?, element, true)
        } else {
            let (list, expands) = self.list_of(&name, arguments, input.schema())?;
            let outer = generator.outer || name.ends_with("_outer");
            let list = if outer { self.helpers.list_or_null.call(vec![list]) } else { list };
            let element = match list.get_type(input.schema())? {
                DataType::List(item) => item.data_type().clone(),
                other => return plan_err!("{name} takes an array or a map, not {other}"),
            };
            (unnest_below(input, list)?, element, expands)
        };
        let names = match (&element, expands) {
            (DataType::Struct(fields), true) => fields.iter().map(|field| field.name().clone()).collect(),
            _ => vec!["col".to_owned()],
        };
        if generator.columns.len() > names.len()
            || (!generator.columns.is_empty() && generator.columns.len() < names.len())
        {
            return plan_err!(
                "{name} gives {} columns, and {} names stand behind AS",
                names.len(),
                generator.columns.len()
            );
        }
        let table = generator.table.as_ref().map(|ident| ident.value.clone());
        let mut columns = all_columns_but_last(generated.schema());
        let value = Expr::Column(Column::new_unqualified(GENERATED));
        for (index, field) in names.iter().enumerate() {
            let alias = generator.columns.get(index).map_or(field.as_str(), |ident| ident.value.as_str());
            let value = if expands { get_field(value.clone(), field.as_str()) } else { value.clone() };
            columns.push(value.alias_qualified(table.clone(), alias));
        }
        LogicalPlanBuilder::from(generated).project(columns)?.build()
    }

    /// `stack(n, values…)`: the values in n rows of `col0`, `col1`, …, filled up with NULL. Source: Spark's `Stack`.
    fn stacked(&self, mut arguments: Vec<Expr>) -> Result<Expr> {
        let rows = match arguments.first() {
            Some(Expr::Literal(rows, _)) => match rows.cast_to(&DataType::Int64)? {
                ScalarValue::Int64(Some(rows @ 1..=STACKED_MAX)) => rows.unsigned_abs() as usize,
                _ => return plan_err!("stack takes a number of rows between 1 and {STACKED_MAX} first"),
            },
            _ => return plan_err!("stack takes a constant number of rows first: stack(2, 'a', x, 'b', y)"),
        };
        let values = arguments.split_off(1);
        let width = values.len().div_ceil(rows);
        if width == 0 {
            return plan_err!("stack takes values behind the number of rows");
        }
        let value = |row, column| values.get(row * width + column).cloned().unwrap_or(lit(ScalarValue::Null));
        let mut columns = Vec::new();
        for column in 0..width {
            columns.push(lit(format!("col{column}")));
            columns.push(self.helpers.array.call((0..rows).map(|row| value(row, column)).collect()));
        }
        Ok(self.helpers.arrays_zip.call(columns))
    }

    /// The list that a generator unnests, and whether the fields of its elements are columns.
    fn list_of(&self, name: &str, mut arguments: Vec<Expr>, schema: &DFSchema) -> Result<(Expr, bool)> {
        if let Some(function) = self.table_functions.get(name) {
            let list = function.call(arguments);
            let expands = matches!(list.get_type(schema)?, DataType::List(item) if crate::plugins::is_row(&item));
            return Ok((list, expands));
        }
        if name == "stack" {
            return Ok((self.stacked(arguments)?, true));
        }
        let (Some(argument), true) = (arguments.pop(), arguments.is_empty()) else {
            return plan_err!("{name} takes one argument");
        };
        let is_map = matches!(argument.get_type(schema)?, DataType::Map(_, _));
        let entries = |argument| if is_map { self.helpers.map_entries.call(vec![argument]) } else { argument };
        match name.trim_end_matches("_outer") {
            "explode" => Ok((entries(argument), is_map)),
            "posexplode" => Ok((self.helpers.with_position.call(vec![argument]), true)),
            "inline" => Ok((argument, true)),
            _ => plan_err!(
                "{name} is no generator; there are explode, posexplode, inline, json_tuple, stack and the plugins' table functions"
            ),
        }
    }
}

impl RelationPlanner for GeneratorPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Derived { lateral, subquery, alias, sample } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let derived = alias
            .as_ref()
            .and_then(|alias| placeholder_index(&alias.name.value))
            .and_then(|index| self.relations.derived(index));
        let Some(derived) = derived else {
            let relation = TableFactor::Derived { lateral, subquery, alias, sample };
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let input = context.plan(TableFactor::Derived { lateral, subquery, alias: None, sample })?;
        let plan = match &derived {
            Derived::Generator(generator) => self.plan(generator, input, context)?,
            Derived::Fields { of, table } => star::plan_fields(of, table, input, context)?,
            Derived::Spread { call, column } => star::plan_spread(call, column, input, context)?,
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

fn call_arguments(call: &ast::Function) -> Result<Vec<&ast::Expr>> {
    let FunctionArguments::List(list) = &call.args else {
        return plan_err!("{} takes arguments in parentheses", call.name);
    };
    let mut arguments = Vec::new();
    for argument in &list.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => arguments.push(expr),
            other => return plan_err!("{} does not take the argument `{other}`", call.name),
        }
    }
    Ok(arguments)
}

fn all_columns(schema: &DFSchema) -> Vec<Expr> {
    schema.columns().into_iter().map(Expr::Column).collect()
}

fn all_columns_but_last(schema: &DFSchema) -> Vec<Expr> {
    let mut columns = all_columns(schema);
    columns.pop();
    columns
}

/// The rows of `input` once per element of `list`, which becomes the last column.
fn unnest_below(input: LogicalPlan, list: Expr) -> Result<LogicalPlan> {
    let options = UnnestOptions::new().with_preserve_nulls(false);
    LogicalPlanBuilder::from(with_generated(input, list)?)
        .unnest_column_with_options(Column::new_unqualified(GENERATED), options)?
        .build()
}

/// The rows of `input` with a value as the last column.
fn with_generated(input: LogicalPlan, value: Expr) -> Result<LogicalPlan> {
    let mut columns = all_columns(input.schema());
    columns.push(value.alias(GENERATED));
    LogicalPlanBuilder::from(input).project(columns)?.build()
}

fn plan_window(input: LogicalPlan, mut arguments: Vec<Expr>) -> Result<LogicalPlan> {
    if arguments.len() < 2 || arguments.len() > 4 {
        return plan_err!(
            "window takes a time, a size and optionally a slide and a start: window(time, '10 minutes', '5 minutes')"
        );
    }
    let durations = arguments.split_off(1);
    let time = time_argument(arguments.remove(0), input.schema())?;
    let spec = window_spec(&durations)?;
    let time_field = marked_time(&time, input.schema())?;
    let metadata = event_time::metadata_of(&time_field);
    let input = LogicalPlanBuilder::from(input).filter(time.clone().is_not_null())?.build()?;
    let window = window_function(spec).call(vec![time]);
    if spec.is_tumbling() {
        let mut columns = all_columns(input.schema());
        columns.push(window.alias_with_metadata("window", metadata));
        return LogicalPlanBuilder::from(input).project(columns)?.build();
    }
    let unnested = unnest_below(input, window)?;
    let mut columns = all_columns_but_last(unnested.schema());
    let value = Expr::Column(Column::new_unqualified(GENERATED));
    columns.push(value.alias_with_metadata("window", metadata));
    LogicalPlanBuilder::from(unnested).project(columns)?.build()
}

/// The microseconds of a literal: a text with units, or a number of them.
fn duration(literal: &Expr) -> Result<i64> {
    match literal {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => {
            parse_micros(text).or_else(|error| plan_err!("window: {error}"))
        }
        Expr::Literal(ScalarValue::Int32(Some(micros)), _) => Ok(i64::from(*micros)),
        Expr::Literal(ScalarValue::Int64(Some(micros)), _) => Ok(*micros),
        other => plan_err!("the durations of a window must be literals such as '10 minutes', not `{other}`"),
    }
}

fn window_spec(durations: &[Expr]) -> Result<WindowSpec> {
    let micros = durations.iter().map(duration).collect::<Result<Vec<_>>>()?;
    let size_us = micros[0];
    let slide_us = micros.get(1).copied().unwrap_or(size_us);
    let start_us = micros.get(2).copied().unwrap_or(0);
    if size_us <= 0 || slide_us <= 0 {
        return plan_err!("the size and the slide of a window must be greater than 0");
    }
    if slide_us > size_us {
        return plan_err!("the slide of a window must not be greater than its size");
    }
    if start_us.abs() >= slide_us {
        return plan_err!("the start of a window must be smaller than its slide");
    }
    Ok(WindowSpec { size_us, slide_us, start_us })
}
