use super::*;
use crate::StreamSpec;
use millstream_common::Options;
use millstream_sink::connectors::memory::MemorySinkTables;
use millstream_sink::{SinkError, SinkRegistry, SinkSpec};
use millstream_source::SourceSpec;
use std::path::Path;

fn spec(folder: &Path, sql: &str, sink: SinkSpec) -> QuerySpec {
    let schema = arrow::datatypes::Schema::new(millstream_plan::ddl::parse_ddl("k string, v bigint").unwrap());
    let options = Options::new().with("path", folder.display().to_string()).with("maxFilesPerTrigger", "1");
    let source = SourceSpec { name: "t".into(), format: "json".into(), schema: Some(Arc::new(schema)), options };
    QuerySpec {
        name: Some("answer".into()),
        mode: OutputMode::Complete,
        ..QuerySpec::new(sql, vec![StreamSpec { source, event_time: None, drop_duplicates: None }], sink)
    }
}

fn input() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (file, lines) in
        [("1.json", "{\"k\":\"a\",\"v\":1}\n{\"k\":\"b\",\"v\":2}"), ("2.json", "{\"k\":\"a\",\"v\":3}")]
    {
        std::fs::write(folder.path().join(file), lines).unwrap();
    }
    folder
}

#[test]
fn all_files_are_read_once_and_the_answer_is_one_batch() {
    let tables = MemorySinkTables::new();
    let session = Session::builder().sinks(SinkRegistry::with_builtins_over(tables.clone())).build();
    let folder = input();
    let sink = SinkSpec { format: "memory".into(), options: Options::new() };
    let sql = "SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY k LIMIT 1";
    let summary = run_batch_query(&session, &spec(folder.path(), sql, sink), &StopSignal::new()).unwrap().unwrap();
    assert_eq!((summary.rows_in, summary.rows_out), (vec![("t".to_owned(), 3)], 1));
    let rows = tables.get("answer").unwrap().batches().remove(&BatchId::FIRST).unwrap();
    let text = arrow::util::pretty::pretty_format_batches(&rows).unwrap().to_string();
    assert!(text.contains("| a | 4 |"), "{text}");
}

#[test]
fn a_second_answer_does_not_go_over_the_first() {
    let (folder, out) = (input(), tempfile::tempdir().unwrap());
    let sink = || SinkSpec {
        format: "json".into(),
        options: Options::new().with("path", out.path().join("answer").display().to_string()),
    };
    let session = Session::new().unwrap();
    let run = || run_batch_query(&session, &spec(folder.path(), "SELECT k FROM t", sink()), &StopSignal::new());
    assert_eq!(run().unwrap().unwrap().rows_out, 3);
    let error = run().unwrap_err();
    assert!(matches!(error, RuntimeError::Sink(SinkError::Foreign { .. })), "{error:?}");
}

#[test]
fn a_stop_writes_nothing() {
    let (folder, stop) = (input(), StopSignal::new());
    stop.set();
    let sink = SinkSpec { format: "noop".into(), options: Options::new() };
    let session = Session::new().unwrap();
    assert_eq!(run_batch_query(&session, &spec(folder.path(), "SELECT k FROM t", sink), &stop).unwrap(), None);
}
