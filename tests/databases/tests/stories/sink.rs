//! The sink: what it writes, and that it writes it once.

use crate::{server, server_to_kill, stories};
use arrow::array::RecordBatch;
use databases_tests::proxy::{Proxy, port_of, through};
use databases_tests::query::{Story, rows as pairs};
use databases_tests::{Database, Product, execute, has_table, rows};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{BatchId, Fault, Hint, ManualClock, Options, QueryId, StopSignal, describe_chain};
use millstream_runtime::OutputMode;
use millstream_sink::contract::{self, Subject};
use millstream_sink::{Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkRegistry, SinkSpec};
use std::sync::Arc;
use streaming_stories::World;
use uuid::Uuid;

const COUNTS: &str = "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k";

stories! {
    the_sink_keeps_what_every_sink_promises
    append_adds_and_update_writes_over_and_complete_replaces
    the_last_row_of_a_key_counts_and_changes_take_rows_away
    errors_of_the_server_say_what_to_do_and_keep_the_password
    a_commit_whose_answer_is_lost_counts_once
    a_run_that_another_has_replaced_writes_nothing_more
    queries_that_begin_at_once_do_not_get_in_each_other_s_way
    a_crash_at_any_durable_write_leaves_each_row_once
    a_server_that_is_killed_in_the_middle_loses_and_doubles_nothing
}

pub(crate) fn options(url: &str, table: &str) -> Options {
    Options::new().with("url", url).with("dbtable", table)
}

pub(crate) fn spec(server: &Database, options: &Options) -> SinkSpec {
    SinkSpec { format: server.format().into(), options: options.clone() }
}

pub(crate) fn factory(spec: &SinkSpec) -> Arc<dyn SinkFactory> {
    Arc::clone(SinkRegistry::with_builtins().factory(spec).unwrap())
}

pub(crate) fn open(server: &Database, options: &Options, query: QueryId) -> Result<Box<dyn Sink>, SinkError> {
    let context = SinkContext { query, query_name: None, clock: Arc::new(ManualClock::at(0)), stop: StopSignal::new() };
    let spec = spec(server, options);
    factory(&spec).open(&spec, context)
}

pub(crate) fn query() -> QueryId {
    QueryId(Uuid::new_v4())
}

pub(crate) fn write(sink: &mut dyn Sink, batch: u64, rows: &RecordBatch, mode: OutputMode) -> Result<u64, SinkError> {
    let batch = SinkBatch { id: BatchId(batch), schema: &rows.schema(), rows: std::slice::from_ref(rows), mode };
    sink.add_batch(&batch).map(|report| report.rows)
}

fn the_sink_keeps_what_every_sink_promises(product: Product) {
    let server = server(product);
    let url = server.database();
    let spec = spec(&server, &options(&url, "written"));
    let mut written = || if has_table(&url, "written") { rows(&url, "SELECT value FROM written") } else { vec![] };
    contract::sink(&mut Subject {
        factory: factory(&spec),
        spec,
        query: query(),
        written: Some(&mut written),
        counts_once: true,
    });
}

fn append_adds_and_update_writes_over_and_complete_replaces(product: Product) {
    let server = server(product);
    let (url, format) = (server.database(), server.format());
    let append = Story::new("SELECT k, v FROM events WHERE v > 0", OutputMode::Append, format, &options(&url, "added"));
    append.add(&[("a", 1), ("b", 0)]);
    append.run().unwrap();
    append.add(&[("a", 1)]);
    append.run().unwrap();
    assert_eq!(rows(&url, "SELECT * FROM added ORDER BY 1"), ["a|1", "a|1"]);

    let update = options(&url, "counts").with("key", "k");
    let update = Story::new(COUNTS, OutputMode::Update, format, &update);
    for pairs in [&[("a", 1), ("b", 2)], &[("a", 10), ("c", 3)]] {
        update.add(pairs);
        update.run().unwrap();
    }
    assert_eq!(rows(&url, "SELECT * FROM counts ORDER BY 1"), ["a|2|11", "b|1|2", "c|1|3"]);

    execute(
        &url,
        &[
            "CREATE TABLE whole (k varchar(9), n bigint, total bigint, note varchar(9) DEFAULT 'new')",
            "INSERT INTO whole VALUES ('stray', 1, 1, '')",
        ],
    );
    let complete = Story::new(COUNTS, OutputMode::Complete, format, &options(&url, "whole"));
    complete.add(&[("a", 1)]);
    complete.run().unwrap();
    complete.add(&[("a", 1), ("b", 1)]);
    complete.run().unwrap();
    assert_eq!(rows(&url, "SELECT * FROM whole ORDER BY 1"), ["a|2|2|new", "b|1|1|new"]);
}

fn the_last_row_of_a_key_counts_and_changes_take_rows_away(product: Product) {
    let server = server(product);
    let url = server.database();
    let sql = "SELECT k, v, CASE WHEN v < 0 THEN 'delete' ELSE 'update' END AS op FROM events";
    let mirror = options(&url, "mirror").with("key", "k").with("changeColumn", "op");
    let story = Story::new(sql, OutputMode::Append, server.format(), &mirror);
    story.add(&[("a", 1), ("a", 2), ("b", 1), ("c", 1), ("c", -1), ("d", -1), ("d", 5)]);
    story.run().unwrap();
    assert_eq!(rows(&url, "SELECT * FROM mirror ORDER BY k"), ["a|2", "b|1", "d|5"]);
    story.add(&[("b", -1), ("a", 3)]);
    story.run().unwrap();
    assert_eq!(rows(&url, "SELECT * FROM mirror ORDER BY k"), ["a|3", "d|5"]);
}

fn errors_of_the_server_say_what_to_do_and_keep_the_password(product: Product) {
    let server = server(product);
    let url = server.database();
    let (twice, checked, stranger) = match product {
        Product::Postgres => ("Key (k)=(a) already exists", "check constraint", "guarded"),
        Product::Mysql => ("Duplicate entry 'a' for key", "CONSTRAINT", "mill"),
    };
    execute(&url, &["CREATE TABLE keyed (k varchar(9) PRIMARY KEY, v bigint CHECK (v < 100))"]);
    let mut sink = open(&server, &options(&url, "keyed"), query()).unwrap();
    write(sink.as_mut(), 0, &pairs(&[("a", 1)]), OutputMode::Append).unwrap();
    let error = write(sink.as_mut(), 1, &pairs(&[("b", 1), ("a", 2)]), OutputMode::Append).unwrap_err();
    assert!(describe_chain(&error).contains(twice), "{}", describe_chain(&error));
    assert_eq!(error.fault(), Fault::Data);
    let error = write(sink.as_mut(), 1, &pairs(&[("b", 100)]), OutputMode::Append).unwrap_err();
    assert!(describe_chain(&error).contains(checked), "{error:?}");
    assert_eq!(rows(&url, "SELECT k FROM keyed"), ["a"]);

    let at_once =
        |options: Options| open(&server, &options.with("retryTimeout", "0 s"), query()).map(drop).unwrap_err();
    if server.is_own() {
        if product == Product::Postgres {
            let role =
                "DO $$ BEGIN CREATE ROLE guarded LOGIN PASSWORD 'correct'; EXCEPTION WHEN duplicate_object THEN END $$";
            execute(&url, &[role]);
        }
        let error = at_once(options(&url, "keyed").with("user", stranger).with("password", "wrong-secret"));
        let text = format!("{} {:?}", describe_chain(&error), error);
        assert!(
            text.contains(&format!("does not let user `{stranger}` in")) && !text.contains("wrong-secret"),
            "{text}"
        );
        assert!(error.hint().unwrap().contains("passwordEnv"));
    }
    let error = at_once(options(&through(&url, &Proxy::start(1)), "t"));
    assert!(describe_chain(&error).contains("cannot reach"), "{error:?}");
    if server.is_own() && product == Product::Mysql {
        // This server has no certificate.
        let error = at_once(options(&url.replace("sslmode=disable", "sslmode=require"), "t"));
        assert!(describe_chain(&error).contains("encrypt"), "{error:?}");
    }
}

#[test]
fn a_connection_is_encrypted_as_asked_for() {
    let server = server(Product::Postgres);
    if !server.is_own() {
        return;
    }
    let url = server.database();
    execute(&url, &["CREATE TABLE t (k text)"]);
    let by_name = |mode: &str| url.replace("sslmode=disable", mode).replace("127.0.0.1", "localhost");
    let by_address = |mode: &str| url.replace("sslmode=disable", mode);
    let file = server.certificate();
    let trusted = |url: &str| options(url, "t").with("sslrootcert", file.display().to_string());
    let open = |options: &Options| open(&server, &options.clone().with("retryTimeout", "0 s"), query()).map(drop);
    open(&options(&by_address("sslmode=require"), "t")).unwrap();
    open(&options(&by_address("sslmode=prefer"), "t")).unwrap();
    open(&trusted(&by_name("sslmode=verify-full"))).unwrap();
    for refused in [options(&by_name("sslmode=verify-full"), "t"), trusted(&by_address("sslmode=verify-full"))] {
        let error = open(&refused).unwrap_err();
        assert!(describe_chain(&error).contains("cannot encrypt the connection"), "{}", describe_chain(&error));
    }
}

fn a_commit_whose_answer_is_lost_counts_once(product: Product) {
    let server = server(product);
    let url = server.database();
    let proxy = Proxy::start(port_of(&url));
    let mut sink = open(&server, &options(&through(&url, &proxy), "t"), query()).unwrap();
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

fn a_run_that_another_has_replaced_writes_nothing_more(product: Product) {
    let server = server(product);
    let url = server.database();
    let query = query();
    let mut zombie = open(&server, &options(&url, "t"), query).unwrap();
    write(zombie.as_mut(), 0, &pairs(&[("a", 0)]), OutputMode::Append).unwrap();
    let mut living = open(&server, &options(&url, "t"), query).unwrap();
    let error = write(zombie.as_mut(), 1, &pairs(&[("zombie", 1)]), OutputMode::Append).unwrap_err();
    assert!(matches!(error, SinkError::Fenced { .. }), "{error:?}");
    write(living.as_mut(), 1, &pairs(&[("b", 1)]), OutputMode::Append).unwrap();
    assert!(write(zombie.as_mut(), 2, &pairs(&[("zombie", 2)]), OutputMode::Append).is_err());
    assert_eq!(rows(&url, "SELECT k FROM t ORDER BY k"), ["a", "b"]);
    execute(&url, &["DELETE FROM millstream_batches"]);
    let error = write(living.as_mut(), 2, &pairs(&[("c", 2)]), OutputMode::Append).unwrap_err();
    assert!(describe_chain(&error).contains("the row of this query in `millstream_batches`"), "{error:?}");
}

fn queries_that_begin_at_once_do_not_get_in_each_other_s_way(product: Product) {
    let server = server(product);
    let url = server.database();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (server, url) = (&server, &url);
            scope.spawn(move || {
                let mut sink = open(server, &options(url, "t"), query()).unwrap();
                write(sink.as_mut(), 0, &pairs(&[("a", number)]), OutputMode::Append).unwrap();
            });
        }
    });
    assert_eq!(rows(&url, "SELECT count(*), count(DISTINCT v) FROM t"), ["8|8"]);
}

fn a_crash_at_any_durable_write_leaves_each_row_once(product: Product) {
    let server = server(product);
    let units: [&[(&str, i64)]; 4] = [&[("a", 1), ("b", 2)], &[("a", 3)], &[], &[("c", 4), ("a", 5)]];
    let play = |crash: Option<(usize, Moment)>| {
        let url = server.database();
        let world = World::new().unwrap();
        if let Some((at, moment)) = crash {
            world.crash_at(at, moment);
        }
        let upserts = options(&url, "t").with("key", "k");
        let story = Story::in_world(world, COUNTS, OutputMode::Update, server.format(), &upserts);
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

fn a_server_that_is_killed_in_the_middle_loses_and_doubles_nothing(product: Product) {
    let Some(server) = server_to_kill(product) else { return };
    let url = server.database();
    let story = Story::new("SELECT k, v FROM events", OutputMode::Append, server.format(), &options(&url, "t"));
    story.add(&[("a", 0)]);
    let mut run = story.open().unwrap();
    run.run_next().unwrap().unwrap();
    for number in 1..4 {
        story.add(&[("a", number)]);
        if number == 2 {
            server.stop()
        } else {
            server.kill()
        }
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
