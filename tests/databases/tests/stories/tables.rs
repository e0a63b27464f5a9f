//! Static tables.

use crate::server;
use databases_tests::postgres::execute;
use databases_tests::query::Story;
use millstream_common::Options;
use millstream_runtime::OutputMode;
use streaming_stories::World;

#[test]
fn a_stream_is_joined_with_a_table_and_with_a_query() {
    let held = server();
    let url = held.database();
    execute(
        &url,
        "CREATE TABLE names (k text, name text, since timestamptz, code bytea, price numeric(5,2), id uuid); \
        INSERT INTO names VALUES ('a', 'Ann', '2024-05-01 12:00:00+02', '\\x00ff', 1.25, '00000000-0000-0000-0000-000000000001'), ('b', NULL, NULL, NULL, NULL, NULL)",
    );
    let world = World::new().unwrap();
    let table = |option: &str, value: &str| {
        world.session.read().format("postgresql").option("url", &url).option(option, value).load().unwrap()
    };
    table("dbtable", "names").create_or_replace_temp_view("names").unwrap();
    table("query", "SELECT k, length(name) AS n FROM names WHERE name IS NOT NULL")
        .create_or_replace_temp_view("lengths")
        .unwrap();
    let sql = "SELECT e.k, name, CAST(since AS STRING), hex(code), price, id, n FROM events e JOIN names ON e.k = names.k LEFT JOIN lengths l ON e.k = l.k";
    let story = Story::in_world(world, sql, OutputMode::Append, "recorder", &Options::new());
    story.add(&[("a", 1), ("b", 2), ("c", 3)]);
    story.run().unwrap();
    let mut found: Vec<String> =
        story.world.recorder.batches().into_values().flatten().map(|row| row.replace(" | ", ", ")).collect();
    found.sort();
    assert_eq!(
        found,
        [
            "a, Ann, 2024-05-01 10:00:00, 00FF, 1.25, 00000000-0000-0000-0000-000000000001, 3",
            "b, null, null, null, null, null, null"
        ]
    );
}

#[test]
fn a_table_is_read_again_as_its_policy_says() {
    let held = server();
    let url = held.database();
    execute(&url, "CREATE TABLE names (k text, name text); INSERT INTO names VALUES ('a', 'first')");
    let world = World::new().unwrap();
    for (view, refresh) in [("a", "every batch"), ("s", "10 minutes"), ("o", "never")] {
        // Columns of different names, for all of them come beside those of the stream.
        let query = format!("SELECT k AS k_{view}, name AS name_{view} FROM names");
        let table = world.session.read().format("postgresql").option("url", &url).option("query", query);
        table.option("refresh", refresh).load().unwrap().create_or_replace_temp_view(view).unwrap();
    }
    let sql = "SELECT name_a, name_s, name_o FROM events e JOIN a ON e.k = k_a JOIN s ON e.k = k_s JOIN o ON e.k = k_o";
    let story = Story::in_world(world, sql, OutputMode::Append, "recorder", &Options::new());
    let mut run = story.open().unwrap();
    for (name, minutes) in [("first", 0), ("second", 1), ("third", 10), ("fourth", 1)] {
        execute(&url, &format!("UPDATE names SET name = '{name}'"));
        story.world.clock.advance(std::time::Duration::from_secs(minutes * 60));
        story.add(&[("a", 1)]);
        run.run_next().unwrap().unwrap();
    }
    run.close();
    let found: Vec<String> =
        story.world.recorder.batches().into_values().flatten().map(|row| row.replace(" | ", ", ")).collect();
    assert_eq!(found, ["first, first, first", "second, first, first", "third, third, first", "fourth, third, first"]);

    let error = story.world.session.read().format("postgresql").option("url", &url).option("dbtable", "names");
    let error = error.option("refresh", "often").load().map(drop).unwrap_err();
    assert!(error.to_string().contains("every batch") || format!("{error:?}").contains("every batch"), "{error:?}");
}
