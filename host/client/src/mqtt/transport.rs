//! The bytes of a connection, plain or encrypted, for a thread that waits in short naps.

use super::{MqttAddress, MqttError};
use crate::database::{Driver, Unanswered, proving_config};
use millstream_common::StopSignal;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// No reading and no writing takes longer; then it is looked whether to stop.
pub(super) const NAP: Duration = Duration::from_millis(50);
/// The shortest nap that a socket knows.
const SHORTEST: Duration = Duration::from_millis(1);
/// How long the other side may take to close a connection that is over.
const LAST_WORDS: Duration = Duration::from_millis(500);

enum Kind {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// An open way to a broker.
pub(super) struct Transport {
    kind: Kind,
    /// How long a reading waits.
    patience: Duration,
}

impl Transport {
    /// Opens one, within the time that the address gives it and not a moment longer than it is wanted.
    pub(super) fn open(address: &MqttAddress, stop: &StopSignal) -> Result<Self, MqttError> {
        let began = Instant::now();
        let unreachable = |error: io::Error| MqttError::Unreachable { place: address.place(), source: error.into() };
        let tcp = connect(address, stop)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        tcp.set_write_timeout(Some(NAP)).map_err(unreachable)?;
        tcp.set_read_timeout(Some(NAP)).map_err(unreachable)?;
        if !address.tls {
            return Ok(Self { kind: Kind::Plain(tcp), patience: NAP });
        }
        let of_tls = |source| MqttError::Tls { place: address.place(), source };
        let own = address.certificate.as_ref().map(|(certificate, key)| (certificate.as_str(), key.as_str()));
        let config = proving_config(address.root_certificates.as_deref(), own).map_err(of_tls)?;
        let name = ServerName::try_from(address.host.clone()).map_err(|error| of_tls(error.into()))?;
        let connection = ClientConnection::new(Arc::new(config), name).map_err(|error| of_tls(error.into()))?;
        let mut stream = StreamOwned::new(connection, tcp);
        while stream.conn.is_handshaking() {
            match stream.conn.complete_io(&mut stream.sock) {
                Ok(_) => {}
                Err(error) if is_nap(&error) => {
                    if stop.is_set() {
                        return Err(MqttError::Stopped { place: address.place() });
                    }
                    if began.elapsed() > address.connect_timeout {
                        return Err(of_tls("it takes longer than `connectTimeout`; does it speak TLS?".into()));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(of_tls(error.into())),
                Err(error) => return Err(of_tls(format!("{error}; does it speak TLS?").into())),
            }
        }
        Ok(Self { kind: Kind::Tls(Box::new(stream)), patience: NAP })
    }

    fn socket(&self) -> &TcpStream {
        match &self.kind {
            Kind::Plain(stream) => stream,
            Kind::Tls(stream) => &stream.sock,
        }
    }

    /// Reads what is there; waits so long for it, and no longer than a nap. `None` when nothing has come.
    pub(super) fn read(&mut self, into: &mut [u8], wait: Duration) -> io::Result<Option<usize>> {
        let wait = wait.clamp(SHORTEST, NAP);
        if self.patience != wait {
            self.socket().set_read_timeout(Some(wait))?;
            self.patience = wait;
        }
        let read = match &mut self.kind {
            Kind::Plain(stream) => stream.read(into),
            Kind::Tls(stream) => stream.read(into),
        };
        match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => Ok(Some(read)),
            Err(error) if is_nap(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes some of the bytes; 0 when the other side takes none now.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.kind {
            Kind::Plain(stream) => stream.write(bytes),
            Kind::Tls(stream) => stream.write(bytes),
        };
        match written {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) if is_nap(&error) => Ok(0),
            written => written,
        }
    }

    /// Sends what was written; answers whether all is on its way.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let flushed = match &mut self.kind {
            Kind::Plain(stream) => stream.flush(),
            Kind::Tls(stream) => stream.flush(),
        };
        match flushed {
            Ok(()) => Ok(true),
            Err(error) if is_nap(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Ends it so that the last words arrive: what the other side still sends is read and dropped until it has gone, too.
    pub(super) fn close(mut self) {
        if let Kind::Tls(stream) = &mut self.kind {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
        let _ = self.socket().shutdown(Shutdown::Write);
        let (began, mut dropped) = (Instant::now(), [0; 4096]);
        while began.elapsed() < LAST_WORDS && self.read(&mut dropped, NAP).is_ok() {}
    }
}

/// A connection of TCP, with the names of machines resolved.
fn connect(address: &MqttAddress, stop: &StopSignal) -> Result<TcpStream, MqttError> {
    let place = address.place();
    let unreachable = |error: io::Error| MqttError::Unreachable { place: place.clone(), source: error.into() };
    let driver = Driver::new(stop).map_err(unreachable)?;
    let opening = tokio::net::TcpStream::connect((address.host.as_str(), address.port));
    let stream = match driver.connect(address.connect_timeout, opening) {
        Ok(opened) => opened.and_then(tokio::net::TcpStream::into_std).map_err(unreachable)?,
        Err(Unanswered::Late) => return Err(unreachable(io::ErrorKind::TimedOut.into())),
        Err(Unanswered::Stopped) => return Err(MqttError::Stopped { place }),
    };
    stream.set_nonblocking(false).map_err(unreachable)?;
    Ok(stream)
}

/// Whether an error only says that nothing has happened for a while.
fn is_nap(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
