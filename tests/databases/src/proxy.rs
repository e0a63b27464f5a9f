//! A place between a client and a server where connections break at a chosen word.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

const PASS: u8 = 0;
const CUT_BEFORE: u8 = 1;
const CUT_AFTER: u8 = 2;
const HOLD: u8 = 3;

/// Passes everything on, until it is told to cut at the next COMMIT, or to hold everything back.
pub struct Proxy {
    port: u16,
    mode: Arc<AtomicU8>,
}

impl Proxy {
    /// In front of a server on a port of this machine.
    pub fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mode = Arc::new(AtomicU8::new(PASS));
        let of_thread = Arc::clone(&mode);
        // It ends with the process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let mode = Arc::clone(&of_thread);
                let (mut from, mut into) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut into);
                    let _ = into.shutdown(Shutdown::Both);
                });
                std::thread::spawn(move || forward(client, server, &mode));
            }
        });
        Self { port, mode }
    }

    /// Where clients connect.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next COMMIT does not reach the server, and its connection breaks.
    pub fn cut_before_commit(&self) {
        self.mode.store(CUT_BEFORE, Ordering::SeqCst);
    }

    /// The next COMMIT reaches the server, and its answer does not come back.
    pub fn cut_after_commit(&self) {
        self.mode.store(CUT_AFTER, Ordering::SeqCst);
    }

    /// From now on nothing that a client says reaches the server, as when the network is gone without a word.
    pub fn hold(&self) {
        self.mode.store(HOLD, Ordering::SeqCst);
    }

    /// Whether a cut is still to come.
    pub fn is_armed(&self) -> bool {
        self.mode.load(Ordering::SeqCst) != PASS
    }
}

fn forward(mut client: TcpStream, mut server: TcpStream, mode: &AtomicU8) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..read];
        while mode.load(Ordering::SeqCst) == HOLD {
            std::thread::sleep(Duration::from_millis(20));
        }
        let is_commit = bytes.len() < 64 && bytes.windows(6).any(|word| word == b"COMMIT");
        if is_commit {
            let cut = mode.swap(PASS, Ordering::SeqCst);
            if cut != PASS {
                // First the way back, so that no answer gets through.
                let _ = client.shutdown(Shutdown::Both);
                if cut == CUT_AFTER {
                    let _ = server.write_all(bytes);
                    std::thread::sleep(Duration::from_millis(200));
                }
                let _ = server.shutdown(Shutdown::Both);
                return;
            }
        }
        if server.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

/// A URL that leads through a proxy.
pub fn through(url: &str, proxy: &Proxy) -> String {
    let (head, tail) = url.rsplit_once('/').unwrap();
    let (head, _) = head.rsplit_once(':').unwrap();
    format!("{head}:{}/{tail}", proxy.port())
}

/// The port in a URL.
pub fn port_of(url: &str) -> u16 {
    let (head, _) = url.rsplit_once('/').unwrap();
    head.rsplit_once(':').unwrap().1.parse().unwrap()
}
