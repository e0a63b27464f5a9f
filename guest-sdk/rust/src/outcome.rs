//! What a function's return type means for one row: a value, a failed row, or a refused call.

use std::fmt::Display;

use crate::error::CallError;
use crate::value::Value;

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The row failed.
    Row(String),
    /// The whole call is refused.
    Call(CallError),
}

/// A return type: a [`Value`], or a `Result` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a result of a plugin function",
    label = "not a type of SQL",
    note = "results are bool, i8 to u64, f32, f64, &str, String, &[u8], Vec<u8>, Timestamp, LocalTimestamp, Date, \
            Decimal<P, S>, Vec<T>, structs that derive Row, Option of these, and Result of these with an error that \
            implements Display"
)]
pub trait Outcome {
    /// The type of the column.
    type Value: Value;
    /// Whether there can be no value.
    const CAN_FAIL: bool;
    /// The row's value.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn outcome(self) -> Result<Self::Value, Failure>;
}

impl<T: Value> Outcome for T {
    type Value = T;
    const CAN_FAIL: bool = false;

    #[inline(always)]
    fn outcome(self) -> Result<T, Failure> {
        Ok(self)
    }
}

impl<T: Value, E: IntoFailure> Outcome for Result<T, E> {
    type Value = T;
    const CAN_FAIL: bool = true;

    #[inline(always)]
    fn outcome(self) -> Result<T, Failure> {
        self.map_err(IntoFailure::into_failure)
    }
}

/// The return type of a method that changes a state: nothing, or a `Result` of nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a method that changes a state",
    note = "it returns nothing, or `Result<(), E>` with an error that implements Display or is CallError"
)]
pub trait Done {
    /// Whether it went well.
    ///
    /// # Errors
    ///
    /// Why not.
    fn done(self) -> Result<(), Failure>;
}

impl Done for () {
    #[inline(always)]
    fn done(self) -> Result<(), Failure> {
        Ok(())
    }
}

impl<E: IntoFailure> Done for Result<(), E> {
    #[inline(always)]
    fn done(self) -> Result<(), Failure> {
        self.map_err(IntoFailure::into_failure)
    }
}

/// An error type: of a row when it has a text, of the call when it is a [`CallError`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a plugin function",
    note = "errors implement Display (the row fails) or are CallError (the whole call is refused)"
)]
pub trait IntoFailure {
    /// What fails.
    fn into_failure(self) -> Failure;
}

impl<E: Display> IntoFailure for E {
    fn into_failure(self) -> Failure {
        Failure::Row(self.to_string())
    }
}

impl IntoFailure for CallError {
    fn into_failure(self) -> Failure {
        Failure::Call(self)
    }
}
