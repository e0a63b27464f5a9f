use super::*;
use crate::StreamSpec;
use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use millstream_common::{Options, ReadLimit};
use millstream_sink::connectors::memory::MemorySinkTables;
use millstream_sink::{SinkError, SinkRegistry, SinkSpec};
use millstream_source::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceRegistry, SourceSpec};
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

/// A source that waits for a future when it is read, as those of databases do.
struct Waiting;

impl Source for Waiting {
    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, true)]))
    }

    fn description(&self) -> String {
        "Waiting".into()
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    fn latest_offset(&mut self, _start: Option<&Offset>, _limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        Ok(Some(Offset(1.into())))
    }

    fn read(
        &mut self,
        _start: Option<&Offset>,
        _end: &Offset,
        _projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let values = runtime.block_on(async { vec![1, 2] });
        let rows = RecordBatch::try_new(self.schema(), vec![Arc::new(Int64Array::from(values))]).unwrap();
        Ok(vec![vec![rows]])
    }
}

struct WaitingFactory;

impl SourceFactory for WaitingFactory {
    fn schema(&self, _spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Ok(Waiting.schema())
    }

    fn open(&self, _spec: &SourceSpec, _context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(Waiting))
    }
}

#[test]
fn a_source_may_wait_for_its_server() {
    let mut sources = SourceRegistry::empty();
    sources.register("waiting", Arc::new(WaitingFactory));
    let session = Session::builder().sources(sources).build();
    let source = SourceSpec { name: "t".into(), format: "waiting".into(), schema: None, options: Options::new() };
    let stream = StreamSpec { source, event_time: None, drop_duplicates: None };
    let sink = SinkSpec { format: "noop".into(), options: Options::new() };
    let query = QuerySpec::new("SELECT v FROM t", vec![stream], sink);
    assert_eq!(run_batch_query(&session, &query, &StopSignal::new()).unwrap().unwrap().rows_out, 2);
}
