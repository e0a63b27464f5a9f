//! What a query says, as the checkpoint keeps it beside its batches: so that a batch is run again as it was, whatever the
//! query file says by then.
//!
//! Everything that decides on the rows of a batch and is not in its offset entry: SQL, event times, dropped duplicates,
//! uids, and what happens at a plugin's faults. Of a source, whose options may hold secrets and whose place may move, only
//! a digest is kept; of a static table, too. A replay says where that is another one than then.

use super::output_digest::output_digest;
use crate::spec::TableSpec;
use crate::{QuerySpec, RuntimeError};
use arrow::datatypes::Schema;
use bytes::Bytes;
use millstream_checkpoint::{Checkpoint, OffsetEntry};
use millstream_common::Digest;
use millstream_plan::{DropDuplicates, EventTime, Query};
use millstream_source::SourceSpec;
use millstream_wasm::FaultPolicy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a query says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SaidQuery {
    /// The SQL; `None` for a query that a program built.
    sql: Option<String>,
    streams: BTreeMap<String, SaidStream>,
    /// Digests of the static tables.
    tables: BTreeMap<String, Digest>,
    uids: BTreeMap<String, String>,
    /// What happens at a fault of each plugin.
    on_fault: BTreeMap<String, FaultPolicy>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SaidStream {
    event_time: Option<(String, i64)>,
    drop_duplicates: Option<(Vec<String>, bool)>,
    /// A digest of the schema and of all options but the place.
    source: Digest,
}

impl SaidQuery {
    /// What a query says.
    pub(crate) fn of(spec: &QuerySpec) -> Self {
        let mut streams = BTreeMap::new();
        for stream in &spec.streams {
            let said = SaidStream {
                event_time: stream.event_time.as_ref().map(|time| (time.column.clone(), time.delay_us)),
                drop_duplicates: stream
                    .drop_duplicates
                    .as_ref()
                    .map(|drop| (drop.columns.clone(), drop.within_watermark)),
                source: digest(&stream.source),
            };
            streams.insert(stream.source.name.clone(), said);
        }
        let mut tables = BTreeMap::new();
        for table in &spec.tables {
            let digest = match table {
                TableSpec::Files(source) => digest(source),
                TableSpec::Rows { schema, rows, .. } => {
                    let rows = output_digest(schema, rows).map(|pin| pin.digest).unwrap_or_default();
                    Digest::of(format!("{schema:?} {rows}").as_bytes())
                }
            };
            tables.insert(table.name().to_owned(), digest);
        }
        Self {
            sql: match &spec.query {
                Query::Sql(sql) => Some(sql.clone()),
                Query::Frame(_) => None,
            },
            streams,
            tables,
            uids: spec.uids.clone(),
            on_fault: spec.plugins.iter().map(|plugin| (plugin.name.clone(), plugin.on_fault)).collect(),
        }
    }

    /// The text that is stored.
    pub(crate) fn text(&self) -> Result<Bytes, RuntimeError> {
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| unreadable(&error.to_string()))?;
        text.push(b'\n');
        Ok(text.into())
    }

    /// What the query of a batch said; `None` when the checkpoint does not have it.
    ///
    /// # Errors
    /// When it is damaged, or of another release.
    pub(crate) fn at(checkpoint: &Checkpoint, entry: &OffsetEntry) -> Result<Option<Self>, RuntimeError> {
        let Some(digest) = entry.query else { return Ok(None) };
        let Some(text) = checkpoint.queries().get(&digest)? else { return Ok(None) };
        serde_json::from_slice(&text).map(Some).map_err(|error| unreadable(&error.to_string()))
    }

    /// The query as it was. What cannot be taken back is told.
    pub(crate) fn restore(&self, spec: &QuerySpec) -> (QuerySpec, Vec<String>) {
        let now = Self::of(spec);
        let (mut spec, mut notes) = (spec.clone(), Vec::new());
        if now == *self {
            return (spec, notes);
        }
        match &self.sql {
            Some(sql) if now.sql.as_ref() != Some(sql) => {
                notes.push("the query was edited since: its SQL of then was run".to_owned());
                spec.query = Query::Sql(sql.clone());
            }
            Some(_) => {}
            None => notes.push("the query was built by a program: what it is now was run".to_owned()),
        }
        for stream in &mut spec.streams {
            let name = &stream.source.name;
            let Some(said) = self.streams.get(name) else { continue };
            let time = said.event_time.clone();
            stream.event_time = time.map(|(column, delay_us)| EventTime { column, delay_us });
            let duplicates = said.drop_duplicates.clone();
            stream.drop_duplicates =
                duplicates.map(|(columns, within_watermark)| DropDuplicates { columns, within_watermark });
            if now.streams.get(name).is_none_or(|now| now.source != said.source) {
                notes.push(format!("source `{name}` had another schema or other options then"));
            }
        }
        for (name, digest) in &self.tables {
            if now.tables.get(name) != Some(digest) {
                notes.push(format!("table `{name}` was another one then"));
            }
        }
        spec.uids = self.uids.clone();
        for plugin in &mut spec.plugins {
            plugin.on_fault = self.on_fault.get(&plugin.name).copied().unwrap_or(plugin.on_fault);
        }
        (spec, notes)
    }
}

/// A digest of how a source was described, wherever it is.
fn digest(source: &SourceSpec) -> Digest {
    let schema = source.schema.as_deref().map(Schema::fields);
    let options: Vec<(&str, &str)> =
        source.options.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("path")).collect();
    Digest::of(format!("{} {schema:?} {options:?}", source.format.to_ascii_lowercase()).as_bytes())
}

fn unreadable(reason: &str) -> RuntimeError {
    RuntimeError::Invalid { reason: format!("what the query said is not readable: {reason}"), hint: None }
}
