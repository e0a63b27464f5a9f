//! The book: what a query has written into a stream, and which run of it may write. It is an entry of a bucket of NATS' key and
//! value store, which a run changes only when nobody else has changed it since.

use super::FORMAT;
use super::sink::Failure;
use crate::SinkError;
use bytes::Bytes;
use millstream_client::nats::{Connection, NatsError};
use millstream_common::{BatchId, QueryId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// For how long the bucket knows the ids of messages; none are given there.
const WINDOW: Duration = Duration::from_secs(120);

/// Where a query keeps account of what it writes into a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Book {
    bucket: String,
    /// The subject of the entry.
    subject: String,
}

/// What it says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The number of the run that may write.
    pub(super) run: u64,
    /// The newest batch that the stream has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) done: Option<u64>,
    /// The batch that goes out, or went out last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) begun: Option<Begun>,
}

/// A batch that goes out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) batch: u64,
    /// Its messages are behind this one of the stream,
    pub(super) after: u64,
    /// which was made then.
    pub(super) created: String,
    /// The server that it goes to, in its present life.
    pub(super) server: String,
    /// When it began, in milliseconds since 1970.
    pub(super) at: i64,
}

impl Entry {
    pub(super) fn newest(&self) -> Option<BatchId> {
        self.done.map(BatchId)
    }
}

impl Book {
    pub(super) fn new(bucket: &str, query: QueryId, stream: &str) -> Self {
        Self { bucket: format!("KV_{bucket}"), subject: format!("$KV.{bucket}.{query}.{stream}") }
    }

    /// What it says, with the number of the message that says it; `None` when there is none.
    pub(super) fn read(&self, connection: &Connection) -> Result<Option<(u64, Entry)>, Failure> {
        let found = match connection.last_of_subject(&self.bucket, &self.subject) {
            Err(NatsError::NoStream { .. }) => return Ok(None),
            found => found?,
        };
        let Some((revision, data)) = found else { return Ok(None) };
        let entry = serde_json::from_slice(&data).map_err(|error| SinkError::Corrupt {
            sink: FORMAT.to_owned(),
            place: format!("{} {}", connection.place(), self.subject),
            reason: error.to_string(),
        })?;
        Ok(Some((revision, entry)))
    }

    /// Writes an entry unless another message than `revision` says what the book says, 0 for none. Answers the number of the new
    /// one, or `None` when somebody else has written.
    pub(super) fn write(
        &self,
        connection: &Connection,
        revision: u64,
        entry: &Entry,
    ) -> Result<Option<u64>, NatsError> {
        let data = json!(entry).to_string();
        match connection.put_behind(&self.subject, revision, Bytes::from(data)) {
            // The bucket is gone.
            Err(NatsError::NotTaken { .. }) if revision > 0 => Ok(None),
            written => written,
        }
    }

    /// Makes the bucket, kept by so many servers, if it is not there.
    pub(super) fn make(&self, connection: &Connection, replicas: u64) -> Result<(), NatsError> {
        if connection.stream(&self.bucket, false)?.is_some() {
            return Ok(());
        }
        let made = connection.make_stream(&self.bucket, &self.config(replicas));
        // Somebody else may have made it meanwhile.
        if made.is_err() && connection.stream(&self.bucket, false)?.is_some() {
            return Ok(());
        }
        made
    }

    /// A bucket as NATS' own clients make it.
    fn config(&self, replicas: u64) -> Value {
        let bucket = self.bucket.trim_start_matches("KV_");
        json!({
            "name": self.bucket,
            "description": "which batches queries of Millstream have written",
            "subjects": [format!("$KV.{bucket}.>")],
            "retention": "limits",
            "storage": "file",
            "discard": "new",
            "max_msgs_per_subject": 1,
            "max_consumers": -1,
            "max_msgs": -1,
            "max_bytes": -1,
            "max_age": 0,
            "max_msg_size": -1,
            "duplicate_window": WINDOW.as_nanos() as u64,
            "num_replicas": replicas,
            "allow_rollup_hdrs": true,
            "deny_delete": true,
            "allow_direct": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn an_entry_is_of_a_query_and_a_stream_and_is_read_back() {
        let book = Book::new("batches", QueryId(Uuid::nil()), "ORDERS");
        assert_eq!(book.subject, "$KV.batches.00000000-0000-0000-0000-000000000000.ORDERS");
        assert_eq!(book.config(3)["subjects"], json!(["$KV.batches.>"]));
        let begun = Begun { batch: 8, after: 17, created: "then".into(), server: "N".into(), at: 5 };
        for entry in [Entry::default(), Entry { run: 3, done: Some(7), begun: Some(begun) }] {
            let text = json!(entry).to_string();
            assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
        }
        assert_eq!(json!(Entry::default()), json!({"run": 0}));
    }
}
