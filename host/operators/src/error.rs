//! What can go wrong inside an operator.

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use millstream_common::{Fault, Hint, Hinted};
use millstream_state::StateError;
use millstream_wasm::WasmError;

/// An operator could not do its part of a batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// An expression failed on the data: a cast, an overflow, a division by zero.
    #[error("{operator} failed")]
    Expression {
        /// The operator, as `explain` shows it.
        operator: String,
        /// What failed.
        #[source]
        source: Box<DataFusionError>,
    },
    /// A plugin call failed.
    #[error("{operator} failed in a plugin")]
    Plugin {
        /// The operator.
        operator: String,
        /// What the plugin did.
        #[source]
        source: Box<WasmError>,
    },
    /// What a function of SQL needs from outside could not be had.
    #[error("{operator} failed for want of something outside")]
    Outside {
        /// The operator.
        operator: String,
        /// What was wanted.
        #[source]
        source: Box<Hinted>,
    },
    /// A function of the program that embeds the host failed.
    #[error("{operator} failed in a function of the program")]
    Function {
        /// The operator.
        operator: String,
        /// What the function said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The code of a processor gave out a row that the operators above would take for late.
    #[error("{operator} gave out a row with the event time {time_ms} ms, and the watermark is at {watermark_ms} ms")]
    OldRow {
        /// The operator.
        operator: String,
        /// Milliseconds since 1970.
        time_ms: i64,
        /// Milliseconds since 1970.
        watermark_ms: i64,
    },
    /// The operator was given parts that do not fit together.
    #[error("{operator} cannot work: {reason}")]
    Misfit {
        /// The operator.
        operator: String,
        /// What does not fit.
        reason: String,
    },
    /// A row of the state is not what the operator wrote.
    #[error("{operator} cannot read a row of its state")]
    StateRow {
        /// The operator.
        operator: String,
        /// What is wrong with the row.
        #[source]
        source: ArrowError,
    },
    /// The state store failed.
    #[error("{operator} cannot use its state")]
    State {
        /// The operator.
        operator: String,
        /// What failed.
        #[source]
        source: StateError,
    },
}

impl OperatorError {
    /// Wraps an error of an expression, looking inside for an error of ours that travelled through DataFusion.
    pub fn from_expression(operator: &str, error: DataFusionError) -> Self {
        let operator = operator.to_owned();
        match unwrap_external::<WasmError>(error) {
            Ok(source) => Self::Plugin { operator, source },
            Err(other) => match unwrap_external::<Hinted>(*other) {
                Ok(source) => Self::Outside { operator, source },
                Err(source) => Self::Expression { operator, source },
            },
        }
    }
}

/// Finds the error that a function handed to DataFusion as `External`. The only place that takes errors out of
/// DataFusion's chain.
fn unwrap_external<E: std::error::Error + 'static>(error: DataFusionError) -> Result<Box<E>, Box<DataFusionError>> {
    match error {
        DataFusionError::External(inner) => {
            inner.downcast::<E>().map_err(|other| Box::new(DataFusionError::External(other)))
        }
        DataFusionError::Context(text, inner) => {
            unwrap_external(*inner).map_err(|inner| Box::new(DataFusionError::Context(text, inner)))
        }
        other => Err(Box::new(other)),
    }
}

impl Hint for OperatorError {
    fn fault(&self) -> Fault {
        match self {
            Self::Expression { .. } => Fault::Data,
            Self::Function { .. } => Fault::Query,
            Self::OldRow { .. } => Fault::Plugin,
            Self::Misfit { .. } => Fault::Bug,
            Self::StateRow { .. } => Fault::Corrupt,
            Self::Plugin { source, .. } => source.fault(),
            Self::Outside { source, .. } => source.fault(),
            Self::State { source, .. } => source.fault(),
        }
    }

    fn may_pass(&self) -> bool {
        match self {
            Self::Outside { source, .. } => source.may_pass(),
            other => other.fault() == Fault::Outside,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::OldRow { .. } => Some(
                "give out rows that are not late: those younger than the watermark that every call is told never are"
                    .into(),
            ),
            Self::Expression { .. } | Self::Function { .. } | Self::Misfit { .. } | Self::StateRow { .. } => None,
            Self::Plugin { source, .. } => source.hint(),
            Self::Outside { source, .. } => source.hint(),
            Self::State { source, .. } => source.hint(),
        }
    }
}
