//! Query files from NATS to NATS: the file, what goes in, and what must come out.

use databases_tests::QueryFile;
use millstream_common::StopSignal;
use millstream_runtime::Session;
use millstream_runtime::batch_query::run_batch_query;
use nats_tests::Nats;

/// The query of a file, where `IN` and `OUT` stand for streams of this test and `SERVERS` for the server.
fn query_file(query: &str, input: &str, output: &str) -> QueryFile {
    let query = query.replace("SERVERS", Nats::shared().servers());
    QueryFile::new(&query.replace("IN", input).replace("OUT", output))
}

const VISITS: &str = r#"
name = "visits"
output_mode = "update"
trigger = "available now"
checkpoint = "checkpoint"
sql = """
SELECT 'OUT.' || page AS subject, CAST(visits AS string) AS value FROM (
  SELECT CAST(data AS string) AS page, count(*) AS visits FROM clicks GROUP BY CAST(data AS string)) AS counts
"""

[[source]]
name = "clicks"
format = "nats"
options = { servers = "SERVERS", stream = "IN", subject = "IN.eu.>", startingOffsets = "earliest", maxOffsetsPerTrigger = 2 }

[sink]
format = "nats"
options = { servers = "SERVERS", stream = "OUT" }
"#;

#[test]
fn visits_are_counted_from_a_stream_into_another_with_and_without_restarts() {
    let nats = Nats::shared();
    let client = nats.client();
    for restarting in [false, true] {
        let (input, output) = (nats.stream("clicks"), nats.stream("visits"));
        for (place, page) in [("eu.a", "home"), ("us.a", "home"), ("eu.b", "cart"), ("eu.a", "home"), ("eu.c", "home")]
        {
            client.publish(&format!("{input}.{place}"), page);
        }
        let told = query_file(VISITS, &input, &output).run(restarting);
        assert_eq!(told.iter().map(|progress| progress.num_input_rows).collect::<Vec<_>>(), [2, 2]);
        let source = &told[0].sources[0];
        assert!(source.description.contains(&format!("NatsStream[{input} ({input}.eu.>) at nats://")), "{source:?}");
        assert_eq!(source.metrics.get("offsetsBehindLatest").map(String::as_str), Some("2"));
        let mut found = client.texts(&output);
        found[..2].sort();
        assert_eq!(found, ["cart 1", "home 1", "home 3"], "restarting: {restarting}");
    }
}

const COPY: &str = r#"
name = "copy"
trigger = "available now"
checkpoint = "checkpoint"
sql = "SELECT data, replace(subject, 'IN', 'OUT') AS subject, headers FROM messages WHERE timestamp > TIMESTAMP '2020-01-01'"

[[source]]
name = "messages"
format = "nats"
options = { servers = "SERVERS", stream = "IN", startingOffsets = "earliest", includeHeaders = true }
watermark = { column = "timestamp", delay = "5 seconds" }

[sink]
format = "nats"
options = { servers = "SERVERS", stream = "OUT" }
"#;

#[test]
fn messages_are_copied_with_their_headers() {
    let nats = Nats::shared();
    let client = nats.client();
    let (input, output) = (nats.stream("from"), nats.stream("to"));
    let folder = query_file(COPY, &input, &output);
    client.publish_with(&format!("{input}.a"), b"\xff", &[("n", "1"), ("Nats-Msg-Id", "of the first")]);
    client.publish(&format!("{input}.b.c"), "plain");
    folder.run(true);
    client.publish_with(&input, b"", &[("n", "2"), ("n", "3")]);
    folder.run(true);
    let texts: Vec<String> = client.texts(&output);
    assert_eq!(texts, ["a \u{fffd}", "b.c plain", ""]);
    let messages = client.messages(&output);
    let headers = |at: usize| messages[at].headers.as_ref().unwrap();
    assert_eq!(headers(0).get_all("n").map(|value| value.as_str()).collect::<Vec<_>>(), ["1"]);
    assert_eq!(headers(2).get_all("n").map(|value| value.as_str()).collect::<Vec<_>>(), ["2", "3"]);
    assert_ne!(headers(0).get("Nats-Msg-Id").unwrap().as_str(), "of the first");
}

#[test]
fn a_batch_query_reads_a_stream_from_beginning_to_end_once() {
    let nats = Nats::shared();
    let client = nats.client();
    let (input, output) = (nats.stream("batch"), nats.stream("result"));
    for number in 0..5 {
        client.publish(&format!("{input}.eu.{number}"), "home");
    }
    let query = VISITS.replace("output_mode = \"update\"", "output_mode = \"complete\"");
    let folder = query_file(&query, &input, &output);
    let session = Session::new().unwrap();
    let summary = run_batch_query(&session, &folder.spec(), &StopSignal::new()).unwrap().unwrap();
    assert_eq!((summary.rows_in, summary.rows_out), (vec![("clicks".to_owned(), 5)], 1));
    assert_eq!(client.texts(&output), ["home 5"]);
}
