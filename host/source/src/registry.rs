//! Which connectors there are, by format name.

use crate::connectors::plugin::{self, PluginSourceFactory};
use crate::{Source, SourceContext, SourceError, SourceSettings, SourceSpec};
use arrow::datatypes::SchemaRef;
use millstream_wasm::PluginSlot;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes sources of one format.
pub trait SourceFactory: Send + Sync {
    /// Checks the options and answers the schema that the source will have; opens nothing.
    ///
    /// # Errors
    /// When an option or the declared schema does not fit.
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError>;

    /// Where the rows come from, if offsets of another place mean nothing here: a query with a checkpoint cannot go on
    /// at another place then. `None` when it can, or when the options do not fit.
    fn place(&self, spec: &SourceSpec) -> Option<String> {
        let _ = spec;
        None
    }

    /// Whether a second source may be opened beside one that runs and reads what that one has read. A replay, and the dry
    /// run before a swap, need that.
    fn can_be_read_twice(&self) -> bool {
        true
    }

    /// The source of a plugin that a spec asks for, if it asks for one: a swap must leave it as it is.
    fn source_of_plugin(&self, spec: &SourceSpec) -> Option<String> {
        let _ = spec;
        None
    }

    /// The schema, if it is found by looking at what there is, so that it may be another one later: a query then declares
    /// what was found first.
    ///
    /// # Errors
    /// As [`schema`](Self::schema).
    fn found_schema(&self, spec: &SourceSpec) -> Result<Option<SchemaRef>, SourceError> {
        let _ = spec;
        Ok(None)
    }

    /// The factory with what host and query say to all sources, if it minds.
    fn with_settings(&self, settings: &SourceSettings) -> Option<Arc<dyn SourceFactory>> {
        let _ = settings;
        None
    }

    /// Opens the source.
    ///
    /// # Errors
    /// As [`schema`](Self::schema), and when the place cannot be reached.
    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError>;

    /// Opens the source for a batch query or a table: it is read once, from its beginning to an end that
    /// [`prepare_available_now`](Source::prepare_available_now) fixes. Some options mean something there only.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn open_bounded(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        self.open(spec, context)
    }
}

/// The connectors of a host.
#[derive(Clone, Default)]
pub struct SourceRegistry {
    factories: BTreeMap<String, Arc<dyn SourceFactory>>,
}

impl SourceRegistry {
    /// No connectors.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Adds a connector under a format name, replacing an older one.
    pub fn register(&mut self, format: &str, factory: Arc<dyn SourceFactory>) {
        self.factories.insert(format.to_ascii_lowercase(), factory);
    }

    /// These connectors, with the sources of these plugins and of no others.
    #[must_use]
    pub fn with_plugins(&self, slots: &[Arc<PluginSlot>]) -> Self {
        let mut registry = self.clone();
        registry.register(plugin::FORMAT, Arc::new(PluginSourceFactory::new(slots.to_vec())));
        registry
    }

    /// These connectors, with what host and query say to all of them.
    #[must_use]
    pub fn with_settings(&self, settings: &SourceSettings) -> Self {
        let mut registry = self.clone();
        for factory in registry.factories.values_mut() {
            if let Some(other) = factory.with_settings(settings) {
                *factory = other;
            }
        }
        registry
    }

    /// The connector that a spec asks for.
    ///
    /// # Errors
    /// [`SourceError::UnknownFormat`].
    pub fn factory(&self, spec: &SourceSpec) -> Result<&Arc<dyn SourceFactory>, SourceError> {
        self.factories.get(&spec.format.to_ascii_lowercase()).ok_or_else(|| SourceError::UnknownFormat {
            name: spec.name.clone(),
            format: spec.format.clone(),
            known: self.factories.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}
