//! Servers and data that are not as they should be.

use crate::{Input, ids, next, open, pairs, query, to_keys, to_stream, try_ids, write};
use millstream_common::{Fault, Hint, Options, OutputMode, ReadLimit, describe_chain};
use millstream_sink::SinkError;
use millstream_source::Source;
use redis_tests::server::free_port;
use redis_tests::{Client, Redis};
use std::path::Path;
use std::process::Command;

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
fn a_key_of_another_kind_is_named_before_anything_is_written() {
    let redis = Redis::shared();
    let mut client = redis.client();
    let (stream, prefix) = (redis.name("wrong"), redis.name("wrong:"));
    client.ask(&format!("SET {stream} text"));
    let (text, _) = refusal(Input::of(redis.url(), &stream, &[]).open().as_mut());
    assert!(text.contains(&format!("cannot look at stream `{stream}`")) && text.contains("another kind"), "{text}");

    let mut sink = open(&to_stream(redis.url(), &stream), query()).unwrap();
    let error = write(sink.as_mut(), 0, &pairs(&[("a", 1)]), OutputMode::Append).unwrap_err();
    assert!(describe_chain(&error).contains(&format!("`{stream}` holds a string, and not a stream")), "{error:?}");
    client.ask(&format!("DEL {stream}"));
    assert_eq!(write(sink.as_mut(), 0, &pairs(&[("a", 1)]), OutputMode::Append).unwrap(), 1);

    client.ask(&format!("SET {prefix}b text"));
    let mut sink = open(&to_keys(redis.url(), &prefix), query()).unwrap();
    let rows = pairs(&[("a", 1), ("b", 2), ("c", 3)]);
    for mode in [OutputMode::Update, OutputMode::Complete] {
        let error = write(sink.as_mut(), 0, &rows, mode).unwrap_err();
        assert!(describe_chain(&error).contains(&format!("`{prefix}b` holds a string, and not a hash")), "{error:?}");
    }
    assert_eq!(client.keys(&format!("{prefix}*")), [format!("{prefix}b")], "nothing was written");
}

#[test]
fn a_stream_without_ids_left_takes_no_batch_and_the_book_knows() {
    let redis = Redis::shared();
    let mut client = redis.client();
    let stream = redis.name("full");
    client.ask(&format!("XADD {stream} 18446744073709551615-18446744073709551615 a 1"));
    let mut sink = open(&to_stream(redis.url(), &stream), query()).unwrap();
    for _ in 0..2 {
        let error = write(sink.as_mut(), 0, &pairs(&[("a", 1)]), OutputMode::Append).unwrap_err();
        assert!(describe_chain(&error).contains("last possible ID"), "{}", describe_chain(&error));
    }
    client.ask(&format!("DEL {stream}"));
    assert_eq!(write(sink.as_mut(), 0, &pairs(&[("a", 1)]), OutputMode::Append).unwrap(), 1);
}

#[test]
fn values_that_are_not_utf_8_are_named_with_the_way_out() {
    let redis = Redis::shared();
    let stream = redis.name("bytes");
    let mut client = redis.client();
    client.add_entries(&stream, 1..=1);
    client.words(&[b"XADD".as_slice(), stream.as_bytes(), b"2-0", b"v", b"\xff\x00"]);
    let mut input = Input::of(redis.url(), &stream, &[]);
    let mut source = input.open();
    let end = next(source.as_mut(), None).unwrap();
    let error = source.read(None, &end, &[1, 3]).unwrap_err();
    let text = describe_chain(&error);
    assert!(text.contains(&format!("`entry 2-0 of stream {stream}`: the value of field `v` is not UTF-8")), "{text}");
    assert!(text.contains("`fieldValues` to binary") && error.fault() == Fault::Data, "{text}");
    assert_eq!(ids(source.as_mut(), None, &end), ["1-0", "2-0"], "who does not ask for them has no trouble");
    input.set("fieldValues", "binary");
    let mut source = input.open();
    assert_eq!(source.read(None, &end, &[3]).unwrap()[0][0].num_rows(), 2);
}

#[test]
fn rows_that_have_no_place_are_named() {
    let redis = Redis::shared();
    let prefix = redis.name("null:");
    let mut sink = open(&to_keys(redis.url(), &prefix), query()).unwrap();
    let keys = arrow::array::StringArray::from(vec![Some("a"), None]);
    let rows = arrow::array::RecordBatch::try_from_iter_with_nullable([(
        "k",
        std::sync::Arc::new(keys) as arrow::array::ArrayRef,
        true,
    )]);
    let error = write(sink.as_mut(), 0, &rows.unwrap(), OutputMode::Update).unwrap_err();
    assert!(matches!(error, SinkError::Rows { .. }) && error.fault() == Fault::Data, "{error:?}");
    assert!(error.to_string().contains("column `k` of the key is NULL"), "{error}");
    assert_eq!(redis.client().keys(&format!("{prefix}*")), [""; 0]);
}

#[test]
fn passwords_and_rules_are_told_of_and_not_shown() {
    let Some(redis) = Redis::own(&["--requirepass", "of-the-server"]) else { return };
    let with = |login: &str| redis.url().replace("redis://", &format!("redis://{login}@"));
    let mut client = Client::of(&with(":of-the-server"));
    client.ask("ACL SETUSER reader on >of-reader ~* +@read +ping");
    client.ask("ACL SETUSER free on nopass ~* +@all");
    client.add_entries("clicks", 1..=2);
    for (url, part) in [
        (redis.url().to_owned(), "does not let user `default` in: Authentication required"),
        (with(":of-somebody"), "does not let user `default` in"),
        (with("reader:of-somebody"), "does not let user `reader` in"),
    ] {
        let (text, hint) = refused(&to_stream(&url, "out"));
        assert!(text.contains(part) && !text.contains("of-somebody"), "{text}");
        assert!(hint.unwrap().contains("passwordEnv"));
        let (text, _) = refusal(Input::of(&url, "clicks", &[]).open().as_mut());
        assert!(text.contains(part) && !text.contains("of-somebody"), "{text}");
    }
    let (text, hint) = refused(&to_stream(&with("reader:of-reader"), "out"));
    assert!(text.contains("does not allow it") && hint.unwrap().contains("ACL"), "{text}");
    for login in ["reader:of-reader", "free"] {
        let mut source = Input::of(&with(login), "clicks", &[]).open();
        let end = next(source.as_mut(), None).unwrap();
        assert_eq!(ids(source.as_mut(), None, &end), ["1-0", "2-0"], "{login}");
    }
}

#[test]
fn nobody_and_somebody_else_are_told_apart() {
    let nobody = format!("redis://127.0.0.1:{}/0", free_port());
    let (text, hint) = refused(&to_stream(&nobody, "out"));
    assert!(text.contains("cannot reach") && hint.unwrap().contains("start the server"), "{text}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = format!("redis://{}/0", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 512]);
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let (text, _) = refused(&to_stream(&other, "out"));
    assert!(text.contains("does not answer as Redis does"), "{text}");

    let redis = Redis::shared();
    let (text, _) = refused(&to_stream(&redis.url().replace("/0", "/9999"), "out"));
    assert!(text.contains("out of range"), "{text}");
}

#[test]
fn a_replica_a_full_server_and_one_that_went_back_take_nothing() {
    let Some(redis) = Redis::own(&[]) else { return };
    let mut client = redis.client();
    let mut sink = open(&to_stream(redis.url(), "out"), query()).unwrap();
    write(sink.as_mut(), 0, &pairs(&[("a", 0)]), OutputMode::Append).unwrap();
    client.ask("CONFIG SET maxmemory 1");
    let error = write(sink.as_mut(), 1, &pairs(&[("b", 1)]), OutputMode::Append).unwrap_err();
    assert!(describe_chain(&error).contains("has no memory left"), "{error:?}");
    client.ask("CONFIG SET maxmemory 0");
    client.ask(&format!("REPLICAOF 127.0.0.1 {}", free_port()));
    let error = write(sink.as_mut(), 1, &pairs(&[("b", 1)]), OutputMode::Append).unwrap_err();
    assert!(describe_chain(&error).contains("is a replica"), "{error:?}");
    client.ask("REPLICAOF NO ONE");
    assert_eq!(write(sink.as_mut(), 1, &pairs(&[("b", 1)]), OutputMode::Append).unwrap(), 1);
    assert_eq!(client.entries("out"), ["k a v 0", "k b v 1"]);
    client.ask("FLUSHALL");
    let error = write(sink.as_mut(), 2, &pairs(&[("c", 2)]), OutputMode::Append).unwrap_err();
    assert!(error.to_string().contains("had confirmed batch 1, and has none now"), "{error}");
    assert!(error.hint().unwrap().contains("appendfsync always"));
    assert_eq!(client.ask("EXISTS out"), "0");
}

#[test]
fn keys_of_several_slots_of_a_cluster_are_refused() {
    let bus = free_port().to_string();
    let Some(redis) = Redis::own(&["--cluster-enabled", "yes", "--cluster-port", &bus]) else { return };
    let mut client = redis.client();
    client.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    let begin = std::time::Instant::now();
    while !client.ask("CLUSTER INFO").contains("cluster_state:ok") {
        assert!(begin.elapsed().as_secs() < 20, "the cluster does not come up");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let (text, hint) = refused(&to_keys(redis.url(), "counts:"));
    assert!(text.contains("is a node of a cluster: keys that begin with `counts:` are in many slots"), "{text}");
    assert!(hint.unwrap().contains("hash tag"));
    let mut sink = open(&to_keys(redis.url(), "{counts}:"), query()).unwrap();
    for (batch, rows) in [&[("a", 1), ("b", 2)][..], &[("b", 3)]].iter().enumerate() {
        write(sink.as_mut(), batch as u64, &pairs(rows), OutputMode::Complete).unwrap();
    }
    assert_eq!(client.keys("{counts}:*"), ["{counts}:b"]);
    let mut sink = open(&to_stream(redis.url(), "clicks"), query()).unwrap();
    write(sink.as_mut(), 0, &pairs(&[("a", 1)]), OutputMode::Append).unwrap();
    let mut source = Input::of(redis.url(), "clicks", &[]).open();
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(try_ids(source.as_mut(), None, &end).unwrap().len(), 1);
}

/// A certificate for `localhost` in a folder, which signs itself.
fn certificate(folder: &Path) {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"]);
    command.args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]);
    command.arg("-keyout").arg(folder.join("key.pem")).arg("-out").arg(folder.join("cert.pem"));
    assert!(command.output().unwrap().status.success());
}

#[test]
fn a_connection_is_encrypted_and_the_server_proves_its_name() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    let (port, file) = (free_port().to_string(), |name: &str| folder.path().join(name).display().to_string());
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let arguments = ["--tls-port", &port, "--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    let Some(redis) = Redis::own(&arguments) else { return };
    let by = |host: &str| to_stream(&format!("rediss://{host}:{port}/0"), "out");
    let mut sink = open(&by("localhost").with("sslrootcert", &cert), query()).unwrap();
    write(sink.as_mut(), 0, &pairs(&[("a", 0)]), OutputMode::Append).unwrap();
    assert_eq!(redis.client().entries("out"), ["k a v 0"]);
    for options in
        [by("localhost"), by("127.0.0.1").with("sslrootcert", &cert), by("localhost").with("sslrootcert", &key)]
    {
        let (text, _) = refused(&options);
        assert!(text.contains("cannot encrypt the connection"), "{text}");
    }
    let impatient = |url: &str| to_stream(url, "out").with("connectTimeout", "1 second");
    let (text, _) = refused(&impatient(&redis.url().replace("redis://", "rediss://")));
    assert!(text.contains("cannot encrypt") || text.contains("does it speak TLS"), "{text}");
    let (text, _) = refused(&impatient(&format!("redis://localhost:{port}/0")));
    assert!(text.contains("cannot reach") || text.contains("broke"), "{text}");
}
