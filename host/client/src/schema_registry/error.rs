//! What can go wrong with a schema registry.

use millstream_common::{Fault, Hint, OptionError};

/// A registry could not be asked, or did not answer with what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The address does not fit.
    #[error("the schema registry cannot be at `{place}`: {reason}")]
    Address {
        /// The address, without passwords.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An option does not fit.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// Nobody answers there, or the connection broke.
    #[error("cannot reach the schema registry at `{place}`")]
    Unreachable {
        /// The registry.
        place: String,
        /// What the network said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It took too long.
    #[error("the schema registry at `{place}` did not answer within {milliseconds} ms")]
    TimedOut {
        /// The registry.
        place: String,
        /// The limit.
        milliseconds: u128,
    },
    /// It cannot answer now, however often it is asked.
    #[error("the schema registry at `{place}` cannot answer now: status {status}, {message}")]
    Busy {
        /// The registry.
        place: String,
        /// Of the last answer.
        status: u16,
        /// What it said.
        message: String,
    },
    /// It does not let us in.
    #[error("the schema registry at `{place}` does not let this query in: status {status}")]
    Denied {
        /// The registry.
        place: String,
        /// 401 or 403.
        status: u16,
    },
    /// It keeps no schema of that number.
    #[error("the schema registry at `{place}` has no schema {id}")]
    UnknownId {
        /// The registry.
        place: String,
        /// The number.
        id: u32,
    },
    /// It keeps no such version of that subject.
    #[error("the schema registry at `{place}` has no version `{version}` of subject `{subject}`")]
    UnknownVersion {
        /// The registry.
        place: String,
        /// The subject.
        subject: String,
        /// The version.
        version: String,
    },
    /// The subject's rule of compatibility does not let a schema in.
    #[error("subject `{subject}` of the schema registry at `{place}` does not take the schema: {message}")]
    Incompatible {
        /// The registry.
        place: String,
        /// The subject.
        subject: String,
        /// What it said.
        message: String,
    },
    /// It refuses something else.
    #[error("the schema registry at `{place}` refuses with status {status}: {message}")]
    Refused {
        /// The registry.
        place: String,
        /// The status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The answer is larger than any schema.
    #[error("an answer of the schema registry at `{place}` has more than {limit} bytes")]
    TooLarge {
        /// The registry.
        place: String,
        /// The limit.
        limit: usize,
    },
    /// What answers is no schema registry.
    #[error("what answers at `{place}` is no schema registry: {reason}")]
    NoRegistry {
        /// The address.
        place: String,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl RegistryError {
    /// Whether the question was understood and the answer is that there is no such thing.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::UnknownId { .. } | Self::UnknownVersion { .. })
    }

    /// The error and what led to it in one line, with the way out.
    pub fn in_one_line(&self) -> String {
        let mut line = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            line.push_str(": ");
            line.push_str(&error.to_string());
            cause = error.source();
        }
        match self.hint() {
            Some(hint) => format!("{line}; {hint}"),
            None => line,
        }
    }
}

impl Hint for RegistryError {
    fn fault(&self) -> Fault {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Busy { .. } => Fault::Outside,
            Self::UnknownId { .. } => Fault::Data,
            _ => Fault::Query,
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Address { .. } | Self::NoRegistry { .. } => {
                "write the address as in `http://registry.example.org:8081`, with the path of the registry's own API if it has one"
            }
            Self::Unreachable { .. } => "start the registry, or correct the address",
            Self::TimedOut { .. } => "raise `http.read.timeout.ms`, or look what the registry is waiting for",
            Self::Busy { .. } => "start the query again when the registry is ready: it goes on where it was",
            Self::Denied { .. } => {
                "let `basic.auth.user.info.env` or `bearer.auth.token.env` name a variable with credentials that the registry takes"
            }
            Self::UnknownId { .. } => {
                "name the registry that the values were written with; with mode = PERMISSIVE such values are null"
            }
            Self::UnknownVersion { .. } => {
                "correct the subject (of a topic's values it is mostly TOPIC-value), or register a schema"
            }
            Self::Incompatible { .. } => {
                "change the columns, give an `avroSchema` that fits, or change the subject's rule"
            }
            Self::Option(_) | Self::Refused { .. } | Self::TooLarge { .. } => return None,
        };
        Some(text.into())
    }
}
