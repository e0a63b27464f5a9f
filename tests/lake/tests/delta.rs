//! Delta tables of ours as the Python package reads them, and tables of its making as a stream here.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

use lake_tests::{Readers, Stage};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{ManualClock, MemoryFiles, Options, OutputMode, StopSignal};
use millstream_source::contract::lines;
use millstream_source::{Offset, Source, SourceContext, SourceError, SourceRegistry, SourceSpec};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const SQL: &str = "SELECT value, CAST(value % 3 AS STRING) AS k, timestamp AS at, CAST(value AS DECIMAL(10, 2)) AS d, \
                   array(value, NULL) AS l, named_struct('x', value, 'y', 'z') AS s FROM numbers";

#[test]
fn the_python_package_reads_exactly_what_was_written_through_crashes() {
    let root = TempDir::new().unwrap();
    let mut readers = Readers::start().unwrap();
    let stage = |name: &str| Stage::new(&root.path().join(name), SQL, "delta", &[("partitionBy", "k")]);
    let whole = stage("whole");
    // What the sink writes is not counted: the crashes are around it, before and after the batch is in the table.
    let writes = whole.run(4, None).unwrap();
    let expected = readers.delta(&whole.output()).unwrap();
    assert_eq!(expected.len(), 24);
    assert!(
        expected[0].starts_with(r#"{"at": "1970-01-01 00:00:00+00:00", "d": "0.00", "k": "0", "l": [0, null], "s":"#),
        "{expected:?}"
    );
    let about = readers.about_delta(&whole.output()).unwrap();
    assert_eq!(about["partition_columns"], json!(["k"]));
    assert_eq!(about["version"], 4);
    assert_eq!(about["files"], 12);
    assert_eq!(about["operations"][0], "STREAMING UPDATE");
    let mut crashes = 0;
    for (at, write) in writes.iter().enumerate() {
        if !(write.contains("checkpoint/offsets/") || write.contains("checkpoint/commits/")) {
            continue;
        }
        for moment in [Moment::Before, Moment::After] {
            let crashed = stage(&format!("{at}-{moment:?}"));
            crashed.run(4, Some((at + 1, moment))).unwrap();
            crashed.run(4, None).unwrap();
            assert_eq!(readers.delta(&crashed.output()).unwrap(), expected, "crash {moment:?} `{write}`");
            crashes += 1;
        }
    }
    assert_eq!(crashes, 16);
}

#[test]
fn complete_mode_is_one_version_per_batch_and_each_has_the_whole_answer() {
    let root = TempDir::new().unwrap();
    let mut readers = Readers::start().unwrap();
    let sql = "SELECT value % 2 AS k, count(*) AS n FROM numbers GROUP BY value % 2";
    let stage = Stage::new(root.path(), sql, "delta", &[]).mode(OutputMode::Complete);
    stage.run(3, None).unwrap();
    let rows = readers.delta(&stage.output()).unwrap();
    assert_eq!(rows, [r#"{"k": 0, "n": 9}"#, r#"{"k": 1, "n": 9}"#]);
    // Another writer's rows are replaced with the rest.
    readers.change_delta("write_delta", &stage.output(), json!({ "columns": { "k": [7], "n": [7] } })).unwrap();
    assert_eq!(readers.delta(&stage.output()).unwrap().len(), 3);
    stage.run(4, None).unwrap();
    let rows = readers.delta(&stage.output()).unwrap();
    assert_eq!(rows, [r#"{"k": 0, "n": 12}"#, r#"{"k": 1, "n": 12}"#]);
}

fn spec(path: &Path, options: &[(&str, &str)]) -> SourceSpec {
    let mut all = Options::new().with("path", path.to_str().unwrap());
    options.iter().for_each(|(name, value)| all.set(*name, *value));
    SourceSpec { name: "t".into(), format: "delta".into(), schema: None, options: all }
}

fn open(spec: &SourceSpec) -> Box<dyn Source> {
    let context = SourceContext {
        files: Arc::new(MemoryFiles::default()),
        clock: Arc::new(ManualClock::at(0)),
        stop: StopSignal::new(),
        default_parallelism: 2,
    };
    let registry = SourceRegistry::with_builtins();
    registry.factory(spec).unwrap().open(spec, context).unwrap()
}

fn next(source: &mut dyn Source, at: &mut Option<Offset>) -> Result<Vec<String>, SourceError> {
    let end = source.latest_offset(at.as_ref(), source.read_limit())?;
    let Some(end) = end.filter(|end| Some(end) != at.as_ref()) else { return Ok(Vec::new()) };
    let all: Vec<usize> = (0..source.schema().fields().len()).collect();
    let mut rows: Vec<String> = source.read(at.as_ref(), &end, &all)?.iter().flatten().flat_map(lines).collect();
    rows.sort();
    *at = Some(end);
    Ok(rows)
}

#[test]
fn a_table_of_the_python_package_is_a_stream_here() {
    let root = TempDir::new().unwrap();
    let path = root.path().join("table");
    let mut readers = Readers::start().unwrap();
    let write = |readers: &mut Readers, ids: &[i64], k: &str| {
        let (n, ks) = (ids.len(), vec![k; ids.len()]);
        let columns = json!({ "id": ids, "v": (0..n).map(|at| format!("v{at}")).collect::<Vec<_>>(), "k": ks });
        readers.change_delta("write_delta", &path, json!({ "columns": columns, "partition_by": ["k"] })).unwrap();
    };
    write(&mut readers, &[1, 2], "a/b c");
    write(&mut readers, &[3], "ü%");
    let spec = spec(&path, &[("skipChangeCommits", "false")]);
    let mut source = open(&spec);
    let mut at = None;
    assert_eq!(next(source.as_mut(), &mut at).unwrap(), ["1|a/b c|v0", "2|a/b c|v1", "3|ü%|v0"]);
    write(&mut readers, &[4], "a/b c");
    readers.change_delta("checkpoint_delta", &path, json!({})).unwrap();
    // Files are put together: no row is new.
    readers.change_delta("optimize_delta", &path, json!({})).unwrap();
    write(&mut readers, &[5], "x");
    assert_eq!(next(source.as_mut(), &mut at).unwrap(), ["4|a/b c|v0", "5|x|v0"]);
    let again = at.clone();
    assert_eq!(next(open(&spec).as_mut(), &mut None).unwrap().len(), 5, "the table as it is now");

    readers.change_delta("delete_delta", &path, json!({ "predicate": "id = 1" })).unwrap();
    write(&mut readers, &[6], "x");
    let error = next(source.as_mut(), &mut at).unwrap_err();
    assert!(matches!(error, SourceError::NotAppended { .. }), "{error}");
    assert!(error.to_string().contains("skipChangeCommits"), "{error}");
    let mut skipping = open(&self::spec(&path, &[("skipChangeCommits", "true")]));
    assert_eq!(next(skipping.as_mut(), &mut again.clone()).unwrap(), ["6|x|v0"]);
}

#[test]
fn small_files_are_put_together_and_nobody_sees_a_row_twice() {
    let root = TempDir::new().unwrap();
    let mut readers = Readers::start().unwrap();
    let options = [("partitionBy", "k"), ("compactAfterFiles", "3")];
    let stage = Stage::new(root.path(), SQL, "delta", &options);
    stage.run(1, None).unwrap();
    let mut source = open(&spec(&stage.output(), &[]));
    let (mut at, mut streamed) = (None, next(source.as_mut(), &mut None).unwrap());
    next(source.as_mut(), &mut at).unwrap();
    for batches in 2..=9 {
        stage.run(batches, None).unwrap();
        assert_eq!(readers.delta(&stage.output()).unwrap().len() as u64, batches * 6, "after {batches} batches");
        streamed.extend(next(source.as_mut(), &mut at).unwrap());
    }
    assert_eq!(streamed.len(), 54);
    streamed.sort();
    streamed.dedup();
    assert_eq!(streamed.len(), 54);
    let about = readers.about_delta(&stage.output()).unwrap();
    assert!(about["files"].as_u64().unwrap() < 12, "{about}");
    assert!(about["operations"].as_array().unwrap().contains(&json!("OPTIMIZE")), "{about}");
}

#[test]
fn what_one_query_writes_another_reads() {
    let root = TempDir::new().unwrap();
    let stage = Stage::new(root.path(), SQL, "delta", &[("partitionBy", "k")]);
    stage.run(2, None).unwrap();
    let mut source = open(&spec(&stage.output(), &[("maxFilesPerTrigger", "2")]));
    let (mut at, mut rows) = (None, Vec::new());
    let mut batches = 0;
    loop {
        let more = next(source.as_mut(), &mut at).unwrap();
        if more.is_empty() {
            break;
        }
        batches += 1;
        rows.extend(more);
    }
    assert_eq!((batches, rows.len()), (3, 12));
    rows.sort();
    assert!(
        rows[0].starts_with("0|0|1970-01-01T00:00:00|0.00|[0, -]|{x: 0, y: z}") || rows[0].starts_with("0|0|"),
        "{rows:?}"
    );
}
