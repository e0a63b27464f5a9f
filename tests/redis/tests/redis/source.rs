//! Reading streams.

use crate::{FORMAT, Input, ids, next, numbered};
use millstream_common::{ManualClock, Options, ReadLimit, describe_chain};
use millstream_source::connectors::redis::RedisSourceFactory;
use millstream_source::contract::{self, Subject};
use millstream_source::{Offset, SourceSpec};
use redis_tests::Redis;
use serde_json::json;
use std::sync::Arc;

#[test]
fn the_source_keeps_what_every_source_promises() {
    let redis = Redis::shared();
    let (one, other) = (redis.name("one"), redis.name("other"));
    let mut client = redis.client();
    let mut count = 0;
    let mut feed = || {
        for stream in [&one, &other] {
            for _ in 0..3 {
                count += 1;
                client.ask(&format!("XADD {stream} * v {count} w x"));
            }
        }
    };
    let options = Options::new().with("url", redis.url()).with("stream", format!("{one},{other}"));
    contract::source(&mut Subject {
        factory: Arc::new(RedisSourceFactory),
        spec: SourceSpec { name: "s".into(), format: FORMAT.into(), schema: None, options },
        feed: &mut feed,
        clock: Arc::new(ManualClock::at(0)),
        replays_after_restart: true,
    });
}

#[test]
fn a_query_begins_at_the_end_at_the_beginning_or_behind_an_id() {
    let redis = Redis::shared();
    let stream = redis.name("starting");
    let mut client = redis.client();
    client.add_entries(&stream, 1..=5);
    client.ask(&format!("XTRIM {stream} MAXLEN 4"));
    let begun = |starting: &str| {
        let mut input = Input::of(redis.url(), &stream, &[]);
        input.set("startingOffsets", starting);
        let mut source = input.open();
        let first = next(source.as_mut(), None);
        first.map_or(vec![], |end| ids(source.as_mut(), None, &end))
    };
    assert_eq!(begun("earliest"), numbered(2..=5), "what was trimmed before is no loss");
    assert_eq!(begun("latest"), [""; 0]);
    assert_eq!(begun("3-0"), numbered(4..=5));
    assert_eq!(begun("0-1"), numbered(2..=5));
    assert_eq!(begun("9-0"), [""; 0]);
    assert_eq!(begun(&json!({ stream.as_str(): "4" }).to_string()), ["5-0"]);

    let mut input = Input::of(redis.url(), &stream, &[]);
    input.set("startingOffsets", "latest");
    let mut source = input.open();
    assert_eq!(next(source.as_mut(), None), None);
    client.add_entries(&stream, 6..=7);
    drop(source);
    let mut source = input.open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(ids(source.as_mut(), None, &end), numbered(6..=7), "where it begins is decided once");
}

#[test]
fn a_batch_has_no_more_entries_than_its_limit_which_streams_share() {
    let redis = Redis::shared();
    let (one, other) = (redis.name("long"), redis.name("short"));
    let mut client = redis.client();
    client.add_entries(&one, 1..=300);
    client.add_entries(&other, 1..=100);
    let input = Input::of(redis.url(), &format!("{one},{other}"), &[("maxEntriesPerTrigger", "40")]);
    let mut source = input.open();
    let first = next(source.as_mut(), None).unwrap();
    let at = |one_at: u32, other_at: u32| {
        let position = |at: u32| json!({"id": format!("{at}-0"), "added": at});
        Offset(json!({ one.as_str(): position(one_at), other.as_str(): position(other_at) }))
    };
    assert_eq!(first, at(30, 10));
    assert_eq!(ids(source.as_mut(), None, &first), [numbered(1..=30), numbered(1..=10)].concat());
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(second, at(60, 20));
    drop(source);
    let mut source = input.open();
    assert_eq!(ids(source.as_mut(), Some(&first), &second), [numbered(31..=60), numbered(11..=20)].concat());
    let metrics = source.metrics(Some(&second));
    assert!(!metrics.contains_key("entriesBehindLatest"), "it has not looked yet: {metrics:?}");
    let (mut end, mut count) = (second, 0);
    while let Some(next) = next(source.as_mut(), Some(&end)).filter(|next| *next != end) {
        let read = ids(source.as_mut(), Some(&end), &next).len();
        assert!(read <= 40, "{read}");
        (end, count) = (next, count + read);
    }
    assert_eq!((end.clone(), count), (at(300, 100), 320));
    assert_eq!(source.metrics(Some(&end)).get("entriesBehindLatest").map(String::as_str), Some("0"));
    assert_eq!(source.metrics(Some(&first)).get("entriesBehindLatest").map(String::as_str), Some("360"));
}

#[test]
fn many_entries_come_in_pages_each_once() {
    let redis = Redis::shared();
    let stream = redis.name("pages");
    redis.client().add_entries(&stream, 1..=5000);
    let input = Input::of(redis.url(), &stream, &[]);
    let mut source = input.open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(ids(source.as_mut(), None, &end), numbered(1..=5000));
    assert_eq!(ids(source.as_mut(), None, &end), numbered(1..=5000), "pages of another size give the same");
    let limited = Input::of(redis.url(), &stream, &[("maxEntriesPerTrigger", "1234")]);
    let mut source = limited.open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(ids(source.as_mut(), None, &end), numbered(1..=1234));
}

#[test]
fn a_stream_that_is_not_there_yet_and_one_that_is_named_later_are_read_from_their_start() {
    let redis = Redis::shared();
    let (one, other) = (redis.name("early"), redis.name("late"));
    let mut client = redis.client();
    let mut input = Input::of(redis.url(), &one, &[]);
    input.set("startingOffsets", "latest");
    let mut source = input.open();
    assert_eq!(next(source.as_mut(), None), None);
    client.add_entries(&one, 1..=2);
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(ids(source.as_mut(), None, &first), numbered(1..=2));
    client.add_entries(&other, 1..=3);
    input.set("stream", &format!("{one},{other}"));
    let mut source = input.open();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(ids(source.as_mut(), Some(&first), &second), numbered(1..=3));
    assert_eq!(next(source.as_mut(), Some(&second)), Some(second));
}

#[test]
fn a_bounded_reading_ends_where_the_streams_ended_when_it_began() {
    let redis = Redis::shared();
    let stream = redis.name("bounded");
    let mut client = redis.client();
    client.add_entries(&stream, 1..=10);
    let mut input = Input::of(redis.url(), &stream, &[("maxEntriesPerTrigger", "4")]);
    let mut source = input.open_bounded();
    client.add_entries(&stream, 11..=20);
    let (mut end, mut all) = (None, Vec::new());
    while let Some(next) = next(source.as_mut(), end.as_ref()).filter(|next| Some(next) != end.as_ref()) {
        all.extend(ids(source.as_mut(), end.as_ref(), &next));
        end = Some(next);
    }
    assert_eq!(all, numbered(1..=10));
    client.ask(&format!("DEL {stream}"));
    let error = source.latest_offset(None, ReadLimit::AllAvailable).unwrap_err();
    assert!(describe_chain(&error).contains("since everything available was fixed"), "{}", describe_chain(&error));

    input.set("startingOffsets", "latest");
    let error = input.try_open_bounded().map(drop).unwrap_err();
    assert!(error.to_string().contains("reads nothing"), "{error}");
}

#[test]
fn what_the_source_says_of_itself_has_no_password() {
    let redis = Redis::shared();
    let url = redis.url().replace("redis://", "redis://:pass-of-mine@");
    let source = Input::of(&url, "clicks,orders", &[]).open();
    let text = source.description();
    assert!(text.starts_with("RedisStreams[clicks, orders at redis://"), "{text}");
    assert!(!text.contains("pass-of-mine"), "{text}");
}
