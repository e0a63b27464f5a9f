//! The library's way in: sessions, readers, frames, writers, with Spark's names.

mod data_frame;
mod reader;
mod writer;

pub use data_frame::DataFrame;
pub use reader::DataStreamReader;
pub use writer::DataStreamWriter;

use crate::spec::{PluginSpec, StateLimits};
use crate::{RuntimeError, Settings};
use millstream_common::{Clock, DurableFiles, SystemClock};
use millstream_sink::SinkRegistry;
use millstream_source::SourceRegistry;
use millstream_wasm::PluginHost;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Opens the folder or URL of a checkpoint.
pub(crate) type OpenCheckpoint =
    Arc<dyn Fn(&str, &[(String, String)]) -> Result<Arc<dyn DurableFiles>, RuntimeError> + Send + Sync>;

/// Where queries are made and started (Spark's `SparkSession`). Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    sources: SourceRegistry,
    sinks: SinkRegistry,
    open_checkpoint: OpenCheckpoint,
    settings: Mutex<Settings>,
    state_limits: Mutex<StateLimits>,
    plugin_host: OnceLock<Arc<PluginHost>>,
    /// Temporary views, by name.
    views: Mutex<BTreeMap<String, DataFrame>>,
    /// Plugins that every query of the session may call, by name.
    plugins: Mutex<BTreeMap<String, PluginSpec>>,
}

/// Makes a [`Session`] with other parts than the built-in ones.
pub struct SessionBuilder {
    clock: Arc<dyn Clock>,
    sources: SourceRegistry,
    sinks: SinkRegistry,
    open_checkpoint: OpenCheckpoint,
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

    /// The session.
    pub fn build(self) -> Session {
        let inner = Inner {
            clock: self.clock,
            sources: self.sources,
            sinks: self.sinks,
            open_checkpoint: self.open_checkpoint,
            settings: Mutex::default(),
            state_limits: Mutex::default(),
            plugin_host: OnceLock::new(),
            views: Mutex::default(),
            plugins: Mutex::default(),
        };
        Session { inner: Arc::new(inner) }
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
        }
    }

    /// Reads a stream.
    pub fn read_stream(&self) -> DataStreamReader {
        DataStreamReader::new(self.clone())
    }

    /// A query in SQL over the temporary views.
    ///
    /// # Errors
    /// When it does not parse. What it means is checked when it starts.
    pub fn sql(&self, sql: &str) -> Result<DataFrame, RuntimeError> {
        Ok(DataFrame::query(self.clone(), sql.to_owned()))
    }

    /// Makes the functions of a component callable in SQL.
    pub fn register_plugin(&self, plugin: PluginSpec) {
        lock(&self.inner.plugins).insert(plugin.name.clone(), plugin);
    }

    /// Sets a setting by its name for queries that start from now on.
    ///
    /// # Errors
    /// When the name is unknown or the value does not fit.
    pub fn set(&self, name: &str, value: &str) -> Result<(), RuntimeError> {
        Ok(lock(&self.inner.settings).set(name, value)?)
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

    /// The source connectors.
    pub fn sources(&self) -> &SourceRegistry {
        &self.inner.sources
    }

    /// The sink connectors.
    pub fn sinks(&self) -> &SinkRegistry {
        &self.inner.sinks
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// The engine for plugins; made when it is first asked for.
    ///
    /// # Errors
    /// When the engine cannot be made on this machine.
    pub fn plugin_host(&self) -> Result<Arc<PluginHost>, RuntimeError> {
        if let Some(host) = self.inner.plugin_host.get() {
            return Ok(Arc::clone(host));
        }
        let host = PluginHost::new()?;
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

    pub(crate) fn add_view(&self, name: &str, frame: DataFrame) {
        lock(&self.inner.views).insert(name.to_owned(), frame);
    }

    pub(crate) fn views(&self) -> BTreeMap<String, DataFrame> {
        lock(&self.inner.views).clone()
    }

    pub(crate) fn plugins(&self) -> Vec<PluginSpec> {
        lock(&self.inner.plugins).values().cloned().collect()
    }
}
