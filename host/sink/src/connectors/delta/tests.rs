use super::*;
use crate::contract::{Subject, schema, sink};
use crate::{Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkRegistry, SinkSpec};
use arrow::array::{ArrayRef, AsArray, Date32Array, Int64Array, RecordBatch, StringArray};
use delta_kernel::Engine;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use millstream_client::delta::DeltaTable;
use millstream_common::{BatchId, ManualClock, Options, OutputMode, QueryId, StopSignal};
use std::fs;
use std::sync::Arc;
use tempfile::TempDir;

fn spec(path: &str) -> SinkSpec {
    SinkSpec { format: "delta".into(), options: Options::new().with("path", path) }
}

fn open(spec: &SinkSpec, query: u128) -> Result<Box<dyn Sink>, SinkError> {
    let query = QueryId(uuid::Uuid::from_u128(query));
    DeltaSinkFactory.open(
        spec,
        SinkContext { query, query_name: None, clock: Arc::new(ManualClock::at(0)), stop: StopSignal::new() },
    )
}

fn add(sink: &mut dyn Sink, batch: u64, rows: &RecordBatch, mode: OutputMode) -> Result<u64, SinkError> {
    let schema = rows.schema();
    let rows = std::slice::from_ref(rows);
    sink.add_batch(&SinkBatch { id: BatchId(batch), schema: &schema, rows, mode }).map(|report| report.rows)
}

fn strings(values: &[&str]) -> RecordBatch {
    RecordBatch::try_new(schema(), vec![Arc::new(StringArray::from(values.to_vec()))]).unwrap()
}

fn rows(path: &str) -> Vec<RecordBatch> {
    let table = DeltaTable::open(path, &[]).unwrap();
    let Some(snapshot) = table.snapshot(None).unwrap() else { return Vec::new() };
    table
        .apart("read", || {
            let scan = snapshot.scan_builder().build()?;
            let engine: Arc<dyn Engine> = Arc::clone(table.engine()) as _;
            let batches = scan.execute(engine)?;
            batches.map(|data| Ok(ArrowEngineData::try_from_engine_data(data?)?.record_batch().clone())).collect()
        })
        .unwrap()
}

fn values(path: &str, column: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for batch in rows(path) {
        let column = batch.column_by_name(column).unwrap();
        values.extend(column.as_string::<i32>().iter().map(|value| value.unwrap_or("null").to_owned()));
    }
    values.sort();
    values
}

fn versions(path: &str) -> usize {
    let names = fs::read_dir(format!("{path}/_delta_log")).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".json")).count()
}

#[test]
fn it_keeps_the_contract() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("table").to_str().unwrap().to_owned();
    let spec = spec(&path);
    sink(&mut Subject {
        factory: Arc::clone(SinkRegistry::with_builtins().factory(&spec).unwrap()),
        spec,
        query: QueryId(uuid::Uuid::from_u128(1)),
        written: Some(&mut || values(&path, "value")),
        counts_once: true,
    });
    assert_eq!(versions(&path), 4, "the table, and a commit for each batch with rows");
}

#[test]
fn small_files_become_one_in_a_version_without_new_rows() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut spec = spec(path);
    spec.options.set("compactAfterFiles", "3");
    let mut sink = open(&spec, 1).unwrap();
    let files = || {
        let table = DeltaTable::open(path, &[]).unwrap();
        let snapshot = table.snapshot(None).unwrap().unwrap();
        let count = |count: &mut usize, _: delta_kernel::scan::state::ScanFile| *count += 1;
        let counted = table.apart("list", || {
            let scan = snapshot.scan_builder().build()?;
            let parts = scan.scan_metadata(table.engine().as_ref())?;
            parts.into_iter().try_fold(0, |sum, part| part?.visit_scan_files(sum, count))
        });
        counted.unwrap()
    };
    let mut expected: Vec<String> = Vec::new();
    for batch in 0..8 {
        let value = format!("v{batch}");
        assert_eq!(add(sink.as_mut(), batch, &strings(&[&value]), OutputMode::Append).unwrap(), 1);
        assert_eq!(add(sink.as_mut(), batch, &strings(&[&value]), OutputMode::Append).unwrap(), 0);
        expected.push(value);
        assert_eq!(values(path, "value"), expected, "after batch {batch}");
    }
    assert!(files() <= 4, "{}", files());
    let commits = fs::read_dir(format!("{path}/_delta_log")).unwrap().map(|entry| entry.unwrap().path());
    let commits: Vec<String> = commits
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .map(|path| fs::read_to_string(path).unwrap())
        .filter(|commit| commit.contains("\"OPTIMIZE\""))
        .collect();
    assert!(!commits.is_empty());
    for commit in commits {
        let changes = |line: &&str| line.starts_with("{\"add\"") || line.starts_with("{\"remove\"");
        assert!(commit.lines().filter(changes).all(|line| line.contains("\"dataChange\":false")), "{commit}");
    }
    let mut again = open(&spec, 1).unwrap();
    assert_eq!(
        add(again.as_mut(), 7, &strings(&["x"]), OutputMode::Append).unwrap(),
        0,
        "what is in the table is known"
    );
    spec.options.set("compactAfterFiles", "0");
    spec.options.set("targetFileSize", "1mb");
    assert!(DeltaSinkFactory.check(&spec).unwrap_err().to_string().contains("set compactAfterFiles too"));
}

#[test]
fn complete_mode_replaces_what_is_there_and_update_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut sink = open(&spec(path), 1).unwrap();
    assert_eq!(add(sink.as_mut(), 0, &strings(&["a", "b"]), OutputMode::Complete).unwrap(), 2);
    assert_eq!(add(sink.as_mut(), 1, &strings(&["c"]), OutputMode::Complete).unwrap(), 1);
    assert_eq!(add(sink.as_mut(), 1, &strings(&["x"]), OutputMode::Complete).unwrap(), 0);
    assert_eq!(values(path, "value"), ["c"]);
    assert_eq!(add(sink.as_mut(), 2, &strings(&[]), OutputMode::Complete).unwrap(), 0);
    assert_eq!(values(path, "value"), [""; 0]);
    let error = add(sink.as_mut(), 3, &strings(&["x"]), OutputMode::Update).unwrap_err();
    assert!(error.to_string().contains("append and complete"), "{error}");
}

#[test]
fn rows_go_to_partitions_and_into_files_of_the_asked_size() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut spec = spec(path);
    spec.options.set("partitionBy", "day, k");
    spec.options.set("maxRecordsPerFile", "2");
    let batch = RecordBatch::try_from_iter_with_nullable(vec![
        ("day", Arc::new(Date32Array::from(vec![19_844, 19_844, 19_845, 19_844, 19_844])) as ArrayRef, true),
        ("k", Arc::new(StringArray::from(vec![Some("a/b"), Some("a/b"), None, Some("a/b"), Some("z")])), true),
        ("v", Arc::new(StringArray::from(vec!["1", "2", "3", "4", "5"])), true),
    ])
    .unwrap();
    let mut sink = open(&spec, 1).unwrap();
    assert_eq!(add(sink.as_mut(), 0, &batch, OutputMode::Append).unwrap(), 5);
    assert_eq!(values(path, "v"), ["1", "2", "3", "4", "5"]);
    assert_eq!(values(path, "k"), ["a/b", "a/b", "a/b", "null", "z"]);
    let table = DeltaTable::open(path, &[]).unwrap();
    let snapshot = table.snapshot(None).unwrap().unwrap();
    assert_eq!(snapshot.table_configuration().logical_partition_columns(), ["day", "k"]);
    let log = fs::read_to_string(format!("{path}/_delta_log/00000000000000000001.json")).unwrap();
    assert_eq!(log.matches("\"add\":").count(), 4, "{log}");
    assert!(log.contains("2024-05-01"), "{log}");
    drop(sink);
    spec.options.set("partitionBy", "day");
    let error = open(&spec, 1).err().unwrap();
    assert!(error.to_string().contains("partitioned by `day, k`"), "{error}");
}

#[test]
fn a_batch_in_many_pieces_makes_the_files_and_statistics_of_one_in_one_piece() {
    let (ks, vs) = (["a", "b", "a", "a", "b", "a"], [5, -3, 9, 1, 7, 2]);
    let rows = |from: usize, to: usize| {
        let columns = vec![
            ("k", Arc::new(StringArray::from(ks[from..to].to_vec())) as ArrayRef, true),
            ("v", Arc::new(Int64Array::from(vs[from..to].to_vec())), true),
        ];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    };
    let written = |batches: &[RecordBatch]| {
        let folder = TempDir::new().unwrap();
        let path = folder.path().to_str().unwrap();
        let mut spec = spec(path);
        spec.options.set("partitionBy", "k");
        spec.options.set("maxRecordsPerFile", "3");
        let mut sink = open(&spec, 1).unwrap();
        let batch = SinkBatch { id: BatchId(0), schema: &rows(0, 1).schema(), rows: batches, mode: OutputMode::Append };
        assert_eq!(sink.add_batch(&batch).unwrap().rows, 6);
        let log = fs::read_to_string(format!("{path}/_delta_log/00000000000000000001.json")).unwrap();
        let adds = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["add"].take());
        let adds = adds.filter(|add| !add.is_null());
        adds.map(|add| format!("{} {}", add["partitionValues"]["k"], add["stats"].as_str().unwrap())).collect()
    };
    let whole: Vec<String> = written(&[rows(0, 6)]);
    let pieces: Vec<RecordBatch> = (0..6).map(|at| rows(at, at + 1)).collect();
    assert_eq!(written(&pieces), whole);
    assert_eq!(whole.len(), 3, "{whole:?}");
    let has = |at: usize, parts: [&str; 4]| parts.iter().all(|part| whole[at].contains(part));
    assert!(has(0, ["\"a\"", "\"numRecords\":3", "{\"v\":1}", "{\"v\":9}"]), "{whole:?}");
    assert!(has(1, ["\"a\"", "\"numRecords\":1", "{\"v\":2}", "\"nullCount\":{\"v\":0}"]), "{whole:?}");
    assert!(has(2, ["\"b\"", "\"numRecords\":2", "{\"v\":-3}", "{\"v\":7}"]), "{whole:?}");
}

#[test]
fn two_writers_meet_and_both_have_their_rows() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let writers: Vec<_> = (1..=2_u128)
        .map(|query| {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut sink = open(&spec(&path), query).unwrap();
                for batch in 0..6 {
                    let value = format!("{query}-{batch}");
                    assert_eq!(add(sink.as_mut(), batch, &strings(&[value.as_str()]), OutputMode::Append).unwrap(), 1);
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let mut expected: Vec<String> =
        (1..=2).flat_map(|query| (0..6).map(move |batch| format!("{query}-{batch}"))).collect();
    expected.sort();
    assert_eq!(values(&path, "value"), expected);
    assert_eq!(versions(&path), 13);
    assert!(fs::exists(format!("{path}/_delta_log/_last_checkpoint")).unwrap(), "the log is summed up");
}

#[test]
fn a_table_that_asks_its_writers_for_more_gets_no_rows() {
    for feature in ["checkConstraints", "generatedColumns", "identityColumns", "ofTheFuture"] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().to_str().unwrap();
        let mut sink = open(&spec(path), 1).unwrap();
        assert_eq!(add(sink.as_mut(), 0, &strings(&["a"]), OutputMode::Append).unwrap(), 1);
        let protocol =
            format!(r#"{{"protocol":{{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["{feature}"]}}}}"#);
        fs::write(format!("{path}/_delta_log/00000000000000000002.json"), protocol).unwrap();
        for mut sink in [sink, open(&spec(path), 1).unwrap()] {
            let error = add(sink.as_mut(), 1, &strings(&["b"]), OutputMode::Append).unwrap_err();
            assert!(matches!(error, SinkError::Schema { .. }), "{error}");
            assert!(error.to_string().contains(feature) && error.to_string().contains("drop the feature"), "{error}");
        }
        assert_eq!(values(path, "value"), ["a"]);
    }
}

#[test]
fn columns_that_do_not_fit_the_table_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut sink = open(&spec(path), 1).unwrap();
    let two = |v: ArrayRef, w: ArrayRef| {
        RecordBatch::try_from_iter_with_nullable(vec![("v", v, true), ("w", w, true)]).unwrap()
    };
    let text = || Arc::new(StringArray::from(vec!["x"])) as ArrayRef;
    let number = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    assert_eq!(add(sink.as_mut(), 0, &two(text(), number()), OutputMode::Append).unwrap(), 1);
    let error = add(sink.as_mut(), 1, &two(text(), text()), OutputMode::Append).unwrap_err();
    assert!(error.to_string().contains("column `w` is of type string and in the table of type long"), "{error}");
    let error = add(sink.as_mut(), 1, &strings(&["x"]), OutputMode::Append).unwrap_err();
    assert!(error.to_string().contains("no column `value`"), "{error}");
    let fewer = RecordBatch::try_from_iter_with_nullable(vec![("w", number(), true)]).unwrap();
    assert_eq!(add(sink.as_mut(), 1, &fewer, OutputMode::Append).unwrap(), 1);
    assert_eq!(values(path, "v"), ["null", "x"]);
    let error = DeltaSinkFactory.check(&spec(" ")).unwrap_err();
    assert!(error.to_string().contains("empty"), "{error}");
    let unsigned =
        arrow::datatypes::Schema::new(vec![arrow::datatypes::Field::new("n", arrow::datatypes::DataType::UInt8, true)]);
    let error = DeltaSinkFactory.check_columns(&spec(path), &Arc::new(unsigned)).unwrap_err();
    assert!(error.to_string().contains("column `n`"), "{error}");
}
