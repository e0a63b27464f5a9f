//! One connection to a broker, for a thread that waits.

use super::transport::{NAP, Transport};
use super::{MqttAddress, MqttError};
use bytes::{Buf, BytesMut};
use millstream_common::StopSignal;
use rumqttc::v5::mqttbytes::Error;
use rumqttc::v5::mqttbytes::v5::{
    ConnAck, Connect, ConnectProperties, ConnectReturnCode, Disconnect, DisconnectProperties, DisconnectReasonCode,
    Login, Packet, PingReq, check,
};
use std::io;
use std::time::{Duration, Instant};

/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// The first byte of the answer to a greeting.
const ANSWER: u8 = 0x20;
/// The kind of packet with which a broker ends a connection.
const FAREWELL: u8 = 14;

/// Who comes, and what it wants to find.
#[derive(Debug, Clone, Copy)]
pub struct Greeting<'a> {
    /// The name of the client, by which the broker knows its session. An empty one lets the broker choose.
    pub client_id: &'a str,
    /// Whether a session of that name is dropped first.
    pub clean_start: bool,
    /// How many seconds the session lives on without a connection.
    pub session_expiry: u32,
    /// How many messages of quality 1 and 2 the broker may send before they are acknowledged.
    pub receive_maximum: Option<u16>,
}

/// An open connection, of which the broker knows who it is.
pub struct Connection {
    transport: Transport,
    place: String,
    client: String,
    incoming: BytesMut,
    outgoing: BytesMut,
    chunk: Vec<u8>,
    timeout: Option<Duration>,
    keep_alive: Duration,
    /// When something was sent.
    spoken: Instant,
    /// Since when the broker has not answered whether it is there.
    asked: Option<Instant>,
    has_session: bool,
    session_expiry: u32,
    receive_maximum: u16,
    largest_packet: Option<u32>,
    stop: StopSignal,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("place", &self.place).field("client", &self.client).finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a connection and greets the broker. Nothing is waited for any longer once `stop` is set.
    ///
    /// # Errors
    /// When nobody answers, the broker does not let the client in, or TLS is not as asked for.
    pub fn open(address: &MqttAddress, greeting: &Greeting<'_>, stop: &StopSignal) -> Result<Self, MqttError> {
        let began = Instant::now();
        let mut connection = Self {
            transport: Transport::open(address, stop)?,
            place: address.place(),
            client: greeting.client_id.to_owned(),
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            chunk: vec![0; CHUNK],
            timeout: Some(address.connect_timeout),
            keep_alive: address.keep_alive,
            spoken: began,
            asked: None,
            has_session: false,
            session_expiry: greeting.session_expiry,
            receive_maximum: u16::MAX,
            largest_packet: None,
            stop: stop.clone(),
        };
        connection.queue(&words_of(address, greeting))?;
        connection.flush()?;
        let answer = connection.answer(began + address.connect_timeout)?;
        if answer.code != ConnectReturnCode::Success {
            let who = address.user.as_ref().map_or("anybody without a user".into(), |user| format!("user `{user}`"));
            let said = answer.properties.as_ref().and_then(|properties| properties.reason_string.as_deref());
            return Err(MqttError::of_greeting(&connection.place, &who, answer.code, said));
        }
        connection.agree(&answer);
        connection.timeout = address.query_timeout;
        Ok(connection)
    }

    /// Waits for the answer to the greeting.
    fn answer(&mut self, deadline: Instant) -> Result<ConnAck, MqttError> {
        loop {
            if self.incoming.first().is_some_and(|first| *first != ANSWER) {
                return Err(self.strange("its first word is no answer to a greeting"));
            }
            match self.next_packet()? {
                Some(Packet::ConnAck(answer)) => return Ok(answer),
                Some(_) => return Err(self.strange("its first word is no answer to a greeting")),
                None => {}
            }
            if self.stop.is_set() {
                return Err(MqttError::Stopped { place: self.place.clone() });
            }
            if Instant::now() >= deadline {
                let source = "it takes longer than `connectTimeout`; does it speak TLS as `url` says?".into();
                return Err(MqttError::Unreachable { place: self.place.clone(), source });
            }
            self.fill(NAP)?;
        }
    }

    /// Takes what the broker says of itself.
    fn agree(&mut self, answer: &ConnAck) {
        self.has_session = answer.session_present;
        let Some(said) = &answer.properties else { return };
        if let Some(seconds) = said.server_keep_alive {
            self.keep_alive = match seconds {
                // It does not mind.
                0 => self.keep_alive,
                seconds => Duration::from_secs(seconds.into()),
            };
        }
        self.session_expiry = said.session_expiry_interval.unwrap_or(self.session_expiry);
        self.receive_maximum = said.receive_max.filter(|most| *most > 0).unwrap_or(u16::MAX);
        self.largest_packet = said.max_packet_size;
    }

    /// Where it leads.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether the broker had a session of the client's name.
    pub fn has_session(&self) -> bool {
        self.has_session
    }

    /// How many seconds the broker keeps the session without a connection.
    pub fn session_expiry(&self) -> u32 {
        self.session_expiry
    }

    /// How many messages of quality 1 and 2 the broker takes before it has acknowledged them.
    pub fn receive_maximum(&self) -> u16 {
        self.receive_maximum
    }

    /// How long the broker may take to answer; `None` for ever.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Whether nothing was said for so long that the broker may have ended it.
    pub fn is_stale(&self) -> bool {
        self.spoken.elapsed() >= self.keep_alive
    }

    /// Whether the broker was asked whether it is there, and has not answered.
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// How many bytes wait to be sent.
    pub fn waiting(&self) -> usize {
        self.outgoing.len()
    }

    /// Adds a packet to what [`flush`](Self::flush) sends.
    ///
    /// # Errors
    /// When it is larger than the broker takes.
    pub fn queue(&mut self, packet: &Packet) -> Result<(), MqttError> {
        match packet.write(&mut self.outgoing, self.largest_packet) {
            Ok(_) => Ok(()),
            Err(Error::OutgoingPacketTooLarge { pkt_size, max }) => {
                let message = format!("a message of {pkt_size} bytes: it takes {max} at most");
                Err(MqttError::Refused { place: self.place.clone(), message })
            }
            Err(error) => Err(MqttError::Refused { place: self.place.clone(), message: error.to_string() }),
        }
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// When the connection broke, when the broker takes nothing for too long, and when nobody wants to wait any longer.
    pub fn flush(&mut self) -> Result<(), MqttError> {
        let mut taken = Instant::now();
        loop {
            let count = if self.outgoing.is_empty() {
                match self.transport.flush().map_err(|error| self.broken(error))? {
                    true => return Ok(()),
                    false => 0,
                }
            } else {
                self.transport.write(&self.outgoing).map_err(|error| self.broken(error))?
            };
            if count > 0 {
                self.outgoing.advance(count);
                taken = Instant::now();
                self.spoken = taken;
            } else if self.stop.is_set() {
                return Err(MqttError::Stopped { place: self.place.clone() });
            } else if let Some(limit) = self.timeout.filter(|limit| taken.elapsed() > *limit) {
                return Err(self.late(limit));
            }
        }
    }

    /// The next packet, if one comes within `wait` and while nobody wants to stop. A silent broker is asked whether it is
    /// there.
    ///
    /// # Errors
    /// When the connection broke, the broker ended it or is not there any more, and when a packet is none.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, MqttError> {
        let deadline = Instant::now() + wait;
        loop {
            if let Some(packet) = self.next_packet()? {
                return Ok(Some(packet));
            }
            self.look_after()?;
            if let Some(asked) = self.asked
                && asked.elapsed() > self.timeout.unwrap_or(self.keep_alive).max(self.keep_alive)
            {
                return Err(self.late(asked.elapsed()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let has_come = self.fill(left)?;
            if !has_come && (Instant::now() >= deadline || self.stop.is_set()) {
                return Ok(None);
            }
        }
    }

    /// The next packet, if it has come already.
    ///
    /// # Errors
    /// When the broker ended the connection, and when a packet is none.
    pub fn received(&mut self) -> Result<Option<Packet>, MqttError> {
        self.next_packet()
    }

    /// Keeps a connection alive from which nothing is read now.
    ///
    /// # Errors
    /// When it broke.
    pub fn stay(&mut self) -> Result<(), MqttError> {
        self.look_after()?;
        // The answer waits behind what is not read.
        self.asked = None;
        Ok(())
    }

    /// Asks whether the broker is there. The answer comes behind all that it has sent before.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn ping(&mut self) -> Result<(), MqttError> {
        self.queue(&Packet::PingReq(PingReq))?;
        self.asked.get_or_insert_with(Instant::now);
        self.flush()
    }

    /// Says goodbye. `forget`: the broker shall drop the session, too.
    pub fn disconnect(mut self, forget: bool) {
        let mut farewell = Disconnect::new(DisconnectReasonCode::NormalDisconnection);
        if forget {
            farewell.properties = Some(DisconnectProperties {
                session_expiry_interval: Some(0),
                reason_string: None,
                user_properties: Vec::new(),
                server_reference: None,
            });
        }
        if self.queue(&Packet::Disconnect(farewell)).and_then(|()| self.flush()).is_ok() {
            self.transport.close();
        }
    }

    fn look_after(&mut self) -> Result<(), MqttError> {
        // In time, whatever the network does with it.
        if self.asked.is_none() && self.spoken.elapsed() >= self.keep_alive.mul_f32(0.75) {
            self.ping()?;
        }
        Ok(())
    }

    /// Reads what is there; answers whether something has come.
    fn fill(&mut self, wait: Duration) -> Result<bool, MqttError> {
        let read = self.transport.read(&mut self.chunk, wait).map_err(|error| self.broken(error))?;
        let Some(read) = read else { return Ok(false) };
        self.incoming.extend_from_slice(&self.chunk[..read]);
        Ok(true)
    }

    /// The next whole packet of what was read.
    fn next_packet(&mut self) -> Result<Option<Packet>, MqttError> {
        let header = match check(self.incoming.iter(), None) {
            Ok(header) => header,
            Err(Error::InsufficientBytes(_)) => return Ok(None),
            Err(error) => return Err(self.strange(&error.to_string())),
        };
        let length = header.frame_length();
        let first = self.incoming.first().copied().unwrap_or_default();
        if first >> 4 == FAREWELL {
            // Its parser wants more than a broker must send.
            let of_length = self.incoming.iter().skip(1).take_while(|byte| **byte >= 0x80).count() + 1;
            let reason = self.incoming.get(1 + of_length).filter(|_| length > 1 + of_length).copied().unwrap_or(0);
            let reason = DisconnectReasonCode::try_from(reason).ok();
            return Err(MqttError::of_farewell(&self.place, &self.client, reason));
        }
        // Before version 5 an answer to a greeting had nothing behind its code.
        if first == ANSWER && length == 4 {
            return Err(MqttError::Old { place: self.place.clone() });
        }
        match Packet::read(&mut self.incoming, None) {
            Ok(packet) => {
                if matches!(packet, Packet::PingResp(_)) {
                    self.asked = None;
                }
                Ok(Some(packet))
            }
            Err(error) => Err(self.strange(&error.to_string())),
        }
    }

    /// An error about an answer that has another shape than brokers give it.
    pub fn strange(&self, reason: &str) -> MqttError {
        MqttError::Foreign { place: self.place.clone(), reason: reason.to_owned() }
    }

    /// The error of a broker that took so long.
    pub fn late(&self, limit: Duration) -> MqttError {
        MqttError::Timeout { place: self.place.clone(), seconds: limit.as_secs() }
    }

    fn broken(&self, error: io::Error) -> MqttError {
        let place = self.place.clone();
        match error.kind() {
            // Of TLS: among others that the broker does not take the certificate.
            io::ErrorKind::InvalidData => MqttError::Tls { place, source: error.into() },
            io::ErrorKind::UnexpectedEof => MqttError::Lost { place, source: "the broker closed it".into() },
            _ => MqttError::Lost { place, source: error.into() },
        }
    }
}

/// The greeting as it is sent.
fn words_of(address: &MqttAddress, greeting: &Greeting<'_>) -> Packet {
    let mut properties = ConnectProperties::new();
    properties.session_expiry_interval = Some(greeting.session_expiry);
    properties.receive_maximum = greeting.receive_maximum;
    let connect = Connect {
        keep_alive: u16::try_from(address.keep_alive.as_secs()).unwrap_or(u16::MAX),
        client_id: greeting.client_id.to_owned(),
        clean_start: greeting.clean_start,
        properties: Some(properties),
    };
    let password = address.password.as_ref().map(|password| password.reveal());
    let login = match (&address.user, password) {
        (None, None) => None,
        (user, password) => Some(Login::new(user.as_deref().unwrap_or_default(), password.unwrap_or_default())),
    };
    Packet::Connect(connect, None, login)
}
