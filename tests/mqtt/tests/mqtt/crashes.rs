//! Queries that crash at every durable write, connections that break at chosen packets, brokers that go.

use crate::{FORMAT, Input, all_now, numbered, open, some, to_topic, until, write};
use databases_tests::query::{Changes, Story};
use millstream_checkpoint::faulty::Moment;
use millstream_common::OutputMode;
use mqtt_tests::proxy::{Cut, Kind, Proxy};
use mqtt_tests::{Broker, Client};
use std::time::Duration;
use streaming_stories::World;

/// Messages that come one after the other, while the query is away.
const UNITS: [std::ops::RangeInclusive<u32>; 4] = [1..=3, 4..=4, 5..=9, 10..=12];

/// Plays the units through a crash at a durable write; answers the values of all rows, what was written, and in which
/// write the crash came.
fn play(broker: &Broker, qos: u8, crash: Option<(usize, Moment)>) -> (Vec<String>, Vec<String>, Option<String>) {
    let (topic, mut client) = (broker.name("crash"), broker.client());
    let options = to_topic(broker.url(), &topic).with("qos", qos.to_string()).with("maxEntriesPerTrigger", "2");
    let changes = Changes::new(World::new().unwrap(), "SELECT CAST(value AS STRING) FROM changes", FORMAT, &options);
    let mut changes = changes.unwrap();
    changes.spec().trigger = millstream_runtime::Trigger::AvailableNow;
    let mut crashed = None;
    let mut run = |changes: &Changes| {
        loop {
            let outcome = changes.run();
            if changes.world.crashed() {
                crashed = crash.and_then(|(at, _)| changes.world.history().get(at - 1).cloned());
                changes.world.revive();
            }
            match outcome {
                Ok(_) => return,
                Err(error) => assert!(crashed.is_some(), "it failed without a crash: {error}"),
            }
        }
    };
    // The query begins before anything is written.
    run(&changes);
    changes.world.revive();
    if let Some((at, moment)) = crash {
        changes.world.crash_at(at, moment);
    }
    for unit in UNITS {
        for number in unit {
            client.publish(&topic, &number.to_string(), qos);
        }
        run(&changes);
    }
    (changes.rows(), changes.world.history(), crashed)
}

/// How often each of the numbers from 1 to 12 is there, without its first time.
fn doubled(rows: &[String]) -> Vec<String> {
    let mut rows: Vec<u32> = rows.iter().map(|row| row.parse().unwrap()).collect();
    rows.sort_unstable();
    let mut seen = rows.clone();
    seen.dedup();
    assert_eq!(seen, (1..=12).collect::<Vec<_>>(), "nothing is lost");
    rows.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_string()).collect()
}

#[test]
fn a_crash_at_any_durable_write_loses_nothing_and_doubles_only_what_was_not_acknowledged() {
    let broker = Broker::shared();
    for qos in [1, 2] {
        let (whole, history, _) = play(broker, qos, None);
        assert_eq!(whole, numbered(1..=12));
        let mut count = 0;
        for at in 1..=history.len() {
            for moment in [Moment::Before, Moment::After] {
                let (rows, _, crashed) = play(broker, qos, Some((at, moment)));
                let doubled = doubled(&rows);
                // Only a file of the spool that is there, and of which the broker has not heard, is given again.
                let is_of_spool = crashed.as_ref().is_some_and(|write| write.contains("/spool/"));
                let is_between = qos == 1 && moment == Moment::After && is_of_spool;
                assert_eq!(!doubled.is_empty(), is_between, "{doubled:?} {moment:?} {crashed:?}, QoS {qos}");
                count += doubled.len();
            }
        }
        assert_eq!(count > 0, qos == 1, "QoS {qos}");
    }
}

#[test]
fn a_connection_that_breaks_at_an_answer_loses_nothing_and_with_quality_2_doubles_nothing() {
    let Some(broker) = Broker::own("") else { return };
    let proxy = Proxy::start(broker.port());
    for (kind, qos) in [(Kind::Acknowledgement, 1), (Kind::Receipt, 2), (Kind::Completion, 2)] {
        for cut in [Cut::Before, Cut::After] {
            let topic = broker.name("cut");
            let input = Input::of(&proxy.url(), &topic, &[("qos", &qos.to_string())]);
            let mut source = input.begin();
            proxy.cut(cut, kind);
            broker.client().publish(&topic, "1", qos);
            until(source.as_mut(), 1);
            let rows = all_now(source.as_mut());
            assert!(!proxy.is_armed(), "{kind:?}");
            // Only what the broker did not hear of, and cannot be told from a new message, is there again.
            let count = if qos == 1 && cut == Cut::Before { 2 } else { 1 };
            assert_eq!(rows, vec!["1"; count], "{kind:?} {cut:?}");
        }
    }
}

#[test]
fn a_sink_whose_connection_breaks_sends_again_what_had_no_answer() {
    let Some(broker) = Broker::own("") else { return };
    let proxy = Proxy::start(broker.port());
    let mut reader = broker.client();
    reader.subscribe("out");
    for qos in ["0", "1", "2"] {
        for cut in [Cut::Before, Cut::After] {
            let options = to_topic(&proxy.url(), "out").with("qos", qos).with("maxInflight", "2");
            let mut sink = open(&options).unwrap();
            write(sink.as_mut(), 0, &some(&["1"])).unwrap();
            proxy.cut(cut, Kind::Publish);
            assert_eq!(write(sink.as_mut(), 1, &some(&["2", "3", "4", "5"])).unwrap(), 4);
            assert!(!proxy.is_armed());
            let mut found = reader.values();
            let count = found.len();
            found.sort();
            found.dedup();
            assert_eq!(found, numbered(1..=5), "QoS {qos} {cut:?}");
            // With quality 2 the broker passes nothing on before it has heard that it may.
            assert_eq!(count > 5, cut == Cut::After && qos != "2", "QoS {qos} {cut:?}: {count}");
        }
    }
}

#[test]
fn a_crash_at_any_durable_write_writes_every_row_and_some_again() {
    let broker = Broker::shared();
    let units: [&[(&str, i64)]; 4] = [&[("a", 1), ("b", 2)], &[("a", 3)], &[], &[("c", 4), ("a", 5)]];
    let play = |crash: Option<(usize, Moment)>| {
        let (topic, mut reader) = (broker.name("out"), broker.client());
        reader.subscribe(&topic);
        let world = World::new().unwrap();
        if let Some((at, moment)) = crash {
            world.crash_at(at, moment);
        }
        let sql = "SELECT concat(k, CAST(v AS STRING)) AS value FROM events";
        let story = Story::in_world(world, sql, OutputMode::Append, FORMAT, &to_topic(broker.url(), &topic));
        for unit in units {
            story.add(unit);
            while let Err(error) = story.run() {
                assert!(story.world.crashed(), "it failed without a crash: {error}");
                story.world.revive();
            }
        }
        (reader.values(), story.world.history().len())
    };
    let (whole, writes) = play(None);
    assert_eq!(whole, ["a1", "b2", "a3", "c4", "a5"]);
    for at in (1..=writes).step_by(3) {
        for moment in [Moment::Before, Moment::After] {
            let (mut found, _) = play(Some((at, moment)));
            assert!(found.len() <= 7, "only one batch is there again: {found:?}");
            found.sort();
            found.dedup();
            assert_eq!(found, ["a1", "a3", "a5", "b2", "c4"], "a crash {moment:?} write {at} of {writes}");
        }
    }
}

#[test]
fn a_broker_that_goes_and_comes_back_in_the_middle_loses_nothing() {
    let Some(broker) = Broker::own("") else { return };
    let options = to_topic(broker.url(), "t").with("retryTimeout", "20 seconds");
    let story = Story::new(
        "SELECT CAST(v AS STRING) AS value FROM events",
        OutputMode::Append,
        FORMAT,
        &options.clone().with("qos", "2"),
    );
    let sql = "SELECT CAST(value AS STRING) FROM changes";
    let changes = Changes::new(World::new().unwrap(), sql, FORMAT, &options.with("qos", "2")).unwrap();
    let mut reader = changes.open().unwrap();
    assert!(reader.run_next().unwrap().is_none(), "nothing is there yet");
    story.add(&[("a", 0)]);
    let mut run = story.open().unwrap();
    run.run_next().unwrap().unwrap();
    for number in 1..4 {
        story.add(&[("a", number)]);
        broker.stop();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                broker.restart();
            });
            run.run_next().unwrap().unwrap();
        });
        let begin = std::time::Instant::now();
        while !changes.rows().contains(&number.to_string()) {
            reader.run_next().unwrap();
            assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", changes.rows());
        }
    }
    run.close();
    reader.close();
    // What is under way in the moment when a broker goes it may give again, as if it were new.
    let mut rows = changes.rows();
    rows.sort();
    rows.dedup();
    assert_eq!(rows, ["0", "1", "2", "3"]);
}

#[test]
fn nothing_is_lost_whenever_the_broker_goes_and_only_what_was_under_way_then_is_there_again() {
    let Some(broker) = Broker::own("") else { return };
    for qos in [1, 2] {
        let topic = broker.name("goes");
        let input = Input::of(broker.url(), &topic, &[("qos", &qos.to_string()), ("maxInflight", "3")]);
        let mut source = input.begin();
        let mut all = Vec::new();
        for round in 0..5 {
            let mut client = Client::of(broker.url());
            for number in 0..20 {
                client.publish(&topic, &format!("{round}-{number:02}"), qos);
                all.push(format!("{round}-{number:02}"));
            }
            drop(client);
            broker.stop();
            if round % 2 == 0 {
                drop(source);
                broker.restart();
                source = input.open();
            } else {
                broker.restart();
            }
        }
        until(source.as_mut(), 100);
        let mut found = all_now(source.as_mut());
        // With quality 2 it is the broker that begins again with what it had begun before.
        assert!(found.len() <= 100 + 5 * 10, "QoS {qos}: {found:?}");
        found.sort();
        found.dedup();
        assert_eq!(found, all, "QoS {qos}");
    }
}
