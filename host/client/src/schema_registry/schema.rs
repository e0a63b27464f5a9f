//! What a registry keeps: schemas, and the versions of subjects.

use std::fmt;
use std::sync::Arc;

/// In which language a schema is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SchemaKind {
    /// Avro, which is meant where an answer says nothing.
    Avro,
    /// JSON Schema.
    Json,
    /// Protocol Buffers.
    Protobuf,
    /// What else a registry keeps, in its own word.
    Other(String),
}

impl SchemaKind {
    /// The language that a registry names so.
    pub fn named(name: Option<&str>) -> Self {
        match name.unwrap_or("AVRO") {
            "AVRO" => Self::Avro,
            "JSON" => Self::Json,
            "PROTOBUF" => Self::Protobuf,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The registry's name for it.
    pub fn name(&self) -> &str {
        match self {
            Self::Avro => "AVRO",
            Self::Json => "JSON",
            Self::Protobuf => "PROTOBUF",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for SchemaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A schema that another one uses by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The name under which it is used.
    pub name: String,
    /// The subject where it is kept.
    pub subject: String,
    /// Which version of that subject.
    pub version: u32,
}

/// A schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schema {
    /// Its language.
    pub kind: SchemaKind,
    /// What is written.
    pub text: String,
    /// What it uses of other subjects.
    pub references: Vec<Reference>,
}

impl Schema {
    /// A schema in Avro that uses no other.
    pub fn avro(text: impl Into<String>) -> Self {
        Self { kind: SchemaKind::Avro, text: text.into(), references: Vec::new() }
    }
}

/// A schema as one version of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The number that stands before values.
    pub id: u32,
    /// The version, from 1.
    pub version: u32,
    /// The schema.
    pub schema: Arc<Schema>,
}

/// Which version of a subject is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// The newest one.
    Latest,
    /// That one, from 1.
    Number(u32),
}

impl Version {
    /// `latest`, or a number from 1.
    pub fn named(text: &str) -> Option<Self> {
        match text.trim() {
            latest if latest.eq_ignore_ascii_case("latest") => Some(Self::Latest),
            number => number.parse().ok().filter(|&number| number > 0).map(Self::Number),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}
