//! `coalesce`, `nvl`, `ifnull`, `nvl2`, `nullif`, `if`, `nullifzero`, `zeroifnull`.
//!
//! The functions give a plan their types; the analyzer rule replaces each by the CASE expression of [`as_case`], so
//! that a branch is evaluated only for the rows that take it. Evaluated as functions they choose among computed columns.
//! Levels of `coalesce` become one flat CASE.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::is_not_null;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{Cast, Expr, lit};

use super::cast::udf::SparkCast;
use super::common_type::{comparison, widest, widest_of};
use super::compare::normalized;
use super::function::{Call, Nulls, Row, shape};

/// The family's functions.
pub(super) const ROWS: &[Row] = &[
    Row::new("coalesce", all_widest, shape::first, first_known).nulls(Nulls::WhenAllAre),
    Row::new("nvl", two_widest, shape::first, first_known).also(&["ifnull"]).nulls(Nulls::WhenAllAre),
    Row::new("nvl2", choice_types, second_type, |call| {
        Ok(zip(&is_not_null(&call.arrays[0])?, &call.arrays[1], &call.arrays[2])?)
    })
    .nulls(Nulls::Possible),
    Row::new("if", if_types, second_type, |call| {
        Ok(zip(&certain(call.arrays[0].as_boolean()), &call.arrays[1], &call.arrays[2])?)
    })
    .nulls(Nulls::Possible),
    Row::new("nullif", nullif_types, shape::first, nullif).nulls(Nulls::Possible),
    Row::new("nullifzero", shape::one_number, shape::first, null_if_zero).nulls(Nulls::Possible),
    Row::new("zeroifnull", shape::one_number, shape::first, |call| zero_if_null(&call.arrays[0])).nulls(Nulls::Never),
];

fn all_widest(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
    if types.is_empty() {
        return None;
    }
    Some(vec![widest_of(types, ansi)?; types.len()])
}

fn two_widest(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
    (types.len() == 2).then(|| all_widest(types, ansi))?
}

fn choice_types(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
    let [tested, yes, no] = types else { return None };
    let common = widest(yes, no, ansi)?;
    Some(vec![tested.clone(), common.clone(), common])
}

fn if_types(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
    let [condition, ..] = types else { return None };
    if *condition != DataType::Boolean && !condition.is_null() {
        return None;
    }
    let mut types = choice_types(types, ansi)?;
    types[0] = DataType::Boolean;
    Some(types)
}

/// The first keeps its type: it is the result.
fn nullif_types(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
    let [value, other] = types else { return None };
    comparison(value, other, ansi)?;
    Some(types.to_vec())
}

fn second_type(types: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(types.get(1).cloned().unwrap_or(DataType::Null))
}

/// True only where the condition is known to be.
fn certain(condition: &BooleanArray) -> BooleanArray {
    match condition.nulls() {
        Some(nulls) => BooleanArray::new(condition.values() & nulls.inner(), None),
        None => condition.clone(),
    }
}

fn first_known(call: &Call<'_>) -> Result<ArrayRef> {
    let mut result = Arc::clone(&call.arrays[0]);
    for next in &call.arrays[1..] {
        if result.null_count() == 0 && !result.data_type().is_null() {
            break;
        }
        result = zip(&is_not_null(&result)?, &result, next)?;
    }
    Ok(result)
}

fn nullif(call: &Call<'_>) -> Result<ArrayRef> {
    let (value, other) = (&call.arrays[0], &call.arrays[1]);
    let common =
        comparison(value.data_type(), other.data_type(), call.ansi).unwrap_or_else(|| value.data_type().clone());
    let rules = super::cast::Rules { mode: super::fault::Mode::of(call.ansi), ansi: call.ansi, today: 0 };
    let brought = |array: &ArrayRef| -> Result<ArrayRef> {
        normalized(&super::cast::cast_array(array, &common, rules).map_err(super::fault::raise)?)
    };
    let equal = arrow::compute::kernels::cmp::eq(&brought(value)?, &brought(other)?)?;
    Ok(arrow::compute::nullif(value, &certain(&equal))?)
}

fn zero_of(data_type: &DataType) -> Result<ScalarValue> {
    ScalarValue::new_zero(data_type)
}

fn null_if_zero(call: &Call<'_>) -> Result<ArrayRef> {
    let value = &call.arrays[0];
    let zero = zero_of(value.data_type())?.to_scalar()?;
    let equal = arrow::compute::kernels::cmp::eq(&normalized(value)?, &zero)?;
    Ok(arrow::compute::nullif(value, &certain(&equal))?)
}

fn zero_if_null(value: &ArrayRef) -> Result<ArrayRef> {
    let zero = zero_of(value.data_type())?.to_scalar()?;
    Ok(zip(&is_not_null(value)?, value, &zero)?)
}

/// Most nodes of an expression that may stand twice in a CASE.
const MOST_TWICE: usize = 64;

/// Whether writing the expression twice would make a plan too large: levels of such CASEs double at each.
fn is_large(expr: &Expr) -> bool {
    let mut nodes = 0_usize;
    let counted = expr.apply(|_| {
        nodes += 1;
        Ok(if nodes > MOST_TWICE { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    counted.is_err() || nodes > MOST_TWICE
}

/// The arguments of the `coalesce` that a CASE came from, each with the cast around it.
fn coalesced(expr: &Expr) -> Option<Vec<Expr>> {
    let around =
        |inner: &Expr, cast: &dyn Fn(Expr) -> Expr| Some(coalesced(inner)?.into_iter().map(cast).collect::<Vec<_>>());
    match expr {
        Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(last) }) => {
            let tested = |(when, then): &(Box<Expr>, Box<Expr>)| match when.as_ref() {
                Expr::IsNotNull(tested) if tested == then => Some(then.as_ref().clone()),
                _ => None,
            };
            let mut args = when_then_expr.iter().map(tested).collect::<Option<Vec<_>>>()?;
            args.push(last.as_ref().clone());
            Some(args)
        }
        Expr::Cast(cast) => {
            around(&cast.expr, &|arg| Expr::Cast(Cast { expr: Box::new(arg), field: Arc::clone(&cast.field) }))
        }
        // A cast that could make a value NULL chooses differently when it stands inside.
        Expr::ScalarFunction(function) => {
            match (function.func.inner().downcast_ref::<SparkCast>(), function.args.as_slice()) {
                (Some(cast), [inner]) if cast.keeps_values() => around(inner, &|arg| {
                    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&function.func), vec![arg]))
                }),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The CASE expression that a conditional function means; its arguments are returned when it is none, or when what
/// would stand twice in it is large and computing every argument for every row does no harm.
pub(super) fn as_case(
    name: &str,
    mut args: Vec<Expr>,
    can_fail: impl Fn(&Expr) -> bool,
) -> std::result::Result<Expr, Vec<Expr>> {
    let case = |pairs: Vec<(Expr, Expr)>, otherwise: Option<Expr>| {
        let pairs = pairs.into_iter().map(|(when, then)| (Box::new(when), Box::new(then))).collect();
        Ok(Expr::Case(Case::new(None, pairs, otherwise.map(Box::new))))
    };
    match (name, args.len()) {
        ("coalesce" | "nvl", 1) => Ok(args.remove(0)),
        ("coalesce" | "nvl", 2..) => {
            let flat = |arg: &Expr| coalesced(arg).unwrap_or_else(|| vec![arg.clone()]);
            let mut flat: Vec<Expr> = args.iter().flat_map(flat).collect();
            if flat.iter().rev().skip(1).any(is_large) && !args.iter().skip(1).any(can_fail) {
                return Err(args);
            }
            let last = flat.pop();
            case(flat.into_iter().map(|arg| (arg.clone().is_not_null(), arg)).collect(), last)
        }
        ("nvl2", 3) => {
            let no = args.pop();
            let (tested, yes) = (args.remove(0), args.remove(0));
            case(vec![(tested.is_not_null(), yes)], no)
        }
        ("if", 3) => {
            let no = args.pop();
            let (condition, yes) = (args.remove(0), args.remove(0));
            case(vec![(condition, yes)], no)
        }
        // Both sides are computed for every row in any case.
        ("nullif", 2) if is_large(&args[0]) => Err(args),
        ("nullif", 2) => {
            let (value, other) = (args.remove(0), args.remove(0));
            case(vec![(value.clone().eq(other), lit(ScalarValue::Null))], Some(value))
        }
        _ => Err(args),
    }
}
