//! What queries may do with event time that Spark does not: each is off unless it is asked for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::datatypes::{Schema, SchemaRef};
use millstream_common::{Options, StopSignal, Trigger, describe_chain};
use millstream_plan::EventTime;
use millstream_plan::ddl::parse_ddl;
use millstream_runtime::{Progress, QueryRun, QuerySpec, Settings, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_source::connectors::memory::MemoryStream;
use std::sync::Arc;
use std::time::Duration;
use streaming_stories::{World, unit};

const COUNT: &str = "SELECT window(at, '10 seconds') AS w, count(*) AS n FROM a GROUP BY window(at, '10 seconds')";

fn schema() -> SchemaRef {
    Arc::new(Schema::new(parse_ddl("at timestamp, k string").unwrap()))
}

fn spec(sql: &str, settings: &[(&str, &str)]) -> QuerySpec {
    let stream = |name: &str| StreamSpec {
        source: SourceSpec {
            name: name.into(),
            format: "memory".into(),
            schema: None,
            options: Options::new().with("maxBatchesPerTrigger", "1"),
        },
        event_time: Some(EventTime { column: "at".into(), delay_us: 5_000_000 }),
        drop_duplicates: None,
    };
    let mut all = Settings::default();
    settings.iter().for_each(|(name, value)| all.set(name, value).unwrap());
    QuerySpec {
        name: Some("beyond".into()),
        checkpoint: Some("checkpoint".into()),
        settings: all,
        ..QuerySpec::new(
            sql,
            vec![stream("a"), stream("b")],
            SinkSpec { format: "recorder".into(), options: Options::new() },
        )
    }
}

/// A world with the streams `a` and `b`, and a way to add rows to `a` such as `12:00:01,x; 12:00:04,y`.
struct Place {
    world: World,
    a: MemoryStream,
}

impl Place {
    fn new() -> Self {
        let world = World::new().unwrap();
        let a = world.streams.create("a", schema());
        world.streams.create("b", schema());
        Self { world, a }
    }

    fn add(&self, rows: &str) {
        let rows: Vec<Vec<Option<String>>> = rows
            .split(';')
            .filter(|row| !row.trim().is_empty())
            .map(|row| row.split(',').map(|value| Some(value.trim().to_owned())).collect())
            .collect();
        self.a.add_data(unit(&schema(), &rows).unwrap()).unwrap();
    }

    fn open(&self, spec: &QuerySpec) -> QueryRun {
        self.world.pass_lease();
        QueryRun::open(&self.world.session, spec.clone(), StopSignal::new())
            .unwrap_or_else(|error| panic!("{}", describe_chain(&error)))
    }

    fn all_rows(&self) -> Vec<String> {
        self.world.recorder.batches().into_values().flatten().collect()
    }
}

fn settle(run: &mut QueryRun) -> Vec<Progress> {
    std::iter::from_fn(|| run.run_next().unwrap_or_else(|error| panic!("{}", describe_chain(&error)))).collect()
}

#[test]
fn a_silent_stream_holds_the_watermark_back_until_its_timeout() {
    let union = "SELECT window(at, '10 seconds') AS w, count(*) AS n FROM (SELECT at FROM a UNION ALL SELECT at FROM b) \
                 GROUP BY window(at, '10 seconds')";
    for (timeout, closed) in [("none", 0), ("1 minute", 1)] {
        let place = Place::new();
        let mut run = place.open(&spec(union, &[("millstream.watermark.idleTimeout", timeout)]));
        place.add("12:00:01,x; 12:00:21,x");
        settle(&mut run);
        place.world.clock.advance(Duration::from_secs(59));
        place.add("12:00:22,x");
        settle(&mut run);
        assert_eq!(place.all_rows().len(), 0, "b may still come");
        place.world.clock.advance(Duration::from_secs(2));
        place.add("12:00:23,x");
        settle(&mut run);
        assert_eq!(place.all_rows().len(), closed, "timeout {timeout}");
        run.close();
    }
}

#[test]
fn a_row_from_the_far_future_does_not_make_all_others_late() {
    for (bound, late) in [("none", 1), ("1 day", 0)] {
        let place = Place::new();
        // The clock of the world is in November 2023.
        let mut run = place.open(&spec(COUNT, &[("millstream.watermark.maxAhead", bound)]));
        place.add("2023-11-14T12:00:01,x; 2099-01-01T00:00:00,x");
        let first = settle(&mut run);
        assert_eq!(first[0].event_time.get("rowsAhead").map(String::as_str), (late == 0).then_some("1"));
        place.add("2023-11-14T12:00:02,x");
        settle(&mut run);
        place.add("2023-11-14T12:00:03,x");
        let dropped: u64 =
            settle(&mut run).iter().map(|progress| progress.state_operators[0].num_rows_dropped_by_watermark).sum();
        assert_eq!(dropped.min(1), late, "bound {bound}");
        run.close();
    }
}

#[test]
fn what_is_open_closes_when_a_bounded_input_has_been_read() {
    let place = Place::new();
    let mut spec = spec(COUNT, &[("millstream.watermark.finishOnEnd", "true")]);
    spec.trigger = Trigger::AvailableNow;
    place.add("12:00:01,x; 12:00:02,x");
    place.add("12:00:31,x");
    let mut run = place.open(&spec);
    settle(&mut run);
    run.close();
    assert_eq!(place.all_rows(), ["[12:00:00,12:00:10) | 2", "[12:00:30,12:00:40) | 1"]);
    // Nothing is waited for any more: what comes later is late, and nothing comes twice.
    place.add("12:00:32,x");
    let mut run = place.open(&spec);
    let progress = settle(&mut run);
    assert_eq!(progress.iter().map(|p| p.state_operators[0].num_rows_dropped_by_watermark).sum::<u64>(), 1);
    assert_eq!(place.all_rows().len(), 2);
    run.close();
}

#[test]
fn late_rows_are_counted_one_by_one_and_go_to_a_sink_of_their_own() {
    let play = |settings: &[(&str, &str)], sink: Option<SinkSpec>| {
        let place = Place::new();
        let spec = QuerySpec { late_rows: sink, ..spec(COUNT, settings) };
        let mut run = place.open(&spec);
        let mut progress = Vec::new();
        for rows in ["12:00:01,x; 12:00:31,x", "12:00:32,x", "12:00:02,late; 12:00:03,later; 12:00:33,x", "12:01:00,x"]
        {
            place.add(rows);
            progress.extend(settle(&mut run));
        }
        run.close();
        let of = |count: fn(&Progress) -> u64| progress.iter().map(count).sum::<u64>();
        let groups = of(|progress| progress.state_operators[0].num_rows_dropped_by_watermark);
        let rows = of(|p| p.state_operators[0].custom_metrics.get("numLateRows").copied().unwrap_or(0));
        (place.all_rows(), groups, rows, place.world.output().unwrap_or_default())
    };
    let (result, groups, rows, _) = play(&[], None);
    assert_eq!((groups, rows), (1, 0), "Spark counts groups");
    let exact = play(&[("millstream.lateRows.exact", "true")], None);
    assert_eq!((&exact.0, exact.1, exact.2), (&result, 0, 2));
    let sink = SinkSpec { format: "json".into(), options: Options::new().with("path", "output") };
    let (kept, _, rows, late) = play(&[], Some(sink));
    assert_eq!((&kept, rows), (&result, 2));
    let late: Vec<String> = late.into_values().flatten().collect();
    assert_eq!(late.len(), 2, "{late:?}");
    for (row, k) in late.iter().zip(["late", "later"]) {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        assert_eq!(row["operator"], "query-aggregate");
        let whole: serde_json::Value = serde_json::from_str(row["row"].as_str().unwrap()).unwrap();
        assert_eq!(whole["k"], k, "{whole}");
        assert!(whole["at"].as_str().unwrap().contains("12:00:0"), "{whole}");
    }
}
