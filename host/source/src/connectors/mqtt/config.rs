//! The options of the source.

use super::rows;
use crate::{SourceError, SourceSpec};
use arrow::datatypes::SchemaRef;
use millstream_client::mqtt::packets::QoS;
use millstream_client::mqtt::{MQTT_OPTIONS, MqttAddress, filter_fault};
use millstream_client::server_options::{retry_timeout, time};
use millstream_common::Options;
use std::time::Duration;

const OWN: [&str; 9] = [
    "topic",
    "qos",
    "maxEntriesPerTrigger",
    "maxInflight",
    "sessionExpiry",
    "spoolInterval",
    "spoolBytes",
    "failOnDataLoss",
    "retryTimeout",
];

/// How many messages may be unacknowledged at a time where nobody says it.
const MAX_INFLIGHT: u16 = 1000;
/// How long the broker keeps a session without a connection where nobody says it.
const SESSION_EXPIRY: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long a message may wait for others of its file where nobody says it.
const SPOOL_INTERVAL: Duration = Duration::from_millis(100);
/// How much the spool may hold of what no batch has taken where nobody says it.
const SPOOL_BYTES: u64 = 1 << 30;

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct MqttConfig {
    pub(super) address: MqttAddress,
    /// Filters of topics.
    pub(super) filters: Vec<String>,
    pub(super) qos: QoS,
    pub(super) most_entries: Option<u64>,
    pub(super) max_inflight: u16,
    /// In seconds; the greatest number is for ever.
    pub(super) session_expiry: u32,
    pub(super) spool_interval: Duration,
    pub(super) spool_bytes: u64,
    pub(super) fails_on_loss: bool,
    pub(super) retry: Duration,
}

impl MqttConfig {
    /// Checks the options; connects to nothing.
    pub(super) fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let (owner, options) = (owner.as_str(), &spec.options);
        options.only(owner, &[&MQTT_OPTIONS[..], &OWN[..]].concat())?;
        if spec.schema.is_some() {
            let reason =
                "it has columns of its own, `topic`, `value`, `qos`, `retained`, `duplicate`, `timestamp` and \
                          `headers`; leave the schema out, and take `value` apart in the query"
                    .into();
            return Err(SourceError::Schema { name: spec.name.clone(), reason });
        }
        let qos = match options.get("qos").map(str::trim) {
            None | Some("1") => QoS::AtLeastOnce,
            Some("2") => QoS::ExactlyOnce,
            Some("0") => {
                let reason = "with 0 the broker keeps nothing while the query is away; write 1 or 2";
                return Err(Options::invalid(owner, "qos", "0", reason).into());
            }
            Some(other) => return Err(Options::invalid(owner, "qos", other, "write 1 or 2").into()),
        };
        let above_zero = "write a whole number greater than 0";
        let number = |name: &str| -> Result<Option<u64>, SourceError> {
            match options.parse::<u64>(owner, name, above_zero)? {
                Some(0) => Err(Options::invalid(owner, name, "0", above_zero).into()),
                number => Ok(number),
            }
        };
        let max_inflight = match number("maxInflight")?.map(u16::try_from) {
            None => MAX_INFLIGHT,
            Some(Ok(number)) => number,
            Some(Err(_)) => {
                let text = options.get("maxInflight").unwrap_or_default();
                return Err(Options::invalid(owner, "maxInflight", text, "write a number from 1 to 65535").into());
            }
        };
        let session_expiry = time(owner, options, "sessionExpiry")?.unwrap_or(SESSION_EXPIRY);
        Ok(Self {
            address: MqttAddress::new(owner, options, &|name| std::env::var(name).ok())?,
            filters: filters(owner, options)?,
            qos,
            most_entries: number("maxEntriesPerTrigger")?,
            max_inflight,
            session_expiry: u32::try_from(session_expiry.as_secs().max(1)).unwrap_or(u32::MAX),
            spool_interval: time(owner, options, "spoolInterval")?.unwrap_or(SPOOL_INTERVAL),
            spool_bytes: number("spoolBytes")?.unwrap_or(SPOOL_BYTES),
            fails_on_loss: options.flag(owner, "failOnDataLoss", true)?,
            retry: retry_timeout(owner, options)?,
        })
    }

    /// The columns.
    pub(super) fn schema() -> SchemaRef {
        rows::schema()
    }
}

/// Option `topic`.
fn filters(owner: &str, options: &Options) -> Result<Vec<String>, SourceError> {
    let text = options.require(owner, "topic")?;
    let filters: Vec<String> = text.split(',').map(|filter| filter.trim().to_owned()).collect();
    for (at, filter) in filters.iter().enumerate() {
        if let Some(fault) = filter_fault(filter) {
            let reason = format!("{fault}; write filters such as `sensors/+/heat` or `a/#, b`");
            return Err(Options::invalid(owner, "topic", text, &reason).into());
        }
        if filters[..at].contains(filter) {
            return Err(Options::invalid(owner, "topic", text, "write each filter once").into());
        }
    }
    Ok(filters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(options: &[(&str, &str)]) -> Result<MqttConfig, SourceError> {
        let sound = Options::new().with("url", "mqtt://localhost:1").with("topic", "sensors/#");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        MqttConfig::new(&SourceSpec { name: "s".into(), format: "mqtt".into(), schema: None, options })
    }

    #[test]
    fn what_the_user_leaves_out_has_a_meaning() {
        let plain = config(&[]).unwrap();
        assert_eq!((plain.qos, plain.max_inflight, plain.most_entries), (QoS::AtLeastOnce, MAX_INFLIGHT, None));
        assert_eq!((plain.fails_on_loss, plain.session_expiry), (true, 604_800));
        let several = config(&[("topic", " a/+ , $share/g/b/#"), ("qos", "2")]).unwrap();
        assert_eq!((several.filters, several.qos), (vec!["a/+".to_owned(), "$share/g/b/#".into()], QoS::ExactlyOnce));
        assert_eq!(config(&[("sessionExpiry", "100000 days")]).unwrap().session_expiry, u32::MAX);
        let names: Vec<_> = MqttConfig::schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["topic", "value", "qos", "retained", "duplicate", "timestamp", "headers"]);
    }

    #[test]
    fn values_that_mean_nothing_and_names_that_nobody_reads_are_refused() {
        for (name, value) in [
            ("topic", "a,,b"),
            ("topic", "a, a"),
            ("topic", "a/#/b"),
            ("qos", "0"),
            ("qos", "3"),
            ("maxEntriesPerTrigger", "0"),
            ("maxInflight", "65536"),
            ("sessionExpiry", "soon"),
            ("spoolInterval", "0 s"),
            ("spoolBytes", "0"),
            ("failOnDataLoss", "perhaps"),
            ("retryTimeout", "x"),
            ("maxOffsetsPerTrigger", "5"),
            ("cleanSession", "true"),
        ] {
            let error = config(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
