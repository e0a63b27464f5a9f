//! Spark reads what was committed with its own log, and nothing else: after crashes at every write, with strays beside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

use lake_tests::{Readers, Stage};
use millstream_checkpoint::faulty::Moment;
use millstream_sink::connectors::file::read_spark_log;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Held by the test whose virtual machine runs: several at a time take each other's memory and processor.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

const BATCHES: u64 = 5;
const ROWS: u64 = 6;
/// Values that folders' names cannot have as they are, and none.
const SQL: &str = "SELECT value, CASE WHEN value % 3 = 0 THEN NULL ELSE concat('a/b=', CAST(value % 3 AS STRING), ' 100%') \
                   END AS k FROM numbers";
const PARTITIONED: [(&str, &str); 3] = [("sparkMetadata", "true"), ("compactInterval", "2"), ("partitionBy", "k")];

fn row(value: u64) -> String {
    match value % 3 {
        0 => format!(r#"{{"k": null, "value": {value}}}"#),
        k => format!(r#"{{"k": "a/b={k} 100%", "value": {value}}}"#),
    }
}

fn rows(batches: u64) -> Vec<String> {
    let mut rows: Vec<String> = (0..batches * ROWS).map(row).collect();
    rows.sort();
    rows
}

/// How many batches are in the log.
fn committed(stage: &Stage) -> u64 {
    let names = stage.files().unwrap().list("output/_spark_metadata").unwrap();
    let numbers = names.iter().map(|name| name.trim_end_matches(".compact").parse::<u64>().unwrap() + 1);
    numbers.max().unwrap_or(0)
}

/// Files that no log names: of Spark's own making, and of an attempt of ours.
fn plant_strays(output: &Path, ending: &str) {
    let Some(folder) = fs::read_dir(output).ok().and_then(|entries| {
        let folders = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().contains('='));
        folders.map(|entry| entry.path()).next()
    }) else {
        return;
    };
    let data = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let Some(data) = data.into_iter().find(|path| path.to_string_lossy().ends_with(ending)) else { return };
    fs::copy(&data, folder.join(format!("part-00000-0f5bd4e1-7f4e-4a51-9a4b-111111111111-c000.snappy.{ending}")))
        .unwrap();
    fs::copy(&data, folder.join(format!("part-99-0-0f5bd4e1-7f4e-4a51-9a4b-111111111111.{ending}"))).unwrap();
}

#[test]
fn spark_sees_the_committed_rows_after_a_crash_at_any_write_and_after_the_restart() {
    let root = TempDir::new().unwrap();
    let _alone = alone();
    let mut readers = Readers::start().unwrap();
    let stage = |name: &str| Stage::new(&root.path().join(name), SQL, "parquet", &PARTITIONED);
    let whole = stage("whole");
    let writes = whole.run(BATCHES, None).unwrap();
    assert_eq!(readers.spark(&whole.output(), "parquet", None).unwrap(), rows(BATCHES));
    assert_eq!(writes.iter().filter(|write| write.contains(".compact")).count(), 2, "{writes:#?}");

    let mut seen = Vec::new();
    for (at, write) in writes.iter().enumerate().filter(|(_, write)| write.contains(" output/")) {
        for moment in [Moment::Before, Moment::After] {
            let crashed = stage(&format!("{at}-{moment:?}"));
            crashed.run(BATCHES, Some((at + 1, moment))).unwrap();
            plant_strays(&crashed.output(), "parquet");
            let done = committed(&crashed);
            seen.push(done);
            // Without a single entry there is no log, and Spark lists the folder.
            if done > 0 {
                let read = readers.spark(&crashed.output(), "parquet", Some("value BIGINT, k STRING")).unwrap();
                assert_eq!(read, rows(done), "crash {moment:?} `{write}`");
            }
            crashed.run(BATCHES, None).unwrap();
            // The log says what Spark would see; of every fourth, Spark says so itself.
            if at % 4 == 0 {
                let read = readers.spark(&crashed.output(), "parquet", None).unwrap();
                assert_eq!(read, rows(BATCHES), "restart after crash {moment:?} `{write}`");
            }
            let strays = crashed.files().unwrap();
            let named = read_spark_log(&millstream_common::ScopedFiles::new(strays, "output")).unwrap();
            assert_eq!(named.len(), BATCHES as usize * 3, "{named:#?}");
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (0..=BATCHES).collect::<Vec<_>>(), "crashes were in every batch");
}

#[test]
fn spark_reads_lines_of_json_as_a_table_and_as_a_stream() {
    let root = TempDir::new().unwrap();
    let _alone = alone();
    let mut readers = Readers::start().unwrap();
    let options = [("sparkMetadata", "true"), ("compression", "gzip"), ("maxRecordsPerFile", "2")];
    let stage = Stage::new(root.path(), "SELECT value, 'x y' AS k FROM numbers", "json", &options);
    stage.run(12, None).unwrap();
    let stray = stage.output().join("part-00000-0f5bd4e1-7f4e-4a51-9a4b-111111111111-c000.json");
    fs::write(stray, "{\"value\": 99, \"k\": \"stray\"}\n").unwrap();
    let mut expected: Vec<String> = (0..72).map(|value| format!(r#"{{"k": "x y", "value": {value}}}"#)).collect();
    expected.sort();
    let schema = "value BIGINT, k STRING";
    assert_eq!(readers.spark(&stage.output(), "json", Some(schema)).unwrap(), expected);
    assert_eq!(readers.spark_stream(&stage.output(), "json", schema).unwrap(), expected);
}

#[test]
fn spark_reads_each_row_once_while_small_files_are_put_together_and_reads_orc() {
    let root = TempDir::new().unwrap();
    let _alone = alone();
    let mut readers = Readers::start().unwrap();
    let options = [&PARTITIONED[..], &[("compactAfterFiles", "2")]].concat();
    let stage = Stage::new(root.path(), SQL, "parquet", &options);
    let named = || {
        let files = stage.files().unwrap();
        read_spark_log(&millstream_common::ScopedFiles::new(files, "output")).unwrap()
    };
    for batches in 1..=6 {
        stage.run(batches, None).unwrap();
        assert_eq!(readers.spark(&stage.output(), "parquet", None).unwrap(), rows(batches), "after {batches} batches");
    }
    let merged = named().into_iter().filter(|file| !file.replaced.is_empty()).count();
    assert!(merged >= 6 && named().len() < 18, "{:#?}", named());

    let sql = "SELECT value, CASE WHEN value % 2 = 0 THEN NULL ELSE concat('v', CAST(value AS STRING)) END AS s, \
               CAST(value AS DOUBLE) / 2 AS d, value % 3 = 0 AS b, CAST('2024-05-01' AS DATE) AS day, timestamp AS at \
               FROM numbers";
    for compression in ["zstd", "snappy", "none"] {
        let options = [("sparkMetadata", "true"), ("compression", compression), ("compactAfterFiles", "2")];
        let stage = Stage::new(&root.path().join(compression), sql, "orc", &options);
        stage.run(2, None).unwrap();
        let read = readers.spark(&stage.output(), "orc", None).unwrap();
        assert_eq!(read.len(), 12);
        assert_eq!(
            read[0],
            r#"{"at": "1970-01-01 00:00:00", "b": false, "d": 0.5, "day": "2024-05-01", "s": "v1", "value": 1}"#,
            "{read:#?}"
        );
    }
}
