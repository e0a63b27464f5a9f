//! The errors that an expression raises at run time, worded with Spark's error class in front.
//!
//! Stands beside every evaluator of this folder. Kernels work in Arrow's error type; [`raise`] turns it into
//! DataFusion's at the border, keeping the text. Nothing here decides whether an error is raised: that is [`Mode`]'s.

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// What an operation does with a value that it cannot give an answer for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// `spark.sql.ansi.enabled`: the query fails.
    Ansi,
    /// ANSI off: integers wrap, the rest is NULL.
    Legacy,
    /// The `try_` forms: NULL.
    Try,
}

impl Mode {
    /// The mode of the ordinary (not `try_`) operations.
    pub(crate) fn of(ansi: bool) -> Self {
        if ansi { Mode::Ansi } else { Mode::Legacy }
    }

    /// Whether a value without an answer fails the query.
    pub(crate) fn fails(self) -> bool {
        self == Mode::Ansi
    }
}

/// A fault inside a kernel.
pub(crate) fn fault(text: String) -> ArrowError {
    ArrowError::ComputeError(text)
}

/// An integer result does not fit its type.
pub(crate) fn overflow(type_name: &str) -> ArrowError {
    fault(format!(
        "[ARITHMETIC_OVERFLOW] the result does not fit the type {type_name}; use the try_ form of the operation to get NULL instead"
    ))
}

/// Division or remainder by zero.
pub(crate) fn division_by_zero() -> ArrowError {
    fault("[DIVIDE_BY_ZERO] division by zero; use try_divide to get NULL instead".to_owned())
}

/// A string that does not spell a value of the target type.
pub(crate) fn malformed(value: &str, to: &str) -> ArrowError {
    const SHOWN: usize = 200;
    let shown: String = value.chars().take(SHOWN).collect();
    fault(format!(
        "[CAST_INVALID_INPUT] the value '{shown}' of type STRING cannot be cast to {to} because it is malformed; use try_cast to get NULL instead"
    ))
}

/// A number outside the target type's range.
pub(crate) fn cast_overflow(value: &str, from: &str, to: &str) -> ArrowError {
    fault(format!(
        "[CAST_OVERFLOW] the value {value} of type {from} cannot be cast to {to} because it is out of range; use try_cast to get NULL instead"
    ))
}

/// A decimal that needs more digits than its type has.
pub(crate) fn decimal_overflow(value: &str, precision: u8, scale: i8) -> ArrowError {
    fault(format!(
        "[NUMERIC_VALUE_OUT_OF_RANGE] the value {value} cannot be represented as DECIMAL({precision},{scale})"
    ))
}

/// Brings a kernel's error over the border; Arrow's own arithmetic errors get Spark's class.
pub(crate) fn raise(error: ArrowError) -> DataFusionError {
    match error {
        ArrowError::DivideByZero => DataFusionError::Execution(text_of(division_by_zero())),
        ArrowError::ArithmeticOverflow(_) => DataFusionError::Execution(
            "[ARITHMETIC_OVERFLOW] the result does not fit the type of the operation; use its try_ form to get NULL instead".to_owned(),
        ),
        ArrowError::ComputeError(text) => DataFusionError::Execution(text),
        other => DataFusionError::from(other),
    }
}

fn text_of(error: ArrowError) -> String {
    match error {
        ArrowError::ComputeError(text) => text,
        other => other.to_string(),
    }
}
