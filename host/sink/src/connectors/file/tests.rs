use super::*;
use crate::contract::{Subject, schema, sink};
use crate::{Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkRegistry, SinkSpec};
use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int32Array, ListArray, RecordBatch,
    StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use millstream_checkpoint::faulty::{Counted, FaultyFiles, Moment};
use millstream_common::{BatchId, DurableFiles, Hint, ManualClock, Options, OutputMode, QueryId, StopSignal};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs;
use std::sync::Arc;
use tempfile::TempDir;

fn query(number: u128) -> QueryId {
    QueryId(uuid::Uuid::from_u128(number))
}

fn spec(format: &str, path: &str) -> SinkSpec {
    SinkSpec { format: format.into(), options: Options::new().with("path", path) }
}

pub(super) fn context(number: u128) -> SinkContext {
    SinkContext { query: query(number), query_name: None, clock: Arc::new(ManualClock::at(0)), stop: StopSignal::new() }
}

fn strings(values: &[&str]) -> RecordBatch {
    RecordBatch::try_new(schema(), vec![Arc::new(StringArray::from(values.to_vec()))]).unwrap()
}

fn add(sink: &mut dyn Sink, batch: u64, rows: &[RecordBatch]) -> Result<u64, SinkError> {
    let schema = rows.first().map_or_else(schema, RecordBatch::schema);
    let batch = SinkBatch { id: BatchId(batch), schema: &schema, rows, mode: OutputMode::Append };
    sink.add_batch(&batch).map(|report| report.rows)
}

/// The bytes of all files that manifests name, in order.
fn committed(files: &dyn DurableFiles) -> Vec<Vec<u8>> {
    let batches = read_committed_in(files).unwrap();
    batches.iter().flat_map(|batch| &batch.files).map(|file| files.get(&file.name).unwrap().to_vec()).collect()
}

fn contract(format: &str, values: impl Fn(Vec<u8>) -> Vec<String>) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let spec = spec(format, &path);
    let files = millstream_checkpoint::open_files(&path, &[]).unwrap();
    sink(&mut Subject {
        factory: Arc::clone(SinkRegistry::with_builtins().factory(&spec).unwrap()),
        spec,
        query: query(1),
        written: Some(&mut || committed(files.as_ref()).into_iter().flat_map(&values).collect()),
        counts_once: true,
    });
    let batches = read_committed(&path).unwrap();
    assert_eq!(batches.iter().map(|b| (b.batch.0, b.rows)).collect::<Vec<_>>(), [(0, 2), (1, 0), (2, 1), (3, 1)]);
    assert!(batches.iter().flat_map(|batch| &batch.files).all(|file| file.bytes > 0));
}

fn lines(bytes: Vec<u8>) -> Vec<String> {
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn text_csv_json_and_parquet_keep_the_contract() {
    contract("text", lines);
    contract("csv", lines);
    contract("json", |bytes| {
        let values = lines(bytes).into_iter().map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
        values.map(|value| value["value"].as_str().unwrap().to_owned()).collect()
    });
    contract("parquet", |bytes| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap().build().unwrap();
        let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        let columns = batches.iter().map(|batch| batch.column(0).as_string::<i32>().clone());
        columns.flat_map(|column| column.iter().flatten().map(str::to_owned).collect::<Vec<_>>()).collect()
    });
}

/// A crash at every durable write, before and after it: a restart and the same batch again, and readers see each
/// row once and no stray file stays.
#[test]
fn a_crash_at_any_write_neither_loses_nor_doubles_rows() {
    let open = |files: Arc<dyn DurableFiles>| {
        let open: Arc<OpenFiles> = Arc::new(move |_: &str| Ok(Arc::clone(&files)));
        FileSinkFactory::opening(Some(FileFormat::Text), open).open(&spec("text", "x").limited(), context(1))
    };
    let run = |files: Arc<dyn DurableFiles>, from: u64| -> Result<(), u64> {
        let mut sink = open(files).map_err(|_| from)?;
        for (batch, values) in [["a", "b"], ["c", "d"]].iter().enumerate().skip(from as usize) {
            add(sink.as_mut(), batch as u64, &[strings(values)]).map_err(|_| batch as u64)?;
        }
        Ok(())
    };
    let whole = Arc::new(FaultyFiles::new(millstream_checkpoint::open_files("memory:///", &[]).unwrap(), Counted::ALL));
    run(Arc::clone(&whole) as _, 0).unwrap();
    assert_eq!(whole.writes(), 7, "owner, then two files and a manifest per batch: {:?}", whole.history());
    for write in 1..=whole.writes() {
        for moment in [Moment::Before, Moment::After] {
            let inner = millstream_checkpoint::open_files("memory:///", &[]).unwrap();
            let faulty = FaultyFiles::new(Arc::clone(&inner), Counted::ALL).crash_at(write, moment);
            let died_in = run(Arc::new(faulty), 0).unwrap_err();
            run(Arc::clone(&inner), died_in).unwrap();
            assert_eq!(committed(inner.as_ref()).concat(), b"a\nb\nc\nd\n", "write {write}, {moment:?}");
            let files = inner.list("").unwrap().into_iter().filter(|name| name.starts_with("part-")).count();
            assert_eq!(files, 4, "write {write}, {moment:?}: orphans are removed");
        }
    }
}

trait Limited {
    fn limited(self) -> Self;
}

impl Limited for SinkSpec {
    /// One row per file, so that a batch has several.
    fn limited(mut self) -> Self {
        self.options.set("maxRecordsPerFile", "1");
        self
    }
}

#[test]
fn a_failed_attempt_can_be_repeated_in_the_same_run() {
    let inner = millstream_checkpoint::open_files("memory:///", &[]).unwrap();
    let fickle = Arc::new(Fickle { inner: Arc::clone(&inner), fail_next_manifest: true.into() });
    let open: Arc<OpenFiles> = Arc::new(move |_: &str| Ok(Arc::clone(&fickle) as Arc<dyn DurableFiles>));
    let factory = FileSinkFactory::opening(Some(FileFormat::Text), open);
    let mut sink = factory.open(&spec("text", "x"), context(1)).unwrap();
    let error = add(sink.as_mut(), 0, &[strings(&["a"])]).unwrap_err();
    assert!(matches!(error, SinkError::Unavailable { .. }), "{error}");
    assert_eq!(add(sink.as_mut(), 0, &[strings(&["a"])]).unwrap(), 0, "it had arrived after all");
    assert_eq!(committed(inner.as_ref()).concat(), b"a\n");
    assert_eq!(add(sink.as_mut(), 1, &[strings(&["b"])]).unwrap(), 1);
}

#[test]
fn an_attempt_that_was_thought_to_be_dead_and_commits_has_all_its_files() {
    let inner = millstream_checkpoint::open_files("memory:///", &[]).unwrap();
    let opening = |files: Arc<dyn DurableFiles>| {
        let open: Arc<OpenFiles> = Arc::new(move |_: &str| Ok(Arc::clone(&files)));
        FileSinkFactory::opening(Some(FileFormat::Text), open).open(&spec("text", "x"), context(1)).unwrap()
    };
    let slow = Arc::new(Slow { inner: Arc::clone(&inner) });
    let mut first = opening(Arc::clone(&slow) as _);
    assert_eq!(add(first.as_mut(), 0, &[strings(&["a"])]).unwrap(), 1);
    assert_eq!(committed(inner.as_ref()).concat(), b"a\n");
    let mut second = opening(Arc::clone(&inner));
    assert_eq!(add(second.as_mut(), 0, &[strings(&["a"])]).unwrap(), 0);
    assert_eq!(committed(inner.as_ref()).concat(), b"a\n");
}

/// Before a manifest is written, the query starts once more elsewhere.
#[derive(Debug)]
struct Slow {
    inner: Arc<dyn DurableFiles>,
}

impl DurableFiles for Slow {
    fn put_new(&self, path: &str, bytes: bytes::Bytes) -> Result<(), millstream_common::DurableError> {
        if path.ends_with(".manifest") {
            let files = Arc::clone(&self.inner);
            let open: Arc<OpenFiles> = Arc::new(move |_: &str| Ok(Arc::clone(&files)));
            drop(FileSinkFactory::opening(Some(FileFormat::Text), open).open(&spec("text", "x"), context(1)).unwrap());
        }
        self.inner.put_new(path, bytes)
    }
    fn put_over(&self, path: &str, bytes: bytes::Bytes) -> Result<(), millstream_common::DurableError> {
        self.inner.put_over(path, bytes)
    }
    fn get(&self, path: &str) -> Result<bytes::Bytes, millstream_common::DurableError> {
        self.inner.get(path)
    }
    fn list(&self, folder: &str) -> Result<Vec<String>, millstream_common::DurableError> {
        self.inner.list(folder)
    }
    fn list_folders(&self, folder: &str) -> Result<Vec<String>, millstream_common::DurableError> {
        self.inner.list_folders(folder)
    }
    fn delete(&self, path: &str) -> Result<(), millstream_common::DurableError> {
        self.inner.delete(path)
    }
    fn location(&self) -> String {
        self.inner.location()
    }
}

/// Writes the first manifest, but says that it failed: as a network does that breaks before the answer.
#[derive(Debug)]
struct Fickle {
    inner: Arc<dyn DurableFiles>,
    fail_next_manifest: std::sync::atomic::AtomicBool,
}

impl DurableFiles for Fickle {
    fn put_new(&self, path: &str, bytes: bytes::Bytes) -> Result<(), millstream_common::DurableError> {
        self.inner.put_new(path, bytes)?;
        if path.ends_with(".manifest") && self.fail_next_manifest.swap(false, std::sync::atomic::Ordering::SeqCst) {
            let path = path.to_owned();
            return Err(millstream_common::DurableError::Storage { action: "write", path, source: "no answer".into() });
        }
        Ok(())
    }
    fn put_over(&self, path: &str, bytes: bytes::Bytes) -> Result<(), millstream_common::DurableError> {
        self.inner.put_over(path, bytes)
    }
    fn get(&self, path: &str) -> Result<bytes::Bytes, millstream_common::DurableError> {
        self.inner.get(path)
    }
    fn list(&self, folder: &str) -> Result<Vec<String>, millstream_common::DurableError> {
        self.inner.list(folder)
    }
    fn list_folders(&self, folder: &str) -> Result<Vec<String>, millstream_common::DurableError> {
        self.inner.list_folders(folder)
    }
    fn delete(&self, path: &str) -> Result<(), millstream_common::DurableError> {
        self.inner.delete(path)
    }
    fn location(&self) -> String {
        self.inner.location()
    }
}

#[test]
fn a_folder_of_another_query_is_refused_and_foreign_files_stay() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let spark = folder.path().join("part-00000-0f5bd4e1-7f4e-4a51-9a4b-111111111111-c000.txt");
    fs::write(&spark, "x").unwrap();
    let orphan = folder.path().join("part-9-0-0f5bd4e1-7f4e-4a51-9a4b-111111111111.txt");
    fs::write(&orphan, "x").unwrap();
    let factory = FileSinkFactory::new(Some(FileFormat::Text));
    let mut sink = factory.open(&spec("text", path), context(1)).unwrap();
    add(sink.as_mut(), 8, &[strings(&["a"])]).unwrap();
    assert!(spark.exists() && orphan.exists(), "whoever wrote it may still put batch 9 into the log");
    add(sink.as_mut(), 9, &[strings(&["b"])]).unwrap();
    assert!(spark.exists() && !orphan.exists());
    let error = factory.open(&spec("text", path), context(2)).err().unwrap();
    assert!(error.to_string().contains(&format!("it belongs to query {}", query(1))), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn a_damaged_manifest_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let factory = FileSinkFactory::new(Some(FileFormat::Text));
    let mut sink = factory.open(&spec("text", path), context(1)).unwrap();
    add(sink.as_mut(), 0, &[strings(&["a"])]).unwrap();
    let manifest = folder.path().join("_millstream/0.manifest");
    let whole = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, whole.replace("\"rows\":1", "\"rows\":2")).unwrap();
    let error = read_committed(path).unwrap_err();
    assert!(error.to_string().ends_with("0.manifest`: its checksum does not match"), "{error}");
}

fn rich() -> RecordBatch {
    let structs = StructArray::from(vec![
        (Arc::new(Field::new("x", DataType::Int32, true)), Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef),
        (Arc::new(Field::new("y", DataType::Utf8, true)), Arc::new(StringArray::from(vec!["q", "r"]))),
    ]);
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None]), None]);
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None])), true),
        ("d", Arc::new(Float64Array::from(vec![1e10, f64::NAN])), true),
        ("c", Arc::new(Decimal128Array::from(vec![1250, -5]).with_precision_and_scale(7, 2).unwrap()), true),
        ("bin", Arc::new(BinaryArray::from(vec![&b"fo"[..], b""])), true),
        ("ts", Arc::new(TimestampMicrosecondArray::from(vec![1_714_564_800_000_000, 0]).with_timezone("UTC")), true),
        ("l", Arc::new(lists), true),
        ("s", Arc::new(structs), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn written(spec: &SinkSpec, rows: &[RecordBatch]) -> Result<String, SinkError> {
    let files = millstream_checkpoint::open_files("memory:///", &[]).unwrap();
    let theirs = Arc::clone(&files);
    let open: Arc<OpenFiles> = Arc::new(move |_: &str| Ok(Arc::clone(&theirs)));
    let mut sink = FileSinkFactory::opening(None, open).open(spec, context(1))?;
    add(sink.as_mut(), 0, rows)?;
    Ok(String::from_utf8(committed(files.as_ref()).concat()).unwrap())
}

#[test]
fn json_leaves_null_fields_out_unless_told_otherwise() {
    let mut spec = spec("file", "x");
    spec.options.set("format", "json");
    assert_eq!(
        written(&spec, &[rich()]).unwrap(),
        r#"{"b":true,"d":1.0E10,"c":12.50,"bin":"Zm8=","ts":"2024-05-01T12:00:00.000Z","l":[1,null],"s":{"x":1,"y":"q"}}
{"d":"NaN","c":-0.05,"bin":"","ts":"1970-01-01T00:00:00.000Z","s":{"y":"r"}}
"#
    );
    spec.options.set("ignoreNullFields", "false");
    assert!(written(&spec, &[rich()]).unwrap().ends_with(
        r#""l":null,"s":{"x":null,"y":"r"}}
"#
    ));
}

#[test]
fn csv_quotes_what_needs_it() {
    let mut spec = spec("file", "x");
    spec.options.set("format", "csv");
    spec.options.set("header", "true");
    let values = ["plain", "a,b", "say \"hi\"", "back\\slash, too", "", " trimmed ", "two\nlines"];
    let ids = Int32Array::from((0..7).map(|n| (n != 4).then_some(n)).collect::<Vec<_>>());
    let rows = RecordBatch::try_from_iter_with_nullable(vec![
        ("v", Arc::new(StringArray::from(values.to_vec())) as ArrayRef, true),
        ("n", Arc::new(ids) as ArrayRef, true),
    ])
    .unwrap();
    assert_eq!(
        written(&spec, std::slice::from_ref(&rows)).unwrap(),
        "v,n\nplain,0\n\"a,b\",1\n\"say \\\"hi\\\"\",2\n\"back\\\\slash, too\",3\n\"\",\ntrimmed,5\n\"two\nlines\",6\n"
    );
    let error = written(&spec, &[rich()]).unwrap_err();
    assert!(error.to_string().contains("cannot hold column `bin`"), "{error}");
}

#[test]
fn options_and_columns_that_do_not_fit_are_refused() {
    let message = |format: &str, name: &str, value: &str| {
        let mut spec = spec(format, "x");
        spec.options.set(name, value);
        SinkRegistry::with_builtins().factory(&spec).unwrap().check(&spec).unwrap_err().to_string()
    };
    assert!(message("parquet", "compression", "rar").contains("snappy"));
    assert!(message("json", "partitionBy", "x,,y").contains("commas between"));
    assert!(message("json", "compression", "bzip2").contains("none or gzip"));
    assert!(message("json", "targetFileSize", "0").contains("128mb"));
    assert!(message("json", "retention", "-3").contains("above 0"));
    assert!(message("csv", "sep", "").contains("empty"));
    assert!(message("json", "compactAfterFiles", "1").contains("from 2 on"));
    let both = spec("json", "x").limited();
    let both = SinkSpec { options: both.options.with("compactAfterFiles", "9"), ..both };
    let error = SinkRegistry::with_builtins().factory(&both).unwrap().check(&both).unwrap_err();
    assert!(error.to_string().contains("maxRecordsPerFile is set too"), "{error}");
    assert!(message("json", "compactRetention", "1h").contains("without compactAfterFiles"));
    assert!(message("orc", "compression", "lzo").contains("zlib"));
    assert!(message("file", "format", "xml").contains("parquet, json, csv, text, avro or orc"));
    assert!(message("text", "path", "").contains("empty"));
    let mut text = spec("file", "x");
    text.options.set("format", "text");
    let error = written(&text, &[rich()]).unwrap_err();
    assert!(error.to_string().contains("exactly one column"), "{error}");
    let error =
        FileSinkFactory::new(Some(FileFormat::Text)).open(&spec("text", "nowhere://x"), context(1)).err().unwrap();
    assert_eq!(error.to_string(), "sink `text` cannot open `nowhere://x`");
}

fn keyed(keys: &[Option<&str>], values: &[&str]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(vec![
        ("k", Arc::new(StringArray::from(keys.to_vec())) as ArrayRef, true),
        ("v", Arc::new(StringArray::from(values.to_vec())) as ArrayRef, true),
    ])
    .unwrap()
}

#[test]
fn partitions_are_folders_and_their_orphans_are_removed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut spec = spec("text", path);
    spec.options.set("partitionBy", "k");
    let factory = FileSinkFactory::new(Some(FileFormat::Text));
    let mut sink = factory.open(&spec, context(1)).unwrap();
    let rows = keyed(&[Some("a"), None, Some("a"), Some("x/y")], &["1", "2", "3", "4"]);
    assert_eq!(add(sink.as_mut(), 0, &[rows]).unwrap(), 4);
    let files = millstream_checkpoint::open_files(path, &[]).unwrap();
    assert_eq!(committed(files.as_ref()).concat(), b"1\n3\n2\n4\n");
    let folders: Vec<String> = read_committed(path)
        .unwrap()
        .iter()
        .flat_map(|batch| &batch.files)
        .map(|file| file.name.split_once('/').unwrap().0.to_owned())
        .collect();
    assert_eq!(folders, ["k=a", "k=__HIVE_DEFAULT_PARTITION__", "k=x%2Fy"]);
    drop(sink);
    let orphans = [0, 1].map(|batch| {
        let name = format!("k=a/part-{batch}-7-0f5bd4e1-7f4e-4a51-9a4b-111111111111.txt");
        fs::write(folder.path().join(&name), "9\n").unwrap();
        folder.path().join(name)
    });
    let mut sink = factory.open(&spec, context(1)).unwrap();
    assert_eq!(
        orphans.each_ref().map(|orphan| orphan.exists()),
        [false, true],
        "batch 1 may still come from elsewhere"
    );
    assert_eq!(committed(files.as_ref()).concat(), b"1\n3\n2\n4\n");
    assert_eq!(add(sink.as_mut(), 1, &[keyed(&[Some("a")], &["5"])]).unwrap(), 1);
    assert!(!orphans[1].exists(), "it came, without the file");
    let error = factory.check_columns(&spec, &rich().schema()).unwrap_err();
    assert!(error.to_string().contains("names column `k`"), "{error}");
}

#[test]
fn a_long_batch_becomes_several_files_of_about_the_asked_length() {
    for (format, compression) in [("parquet", "none"), ("json", "none"), ("csv", "gzip"), ("avro", "none")] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().to_str().unwrap();
        let mut spec = spec("file", path);
        spec.options.set("format", format);
        spec.options.set("compression", compression);
        spec.options.set("targetFileSize", "64kb");
        let values: Vec<String> =
            (0..40_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
        let rows = RecordBatch::try_new(schema(), vec![Arc::new(StringArray::from(values))]).unwrap();
        let mut sink = FileSinkFactory::new(None).open(&spec, context(1)).unwrap();
        assert_eq!(add(sink.as_mut(), 0, &[rows]).unwrap(), 40_000);
        let batches = read_committed(path).unwrap();
        let files = &batches[0].files;
        assert!(files.len() > 3, "{format}: {files:?}");
        assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 40_000, "{format}");
        assert!(files.iter().all(|file| file.bytes < 400_000), "{format}: {files:?}");
        let ending = if compression == "gzip" { "csv.gz" } else { format };
        assert!(files.iter().all(|file| file.name.ends_with(ending)), "{format}: {files:?}");
    }
}

#[test]
fn an_output_keeps_the_form_of_its_log() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let factory = FileSinkFactory::new(Some(FileFormat::Text));
    let mut spark = spec("text", path);
    spark.options.set("sparkMetadata", "true");
    let mut sink = factory.open(&spark, context(1)).unwrap();
    assert_eq!(add(sink.as_mut(), 2, &[strings(&["a"])]).unwrap(), 1);
    assert_eq!(add(sink.as_mut(), 2, &[strings(&["a"])]).unwrap(), 0);
    drop(sink);
    let mut again = factory.open(&spark, context(1)).unwrap();
    assert_eq!(add(again.as_mut(), 2, &[strings(&["a"])]).unwrap(), 0);
    let files = millstream_checkpoint::open_files(path, &[]).unwrap();
    assert_eq!(files.list("_spark_metadata").unwrap(), ["0", "1", "2"], "numbers that were left out are there");
    let named = read_spark_log(files.as_ref()).unwrap();
    assert!(named.len() == 1 && named[0].path.starts_with(&format!("file://{path}/part-2-0-")), "{named:?}");
    let error = factory.open(&spec("text", path), context(1)).err().unwrap();
    assert!(error.to_string().contains("log of the other form"), "{error}");
    assert!(read_committed(path).unwrap_err().to_string().contains("Spark's log"));
    let elsewhere = TempDir::new().unwrap();
    fs::create_dir(elsewhere.path().join("_spark_metadata")).unwrap();
    fs::write(elsewhere.path().join("_spark_metadata/0"), "v1").unwrap();
    let mut foreign = spec("text", elsewhere.path().to_str().unwrap());
    foreign.options.set("sparkMetadata", "true");
    let error = factory.open(&foreign, context(1)).err().unwrap();
    assert!(error.to_string().contains("written by another program"), "{error}");
    foreign.options.set("compactInterval", "20");
    assert!(factory.check(&foreign).unwrap_err().to_string().contains("10 at most"));
}
