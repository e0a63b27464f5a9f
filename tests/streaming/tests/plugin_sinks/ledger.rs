//! The world outside: a server on this machine that takes rows, in one phase and in two.
//!
//! | request | does | answers |
//! |---|---|---|
//! | `open/Q/P/B` | forgets what was prepared for that place | `yes`, or `no` where rows are known and that is asked for |
//! | `rows/Q/P/B` | shows the lines | |
//! | `prepare/Q/P/B` | keeps the lines | a token |
//! | `commit`, token | shows the lines, once | |
//! | `abort`, token | forgets the lines | |
//! | `keyed`, with an `Idempotency-Key` | takes the body, once for each key | |

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

/// How a request goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// Nothing is done, and that is the answer.
    Refused,
    /// It is done, and nobody hears of it.
    Unheard,
}

/// What the server has.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// The lines that everybody sees, by place, one list for each time that they were shown.
    pub(crate) seen: BTreeMap<String, Vec<Vec<String>>>,
    /// Lines that wait, by token.
    pub(crate) waiting: BTreeMap<String, Vec<String>>,
    committed: BTreeSet<String>,
    /// The first part of each path, and of `open` the body.
    pub(crate) calls: Vec<String>,
    /// Bodies by their keys.
    pub(crate) keyed: BTreeMap<String, String>,
    /// Whether `open` answers `no` for places that have rows.
    pub(crate) knows_places: bool,
    /// What happens to the n-th request, from 0.
    pub(crate) mishap: Option<(usize, Mishap)>,
    tokens: usize,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Ledger {
    pub(crate) port: u16,
    book: Arc<Mutex<Book>>,
}

impl Ledger {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ledger = Self { port: listener.local_addr().unwrap().port(), book: Arc::default() };
        let book = Arc::clone(&ledger.book);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let book = Arc::clone(&book);
                std::thread::spawn(move || serve(connection, &book));
            }
        });
        ledger
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    /// All lines that are seen, per batch, sorted.
    pub(crate) fn batches(&self) -> BTreeMap<u64, Vec<String>> {
        let mut batches: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (place, shown) in &self.book().seen {
            let batch = place.rsplit('/').next().unwrap().parse().unwrap();
            batches.entry(batch).or_default().extend(shown.iter().flatten().cloned());
        }
        batches.values_mut().for_each(|lines| lines.sort());
        batches
    }
}

impl Book {
    fn request(&mut self, path: &str, key: &str, body: &str) -> String {
        let (what, place) = path.split_once('/').unwrap_or((path, ""));
        self.calls.push(if what == "open" { format!("open {body}") } else { what.to_owned() });
        let lines = || body.lines().map(str::to_owned).collect::<Vec<_>>();
        match what {
            "open" => {
                self.waiting.retain(|token, _| token.rsplit_once('#').is_none_or(|(of, _)| of != place));
                if self.knows_places && self.seen.contains_key(place) { "no" } else { "yes" }.into()
            }
            "keyed" => {
                let known = self.keyed.entry(key.to_owned()).or_insert_with(|| body.to_owned());
                assert_eq!(known, body, "the same key, and another body");
                String::new()
            }
            "rows" => {
                self.seen.entry(place.to_owned()).or_default().push(lines());
                String::new()
            }
            "prepare" => {
                self.tokens += 1;
                let token = format!("{place}#{}", self.tokens);
                self.waiting.insert(token.clone(), lines());
                token
            }
            "commit" => {
                if self.committed.insert(body.to_owned()) {
                    let lines = self.waiting.remove(body).unwrap_or_else(|| vec!["lost".to_owned()]);
                    let place = body.rsplit_once('#').map_or(body, |(place, _)| place);
                    self.seen.entry(place.to_owned()).or_default().push(lines);
                }
                String::new()
            }
            "abort" => {
                assert!(!self.committed.contains(body), "what was committed is aborted");
                self.waiting.remove(body);
                String::new()
            }
            other => panic!("{other}"),
        }
    }
}

fn serve(connection: TcpStream, book: &Mutex<Book>) {
    let mut reader = BufReader::new(connection);
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() || first.is_empty() {
        return;
    }
    let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    let (mut length, mut key) = (0, String::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "idempotency-key" => key = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let body = String::from_utf8(body).unwrap();
    let answer = {
        let mut book = book.lock().unwrap();
        let number = book.calls.len();
        let mishap = book.mishap.filter(|(at, _)| *at == number).map(|(_, mishap)| mishap);
        if mishap == Some(Mishap::Refused) {
            book.calls.push("refused".to_owned());
            Some((503, String::new()))
        } else {
            let answer = book.request(&path, &key, &body);
            if mishap.is_none() { Some((200, answer)) } else { None }
        }
    };
    if let Some((status, text)) = answer {
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
        // Whoever does not listen any more has crashed, which is what many tests are about.
        let _ = reader.get_mut().write_all(format!("{head}{text}").as_bytes());
    }
}
