//! What only MySQL and MariaDB have: names in any letters, files of the log that go, numbers of readers, types of their own.

use crate::changes::{changes, options, stream, with_items};
use crate::{server, server_to_kill};
use databases_tests::query::{Changes, Story};
use databases_tests::{Database, Product, execute, is_of_user, rows};
use millstream_common::{Options, StopSignal};
use millstream_runtime::{OutputMode, QueryRun};
use std::time::{Duration, Instant};
use streaming_stories::World;

#[test]
fn a_table_is_found_in_the_log_of_a_server_that_folds_names() {
    if is_of_user(Product::Mysql) {
        return;
    }
    let server = Database::mariadb_with(&[("lower-case-table-names", "1")]);
    let url = server.database();
    with_items(&url);
    let database = url.rsplit_once('/').and_then(|(_, tail)| tail.split_once('?')).unwrap().0.to_owned();
    let other = format!("{}.Items", database.to_uppercase());
    for (url, table) in
        [(url.clone(), "Items"), (url.clone(), &other), (url.replace(&database, &other[..database.len()]), "ITEMS")]
    {
        let stream = stream(&url, "SELECT _op, id FROM changes", &options(&url).with("dbtable", table));
        assert_eq!(stream.run(), Ok(1), "{table}");
        execute(&url, &["INSERT INTO iTems VALUES (3, 'three', 3)", "DELETE FROM Items WHERE id = 3"]);
        stream.run().unwrap();
        assert_eq!(stream.rows()[2..], ["insert, 3", "delete, 3"], "{table}");
        // A statement stands in the log as it was written.
        execute(&url, &["TRUNCATE TABLE ITEMS", "INSERT INTO items VALUES (1, 'one', 1), (2, 'two', 2)"]);
        stream.run().unwrap();
        assert_eq!(stream.rows()[4..], ["truncate, null", "insert, 1", "insert, 2"], "{table}");
    }
}

/// Lets the server throw away all files of its log but the newest.
fn throw_old_files_away(url: &str) {
    let newest = rows(url, "SHOW MASTER STATUS")[0].split('|').next().unwrap().to_owned();
    let begin = Instant::now();
    // A file that the server still reads for somebody stays for a moment.
    while !rows(url, "SHOW BINARY LOGS")[0].starts_with(&newest) {
        assert!(begin.elapsed() < Duration::from_secs(30), "the log is not thrown away");
        execute(url, &[&format!("PURGE BINARY LOGS TO '{newest}'")]);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// MariaDB puts something into each new file, and MySQL nothing; the unit tests of the reading have that.
#[test]
fn a_server_where_nothing_happens_may_throw_its_files_away() {
    let Some(server) = server_to_kill(Product::Mysql) else { return };
    let url = server.database();
    with_items(&url);
    let stream = changes(&url);
    stream.run().unwrap();
    let mut run = stream.open().unwrap();
    for _ in 0..3 {
        execute(&url, &["FLUSH BINARY LOGS"]);
        while run.run_next().unwrap().is_some() {}
        throw_old_files_away(&url);
    }
    // One that ends in order has no word of the next file in its last.
    server.stop();
    server.restart();
    while run.run_next().unwrap().is_some() {}
    throw_old_files_away(&url);
    execute(&url, &["INSERT INTO items VALUES (3, 'three', 3)"]);
    while run.run_next().unwrap().is_some() {}
    run.close();
    assert_eq!(stream.rows()[2..], ["insert, 3, three"]);
    assert_eq!(stream.run(), Ok(0));
}

#[test]
fn readers_of_one_number_wait_for_each_other() {
    let server = server(Product::Mysql);
    let url = server.database();
    with_items(&url);
    execute(&url, &["CREATE TABLE other (word longtext)"]);
    let numbered = options(&url).with("serverId", "4711");
    let streams: Vec<Changes> = (0..2).map(|_| stream(&url, "SELECT _op, id FROM changes", &numbered)).collect();
    streams.iter().for_each(|stream| assert_eq!(stream.run(), Ok(1)));
    // So much that a reading takes a while.
    execute(&url, &["INSERT INTO other SELECT repeat('x', 4000000) FROM seq_1_to_16"]);
    execute(&url, &["INSERT INTO items VALUES (3, 'three', 3)"]);
    std::thread::scope(|scope| {
        for stream in &streams {
            scope.spawn(|| stream.run().unwrap());
        }
    });
    streams.iter().for_each(|stream| assert_eq!(stream.rows()[2..], ["insert, 3"]));
}

/// Columns of types that are easily read wrong, and a row of their values.
const STRANGE: &str = "CREATE TABLE items (id bigint PRIMARY KEY, f float, small float, part float(7,3), flag boolean, \
     many tinyint(1), minus tinyint(1), bit_on bit(1), bit_off bit(1), bits bit(10), place point, shape geometry, \
     areas multipolygon, v4 inet4, none4 inet4, v6 inet6, none6 inet6, uid uuid, round uuid, year_0 year, at timestamp(3) NULL)";
const STRANGE_VALUES: &str = "16777216, 1.2345678, 1677.721, true, 2, -1, 1, 0, 1000, point(1, 2), \
     ST_GeomFromText('LINESTRING(0 0, 1 1)', 4326), ST_GeomFromText('MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)))'), \
     '10.1.0.0', '0.0.0.0', '::ffff:1.2.3.4', '::', '123e4567-e89b-12d3-a456-426614174000', \
     '123e4567-e89b-12d3-a456-000000000000', 0, '2038-01-19 03:14:07.500'";
const SHOWN: &str = "f, small, part, flag, many, minus, bit_on, bit_off, hex(bits), hex(place), hex(shape), hex(areas), \
     v4, none4, v6, none6, uid, round, year_0, CAST(at AS string)";

#[test]
fn strange_types_are_the_same_in_table_snapshot_and_log() {
    let server = server(Product::Mysql);
    let url = server.database();
    execute(&url, &[STRANGE, &format!("INSERT INTO items VALUES (1, {STRANGE_VALUES})")]);
    let stream = stream(&url, &format!("SELECT {SHOWN} FROM changes"), &options(&url));
    stream.run().unwrap();
    execute(&url, &[&format!("INSERT INTO items VALUES (2, {STRANGE_VALUES})")]);
    stream.run().unwrap();
    let [snapshot, change] = &stream.rows()[..] else { panic!("{:?}", stream.rows()) };
    assert_eq!(snapshot, change);
    let expected = "16777216.0, 1.2345678, 1677.721, true, true, true, true, false, 03E8, ";
    assert!(change.starts_with(expected), "{change}");
    let expected = ", 10.1.0.0, 0.0.0.0, ::ffff:1.2.3.4, ::, 123e4567-e89b-12d3-a456-426614174000, \
                    123e4567-e89b-12d3-a456-000000000000, 0, 2038-01-19 03:14:07.5";
    assert!(change.ends_with(expected), "{change}");

    let world = World::new().unwrap();
    let table = world.session.read().format("mysql").option("url", &url).option("dbtable", "items").load().unwrap();
    table.create_or_replace_temp_view("items").unwrap();
    let sql = format!("SELECT {SHOWN} FROM events e JOIN items ON e.v = items.id");
    let story = Story::in_world(world, &sql, OutputMode::Append, "recorder", &Options::new());
    story.add(&[("a", 1)]);
    story.run().unwrap();
    let found: Vec<String> = story.world.recorder.batches().into_values().flatten().collect();
    assert_eq!(found, [snapshot.replace(", ", " | ")]);
}

#[test]
fn booleans_of_any_kind_are_mirrored() {
    let server = server(Product::Mysql);
    let url = server.database();
    let columns = "(id int PRIMARY KEY, flag boolean, switch bit(1), f float)";
    execute(&url, &[&format!("CREATE TABLE items {columns}"), &format!("CREATE TABLE mirror {columns}")]);
    execute(&url, &["INSERT INTO items VALUES (1, 2, 1, 16777216), (2, -1, 0, 1.2345678), (3, NULL, NULL, NULL)"]);
    let world = World::new().unwrap();
    let reader = world.session.read_stream().format("mysql-cdc").name("changes");
    let reader = reader.option("url", &url).option("dbtable", "items").load().unwrap();
    reader.create_or_replace_temp_view("changes").unwrap();
    let query = world.session.sql("SELECT id, flag, switch, f, _op FROM changes").unwrap();
    let writer =
        query.write_stream().format("mysql").option("url", &url).option("dbtable", "mirror").option("key", "id");
    let spec = writer.option("changeColumn", "_op").option("checkpointLocation", "checkpoint").spec().unwrap();
    let mut run = QueryRun::open(&world.session, spec, StopSignal::new()).unwrap();
    while run.run_next().unwrap().is_some() {}
    execute(&url, &["INSERT INTO items VALUES (4, 7, 1, 1.2345678)", "UPDATE items SET flag = -2 WHERE id = 2"]);
    while run.run_next().unwrap().is_some() {}
    run.close();
    let found = rows(&url, "SELECT id, flag, switch + 0, f * 1e0 FROM mirror ORDER BY id");
    assert_eq!(found, ["1|1|1|16777216", "2|0|0|1.2345677614212036", "3|-|-|-", "4|1|1|1.2345677614212036"]);
}

#[test]
fn a_date_of_zeros_is_refused_out_of_the_log_as_out_of_the_table() {
    let server = server(Product::Mysql);
    for column_type in ["timestamp NULL", "timestamp(3) NULL", "datetime"] {
        let url = server.database();
        execute(&url, &[&format!("CREATE TABLE items (id int PRIMARY KEY, at {column_type})")]);
        let insert = ["SET SESSION sql_mode = ''", "INSERT INTO items VALUES (1, '0000-00-00 00:00:00')"];
        let of_log = stream(&url, "SELECT id, at FROM changes", &options(&url));
        of_log.run().unwrap();
        execute(&url, &insert);
        let of_table = stream(&url, "SELECT id, at FROM changes", &options(&url));
        for stream in [of_log, of_table] {
            let error = stream.run().unwrap_err();
            assert!(error.contains("column `at` has the value `0000-00-00 00:00:00"), "{column_type}: {error}");
        }
    }
}

#[test]
fn a_column_that_the_log_has_compressed_is_refused_at_the_start() {
    let server = server(Product::Mysql);
    let url = server.database();
    execute(&url, &["CREATE TABLE items (id int PRIMARY KEY, name varchar(100) COMPRESSED)"]);
    let error = stream(&url, "SELECT id FROM changes", &options(&url)).run().unwrap_err();
    assert!(error.contains("column `name` is compressed"), "{error}");
}
