//! Tables and outputs on an S3 server: what the host says of the store reaches sinks and sources, and others read them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

use files_tests::server::Server;
use lake_tests::Readers;
use millstream_common::{ManualClock, MemoryFiles, Options, StopSignal};
use millstream_runtime::{QueryRun, QuerySpec, Session, Settings, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::contract::lines;
use millstream_source::{Offset, Source, SourceContext, SourceRegistry, SourceSettings, SourceSpec};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const ROWS: u64 = 6;

/// A query over `numbers`; of the store only the host speaks.
fn run(server: &Server, checkpoint: &Path, (format, path): (&str, &str), options: &[(&str, &str)], batches: u64) {
    let rows = Options::new().with("rowsPerBatch", ROWS.to_string());
    let source = SourceSpec { name: "numbers".into(), format: "rate-micro-batch".into(), schema: None, options: rows };
    let mut all = Options::new().with("path", path);
    options.iter().for_each(|(name, value)| all.set(*name, *value));
    let sink = SinkSpec { format: format.into(), options: all };
    let spec = QuerySpec {
        checkpoint: Some(checkpoint.display().to_string()),
        checkpoint_options: server.options(),
        settings: Settings { partitions: 2, ..Settings::default() },
        ..QuerySpec::new(
            "SELECT value, CAST(value % 3 AS STRING) AS k FROM numbers",
            vec![StreamSpec { source, event_time: None, drop_duplicates: None }],
            sink,
        )
    };
    let mut run = QueryRun::open(&Session::new().unwrap(), spec, StopSignal::new()).unwrap();
    while run.next_batch().0 < batches {
        run.run_next().unwrap().unwrap();
    }
    run.close();
}

fn open(server: &Server, format: &str, path: &str) -> Box<dyn Source> {
    let settings = SourceSettings { object_store: server.options(), schema_inference: true, ..Default::default() };
    let registry = SourceRegistry::with_builtins().with_settings(&settings);
    let options = Options::new().with("path", path);
    let spec = SourceSpec { name: "t".into(), format: format.into(), schema: None, options };
    let context = SourceContext {
        files: Arc::new(MemoryFiles::default()),
        clock: Arc::new(ManualClock::at(0)),
        stop: StopSignal::new(),
        default_parallelism: 2,
    };
    registry.factory(&spec).unwrap().open(&spec, context).unwrap()
}

/// The values that are new.
fn next(source: &mut dyn Source, at: &mut Option<Offset>) -> Vec<u64> {
    let end = source.latest_offset(at.as_ref(), source.read_limit()).unwrap();
    let Some(end) = end.filter(|end| Some(end) != at.as_ref()) else { return Vec::new() };
    let value = source.schema().index_of("value").unwrap();
    let rows = source.read(at.as_ref(), &end, &[value]).unwrap();
    let mut rows: Vec<u64> = rows.iter().flatten().flat_map(lines).map(|line| line.parse().unwrap()).collect();
    rows.sort_unstable();
    *at = Some(end);
    rows
}

fn values(batches: std::ops::Range<u64>) -> Vec<u64> {
    (batches.start * ROWS..batches.end * ROWS).collect()
}

#[test]
fn a_delta_table_on_s3_is_written_and_read_by_us_and_by_the_python_package() {
    let server = Server::start().unwrap();
    let folder = TempDir::new().unwrap();
    let path = server.location("lake/table");
    let options = [("partitionBy", "k"), ("compactAfterFiles", "3"), ("checkpointInterval", "3")];
    run(&server, folder.path(), ("delta", &path), &options, 2);
    let mut source = open(&server, "delta", &path);
    let mut at = None;
    assert_eq!(next(source.as_mut(), &mut at), values(0..2));
    run(&server, folder.path(), ("delta", &path), &options, 5);
    assert_eq!(next(source.as_mut(), &mut at), values(2..5));
    let read = Readers::start().unwrap().delta_on(&path, &server.options()).unwrap();
    assert_eq!(read.len() as u64, 5 * ROWS);
    assert!(read.contains(&r#"{"k": "1", "value": 28}"#.to_owned()), "{read:#?}");
}

#[test]
fn an_output_on_s3_is_read_by_its_log_of_either_form_while_small_files_are_put_together() {
    let server = Server::start().unwrap();
    for (name, more) in [("manifests", &[][..]), ("spark", &[("sparkMetadata", "true"), ("compactInterval", "2")][..])]
    {
        let folder = TempDir::new().unwrap();
        let path = server.location(name);
        let options = [&[("partitionBy", "k"), ("compactAfterFiles", "2")][..], more].concat();
        run(&server, folder.path(), ("parquet", &path), &options, 1);
        let stray = "k=1/part-77-0-0f5bd4e1-7f4e-4a51-9a4b-111111111111.parquet";
        server.files(name).unwrap().put_new(stray, "no parquet".into()).unwrap();
        let mut source = open(&server, "parquet", &path);
        let mut at = None;
        assert_eq!(next(source.as_mut(), &mut at), values(0..1), "{name}");
        run(&server, folder.path(), ("parquet", &path), &options, 4);
        assert_eq!(next(source.as_mut(), &mut at), values(1..4), "{name}: none of what was put together comes again");
        run(&server, folder.path(), ("parquet", &path), &options, 6);
        assert_eq!(next(source.as_mut(), &mut at), values(4..6), "{name}");
        let mut fresh = open(&server, "parquet", &path);
        assert_eq!(next(fresh.as_mut(), &mut None), values(0..6), "{name}");
        let log = server.files(name).unwrap();
        let merged: usize = match name {
            "spark" => {
                let named = millstream_sink::connectors::file::read_spark_log(log.as_ref()).unwrap();
                assert!(named.iter().all(|file| file.path.starts_with("s3://bucket/spark/k=")), "{named:#?}");
                named.iter().filter(|file| !file.replaced.is_empty()).count()
            }
            _ => {
                let batches = millstream_sink::connectors::file::read_committed_in(log.as_ref()).unwrap();
                batches.iter().map(|batch| batch.merged.len()).sum()
            }
        };
        assert!(merged >= 3, "{name}: {merged}");
    }
}
