//! Plans calls of processors in FROM: `sessions(TABLE(clicks) PARTITION BY user)`, as
//! [`table_arguments`](super::table_arguments) has spelled them.

use super::rewrite::{function_name, single_name};
use super::table_arguments::PARTITION_BY;
use crate::processor::{Form, ProcessorCall, Processors, plan_call};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, TableFactor, TableFunctionArgs,
};

/// Plans calls of the processors that the query's plugins have.
#[derive(Debug)]
pub(crate) struct ProcessorPlanner {
    processors: Processors,
}

/// A table argument, and what it is partitioned by.
struct Table {
    query: Box<Query>,
    keys: Vec<Expr>,
}

/// The arguments of a call.
#[derive(Default)]
struct Arguments {
    input: Option<Table>,
    initial: Option<Table>,
    event_time: Option<String>,
}

impl ProcessorPlanner {
    /// A planner that knows these processors.
    pub(crate) fn new(processors: Processors) -> Self {
        Self { processors }
    }

    fn plan(
        &self,
        name: &str,
        arguments: &TableFunctionArgs,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let Some(known) = self.processors.get(name) else {
            return plan_err!("there is no processor `{name}`: {}", self.processors.names());
        };
        let arguments = Arguments::of(name, arguments)?;
        let Some(input) = arguments.input else {
            return plan_err!("{name} takes a table: {name}(TABLE(rows) PARTITION BY key)");
        };
        let (input, keys) = table(input, context)?;
        let initial = arguments.initial.map(|initial| table(initial, context)).transpose()?;
        let (form, event_time) = (Form::TransformWithState, arguments.event_time);
        plan_call(known, ProcessorCall { input, keys, initial, event_time, form, mode: None })
    }
}

fn table(
    table: Table,
    context: &mut dyn RelationPlannerContext,
) -> Result<(LogicalPlan, Vec<datafusion::logical_expr::Expr>)> {
    let relation = TableFactor::Derived { lateral: false, subquery: table.query, alias: None, sample: None };
    let plan = context.plan(relation)?;
    let mut keys = Vec::new();
    for key in table.keys {
        keys.push(context.sql_to_expr(key, plan.schema())?);
    }
    Ok((plan, keys))
}

impl Arguments {
    fn of(name: &str, given: &TableFunctionArgs) -> Result<Self> {
        let mut arguments = Self::default();
        // What PARTITION BY stands behind.
        let mut is_of_initial = false;
        for argument in &given.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query))) if arguments.input.is_none() => {
                    arguments.input = Some(Table { query: query.clone(), keys: Vec::new() });
                    is_of_initial = false;
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(call)))
                    if function_name(call) == PARTITION_BY =>
                {
                    let table = if is_of_initial { &mut arguments.initial } else { &mut arguments.input };
                    if let Some(table) = table {
                        table.keys = keys_of(&call.args)?;
                    }
                }
                FunctionArg::Named { name: argument, arg: FunctionArgExpr::Expr(value), .. } => {
                    match (argument.value.to_ascii_lowercase().as_str(), value) {
                        ("initial", Expr::Subquery(query)) => {
                            arguments.initial = Some(Table { query: query.clone(), keys: Vec::new() });
                            is_of_initial = true;
                        }
                        ("event_time", value) => arguments.event_time = Some(text_of(name, value)?),
                        _ => {
                            return plan_err!(
                                "{name} takes no argument `{argument}`; there are `initial => TABLE(…)` and `event_time => 'column'`"
                            );
                        }
                    }
                }
                other => return plan_err!("{name} does not take the argument `{other}`"),
            }
        }
        Ok(arguments)
    }
}

/// The expressions behind PARTITION BY, in parentheses or not.
fn keys_of(arguments: &FunctionArguments) -> Result<Vec<Expr>> {
    let FunctionArguments::List(list) = arguments else { return plan_err!("PARTITION BY takes columns") };
    let mut keys = Vec::new();
    for argument in &list.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(all))) => keys.extend(all.iter().cloned()),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Nested(one))) => keys.push(one.as_ref().clone()),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(one)) => keys.push(one.clone()),
            other => return plan_err!("PARTITION BY does not take `{other}`"),
        }
    }
    Ok(keys)
}

fn text_of(name: &str, value: &Expr) -> Result<String> {
    match value {
        Expr::Identifier(ident) => Ok(ident.value.clone()),
        Expr::Value(value) => match value.value.clone().into_string() {
            Some(text) => Ok(text),
            None => plan_err!("event_time of {name} is the name of a column, not `{value}`"),
        },
        other => plan_err!("event_time of {name} is the name of a column, not `{other}`"),
    }
}

impl RelationPlanner for ProcessorPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let planned = match &relation {
            TableFactor::Table { name, args: Some(arguments), .. } => match single_name(name) {
                Some(name) if is_call(arguments) || self.processors.get(name).is_some() => {
                    Some(self.plan(name, arguments, context)?)
                }
                _ => None,
            },
            _ => None,
        };
        match (planned, relation) {
            (Some(plan), TableFactor::Table { alias, .. }) => {
                Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
            }
            (_, relation) => Ok(RelationPlanning::Original(Box::new(relation))),
        }
    }
}

/// Whether a table stands among the arguments.
fn is_call(arguments: &TableFunctionArgs) -> bool {
    matches!(arguments.args.first(), Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(_)))))
}
