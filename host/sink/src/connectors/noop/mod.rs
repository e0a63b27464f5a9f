//! A sink that takes every row and keeps none: for measuring and for queries with effects elsewhere.

use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use millstream_common::OutputMode;

/// Makes sinks that keep nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoopSinkFactory;

impl SinkFactory for NoopSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        Ok(spec.options.only("sink `noop`", &[])?)
    }

    fn open(&self, spec: &SinkSpec, _context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        self.check(spec)?;
        Ok(Box::new(NoopSink))
    }
}

struct NoopSink;

impl Sink for NoopSink {
    fn description(&self) -> String {
        "NoopSink".to_owned()
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::None
    }

    fn supports(&self, _mode: OutputMode) -> bool {
        true
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        Ok(SinkReport { rows: batch.rows.iter().map(RecordBatch::num_rows).sum::<usize>() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Subject, sink};
    use millstream_common::{Options, QueryId};
    use std::sync::Arc;

    #[test]
    fn noop_keeps_the_contract_and_takes_no_options() {
        let factory = Arc::new(NoopSinkFactory);
        let spec = SinkSpec { format: "noop".into(), options: Options::new() };
        let query = QueryId(uuid::Uuid::from_u128(1));
        sink(&mut Subject { factory, spec: spec.clone(), query, written: None, counts_once: false });
        let odd = SinkSpec { options: Options::new().with("path", "x"), ..spec };
        assert!(NoopSinkFactory.check(&odd).is_err());
    }
}
