//! The options of the socket source.

use crate::{SourceError, SourceSpec};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_common::Options;
use std::sync::Arc;

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct SocketConfig {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) include_timestamp: bool,
    pub(super) buffer_bytes: usize,
}

/// How many bytes of lines wait at most, when the user did not say.
const BUFFER_BYTES: usize = 64 << 20;

impl SocketConfig {
    pub(super) fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let owner = owner.as_str();
        let options = &spec.options;
        options.only(owner, &["host", "port", "includeTimestamp", "bufferBytes"])?;
        if spec.schema.is_some() {
            let reason = "it has its own column `value`; leave the schema out".into();
            return Err(SourceError::Schema { name: spec.name.clone(), reason });
        }
        let host = options.require(owner, "host")?.to_owned();
        options.require(owner, "port")?;
        let expected = "write a port number from 1 to 65535";
        let port = options.parse::<u16>(owner, "port", expected)?.unwrap_or(0);
        if port == 0 {
            return Err(Options::invalid(owner, "port", "0", expected).into());
        }
        let expected = "write a number of bytes greater than 0";
        let buffer_bytes = options.parse(owner, "bufferBytes", expected)?.unwrap_or(BUFFER_BYTES);
        if buffer_bytes == 0 {
            return Err(Options::invalid(owner, "bufferBytes", "0", expected).into());
        }
        let include_timestamp = options.flag(owner, "includeTimestamp", false)?;
        Ok(Self { host, port, include_timestamp, buffer_bytes })
    }

    /// `value`, and when asked for the `timestamp` of arrival.
    pub(super) fn schema(&self) -> SchemaRef {
        let mut fields = vec![Field::new("value", DataType::Utf8, true)];
        if self.include_timestamp {
            let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
            fields.push(Field::new("timestamp", time, true));
        }
        Arc::new(Schema::new(fields))
    }

    pub(super) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}
