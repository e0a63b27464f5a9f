//! What a batch has prepared, as the checkpoint keeps it: one token per partition.

use crate::SinkError;
use millstream_common::BatchId;
use serde::{Deserialize, Serialize};

/// Tokens of one batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prepared {
    /// The plugin's name in the query.
    pub(super) plugin: String,
    /// The sink's name in the plugin.
    pub(super) sink: String,
    /// The tokens; partitions whose rows were not wanted have none.
    pub(super) tokens: Vec<Token>,
}

/// What one partition prepared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Token {
    /// The partition.
    pub(super) partition: u32,
    /// The plugin's token, in hexadecimal digits.
    token: String,
}

impl Token {
    pub(super) fn new(partition: u32, token: &[u8]) -> Self {
        Self { partition, token: token.iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        let digits = self.token.as_bytes();
        let (pairs, rest) = digits.as_chunks::<2>();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = |[high, low]: &[u8; 2]| u8::try_from(16 * digit(*high)? + digit(*low)?).ok();
        if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
    }
}

impl Prepared {
    pub(super) fn read(batch: BatchId, value: &serde_json::Value) -> Result<Self, SinkError> {
        let read: Result<Self, _> = serde_json::from_value(value.clone());
        let wrong = |reason: String| SinkError::Corrupt {
            sink: super::FORMAT.into(),
            place: format!("what batch {batch} prepared"),
            reason,
        };
        let prepared = read.map_err(|error| wrong(error.to_string()))?;
        match prepared.tokens.iter().find(|token| token.bytes().is_none()) {
            Some(token) => Err(wrong(format!("the token of partition {} is no hexadecimal number", token.partition))),
            None => Ok(prepared),
        }
    }

    pub(super) fn write(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("names, numbers and lists of them always have a JSON form")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_were() {
        let tokens = vec![Token::new(0, &[0, 255, 16]), Token::new(3, &[])];
        let prepared = Prepared { plugin: "p".into(), sink: "s".into(), tokens };
        let again = Prepared::read(BatchId(1), &prepared.write()).unwrap();
        assert_eq!(again, prepared);
        assert_eq!(again.tokens[0].bytes(), Some(vec![0, 255, 16]));
        for wrong in ["0", "0x", "zz", "é"] {
            let value = serde_json::json!({"plugin": "p", "sink": "s", "tokens": [{"partition": 0, "token": wrong}]});
            assert!(matches!(Prepared::read(BatchId(1), &value), Err(SinkError::Corrupt { .. })), "{wrong}");
        }
        assert!(Prepared::read(BatchId(1), &serde_json::json!({"files": []})).is_err());
    }
}
