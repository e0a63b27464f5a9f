//! Queries that crash at every durable write, and servers that are killed under them.

use crate::{FORMAT, to_stream};
use databases_tests::query::{Changes, Story};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{Options, OutputMode};
use nats_tests::Nats;
use std::time::Duration;
use streaming_stories::World;

/// Rows that come one after the other; an empty one is a batch without rows.
const UNITS: [&[(&str, i64)]; 4] = [&[("a", 1), ("b", 2)], &[("a", 3)], &[], &[("c", 4), ("a", 5)]];
const ROWS: &str = "SELECT k || ' ' || v AS value FROM events";
const COUNTS: &str = "SELECT k || ' ' || n AS value FROM (SELECT k, count(*) AS n FROM events GROUP BY k) c";

/// Plays the units, through a crash at a durable write; answers how many writes there were.
fn play(sql: &str, mode: OutputMode, stream: &str, crash: Option<(usize, Moment)>) -> usize {
    let world = World::new().unwrap();
    if let Some((at, moment)) = crash {
        world.crash_at(at, moment);
    }
    let story = Story::in_world(world, sql, mode, FORMAT, &to_stream(Nats::shared().servers(), stream));
    for unit in UNITS {
        story.add(unit);
        while let Err(error) = story.run() {
            assert!(story.world.crashed(), "it failed without a crash: {error}");
            story.world.revive();
        }
    }
    story.world.history().len()
}

/// What a stream has, in an order of its own: within a batch rows have none.
fn found(stream: &str) -> Vec<String> {
    let mut texts = Nats::shared().client().texts(stream);
    texts.sort();
    texts
}

#[test]
fn a_crash_at_any_durable_write_publishes_every_row_once() {
    let nats = Nats::shared();
    for (sql, mode, wanted) in [
        (ROWS, OutputMode::Append, ["a 1", "a 3", "a 5", "b 2", "c 4"]),
        (COUNTS, OutputMode::Update, ["a 1", "a 2", "a 3", "b 1", "c 1"]),
    ] {
        let stream = nats.stream("whole");
        let writes = play(sql, mode, &stream, None);
        assert_eq!(found(&stream), wanted);
        // Writes of snapshots and leases vary a little; every third moment is enough for one run of the tests.
        for at in (1..=writes).step_by(3) {
            for moment in [Moment::Before, Moment::After] {
                let stream = nats.stream("crash");
                play(sql, mode, &stream, Some((at, moment)));
                assert_eq!(found(&stream), wanted, "a crash {moment:?} write {at} of {writes}");
            }
        }
    }
}

#[test]
fn a_crash_at_any_durable_write_reads_every_message_once() {
    let nats = Nats::shared();
    let client = nats.client();
    let play = |crash: Option<(usize, Moment)>| {
        let stream = nats.stream("read");
        let world = World::new().unwrap();
        if let Some((at, moment)) = crash {
            world.crash_at(at, moment);
        }
        let options = Options::new().with("servers", nats.servers()).with("stream", stream.as_str());
        let options = options.with("startingOffsets", "earliest").with("maxOffsetsPerTrigger", "3");
        let options = options.with("subject", format!("{stream}.a"));
        let sql = "SELECT sequence, CAST(data AS STRING) FROM changes";
        let changes = Changes::new(world, sql, FORMAT, &options).unwrap();
        for (ours, others) in [(1..=4, 1..=1), (5..=5, 2..=4), (6..=7, 5..=5)] {
            client.publish_numbers(&format!("{stream}.a"), ours);
            client.publish_numbers(&format!("{stream}.b"), others);
            while let Err(error) = changes.run() {
                assert!(changes.world.crashed(), "it failed without a crash: {error}");
                changes.world.revive();
            }
        }
        (changes.rows(), changes.world.history().len())
    };
    let (whole, writes) = play(None);
    assert_eq!(whole, ["1, 1", "2, 2", "3, 3", "4, 4", "6, 5", "10, 6", "11, 7"]);
    for at in (1..=writes).step_by(3) {
        for moment in [Moment::Before, Moment::After] {
            assert_eq!(play(Some((at, moment))).0, whole, "a crash {moment:?} write {at} of {writes}");
        }
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_loses_and_doubles_nothing() {
    let Some(nats) = Nats::own("") else { return };
    let stream = nats.stream("out");
    let mut options = to_stream(nats.servers(), &stream);
    options.set("retryTimeout", "20 seconds");
    let story = Story::new("SELECT CAST(v AS STRING) AS value FROM events", OutputMode::Append, FORMAT, &options);
    story.add(&[("a", 0)]);
    let mut run = story.open().unwrap();
    run.run_next().unwrap().unwrap();

    let options = Options::new().with("servers", nats.servers()).with("stream", stream.as_str());
    let options = options.with("startingOffsets", "earliest");
    let sql = "SELECT CAST(data AS STRING) FROM changes";
    let changes = Changes::new(World::new().unwrap(), sql, FORMAT, &options).unwrap();
    let mut reader = changes.open().unwrap();
    reader.run_next().unwrap().unwrap();
    let back_soon = |work: &mut dyn FnMut()| {
        nats.kill();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                nats.restart();
            });
            work();
        });
    };
    for number in 1..4 {
        story.add(&[("a", number)]);
        back_soon(&mut || drop(run.run_next().unwrap().unwrap()));
        back_soon(&mut || drop(reader.run_next().unwrap().unwrap()));
    }
    run.close();
    reader.close();
    assert_eq!(nats.client().texts(&stream), ["0", "1", "2", "3"]);
    assert_eq!(changes.rows(), ["0", "1", "2", "3"]);
}
