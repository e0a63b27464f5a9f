//! What may not stream is refused before anything runs, by the rule that it breaks and with a way out; what Spark accepts
//! against common belief is accepted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_common::{Hint, OutputMode, SqlSettings};
use millstream_plan::{
    DropDuplicates, EventTime, PlanError, PlanSettings, QueryInput, StaticTable, StreamInput, StreamingPlan, plan,
};
use std::collections::BTreeMap;
use std::sync::Arc;

use OutputMode::{Append, Complete, Update};

fn events() -> SchemaRef {
    let timestamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("ts", timestamp, true),
        Field::new("word", DataType::Utf8, true),
        Field::new("n", DataType::Int64, true),
    ]))
}

fn stream(name: &str, delay_us: Option<i64>) -> StreamInput {
    let event_time = delay_us.map(|delay_us| EventTime { column: "ts".into(), delay_us });
    StreamInput { name: name.into(), schema: events(), event_time, drop_duplicates: None }
}

fn limits() -> StaticTable {
    let schema =
        Arc::new(Schema::new(vec![Field::new("word", DataType::Utf8, true), Field::new("lim", DataType::Int64, true)]));
    let columns: Vec<arrow::array::ArrayRef> =
        vec![Arc::new(StringArray::from(vec!["ant", "bee"])), Arc::new(Int64Array::from(vec![3, 5]))];
    let rows = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    StaticTable { name: "limits".into(), schema, rows: vec![rows] }
}

/// Plans over `events` and `other` (with a watermark of a minute), `plain` (without), and the static table `limits`.
fn planned(sql: &str, mode: OutputMode) -> Result<StreamingPlan, PlanError> {
    renamed(sql, mode, BTreeMap::new())
}

fn renamed(sql: &str, mode: OutputMode, uids: BTreeMap<String, String>) -> Result<StreamingPlan, PlanError> {
    plan(&QueryInput {
        streams: vec![stream("events", Some(60_000_000)), stream("other", Some(0)), stream("plain", None)],
        tables: vec![limits()],
        plugins: Vec::new(),
        query: sql.into(),
        mode,
        settings: PlanSettings { sql: SqlSettings::default(), partitions: 2, uids },
    })
}

fn rule_of(sql: &str, mode: OutputMode) -> &'static str {
    match planned(sql, mode).map(|_| ()) {
        Err(error @ PlanError::Unsupported { .. }) => {
            assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "no way out: {sql}");
            let PlanError::Unsupported { rule, .. } = error else { return "" };
            rule
        }
        other => panic!("{sql} in mode {mode}: {other:?}"),
    }
}

#[test]
fn what_may_not_stream_is_refused_by_its_rule() {
    for (rule, mode, sql) in [
        ("no-stream", Append, "SELECT * FROM limits"),
        ("complete-without-aggregation", Complete, "SELECT word FROM events"),
        ("append-without-watermark", Append, "SELECT word, count(*) AS c FROM events GROUP BY word"),
        ("append-without-watermark", Append, "SELECT count(*) AS c FROM events"),
        (
            "append-without-watermark",
            Append,
            "SELECT window.start AS s, count(*) AS c FROM plain GROUP BY window(ts, '1 minute')",
        ),
        ("append-without-watermark", Append, "SELECT DISTINCT word FROM events"),
        ("distinct-aggregate", Update, "SELECT word, count(DISTINCT n) AS c FROM events GROUP BY word"),
        ("sort", Append, "SELECT word FROM events ORDER BY word"),
        ("sort", Update, "SELECT word, count(*) AS c FROM events GROUP BY word ORDER BY c"),
        ("limit-update", Update, "SELECT word FROM events LIMIT 3"),
        ("offset", Append, "SELECT word FROM events LIMIT 3 OFFSET 1"),
        ("over", Append, "SELECT word, row_number() OVER (PARTITION BY word ORDER BY n) AS r FROM events"),
        ("union-static", Append, "SELECT word FROM events UNION ALL SELECT word FROM limits"),
        ("stream-stream-join", Append, "SELECT e.word FROM events e JOIN other o ON e.word = o.word"),
        ("outer-static", Append, "SELECT l.lim FROM limits l LEFT JOIN events e ON e.word = l.word"),
        ("subquery", Append, "SELECT word FROM events WHERE n IN (SELECT n FROM other)"),
        ("subquery", Append, "SELECT word FROM events WHERE n > (SELECT max(n) FROM other)"),
        (
            "two-windows",
            Update,
            "SELECT window(ts, '1 minute'), window(ts, '2 minutes'), count(*) AS c FROM events GROUP BY window(ts, '1 minute'), window(ts, '2 minutes')",
        ),
        ("two-generators", Append, "SELECT explode(split(word, 'a')) AS a, explode(split(word, 'b')) AS b FROM events"),
        (
            "chained-aggregations",
            Update,
            "WITH inner_counts AS (SELECT word, count(*) AS c FROM events GROUP BY word) SELECT c, count(*) AS k FROM inner_counts GROUP BY c",
        ),
    ] {
        assert_eq!(rule_of(sql, mode), rule, "{sql}");
    }
}

#[test]
fn duplicates_can_be_dropped_by_columns_that_are_there_and_within_a_watermark_that_is_there() {
    let dropping = |delay_us, column: &str, within_watermark| {
        let mut events = stream("events", delay_us);
        events.drop_duplicates = Some(DropDuplicates { columns: vec![column.into()], within_watermark });
        plan(&QueryInput {
            streams: vec![events],
            tables: Vec::new(),
            plugins: Vec::new(),
            query: "SELECT n FROM events WHERE word = 'ant'".into(),
            mode: Append,
            settings: PlanSettings { sql: SqlSettings::default(), partitions: 2, uids: BTreeMap::new() },
        })
    };
    let plan = dropping(Some(0), "n", true).unwrap();
    assert_eq!(uids(plan), ["events-dedup"]);
    let Err(error) = dropping(None, "n", true) else { panic!("there is no watermark to wait within") };
    assert!(matches!(error, PlanError::Unsupported { rule: "dedup-within-without-watermark", .. }), "{error}");
    let Err(error) = dropping(None, "m", false) else { panic!("there is no such column") };
    assert!(error.to_string().contains("`m`"), "{error}");
}

#[test]
fn what_spark_accepts_is_accepted() {
    for (mode, sql) in [
        (Append, "SELECT upper(word) AS w FROM events WHERE n > 1"),
        (Update, "SELECT word FROM events"),
        (Append, "SELECT word FROM events LIMIT 3"),
        (Append, "SELECT window.start AS s, count(*) AS c FROM events GROUP BY window(ts, '10 minutes', '5 minutes')"),
        (Append, "SELECT ts, count(*) AS c FROM events GROUP BY ts"),
        (Append, "SELECT DISTINCT ts, word FROM events"),
        (Complete, "SELECT word, count(*) AS c FROM plain GROUP BY word ORDER BY c DESC LIMIT 3"),
        (Update, "SELECT word, n, count(*) AS c FROM plain GROUP BY ROLLUP (word, n)"),
        (Append, "SELECT e.word, l.lim FROM events e LEFT JOIN limits l ON e.word = l.word"),
        (Append, "SELECT word FROM events WHERE n > (SELECT max(lim) FROM limits)"),
        (Append, "SELECT word FROM events UNION ALL SELECT word FROM plain"),
    ] {
        if let Err(error) = planned(sql, mode) {
            panic!("{sql} in mode {mode}: {error}");
        }
    }
}

#[test]
fn mistakes_in_the_text_are_told_with_what_is_wrong() {
    for (part, sql) in [
        ("there is no SELECT", ""),
        ("it must be one SELECT", "SELECT 1; SELECT 2"),
        ("it must be a SELECT", "DROP TABLE events"),
        ("wrod", "SELECT wrod FROM events"),
        ("elsewhere", "SELECT 1 AS x FROM elsewhere"),
        ("months and years have no fixed length", "SELECT count(*) AS c FROM events GROUP BY window(ts, '1 month')"),
        (
            "must not be greater than its size",
            "SELECT count(*) AS c FROM events GROUP BY window(ts, '1 minute', '2 minutes')",
        ),
        ("recursion", &format!("SELECT {}1{} AS x FROM events", "(".repeat(500), ")".repeat(500))),
    ] {
        let Err(error) = planned(sql, Update) else { panic!("accepted: {sql:.80}") };
        assert!(error.to_string().contains(part), "{sql:.80}: {error}");
    }
}

#[test]
fn names_are_found_in_any_case_and_keep_their_spelling() {
    let plan = planned("select UPPER(Word) AS Loud, N from Events where N > 1", Append).unwrap();
    let names: Vec<_> = plan.schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["Loud", "n"]);
}

#[test]
fn only_the_columns_that_are_used_are_asked_for() {
    let plan = planned("SELECT n + 1 AS m FROM plain WHERE n > 1", Append).unwrap();
    assert_eq!(plan.slots.len(), 1);
    assert_eq!(plan.slots[0].projection, [2]);
}

fn uids(mut plan: StreamingPlan) -> Vec<String> {
    let mut uids = Vec::new();
    let visited: Result<(), std::convert::Infallible> = plan.pipeline.for_each_stateful(|operator| {
        uids.push(operator.uid().to_string());
        Ok(())
    });
    assert!(visited.is_ok());
    uids
}

#[test]
fn uids_come_from_names_and_not_from_places() {
    let counts = "SELECT word, count(*) AS c FROM plain GROUP BY word";
    assert_eq!(uids(planned(counts, Update).unwrap()), ["query-aggregate"]);
    let named = format!("WITH hot AS ({counts}) SELECT word, c FROM hot WHERE c > 3");
    assert_eq!(uids(planned(&named, Update).unwrap()), ["hot-aggregate"]);
    let moved = BTreeMap::from([("hot-aggregate".to_owned(), "query-aggregate".to_owned())]);
    assert_eq!(uids(renamed(&named, Update, moved).unwrap()), ["query-aggregate"]);
    let unknown = BTreeMap::from([("cold-aggregate".to_owned(), "x".to_owned())]);
    let Err(error) = renamed(&named, Update, unknown) else { panic!("an unknown uid was renamed") };
    assert!(error.to_string().contains("hot-aggregate"), "{error}");
}

#[test]
fn two_operators_that_nothing_tells_apart_are_refused_with_the_way_out() {
    let sql = "SELECT ts, count(*) AS c FROM events GROUP BY ts UNION ALL SELECT ts, count(*) FROM other GROUP BY ts";
    let Err(error) = planned(sql, Append) else { panic!("accepted") };
    assert!(matches!(error, PlanError::AmbiguousUid { .. }), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("WITH")));
}
