//! CAST and TRY_CAST as expressions of a plan.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use millstream_common::{BatchTime, SqlSettings};

use super::super::fault::{Mode, raise};
use super::super::type_name::shown_type;
use super::{Rules, can_cast, cast_array, is_plain};

/// The name under which the cast stands in plans.
pub(crate) const CAST: &str = "spark_cast";
/// The name of its `try_` form.
pub(crate) const TRY_CAST: &str = "spark_try_cast";

/// A cast to one type.
#[derive(Debug)]
pub(crate) struct SparkCast {
    to: DataType,
    mode: Mode,
    ansi: bool,
    batch_time: BatchTime,
    signature: Signature,
}

impl PartialEq for SparkCast {
    fn eq(&self, other: &Self) -> bool {
        (&self.to, self.mode, self.ansi) == (&other.to, other.mode, other.ansi)
    }
}

impl Eq for SparkCast {}

impl Hash for SparkCast {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.to, self.mode, self.ansi).hash(state);
    }
}

/// `expr` as `to`, with Spark's meaning: native where that is the same, the function otherwise.
pub(crate) fn cast_expr(expr: Expr, from: &DataType, to: &DataType, settings: &SqlSettings) -> Result<Expr> {
    cast_or_try(expr, from, to, settings, Mode::of(settings.ansi))
}

/// `TRY_CAST(expr AS to)`.
pub(crate) fn try_cast_expr(expr: Expr, from: &DataType, to: &DataType, settings: &SqlSettings) -> Result<Expr> {
    cast_or_try(expr, from, to, settings, Mode::Try)
}

fn cast_or_try(expr: Expr, from: &DataType, to: &DataType, settings: &SqlSettings, mode: Mode) -> Result<Expr> {
    if from == to {
        return Ok(expr);
    }
    if let Expr::Literal(ScalarValue::Null, metadata) = expr {
        return Ok(Expr::Literal(ScalarValue::try_from(to)?, metadata));
    }
    if is_plain(from, to) && !matches!(expr, Expr::Literal(..)) {
        return Ok(Expr::Cast(Cast::new(Box::new(expr), to.clone())));
    }
    if !can_cast(from, to, settings.ansi) {
        return plan_err!(
            "[DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION] a value of type {} cannot be cast to {}",
            shown_type(from),
            shown_type(to)
        );
    }
    let cast = SparkCast {
        to: to.clone(),
        mode,
        ansi: settings.ansi,
        batch_time: settings.batch_time.clone(),
        signature: Signature::any(1, Volatility::Immutable),
    };
    if let Expr::Literal(value, metadata) = &expr {
        // A constant that cannot be cast stays, and fails (or not) when the query runs.
        let folded = value.to_array().ok().and_then(|array| cast_array(&array, to, cast.rules()).ok());
        if let Some(array) = folded {
            return Ok(Expr::Literal(ScalarValue::try_from_array(&array, 0)?, metadata.clone()));
        }
    }
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(cast)), vec![expr])))
}

impl SparkCast {
    /// Whether a value can make the query fail.
    pub(crate) fn can_fail(&self) -> bool {
        self.mode.fails() && self.to != DataType::Utf8
    }

    /// Whether only NULL becomes NULL.
    pub(crate) fn keeps_values(&self) -> bool {
        self.mode.fails() || self.to == DataType::Utf8
    }

    fn rules(&self) -> Rules {
        Rules { mode: self.mode, ansi: self.ansi, today: self.batch_time.get_ms().div_euclid(86_400_000) }
    }
}

impl ScalarUDFImpl for SparkCast {
    fn name(&self) -> &str {
        if self.mode == Mode::Try { TRY_CAST } else { CAST }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let shown: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        let word = if self.mode == Mode::Try { "TRY_CAST" } else { "CAST" };
        Ok(format!("{word}({} AS {})", shown.join(", "), shown_type(&self.to)))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = !self.mode.fails() || args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let cast = |array: &ArrayRef| cast_array(array, &self.to, self.rules()).map_err(raise);
        match args.args.as_slice() {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(cast(array)?)),
            [ColumnarValue::Scalar(value)] => {
                let array = cast(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            _ => exec_err!("a cast takes one value, not {}", args.args.len()),
        }
    }
}
