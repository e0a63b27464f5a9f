//! Spark's dialect of SQL for the parser.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{DatabricksDialect, Dialect, Precedence, SparkSqlDialect};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use std::any::TypeId;

/// Spark SQL, with interval strings such as `INTERVAL '1 day 2 hours'` that need no unit behind them.
#[derive(Debug, Default)]
pub(crate) struct StreamingSqlDialect(SparkSqlDialect);

impl Dialect for StreamingSqlDialect {
    /// The parser asks for this identity where it has no flag: `exists(a, x -> …)` and `array(…)` are calls, as in
    /// Databricks' dialect of Spark SQL.
    fn dialect(&self) -> TypeId {
        TypeId::of::<DatabricksDialect>()
    }
    fn supports_struct_literal(&self) -> bool {
        true
    }
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.0.is_delimited_identifier_start(ch)
    }
    fn is_identifier_start(&self, ch: char) -> bool {
        self.0.is_identifier_start(ch)
    }
    fn is_identifier_part(&self, ch: char) -> bool {
        self.0.is_identifier_part(ch)
    }
    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }
    fn supports_group_by_expr(&self) -> bool {
        true
    }
    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }
    fn supports_lambda_functions(&self) -> bool {
        true
    }
    fn supports_select_wildcard_except(&self) -> bool {
        true
    }
    fn supports_nested_comments(&self) -> bool {
        true
    }
    fn supports_long_type_as_bigint(&self) -> bool {
        true
    }
    fn supports_values_as_table_factor(&self) -> bool {
        true
    }
    fn supports_bang_not_operator(&self) -> bool {
        true
    }
    fn supports_select_item_multi_column_alias(&self) -> bool {
        true
    }
    fn supports_cte_without_as(&self) -> bool {
        true
    }
    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }
    fn allow_extract_custom(&self) -> bool {
        true
    }
    fn ignores_wildcard_escapes(&self) -> bool {
        true
    }
    fn supports_within_after_array_aggregation(&self) -> bool {
        true
    }
    fn require_interval_qualifier(&self) -> bool {
        false
    }
    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }
    /// Shifts bind less than sums, and more than `&`.
    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        let is_shift = matches!(parser.peek_token().token, Token::ShiftLeft | Token::ShiftRight);
        is_shift.then(|| Ok(self.prec_value(Precedence::Ampersand) + 1))
    }
    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        self.0.parse_infix(parser, expr, precedence)
    }
}
