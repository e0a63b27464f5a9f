//! A place between a client and a broker where connections break at a chosen packet.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Where a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The packet does not reach the broker.
    Before,
    /// It reaches the broker, and the answer does not come back.
    After,
}

/// Kinds of packets, as their first byte says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message.
    Publish = 3,
    /// The answer to a message of quality 1.
    Acknowledgement = 4,
    /// The first answer to a message of quality 2.
    Receipt = 5,
    /// The last answer to one.
    Completion = 7,
}

/// At which packet a connection breaks: the next of a kind.
type Armed = Mutex<Option<(Kind, Cut)>>;

/// Passes everything on, until it is told to do something else.
pub struct Proxy {
    port: u16,
    armed: Arc<Armed>,
}

impl Proxy {
    /// In front of a broker on a port of this machine.
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
        format!("mqtt://127.0.0.1:{}", self.port)
    }

    /// The next time that a client sends a packet of a kind, the connection breaks.
    pub fn cut(&self, cut: Cut, kind: Kind) {
        *self.armed.lock().unwrap() = Some((kind, cut));
    }

    /// Whether something is still to happen.
    pub fn is_armed(&self) -> bool {
        self.armed.lock().unwrap().is_some()
    }
}

fn forward(mut client: TcpStream, mut server: TcpStream, armed: &Armed) {
    while let Ok(packet) = packet(&mut client) {
        let event =
            armed.lock().unwrap().take_if(|(kind, _)| packet.first().is_some_and(|byte| byte >> 4 == *kind as u8));
        if let Some((_, cut)) = event {
            // First the way back, so that no answer gets through.
            let _ = client.shutdown(Shutdown::Both);
            if cut == Cut::After {
                let _ = server.write_all(&packet);
                std::thread::sleep(Duration::from_millis(100));
            }
            break;
        }
        if server.write_all(&packet).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

/// The next packet, whole.
fn packet(from: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut packet = vec![0];
    from.read_exact(&mut packet)?;
    let (mut length, mut shift) = (0, 0);
    loop {
        let mut byte = [0];
        from.read_exact(&mut byte)?;
        packet.push(byte[0]);
        length |= usize::from(byte[0] & 0x7f) << shift;
        shift += 7;
        if byte[0] & 0x80 == 0 {
            break;
        }
    }
    let head = packet.len();
    packet.resize(head + length, 0);
    from.read_exact(&mut packet[head..])?;
    Ok(packet)
}
