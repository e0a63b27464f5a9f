//! The changes of a table as a stream, and tables that are read whole.

use crate::{SERVER, server};
use databases_tests::mariadb::execute;
use databases_tests::query::{Changes, Story};
use millstream_checkpoint::faulty::Moment;
use millstream_common::Options;
use millstream_runtime::OutputMode;
use streaming_stories::World;

const FORMAT: &str = "mysql-cdc";
const SQL: &str = "SELECT _op, id, name FROM changes";
const TABLE: &str = "CREATE TABLE items (id int PRIMARY KEY, name varchar(20), price decimal(10,2))";

fn options(url: &str) -> Options {
    Options::new().with("url", url).with("dbtable", "items")
}

fn changes(url: &str) -> Changes {
    Changes::new(World::new().unwrap(), SQL, FORMAT, &options(url)).unwrap()
}

fn with_items(url: &str) {
    execute(url, &[TABLE, "INSERT INTO items VALUES (1, 'one', 1.5), (2, 'two', NULL)"]);
}

#[test]
fn a_stream_begins_with_the_rows_that_are_there_and_goes_on_with_what_changes() {
    let held = server();
    let url = held.database();
    with_items(&url);
    let stream = changes(&url);
    assert_eq!(stream.run(), Ok(1));
    assert_eq!(stream.rows(), ["snapshot, 1, one", "snapshot, 2, two"]);
    execute(
        &url,
        &[
            "START TRANSACTION",
            "INSERT INTO items VALUES (3, 'three', 3)",
            "UPDATE items SET name = 'zwei' WHERE id = 2",
            "COMMIT",
        ],
    );
    execute(&url, &["START TRANSACTION", "INSERT INTO items VALUES (4, 'never', 4)", "ROLLBACK"]);
    execute(&url, &["DELETE FROM items WHERE id = 1", "TRUNCATE items", "INSERT INTO items VALUES (5, NULL, 5)"]);
    execute(&url, &["CREATE TABLE other (id int)", "INSERT INTO other VALUES (9)"]);
    stream.run().unwrap();
    assert_eq!(
        stream.rows()[2..],
        ["insert, 3, three", "update, 2, zwei", "delete, 1, one", "truncate, null, null", "insert, 5, null"]
    );
    assert_eq!(stream.run(), Ok(0), "nothing is new");
    let sql = "SELECT id, price, _commit_time IS NOT NULL, length(_position) > 2 FROM changes";
    let kept = Changes::new(World::new().unwrap(), sql, FORMAT, &options(&url)).unwrap();
    kept.run().unwrap();
    assert_eq!(kept.rows(), ["5, 5.00, true, true"]);
}

#[test]
fn every_type_of_a_change_is_as_in_the_snapshot() {
    let held = server();
    let url = held.database();
    execute(
        &url,
        &[
            "CREATE TABLE items (id int unsigned, flag boolean, tiny tinyint unsigned, big bigint unsigned, f float, d double, \
         money decimal(20,5), day date, wall datetime(6), at timestamp(3), word text, bytes varbinary(9), kind enum('a','b'), \
         several set('x','y','z'), hours time, doc json)",
            "INSERT INTO items VALUES (4000000000, true, 200, 18000000000000000000, 0.5, -1e100, -12345.67890, '2024-05-01', \
         '2024-05-01 12:00:00.123456', '2024-05-01 12:00:00.250', 'ü', x'00ff', 'b', 'x,z', '-26:03:04', '{\"a\": 1}')",
        ],
    );
    let stream = Changes::new(World::new().unwrap(), "SELECT * FROM changes", FORMAT, &options(&url)).unwrap();
    stream.run().unwrap();
    execute(&url, &["INSERT INTO items SELECT * FROM items"]);
    stream.run().unwrap();
    let table = |row: &String| row.split(", ").take(16).map(str::to_owned).collect::<Vec<_>>();
    let all = stream.rows();
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(table(&all[0]), table(&all[1]));
    assert!(all[0].starts_with("4000000000, true, 200, 18000000000000000000, 0.5, "), "{all:?}");
}

#[test]
fn batches_have_whole_transactions_up_to_a_limit() {
    let held = server();
    let url = held.database();
    with_items(&url);
    let limited = options(&url).with("maxRowsPerTrigger", "3").with("snapshot", "false");
    let stream = Changes::new(World::new().unwrap(), SQL, FORMAT, &limited).unwrap();
    assert_eq!(stream.run(), Ok(0));
    execute(
        &url,
        &[
            "INSERT INTO items VALUES (10, 'a', 1), (11, 'a', 1), (12, 'a', 1), (13, 'a', 1), (14, 'a', 1)",
            "INSERT INTO items VALUES (20, 'b', 1)",
            "INSERT INTO items VALUES (21, 'b', 1)",
            "INSERT INTO items VALUES (22, 'b', 1), (23, 'b', 1)",
        ],
    );
    stream.run().unwrap();
    let sizes: Vec<usize> = stream.batches().iter().map(Vec::len).collect();
    assert_eq!(sizes, [5, 2, 2]);
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
        let stream = Changes::new(world, SQL, FORMAT, &options(&url)).unwrap();
        for statement in ["DO 0", "INSERT INTO items VALUES (3, 'three', 3)", "DELETE FROM items WHERE id = 1"] {
            execute(&url, &[statement]);
            while stream.run().is_err() {
                assert!(stream.world.crashed(), "it failed without a crash");
                stream.world.revive();
            }
        }
        (stream.rows(), stream.world.history().len())
    };
    let (whole, writes) = play(None);
    assert_eq!(whole, ["snapshot, 1, one", "snapshot, 2, two", "insert, 3, three", "delete, 1, one"]);
    for at in (1..=writes).step_by(2) {
        for moment in [Moment::Before, Moment::After] {
            assert_eq!(play(Some((at, moment))).0, whole, "a crash {moment:?} write {at} of {writes}");
        }
    }
}

#[test]
fn a_table_that_changes_itself_is_named_and_a_restart_goes_on() {
    let held = server();
    let url = held.database();
    with_items(&url);
    let stream = changes(&url);
    stream.run().unwrap();
    let mut run = stream.open().unwrap();
    execute(&url, &["INSERT INTO items VALUES (3, 'three', 3)"]);
    run.run_next().unwrap().unwrap();
    execute(&url, &["ALTER TABLE items ADD COLUMN note text", "INSERT INTO items VALUES (4, 'four', 1, 'new')"]);
    let error = run.run_next().unwrap_err();
    let text = millstream_common::describe_chain(&error);
    assert!(text.contains("items` has changed: column `note` is new"), "{text}");
    drop(run);
    let again = Changes::new(stream.world, SQL, FORMAT, &options(&url)).unwrap();
    again.run().unwrap();
    assert_eq!(again.rows()[2..], ["insert, 3, three", "insert, 4, four"]);
}

#[test]
fn a_restarted_server_goes_on_in_another_file_of_its_log() {
    let server = SERVER.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !server.is_own() {
        return;
    }
    let url = server.database();
    with_items(&url);
    let stream = changes(&url);
    stream.run().unwrap();
    let mut run = stream.open().unwrap();
    execute(&url, &["INSERT INTO items VALUES (20, 'before', 1)"]);
    server.kill();
    server.restart();
    execute(&url, &["INSERT INTO items VALUES (21, 'after', 1)"]);
    while run.run_next().unwrap().is_some() {}
    run.close();
    let found = stream.rows();
    assert_eq!(found[2..], ["insert, 20, before", "insert, 21, after"]);
}

#[test]
fn a_stream_is_joined_with_a_table_and_with_a_query() {
    let held = server();
    let url = held.database();
    execute(
        &url,
        &[
            "CREATE TABLE names (k varchar(9), name text, since timestamp NULL, code varbinary(9), price decimal(5,2))",
            "INSERT INTO names VALUES ('a', 'Ann', '2024-05-01 10:00:00', x'00ff', 1.25), ('b', NULL, NULL, NULL, NULL)",
        ],
    );
    let world = World::new().unwrap();
    let table = |option: &str, value: &str| {
        world.session.read().format("mysql").option("url", &url).option(option, value).load().unwrap()
    };
    table("dbtable", "names").create_or_replace_temp_view("names").unwrap();
    table("query", "SELECT k, length(name) AS n FROM names WHERE name IS NOT NULL")
        .create_or_replace_temp_view("lengths")
        .unwrap();
    let sql = "SELECT e.k, name, CAST(since AS STRING), hex(code), price, n FROM events e JOIN names ON e.k = names.k LEFT JOIN lengths l ON e.k = l.k";
    let story = Story::in_world(world, sql, OutputMode::Append, "recorder", &Options::new());
    story.add(&[("a", 1), ("b", 2), ("c", 3)]);
    story.run().unwrap();
    let mut found: Vec<String> =
        story.world.recorder.batches().into_values().flatten().map(|row| row.replace(" | ", ", ")).collect();
    found.sort();
    assert_eq!(found, ["a, Ann, 2024-05-01 10:00:00, 00FF, 1.25, 3", "b, null, null, null, null, null"]);
}
