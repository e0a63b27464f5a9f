//! Servers and data that are not as they should be.

use crate::{FORMAT, Input, drain, next, open, open_at, query, to_stream, values, write};
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::Schema;
use databases_tests::free_port;
use millstream_common::{Fault, Hint, ManualClock, Options, ReadLimit, StopSignal, describe_chain};
use millstream_sink::connectors::nats::NatsSinkFactory;
use millstream_sink::{SinkError, SinkFactory, SinkSpec};
use millstream_source::Source;
use nats_tests::server::JETSTREAM;
use nats_tests::{Client, Nats};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The error of asking what is new, as a user sees it.
fn refusal(source: &mut dyn Source) -> (String, Option<String>) {
    let error = source.latest_offset(None, ReadLimit::AllAvailable).unwrap_err();
    (describe_chain(&error), error.hint())
}

fn refused(options: &Options) -> (String, Option<String>) {
    let error = open(&options.clone().with("retryTimeout", "0 s"), query()).map(drop).unwrap_err();
    (format!("{} {error:?}", describe_chain(&error)), error.hint())
}

#[test]
fn a_server_without_jetstream_is_refused_with_the_reason() {
    let Some(nats) = Nats::configured("") else { return };
    let (text, hint) = refused(&to_stream(nats.servers(), "out"));
    assert!(text.contains("has no JetStream") && text.contains("a message is gone once it is sent"), "{text}");
    assert!(hint.unwrap().contains("nats-server -js"));
    let (text, _) = refusal(Input::of(nats.servers(), "in", &[]).open().as_mut());
    assert!(text.contains("cannot look at stream `in`") && text.contains("has no JetStream"), "{text}");
}

#[test]
fn streams_that_do_not_fit_are_refused_before_anything_is_written() {
    let nats = Nats::shared();
    let client = nats.client();
    let to = |stream: &str| to_stream(nats.servers(), stream);
    let missing = nats.name("missing");
    let (text, hint) = refused(&to(&missing));
    assert!(
        text.contains(&format!("has no stream `{missing}`")) && hint.unwrap().contains("nats stream add"),
        "{text}"
    );
    let stream = nats.stream("takes");
    let (text, hint) = refused(&to(&stream).with("subject", "elsewhere"));
    assert!(
        text.contains("takes messages of subject `elsewhere`") && hint.unwrap().contains("nats stream edit"),
        "{text}"
    );
    let short = nats.name("short");
    client.make_stream(&short, &[&short], &json!({ "duplicate_window": 1_000_000_000 }));
    let (text, _) = refused(&to(&short));
    assert!(text.contains("knows the ids of messages for 1000 ms only") && text.contains("2 minutes"), "{text}");
    let quiet = nats.name("quiet");
    client.make_stream(&quiet, &[&quiet], &json!({ "no_ack": true }));
    assert!(refused(&to(&quiet)).0.contains("no_ack"));
    let mirror = nats.name("mirror");
    client.ask(
        &format!("STREAM.CREATE.{mirror}"),
        &json!({ "name": mirror, "storage": "file", "mirror": { "name": stream }, "duplicate_window": 120_000_000_000_u64 }),
    );
    assert!(refused(&to(&mirror)).0.contains("mirror of another stream"));

    // The same is told where a query is only checked.
    let schema = Arc::new(Schema::new(values(&[]).schema().fields().clone()));
    let check = |options: Options| {
        let spec = SinkSpec { format: FORMAT.into(), options: options.with("retryTimeout", "0 s") };
        NatsSinkFactory.check_place(&spec, &schema, &StopSignal::new()).map_err(|error| describe_chain(&error))
    };
    assert_eq!(check(to(&stream)), Ok(()));
    assert!(check(to(&short)).unwrap_err().contains("1000 ms"));
}

#[test]
fn a_stream_whose_messages_go_when_others_have_them_cannot_be_read_again() {
    let nats = Nats::shared();
    for retention in ["workqueue", "interest"] {
        let stream = nats.name(retention);
        nats.client().make_stream(&stream, &[&stream], &json!({ "retention": retention }));
        let (text, _) = refusal(Input::of(nats.servers(), &stream, &[]).open().as_mut());
        assert!(text.contains("no range of it can be read again") && text.contains("retention `limits`"), "{text}");
        // But it can be written.
        let mut sink = open(&to_stream(nats.servers(), &stream), query()).unwrap();
        assert_eq!(write(sink.as_mut(), 0, &values(&["a"])).unwrap(), 1);
    }
}

#[test]
fn rows_that_can_be_no_messages_are_named_and_nothing_of_their_batch_goes_out() {
    let nats = Nats::shared();
    let (stream, other) = (nats.stream("rows"), nats.stream("other"));
    let options = Options::new().with("servers", nats.servers()).with("stream", stream.as_str());
    let mut sink = open(&options, query()).unwrap();
    let rows = |subjects: &[Option<&str>], last: &str| {
        let column: ArrayRef = Arc::new(StringArray::from(subjects.to_vec()));
        let mut values = vec!["v"; subjects.len()];
        values[subjects.len() - 1] = last;
        let values: ArrayRef = Arc::new(StringArray::from(values));
        RecordBatch::try_from_iter_with_nullable([("subject", column, true), ("value", values, true)]).unwrap()
    };
    let large = "x".repeat(2 << 20);
    for (subjects, last, part) in [
        ([Some(stream.as_str()), None], "v", "NULL as its `subject`"),
        ([Some(stream.as_str()), Some("a.*")], "v", "`a.*` as its `subject`"),
        ([Some(stream.as_str()), Some(stream.as_str())], large.as_str(), "no more than 1048576 are taken"),
    ] {
        let error = write(sink.as_mut(), 0, &rows(&subjects, last)).unwrap_err();
        assert!(matches!(error, SinkError::Rows { .. }) && error.fault() == Fault::Data, "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(nats.client().texts(&stream), [""; 0]);
    // Where a subject belongs only the server knows.
    for (subject, part) in [(other.as_str(), "expected stream does not match"), ("nobody", "no stream at")] {
        let error = write(sink.as_mut(), 0, &rows(&[Some(&stream), Some(subject)], "v")).unwrap_err();
        let text = describe_chain(&error);
        assert!(text.contains(part) && text.contains(&format!("subject `{subject}`")), "{text}");
    }
    assert_eq!(nats.client().texts(&other), [""; 0]);
    assert_eq!(write(sink.as_mut(), 0, &rows(&[Some(&stream), Some(&stream)], "v")).unwrap(), 2);
    assert_eq!(nats.client().texts(&stream), ["v", "v"], "what went out before is not there twice");
}

#[test]
fn a_stream_that_is_full_takes_nothing() {
    let nats = Nats::shared();
    let stream = nats.name("full");
    nats.client().make_stream(&stream, &[&stream], &json!({ "max_msgs": 3, "discard": "new" }));
    let mut sink = open(&to_stream(nats.servers(), &stream), query()).unwrap();
    let error = write(sink.as_mut(), 0, &values(&["a", "b", "c", "d"])).unwrap_err();
    let text = describe_chain(&error);
    assert!(text.contains("has no room left") && text.contains("maximum messages exceeded"), "{text}");
    nats.client().change_stream(&stream, &json!({ "max_msgs": 10 }));
    assert_eq!(write(sink.as_mut(), 0, &values(&["a", "b", "c", "d"])).unwrap(), 4);
    assert_eq!(nats.client().texts(&stream), ["a", "b", "c", "d"]);
}

/// A seed of a key that nobody has but these tests, and the key.
const SEED: &str = "SUAE5BRU6SSFT45COWOLJS6VLG4ZZYLFG6WQZQD6OIUSD2WNOII552TREY";
const KEY: &str = "UCATUBEI44OZK3CQAUQR6B4VA4F77ZYZCKVXMNA76EPVJPC7W5O26V74";

#[test]
fn who_is_let_in_and_who_is_not() {
    let users = "authorization { users = [ { user: ann, password: of-ann }, { user: reader, password: of-reader, permissions: \
                 { publish: [\"$JS.API.STREAM.INFO.S\", \"$JS.API.CONSUMER.*.S\", \"$JS.API.CONSUMER.*.S.*\", \
                 \"$JS.API.CONSUMER.MSG.NEXT.S.*\", \"$JS.API.STREAM.MSG.GET.S\"], subscribe: [\"_INBOX.>\"] } } ] }\n";
    let Some(nats) = Nats::own(users) else { return };
    let client = Client::with(nats.servers(), login("ann", "of-ann"));
    client.make_stream("S", &["s"], &json!({}));
    client.publish_numbers("s", 1..=3);
    let with = |login: &str| nats.servers().replace("nats://", &format!("nats://{login}@"));
    for (servers, who) in [
        (nats.servers().to_owned(), "does not let nobody in particular in"),
        (with("ann:of-somebody"), "does not let user `ann` in"),
        (with("ann"), "does not let user `ann` in"),
    ] {
        let (text, hint) = refused(&to_stream(&servers, "S"));
        assert!(text.contains(who) && !text.contains("of-somebody"), "{text}");
        assert!(hint.unwrap().contains("passwordEnv"));
        let (text, _) = refusal(Input::of(&servers, "S", &[]).open().as_mut());
        assert!(text.contains(who) && !text.contains("of-somebody"), "{text}");
    }
    let options = to_stream(nats.servers(), "S").with("user", "ann").with("password", "of-ann").with("subject", "s");
    write(open(&options, query()).unwrap().as_mut(), 0, &values(&["4"])).unwrap();
    // Who may only read reads.
    let input = Input::of(&with("reader:of-reader"), "S", &[("subject", "s")]);
    assert_eq!(drain(input.open().as_mut(), None).0, [1, 2, 3, 4]);
    let began = Instant::now();
    let (text, hint) = refused(&to_stream(&with("reader:of-reader"), "S").with("subject", "s"));
    assert!(text.contains("does not allow it: Permissions Violation for Publish to"), "{text}");
    assert!(hint.is_some() && began.elapsed() < Duration::from_secs(5), "it is told at once");
}

fn login(user: &str, password: &str) -> nats_tests::client::ConnectOptions {
    nats_tests::client::ConnectOptions::new().user_and_password(user.into(), password.into())
}

#[test]
fn tokens_and_keys_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let Some(nats) = Nats::own("authorization { token: of-the-server }\n") else { return };
    let plain = |nats: &Nats| to_stream(nats.servers(), "S");
    let (text, _) = refused(&plain(&nats).with("token", "of-somebody"));
    assert!(text.contains("does not let the token in") && !text.contains("of-somebody"), "{text}");
    let (text, _) = refused(&plain(&nats).with("token", "of-the-server"));
    assert!(text.contains("has no stream `S`"), "{text}");

    let Some(nats) = Nats::own(&format!("authorization {{ users = [ {{ nkey: {KEY} }} ] }}\n")) else { return };
    let (text, _) = refused(&plain(&nats).with("nkey", file("good.nk", &format!("{SEED}\n"))));
    assert!(text.contains("has no stream `S`"), "{text}");
    for (name, seed) in
        [("none.nk", "nothing"), ("other.nk", "SUAKWLIZGLX4XUXVXWWCBWQOSENNV7JILX7OSZQPKWSCQKBWYBLSSGR2EA")]
    {
        let (text, _) = refused(&plain(&nats).with("nkey", file(name, seed)));
        assert!(text.contains("does not let the key of `") && !text.contains(seed), "{text}");
    }
    let missing = folder.path().join("missing").display().to_string();
    for option in ["nkey", "credentials"] {
        let (text, _) = refused(&plain(&nats).with(option, &missing));
        assert!(text.contains("cannot use `") && text.contains("missing"), "{text}");
    }
    let (text, hint) = refused(&plain(&nats).with("credentials", file("bad.creds", SEED)));
    assert!(text.contains("no token and key of a user") && !text.contains(SEED), "{text}");
    assert!(hint.unwrap().contains("nsc generate creds"));
}

#[test]
fn nobody_and_somebody_else_are_told_apart() {
    let nobody = format!("nats://127.0.0.1:{}", free_port());
    let (text, hint) = refused(&to_stream(&nobody, "out"));
    assert!(text.contains("cannot reach") && hint.unwrap().contains("start a server"), "{text}");
    // Of several servers any will do.
    let nats = Nats::shared();
    let stream = nats.stream("several");
    let several = format!("{nobody},{}", nats.servers());
    let mut sink = open(&to_stream(&several, &stream), query()).unwrap();
    assert_eq!(write(sink.as_mut(), 0, &values(&["a"])).unwrap(), 1);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = format!("nats://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::Write;
        for mut client in listener.incoming().flatten() {
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let (text, _) = refused(&to_stream(&other, "out"));
    assert!(text.contains("does not answer as NATS does"), "{text}");
}

#[test]
fn who_wants_to_stop_does_not_wait_for_a_server_that_is_away() {
    let Some(nats) = Nats::own("") else { return };
    let stream = nats.stream("away");
    nats.client().publish_numbers(&stream, 1..=3);
    let input = Input::of(nats.servers(), &stream, &[]);
    let mut source = input.open();
    let first = next(source.as_mut(), None);
    let stop = StopSignal::new();
    let options = to_stream(nats.servers(), &stream).with("retryTimeout", "10 minutes");
    let mut sink = open_at(&options, query(), &Arc::new(ManualClock::at(0)), &stop).unwrap();
    nats.kill();
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            stop.set();
            input.stop.set();
        });
        scope.spawn(|| {
            let error = write(sink.as_mut(), 0, &values(&["a"])).unwrap_err();
            assert!(describe_chain(&error).contains("nats://127.0.0.1"), "{error:?}");
        });
        let error = source.latest_offset(first.as_ref(), ReadLimit::AllAvailable).unwrap_err();
        assert!(describe_chain(&error).contains("nats://127.0.0.1"), "{error:?}");
    });
    let took = began.elapsed();
    assert!(took > Duration::from_millis(400) && took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_for_ever() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("nats://{}", listener.local_addr().unwrap());
    let began = Instant::now();
    let (text, _) = refused(&to_stream(&silent, "out").with("connectTimeout", "1 second"));
    assert!(text.contains("cannot reach"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// Certificates of an authority, of `localhost` and of a client, and their keys.
fn certificates(folder: &Path) {
    let run = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let new = ["-newkey", "rsa:2048", "-nodes"];
    run(&[&["req", "-x509", "-days", "30", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"][..], &new]
        .concat());
    for (name, extension) in [("server", "subjectAltName=DNS:localhost"), ("client", "extendedKeyUsage=clientAuth")] {
        let (key, request, pem) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let subject = format!("/CN={name}");
        run(&[&["req", "-subj", &subject, "-keyout", &key, "-out", &request][..], &new].concat());
        std::fs::write(folder.join("extensions"), extension).unwrap();
        run(&[
            "x509",
            "-req",
            "-days",
            "30",
            "-in",
            &request,
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-extfile",
            "extensions",
            "-out",
            &pem,
        ]);
    }
}

#[test]
fn a_connection_is_encrypted_and_both_sides_prove_their_names() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let tls = |more: &str| {
        let (cert, key, ca) = (file("server.pem"), file("server.key"), file("ca.pem"));
        format!("{JETSTREAM}tls {{ cert_file: \"{cert}\", key_file: \"{key}\", ca_file: \"{ca}\"{more} }}\n")
    };
    let Some(nats) = Nats::configured(&tls("")) else { return };
    let by = |nats: &Nats, scheme: &str, host: &str| to_stream(&format!("{scheme}://{host}:{}", nats.port()), "S");
    let trusting = |options: Options| options.with("sslrootcert", file("ca.pem"));
    for scheme in ["tls", "nats"] {
        let (text, _) = refused(&trusting(by(&nats, scheme, "localhost")));
        assert!(text.contains("has no stream `S`"), "{text}");
    }
    for options in [
        by(&nats, "tls", "localhost"),
        by(&nats, "nats", "localhost"),
        trusting(by(&nats, "tls", "127.0.0.1")),
        by(&nats, "tls", "localhost").with("sslrootcert", file("server.key")),
    ] {
        let (text, hint) = refused(&options);
        assert!(text.contains("cannot encrypt the connection") && hint.unwrap().contains("sslrootcert"), "{text}");
    }

    let Some(nats) = Nats::configured(&tls(", verify: true")) else { return };
    let proving = trusting(by(&nats, "tls", "localhost")).with("sslcert", file("client.pem"));
    let (text, _) = refused(&proving.with("sslkey", file("client.key")));
    assert!(text.contains("has no stream `S`"), "{text}");
    let (text, _) = refused(&trusting(by(&nats, "tls", "localhost")));
    assert!(text.contains("cannot encrypt the connection") || text.contains("cannot reach"), "{text}");

    // A server without TLS.
    let plain = Nats::shared();
    let servers = plain.servers().replace("nats://127.0.0.1", "tls://localhost");
    let (text, _) = refused(&to_stream(&servers, "S").with("connectTimeout", "2 seconds"));
    assert!(text.contains("cannot encrypt") || text.contains("cannot reach"), "{text}");
}
