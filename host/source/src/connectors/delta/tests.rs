use super::*;
use crate::contract::{Subject, lines, source};
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use millstream_common::{ManualClock, MemoryFiles, Options, ReadLimit, StopSignal};
use parquet::arrow::ArrowWriter;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A table that a test writes by hand.
struct Table {
    folder: TempDir,
    version: u64,
}

const SCHEMA: &str = r#"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},{\"name\":\"v\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}},{\"name\":\"k\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}}]}"#;

impl Table {
    fn new() -> Self {
        let table = Self { folder: TempDir::new().unwrap(), version: 0 };
        fs::create_dir(table.path().join("_delta_log")).unwrap();
        let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
        let mut table = table;
        table.commit(&[protocol.to_owned(), metadata(SCHEMA)]);
        table
    }

    fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn commit(&mut self, actions: &[String]) {
        let path = self.path().join(format!("_delta_log/{:020}.json", self.version));
        fs::write(path, actions.join("\n")).unwrap();
        self.version += 1;
    }

    /// Writes a data file of the partition `k` and answers the action that adds it.
    fn file(&self, ids: &[i64], k: &str) -> String {
        self.file_with(ids, None, &format!(r#"{{"k":"{k}"}}"#))
    }

    /// As [`file`](Self::file) of a table without partitions: `k` is in the file.
    fn whole_file(&self, ids: &[i64], k: &str) -> String {
        self.file_with(ids, Some(k), "{}")
    }

    fn file_with(&self, ids: &[i64], k: Option<&str>, values: &str) -> String {
        let name = format!("part-{}-{}.parquet", self.version, ids[0]);
        let mut columns = vec![
            ("id", Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef, true),
            ("v", Arc::new(StringArray::from_iter_values(ids.iter().map(|id| format!("v{id}")))), true),
        ];
        columns.extend(k.map(|k| ("k", Arc::new(StringArray::from(vec![k; ids.len()])) as ArrayRef, true)));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        fs::write(self.path().join(&name), &bytes).unwrap();
        let (size, version) = (bytes.len(), self.version);
        format!(
            r#"{{"add":{{"path":"{name}","partitionValues":{values},"size":{size},"modificationTime":{version},"dataChange":true}}}}"#
        )
    }

    fn append(&mut self, ids: &[i64]) {
        let files: Vec<String> = ids.iter().map(|id| self.file(&[*id], "p")).collect();
        self.commit(&files);
    }

    fn spec(&self, options: &[(&str, &str)]) -> SourceSpec {
        let mut all = Options::new().with("path", self.folder.path().to_str().unwrap());
        options.iter().for_each(|(name, value)| all.set(*name, *value));
        SourceSpec { name: "t".into(), format: "delta".into(), schema: None, options: all }
    }
}

fn metadata(schema: &str) -> String {
    metadata_with(schema, r#"["k"]"#, "{}")
}

fn metadata_with(schema: &str, partition_columns: &str, configuration: &str) -> String {
    format!(
        r#"{{"metaData":{{"id":"5fba94ed-9794-4965-ba6e-6ee3c0d22af9","format":{{"provider":"parquet","options":{{}}}},"schemaString":"{schema}","partitionColumns":{partition_columns},"configuration":{configuration},"createdTime":0}}}}"#
    )
}

/// The table with mapped names of its columns.
fn mapped() -> String {
    let mut schema = SCHEMA.to_owned();
    for (number, name) in ["id", "v", "k"].into_iter().enumerate() {
        let plain = format!(r#"\"name\":\"{name}\","#);
        let at = schema.find(&plain).unwrap();
        let (before, behind) = schema.split_at(at);
        let names = format!(
            r#"\"metadata\":{{\"delta.columnMapping.id\":{number},\"delta.columnMapping.physicalName\":\"col-{name}\"}}"#
        );
        schema = format!("{before}{}", behind.replacen(r#"\"metadata\":{}"#, &names, 1));
    }
    metadata_with(&schema, r#"["k"]"#, r#"{"delta.columnMapping.mode":"name"}"#)
}

fn remove(path: &str) -> String {
    format!(r#"{{"remove":{{"path":"{path}","deletionTimestamp":0,"dataChange":true}}}}"#)
}

fn context(files: &Arc<MemoryFiles>) -> SourceContext {
    SourceContext {
        files: Arc::clone(files) as _,
        clock: Arc::new(ManualClock::at(0)),
        stop: StopSignal::new(),
        default_parallelism: 2,
    }
}

fn open(spec: &SourceSpec) -> Box<dyn Source> {
    DeltaSourceFactory::default().open(spec, context(&Arc::default())).unwrap_or_else(|error| panic!("{error:?}"))
}

/// The next batch by the source's own limit: its end, and its rows.
fn next(source: &mut dyn Source, start: Option<&Offset>) -> Result<(Option<Offset>, Vec<String>), SourceError> {
    let end = source.latest_offset(start, source.read_limit())?;
    let rows = match &end {
        Some(end) if Some(end) != start => {
            let all: Vec<usize> = (0..source.schema().fields().len()).collect();
            source.read(start, end, &all)?.iter().flatten().flat_map(lines).collect()
        }
        _ => Vec::new(),
    };
    Ok((end, rows))
}

#[test]
fn it_keeps_the_contract() {
    let mut table = Table::new();
    let spec = table.spec(&[]);
    let mut number = 0;
    source(&mut Subject {
        factory: Arc::new(DeltaSourceFactory::default()),
        spec,
        feed: &mut || {
            number += 2;
            table.append(&[number, number + 1]);
        },
        clock: Arc::new(ManualClock::at(0)),
        replays_after_restart: true,
    });
}

#[test]
fn the_table_comes_first_and_then_what_versions_add_within_limits() {
    let mut table = Table::new();
    table.append(&[1, 2, 3]);
    table.append(&[4]);
    let mut source = open(&table.spec(&[("maxFilesPerTrigger", "3")]));
    let (one, rows) = next(source.as_mut(), None).unwrap();
    assert_eq!(rows, ["1|v1|p", "2|v2|p", "3|v3|p"]);
    table.append(&[5, 6]);
    let (two, rows) = next(source.as_mut(), one.as_ref()).unwrap();
    assert_eq!(rows, ["4|v4|p", "5|v5|p", "6|v6|p"]);
    assert_eq!(two.clone().unwrap().0, serde_json::json!({ "version": 3, "index": 1, "initial": false }));
    assert_eq!(next(source.as_mut(), two.as_ref()).unwrap(), (two.clone(), vec![]));
    table.commit(&[r#"{"commitInfo":{"operation":"nothing"}}"#.into()]);
    table.append(&[7]);
    let (_, rows) = next(source.as_mut(), two.as_ref()).unwrap();
    assert_eq!(rows, ["7|v7|p"]);
}

#[test]
fn a_stream_begins_where_it_is_told_to() {
    let mut table = Table::new();
    table.append(&[1]);
    table.append(&[2]);
    let (_, rows) = next(open(&table.spec(&[("startingVersion", "2")])).as_mut(), None).unwrap();
    assert_eq!(rows, ["2|v2|p"]);
    let (_, rows) = next(open(&table.spec(&[("versionAsOf", "1")])).as_mut(), None).unwrap();
    assert_eq!(rows, ["1|v1|p"]);
    let files = Arc::new(MemoryFiles::default());
    let spec = table.spec(&[("startingVersion", "latest")]);
    let mut source = DeltaSourceFactory::default().open(&spec, context(&files)).unwrap();
    assert_eq!(next(source.as_mut(), None).unwrap().0, None);
    table.append(&[3]);
    let mut source = DeltaSourceFactory::default().open(&spec, context(&files)).unwrap();
    let (_, rows) = next(source.as_mut(), None).unwrap();
    assert_eq!(rows, ["3|v3|p"], "it is remembered where the newest was");
}

#[test]
fn a_version_that_takes_rows_away_stops_the_stream_unless_it_is_told_what_that_means() {
    let mut table = Table::new();
    table.append(&[1, 2]);
    let start = next(open(&table.spec(&[])).as_mut(), None).unwrap().0;
    table.append(&[3]);
    table.commit(&[remove("part-1-1.parquet")]);
    let new = table.file(&[9], "p");
    table.commit(&[remove("part-1-2.parquet"), new]);
    table.append(&[4]);
    let run = |options: &[(&str, &str)]| {
        let mut source = open(&table.spec(options));
        let (mut at, mut rows) = (start.clone(), Vec::new());
        for _ in 0..3 {
            match next(source.as_mut(), at.as_ref()) {
                Ok((end, more)) => {
                    rows.extend(more);
                    at = end;
                }
                Err(error) => rows.push(error.to_string()),
            }
        }
        rows
    };
    let rows = run(&[]);
    assert_eq!(rows[0], "3|v3|p");
    assert!(rows[1].contains("cannot go on at version 3 of") && rows[1].contains("ignoreDeletes"), "{rows:?}");
    let rows = run(&[("ignoreDeletes", "true")]);
    assert!(rows[1].contains("version 4") && rows[1].contains("skipChangeCommits"), "{rows:?}");
    assert_eq!(run(&[("skipChangeCommits", "true")]), ["3|v3|p", "4|v4|p"]);
    assert_eq!(run(&[("ignoreChanges", "true")]), ["3|v3|p", "9|v9|p", "4|v4|p"]);
}

#[test]
fn rows_are_right_when_the_table_gets_other_partition_columns() {
    let mut table = Table::new();
    table.append(&[1]);
    let spec = table.spec(&[("skipChangeCommits", "true")]);
    let mut source = open(&spec);
    let (start, _) = next(source.as_mut(), None).unwrap();
    table.append(&[2]);
    let all_new = table.whole_file(&[1, 2], "p");
    let unpartitioned = metadata_with(SCHEMA, "[]", "{}");
    table.commit(&[unpartitioned, remove("part-1-1.parquet"), remove("part-2-2.parquet"), all_new]);
    let file = table.whole_file(&[4], "q");
    table.commit(&[file]);
    let (at, rows) = next(source.as_mut(), start.as_ref()).unwrap();
    assert_eq!(rows, ["2|v2|p"]);
    let error = next(source.as_mut(), at.as_ref()).unwrap_err();
    assert!(matches!(error, SourceError::NotAppended { version: 3, .. }), "{error}");
    let what = "it partitions the table by no column, and the stream has it by `k`; start the query again";
    assert!(error.to_string().contains(what), "{error}");
    // The query that is started again may be behind the change yet: each file is read as it was written.
    let (_, rows) = next(open(&spec).as_mut(), start.as_ref()).unwrap();
    assert_eq!(rows, ["2|v2|p", "4|v4|q"]);
    let mut source = open(&spec);
    let end = source.latest_offset(start.as_ref(), ReadLimit::AllAvailable).unwrap().unwrap();
    let ks = source.read(start.as_ref(), &end, &[2]).unwrap();
    assert_eq!(ks.iter().flatten().flat_map(lines).collect::<Vec<_>>(), ["p", "q"]);
}

#[test]
fn names_of_columns_that_are_mapped_are_refused_whenever_they_are() {
    let mut table = Table::new();
    table.append(&[1]);
    let mut source = open(&table.spec(&[("skipChangeCommits", "true")]));
    let (start, _) = next(source.as_mut(), None).unwrap();
    table.commit(&[r#"{"protocol":{"minReaderVersion":2,"minWriterVersion":5}}"#.into(), mapped()]);
    table.append(&[2]);
    let error = next(source.as_mut(), start.as_ref()).unwrap_err();
    assert!(matches!(error, SourceError::NotAppended { version: 2, .. }), "{error}");
    assert!(error.to_string().contains("maps the names"), "{error}");
    let error = DeltaSourceFactory::default().schema(&table.spec(&[])).unwrap_err();
    assert!(error.to_string().contains("maps the names"), "{error}");
    table.commit(&[metadata_with(SCHEMA, r#"["k"]"#, r#"{"delta.columnMapping.mode":"none"}"#)]);
    table.append(&[5]);
    let error = next(open(&table.spec(&[("startingVersion", "3")])).as_mut(), None).unwrap_err();
    assert!(matches!(error, SourceError::NotAppended { version: 3, .. }), "{error}");
    let (_, rows) = next(open(&table.spec(&[("startingVersion", "4")])).as_mut(), None).unwrap();
    assert_eq!(rows, ["5|v5|p"]);
}

#[test]
fn what_a_version_asks_of_its_readers_must_be_known() {
    let protocol = |features: &str| {
        format!(
            r#"{{"protocol":{{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[{features}],"writerFeatures":[{features}]}}}}"#
        )
    };
    let mut table = Table::new();
    table.append(&[1]);
    let (start, _) = next(open(&table.spec(&[])).as_mut(), None).unwrap();
    table.commit(&[protocol(r#""deletionVectors","timestampNtz""#)]);
    table.append(&[3]);
    let mut source = open(&table.spec(&[]));
    let (at, rows) = next(source.as_mut(), start.as_ref()).unwrap();
    assert_eq!(rows, ["3|v3|p"]);
    table.commit(&[protocol(r#""ofTheFuture""#)]);
    let error = next(source.as_mut(), at.as_ref()).unwrap_err();
    assert!(matches!(error, SourceError::Schema { .. }), "{error}");
    assert!(error.to_string().contains("ofTheFuture") && error.to_string().contains("drop the feature"), "{error}");
    let error = DeltaSourceFactory::default().schema(&table.spec(&[])).unwrap_err();
    assert!(error.to_string().contains("ofTheFuture"), "{error}");
    table.append(&[5]);
    table.commit(&[protocol("")]);
    let error = next(open(&table.spec(&[])).as_mut(), at.as_ref()).unwrap_err();
    assert!(matches!(error, SourceError::NotAppended { version: 4, .. }), "{error}");
    assert!(error.to_string().contains("must know the feature `ofTheFuture`"), "{error}");
}

#[test]
fn a_table_that_was_made_anew_is_not_taken_for_the_old_one() {
    let mut table = Table::new();
    table.append(&[1]);
    table.append(&[2]);
    let (at, _) = next(open(&table.spec(&[])).as_mut(), None).unwrap();
    let again = Table::new();
    let spec = again.spec(&[]);
    let error = next(open(&spec).as_mut(), at.as_ref()).unwrap_err();
    assert!(matches!(error, SourceError::Lost { .. }), "{error}");
    assert!(error.to_string().contains("version 2") && error.to_string().contains("made anew"), "{error}");
}

#[test]
fn what_is_gone_damaged_or_changed_is_named() {
    let mut table = Table::new();
    table.append(&[1]);
    let (start, _) = next(open(&table.spec(&[])).as_mut(), None).unwrap();
    table.append(&[2]);
    let mut source = open(&table.spec(&[]));
    let end = source.latest_offset(start.as_ref(), ReadLimit::AllAvailable).unwrap().unwrap();
    fs::remove_file(table.path().join("part-2-2.parquet")).unwrap();
    let error = source.read(start.as_ref(), &end, &[0]).unwrap_err();
    assert!(error.to_string().contains("part-2-2.parquet"), "{error}");
    let wider = SCHEMA.replace(r#"\"type\":\"long\""#, r#"\"type\":\"string\""#);
    table.commit(&[metadata(&wider)]);
    let error = next(source.as_mut(), Some(&end)).unwrap_err();
    assert!(error.to_string().contains("its column `id` of type string"), "{error}");
    let mut spec = table.spec(&[]);
    spec.options.set("path", "/nowhere/at/all");
    let error = DeltaSourceFactory::default().schema(&spec).unwrap_err();
    assert_eq!(error.to_string(), "source `t` cannot open `/nowhere/at/all`");
    spec.options.set("maxFilesPerTrigger", "0");
    assert!(DeltaSourceFactory::default().schema(&spec).is_err());
}
