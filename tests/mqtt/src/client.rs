//! Another program that writes to a broker and reads from it.

use millstream_client::mqtt::packets::{
    Filter, Packet, PubAck, PubComp, PubRec, PubRel, Publish, PublishProperties, QoS, Subscribe,
};
use millstream_client::mqtt::{Connection, Greeting, MqttAddress};
use millstream_common::{Options, StopSignal};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client with a session that ends with it.
pub struct Client(Connection);

/// A message as somebody who listens gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Where it went.
    pub topic: String,
    /// What it says.
    pub value: String,
    /// How it was given.
    pub qos: u8,
    /// Whether the broker had kept it.
    pub retained: bool,
    /// Its properties, `name=value` joined by spaces.
    pub headers: String,
}

fn qos(number: u8) -> QoS {
    [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce][usize::from(number)]
}

impl Client {
    /// To a URL.
    pub fn of(url: &str) -> Self {
        Self::named(url, "")
    }

    /// To a URL, with a name.
    pub fn named(url: &str, name: &str) -> Self {
        let address = MqttAddress::new("the test", &Options::new().with("url", url), &|_| None).unwrap();
        let greeting = Greeting { client_id: name, clean_start: true, session_expiry: 0, receive_maximum: None };
        Self(Connection::open(&address, &greeting, &StopSignal::new()).unwrap())
    }

    /// Writes a message, and waits until the broker has it.
    pub fn publish(&mut self, topic: &str, value: &str, quality: u8) {
        self.send(Publish::new(topic, qos(quality), value.to_owned(), None));
    }

    /// Writes a message that the broker keeps for those who come later.
    pub fn retain(&mut self, topic: &str, value: &str) {
        self.send(Publish { retain: true, ..Publish::new(topic, QoS::AtLeastOnce, value.to_owned(), None) });
    }

    /// Writes a message with properties.
    pub fn publish_with(&mut self, topic: &str, value: &str, headers: &[(&str, &str)]) {
        let user_properties = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let properties = PublishProperties { user_properties, ..PublishProperties::default() };
        self.send(Publish::new(topic, QoS::AtLeastOnce, value.to_owned(), Some(properties)));
    }

    fn send(&mut self, mut message: Publish) {
        let quality = message.qos;
        message.pkid = u16::from(quality != QoS::AtMostOnce);
        self.0.queue(&Packet::Publish(message)).unwrap();
        self.0.flush().unwrap();
        match quality {
            QoS::AtMostOnce => self.settle(|_| {}),
            QoS::AtLeastOnce => self.until(|packet| matches!(packet, Packet::PubAck(_))),
            QoS::ExactlyOnce => {
                self.until(|packet| matches!(packet, Packet::PubRec(_)));
                self.0.queue(&Packet::PubRel(PubRel::new(1, None))).unwrap();
                self.0.flush().unwrap();
                self.until(|packet| matches!(packet, Packet::PubComp(_)));
            }
        }
    }

    fn until(&mut self, is_it: impl Fn(&Packet) -> bool) {
        loop {
            let packet = self.0.receive(PATIENCE).unwrap().unwrap_or_else(|| panic!("the broker does not answer"));
            if is_it(&packet) {
                return;
            }
        }
    }

    /// Asks for topics.
    pub fn subscribe(&mut self, filter: &str) {
        let mut subscribe = Subscribe::new(Filter::new(filter, QoS::ExactlyOnce), None);
        subscribe.pkid = 1;
        self.0.queue(&Packet::Subscribe(subscribe)).unwrap();
        self.0.flush().unwrap();
        self.until(|packet| matches!(packet, Packet::SubAck(_)));
    }

    /// What has come since the last time: all that the broker has sent before it answers a question.
    pub fn messages(&mut self) -> Vec<Message> {
        let mut found = Vec::new();
        // What is answered in the first round may bring more in the second.
        for _ in 0..2 {
            self.settle(|message| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let headers = message.properties.iter().flat_map(|properties| &properties.user_properties);
                let headers: Vec<String> = headers.map(|(name, value)| format!("{name}={value}")).collect();
                found.push(Message {
                    topic: text(&message.topic),
                    value: text(&message.payload),
                    qos: message.qos as u8,
                    retained: message.retain,
                    headers: headers.join(" "),
                });
            });
        }
        found
    }

    /// The values of what has come since the last time.
    pub fn values(&mut self) -> Vec<String> {
        self.messages().into_iter().map(|message| message.value).collect()
    }

    /// Reads until the broker answers a question.
    fn settle(&mut self, mut each: impl FnMut(Publish)) {
        self.0.ping().unwrap();
        while self.0.is_asking() {
            let answer = match self.0.receive(PATIENCE).unwrap() {
                Some(Packet::Publish(message)) => {
                    let answer = match message.qos {
                        QoS::AtMostOnce => None,
                        QoS::AtLeastOnce => Some(Packet::PubAck(PubAck::new(message.pkid, None))),
                        QoS::ExactlyOnce => Some(Packet::PubRec(PubRec::new(message.pkid, None))),
                    };
                    each(message);
                    answer
                }
                Some(Packet::PubRel(release)) => Some(Packet::PubComp(PubComp::new(release.pkid, None))),
                Some(_) => None,
                None => panic!("the broker does not answer"),
            };
            if let Some(answer) = answer {
                self.0.queue(&answer).unwrap();
                self.0.flush().unwrap();
            }
        }
    }
}
