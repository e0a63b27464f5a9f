//! The socket between a running query and whoever wants something of it.

use super::protocol::{Answer, Request, read_line};
use super::*;
use crate::query_file::{Overrides, load};
use crate::{Session, StreamingQuery};
use millstream_common::Hint;
use std::io::{BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A query that runs until it is told to stop.
struct Running {
    folder: TempDir,
    dir: RunDir,
    query: Arc<StreamingQuery>,
    server: Option<ControlServer>,
}

impl Running {
    fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("ms").tempdir().unwrap();
        let file = folder.path().join("query.toml");
        let text = "name = \"rates\"\nsql = \"SELECT value FROM r\"\n[sink]\nformat = \"noop\"\n\
                    [[source]]\nname = \"r\"\nformat = \"rate\"\noptions = { rowsPerSecond = 50 }\n";
        std::fs::write(&file, text).unwrap();
        let loaded = load(&file, None, &[], Overrides::default()).unwrap();
        let query = Arc::new(StreamingQuery::start(&Session::new().unwrap(), loaded.spec, None).unwrap());
        let dir = RunDir::at(folder.path().join("run"));
        let server = ControlServer::start(Arc::clone(&query), &dir, Some(&loaded.file)).unwrap();
        Self { folder, dir, query, server: Some(server) }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("query.toml")
    }

    fn connect(&self) -> ControlClient {
        ControlClient::connect(&self.dir, self.query.id()).unwrap()
    }

    /// What the server says to a line.
    fn say(&self, line: &[u8]) -> Option<Answer> {
        let mut stream = UnixStream::connect(self.server.as_ref().unwrap().socket()).unwrap();
        stream.write_all(line).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        read_line(&mut BufReader::new(stream), ANSWER_BYTES).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.query.stop().unwrap();
    }
}

#[test]
fn a_query_is_found_by_id_name_and_file_and_tells_what_it_does() {
    let running = Running::start();
    let id = running.query.id();
    for which in [id.to_string(), "rates".into(), running.file().display().to_string()] {
        assert_eq!(ControlClient::find(&running.dir, &which).unwrap().id, id, "{which}");
    }
    let status = running.connect().status().unwrap();
    assert_eq!((status.name.as_deref(), status.pid), (Some("rates"), std::process::id()));
    let error = ControlClient::find(&running.dir, "others").unwrap_err();
    assert_eq!(error.to_string(), "no query `others` runs here");
    assert!(error.hint().unwrap().contains("rates ("));
}

#[test]
fn a_client_can_stop_the_query_and_the_socket_goes_with_it() {
    let mut running = Running::start();
    running.connect().stop().unwrap();
    assert!(running.query.await_termination_for(Duration::from_secs(20)).unwrap());
    let socket = running.server.take().unwrap().socket().to_owned();
    assert!(!socket.exists());
    let error = ControlClient::connect(&running.dir, running.query.id()).unwrap_err();
    assert!(error.to_string().contains("nothing listens"), "{error}");
}

#[test]
fn a_swap_that_cannot_be_is_refused_with_the_reason_and_the_query_goes_on() {
    let running = Running::start();
    let file = running.folder.path().join("words.wasm");
    std::fs::write(&file, "no component").unwrap();
    let error = running.connect().swap("words", &file, &SwapTerms::default()).unwrap_err();
    assert!(error.to_string().contains("the query has no plugin `words`"), "{error}");
    assert_eq!(error.fault().exit_code(), 1);
    let error =
        running.connect().swap("words", &running.folder.path().join("none.wasm"), &SwapTerms::default()).unwrap_err();
    assert!(error.to_string().contains("cannot read a component"), "{error}");
    assert!(running.query.is_active());
}

#[test]
fn lines_that_are_not_of_the_protocol_are_answered_and_survived() {
    let running = Running::start();
    let mut long = vec![b' '; REQUEST_BYTES as usize + 10];
    long.push(b'\n');
    let relative = b"{\"command\":\"swap\",\"plugin\":\"p\",\"component\":\"p.wasm\"}\n";
    for (line, wanted) in [
        (&b"nonsense\n"[..], "not one of the protocol"),
        (b"{\"command\":\"explode\"}\n", "unknown variant"),
        (b"{\"command\":\"stop\",\"now\":true}\n", "unknown field"),
        (b"{\"command\":\"status\"}", "it has no end"),
        (b"\xff\xfe\n", "not one of the protocol"),
        (&long, "it is too long"),
        (relative, "is not absolute"),
    ] {
        match running.say(line) {
            Some(Answer::Refused { reason, .. }) => assert!(reason.contains(wanted), "{reason}"),
            other => panic!("{wanted}: {other:?}"),
        }
    }
    assert_eq!(running.say(b""), None);
    assert!(running.query.is_active());
}

#[test]
fn more_clients_than_allowed_are_turned_away_and_room_comes_back() {
    let running = Running::start();
    let socket = running.server.as_ref().unwrap().socket().to_owned();
    let idle: Vec<_> = (0..40).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(300));
    assert!(running.connect().status().is_err());
    drop(idle);
    let deadline = Instant::now() + Duration::from_secs(10);
    while running.connect().status().is_err() {
        assert!(Instant::now() < deadline, "no room came back");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_socket_of_a_dead_process_is_replaced_and_that_of_a_living_one_is_not() {
    let mut running = Running::start();
    let error = ControlServer::start(Arc::clone(&running.query), &running.dir, None).unwrap_err();
    assert!(error.to_string().contains("another process listens"), "{error}");
    let socket = running.server.take().unwrap().socket().to_owned();
    // A listener that is closed without being removed, as a killed process leaves it.
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    assert!(ControlClient::running(&running.dir).unwrap().is_empty());
    let server = ControlServer::start(Arc::clone(&running.query), &running.dir, None).unwrap();
    assert_eq!(ControlClient::running(&running.dir).unwrap().len(), 1);
    drop(server);
}

#[test]
fn a_folder_that_others_can_enter_is_refused() {
    let folder = TempDir::new().unwrap();
    let dir = RunDir::at(folder.path().join("run"));
    dir.ensure().unwrap();
    assert_eq!(std::fs::metadata(dir.folder()).unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::set_permissions(dir.folder(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = dir.ensure().unwrap_err();
    assert!(error.to_string().ends_with("other users can enter it"), "{error}");
    assert!(error.hint().unwrap().contains("chmod 700"));
    let link = RunDir::at(folder.path().join("link"));
    std::os::unix::fs::symlink(folder.path(), link.folder()).unwrap();
    assert!(link.check().unwrap_err().to_string().ends_with("it is no folder"));
}

#[test]
fn the_folder_is_the_one_that_is_named_first() {
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let host = PathBuf::from("/host");
    let xdg = variable("XDG_RUNTIME_DIR", "/xdg");
    let named = [variable("MILLSTREAM_RUN_DIR", "/named"), xdg.clone()];
    assert_eq!(RunDir::locate(&named, Some(&host)).unwrap(), RunDir::at("/named"));
    assert_eq!(RunDir::locate(std::slice::from_ref(&xdg), Some(&host)).unwrap(), RunDir::at("/host"));
    assert_eq!(RunDir::locate(&[xdg], None).unwrap(), RunDir::at("/xdg/millstream"));
    let last = RunDir::locate(&[], None).unwrap();
    assert!(last.folder().file_name().unwrap().to_string_lossy().starts_with("millstream-"));
}

#[test]
fn requests_cross_as_written() {
    let request = Request::Swap { plugin: "words".into(), component: "/a.wasm".into(), terms: SwapTerms::default() };
    let line = serde_json::to_string(&request).unwrap();
    let terms = r#""terms":{"approve":false,"batches":null,"restore":false,"shadow":0}"#;
    assert_eq!(line, format!(r#"{{"command":"swap","plugin":"words","component":"/a.wasm",{terms}}}"#));
    assert_eq!(serde_json::to_string(&Request::Stop {}).unwrap(), r#"{"command":"stop"}"#);
}
