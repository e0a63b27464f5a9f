//! The tables and their contents.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::{BatchId, OutputMode, QueryId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All memory tables of a host, by name. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemorySinkTables {
    tables: Arc<Mutex<BTreeMap<String, MemorySinkTable>>>,
}

/// The rows that a query wrote. Clones share them.
#[derive(Debug, Clone)]
pub struct MemorySinkTable {
    query: QueryId,
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    schema: Option<SchemaRef>,
    batches: BTreeMap<BatchId, Vec<RecordBatch>>,
    /// From which batch on the rows count: the newest complete result; `None` for everything.
    from: Option<BatchId>,
}

impl MemorySinkTables {
    /// No tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table of that name, if a query made one.
    pub fn get(&self, name: &str) -> Option<MemorySinkTable> {
        self.lock().get(name).cloned()
    }

    /// The names of all tables, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Drops a table; a query that still writes it goes on unseen.
    pub fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// The table of a query: the one it made before, or a new one in place of another query's.
    pub(super) fn open(&self, name: &str, query: QueryId) -> MemorySinkTable {
        let mut tables = self.lock();
        if let Some(table) = tables.get(name).filter(|table| table.query == query) {
            return table.clone();
        }
        let table = MemorySinkTable { query, content: Arc::default() };
        tables.insert(name.to_owned(), table.clone());
        table
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, MemorySinkTable>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemorySinkTable {
    /// The columns; `None` before the first batch.
    pub fn schema(&self) -> Option<SchemaRef> {
        self.lock().schema.clone()
    }

    /// The rows of the table: of all batches, or in complete mode of the newest.
    pub fn rows(&self) -> Vec<RecordBatch> {
        let content = self.lock();
        content.batches.range(content.from.unwrap_or(BatchId::FIRST)..).flat_map(|(_, rows)| rows.clone()).collect()
    }

    /// What each batch wrote, by id, empty batches too.
    pub fn batches(&self) -> BTreeMap<BatchId, Vec<RecordBatch>> {
        self.lock().batches.clone()
    }

    /// Takes a batch; answers `false` when it, or a later one, is there already.
    pub(super) fn add(&self, id: BatchId, schema: &SchemaRef, rows: &[RecordBatch], mode: OutputMode) -> bool {
        let mut content = self.lock();
        if content.batches.last_key_value().is_some_and(|(newest, _)| *newest >= id) {
            return false;
        }
        content.schema = Some(Arc::clone(schema));
        content.batches.insert(id, rows.to_vec());
        if mode == OutputMode::Complete {
            content.from = Some(id);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
