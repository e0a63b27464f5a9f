//! Columns of a frame as the program writes them: names, literals, SQL texts, and what is computed of them.
//!
//! A column is a piece of the syntax tree that the same SQL would have, so it passes the same rewrites and means the same. What
//! is wrong with its text is kept in it and told by the method of the frame that takes it.

use super::literal::IntoOperand;
use crate::PlanError;
use crate::sql::parse;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, OrderByExpr, OrderByOptions, SelectItem, Subscript,
    UnaryOperator, helpers::attached_token::AttachedToken,
};

/// How deep a column may nest: planning it takes stack.
const DEPTH_MAX: u32 = 200;

/// A column of a frame, or something computed of its columns (Spark's `Column`).
///
/// A `&str` stands for the SQL text of a column: `"n + 1 AS next"`.
#[derive(Debug, Clone)]
pub struct Column {
    content: Result<Box<Content>, String>,
}

#[derive(Debug, Clone)]
struct Content {
    kind: Kind,
    aliases: Vec<Ident>,
    order: Option<OrderByOptions>,
    depth: u32,
}

#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "nearly every column is a value, and its content is boxed as a whole")]
enum Kind {
    Value(Expr),
    /// `*` or `name.*`.
    Star(Box<SelectItem>),
}

impl Column {
    /// The column of that name; `a.b` is the column `b` of `a`, or its field. Backquotes take dots into a name.
    pub(super) fn named(name: &str) -> Self {
        if name == "*" {
            return Self::parsed("*");
        }
        match name_parts(name) {
            Some(mut parts) if parts.len() == 1 => Self::value(Expr::Identifier(parts.remove(0)), 0),
            Some(parts) => Self::value(Expr::CompoundIdentifier(parts), 0),
            None => Self::wrong(format!("`{name}` is not the name of a column")),
        }
    }

    /// The column that a text in SQL describes.
    pub(super) fn parsed(text: &str) -> Self {
        match parse::parse_select_item(text) {
            Ok(SelectItem::UnnamedExpr(expr)) => Self::value(expr, 0),
            Ok(SelectItem::ExprWithAlias { expr, alias }) => Self::value(expr, 0).with_aliases(vec![alias]),
            Ok(SelectItem::ExprWithAliases { expr, aliases }) => Self::value(expr, 0).with_aliases(aliases),
            Ok(star) => {
                let kind = Kind::Star(Box::new(star));
                Self { content: Ok(Box::new(Content { kind, aliases: Vec::new(), order: None, depth: 0 })) }
            }
            Err(error) => Self::wrong(error.to_string()),
        }
    }

    pub(super) fn value(expr: Expr, depth: u32) -> Self {
        if depth > DEPTH_MAX {
            return Self::wrong(format!("a column may nest {DEPTH_MAX} deep, and this one nests deeper"));
        }
        Self { content: Ok(Box::new(Content { kind: Kind::Value(expr), aliases: Vec::new(), order: None, depth })) }
    }

    fn wrong(reason: String) -> Self {
        Self { content: Err(reason) }
    }

    fn with_aliases(self, aliases: Vec<Ident>) -> Self {
        self.change(|content| Ok(Content { aliases, ..content }))
    }

    fn change(self, change: impl FnOnce(Content) -> Result<Content, String>) -> Self {
        Self { content: self.content.and_then(|content| change(*content).map(Box::new)) }
    }

    /// Its expression, if it is one value without a name or an order of its own, and how deep it nests.
    fn operand(self) -> Result<(Expr, u32), String> {
        let content = self.content?;
        match content.kind {
            Kind::Value(_) if content.order.is_some() => Err("an order belongs into order_by only".into()),
            // A name inside an expression names nothing.
            Kind::Value(expr) => Ok((expr, content.depth)),
            Kind::Star(star) => Err(format!("`{star}` is no value")),
        }
    }

    /// Whether it is `*`.
    fn is_everything(&self) -> bool {
        let star = self.content.as_ref().map(|content| &content.kind);
        matches!(star, Ok(Kind::Star(star)) if matches!(star.as_ref(), SelectItem::Wildcard(_)))
    }

    /// One expression made of one.
    fn map(self, make: impl FnOnce(Box<Expr>) -> Expr) -> Self {
        match self.operand() {
            Ok((expr, depth)) => Self::value(make(Box::new(expr)), depth + 1),
            Err(reason) => Self::wrong(reason),
        }
    }

    fn binary(self, op: BinaryOperator, right: impl IntoOperand) -> Self {
        match (self.operand(), right.into_operand().operand()) {
            (Ok((left, a)), Ok((right, b))) => {
                Self::value(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }, a.max(b) + 1)
            }
            (Err(reason), _) | (_, Err(reason)) => Self::wrong(reason),
        }
    }

    /// The call of a function.
    pub(super) fn call(name: &str, arguments: Vec<Self>, is_distinct: bool) -> Self {
        let Some(parts) = name_parts(name) else {
            return Self::wrong(format!("`{name}` is not the name of a function"));
        };
        let mut args = Vec::with_capacity(arguments.len());
        let mut deepest = 0;
        for argument in arguments {
            let argument = match argument.is_everything() {
                true => FunctionArgExpr::Wildcard,
                false => match argument.operand() {
                    Ok((expr, depth)) => {
                        deepest = deepest.max(depth);
                        FunctionArgExpr::Expr(expr)
                    }
                    Err(reason) => return Self::wrong(reason),
                },
            };
            args.push(FunctionArg::Unnamed(argument));
        }
        let duplicate_treatment = is_distinct.then_some(DuplicateTreatment::Distinct);
        let call = Function {
            name: ObjectName::from(parts),
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses: Vec::new() }),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: Vec::new(),
        };
        Self::value(Expr::Function(call), deepest + 1)
    }

    /// `CASE WHEN … THEN … [ELSE …] END`.
    pub(super) fn case(branches: Vec<(Self, Self)>, otherwise: Option<Self>) -> Self {
        let mut deepest = 0;
        let mut value = |column: Self| {
            column.operand().map(|(expr, depth)| {
                deepest = deepest.max(depth);
                expr
            })
        };
        let mut conditions = Vec::new();
        for (condition, result) in branches {
            match (value(condition), value(result)) {
                (Ok(condition), Ok(result)) => conditions.push(CaseWhen { condition, result }),
                (Err(reason), _) | (_, Err(reason)) => return Self::wrong(reason),
            }
        }
        let else_result = match otherwise.map(value).transpose() {
            Ok(result) => result.map(Box::new),
            Err(reason) => return Self::wrong(reason),
        };
        let case = Expr::Case {
            case_token: AttachedToken::empty(),
            end_token: AttachedToken::empty(),
            operand: None,
            conditions,
            else_result,
        };
        Self::value(case, deepest + 1)
    }

    /// Gives it a name.
    #[must_use]
    pub fn alias(self, name: &str) -> Self {
        self.aliases(&[name])
    }

    /// Gives names to the columns of a generator, as in `posexplode(tags)` with `pos` and `tag`.
    #[must_use]
    pub fn aliases(self, names: &[&str]) -> Self {
        let aliases = names.iter().map(|name| Ident::new(*name)).collect();
        self.change(|content| match content.kind {
            Kind::Value(_) => Ok(Content { aliases, ..content }),
            Kind::Star(star) => Err(format!("`{star}` cannot have one name")),
        })
    }

    /// Converts it to a type, written as in SQL: `"BIGINT"`, `"array<string>"`.
    #[must_use]
    pub fn cast(self, data_type: &str) -> Self {
        match parse::parse_data_type(data_type) {
            Ok(data_type) => {
                self.map(|expr| Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None })
            }
            Err(error) => Self::wrong(error.to_string()),
        }
    }

    /// A field of a struct, the value of a key, or an element of an array (from 0).
    #[must_use]
    pub fn get_item(self, key: impl IntoOperand) -> Self {
        match (self.operand(), key.into_operand().operand()) {
            (Ok((root, a)), Ok((index, b))) => {
                let access_chain = vec![AccessExpr::Subscript(Subscript::Index { index })];
                Self::value(Expr::CompoundFieldAccess { root: Box::new(root), access_chain }, a.max(b) + 1)
            }
            (Err(reason), _) | (_, Err(reason)) => Self::wrong(reason),
        }
    }

    /// A field of a struct.
    #[must_use]
    pub fn get_field(self, name: &str) -> Self {
        self.get_item(name)
    }

    /// Ascending, nulls first.
    #[must_use]
    pub fn asc(self) -> Self {
        self.ordered(true, None)
    }

    /// Ascending, nulls last.
    #[must_use]
    pub fn asc_nulls_last(self) -> Self {
        self.ordered(true, Some(false))
    }

    /// Descending, nulls last.
    #[must_use]
    pub fn desc(self) -> Self {
        self.ordered(false, None)
    }

    /// Descending, nulls first.
    #[must_use]
    pub fn desc_nulls_first(self) -> Self {
        self.ordered(false, Some(true))
    }

    fn ordered(self, asc: bool, nulls_first: Option<bool>) -> Self {
        let order = Some(OrderByOptions { asc: Some(asc), nulls_first });
        self.change(|content| Ok(Content { order, ..content }))
    }

    /// Whether it is null.
    #[must_use]
    pub fn is_null(self) -> Self {
        self.map(Expr::IsNull)
    }

    /// Whether it is not null.
    #[must_use]
    pub fn is_not_null(self) -> Self {
        self.map(Expr::IsNotNull)
    }

    /// Whether it is one of these.
    #[must_use]
    pub fn isin<V: IntoOperand>(self, values: impl IntoIterator<Item = V>) -> Self {
        let mut list = Vec::new();
        for value in values {
            match value.into_operand().operand() {
                Ok((expr, _)) => list.push(expr),
                Err(reason) => return Self::wrong(reason),
            }
        }
        self.map(|expr| Expr::InList { expr, list, negated: false })
    }

    /// Whether it is between these two, both included.
    #[must_use]
    pub fn between(self, low: impl IntoOperand, high: impl IntoOperand) -> Self {
        match (low.into_operand().operand(), high.into_operand().operand()) {
            (Ok((low, _)), Ok((high, _))) => {
                let (low, high) = (Box::new(low), Box::new(high));
                self.map(|expr| Expr::Between { expr, negated: false, low, high })
            }
            (Err(reason), _) | (_, Err(reason)) => Self::wrong(reason),
        }
    }

    /// Whether the text has the pattern, with `%` and `_`.
    #[must_use]
    pub fn like(self, pattern: &str) -> Self {
        let pattern = match pattern.into_operand().operand() {
            Ok((expr, _)) => Box::new(expr),
            Err(reason) => return Self::wrong(reason),
        };
        self.map(|expr| Expr::Like { negated: false, any: false, expr, pattern, escape_char: None })
    }

    /// Whether the regular expression is found in the text.
    #[must_use]
    pub fn rlike(self, pattern: &str) -> Self {
        let pattern = match pattern.into_operand().operand() {
            Ok((expr, _)) => Box::new(expr),
            Err(reason) => return Self::wrong(reason),
        };
        self.map(|expr| Expr::RLike { negated: false, expr, pattern, regexp: false })
    }

    /// Whether the text has that text in it.
    #[must_use]
    pub fn contains(self, part: impl IntoOperand) -> Self {
        Self::call("contains", vec![self, part.into_operand()], false)
    }

    /// Whether the text begins with that text.
    #[must_use]
    pub fn starts_with(self, part: impl IntoOperand) -> Self {
        Self::call("startswith", vec![self, part.into_operand()], false)
    }

    /// Whether the text ends with that text.
    #[must_use]
    pub fn ends_with(self, part: impl IntoOperand) -> Self {
        Self::call("endswith", vec![self, part.into_operand()], false)
    }

    /// As an item of a SELECT list.
    pub(super) fn into_item(self) -> Result<SelectItem, PlanError> {
        let content = self.content.map_err(wrong_column)?;
        if content.order.is_some() {
            return Err(wrong_column("an order belongs into order_by only".into()));
        }
        let mut aliases = content.aliases;
        Ok(match content.kind {
            Kind::Star(star) => *star,
            Kind::Value(expr) => match aliases.len() {
                0 => SelectItem::UnnamedExpr(expr),
                1 => SelectItem::ExprWithAlias { expr, alias: aliases.remove(0) },
                _ => SelectItem::ExprWithAliases { expr, aliases },
            },
        })
    }

    /// As an expression, without its name.
    pub(super) fn into_expr(self) -> Result<Expr, PlanError> {
        self.operand().map(|(expr, _)| expr).map_err(wrong_column)
    }

    /// As a key of ORDER BY. A text may end with ASC or DESC.
    pub(super) fn into_order(self) -> Result<OrderByExpr, PlanError> {
        let mut content = self.content.map_err(wrong_column)?;
        let direction = match content.aliases.as_slice() {
            [word] if word.value.eq_ignore_ascii_case("asc") => Some(true),
            [word] if word.value.eq_ignore_ascii_case("desc") => Some(false),
            _ => None,
        };
        if let Some(asc) = direction {
            content.order = Some(OrderByOptions { asc: Some(asc), nulls_first: None });
        }
        match content.kind {
            Kind::Value(expr) => Ok(OrderByExpr { expr, options: content.order.unwrap_or_default(), with_fill: None }),
            Kind::Star(star) => Err(wrong_column(format!("rows cannot be ordered by `{star}`"))),
        }
    }
}

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Column {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(self, other: impl IntoOperand) -> Self {
                self.binary(BinaryOperator::$op, other)
            })*
        }
    };
}

operators! {
    /// Whether both are equal; null if one is null.
    eq => Eq;
    /// Whether they differ; null if one is null.
    neq => NotEq;
    /// Whether both are equal, two nulls included.
    eq_null_safe => Spaceship;
    /// Whether it is less.
    lt => Lt;
    /// Whether it is less or equal.
    leq => LtEq;
    /// Whether it is greater.
    gt => Gt;
    /// Whether it is greater or equal.
    geq => GtEq;
    /// Whether both hold.
    and => And;
    /// Whether one of both holds.
    or => Or;
}

macro_rules! arithmetic {
    ($($operator:ident $method:ident => $op:ident;)*) => {
        $(impl<T: IntoOperand> std::ops::$operator<T> for Column {
            type Output = Column;
            fn $method(self, other: T) -> Column {
                self.binary(BinaryOperator::$op, other)
            }
        })*
    };
}

arithmetic! {
    Add add => Plus;
    Sub sub => Minus;
    Mul mul => Multiply;
    Div div => Divide;
    Rem rem => Modulo;
}

impl std::ops::Not for Column {
    type Output = Self;
    fn not(self) -> Self {
        self.map(|expr| Expr::UnaryOp { op: UnaryOperator::Not, expr })
    }
}

impl std::ops::Neg for Column {
    type Output = Self;
    fn neg(self) -> Self {
        self.map(|expr| Expr::UnaryOp { op: UnaryOperator::Minus, expr })
    }
}

impl From<&str> for Column {
    fn from(text: &str) -> Self {
        Self::parsed(text)
    }
}

impl From<&&str> for Column {
    fn from(text: &&str) -> Self {
        Self::parsed(text)
    }
}

impl From<String> for Column {
    fn from(text: String) -> Self {
        Self::parsed(&text)
    }
}

impl From<&String> for Column {
    fn from(text: &String) -> Self {
        Self::parsed(text)
    }
}

impl From<&Column> for Column {
    fn from(column: &Column) -> Self {
        column.clone()
    }
}

fn wrong_column(reason: String) -> PlanError {
    PlanError::Sql { message: reason }
}

/// The parts of a dotted name; `None` when it is no name.
fn name_parts(name: &str) -> Option<Vec<Ident>> {
    let mut parts = Vec::new();
    let mut rest = name;
    loop {
        let part;
        if let Some(quoted) = rest.strip_prefix('`') {
            let end = quoted.find('`')?;
            (part, rest) = (&quoted[..end], &quoted[end + 1..]);
        } else {
            let end = rest.find('.').unwrap_or(rest.len());
            (part, rest) = (&rest[..end], &rest[end..]);
        }
        if part.is_empty() {
            return None;
        }
        parts.push(Ident::new(part));
        match rest.strip_prefix('.') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Some(parts),
            None => return None,
        }
    }
}
