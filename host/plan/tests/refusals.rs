//! What may not stream is refused before anything runs, by the rule that it breaks and with a way out; what Spark accepts
//! against common belief is accepted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_common::{Hint, OutputMode, SqlSettings};
use millstream_plan::{
    BeyondSpark, DropDuplicates, EventTime, PlanError, PlanSettings, QueryInput, StaticTable, StreamInput,
    StreamingPlan, plan,
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
    StaticTable { name: "limits".into(), schema, rows: vec![rows], live: None }
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
        settings: PlanSettings { sql: SqlSettings::default(), partitions: 2, uids, beyond: BeyondSpark::default() },
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
        ("offset", Complete, "SELECT word, count(*) AS c FROM events GROUP BY word ORDER BY c LIMIT 3 OFFSET 1"),
        ("sort-by", Append, "SELECT word FROM events SORT BY word"),
        ("sort-by", Append, "SELECT word FROM (SELECT word FROM events CLUSTER BY word)"),
        ("sample", Append, "SELECT word FROM events TABLESAMPLE (10 PERCENT)"),
        ("sample", Append, "SELECT word FROM (SELECT word FROM events) TABLESAMPLE (5 ROWS)"),
        ("pivot", Update, "SELECT * FROM events PIVOT (count(*) FOR word IN ('ant', 'bee'))"),
        ("monotonic-id", Append, "SELECT Monotonically_Increasing_Id() AS id, word FROM events"),
        ("intersect", Update, "SELECT word FROM events INTERSECT SELECT word FROM other"),
        ("intersect", Append, "SELECT word FROM events INTERSECT SELECT word FROM limits"),
        ("intersect", Append, "SELECT word FROM limits INTERSECT SELECT word FROM events"),
        ("except", Update, "SELECT word FROM events EXCEPT SELECT word FROM other"),
        ("except", Update, "SELECT word FROM limits MINUS SELECT word FROM events"),
        ("set-operation-all", Update, "SELECT word FROM events EXCEPT ALL SELECT word FROM limits"),
        (
            "append-without-watermark",
            Append,
            "SELECT count(*) AS c FROM events GROUP BY window(CAST(CAST(ts AS DATE) AS TIMESTAMP), '1 minute')",
        ),
        (
            "append-without-watermark",
            Append,
            "SELECT word, count(*) AS c FROM events GROUP BY session_window(CAST(ts AS DATE), '1 minute'), word",
        ),
        (
            "distinct-aggregate",
            Append,
            "SELECT collect_list(DISTINCT word) AS l FROM events GROUP BY window(ts, '1 minute')",
        ),
        ("over", Append, "SELECT word FROM events QUALIFY row_number() OVER (PARTITION BY word ORDER BY n) = 1"),
        ("over", Append, "SELECT word, row_number() OVER (PARTITION BY word ORDER BY n) AS r FROM events"),
        ("union-static", Append, "SELECT word FROM events UNION ALL SELECT word FROM limits"),
        ("anti-join", Append, "SELECT e.word FROM events e LEFT ANTI JOIN other o ON e.word = o.word AND o.ts > e.ts"),
        ("join-without-equality", Append, "SELECT e.word FROM events e JOIN other o ON e.n < o.n"),
        ("join-without-equality", Append, "SELECT e.word FROM events e CROSS JOIN other o"),
        ("join-without-time-bound", Append, "SELECT e.word FROM plain e LEFT JOIN plain o ON e.word = o.word"),
        ("join-without-time-bound", Append, "SELECT e.word FROM events e LEFT JOIN other o ON e.word = o.word"),
        (
            "join-without-time-bound",
            Append,
            "SELECT e.word FROM events e LEFT JOIN other o ON e.word = o.word AND o.ts > e.ts",
        ),
        (
            "join-without-time-bound",
            Append,
            "SELECT e.word FROM events e LEFT JOIN plain o ON e.word = o.word AND o.ts < e.ts",
        ),
        (
            "join-without-time-bound",
            Append,
            "SELECT o.word FROM events e RIGHT JOIN other o ON e.word = o.word AND o.ts < e.ts",
        ),
        (
            "join-without-time-bound",
            Append,
            "SELECT o.word FROM plain e RIGHT JOIN other o ON e.word = o.word AND o.ts > e.ts",
        ),
        ("join-without-time-bound", Append, "SELECT o.word FROM events e FULL JOIN other o ON e.word = o.word"),
        ("join-without-time-bound", Append, "SELECT e.word FROM events e LEFT SEMI JOIN other o ON e.word = o.word"),
        (
            "using-outer",
            Append,
            "SELECT 1 FROM events RIGHT JOIN other USING (word, ts) JOIN limits ON limits.word = other.word",
        ),
        ("natural-outer", Append, "SELECT * FROM events NATURAL LEFT JOIN limits"),
        ("join-mode", Update, "SELECT e.word FROM events e LEFT JOIN other o ON e.word = o.word AND o.ts < e.ts"),
        ("join-mode", Complete, "SELECT e.word FROM events e LEFT SEMI JOIN other o ON e.ts = o.ts"),
        (
            "join-mode",
            Complete,
            "SELECT e.word, count(*) AS c FROM events e JOIN other o ON e.ts = o.ts GROUP BY e.word",
        ),
        (
            "chained-aggregations",
            Update,
            "SELECT e.word FROM (SELECT word, count(*) AS c FROM events GROUP BY word) e JOIN other o ON e.word = o.word",
        ),
        ("several-event-times", Update, "SELECT ts, count(*) AS c FROM events GROUP BY ts, window(ts, '1 minute')"),
        (
            "several-event-times",
            Append,
            "SELECT e.ts, o.word FROM (SELECT window(ts, '1 minute') AS w, ts, word FROM events) e JOIN (SELECT window(ts, '1 minute') AS w, word FROM other) o ON e.w = o.w",
        ),
        ("outer-static", Append, "SELECT l.lim FROM limits l LEFT JOIN events e ON e.word = l.word"),
        ("subquery", Append, "SELECT word FROM events WHERE n IN (SELECT n FROM other)"),
        ("subquery", Append, "SELECT word FROM events WHERE n > (SELECT max(n) FROM other)"),
        (
            "two-windows",
            Update,
            "SELECT window(ts, '1 minute'), window(ts, '2 minutes'), count(*) AS c FROM events GROUP BY window(ts, '1 minute'), window(ts, '2 minutes')",
        ),
        (
            "session-update",
            Update,
            "SELECT word, count(*) AS c FROM events GROUP BY session_window(ts, '1 minute'), word",
        ),
        ("session-without-key", Append, "SELECT count(*) AS c FROM events GROUP BY session_window(ts, '1 minute')"),
        (
            "session-without-key",
            Append,
            "SELECT count(*) AS c FROM events GROUP BY session_window(ts, '1 minute'), 'x'",
        ),
        ("session-without-key", Complete, "SELECT DISTINCT session_window(ts, '1 minute') AS w FROM events"),
        (
            "append-without-watermark",
            Append,
            "SELECT word, count(*) AS c FROM plain GROUP BY session_window(ts, '1 minute'), word",
        ),
        (
            "append-without-watermark",
            Append,
            "SELECT ts, count(*) AS c FROM events GROUP BY session_window(timestamp_seconds(n), '1 minute'), ts",
        ),
        (
            "chained-aggregations",
            Update,
            "SELECT DISTINCT c FROM (SELECT word, count(*) AS c FROM events GROUP BY word)",
        ),
        (
            "session-grouping-sets",
            Complete,
            "SELECT word, count(*) AS c FROM events GROUP BY ROLLUP (session_window(ts, '1 minute'), word)",
        ),
        (
            "two-windows",
            Append,
            "SELECT word, count(*) AS c FROM events GROUP BY window(ts, '1 minute'), session_window(ts, '1 minute'), word",
        ),
        (
            "two-windows",
            Append,
            "SELECT session_window(ts, '1 minute').start AS a, session_window(ts, '2 minutes').start AS b, word FROM events",
        ),
        (
            "two-windows",
            Append,
            "WITH one AS (SELECT session_window(ts, '1 minute') AS a, ts, word FROM events), two AS (SELECT session_window(ts, '2 minutes') AS b, a, word FROM one) SELECT word, count(*) AS c FROM two GROUP BY a, b, word",
        ),
        (
            "chained-aggregations",
            Complete,
            "WITH inner_counts AS (SELECT word, count(*) AS c FROM events GROUP BY session_window(ts, '1 minute'), word) SELECT c, count(*) AS k FROM inner_counts GROUP BY c",
        ),
        (
            "window-time-not-grouped",
            Append,
            "SELECT window_time(window) AS t, count(*) AS c FROM events GROUP BY window(ts, '1 minute')",
        ),
        (
            "window-time-not-grouped",
            Append,
            "SELECT word, date_trunc('HOUR', window_time(session_window)) AS t FROM events GROUP BY session_window(ts, '1 minute'), word",
        ),
        (
            "window-time-not-grouped",
            Update,
            "SELECT count(*) AS c FROM events GROUP BY window(ts, '1 minute') HAVING window_time(window) > '2024-01-01'",
        ),
        (
            "window-time-not-grouped",
            Append,
            "WITH windows AS (SELECT window(ts, '1 minute') AS w FROM events) SELECT window_time(w) AS t, count(*) AS c FROM windows GROUP BY w",
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
    let of = |delay_us, column: &str, within_watermark, sql: &str| {
        let mut events = stream("events", delay_us);
        events.drop_duplicates = Some(DropDuplicates { columns: vec![column.into()], within_watermark });
        plan(&QueryInput {
            streams: vec![events],
            tables: Vec::new(),
            plugins: Vec::new(),
            query: sql.into(),
            mode: Append,
            settings: PlanSettings {
                sql: SqlSettings::default(),
                partitions: 2,
                uids: BTreeMap::new(),
                beyond: BeyondSpark::default(),
            },
        })
    };
    let dropping = |delay_us, column, within| of(delay_us, column, within, "SELECT n FROM events WHERE word = 'ant'");
    let plan = dropping(Some(0), "n", true).unwrap();
    assert_eq!(uids(plan), ["events-dedup"]);
    let twice = of(Some(0), "n", true, "SELECT a.n FROM events a JOIN events b ON a.word = b.word").unwrap();
    assert_eq!(uids(twice), ["query-join", "events-dedup", "events-2-dedup"]);
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
        (Append, "SELECT e.*, l.lim FROM (events e JOIN limits l ON e.word = l.word)"),
        (Append, "SELECT window.start AS s, count(*) AS c FROM events GROUP BY window(ts, '10 minutes', '5 minutes')"),
        (Append, "SELECT ts, count(*) AS c FROM events GROUP BY ts"),
        (
            Append,
            "SELECT word, session_window.start AS s, SESSION_WINDOW.end AS e, count(*) AS c FROM events GROUP BY session_window(ts, '5 minutes'), word HAVING session_window.start > '2024-01-01'",
        ),
        (
            Complete,
            "SELECT session_window(ts, '5 minutes') AS w, word, count(*) AS c FROM plain GROUP BY w, word ORDER BY session_window(ts, '5 minutes').end LIMIT 3",
        ),
        (Append, "SELECT word, count(*) AS c FROM events GROUP BY session_window(ts, INTERVAL 5 MINUTES), word"),
        (
            Append,
            "SELECT word, count(*) AS c FROM events GROUP BY session_window(ts, CASE WHEN n > 1 THEN INTERVAL '1' MINUTE ELSE INTERVAL '2' HOUR END), word",
        ),
        (Append, "SELECT word, count(*) AS c FROM events GROUP BY session_window(ts, concat(n, ' minutes')), word"),
        (Append, "SELECT word, count(*) AS c FROM events GROUP BY session_window(ts, '-1 minutes'), word"),
        (Append, "SELECT word, count(*) AS c FROM events GROUP BY session_window(ts, CAST(NULL AS STRING)), word"),
        (Append, "SELECT session_window(ts, '5 minutes') AS w, word FROM events"),
        (Append, "SELECT DISTINCT session_window(ts, '5 minutes') AS w, word FROM events"),
        (
            Append,
            "WITH raw AS (SELECT ts AS at, word FROM events UNION ALL SELECT ts, word FROM other), ranges AS (SELECT session_window(at, '5 minutes') AS r, word AS k FROM raw) SELECT r.start AS s, k, count(*) AS c FROM ranges GROUP BY r, k",
        ),
        (
            Append,
            "SELECT session_window.end AS e, word, sum(c) AS c FROM (SELECT window AS w, word, count(*) AS c FROM events GROUP BY window(ts, '1 minute'), word) GROUP BY session_window(w, '5 minutes'), word",
        ),
        (
            Append,
            "SELECT window_time(window) AS t, min(window_time(window)) AS m FROM (SELECT window(ts, '1 minute') AS window FROM events) GROUP BY window_time(window)",
        ),
        (
            Update,
            "SELECT window, count(*) AS c FROM events GROUP BY window(ts, '1 minute') HAVING window_time(window) > '2024-01-01'",
        ),
        (
            Append,
            "SELECT window_time(w) AS t, c FROM (SELECT window AS w, count(*) AS c FROM events GROUP BY window(ts, '1 minute'))",
        ),
        (Append, "SELECT DISTINCT ts, word FROM events"),
        (Complete, "SELECT word, count(*) AS c FROM plain GROUP BY word ORDER BY c DESC LIMIT 3"),
        (Update, "SELECT word, n, count(*) AS c FROM plain GROUP BY ROLLUP (word, n)"),
        (Update, "SELECT word, n, grouping(n) AS g, count(*) AS c FROM plain GROUP BY CUBE (word, n)"),
        (Append, "SELECT word, count(*) AS c FROM events GROUP BY ROLLUP (window(ts, '1 minute'), word)"),
        (Update, "SELECT word FROM events EXCEPT SELECT word FROM limits"),
        (Append, "SELECT word FROM events DISTRIBUTE BY word"),
        (
            Update,
            "WITH one AS (SELECT word, count(*) AS c FROM events GROUP BY word), two AS (SELECT word, count(*) AS c FROM other GROUP BY word) SELECT * FROM one UNION ALL SELECT * FROM two",
        ),
        (
            Update,
            "WITH most AS (SELECT word, max(lim) AS m FROM limits GROUP BY word) SELECT m.m, count(*) AS c FROM events e JOIN most m ON e.word = m.word GROUP BY m.m",
        ),
        (Append, "SELECT e.word, l.lim FROM events e LEFT JOIN limits l ON e.word = l.word"),
        (Append, "SELECT * FROM events JOIN (SELECT word, lim FROM limits) USING (word)"),
        (Append, "SELECT * FROM events NATURAL JOIN (SELECT word, lim FROM limits)"),
        (Append, "SELECT word FROM events WHERE n > (SELECT max(lim) FROM limits)"),
        (Append, "SELECT word FROM events UNION ALL SELECT word FROM plain"),
        (Append, "SELECT e.word FROM plain e JOIN plain o ON e.word = o.word"),
        (Update, "SELECT e.word FROM plain e JOIN plain o ON e.word = o.word"),
        (Update, "SELECT e.word, count(*) AS c FROM plain e JOIN plain o ON e.word = o.word GROUP BY e.word"),
        (Append, "SELECT e.word FROM plain e LEFT JOIN other o ON e.word = o.word AND o.ts < e.ts"),
        (Append, "SELECT o.word FROM events e RIGHT JOIN plain o ON e.word = o.word AND o.ts > e.ts"),
        (Append, "SELECT o.word FROM events e FULL JOIN other o ON e.word = o.word AND o.ts > e.ts"),
        (Append, "SELECT e.word FROM events e LEFT JOIN plain o ON e.ts = o.ts"),
        (
            Append,
            "SELECT e.word FROM events e LEFT SEMI JOIN other o ON e.word = o.word AND o.ts <= e.ts + INTERVAL 1 HOUR",
        ),
        (Update, "SELECT e.word FROM events e LEFT SEMI JOIN other o ON e.ts = o.ts"),
        (Update, "SELECT count(*) AS c FROM events GROUP BY window(ts, 600000000)"),
        (Update, "SELECT count(*) AS c FROM events GROUP BY window(to_date(ts), '1 day')"),
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
        ("windows are of a TIMESTAMP", "SELECT count(*) AS c FROM events GROUP BY window(n, '1 minute')"),
        ("`5 parsecs` is not a duration", "SELECT n FROM events GROUP BY session_window(ts, '5 parsecs'), n"),
        ("must be an interval or a string", "SELECT n FROM events GROUP BY session_window(ts, n), n"),
        ("takes a time and a gap", "SELECT n FROM events GROUP BY session_window(ts), n"),
        ("recursion", &format!("SELECT {}1{} AS x FROM events", "(".repeat(500), ")".repeat(500))),
    ] {
        let Err(error) = planned(sql, Update) else { panic!("accepted: {sql:.80}") };
        assert!(error.to_string().contains(part), "{sql:.80}: {error}");
    }
}

#[test]
fn names_are_found_in_any_case_and_columns_are_called_as_spark_calls_them() {
    let names = |sql| {
        let plan = planned(sql, Update).unwrap();
        plan.schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("select UPPER(Word) AS Loud, N from Events where N > 1"), ["Loud", "N"]);
    let unnamed = "select Window.start, Count(*), SUM(N + 1) from Events group by window(ts, '1 minute')";
    assert_eq!(names(unnamed), ["start", "count(1)", "sum((N + 1))"]);
    assert_eq!(names("select `count(1)` from (select count(*) from events)"), ["count(1)"]);
}

#[test]
fn filters_on_a_session_stay_above_it_and_those_on_other_keys_go_below() {
    let sessions = "SELECT session_window AS s, word, count(*) AS c, max(n) AS m FROM events GROUP BY session_window(ts, '1 minute'), word";
    let sql = format!(
        "SELECT s.start AS start, word, c FROM ({sessions}) WHERE s.end > s.start + INTERVAL 2 MINUTES AND word > 'b' AND c > 1"
    );
    let plan = planned(&sql, Append).unwrap().pipeline.describe();
    let lines: Vec<&str> = plan.lines().collect();
    let sessions = lines.iter().position(|line| line.contains("Sessions query-session")).unwrap();
    let filters = |lines: &[&str], about: &str| {
        lines.iter().filter(|line| line.contains("Filter") && line.contains(about)).count()
    };
    assert_eq!(filters(&lines[..sessions], "session_window"), 1, "{plan}");
    assert_eq!(filters(&lines[sessions..], "session_window"), 0, "{plan}");
    assert_eq!(filters(&lines[sessions..], "word"), 1, "{plan}");
    assert!(!lines[sessions].contains("max"), "what nobody reads is not aggregated: {plan}");
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
    let sessions =
        "WITH visits AS (SELECT word FROM events GROUP BY session_window(ts, '1 minute'), word) SELECT * FROM visits";
    assert_eq!(uids(planned(sessions, Append).unwrap()), ["visits-session"]);
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
