//! What a stream is like now.

use super::id::EntryId;
use super::offset::Position;
use millstream_client::redis::{Connection, RedisError, Value};

/// A stream as the server describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamState {
    /// How many entries there are.
    pub(super) length: u64,
    /// The first of them.
    pub(super) first: Option<EntryId>,
    /// The greatest id that was ever given.
    pub(super) last: EntryId,
    /// How many entries were ever added; servers before 7.0 do not count.
    pub(super) added: Option<u64>,
}

impl StreamState {
    /// Its end.
    pub(super) fn end(&self, life: u64) -> Position {
        Position { id: self.last, added: self.added, life }
    }

    /// How many entries were added and are no longer there.
    pub(super) fn removed(&self) -> Option<u64> {
        Some(self.added?.saturating_sub(self.length))
    }
}

/// Asks for the state of a stream; `None` when there is none.
pub(super) fn look(connection: &mut Connection, stream: &str) -> Result<Option<StreamState>, RedisError> {
    let answer = match connection.ask(&[b"XINFO", b"STREAM", stream.as_bytes()]) {
        Err(RedisError::Refused { message, .. }) if message.contains("no such key") => return Ok(None),
        answer => answer?,
    };
    state(&answer).map(Some).ok_or_else(|| connection.strange("what it tells about a stream is not understood"))
}

/// The state in an answer: names and values in turn.
fn state(answer: &Value) -> Option<StreamState> {
    let Value::Array(parts) = answer else { return None };
    let value = |name: &str| {
        let mut pairs = parts.chunks_exact(2);
        pairs.find(|pair| text(&pair[0]) == Some(name)).map(|pair| &pair[1])
    };
    let count = |name: &str| match value(name) {
        Some(Value::Int(number)) => u64::try_from(*number).ok(),
        _ => None,
    };
    let first = match value("first-entry")? {
        Value::Array(entry) => Some(text(entry.first()?)?.parse().ok()?),
        _ => None,
    };
    let last = text(value("last-generated-id")?)?.parse().ok()?;
    Some(StreamState { length: count("length")?, first, last, added: count("entries-added") })
}

/// A text in an answer.
pub(super) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn a_state_is_read_with_and_without_counts() {
        let entry = Value::Array(vec![bulk("5-0"), Value::Array(vec![bulk("a"), bulk("1")])]);
        let mut parts =
            vec![bulk("length"), Value::Int(2), bulk("last-generated-id"), bulk("9-1"), bulk("first-entry"), entry];
        let id = |text: &str| text.parse::<EntryId>().unwrap();
        let old = StreamState { length: 2, first: Some(id("5-0")), last: id("9-1"), added: None };
        assert_eq!(state(&Value::Array(parts.clone())), Some(old));
        assert_eq!(old.removed(), None);
        parts.extend([bulk("entries-added"), Value::Int(7)]);
        let new = state(&Value::Array(parts.clone())).unwrap();
        assert_eq!((new.added, new.removed()), (Some(7), Some(5)));
        parts[5] = Value::Nil;
        assert_eq!(state(&Value::Array(parts)).unwrap().first, None);
    }

    #[test]
    fn what_is_no_state_is_none() {
        for answer in [Value::Nil, Value::Array(vec![]), Value::Array(vec![bulk("length"), Value::Int(-1)])] {
            assert_eq!(state(&answer), None);
        }
    }
}
