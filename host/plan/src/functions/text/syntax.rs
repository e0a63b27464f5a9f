//! Forms of Spark's SQL that the planner reads otherwise, rewritten to plain function calls before it plans.
//!
//! Where it stands: between the parser and the planner; the front end calls [`rewrite_ast_expr`] for every expression of
//! a statement, inner ones first or last alike.
//!
//! Rule of its life: a rewritten expression is left alone when it is met again; what is not known here stays as it is.
//!
//! Rewritten: `LIKE`, `ILIKE` (also `ANY`), `RLIKE`/`REGEXP`, `TRIM(… FROM …)`, `POSITION(… IN …)`, `DATE'…'`,
//! `TIMESTAMP'…'`, intervals `DAY TO SECOND` and `YEAR TO MONTH`, `unix_timestamp()`, the units of `timestampadd` and its kin,
//! `equal_null`, `decode` with more than two arguments.

use crate::sql::call::call;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Interval, TimezoneInfo, TrimWhereField, TypedString, UnaryOperator, Value, ValueWithSpan,
};

use super::time::convert::{DATE_LITERAL, TIMESTAMP_LITERAL};

/// Functions whose first of three arguments is a unit, and what they become.
const UNIT_FUNCTIONS: [(&str, &str); 7] = [
    ("timestampadd", "timestampadd"),
    ("dateadd", "timestampadd"),
    ("date_add", "timestampadd"),
    ("timestampdiff", "timestampdiff"),
    ("datediff", "timestampdiff"),
    ("date_diff", "timestampdiff"),
    ("timediff", "timestampdiff"),
];

fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_string()).with_empty_span())
}

fn negate(negated: bool, expr: Expr) -> Expr {
    if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expr))) } } else { expr }
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.with_empty_span()))
}

/// `expr LIKE pattern`, or with ANY a pattern of the list; negated, a pattern of the list that it is not like.
fn like(negated: bool, name: &str, expr: Expr, pattern: Expr, any: bool, escape: Option<&ValueWithSpan>) -> Expr {
    let one = |pattern| {
        let mut arguments = vec![expr.clone(), pattern];
        arguments.extend(escape.map(|e| Expr::Value(e.clone())));
        negate(negated, call(name, arguments))
    };
    let patterns = match pattern {
        Expr::Tuple(patterns) if any && !patterns.is_empty() => patterns,
        Expr::Nested(pattern) if any => vec![*pattern],
        pattern => vec![pattern],
    };
    let mut tests = patterns.into_iter().map(one);
    let Some(first) = tests.next() else { return call(name, vec![expr.clone()]) };
    let all = tests.fold(first, |left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::Or,
        right: Box::new(right),
    });
    if any { Expr::Nested(Box::new(all)) } else { all }
}

/// Rewrites one expression in place; its parts are met on their own.
pub(crate) fn rewrite_ast_expr(expr: &mut Expr) {
    let rewritten = match expr {
        Expr::Like { negated, any, expr, pattern, escape_char } => {
            like(*negated, "like", take(expr), take(pattern), *any, escape_char.as_ref())
        }
        Expr::ILike { negated, any, expr, pattern, escape_char } => {
            like(*negated, "ilike", take(expr), take(pattern), *any, escape_char.as_ref())
        }
        Expr::RLike { negated, expr, pattern, .. } => negate(*negated, call("rlike", vec![take(expr), take(pattern)])),
        Expr::Trim { trim_where, trim_what, expr, trim_characters } => {
            let source = take(expr);
            match (trim_what, trim_characters.as_deref_mut()) {
                // TRIM(characters, source): both given as plain arguments.
                (None, Some([other])) => call("trim", vec![source, take(other)]),
                (characters, _) => {
                    let name = match trim_where {
                        Some(TrimWhereField::Leading) => "ltrim",
                        Some(TrimWhereField::Trailing) => "rtrim",
                        _ => "trim",
                    };
                    match characters {
                        Some(characters) => call(name, vec![take(characters), source]),
                        None => call(name, vec![source]),
                    }
                }
            }
        }
        Expr::Position { expr, r#in } => call("locate", vec![take(expr), take(r#in)]),
        Expr::TypedString(TypedString { data_type, value, .. }) => {
            let name = match data_type {
                DataType::Date => DATE_LITERAL,
                DataType::Timestamp(None, TimezoneInfo::None) => TIMESTAMP_LITERAL,
                _ => return,
            };
            let value = std::mem::replace(value, Value::Null.with_empty_span());
            call(name, vec![Expr::Value(value)])
        }
        Expr::Interval(interval) => {
            if let Some(plain) = plain_interval(interval) {
                *interval = Interval {
                    value: Box::new(text(&plain)),
                    leading_field: None,
                    leading_precision: None,
                    last_field: None,
                    fractional_seconds_precision: None,
                };
            }
            return;
        }
        Expr::Function(function) => match rewritten_function(function) {
            Some(rewritten) => rewritten,
            None => return,
        },
        _ => return,
    };
    *expr = rewritten;
}

/// `'1 02:03:04' DAY TO SECOND` or `'1-2' YEAR TO MONTH` as numbers with units; `None` for every other interval.
fn plain_interval(interval: &Interval) -> Option<String> {
    let last = interval.last_field.as_ref()?;
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = interval.value.as_ref() else {
        return None;
    };
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let units = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
    let place = |field: &DateTimeField| {
        let name = field.to_string().to_ascii_uppercase();
        units.iter().position(|unit| name.trim_end_matches('S') == *unit)
    };
    let (first, last) = (place(interval.leading_field.as_ref()?)?, place(last)?);
    if first >= last || (first < 2) != (last < 2) {
        return None;
    }
    let parts: Vec<&str> = digits.split(if first < 2 { ['-', '-', '-'] } else { [' ', ':', ':'] }).collect();
    let well_formed = |part: &&str| {
        let (whole, fraction) = part.split_once('.').unwrap_or((part, "0"));
        !whole.is_empty() && whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
    };
    if parts.len() != last - first + 1 || !parts.iter().all(well_formed) {
        return None;
    }
    let named = parts.iter().zip(&units[first..=last]).map(|(part, unit)| format!("{sign}{part} {unit}"));
    Some(named.collect::<Vec<_>>().join(" "))
}

/// The plain arguments of a call of an unqualified function.
fn plain_arguments(function: &Function) -> Option<(String, Vec<&Expr>)> {
    let [part] = function.name.0.as_slice() else { return None };
    let name = part.as_ident()?.value.to_ascii_lowercase();
    let FunctionArguments::List(list) = &function.args else { return None };
    let arguments: Option<Vec<&Expr>> = list
        .args
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect();
    Some((name, arguments?))
}

fn rewritten_function(function: &Function) -> Option<Expr> {
    let (name, arguments) = plain_arguments(function)?;
    if let [Expr::Identifier(unit), second, third] = arguments.as_slice()
        && unit.quote_style.is_none()
        && let Some((_, target)) = UNIT_FUNCTIONS.iter().find(|(known, _)| *known == name)
    {
        return Some(call(target, vec![text(&unit.value), (*second).clone(), (*third).clone()]));
    }
    if name == "unix_timestamp" && arguments.is_empty() {
        return Some(call("unix_timestamp", vec![call("current_timestamp", Vec::new())]));
    }
    if name == "equal_null"
        && let [left, right] = arguments.as_slice()
    {
        return Some(same(left, right));
    }
    if name == "decode" && arguments.len() > 2 {
        return Some(choose(&arguments));
    }
    None
}

/// Whether two values are equal, where NULL equals NULL.
fn same(left: &Expr, right: &Expr) -> Expr {
    let nested = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    Expr::IsNotDistinctFrom(nested(left), nested(right))
}

/// `decode(expr, search, result, …, default)`: the result of the first search that equals, where NULL equals NULL.
fn choose(arguments: &[&Expr]) -> Expr {
    let (subject, rest) = (arguments[0], &arguments[1..]);
    let pairs = rest.chunks_exact(2);
    let otherwise = pairs.remainder().first().map(|e| Box::new((*e).clone()));
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: pairs.map(|pair| CaseWhen { condition: same(subject, pair[0]), result: pair[1].clone() }).collect(),
        else_result: otherwise,
    }
}

/// Applies Spark's backslash escapes, and doubled quotes, to a quoted literal as it stands in the text of the query.
///
/// Must meet every literal exactly once. `\%` and `\_` keep their backslash, for LIKE.
pub(crate) fn unescape_literal(expr: &mut Expr) {
    let (text, quotes) = match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => (text, "''"),
        Expr::Value(ValueWithSpan { value: Value::DoubleQuotedString(text), .. }) => (text, "\"\""),
        _ => return,
    };
    if text.contains(quotes) {
        *text = text.replace(quotes, &quotes[1..]);
    }
    if text.contains('\\') {
        *text = unescaped(text);
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else {
            out.push('\\');
            break;
        };
        if let Some((code, length)) = numeric_escape(rest) {
            out.push(code);
            rest = &rest[length..];
            continue;
        }
        match c {
            '0' => out.push('\0'),
            'b' => out.push('\u{8}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'Z' => out.push('\u{1a}'),
            '%' | '_' => {
                out.push('\\');
                out.push(c);
            }
            other => out.push(other),
        }
        rest = &rest[c.len_utf8()..];
    }
    out.push_str(rest);
    out
}

/// `uXXXX`, `UXXXXXXXX` or three octal digits: the character and the length of its spelling.
fn numeric_escape(rest: &str) -> Option<(char, usize)> {
    let (start, length, radix) = match rest.as_bytes().first()? {
        b'u' => (1, 5, 16),
        b'U' => (1, 9, 16),
        b'0'..=b'1' => (0, 3, 8),
        _ => return None,
    };
    let digits = rest.get(start..length)?;
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some((char::from_u32(u32::from_str_radix(digits, radix).ok()?)?, length))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn rewritten(sql: &str) -> String {
        let mut expr = Parser::new(&GenericDialect {}).try_with_sql(sql).unwrap().parse_expr().unwrap();
        rewrite_ast_expr(&mut expr);
        expr.to_string()
    }

    #[test]
    fn operators_and_special_forms_become_calls() {
        for (sql, call) in [
            ("s LIKE 'a%'", "like(s, 'a%')"),
            ("s NOT LIKE 'a#%' ESCAPE '#'", "NOT (like(s, 'a#%', '#'))"),
            ("s ILIKE 'a'", "ilike(s, 'a')"),
            ("s RLIKE 'a'", "rlike(s, 'a')"),
            ("s NOT REGEXP 'a'", "NOT (rlike(s, 'a'))"),
            ("TRIM(LEADING 'a' FROM s)", "ltrim('a', s)"),
            ("TRIM(BOTH 'x' FROM s)", "trim('x', s)"),
            ("TRIM(s)", "trim(s)"),
            ("POSITION('a' IN s)", "locate('a', s)"),
            ("DATE '2024-01-01'", "date_literal('2024-01-01')"),
            ("TIMESTAMP '2024-01-01 10:00:00'", "timestamp_literal('2024-01-01 10:00:00')"),
            ("timestampadd(MONTH, 1, ts)", "timestampadd('MONTH', 1, ts)"),
            ("DATEDIFF(day, a, b)", "timestampdiff('day', a, b)"),
            ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '1 DAY 02 HOUR 03 MINUTE 04.5 SECOND'"),
            ("INTERVAL '-1-2' YEAR TO MONTH", "INTERVAL '-1 YEAR -2 MONTH'"),
            ("INTERVAL '1' DAY", "INTERVAL '1' DAY"),
            ("unix_timestamp()", "unix_timestamp(current_timestamp())"),
            ("datediff(a, b)", "datediff(a, b)"),
            ("date_add(d, 1)", "date_add(d, 1)"),
            ("decode(x, 'UTF-8')", "decode(x, 'UTF-8')"),
        ] {
            assert_eq!(rewritten(sql), call, "{sql}");
        }
        assert!(rewritten("decode(x, 1, 'a', 'b')").contains("IS NOT DISTINCT FROM"));
    }

    #[test]
    fn escapes_are_resolved_except_before_the_wildcards() {
        for (text, value) in [
            (r"\\d", r"\d"),
            (r"10\%%", r"10\%%"),
            (r"a\tb\n", "a\tb\n"),
            (r"\u65e5\101\q", "日Aq"),
            ("\\", "\\"),
            ("é\\é", "éé"),
        ] {
            assert_eq!(unescaped(text), value, "{text}");
        }
    }
}
