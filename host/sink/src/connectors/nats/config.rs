//! The options of the sink.

use super::FORMAT;
use crate::{SinkError, SinkSpec};
use millstream_client::nats::{NATS_OPTIONS, NatsAddress, is_subject};
use millstream_client::server_options::retry_timeout;
use millstream_common::Options;
use std::time::Duration;

const OWN: [&str; 5] = ["stream", "subject", "batchesBucket", "onLostMessages", "retryTimeout"];
/// Where queries keep account of what they write, where nobody says it.
const BUCKET: &str = "millstream_batches";

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct NatsConfig {
    pub(super) address: NatsAddress,
    pub(super) stream: String,
    /// That of all rows, whatever their column `subject` says.
    pub(super) subject: Option<String>,
    /// Where queries keep account of what they write.
    pub(super) bucket: String,
    /// Whether rows of which nobody knows whether the stream had them go out again.
    pub(super) writes_on_loss: bool,
    /// For how long a batch is tried again when the server is away.
    pub(super) retry: Duration,
}

impl NatsConfig {
    /// Checks the options; connects to nothing.
    pub(super) fn new(spec: &SinkSpec) -> Result<Self, SinkError> {
        let options = &spec.options;
        let owner = format!("sink `{FORMAT}`");
        let owner = owner.as_str();
        options.only(owner, &[&NATS_OPTIONS[..], &OWN[..]].concat())?;
        let stream = options.require(owner, "stream")?.trim();
        if !is_subject(stream) || stream.contains(['.', ',', '*', '>', '/', '\\']) {
            return Err(Options::invalid(owner, "stream", stream, "write the name of one stream").into());
        }
        let subject = options.get("subject").map(str::trim);
        if let Some(subject) = subject.filter(|subject| !is_subject(subject)) {
            let reason = "write a subject without wildcards, such as `orders.new`, or select a column `subject`";
            return Err(Options::invalid(owner, "subject", subject, reason).into());
        }
        let bucket = options.get("batchesBucket").unwrap_or(BUCKET);
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_');
        if bucket.is_empty() || !bucket.chars().all(is_plain) {
            let reason = "write the name of a bucket: letters, digits, `-` and `_`";
            return Err(Options::invalid(owner, "batchesBucket", bucket, reason).into());
        }
        let writes_on_loss = match options.get("onLostMessages").map(str::to_ascii_lowercase).as_deref() {
            None | Some("fail") => false,
            Some("write") => true,
            Some(other) => return Err(Options::invalid(owner, "onLostMessages", other, "write fail or write").into()),
        };
        Ok(Self {
            address: NatsAddress::new(owner, options, &|name| std::env::var(name).ok())?,
            stream: stream.to_owned(),
            subject: subject.map(str::to_owned),
            bucket: bucket.to_owned(),
            writes_on_loss,
            retry: retry_timeout(owner, options)?,
        })
    }

    /// Servers and stream, as a person would name them.
    pub(super) fn place(&self) -> String {
        format!("{} stream {}", self.address.place(), self.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(options: &[(&str, &str)]) -> Result<NatsConfig, String> {
        let sound = Options::new().with("servers", "one").with("stream", "ORDERS");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        NatsConfig::new(&SinkSpec { format: FORMAT.into(), options }).map_err(|error| error.to_string())
    }

    #[test]
    fn what_the_user_leaves_out_has_a_meaning() {
        let plain = config(&[]).unwrap();
        assert_eq!((plain.place().as_str(), plain.bucket.as_str()), ("nats://one:4222 stream ORDERS", BUCKET));
        assert!(plain.subject.is_none() && !plain.writes_on_loss && plain.retry == Duration::from_secs(60));
        let full =
            config(&[("subject", "orders.new"), ("onLostMessages", "write"), ("batchesBucket", "mine")]).unwrap();
        assert_eq!((full.subject.as_deref(), full.writes_on_loss), (Some("orders.new"), true));
    }

    #[test]
    fn options_that_do_not_fit_are_refused_with_the_way_out() {
        for (name, value, part) in [
            ("stream", "A.B", "name of one stream"),
            ("stream", "A,B", "name of one stream"),
            ("subject", "orders.*", "without wildcards"),
            ("subject", "", "without wildcards"),
            ("batchesBucket", "a.b", "name of a bucket"),
            ("onLostMessages", "skip", "fail or write"),
            ("retryTimeout", "long", "a duration"),
            ("topic", "orders", "`topic` is unknown"),
        ] {
            let error = config(&[(name, value)]).map(|found| found.stream).unwrap_err();
            assert!(error.contains(part) && error.contains(name), "{error}");
        }
    }
}
