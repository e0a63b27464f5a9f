//! Rows of several kinds of queries, each made again from its folder alone, on a session that knows nothing else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use millstream_common::{Options, OutputMode, StopSignal};
use millstream_plan::EventTime;
use millstream_runtime::explain_row::{RowChoice, RowDocument, explain_row, remake_row};
use millstream_runtime::{CanaryTerms, PluginSpec, QueryRun, QuerySpec, Session, Settings, StreamSpec, SwapGrounds};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::time::Duration;
use streaming_stories::{World, component};

const ROWS: i64 = 12;

fn spec(sql: &str, plugin: &str, mode: OutputMode) -> QuerySpec {
    let options = Options::new().with("rowsPerBatch", ROWS.to_string()).with("numPartitions", "1");
    let source = SourceSpec { name: "numbers".into(), format: "rate-micro-batch".into(), schema: None, options };
    let event_time = Some(EventTime { column: "timestamp".into(), delay_us: 0 });
    let sink = SinkSpec { format: "recorder".into(), options: Options::new() };
    QuerySpec {
        plugins: vec![PluginSpec {
            name: "code".into(),
            component: component(plugin).unwrap(),
            limits: PluginLimits { deadline: Duration::from_secs(20), ..PluginLimits::default() },
            on_fault: FaultPolicy::Fail,
        }],
        mode,
        checkpoint: Some("checkpoint".into()),
        settings: Settings { partitions: 3, ..Settings::default() },
        ..QuerySpec::new(sql, vec![StreamSpec { source, event_time, drop_duplicates: None }], sink)
    }
}

/// Runs some batches, puts a row of one of them into a folder, forgets the rest of the world, and makes the row again.
fn explained(spec: &QuerySpec, batch: u64, row: &RowChoice, canary: Option<(&str, CanaryTerms)>) -> RowDocument {
    let folder = tempfile::tempdir().unwrap();
    let (place, moved) = (folder.path().join("row"), folder.path().join("moved"));
    let document = {
        let world = World::new().unwrap();
        let mut run = QueryRun::open(&world.session, spec.clone(), StopSignal::new()).unwrap();
        if let Some((candidate, terms)) = canary {
            let grounds = SwapGrounds::unasked("swap");
            run.canary("code", component(candidate).unwrap(), grounds, terms).unwrap();
        }
        for _ in 0..8 {
            world.clock.advance(Duration::from_secs(1));
            run.run_next().unwrap().unwrap();
        }
        run.close();
        explain_row(&world.session, spec, batch, row, &place).unwrap()
    };
    std::fs::rename(&place, &moved).unwrap();
    let session = Session::new().unwrap();
    for _ in 0..2 {
        let remade = remake_row(&session, &moved).unwrap();
        assert!(remade.is_same, "{remade:#?}");
        assert_eq!(remade.document, document);
        assert!(remade.rows.contains(&document.row));
    }
    document
}

fn with(column: &str, value: &str) -> RowChoice {
    RowChoice::Where(vec![(column.to_owned(), value.to_owned())])
}

#[test]
fn a_row_of_a_keyed_aggregation_has_the_rows_of_its_key() {
    let sql = "SELECT value % 4 AS k, tally(value) AS total FROM numbers GROUP BY value % 4";
    let row = explained(&spec(sql, "tally_one", OutputMode::Update), 5, &with("k", "3"), None);
    assert_eq!((row.narrowed.of_rows, row.narrowed.rows, row.narrowed.is_least), (12, 3, true));
    // 3, 7, … 71
    assert_eq!(row.row, format!("{{\"k\":3,\"total\":{}}}", (3..72).step_by(4).sum::<i64>()));
    assert!(row.inputs[0].columns.contains(&"value".to_owned()));
}

#[test]
fn a_row_that_a_watermark_closes_needs_no_row_of_its_batch() {
    let sql = "SELECT unix_seconds(w.start) AS second, total FROM (
                 SELECT window(timestamp, '3 seconds') AS w, tally(value) AS total
                 FROM numbers GROUP BY window(timestamp, '3 seconds')) t";
    let spec = spec(sql, "tally_one", OutputMode::Append);
    let row = explained(&spec, 4, &RowChoice::Number(0), None);
    assert_eq!((row.narrowed.rows, row.narrowed.is_least), (0, true), "{row:#?}");
    assert!(row.watermark.is_some() && row.late_watermark.is_some());
}

#[test]
fn a_row_of_a_processor_and_of_a_join_has_what_it_was_made_of() {
    let sql = "SELECT k, total FROM totals(TABLE(SELECT CAST(value % 4 AS STRING) AS k, value + 100 AS v FROM numbers)
               PARTITION BY k) AS t";
    let row = explained(&spec(sql, "processors", OutputMode::Update), 3, &with("k", "1"), None);
    assert_eq!((row.narrowed.of_rows, row.narrowed.rows), (12, 3), "{row:#?}");
    let sql = "SELECT a.value AS one, b.value AS two FROM numbers AS a JOIN numbers AS b
               ON a.value = b.value AND a.timestamp = b.timestamp";
    let row = explained(&spec(sql, "processors", OutputMode::Append), 2, &with("one", "30"), None);
    assert_eq!(row.row, "{\"one\":30,\"two\":30}");
    assert_eq!((row.inputs.len(), row.narrowed.rows), (2, 2), "one of each side: {row:#?}");
}

#[test]
fn a_row_of_a_canary_comes_out_of_its_candidate_again() {
    let sql = "SELECT k, total FROM totals(TABLE(SELECT CAST(value % 4 AS STRING) AS k, value + 100 AS v FROM numbers)
               PARTITION BY k) AS t";
    let terms = CanaryTerms { share: 10_000, batches: 100, expect_same: false, cost_percent: 1_000_000 };
    let spec = spec(sql, "processors", OutputMode::Update);
    let row = explained(&spec, 3, &with("k", "1"), Some(("totals_tenfold", terms)));
    // 1, 5, … 45, each with a hundred more, tenfold.
    assert_eq!(row.row, format!("{{\"k\":\"1\",\"total\":{}}}", 10 * (1..48).step_by(4).map(|v| v + 100).sum::<i64>()));
    assert!(row.made_by["code"].canary.is_some());
}
