//! What can be wrong with a query file or host file.

use millstream_common::{Fault, Hint};
use millstream_package::PackageError;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<Path>,
    /// The line, from 1; `None` for the file as a whole.
    pub line: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// A query could not be made from its files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryFileError {
    /// A file could not be read.
    #[error("cannot read {what} `{}`", .path.display())]
    Unreadable {
        /// What it should be: a query file, a component, …
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is larger than anybody needs.
    #[error("cannot take `{}` as {what}: it has more than {limit} bytes", .path.display())]
    TooLarge {
        /// What it should be.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The most bytes.
        limit: u64,
    },
    /// The text is no TOML, has an unknown key, or a value of another type.
    #[error("{place}: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser said.
        message: String,
    },
    /// A key is missing.
    #[error("{place}: `{key}` is missing")]
    Missing {
        /// Where it should be.
        place: Place,
        /// The key.
        key: String,
        /// What to write.
        hint: String,
    },
    /// A value does not fit.
    #[error("{place}: `{key}` cannot be `{value}`: {reason}")]
    Invalid {
        /// Where.
        place: Place,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is expected.
        reason: String,
    },
    /// Two keys contradict each other.
    #[error("{place}: {reason}")]
    Conflict {
        /// Where.
        place: Place,
        /// Which, and why.
        reason: String,
        /// The way out.
        hint: String,
    },
    /// A plugin asks for more than the operator grants.
    #[error("{place}: plugin `{plugin}` asks for `{key} = {asked}`, and the host file grants at most {maximum}")]
    NotGranted {
        /// Where it is asked for.
        place: Place,
        /// The plugin.
        plugin: String,
        /// The limit.
        key: &'static str,
        /// What it asks for.
        asked: String,
        /// What is granted.
        maximum: String,
    },
    /// A component that a plugin names cannot be had or is not let in.
    #[error("{place}: plugin `{plugin}` has no component")]
    Package {
        /// Where it is named.
        place: Place,
        /// The plugin.
        plugin: String,
        /// Why not.
        #[source]
        source: Box<PackageError>,
    },
    /// A component that a person names, or the lock file.
    #[error(transparent)]
    Component(#[from] PackageError),
    /// A variable of the environment is unknown or does not fit.
    #[error("environment variable `{name}` {reason}")]
    Environment {
        /// The variable.
        name: String,
        /// What is wrong with it.
        reason: String,
        /// The way out.
        hint: Option<String>,
    },
    /// A flag of the command line does not fit.
    #[error("`{flag}` {reason}")]
    Flag {
        /// The flag with its value.
        flag: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Hint for QueryFileError {
    fn fault(&self) -> Fault {
        match self {
            Self::Unreadable { source, .. }
                if !matches!(source.kind(), ErrorKind::NotFound | ErrorKind::InvalidData | ErrorKind::IsADirectory) =>
            {
                Fault::Outside
            }
            Self::Package { source, .. } => source.fault(),
            Self::Component(error) => error.fault(),
            _ => Fault::Query,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { source, .. } if source.kind() == ErrorKind::NotFound => {
                Some("check the path; paths in a query file are relative to that file".into())
            }
            Self::Missing { hint, .. } | Self::Conflict { hint, .. } => Some(hint.clone()),
            Self::NotGranted { key, .. } => {
                Some(format!("ask for less, or have the operator raise `{key}_max` under [plugins] in the host file"))
            }
            Self::Environment { hint, .. } => hint.clone(),
            Self::Package { source, .. } => source.hint(),
            Self::Component(error) => error.hint(),
            Self::Flag { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::Syntax { .. }
            | Self::Invalid { .. } => None,
        }
    }
}
