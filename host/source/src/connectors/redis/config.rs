//! The options of the source.

use super::starting::{self, Start};
use crate::{SourceError, SourceSpec};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use millstream_client::redis::{REDIS_OPTIONS, RedisAddress};
use millstream_common::Options;
use std::collections::BTreeMap;
use std::sync::Arc;

const OWN: [&str; 5] = ["stream", starting::OPTION, "maxEntriesPerTrigger", "failOnDataLoss", "fieldValues"];

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct RedisConfig {
    pub(super) address: RedisAddress,
    pub(super) streams: Vec<String>,
    /// Where a new query begins.
    pub(super) starts: BTreeMap<String, Start>,
    pub(super) most_entries: Option<u64>,
    pub(super) fails_on_loss: bool,
    /// Whether the values of fields are bytes; text otherwise.
    pub(super) has_binary_values: bool,
}

impl RedisConfig {
    /// Checks the options; connects to nothing.
    pub(super) fn new(spec: &SourceSpec, is_bounded: bool) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let (owner, options) = (owner.as_str(), &spec.options);
        options.only(owner, &[&REDIS_OPTIONS[..], &OWN[..]].concat())?;
        if spec.schema.is_some() {
            let reason =
                "it has columns of its own, `stream`, `id`, `timestamp` and `fields`; leave the schema out, and \
                          take `fields['name']` apart in the query"
                    .into();
            return Err(SourceError::Schema { name: spec.name.clone(), reason });
        }
        let streams = streams(owner, options)?;
        let default = if is_bounded { Start::Earliest } else { Start::Latest };
        let starts = starting::starts(owner, options, &streams, default)?;
        if is_bounded && starts.values().any(|start| *start == Start::Latest) {
            let reason = "a batch query that begins at the end reads nothing; write earliest or ids";
            let text = options.get(starting::OPTION).unwrap_or_default();
            return Err(Options::invalid(owner, starting::OPTION, text, reason).into());
        }
        let expected = "write a whole number greater than 0";
        let most_entries = options.parse::<u64>(owner, "maxEntriesPerTrigger", expected)?;
        if most_entries == Some(0) {
            return Err(Options::invalid(owner, "maxEntriesPerTrigger", "0", expected).into());
        }
        let has_binary_values = match options.get("fieldValues").map(str::to_ascii_lowercase).as_deref() {
            None | Some("string") => false,
            Some("binary") => true,
            Some(other) => return Err(Options::invalid(owner, "fieldValues", other, "write string or binary").into()),
        };
        Ok(Self {
            address: RedisAddress::new(owner, options, &|name| std::env::var(name).ok())?,
            streams,
            starts,
            most_entries,
            fails_on_loss: options.flag(owner, "failOnDataLoss", true)?,
            has_binary_values,
        })
    }

    /// The columns.
    pub(super) fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("stream", DataType::Utf8, true),
            Field::new("id", DataType::Utf8, true),
            Field::new("timestamp", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
            Field::new("fields", fields_type(self.has_binary_values), true),
        ]))
    }
}

/// The type of the fields of an entry.
pub(super) fn fields_type(has_binary_values: bool) -> DataType {
    let value = if has_binary_values { DataType::Binary } else { DataType::Utf8 };
    let entry = Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", value, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry), false)), false)
}

/// Option `stream`.
fn streams(owner: &str, options: &Options) -> Result<Vec<String>, SourceError> {
    let text = options.require(owner, "stream")?;
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    let is_twice = |(at, name): (usize, &String)| names[..at].contains(name);
    if names.iter().any(String::is_empty) || names.iter().enumerate().any(is_twice) {
        let reason = "write keys of streams, each once, as in `clicks` or `clicks, orders`";
        return Err(Options::invalid(owner, "stream", text, reason).into());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(options: &[(&str, &str)], is_bounded: bool) -> Result<RedisConfig, SourceError> {
        let sound = Options::new().with("url", "redis://localhost:1").with("stream", "clicks");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        RedisConfig::new(&SourceSpec { name: "s".into(), format: "redis".into(), schema: None, options }, is_bounded)
    }

    #[test]
    fn what_the_user_leaves_out_has_a_meaning() {
        let stream = config(&[], false).unwrap();
        assert!(stream.fails_on_loss && !stream.has_binary_values && stream.most_entries.is_none());
        assert_eq!(stream.starts["clicks"], Start::Latest);
        assert_eq!(config(&[], true).unwrap().starts["clicks"], Start::Earliest);
        let several = config(&[("stream", " clicks,orders ")], false).unwrap();
        assert_eq!(several.streams, ["clicks", "orders"]);
        let names: Vec<_> = stream.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["stream", "id", "timestamp", "fields"]);
    }

    #[test]
    fn values_that_mean_nothing_and_names_that_nobody_reads_are_refused() {
        for (name, value) in [
            ("stream", "a,,b"),
            ("stream", "a, a"),
            ("stream", ""),
            ("maxEntriesPerTrigger", "0"),
            ("maxEntriesPerTrigger", "many"),
            ("failOnDataLoss", "perhaps"),
            ("fieldValues", "json"),
            ("maxOffsetsPerTrigger", "5"),
            ("startingOffsets", "first"),
        ] {
            let error = config(&[(name, value)], false).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        let error = config(&[("startingOffsets", "latest")], true).unwrap_err().to_string();
        assert!(error.contains("reads nothing"), "{error}");
    }
}
