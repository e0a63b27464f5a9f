use super::*;
use crate::contract::{Subject, source, text};
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use millstream_common::{Hint, ManualClock, MemoryFiles, Options, ReadLimit, StopSignal};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn spec(listener: &TcpListener) -> SourceSpec {
    let port = listener.local_addr().unwrap().port().to_string();
    let options = Options::new().with("host", "127.0.0.1").with("port", port);
    SourceSpec { name: "s".into(), format: "socket".into(), schema: None, options }
}

fn open(spec: &SourceSpec) -> Result<Box<dyn Source>, SourceError> {
    let context = SourceContext {
        files: Arc::new(MemoryFiles::default()),
        clock: Arc::new(ManualClock::at(1500)),
        stop: StopSignal::new(),
        default_parallelism: 2,
    };
    SocketSourceFactory.open(spec, context)
}

/// Waits for an offset of at least `wanted`.
fn wait(source: &mut dyn Source, start: Option<&Offset>, wanted: i64) -> Offset {
    for _ in 0..500 {
        let latest = source.latest_offset(start, ReadLimit::AllAvailable).unwrap();
        if let Some(latest) = latest.filter(|latest| latest.0.as_i64() >= Some(wanted)) {
            return latest;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("line {wanted} never came");
}

#[test]
fn socket_keeps_the_contract_of_a_source_that_cannot_replay() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let spec = spec(&listener);
    let connections: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let accepted = Arc::clone(&connections);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            accepted.lock().unwrap().push(stream.unwrap());
        }
    });
    let mut round = 0;
    let mut feed = || {
        round += 1;
        std::thread::sleep(Duration::from_millis(50));
        let mut connections = connections.lock().unwrap();
        let newest = connections.last_mut().unwrap();
        newest.write_all(format!("a {round}\nb {round}\n").as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(150));
    };
    source(&mut Subject {
        factory: Arc::new(SocketSourceFactory),
        spec,
        feed: &mut feed,
        clock: Arc::new(ManualClock::at(0)),
        replays_after_restart: false,
    });
}

#[test]
fn lines_of_any_end_and_any_bytes_arrive_with_their_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut spec = spec(&listener);
    spec.options.set("includeTimestamp", "true");
    let mut source = open(&spec).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(b"one\r\n\ntw\xff\nlast").unwrap();
    drop(peer);
    let end = wait(source.as_mut(), None, 3);
    assert_eq!(
        text(&source.read(None, &end, &[0, 1]).unwrap()),
        [
            "last|1970-01-01T00:00:01.500",
            "one|1970-01-01T00:00:01.500",
            "tw\u{fffd}|1970-01-01T00:00:01.500",
            "|1970-01-01T00:00:01.500",
        ]
    );
    assert_eq!(source.latest_offset(Some(&end), ReadLimit::AllAvailable).unwrap(), Some(end), "the end is quiet");
}

#[test]
fn nobody_listening_is_an_error_with_advice() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let spec = spec(&listener);
    let port = spec.options.get("port").unwrap().to_owned();
    drop(listener);
    let error = open(&spec).err().unwrap();
    assert_eq!(error.to_string(), format!("source `s` cannot connect to `127.0.0.1:{port}`"));
    assert_eq!(error.hint(), Some(format!("start a server there first, for example `nc -lk {port}`")));
}

#[test]
fn a_full_buffer_holds_the_sender_back_and_a_release_lets_it_go_on() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut spec = spec(&listener);
    spec.options.set("bufferBytes", "1000");
    let mut source = open(&spec).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    let line = "x".repeat(99) + "\n";
    peer.write_all(line.repeat(100).as_bytes()).unwrap();
    let mut start = None;
    let mut seen = 0;
    while seen < 100 {
        let end = wait(source.as_mut(), start.as_ref(), seen);
        std::thread::sleep(Duration::from_millis(20));
        let held = source.newest_offset().unwrap().0.as_i64().unwrap() + 1 - seen;
        assert!(held <= 10, "{held} lines are in a buffer of 1000 bytes");
        seen = end.0.as_i64().unwrap() + 1;
        source.release(&end).unwrap();
        start = Some(end);
    }
    source.stop();
}

#[test]
fn options_are_checked_before_anything_is_opened() {
    let of = |options: Options| SourceSpec { name: "s".into(), format: "socket".into(), schema: None, options };
    let message = |options: Options| SocketSourceFactory.schema(&of(options)).unwrap_err().to_string();
    assert_eq!(message(Options::new().with("port", "1")), "option `host` of source `s` is missing");
    assert_eq!(message(Options::new().with("host", "h")), "option `port` of source `s` is missing");
    assert!(message(Options::new().with("host", "h").with("port", "70000")).contains("1 to 65535"));
}
