//! What a frame reads: its streams and static tables.

use crate::RuntimeError;
use crate::spec::{StreamSpec, TableSpec};
use millstream_source::SourceSpec;

/// The leaves of a frame. A stream that is used twice is there once.
#[derive(Debug, Clone, Default)]
pub(super) struct Reads {
    pub(super) streams: Vec<StreamSpec>,
    pub(super) tables: Vec<TableSpec>,
}

impl Reads {
    pub(super) fn stream(stream: StreamSpec) -> Self {
        Self { streams: vec![stream], tables: Vec::new() }
    }

    pub(super) fn table(table: TableSpec) -> Self {
        Self { streams: Vec::new(), tables: vec![table] }
    }

    /// Everything that several frames read.
    ///
    /// # Errors
    /// When two different streams have one name.
    pub(super) fn of_all<'a>(all: impl IntoIterator<Item = &'a Self>) -> Result<Self, RuntimeError> {
        let mut merged = Self::default();
        for reads in all {
            for stream in &reads.streams {
                merged.add(stream)?;
            }
            for table in &reads.tables {
                if !merged.tables.iter().any(|known| known.name() == table.name()) {
                    merged.tables.push(table.clone());
                }
            }
        }
        Ok(merged)
    }

    fn add(&mut self, stream: &StreamSpec) -> Result<(), RuntimeError> {
        let name = &stream.source.name;
        match self.streams.iter().find(|known| known.source.name == *name) {
            None => self.streams.push(stream.clone()),
            Some(known) if is_same(&known.source, &stream.source) => {}
            Some(_) => {
                return Err(RuntimeError::Invalid {
                    reason: format!("two different streams are called `{name}`"),
                    hint: Some("give each a name of its own: read_stream().name(\"clicks\")".into()),
                });
            }
        }
        Ok(())
    }

    /// The one stream under another name.
    pub(super) fn renamed(&self, name: &str) -> Self {
        let mut renamed = self.clone();
        for stream in &mut renamed.streams {
            stream.source.name = name.to_owned();
        }
        renamed
    }
}

fn is_same(one: &SourceSpec, other: &SourceSpec) -> bool {
    one.format == other.format && one.schema == other.schema && one.options == other.options
}
