//! Which checkpoint is meant: by its own place, or by the query that has it.

use super::plan::check;
use crate::{QuerySpec, RuntimeError, Session};
use millstream_checkpoint::{Checkpoint, StatePin};
use std::collections::BTreeMap;

/// A checkpoint to look at.
#[derive(Debug, Clone)]
pub struct CheckpointPlace {
    /// The folder or URL.
    pub place: String,
    /// Options of its object store.
    pub options: Vec<(String, String)>,
    /// The query that it belongs to, when that was named: tells what state is made of where an entry of an older release
    /// does not.
    pub query: Option<QuerySpec>,
}

impl CheckpointPlace {
    /// The checkpoint of a query.
    ///
    /// # Errors
    /// When the query has none.
    pub fn of_query(query: QuerySpec) -> Result<Self, RuntimeError> {
        let Some(place) = query.checkpoint.clone() else {
            return Err(RuntimeError::Invalid {
                reason: "the query has no checkpoint".into(),
                hint: Some("set `checkpoint` in the query file".into()),
            });
        };
        Ok(Self { place, options: query.checkpoint_options.clone(), query: Some(query) })
    }

    /// Opens it.
    pub(crate) fn open(&self, session: &Session) -> Result<Checkpoint, RuntimeError> {
        Ok(Checkpoint::open(session.open_checkpoint(&self.place, &self.options)?)?)
    }

    /// The stateful operators of the query; none when no query was named.
    pub(crate) fn planned(&self, session: &Session) -> Result<BTreeMap<String, StatePin>, RuntimeError> {
        let Some(query) = &self.query else { return Ok(BTreeMap::new()) };
        let pin = |state: super::OperatorState| {
            let pin = StatePin {
                schema_id: state.schema_id,
                schema_text: state.schema,
                partitions: state.partitions,
                families: serde_json::to_value(state.families)
                    .expect("names, numbers and lists of them always have a JSON form"),
            };
            (state.uid, pin)
        };
        Ok(check(session, query)?.state.into_iter().map(pin).collect())
    }
}
