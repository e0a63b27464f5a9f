//! Plans the relations that stand for generators and windows.
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
use super::rewrite::{Generator, function_name, placeholder_index};
use crate::event_time;
use crate::session_window::plan_session;
use crate::time_window::{WindowSpec, marked_time, time_argument, window_function};
use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result, UnnestOptions, plan_err};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, ScalarUDF};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments, TableFactor};
use millstream_common::duration::parse_micros;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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
        let mut arguments = Vec::new();
        for argument in call_arguments(&generator.call)? {
            arguments.push(context.sql_to_expr(argument.clone(), input.schema())?);
        }
        match name.as_str() {
            "window" => return plan_window(input, arguments),
            "session_window" => return plan_session(input, arguments),
            _ => {}
        }
        let (list, expands) = self.list_of(&name, arguments, input.schema())?;
        let outer = generator.outer || name.ends_with("_outer");
        let list = if outer { self.helpers.list_or_null.call(vec![list]) } else { list };
        let element = match list.get_type(input.schema())? {
            DataType::List(item) => item.data_type().clone(),
            other => return plan_err!("{name} takes an array or a map, not {other}"),
        };
        let generated = unnest_below(input, list)?;
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

    /// The list that a generator unnests, and whether the fields of its elements are columns.
    fn list_of(&self, name: &str, mut arguments: Vec<Expr>, schema: &DFSchema) -> Result<(Expr, bool)> {
        if let Some(function) = self.table_functions.get(name) {
            let list = function.call(arguments);
            let expands = matches!(list.get_type(schema)?, DataType::List(item) if crate::plugins::is_row(&item));
            return Ok((list, expands));
        }
        let (Some(argument), true) = (arguments.pop(), arguments.is_empty()) else {
            return plan_err!("{name} takes one argument");
        };
        let is_map = matches!(argument.get_type(schema)?, DataType::Map(_, _));
        let entries = |argument| if is_map { self.helpers.map_entries.call(vec![argument]) } else { argument };
        match name.trim_end_matches("_outer") {
            "explode" => Ok((entries(argument), is_map)),
            "posexplode" => Ok((self.helpers.with_position.call(vec![entries(argument)]), true)),
            "inline" => Ok((argument, true)),
            _ => plan_err!(
                "{name} is no generator; there are explode, posexplode, inline and the plugins' table functions"
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
        let generator = alias
            .as_ref()
            .and_then(|alias| placeholder_index(&alias.name.value))
            .and_then(|index| self.relations.generator(index));
        let Some(generator) = generator else {
            let relation = TableFactor::Derived { lateral, subquery, alias, sample };
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let input = context.plan(TableFactor::Derived { lateral, subquery, alias: None, sample })?;
        let plan = self.plan(&generator, input, context)?;
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
    let mut columns = all_columns(input.schema());
    columns.push(list.alias(GENERATED));
    let options = UnnestOptions::new().with_preserve_nulls(false);
    LogicalPlanBuilder::from(input)
        .project(columns)?
        .unnest_column_with_options(Column::new_unqualified(GENERATED), options)?
        .build()
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
