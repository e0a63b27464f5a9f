//! The front end at work: statements become logical plans, one after the other, in one session.
//!
//! A query in SQL is one statement; a frame is one per operation, each over the plans of those below it. Analysis comes once, over
//! the whole, so both pass the same rules in the same order.

use crate::input::QueryInput;
use crate::plan::Purpose;
use crate::processor::Processors;
use crate::sql::{
    casts, grouping, having, lateral_alias, names::Names, outer_using, relations::Relations, result_names, rewrite,
    unnamed, using, values,
};
use crate::{PlanError, functions, plugins, session, union_event_time};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{Query, Statement, visit_expressions_mut};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

type Planned = Result<LogicalPlan, DataFusionError>;

/// A session, and what a statement needs beside it.
pub(crate) struct Front {
    context: SessionContext,
    relations: Relations,
    /// The plugins' table functions, in lower case.
    table_functions: BTreeSet<String>,
    processors: Processors,
    purpose: Purpose,
}

impl Front {
    /// A session for `input`.
    ///
    /// # Errors
    /// When two functions have one name, or a stream's declaration does not fit.
    pub(crate) fn new(input: &QueryInput, purpose: &Purpose) -> Result<Self, PlanError> {
        let relations = Relations::default();
        let processors = plugins::processors(input)?;
        let context = session::build(input, purpose, (&relations, &processors))?;
        let table_functions = session::table_function_names(input);
        Ok(Self { context, relations, table_functions, processors, purpose: purpose.clone() })
    }

    /// What statements are planned for.
    pub(crate) fn purpose(&self) -> &Purpose {
        &self.purpose
    }

    /// The session.
    pub(crate) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// The plugins' processors.
    pub(crate) fn processors(&self) -> &Processors {
        &self.processors
    }

    /// The names of the plugins' table functions, in lower case.
    pub(crate) fn table_functions(&self) -> &BTreeSet<String> {
        &self.table_functions
    }

    /// The plan of a statement as it is written. `names` are those that it may use, `inputs` the plans behind `__input_0`, …
    ///
    /// # Errors
    /// When it names something unknown, or has a form that cannot be planned.
    pub(crate) fn statement(
        &mut self,
        mut query: Box<Query>,
        mut names: Names,
        inputs: Vec<LogicalPlan>,
    ) -> Result<LogicalPlan, PlanError> {
        result_names::give(&mut query, &names, &self.table_functions);
        let sources = names.clone();
        names.apply(&mut query);
        loop {
            let error = match self.spelled(query.clone(), &inputs)? {
                Ok(plan) => return Ok(plan),
                Err(error) => error,
            };
            match lateral_alias::unknown_name(&error) {
                Some(name) if lateral_alias::substitute(&mut query, &name, &sources)? => {}
                _ => return Err(PlanError::from_datafusion(&error)),
            }
        }
    }

    /// The plan of a statement whose names are settled, or what the planner has against it.
    fn spelled(&mut self, mut query: Box<Query>, inputs: &[LogicalPlan]) -> Result<Planned, PlanError> {
        values::name_columns(&mut query);
        unnamed::name(&mut query);
        having::spell_out(&mut query);
        casts::rewrite(&mut query);
        grouping::rewrite(&mut query);
        let mut statement = Statement::Query(query);
        spell(&mut statement);
        let Statement::Query(mut query) = statement else {
            return Err(PlanError::Sql { message: "it must be a SELECT".into() });
        };
        let schemas = inputs.iter().map(|input| input.schema());
        let qualifiers = schemas.flat_map(|schema| schema.iter()).filter_map(|(qualifier, _)| qualifier);
        let qualifiers = qualifiers.map(|qualifier| qualifier.table().to_owned()).collect();
        let derived = rewrite::rewrite(&mut query, &self.table_functions, &qualifiers)?;
        outer_using::spell_out(&mut query);
        using::spell_out(&mut query);
        self.relations.set(derived, inputs.to_vec());
        let statement = DataFusionStatement::Statement(Box::new(Statement::Query(query)));
        // Planning is asynchronous only for catalogs that look tables up elsewhere; ours are in memory.
        let planned = futures::executor::block_on(self.context.state().statement_to_plan(statement));
        self.relations.set(Vec::new(), Vec::new());
        Ok(planned)
    }

    /// The plan with its types settled.
    ///
    /// # Errors
    /// When types do not fit.
    pub(crate) fn analyze(&self, plan: LogicalPlan) -> Result<LogicalPlan, PlanError> {
        let state = self.context.state();
        // `grouping(x)` is found by comparing `x` with the keys as the user wrote both, so before either is rewritten.
        ResolveGroupingFunction::new()
            .analyze(plan, state.config_options())
            .and_then(union_event_time::of_first_branch)
            .and_then(functions::expr::narrow_literals)
            .and_then(|plan| state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {}))
            .map_err(|error| PlanError::from_datafusion(&error))
    }
}

/// Spells Spark's syntax in words that DataFusion's planner has.
fn spell(statement: &mut Statement) {
    functions::expr::spell_literals(statement);
    let flow = visit_expressions_mut(statement, |expr| {
        functions::text::unescape_literal(expr);
        functions::text::rewrite_ast_expr(expr);
        ControlFlow::<Infallible>::Continue(())
    });
    let ControlFlow::Continue(()) = flow;
    functions::nested::rewrite_nested_syntax(statement);
}
