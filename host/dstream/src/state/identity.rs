//! By what a checkpoint knows an operation with state: its name, and what its bytes mean.

use crate::lock::locked;
use crate::{DStreamError, JobError, Refusal, Time};
use millstream_checkpoint::StatePin;
use millstream_common::{Digest, OperatorUid};
use std::sync::{Mutex, OnceLock};

/// Name, form and number of partitions of an operation with state.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The method, as the program calls it.
    pub(crate) operation: &'static str,
    /// The operation and its types, in words.
    schema: String,
    /// Whether it may live in memory alone.
    pub(crate) needs_checkpoint: bool,
    given: Mutex<Option<String>>,
    resolved: OnceLock<(OperatorUid, usize)>,
    partitions: Option<usize>,
}

impl Identity {
    /// Of an operation; with the number of partitions that the program wants, if it said one.
    pub(crate) fn new(
        operation: &'static str,
        schema: String,
        needs_checkpoint: bool,
        partitions: Option<usize>,
    ) -> Self {
        Self {
            operation,
            schema,
            needs_checkpoint,
            given: Mutex::default(),
            resolved: OnceLock::new(),
            partitions: partitions.map(|count| count.max(1)),
        }
    }

    /// The name that the program gave.
    pub(crate) fn given(&self) -> Option<String> {
        locked(&self.given).clone()
    }

    pub(crate) fn rename(&self, name: &str) -> Result<(), Refusal> {
        OperatorUid::new(name).map_err(|_| Refusal::Name { what: "an operation with state", name: name.to_owned() })?;
        *locked(&self.given) = Some(name.to_owned());
        Ok(())
    }

    /// Fixes name and number of partitions for the run.
    pub(crate) fn resolve(&self, uid: OperatorUid, logged: Option<u32>, parallelism: usize) {
        let partitions = logged.map_or_else(|| self.partitions.unwrap_or(parallelism), |count| count as usize);
        self.resolved.get_or_init(|| (uid, partitions.max(1)));
    }

    /// The name, once it is resolved.
    pub(crate) fn uid(&self) -> Option<&OperatorUid> {
        self.resolved.get().map(|(uid, _)| uid)
    }

    /// The number of partitions; one before it is resolved.
    pub(crate) fn partitions(&self) -> usize {
        self.resolved.get().map_or(1, |(_, partitions)| *partitions)
    }

    /// A digest of what its bytes mean.
    pub(crate) fn schema_id(&self) -> String {
        Digest::of(self.schema.as_bytes()).short()
    }

    /// What its bytes mean, in words.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// For the offset log.
    pub(crate) fn pin(&self) -> StatePin {
        StatePin {
            schema_id: self.schema_id(),
            schema_text: self.schema.clone(),
            partitions: u32::try_from(self.partitions()).unwrap_or(u32::MAX),
            families: serde_json::Value::Null,
        }
    }

    /// The failure of a function of the program in this operation.
    pub(crate) fn failed(&self, time: Time, source: JobError) -> DStreamError {
        let place = match self.uid() {
            Some(uid) => format!("`{}`, named `{uid}`", self.operation),
            None => format!("`{}`", self.operation),
        };
        DStreamError::Job { time, place, source }
    }
}
