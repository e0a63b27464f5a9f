//! Query files from MQTT to MQTT: the file, what goes in, and what must come out.

use databases_tests::{QueryFile, free_port};
use millstream_common::{StopSignal, describe_chain};
use millstream_runtime::batch_query::run_batch_query;
use millstream_runtime::{Session, StreamingQuery};
use mqtt_tests::Broker;
use std::time::{Duration, Instant};

/// The query of a file, where `NAME` stands for a name of this test and `URL` for the broker.
fn query_file(query: &str, name: &str) -> QueryFile {
    QueryFile::new(&query.replace("NAME", name).replace("URL", Broker::shared().url()))
}

const HEAT: &str = r#"
name = "heat"
output_mode = "update"
trigger = "available now"
checkpoint = "checkpoint"
sql = """
SELECT 'NAME/hot/' || sensor AS topic, CAST(max(heat) AS STRING) || ' of ' || CAST(count(*) AS STRING) AS value
FROM (SELECT split(topic, '/')[2] AS sensor, CAST(CAST(value AS STRING) AS INT) AS heat FROM readings) AS r
GROUP BY sensor
"""

[[source]]
name = "readings"
format = "mqtt"
options = { url = "URL", topic = "NAME/heat/+", qos = 2, maxEntriesPerTrigger = 2 }

[sink]
format = "mqtt"
options = { url = "URL", qos = 1, retain = true }
"#;

#[test]
fn readings_are_counted_from_topics_into_topics_with_and_without_restarts() {
    let broker = Broker::shared();
    let mut client = broker.client();
    for restarting in [false, true] {
        let name = broker.name("heat");
        let folder = query_file(HEAT, &name);
        assert_eq!(folder.run(false).len(), 0, "the query begins");
        for (sensor, heat) in [("one", "10"), ("two", "7"), ("one", "30"), ("one", "5"), ("two", "8")] {
            client.publish(&format!("{name}/heat/{sensor}"), heat, 1);
        }
        let told = folder.run(restarting);
        assert_eq!(told.iter().map(|progress| progress.num_input_rows).collect::<Vec<_>>(), [2, 2, 1]);
        let source = &told[0].sources[0];
        assert!(source.description.contains(&format!("MqttMessages[{name}/heat/+ at mqtt://")), "{source:?}");
        assert_eq!(source.metrics.get("entriesBehindLatest").map(String::as_str), Some("3"));
        let mut reader = broker.client();
        reader.subscribe(&format!("{name}/hot/#"));
        let mut kept: Vec<String> =
            reader.messages().into_iter().map(|message| format!("{} {}", message.topic, message.value)).collect();
        kept.sort();
        assert_eq!(kept, [format!("{name}/hot/one 30 of 3"), format!("{name}/hot/two 8 of 2")]);
    }
}

#[test]
fn a_batch_query_reads_what_the_broker_keeps_of_old() {
    let broker = Broker::shared();
    let (name, mut client) = (broker.name("kept"), broker.client());
    for (sensor, heat) in [("one", "10"), ("two", "7"), ("three", "9")] {
        client.retain(&format!("{name}/heat/{sensor}"), heat);
    }
    let query = HEAT.replace("output_mode = \"update\"", "output_mode = \"complete\"");
    let folder = query_file(&query.replace("NAME/hot/' || sensor", "NAME/hot' || ''"), &name);
    let summary = run_batch_query(&Session::new().unwrap(), &folder.spec(), &StopSignal::new()).unwrap().unwrap();
    assert_eq!((summary.rows_in, summary.rows_out), (vec![("readings".to_owned(), 3)], 3));
}

#[test]
fn a_query_waits_for_a_broker_as_long_as_its_options_say_and_no_longer() {
    // While it runs: with the trigger `available now` it is the start that waits.
    let query = HEAT.replace("trigger = \"available now\"\n", "");
    let query = query.replace("qos = 2,", "retryTimeout = \"2 seconds\",");
    let query = query.replace("\"mqtt\"\noptions = { url = \"URL\", qos = 1, retain = true }", "\"noop\"");
    let folder = QueryFile::new(&query.replace("URL", &format!("mqtt://127.0.0.1:{}", free_port())));
    let begin = Instant::now();
    let query = StreamingQuery::start(&Session::new().unwrap(), folder.spec(), None).unwrap();
    let error = query.await_termination().unwrap_err();
    assert!(describe_chain(&*error).contains("cannot reach `mqtt://127.0.0.1:"), "{}", describe_chain(&*error));
    let waited = begin.elapsed();
    assert!(Duration::from_secs(1) < waited && waited < Duration::from_secs(4), "it took {waited:?}");
}
