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

    /// Looks at the place to which rows of these columns shall go, and tells all that is wrong at once: before a query starts,
    /// and where one is only checked. Creates nothing, and waits no longer than until `stop` is set.
    ///
    /// # Errors
    /// When they cannot go there, or when the place cannot be reached.
    fn check_place(&self, spec: &SinkSpec, schema: &SchemaRef, stop: &StopSignal) -> Result<(), SinkError> {
        let _ = (spec, schema, stop);
        Ok(())
    }

    /// Opens a sink that is only asked what it can do, and never given a batch: the place is left as it is.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn open_idle(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        self.open(spec, context)
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
