//! A query as a document: what makes the same plan again where neither its file nor its sources are.

use super::folder::{read_rows, unusable, write_rows};
use crate::query::{Fork, read_tables};
use crate::{PluginSpec, QuerySpec, RuntimeError, Session, Settings, StreamSpec, TableSpec};
use arrow::datatypes::SchemaRef;
use millstream_checkpoint::{OffsetEntry, PluginStore, open_files};
use millstream_common::{Digest, Options, OutputMode, StopSignal};
use millstream_plan::{DropDuplicates, EventTime, Query};
use millstream_sink::SinkSpec;
use millstream_source::{Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use millstream_wasm::{FaultPolicy, Permissions, PluginLimits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The format of sources whose rows are handed over; no user can write it, since names of formats have no space.
const FORMAT: &str = "rows of a folder";

/// A query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryDocument {
    /// Its SQL.
    pub sql: String,
    /// Which rows go out.
    pub output_mode: OutputMode,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
    /// Other uids for stateful operators.
    pub uids: BTreeMap<String, String>,
    /// Its streams.
    streams: Vec<StreamDocument>,
    /// Its static tables.
    tables: Vec<String>,
    /// Its plugins.
    plugins: Vec<PluginDocument>,
    /// Whether late rows are kept.
    keeps_late_rows: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamDocument {
    name: String,
    event_time: Option<(String, i64)>,
    drop_duplicates: Option<(Vec<String>, bool)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginDocument {
    name: String,
    digest: Digest,
    on_fault: FaultPolicy,
    memory_bytes: u64,
    deadline_ms: u64,
    result_bytes: u64,
    rows_per_call: usize,
    argument_bytes_per_call: usize,
    config: Option<BTreeMap<String, String>>,
    clock: bool,
    random: bool,
    /// Whether it could ask hosts on the network: then it may be that the row cannot be made again.
    http: bool,
}

fn invalid(reason: String, hint: Option<String>) -> RuntimeError {
    RuntimeError::Invalid { reason, hint }
}

/// Where the columns of a stream are.
fn stream_file(name: &str) -> String {
    format!("inputs/stream-{}.parquet", file_name(name))
}

fn table_file(name: &str) -> String {
    format!("inputs/table-{}.parquet", file_name(name))
}

/// Letters, digits and `_` of a name, and what tells it from others.
fn file_name(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    if plain == name { plain } else { format!("{plain}-{}", Digest::of(name.as_bytes()).short()) }
}

/// Writes what the query joins with, and the columns of its streams.
pub(super) fn write_tables(
    session: &Session,
    spec: &QuerySpec,
    fork: &Fork,
    folder: &Path,
) -> Result<(), RuntimeError> {
    let session = &session.for_query(spec);
    for table in read_tables(session, &spec.tables, &StopSignal::new())? {
        write_rows(&folder.join(table_file(&table.name)), &table.schema, &table.rows)?;
    }
    for stream in &spec.streams {
        let schema = match fork.source_schema(&stream.source.name) {
            Some(schema) => schema,
            None => session.sources().factory(&stream.source)?.schema(&stream.source)?,
        };
        write_rows(&folder.join(stream_file(&stream.source.name)), &schema, &[])?;
    }
    Ok(())
}

impl QueryDocument {
    /// The query as it was when a batch was defined.
    pub(super) fn of(spec: &QuerySpec, entry: &OffsetEntry) -> Result<Self, RuntimeError> {
        let Query::Sql(sql) = &spec.query else {
            let hint = "write it in SQL: `session.sql(…)`, or a query file".to_owned();
            return Err(invalid("a query that was built by methods has no text for a folder".into(), Some(hint)));
        };
        let mut settings = spec.settings.clone();
        settings.restore(&entry.settings)?;
        let stream = |stream: &StreamSpec| StreamDocument {
            name: stream.source.name.clone(),
            event_time: stream.event_time.as_ref().map(|time| (time.column.clone(), time.delay_us)),
            drop_duplicates: stream.drop_duplicates.as_ref().map(|drop| (drop.columns.clone(), drop.within_watermark)),
        };
        let plugin = |plugin: &PluginSpec| {
            let PluginLimits { permissions, .. } = &plugin.limits;
            PluginDocument {
                name: plugin.name.clone(),
                digest: entry.plugins.get(&plugin.name).map_or_else(|| plugin.digest(), |pin| pin.digest),
                on_fault: plugin.on_fault,
                memory_bytes: plugin.limits.memory_bytes,
                deadline_ms: u64::try_from(plugin.limits.deadline.as_millis()).unwrap_or(u64::MAX),
                result_bytes: plugin.limits.result_bytes,
                rows_per_call: plugin.limits.rows_per_call,
                argument_bytes_per_call: plugin.limits.argument_bytes_per_call,
                config: permissions.config.clone(),
                clock: permissions.clock,
                random: permissions.random,
                http: permissions.http.is_some(),
            }
        };
        Ok(Self {
            sql: sql.clone(),
            output_mode: entry.output_mode.unwrap_or(spec.mode),
            settings: settings.values().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            uids: spec.uids.clone(),
            streams: spec.streams.iter().map(stream).collect(),
            tables: spec.tables.iter().map(|table| table.name().to_owned()).collect(),
            plugins: spec.plugins.iter().map(plugin).collect(),
            keeps_late_rows: spec.late_rows.is_some(),
        })
    }

    /// The plugins that could ask hosts on the network.
    pub fn asks_hosts(&self) -> Vec<&str> {
        self.plugins.iter().filter(|plugin| plugin.http).map(|plugin| plugin.name.as_str()).collect()
    }

    /// The query again, and a session that knows its streams.
    pub(super) fn spec(&self, session: &Session, folder: &Path) -> Result<(Session, QuerySpec), RuntimeError> {
        let mut schemas = BTreeMap::new();
        for stream in &self.streams {
            let (schema, _) = read_rows(&folder.join(stream_file(&stream.name)))?;
            schemas.insert(stream.name.clone(), schema);
        }
        let stream = |stream: &StreamDocument| StreamSpec {
            source: SourceSpec {
                name: stream.name.clone(),
                format: FORMAT.to_owned(),
                schema: None,
                options: Options::new(),
            },
            event_time: stream.event_time.clone().map(|(column, delay_us)| EventTime { column, delay_us }),
            drop_duplicates: stream
                .drop_duplicates
                .clone()
                .map(|(columns, within_watermark)| DropDuplicates { columns, within_watermark }),
        };
        let mut tables = Vec::new();
        for name in &self.tables {
            let (schema, rows) = read_rows(&folder.join(table_file(name)))?;
            tables.push(TableSpec::Rows { name: name.clone(), schema, rows });
        }
        let components = PluginStore::new(open_files(&super::folder::checkpoint(folder)?, &[])?);
        let mut plugins = Vec::new();
        for plugin in &self.plugins {
            let permissions = Permissions {
                config: plugin.config.clone(),
                clock: plugin.clock,
                random: plugin.random,
                // Nothing leaves this machine for a row that is looked at again.
                http: None,
                ..Permissions::default()
            };
            if plugin.http {
                let reason =
                    format!("plugin `{}` may ask hosts on the network, and what they said is not kept", plugin.name);
                return Err(unusable(folder, reason));
            }
            plugins.push(PluginSpec {
                name: plugin.name.clone(),
                component: components.get(&plugin.digest)?.to_vec(),
                limits: PluginLimits {
                    memory_bytes: plugin.memory_bytes,
                    deadline: Duration::from_millis(plugin.deadline_ms),
                    result_bytes: plugin.result_bytes,
                    rows_per_call: plugin.rows_per_call,
                    argument_bytes_per_call: plugin.argument_bytes_per_call,
                    permissions: Arc::new(permissions),
                    ..PluginLimits::default()
                },
                on_fault: plugin.on_fault,
            });
        }
        let mut settings = Settings::default();
        for (name, value) in &self.settings {
            settings.set(name, value)?;
        }
        settings.exact_late_rows |= self.keeps_late_rows;
        let streams = self.streams.iter().map(stream).collect();
        let sink = SinkSpec { format: "noop".to_owned(), options: Options::new() };
        let spec = QuerySpec {
            tables,
            plugins,
            mode: self.output_mode,
            settings,
            uids: self.uids.clone(),
            ..QuerySpec::new(self.sql.clone(), streams, sink)
        };
        Ok((session.with_source(FORMAT, Arc::new(Known(schemas))), spec))
    }
}

/// Streams whose columns are known and whose rows are handed over.
struct Known(BTreeMap<String, SchemaRef>);

impl SourceFactory for Known {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        match self.0.get(&spec.name) {
            Some(schema) => Ok(Arc::clone(schema)),
            None => Err(self.unknown(spec)),
        }
    }

    fn open(&self, spec: &SourceSpec, _context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        Err(self.unknown(spec))
    }
}

impl Known {
    fn unknown(&self, spec: &SourceSpec) -> SourceError {
        SourceError::UnknownFormat {
            name: spec.name.clone(),
            format: spec.format.clone(),
            known: self.0.keys().cloned().collect::<Vec<_>>().join(", "),
        }
    }
}
