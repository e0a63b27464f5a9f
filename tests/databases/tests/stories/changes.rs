//! The changes of a table as a stream.

use crate::{server, server_to_kill, stories};
use databases_tests::query::{Changes, Story};
use databases_tests::{Connection, Database, Product, execute, product_of, rows};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{Hint, Options, StopSignal, Trigger, describe_chain};
use millstream_runtime::batch_query::run_batch_query;
use millstream_runtime::{OutputMode, QueryRun, RuntimeError, inspect};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use streaming_stories::World;

const SQL: &str = "SELECT _op, id, name FROM changes";
const TABLE: &str = "CREATE TABLE items (id int PRIMARY KEY, name varchar(20), price decimal(10,2))";

stories! {
    a_stream_begins_with_the_rows_that_are_there_and_goes_on_with_what_changes
    every_type_of_a_change_is_as_in_the_snapshot
    batches_have_whole_transactions_up_to_a_limit
    a_crash_at_any_durable_write_gives_every_change_once
    rows_that_change_while_the_snapshot_is_taken_come_once
    a_table_that_changes_itself_is_named_and_a_restart_goes_on
    a_table_that_changes_itself_before_its_first_change_is_named_too
    a_table_that_is_dropped_is_told
    a_restarted_server_gives_the_rest
    changes_of_one_table_are_mirrored_in_another
    a_quiet_table_lets_go_of_the_log_when_all_that_is_available_is_read_now_and_then
    all_that_is_there_is_read_at_once_and_otherwise_as_much_as_a_batch_may_have
    the_changes_of_a_table_are_no_table
}

fn format(product: Product) -> &'static str {
    match product {
        Product::Postgres => "postgresql-cdc",
        Product::Mysql => "mysql-cdc",
    }
}

pub(crate) fn options(url: &str) -> Options {
    Options::new().with("url", url).with("dbtable", "items")
}

pub(crate) fn changes(url: &str) -> Changes {
    stream(url, SQL, &options(url))
}

pub(crate) fn stream(url: &str, sql: &str, options: &Options) -> Changes {
    Changes::new(World::new().unwrap(), sql, format(product_of(url)), options).unwrap()
}

pub(crate) fn with_items(url: &str) {
    execute(url, &[TABLE, "INSERT INTO items VALUES (1, 'one', 1.5), (2, 'two', NULL)"]);
}

/// Streams of PostgreSQL hold its log as long as their slots are there, so a story ends with this.
fn end(url: &str) {
    if product_of(url) == Product::Postgres {
        let sql = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots \
                   WHERE database = current_database() AND NOT active";
        execute(url, &[sql]);
    }
}

/// A deleted row: PostgreSQL has only its key in the log, unless it is told otherwise.
fn deleted(url: &str, id: i32, name: &str) -> String {
    match product_of(url) {
        Product::Postgres => format!("delete, {id}, null"),
        Product::Mysql => format!("delete, {id}, {name}"),
    }
}

fn a_stream_begins_with_the_rows_that_are_there_and_goes_on_with_what_changes(product: Product) {
    let server = server(product);
    let url = server.database();
    with_items(&url);
    let changes = changes(&url);
    assert_eq!(changes.run(), Ok(1));
    assert_eq!(changes.rows(), ["snapshot, 1, one", "snapshot, 2, two"]);
    execute(
        &url,
        &[
            "BEGIN",
            "INSERT INTO items VALUES (3, 'three', 3)",
            "UPDATE items SET name = 'zwei' WHERE id = 2",
            "COMMIT",
            "BEGIN",
            "INSERT INTO items VALUES (4, 'never', 4)",
            "ROLLBACK",
            "DELETE FROM items WHERE id = 1",
            "UPDATE items SET id = 30 WHERE id = 3",
            "CREATE TABLE other (id int)",
            "INSERT INTO other VALUES (9)",
            "/* of a program */ TRUNCATE TABLE items",
            "INSERT INTO items VALUES (5, NULL, 5)",
        ],
    );
    changes.run().unwrap();
    let expected = [
        "insert, 3, three",
        "update, 2, zwei",
        &deleted(&url, 1, "one"),
        &deleted(&url, 3, "three"),
        "insert, 30, three",
        "truncate, null, null",
        "insert, 5, null",
    ];
    assert_eq!(changes.rows()[2..], expected);
    assert_eq!(changes.run(), Ok(0), "nothing is new");
    let sql = "SELECT id, price, _commit_time IS NOT NULL, length(_position) > 2 FROM changes";
    let kept = stream(&url, sql, &options(&url));
    kept.run().unwrap();
    assert_eq!(kept.rows(), ["5, 5.00, true, true"]);
    end(&url);
}

fn every_type_of_a_change_is_as_in_the_snapshot(product: Product) {
    let server = server(product);
    let url = server.database();
    let (table, row, first) = match product {
        Product::Mysql => (
            "CREATE TABLE items (id int unsigned, flag boolean, tiny tinyint unsigned, big bigint unsigned, f float, d double, \
             money decimal(20,5), day date, wall datetime(6), at timestamp(3), word text, bytes varbinary(9), kind enum('a','B'), \
             several set('x','y','z'), hours time, doc json, old varchar(9) CHARACTER SET latin1)",
            "INSERT INTO items VALUES (4000000000, true, 200, 18000000000000000000, 0.5, -1e100, -12345.67890, '2024-05-01', \
             '2024-05-01 12:00:00.123456', '2024-05-01 12:00:00.250', 'ü', x'00ff', 'B', 'x,z', '-26:03:04', '{\"a\": 1}', 'Ã¼€')",
            "4000000000, true, 200, 18000000000000000000, 0.5, ",
        ),
        Product::Postgres => (
            "CREATE TABLE items (id bigint, flag boolean, small smallint, f real, d double precision, money numeric(20,5), \
             day date, wall timestamp, at timestamptz, word text, bytes bytea, uid uuid, doc jsonb, list int[], \
             twice bigint GENERATED ALWAYS AS (id * 2) STORED)",
            "INSERT INTO items VALUES (4000000000, true, -3, 0.5, -1e100, -12345.67890, '2024-05-01', \
             '2024-05-01 12:00:00.123456', '2024-05-01 14:00:00.250+02', E'ü\\t\\\\', '\\x00ff', \
             '00000000-0000-0000-0000-000000000001', '{\"a\": 1}', '{1,NULL}')",
            "4000000000, true, -3, 0.5, ",
        ),
    };
    execute(&url, &[table, row]);
    if product == Product::Postgres {
        execute(&url, &["ALTER TABLE items REPLICA IDENTITY FULL"]);
    }
    let stream = stream(&url, "SELECT * FROM changes", &options(&url));
    stream.run().unwrap();
    execute(&url, &[row]);
    stream.run().unwrap();
    // Without the columns of the stream, which differ.
    let of_table = |row: &String| row.rsplitn(4, ", ").last().unwrap().to_owned();
    let all = stream.rows();
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(of_table(&all[0]), of_table(&all[1]));
    assert!(all[0].starts_with(first), "{all:?}");
    end(&url);
}

fn batches_have_whole_transactions_up_to_a_limit(product: Product) {
    let server = server(product);
    let url = server.database();
    with_items(&url);
    let limited = options(&url).with("maxRowsPerTrigger", "3").with("snapshot", "false");
    let changes = stream(&url, SQL, &limited);
    assert_eq!(changes.run(), Ok(0));
    execute(
        &url,
        &[
            "INSERT INTO items VALUES (10, 'a', 1), (11, 'a', 1), (12, 'a', 1), (13, 'a', 1), (14, 'a', 1)",
            "INSERT INTO items VALUES (20, 'b', 1)",
            "INSERT INTO items VALUES (21, 'b', 1)",
            "INSERT INTO items VALUES (22, 'b', 1), (23, 'b', 1)",
        ],
    );
    changes.run().unwrap();
    let sizes: Vec<usize> = changes.batches().iter().map(Vec::len).collect();
    assert_eq!(sizes, [5, 2, 2]);
    end(&url);
}

fn a_crash_at_any_durable_write_gives_every_change_once(product: Product) {
    let server = server(product);
    let play = |crash: Option<(usize, Moment)>| {
        let url = server.database();
        with_items(&url);
        let world = World::new().unwrap();
        if let Some((at, moment)) = crash {
            world.crash_at(at, moment);
        }
        let changes = Changes::new(world, SQL, format(product), &options(&url)).unwrap();
        for statement in ["SELECT 1", "INSERT INTO items VALUES (3, 'three', 3)", "DELETE FROM items WHERE id = 1"] {
            execute(&url, &[statement]);
            while changes.run().is_err() {
                assert!(changes.world.crashed(), "it failed without a crash");
                changes.world.revive();
            }
        }
        end(&url);
        (changes.rows(), changes.world.history().len())
    };
    let (whole, writes) = play(None);
    let name = if product == Product::Postgres { "null" } else { "one" };
    let gone = format!("delete, 1, {name}");
    assert_eq!(whole, ["snapshot, 1, one", "snapshot, 2, two", "insert, 3, three", &gone]);
    for at in (1..=writes).step_by(2) {
        for moment in [Moment::Before, Moment::After] {
            assert_eq!(play(Some((at, moment))).0, whole, "a crash {moment:?} write {at} of {writes}");
        }
    }
}

fn rows_that_change_while_the_snapshot_is_taken_come_once(product: Product) {
    let server = server(product);
    let url = server.database();
    execute(&url, &[TABLE]);
    let writing = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut connection = Connection::open(&url);
            let mut id = 0;
            while writing.load(Ordering::SeqCst) || id < 200 {
                connection.run(&format!("INSERT INTO items VALUES ({id}, 'x', 1)"));
                id += 1;
            }
            id
        });
        std::thread::sleep(Duration::from_millis(50));
        let changes = changes(&url);
        // As long as there is a writer there always is something new: only the first batch has to run beside it.
        let mut run = changes.open().unwrap();
        run.run_next().unwrap().unwrap();
        run.close();
        writing.store(false, Ordering::SeqCst);
        let written = writer.join().unwrap();
        changes.run().unwrap();
        let id = |row: &String| row.split(", ").nth(1).unwrap().parse::<i32>().unwrap();
        let mut found: Vec<i32> = changes.rows().iter().map(id).collect();
        found.sort_unstable();
        assert_eq!(found, (0..written).collect::<Vec<_>>());
        let snapshot = changes.rows().iter().filter(|row| row.starts_with("snapshot")).count();
        assert!(snapshot > 0 && snapshot < written as usize, "{snapshot} of {written}");
    });
    end(&url);
}

/// Runs batches until one fails.
fn failure(run: &mut QueryRun) -> String {
    loop {
        match run.run_next() {
            Err(error) => break describe_chain(&error),
            Ok(Some(_)) => {}
            Ok(None) => panic!("nothing is new"),
        }
    }
}

fn a_table_that_changes_itself_is_named_and_a_restart_goes_on(product: Product) {
    let server = server(product);
    let url = server.database();
    with_items(&url);
    let stream = changes(&url);
    stream.run().unwrap();
    let mut run = stream.open().unwrap();
    execute(&url, &["INSERT INTO items VALUES (3, 'three', 3)"]);
    run.run_next().unwrap().unwrap();
    execute(&url, &["ALTER TABLE items ADD COLUMN note varchar(9)", "INSERT INTO items VALUES (4, 'four', 1, 'new')"]);
    let text = failure(&mut run);
    assert!(text.contains("items` has changed: column `note` is new"), "{text}");
    drop(run);
    let again = Changes::new(stream.world, SQL, format(product), &options(&url)).unwrap();
    again.run().unwrap();
    assert_eq!(again.rows()[2..], ["insert, 3, three", "insert, 4, four"]);
    end(&url);
}

fn a_table_that_changes_itself_before_its_first_change_is_named_too(product: Product) {
    let server = server(product);
    for (alter, insert, part) in [
        ("ADD COLUMN note varchar(9)", "INSERT INTO items VALUES (4, 'four', 1, 'new')", "column `note` is new"),
        ("DROP COLUMN name", "INSERT INTO items VALUES (4, 1)", "column `name` is gone"),
        ("", "INSERT INTO items VALUES (4, '4', 1)", "column `name` has another type"),
    ] {
        let url = server.database();
        with_items(&url);
        let stream = changes(&url);
        stream.run().unwrap();
        let mut run = stream.open().unwrap();
        let alter = match (alter, product) {
            ("", Product::Postgres) => "ALTER COLUMN name TYPE text",
            ("", Product::Mysql) => "MODIFY name text",
            (alter, _) => alter,
        };
        execute(&url, &[&format!("ALTER TABLE items {alter}"), insert]);
        let text = failure(&mut run);
        assert!(text.contains(part), "{text}");
        drop(run);
        end(&url);
    }
    // What leaves the columns as they are is no change.
    let url = server.database();
    with_items(&url);
    let stream = changes(&url);
    stream.run().unwrap();
    let mut run = stream.open().unwrap();
    execute(&url, &["CREATE INDEX by_name ON items (name)", "INSERT INTO items VALUES (4, 'four', 1)"]);
    run.run_next().unwrap().unwrap();
    run.close();
    assert_eq!(stream.rows()[2..], ["insert, 4, four"]);
    end(&url);
}

fn a_table_that_is_dropped_is_told(product: Product) {
    let server = server(product);
    let url = server.database();
    with_items(&url);
    let stream = changes(&url);
    stream.run().unwrap();
    let mut run = stream.open().unwrap();
    execute(&url, &["DROP TABLE items", TABLE, "INSERT INTO items VALUES (7, 'seven', 7)"]);
    match product {
        Product::Postgres => {
            let text = failure(&mut run);
            assert!(text.contains("it was dropped"), "{text}");
            drop(run);
            let error = stream.run().unwrap_err();
            assert!(error.contains("does not have table `items`"), "{error}");
        }
        // Its log has the new table under the same name.
        Product::Mysql => {
            while run.run_next().unwrap().is_some() {}
            run.close();
            assert_eq!(stream.rows()[2..], ["truncate, null, null", "insert, 7, seven"]);
        }
    }
    end(&url);
}

fn a_restarted_server_gives_the_rest(product: Product) {
    let Some(server) = server_to_kill(product) else { return };
    let url = server.database();
    with_items(&url);
    let stream = changes(&url);
    stream.run().unwrap();
    for id in 10..14 {
        execute(&url, &[&format!("INSERT INTO items VALUES ({id}, 'x', 1)")]);
        stream.run().unwrap();
    }
    if product == Product::Postgres {
        let kept = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint \
                    FROM pg_replication_slots WHERE database = current_database()";
        let behind: i64 = rows(&url, kept)[0].parse().unwrap();
        assert!(behind < 10_000, "the slot holds {behind} bytes");
    }
    let mut run = stream.open().unwrap();
    execute(&url, &["INSERT INTO items VALUES (20, 'before', 1)"]);
    server.kill();
    server.restart();
    execute(&url, &["INSERT INTO items VALUES (21, 'after', 1)"]);
    while run.run_next().unwrap().is_some() {}
    run.close();
    let last = stream.rows();
    assert_eq!(last[last.len() - 2..], ["insert, 20, before", "insert, 21, after"]);
    end(&url);
}

/// A query that keeps table `mirror` as table `items` is.
fn mirror(server: &Database, url: &str, world: &World) -> Result<QueryRun, RuntimeError> {
    let reader = world.session.read_stream().format(format(server.product())).name("changes");
    let reader = reader.option("url", url).option("dbtable", "items").load()?;
    reader.create_or_replace_temp_view("changes")?;
    let writer = world.session.sql("SELECT id, name, price, _op FROM changes")?.write_stream().format(server.format());
    let writer = writer.option("url", url).option("dbtable", "mirror").option("key", "id");
    let spec = writer.option("changeColumn", "_op").option("checkpointLocation", "checkpoint").spec()?;
    QueryRun::open(&world.session, spec, StopSignal::new())
}

fn changes_of_one_table_are_mirrored_in_another(product: Product) {
    let server = server(product);
    for is_whole in [false, true] {
        let url = server.database();
        with_items(&url);
        if product == Product::Postgres && is_whole {
            execute(&url, &["ALTER TABLE items REPLICA IDENTITY FULL"]);
        }
        let world = World::new().unwrap();
        let mut run = mirror(&server, &url, &world).unwrap();
        let steps: [&[&str]; 4] = [
            &[],
            &["INSERT INTO items VALUES (3, 'three', 3)", "UPDATE items SET id = 10 WHERE id = 1"],
            &["DELETE FROM items WHERE id = 2"],
            &["BEGIN", "DELETE FROM items", "INSERT INTO items VALUES (7, 'seven', 7)", "COMMIT"],
        ];
        for statements in steps {
            execute(&url, statements);
            while run.run_next().unwrap().is_some() {}
            let all = |table: &str| rows(&url, &format!("SELECT * FROM {table} ORDER BY id"));
            assert_eq!(all("mirror"), all("items"), "{statements:?}");
        }
        run.close();
        end(&url);
    }
}

fn a_quiet_table_lets_go_of_the_log_when_all_that_is_available_is_read_now_and_then(product: Product) {
    // What others write is in the same log.
    let Some(server) = server_to_kill(product) else { return };
    let url = server.database();
    with_items(&url);
    execute(&url, &["CREATE TABLE other (id int)"]);
    let mut stream = changes(&url);
    stream.spec().trigger = Trigger::AvailableNow;
    stream.run().unwrap();
    let others: &[&str] = match product {
        Product::Postgres => {
            &["SELECT pg_logical_emit_message(true, 'x', repeat('x', 1000000)) FROM generate_series(1, 20)"]
        }
        Product::Mysql => &["INSERT INTO other VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO other VALUES (2)"],
    };
    for _ in 0..3 {
        execute(&url, others);
        assert_eq!(stream.run(), Ok(1), "a batch without rows, and then the end");
        assert_eq!(stream.run(), Ok(0));
    }
    if product == Product::Postgres {
        let kept = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint \
                    FROM pg_replication_slots WHERE database = current_database()";
        let behind: i64 = rows(&url, kept)[0].parse().unwrap();
        assert!(behind < 30_000_000, "the slot holds {behind} bytes, and not those of the last run alone");
    }
    execute(&url, &["INSERT INTO items VALUES (3, 'three', 3)"]);
    stream.run().unwrap();
    assert_eq!(stream.rows()[2..], ["insert, 3, three"]);
    end(&url);
}

fn all_that_is_there_is_read_at_once_and_otherwise_as_much_as_a_batch_may_have(product: Product) {
    let server = server(product);
    for (trigger, most) in [(Trigger::Once, 6), (Trigger::AvailableNow, 2)] {
        let url = server.database();
        with_items(&url);
        let limited = options(&url).with("maxRowsPerTrigger", "2").with("snapshot", "false");
        let mut changes = stream(&url, SQL, &limited);
        changes.run().unwrap();
        for id in 10..16 {
            execute(&url, &[&format!("INSERT INTO items VALUES ({id}, 'x', 1)")]);
        }
        changes.spec().trigger = trigger;
        changes.run().unwrap();
        let sizes: Vec<usize> = changes.batches().iter().map(Vec::len).collect();
        assert_eq!((sizes.iter().max(), sizes.iter().sum()), (Some(&most), 6_usize), "{trigger:?}: {sizes:?}");
        end(&url);
    }
}

fn the_changes_of_a_table_are_no_table(product: Product) {
    let server = server(product);
    let url = server.database();
    with_items(&url);
    let world = World::new().unwrap();
    let table = world.session.read().format(format(product)).option("url", &url).option("dbtable", "items");
    table.load().unwrap().create_or_replace_temp_view("items").unwrap();
    let sql = "SELECT e.k, name FROM events e JOIN items ON e.v = items.id";
    let mut story = Story::in_world(world, sql, OutputMode::Append, "recorder", &Options::new());
    let spec = story.spec().clone();
    let checked = inspect::check(&story.world.session, &spec).map(drop).unwrap_err();
    for error in [story.open().map(drop).unwrap_err(), checked] {
        let (text, hint) = (describe_chain(&error), error.hint().unwrap_or_default());
        assert!(text.contains(&format!("`{}`: that is a stream of changes", format(product))), "{text}");
        assert!(hint.contains(&format!("the format `{}`", server.format())), "{hint}");
    }
    if product == Product::Postgres {
        assert_eq!(left_behind(&url), [""; 0]);
    }
}

/// The slots and publications of a database.
fn left_behind(url: &str) -> Vec<String> {
    let slots = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()";
    rows(url, &format!("{slots} UNION ALL SELECT pubname FROM pg_publication"))
}

#[test]
fn a_batch_query_has_the_rows_that_are_there_and_leaves_nothing_behind() {
    let server = server(Product::Postgres);
    let url = server.database();
    with_items(&url);
    for (snapshot, expected) in [("true", &["snapshot, 1, one", "snapshot, 2, two"][..]), ("false", &[])] {
        let mut changes = stream(&url, SQL, &options(&url).with("snapshot", snapshot));
        let spec = changes.spec().clone();
        let summary = run_batch_query(&changes.world.session, &spec, &StopSignal::new()).unwrap().unwrap();
        assert_eq!(changes.rows(), expected);
        assert_eq!(summary.rows_in, [("changes".to_owned(), expected.len() as u64)]);
        assert_eq!(left_behind(&url), [""; 0]);
    }
}

#[test]
fn a_query_without_a_checkpoint_leaves_nothing_on_the_server_when_it_stops() {
    let server = server(Product::Postgres);
    let url = server.database();
    with_items(&url);
    let mut changes = stream(&url, SQL, &options(&url));
    changes.spec().checkpoint = None;
    let mut run = changes.open().unwrap();
    run.run_next().unwrap().unwrap();
    assert_eq!(left_behind(&url).len(), 2, "its slot and its publication");
    run.close();
    assert_eq!(left_behind(&url), [""; 0]);
}

#[test]
fn a_column_of_a_domain_is_one_of_the_type_below_it() {
    let server = server(Product::Postgres);
    let url = server.database();
    execute(
        &url,
        &[
            "CREATE DOMAIN money_of_ours AS numeric(10,2) CHECK (VALUE >= 0)",
            "CREATE DOMAIN short AS varchar(5)",
            "CREATE TABLE items (id int PRIMARY KEY, name short, price money_of_ours, old money_of_ours[])",
            "INSERT INTO items VALUES (1, 'one', 1.5, '{1}')",
        ],
    );
    let stream = stream(&url, "SELECT _op, id, name, price + 1, old FROM changes", &options(&url));
    stream.run().unwrap();
    let mut run = stream.open().unwrap();
    execute(&url, &["INSERT INTO items VALUES (2, 'two', 2.5, '{2,3}')"]);
    run.run_next().unwrap().unwrap();
    assert_eq!(stream.rows(), ["snapshot, 1, one, 2.50, {1.00}", "insert, 2, two, 3.50, {2.00,3.00}"]);
    // What is below it is another type.
    execute(
        &url,
        &["ALTER TABLE items ALTER COLUMN price TYPE numeric(10,2)", "INSERT INTO items VALUES (3, 'three', 3, NULL)"],
    );
    let text = failure(&mut run);
    assert!(text.contains("column `price` has another type"), "{text}");
    drop(run);
    end(&url);
}

#[test]
fn a_slot_that_is_gone_is_told_with_the_way_out() {
    let server = server(Product::Postgres);
    let url = server.database();
    with_items(&url);
    let changes = changes(&url);
    changes.run().unwrap();
    end(&url);
    execute(&url, &["INSERT INTO items VALUES (3, 'three', 3)"]);
    let error = changes.run().unwrap_err();
    assert!(error.contains("no replication slot") && error.contains("new checkpoint"), "{error}");
}

#[test]
fn other_tables_of_a_publication_are_none_of_the_stream() {
    let server = server(Product::Postgres);
    let url = server.database();
    with_items(&url);
    execute(
        &url,
        &["CREATE TABLE other (id int PRIMARY KEY, name text)", "CREATE PUBLICATION all_of_it FOR ALL TABLES"],
    );
    let changes = stream(&url, SQL, &options(&url).with("publication", "all_of_it"));
    changes.run().unwrap();
    execute(
        &url,
        &[
            "BEGIN",
            "INSERT INTO items VALUES (3, 'three', 3)",
            "INSERT INTO other VALUES (100, 'other')",
            "INSERT INTO items VALUES (4, 'four', 3)",
            "COMMIT",
            "INSERT INTO other VALUES (101, 'other')",
        ],
    );
    changes.run().unwrap();
    assert_eq!(changes.rows()[2..], ["insert, 3, three", "insert, 4, four"]);
    execute(&url, &["DROP PUBLICATION all_of_it", "CREATE PUBLICATION all_of_it FOR TABLE other"]);
    execute(&url, &["INSERT INTO items VALUES (5, 'five', 3)"]);
    let error = changes.run().unwrap_err();
    assert!(error.contains("publication `all_of_it` does not have table `items`"), "{error}");
    end(&url);
}

#[test]
fn a_stream_takes_no_updates_away_from_those_who_use_the_table() {
    let server = server(Product::Postgres);
    let url = server.database();
    execute(&url, &["CREATE TABLE items (id int, name text)", "INSERT INTO items VALUES (1, 'one')"]);
    let error = changes(&url).run().unwrap_err();
    assert!(error.contains("no primary key") && error.contains("REPLICA IDENTITY FULL"), "{error}");
    execute(&url, &["UPDATE items SET name = 'two'"]);
    execute(&url, &["CREATE PUBLICATION half FOR TABLE items WITH (publish = 'insert')"]);
    let error = stream(&url, SQL, &options(&url).with("publication", "half")).run().unwrap_err();
    assert!(error.contains("publication `half` leaves out"), "{error}");
    execute(&url, &["CREATE TABLE child () INHERITS (items)"]);
    let error = changes(&url).run().unwrap_err();
    assert!(error.contains("inherit from `items`"), "{error}");
}

#[test]
fn a_large_value_that_the_log_leaves_out_is_told() {
    let server = server(Product::Postgres);
    let url = server.database();
    execute(&url, &["CREATE TABLE items (id int PRIMARY KEY, name text)"]);
    execute(&url, &["ALTER TABLE items ALTER COLUMN name SET STORAGE EXTERNAL"]);
    execute(&url, &["INSERT INTO items VALUES (1, repeat('x', 10000))"]);
    let refused = stream(&url, "SELECT _op, id, length(name) FROM changes", &options(&url));
    refused.run().unwrap();
    execute(&url, &["UPDATE items SET id = 2"]);
    let error = refused.run().unwrap_err();
    assert!(error.contains("REPLICA IDENTITY FULL") && error.contains("new checkpoint"), "{error}");
    execute(&url, &["ALTER TABLE items REPLICA IDENTITY FULL"]);
    let whole = stream(&url, "SELECT _op, id, length(name) FROM changes", &options(&url));
    whole.run().unwrap();
    execute(&url, &["UPDATE items SET id = 3"]);
    whole.run().unwrap();
    assert_eq!(whole.rows(), ["snapshot, 2, 10000", "delete, 2, 10000", "insert, 3, 10000"]);
    end(&url);
}

#[test]
fn a_log_that_begins_anew_or_is_thrown_away_is_told_with_the_way_out() {
    let Some(server) = server_to_kill(Product::Mysql) else { return };
    let url = server.database();
    with_items(&url);
    let stream = changes(&url);
    stream.run().unwrap();
    execute(&url, &["FLUSH BINARY LOGS", "FLUSH BINARY LOGS", "INSERT INTO items VALUES (3, 'three', 3)"]);
    let newest = rows(&url, "SHOW MASTER STATUS")[0].split('|').next().unwrap().to_owned();
    let begin = Instant::now();
    // A file that the server still reads for somebody stays for a moment.
    while !rows(&url, "SHOW BINARY LOGS")[0].starts_with(&newest) {
        assert!(begin.elapsed() < Duration::from_secs(30), "the log is not thrown away");
        execute(&url, &[&format!("PURGE BINARY LOGS TO '{newest}'")]);
        std::thread::sleep(Duration::from_millis(100));
    }
    let error = stream.run().unwrap_err();
    assert!(error.contains("1236") && error.contains("new checkpoint"), "{error}");
    let again = changes(&url);
    again.run().unwrap();
    execute(&url, &["RESET MASTER", "INSERT INTO items VALUES (4, 'four', 4)"]);
    let error = again.run().unwrap_err();
    assert!(error.contains("ends before") && error.contains("new checkpoint"), "{error}");
}

#[test]
fn a_quiet_table_lets_go_of_files_of_the_log() {
    let server = server(Product::Mysql);
    let url = server.database();
    with_items(&url);
    execute(&url, &["CREATE TABLE other (id int)"]);
    let stream = changes(&url);
    stream.run().unwrap();
    execute(&url, &["INSERT INTO other VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO other VALUES (2)"]);
    assert_eq!(stream.run(), Ok(1), "a batch without rows");
    assert_eq!(stream.run(), Ok(0));
    execute(&url, &["INSERT INTO items VALUES (3, 'three', 3)"]);
    stream.run().unwrap();
    assert_eq!(stream.rows()[2..], ["insert, 3, three"]);
}
