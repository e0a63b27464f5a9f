//! `LIKE` and `ILIKE`: `%` for any characters, `_` for one, an escape character before either.
//!
//! Where it stands: functions to which the syntax rewrite sends the operators.
//!
//! Rule of its life: plain shapes (equal, prefix, suffix, inside) are compared directly; all else becomes an expression.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use regex::Regex;

use super::super::column::bools;
use super::super::function::{Call, Function, some};
use super::super::kind::Kind;
use super::super::memo::Memo;
use super::super::strings::edit::write_lower;
use super::pattern::cached;

/// One piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    One,
    Many,
}

/// A compiled pattern.
#[derive(Debug, Clone)]
enum Matcher {
    Equal(String),
    Prefix(String),
    Suffix(String),
    Inside(String),
    Expression(Arc<Regex>),
}

impl Matcher {
    fn compile(pattern: &str, escape: char) -> Result<Self> {
        let pieces = pieces(pattern, escape)?;
        Ok(match pieces.as_slice() {
            [] => Self::Equal(String::new()),
            [Piece::Text(text)] => Self::Equal(text.clone()),
            [Piece::Text(text), Piece::Many] => Self::Prefix(text.clone()),
            [Piece::Many, Piece::Text(text)] => Self::Suffix(text.clone()),
            [Piece::Many, Piece::Text(text), Piece::Many] => Self::Inside(text.clone()),
            [Piece::Many] => Self::Inside(String::new()),
            _ => {
                let mut expression = String::from("(?s)^");
                for piece in &pieces {
                    match piece {
                        Piece::Text(text) => expression.push_str(&regex::escape(text)),
                        Piece::One => expression.push('.'),
                        Piece::Many => expression.push_str(".*"),
                    }
                }
                expression.push('$');
                Self::Expression(cached(&format!("like {expression}"), &expression, |e| Ok(e.to_string()))?)
            }
        })
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Equal(whole) => text == whole,
            Self::Prefix(part) => text.starts_with(part.as_str()),
            Self::Suffix(part) => text.ends_with(part.as_str()),
            Self::Inside(part) => text.contains(part.as_str()),
            Self::Expression(regex) => regex.is_match(text),
        }
    }
}

fn pieces(pattern: &str, escape: char) -> Result<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let literal = if c == escape {
            match chars.next() {
                Some(next) if next == '%' || next == '_' || next == escape => next,
                Some(_) => {
                    return exec_err!(
                        "[INVALID_FORMAT.ESC_IN_THE_MIDDLE] the escape character '{escape}' of the pattern '{pattern}' must \
                         stand before '%', '_' or itself"
                    );
                }
                None => {
                    return exec_err!(
                        "[INVALID_FORMAT.ESC_AT_THE_END] the pattern '{pattern}' ends with the escape character '{escape}'"
                    );
                }
            }
        } else {
            match c {
                '%' => {
                    if pieces.last() != Some(&Piece::Many) {
                        pieces.push(Piece::Many);
                    }
                    continue;
                }
                '_' => {
                    pieces.push(Piece::One);
                    continue;
                }
                literal => literal,
            }
        };
        match pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(literal),
            _ => pieces.push(Piece::Text(literal.to_string())),
        }
    }
    Ok(pieces)
}

fn escape_of(text: &str) -> Result<char> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => exec_err!("[INVALID_ESCAPE_CHAR] the escape of LIKE must be one character, not '{text}'"),
    }
}

fn like(call: &Call<'_>, any_case: bool) -> Result<ArrayRef> {
    let (source, patterns) = (call.text(0)?, call.text(1)?);
    let escapes = if call.has(2) { Some(call.text(2)?) } else { None };
    let mut memo: Memo<Matcher> = Memo::new();
    let mut last_escape = '\\';
    let (mut lower_text, mut lower_pattern) = (String::new(), String::new());
    bools(call.rows, |row| {
        let (mut text, mut pattern) = (some!(source.get(row)), some!(patterns.get(row)));
        let escape = match &escapes {
            Some(escapes) => escape_of(some!(escapes.get(row)))?,
            None => '\\',
        };
        if escape != last_escape {
            (memo, last_escape) = (Memo::new(), escape);
        }
        if any_case {
            lower_text.clear();
            lower_pattern.clear();
            write_lower(text, &mut lower_text);
            write_lower(pattern, &mut lower_pattern);
            (text, pattern) = (&lower_text, &lower_pattern);
        }
        Ok(Some(memo.get(pattern, |p| Matcher::compile(p, escape))?.matches(text)))
    })
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    let arguments = [Kind::Text, Kind::Text, Kind::Text];
    vec![
        Function::new("like", &arguments, DataType::Boolean, |c| like(c, false)).fails_on(&[1, 2]).optional(1),
        Function::new("ilike", &arguments, DataType::Boolean, |c| like(c, true)).fails_on(&[1, 2]).optional(1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(pattern: &str, text: &str) -> bool {
        Matcher::compile(pattern, '\\').unwrap().matches(text)
    }

    #[test]
    fn wildcards_count_characters_and_cross_lines() {
        assert!(test("%é_", "cafés"));
        assert!(test(r"10\%%", "10%off"));
        assert!(!test(r"10\%%", "10x"));
        assert!(test("a%b_", "a\n\nbx"));
        assert!(test("", ""));
        assert!(!test("", "a"));
        assert!(test("%", ""));
        assert!(!test("_", ""));
        assert!(test("日_語", "日本語"));
        assert!(test("a.c", "a.c") && !test("a.c", "abc"));
    }

    #[test]
    fn an_escape_needs_something_to_escape() {
        assert!(Matcher::compile(r"a\", '\\').unwrap_err().to_string().contains("ESC_AT_THE_END"));
        assert!(Matcher::compile(r"a\b", '\\').unwrap_err().to_string().contains("ESC_IN_THE_MIDDLE"));
        assert!(Matcher::compile("a#%", '#').unwrap().matches("a%"));
    }
}
