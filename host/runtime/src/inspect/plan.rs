//! A query, planned and checked, but not run.

use crate::spec::TableSpec;
use crate::{QuerySpec, RuntimeError, Session};
use millstream_common::{BatchTime, Digest, OutputMode, QueryId, SqlSettings};
use millstream_plan::{PlanSettings, QueryInput, StaticTable, StreamInput, StreamingPlan, ddl};
use millstream_sink::{Guarantee, SinkContext, SinkError, SinkSpec};
use millstream_source::SourceSpec;
use millstream_wasm::PluginSlot;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;

/// The state that a stateful operator keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorState {
    /// The operator's uid: its folder in the checkpoint.
    pub uid: String,
    /// Partitions.
    pub partitions: u32,
    /// Key and value in words.
    pub schema: String,
}

/// A query that could start as far as it is up to the query.
#[derive(Debug, Clone)]
pub struct CheckedQuery {
    /// The result's columns: name and type.
    pub columns: Vec<(String, String)>,
    /// The streams that the query reads, with their connectors.
    pub sources: Vec<(String, String)>,
    /// The stateful operators.
    pub state: Vec<OperatorState>,
    /// The plugins and their digests.
    pub plugins: Vec<(String, Digest)>,
    logical: String,
    operators: String,
    sink: String,
}

/// Plans a query and checks its options, plugins and output mode, and whether it fits its checkpoint if there is one.
/// Opens no source, creates nothing.
///
/// # Errors
/// What a start would refuse.
pub fn check(session: &Session, spec: &QuerySpec) -> Result<CheckedQuery, RuntimeError> {
    let recovered = crate::query::look(session, spec)?;
    let mut spec = spec.clone();
    if let Some(recovered) = &recovered {
        recovered.restore_settings(&mut spec.settings)?;
    }
    let spec = &spec;
    check_sink(session, spec)?;
    let host = session.plugin_host()?;
    let mut slots = Vec::new();
    for plugin in &spec.plugins {
        let component = host.load(&plugin.name, &plugin.component)?;
        slots.push(PluginSlot::new(&plugin.name, Arc::clone(&host), component, plugin.limits.clone(), plugin.on_fault));
    }
    let mut plan = plan(session, spec, slots)?;
    if let Some(recovered) = &recovered {
        recovered.check_sources(&plan.slots)?;
        recovered.check_state(&mut plan.pipeline)?;
    }
    let mut state = Vec::new();
    let visited: Result<(), Infallible> = plan.pipeline.for_each_stateful(|operator| {
        state.push(OperatorState {
            uid: operator.uid().to_string(),
            partitions: operator.partitions(),
            schema: operator.schema_text(),
        });
        Ok(())
    });
    match visited {
        Ok(()) => {}
        Err(never) => match never {},
    }
    let format_of = |stream: &str| {
        let found = spec.streams.iter().find(|known| known.source.name == stream);
        found.map(|stream| stream.source.format.clone()).unwrap_or_default()
    };
    let columns = plan.schema.fields().iter();
    Ok(CheckedQuery {
        columns: columns.map(|field| (field.name().clone(), ddl::format_data_type(field.data_type()))).collect(),
        sources: plan.slots.iter().map(|slot| (slot.stream.clone(), format_of(&slot.stream))).collect(),
        state,
        plugins: spec.plugins.iter().map(|plugin| (plugin.name.clone(), plugin.digest())).collect(),
        operators: plan.pipeline.describe(),
        logical: plan.logical,
        sink: format!("{} in mode {}", spec.sink.format, spec.mode),
    })
}

impl CheckedQuery {
    /// Plan, operators, sources, state, plugins and result, for people.
    pub fn explain(&self) -> String {
        let mut text = format!("== Logical plan ==\n{}\n\n== Operators ==\n{}", self.logical, self.operators);
        section(&mut text, "Sources", self.sources.iter().zip(0..).map(|((n, f), i)| format!("#{i} {n}: {f}")));
        let state = self.state.iter();
        section(&mut text, "State", state.map(|s| format!("{}: {} partitions, {}", s.uid, s.partitions, s.schema)));
        section(&mut text, "Plugins", self.plugins.iter().map(|(name, digest)| format!("{name}: {digest}")));
        section(&mut text, "Result", self.columns.iter().map(|(name, data_type)| format!("{name}: {data_type}")));
        section(&mut text, "Sink", std::iter::once(self.sink.clone()));
        text
    }
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\n== {title} ==\n");
    let mut is_empty = true;
    for line in lines {
        is_empty = false;
        let _ = writeln!(text, "{line}");
    }
    if is_empty {
        text.push_str("none\n");
    }
}

fn plan(session: &Session, spec: &QuerySpec, plugins: Vec<Arc<PluginSlot>>) -> Result<StreamingPlan, RuntimeError> {
    let schema = |source: &SourceSpec| session.sources().factory(source)?.schema(source);
    let mut streams = Vec::new();
    for stream in &spec.streams {
        let name = stream.source.name.clone();
        streams.push(StreamInput {
            name,
            schema: schema(&stream.source)?,
            event_time: stream.event_time.clone(),
            drop_duplicates: stream.drop_duplicates.clone(),
        });
    }
    let mut tables = Vec::new();
    for table in &spec.tables {
        // A plan depends on a table's columns, not on its rows.
        tables.push(match table {
            TableSpec::Rows { name, schema, .. } => {
                StaticTable { name: name.clone(), schema: Arc::clone(schema), rows: Vec::new() }
            }
            TableSpec::Files(source) => {
                StaticTable { name: source.name.clone(), schema: schema(source)?, rows: Vec::new() }
            }
        });
    }
    let input = QueryInput {
        streams,
        tables,
        plugins,
        sql: spec.sql.clone(),
        mode: spec.mode,
        settings: PlanSettings {
            sql: SqlSettings { ansi: spec.settings.ansi, batch_time: BatchTime::default() },
            partitions: spec.settings.partitions,
            uids: spec.uids.clone(),
        },
    };
    Ok(millstream_plan::plan(&input)?)
}

/// Options, output mode, and the need of a checkpoint.
fn check_sink(session: &Session, spec: &QuerySpec) -> Result<(), RuntimeError> {
    let factory = session.sinks().factory(&spec.sink)?;
    factory.check(&spec.sink)?;
    // Only an open sink tells its modes, so it is opened over memory in place of the files that it names.
    let mut options = spec.sink.options.clone();
    if options.get("path").is_some() {
        options.set("path", "memory:///check");
    }
    let in_memory = SinkSpec { format: spec.sink.format.clone(), options };
    let context = SinkContext {
        query: QueryId(uuid::Uuid::new_v4()),
        query_name: spec.name.clone(),
        clock: Arc::clone(session.clock()),
    };
    let sink = factory.open(&in_memory, context)?;
    if !sink.supports(spec.mode) {
        let modes = [OutputMode::Append, OutputMode::Update, OutputMode::Complete];
        let known = modes.into_iter().filter(|mode| sink.supports(*mode)).map(|mode| mode.to_string());
        let known = known.collect::<Vec<_>>().join(", ");
        return Err(SinkError::Mode { sink: spec.sink.format.clone(), mode: spec.mode, known }.into());
    }
    if sink.guarantee() == Guarantee::ExactlyOnce && spec.checkpoint.is_none() {
        let format = &spec.sink.format;
        return Err(RuntimeError::Invalid {
            reason: format!("sink `{format}` writes exactly once, and for that the query needs a checkpoint"),
            hint: Some("set `checkpoint`".into()),
        });
    }
    Ok(())
}
