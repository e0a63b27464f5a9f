//! A place between a client and a server where connections break at a chosen word.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Where a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// What has the word does not reach the server.
    Before,
    /// It reaches the server, and the answer does not come back.
    After,
}

/// What happens when somebody sends a word.
enum Event {
    Cut(Cut),
    /// Something that is done before the word goes on.
    Meanwhile(Box<dyn FnOnce() + Send>),
}

/// What is to happen at the next of a word.
type Armed = Mutex<Option<(&'static str, Event)>>;

/// Passes everything on, until it is told to do something else.
pub struct Proxy {
    port: u16,
    armed: Arc<Armed>,
}

impl Proxy {
    /// In front of a server on a port of this machine.
    pub fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let armed = Arc::new(Mutex::new(None));
        let of_thread = Arc::clone(&armed);
        // It ends with the process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let armed = Arc::clone(&of_thread);
                let (mut from, mut into) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut into);
                    let _ = into.shutdown(Shutdown::Both);
                });
                std::thread::spawn(move || forward(client, server, &armed));
            }
        });
        Self { port, armed }
    }

    /// Where clients connect.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// The port where clients connect, of whatever server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next time that somebody sends `word`, the connection breaks.
    pub fn cut(&self, cut: Cut, word: &'static str) {
        *self.armed.lock().unwrap() = Some((word, Event::Cut(cut)));
    }

    /// The next time that somebody sends `word`, something is done before it reaches the server.
    pub fn meanwhile(&self, word: &'static str, action: impl FnOnce() + Send + 'static) {
        *self.armed.lock().unwrap() = Some((word, Event::Meanwhile(Box::new(action))));
    }

    /// Whether something is still to happen.
    pub fn is_armed(&self) -> bool {
        self.armed.lock().unwrap().is_some()
    }
}

fn forward(mut client: TcpStream, mut server: TcpStream, armed: &Armed) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..read];
        let has = |word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
        let event = armed.lock().unwrap().take_if(|(word, _)| has(word));
        match event {
            Some((_, Event::Cut(moment))) => {
                // First the way back, so that no answer gets through.
                let _ = client.shutdown(Shutdown::Both);
                if moment == Cut::After {
                    let _ = server.write_all(bytes);
                    std::thread::sleep(Duration::from_millis(100));
                }
                let _ = server.shutdown(Shutdown::Both);
                return;
            }
            Some((_, Event::Meanwhile(action))) => action(),
            None => {}
        }
        if server.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}
