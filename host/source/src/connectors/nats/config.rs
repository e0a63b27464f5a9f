//! The options of the source.

use super::starting::{self, Start};
use crate::headers::headers_field;
use crate::{SourceError, SourceSpec};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_client::nats::{NATS_OPTIONS, NatsAddress, is_filter, matches};
use millstream_common::Options;
use std::sync::Arc;

const OWN: [&str; 5] = ["stream", "subject", "maxOffsetsPerTrigger", "failOnDataLoss", "includeHeaders"];

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct NatsConfig {
    pub(super) address: NatsAddress,
    pub(super) stream: String,
    /// Whose subject one of these takes is read; all when there is none.
    pub(super) filters: Vec<String>,
    /// Where a new query begins.
    pub(super) start: Start,
    pub(super) most: Option<u64>,
    pub(super) fails_on_loss: bool,
    pub(super) has_headers: bool,
}

impl NatsConfig {
    /// Checks the options; connects to nothing.
    pub(super) fn new(spec: &SourceSpec, is_bounded: bool) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let (owner, options) = (owner.as_str(), &spec.options);
        options.only(owner, &[&NATS_OPTIONS[..], &starting::OPTIONS[..], &OWN[..]].concat())?;
        if spec.schema.is_some() {
            let reason =
                "it has columns of its own, `data`, `subject`, `sequence` and `timestamp`; leave the schema out, and \
                          decode `data` in the query"
                    .into();
            return Err(SourceError::Schema { name: spec.name.clone(), reason });
        }
        let stream = options.require(owner, "stream")?.trim();
        if !is_filter(stream) || stream.contains(['.', ',', '*', '>', '/', '\\']) {
            return Err(Options::invalid(owner, "stream", stream, "write the name of one stream").into());
        }
        let start = starting::start(owner, options, if is_bounded { Start::Earliest } else { Start::Latest })?;
        if is_bounded && start == Start::Latest {
            let reason = "a batch query that begins at the end reads nothing; write earliest or a sequence number";
            return Err(Options::invalid(owner, starting::OPTIONS[0], "latest", reason).into());
        }
        let expected = "write a whole number greater than 0";
        let most = options.parse::<u64>(owner, "maxOffsetsPerTrigger", expected)?;
        if most == Some(0) {
            return Err(Options::invalid(owner, "maxOffsetsPerTrigger", "0", expected).into());
        }
        Ok(Self {
            address: NatsAddress::new(owner, options, &|name| std::env::var(name).ok())?,
            stream: stream.to_owned(),
            filters: filters(owner, options)?,
            start,
            most,
            fails_on_loss: options.flag(owner, "failOnDataLoss", true)?,
            has_headers: options.flag(owner, "includeHeaders", false)?,
        })
    }

    /// The columns.
    pub(super) fn schema(&self) -> SchemaRef {
        let mut fields = vec![
            Field::new("data", DataType::Binary, true),
            Field::new("subject", DataType::Utf8, true),
            Field::new("sequence", DataType::Int64, true),
            Field::new("timestamp", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        ];
        if self.has_headers {
            fields.push(headers_field());
        }
        Arc::new(Schema::new(fields))
    }
}

/// Option `subject`, without filters that others make needless.
fn filters(owner: &str, options: &Options) -> Result<Vec<String>, SourceError> {
    let Some(text) = options.get("subject") else { return Ok(Vec::new()) };
    let given: Vec<&str> = text.split(',').map(str::trim).collect();
    if !given.iter().all(|filter| is_filter(filter)) {
        let reason = "write subjects with commas between, in which `*` stands for a word and `>` for all that follow, as in \
                      `orders.*.eu, returns.>`";
        return Err(Options::invalid(owner, "subject", text, reason).into());
    }
    let is_needed = |(at, filter): &(usize, &&str)| {
        let mut others = given.iter().enumerate().filter(|(other, _)| other != at);
        // Of two that are the same the first stays.
        !others.any(|(other, wide)| matches(wide, filter) && (!matches(filter, wide) || other < *at))
    };
    Ok(given.iter().enumerate().filter(is_needed).map(|(_, filter)| (*filter).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(options: &[(&str, &str)], is_bounded: bool) -> Result<NatsConfig, SourceError> {
        let sound = Options::new().with("servers", "localhost:1").with("stream", "ORDERS");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        NatsConfig::new(&SourceSpec { name: "s".into(), format: "nats".into(), schema: None, options }, is_bounded)
    }

    #[test]
    fn what_the_user_leaves_out_has_a_meaning() {
        let stream = config(&[], false).unwrap();
        assert!(stream.fails_on_loss && !stream.has_headers && stream.most.is_none() && stream.filters.is_empty());
        assert_eq!((stream.start, config(&[], true).unwrap().start), (Start::Latest, Start::Earliest));
        let names = |config: &NatsConfig| config.schema().fields().iter().map(|field| field.name().clone()).collect();
        let with_headers: Vec<String> = names(&config(&[("includeHeaders", "true")], false).unwrap());
        assert_eq!(with_headers, ["data", "subject", "sequence", "timestamp", "headers"]);
    }

    #[test]
    fn filters_that_others_make_needless_are_left_out() {
        let of = |subject: &str| config(&[("subject", subject)], false).unwrap().filters;
        assert_eq!(of("a.b, a.*, c, c, d.>, d.e.f"), ["a.*", "c", "d.>"]);
        assert_eq!(of("a.*, *.b"), ["a.*", "*.b"]);
        assert_eq!(of(">, a"), [">"]);
    }

    #[test]
    fn values_that_mean_nothing_and_names_that_nobody_reads_are_refused() {
        for (name, value) in [
            ("stream", "A,B"),
            ("stream", "a.b"),
            ("stream", "*"),
            ("stream", ""),
            ("subject", "a..b"),
            ("subject", "a,"),
            ("maxOffsetsPerTrigger", "0"),
            ("maxOffsetsPerTrigger", "many"),
            ("failOnDataLoss", "perhaps"),
            ("includeHeaders", "some"),
            ("maxEntriesPerTrigger", "5"),
            ("startingOffsets", "first"),
        ] {
            let error = config(&[(name, value)], false).map(|config| config.stream).unwrap_err().to_string();
            assert!(error.contains(name), "{name} {value}: {error}");
        }
        let error = config(&[("startingOffsets", "latest")], true).unwrap_err().to_string();
        assert!(error.contains("reads nothing"), "{error}");
    }
}
