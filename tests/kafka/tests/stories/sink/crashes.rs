//! A query that writes to Kafka, with a crash before and after every durable write of its checkpoint.

use kafka_tests::{Isolation, Kafka};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{Options, OutputMode, StopSignal};
use millstream_runtime::{QueryRun, QuerySpec, Settings, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use std::collections::BTreeMap;
use std::time::Duration;
use streaming_stories::World;

const BATCHES: u64 = 3;

/// Counts in update mode; the records of each life of the test have a key of their own.
fn spec(kafka: &Kafka, topic: &str, tag: &str) -> QuerySpec {
    let options = Options::new().with("rowsPerBatch", "6").with("numPartitions", "1");
    let source = SourceSpec { name: "numbers".into(), format: "rate-micro-batch".into(), schema: None, options };
    let options = Options::new().with("topic", topic).with("kafka.bootstrap.servers", kafka.bootstrap());
    let sink = SinkSpec { format: "kafka".into(), options };
    let sql = format!(
        "SELECT '{tag}' AS key, concat(CAST(k AS STRING), '=', CAST(n AS STRING)) AS value
         FROM (SELECT value % 3 AS k, count(*) AS n FROM numbers GROUP BY value % 3) c"
    );
    QuerySpec {
        mode: OutputMode::Update,
        checkpoint: Some("checkpoint".into()),
        // The thread that writes snapshots would make the order of writes vary.
        settings: Settings { partitions: 1, changelogs_before_snapshot: usize::MAX, ..Settings::default() },
        ..QuerySpec::new(sql, vec![StreamSpec { source, event_time: None, drop_duplicates: None }], sink)
    }
}

fn life(world: &World, spec: QuerySpec) -> Result<(), String> {
    let text = |error: millstream_runtime::RuntimeError| millstream_common::describe_chain(&error);
    let mut run = QueryRun::open(&world.session, spec, StopSignal::new()).map_err(text)?;
    while run.next_batch().0 < BATCHES {
        world.clock.advance(Duration::from_secs(1));
        run.run_next().map_err(text)?;
    }
    run.close();
    Ok(())
}

#[test]
fn a_crash_at_any_durable_write_leaves_every_record_once() {
    let kafka = Kafka::shared();
    let topic = kafka.topic("crashes", 1);
    let whole = World::new().unwrap();
    life(&whole, spec(kafka, &topic, "whole")).unwrap();
    let writes = whole.history().len();
    assert!(writes >= 9, "{writes}");

    let mut tags = vec!["whole".to_owned()];
    for write in 1..=writes {
        for moment in [Moment::Before, Moment::After] {
            let (world, tag) = (World::new().unwrap(), format!("{write} {moment:?}"));
            world.crash_at(write, moment);
            let spec = || spec(kafka, &topic, &tag);
            match life(&world, spec()) {
                Ok(()) => {}
                Err(error) if !world.crashed() => panic!("{tag}: {error}"),
                Err(_) => {
                    world.revive();
                    life(&world, spec()).unwrap_or_else(|error| panic!("{tag}: {error}"));
                }
            }
            tags.push(tag);
        }
    }

    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in kafka.read(&topic, Isolation::Committed) {
        let tag = String::from_utf8(record.key.clone().unwrap()).unwrap();
        found.entry(tag).or_default().push(record.text());
    }
    let of_batch = |batch: u64| (0..3).map(move |key| format!("{key}={}", 2 * (batch + 1)));
    let mut wanted: Vec<String> = (0..BATCHES).flat_map(of_batch).collect();
    wanted.sort();
    for tag in tags {
        let mut values = found.remove(&tag).unwrap_or_default();
        values.sort();
        assert_eq!(values, wanted, "crash at {tag}");
    }
    assert!(found.is_empty(), "{found:?}");
}
