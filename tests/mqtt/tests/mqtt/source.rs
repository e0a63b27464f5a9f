//! Reading topics.

use crate::{FORMAT, Input, all_now, next, numbered, until, values};
use millstream_common::{ManualClock, Options, describe_chain};
use millstream_source::connectors::mqtt::MqttSourceFactory;
use millstream_source::contract::{self, Subject, lines};
use millstream_source::{Offset, SourceSpec};
use mqtt_tests::{Broker, Client};
use std::sync::Arc;

#[test]
fn the_source_keeps_what_every_source_promises() {
    let broker = Broker::shared();
    for qos in ["1", "2"] {
        let topic = broker.name("contract");
        let mut client = broker.client();
        let mut count = 0;
        let mut feed = || {
            for quality in [0, 1, 2] {
                count += 1;
                client.publish(&format!("{topic}/{quality}"), &count.to_string(), quality);
            }
        };
        let options = Options::new().with("url", broker.url()).with("topic", format!("{topic}/#"));
        let options = options.with("qos", qos).with("spoolInterval", "20 ms");
        contract::source(&mut Subject {
            factory: Arc::new(MqttSourceFactory::default()),
            spec: SourceSpec { name: "s".into(), format: FORMAT.into(), schema: None, options },
            feed: &mut feed,
            clock: Arc::new(ManualClock::at(0)),
            replays_after_restart: true,
        });
    }
}

#[test]
fn a_row_has_all_that_a_message_says() {
    let broker = Broker::shared();
    let (topic, mut client) = (broker.name("rows"), broker.client());
    client.retain(&format!("{topic}/old/kept"), "was here");
    let input = Input::of(broker.url(), &format!("{topic}/old/+, {topic}/new/#"), &[("qos", "2")]);
    let mut source = input.open();
    until(source.as_mut(), 1);
    client.publish(&format!("{topic}/new"), "", 0);
    client.publish_with(&format!("{topic}/new/a/b"), "x", &[("k", "v"), ("k", "w")]);
    client.publish(&format!("{topic}/other"), "no", 1);
    client.publish(&format!("{topic}/old/kept/deeper"), "no", 1);
    client.retain(&format!("{topic}/old/now"), "new");
    client.publish(&format!("{topic}/new/c"), "y", 2);
    let end = until(source.as_mut(), 5);
    let rows = source.read(None, &end, &[0, 1, 2, 3, 4, 5, 6]).unwrap();
    let rows: Vec<String> = rows.iter().flatten().flat_map(lines).collect();
    let time = "1970-01-01T00:16:40";
    assert_eq!(
        rows,
        [
            format!("{topic}/old/kept|7761732068657265|1|true|false|{time}|-"),
            format!("{topic}/new||0|false|false|{time}|-"),
            format!("{topic}/new/a/b|78|1|false|false|{time}|[{{key: k, value: 76}}, {{key: k, value: 77}}]"),
            format!("{topic}/old/now|6e6577|1|false|false|{time}|-"),
            format!("{topic}/new/c|79|2|false|false|{time}|-"),
        ]
    );
    assert!(source.description().contains(&format!("MqttMessages[{topic}/old/+, {topic}/new/# at mqtt://")));
}

#[test]
fn what_comes_while_nobody_reads_is_kept_for_the_query_each_once() {
    let broker = Broker::shared();
    for qos in ["1", "2"] {
        let (topic, mut client) = (broker.name("away"), broker.client());
        let input = Input::of(broker.url(), &topic, &[("qos", qos)]);
        client.publish(&topic, "before", 1);
        drop(input.begin());
        let mut source = input.open();
        for number in 1..=250 {
            client.publish(&topic, &number.to_string(), if number % 2 == 0 { 1 } else { 2 });
        }
        let end = until(source.as_mut(), 0);
        assert_eq!(all_now(source.as_mut()), numbered(1..=250), "QoS {qos}");
        let end = Offset(end.0.as_u64().unwrap().max(250).into());
        drop(source);
        let mut source = input.open();
        assert_eq!(next(source.as_mut(), Some(&end)), Some(end.clone()), "nothing comes again");
        client.publish(&topic, "251", 1);
        drop(source);
        let mut source = input.open();
        source.prepare_available_now().unwrap();
        let last = next(source.as_mut(), Some(&end)).unwrap();
        assert_eq!(values(source.as_mut(), Some(&end), &last), ["251"]);
    }
}

#[test]
fn a_batch_has_no_more_messages_than_its_limit() {
    let broker = Broker::shared();
    let (topic, mut client) = (broker.name("limit"), broker.client());
    let input = Input::of(broker.url(), &topic, &[("maxEntriesPerTrigger", "40")]);
    let mut source = input.begin();
    for number in 1..=100 {
        client.publish(&topic, &number.to_string(), 1);
    }
    until(source.as_mut(), 100);
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(first, Offset(40.into()));
    assert_eq!(source.metrics(Some(&first)).get("entriesBehindLatest").map(String::as_str), Some("60"));
    assert_eq!(source.newest_offset(), Some(Offset(100.into())));
    let second = next(source.as_mut(), Some(&first)).unwrap();
    drop(source);
    let mut source = input.open();
    assert_eq!(values(source.as_mut(), Some(&first), &second), numbered(41..=80));
    assert_eq!(values(source.as_mut(), None, &second), numbered(1..=80));
    let third = next(source.as_mut(), Some(&second)).unwrap();
    assert_eq!(values(source.as_mut(), Some(&second), &third), numbered(81..=100));
    let error = source.read(Some(&third), &Offset(101.into()), &[]).unwrap_err();
    assert!(error.to_string().contains("no longer has the rows of offsets (100, 101]"), "{error}");
}

#[test]
fn filters_may_come_and_go_between_two_runs() {
    let broker = Broker::shared();
    let (topic, mut client) = (broker.name("filters"), broker.client());
    let mut input = Input::of(broker.url(), &format!("{topic}/a, {topic}/b"), &[]);
    drop(input.begin());
    client.publish(&format!("{topic}/a"), "1", 1);
    client.publish(&format!("{topic}/c"), "nobody asked for it yet", 1);
    input.set("topic", &format!("{topic}/b, {topic}/c"));
    let mut source = input.open();
    assert_eq!(all_now(source.as_mut()), ["1"], "what came before is kept");
    drop(source);
    for name in ["a", "b", "c"] {
        client.publish(&format!("{topic}/{name}"), name, 1);
    }
    let mut source = input.open();
    assert_eq!(all_now(source.as_mut()), ["1", "b", "c"]);
}

#[test]
fn queries_share_topics() {
    let broker = Broker::shared();
    let (topic, mut client) = (broker.name("share"), broker.client());
    let inputs: Vec<Input> =
        (0..2).map(|_| Input::of(broker.url(), &format!("$share/{topic}/{topic}/#"), &[])).collect();
    let mut sources: Vec<_> = inputs.iter().map(Input::begin).collect();
    for number in 1..=20 {
        client.publish(&format!("{topic}/x"), &number.to_string(), 1);
    }
    let shares: Vec<Vec<String>> = sources.iter_mut().map(|source| all_now(source.as_mut())).collect();
    assert!(shares.iter().all(|share| !share.is_empty()), "{shares:?}");
    let mut all: Vec<u32> = shares.concat().iter().map(|value| value.parse().unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, (1..=20).collect::<Vec<_>>());
}

#[test]
fn a_bounded_reading_has_what_the_broker_keeps_of_old_and_leaves_nothing_behind() {
    let broker = Broker::shared();
    let (topic, mut client) = (broker.name("bounded"), broker.client());
    for number in 1..=5 {
        client.retain(&format!("{topic}/{number}"), &number.to_string());
    }
    let input = Input::of(broker.url(), &format!("{topic}/+"), &[("maxEntriesPerTrigger", "2")]);
    let mut source = input.open_bounded();
    client.publish(&format!("{topic}/6"), "later", 1);
    let (mut end, mut all) = (None, Vec::new());
    while let Some(next) = next(source.as_mut(), end.as_ref()).filter(|next| Some(next) != end.as_ref()) {
        let batch = values(source.as_mut(), end.as_ref(), &next);
        assert!(batch.len() <= 2);
        all.extend(batch);
        end = Some(next);
    }
    all.sort();
    assert_eq!(all, numbered(1..=5));
}

#[test]
fn a_name_of_the_users_own_is_the_name_of_the_session() {
    let broker = Broker::shared();
    let (topic, mut client) = (broker.name("named"), broker.client());
    let mut input = Input::of(broker.url(), &topic, &[("clientId", &topic)]);
    drop(input.begin());
    client.publish(&topic, "1", 1);
    input.set("clientId", "another");
    let error = input.open().latest_offset(None, millstream_common::ReadLimit::AllAvailable).unwrap_err();
    assert!(error.to_string().contains(&format!("messages wait for this query under the name `{topic}`")), "{error}");
    // Who comes with the name and wants nothing of it takes the session away.
    drop(Client::named(broker.url(), &topic));
    input.set("clientId", &topic);
    let error = input.open().prepare_available_now().unwrap_err();
    assert!(describe_chain(&error).contains(&format!("has no session of client `{topic}`")), "{error}");
}

#[test]
fn what_the_source_says_of_itself_has_no_password() {
    let broker = Broker::shared();
    let url = broker.url().replace("mqtt://", "mqtt://ann:pass-of-mine@");
    let text = Input::of(&url, "clicks", &[]).open().description();
    assert!(text.starts_with("MqttMessages[clicks at mqtt://") && !text.contains("pass-of-mine"), "{text}");
}
