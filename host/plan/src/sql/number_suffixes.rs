//! Numbers with Spark's suffixes, spelled so that the parser has a form for them.
//!
//! ```text
//!   3D   →  CAST('3' AS DOUBLE)           1.5BD  →  CAST('1.5' AS DECIMAL(2, 1))
//!   3F   →  CAST('3' AS FLOAT)            5S     →  CAST('5' AS SMALLINT)           5Y  →  CAST('5' AS TINYINT)
//! ```
//!
//! Works on tokens, as [`table_arguments`](super::table_arguments) does: a suffix stands right behind its number. `5L` is the
//! parser's own.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The tokens with every suffix spelled out.
pub(super) fn spell_out(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let spelled = out.last().and_then(|number| typed(number, &token));
        match spelled {
            Some(spelled) => {
                out.pop();
                out.extend(spelled);
            }
            None => out.push(token),
        }
    }
    out
}

/// The number with a type, if what follows it is a suffix.
fn typed(number: &TokenWithSpan, suffix: &TokenWithSpan) -> Option<Vec<TokenWithSpan>> {
    let (Token::Number(digits, false), Token::Word(word)) = (&number.token, &suffix.token) else { return None };
    if number.span.end != suffix.span.start || word.quote_style.is_some() {
        return None;
    }
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    let mut data_type = match word.value.to_ascii_uppercase().as_str() {
        "D" => vec![Token::make_keyword("DOUBLE")],
        "F" => vec![Token::make_keyword("FLOAT")],
        "S" if is_whole => vec![Token::make_keyword("SMALLINT")],
        "Y" if is_whole => vec![Token::make_keyword("TINYINT")],
        "BD" => decimal(digits)?,
        _ => return None,
    };
    let mut spelled = vec![
        Token::make_keyword("CAST"),
        Token::LParen,
        Token::SingleQuotedString(digits.clone()),
        Token::make_keyword("AS"),
    ];
    spelled.append(&mut data_type);
    spelled.push(Token::RParen);
    Some(spelled.into_iter().map(|token| TokenWithSpan { token, span: number.span }).collect())
}

/// The smallest DECIMAL that holds such a number; `None` with an exponent.
fn decimal(digits: &str) -> Option<Vec<Token>> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if !(whole.bytes().chain(fraction.bytes())).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = fraction.len();
    let precision = (whole.trim_start_matches('0').len() + scale).max(1);
    let number = |value: usize| Token::Number(value.to_string(), false);
    let parts = [Token::LParen, number(precision), Token::Comma, number(scale), Token::RParen];
    Some(std::iter::once(Token::make_keyword("DECIMAL")).chain(parts).collect())
}

#[cfg(test)]
mod tests {
    use crate::sql::parse::parse_query;

    #[test]
    fn a_suffix_is_the_type_of_its_number() {
        for (sql, spelled) in [
            ("SELECT 3D", "SELECT CAST('3' AS DOUBLE)"),
            ("SELECT -1.5e3d + x", "SELECT -CAST('1.5e3' AS DOUBLE) + x"),
            ("SELECT 3f, 5S, 5y", "SELECT CAST('3' AS FLOAT), CAST('5' AS SMALLINT), CAST('5' AS TINYINT)"),
            ("SELECT 12.50BD, 0BD", "SELECT CAST('12.50' AS DECIMAL(4,2)), CAST('0' AS DECIMAL(1,0))"),
            ("SELECT pmod(d,3D)", "SELECT pmod(d, CAST('3' AS DOUBLE))"),
            ("SELECT 3 D, 4 `F`", "SELECT 3 AS D, 4 AS `F`"),
        ] {
            assert_eq!(parse_query(sql).unwrap().to_string(), spelled, "{sql}");
        }
    }
}
