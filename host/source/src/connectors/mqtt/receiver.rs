//! The thread that receives messages: into the spool first, then it acknowledges them.
//!
//! ```text
//!   connect ──► is the session there? ──► subscribe ──► receive ──► a file of the spool ──► acknowledge ──┐
//!      ▲                                                   ▲                                              │
//!      └──────────── the connection broke ─────────────────┴──────────────────────────────────────────────┘
//! ```
//!
//! Rule of its life: nothing is acknowledged that no file has. Of quality 1 that is all: what was not acknowledged comes
//! again. Of quality 2 the packets that are in the spool are owed to the broker until it releases them, and a file knows
//! which, so that one that comes again in between is known. A spool that is full is not filled any further: what is not read
//! from the connection is not acknowledged, and the broker sends no more than `maxInflight` of those.
//!
//! It decides nothing about batches.

use super::config::MqttConfig;
use super::inbox::{Batch, Inbox};
use super::loss::LostSession;
use super::session::Session;
use super::spool::{End, Head, Spool};
use crate::{SourceContext, SourceError, loss};
use millstream_client::mqtt::packets::{
    Filter, Packet, PubAck, PubComp, PubRec, Publish, QoS, RetainForwardRule, SubAck, Subscribe, Unsubscribe,
};
use millstream_client::mqtt::{Connection, Greeting, MqttError};
use millstream_client::patience::{Patience, Transient, pause};
use millstream_common::{StopSignal, describe_chain};
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the thread waits before it looks again whether it should end.
const NAP: Duration = Duration::from_millis(50);
/// A connection that lived for so long shows that the broker was there.
const PROVEN: Duration = Duration::from_secs(1);
/// The packet with which filters are asked for.
const SUBSCRIPTION: u16 = 1;
/// The packet with which filters are given back.
const UNSUBSCRIPTION: u16 = 2;

/// What thread and source know together.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) spool: Spool,
    /// Up to where batches have taken messages.
    pub(super) taken: u64,
    /// Whether the broker has confirmed in this run that it gives the topics.
    pub(super) is_receiving: bool,
    /// Whether the source wants to know when it has all that the broker holds.
    pub(super) wants_all: bool,
    /// Whether it has, or the spool is full.
    pub(super) has_all: bool,
    /// How many sessions are known to be lost.
    pub(super) lost_sessions: u64,
    /// Why the thread has ended, if it was not asked to.
    pub(super) failure: Option<SourceError>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn new(spool: Spool) -> Self {
        Self { state: Mutex::new(State { spool, ..State::default() }), changed: Condvar::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has changed, for a while at most.
    pub(super) fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, NAP).unwrap_or_else(PoisonError::into_inner).0
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }
}

/// The thread, as long as somebody holds it.
#[derive(Debug)]
pub(super) struct Receiver {
    end: StopSignal,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Starts the thread where the spool ends; `head` is what its newest file says.
    pub(super) fn start(
        name: &str,
        config: &MqttConfig,
        context: &SourceContext,
        (shared, head): (&Arc<Shared>, &Head),
        is_bounded: bool,
    ) -> Result<Self, SourceError> {
        let session = Session::open(name, Arc::clone(&context.files), config.address.client_id.as_deref())?;
        // Packets of another session have other numbers.
        let owed = if head.session == session.number { head.owed.clone() } else { BTreeSet::new() };
        let end = StopSignal::new();
        let place = shared.state().spool.end();
        let mut work = Work {
            name: name.to_owned(),
            config: config.clone(),
            context: context.clone(),
            shared: Arc::clone(shared),
            end: end.clone(),
            session,
            place,
            owed,
            is_bounded,
        };
        let thread = std::thread::Builder::new().name(format!("mqtt-{name}")).spawn(move || work.run());
        let thread = thread.map_err(|source| SourceError::Unavailable {
            name: name.to_owned(),
            action: "start a thread for",
            place: config.address.place(),
            source: source.into(),
        })?;
        Ok(Self { end, thread: Some(thread) })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.end.set();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the receiving thread of a source of MQTT panicked");
        }
    }
}

/// Why a connection ended.
enum Failure {
    Mqtt(MqttError),
    Source(SourceError),
}

impl From<MqttError> for Failure {
    fn from(error: MqttError) -> Self {
        Self::Mqtt(error)
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

/// How far it is known that the broker holds nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// Nobody has asked.
    Open,
    /// It was asked, and has sent nothing since.
    Asked,
    /// It was asked, and has sent something.
    Disturbed,
}

/// What the thread works with.
struct Work {
    name: String,
    config: MqttConfig,
    context: SourceContext,
    shared: Arc<Shared>,
    end: StopSignal,
    session: Session,
    /// Where the next file of the spool goes.
    place: End,
    /// Packets of quality 2 that are in the spool and not yet released.
    owed: BTreeSet<u16>,
    is_bounded: bool,
}

impl Work {
    fn run(&mut self) {
        let mut patience = Patience::new(&self.end, self.config.retry);
        loop {
            let began = Instant::now();
            let failure = match self.live() {
                Ok(()) => return,
                Err(_) if self.end.is_set() => return,
                Err(failure) => failure,
            };
            if began.elapsed() > PROVEN {
                patience = Patience::new(&self.end, self.config.retry);
            }
            let error = match failure {
                Failure::Source(error) => return self.shared.change(|state| state.failure = Some(error)),
                Failure::Mqtt(error) => error,
            };
            let warn = || {
                tracing::warn!(source = self.name, error = describe_chain(&error), "the broker is away; trying again");
            };
            if !patience.has_more(error.is_transient(), warn) {
                let (name, action) = (self.name.clone(), "receive messages");
                let error = SourceError::Mqtt { name, action, source: Box::new(error) };
                return self.shared.change(|state| state.failure = Some(error));
            }
        }
    }

    /// Receives over one connection until the source ends.
    fn live(&mut self) -> Result<(), Failure> {
        let mut connection = self.connect()?;
        self.subscribe(&mut connection)?;
        let (mut inbox, mut question, asked) = (Inbox::new(), Question::Open, Instant::now());
        loop {
            if self.end.is_set() {
                // What is in no file is not acknowledged, and comes again.
                connection.disconnect(self.is_bounded);
                return Ok(());
            }
            let (is_full, wants_all, is_receiving) = self.look();
            if is_full && inbox.is_empty() {
                pause(NAP, &self.end);
                connection.stay()?;
                continue;
            }
            if let Some(limit) = connection.timeout().filter(|limit| !is_receiving && asked.elapsed() > *limit) {
                return Err(connection.late(limit).into());
            }
            if wants_all && is_receiving && inbox.is_empty() && question == Question::Open && !connection.is_asking() {
                connection.ping()?;
                question = Question::Asked;
            }
            let interval = if wants_all { Duration::ZERO } else { self.config.spool_interval };
            let mut wait = inbox.due_in(interval).unwrap_or(NAP).min(NAP);
            while let Some(packet) = connection.receive(wait)? {
                self.take(&packet, &mut connection, (&mut inbox, &mut question))?;
                if inbox.is_full(self.config.max_inflight) || self.end.is_set() {
                    break;
                }
                wait = Duration::ZERO;
            }
            let is_due = inbox.due_in(interval).is_some_and(|left| left.is_zero());
            if is_due || inbox.is_full(self.config.max_inflight) {
                self.keep(&mut inbox, &mut connection)?;
            }
        }
    }

    /// Whether the spool is full, whether all is wanted that the broker holds, and whether the broker gives the topics.
    fn look(&self) -> (bool, bool, bool) {
        let mut state = self.shared.state();
        let is_full = state.spool.bytes_after(state.taken) >= self.config.spool_bytes;
        if is_full && state.wants_all && !state.has_all {
            tracing::warn!(source = self.name, "the spool is full: what the broker holds more comes with the next run");
            state.has_all = true;
        }
        (is_full, state.wants_all && !state.has_all, state.is_receiving)
    }

    /// A connection with the session of the checkpoint, or with its successor when the broker has lost it.
    fn connect(&mut self) -> Result<Connection, Failure> {
        loop {
            let has_begun = self.session.filters.is_some() && !self.is_bounded;
            if !has_begun {
                // Whatever had the name before is nothing of this query. It goes by a connection of its own, because some
                // brokers keep a session over a restart only if it did not begin as a clean one.
                Connection::open(&self.config.address, &self.greeting(true, 0), &self.end)?.disconnect(true);
                self.owed.clear();
            }
            let session_expiry = if self.is_bounded { 0 } else { self.config.session_expiry };
            let greeting = self.greeting(false, session_expiry);
            let connection = Connection::open(&self.config.address, &greeting, &self.end)?;
            let Some(filters) = self.session.filters.as_ref().filter(|_| has_begun && !connection.has_session()) else {
                if connection.session_expiry() < session_expiry {
                    let (seconds, wanted) = (connection.session_expiry(), session_expiry);
                    tracing::warn!(
                        source = self.name,
                        "the broker keeps messages for a query that is away for {seconds} s, and not for {wanted} s"
                    );
                }
                return Ok(connection);
            };
            let (place, client) = (connection.place().to_owned(), self.session.client.clone());
            let lost = LostSession { place, client, filters: filters.clone() };
            // The empty session that the broker has just made must not be taken for the old one.
            connection.disconnect(true);
            let count = loss::judge(&self.name, &[lost], |_| 1, self.config.fails_on_loss)?;
            self.session = self.session.successor(self.config.address.client_id.as_deref())?;
            self.owed.clear();
            self.shared.change(|state| state.lost_sessions += count);
        }
    }

    fn greeting(&self, clean_start: bool, session_expiry: u32) -> Greeting<'_> {
        let receive_maximum = Some(self.config.max_inflight);
        Greeting { client_id: &self.session.client, clean_start, session_expiry, receive_maximum }
    }

    /// Asks for the topics, also where the broker knows it already, and gives back what is no longer wanted.
    fn subscribe(&self, connection: &mut Connection) -> Result<(), Failure> {
        let filter = |filter: &String| Filter {
            // What was kept of old is told once.
            retain_forward_rule: RetainForwardRule::OnNewSubscribe,
            ..Filter::new(filter, self.config.qos)
        };
        let mut subscribe = Subscribe::new_many(self.config.filters.iter().map(filter), None);
        subscribe.pkid = SUBSCRIPTION;
        connection.queue(&Packet::Subscribe(subscribe))?;
        let agreed = self.session.filters.iter().flatten();
        let gone: Vec<String> = agreed.filter(|filter| !self.config.filters.contains(filter)).cloned().collect();
        if !gone.is_empty() {
            let (pkid, properties) = (UNSUBSCRIPTION, None);
            connection.queue(&Packet::Unsubscribe(Unsubscribe { pkid, filters: gone, properties }))?;
        }
        Ok(connection.flush()?)
    }

    /// Does what a packet asks for.
    fn take(
        &mut self,
        packet: &Packet,
        connection: &mut Connection,
        (inbox, question): (&mut Inbox, &mut Question),
    ) -> Result<(), Failure> {
        if *question == Question::Asked && matches!(packet, Packet::Publish(_) | Packet::PubRel(_)) {
            *question = Question::Disturbed;
        }
        match packet {
            Packet::Publish(message) => self.receive(message, connection, inbox)?,
            Packet::PubRel(release) if self.owed.contains(&release.pkid) => inbox.release(release.pkid),
            Packet::PubRel(release) => {
                // It was released before, and the broker has not heard of it.
                connection.queue(&Packet::PubComp(PubComp::new(release.pkid, None)))?;
                connection.flush()?;
            }
            Packet::SubAck(answer) if answer.pkid == SUBSCRIPTION => self.begin(answer, connection)?,
            Packet::UnsubAck(_) => {}
            Packet::PingResp(_) => {
                let was = std::mem::replace(question, Question::Open);
                if was == Question::Asked && inbox.is_empty() {
                    self.shared.change(|state| state.has_all = true);
                }
            }
            _ => return Err(connection.strange("it sends what nobody has asked for").into()),
        }
        Ok(())
    }

    fn receive(&self, message: &Publish, connection: &mut Connection, inbox: &mut Inbox) -> Result<(), Failure> {
        if message.qos == QoS::ExactlyOnce && self.owed.contains(&message.pkid) {
            // It is in the spool, and the broker has not heard of it.
            connection.queue(&Packet::PubRec(PubRec::new(message.pkid, None)))?;
            connection.flush()?;
            return Ok(());
        }
        let micros = self.context.clock.now_ms().saturating_mul(1000);
        inbox.add(message, micros).map_err(|_| connection.strange("the name of a topic is no text").into())
    }

    /// The broker has answered about the topics.
    fn begin(&mut self, answer: &SubAck, connection: &Connection) -> Result<(), Failure> {
        if answer.return_codes.len() != self.config.filters.len() {
            return Err(connection.strange("it answers about other filters than were asked for").into());
        }
        for (filter, reason) in self.config.filters.iter().zip(&answer.return_codes) {
            if let Some(error) = MqttError::of_subscription(connection.place(), filter, self.config.qos as u8, *reason)
            {
                return Err(error.into());
            }
        }
        if !self.is_bounded {
            self.session.agree(&self.config.filters)?;
        }
        self.shared.change(|state| state.is_receiving = true);
        Ok(())
    }

    /// Writes what has come into a file, and then tells the broker.
    fn keep(&mut self, inbox: &mut Inbox, connection: &mut Connection) -> Result<(), Failure> {
        let Batch { rows, received, promised, released } =
            inbox.take().map_err(|error| SourceError::Schema { name: self.name.clone(), reason: error.to_string() })?;
        let owed = self.owed.union(&promised).filter(|packet| !released.contains(packet)).copied().collect();
        let written = self.place.write(&self.name, self.context.files.as_ref(), rows, (self.session.number, &owed))?;
        self.owed = owed;
        self.shared.change(|state| state.spool.push(written));
        for packet in received {
            connection.queue(&Packet::PubAck(PubAck::new(packet, None)))?;
        }
        for packet in promised {
            connection.queue(&Packet::PubRec(PubRec::new(packet, None)))?;
        }
        for packet in released {
            connection.queue(&Packet::PubComp(PubComp::new(packet, None)))?;
        }
        Ok(connection.flush()?)
    }
}
