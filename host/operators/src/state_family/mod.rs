//! What the bytes in a state store mean, family by family, without the operator that wrote them.
//!
//! ```text
//!   key    = [event time, 8 bytes]? [row of the key's columns] …      value = [row of columns] …
//!             └── parts of fixed width ┘└ one part that fills ┘ └ parts of fixed width
//! ```
//!
//! Every stateful operator says it of itself ([`Stateful::families`](crate::Stateful::families)), and the offset log
//! keeps it with each batch as JSON. So a checkpoint alone can be read ([`FamilyReader`]), compared with another query
//! column by column, and spread over another number of partitions.
//!
//! Rule of its life: what is stored says how to cut and decode on its own; a form that this program does not know is
//! refused, never guessed.
//!
//! It opens no store and decides no compatibility.

mod column;
mod migrator;
mod plugin_mark;
mod reader;
#[cfg(test)]
mod tests;

pub use migrator::{ColumnsChange, Convert, FamilyMigrator};
pub use plugin_mark::mark_plugin_state;
pub(crate) use plugin_mark::plugin_state;
pub use reader::FamilyReader;

use crate::row_codec::FORMAT;
use arrow::datatypes::Fields;
use serde::{Deserialize, Serialize};

/// One family of an operator's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateFamily {
    /// The name, as in [`FamilySpec`](millstream_state::FamilySpec).
    pub name: String,
    /// The digest that the family's files carry.
    pub schema_id: String,
    /// The parts of a key, in order.
    pub key: Vec<StatePart>,
    /// The parts of a value, in order; none when values are empty.
    pub value: Vec<StatePart>,
}

impl StateFamily {
    /// Whether the keys are spread over partitions: they have columns that decide on it. Otherwise all of them are in
    /// the one partition of a global operator.
    pub fn is_spread(&self) -> bool {
        self.key.iter().any(|part| matches!(part, StatePart::Row(row) if !row.owning().is_empty()))
    }

    /// Whether keys carry an event time in front.
    pub fn has_event_time(&self) -> bool {
        matches!(self.key.first(), Some(StatePart::EventTime(_)))
    }
}

/// A piece of a key or of a value. At most one piece has no width of its own and takes what the others leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatePart {
    /// Eight bytes: microseconds since 1970, big-endian with the sign flipped, so that bytes order like times; all ones
    /// is no time.
    EventTime(String),
    /// Eight bytes: an unsigned number, big-endian.
    U64(String),
    /// Eight bytes: an unsigned number, little-endian.
    U64LittleEndian(String),
    /// Four bytes: an unsigned number, big-endian.
    U32(String),
    /// One byte: a small number or a flag.
    U8(String),
    /// Columns in the row form; no width of its own.
    Row(RowPart),
    /// Event times one after the other, as many as there are; no width of its own.
    EventTimes(String),
    /// UTF-8; no width of its own.
    Text(String),
    /// What only the operator reads; no width of its own.
    Bytes(String),
}

impl StatePart {
    /// Columns in the row form. In a key all of them decide on the partition.
    pub fn row(columns: impl Into<Fields>) -> Self {
        Self::Row(RowPart { form: FORMAT.to_owned(), columns: columns.into(), owners: None, plugins: Vec::new() })
    }

    /// Columns in the row form, some of which have the meaning that a plugin's code gives them.
    pub fn row_of_plugins(columns: impl Into<Fields>, plugins: Vec<PluginColumns>) -> Self {
        Self::Row(RowPart { form: FORMAT.to_owned(), columns: columns.into(), owners: None, plugins })
    }

    /// Columns in the row form, of which those that `owners` numbers decide on the partition: what is hashed is the row of
    /// those columns alone, in that order.
    pub fn owned_row(columns: impl Into<Fields>, owners: Vec<usize>) -> Self {
        Self::Row(RowPart {
            form: FORMAT.to_owned(),
            columns: columns.into(),
            owners: Some(owners),
            plugins: Vec::new(),
        })
    }

    /// The bytes that it takes, if that is always as many.
    fn width(&self) -> Option<usize> {
        match self {
            Self::EventTime(_) | Self::U64(_) | Self::U64LittleEndian(_) => Some(8),
            Self::U32(_) => Some(4),
            Self::U8(_) => Some(1),
            Self::Row(_) | Self::EventTimes(_) | Self::Text(_) | Self::Bytes(_) => None,
        }
    }

    /// Its columns for people: name and type.
    pub fn columns(&self) -> Vec<(String, String)> {
        let one = |name: &String, kind: &str| vec![(name.clone(), kind.to_owned())];
        match self {
            Self::EventTime(name) => one(name, "event time"),
            Self::EventTimes(name) => one(name, "event times"),
            Self::U64(name) | Self::U64LittleEndian(name) => one(name, "UInt64"),
            Self::U32(name) => one(name, "UInt32"),
            Self::U8(name) => one(name, "UInt8"),
            Self::Text(name) => one(name, "Utf8"),
            Self::Bytes(name) => one(name, "bytes of its own"),
            Self::Row(row) => {
                row.columns.iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
            }
        }
    }
}

/// Columns in the row form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowPart {
    /// The name of the row form.
    form: String,
    /// The columns.
    #[serde(with = "column")]
    columns: Fields,
    /// Which of the columns decide on the partition, in the order in which they are hashed; all of them when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owners: Option<Vec<usize>>,
    /// The columns whose meaning is a plugin's; none when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    plugins: Vec<PluginColumns>,
}

/// Columns of a row whose meaning is a plugin's: other code can only go on with them if it names the same meaning, or after
/// they were migrated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginColumns {
    /// The plugin's name in the query.
    pub plugin: String,
    /// The state's name in the plugin: the aggregate function, or `processor.variable`.
    pub state: String,
    /// The author's name for what the columns mean.
    pub state_id: String,
    /// The first of the columns, from 0.
    pub first: usize,
    /// How many they are.
    pub count: usize,
}

impl RowPart {
    /// The columns.
    pub fn columns(&self) -> &Fields {
        &self.columns
    }

    /// The columns whose meaning is a plugin's.
    pub fn plugins(&self) -> &[PluginColumns] {
        &self.plugins
    }

    /// The numbers of the columns that decide on the partition.
    fn owning(&self) -> Vec<usize> {
        self.owners.clone().unwrap_or_else(|| (0..self.columns.len()).collect())
    }
}
