//! A query, planned and checked, but not run.

use crate::spec::TableSpec;
use crate::{QuerySpec, RuntimeError, Session};
use millstream_common::{BatchTime, Digest, QueryId, StopSignal};
use millstream_operators::StateFamily;
use millstream_plan::{StaticTable, ddl};
use millstream_sink::{SinkContext, SinkSpec};
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
    /// The digest of its form.
    pub schema_id: String,
    /// What the bytes mean, family by family.
    pub families: Vec<StateFamily>,
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

/// Plans a query and checks its options, plugins and output mode, and whether it fits its checkpoint if there is one and the
/// place of its sink. Opens no source, creates nothing.
///
/// # Errors
/// What a start would refuse.
pub fn check(session: &Session, spec: &QuerySpec) -> Result<CheckedQuery, RuntimeError> {
    let recovered = crate::query::look(session, spec)?;
    let mut spec = spec.clone();
    if let Some(recovered) = &recovered {
        recovered.restore_settings(&mut spec.settings)?;
    }
    let session = &session.for_query(&spec);
    session.declare_found(&mut spec)?;
    let spec = &spec;
    let host = session.plugin_host()?;
    let mut slots = Vec::new();
    for plugin in &spec.plugins {
        let component = host.load(&plugin.name, &plugin.component)?;
        slots.push(PluginSlot::new(&plugin.name, Arc::clone(&host), component, plugin.limits.clone(), plugin.on_fault));
    }
    let session = session.with_plugin_sources(&slots);
    let session = &crate::query::with_plugin_sink(&session, spec, slots.clone());
    check_sink(session, spec)?;
    let tables = empty_tables(session, spec)?;
    let mut plan = crate::query::plan(session, spec, tables, slots, &BatchTime::default())?;
    crate::query::check_place(session, spec, &plan.schema, &StopSignal::new())?;
    if let Some(recovered) = &recovered {
        recovered.check_query(session, spec, &mut plan)?;
    }
    let mut state = Vec::new();
    let visited: Result<(), Infallible> = plan.pipeline.for_each_stateful(|operator| {
        state.push(OperatorState {
            uid: operator.uid().to_string(),
            partitions: operator.partitions(),
            schema: operator.schema_text(),
            schema_id: operator.schema_id(),
            families: operator.families(),
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

/// The static tables without their rows: a plan depends on a table's columns only.
fn empty_tables(session: &Session, spec: &QuerySpec) -> Result<Vec<StaticTable>, RuntimeError> {
    let table = |table: &TableSpec| {
        let (name, schema) = match table {
            TableSpec::Rows { name, schema, .. } => (name, Arc::clone(schema)),
            TableSpec::Files(source) => (&source.name, session.sources().factory(source)?.schema(source)?),
        };
        Ok(StaticTable { name: name.clone(), schema, rows: Vec::new(), live: None })
    };
    spec.tables.iter().map(table).collect()
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
        stop: StopSignal::new(),
    };
    let sink = factory.open_idle(&in_memory, context)?;
    crate::query::check_opened(sink.as_ref(), spec, "set `checkpoint`")
}
