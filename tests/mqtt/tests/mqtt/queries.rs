//! Query files from MQTT to MQTT: the file, what goes in, and what must come out.

use millstream_common::StopSignal;
use millstream_runtime::batch_query::run_batch_query;
use millstream_runtime::query_file::{Overrides, load};
use millstream_runtime::{Progress, QueryRun, QuerySpec, Session};
use mqtt_tests::Broker;
use tempfile::TempDir;

/// A folder with a query file.
struct Folder(TempDir);

impl Folder {
    /// `NAME` in the query stands for a name of this test, `URL` for the broker.
    fn new(query: &str, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = query.replace("NAME", name).replace("URL", Broker::shared().url());
        std::fs::write(folder.path().join("query.toml"), text).unwrap();
        Self(folder)
    }

    fn spec(&self) -> QuerySpec {
        load(&self.0.path().join("query.toml"), None, &[], Overrides::default()).unwrap().spec
    }

    /// Runs what there is to run; with `restarting`, each batch in a life of its own.
    fn run(&self, restarting: bool) -> Vec<Progress> {
        let session = Session::new().unwrap();
        let mut told = Vec::new();
        let mut run = QueryRun::open(&session, self.spec(), StopSignal::new()).unwrap();
        while let Some(progress) = run.run_next().unwrap() {
            told.push(progress);
            if restarting {
                run.close();
                run = QueryRun::open(&session, self.spec(), StopSignal::new()).unwrap();
            }
        }
        run.close();
        told
    }
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
        let folder = Folder::new(HEAT, &name);
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
    let folder = Folder::new(&query.replace("NAME/hot/' || sensor", "NAME/hot' || ''"), &name);
    let summary = run_batch_query(&Session::new().unwrap(), &folder.spec(), &StopSignal::new()).unwrap().unwrap();
    assert_eq!((summary.rows_in, summary.rows_out), (vec![("readings".to_owned(), 3)], 3));
}
