//! Spark's dialect of SQL for the parser.

use super::call::call;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};
use datafusion::sql::sqlparser::dialect::{DatabricksDialect, Dialect, Precedence, SparkSqlDialect};
use datafusion::sql::sqlparser::keywords::Keyword;
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
    fn supports_map_literal_with_angle_brackets(&self) -> bool {
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
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        if is_trim_of_blanks(parser) {
            return Some(trim_of_blanks(parser));
        }
        if is_struct_of_stars(parser) {
            return Some(struct_of_stars(parser));
        }
        None
    }
    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        if parser.parse_keyword(Keyword::DIV) {
            return Some(integer_division(parser, expr, precedence));
        }
        like_all_ahead(parser).map(|form| like_all(parser, expr, form))
    }
}

/// `a DIV b`, which binds as `*` does.
fn integer_division(parser: &mut Parser<'_>, left: &Expr, precedence: u8) -> Result<Expr, ParserError> {
    let right = Box::new(parser.parse_subexpr(precedence)?);
    Ok(Expr::BinaryOp { left: Box::new(left.clone()), op: BinaryOperator::MyIntegerDivide, right })
}

/// Whether `TRIM(BOTH FROM s)` stands ahead, or another side, without the characters that are taken away.
fn is_trim_of_blanks(parser: &Parser<'_>) -> bool {
    is_word(parser, 0, &[Keyword::TRIM])
        && parser.peek_nth_token_ref(1).token == Token::LParen
        && is_word(parser, 2, &[Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING])
        && is_word(parser, 3, &[Keyword::FROM])
}

fn trim_of_blanks(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_keyword(Keyword::TRIM)?;
    parser.expect_token(&Token::LParen)?;
    let trim_where = Some(parser.parse_trim_where()?);
    parser.expect_keyword(Keyword::FROM)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Trim { expr, trim_where, trim_what: None, trim_characters: None })
}

/// Whether `struct(…)` stands ahead and has a star among its arguments: the parser's own form of a struct has none.
fn is_struct_of_stars(parser: &Parser<'_>) -> bool {
    if !is_word(parser, 0, &[Keyword::STRUCT]) || parser.peek_nth_token_ref(1).token != Token::LParen {
        return false;
    }
    let mut depth = 0_usize;
    let mut before = &Token::LParen;
    for at in 1.. {
        let token = &parser.peek_nth_token_ref(at).token;
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return false,
            Token::RParen => depth -= 1,
            Token::Mul if depth == 1 && matches!(before, Token::LParen | Token::Comma | Token::Period) => return true,
            Token::EOF => return false,
            _ => {}
        }
        before = token;
    }
    false
}

/// Its arguments as those of a call: columns, named or not, and stars.
fn struct_of_stars(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_keyword(Keyword::STRUCT)?;
    parser.expect_token(&Token::LParen)?;
    let arguments = parser.parse_comma_separated(|parser| {
        let expr = parser.parse_wildcard_expr()?;
        if !parser.parse_keyword(Keyword::AS) {
            return Ok(FunctionArgExpr::from(expr));
        }
        let name = parser.parse_identifier()?;
        Ok(FunctionArgExpr::Expr(Expr::Named { expr: Box::new(expr), name }))
    })?;
    parser.expect_token(&Token::RParen)?;
    let mut call = call("struct", Vec::new());
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.args = arguments.into_iter().map(FunctionArg::Unnamed).collect();
    }
    Ok(call)
}

/// Which kind of LIKE stands before ALL.
struct LikeAll {
    negated: bool,
    is_ilike: bool,
}

fn like_all_ahead(parser: &Parser<'_>) -> Option<LikeAll> {
    let negated = is_word(parser, 0, &[Keyword::NOT]);
    let at = usize::from(negated);
    let is_all = is_word(parser, at, &[Keyword::LIKE, Keyword::ILIKE]) && is_word(parser, at + 1, &[Keyword::ALL]);
    is_all.then(|| LikeAll { negated, is_ilike: is_word(parser, at, &[Keyword::ILIKE]) })
}

/// `s LIKE ALL (p, …)`: like each of them. Source: Spark's `LikeAll` and `NotLikeAll`, which are three-valued ANDs.
fn like_all(parser: &mut Parser<'_>, left: &Expr, form: LikeAll) -> Result<Expr, ParserError> {
    (0..2 + usize::from(form.negated)).for_each(|_| parser.advance_token());
    parser.expect_token(&Token::LParen)?;
    let patterns = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    let tests = patterns.into_iter().map(|pattern| {
        let (negated, any, escape_char) = (form.negated, false, None);
        let (expr, pattern) = (Box::new(left.clone()), Box::new(pattern));
        match form.is_ilike {
            true => Expr::ILike { negated, any, expr, pattern, escape_char },
            false => Expr::Like { negated, any, expr, pattern, escape_char },
        }
    });
    let all = tests.reduce(|left, right| {
        let (left, right) = (Box::new(left), Box::new(right));
        Expr::BinaryOp { left, op: BinaryOperator::And, right }
    });
    let all = all.ok_or_else(|| ParserError::ParserError("LIKE ALL needs a pattern".into()))?;
    Ok(Expr::Nested(Box::new(all)))
}

fn is_word(parser: &Parser<'_>, at: usize, keywords: &[Keyword]) -> bool {
    match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) => word.quote_style.is_none() && keywords.contains(&word.keyword),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::parse::parse_query;

    #[test]
    fn forms_that_only_spark_has() {
        for (sql, parsed) in [
            ("SELECT a DIV b + 1 = c", "SELECT a DIV b + 1 = c"),
            ("SELECT s LIKE ALL ('a%', p)", "SELECT (s LIKE 'a%' AND s LIKE p)"),
            ("SELECT s NOT ILIKE ALL ('a') OR b", "SELECT (s NOT ILIKE 'a') OR b"),
            ("SELECT trim(LEADING FROM s)", "SELECT TRIM(LEADING s)"),
            ("SELECT struct(*), struct(1, e.*, a AS b)", "SELECT struct(*), struct(1, e.*, a AS b)"),
            ("SELECT struct(a * 2, f(*))", "SELECT STRUCT(a * 2, f(*))"),
        ] {
            assert_eq!(parse_query(sql).unwrap().to_string(), parsed, "{sql}");
        }
    }
}
