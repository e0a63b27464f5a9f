//! Joins of two streams, as they are planned: how long rows are kept, and where rows with NULLs go.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_common::{OutputMode, SqlSettings};
use millstream_plan::{BeyondSpark, EventTime, PlanSettings, QueryInput, StreamInput, StreamingPlan, plan};
use std::collections::BTreeMap;
use std::sync::Arc;

fn columns(time: &str, number: &str) -> SchemaRef {
    let timestamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new(time, timestamp.clone(), true),
        Field::new("k", DataType::Utf8, true),
        Field::new(number, DataType::Int64, true),
        Field::new(format!("other_{time}"), timestamp, true),
    ]))
}

fn stream(name: &str, schema: SchemaRef, watermark: bool) -> StreamInput {
    let event_time = watermark.then(|| EventTime { column: schema.field(0).name().clone(), delay_us: 60_000_000 });
    StreamInput { name: name.into(), schema, event_time, drop_duplicates: None }
}

/// Plans over `l` (lts, k, a), `r` (rts, k, b), `m` (mts, k, c), with watermarks, and `p` (pts, k, d) without.
fn planned(sql: &str) -> StreamingPlan {
    let input = QueryInput {
        streams: vec![
            stream("l", columns("lts", "a"), true),
            stream("r", columns("rts", "b"), true),
            stream("m", columns("mts", "c"), true),
            stream("p", columns("pts", "d"), false),
        ],
        tables: Vec::new(),
        plugins: Vec::new(),
        query: sql.into(),
        mode: OutputMode::Append,
        settings: PlanSettings {
            sql: SqlSettings::default(),
            partitions: 1,
            uids: BTreeMap::new(),
            beyond: BeyondSpark::default(),
        },
    };
    plan(&input).unwrap_or_else(|error| panic!("{sql}: {}", millstream_common::describe_chain(&error)))
}

/// When left and right rows leave, as the first join of the plan says.
fn leaves(condition: &str) -> String {
    let text = planned(&format!("SELECT a, b FROM l JOIN r ON l.k = r.k AND {condition}")).pipeline.describe();
    let line = text.lines().find(|line| line.trim_start().starts_with("Join ")).unwrap();
    line.split_once("; ").unwrap().1.replace(" rows leave", "").replace("when the watermark ", "")
}

#[test]
fn inequalities_of_event_times_bound_both_sides_in_any_arrangement() {
    for (condition, wanted) in [
        ("rts BETWEEN lts AND lts + INTERVAL 10 MINUTES", "left -600000 ms passes lts; right +0 ms passes rts"),
        ("rts >= lts AND rts - INTERVAL 10 MINUTES <= lts", "left -600000 ms passes lts; right +0 ms passes rts"),
        (
            "lts > rts - INTERVAL 8 MINUTES AND lts < rts + INTERVAL 1 HOUR",
            "left -480000 ms reaches lts; right -3600000 ms reaches rts",
        ),
        (
            "rts - INTERVAL 8 MINUTES < lts AND INTERVAL 1 HOUR + rts > lts",
            "left -480000 ms reaches lts; right -3600000 ms reaches rts",
        ),
        ("lts + INTERVAL 1 DAY < rts", "left rows stay; right +86400000 ms reaches rts"),
        ("lts <= rts", "left rows stay; right +0 ms passes rts"),
        ("rts < lts", "left +0 ms reaches lts; right rows stay"),
        ("CAST(rts AS TIMESTAMP) <= lts + INTERVAL 1 MINUTE", "left -60000 ms passes lts; right rows stay"),
        ("NOT (rts > lts + INTERVAL 1 MINUTE)", "left -60000 ms passes lts; right rows stay"),
        (
            "CAST(rts AS BIGINT) <= CAST(lts AS BIGINT) + 600 AND CAST(rts AS DOUBLE) >= CAST(lts AS DOUBLE)",
            "left in seconds -600000 ms passes lts; right +0 ms passes rts",
        ),
        ("unix_timestamp(rts) < unix_timestamp(lts)", "left rows stay; right rows stay"),
        ("rts < lts + INTERVAL 1 MONTH", "left rows stay; right rows stay"),
        ("other_rts < lts", "left rows stay; right rows stay"),
        ("rts < other_lts", "left rows stay; right rows stay"),
        ("rts - lts < INTERVAL 10 MINUTES", "left rows stay; right rows stay"),
        ("a < b", "left rows stay; right rows stay"),
        ("lts = rts", "left reaches key 1; right reaches key 1"),
    ] {
        assert_eq!(leaves(condition), wanted, "{condition}");
    }
}

fn logical(sql: &str) -> String {
    planned(sql).logical.lines().map(str::trim).collect::<Vec<_>>().join(" | ")
}

#[test]
fn rows_with_nulls_are_taken_out_below_the_watermark_where_they_would_not_come_out() {
    let inner = logical("SELECT l.k, a, b FROM l JOIN r ON l.k = r.k AND a < b AND rts > lts");
    for part in [
        "Filter: l.lts IS NOT NULL | Watermark: l.lts delay 60000 ms | Filter: l.a IS NOT NULL AND l.k IS NOT NULL | TableScan: l",
        "Filter: r.rts IS NOT NULL | Watermark: r.rts delay 60000 ms | Filter: r.b IS NOT NULL AND r.k IS NOT NULL | TableScan: r",
    ] {
        assert!(inner.contains(part), "{inner}");
    }
    let within = "ON l.k = r.k AND rts BETWEEN lts AND lts + INTERVAL 10 MINUTES";
    let left = logical(&format!("SELECT l.k, a, b FROM l LEFT JOIN r {within}"));
    assert!(left.contains("SubqueryAlias: l | Watermark: l.lts delay 60000 ms | TableScan: l"), "{left}");
    assert!(
        left.contains("Filter: r.rts IS NOT NULL | Watermark: r.rts delay 60000 ms | Filter: r.k IS NOT NULL"),
        "{left}"
    );
    let right = logical(&format!("SELECT r.k, a, b FROM l RIGHT JOIN r {within}"));
    assert!(right.contains("Watermark: l.lts delay 60000 ms | Filter: l.k IS NOT NULL"), "{right}");
    assert!(right.contains("SubqueryAlias: r | Watermark: r.rts delay 60000 ms | TableScan: r"), "{right}");
    let full = logical(&format!("SELECT l.k, r.k AS rk, a, b FROM l FULL JOIN r {within}"));
    assert!(!full.contains("IS NOT NULL"), "{full}");
    let semi = logical(&format!("SELECT l.k, a FROM l LEFT SEMI JOIN r {within}"));
    assert!(
        semi.contains("Filter: l.k IS NOT NULL | TableScan: l")
            && semi.contains("Filter: r.k IS NOT NULL | TableScan: r"),
        "{semi}"
    );
    let null_safe = logical("SELECT l.k, a, b FROM l JOIN r ON l.k <=> r.k");
    assert!(!null_safe.contains("IS NOT NULL"), "{null_safe}");
}

const WINDOWS: &str = "(SELECT window(lts, '10 minutes') AS w, k, a FROM l) l JOIN (SELECT window(rts, '10 minutes') AS w, k, b FROM r) r ON l.w = r.w AND l.k = r.k";

#[test]
fn equal_windows_bound_both_sides_and_are_computed_once() {
    let plan = planned(&format!("SELECT l.w.start AS s, l.k, a, b FROM {WINDOWS}"));
    let text = plan.pipeline.describe();
    assert!(
        text.contains(
            "left rows leave when the watermark reaches key 0; right rows leave when the watermark reaches key 0"
        ),
        "{text}"
    );
    assert_eq!(plan.logical.matches("window(l.lts)").count(), 1, "{}", plan.logical);
}

#[test]
fn a_filter_that_needs_a_match_makes_an_outer_join_an_inner_one() {
    let within = "ON l.k = r.k AND rts BETWEEN lts AND lts + INTERVAL 10 MINUTES";
    let left =
        |filter: &str| planned(&format!("SELECT l.k, a, b FROM l LEFT JOIN r {within} {filter}")).pipeline.describe();
    assert!(left("").contains("[left outer]"));
    assert!(left("WHERE b > 3").contains("[inner]"));
    assert!(left("WHERE b IS NULL").contains("[left outer]"));
    assert!(left("WHERE a > 3").contains("[left outer]"));
}

#[test]
fn an_inner_join_below_distinct_stays_an_inner_join() {
    for (columns, wanted) in [("l.k, lts", "lts@"), ("r.k, rts", "rts@")] {
        let plan = planned(&format!(
            "SELECT DISTINCT {columns} FROM l JOIN r ON l.k = r.k AND rts BETWEEN lts AND lts + INTERVAL 10 MINUTES"
        ));
        let text = plan.pipeline.describe();
        assert!(text.contains("Join query-input-join [inner]") && text.contains(wanted), "{text}");
    }
}

#[test]
fn the_event_times_of_both_sides_can_be_aggregated_above_a_join() {
    for window in ["window(lts, '10 minutes')", "window(rts, '10 minutes')"] {
        let plan = planned(&format!(
            "SELECT window.start AS s, count(*) AS c FROM (SELECT lts, rts, a AS x, b AS y FROM l JOIN r \
             ON l.k = r.k AND rts BETWEEN lts AND lts + INTERVAL 10 MINUTES) AS j GROUP BY {window}"
        ));
        assert!(plan.pipeline.describe().contains("Aggregate query-aggregate [append]"));
    }
}

#[test]
fn joins_are_named_by_their_scope_and_the_one_below_by_standing_at_its_input() {
    let uids = |sql: &str| {
        let mut uids = Vec::new();
        let mut plan = planned(sql);
        let visited: Result<(), std::convert::Infallible> = plan.pipeline.for_each_stateful(|operator| {
            uids.push(operator.uid().to_string());
            Ok(())
        });
        assert!(visited.is_ok());
        uids
    };
    let chain = "SELECT a, b, c FROM l JOIN r ON l.k = r.k JOIN m ON r.k = m.k";
    assert_eq!(uids(chain), ["query-join", "query-input-join"]);
    let named =
        "WITH pairs AS (SELECT l.k, a, b FROM l JOIN r ON l.k = r.k) SELECT p.a, m.c FROM pairs p JOIN m ON p.k = m.k";
    assert_eq!(uids(named), ["query-join", "pairs-join"]);
    let right = "SELECT m.c, j.a FROM m LEFT JOIN (SELECT l.k, l.a, r.rts FROM l JOIN r ON l.k = r.k AND rts > lts) j \
                 ON m.k = j.k AND j.rts BETWEEN m.mts AND m.mts + INTERVAL 5 MINUTES";
    assert_eq!(uids(right), ["query-join", "j-join"]);
}

#[test]
fn a_stream_can_be_joined_with_itself() {
    let plan = planned("SELECT x.a, y.a AS later FROM l x JOIN l y ON x.k = y.k AND y.lts > x.lts");
    assert_eq!(plan.slots.len(), 2);
    assert!(plan.slots.iter().all(|slot| slot.stream == "l"));
    assert_eq!(plan.watermark_nodes, ["l"]);
}

#[test]
fn what_one_side_has_passed_on_its_key_is_asked_of_the_other() {
    let side = "(SELECT * FROM l WHERE k = 'x' AND a > 2) l";
    let inner = logical(&format!("SELECT l.k, a, b FROM {side} JOIN r ON l.k = r.k AND rts > lts"));
    assert!(inner.contains("r.k = Utf8(\"x\") | TableScan: r"), "{inner}");
    let within = "ON l.k = r.k AND rts BETWEEN lts AND lts + INTERVAL 10 MINUTES";
    let left = logical(&format!("SELECT l.k, a, b FROM {side} LEFT JOIN r {within}"));
    assert!(left.contains("r.k = Utf8(\"x\")"), "{left}");
    let right = logical(&format!("SELECT r.k, a, b FROM {side} RIGHT JOIN r {within}"));
    assert!(!right.contains("r.k = Utf8(\"x\")"), "{right}");
    let full = logical(&format!("SELECT r.k, a, b FROM {side} FULL JOIN r {within}"));
    assert!(!full.contains("r.k = Utf8(\"x\")"), "{full}");
}
