//! What can go wrong with a database, in the words of neither.

use crate::patience::Transient;
use millstream_common::{Fault, Hint};

/// A database could not be reached or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// Nobody answers there.
    #[error("cannot reach `{place}`")]
    Unreachable {
        /// The database.
        place: String,
        /// What the network said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection cannot be encrypted as it should be.
    #[error("cannot encrypt the connection to `{place}`")]
    Tls {
        /// The database.
        place: String,
        /// What is wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server does not let the user in.
    #[error("`{place}` does not let user `{user}` in: {message}")]
    Denied {
        /// The database.
        place: String,
        /// The user.
        user: String,
        /// What the server said.
        message: String,
    },
    /// The connection broke; what was asked for may have been done or not.
    #[error("the connection to `{place}` broke")]
    Lost {
        /// The database.
        place: String,
        /// What the network or the server said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A statement took too long.
    #[error("`{place}` did not answer within {seconds} s")]
    Timeout {
        /// The database.
        place: String,
        /// The limit.
        seconds: u64,
    },
    /// Nobody waits for it any more, for the query is to stop; what was asked for may have been done or not.
    #[error("`{place}` had not answered when the query was stopped")]
    Stopped {
        /// The database.
        place: String,
    },
    /// The server gave way to another transaction, or is not ready.
    #[error("`{place}` could not do it now: {message}")]
    Busy {
        /// The database.
        place: String,
        /// What the server said.
        message: String,
    },
    /// A table, column or other thing is not there.
    #[error("`{place}` does not know what it was asked for: {message}")]
    Missing {
        /// The database.
        place: String,
        /// What the server said.
        message: String,
    },
    /// The user may not do that.
    #[error("`{place}` does not allow it: {message}")]
    Forbidden {
        /// The database.
        place: String,
        /// What the server said.
        message: String,
    },
    /// A row breaks a constraint of the table.
    #[error("a row breaks a constraint of `{place}`: {message}")]
    Constraint {
        /// The database.
        place: String,
        /// What the server said, with the key of the row when it said that.
        message: String,
    },
    /// A value does not fit its column.
    #[error("a value does not fit its column in `{place}`: {message}")]
    Value {
        /// The database.
        place: String,
        /// What the server said.
        message: String,
    },
    /// Anything else that the server does not do.
    #[error("`{place}` refuses with error {code}: {message}")]
    Refused {
        /// The database.
        place: String,
        /// The server's code.
        code: String,
        /// What the server said.
        message: String,
    },
}

impl Transient for DatabaseError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Lost { .. } | Self::Timeout { .. } | Self::Busy { .. })
    }
}

impl Hint for DatabaseError {
    fn fault(&self) -> Fault {
        match self {
            Self::Constraint { .. } | Self::Value { .. } => Fault::Data,
            Self::Missing { .. } => Fault::Query,
            _ => Fault::Outside,
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Unreachable { .. } => "start the server, or correct host and port in option `url`",
            Self::Tls { .. } => {
                "correct `sslmode` and `sslrootcert`; `sslmode = \"disable\"` is for a server without TLS"
            }
            Self::Denied { .. } => {
                "correct `user` and the password; it may stand in a variable that option `passwordEnv` names"
            }
            Self::Lost { .. } => "start the query again when the server is back: it goes on where it was",
            Self::Timeout { .. } => "raise `queryTimeout`, or look what the server is waiting for",
            Self::Busy { .. } => "look what else uses the same rows, and start the query again",
            Self::Missing { .. } => "correct the name, or create what is missing",
            Self::Forbidden { .. } => "grant the user the right, or let the query run as another one",
            Self::Constraint { .. } => {
                "let the query leave such rows out, name a `key` to write over rows, or relax the constraint"
            }
            Self::Value { .. } => "cast the column in the query, or change the column of the table",
            Self::Stopped { .. } | Self::Refused { .. } => return None,
        };
        Some(text.into())
    }
}
