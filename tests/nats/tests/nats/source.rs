//! Reading streams.

use crate::{FORMAT, Input, drain, next, numbered, numbers};
use millstream_common::{ManualClock, Options, ReadLimit, describe_chain};
use millstream_source::connectors::nats::NatsSourceFactory;
use millstream_source::contract::{self, Subject};
use millstream_source::{Offset, SourceFactory, SourceSpec};
use nats_tests::Nats;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn the_source_keeps_what_every_source_promises() {
    let nats = Nats::shared();
    let stream = nats.stream("contract");
    let client = nats.client();
    for (subject, limit) in [("", "100000"), (".a.>", "100000"), (".a.*,STREAM.b.1", "2")] {
        let mut count = 0;
        let mut feed = || {
            for at in ["a.1", "other", "b.1", "a.2"] {
                count += 1;
                client.publish_with(
                    &format!("{stream}.{at}"),
                    format!("{count}").as_bytes(),
                    &[("n", "1"), ("m", "2")],
                );
            }
        };
        let options = Options::new().with("servers", nats.servers()).with("stream", stream.as_str());
        let options = options.with("includeHeaders", "true").with("maxOffsetsPerTrigger", limit);
        let options = match subject {
            "" => options,
            filter => options.with("subject", format!("{stream}{}", filter.replace("STREAM", &stream))),
        };
        contract::source(&mut Subject {
            factory: Arc::new(NatsSourceFactory),
            spec: SourceSpec { name: "s".into(), format: FORMAT.into(), schema: None, options },
            feed: &mut feed,
            clock: Arc::new(ManualClock::at(0)),
            replays_after_restart: true,
        });
    }
    assert_eq!(client.consumers(&stream), 0, "nothing is left on the server");
}

#[test]
fn a_query_begins_at_the_end_at_the_beginning_at_a_number_or_at_a_time() {
    let nats = Nats::shared();
    let stream = nats.stream("starting");
    let client = nats.client();
    client.publish_numbers(&stream, 1..=3);
    std::thread::sleep(Duration::from_millis(20));
    client.publish_numbers(&stream, 4..=6);
    client.purge(&stream, &serde_json::json!({ "seq": 2 }));
    client.delete(&stream, 5);
    let begun = |name: &str, value: &str| {
        let mut input = Input::of(nats.servers(), &stream, &[]);
        input.set(name, value);
        drain(input.open().as_mut(), None).0
    };
    assert_eq!(begun("startingOffsets", "earliest"), [2, 3, 4, 6], "what was removed before is no loss");
    assert_eq!(begun("startingOffsets", "latest"), [0; 0]);
    assert_eq!(begun("startingOffsets", "3"), [3, 4, 6]);
    assert_eq!(begun("startingOffsets", "1"), [2, 3, 4, 6]);
    assert_eq!(begun("startingOffsets", "7"), [0; 0]);
    let fourth = &client.messages(&stream)[2];
    let nanos: i64 = fourth.reply.as_ref().unwrap().split('.').nth(7).unwrap().parse().unwrap();
    // It is later than that by a fraction of a millisecond, and the one before by more.
    assert_eq!(begun("startingTimestamp", &(nanos / 1_000_000).to_string()), [4, 6]);
    assert_eq!(begun("startingTimestamp", "0"), [2, 3, 4, 6]);
    assert_eq!(begun("startingTimestamp", "4102444800000"), [0; 0]);

    let mut input = Input::of(nats.servers(), &stream, &[]);
    input.set("startingOffsets", "latest");
    assert_eq!(next(input.open().as_mut(), None), None);
    let mut later = Input::of(nats.servers(), &stream, &[]);
    later.set("startingOffsets", "8");
    assert_eq!(next(later.open().as_mut(), None), None);
    client.publish_numbers(&stream, 7..=9);
    assert_eq!(drain(input.open().as_mut(), None).0, numbered(7..=9), "where it begins is decided once");
    assert_eq!(drain(later.open().as_mut(), None).0, numbered(8..=9), "what comes before its number is not read");
    assert_eq!(client.consumers(&stream), 0);
}

#[test]
fn a_message_has_its_content_subject_number_time_and_headers() {
    let nats = Nats::shared();
    let stream = nats.stream("columns");
    let client = nats.client();
    client.publish_with(&stream, b"\x00\xff", &[]);
    client.publish_with(&format!("{stream}.a"), b"", &[("b", "2"), ("a", "3"), ("b", "1"), ("empty", "")]);
    let input = Input::of(nats.servers(), &stream, &[("includeHeaders", "true")]);
    let mut source = input.open();
    let end = next(source.as_mut(), None).unwrap();
    let created = client.stream(&stream)["created"].clone();
    assert_eq!(end, Offset(serde_json::json!({ "stream": stream, "sequence": 2, "created": created })));
    let rows = source.read(None, &end, &[0, 1, 2, 4]).unwrap();
    let second = "[{key: a, value: 33}, {key: b, value: 32}, {key: b, value: 31}, {key: empty, value: }]";
    assert_eq!(contract::lines(&rows[0][0]), [format!("00ff|{stream}|1|-"), format!("|{stream}.a|2|{second}")]);
    let times = contract::lines(&source.read(None, &end, &[3]).unwrap()[0][0]);
    let told = client.stream(&stream)["state"]["first_ts"].as_str().unwrap().to_owned();
    assert!(told.starts_with(&times[0][..23]), "{told} {times:?}");
}

#[test]
fn a_batch_has_no_more_messages_than_its_limit() {
    let nats = Nats::shared();
    let stream = nats.stream("limit");
    let client = nats.client();
    client.publish_numbers(&format!("{stream}.a"), 1..=60);
    client.publish_numbers(&format!("{stream}.b"), 1..=60);
    client.publish_numbers(&format!("{stream}.a"), 61..=120);
    let input = Input::of(nats.servers(), &stream, &[("maxOffsetsPerTrigger", "50")]);
    let mut source = input.open();
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(numbers(source.as_mut(), None, &first), numbered(1..=50));
    assert_eq!(source.metrics(Some(&first)).get("offsetsBehindLatest").map(String::as_str), Some("130"));
    drop(source);
    let mut source = input.open();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(numbers(source.as_mut(), Some(&first), &second), numbered(51..=100));
    assert_eq!(numbers(source.as_mut(), None, &second), numbered(1..=100));

    // With a filter it is the messages of the query that are counted.
    let filtered =
        Input::of(nats.servers(), &stream, &[("maxOffsetsPerTrigger", "50"), ("subject", &format!("{stream}.a"))]);
    let mut source = filtered.open();
    let (mut end, mut sizes, mut all) = (None, Vec::new(), Vec::new());
    while let Some(next) = next(source.as_mut(), end.as_ref()).filter(|next| Some(next) != end.as_ref()) {
        let found = numbers(source.as_mut(), end.as_ref(), &next);
        assert_eq!(numbers(filtered.open().as_mut(), end.as_ref(), &next), found, "read again, without what was kept");
        sizes.push(found.len());
        all.extend(found);
        end = Some(next);
    }
    assert_eq!((sizes, all), (vec![50, 50, 20], [numbered(1..=60), numbered(121..=180)].concat()));
}

#[test]
fn what_other_subjects_have_is_neither_read_nor_missed() {
    let nats = Nats::shared();
    let stream = nats.stream("filter");
    let client = nats.client();
    for number in 0..30 {
        client.publish(&format!("{stream}.{}", ["a.x", "b.x", "c.x.y"][number % 3]), "m");
    }
    let read = |filters: &[&str]| {
        let filters: Vec<String> = filters.iter().map(|filter| format!("{stream}.{filter}")).collect();
        let input = Input::of(nats.servers(), &stream, &[("subject", &filters.join(","))]);
        let mut source = input.open();
        let all = drain(source.as_mut(), None).0;
        assert!(!source.metrics(None).contains_key("offsetsLost"));
        all
    };
    assert_eq!(read(&["a.x"]), (0..10).map(|number| number * 3 + 1).collect::<Vec<_>>());
    assert_eq!(read(&["*.x"]).len(), 20);
    assert_eq!(read(&["a.*", "c.>"]), (1..=30).filter(|number| number % 3 != 2).collect::<Vec<_>>());
    assert_eq!(read(&["none"]), [0; 0]);
}

#[test]
fn a_query_that_finds_nothing_makes_few_batches_and_does_not_miss_what_passes() {
    let nats = Nats::shared();
    let stream = nats.name("idle");
    let client = nats.client();
    client.make_stream(&stream, &[&format!("{stream}.>")], &serde_json::json!({ "max_msgs": 50 }));
    let input = Input::of(nats.servers(), &stream, &[("subject", &format!("{stream}.a"))]);
    let mut source = input.open();
    let (mut end, mut batches) = (None, 0);
    for number in 0..100 {
        client.publish_numbers(&format!("{stream}.b"), 1..=10);
        if number == 70 {
            client.publish(&format!("{stream}.a"), "found");
        }
        if let Some(next) = next(source.as_mut(), end.as_ref()).filter(|next| Some(next) != end.as_ref()) {
            let found = numbers(source.as_mut(), end.as_ref(), &next);
            assert_eq!(found, if number == 70 { vec![711] } else { vec![] });
            (end, batches) = (Some(next), batches + 1);
        }
    }
    assert!((20..70).contains(&batches), "{batches} batches over 100 looks and 20 lives of a message");
    assert!(!source.metrics(end.as_ref()).contains_key("offsetsLost"));
}

#[test]
fn many_messages_come_in_pages_each_once() {
    let nats = Nats::shared();
    let stream = nats.stream("pages");
    let client = nats.client();
    client.publish_numbers(&stream, 1..=20_000);
    let large = vec![b'x'; 900_000];
    for _ in 0..30 {
        client.publish_with(&stream, &large, &[]);
    }
    let input = Input::of(nats.servers(), &stream, &[]);
    let mut source = input.open();
    let end = next(source.as_mut(), None).unwrap();
    let rows = source.read(None, &end, &[0, 2]).unwrap();
    let sizes: Vec<usize> = rows[0].iter().map(arrow::array::RecordBatch::num_rows).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 20_030);
    assert!(sizes.len() >= 4, "large messages end a batch early: {sizes:?}");
    assert_eq!(numbers(source.as_mut(), None, &end), numbered(1..=20_030));
    assert_eq!(client.consumers(&stream), 0);
}

#[test]
fn a_stream_that_is_not_there_yet_is_read_from_its_start() {
    let nats = Nats::shared();
    let stream = nats.name("early");
    let client = nats.client();
    for starting in ["latest", "3"] {
        let stream = format!("{stream}-{starting}");
        let mut input = Input::of(nats.servers(), &stream, &[]);
        input.set("startingOffsets", starting);
        let mut source = input.open();
        assert_eq!(next(source.as_mut(), None), None);
        client.make_stream(&stream, &[&stream], &serde_json::json!({}));
        assert_eq!(next(source.as_mut(), None), None, "a stream without messages brings nothing");
        client.publish_numbers(&stream, 1..=4);
        let wanted = if starting == "3" { numbered(3..=4) } else { numbered(1..=4) };
        assert_eq!(drain(source.as_mut(), None).0, wanted);
    }
}

#[test]
fn a_bounded_reading_ends_where_the_stream_ended_when_it_began() {
    let nats = Nats::shared();
    let stream = nats.stream("bounded");
    let client = nats.client();
    client.publish_numbers(&stream, 1..=10);
    let mut input = Input::of(nats.servers(), &stream, &[("maxOffsetsPerTrigger", "4")]);
    let mut source = input.open_bounded();
    client.publish_numbers(&stream, 11..=20);
    assert_eq!(drain(source.as_mut(), None).0, numbered(1..=10));
    client.remove_stream(&stream);
    let error = source.latest_offset(None, ReadLimit::AllAvailable).unwrap_err();
    assert!(describe_chain(&error).contains("since everything available was fixed"), "{}", describe_chain(&error));

    input.set("startingOffsets", "latest");
    let error = input.try_open_bounded().map(drop).unwrap_err();
    assert!(error.to_string().contains("reads nothing"), "{error}");
}

#[test]
fn what_the_source_says_of_itself_has_no_secret_and_names_its_place() {
    let nats = Nats::shared();
    let servers = nats.servers().replace("nats://", "nats://ann:pass-of-mine@");
    let input = Input::of(&servers, "orders", &[("subject", "orders.>")]);
    let text = input.open().description();
    assert_eq!(text, format!("NatsStream[orders (orders.>) at {}]", nats.servers()));
    assert_eq!(NatsSourceFactory.place(&input.spec).as_deref(), Some("nats stream orders"));
}
