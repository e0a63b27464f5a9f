//! What the state of a query is made of, operator by operator: part of every entry of the offset log.
//!
//! It is the same for a whole run, and the largest part of an entry by far. So it is shared by the entries of a run, and
//! its text is made once.
//!
//! Rule of its life: it never changes. An entry has all of it, so that each batch can be read by itself.
//!
//! It does not look into families: they are JSON that only the operators read.

use crate::{StatePin, json_lines};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The schemas of all operators of a query, by uid. A clone shares them.
#[derive(Debug, Clone, Default)]
pub struct StateSchemas(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    pins: BTreeMap<String, StatePin>,
    text: OnceLock<Vec<u8>>,
}

impl StateSchemas {
    /// The JSON, as the value of a field of a document.
    pub(crate) fn json(&self) -> Result<&[u8], serde_json::Error> {
        if let Some(text) = self.0.text.get() {
            return Ok(text);
        }
        let text = json_lines::to_vec(&self.0.pins, 1)?;
        Ok(self.0.text.get_or_init(|| text))
    }
}

impl From<BTreeMap<String, StatePin>> for StateSchemas {
    fn from(pins: BTreeMap<String, StatePin>) -> Self {
        Self(Arc::new(Inner { pins, text: OnceLock::new() }))
    }
}

impl Deref for StateSchemas {
    type Target = BTreeMap<String, StatePin>;
    fn deref(&self) -> &Self::Target {
        &self.0.pins
    }
}

impl PartialEq for StateSchemas {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.pins == other.0.pins
    }
}

impl Eq for StateSchemas {}

impl Serialize for StateSchemas {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.pins.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StateSchemas {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}
