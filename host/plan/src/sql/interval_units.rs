//! Intervals of several units, spelled so that the parser has a form for them.
//!
//! ```text
//!   INTERVAL 5 MINUTES 3 SECONDS   →  INTERVAL '5 MINUTES 3 SECONDS'
//! ```
//!
//! Works on tokens, as [`table_arguments`](super::table_arguments) does. An interval of one unit is the parser's own.

use super::table_arguments::{is_keyword, is_space};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The units that intervals have, without the s of the plural.
const UNITS: [&str; 9] = ["year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"];

/// The tokens with every interval of several units spelled out.
pub(super) fn spell_out(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        out.push(token.clone());
        at += 1;
        if is_keyword(token, Keyword::INTERVAL)
            && let Some((text, end)) = amounts(&tokens, at)
        {
            out.push(TokenWithSpan { token: Token::SingleQuotedString(text), span: tokens[at].span });
            at = end;
        }
    }
    out
}

/// The text of two amounts or more that stand from `start` on, and where they end.
fn amounts(tokens: &[TokenWithSpan], start: usize) -> Option<(String, usize)> {
    let mut found = Vec::new();
    let mut end = start;
    while let Some((text, behind)) = amount(tokens, end) {
        found.push(text);
        end = behind;
    }
    (found.len() > 1).then(|| (found.join(" "), end))
}

/// A number and its unit, and where they end.
fn amount(tokens: &[TokenWithSpan], start: usize) -> Option<(String, usize)> {
    let mut words = tokens.iter().enumerate().skip(start).filter(|(_, token)| !is_space(token));
    let (_, mut number) = words.next()?;
    let sign = match number.token {
        Token::Minus => "-",
        Token::Plus => "+",
        _ => "",
    };
    if !sign.is_empty() {
        number = words.next()?.1;
    }
    let digits = match &number.token {
        Token::Number(digits, false) => digits,
        Token::SingleQuotedString(digits) => digits,
        _ => return None,
    };
    let (at, unit) = words.next()?;
    let Token::Word(unit) = &unit.token else { return None };
    let name = unit.value.to_ascii_lowercase();
    let is_unit = unit.quote_style.is_none() && UNITS.contains(&name.strip_suffix('s').unwrap_or(&name));
    is_unit.then(|| (format!("{sign}{} {}", digits.trim(), unit.value), at + 1))
}

#[cfg(test)]
mod tests {
    use crate::sql::parse::parse_query;

    #[test]
    fn several_units_become_one_text_and_one_stays() {
        for (sql, spelled) in [
            ("SELECT INTERVAL 5 MINUTE 3 SECOND", "SELECT INTERVAL '5 MINUTE 3 SECOND'"),
            ("SELECT ts + INTERVAL -1 DAY '2' HOURS - x", "SELECT ts + INTERVAL '-1 DAY 2 HOURS' - x"),
            ("SELECT INTERVAL 1 YEAR\n 2 MONTHS AS a", "SELECT INTERVAL '1 YEAR 2 MONTHS' AS a"),
            ("SELECT INTERVAL 1 DAY AS a", "SELECT INTERVAL 1 DAY AS a"),
            ("SELECT INTERVAL '1-2' YEAR TO MONTH", "SELECT INTERVAL '1-2' YEAR TO MONTH"),
            ("SELECT INTERVAL '1 day 2 hours'", "SELECT INTERVAL '1 day 2 hours'"),
        ] {
            assert_eq!(parse_query(sql).unwrap().to_string(), spelled, "{sql}");
        }
    }
}
