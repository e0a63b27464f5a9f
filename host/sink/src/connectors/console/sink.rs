//! The console sink.

use super::config::ConsoleConfig;
use super::table;
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use millstream_common::{ClosedOutput, OutputMode};
use std::io::{self, Write};
use std::sync::Arc;

/// Opens what a console sink writes to.
type OpenWriter = dyn Fn() -> Box<dyn Write + Send> + Send + Sync;

/// Makes console sinks.
#[derive(Clone)]
pub struct ConsoleSinkFactory {
    open: Arc<OpenWriter>,
}

impl ConsoleSinkFactory {
    /// Writing to standard output.
    pub fn stdout() -> Self {
        Self::new(|| Box::new(io::stdout()))
    }

    /// Writing to what `open` opens.
    pub fn new(open: impl Fn() -> Box<dyn Write + Send> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open) }
    }
}

impl SinkFactory for ConsoleSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        ConsoleConfig::new(spec).map(drop)
    }

    fn open(&self, spec: &SinkSpec, _context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(ConsoleSink { config: ConsoleConfig::new(spec)?, writer: (self.open)() }))
    }
}

struct ConsoleSink {
    config: ConsoleConfig,
    writer: Box<dyn Write + Send>,
}

impl Sink for ConsoleSink {
    fn description(&self) -> String {
        let truncate = if self.config.truncate == 0 { "false".to_owned() } else { self.config.truncate.to_string() };
        format!("ConsoleSink[numRows={}, truncate={truncate}]", self.config.rows)
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::None
    }

    fn supports(&self, _mode: OutputMode) -> bool {
        true
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        let table = table::show(batch.schema, batch.rows, self.config.rows, self.config.truncate);
        let table =
            table.map_err(|error| SinkError::Schema { sink: "console".to_owned(), reason: error.to_string() })?;
        let line = "-".repeat(43);
        // One call, so that standard output is locked for the whole batch.
        let text = format!("{line}\nBatch: {}\n{line}\n{table}\n", batch.id);
        self.writer.write_all(text.as_bytes()).and_then(|()| self.writer.flush()).map_err(|source| {
            SinkError::Unavailable {
                sink: "console".to_owned(),
                action: "write",
                place: "the console".to_owned(),
                batch: batch.id,
                source: ClosedOutput::or(source),
            }
        })?;
        Ok(SinkReport { rows: batch.rows.iter().map(RecordBatch::num_rows).sum::<usize>() as u64 })
    }
}
