//! What rows may be, and how they become bytes.
//!
//! Rows of stateless operations only have to be copied between threads; keys are hashed; what outlives a batch, which is
//! state and the rows of windows, goes through serde into postcard.
//!
//! The bytes of a key are also its order and its partition, so both are the same in every run.

use crate::DStreamError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::hash::Hash;

/// Rows.
pub trait Data: Clone + Send + Sync + 'static {}
impl<T: Clone + Send + Sync + 'static> Data for T {}

/// Keys of operations within a batch.
pub trait Key: Data + Hash + Eq {}
impl<T: Data + Hash + Eq> Key for T {}

/// Rows, keys and states that outlive their batch.
pub trait Item: Data + Serialize + DeserializeOwned {}
impl<T: Data + Serialize + DeserializeOwned> Item for T {}

/// The bytes of a value. `what` names it when it has none.
pub(crate) fn encode<T: Serialize>(what: &str, value: &T) -> Result<Vec<u8>, DStreamError> {
    postcard::to_allocvec(value)
        .map_err(|error| DStreamError::Encode { what: what.to_owned(), reason: error.to_string() })
}

/// The value of bytes.
pub(crate) fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, DStreamError> {
    let decoded = postcard::take_from_bytes(bytes);
    match decoded {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => {
            Err(DStreamError::Decode { what: what.to_owned(), reason: format!("{} bytes are left over", rest.len()) })
        }
        Err(error) => Err(DStreamError::Decode { what: what.to_owned(), reason: error.to_string() }),
    }
}

/// The partition of a key's bytes: FNV-1a of 64 bits, mixed, spread over `partitions`.
pub(crate) fn partition_of(key: &[u8], partitions: usize) -> usize {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in key {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    ((u128::from(hash) * partitions as u128) >> 64) as usize
}

/// The name of a type without the paths of its parts, so that moving a type to another module changes nothing.
pub(crate) fn type_name<T>() -> String {
    let mut name = String::new();
    let mut word = String::new();
    for c in std::any::type_name::<T>().chars() {
        match c {
            c if c.is_alphanumeric() || c == '_' => word.push(c),
            ':' => word.clear(),
            other => {
                name.push_str(&word);
                word.clear();
                name.push(other);
            }
        }
    }
    name + &word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_have_no_paths() {
        assert_eq!(type_name::<(String, Vec<Option<i64>>)>(), "(String, Vec<Option<i64>>)");
    }

    #[test]
    fn what_is_left_over_is_an_error() {
        let mut bytes = encode("a number", &7_u32).unwrap();
        assert_eq!(decode::<u32>("a number", &bytes).unwrap(), 7);
        bytes.push(0);
        assert!(decode::<u32>("a number", &bytes).is_err());
        assert!(decode::<String>("a text", &[9, 1]).is_err());
    }

    #[test]
    fn every_key_has_a_partition() {
        let parts: std::collections::BTreeSet<usize> =
            (0..100_u32).map(|n| partition_of(&n.to_le_bytes(), 4)).collect();
        assert_eq!(parts.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
