//! The sink.

use crate::{SERVER, server};
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, ListArray, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::Int32Type;
use databases_tests::mariadb::{execute, rows};
use databases_tests::proxy::{Proxy, port_of, through};
use databases_tests::query::Story;
use millstream_checkpoint::faulty::Moment;
use millstream_common::{BatchId, Hint, ManualClock, Options, QueryId, describe_chain};
use millstream_runtime::OutputMode;
use millstream_sink::connectors::mysql::MysqlSinkFactory;
use millstream_sink::contract::{self, Subject};
use millstream_sink::{Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkSpec};
use std::sync::Arc;
use streaming_stories::World;
use uuid::Uuid;

const FORMAT: &str = "mysql";
const COUNTS: &str = "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k";

fn options(url: &str, table: &str) -> Options {
    Options::new().with("url", url).with("dbtable", table)
}

fn open(options: &Options, query: QueryId) -> Result<Box<dyn Sink>, SinkError> {
    let spec = SinkSpec { format: FORMAT.into(), options: options.clone() };
    let context = SinkContext { query, query_name: None, clock: Arc::new(ManualClock::at(0)) };
    MysqlSinkFactory::new().open(&spec, context)
}

fn write(sink: &mut dyn Sink, batch: u64, rows: &RecordBatch, mode: OutputMode) -> Result<u64, SinkError> {
    let batch = SinkBatch { id: BatchId(batch), schema: &rows.schema(), rows: std::slice::from_ref(rows), mode };
    sink.add_batch(&batch).map(|report| report.rows)
}

fn pairs(values: &[(&str, i64)]) -> RecordBatch {
    databases_tests::query::rows(values)
}

#[test]
fn the_sink_keeps_what_every_sink_promises() {
    let held = server();
    let url = held.database();
    let options = options(&url, "values");
    let mut written = || {
        let is_there = !rows(&url, "SHOW TABLES LIKE 'values'").is_empty();
        if is_there { rows(&url, "SELECT value FROM `values`") } else { vec![] }
    };
    contract::sink(&mut Subject {
        factory: Arc::new(MysqlSinkFactory::new()),
        spec: SinkSpec { format: FORMAT.into(), options },
        query: QueryId(Uuid::new_v4()),
        written: Some(&mut written),
        counts_once: true,
    });
}

#[test]
fn append_adds_and_update_writes_over_and_complete_replaces() {
    let held = server();
    let url = held.database();
    let append = Story::new("SELECT k, v FROM events WHERE v > 0", OutputMode::Append, FORMAT, &options(&url, "added"));
    append.add(&[("a", 1), ("b", 0)]);
    append.run().unwrap();
    append.add(&[("a", 1)]);
    append.run().unwrap();
    assert_eq!(rows(&url, "SELECT * FROM added ORDER BY 1"), ["a|1", "a|1"]);

    let update = options(&url, "counts").with("key", "k");
    let update = Story::new(COUNTS, OutputMode::Update, FORMAT, &update);
    for pairs in [&[("a", 1), ("b", 2)], &[("a", 10), ("c", 3)]] {
        update.add(pairs);
        update.run().unwrap();
    }
    assert_eq!(rows(&url, "SELECT * FROM counts ORDER BY 1"), ["a|2|11", "b|1|2", "c|1|3"]);

    execute(
        &url,
        &[
            "CREATE TABLE whole (k text, n bigint, total bigint, note varchar(9) DEFAULT 'new')",
            "INSERT INTO whole VALUES ('stray', 1, 1, '')",
        ],
    );
    let complete = Story::new(COUNTS, OutputMode::Complete, FORMAT, &options(&url, "whole"));
    complete.add(&[("a", 1)]);
    complete.run().unwrap();
    complete.add(&[("a", 1), ("b", 1)]);
    complete.run().unwrap();
    assert_eq!(rows(&url, "SELECT * FROM whole ORDER BY 1"), ["a|2|2|new", "b|1|1|new"]);
}

#[test]
fn every_type_comes_back_as_it_went() {
    let held = server();
    let url = held.database();
    let micros = [1_714_564_800_123_456, -1, 0];
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])), true),
        ("small", Arc::new(Int16Array::from(vec![Some(i16::MIN), Some(1), None])), true),
        ("whole", Arc::new(Int32Array::from(vec![Some(i32::MAX), Some(1), None])), true),
        ("large", Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(1), None])), true),
        ("single", Arc::new(Float32Array::from(vec![Some(0.1), Some(-1.5), None])), true),
        ("real", Arc::new(Float64Array::from(vec![Some(0.1), Some(-1e300), None])), true),
        (
            "money",
            {
                let digits = Decimal128Array::from(vec![
                    Some(99_999_999_999_999_999_999_999_999_999_999_999_999),
                    Some(-5),
                    None,
                ]);
                Arc::new(digits.with_precision_and_scale(38, 10).unwrap())
            },
            true,
        ),
        ("word", Arc::new(StringArray::from(vec![Some("a\tb\\N\n'\"ü"), Some(""), None])), true),
        ("bytes", Arc::new(BinaryArray::from(vec![Some(&[0_u8, 92, 255][..]), Some(b""), None])), true),
        ("day", Arc::new(Date32Array::from(vec![Some(-719_162), Some(19_844), None])), true),
        ("at", Arc::new(TimestampMicrosecondArray::from(micros.to_vec()).with_timezone("UTC")), true),
        ("wall", Arc::new(TimestampMicrosecondArray::from(micros.to_vec())), true),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([
                Some(vec![Some(1), None]),
                Some(vec![]),
                None,
            ])),
            true,
        ),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut sink = open(&options(&url, "all_types"), QueryId(Uuid::new_v4())).unwrap();
    write(sink.as_mut(), 0, &batch, OutputMode::Append).unwrap();
    let found = rows(
        &url,
        "SELECT flag, small, whole, large, single, `real`, money, word, lower(hex(bytes)), day, \
        at, wall, list FROM all_types ORDER BY whole DESC",
    );
    assert_eq!(
        found,
        [
            "1|-32768|2147483647|-9223372036854775808|0.1|0.1|9999999999999999999999999999.9999999999|a\tb\\N\n'\"ü|005cff|0001-01-01|2024-05-01 12:00:00.123456|2024-05-01 12:00:00.123456|[1,null]",
            "0|1|1|1|-1.5|-1e300|-0.0000000005|||2024-05-01|1969-12-31 23:59:59.999999|1969-12-31 23:59:59.999999|[]",
            "-|-|-|-|-|-|-|-|-|-|1970-01-01 00:00:00.000000|1970-01-01 00:00:00.000000|-",
        ]
    );
}

#[test]
fn the_last_row_of_a_key_counts_and_changes_take_rows_away() {
    let held = server();
    let url = held.database();
    let sql = "SELECT k, v, CASE WHEN v < 0 THEN 'delete' ELSE 'update' END AS op FROM events";
    let options = options(&url, "mirror").with("key", "k").with("changeColumn", "op");
    let story = Story::new(sql, OutputMode::Append, FORMAT, &options);
    story.add(&[("a", 1), ("a", 2), ("b", 1), ("c", 1), ("c", -1), ("d", -1), ("d", 5)]);
    story.run().unwrap();
    assert_eq!(rows(&url, "SELECT * FROM mirror ORDER BY k"), ["a|2", "b|1", "d|5"]);
    story.add(&[("b", -1), ("a", 3)]);
    story.run().unwrap();
    assert_eq!(rows(&url, "SELECT * FROM mirror ORDER BY k"), ["a|3", "d|5"]);
}

#[test]
fn what_does_not_fit_is_refused_with_the_way_out() {
    let held = server();
    let url = held.database();
    execute(
        &url,
        &[
            "CREATE TABLE narrow (k integer, v bigint)",
            "CREATE TABLE loose (k varchar(9), v bigint)",
            "CREATE VIEW seen AS SELECT k, v FROM loose",
            "CREATE TABLE unsafe (k text, v bigint) ENGINE = MyISAM",
        ],
    );
    let all = |table: &str| options(&url, table);
    for (options, sql, part) in [
        (all("narrow"), "SELECT k, v FROM events", "column `k` of type Utf8 does not fit the table's `k int(11)`"),
        (all("loose"), "SELECT k, v AS w FROM events", "the table has no column `w`; it has k, v"),
        (all("loose").with("key", "k"), "SELECT k, v FROM events", "no primary key or unique index"),
        (all("nowhere").with("createTable", "false"), "SELECT k, v FROM events", "there is no table `nowhere`"),
        (all("seen"), "SELECT k, v FROM events", "a view"),
        (all("unsafe"), "SELECT k, v FROM events", "MyISAM, which has no transactions"),
    ] {
        let story = Story::new(sql, OutputMode::Append, FORMAT, &options);
        story.add(&[("a", 1)]);
        let error = story.run().unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    let story = Story::new(COUNTS, OutputMode::Update, FORMAT, &options(&url, "counts"));
    let error = story.run().unwrap_err();
    assert!(error.contains("update"), "{error}");
}

#[test]
fn errors_of_the_server_say_what_to_do_and_keep_the_password() {
    let own = server();
    let url = own.database();
    execute(&url, &["CREATE TABLE keyed (k varchar(9) PRIMARY KEY, v bigint CHECK (v < 100))"]);
    let mut sink = open(&options(&url, "keyed"), QueryId(Uuid::new_v4())).unwrap();
    write(sink.as_mut(), 0, &pairs(&[("a", 1)]), OutputMode::Append).unwrap();
    let error = write(sink.as_mut(), 1, &pairs(&[("b", 1), ("a", 2)]), OutputMode::Append).unwrap_err();
    let text = describe_chain(&error);
    assert!(text.contains("Duplicate entry 'a' for key"), "{text}");
    assert_eq!(error.fault(), millstream_common::Fault::Data);
    let error = write(sink.as_mut(), 1, &pairs(&[("b", 100)]), OutputMode::Append).unwrap_err();
    assert!(describe_chain(&error).contains("CONSTRAINT"), "{error:?}");
    assert_eq!(rows(&url, "SELECT k FROM keyed"), ["a"]);

    if own.is_own() {
        let guarded = options(&url, "keyed").with("password", "wrong-secret");
        let error = open(&guarded, QueryId(Uuid::new_v4())).map(drop).unwrap_err();
        let text = format!("{} {:?}", describe_chain(&error), error);
        assert!(text.contains("does not let user `mill` in") && !text.contains("wrong-secret"), "{text}");
        assert!(error.hint().unwrap().contains("passwordEnv"));
    }
    let nobody = format!("mysql://mill@127.0.0.1:{}/mill", Proxy::start(1).port());
    let error =
        open(&options(&nobody, "t").with("retryTimeout", "0 s"), QueryId(Uuid::new_v4())).map(drop).unwrap_err();
    assert!(describe_chain(&error).contains("cannot reach"), "{error:?}");
    let encrypted = url.replace("sslmode=disable", "sslmode=require");
    if own.is_own() {
        let error =
            open(&options(&encrypted, "t").with("retryTimeout", "0 s"), QueryId(Uuid::new_v4())).map(drop).unwrap_err();
        assert!(describe_chain(&error).contains("encrypt"), "{error:?}");
    }
}

#[test]
fn a_commit_whose_answer_is_lost_counts_once() {
    let held = server();
    let url = held.database();
    let proxy = Proxy::start(port_of(&url));
    let mut sink = open(&options(&through(&url, &proxy), "t"), QueryId(Uuid::new_v4())).unwrap();
    write(sink.as_mut(), 0, &pairs(&[("a", 0)]), OutputMode::Append).unwrap();
    proxy.cut_after_commit();
    assert_eq!(write(sink.as_mut(), 1, &pairs(&[("b", 1)]), OutputMode::Append).unwrap(), 1);
    assert!(!proxy.is_armed());
    proxy.cut_before_commit();
    assert_eq!(write(sink.as_mut(), 2, &pairs(&[("c", 2)]), OutputMode::Append).unwrap(), 1);
    assert!(!proxy.is_armed());
    assert_eq!(rows(&url, "SELECT * FROM t ORDER BY v"), ["a|0", "b|1", "c|2"]);
    assert_eq!(rows(&url, "SELECT target, fence, batch_id FROM millstream_batches"), ["t|1|2"]);
}

#[test]
fn a_run_that_another_has_replaced_writes_nothing_more() {
    let held = server();
    let url = held.database();
    let query = QueryId(Uuid::new_v4());
    let mut zombie = open(&options(&url, "t"), query).unwrap();
    write(zombie.as_mut(), 0, &pairs(&[("a", 0)]), OutputMode::Append).unwrap();
    let mut living = open(&options(&url, "t"), query).unwrap();
    let error = write(zombie.as_mut(), 1, &pairs(&[("zombie", 1)]), OutputMode::Append).unwrap_err();
    assert!(matches!(error, SinkError::Fenced { .. }), "{error:?}");
    write(living.as_mut(), 1, &pairs(&[("b", 1)]), OutputMode::Append).unwrap();
    assert!(write(zombie.as_mut(), 2, &pairs(&[("zombie", 2)]), OutputMode::Append).is_err());
    assert_eq!(rows(&url, "SELECT k FROM t ORDER BY k"), ["a", "b"]);
}

#[test]
fn a_crash_at_any_durable_write_leaves_each_row_once() {
    let server = server();
    let units: [&[(&str, i64)]; 4] = [&[("a", 1), ("b", 2)], &[("a", 3)], &[], &[("c", 4), ("a", 5)]];
    let play = |crash: Option<(usize, Moment)>| {
        let url = server.database();
        let world = World::new().unwrap();
        if let Some((at, moment)) = crash {
            world.crash_at(at, moment);
        }
        let upserts = options(&url, "t").with("key", "k");
        let story = Story::in_world(world, COUNTS, OutputMode::Update, FORMAT, &upserts);
        for unit in units {
            story.add(unit);
            while story.run().is_err() {
                assert!(story.world.crashed(), "it failed without a crash");
                story.world.revive();
            }
        }
        let found = rows(&url, "SELECT * FROM t ORDER BY k");
        (found, story.world.history().len())
    };
    let (whole, writes) = play(None);
    assert_eq!(whole, ["a|3|9", "b|1|2", "c|1|4"]);
    // Writes of snapshots and leases vary a little; every third moment is enough for one run of the tests.
    for at in (1..=writes).step_by(3) {
        for moment in [Moment::Before, Moment::After] {
            assert_eq!(play(Some((at, moment))).0, whole, "a crash {moment:?} write {at} of {writes}");
        }
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_loses_and_doubles_nothing() {
    let server = SERVER.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !server.is_own() {
        return;
    }
    let url = server.database();
    let story = Story::new("SELECT k, v FROM events", OutputMode::Append, FORMAT, &options(&url, "t"));
    story.add(&[("a", 0)]);
    let mut run = story.open().unwrap();
    run.run_next().unwrap().unwrap();
    for number in 1..4 {
        story.add(&[("a", number)]);
        server.kill();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(300));
                server.restart();
            });
            run.run_next().unwrap().unwrap();
        });
    }
    run.close();
    assert_eq!(rows(&url, "SELECT v FROM t ORDER BY v"), ["0", "1", "2", "3"]);
}
