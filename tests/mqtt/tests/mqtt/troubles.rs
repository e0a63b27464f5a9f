//! Brokers that are not as they should be.

use crate::{Input, all_now, context, open, some, to_topic, write};
use databases_tests::free_port;
use millstream_common::{Hint, Options, ReadLimit, StopSignal, describe_chain};
use millstream_sink::connectors::mqtt::MqttSinkFactory;
use millstream_sink::{SinkFactory, SinkSpec};
use mqtt_tests::{Broker, Client};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The errors of sink and source, as a user sees them.
fn refusals(options: &Options) -> Vec<(String, Option<String>)> {
    let impatient = options.clone().with("retryTimeout", "0 s");
    let of_sink = open(&impatient).map(drop).unwrap_err();
    let mut input = Input::of("mqtt://x", "t", &[]);
    for (name, value) in impatient.iter() {
        input.set(name, value);
    }
    let of_source = input.open().latest_offset(None, ReadLimit::AllAvailable).unwrap_err();
    vec![
        (format!("{} {of_sink:?}", describe_chain(&of_sink)), of_sink.hint()),
        (format!("{} {of_source:?}", describe_chain(&of_source)), of_source.hint()),
    ]
}

const RULES: &str = "allow_anonymous false\npassword_file FOLDER/passwords\nacl_file FOLDER/rules\n";

/// A broker with users and rules.
fn guarded() -> Option<Broker> {
    let broker = Broker::own("")?;
    broker.stop();
    let folder = broker.folder().to_owned();
    let passwords = folder.join("passwords");
    std::fs::write(&passwords, "").unwrap();
    for (user, password) in [("ann", "of-ann"), ("reader", "of-reader")] {
        let made = Command::new("mosquitto_passwd").arg("-b").arg(&passwords).args([user, password]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    }
    std::fs::write(folder.join("rules"), "user ann\ntopic readwrite #\nuser reader\ntopic read open/#\n").unwrap();
    let file = folder.join("mosquitto.conf");
    let text = std::fs::read_to_string(&file).unwrap().replace("allow_anonymous true\n", "");
    std::fs::write(&file, text + &RULES.replace("FOLDER", &folder.display().to_string())).unwrap();
    broker.restart();
    Some(broker)
}

#[test]
fn passwords_and_rules_are_told_of_and_not_shown() {
    let Some(broker) = guarded() else { return };
    let with = |login: &str| to_topic(&broker.url().replace("mqtt://", &format!("mqtt://{login}@")), "t");
    for (options, part) in [
        (to_topic(broker.url(), "t"), "does not let anybody without a user in"),
        (with("ann:of-somebody"), "does not let user `ann` in: not authorized"),
        (with("ann").with("password", "of-somebody"), "does not let user `ann` in"),
    ] {
        let begin = Instant::now();
        for (text, hint) in refusals(&options.with("retryTimeout", "1 minute")) {
            assert!(text.contains(part) && !text.contains("of-somebody"), "{text}");
            assert!(hint.unwrap().contains("passwordEnv"));
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "time mends nothing");
    }
    let mut sink = open(&with("ann:of-ann")).unwrap();
    write(sink.as_mut(), 0, &some(&["a"])).unwrap();
    for qos in ["1", "2"] {
        let mut sink = open(&with("reader:of-reader").with("qos", qos)).unwrap();
        let error = write(sink.as_mut(), 0, &some(&["a"])).unwrap_err();
        let text = describe_chain(&error);
        assert!(text.contains("does not allow it: a message to topic `t`: not authorized"), "{text}");
        assert!(error.hint().unwrap().contains("rules"));
    }
    let reader = broker.url().replace("mqtt://", "mqtt://reader:of-reader@");
    let input = Input::of(&reader, "open/#", &[]);
    drop(input.begin());
    Client::of(&broker.url().replace("mqtt://", "mqtt://ann:of-ann@")).publish("open/a", "1", 1);
    assert_eq!(all_now(input.open().as_mut()), ["1"]);
}

#[test]
fn nobody_and_somebody_else_are_told_apart() {
    let nobody = to_topic(&format!("mqtt://127.0.0.1:{}", free_port()), "t");
    for (text, hint) in refusals(&nobody) {
        assert!(text.contains("cannot reach") && hint.unwrap().contains("start the broker"), "{text}");
    }
    // What speaks HTTP, and what spoke MQTT before there was a version 5.
    for (words, part) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), "does not answer as a broker of MQTT does"),
        (&[0x20, 2, 0, 1], "does not speak MQTT 5"),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let other = to_topic(&format!("mqtt://{}", listener.local_addr().unwrap()), "t");
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let _ = client.read(&mut [0; 512]);
                let _ = client.write_all(words);
            }
        });
        for (text, _) in refusals(&other) {
            assert!(text.contains(part), "{text}");
        }
    }
    // What takes connections and says nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = to_topic(&format!("mqtt://{}", listener.local_addr().unwrap()), "t");
    for (text, _) in refusals(&silent.with("connectTimeout", "1 second")) {
        assert!(text.contains("cannot reach") && text.contains("does it speak TLS"), "{text}");
    }
}

#[test]
fn a_stop_is_heard_at_once_while_a_broker_is_away_or_silent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("mqtt://{}", listener.local_addr().unwrap());
    for url in [format!("mqtt://127.0.0.1:{}", free_port()), silent] {
        let input = Input::of(&url, "t", &[("retryTimeout", "1 hour"), ("connectTimeout", "1 hour")]);
        let stop = StopSignal::new();
        let spec = SinkSpec {
            format: crate::FORMAT.into(),
            options: to_topic(&url, "t").with("retryTimeout", "1 hour").with("connectTimeout", "1 hour"),
        };
        let (mut heard, mut asked) = (Instant::now(), Instant::now());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                asked = Instant::now();
                input.stop.set();
                stop.set();
            });
            let mut source = input.open();
            assert_eq!(source.latest_offset(None, ReadLimit::AllAvailable).unwrap(), None);
            source.prepare_available_now().unwrap();
            source.stop();
            drop(source);
            let error = MqttSinkFactory.open(&spec, context(&stop)).map(drop).unwrap_err();
            heard = Instant::now();
            drop(error);
        });
        assert!(heard.duration_since(asked) < Duration::from_secs(2), "{url}");
    }
}

/// Something that takes two connections, answers as a broker does, and then ends the second one with a reason.
fn broker_that_ends_with(reason: u8) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("mqtt://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        for (answers, mut client) in [1, 2].into_iter().zip(listener.incoming().flatten()) {
            let _ = client.read(&mut buffer);
            client.write_all(&[0x20, 3, 0, 0, 0]).unwrap();
            let _ = client.read(&mut buffer);
            if answers == 2 {
                client.write_all(&[0x90, 4, 0, 1, 0, 1]).unwrap();
                client.write_all(&[0xe0, 1, reason]).unwrap();
                let _ = client.read(&mut buffer);
            }
        }
    });
    url
}

#[test]
fn a_broker_that_says_why_it_ends_a_connection_is_heard() {
    for (reason, part, hint) in [
        (0x8e, "another client took the place of `me`", Some("clientId")),
        (0x97, "refuses: it ended the connection: quota exceeded", None),
        (0x8b, "the broker ended it: server shutting down", Some("it goes on where it was")),
    ] {
        let options = [("clientId", "me"), ("retryTimeout", "0 s")];
        let mut source = Input::of(&broker_that_ends_with(reason), "t", &options).open();
        let begin = Instant::now();
        let error = loop {
            match source.latest_offset(None, ReadLimit::AllAvailable) {
                Ok(_) => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => break error,
            }
            assert!(begin.elapsed() < Duration::from_secs(10), "nobody hears it");
        };
        assert!(describe_chain(&error).contains(part), "{}", describe_chain(&error));
        assert_eq!(error.hint().is_some_and(|text| text.contains(hint.unwrap_or(""))), hint.is_some());
    }
}

#[test]
fn a_client_that_takes_the_place_of_a_query_ends_it() {
    let broker = Broker::shared();
    let topic = broker.name("taken");
    let input = Input::of(broker.url(), &topic, &[("clientId", &topic), ("retryTimeout", "2 seconds")]);
    let mut source = input.begin();
    let _other = Client::named(broker.url(), &topic);
    let begin = Instant::now();
    let error = loop {
        match source.latest_offset(None, ReadLimit::AllAvailable) {
            Ok(_) => std::thread::sleep(Duration::from_millis(20)),
            Err(error) => break describe_chain(&error),
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "nobody notices");
    };
    // A broker that does not say who came has ended the session for them, which is seen a moment later.
    assert!(error.contains("another client took the place") || error.contains("has no session of client"), "{error}");
}

/// Certificates in a folder: one that signs, one of `localhost`, one of a client.
fn certificates(folder: &Path) {
    let run = |arguments: &str| {
        let made = Command::new("openssl").args(arguments.split_whitespace()).current_dir(folder).output().unwrap();
        assert!(made.status.success(), "{arguments}: {}", String::from_utf8_lossy(&made.stderr));
    };
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost\nbasicConstraints=critical,CA:FALSE\n").unwrap();
    run("req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=signer -keyout ca.key -out ca.pem");
    for name in ["server", "client"] {
        run(&format!("req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout {name}.key -out {name}.csr"));
        run(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile names -out {name}.pem"
        ));
    }
}

#[test]
fn a_connection_is_encrypted_and_both_sides_prove_their_names() {
    let Some(broker) = Broker::own("") else { return };
    broker.stop();
    let folder = broker.folder().to_owned();
    certificates(&folder);
    let (port, file) = (free_port(), |name: &str| folder.join(name).display().to_string());
    let conf = folder.join("mosquitto.conf");
    let text = std::fs::read_to_string(&conf).unwrap();
    let lines = format!(
        "listener {port} 127.0.0.1\ncafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true\n",
        file("ca.pem"),
        file("server.pem"),
        file("server.key")
    );
    std::fs::write(&conf, text + &lines).unwrap();
    broker.restart();
    let by = |host: &str| to_topic(&format!("mqtts://{host}:{port}"), "t").with("connectTimeout", "2 seconds");
    let trusting = |host: &str| by(host).with("sslrootcert", file("ca.pem"));
    let own = |options: Options| options.with("sslcert", file("client.pem")).with("sslkey", file("client.key"));
    let mut reader = broker.client();
    reader.subscribe("t");
    let mut sink = open(&own(trusting("localhost"))).unwrap();
    write(sink.as_mut(), 0, &some(&["a", &"x".repeat(1_000_000)])).unwrap();
    assert_eq!(reader.values().iter().map(String::len).collect::<Vec<_>>(), [1, 1_000_000]);
    let mut input = Input::of("mqtt://x", "t", &[]);
    for (name, value) in own(trusting("localhost")).iter() {
        input.set(name, value);
    }
    drop(input.begin());
    write(sink.as_mut(), 1, &some(&["b"])).unwrap();
    assert_eq!(all_now(input.open().as_mut()), ["b"]);
    for options in [
        own(by("localhost")),
        own(trusting("127.0.0.1")),
        trusting("localhost"),
        own(by("localhost").with("sslrootcert", file("server.key"))),
        trusting("localhost").with("sslcert", file("client.pem")).with("sslkey", file("server.key")),
    ] {
        for (text, hint) in refusals(&options) {
            assert!(text.contains("cannot encrypt the connection") && hint.unwrap().contains("sslrootcert"), "{text}");
        }
    }
    for (text, _) in refusals(&own(trusting("localhost")).with("url", broker.url().replace("mqtt://", "mqtts://"))) {
        assert!(text.contains("cannot encrypt") && text.contains("does it speak TLS"), "{text}");
    }
    for (text, _) in refusals(&to_topic(&format!("mqtt://localhost:{port}"), "t").with("connectTimeout", "1 s")) {
        assert!(text.contains("cannot reach") || text.contains("broke"), "{text}");
    }
}
