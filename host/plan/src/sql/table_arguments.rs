//! Spark's table arguments, spelled so that the parser has a form for them.
//!
//! ```text
//!   sessions(TABLE(clicks) PARTITION BY user)
//!     →  sessions((SELECT * FROM clicks), __partition_by(user))
//!   totals(TABLE(SELECT …) PARTITION BY (a, b), initial => TABLE(balances))
//!     →  totals((SELECT …), __partition_by((a, b)), initial => (SELECT * FROM balances))
//! ```
//!
//! Works on tokens, before anything is parsed: `TABLE(` stands for a table argument where it is the first argument of a
//! call or follows `=>`. Tokens keep their places, so messages point into the text as it was written.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The call that carries what stands behind PARTITION BY.
pub(super) const PARTITION_BY: &str = "__partition_by";

/// The tokens with every table argument spelled out.
pub(super) fn spell_out(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        match table_argument(tokens, at, &out) {
            Some(argument) => at = argument.spell_out(tokens, &mut out),
            None => {
                out.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    out
}

/// A table argument: where its parentheses are, and what it is partitioned by.
struct TableArgument {
    open: usize,
    close: usize,
    partition_by: Option<std::ops::Range<usize>>,
}

impl TableArgument {
    /// Appends the argument; answers where the rest begins.
    fn spell_out(&self, tokens: &[TokenWithSpan], out: &mut Vec<TokenWithSpan>) -> usize {
        let place = &tokens[self.open];
        let push = |token: Token, out: &mut Vec<TokenWithSpan>| {
            out.push(TokenWithSpan { token, span: place.span });
            out.push(TokenWithSpan { token: space(), span: place.span });
        };
        out.push(place.clone());
        let inner = &tokens[self.open + 1..self.close];
        let first = inner.iter().find(|token| !is_space(token));
        let is_query = first.is_some_and(|token| match &token.token {
            Token::LParen => true,
            Token::Word(word) => matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES),
            _ => false,
        });
        if !is_query {
            push(Token::make_keyword("SELECT"), out);
            push(Token::Mul, out);
            push(Token::make_keyword("FROM"), out);
        }
        out.extend(spell_out(inner));
        out.push(tokens[self.close].clone());
        let Some(keys) = &self.partition_by else { return self.close + 1 };
        push(Token::Comma, out);
        push(Token::make_word(PARTITION_BY, None), out);
        push(Token::LParen, out);
        out.extend(spell_out(&tokens[keys.clone()]));
        push(Token::RParen, out);
        keys.end
    }
}

/// The table argument that begins at `at`, if one does; `before` are the tokens in front of it.
fn table_argument(tokens: &[TokenWithSpan], at: usize, before: &[TokenWithSpan]) -> Option<TableArgument> {
    if !is_keyword(&tokens[at], Keyword::TABLE) {
        return None;
    }
    let mut before = before.iter().rev().filter(|token| !is_space(token));
    match &before.next()?.token {
        Token::RArrow => {}
        Token::LParen => match &before.next()?.token {
            Token::Word(word) if word.keyword == Keyword::NoKeyword || word.quote_style.is_some() => {}
            // Names of functions may be words of the language elsewhere.
            Token::Word(word) if !is_clause(word) => {}
            _ => return None,
        },
        _ => return None,
    }
    let open = next(tokens, at + 1).filter(|open| tokens[*open].token == Token::LParen)?;
    let close = closing(tokens, open)?;
    let partition_by = next(tokens, close + 1)
        .filter(|word| {
            is_keyword(&tokens[*word], Keyword::PARTITION) || is_keyword(&tokens[*word], Keyword::DISTRIBUTE)
        })
        .and_then(|word| next(tokens, word + 1))
        .filter(|word| is_keyword(&tokens[*word], Keyword::BY))
        .map(|word| word + 1..end_of_keys(tokens, word + 1));
    Some(TableArgument { open, close, partition_by })
}

/// Whether a word in front of a parenthesis is no name of a function.
fn is_clause(word: &Word) -> bool {
    matches!(
        word.keyword,
        Keyword::FROM
            | Keyword::JOIN
            | Keyword::AS
            | Keyword::IN
            | Keyword::ON
            | Keyword::WHERE
            | Keyword::SELECT
            | Keyword::LATERAL
    )
}

/// Where the keys end: at the parenthesis of the call, at ORDER BY, or before the next named argument.
fn end_of_keys(tokens: &[TokenWithSpan], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return at,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => {
                let arrow = next(tokens, at + 1).and_then(|name| next(tokens, name + 1));
                if arrow.is_some_and(|arrow| tokens[arrow].token == Token::RArrow) {
                    return at;
                }
            }
            Token::Word(word)
                if depth == 0 && matches!(word.keyword, Keyword::ORDER | Keyword::SORT | Keyword::WITH) =>
            {
                return at;
            }
            _ => {}
        }
    }
    tokens.len()
}

/// The parenthesis that closes the one at `open`.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return Some(at),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The first token from `at` that is no white space.
fn next(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    (at..tokens.len()).find(|at| !is_space(&tokens[*at]))
}

pub(super) fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

fn space() -> Token {
    Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space)
}

pub(super) fn is_keyword(token: &TokenWithSpan, keyword: Keyword) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::dialect::StreamingSqlDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    fn spelled(sql: &str) -> String {
        let dialect = StreamingSqlDialect::default();
        let tokens = Tokenizer::new(&dialect, sql).tokenize_with_location().unwrap();
        let text: String = spell_out(&tokens).iter().map(|token| token.token.to_string()).collect();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn table_arguments_become_subqueries_and_calls() {
        assert_eq!(
            spelled("SELECT * FROM f(TABLE(clicks) PARTITION BY user, day) WHERE x > 1"),
            "SELECT * FROM f((SELECT * FROM clicks), __partition_by ( user, day) ) WHERE x > 1"
        );
        assert_eq!(
            spelled(
                "f( table (WITH a AS (SELECT 1) SELECT * FROM a) DISTRIBUTE BY (x, y), initial => TABLE(b), event_time => 'ts')"
            ),
            "f( (WITH a AS (SELECT 1) SELECT * FROM a), __partition_by ( (x, y)) , initial => (SELECT * FROM b), event_time => 'ts')"
        );
        assert_eq!(
            spelled("f(TABLE(SELECT * FROM g(TABLE(t) PARTITION BY a)) PARTITION BY b)"),
            "f((SELECT * FROM g((SELECT * FROM t), __partition_by ( a) )), __partition_by ( b) )"
        );
    }

    #[test]
    fn nothing_else_is_touched() {
        for sql in [
            "SELECT table FROM t",
            "SELECT * FROM TABLE(f(1))",
            "SELECT sum(x) OVER (PARTITION BY y) FROM t",
            "SELECT * FROM (TABLE(f(1)))",
            "f(TABLE(",
            "TABLE",
        ] {
            assert_eq!(spelled(sql), sql.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
}
