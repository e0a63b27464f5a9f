//! What a registry does that is hard to have from a real one: it is busy, sends elsewhere, says too much, falls silent.
//!
//! Answers come from a socket that says what it is told; the tests against a real registry are in `tests/kafka`.

use super::*;
use millstream_common::Options;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Gives these answers, one connection each, and tells what it was asked.
fn server(answers: Vec<String>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, asked) = channel();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            loop {
                let read = stream.read(&mut buffer).unwrap_or_default();
                request.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let wanted = text.split_once("\r\n\r\n").map(|(head, body)| {
                    let length = head.lines().find_map(|line| {
                        line.to_ascii_lowercase().strip_prefix("content-length: ").map(|n| n.parse().unwrap())
                    });
                    (body.len(), length.unwrap_or(0_usize))
                });
                if read == 0 || wanted.is_some_and(|(found, length)| found >= length) {
                    break;
                }
            }
            let _ = tell.send(String::from_utf8_lossy(&request).into_owned());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (url, asked)
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn registry(url: &str, options: Options) -> SchemaRegistry {
    let options = options.with("retries.wait.ms", "1");
    let login = |name: &str| (name == "LOGIN").then(|| "ada:sesame".to_owned());
    SchemaRegistry::new(RegistryAddress::new(url, &options, login).unwrap())
}

const STRING: &str = r#"{"schema":"\"string\""}"#;

#[test]
fn a_schema_is_asked_for_once_with_credentials() {
    let (url, asked) = server(vec![answer("200 OK", STRING)]);
    let registry = registry(&url, Options::new().with("basic.auth.user.info.env", "LOGIN"));
    for _ in 0..3 {
        assert_eq!(registry.schema(7).unwrap().text, "\"string\"");
    }
    let request = asked.recv().unwrap();
    assert!(request.starts_with("GET /schemas/ids/7 HTTP/1.1"), "{request}");
    assert!(request.to_ascii_lowercase().contains("authorization: basic ywrhonnlc2ftzq=="), "{request}");
    assert!(asked.recv().is_err(), "it was asked for again");
}

#[test]
fn a_busy_registry_is_asked_until_it_answers() {
    let (url, asked) = server(vec![
        answer("503 Service Unavailable", ""),
        answer("429 Too Many Requests", r#"{"error_code":42901,"message":"slowly"}"#),
        answer("200 OK", STRING),
    ]);
    assert!(registry(&url, Options::new()).schema(7).is_ok());
    assert_eq!(asked.iter().count(), 3);
}

#[test]
fn a_registry_that_stays_busy_is_said_to_be_busy() {
    let busy = answer("500 Internal Server Error", r#"{"error_code":50001,"message":"Error in the backend"}"#);
    let (url, _) = server(vec![busy; 3]);
    let error = registry(&url, Options::new().with("max.retries", "2")).schema(7).unwrap_err();
    assert!(matches!(&error, RegistryError::Busy { status: 500, message, .. } if message == "Error in the backend"));
}

#[test]
fn who_is_not_let_in_is_told_so_and_not_with_what_password() {
    let (url, _) = server(vec![answer("401 Unauthorized", r#"{"error_code":40101,"message":"no"}"#)]);
    let options = Options::new().with("basic.auth.user.info.env", "LOGIN");
    let error = registry(&url, options).version("s", Version::Latest).unwrap_err();
    assert!(matches!(error, RegistryError::Denied { status: 401, .. }));
    assert!(!format!("{error:?} {}", error.in_one_line()).contains("sesame"));
}

#[test]
fn credentials_are_not_taken_elsewhere() {
    let elsewhere =
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let (url, _) = server(vec![elsewhere.to_owned()]);
    let error = registry(&url, Options::new()).schema(7).unwrap_err();
    assert!(matches!(error, RegistryError::NoRegistry { .. }), "{error:?}");
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let long = format!(r#"{{"schema":"{}"}}"#, "x".repeat(5 << 20));
    let (url, _) = server(vec![answer("200 OK", &long)]);
    let error = registry(&url, Options::new()).schema(7).unwrap_err();
    assert!(matches!(error, RegistryError::TooLarge { .. }), "{error:?}");
}

#[test]
fn a_registry_that_falls_silent_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let options = Options::new().with("http.read.timeout.ms", "50").with("http.connect.timeout.ms", "50");
    let error = registry(&url, options.with("max.retries", "1")).schema(7).unwrap_err();
    assert!(matches!(error, RegistryError::TimedOut { milliseconds: 100, .. }), "{error:?}");
}

#[test]
fn what_is_no_registry_is_said_to_be_none() {
    for other in [answer("200 OK", "<html>"), answer("200 OK", "{}"), answer("405 No", "<html>")] {
        let (url, _) = server(vec![other]);
        let error = registry(&url, Options::new()).schema(7).unwrap_err();
        assert!(matches!(error, RegistryError::NoRegistry { .. }), "{error:?}");
    }
}

#[test]
fn what_is_not_there_is_told_apart_from_what_cannot_be_asked() {
    let nothing = answer("404 Not Found", r#"{"error_code":40403,"message":"Schema not found"}"#);
    let (url, _) = server(vec![nothing.clone(), nothing.clone(), nothing]);
    let registry = registry(&url, Options::new());
    assert!(matches!(registry.schema(7), Err(RegistryError::UnknownId { id: 7, .. })));
    assert!(registry.version("s", Version::Number(3)).unwrap_err().is_absence());
    assert_eq!(registry.find("s", &Schema::avro("\"long\"")).unwrap(), None);
}

#[test]
fn registering_posts_the_schema_with_its_kind_and_references() {
    let (url, asked) = server(vec![answer("200 OK", r#"{"id":12}"#)]);
    let reference = Reference { name: "Money".into(), subject: "money-value".into(), version: 2 };
    let schema = Schema { kind: SchemaKind::Json, text: "{}".into(), references: vec![reference] };
    assert_eq!(registry(&url, Options::new()).register("a/b", &schema).unwrap(), 12);
    let request = asked.recv().unwrap();
    assert!(request.starts_with("POST /subjects/a%2Fb/versions HTTP/1.1"), "{request}");
    let body: serde_json::Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    let references = serde_json::json!([{"name": "Money", "subject": "money-value", "version": 2}]);
    assert_eq!(body, serde_json::json!({"schema": "{}", "schemaType": "JSON", "references": references}));
}
