use super::*;
use crate::contract::{Subject, schema, sink};
use crate::{SinkBatch, SinkContext, SinkFactory, SinkSpec};
use arrow::array::{AsArray, RecordBatch, StringArray};
use millstream_common::{BatchId, ManualClock, Options, OutputMode, QueryId, StopSignal};
use std::sync::Arc;

fn values(table: &MemorySinkTable) -> Vec<String> {
    let rows = table.rows();
    rows.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter().flatten()).map(str::to_owned).collect()
}

fn query(number: u128) -> QueryId {
    QueryId(uuid::Uuid::from_u128(number))
}

#[test]
fn memory_keeps_the_contract() {
    let tables = MemorySinkTables::new();
    let reader = tables.clone();
    sink(&mut Subject {
        factory: Arc::new(tables),
        spec: SinkSpec { format: "memory".into(), options: Options::new() },
        query: query(1),
        written: Some(&mut || reader.get("contract").map_or(vec![], |table| values(&table))),
        counts_once: true,
    });
    let table = reader.get("contract").unwrap();
    assert_eq!(table.batches().keys().map(|id| id.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(reader.names(), ["contract"]);
}

#[test]
fn complete_results_replace_each_other_and_a_new_query_starts_empty() {
    let tables = MemorySinkTables::new();
    let spec = SinkSpec { format: "memory".into(), options: Options::new() };
    let context = |number| SinkContext {
        query: query(number),
        query_name: Some("t".into()),
        clock: Arc::new(ManualClock::at(0)),
        stop: StopSignal::new(),
    };
    let mut sink = SinkFactory::open(&tables, &spec, context(1)).unwrap();
    for (id, value) in ["old", "new"].into_iter().enumerate() {
        let schema = schema();
        let rows =
            vec![RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(StringArray::from(vec![value]))]).unwrap()];
        let batch = SinkBatch { id: BatchId(id as u64), schema: &schema, rows: &rows, mode: OutputMode::Complete };
        sink.add_batch(&batch).unwrap();
    }
    assert_eq!(values(&tables.get("t").unwrap()), ["new"]);
    assert_eq!(tables.get("t").unwrap().batches().len(), 2);
    drop(SinkFactory::open(&tables, &spec, context(2)).unwrap());
    assert!(tables.get("t").unwrap().rows().is_empty());
    assert!(tables.get("t").unwrap().schema().is_none());
}

#[test]
fn a_query_without_a_name_is_refused() {
    let tables = MemorySinkTables::new();
    let spec = SinkSpec { format: "memory".into(), options: Options::new() };
    let context =
        SinkContext { query: query(1), query_name: None, clock: Arc::new(ManualClock::at(0)), stop: StopSignal::new() };
    let error = SinkFactory::open(&tables, &spec, context).err().unwrap();
    assert_eq!(error.to_string(), "option `queryName` of sink `memory` is missing");
}
