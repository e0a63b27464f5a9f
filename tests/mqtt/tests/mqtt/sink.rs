//! Writing to topics.

use crate::{FORMAT, open, some, texts, to_topic, write};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use millstream_common::{Fault, Hint, Options, QueryId, describe_chain};
use millstream_sink::connectors::mqtt::MqttSinkFactory;
use millstream_sink::contract::{self, Subject};
use millstream_sink::{Guarantee, SinkError, SinkFactory, SinkSpec};
use mqtt_tests::Broker;
use mqtt_tests::client::Message;
use std::sync::Arc;
use uuid::Uuid;

#[test]
fn the_sink_keeps_what_every_sink_promises() {
    let broker = Broker::shared();
    for qos in ["0", "1", "2"] {
        let topic = broker.name("contract");
        let mut reader = broker.client();
        reader.subscribe(&topic);
        let mut all = Vec::new();
        let mut written = || {
            all.extend(reader.values());
            all.clone()
        };
        contract::sink(&mut Subject {
            factory: Arc::new(MqttSinkFactory),
            spec: SinkSpec { format: FORMAT.into(), options: to_topic(broker.url(), &topic).with("qos", qos) },
            query: QueryId(Uuid::new_v4()),
            written: Some(&mut written),
            counts_once: false,
        });
    }
    let sink = open(&to_topic(broker.url(), "t")).unwrap();
    assert_eq!(sink.guarantee(), Guarantee::AtLeastOnce);
}

#[test]
fn many_rows_go_out_a_few_at_a_time_in_their_order() {
    let broker = Broker::shared();
    let values: Vec<String> = (0..3000).map(|number| number.to_string()).collect();
    let texts: Vec<&str> = values.iter().map(String::as_str).collect();
    for (qos, most) in [("0", "1"), ("1", "1"), ("1", "7"), ("1", "65535"), ("2", "1"), ("2", "20")] {
        let topic = broker.name("many");
        let mut reader = broker.client();
        reader.subscribe(&topic);
        let options = to_topic(broker.url(), &topic).with("qos", qos).with("maxInflight", most);
        let mut sink = open(&options).unwrap();
        assert_eq!(write(sink.as_mut(), 0, &some(&texts[..1000])).unwrap(), 1000);
        assert_eq!(write(sink.as_mut(), 1, &some(&texts[1000..])).unwrap(), 2000);
        assert_eq!(reader.values(), values, "QoS {qos}, {most} at a time");
    }
}

#[test]
fn a_row_says_where_it_goes_and_what_goes_with_it() {
    let broker = Broker::shared();
    let (topic, mut reader) = (broker.name("rows"), broker.client());
    reader.subscribe(&format!("{topic}/#"));
    let (one, two) = (format!("{topic}/1"), format!("{topic}/2"));
    let rows = texts(&[
        ("topic", &[Some(one.as_str()), Some(two.as_str())]),
        ("value", &[Some("a"), None]),
        ("unasked", &[Some("x"), Some("y")]),
    ]);
    let mut sink = open(&Options::new().with("url", broker.url()).with("qos", "2").with("retain", "true")).unwrap();
    write(sink.as_mut(), 0, &rows).unwrap();
    let message = |topic: &str, value: &str, qos, retained| Message {
        topic: topic.into(),
        value: value.into(),
        qos,
        retained,
        headers: String::new(),
    };
    assert_eq!(reader.messages(), [message(&one, "a", 2, false), message(&two, "", 2, false)]);
    let mut late = broker.client();
    late.subscribe(&format!("{topic}/#"));
    assert_eq!(late.messages(), [message(&one, "a", 2, true)], "the broker keeps the last of each topic");
    write(sink.as_mut(), 1, &texts(&[("topic", &[Some(one.as_str())]), ("value", &[None])])).unwrap();
    let mut later = broker.client();
    later.subscribe(&format!("{topic}/#"));
    assert_eq!(later.messages(), [], "an empty message takes it away");
    assert_eq!(sink.description(), format!("MqttSink[{} topics of rows]", broker.url()));
}

#[test]
fn headers_go_as_properties() {
    let broker = Broker::shared();
    let (topic, mut reader) = (broker.name("headers"), broker.client());
    reader.subscribe(&topic);
    let headers = arrow::array::new_null_array(&crate::source_headers(), 1);
    let values: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let rows = RecordBatch::try_from_iter_with_nullable([("value", values, true), ("headers", headers, true)]).unwrap();
    let mut sink = open(&to_topic(broker.url(), &topic)).unwrap();
    write(sink.as_mut(), 0, &rows).unwrap();
    assert_eq!(reader.messages()[0].headers, "");
}

#[test]
fn rows_that_have_no_place_are_named_before_anything_is_sent() {
    let broker = Broker::shared();
    let (topic, mut reader) = (broker.name("bad"), broker.client());
    reader.subscribe(&format!("{topic}/#"));
    let mut sink = open(&Options::new().with("url", broker.url())).unwrap();
    let good = format!("{topic}/good");
    for (bad, part) in [(None, "NULL as its `topic`"), (Some("a/#"), "no `+` and no `#`"), (Some(""), "has a name")] {
        let rows = texts(&[("topic", &[Some(good.as_str()), bad]), ("value", &[Some("a"), Some("b")])]);
        let error = write(sink.as_mut(), 0, &rows).unwrap_err();
        assert!(matches!(error, SinkError::Rows { .. }) && error.fault() == Fault::Data, "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(reader.messages(), []);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let rows = RecordBatch::try_from_iter([("value", numbers)]).unwrap();
    let spec = SinkSpec { format: FORMAT.into(), options: to_topic(broker.url(), "t") };
    let error = MqttSinkFactory.check_columns(&spec, &rows.schema()).unwrap_err();
    assert!(error.to_string().contains("CAST(value AS …)"), "{error}");
}

#[test]
fn a_connection_that_was_idle_for_too_long_is_another_one_next_time() {
    let broker = Broker::shared();
    let (topic, mut reader) = (broker.name("idle"), broker.client());
    reader.subscribe(&topic);
    let mut sink = open(&to_topic(broker.url(), &topic).with("keepAlive", "1 s")).unwrap();
    write(sink.as_mut(), 0, &some(&["a"])).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2500));
    write(sink.as_mut(), 1, &some(&["b"])).unwrap();
    assert_eq!(reader.values(), ["a", "b"]);
}

#[test]
fn a_message_that_is_too_large_for_the_broker_is_refused() {
    let Some(broker) = Broker::own("max_packet_size 1000\n") else { return };
    let mut sink = open(&to_topic(broker.url(), "t")).unwrap();
    let error = write(sink.as_mut(), 0, &some(&["small", &"x".repeat(2000)])).unwrap_err();
    assert!(describe_chain(&error).contains("refuses: a message of 20"), "{}", describe_chain(&error));
    assert!(describe_chain(&error).contains("1000 at most"), "{}", describe_chain(&error));
}
