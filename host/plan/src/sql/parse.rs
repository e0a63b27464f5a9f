//! From text to one SELECT statement.

use super::dialect::StreamingSqlDialect;
use crate::PlanError;
use datafusion::sql::sqlparser::ast::{Query, Statement};
use datafusion::sql::sqlparser::parser::{Parser, ParserOptions};

/// How deep expressions and subqueries may nest: the parser's stack is the host's.
const NESTING_MAX: usize = 64;

/// The one query in `sql`. Text literals keep their escapes, for the functions that know Spark's.
///
/// # Errors
/// [`PlanError::Sql`] with line and column when it does not parse, is empty, or is more than one SELECT.
pub(crate) fn parse_query(sql: &str) -> Result<Box<Query>, PlanError> {
    let dialect = StreamingSqlDialect::default();
    let fail = |message: String| PlanError::Sql { message };
    let mut statements = Parser::new(&dialect)
        .with_options(ParserOptions::new().with_unescape(false))
        .with_recursion_limit(NESTING_MAX)
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| fail(error.to_string()))?;
    match (statements.pop(), statements.len()) {
        (Some(Statement::Query(query)), 0) => Ok(query),
        (None, _) => Err(fail("there is no SELECT".into())),
        (Some(_), 0) => Err(fail("it must be a SELECT; sources and sinks stand in the query file".into())),
        (Some(_), more) => Err(fail(format!("it must be one SELECT, and there are {} statements", more + 1))),
    }
}
