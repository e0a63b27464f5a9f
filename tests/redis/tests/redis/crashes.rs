//! Queries that crash at every durable write, and servers that are killed under them.

use crate::{FORMAT, to_keys, to_stream};
use databases_tests::query::{Changes, Story};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{Options, OutputMode};
use redis_tests::Redis;
use std::time::Duration;
use streaming_stories::World;

const COUNTS: &str = "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k";
/// Rows that come one after the other; an empty one is a batch without rows.
const UNITS: [&[(&str, i64)]; 4] = [&[("a", 1), ("b", 2)], &[("a", 3)], &[], &[("c", 4), ("a", 5)]];

/// Plays the units, through a crash at a durable write; answers how many writes there were.
fn play(sql: &str, mode: OutputMode, options: &Options, crash: Option<(usize, Moment)>) -> usize {
    let world = World::new().unwrap();
    if let Some((at, moment)) = crash {
        world.crash_at(at, moment);
    }
    let story = Story::in_world(world, sql, mode, FORMAT, options);
    for unit in UNITS {
        story.add(unit);
        while let Err(error) = story.run() {
            assert!(story.world.crashed(), "it failed without a crash: {error}");
            story.world.revive();
        }
    }
    story.world.history().len()
}

/// Plays the units straight and with crashes; `found` must be the same each time.
fn everywhere(
    sql: &str,
    mode: OutputMode,
    about: &str,
    options: &dyn Fn(&str, &str) -> Options,
    found: &dyn Fn(&str) -> Vec<String>,
) -> Vec<String> {
    let redis = Redis::shared();
    let name = redis.name(about);
    let writes = play(sql, mode, &options(redis.url(), &name), None);
    let whole = found(&name);
    // Writes of snapshots and leases vary a little; every third moment is enough for one run of the tests.
    for at in (1..=writes).step_by(3) {
        for moment in [Moment::Before, Moment::After] {
            let name = redis.name(about);
            play(sql, mode, &options(redis.url(), &name), Some((at, moment)));
            assert_eq!(found(&name), whole, "a crash {moment:?} write {at} of {writes}");
        }
    }
    whole
}

#[test]
fn a_crash_at_any_durable_write_adds_every_entry_once() {
    let found = |name: &str| Redis::shared().client().entries(name);
    let whole = everywhere("SELECT k, v FROM events", OutputMode::Append, "stream", &to_stream, &found);
    assert_eq!(whole, ["k a v 1", "k b v 2", "k a v 3", "k c v 4", "k a v 5"]);
}

/// The hashes below a prefix.
fn hashes(prefix: &str) -> Vec<String> {
    let mut client = Redis::shared().client();
    client.keys(&format!("{prefix}*")).iter().map(|key| client.hash(key)).collect()
}

#[test]
fn a_crash_at_any_durable_write_leaves_every_key_as_it_should_be() {
    let whole = everywhere(COUNTS, OutputMode::Update, "update", &to_keys, &hashes);
    assert_eq!(whole, ["k=a n=3 total=9", "k=b n=1 total=2", "k=c n=1 total=4"]);
    let last =
        "SELECT k, n, total FROM (SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k) c WHERE n > 1";
    let whole = everywhere(last, OutputMode::Complete, "complete", &to_keys, &hashes);
    assert_eq!(whole, ["k=a n=3 total=9"]);
}

#[test]
fn a_crash_at_any_durable_write_reads_every_entry_once() {
    let redis = Redis::shared();
    let play = |crash: Option<(usize, Moment)>| {
        let (one, other) = (redis.name("one"), redis.name("other"));
        let mut client = redis.client();
        let world = World::new().unwrap();
        if let Some((at, moment)) = crash {
            world.crash_at(at, moment);
        }
        let options = Options::new().with("url", redis.url()).with("stream", format!("{one},{other}"));
        let options = options.with("startingOffsets", "earliest").with("maxEntriesPerTrigger", "3");
        let sql = "SELECT id, fields['v'] FROM changes";
        let changes = Changes::new(world, sql, FORMAT, &options).unwrap();
        for (of_one, of_other) in [(1..=4, 1..=1), (5..=5, 2..=4), (6..=7, 5..=5)] {
            client.add_entries(&one, of_one);
            client.add_entries(&other, of_other);
            while let Err(error) = changes.run() {
                assert!(changes.world.crashed(), "it failed without a crash: {error}");
                changes.world.revive();
            }
        }
        (changes.rows(), changes.world.history().len())
    };
    let (whole, writes) = play(None);
    let mut sorted = whole.clone();
    sorted.sort();
    let mut wanted: Vec<String> = (1..=7).chain(1..=5).map(|number: u32| format!("{number}-0, {number}")).collect();
    wanted.sort();
    assert_eq!(sorted, wanted);
    for at in (1..=writes).step_by(3) {
        for moment in [Moment::Before, Moment::After] {
            assert_eq!(play(Some((at, moment))).0, whole, "a crash {moment:?} write {at} of {writes}");
        }
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_loses_and_doubles_nothing() {
    let Some(redis) = Redis::own(&[]) else { return };
    let mut options = to_stream(redis.url(), "out");
    options.set("retryTimeout", "20 seconds");
    let story = Story::new("SELECT k, v FROM events", OutputMode::Append, FORMAT, &options);
    story.add(&[("a", 0)]);
    let mut run = story.open().unwrap();
    run.run_next().unwrap().unwrap();

    let options = Options::new().with("url", redis.url()).with("stream", "out").with("startingOffsets", "earliest");
    let sql = "SELECT fields['v'] FROM changes";
    let changes = Changes::new(World::new().unwrap(), sql, FORMAT, &options).unwrap();
    let mut reader = changes.open().unwrap();
    reader.run_next().unwrap().unwrap();
    for number in 1..4 {
        story.add(&[("a", number)]);
        redis.kill();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                redis.restart();
            });
            run.run_next().unwrap().unwrap();
        });
        redis.kill();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                redis.restart();
            });
            reader.run_next().unwrap().unwrap();
        });
    }
    run.close();
    reader.close();
    assert_eq!(redis.client().entries("out"), ["k a v 0", "k a v 1", "k a v 2", "k a v 3"]);
    assert_eq!(changes.rows(), ["0", "1", "2", "3"]);
}
