//! Writing entries and keys.

use crate::{FORMAT, open, pairs, query, to_keys, to_stream, write};
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, ListArray, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::Int32Type;
use databases_tests::query::Story;
use millstream_common::{OutputMode, describe_chain};
use millstream_sink::connectors::redis::RedisSinkFactory;
use millstream_sink::contract::{self, Subject};
use millstream_sink::{SinkError, SinkSpec};
use redis_tests::Redis;
use redis_tests::proxy::{Cut, Proxy};
use std::sync::Arc;

const COUNTS: &str = "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k";

#[test]
fn the_sink_keeps_what_every_sink_promises() {
    let redis = Redis::shared();
    let stream = redis.name("contract");
    let mut written = || {
        let entries = redis.client().entries(&stream);
        entries.iter().map(|entry| entry.trim_start_matches("value ").to_owned()).collect()
    };
    contract::sink(&mut Subject {
        factory: Arc::new(RedisSinkFactory),
        spec: SinkSpec { format: FORMAT.into(), options: to_stream(redis.url(), &stream) },
        query: query(),
        written: Some(&mut written),
        counts_once: true,
    });
}

#[test]
fn append_adds_entries_and_a_length_is_kept() {
    let redis = Redis::shared();
    let stream = redis.name("append");
    let options = to_stream(redis.url(), &stream).with("maxLength", "3");
    let story = Story::new("SELECT k, v FROM events WHERE v <> 0", OutputMode::Append, FORMAT, &options);
    story.add(&[("a", 1), ("b", 0)]);
    story.run().unwrap();
    story.add(&[("a b", -1)]);
    story.run().unwrap();
    assert_eq!(redis.client().entries(&stream), ["k a v 1", "k a b v -1"]);
    story.add(&[("c", 1), ("d", 1), ("e", 1)]);
    story.run().unwrap();
    assert_eq!(redis.client().entries(&stream), ["k c v 1", "k d v 1", "k e v 1"]);
}

#[test]
fn update_writes_over_a_key_and_complete_replaces_all() {
    let redis = Redis::shared();
    let mut client = redis.client();
    let prefix = redis.name("update:");
    let update = Story::new(COUNTS, OutputMode::Update, FORMAT, &to_keys(redis.url(), &prefix));
    client.ask(&format!("HSET {prefix}a note kept n 77"));
    for pairs in [&[("a", 1), ("b", 2)], &[("a", 10), ("c", 3)]] {
        update.add(pairs);
        update.run().unwrap();
    }
    assert_eq!(client.keys(&format!("{prefix}*")), ["a", "b", "c"].map(|key| format!("{prefix}{key}")));
    assert_eq!(client.hash(&format!("{prefix}a")), "k=a n=2 note=kept total=11");

    let prefix = redis.name("complete:");
    client.ask(&format!("HSET {prefix}foreign x 1"));
    let top = "SELECT k, n FROM (SELECT k, count(*) AS n FROM events GROUP BY k) c WHERE n < 2";
    let complete = Story::new(top, OutputMode::Complete, FORMAT, &to_keys(redis.url(), &prefix));
    complete.add(&[("a", 1), ("b", 1)]);
    complete.run().unwrap();
    let keys = |client: &mut redis_tests::Client| {
        let keys = client.keys(&format!("{prefix}*"));
        keys.iter().map(|key| key.trim_start_matches(&prefix).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&mut client), ["a", "b", "foreign"]);
    complete.add(&[("a", 1), ("c", 1)]);
    complete.run().unwrap();
    assert_eq!(keys(&mut client), ["b", "c", "foreign"], "what it did not write stays");
    complete.add(&[("b", 1), ("c", 1)]);
    complete.run().unwrap();
    assert_eq!(keys(&mut client), ["foreign"], "an empty result is one, too");
}

#[test]
fn a_key_may_hold_a_string() {
    let redis = Redis::shared();
    let mut client = redis.client();
    let prefix = redis.name("string:");
    let options = to_keys(redis.url(), &prefix).with("valueType", "string");
    let sql = "SELECT k, CASE WHEN v >= 0 THEN v END AS v FROM events";
    let story = Story::new(sql, OutputMode::Append, FORMAT, &options);
    story.add(&[("a", 1), ("b", 2), ("a", 3), ("c", 4), ("c", -1)]);
    story.run().unwrap();
    assert_eq!(client.ask(&format!("MGET {prefix}a {prefix}b {prefix}c")), "3 2 (nil)");
}

#[test]
fn values_of_all_types_are_text_and_bytes_are_bytes() {
    let redis = Redis::shared();
    let prefix = redis.name("types:");
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("k", Arc::new(StringArray::from(vec!["full", "empty"])), true),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), None])), true),
        ("real", Arc::new(Float64Array::from(vec![Some(1.5e10), None])), true),
        ("money", Arc::new(Decimal128Array::from(vec![Some(-5), None]).with_precision_and_scale(10, 2).unwrap()), true),
        ("bytes", Arc::new(BinaryArray::from(vec![Some(&b"\x00\xff\r\n"[..]), None])), true),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![Some(250_000), None]).with_timezone("UTC")), true),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None]), None])),
            true,
        ),
    ];
    let rows = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut sink = open(&to_keys(redis.url(), &prefix), query()).unwrap();
    write(sink.as_mut(), 0, &rows, OutputMode::Update).unwrap();
    let mut client = redis.client();
    let key = format!("{prefix}full");
    assert_eq!(
        client.ask(&format!("HMGET {key} flag real money at list")),
        "true 1.5E10 -0.05 1970-01-01 00:00:00.25 [1,null]"
    );
    assert_eq!(client.ask(&format!("HSTRLEN {key} bytes")), "4");
    assert_eq!(client.hash(&format!("{prefix}empty")), "k=empty");
    // A value that becomes NULL is taken away.
    let then = RecordBatch::try_from_iter_with_nullable([
        ("k", Arc::new(StringArray::from(vec!["full"])) as ArrayRef, true),
        ("flag", Arc::new(BooleanArray::from(vec![None])), true),
    ]);
    write(sink.as_mut(), 1, &then.unwrap(), OutputMode::Update).unwrap();
    assert_eq!(client.ask(&format!("HEXISTS {key} flag")), "0");
    assert_eq!(client.ask(&format!("HEXISTS {key} real")), "1");
}

#[test]
fn a_large_batch_goes_out_at_once() {
    let redis = Redis::shared();
    let (stream, prefix) = (redis.name("large"), redis.name("large:"));
    let names: Vec<String> = (0..20_000).map(|number| format!("key-{number:0100}")).collect();
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values(&names));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20_000));
    let rows = RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("v", values, true)]).unwrap();
    let mut client = redis.client();
    let mut sink = open(&to_stream(redis.url(), &stream), query()).unwrap();
    assert_eq!(write(sink.as_mut(), 0, &rows, OutputMode::Append).unwrap(), 20_000);
    assert_eq!(client.ask(&format!("XLEN {stream}")), "20000");
    let mut sink = open(&to_keys(redis.url(), &prefix), query()).unwrap();
    for batch in 0..2 {
        assert_eq!(write(sink.as_mut(), batch, &rows, OutputMode::Complete).unwrap(), 20_000);
    }
    assert_eq!(client.ask(&format!("HGET {prefix}{} v", names[19_999])), "19999");
    assert_eq!(write(sink.as_mut(), 2, &pairs(&[("one", 1)]), OutputMode::Complete).unwrap(), 1);
    assert_eq!(client.keys(&format!("{prefix}*")), [format!("{prefix}one")]);
}

#[test]
fn a_transaction_whose_answer_is_lost_counts_once() {
    let Some(redis) = Redis::own(&[]) else { return };
    let proxy = Proxy::start(redis.port());
    for (number, options) in [to_stream(&proxy.url(), "out"), to_keys(&proxy.url(), "p:")].iter().enumerate() {
        let mut sink = open(options, query()).unwrap();
        write(sink.as_mut(), 0, &pairs(&[("a", 0)]), OutputMode::Append).unwrap();
        for (batch, cut, word) in [(1, Cut::After, "EXEC"), (2, Cut::Before, "EXEC"), (3, Cut::After, "MULTI")] {
            proxy.cut(cut, word);
            let rows = pairs(&[("b", batch)]);
            let written = write(sink.as_mut(), batch.unsigned_abs(), &rows, OutputMode::Append);
            assert_eq!(written.unwrap(), 1, "{cut:?} {word}");
            assert!(!proxy.is_armed());
        }
        let mut client = redis.client();
        match number {
            0 => assert_eq!(client.entries("out"), ["k a v 0", "k b v 1", "k b v 2", "k b v 3"]),
            _ => assert_eq!(client.hash("p:b"), "k=b v=3"),
        }
    }
}

#[test]
fn a_key_that_becomes_another_kind_in_the_middle_leaves_the_batch_to_be_written_again() {
    let Some(redis) = Redis::own(&[]) else { return };
    let proxy = Proxy::start(redis.port());
    for (key, options) in [("out", to_stream(&proxy.url(), "out")), ("p:b", to_keys(&proxy.url(), "p:"))] {
        let mut sink = open(&options, query()).unwrap();
        write(sink.as_mut(), 0, &pairs(&[("a", 0), ("b", 0)]), OutputMode::Append).unwrap();
        let mut other = redis.client();
        proxy.meanwhile("EXEC", move || {
            other.ask(&format!("DEL {key}"));
            other.ask(&format!("SET {key} text"));
        });
        let rows = pairs(&[("a", 1), ("b", 1), ("c", 1)]);
        let error = write(sink.as_mut(), 1, &rows, OutputMode::Append).unwrap_err();
        assert!(describe_chain(&error).contains("another kind of value"), "{}", describe_chain(&error));
        let mut client = redis.client();
        client.ask(&format!("DEL {key}"));
        assert_eq!(write(sink.as_mut(), 1, &rows, OutputMode::Append).unwrap(), 3, "{key}");
        match key {
            "out" => assert_eq!(client.entries("out"), ["k a v 1", "k b v 1", "k c v 1"]),
            _ => assert_eq!(["p:a", "p:b", "p:c"].map(|key| client.hash(key)), ["k=a v=1", "k=b v=1", "k=c v=1"]),
        }
    }
}

#[test]
fn a_run_that_another_has_replaced_writes_nothing_more() {
    let redis = Redis::shared();
    let stream = redis.name("zombie");
    let (options, query) = (to_stream(redis.url(), &stream), query());
    let mut zombie = open(&options, query).unwrap();
    write(zombie.as_mut(), 0, &pairs(&[("a", 0)]), OutputMode::Append).unwrap();
    let mut living = open(&options, query).unwrap();
    let error = write(zombie.as_mut(), 1, &pairs(&[("zombie", 1)]), OutputMode::Append).unwrap_err();
    assert!(matches!(error, SinkError::Fenced { .. }), "{error:?}");
    write(living.as_mut(), 1, &pairs(&[("b", 1)]), OutputMode::Append).unwrap();
    assert!(write(zombie.as_mut(), 2, &pairs(&[("zombie", 1)]), OutputMode::Append).is_err());
    assert_eq!(redis.client().entries(&stream), ["k a v 0", "k b v 1"]);
}

#[test]
fn others_may_write_the_same_stream_and_keys_meanwhile() {
    let redis = Redis::shared();
    let (stream, prefix) = (redis.name("busy"), redis.name("busy:"));
    let (mut entries, mut keys) = (
        open(&to_stream(redis.url(), &stream), query()).unwrap(),
        open(&to_keys(redis.url(), &prefix), query()).unwrap(),
    );
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = redis.client();
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                client.ask(&format!("XADD {stream} * other 1"));
                client.ask(&format!("HINCRBY {prefix}a others 1"));
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
        });
        for batch in 0..30_u32 {
            let rows = pairs(&[("a", batch.into())]);
            write(entries.as_mut(), batch.into(), &rows, OutputMode::Append).unwrap();
            write(keys.as_mut(), batch.into(), &rows, OutputMode::Append).unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    let mut client = redis.client();
    let ours: Vec<String> = client.entries(&stream).into_iter().filter(|entry| entry.starts_with('k')).collect();
    assert_eq!(ours, (0..30).map(|number| format!("k a v {number}")).collect::<Vec<_>>());
    assert_eq!(client.ask(&format!("HGET {prefix}a v")), "29");
}
