//! Offsets: the last sequence number that was read, and of which stream.
//!
//! ```text
//!   {"stream": "ORDERS", "sequence": 17, "created": "2026-11-30T15:17:33.074315516Z"}
//! ```
//!
//! `created` is when the stream was made, as the server tells it; it is left out as long as nothing of the stream was seen.

use serde_json::{Value, json};

/// How far a stream is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    /// The last sequence number that was read.
    pub(super) sequence: u64,
    /// When the stream was made; `None` when nothing of it was seen.
    pub(super) created: Option<String>,
}

impl Position {
    /// Before the first message of a stream that is not there yet.
    pub(super) fn unseen() -> Self {
        Self { sequence: 0, created: None }
    }

    /// In the stream that was made then.
    pub(super) fn of(created: &str, sequence: u64) -> Self {
        Self { sequence, created: Some(created.to_owned()) }
    }

    /// The JSON.
    pub(super) fn to_json(&self, stream: &str) -> Value {
        let mut value = json!({ "stream": stream, "sequence": self.sequence });
        if let Some(created) = &self.created {
            value["created"] = created.as_str().into();
        }
        value
    }

    /// The position in a JSON; `None` when it is none of this stream.
    pub(super) fn parse(stream: &str, value: &Value) -> Option<Self> {
        let fields = value.as_object()?;
        let is_known = |name: &String| matches!(name.as_str(), "stream" | "sequence" | "created");
        let created = match fields.get("created") {
            None => None,
            Some(created) => Some(created.as_str()?.to_owned()),
        };
        let found = Self { sequence: fields.get("sequence")?.as_u64()?, created };
        (fields.get("stream")?.as_str()? == stream && fields.keys().all(is_known)).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_written_and_read_back() {
        for position in [Position::unseen(), Position::of("2026-11-30T15:17:33Z", u64::MAX)] {
            assert_eq!(Position::parse("S", &position.to_json("S")), Some(position));
        }
        assert_eq!(Position::of("then", 7).to_json("S"), json!({"stream": "S", "sequence": 7, "created": "then"}));
    }

    #[test]
    fn what_is_no_position_of_the_stream_is_none() {
        for strange in [
            json!([1]),
            json!({"somebody": "else"}),
            json!({"stream": "O", "sequence": 1}),
            json!({"stream": "S", "sequence": -1}),
            json!({"stream": "S", "sequence": 1, "created": 7}),
            json!({"stream": "S", "sequence": 1, "more": 7}),
        ] {
            assert_eq!(Position::parse("S", &strange), None, "{strange}");
        }
    }
}
