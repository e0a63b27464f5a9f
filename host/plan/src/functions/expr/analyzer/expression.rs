//! The rewriting of one expression, bottom up.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, InList, Like, ScalarFunction, WindowFunctionDefinition};
use datafusion::logical_expr::type_coercion::functions::{UDFCoercionExt, fields_with_udf};
use datafusion::logical_expr::{Between, BinaryExpr, Case, Expr, ExprSchemable, Operator, ScalarUDF, lit, not};
use millstream_common::SqlSettings;

use super::super::arithmetic::{Arithmetic, Op, types_of};
use super::super::cast::can_cast;
use super::super::cast::udf::{cast_expr, try_cast_expr};
use super::super::common_type::{comparison, is_binary, is_string, timestamp, widest_of};
use super::super::compare::{self, holds_floats};
use super::super::decimal_type;
use super::super::function::SparkFunction;
use super::super::type_name::shown_type;
use super::super::{bits, conditional, math};
use super::shield::{as_bit, can_fail, is_shielded, shielded};

/// The functions that the rewriter puts into plans.
#[derive(Debug)]
pub(crate) struct Functions {
    normalized: Arc<ScalarUDF>,
    negative: Arc<ScalarUDF>,
}

impl Functions {
    pub(crate) fn new(settings: &SqlSettings) -> Self {
        let of = |rows: &[super::super::function::Row], name: &str| {
            let row = rows.iter().find(|row| row.name == name).copied().unwrap_or(compare::ROWS[0]);
            SparkFunction::udf(row, settings.ansi)
        };
        Self { normalized: of(compare::ROWS, compare::NORMALIZED), negative: of(math::ROWS, "negative") }
    }
}

/// Rewrites expressions over one schema.
pub(crate) struct Rewriter<'a> {
    schema: &'a DFSchema,
    settings: &'a SqlSettings,
    functions: &'a Functions,
}

impl<'a> Rewriter<'a> {
    pub(crate) fn new(schema: &'a DFSchema, settings: &'a SqlSettings, functions: &'a Functions) -> Self {
        Self { schema, settings, functions }
    }

    pub(super) fn schema(&self) -> &DFSchema {
        self.schema
    }

    fn type_of(&self, expr: &Expr) -> Option<DataType> {
        expr.get_type(self.schema).ok()
    }

    /// The expression with one zero and one NaN.
    pub(super) fn normalized(&self, expr: Expr) -> Expr {
        if let Expr::Literal(value, metadata) = &expr {
            let folded = value.to_array().ok().and_then(|array| compare::normalized(&array).ok());
            if let Some(value) = folded.and_then(|array| ScalarValue::try_from_array(&array, 0).ok()) {
                return Expr::Literal(value, metadata.clone());
            }
        }
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&self.functions.normalized), vec![expr]))
    }

    /// Whether the expression is already the result of [`Self::normalized`].
    pub(super) fn is_normalized(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Alias(alias) => self.is_normalized(&alias.expr),
            Expr::ScalarFunction(function) => function.name() == compare::NORMALIZED,
            _ => false,
        }
    }

    fn comparable(&self, expr: Expr, data_type: &DataType) -> Expr {
        if holds_floats(data_type) && !self.is_normalized(&expr) { self.normalized(expr) } else { expr }
    }

    /// Both sides of a comparison, brought to a common type.
    pub(crate) fn compared(&self, left: (Expr, DataType), right: (Expr, DataType)) -> Result<(Expr, Expr)> {
        let Some(common) = comparison(&left.1, &right.1, self.settings.ansi) else {
            if left.1.is_nested() || right.1.is_nested() || is_interval(&left.1) || is_interval(&right.1) {
                return Ok((left.0, right.0));
            }
            return plan_err!(
                "[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] {} and {} cannot be compared",
                shown_type(&left.1),
                shown_type(&right.1)
            );
        };
        let left = self.comparable(cast_expr(left.0, &left.1, &common, self.settings)?, &common);
        let right = self.comparable(cast_expr(right.0, &right.1, &common, self.settings)?, &common);
        Ok((left, right))
    }

    fn comparison(&self, left: Expr, op: Operator, right: Expr) -> Result<Expr> {
        let (left, right) = match (self.type_of(&left), self.type_of(&right)) {
            (Some(l), Some(r)) => self.compared((left, l), (right, r))?,
            _ => (left, right),
        };
        Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
    }

    /// The arithmetic function of an operator, unless the operator is on types that stay native.
    pub(crate) fn arithmetic(&self, op: Op, left: Expr, right: Expr) -> std::result::Result<Expr, Box<(Expr, Expr)>> {
        let (Some(l), Some(r)) = (self.type_of(&left), self.type_of(&right)) else {
            return Err(Box::new((left, right)));
        };
        // Without a type of ours the operator is DataFusion's, unless a value that no operator takes is to be refused.
        let refused = |t: &DataType| *t == DataType::Boolean || t.is_nested() || is_binary(t);
        if types_of(op, &l, &r, self.settings.ansi).is_none() && !refused(&l) && !refused(&r) {
            return Err(Box::new((left, right)));
        }
        let udf = Arithmetic::udf(op, self.settings.ansi, false);
        Ok(Expr::ScalarFunction(ScalarFunction::new_udf(udf, vec![left, right])))
    }

    fn binary(&self, binary: BinaryExpr) -> Result<Expr> {
        let BinaryExpr { left, op, right } = binary;
        if let Some(arithmetic) = Op::of(op) {
            return match self.arithmetic(arithmetic, *left, *right) {
                Ok(Expr::ScalarFunction(function)) => self.function(function),
                Ok(other) => Ok(other),
                Err(sides) => self.native(sides.0, op, sides.1),
            };
        }
        match op {
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom => self.comparison(*left, op, *right),
            Operator::And | Operator::Or => Ok(self.guarded(*left, op, *right)),
            Operator::BitwiseAnd
            | Operator::BitwiseOr
            | Operator::BitwiseXor
            | Operator::BitwiseShiftLeft
            | Operator::BitwiseShiftRight => {
                let name = match op {
                    Operator::BitwiseAnd => bits::AND,
                    Operator::BitwiseOr => bits::OR,
                    Operator::BitwiseXor => bits::XOR,
                    Operator::BitwiseShiftLeft => bits::SHIFT_LEFT,
                    _ => bits::SHIFT_RIGHT,
                };
                match bits::row(name) {
                    Some(row) => {
                        let udf = SparkFunction::udf(row, self.settings.ansi);
                        self.function(ScalarFunction::new_udf(udf, vec![*left, *right]))
                    }
                    None => self.native(*left, op, *right),
                }
            }
            Operator::StringConcat => {
                let (Some(l), Some(r)) = (self.type_of(&left), self.type_of(&right)) else {
                    return self.native(*left, op, *right);
                };
                if l.is_nested() || r.is_nested() || (is_binary(&l) && is_binary(&r)) {
                    return self.native(*left, op, *right);
                }
                let left = cast_expr(*left, &l, &DataType::Utf8, self.settings)?;
                let right = cast_expr(*right, &r, &DataType::Utf8, self.settings)?;
                self.native(left, op, right)
            }
            _ => self.native(*left, op, *right),
        }
    }

    fn native(&self, left: Expr, op: Operator, right: Expr) -> Result<Expr> {
        Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
    }

    fn may_fail(&self, expr: &Expr) -> bool {
        self.settings.ansi && can_fail(expr, self.schema)
    }

    /// `l AND r` and `l OR r` where `r` is evaluated only for rows that `l` leaves open, when `r` could fail.
    fn guarded(&self, left: Expr, op: Operator, right: Expr) -> Expr {
        let right = if !is_shielded(&right) && self.may_fail(&right) && !left.is_volatile() {
            let open = if op == Operator::And { left.clone().is_not_false() } else { left.clone().is_not_true() };
            shielded(open, right)
        } else {
            right
        };
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
    }

    /// Casts an argument as Spark does, or as DataFusion does where Spark has no such type.
    fn argument(&self, expr: Expr, to: &DataType) -> Result<Expr> {
        let from = expr.get_type(self.schema)?;
        if from == *to {
            Ok(expr)
        } else if can_cast(&from, to, self.settings.ansi) {
            cast_expr(expr, &from, to, self.settings)
        } else {
            expr.cast_to(to, self.schema)
        }
    }

    /// Arguments brought to the types that the function asks for; as they were when it refuses them.
    fn arguments<F: UDFCoercionExt>(&self, args: Vec<Expr>, function: &F) -> Result<Vec<Expr>> {
        let fields =
            args.iter().map(|arg| arg.to_field(self.schema).map(|(_, field)| field)).collect::<Result<Vec<_>>>();
        let Ok(wanted) = fields.and_then(|fields| fields_with_udf(&fields, function)) else { return Ok(args) };
        args.into_iter().zip(wanted).map(|(arg, field)| self.argument(arg, field.data_type())).collect()
    }

    fn function(&self, function: ScalarFunction) -> Result<Expr> {
        let ScalarFunction { func, args } = function;
        let args = if func.inner().is::<Arithmetic>() { self.small_literals(args) } else { args };
        let args = self.arguments(args, func.as_ref())?;
        if !func.inner().is::<SparkFunction>() {
            return Ok(Expr::ScalarFunction(ScalarFunction::new_udf(func, args)));
        }
        if func.name() == "timestamp"
            && let [arg] = args.as_slice()
        {
            // Only the cast knows the batch's day, on which a time without a date is.
            return match self.type_of(arg) {
                Some(from) => cast_expr(arg.clone(), &from, &timestamp(), self.settings),
                None => Ok(Expr::ScalarFunction(ScalarFunction::new_udf(func, args))),
            };
        }
        match conditional::as_case(func.name(), args, |arg| self.may_fail(arg)) {
            Ok(case) => Ok(case.rewrite(&mut Rewriter { ..*self })?.data),
            Err(args) => Ok(Expr::ScalarFunction(ScalarFunction::new_udf(func, args))),
        }
    }

    /// An integer literal beside a decimal has as many digits as it shows, not as its type could hold.
    fn small_literals(&self, args: Vec<Expr>) -> Vec<Expr> {
        let decimal = |expr: &Expr| matches!(self.type_of(expr), Some(DataType::Decimal128(..)));
        if !args.iter().any(decimal) {
            return args;
        }
        args.into_iter()
            .map(|arg| {
                let value = match &arg {
                    Expr::Literal(ScalarValue::Int8(Some(value)), _) => i64::from(*value),
                    Expr::Literal(ScalarValue::Int16(Some(value)), _) => i64::from(*value),
                    Expr::Literal(ScalarValue::Int32(Some(value)), _) => i64::from(*value),
                    Expr::Literal(ScalarValue::Int64(Some(value)), _) => *value,
                    _ => return arg,
                };
                let (precision, scale) = decimal_type::of_literal(value);
                lit(ScalarValue::Decimal128(Some(i128::from(value)), precision, scale))
            })
            .collect()
    }

    fn case(&self, case: Case) -> Result<Expr> {
        let ansi = self.settings.ansi;
        let branches = case.when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(case.else_expr.as_deref());
        let types: Option<Vec<DataType>> = branches.map(|branch| self.type_of(branch)).collect();
        let Some(types) = types else { return Ok(Expr::Case(case)) };
        let Some(result) = widest_of(&types, ansi) else {
            let shown: Vec<String> = types.iter().map(shown_type).collect();
            return plan_err!(
                "[DATATYPE_MISMATCH.DATA_DIFF_TYPES] the branches of CASE have no common type: {}",
                shown.join(", ")
            );
        };
        // The compared values, too, have one type.
        let compared = match case.expr.as_deref().map(|expr| self.type_of(expr)) {
            Some(Some(base)) => {
                let whens: Option<Vec<DataType>> =
                    case.when_then_expr.iter().map(|(when, _)| self.type_of(when)).collect();
                whens.and_then(|whens| widest_of(std::iter::once(&base).chain(&whens), ansi))
            }
            _ => None,
        };
        let as_compared = |expr: Expr| -> Result<Expr> {
            match &compared {
                Some(common) => Ok(self.comparable(self.argument(expr, common)?, common)),
                None => Ok(expr),
            }
        };
        let has_base = case.expr.is_some();
        let base = case.expr.map(|expr| as_compared(*expr).map(Box::new)).transpose()?;
        let pairs = case
            .when_then_expr
            .into_iter()
            .map(|(when, then)| {
                let when = if has_base { as_compared(*when)? } else { self.boolean(*when)? };
                Ok((Box::new(when), Box::new(self.argument(*then, &result)?)))
            })
            .collect::<Result<Vec<_>>>()?;
        let otherwise = case.else_expr.map(|expr| self.argument(*expr, &result).map(Box::new)).transpose()?;
        let branches = pairs.iter().map(|(_, then)| then).chain(&otherwise);
        if result == DataType::Boolean && branches.into_iter().any(|branch| self.may_fail(branch)) {
            let bit = |branch: Box<Expr>| Box::new(as_bit(*branch));
            let pairs = pairs.into_iter().map(|(when, then)| (when, bit(then))).collect();
            return Ok(Expr::Case(Case::new(base, pairs, otherwise.map(bit))).eq(lit(1_i8)));
        }
        Ok(Expr::Case(Case::new(base, pairs, otherwise)))
    }

    /// A bare NULL as an unknown truth.
    fn boolean(&self, expr: Expr) -> Result<Expr> {
        match self.type_of(&expr) {
            Some(DataType::Null) => self.argument(expr, &DataType::Boolean),
            _ => Ok(expr),
        }
    }

    fn in_list(&self, list: InList) -> Result<Expr> {
        let types: Option<Vec<DataType>> =
            std::iter::once(list.expr.as_ref()).chain(&list.list).map(|expr| self.type_of(expr)).collect();
        let Some(types) = types else { return Ok(Expr::InList(list)) };
        let Some(common) = widest_of(&types, self.settings.ansi) else {
            let shown: Vec<String> = types.iter().map(shown_type).collect();
            return plan_err!(
                "[DATATYPE_MISMATCH.DATA_DIFF_TYPES] IN compares types without a common one: {}",
                shown.join(", ")
            );
        };
        let brought = |expr: Expr| -> Result<Expr> { Ok(self.comparable(self.argument(expr, &common)?, &common)) };
        let items = list.list.into_iter().map(brought).collect::<Result<Vec<_>>>()?;
        Ok(Expr::InList(InList::new(Box::new(brought(*list.expr)?), items, list.negated)))
    }

    /// `x BETWEEN a AND b` compares twice; it stays as it is when all three have one type.
    fn between(&self, between: Between) -> Result<Expr> {
        let types: Vec<Option<DataType>> =
            [&between.expr, &between.low, &between.high].map(|expr| self.type_of(expr)).to_vec();
        let plain = types.iter().all(|t| *t == types[0] && t.as_ref().is_some_and(|t| !holds_floats(t)));
        if plain || types.contains(&None) {
            return Ok(Expr::Between(between));
        }
        let low = self.comparison(between.expr.as_ref().clone(), Operator::GtEq, *between.low)?;
        let high = self.comparison(*between.expr, Operator::LtEq, *between.high)?;
        let both = low.and(high);
        Ok(if between.negated { not(both) } else { both })
    }

    fn like(&self, like: Like) -> Result<Like> {
        let text = |expr: Box<Expr>| -> Result<Box<Expr>> {
            match self.type_of(&expr) {
                Some(t) if !is_string(&t) && !is_binary(&t) && !t.is_nested() => {
                    Ok(Box::new(cast_expr(*expr, &t, &DataType::Utf8, self.settings)?))
                }
                _ => Ok(expr),
            }
        };
        Ok(Like { expr: text(like.expr)?, pattern: text(like.pattern)?, ..like })
    }

    fn aggregate(&self, mut aggregate: AggregateFunction) -> Result<Expr> {
        let args = self.arguments(std::mem::take(&mut aggregate.params.args), aggregate.func.as_ref())?;
        aggregate.params.args =
            if aggregate.params.distinct { args.into_iter().map(|arg| self.key(arg)).collect() } else { args };
        Ok(Expr::AggregateFunction(aggregate))
    }

    fn key(&self, expr: Expr) -> Expr {
        match self.type_of(&expr) {
            Some(t) => self.comparable(expr, &t),
            None => expr,
        }
    }

    fn negated(&self, expr: Expr) -> Result<Expr> {
        let kept = self.type_of(&expr).is_none_or(|t| !t.is_numeric() && !is_string(&t) && !t.is_null());
        if kept {
            return Ok(Expr::Negative(Box::new(expr)));
        }
        self.function(ScalarFunction::new_udf(Arc::clone(&self.functions.negative), vec![expr]))
    }
}

fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

impl TreeNodeRewriter for Rewriter<'_> {
    type Node = Expr;

    fn f_up(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        let rewritten = match expr {
            Expr::BinaryExpr(binary) => self.binary(binary)?,
            Expr::Negative(inner) => self.negated(*inner)?,
            Expr::Cast(cast) => match self.type_of(&cast.expr) {
                Some(from) => cast_expr(*cast.expr, &from, cast.field.data_type(), self.settings)?,
                None => Expr::Cast(cast),
            },
            Expr::TryCast(cast) => match self.type_of(&cast.expr) {
                Some(from) => try_cast_expr(*cast.expr, &from, cast.field.data_type(), self.settings)?,
                None => Expr::TryCast(cast),
            },
            Expr::Case(case) => self.case(case)?,
            Expr::InList(list) => self.in_list(list)?,
            Expr::Between(between) => self.between(between)?,
            Expr::Like(like) => Expr::Like(self.like(like)?),
            Expr::SimilarTo(like) => Expr::SimilarTo(self.like(like)?),
            Expr::ScalarFunction(function) => self.function(function)?,
            Expr::AggregateFunction(aggregate) => self.aggregate(aggregate)?,
            Expr::WindowFunction(mut window) => {
                let args = std::mem::take(&mut window.params.args);
                window.params.args = match &window.fun {
                    WindowFunctionDefinition::AggregateUDF(function) => self.arguments(args, function.as_ref())?,
                    WindowFunctionDefinition::WindowUDF(function) => self.arguments(args, function.as_ref())?,
                };
                let keys = std::mem::take(&mut window.params.partition_by);
                window.params.partition_by = keys.into_iter().map(|key| self.key(key)).collect();
                Expr::WindowFunction(window)
            }
            other => return Ok(Transformed::no(other)),
        };
        Ok(Transformed::yes(rewritten))
    }

    fn f_down(&mut self, node: Expr) -> Result<Transformed<Expr>> {
        Ok(Transformed::new(node, false, TreeNodeRecursion::Continue))
    }
}
