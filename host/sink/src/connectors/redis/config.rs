//! The options of the sink.

use super::FORMAT;
use crate::connectors::database::has_counterpart;
use crate::{SinkError, SinkSpec};
use arrow::datatypes::Schema;
use millstream_client::redis::{REDIS_OPTIONS, RedisAddress};
use millstream_client::server_options::retry_timeout;
use millstream_common::{Options, OutputMode};
use std::time::Duration;

const OWN: [&str; 6] = ["stream", "maxLength", "key", "keyPrefix", "valueType", "retryTimeout"];

/// How long a stream may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MaxLength {
    pub(super) entries: u64,
    /// Whether the server may keep a few more, which is much less work.
    pub(super) is_about: bool,
}

/// What a row becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// An entry of a stream.
    Stream {
        /// Its key.
        key: String,
        max_length: Option<MaxLength>,
    },
    /// A key of its own.
    Keys {
        /// What keys begin with.
        prefix: String,
        /// The columns behind that.
        columns: Vec<String>,
        /// Whether the value is a string, of the one column that is no key; a hash of all columns otherwise.
        is_string: bool,
    },
}

impl Target {
    /// The stream, or what keys begin with.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Stream { key, .. } => key,
            Self::Keys { prefix, .. } => prefix,
        }
    }

    /// What stands in braces in all keys that are written together, so that a cluster has them in one place.
    pub(super) fn tag(&self) -> &str {
        hash_tag(self.name()).unwrap_or(self.name())
    }

    /// Whether all keys are in one slot of a cluster.
    pub(super) fn is_in_one_slot(&self) -> bool {
        match self {
            Self::Stream { .. } => true,
            Self::Keys { prefix, .. } => hash_tag(prefix).is_some(),
        }
    }

    pub(super) fn supports(&self, mode: OutputMode) -> bool {
        matches!(self, Self::Keys { .. }) || mode != OutputMode::Complete
    }
}

/// What of a key decides about its slot, if it is not the whole key.
fn hash_tag(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('{')?;
    rest.split_once('}').map(|(tag, _)| tag).filter(|tag| !tag.is_empty())
}

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct RedisConfig {
    pub(super) address: RedisAddress,
    pub(super) target: Target,
    /// For how long a batch is tried again when the server is away.
    pub(super) retry: Duration,
}

impl RedisConfig {
    pub(super) fn new(spec: &SinkSpec) -> Result<Self, SinkError> {
        let options = &spec.options;
        let owner = format!("sink `{FORMAT}`");
        let owner = owner.as_str();
        options.only(owner, &[&REDIS_OPTIONS[..], &OWN[..]].concat())?;
        let retry = retry_timeout(owner, options)?;
        let address = RedisAddress::new(owner, options, &|name| std::env::var(name).ok())?;
        Ok(Self { address, target: target(owner, options)?, retry })
    }

    /// Whether rows of these columns can be written.
    pub(super) fn check_columns(&self, schema: &Schema) -> Result<(), SinkError> {
        check(&self.target, schema).map_err(|reason| SinkError::Schema { sink: FORMAT.to_owned(), reason })
    }

    /// Server and keys, as a person would name them.
    pub(super) fn place(&self) -> String {
        let place = self.address.place();
        match &self.target {
            Target::Stream { key, .. } => format!("{place} stream {key}"),
            Target::Keys { prefix, .. } => format!("{place} keys {prefix}*"),
        }
    }
}

fn target(owner: &str, options: &Options) -> Result<Target, SinkError> {
    let unfit = |name: &str, with: &str| match options.get(name) {
        Some(value) => {
            Err(SinkError::from(Options::invalid(owner, name, value, &format!("it means nothing with `{with}`"))))
        }
        None => Ok(()),
    };
    match (options.get("stream"), options.get("key")) {
        (Some(key), None) => {
            if key.is_empty() {
                return Err(Options::invalid(owner, "stream", key, "write the key of a stream").into());
            }
            unfit("keyPrefix", "stream")?;
            unfit("valueType", "stream")?;
            Ok(Target::Stream { key: key.to_owned(), max_length: max_length(owner, options)? })
        }
        (None, Some(text)) => {
            unfit("maxLength", "key")?;
            let columns: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
            let is_twice = |(at, name): (usize, &String)| columns[..at].contains(name);
            if columns.iter().any(String::is_empty) || columns.iter().enumerate().any(is_twice) {
                return Err(Options::invalid(owner, "key", text, "write names of columns, as in `a, b`").into());
            }
            let prefix = options.require(owner, "keyPrefix")?.to_owned();
            if prefix.is_empty() {
                let reason = "write what the keys of this query begin with, as in `counts:`";
                return Err(Options::invalid(owner, "keyPrefix", "", reason).into());
            }
            let is_string = match options.get("valueType").map(str::to_ascii_lowercase).as_deref() {
                None | Some("hash") => false,
                Some("string") => true,
                Some(other) => return Err(Options::invalid(owner, "valueType", other, "write hash or string").into()),
            };
            Ok(Target::Keys { prefix, columns, is_string })
        }
        (Some(key), Some(_)) => {
            let reason = "`key` is set too; a row is an entry of a stream or a key of its own";
            Err(Options::invalid(owner, "stream", key, reason).into())
        }
        (None, None) => {
            let option = "stream` or `key".to_owned();
            Err(millstream_common::OptionError::Missing { owner: owner.to_owned(), option }.into())
        }
    }
}

/// Option `maxLength`: a number, or `~` and a number.
fn max_length(owner: &str, options: &Options) -> Result<Option<MaxLength>, SinkError> {
    let Some(text) = options.get("maxLength") else { return Ok(None) };
    let (is_about, number) = match text.trim().strip_prefix('~') {
        Some(number) => (true, number.trim()),
        None => (false, text.trim()),
    };
    match number.parse() {
        Ok(entries) if entries > 0 => Ok(Some(MaxLength { entries, is_about })),
        _ => {
            let reason = "write a number of entries greater than 0, with a `~` in front when a few more may stay";
            Err(Options::invalid(owner, "maxLength", text, reason).into())
        }
    }
}

fn check(target: &Target, schema: &Schema) -> Result<(), String> {
    if schema.fields().is_empty() {
        return Err("there are none; select at least one".into());
    }
    for (at, field) in schema.fields().iter().enumerate() {
        let (name, data_type) = (field.name(), field.data_type());
        if !has_counterpart(data_type) {
            return Err(format!(
                "column `{name}` of type {data_type} has no counterpart there; cast it, for example to a string"
            ));
        }
        if schema.fields()[..at].iter().any(|earlier| earlier.name() == name) {
            return Err(format!("there are two columns `{name}`; give one another name"));
        }
    }
    let Target::Keys { columns, is_string, .. } = target else { return Ok(()) };
    for name in columns {
        let field = schema.field_with_name(name).map_err(|_| {
            let there: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            format!("option `key` names column `{name}`, and there are {}", there.join(", "))
        })?;
        if field.data_type().is_nested() {
            return Err(format!("option `key` names column `{name}` of type {}, which is no key", field.data_type()));
        }
    }
    let others = schema.fields().len() - columns.len();
    if *is_string && others != 1 {
        return Err(format!(
            "with valueType string there is one column beside the key, and there are {others}; select one, or let valueType be \
             hash"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, IntervalUnit};

    fn config(options: &[(&str, &str)]) -> Result<RedisConfig, String> {
        let sound = Options::new().with("url", "redis://cache");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        RedisConfig::new(&SinkSpec { format: FORMAT.into(), options }).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_become_entries_or_keys() {
        let stream = config(&[("stream", "out"), ("maxLength", "~ 1000")]).unwrap();
        let max_length = Some(MaxLength { entries: 1000, is_about: true });
        assert_eq!(stream.target, Target::Stream { key: "out".into(), max_length });
        assert_eq!(stream.place(), "redis://cache:6379/0 stream out");
        let keys = config(&[("key", "a, b"), ("keyPrefix", "counts:")]).unwrap();
        let columns = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(keys.target, Target::Keys { prefix: "counts:".into(), columns, is_string: false });
        assert!(keys.target.supports(OutputMode::Complete) && !stream.target.supports(OutputMode::Complete));
    }

    #[test]
    fn options_that_do_not_fit_are_refused_with_the_way_out() {
        for (options, part) in [
            (&[][..], "`stream` or `key`"),
            (&[("stream", "s"), ("key", "a")], "`key` is set too"),
            (&[("stream", "s"), ("keyPrefix", "a")], "keyPrefix"),
            (&[("stream", "s"), ("maxLength", "0")], "maxLength"),
            (&[("stream", "s"), ("maxLength", "~")], "maxLength"),
            (&[("key", "a")], "keyPrefix"),
            (&[("key", "a,a"), ("keyPrefix", "p")], "names of columns"),
            (&[("key", "a"), ("keyPrefix", "p"), ("maxLength", "5")], "maxLength"),
            (&[("key", "a"), ("keyPrefix", "p"), ("valueType", "json")], "hash or string"),
            (&[("stream", "s"), ("table", "t")], "`table` is unknown"),
        ] {
            let error = config(options).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_hash_tag_holds_keys_together() {
        let target = |prefix: &str| Target::Keys { prefix: prefix.into(), columns: vec![], is_string: false };
        assert_eq!((target("a:").tag(), target("a:").is_in_one_slot()), ("a:", false));
        assert_eq!((target("x{a}:").tag(), target("x{a}:").is_in_one_slot()), ("a", true));
        assert_eq!((target("x{}:").tag(), target("x{}:").is_in_one_slot()), ("x{}:", false));
        let stream = Target::Stream { key: "clicks".into(), max_length: None };
        assert_eq!((stream.tag(), stream.is_in_one_slot()), ("clicks", true));
    }

    #[test]
    fn columns_that_cannot_be_written_are_named() {
        let schema = |fields: &[(&str, DataType)]| {
            Schema::new(fields.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect::<Vec<_>>())
        };
        let keys = |is_string| Target::Keys { prefix: "p".into(), columns: vec!["k".into()], is_string };
        let text = DataType::Utf8;
        let list = DataType::List(Field::new_list_field(DataType::Int32, true).into());
        for (target, schema, part) in [
            (keys(false), schema(&[]), "there are none"),
            (keys(false), schema(&[("a", text.clone())]), "column `k`, and there are a"),
            (keys(false), schema(&[("k", list)]), "no key"),
            (keys(true), schema(&[("k", text.clone())]), "there are 0"),
            (keys(false), schema(&[("k", text.clone()), ("k", text.clone())]), "two columns `k`"),
            (keys(false), schema(&[("k", DataType::Interval(IntervalUnit::YearMonth))]), "no counterpart"),
        ] {
            let error = check(&target, &schema).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(check(&keys(true), &schema(&[("k", text.clone()), ("v", text)])), Ok(()));
    }
}
