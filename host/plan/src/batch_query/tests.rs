use super::*;
use crate::{BeyondSpark, DropDuplicates, EventTime, PlanSettings, StreamInput, ddl::parse_ddl};
use arrow::array::{Int64Array, TimestampMicrosecondArray};
use arrow::datatypes::Schema;
use arrow::util::pretty::pretty_format_batches;
use millstream_common::{OutputMode, SqlSettings};
use std::collections::BTreeMap;

#[derive(Debug)]
struct Given(Vec<RecordBatch>);

impl BoundedInputs for Given {
    fn read(&self, stream: &str, projection: &[usize]) -> Result<BoundedRows, InputError> {
        if stream == "lost" {
            return Err("the disk is gone".into());
        }
        let rows: Vec<_> = self.0.iter().map(|batch| Ok(batch.project(projection)?)).collect();
        Ok(Box::new(rows.into_iter()))
    }
}

fn stream(name: &str) -> StreamInput {
    StreamInput {
        name: name.into(),
        schema: Arc::new(Schema::new(parse_ddl("at timestamp, k bigint, v bigint").unwrap())),
        event_time: Some(EventTime { column: "at".into(), delay_us: 0 }),
        drop_duplicates: None,
    }
}

fn input(sql: &str) -> QueryInput {
    QueryInput {
        streams: vec![stream("t"), stream("lost")],
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
    }
}

fn rows(of: &[(i64, i64, i64)]) -> RecordBatch {
    let seconds: TimestampMicrosecondArray = of.iter().map(|row| Some(row.0 * 1_000_000)).collect();
    let keys: Int64Array = of.iter().map(|row| Some(row.1)).collect();
    let values: Int64Array = of.iter().map(|row| Some(row.2)).collect();
    let columns: Vec<arrow::array::ArrayRef> =
        vec![Arc::new(seconds.with_timezone("UTC")), Arc::new(keys), Arc::new(values)];
    RecordBatch::try_new(Arc::clone(&stream("t").schema), columns).unwrap()
}

fn answer_to(input: &QueryInput) -> Result<String, BatchQueryError> {
    let given = Given(vec![rows(&[(1, 1, 10), (12, 2, 20)]), rows(&[(3, 1, 30), (14, 2, 20)])]);
    let plan = plan_batch_query(input, Arc::new(given)).unwrap_or_else(|error| panic!("{error}"));
    let rows = plan.execute(&|| false)?.unwrap();
    Ok(pretty_format_batches(&rows).unwrap().to_string())
}

fn answer(sql: &str) -> String {
    answer_to(&input(sql)).unwrap()
}

/// The cells of a printed table, without its frame.
fn cells(table: &str) -> Vec<String> {
    table.lines().filter(|line| line.starts_with('|')).skip(1).map(|line| line.replace([' ', '|'], "")).collect()
}

#[test]
fn the_watermark_holds_nothing_back_and_every_row_counts() {
    let sql = "SELECT sum(v) AS s FROM t GROUP BY window(at, '10 seconds') ORDER BY s";
    assert_eq!(cells(&answer(sql)), ["40", "40"]);
    assert_eq!(cells(&answer("SELECT v, k FROM t WHERE at > TIMESTAMP '1970-01-01 00:00:10'")), ["202", "202"]);
}

#[test]
fn what_may_not_stream_may_run_here() {
    assert_eq!(cells(&answer("SELECT k, v FROM t ORDER BY v DESC, at LIMIT 2 OFFSET 1")), ["220", "220"]);
    assert_eq!(cells(&answer("SELECT k, count(DISTINCT v) AS n FROM t GROUP BY k ORDER BY k")), ["12", "21"]);
    assert_eq!(cells(&answer("SELECT row_number() OVER (ORDER BY at) AS n FROM t WHERE k = 2")), ["1", "2"]);
    assert_eq!(cells(&answer("SELECT v FROM t WHERE v IN (SELECT max(v) FROM t)")), ["30"]);
}

#[test]
fn duplicates_leave_their_first_row() {
    let mut input = input("SELECT k, v FROM t ORDER BY k");
    input.streams[0].drop_duplicates = Some(DropDuplicates { columns: vec!["k".into()], within_watermark: false });
    assert_eq!(cells(&answer_to(&input).unwrap()), ["110", "220"]);
    input.streams[0].drop_duplicates = Some(DropDuplicates { columns: Vec::new(), within_watermark: true });
    let error = plan_batch_query(&input, Arc::new(Given(Vec::new()))).err().expect("it needs a watermark");
    assert!(error.to_string().contains("within its watermark"), "{error}");
}

#[test]
fn an_input_that_fails_and_an_expression_that_fails_say_so() {
    let error = answer_to(&input("SELECT count(*) FROM lost")).unwrap_err();
    assert!(matches!(&error, BatchQueryError::Input(inner) if inner.to_string() == "the disk is gone"), "{error:?}");
    let error = answer_to(&input("SELECT k / (v - v) AS n FROM t")).unwrap_err();
    assert!(matches!(error, BatchQueryError::Execution(_)), "{error:?}");
}

#[test]
fn a_stop_drops_what_was_found() {
    let plan = plan_batch_query(&input("SELECT k FROM t"), Arc::new(Given(vec![rows(&[(1, 1, 1)])]))).unwrap();
    assert_eq!(plan.execute(&|| true).unwrap(), None);
}

#[test]
fn an_aggregation_and_the_same_of_a_cast_are_two_columns() {
    let sql = "SELECT sum(v), sum(CAST(v AS STRING)) AS s, CAST(k AS STRING), k AS n FROM t GROUP BY CAST(k AS STRING), k \
               ORDER BY sum(CAST(v AS DECIMAL(10, 1))) DESC";
    let table = answer(sql);
    assert_eq!(cells(&table), ["4040.011", "4040.022"]);
    assert!(table.contains("| sum(v) | s    | k | n |"), "{table}");
}

#[test]
fn grouping_tells_which_columns_are_left_out() {
    let sql = "SELECT grouping(k), grouping_id(k, v % 20), grouping_id() AS all, count(*) FROM t GROUP BY ROLLUP(k, v % 20) \
               ORDER BY 2, 4";
    assert_eq!(cells(&answer(sql)), ["0002", "0002", "0112", "0112", "1334"]);
}

#[test]
fn grouping_sets_of_nothing_have_no_total_and_a_global_aggregate_has_one_row() {
    assert_eq!(cells(&answer("SELECT k, count(*) FROM t WHERE v > 99 GROUP BY CUBE(k)")), Vec::<String>::new());
    assert_eq!(cells(&answer("SELECT count(*) FROM t WHERE v > 99")), ["0"]);
}

#[test]
fn sessions_that_overlap_or_touch_are_one() {
    let sql =
        "SELECT k, session_window.end AS e, sum(v) AS s FROM t GROUP BY session_window(at, '2 seconds'), k ORDER BY k";
    // 1 and 3 touch; 12 and 14 touch.
    assert_eq!(cells(&answer(sql)), ["11970-01-01T00:00:05Z40", "21970-01-01T00:00:16Z40"]);
    let sql = "SELECT session_window.start AS b, k FROM t GROUP BY session_window(at, '1 second'), k ORDER BY b";
    assert_eq!(cells(&answer(sql)).len(), 4);
}

#[test]
fn streams_are_joined_as_tables_are() {
    let sql = "SELECT a.v AS x, b.v AS y FROM t a LEFT JOIN t b ON a.k = b.k AND b.at > a.at ORDER BY x, y";
    assert_eq!(cells(&answer(sql)), ["1030", "20", "2020", "30"]);
}
