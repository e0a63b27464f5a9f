//! What a column is called that the query gives no name: as Spark calls it.
//!
//! ```text
//! SELECT window.start, count(*), sum(n + 1) FROM …
//!     →  SELECT window.start AS `start`, count(*) AS `count(1)`, sum(n + 1) AS `sum((n + 1))` FROM …
//! ```
//!
//! It is the text of the expression in Spark's spelling: operators in parentheses, strings without quotes, arguments that
//! were left out filled in. A field of a struct is called after the field, and names keep the letters of the query where
//! they differ from the column's: `SELECT Word` gives `Word`. Source: Spark's `ResolveAliases`, `toPrettySQL`, and the names
//! that Spark 4.3 gives.
//!
//! Where Spark would call two columns of one SELECT the same, and for expressions whose spelling is not known here, the
//! planner's own name stays.

use super::names::{Names, last_part, relation_name};
use super::rewrite::{function_name, is_generator_name};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, DateTimeField, DuplicateTreatment,
    ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select, SelectItem,
    Subscript, TableFactor, TableWithJoins, TrimWhereField, UnaryOperator, Value, VisitMut, VisitorMut,
};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Names the columns of every SELECT of the query, which is as it was written; `names` are those it may use.
/// `table_functions` are the names of the plugins' table functions, in lower case.
pub(crate) fn give(query: &mut Query, names: &Names, table_functions: &BTreeSet<String>) {
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut Selects { names, table_functions });
}

struct Selects<'a> {
    names: &'a Names,
    table_functions: &'a BTreeSet<String>,
}

impl VisitorMut for Selects<'_> {
    type Break = Infallible;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let naming = Naming { names: self.names, relations: relations(select) };
        let names: Vec<Option<String>> = select.projection.iter().map(|item| self.name(item, &naming)).collect();
        let taken: Vec<String> =
            select.projection.iter().zip(&names).filter_map(|(item, name)| own(item, name)).collect();
        for (item, name) in select.projection.iter_mut().zip(names) {
            let Some(name) = name else { continue };
            let is_taken = taken.iter().filter(|taken| taken.eq_ignore_ascii_case(&name)).count() > 1;
            if let SelectItem::UnnamedExpr(expr) = item
                && !is_taken
            {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('`', name) };
            }
        }
        ControlFlow::Continue(())
    }
}

impl Selects<'_> {
    /// The name of a column that has none and needs one.
    fn name(&self, item: &SelectItem, naming: &Naming<'_>) -> Option<String> {
        let SelectItem::UnnamedExpr(expr) = item else { return None };
        if let Expr::Function(call) = expr {
            let name = function_name(call);
            // These become relations, whose columns have names.
            if is_generator_name(&name) || name == "session_window" || self.table_functions.contains(&name) {
                return None;
            }
        }
        naming.column(expr)
    }
}

/// What a column will be called, whoever names it.
fn own(item: &SelectItem, given: &Option<String>) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(Expr::Identifier(ident)) => Some(ident.value.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) if given.is_none() => {
            parts.last().map(|part| part.value.clone())
        }
        _ => given.clone(),
    }
}

/// The names by which the columns of a SELECT may be qualified, in lower case.
fn relations(select: &Select) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    select.from.iter().for_each(|table| add_relations(table, &mut names));
    names.extend(select.lateral_views.iter().filter_map(|view| last_part(&view.lateral_view_name)).map(lower));
    names
}

fn add_relations(table: &TableWithJoins, names: &mut BTreeSet<String>) {
    for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => add_relations(table_with_joins, names),
            factor => names.extend(relation_name(factor).as_ref().and_then(last_part).map(lower)),
        }
    }
}

fn lower(ident: &Ident) -> String {
    ident.value.to_lowercase()
}

struct Naming<'a> {
    names: &'a Names,
    relations: BTreeSet<String>,
}

impl Naming<'_> {
    /// The name of a column of the result; `None` when the planner's own is right, or Spark's is not known.
    fn column(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Identifier(ident) => self.respelled(ident),
            Expr::CompoundIdentifier(parts) => match self.path(parts) {
                [column] => self.respelled(column),
                path => path.last().map(|part| part.value.clone()),
            },
            Expr::Nested(inner) => self.column(inner),
            Expr::Cast { expr: inner, .. } => match inner.as_ref() {
                Expr::Identifier(ident) => Some(ident.value.clone()),
                Expr::CompoundIdentifier(parts) => parts.last().map(|part| part.value.clone()),
                _ => self.text(expr),
            },
            _ => self.text(expr),
        }
    }

    /// A column's name as the query spells it, if it is declared with other letters.
    fn respelled(&self, ident: &Ident) -> Option<String> {
        let declared = self.names.declared(&ident.value)?;
        (declared != ident.value).then(|| ident.value.clone())
    }

    /// The parts of a name behind the relation's.
    fn path<'a>(&self, parts: &'a [Ident]) -> &'a [Ident] {
        match parts {
            [relation, rest @ ..] if !rest.is_empty() && self.relations.contains(&lower(relation)) => rest,
            parts => parts,
        }
    }

    /// An expression as Spark writes it.
    fn text(&self, expr: &Expr) -> Option<String> {
        let not = |negated: bool, text: String| if negated { format!("(NOT {text})") } else { text };
        Some(match expr {
            Expr::Identifier(ident) => ident.value.clone(),
            Expr::CompoundIdentifier(parts) => {
                self.path(parts).iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".")
            }
            Expr::Nested(inner) => self.text(inner)?,
            Expr::Value(value) => literal(&value.value)?,
            Expr::UnaryOp { op, expr } => self.unary(*op, expr)?,
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right)?,
            Expr::IsNull(inner) => format!("({} IS NULL)", self.text(inner)?),
            Expr::IsNotNull(inner) => format!("({} IS NOT NULL)", self.text(inner)?),
            Expr::IsNotDistinctFrom(left, right) => format!("({} <=> {})", self.text(left)?, self.text(right)?),
            Expr::InList { expr, list, negated } => {
                not(*negated, format!("({} IN ({}))", self.text(expr)?, self.list(list)?))
            }
            Expr::Between { expr, negated, low, high } => {
                not(*negated, format!("between({}, {}, {})", self.text(expr)?, self.text(low)?, self.text(high)?))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                not(*negated, format!("{} LIKE {}", self.text(expr)?, self.text(pattern)?))
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                not(*negated, format!("ilike({}, {})", self.text(expr)?, self.text(pattern)?))
            }
            Expr::RLike { negated, expr, pattern, .. } => {
                not(*negated, format!("RLIKE({}, {})", self.text(expr)?, self.text(pattern)?))
            }
            Expr::Cast { kind, expr, data_type, format: None, .. } => {
                let word = match kind {
                    CastKind::Cast | CastKind::DoubleColon => "CAST",
                    CastKind::TryCast => "TRY_CAST",
                    CastKind::SafeCast => return None,
                };
                format!("{word}({} AS {})", self.text(expr)?, type_name(data_type)?)
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())?
            }
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                format!("CEIL({})", self.text(expr)?)
            }
            Expr::Floor { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                format!("FLOOR({})", self.text(expr)?)
            }
            Expr::Substring { expr, substring_from: Some(from), substring_for, shorthand, .. } => {
                let name = if *shorthand { "substr" } else { "substring" };
                let length = substring_for.as_ref().map_or(Some(i32::MAX.to_string()), |length| self.text(length))?;
                format!("{name}({}, {}, {length})", self.text(expr)?, self.text(from)?)
            }
            Expr::Trim { expr, trim_where, trim_what, trim_characters: None } => {
                self.trim(expr, *trim_where, trim_what.as_deref())?
            }
            Expr::Position { expr, r#in } => format!("locate({}, {}, 1)", self.text(expr)?, self.text(r#in)?),
            Expr::CompoundFieldAccess { root, access_chain } => {
                access_chain.iter().try_fold(self.text(root)?, |text, access| self.access(text, access))?
            }
            Expr::Function(call) => self.call(call)?,
            Expr::Struct { values, fields } if fields.is_empty() => format!("struct({})", self.list(values)?),
            _ => return None,
        })
    }

    fn list(&self, list: &[Expr]) -> Option<String> {
        Some(list.iter().map(|expr| self.text(expr)).collect::<Option<Vec<_>>>()?.join(", "))
    }

    fn unary(&self, op: UnaryOperator, expr: &Expr) -> Option<String> {
        let text = self.text(expr)?;
        Some(match op {
            UnaryOperator::Minus if matches!(expr, Expr::Value(_)) => format!("-{text}"),
            UnaryOperator::Minus => format!("(- {text})"),
            UnaryOperator::Plus => format!("(+ {text})"),
            UnaryOperator::Not => format!("(NOT {text})"),
            UnaryOperator::BitwiseNot => format!("~{text}"),
            _ => return None,
        })
    }

    fn binary(&self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<String> {
        let (left, right) = (self.text(left)?, self.text(right)?);
        let sign = match op {
            BinaryOperator::Plus => "+",
            BinaryOperator::Minus => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::MyIntegerDivide => "div",
            BinaryOperator::Eq => "=",
            BinaryOperator::Lt => "<",
            BinaryOperator::LtEq => "<=",
            BinaryOperator::Gt => ">",
            BinaryOperator::GtEq => ">=",
            BinaryOperator::Spaceship => "<=>",
            BinaryOperator::And => "AND",
            BinaryOperator::Or => "OR",
            BinaryOperator::BitwiseAnd => "&",
            BinaryOperator::BitwiseOr => "|",
            BinaryOperator::BitwiseXor => "^",
            BinaryOperator::PGBitwiseShiftLeft => "<<",
            BinaryOperator::PGBitwiseShiftRight => ">>",
            BinaryOperator::NotEq => return Some(format!("(NOT ({left} = {right}))")),
            BinaryOperator::StringConcat => return Some(format!("concat({left}, {right})")),
            _ => return None,
        };
        Some(format!("({left} {sign} {right})"))
    }

    fn case(&self, operand: Option<&Expr>, conditions: &[CaseWhen], otherwise: Option<&Expr>) -> Option<String> {
        let mut text = "CASE".to_owned();
        for CaseWhen { condition, result } in conditions {
            let condition = match operand {
                Some(operand) => format!("({} = {})", self.text(operand)?, self.text(condition)?),
                None => self.text(condition)?,
            };
            text += &format!(" WHEN {condition} THEN {}", self.text(result)?);
        }
        if let Some(otherwise) = otherwise {
            text += &format!(" ELSE {}", self.text(otherwise)?);
        }
        Some(text + " END")
    }

    fn trim(&self, expr: &Expr, side: Option<TrimWhereField>, what: Option<&Expr>) -> Option<String> {
        let text = self.text(expr)?;
        match (side, what) {
            (None | Some(TrimWhereField::Both), None) => Some(format!("trim({text})")),
            (Some(TrimWhereField::Leading), None) => Some(format!("ltrim({text})")),
            (Some(TrimWhereField::Trailing), None) => Some(format!("rtrim({text})")),
            (Some(side), Some(what)) => Some(format!("TRIM({side} {} FROM {text})", self.text(what)?)),
            (None, Some(_)) => None,
        }
    }

    fn access(&self, text: String, access: &AccessExpr) -> Option<String> {
        match access {
            AccessExpr::Dot(field) => Some(format!("{text}.{}", self.text(field)?)),
            AccessExpr::Subscript(Subscript::Index { index }) => Some(format!("{text}[{}]", self.text(index)?)),
            AccessExpr::Subscript(_) => None,
        }
    }

    fn call(&self, call: &Function) -> Option<String> {
        let unknown = call.over.is_some()
            || !call.within_group.is_empty()
            || call.null_treatment.is_some()
            || !matches!(call.parameters, FunctionArguments::None);
        if unknown {
            return None;
        }
        let name = function_name(call);
        let mut distinct = "";
        let mut arguments = match &call.args {
            FunctionArguments::None => Vec::new(),
            FunctionArguments::Subquery(_) => return None,
            FunctionArguments::List(list) if !list.clauses.is_empty() => return None,
            FunctionArguments::List(list) => {
                if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
                    distinct = "DISTINCT ";
                }
                let star = if name == "count" { "1" } else { "*" };
                list.args.iter().map(|argument| self.argument(argument, star)).collect::<Option<Vec<_>>>()?
            }
        };
        let name = spelling(&name, &mut arguments)?;
        let mut text = format!("{name}({distinct}{})", arguments.join(", "));
        if name == "IF" {
            text = format!("({text})");
        }
        match &call.filter {
            None => Some(text),
            Some(filter) => Some(format!("{text} FILTER (WHERE {})", self.text(filter)?)),
        }
    }

    fn argument(&self, argument: &FunctionArg, star: &str) -> Option<String> {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.text(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => Some(star.to_owned()),
            _ => None,
        }
    }
}

/// A function as Spark calls it, with the arguments that it fills in or leaves out.
fn spelling<'a>(name: &'a str, arguments: &mut Vec<String>) -> Option<&'a str> {
    let filled = match (name, arguments.len()) {
        ("round" | "bround", 1) => Some("0"),
        ("split", 2) => Some("-1"),
        ("regexp_extract" | "regexp_extract_all" | "locate", 2) | ("regexp_replace", 3) => Some("1"),
        ("substr" | "substring", 2) => Some("2147483647"),
        ("lpad" | "rpad", 2) => Some(" "),
        ("percentile_approx" | "approx_percentile", 2) => Some("10000"),
        ("unix_timestamp" | "to_unix_timestamp" | "from_unixtime", 1) => Some("yyyy-MM-dd HH:mm:ss"),
        ("sort_array", 1) => Some("true"),
        _ => None,
    };
    arguments.extend(filled.map(str::to_owned));
    match (name, arguments.len()) {
        ("from_json" | "from_csv" | "to_json" | "to_csv" | "schema_of_json" | "schema_of_csv", _)
        | ("first" | "last" | "first_value" | "last_value" | "any_value", 2) => {
            arguments.truncate(1);
        }
        _ => {}
    }
    Some(match name {
        // Casts, and functions whose text names what the query does not.
        "int" | "integer" | "bigint" | "smallint" | "tinyint" | "float" | "double" | "decimal" | "string"
        | "boolean" | "date" | "timestamp" | "binary" | "position" | "date_part" | "datepart" => return None,
        "ceil" | "ceiling" if arguments.len() == 1 => "CEIL",
        "floor" if arguments.len() == 1 => "FLOOR",
        "sqrt" => "SQRT",
        "power" | "pow" => "POWER",
        "if" => "IF",
        name => name,
    })
}

fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Number(digits, _) => {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            (is_plain && !digits.starts_with('.') && !digits.ends_with('.')).then(|| digits.clone())
        }
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
            (!text.contains('\\')).then(|| text.clone())
        }
        Value::Boolean(value) => Some(value.to_string()),
        Value::Null => Some("NULL".into()),
        _ => None,
    }
}

fn type_name(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::TinyInt(None) => "TINYINT".into(),
        DataType::SmallInt(None) => "SMALLINT".into(),
        DataType::Int(None) | DataType::Integer(None) => "INT".into(),
        DataType::BigInt(None) => "BIGINT".into(),
        DataType::Float(ExactNumberInfo::None) | DataType::Real => "FLOAT".into(),
        DataType::Double(ExactNumberInfo::None) => "DOUBLE".into(),
        DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale)) => {
            format!("DECIMAL({precision},{scale})")
        }
        DataType::String(None) => "STRING".into(),
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Date => "DATE".into(),
        DataType::Timestamp(None, _) => "TIMESTAMP".into(),
        DataType::Binary(None) => "BINARY".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse::parse_query;
    use datafusion::sql::sqlparser::ast::SetExpr;

    fn names(sql: &str) -> Vec<String> {
        let mut query = parse_query(sql).unwrap();
        let mut names = Names::default();
        ["n", "word", "k"].into_iter().for_each(|name| names.add(name));
        give(&mut query, &names, &BTreeSet::from(["words".to_owned()]));
        let SetExpr::Select(select) = *query.body else { panic!("{sql}") };
        let name = |item: &SelectItem| match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            _ => "-".to_owned(),
        };
        select.projection.iter().map(name).collect()
    }

    /// Expressions over `events e`, and what Spark 4.3.0 calls them.
    #[test]
    fn expressions_are_called_as_spark_calls_them() {
        let table = include_str!("result_names.tsv");
        assert!(table.lines().count() > 100);
        let cases = table.lines().map(|line| line.split_once('\t').unwrap());
        let given = cases.map(|(expr, name)| (expr, name, names(&format!("SELECT {expr} FROM events e"))));
        let wrong: Vec<_> = given.filter(|(_, name, given)| given != &[*name]).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn what_has_a_name_keeps_it_and_no_name_is_given_twice() {
        let kept =
            ["n", "e.n", "n AS m", "*", "explode(a)", "window(ts, '1 minute')", "words(word)", "n + INTERVAL 1 DAY"];
        for item in kept {
            assert!(
                matches!(names(&format!("SELECT {item} FROM events e")).as_slice(), [name] if name == "-" || name == "m")
            );
        }
        assert_eq!(names("SELECT N, e.Word, Sum(N), elsewhere FROM events e"), ["N", "Word", "sum(N)", "-"]);
        assert_eq!(names("SELECT n, N FROM events"), ["-", "-"]);
        assert_eq!(names("SELECT count(*), count(1), sum(n) FROM events"), ["-", "-", "sum(n)"]);
        assert_eq!(names("SELECT window.start, start FROM events"), ["-", "-"]);
        assert_eq!(names("SELECT l.k, r.k, l.s.k FROM l JOIN r ON l.k = r.k"), ["-", "-", "-"]);
        assert_eq!(names("SELECT l.s.k FROM l JOIN r ON l.k = r.k"), ["k"]);
    }
}
