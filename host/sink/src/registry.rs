//! Which connectors there are, by format name.

use crate::{Sink, SinkContext, SinkError, SinkSpec};
use arrow::datatypes::SchemaRef;
use millstream_common::{BatchId, StopSignal};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes sinks of one format.
pub trait SinkFactory: Send + Sync {
    /// Checks the options; opens and creates nothing.
    ///
    /// # Errors
    /// When an option does not fit.
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError>;

    /// Whether it takes rows of these columns, as far as that can be told before a batch. Opens nothing.
    ///
    /// # Errors
    /// When it does not.
    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        let _ = (spec, schema);
        Ok(())
    }

    /// Whether a query whose next batch is `next` may go on here: a sink that must have every batch refuses a query that
    /// has written the ones before elsewhere. Creates nothing.
    ///
    /// # Errors
    /// When it may not, or when the place cannot be reached.
    fn check_resume(&self, spec: &SinkSpec, next: BatchId) -> Result<(), SinkError> {
        let _ = (spec, next);
        Ok(())
    }

    /// Opens the sink.
    ///
    /// # Errors
    /// As [`check`](Self::check), and when the place cannot be reached.
    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError>;

    /// As [`open`](Self::open), and what the sink waits for ends soon after `stop` is set. A sink that waits for nothing that
    /// may never come need not look at it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn open_until(&self, spec: &SinkSpec, context: SinkContext, stop: &StopSignal) -> Result<Box<dyn Sink>, SinkError> {
        let _ = stop;
        self.open(spec, context)
    }
}

/// The connectors of a host.
#[derive(Clone, Default)]
pub struct SinkRegistry {
    factories: BTreeMap<String, Arc<dyn SinkFactory>>,
}

impl SinkRegistry {
    /// No connectors.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Adds a connector under a format name, replacing an older one.
    pub fn register(&mut self, format: &str, factory: Arc<dyn SinkFactory>) {
        self.factories.insert(format.to_ascii_lowercase(), factory);
    }

    /// The connector that a spec asks for.
    ///
    /// # Errors
    /// [`SinkError::UnknownFormat`].
    pub fn factory(&self, spec: &SinkSpec) -> Result<&Arc<dyn SinkFactory>, SinkError> {
        self.factories.get(&spec.format.to_ascii_lowercase()).ok_or_else(|| SinkError::UnknownFormat {
            format: spec.format.clone(),
            known: self.factories.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}
