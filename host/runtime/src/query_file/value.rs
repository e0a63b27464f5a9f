//! Values that were decided on, and where each is from: what `check --show-settings` prints.

use super::Place;
use millstream_common::secrets;
use std::fmt;

/// Where a value is from; later ones win over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The operator's file.
    HostFile(Place),
    /// The author's file.
    QueryFile(Place),
    /// A variable of the environment.
    Environment(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::HostFile(place) => write!(f, "host file {place}"),
            Self::QueryFile(place) => write!(f, "query file {place}"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// One value of a query. Secrets are not in it: their value reads `(hidden)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// Its name: a key of the query file, with the names of its tables before it, or a setting.
    pub name: String,
    /// The value.
    pub value: String,
    /// Where it is from.
    pub origin: Origin,
}

impl Value {
    /// A value, hidden when its name says that it is a secret.
    pub(super) fn new(name: impl Into<String>, value: impl Into<String>, origin: Origin) -> Self {
        let name = name.into();
        let value = secrets::shown(&name, &value.into());
        Self { name, value, origin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_by_their_names() {
        for name in ["object_store.aws_region", "sink.options.password", "source.a.options.api-key"] {
            assert_eq!(Value::new(name, "x", Origin::Default).value, "(hidden)", "{name}");
        }
        for name in ["source.a.options.kafka.sasl.jaas.config", "sink.options.kafka.ssl.key.pem"] {
            assert_eq!(Value::new(name, "x", Origin::Default).value, "(hidden)", "{name}");
        }
        assert_eq!(Value::new("source.a.options.kafka.sasl.username", "x", Origin::Default).value, "x");
        assert_eq!(Value::new("plugin.tokens.memory", "64 MiB", Origin::Default).value, "64 MiB");
    }
}
