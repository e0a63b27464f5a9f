//! Writes batches: a batch is done when the broker has acknowledged all of its messages.

use super::FORMAT;
use super::columns::{Columns, Messages};
use super::config::MqttConfig;
use super::delivery::{At, Delivery};
use crate::connectors::attempt::{Failure, patiently};
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::datatypes::SchemaRef;
use millstream_client::mqtt::packets::{Packet, PubRel, QoS};
use millstream_client::mqtt::{Connection, Greeting, MqttError};
use millstream_common::{OutputMode, StopSignal};
use std::time::{Duration, Instant};

/// How long one look for answers takes.
const NAP: Duration = Duration::from_millis(50);
/// How long answers may still take after somebody asked to stop: what is about to be done shall be done.
const GRACE: Duration = Duration::from_secs(2);
/// After so many bytes it is sent what was made, and looked what was answered.
const PIECE: usize = 256 << 10;

/// Makes sinks of MQTT.
#[derive(Debug, Clone, Copy, Default)]
pub struct MqttSinkFactory;

impl SinkFactory for MqttSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        MqttConfig::new(spec).map(drop)
    }

    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        Columns::of(schema, MqttConfig::new(spec)?.topic.as_deref()).map(drop)
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        let config = MqttConfig::new(spec)?;
        let mut sink = MqttSink { config, stop: context.stop, connection: None };
        sink.patiently("open", |sink| sink.connection().map(drop))?;
        Ok(Box::new(sink))
    }
}

struct MqttSink {
    config: MqttConfig,
    /// Set when nothing is to be waited for any more.
    stop: StopSignal,
    connection: Option<Connection>,
}

impl MqttSink {
    /// The connection; another one when the broker may have ended the last.
    fn connection(&mut self) -> Result<&mut Connection, MqttError> {
        let connection = match self.connection.take().filter(|connection| !connection.is_stale()) {
            Some(connection) => connection,
            None => {
                let greeting = Greeting {
                    client_id: self.config.address.client_id.as_deref().unwrap_or_default(),
                    clean_start: true,
                    session_expiry: 0,
                    receive_maximum: None,
                };
                Connection::open(&self.config.address, &greeting, &self.stop)?
            }
        };
        Ok(self.connection.insert(connection))
    }

    /// Tries until it goes well, or fails in a way that waiting does not mend, or has taken long enough, or nobody wants it any
    /// more. A failed attempt leaves no connection.
    fn patiently<T>(
        &mut self,
        action: &'static str,
        mut attempt: impl FnMut(&mut Self) -> Result<T, MqttError>,
    ) -> Result<T, SinkError> {
        let (stop, retry, place) = (self.stop.clone(), self.config.retry, self.config.place());
        let attempt = || attempt(self).inspect_err(|_| self.connection = None).map_err(Failure::Server);
        patiently(FORMAT, (&stop, retry), attempt, |source| SinkError::Mqtt { action, place, source })
    }

    /// Sends what the broker does not have yet, and waits until it has all.
    fn deliver(&mut self, messages: &[Messages<'_>], delivery: &mut Delivery) -> Result<(), MqttError> {
        let (qos, retain, most) = (self.config.qos, self.config.retain, self.config.max_inflight);
        let stop = self.stop.clone();
        let connection = self.connection()?;
        // Also where the connection is the one of the last batch: nothing of that is under way any more.
        delivery.restart(most.min(connection.receive_maximum()));
        let message = |at: At, packet| Packet::Publish(messages[at.batch].get(at.row, packet, qos, retain));
        if qos == QoS::AtMostOnce {
            delivery.begin_again();
            while let Some(at) = delivery.take() {
                connection.queue(&message(at, 0))?;
                if connection.waiting() >= PIECE {
                    connection.flush()?;
                }
            }
            // Who answers this has read all that was sent before.
            connection.ping()?;
            return await_ping(connection, &stop);
        }
        let mut waiting = Waiting::new();
        loop {
            while connection.waiting() < PIECE
                && let Some((at, packet)) = delivery.send()
            {
                connection.queue(&message(at, packet))?;
            }
            connection.flush()?;
            if delivery.is_quiet() {
                return Ok(());
            }
            let mut answer = connection.receive(NAP)?;
            waiting.look(answer.is_some(), connection, &stop)?;
            while let Some(packet) = answer {
                take(&packet, connection, messages, delivery)?;
                answer = connection.received()?;
            }
        }
    }
}

/// Does what an answer says.
fn take(
    answer: &Packet,
    connection: &mut Connection,
    messages: &[Messages<'_>],
    delivery: &mut Delivery,
) -> Result<(), MqttError> {
    let topic = |at: At| String::from_utf8_lossy(&messages[at.batch].topic(at.row)).into_owned();
    match answer {
        Packet::PubAck(acknowledged) => {
            if let Some(at) = delivery.finish(acknowledged.pkid)
                && let Some(error) = MqttError::of_acknowledgement(connection.place(), &topic(at), acknowledged.reason)
            {
                return Err(error);
            }
        }
        Packet::PubRec(received) => {
            if let Some(at) = delivery.get(received.pkid)
                && let Some(error) = MqttError::of_receipt(connection.place(), &topic(at), received.reason)
            {
                return Err(error);
            }
            connection.queue(&Packet::PubRel(PubRel::new(received.pkid, None)))?;
        }
        Packet::PubComp(completed) => {
            delivery.finish(completed.pkid);
        }
        Packet::PingResp(_) => {}
        _ => return Err(connection.strange("it sends what nobody has asked for")),
    }
    Ok(())
}

/// Waits until the broker says that it is there.
fn await_ping(connection: &mut Connection, stop: &StopSignal) -> Result<(), MqttError> {
    let mut waiting = Waiting::new();
    while connection.is_asking() {
        let answer = connection.receive(NAP)?;
        waiting.look(answer.is_some(), connection, stop)?;
    }
    Ok(())
}

/// How long an answer has been waited for.
struct Waiting {
    since: Instant,
    stopping: Option<Instant>,
}

impl Waiting {
    fn new() -> Self {
        Self { since: Instant::now(), stopping: None }
    }

    /// Whether to wait on; an error when it takes too long, or when nobody wants it any more.
    fn look(&mut self, has_come: bool, connection: &Connection, stop: &StopSignal) -> Result<(), MqttError> {
        if has_come {
            self.since = Instant::now();
        }
        if stop.is_set() && self.stopping.get_or_insert_with(Instant::now).elapsed() > GRACE {
            return Err(MqttError::Stopped { place: connection.place().to_owned() });
        }
        match connection.timeout().filter(|limit| self.since.elapsed() > *limit) {
            Some(limit) => Err(connection.late(limit)),
            None => Ok(()),
        }
    }
}

impl Sink for MqttSink {
    fn description(&self) -> String {
        format!("MqttSink[{}]", self.config.place())
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::AtLeastOnce
    }

    fn supports(&self, _mode: OutputMode) -> bool {
        true
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        let topic = self.config.topic.as_deref();
        let columns = Columns::of(batch.schema, topic)?;
        let messages: Result<Vec<Messages<'_>>, String> =
            batch.rows.iter().map(|rows| columns.read(rows, topic)).collect();
        let messages = messages.map_err(|reason| SinkError::Rows {
            sink: FORMAT.to_owned(),
            place: self.config.place(),
            batch: batch.id,
            reason,
        })?;
        let lengths: Vec<usize> = messages.iter().map(Messages::len).collect();
        let rows = lengths.iter().sum::<usize>() as u64;
        if rows > 0 {
            let mut delivery = Delivery::new(lengths);
            self.patiently("write", |sink| sink.deliver(&messages, &mut delivery))?;
        }
        Ok(SinkReport { rows })
    }

    fn stop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.disconnect(false);
        }
    }
}
