//! Opens everything a run needs: plugins, tables, plan, sources, sink.

use super::canary::RunningCanary;
use super::planned::Components;
use super::recovery::Recovered;
use crate::spec::{PluginSpec, QuerySpec, StreamSpec, TableSpec};
use crate::{RuntimeError, Session};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use millstream_checkpoint::{Checkpoint, PluginPin, ResumePoint};
use millstream_common::{BatchTime, Digest, Options, OutputMode, ReadLimit, SqlSettings, StopSignal};
use millstream_operators::{LateRowsPolicy, SegmentSlot};
use millstream_plan::{BeyondSpark, PlanSettings, QueryInput, StaticTable, StreamInput, StreamingPlan};
use millstream_sink::connectors::plugin::{self, PluginSinkFactory};
use millstream_sink::{Guarantee, Sink, SinkContext, SinkError, SinkSpec};
use millstream_source::connectors::{mysql, postgres};
use millstream_source::{Offset, Refresh, Source, SourceContext, SourceSpec};
use millstream_wasm::{PluginHost, PluginSlot};
use std::sync::Arc;

/// A source at work.
pub(super) struct RunningSource {
    /// The stream's name.
    pub(super) name: String,
    /// The source.
    pub(super) source: Box<dyn Source>,
    /// The end of the last batch that was defined.
    pub(super) at: Option<Offset>,
}

/// A plugin at work.
pub(crate) struct RunningPlugin {
    /// Where it stands in the query.
    pub(crate) slot: Arc<PluginSlot>,
    /// The component that ran first in this run.
    pub(super) bytes: Bytes,
    /// The component that the query names; the one that runs may be another since a swap.
    pub(super) named: Digest,
    /// The one that it named in the last batch of the log.
    pub(super) named_before: Digest,
    /// Which of the two the log gets: the former while what the query names has been refused, so that the next start gives
    /// its verdict again.
    pub(super) declared: Digest,
    /// What its configuration is, as a digest: limits and policy.
    pub(super) config: Digest,
    /// Why the last swap that was asked for did not happen.
    pub(super) swap_refused: Option<String>,
    /// The candidate that computes a slice of the keys, while there is one.
    pub(super) canary: Option<RunningCanary>,
}

/// Loads the plugins: each with the component that the next batch must run.
///
/// A batch that is to be run again gets the components that its log entry names. Otherwise the component of the
/// last logged batch goes on, as long as the query still names the one that it named then. A query that names
/// another has been edited: the new component runs from the next new batch on. What it must fit is the plan, which is
/// made anew, and the state, which is compared.
pub(super) fn plugins(
    host: &Arc<PluginHost>,
    specs: &[PluginSpec],
    (recovered, components): (&Recovered, Option<&Components>),
    checkpoint: Option<&Checkpoint>,
) -> Result<Vec<RunningPlugin>, RuntimeError> {
    let mut running = Vec::new();
    for spec in specs {
        let declared = spec.digest();
        let config = Digest::of(format!("{:?} {:?}", spec.limits, spec.on_fault).as_bytes());
        let pin = recovered.last_entry().and_then(|entry| entry.plugins.get(&spec.name));
        let goes_on = |pin: &PluginPin| recovered.is_rerun() || pin.declared == declared;
        let given = components.and_then(|components| components.get(&spec.name));
        let bytes = match (pin, checkpoint) {
            _ if given.is_some() => given.map(|bytes| Bytes::copy_from_slice(bytes)).unwrap_or_default(),
            (Some(pin), Some(checkpoint)) if pin.digest != declared && goes_on(pin) => {
                checkpoint.plugins().get(&pin.digest)?
            }
            _ => Bytes::copy_from_slice(&spec.component),
        };
        let component = host.load(&spec.name, &bytes)?;
        let slot =
            PluginSlot::new(&spec.name, Arc::clone(host), Arc::clone(&component), spec.limits.clone(), spec.on_fault);
        slot.check_granted(&component)?;
        let (named, named_before) = (declared, pin.map_or(declared, |pin| pin.declared));
        let (swap_refused, canary) = (None, None);
        running.push(RunningPlugin { slot, bytes, named, named_before, declared, config, swap_refused, canary });
    }
    Ok(running)
}

/// The plugins that the user changed while a batch was unfinished: that batch runs the old component, and the new one is
/// swapped in at the border after it.
pub(super) fn edited_plugins<'a>(specs: &'a [PluginSpec], recovered: &Recovered) -> Vec<&'a PluginSpec> {
    let Some(entry) = recovered.last_entry().filter(|_| recovered.is_rerun()) else { return Vec::new() };
    let is_edited = |spec: &&PluginSpec| {
        let digest = spec.digest();
        entry.plugins.get(&spec.name).is_some_and(|pin| pin.declared != digest && pin.digest != digest)
    };
    specs.iter().filter(is_edited).collect()
}

/// Loads the plugins as the query names them.
pub(crate) fn load_plugins(host: &Arc<PluginHost>, specs: &[PluginSpec]) -> Result<Vec<RunningPlugin>, RuntimeError> {
    plugins(host, specs, (&Recovered { point: ResumePoint::Fresh }, None), None)
}

/// Reads the static tables.
pub(crate) fn tables(
    session: &Session,
    specs: &[TableSpec],
    stop: &StopSignal,
) -> Result<Vec<StaticTable>, RuntimeError> {
    refuse_changes(specs)?;
    specs
        .iter()
        .map(|spec| match spec {
            TableSpec::Rows { name, schema, rows } => {
                Ok(StaticTable { name: name.clone(), schema: Arc::clone(schema), rows: rows.clone(), live: None })
            }
            TableSpec::Files(spec) => read_table(session, spec, stop),
        })
        .collect()
}

/// Refuses the changes of a table in the place of a table: each reading would begin a stream of its own on the server.
fn refuse_changes(specs: &[TableSpec]) -> Result<(), RuntimeError> {
    for spec in specs {
        let TableSpec::Files(SourceSpec { name, format, .. }) = spec else { continue };
        let of_rows = match format.to_ascii_lowercase().as_str() {
            postgres::CDC_FORMAT => postgres::FORMAT,
            mysql::CDC_FORMAT => mysql::FORMAT,
            _ => continue,
        };
        return Err(RuntimeError::Invalid {
            reason: format!("table `{name}` cannot have the format `{format}`: that is a stream of changes"),
            hint: Some(format!(
                "give the table the format `{of_rows}`, which reads its rows, or name it as a source instead"
            )),
        });
    }
    Ok(())
}

/// Reads a table when a query starts.
fn read_table(session: &Session, spec: &SourceSpec, stop: &StopSignal) -> Result<StaticTable, RuntimeError> {
    let changes = Refresh::of(spec)? != Refresh::Never;
    let (schema, rows) = read_whole(session, spec, stop)?;
    let live = changes.then(|| Arc::new(SegmentSlot::new(Arc::clone(&schema))));
    Ok(StaticTable { name: spec.name.clone(), schema, rows, live })
}

/// The columns and rows of a table, read through a source whose own log goes to a folder that is thrown away.
pub(super) fn read_whole(
    session: &Session,
    spec: &SourceSpec,
    stop: &StopSignal,
) -> Result<(SchemaRef, Vec<RecordBatch>), RuntimeError> {
    let scratch = folder_of_its_own(&format!("table `{}`", spec.name))?;
    let context = SourceContext {
        files: session.open_checkpoint(&scratch.path().display().to_string(), &[])?,
        clock: Arc::clone(session.clock()),
        stop: stop.clone(),
        default_parallelism: 1,
    };
    let mut source = session.sources().factory(spec)?.open_bounded(spec, context)?;
    source.prepare_available_now()?;
    let schema = source.schema();
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    let rows: Vec<RecordBatch> = match source.latest_offset(None, ReadLimit::AllAvailable)? {
        Some(end) => source.read(None, &end, &all)?.into_iter().flatten().collect(),
        None => Vec::new(),
    };
    source.stop();
    Ok((schema, rows))
}

/// A temporary folder for what a source writes down while `what` is read.
pub(crate) fn folder_of_its_own(what: &str) -> Result<tempfile::TempDir, RuntimeError> {
    tempfile::tempdir().map_err(|error| RuntimeError::Invalid {
        reason: format!("{what} cannot be read: no temporary folder can be made: {error}"),
        hint: Some("make room in the folder for temporary files, or name another one with TMPDIR".into()),
    })
}

/// Plans the query. The session knows its sink.
pub(crate) fn plan(
    session: &Session,
    spec: &QuerySpec,
    tables: Vec<StaticTable>,
    plugins: Vec<Arc<PluginSlot>>,
    batch_time: &BatchTime,
) -> Result<StreamingPlan, RuntimeError> {
    let sink = match is_plugin(&spec.sink) {
        true => Some(PluginSinkFactory::new(plugins.clone()).sink_name(&spec.sink)?),
        false => None,
    };
    let mut plan = millstream_plan::plan(&query_input(session, spec, tables, plugins, batch_time)?)?;
    session.sinks().factory(&spec.sink)?.check_columns(&spec.sink, &plan.schema)?;
    // A sink of a plugin is used like a function: a swap looks at it.
    plan.functions.extend(sink);
    plan.functions.extend(plugin_sources(session, spec, &plan));
    Ok(plan)
}

/// The sources of plugins that the query reads: they are used, as functions that it calls are.
fn plugin_sources(session: &Session, spec: &QuerySpec, plan: &StreamingPlan) -> Vec<String> {
    let is_read = |stream: &&StreamSpec| plan.slots.iter().any(|slot| slot.stream == stream.source.name);
    let streams = spec.streams.iter().filter(is_read).map(|stream| &stream.source);
    let tables = spec.tables.iter().filter_map(|table| match table {
        TableSpec::Files(source) => Some(source),
        TableSpec::Rows { .. } => None,
    });
    let of_plugin = |source: &SourceSpec| session.sources().factory(source).ok()?.source_of_plugin(source);
    streams.chain(tables).filter_map(of_plugin).collect()
}

/// What the planner is told of a query.
pub(crate) fn query_input(
    session: &Session,
    spec: &QuerySpec,
    tables: Vec<StaticTable>,
    plugins: Vec<Arc<PluginSlot>>,
    batch_time: &BatchTime,
) -> Result<QueryInput, RuntimeError> {
    refuse_changes(&spec.tables)?;
    let mut streams = Vec::new();
    for stream in &spec.streams {
        let schema: SchemaRef = session.sources().factory(&stream.source)?.schema(&stream.source)?;
        streams.push(StreamInput {
            name: stream.source.name.clone(),
            schema,
            event_time: stream.event_time.clone(),
            drop_duplicates: stream.drop_duplicates.clone(),
        });
    }
    Ok(QueryInput {
        streams,
        tables,
        plugins,
        query: spec.query.clone(),
        mode: spec.mode,
        settings: PlanSettings {
            sql: SqlSettings { ansi: spec.settings.ansi, batch_time: batch_time.clone() },
            partitions: spec.settings.partitions,
            uids: spec.uids.clone(),
            beyond: BeyondSpark {
                max_ahead_us: spec.settings.max_ahead_ms.map(|ms| ms.saturating_mul(1000)),
                late_rows: match (&spec.late_rows, spec.settings.exact_late_rows) {
                    (Some(_), _) => Some(LateRowsPolicy::Keep),
                    (None, true) => Some(LateRowsPolicy::Count),
                    (None, false) => None,
                },
            },
        },
    })
}

/// Opens the sources that the plan reads, at the offsets where the last batch ended.
pub(super) fn sources(
    session: &Session,
    spec: &QuerySpec,
    plan: &StreamingPlan,
    recovered: &Recovered,
    checkpoint: &Checkpoint,
    stop: &StopSignal,
) -> Result<Vec<RunningSource>, RuntimeError> {
    let mut running: Vec<RunningSource> = Vec::new();
    for slot in &plan.slots {
        if running.iter().any(|source| source.name == slot.stream) {
            continue;
        }
        let Some(stream) = spec.streams.iter().find(|stream| stream.source.name == slot.stream) else { continue };
        let context = SourceContext {
            files: Arc::new(checkpoint.source_files(&slot.stream)),
            clock: Arc::clone(session.clock()),
            stop: stop.clone(),
            default_parallelism: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        };
        let source = session.sources().factory(&stream.source)?.open(&stream.source, context)?;
        let at = recovered.offset_before_next(&slot.stream).map(Offset);
        running.push(RunningSource { name: slot.stream.clone(), source, at });
    }
    Ok(running)
}

/// The session with the sinks of these plugins, if the query writes to one.
pub(crate) fn with_plugin_sink(session: &Session, spec: &QuerySpec, slots: Vec<Arc<PluginSlot>>) -> Session {
    match is_plugin(&spec.sink) {
        true => session.with_sink(plugin::FORMAT, Arc::new(PluginSinkFactory::new(slots))),
        false => session.clone(),
    }
}

/// Whether a sink is one of a plugin.
pub(super) fn is_plugin(sink: &SinkSpec) -> bool {
    sink.format.eq_ignore_ascii_case(plugin::FORMAT)
}

/// Checks the sink's options; opens nothing.
pub(crate) fn check_sink(session: &Session, spec: &QuerySpec) -> Result<(), RuntimeError> {
    Ok(session.sinks().factory(&spec.sink)?.check(&spec.sink)?)
}

/// Looks at the place to which the result goes; creates nothing.
pub(crate) fn check_place(
    session: &Session,
    spec: &QuerySpec,
    schema: &SchemaRef,
    stop: &StopSignal,
) -> Result<(), RuntimeError> {
    Ok(session.sinks().factory(&spec.sink)?.check_place(&with_store_options(spec), schema, stop)?)
}

/// Opens the sink.
pub(super) fn sink(session: &Session, spec: &QuerySpec, context: SinkContext) -> Result<Box<dyn Sink>, RuntimeError> {
    let sink = session.sinks().factory(&spec.sink)?.open(&with_store_options(spec), context)?;
    check_opened(sink.as_ref(), spec, "set `checkpointLocation`")?;
    Ok(sink)
}

/// The sink with what the host says of object stores, when it writes to one; what the sink says itself wins.
pub(crate) fn with_store_options(spec: &QuerySpec) -> SinkSpec {
    spec.sink.with_store_options(&spec.checkpoint_options)
}

/// Refuses a sink that does not take an output mode.
pub(crate) fn check_mode(sink: &dyn Sink, format: &str, mode: OutputMode) -> Result<(), SinkError> {
    if sink.supports(mode) {
        return Ok(());
    }
    let modes = [OutputMode::Append, OutputMode::Update, OutputMode::Complete];
    let known = modes.into_iter().filter(|mode| sink.supports(*mode)).map(|mode| mode.to_string());
    Err(SinkError::Mode { sink: format.to_owned(), mode, known: known.collect::<Vec<_>>().join(", ") })
}

/// Refuses a sink that does not take the query's output mode, or that needs a checkpoint where there is none; `hint` is how
/// to give one.
pub(crate) fn check_opened(sink: &dyn Sink, spec: &QuerySpec, hint: &str) -> Result<(), RuntimeError> {
    check_mode(sink, &spec.sink.format, spec.mode)?;
    if sink.guarantee() == Guarantee::ExactlyOnce && spec.checkpoint.is_none() {
        return Err(RuntimeError::Invalid {
            reason: format!(
                "sink `{}` writes exactly once, and for that the query needs a checkpoint",
                spec.sink.format
            ),
            hint: Some(hint.into()),
        });
    }
    Ok(())
}

/// The option that names the checkpoint, wherever a user put it (Spark: an option of the writer).
const CHECKPOINT_LOCATION: &str = "checkpointLocation";

/// The checkpoint that a writer's options name.
pub(crate) fn checkpoint_option(options: &Options) -> Option<String> {
    options.get(CHECKPOINT_LOCATION).map(str::to_owned)
}

/// Options without the one that is not the connector's.
pub(crate) fn without_checkpoint(options: &Options) -> Options {
    let mut rest = Options::new();
    for (key, value) in options.iter().filter(|(key, _)| !key.eq_ignore_ascii_case(CHECKPOINT_LOCATION)) {
        rest.set(key, value);
    }
    rest
}
