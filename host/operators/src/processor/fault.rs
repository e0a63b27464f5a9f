//! Why the state of a processor could not be used.

use crate::OperatorError;
use arrow::error::ArrowError;
use millstream_state::StateError;

/// What is wrong with the state.
#[derive(Debug)]
pub(super) enum StateFault {
    /// Its bytes are not what was written.
    Unreadable(ArrowError),
    /// The store failed.
    Store(StateError),
}

impl StateFault {
    /// The error of the operator that is described so.
    pub(super) fn of(self, operator: &str) -> OperatorError {
        let operator = operator.to_owned();
        match self {
            Self::Unreadable(source) => OperatorError::StateRow { operator, source },
            Self::Store(source) => OperatorError::State { operator, source },
        }
    }
}

/// A row that is not what was written.
pub(super) fn damaged(what: &str) -> StateFault {
    StateFault::Unreadable(ArrowError::ParseError(what.to_owned()))
}

impl From<ArrowError> for StateFault {
    fn from(error: ArrowError) -> Self {
        Self::Unreadable(error)
    }
}

impl From<StateError> for StateFault {
    fn from(error: StateError) -> Self {
        Self::Store(error)
    }
}
