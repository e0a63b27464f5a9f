//! Queries over a broker that wants TLS and a login.

use kafka_tests::{Kafka, Record, Secured};
use millstream_common::{Hint, Options, StopSignal, Trigger, describe_chain};
use millstream_runtime::{QueryRun, QuerySpec, RuntimeError, Session, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use std::path::Path;
use std::time::{Duration, Instant};

/// From one topic to another, as a user; the password and the authority may be others than those of the source.
struct Story<'a> {
    secured: &'a Secured,
    input: String,
    output: String,
}

impl Story<'_> {
    fn spec(&self, folder: &Path, source: Options, sink: Options) -> QuerySpec {
        let source = source.with("subscribe", &self.input).with("startingOffsets", "earliest");
        let source = source.with("maxOffsetsPerTrigger", "4");
        let stream = StreamSpec {
            source: SourceSpec { name: "t".into(), format: "kafka".into(), schema: None, options: source },
            event_time: None,
            drop_duplicates: None,
        };
        let sink = SinkSpec { format: "kafka".into(), options: sink.with("topic", &self.output) };
        let sql = "SELECT key, upper(CAST(value AS STRING)) AS value FROM t";
        QuerySpec {
            checkpoint: Some(folder.join("checkpoint").display().to_string()),
            trigger: Trigger::AvailableNow,
            ..QuerySpec::new(sql, vec![stream], sink)
        }
    }

    fn options(&self, user: &str, password: &str) -> Options {
        let said = self.secured.options(user, password);
        said.into_iter().fold(Options::new(), |options, (name, value)| options.with(name, value))
    }

    fn alice(&self) -> Options {
        self.options("alice", Secured::password())
    }

    /// What ends a query with these options, within seconds.
    fn refusal(&self, source: Options, sink: Options) -> RuntimeError {
        let folder = tempfile::tempdir().unwrap();
        let begin = Instant::now();
        let run = QueryRun::open(&Session::new().unwrap(), self.spec(folder.path(), source, sink), StopSignal::new());
        let error = run.and_then(|mut run| run.run_next().map(drop)).unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(15), "{:?}: {}", begin.elapsed(), describe_chain(&error));
        error
    }
}

#[test]
fn a_query_over_tls_with_a_login_is_exactly_once_and_refused_in_seconds_when_either_does_not_fit() {
    if std::env::var_os("MILLSTREAM_TEST_KAFKA").is_some_and(|brokers| !brokers.is_empty()) {
        // Somebody else's broker has its own users.
        return;
    }
    let (kafka, secured) = Kafka::start_secured().unwrap();
    let story = Story { secured: &secured, input: kafka.topic("in", 2), output: kafka.topic("out", 2) };
    let letters: Vec<Record> = ["a", "b", "c", "d", "e", "f"].map(Record::of).into();
    kafka.produce(&story.input, &letters).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let session = Session::new().unwrap();
    // A life that dies after its first batch, and one that does the rest.
    let spec = || story.spec(folder.path(), story.alice(), story.alice());
    let mut run = QueryRun::open(&session, spec(), StopSignal::new()).unwrap();
    let first = run.run_next().unwrap().unwrap().num_input_rows;
    assert!((1..6).contains(&first), "{first} rows are one batch of several");
    drop(run);
    let mut run = QueryRun::open(&session, spec(), StopSignal::new()).unwrap();
    while run.run_next().unwrap().is_some() {}
    drop(run);
    assert_eq!(kafka.values(&story.output), ["A", "B", "C", "D", "E", "F"]);

    let strange =
        |options: Options| options.with("kafka.ssl.truststore.location", secured.stranger.display().to_string());
    let wrong = || story.options("alice", "open barley");
    let cases = [
        ("source, password", wrong(), story.alice(), "kafka.sasl.jaas.config"),
        ("sink, password", story.alice(), wrong(), "kafka.sasl.jaas.config"),
        ("source, authority", strange(story.alice()), story.alice(), "kafka.ssl.truststore.location"),
        ("sink, authority", story.alice(), strange(story.alice()), "kafka.ssl.truststore.location"),
    ];
    for (case, source, sink, option) in cases {
        let error = story.refusal(source, sink);
        let (text, hint) = (describe_chain(&error), error.hint().unwrap_or_default());
        assert!(hint.contains(option), "{case}: {text}; {hint}");
        assert!(text.contains(&secured.address), "{case}: {text}");
        assert!(!text.contains("barley") && !text.contains("sesame"), "{case}: {text}");
    }
    // Bob comes in, and may do nothing.
    let bob = || story.options("bob", Secured::password());
    for (case, source, sink) in [("source", bob(), story.alice()), ("sink", story.alice(), bob())] {
        let error = story.refusal(source, sink);
        let (text, hint) = (describe_chain(&error), error.hint().unwrap_or_default());
        assert!(text.contains("may not do that") && hint.contains("permission"), "{case}: {text}; {hint}");
    }
    assert_eq!(kafka.values(&story.output).len(), 6, "nobody of them wrote anything");
}
