//! The sink over a memory table.

use super::{MemorySinkTable, MemorySinkTables};
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use millstream_common::{OptionError, OutputMode};

const OWNER: &str = "sink `memory`";

impl SinkFactory for MemorySinkTables {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        Ok(spec.options.only(OWNER, &["queryName"])?)
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        self.check(spec)?;
        let name = context.query_name.as_deref().or_else(|| spec.options.get("queryName"));
        let name = name.ok_or_else(|| OptionError::Missing { owner: OWNER.into(), option: "queryName".into() })?;
        Ok(Box::new(MemorySink { name: name.to_owned(), table: MemorySinkTables::open(self, name, context.query) }))
    }
}

struct MemorySink {
    name: String,
    table: MemorySinkTable,
}

impl Sink for MemorySink {
    fn description(&self) -> String {
        format!("MemorySink[{}]", self.name)
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::None
    }

    fn supports(&self, _mode: OutputMode) -> bool {
        true
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        let taken = self.table.add(batch.id, batch.schema, batch.rows, batch.mode);
        let rows: usize = if taken { batch.rows.iter().map(RecordBatch::num_rows).sum() } else { 0 };
        Ok(SinkReport { rows: rows as u64 })
    }
}
