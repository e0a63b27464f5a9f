//! MQTT: options become a connection, packets go out and come in, what brokers refuse becomes what it means.
//!
//! First thing that source and sink of MQTT do: [`MqttAddress`] takes the options of a query without a look at the world,
//! [`Connection`] opens what it says and greets the broker ([`Greeting`]). Packets have the form of version 5 and are those
//! of `rumqttc` ([`packets`]), of which nothing else is used: when a message is acknowledged, what a session still owes after
//! a crash and how many messages are under way is decided by who holds the connection.
//!
//! Rule of its life: one connection, for one thread that waits, no longer than it may and not a moment longer than it is
//! wanted. After an error it is of no more use; who holds it opens another. The password is never shown.
//!
//! It knows no rows and keeps no session: that is the broker's, and what it must be held against is the caller's.

mod address;
mod connection;
mod error;
mod filter;
mod reasons;
mod transport;

pub use address::{MQTT_OPTIONS, MqttAddress};
pub use connection::{Connection, Greeting};
pub use error::MqttError;
pub use filter::{filter_fault, topic_fault};

/// The packets of MQTT 5, and what they are made of.
pub mod packets {
    pub use rumqttc::v5::mqttbytes::QoS;
    pub use rumqttc::v5::mqttbytes::v5::{
        Filter, Packet, PubAck, PubComp, PubRec, PubRel, Publish, PublishProperties, RetainForwardRule, SubAck,
        Subscribe, SubscribeReasonCode, Unsubscribe,
    };
}
