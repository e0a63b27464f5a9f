//! The changes of a table as a stream.

use crate::{SERVER, server};
use databases_tests::postgres::{execute, rows};
use databases_tests::query::Changes;
use millstream_checkpoint::faulty::Moment;
use millstream_common::Options;
use streaming_stories::World;

const FORMAT: &str = "postgresql-cdc";
const SQL: &str = "SELECT _op, id, name FROM changes";

fn options(url: &str) -> Options {
    Options::new().with("url", url).with("dbtable", "items")
}

fn changes(url: &str) -> Changes {
    Changes::new(World::new().unwrap(), SQL, FORMAT, &options(url)).unwrap()
}

fn with_items(url: &str) {
    execute(
        url,
        "CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(10,2)); \
                  INSERT INTO items VALUES (1, 'one', 1.5), (2, 'two', NULL)",
    );
}

/// Streams hold the log of the server as long as they are there.
fn drop_slots(url: &str) {
    execute(
        url,
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database() AND NOT active",
    );
}

#[test]
fn a_stream_begins_with_the_rows_that_are_there_and_goes_on_with_what_changes() {
    let held = server();
    let url = held.database();
    with_items(&url);
    let changes = changes(&url);
    assert_eq!(changes.run(), Ok(1));
    assert_eq!(changes.rows(), ["snapshot, 1, one", "snapshot, 2, two"]);
    execute(
        &url,
        "BEGIN; INSERT INTO items VALUES (3, 'three', 3); UPDATE items SET name = 'zwei' WHERE id = 2; COMMIT",
    );
    execute(&url, "BEGIN; INSERT INTO items VALUES (4, 'never', 4); ROLLBACK");
    execute(&url, "DELETE FROM items WHERE id = 1; UPDATE items SET id = 30 WHERE id = 3");
    execute(&url, "TRUNCATE items");
    execute(&url, "INSERT INTO items VALUES (5, NULL, 5)");
    changes.run().unwrap();
    assert_eq!(
        changes.rows()[2..],
        [
            "insert, 3, three",
            "update, 2, zwei",
            "delete, 1, null",
            "delete, 3, null",
            "insert, 30, three",
            "truncate, null, null",
            "insert, 5, null",
        ]
    );
    assert_eq!(changes.run(), Ok(0), "nothing is new");
    let kept = Changes::new(
        World::new().unwrap(),
        "SELECT id, price, _commit_time IS NOT NULL, length(_position) > 2 FROM changes",
        FORMAT,
        &options(&url),
    )
    .unwrap();
    kept.run().unwrap();
    assert_eq!(kept.rows(), ["5, 5.00, true, true"]);
    drop_slots(&url);
}

#[test]
fn batches_have_whole_transactions_up_to_a_limit() {
    let held = server();
    let url = held.database();
    with_items(&url);
    let limited = options(&url).with("maxRowsPerTrigger", "3").with("snapshot", "false");
    let changes = Changes::new(World::new().unwrap(), SQL, FORMAT, &limited).unwrap();
    assert_eq!(changes.run(), Ok(0));
    execute(&url, "INSERT INTO items SELECT n, 'a' FROM generate_series(10, 14) AS n");
    execute(&url, "INSERT INTO items VALUES (20, 'b')");
    execute(&url, "INSERT INTO items VALUES (21, 'b')");
    execute(&url, "INSERT INTO items VALUES (22, 'b'), (23, 'b')");
    changes.run().unwrap();
    let sizes: Vec<usize> = changes.batches().iter().map(Vec::len).collect();
    assert_eq!(sizes, [5, 2, 2]);
    drop_slots(&url);
}

#[test]
fn a_crash_at_any_durable_write_gives_every_change_once() {
    let server = server();
    let play = |crash: Option<(usize, Moment)>| {
        let url = server.database();
        with_items(&url);
        let world = World::new().unwrap();
        if let Some((at, moment)) = crash {
            world.crash_at(at, moment);
        }
        let changes = Changes::new(world, SQL, FORMAT, &options(&url)).unwrap();
        for statement in ["", "INSERT INTO items VALUES (3, 'three')", "DELETE FROM items WHERE id = 1"] {
            execute(&url, statement);
            while changes.run().is_err() {
                assert!(changes.world.crashed(), "it failed without a crash");
                changes.world.revive();
            }
        }
        drop_slots(&url);
        (changes.rows(), changes.world.history().len())
    };
    let (whole, writes) = play(None);
    assert_eq!(whole, ["snapshot, 1, one", "snapshot, 2, two", "insert, 3, three", "delete, 1, null"]);
    for at in (1..=writes).step_by(2) {
        for moment in [Moment::Before, Moment::After] {
            assert_eq!(play(Some((at, moment))).0, whole, "a crash {moment:?} write {at} of {writes}");
        }
    }
}

#[test]
fn rows_that_change_while_the_snapshot_is_taken_come_once() {
    let held = server();
    let url = held.database();
    execute(&url, "CREATE TABLE items (id int PRIMARY KEY, name text)");
    let writing = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut connection = databases_tests::postgres::connect(&url);
            let mut id = 0;
            while writing.load(std::sync::atomic::Ordering::SeqCst) || id < 200 {
                connection.run(&format!("INSERT INTO items VALUES ({id}, 'x')")).unwrap();
                id += 1;
            }
            id
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        let changes = changes(&url);
        // As long as there is a writer there always is something new: only the first batch has to run beside it.
        let mut run = changes.open().unwrap();
        run.run_next().unwrap().unwrap();
        run.close();
        writing.store(false, std::sync::atomic::Ordering::SeqCst);
        let written = writer.join().unwrap();
        changes.run().unwrap();
        let mut found: Vec<i32> =
            changes.rows().iter().map(|row| row.split(", ").nth(1).unwrap().parse().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, (0..written).collect::<Vec<_>>());
        let snapshot = changes.rows().iter().filter(|row| row.starts_with("snapshot")).count();
        assert!(snapshot > 0 && snapshot < written as usize, "{snapshot} of {written}");
    });
    drop_slots(&url);
}

#[test]
fn a_table_that_changes_itself_is_named_and_a_restart_goes_on() {
    let held = server();
    let url = held.database();
    with_items(&url);
    let stream = changes(&url);
    stream.run().unwrap();
    let mut run = stream.open().unwrap();
    execute(&url, "INSERT INTO items VALUES (3, 'three')");
    run.run_next().unwrap().unwrap();
    execute(&url, "ALTER TABLE items ADD COLUMN note text; INSERT INTO items VALUES (4, 'four', 1, 'new')");
    let error = loop {
        match run.run_next() {
            Err(error) => break error,
            Ok(Some(_)) => {}
            Ok(None) => panic!("nothing is new"),
        }
    };
    let text = millstream_common::describe_chain(&error);
    assert!(text.contains("table `items` has changed: column `note` is new"), "{text}");
    drop(run);
    let again = Changes::new(stream.world, SQL, FORMAT, &options(&url)).unwrap();
    again.run().unwrap();
    assert_eq!(again.rows()[2..], ["insert, 3, three", "insert, 4, four"]);
    drop_slots(&url);
}

#[test]
fn a_slot_that_is_gone_is_told_with_the_way_out() {
    let held = server();
    let url = held.database();
    with_items(&url);
    let changes = changes(&url);
    changes.run().unwrap();
    drop_slots(&url);
    execute(&url, "INSERT INTO items VALUES (3, 'three')");
    let error = changes.run().unwrap_err();
    assert!(error.contains("no replication slot") && error.contains("new checkpoint"), "{error}");
}

#[test]
fn released_changes_leave_the_slot_and_a_restarted_server_gives_the_rest() {
    let server = SERVER.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !server.is_own() {
        return;
    }
    let url = server.database();
    with_items(&url);
    let stream = changes(&url);
    stream.run().unwrap();
    let kept = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint FROM pg_replication_slots WHERE database = current_database()";
    for id in 10..14 {
        execute(&url, &format!("INSERT INTO items VALUES ({id}, 'x')"));
        stream.run().unwrap();
    }
    let behind: i64 = rows(&url, kept)[0].parse().unwrap();
    assert!(behind < 10_000, "the slot holds {behind} bytes");
    let mut run = stream.open().unwrap();
    execute(&url, "INSERT INTO items VALUES (20, 'before')");
    server.kill();
    server.restart();
    execute(&url, "INSERT INTO items VALUES (21, 'after')");
    while run.run_next().unwrap().is_some() {}
    run.close();
    let last = stream.rows();
    assert_eq!(last[last.len() - 2..], ["insert, 20, before", "insert, 21, after"]);
    drop_slots(&url);
}

#[test]
fn changes_of_one_table_are_mirrored_in_another() {
    let held = server();
    let url = held.database();
    with_items(&url);
    let world = World::new().unwrap();
    let reader =
        world.session.read_stream().format(FORMAT).name("changes").option("url", &url).option("dbtable", "items");
    reader.load().unwrap().create_or_replace_temp_view("changes").unwrap();
    let writer =
        world.session.sql("SELECT id, name, price, _op FROM changes").unwrap().write_stream().format("postgresql");
    let writer =
        writer.option("url", &url).option("dbtable", "mirror").option("key", "id").option("changeColumn", "_op");
    let spec = writer.option("checkpointLocation", "checkpoint").spec().unwrap();
    let mut run =
        millstream_runtime::QueryRun::open(&world.session, spec, millstream_common::StopSignal::new()).unwrap();
    for statement in [
        "",
        "INSERT INTO items VALUES (3, 'three', 3); UPDATE items SET id = 10 WHERE id = 1",
        "DELETE FROM items WHERE id = 2",
        "BEGIN; TRUNCATE items; INSERT INTO items VALUES (7, 'seven', 7); COMMIT",
    ] {
        execute(&url, statement);
        while run.run_next().unwrap().is_some() {}
        let all = |table: &str| rows(&url, &format!("SELECT * FROM {table} ORDER BY id"));
        assert_eq!(all("mirror"), all("items"), "{statement}");
    }
    run.close();
    drop_slots(&url);
}
