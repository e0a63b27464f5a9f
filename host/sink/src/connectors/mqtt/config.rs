//! The options of the sink.

use super::FORMAT;
use crate::{SinkError, SinkSpec};
use millstream_client::mqtt::packets::QoS;
use millstream_client::mqtt::{MQTT_OPTIONS, MqttAddress, topic_fault};
use millstream_client::server_options::retry_timeout;
use millstream_common::Options;
use std::time::Duration;

const OWN: [&str; 5] = ["topic", "qos", "retain", "maxInflight", "retryTimeout"];
/// How many messages may be without an answer at a time where nobody says it.
const MAX_INFLIGHT: u16 = 100;

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct MqttConfig {
    pub(super) address: MqttAddress,
    /// Where all rows go, whatever their column `topic` says.
    pub(super) topic: Option<String>,
    pub(super) qos: QoS,
    /// Whether the broker keeps the last message of each topic for those who come later.
    pub(super) retain: bool,
    pub(super) max_inflight: u16,
    /// For how long a batch is tried again when the broker is away.
    pub(super) retry: Duration,
}

impl MqttConfig {
    /// Checks the options; connects to nothing.
    pub(super) fn new(spec: &SinkSpec) -> Result<Self, SinkError> {
        let options = &spec.options;
        let owner = format!("sink `{FORMAT}`");
        let owner = owner.as_str();
        options.only(owner, &[&MQTT_OPTIONS[..], &OWN[..]].concat())?;
        let topic = options.get("topic").map(str::to_owned);
        if let Some((topic, fault)) = topic.as_deref().and_then(|topic| topic_fault(topic).map(|fault| (topic, fault)))
        {
            return Err(Options::invalid(owner, "topic", topic, fault).into());
        }
        let qos = match options.get("qos").map(str::trim) {
            Some("0") => QoS::AtMostOnce,
            None | Some("1") => QoS::AtLeastOnce,
            Some("2") => QoS::ExactlyOnce,
            Some(other) => return Err(Options::invalid(owner, "qos", other, "write 0, 1 or 2").into()),
        };
        let expected = "write a number from 1 to 65535";
        let max_inflight = options.parse::<u16>(owner, "maxInflight", expected)?.unwrap_or(MAX_INFLIGHT);
        if max_inflight == 0 {
            return Err(Options::invalid(owner, "maxInflight", "0", expected).into());
        }
        Ok(Self {
            address: MqttAddress::new(owner, options, &|name| std::env::var(name).ok())?,
            topic,
            qos,
            retain: options.flag(owner, "retain", false)?,
            max_inflight,
            retry: retry_timeout(owner, options)?,
        })
    }

    /// Broker and topic, as a person would name them.
    pub(super) fn place(&self) -> String {
        let place = self.address.place();
        match &self.topic {
            Some(topic) => format!("{place} topic {topic}"),
            None => format!("{place} topics of rows"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(options: &[(&str, &str)]) -> Result<MqttConfig, SinkError> {
        let sound = Options::new().with("url", "mqtt://localhost:1");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        MqttConfig::new(&SinkSpec { format: FORMAT.into(), options })
    }

    #[test]
    fn what_the_user_leaves_out_has_a_meaning() {
        let plain = config(&[]).unwrap();
        assert_eq!((plain.qos, plain.retain, plain.max_inflight), (QoS::AtLeastOnce, false, MAX_INFLIGHT));
        assert_eq!(plain.place(), "mqtt://localhost:1 topics of rows");
        let full = config(&[("topic", "a/b"), ("qos", "0"), ("retain", "true"), ("maxInflight", "5")]).unwrap();
        assert_eq!((full.qos, full.retain, full.max_inflight), (QoS::AtMostOnce, true, 5));
        assert_eq!(full.place(), "mqtt://localhost:1 topic a/b");
    }

    #[test]
    fn values_that_mean_nothing_and_names_that_nobody_reads_are_refused() {
        for (name, value) in [
            ("topic", ""),
            ("topic", "a/+"),
            ("qos", "3"),
            ("retain", "perhaps"),
            ("maxInflight", "0"),
            ("maxInflight", "65536"),
            ("retryTimeout", "x"),
            ("maxEntriesPerTrigger", "5"),
        ] {
            let error = config(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
