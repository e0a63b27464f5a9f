//! Static tables.

use crate::{server, server_to_kill, stories};
use databases_tests::query::{Story, rows as pairs};
use databases_tests::{Product, execute};
use millstream_common::{Options, describe_chain};
use millstream_runtime::OutputMode;
use std::time::Duration;
use streaming_stories::World;

stories! {
    a_stream_is_joined_with_a_table_and_with_a_query
    tables_may_have_columns_of_the_same_names
    a_table_is_read_again_as_its_policy_says
    a_table_that_is_old_when_the_first_batch_comes_is_read_again
    a_table_whose_columns_changed_is_read_by_the_names_of_the_plan_or_ends_the_query
    a_server_that_is_away_for_a_moment_is_waited_for_at_the_start_and_at_a_refresh
}

/// What the batches gave, in order.
fn found(story: &Story) -> Vec<String> {
    let rows = story.world.recorder.batches().into_values().flatten();
    rows.map(|row| row.replace(" | ", ", ")).collect()
}

fn a_stream_is_joined_with_a_table_and_with_a_query(product: Product) {
    let server = server(product);
    let url = server.database();
    let (table, row) = match product {
        Product::Postgres => (
            "CREATE TABLE names (k text, name text, since timestamptz, code bytea, price numeric(5,2), id uuid)",
            "INSERT INTO names VALUES ('a', 'Ann', '2024-05-01 12:00:00+02', '\\x00ff', 1.25, \
             '00000000-0000-0000-0000-000000000001')",
        ),
        Product::Mysql => (
            "CREATE TABLE names (k varchar(9), name text, since timestamp NULL, code varbinary(9), price decimal(5,2), id text)",
            "INSERT INTO names VALUES ('a', 'Ann', '2024-05-01 10:00:00', x'00ff', 1.25, \
             '00000000-0000-0000-0000-000000000001')",
        ),
    };
    execute(&url, &[table, row, "INSERT INTO names VALUES ('b', NULL, NULL, NULL, NULL, NULL)"]);
    let world = World::new().unwrap();
    let table = |option: &str, value: &str| {
        world.session.read().format(server.format()).option("url", &url).option(option, value).load().unwrap()
    };
    table("dbtable", "names").create_or_replace_temp_view("names").unwrap();
    let lengths = table("query", "SELECT k, length(name) AS n FROM names WHERE name IS NOT NULL");
    lengths.create_or_replace_temp_view("lengths").unwrap();
    let sql = "SELECT e.k, name, CAST(since AS STRING), hex(code), price, id, n \
               FROM events e JOIN names ON e.k = names.k LEFT JOIN lengths l ON e.k = l.k";
    let story = Story::in_world(world, sql, OutputMode::Append, "recorder", &Options::new());
    story.add(&[("a", 1), ("b", 2), ("c", 3)]);
    story.run().unwrap();
    let mut found = found(&story);
    found.sort();
    assert_eq!(
        found,
        [
            "a, Ann, 2024-05-01 10:00:00, 00FF, 1.25, 00000000-0000-0000-0000-000000000001, 3",
            "b, null, null, null, null, null, null"
        ]
    );
}

fn tables_may_have_columns_of_the_same_names(product: Product) {
    let server = server(product);
    let url = server.database();
    for table in ["users", "shops"] {
        execute(
            &url,
            &[
                &format!("CREATE TABLE {table} (id varchar(9), name varchar(9))"),
                &format!("INSERT INTO {table} VALUES ('a', 'a of {}'), ('b', 'b')", &table[..1]),
            ],
        );
    }
    let world = World::new().unwrap();
    for table in ["users", "shops"] {
        let reader = world.session.read().format(server.format()).option("url", &url).option("dbtable", table);
        reader.load().unwrap().create_or_replace_temp_view(table).unwrap();
    }
    // A table of rows, whose columns have the names of the stream's.
    let more = pairs(&[("a", 10), ("z", 20)]);
    let more = world.session.create_data_frame(more.schema(), vec![more]).unwrap();
    more.create_or_replace_temp_view("more").unwrap();
    let sql = "SELECT e.k, users.id, users.name, shops.id, shops.name, more.v + e.v \
               FROM events e JOIN users ON e.k = users.id LEFT JOIN shops ON users.id = shops.id AND e.v > 1 \
               LEFT JOIN more ON more.k = shops.id WHERE users.name <> 'b'";
    let story = Story::in_world(world, sql, OutputMode::Append, "recorder", &Options::new());
    story.add(&[("a", 1), ("a", 2), ("b", 2), ("c", 3)]);
    story.run().unwrap();
    let mut found = found(&story);
    found.sort();
    assert_eq!(found, ["a, a, a of u, a, a of s, 12", "a, a, a of u, null, null, null"]);
}

fn a_table_is_read_again_as_its_policy_says(product: Product) {
    let server = server(product);
    let url = server.database();
    execute(&url, &["CREATE TABLE names (k varchar(9), name varchar(9))", "INSERT INTO names VALUES ('a', 'first')"]);
    let world = World::new().unwrap();
    for (view, refresh) in [("a", "every batch"), ("s", "10 minutes"), ("o", "never")] {
        let table = world.session.read().format(server.format()).option("url", &url).option("dbtable", "names");
        table.option("refresh", refresh).load().unwrap().create_or_replace_temp_view(view).unwrap();
    }
    let sql = "SELECT a.name, s.name, o.name FROM events e JOIN a ON e.k = a.k JOIN s ON e.k = s.k JOIN o ON e.k = o.k";
    let story = Story::in_world(world, sql, OutputMode::Append, "recorder", &Options::new());
    let mut run = story.open().unwrap();
    for (name, minutes) in [("first", 0), ("second", 1), ("third", 10), ("fourth", 1)] {
        execute(&url, &[&format!("UPDATE names SET name = '{name}'")]);
        story.world.clock.advance(Duration::from_secs(minutes * 60));
        story.add(&[("a", 1)]);
        run.run_next().unwrap().unwrap();
    }
    run.close();
    let expected = ["first, first, first", "second, first, first", "third, third, first", "fourth, third, first"];
    assert_eq!(found(&story), expected);

    let often = story.world.session.read().format(server.format()).option("url", &url).option("dbtable", "names");
    let error = often.option("refresh", "often").load().map(drop).unwrap_err();
    assert!(error.to_string().contains("every batch") || format!("{error:?}").contains("every batch"), "{error:?}");
}

/// A query that joins its events with table `names`, which is read again as `refresh` says.
fn refreshed(format: &str, url: &str, refresh: &str) -> Story {
    let world = World::new().unwrap();
    let table = world.session.read().format(format).option("url", url).option("dbtable", "names");
    table.option("refresh", refresh).load().unwrap().create_or_replace_temp_view("names").unwrap();
    let sql = "SELECT e.v, names.k, names.name FROM events e JOIN names ON e.k = names.k";
    Story::in_world(world, sql, OutputMode::Append, "recorder", &Options::new())
}

fn a_table_that_is_old_when_the_first_batch_comes_is_read_again(product: Product) {
    let server = server(product);
    let url = server.database();
    execute(&url, &["CREATE TABLE names (k varchar(9), name varchar(9))", "INSERT INTO names VALUES ('a', 'old')"]);
    let story = refreshed(server.format(), &url, "10 minutes");
    let mut run = story.open().unwrap();
    execute(&url, &["UPDATE names SET name = 'new'"]);
    for minutes in [10, 1] {
        story.world.clock.advance(Duration::from_secs(minutes * 60));
        story.add(&[("a", 1)]);
        run.run_next().unwrap().unwrap();
        execute(&url, &["UPDATE names SET name = 'newer'"]);
    }
    run.close();
    assert_eq!(found(&story), ["1, a, new", "1, a, new"]);
}

fn a_table_whose_columns_changed_is_read_by_the_names_of_the_plan_or_ends_the_query(product: Product) {
    let server = server(product);
    let url = server.database();
    execute(&url, &["CREATE TABLE names (k varchar(9), name varchar(9))", "INSERT INTO names VALUES ('a', 'first')"]);
    let story = refreshed(server.format(), &url, "every batch");
    let mut run = story.open().unwrap();
    let mut next = |number| {
        story.add(&[("a", number)]);
        run.run_next().map_err(|error| describe_chain(&error))
    };
    next(1).unwrap();
    // Now its second column is another one of the same type.
    execute(
        &url,
        &[
            "ALTER TABLE names DROP COLUMN name",
            "ALTER TABLE names ADD COLUMN secret varchar(9)",
            "ALTER TABLE names ADD COLUMN name varchar(9)",
            "UPDATE names SET secret = 'hidden', name = 'second'",
        ],
    );
    next(2).unwrap();
    execute(&url, &["ALTER TABLE names DROP COLUMN name"]);
    let error = next(3).unwrap_err();
    assert!(error.contains("cannot read the table") && error.contains("name"), "{error}");
    assert_eq!(found(&story), ["1, a, first", "2, a, second"]);
}

fn a_server_that_is_away_for_a_moment_is_waited_for_at_the_start_and_at_a_refresh(product: Product) {
    let Some(server) = server_to_kill(product) else { return };
    let url = server.database();
    execute(&url, &["CREATE TABLE names (k varchar(9), name varchar(9))", "INSERT INTO names VALUES ('a', 'there')"]);
    let story = refreshed(server.format(), &url, "every batch");
    story.add(&[("a", 1)]);
    let server = &*server;
    let comes_back = || {
        std::thread::sleep(Duration::from_secs(1));
        server.restart();
    };
    server.kill();
    let mut run = std::thread::scope(|scope| {
        scope.spawn(comes_back);
        story.open().unwrap()
    });
    server.kill();
    std::thread::scope(|scope| {
        scope.spawn(comes_back);
        run.run_next().unwrap().unwrap();
    });
    run.close();
    assert_eq!(found(&story), ["1, a, there"]);
}
