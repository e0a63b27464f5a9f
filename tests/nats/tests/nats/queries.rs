//! Query files from NATS to NATS: the file, what goes in, and what must come out.

use millstream_common::StopSignal;
use millstream_runtime::batch_query::run_batch_query;
use millstream_runtime::query_file::{Overrides, load};
use millstream_runtime::{Progress, QueryRun, QuerySpec, Session};
use nats_tests::Nats;
use tempfile::TempDir;

/// A folder with a query file.
struct Folder(TempDir);

impl Folder {
    /// `IN` and `OUT` in the query stand for streams of this test, `SERVERS` for the server.
    fn new(query: &str, input: &str, output: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = query.replace("SERVERS", Nats::shared().servers()).replace("IN", input).replace("OUT", output);
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
        let told = Folder::new(VISITS, &input, &output).run(restarting);
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
    let folder = Folder::new(COPY, &input, &output);
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
    let folder = Folder::new(&query, &input, &output);
    let session = Session::new().unwrap();
    let summary = run_batch_query(&session, &folder.spec(), &StopSignal::new()).unwrap().unwrap();
    assert_eq!((summary.rows_in, summary.rows_out), (vec![("clicks".to_owned(), 5)], 1));
    assert_eq!(client.texts(&output), ["home 5"]);
}
