//! Why a query is refused.

use datafusion::error::DataFusionError;
use millstream_common::{Fault, Hint, Hinted, describe_chain};

/// A query cannot be planned as a stream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The SQL does not parse, names something unknown or has types that do not fit.
    #[error("the query cannot be planned: {message}")]
    Sql {
        /// What the planner said, in one line.
        message: String,
    },
    /// What a function of the query needs from outside when it is planned could not be had.
    #[error("the query cannot be planned: {message}")]
    Outside {
        /// What could not be had and why, in one line.
        message: String,
        /// Who must act.
        fault: Fault,
        /// The way out.
        hint: Option<String>,
    },
    /// A method of a frame was given something that does not fit.
    #[error("{method} cannot be planned: {message}")]
    Method {
        /// The method.
        method: &'static str,
        /// What the planner said, in one line.
        message: String,
    },
    /// The query is right SQL, but may not stream in this way.
    #[error("{reason}")]
    Unsupported {
        /// Stable name of the rule, as the documents list it.
        rule: &'static str,
        /// What is not possible and why.
        reason: String,
        /// The way out.
        hint: String,
    },
    /// The stream's declaration does not fit.
    #[error("stream `{stream}`: {reason}")]
    Stream {
        /// The stream.
        stream: String,
        /// What does not fit.
        reason: String,
    },
    /// Two stateful operators would have the same uid.
    #[error("two stateful operators would both be called `{uid}`, so their state could not be told apart")]
    AmbiguousUid {
        /// The uid.
        uid: String,
    },
}

impl PlanError {
    /// An error of DataFusion's planner, in one line.
    pub fn from_datafusion(error: &DataFusionError) -> Self {
        if let Some(found) = Hinted::find(error) {
            return Self::Outside { message: describe_chain(found), fault: found.fault(), hint: found.hint() };
        }
        let text = error.strip_backtrace();
        Self::Sql { message: text.lines().map(str::trim).collect::<Vec<_>>().join(" ") }
    }
}

impl Hint for PlanError {
    fn fault(&self) -> Fault {
        match self {
            Self::Outside { fault, .. } => *fault,
            _ => Fault::Query,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unsupported { hint, .. } => Some(hint.clone()),
            Self::Outside { hint, .. } => hint.clone(),
            Self::AmbiguousUid { .. } => {
                Some("put each stateful part into a WITH clause of its own name: its uid is made from that name".into())
            }
            Self::Sql { .. } | Self::Method { .. } | Self::Stream { .. } => None,
        }
    }
}
