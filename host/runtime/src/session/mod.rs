//! The library's way in: sessions, readers, frames, writers, with Spark's names.

mod created_functions;
mod data_frame;
mod grouped;
mod operations;
mod planner;
mod reader;
mod reads;
mod writer;

pub use data_frame::DataFrame;
pub use grouped::{GroupedData, ProcessOptions};
pub use reader::{DataFrameReader, DataStreamReader};
pub use writer::DataStreamWriter;

use crate::packages::Packages;
use crate::spec::{PluginSpec, QuerySpec, StateLimits, TableSpec};
use crate::streams::StreamingQueryManager;
use crate::{RuntimeError, Settings};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use millstream_common::{Clock, DurableFiles, SystemClock};
use millstream_plan::FramePlanner;
use millstream_sink::{SinkFactory, SinkRegistry};
use millstream_source::connectors::plugin;
use millstream_source::{SourceFactory, SourceRegistry, SourceSettings, SourceSpec};
use millstream_wasm::{Gate, PluginHost, PluginHostOptions, PluginSlot};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Opens the folder or URL of a checkpoint.
pub(crate) type OpenCheckpoint =
    Arc<dyn Fn(&str, &[(String, String)]) -> Result<Arc<dyn DurableFiles>, RuntimeError> + Send + Sync>;

/// Where queries are made and started (Spark's `SparkSession`). Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
    /// The source connectors; those of a query may be more.
    sources: SourceRegistry,
    /// The sink connectors; those of a query may be more.
    sinks: SinkRegistry,
}

struct Inner {
    clock: Arc<dyn Clock>,
    open_checkpoint: OpenCheckpoint,
    settings: Mutex<Settings>,
    state_limits: Mutex<StateLimits>,
    packages: Arc<Packages>,
    plugin_host_options: PluginHostOptions,
    plugin_host: OnceLock<Arc<PluginHost>>,
    /// Temporary views with their names, by name in lower case.
    views: Mutex<BTreeMap<String, (String, DataFrame)>>,
    /// Plans frames; made anew after a change of settings or plugins.
    planner: Mutex<Option<FramePlanner>>,
    /// How many static tables there have been.
    tables: AtomicUsize,
    /// Plugins that every query of the session may call, by name.
    plugins: Mutex<BTreeMap<String, PluginSpec>>,
    streams: StreamingQueryManager,
}

/// Makes a [`Session`] with other parts than the built-in ones.
pub struct SessionBuilder {
    clock: Arc<dyn Clock>,
    sources: SourceRegistry,
    sinks: SinkRegistry,
    open_checkpoint: OpenCheckpoint,
    plugin_host: PluginHostOptions,
    packages: Option<Arc<Packages>>,
}

impl SessionBuilder {
    /// Another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Other sources.
    #[must_use]
    pub fn sources(mut self, sources: SourceRegistry) -> Self {
        self.sources = sources;
        self
    }

    /// Other sinks.
    #[must_use]
    pub fn sinks(mut self, sinks: SinkRegistry) -> Self {
        self.sinks = sinks;
        self
    }

    /// Another way to open checkpoints, such as one that fails on purpose.
    #[must_use]
    pub fn open_checkpoint(mut self, open: OpenCheckpoint) -> Self {
        self.open_checkpoint = open;
        self
    }

    /// Another way to compile plugins: in a process of its own, or with a cache of compiled ones.
    #[must_use]
    pub fn plugin_host(mut self, options: PluginHostOptions) -> Self {
        self.plugin_host = options;
        self
    }

    /// Where components come from by name, and which may be loaded: nothing else is, from wherever it comes.
    #[must_use]
    pub fn packages(mut self, packages: Arc<Packages>) -> Self {
        self.packages = Some(packages);
        self
    }

    /// The session.
    pub fn build(mut self) -> Session {
        if let Some(packages) = &self.packages {
            let admission: Arc<Packages> = Arc::clone(packages);
            self.plugin_host.admission = Some(Gate::new(admission));
        }
        let inner = Inner {
            clock: self.clock,
            open_checkpoint: self.open_checkpoint,
            settings: Mutex::default(),
            state_limits: Mutex::default(),
            packages: self.packages.unwrap_or_default(),
            plugin_host_options: self.plugin_host,
            plugin_host: OnceLock::new(),
            views: Mutex::default(),
            planner: Mutex::default(),
            tables: AtomicUsize::new(0),
            plugins: Mutex::default(),
            streams: StreamingQueryManager::default(),
        };
        Session { inner: Arc::new(inner), sources: self.sources, sinks: self.sinks }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// A session with the built-in connectors and the machine's clock.
    ///
    /// # Errors
    /// Never today; the signature leaves room for configuration that may not fit.
    pub fn new() -> Result<Self, RuntimeError> {
        Ok(Self::builder().build())
    }

    /// A session with other parts.
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            clock: Arc::new(SystemClock::default()),
            sources: SourceRegistry::with_builtins(),
            sinks: SinkRegistry::with_builtins(),
            open_checkpoint: Arc::new(|place, options| Ok(millstream_checkpoint::open_files(place, options)?)),
            plugin_host: PluginHostOptions::default(),
            packages: None,
        }
    }

    /// Reads a stream.
    pub fn read_stream(&self) -> DataStreamReader {
        DataStreamReader::new(self.clone())
    }

    /// Reads a static table.
    pub fn read(&self) -> DataFrameReader {
        DataFrameReader::new(self.clone())
    }

    /// A static table of rows in memory (Spark's `createDataFrame`).
    ///
    /// # Errors
    /// When the rows have other columns than `schema`.
    pub fn create_data_frame(&self, schema: SchemaRef, rows: Vec<RecordBatch>) -> Result<DataFrame, RuntimeError> {
        if let Some(other) = rows.iter().find(|rows| !schema.contains(&rows.schema())) {
            let reason = format!("the rows have the columns {:?}, not {:?}", other.schema().fields(), schema.fields());
            return Err(RuntimeError::Invalid { reason, hint: None });
        }
        let table = |name| Ok((Arc::clone(&schema), TableSpec::Rows { name, schema: Arc::clone(&schema), rows }));
        data_frame::static_table(self, table)
    }

    /// A query in SQL over the temporary views, as they are now. `CREATE FUNCTION name USING COMPONENT 'file';` in front of it
    /// makes a plugin of the session, whose functions later queries may call as well; without a query behind it the frame is
    /// empty.
    ///
    /// # Errors
    /// When it does not parse, or names what is not there.
    pub fn sql(&self, sql: &str) -> Result<DataFrame, RuntimeError> {
        let (functions, sql) = millstream_plan::leading_functions(sql)?;
        self.create_functions(&functions)?;
        if sql.trim().is_empty() && !functions.is_empty() {
            return self.create_data_frame(Arc::new(Schema::empty()), Vec::new());
        }
        let mut views: Vec<(String, DataFrame)> = Vec::new();
        for name in millstream_plan::frame::relations_of(sql)? {
            let found = lock(&self.inner.views).get(&name.to_lowercase()).cloned();
            views.extend(found.filter(|(name, _)| !views.iter().any(|(known, _)| known == name)));
        }
        DataFrame::sql(self, sql, views)
    }

    /// A temporary view.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn table(&self, name: &str) -> Result<DataFrame, RuntimeError> {
        let found = lock(&self.inner.views).get(&name.to_lowercase()).map(|(_, frame)| frame.clone());
        found.ok_or_else(|| {
            let known = lock(&self.inner.views).values().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "there is none".to_owned() } else { format!("there are {known}") };
            RuntimeError::Invalid { reason: format!("there is no view `{name}`"), hint: Some(known) }
        })
    }

    /// Forgets a temporary view; whether there was one.
    pub fn drop_temp_view(&self, name: &str) -> bool {
        lock(&self.inner.views).remove(&name.to_lowercase()).is_some()
    }

    /// Makes the functions of a component callable in SQL.
    pub fn register_plugin(&self, plugin: PluginSpec) {
        lock(&self.inner.plugins).insert(plugin.name.clone(), plugin);
        *lock(&self.inner.planner) = None;
    }

    /// Sets a setting by its name for queries that start from now on.
    ///
    /// # Errors
    /// When the name is unknown or the value does not fit.
    pub fn set(&self, name: &str, value: &str) -> Result<(), RuntimeError> {
        lock(&self.inner.settings).set(name, value)?;
        *lock(&self.inner.planner) = None;
        Ok(())
    }

    /// The settings of queries that start from now on.
    pub fn settings(&self) -> Settings {
        lock(&self.inner.settings).clone()
    }

    /// Limits the memory that the state of each query takes which starts from now on.
    pub fn limit_state(&self, limits: StateLimits) {
        *lock(&self.inner.state_limits) = limits;
    }

    /// What the state of a query may take that starts from now on.
    pub fn state_limits(&self) -> StateLimits {
        lock(&self.inner.state_limits).clone()
    }

    /// The running queries, and those who hear of them.
    pub fn streams(&self) -> StreamingQueryManager {
        self.inner.streams.clone()
    }

    /// The source connectors.
    pub fn sources(&self) -> &SourceRegistry {
        &self.sources
    }

    /// The sink connectors.
    pub fn sinks(&self) -> &SinkRegistry {
        &self.sinks
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Where components come from by name.
    pub fn packages(&self) -> &Packages {
        &self.inner.packages
    }

    /// The engine for plugins; made when it is first asked for.
    ///
    /// # Errors
    /// When the engine cannot be made on this machine.
    pub fn plugin_host(&self) -> Result<Arc<PluginHost>, RuntimeError> {
        if let Some(host) = self.inner.plugin_host.get() {
            return Ok(Arc::clone(host));
        }
        let host = PluginHost::with(&self.inner.plugin_host_options)?;
        Ok(Arc::clone(self.inner.plugin_host.get_or_init(|| host)))
    }

    /// Opens the folder of a checkpoint.
    ///
    /// # Errors
    /// When the place cannot be used.
    pub fn open_checkpoint(
        &self,
        place: &str,
        options: &[(String, String)],
    ) -> Result<Arc<dyn DurableFiles>, RuntimeError> {
        (self.inner.open_checkpoint)(place, options)
    }

    fn add_view(&self, name: &str, frame: DataFrame) {
        lock(&self.inner.views).insert(name.to_lowercase(), (name.to_owned(), frame));
    }

    /// This session with one more sink.
    pub(crate) fn with_sink(&self, format: &str, factory: Arc<dyn SinkFactory>) -> Self {
        let mut session = self.clone();
        session.sinks.register(format, factory);
        session
    }

    /// This session with one more source.
    pub(crate) fn with_source(&self, format: &str, factory: Arc<dyn SourceFactory>) -> Self {
        let mut session = self.clone();
        session.sources.register(format, factory);
        session
    }

    /// This session with the sources of plugins; those of a query replace others that were there.
    pub(crate) fn with_plugin_sources(&self, slots: &[Arc<PluginSlot>]) -> Self {
        Self { sources: self.sources.with_plugins(slots), ..self.clone() }
    }

    /// This session with what a query says to all its sources.
    pub(crate) fn for_query(&self, spec: &QuerySpec) -> Self {
        let settings = SourceSettings {
            object_store: spec.checkpoint_options.clone(),
            schema_inference: spec.settings.schema_inference,
            batches_retained: spec.settings.batches_retained,
        };
        Self { sources: self.sources.with_settings(&settings), ..self.clone() }
    }

    /// Declares the columns of sources that find them by looking: what is found first holds as long as the query runs.
    pub(crate) fn declare_found(&self, spec: &mut QuerySpec) -> Result<(), RuntimeError> {
        for stream in &mut spec.streams {
            // A source of a plugin is not known yet, and tells its columns itself.
            let Ok(factory) = self.sources.factory(&stream.source) else { continue };
            if let Some(found) = factory.found_schema(&stream.source)? {
                stream.source.schema = Some(found);
            }
        }
        Ok(())
    }

    /// The columns that a source will have, which are declared if they were found by looking; it may be one of a plugin
    /// that is registered.
    fn schema_of(&self, source: &mut SourceSpec) -> Result<SchemaRef, RuntimeError> {
        if !source.format.eq_ignore_ascii_case(plugin::FORMAT) {
            let settings = SourceSettings { schema_inference: self.settings().schema_inference, ..Default::default() };
            let sources = self.sources.with_settings(&settings);
            let factory = sources.factory(source)?;
            if let Some(found) = factory.found_schema(source)? {
                source.schema = Some(found);
            }
            return Ok(factory.schema(source)?);
        }
        let sources = self.sources.with_plugins(&self.registered_slots()?);
        Ok(sources.factory(source)?.schema(source)?)
    }

    /// A number that no other static table of the session has.
    fn next_number(&self) -> usize {
        self.inner.tables.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn plugins(&self) -> Vec<PluginSpec> {
        lock(&self.inner.plugins).values().cloned().collect()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
