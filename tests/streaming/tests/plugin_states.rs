//! The states of plugins' aggregate functions between two starts: new code goes on with them, or is refused and the old
//! code goes on; they can be looked at, and the log says whose they are.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::util::pretty::pretty_format_batches;
use millstream_common::{BatchId, Options, OutputMode, StopSignal};
use millstream_runtime::inspect::{CheckpointPlace, StateRequest, state};
use millstream_runtime::verdict::{Check, Verdict};
use millstream_runtime::{PluginSpec, QueryRun, QuerySpec, RuntimeError, Settings, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_source::connectors::memory::MemoryStream;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::sync::Arc;
use streaming_stories::{World, component, unit};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true), Field::new("v", DataType::Int64, true)]))
}

/// A query whose plugin is `code`.
fn spec(sql: &str, code: &str) -> QuerySpec {
    let source = SourceSpec {
        name: "s".into(),
        format: "memory".into(),
        schema: None,
        options: Options::new().with("maxBatchesPerTrigger", "1"),
    };
    let plugin = PluginSpec {
        name: "stats".into(),
        component: component(code).unwrap(),
        limits: PluginLimits::default(),
        on_fault: FaultPolicy::Fail,
    };
    let streams = vec![StreamSpec { source, event_time: None, drop_duplicates: None }];
    let sink = SinkSpec { format: "recorder".into(), options: Options::new() };
    QuerySpec {
        name: Some("states".into()),
        plugins: vec![plugin],
        mode: OutputMode::Update,
        checkpoint: Some("checkpoint".into()),
        settings: Settings { partitions: 2, ..Settings::default() },
        ..QuerySpec::new(sql, streams, sink)
    }
}

const TOTALS: &str = "SELECT k, total(v) AS t, longest(k) AS l FROM s GROUP BY k";

struct Stage {
    world: World,
    stream: MemoryStream,
}

impl Stage {
    /// A world in which the old code has run a batch.
    fn after(sql: &str) -> Self {
        let world = World::new().unwrap();
        let stage = Self { stream: world.streams.create("s", schema()), world };
        assert_eq!(stage.next(sql, "aggregates", "a", "1").unwrap(), ["a | 1 | a"]);
        stage
    }

    /// A row arrives, and a batch of that code runs.
    fn next(&self, sql: &str, code: &str, k: &str, v: &str) -> Result<Vec<String>, RuntimeError> {
        self.world.pass_lease();
        let mut run = QueryRun::open(&self.world.session, spec(sql, code), StopSignal::new())?;
        self.stream.add_data(unit(&schema(), &[vec![Some(k.to_owned()), Some(v.to_owned())]]).unwrap()).unwrap();
        let batch = run.run_next()?.unwrap().batch_id;
        run.close();
        Ok(self.world.recorder.batches().remove(&batch).unwrap_or_default())
    }
}

#[test]
fn other_code_with_the_same_states_goes_on_with_them() {
    let stage = Stage::after(TOTALS);
    assert_eq!(stage.next(TOTALS, "aggregates_next", "a", "2").unwrap(), ["a | -3 | a"]);
    assert_eq!(stage.next(TOTALS, "aggregates", "a", "3").unwrap(), ["a | 6 | a"]);
}

#[test]
fn other_states_are_refused_and_the_old_code_goes_on() {
    let stage = Stage::after(TOTALS);
    let error = stage.next(TOTALS, "aggregates_other", "a", "2").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the state `total` of `query-aggregate` is stored as `count and sum`"), "{text}");
    assert!(text.contains("and wanted as `count and sum of squares`"), "{text}");
    assert!(matches!(error, RuntimeError::Refused { .. }), "{error:?}");
    assert_eq!(stage.next(TOTALS, "aggregates", "a", "2").unwrap(), ["a | 3 | a"]);
}

#[test]
fn another_meaning_of_the_same_columns_is_a_difference_of_its_own() {
    let sql = "SELECT k, total(v) AS t, k AS l FROM s GROUP BY k";
    let stage = Stage::after(sql);
    let error = stage.next(sql, "aggregates_other", "a", "2").unwrap_err();
    let RuntimeError::Refused { report } = error else { panic!("{error:?}") };
    let [finding] = report.findings.as_slice() else { panic!("{report:?}") };
    assert_eq!((finding.verdict, finding.check), (Verdict::Reject, Check::Declaration));
    for part in ["`total` of `query-aggregate`", "`count and sum`", "`count and sum of squares`", "no migration"] {
        assert!(finding.what.contains(part), "{part} in {}", finding.what);
    }
}

#[test]
fn states_can_be_looked_at_and_the_log_says_whose_they_are() {
    let stage = Stage::after(TOTALS);
    stage.next(TOTALS, "aggregates", "bb", "5").unwrap();
    let place = CheckpointPlace { place: "checkpoint".into(), options: Vec::new(), query: None };
    let tables = state(&stage.world.session, &place, &StateRequest::default()).unwrap();
    let (_, rows) = tables[0].flat();
    let text = pretty_format_batches(&rows).unwrap().to_string();
    for part in ["value.total(s.v)[count]", "value.total(s.v)[sum]", "value.longest(s.k)[text]", "| bb ", "| 5 "] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let entry = stage.world.checkpoint().unwrap().unwrap().offset_log().get(BatchId(1)).unwrap().unwrap();
    let pin = &entry.state_schemas["query-aggregate"];
    assert!(pin.schema_text.contains("count Int64 not null, sum Int64 not null as `count and sum`"), "{pin:?}");
    let marks = pin.families[0]["value"][0]["row"]["plugins"].clone();
    assert_eq!(marks[0]["plugin"], "stats");
    assert_eq!((marks[0]["state"].clone(), marks[0]["state_id"].clone()), ("total".into(), "count and sum".into()));
    assert_eq!(
        (marks[1]["state"].clone(), marks[1]["first"].clone(), marks[1]["count"].clone()),
        ("longest".into(), 2.into(), 1.into())
    );
    assert_eq!(entry.plugins["stats"].digest, spec(TOTALS, "aggregates").plugins[0].digest());
}
