//! Makes sources over the plugins of one query.

use super::config::Config;
use super::source::PluginSource;
use crate::{Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::datatypes::SchemaRef;
use millstream_wasm::{PluginSlot, SourceCalls};
use std::sync::Arc;

/// Makes sources over the plugins of one query.
#[derive(Debug, Clone, Default)]
pub struct PluginSourceFactory {
    slots: Vec<Arc<PluginSlot>>,
}

impl PluginSourceFactory {
    /// A factory over the plugins of a query.
    pub fn new(slots: Vec<Arc<PluginSlot>>) -> Self {
        Self { slots }
    }
}

impl SourceFactory for PluginSourceFactory {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Ok(Config::read(spec, &self.slots)?.schema)
    }

    /// Offsets are understood by the source that gave them, whatever its options.
    fn place(&self, spec: &SourceSpec) -> Option<String> {
        let config = Config::read(spec, &self.slots).ok()?;
        Some(format!("{}.{}", config.slot.name(), config.source))
    }

    fn source_of_plugin(&self, spec: &SourceSpec) -> Option<String> {
        Config::read(spec, &self.slots).ok().map(|config| config.source)
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let Config { slot, source, schema, limit, options } = Config::read(spec, &self.slots)?;
        let calls = SourceCalls::new(slot, &source, &spec.name, options);
        Ok(Box::new(PluginSource::open(&spec.name, calls, schema, limit, context)?))
    }
}
