//! Writing messages.

use crate::{FORMAT, open, open_at, query, to_stream, values, write};
use arrow::array::{
    ArrayBuilder, ArrayRef, BinaryArray, BinaryBuilder, Int64Array, ListBuilder, RecordBatch, StringArray,
    StringBuilder, StructBuilder,
};
use arrow::datatypes::{DataType, Field, Fields};
use databases_tests::query::Story;
use millstream_common::{Hint, ManualClock, Options, OutputMode, QueryId, StopSignal, describe_chain};
use millstream_sink::connectors::nats::NatsSinkFactory;
use millstream_sink::contract::{self, Subject};
use millstream_sink::{SinkError, SinkSpec};
use nats_tests::{Client, Nats};
use redis_tests::proxy::{Cut, Proxy};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn the_sink_keeps_what_every_sink_promises() {
    let nats = Nats::shared();
    let stream = nats.stream("contract");
    let mut written = || nats.client().texts(&stream);
    contract::sink(&mut Subject {
        factory: Arc::new(NatsSinkFactory),
        spec: SinkSpec { format: FORMAT.into(), options: to_stream(nats.servers(), &stream) },
        query: query(),
        written: Some(&mut written),
        counts_once: true,
    });
}

#[test]
fn rows_have_their_subject_and_all_modes_are_taken() {
    let nats = Nats::shared();
    let stream = nats.stream("subjects");
    let options = Options::new().with("servers", nats.servers()).with("stream", stream.as_str());
    let sql = format!(
        "SELECT '{stream}.' || k AS subject, CAST(n AS STRING) AS value FROM (SELECT k, count(*) AS n FROM events GROUP BY k) c"
    );
    for (mode, wanted) in
        [(OutputMode::Update, ["a 1", "b 1", "a 2"].as_slice()), (OutputMode::Complete, &["a 1", "b 1", "a 2", "b 1"])]
    {
        let story = Story::new(&sql, mode, FORMAT, &options);
        for unit in [&[("a", 1), ("b", 1)][..], &[("a", 1)]] {
            story.add(unit);
            story.run().unwrap();
        }
        let sorted = |mut texts: Vec<String>| {
            texts.sort();
            texts
        };
        let wanted = sorted(wanted.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(sorted(nats.client().texts(&stream)), wanted, "{mode}");
        nats.client().purge(&stream, &json!({}));
    }
}

#[test]
fn a_message_has_the_headers_of_its_row_and_an_id() {
    let nats = Nats::shared();
    let stream = nats.stream("headers");
    let fields =
        Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)]);
    let parts: Vec<Box<dyn ArrayBuilder>> = vec![Box::new(StringBuilder::new()), Box::new(BinaryBuilder::new())];
    let mut headers = ListBuilder::new(StructBuilder::new(fields, parts));
    for (name, value) in [("trace", Some("1")), ("trace", Some("2")), ("none", None), ("Nats-Msg-Id", Some("other"))] {
        headers.values().field_builder::<StringBuilder>(0).unwrap().append_value(name);
        headers.values().field_builder::<BinaryBuilder>(1).unwrap().append_option(value);
        headers.values().append(true);
    }
    headers.append(true);
    headers.append(false);
    let data: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&b"\x00\xff"[..]), None]));
    let columns = [("data", data, true), ("headers", Arc::new(headers.finish()) as ArrayRef, true)];
    let rows = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let query = query();
    let mut sink = open(&to_stream(nats.servers(), &stream), query).unwrap();
    assert_eq!(write(sink.as_mut(), 3, &rows).unwrap(), 2);
    let messages = nats.client().messages(&stream);
    assert_eq!((&messages[0].payload[..], messages[1].payload.len()), (&b"\x00\xff"[..], 0));
    let all = |name: &str| {
        let found = messages[0].headers.as_ref().unwrap().get_all(name);
        found.map(|value| value.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((all("trace"), all("none")), (vec!["1".to_owned(), "2".to_owned()], vec![String::new()]));
    let ids = all("Nats-Msg-Id");
    assert!(
        ids.len() == 1 && ids[0].starts_with(&format!("{query}.3.")),
        "what belongs to the server is left out: {ids:?}"
    );
}

#[test]
fn a_large_batch_goes_out_many_at_once_and_in_order() {
    let nats = Nats::shared();
    let stream = nats.stream("large");
    let numbers: ArrayRef = Arc::new(StringArray::from_iter_values((0..25_000).map(|number| number.to_string())));
    let rows = RecordBatch::try_from_iter_with_nullable([("value", numbers, true)]).unwrap();
    let mut sink = open(&to_stream(nats.servers(), &stream), query()).unwrap();
    assert_eq!(write(sink.as_mut(), 0, &rows).unwrap(), 25_000);
    let found = nats.client().texts(&stream);
    assert_eq!(found, (0..25_000).map(|number| number.to_string()).collect::<Vec<_>>());
    let large = "x".repeat(900_000);
    let rows = values(&vec![large.as_str(); 20]);
    assert_eq!(write(sink.as_mut(), 1, &rows).unwrap(), 20, "rows that are the same are all there");
    assert_eq!(nats.client().messages(&stream).len(), 25_020);
}

/// Lets the stream forget the ids of messages.
fn forget_ids(client: &Client, stream: &str) {
    // What is forgotten last.
    client.publish_once(stream, "probe");
    client.change_stream(stream, &json!({ "duplicate_window": 100_000_000 }));
    while !client.publish_once(stream, "probe") {
        std::thread::sleep(Duration::from_millis(200));
    }
    client.change_stream(stream, &json!({ "duplicate_window": 120_000_000_000_u64 }));
}

/// A batch of many rows that has broken off at one of them, behind a batch that is done.
struct BrokenOff {
    stream: String,
    query: QueryId,
    /// To the server itself.
    options: Options,
    rows: Vec<String>,
    /// How many of the rows are there.
    there: usize,
}

impl BrokenOff {
    fn at(nats: &Nats, row: &str) -> Self {
        Self::of(nats, nats.stream("broken"), row)
    }

    fn of(nats: &Nats, stream: String, row: &str) -> Self {
        let query = query();
        let proxy = Proxy::start(nats.port());
        let rows: Vec<String> = (0..5000).map(|number| format!("row {number}")).collect();
        let through = to_stream(&format!("nats://127.0.0.1:{}", proxy.port()), &stream).with("retryTimeout", "0 s");
        let mut sink = open(&through, query).unwrap();
        write(sink.as_mut(), 0, &values(&["before"])).unwrap();
        proxy.cut(Cut::After, Box::leak(format!("\r\n\r\n{row}\r\n").into_boxed_str()));
        let error = write(sink.as_mut(), 1, &values(&rows.iter().map(String::as_str).collect::<Vec<_>>())).unwrap_err();
        assert!(describe_chain(&error).contains("broke"), "{}", describe_chain(&error));
        assert!(!proxy.is_armed());
        drop(sink);
        std::thread::sleep(Duration::from_millis(200));
        let there = nats.client().count(&stream) - 1;
        assert!((1..=5000).contains(&there), "{there}");
        let options = to_stream(nats.servers(), &stream);
        Self { stream, query, options, rows, there }
    }

    /// The batch again, by another run, with the rows in another order, so long after the first run began it.
    fn again(&self, options: &Options, later: Duration) -> Result<u64, SinkError> {
        let clock = Arc::new(ManualClock::at(0));
        clock.advance(later);
        let mut sink = open_at(options, self.query, &clock, &StopSignal::new()).unwrap();
        write(sink.as_mut(), 1, &values(&self.rows.iter().rev().map(String::as_str).collect::<Vec<_>>()))
    }

    /// The rows that are there, sorted.
    fn found(&self, client: &Client) -> Vec<String> {
        let mut found = client.texts(&self.stream);
        found.retain(|text| text.starts_with("row"));
        found.sort();
        found
    }
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_batch_that_broke_off_goes_on_behind_what_is_there_also_when_the_ids_are_forgotten() {
    let Some(nats) = Nats::own("") else { return };
    let client = nats.client();
    for row in ["row 1", "row 3000", "row 4999"] {
        let broken = BrokenOff::at(&nats, row);
        forget_ids(&client, &broken.stream);
        // Others write meanwhile.
        client.publish(&broken.stream, "of somebody else");
        let written = broken.again(&broken.options, HOUR).unwrap();
        assert_eq!(written, if broken.there == 5000 { 0 } else { 5000 });
        let mut wanted = broken.rows.clone();
        wanted.sort_unstable();
        assert_eq!(broken.found(&client), wanted, "{row}");
        assert_eq!(broken.again(&broken.options, HOUR).unwrap(), 0);
    }
}

#[test]
fn what_nobody_can_know_any_more_is_refused_unless_it_may_be_there_twice() {
    let Some(nats) = Nats::own("") else { return };
    let client = nats.client();
    // The server still knows the ids of what is gone.
    let broken = BrokenOff::at(&nats, "row 3000");
    client.purge(&broken.stream, &json!({}));
    assert_eq!(broken.again(&broken.options, Duration::ZERO).unwrap(), 5000);
    assert_eq!(broken.found(&client).len(), 5000 - broken.there, "none comes twice");

    // It may have forgotten them.
    let broken = BrokenOff::at(&nats, "row 3000");
    client.purge(&broken.stream, &json!({}));
    forget_ids(&client, &broken.stream);
    let error = broken.again(&broken.options, HOUR).unwrap_err();
    assert!(matches!(error, SinkError::Uncertain { .. }), "{error:?}");
    let text = describe_chain(&error);
    assert!(
        text.contains("of 5000 messages 5000 are not known to be in the stream, and messages behind 1 are gone"),
        "{text}"
    );
    assert!(error.hint().unwrap().contains("onLostMessages"));
    assert!(broken.found(&client).is_empty());
    let options = broken.options.clone().with("onLostMessages", "write");
    assert_eq!(broken.again(&options, HOUR).unwrap(), 5000);
    assert_eq!(broken.found(&client).len(), 5000);

    // Of a work queue nobody can read.
    client.make_stream("QUEUE", &["QUEUE"], &json!({ "retention": "workqueue" }));
    let broken = BrokenOff::of(&nats, "QUEUE".to_owned(), "row 3000");
    let error = broken.again(&broken.options, HOUR).unwrap_err();
    assert!(matches!(error, SinkError::Uncertain { .. }), "{error:?}");
    assert_eq!(broken.again(&broken.options, Duration::from_secs(30)).unwrap(), 5000);
    assert_eq!(client.count("QUEUE"), 5001);

    // In another life of the server nobody knows.
    let broken = BrokenOff::at(&nats, "row 3000");
    client.purge(&broken.stream, &json!({}));
    nats.kill();
    nats.restart();
    let error = broken.again(&broken.options, Duration::ZERO).unwrap_err();
    assert!(matches!(error, SinkError::Uncertain { .. }), "{error:?}");
}

#[test]
fn a_word_of_which_the_answer_is_lost_counts_once() {
    let Some(nats) = Nats::own("") else { return };
    let client = nats.client();
    let stream = nats.stream("words");
    let proxy = Proxy::start(nats.port());
    let through = to_stream(&format!("nats://127.0.0.1:{}", proxy.port()), &stream).with("retryTimeout", "20 s");
    let mut sink = open(&through, query()).unwrap();
    let mut wanted = Vec::new();
    let cuts = [
        (Cut::After, "\"begun\""),
        (Cut::Before, "\"begun\""),
        (Cut::After, "row of"),
        (Cut::Before, "row of"),
        (Cut::After, "\"done\""),
        (Cut::Before, "\"done\""),
        (Cut::After, "STREAM.INFO"),
    ];
    for (batch, (cut, word)) in (0_u64..).zip(cuts) {
        write(sink.as_mut(), 2 * batch, &values(&["quiet"])).unwrap();
        proxy.cut(cut, word);
        let row = format!("row of {batch}");
        assert_eq!(write(sink.as_mut(), 2 * batch + 1, &values(&[&row])).unwrap(), 1, "{cut:?} {word}");
        assert!(!proxy.is_armed(), "{word}");
        wanted.extend(["quiet".to_owned(), row]);
    }
    assert_eq!(client.texts(&stream), wanted);
}

#[test]
fn a_run_that_another_has_replaced_writes_nothing_more() {
    let nats = Nats::shared();
    let stream = nats.stream("zombie");
    let (options, query) = (to_stream(nats.servers(), &stream), query());
    let mut zombie = open(&options, query).unwrap();
    write(zombie.as_mut(), 0, &values(&["a"])).unwrap();
    let mut living = open(&options, query).unwrap();
    let error = write(zombie.as_mut(), 1, &values(&["zombie"])).unwrap_err();
    assert!(matches!(error, SinkError::Fenced { .. }), "{error:?}");
    write(living.as_mut(), 1, &values(&["b"])).unwrap();
    assert!(write(zombie.as_mut(), 2, &values(&["zombie"])).is_err());
    assert_eq!(nats.client().texts(&stream), ["a", "b"]);
}

#[test]
fn others_may_write_the_same_stream_meanwhile() {
    let nats = Nats::shared();
    let stream = nats.stream("busy");
    let mut sink = open(&to_stream(nats.servers(), &stream), query()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let client = nats.client();
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                client.publish(&stream, "other");
            }
        });
        for batch in 0..30_u64 {
            write(sink.as_mut(), batch, &values(&[&batch.to_string()])).unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    let ours: Vec<String> = nats.client().texts(&stream).into_iter().filter(|text| text != "other").collect();
    assert_eq!(ours, (0..30).map(|batch| batch.to_string()).collect::<Vec<_>>());
}

#[test]
fn what_the_server_forgets_is_noticed() {
    let Some(nats) = Nats::own("") else { return };
    let client = nats.client();
    let stream = nats.stream("forgets");
    let query = query();
    let mut sink = open(&to_stream(nats.servers(), &stream), query).unwrap();
    write(sink.as_mut(), 0, &values(&["a"])).unwrap();
    client.remove_stream("KV_millstream_batches");
    let error = write(sink.as_mut(), 1, &values(&["b"])).unwrap_err();
    assert!(error.to_string().contains("had confirmed batch 0, and has none now"), "{error}");
    assert_eq!(client.texts(&stream), ["a"]);
    // The stream that is made again has nothing of a batch that was done, and is written on.
    let mut sink = open(&to_stream(nats.servers(), &stream), query).unwrap();
    write(sink.as_mut(), 1, &values(&["b"])).unwrap();
    client.remove_stream(&stream);
    client.make_stream(&stream, &[&stream], &json!({}));
    write(sink.as_mut(), 2, &values(&["c"])).unwrap();
    assert_eq!(client.texts(&stream), ["c"]);
}

#[test]
fn numbers_that_are_no_text_are_cast_by_the_query() {
    let nats = Nats::shared();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let rows = RecordBatch::try_from_iter_with_nullable([("value", numbers, true)]).unwrap();
    let mut sink = open(&to_stream(nats.servers(), &nats.stream("numbers")), query()).unwrap();
    let error = write(sink.as_mut(), 0, &rows).unwrap_err();
    assert!(error.to_string().contains("write `CAST(value AS …)`"), "{error}");
}
