//! From text to one SELECT statement, to one column of it, to one type.

use super::dialect::StreamingSqlDialect;
use super::{interval_units, number_suffixes, table_arguments};
use crate::PlanError;
use datafusion::sql::sqlparser::ast::{DataType, Query, SelectItem, Statement};
use datafusion::sql::sqlparser::parser::{Parser, ParserError, ParserOptions};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// How deep expressions and subqueries may nest: the parser's stack is the host's.
const NESTING_MAX: usize = 64;

/// The one query in `sql`. Text literals keep their escapes, for the functions that know Spark's.
///
/// # Errors
/// [`PlanError::Sql`] with line and column when it does not parse, is empty, or is more than one SELECT.
pub(crate) fn parse_query(sql: &str) -> Result<Box<Query>, PlanError> {
    let dialect = StreamingSqlDialect::default();
    let fail = |message: String| PlanError::Sql { message };
    let tokens = Tokenizer::new(&dialect, sql).with_unescape(false).tokenize_with_location();
    let tokens = tokens.map_err(|error| fail(ParserError::from(error).to_string()))?;
    let tokens = interval_units::spell_out(number_suffixes::spell_out(tokens));
    let mut statements = parser(&dialect)
        .with_tokens_with_locations(table_arguments::spell_out(&tokens))
        .parse_statements()
        .map_err(|error| fail(error.to_string()))?;
    match (statements.pop(), statements.len()) {
        (Some(Statement::Query(query)), 0) => Ok(query),
        (None, _) => Err(fail("there is no SELECT".into())),
        (Some(_), 0) => Err(fail("it must be a SELECT; sources and sinks stand in the query file".into())),
        (Some(_), more) => Err(fail(format!("it must be one SELECT, and there are {} statements", more + 1))),
    }
}

/// The one item of a SELECT list in `text`.
///
/// # Errors
/// [`PlanError::Sql`] when it does not parse, or something stands behind it.
pub(crate) fn parse_select_item(text: &str) -> Result<SelectItem, PlanError> {
    whole(text, |parser| parser.parse_select_item())
}

/// The one type in `text`.
///
/// # Errors
/// As [`parse_select_item`].
pub(crate) fn parse_data_type(text: &str) -> Result<DataType, PlanError> {
    whole(text, |parser| parser.parse_data_type())
}

fn parser(dialect: &StreamingSqlDialect) -> Parser<'_> {
    Parser::new(dialect).with_options(ParserOptions::new().with_unescape(false)).with_recursion_limit(NESTING_MAX)
}

fn whole<T>(text: &str, parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>) -> Result<T, PlanError> {
    let dialect = StreamingSqlDialect::default();
    let fail = |reason: String| PlanError::Sql { message: format!("`{text}` does not parse: {reason}") };
    let mut parser = parser(&dialect).try_with_sql(text).map_err(|error| fail(error.to_string()))?;
    let parsed = parse(&mut parser).map_err(|error| fail(error.to_string()))?;
    match parser.next_token().token {
        Token::EOF => Ok(parsed),
        more => Err(fail(format!("it ends before `{more}`"))),
    }
}
