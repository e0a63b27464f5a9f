//! A web server on this machine whose files grow: `HEAD`, `GET`, and ranges of bytes.

use anyhow::Result;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The server; it ends when it is dropped.
#[derive(Debug)]
pub struct TextServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    requests: AtomicU64,
    is_over: AtomicBool,
    is_sick: AtomicBool,
}

impl TextServer {
    /// Starts a server without files.
    ///
    /// # Errors
    /// When this machine has no port.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&of_thread);
                // Whoever connected sees that a connection broke.
                std::thread::spawn(move || stream.map(|stream| serve(stream, &shared)));
            }
        });
        Ok(Self { address, shared })
    }

    /// Host and port, as they are granted.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Where a file is.
    pub fn url(&self, file: &str) -> String {
        format!("http://{}/{file}", self.address)
    }

    /// Writes at the end of a file, which comes to be.
    pub fn append(&self, file: &str, bytes: &[u8]) {
        let mut files = self.shared.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.entry(file.to_owned()).or_default().extend_from_slice(bytes);
    }

    /// Puts a file in the place of another one.
    pub fn replace(&self, file: &str, bytes: &[u8]) {
        self.shared.files.lock().unwrap_or_else(PoisonError::into_inner).insert(file.to_owned(), bytes.to_vec());
    }

    /// From now on every answer is 503, or none any more.
    pub fn set_sick(&self, is_sick: bool) {
        self.shared.is_sick.store(is_sick, Ordering::SeqCst);
    }

    /// How many requests there were.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

impl Drop for TextServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
    }
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    loop {
        let mut request = String::new();
        if lines.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut range = None;
        loop {
            let mut header = String::new();
            if lines.read_line(&mut header)? == 0 || header.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("range")
            {
                range = bytes_of(value.trim());
            }
        }
        shared.requests.fetch_add(1, Ordering::SeqCst);
        let mut words = request.split_whitespace();
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let file = path.trim_start_matches('/').to_owned();
        let found = shared.files.lock().unwrap_or_else(PoisonError::into_inner).get(&file).cloned();
        // A stream to which nothing was added yet is empty.
        let all = found.unwrap_or_default();
        let (status, body) = match range {
            _ if shared.is_sick.load(Ordering::SeqCst) => ("503 Service Unavailable", &b""[..]),
            Some((from, to)) if from < all.len() && from <= to => {
                ("206 Partial Content", &all[from..all.len().min(to + 1)])
            }
            Some(_) => ("416 Range Not Satisfiable", &b""[..]),
            None => ("200 OK", &all[..]),
        };
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len())?;
        if method != "HEAD" {
            stream.write_all(body)?;
        }
        stream.flush()?;
    }
}

fn bytes_of(range: &str) -> Option<(usize, usize)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}
