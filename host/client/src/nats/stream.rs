//! What a stream is like, and single messages of it.

use super::{Connection, NatsError};
use async_nats::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// When a stream lets messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// When its limits say so.
    Limits,
    /// When those who consume it have acknowledged them.
    Acknowledged,
}

/// A stream as the server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamState {
    /// When it was made, as the server writes it: what tells it from another stream of its name.
    pub created: String,
    /// The sequence number of its first message; where it has none, the one that the next message gets.
    pub first: u64,
    /// The greatest sequence number that was ever given; 0 for none.
    pub last: u64,
    /// How many messages between the first and the last are no longer there.
    pub removed_between: u64,
    /// Which these are, in order, where it was asked for them.
    pub removed: Vec<u64>,
    /// The subjects of messages that it takes, as filters.
    pub subjects: Vec<String>,
    /// When it lets messages go.
    pub retention: Retention,
    /// For how long it knows the ids of messages.
    pub duplicate_window: Duration,
    /// How many servers keep it.
    pub replicas: u64,
    /// The most bytes that a message may have; `None` for no limit of its own.
    pub most_bytes: Option<u64>,
    /// Why nothing can be published to it, if that is so.
    pub takes_nothing: Option<&'static str>,
}

#[derive(Deserialize)]
struct Told {
    created: String,
    config: ToldConfig,
    state: ToldState,
}

#[derive(Deserialize)]
struct ToldConfig {
    #[serde(default)]
    subjects: Vec<String>,
    #[serde(default)]
    retention: String,
    /// Nanoseconds.
    #[serde(default)]
    duplicate_window: u64,
    #[serde(default)]
    num_replicas: u64,
    #[serde(default)]
    max_msg_size: i64,
    #[serde(default)]
    sealed: bool,
    #[serde(default)]
    no_ack: bool,
    mirror: Option<Value>,
}

#[derive(Deserialize)]
struct ToldState {
    first_seq: u64,
    last_seq: u64,
    #[serde(default)]
    num_deleted: u64,
    deleted: Option<Vec<u64>>,
}

impl From<Told> for StreamState {
    fn from(told: Told) -> Self {
        let Told { created, config, state } = told;
        let takes_nothing = match &config {
            ToldConfig { sealed: true, .. } => Some("it is sealed"),
            ToldConfig { mirror: Some(_), .. } => Some("it is a mirror of another stream"),
            ToldConfig { no_ack: true, .. } => Some("it does not acknowledge what it takes (`no_ack`)"),
            _ => None,
        };
        let mut removed = state.deleted.unwrap_or_default();
        removed.sort_unstable();
        Self {
            created,
            first: state.first_seq.max(1),
            last: state.last_seq,
            removed_between: state.num_deleted,
            removed,
            subjects: config.subjects,
            retention: if config.retention == "limits" { Retention::Limits } else { Retention::Acknowledged },
            duplicate_window: Duration::from_nanos(config.duplicate_window),
            replicas: config.num_replicas.max(1),
            most_bytes: u64::try_from(config.max_msg_size).ok().filter(|most| *most > 0),
            takes_nothing,
        }
    }
}

#[derive(Deserialize)]
struct Found {
    message: FoundMessage,
}

#[derive(Deserialize)]
struct FoundMessage {
    seq: u64,
    data: Option<String>,
}

impl Connection {
    /// What a stream is like now; `None` when there is none. `with_removed`: with the numbers of all messages between the
    /// first and the last that are no longer there.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn stream(&self, stream: &str, with_removed: bool) -> Result<Option<StreamState>, NatsError> {
        let question = if with_removed { json!({ "deleted_details": true }) } else { Value::Null };
        match self.ask::<Told>(&format!("STREAM.INFO.{stream}"), &question)? {
            Ok(told) => Ok(Some(told.into())),
            Err(error) if error.is_no_stream() => Ok(None),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Makes a stream as its configuration says; nothing is done when there is one like it.
    ///
    /// # Errors
    /// What the server or the network says, also when there is another one of that name.
    pub fn make_stream(&self, stream: &str, config: &Value) -> Result<(), NatsError> {
        let answer = self.ask::<Value>(&format!("STREAM.CREATE.{stream}"), config)?;
        answer.map(drop).map_err(|error| self.refused(error))
    }

    /// The number of the first message behind `after` whose subject a filter takes; `None` when there is none.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn next_match(&self, stream: &str, after: u64, filter: &str) -> Result<Option<u64>, NatsError> {
        let question = json!({ "seq": after.saturating_add(1), "next_by_subj": filter });
        Ok(self.message(stream, &question)?.map(|found| found.seq))
    }

    /// Number and content of the newest message of a subject; `None` when there is none.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn last_of_subject(&self, stream: &str, subject: &str) -> Result<Option<(u64, Vec<u8>)>, NatsError> {
        let Some(found) = self.message(stream, &json!({ "last_by_subj": subject }))? else { return Ok(None) };
        let data = STANDARD.decode(found.data.unwrap_or_default());
        let data =
            data.map_err(|error| self.strange(format!("the content of a message is not understood: {error}")))?;
        Ok(Some((found.seq, data)))
    }

    fn message(&self, stream: &str, question: &Value) -> Result<Option<FoundMessage>, NatsError> {
        match self.ask::<Found>(&format!("STREAM.MSG.GET.{stream}"), question)? {
            Ok(found) => Ok(Some(found.message)),
            Err(error) if error.is_no_message() => Ok(None),
            Err(error) if error.is_no_stream() => {
                Err(NatsError::NoStream { place: self.place().to_owned(), stream: stream.to_owned() })
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Writes a message of a subject unless another one than `last` is the newest of it, 0 for none; answers its number, or
    /// `None` when there is another one.
    ///
    /// # Errors
    /// What the server or the network says. Then nobody knows whether it was written.
    pub fn put_behind(&self, subject: &str, last: u64, data: Bytes) -> Result<Option<u64>, NatsError> {
        #[derive(Deserialize)]
        struct Ack {
            seq: u64,
        }
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", last.to_string());
        let Some(answer) = self.request(subject.to_owned(), headers, data)? else {
            return Err(NatsError::NotTaken { place: self.place().to_owned(), subject: subject.to_owned() });
        };
        match self.answered::<Ack>(&answer.payload)? {
            Ok(ack) => Ok(Some(ack.seq)),
            Err(error) if error.is_wrong_sequence() => Ok(None),
            Err(error) => Err(self.refused(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(told: Value) -> StreamState {
        serde_json::from_value::<Told>(told).unwrap().into()
    }

    #[test]
    fn a_state_is_read_from_what_servers_tell() {
        let told = json!({
            "created": "2026-11-30T15:17:33.074315516Z",
            "config": {"name": "S", "subjects": ["a.>"], "retention": "limits", "duplicate_window": 120_000_000_000_u64,
                "num_replicas": 3, "max_msg_size": -1, "sealed": false},
            "state": {"messages": 6, "first_seq": 3, "last_seq": 10, "num_deleted": 2, "deleted": [7, 4]},
        });
        let found = state(told.clone());
        assert_eq!((found.first, found.last, found.removed_between, found.removed), (3, 10, 2, vec![4, 7]));
        assert_eq!((found.retention, found.duplicate_window.as_secs(), found.replicas), (Retention::Limits, 120, 3));
        assert_eq!((found.most_bytes, found.takes_nothing), (None, None));
        let mut other = told;
        other["config"]["retention"] = "workqueue".into();
        other["config"]["max_msg_size"] = 1000.into();
        other["config"]["mirror"] = json!({"name": "O"});
        other["state"] = json!({"messages": 0, "first_seq": 0, "last_seq": 0});
        let found = state(other);
        assert_eq!((found.first, found.last, found.retention), (1, 0, Retention::Acknowledged));
        assert_eq!(found.most_bytes, Some(1000));
        assert!(found.takes_nothing.unwrap().contains("mirror"));
    }
}
