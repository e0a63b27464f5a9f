//! Errors of whole calls.

use std::fmt::Display;

/// Why a whole call is refused, by who must act.
///
/// It is no `std::error::Error`, so that `?` turns every error into one of the kind [`CallError::internal`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The data's owner: these rows cannot be processed.
    InvalidInput(String),
    /// The world: something needed is not there now; the same call may succeed later.
    Unavailable(String),
    /// The plugin's author.
    Internal(String),
}

/// The result of a function that may refuse the whole call.
pub type CallResult<T> = Result<T, CallError>;

impl CallError {
    /// The data's owner must act.
    pub fn invalid_input(message: impl Display) -> Self {
        Self::InvalidInput(message.to_string())
    }

    /// Something needed is not there now.
    pub fn unavailable(message: impl Display) -> Self {
        Self::Unavailable(message.to_string())
    }

    /// The plugin's author must act.
    pub fn internal(message: impl Display) -> Self {
        Self::Internal(message.to_string())
    }
}

impl<E: std::error::Error> From<E> for CallError {
    fn from(error: E) -> Self {
        Self::internal(error)
    }
}
