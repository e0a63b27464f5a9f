//! Whole queries over Kafka: what progress tells, restarts, batch queries, tables.

use super::records;
use arrow::util::pretty::pretty_format_batches;
use kafka_tests::{Isolation, Kafka, Record};
use millstream_common::{BatchId, Options, StopSignal, Trigger};
use millstream_plan::EventTime;
use millstream_runtime::batch_query::run_batch_query;
use millstream_runtime::{QueryRun, QuerySpec, Session, StreamSpec, TableSpec};
use millstream_sink::connectors::memory::MemorySinkTables;
use millstream_sink::{SinkRegistry, SinkSpec};
use millstream_source::SourceSpec;

const SQL: &str = "SELECT CAST(value AS STRING) AS v, partition, offset FROM t";

fn source(kafka: &Kafka, name: &str, options: &[(&str, &str)]) -> SourceSpec {
    let sound = Options::new().with("kafka.bootstrap.servers", kafka.bootstrap());
    let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
    SourceSpec { name: name.into(), format: "kafka".into(), schema: None, options }
}

fn spec(sql: &str, source: SourceSpec) -> QuerySpec {
    let sink = SinkSpec { format: "memory".into(), options: Options::new() };
    let stream = StreamSpec { source, event_time: None, drop_duplicates: None };
    QuerySpec { name: Some("answer".into()), ..QuerySpec::new(sql, vec![stream], sink) }
}

fn session() -> (Session, MemorySinkTables) {
    let tables = MemorySinkTables::new();
    (Session::builder().sinks(SinkRegistry::with_builtins_over(tables.clone())).build(), tables)
}

/// The rows of a batch, cells joined by a space.
fn answer(tables: &MemorySinkTables, batch: u64) -> Vec<String> {
    let rows = tables.get("answer").unwrap().batches().remove(&BatchId(batch)).unwrap_or_default();
    let text = pretty_format_batches(&rows).unwrap().to_string();
    let cells =
        |line: &str| line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = text.lines().filter(|line| line.starts_with('|')).skip(1).map(cells).collect();
    lines.sort();
    lines
}

#[test]
fn a_stream_tells_how_far_it_is_behind_and_goes_on_after_a_restart() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("query", 1);
    kafka.produce(&topic, &records(&["a", "b", "c", "d", "e"])).unwrap();
    let (session, tables) = session();
    let folder = tempfile::tempdir().unwrap();
    let options = [("subscribe", topic.as_str()), ("startingOffsets", "earliest"), ("maxOffsetsPerTrigger", "2")];
    let mut spec = spec(SQL, source(kafka, "t", &options));
    spec.checkpoint = Some(folder.path().display().to_string());
    spec.trigger = Trigger::AvailableNow;
    let mut run = QueryRun::open(&session, spec.clone(), StopSignal::new()).unwrap();
    let progress = run.run_next().unwrap().unwrap();
    assert_eq!(progress.num_input_rows, 2);
    let told = &progress.sources[0];
    assert_eq!(told.metrics.get("maxOffsetsBehindLatest").map(String::as_str), Some("3"));
    assert_eq!(told.end_offset, Some(serde_json::json!({ topic.as_str(): {"0": 2} })));
    assert_eq!(told.latest_offset, Some(serde_json::json!({ topic.as_str(): {"0": 5} })));
    let json = serde_json::to_value(&progress).unwrap();
    assert_eq!(json["sources"][0]["metrics"]["avgOffsetsBehindLatest"], "3.0");
    drop(run);

    let mut run = QueryRun::open(&session, spec, StopSignal::new()).unwrap();
    while run.run_next().unwrap().is_some() {}
    assert_eq!(answer(&tables, 0), ["a 0 0", "b 0 1"]);
    assert_eq!(answer(&tables, 1), ["c 0 2", "d 0 3"]);
    assert_eq!(answer(&tables, 2), ["e 0 4"]);
}

#[test]
fn a_batch_query_reads_up_to_its_ending_offsets() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("batch", 1);
    kafka.produce(&topic, &records(&["a", "b", "c"])).unwrap();
    let (session, tables) = session();
    let ending = format!("{{\"{topic}\":{{\"0\":2}}}}");
    let spec = spec(SQL, source(kafka, "t", &[("subscribe", &topic), ("endingOffsets", &ending)]));
    let summary = run_batch_query(&session, &spec, &StopSignal::new()).unwrap().unwrap();
    assert_eq!((summary.rows_in, summary.rows_out), (vec![("t".to_owned(), 2)], 2));
    assert_eq!(answer(&tables, 0), ["a 0 0", "b 0 1"]);
}

#[test]
fn a_topic_can_be_a_table_beside_a_stream() {
    let kafka = Kafka::shared();
    let (topic, names) = (kafka.topic("beside", 1), kafka.topic("names", 1));
    kafka.produce(&topic, &records(&["1", "2", "1"])).unwrap();
    kafka.produce(&names, &records(&["1", "9"])).unwrap();
    let (session, tables) = session();
    let sql = "SELECT t.offset FROM t JOIN n ON t.value = n.value";
    let mut spec = spec(sql, source(kafka, "t", &[("subscribe", &topic), ("startingOffsets", "earliest")]));
    spec.tables = vec![TableSpec::Files(source(kafka, "n", &[("subscribe", &names)]))];
    spec.trigger = Trigger::AvailableNow;
    let mut run = QueryRun::open(&session, spec, StopSignal::new()).unwrap();
    while run.run_next().unwrap().is_some() {}
    assert_eq!(answer(&tables, 0), ["0", "2"]);
}

#[test]
fn late_records_go_to_a_topic_beside_the_result_both_exactly_once() {
    let kafka = Kafka::shared();
    let (input, counts, late) = (kafka.topic("timed", 1), kafka.topic("counts", 1), kafka.topic("late", 1));
    let at = |minute: i64, value: &str| Record { timestamp: Some(minute * 60_000), ..Record::of(value) };
    let told = |topic: &str| kafka.read(topic, Isolation::Committed).iter().map(Record::text).collect::<Vec<_>>();
    let sink = |topic: &str| {
        let options = Options::new().with("kafka.bootstrap.servers", kafka.bootstrap()).with("topic", topic);
        SinkSpec { format: "kafka".into(), options }
    };
    let sql = "SELECT CAST(count(*) AS STRING) AS value FROM t GROUP BY window(timestamp, '1 minute')";
    let folder = tempfile::tempdir().unwrap();
    let options = [("subscribe", input.as_str()), ("startingOffsets", "earliest"), ("maxOffsetsPerTrigger", "2")];
    let mut spec = spec(sql, source(kafka, "t", &options));
    spec.streams[0].event_time = Some(EventTime { column: "timestamp".into(), delay_us: 0 });
    spec.checkpoint = Some(folder.path().display().to_string());
    (spec.sink, spec.late_rows, spec.trigger) = (sink(&counts), Some(sink(&late)), Trigger::AvailableNow);
    kafka
        .produce(&input, &[at(1, "a"), at(9, "b"), at(1, "just in time"), at(19, "c"), at(2, "too late"), at(29, "d")])
        .unwrap();
    loop {
        let mut run = QueryRun::open(&Session::new().unwrap(), spec.clone(), StopSignal::new()).unwrap();
        let done = run.run_next().unwrap().is_none();
        run.close();
        if done {
            break;
        }
    }
    assert_eq!(told(&counts), ["2", "1", "1"]);
    let rows = kafka.read(&late, Isolation::Committed);
    let of_operators: Vec<_> = rows.iter().map(|row| row.key.as_deref()).collect();
    assert_eq!(of_operators, [Some(&b"query-aggregate"[..])]);
    assert!(matches!(&rows[..], [row] if row.text().contains("1970-01-01T00:02")), "{rows:?}");

    spec.late_rows = Some(sink(&counts));
    let error = QueryRun::open(&Session::new().unwrap(), spec, StopSignal::new()).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "late rows are to go where the result goes");
}
