//! The stores of one stateful operator, one per partition.
//!
//! ```text
//!   open ──► (read, change)* ──► prepare ──► commit
//!                  └──────── abort ◄──┘
//! ```
//!
//! Every stateful operator holds one of these; [`Stateful`](crate::Stateful) does the rest with it. It also counts keys:
//! the count moves at commit and stays at abort, whatever a store reports in the middle of a batch.
//! It knows nothing of what the bytes mean.

use crate::StateOpener;
use millstream_common::OperatorUid;
use millstream_state::{FamilyId, FamilySpec, StateError, StateManifest, StateStore};
use std::time::Instant;

/// One store and the family of the operator in it.
pub(crate) struct Partition {
    pub(crate) store: Box<dyn StateStore>,
    pub(crate) family: FamilyId,
}

/// What the stores weighed when the batch was prepared.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) keys: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) spilled_keys: u64,
    pub(crate) spilled_bytes: u64,
    pub(crate) commit_ms: u64,
}

/// The stores of one stateful operator.
pub struct Partitions {
    uid: OperatorUid,
    family: FamilySpec,
    count: u32,
    open: Vec<Partition>,
    keys: u64,
    /// Keys added (positive) or removed (negative) by the open batch.
    change: i64,
    totals: Totals,
}

impl Partitions {
    /// Stores still to be opened.
    pub(crate) fn new(uid: OperatorUid, count: u32, family: FamilySpec) -> Self {
        Self { uid, family, count: count.max(1), open: Vec::new(), keys: 0, change: 0, totals: Totals::default() }
    }

    pub(crate) fn uid(&self) -> &OperatorUid {
        &self.uid
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn schema_id(&self) -> &str {
        &self.family.schema_id
    }

    /// Opens every partition at its manifest; the stores that were open are dropped.
    pub(crate) fn open(&mut self, opener: &dyn StateOpener, manifests: &[StateManifest]) -> Result<(), StateError> {
        if manifests.len() != self.count as usize {
            return Err(StateError::Damaged {
                place: self.uid.to_string(),
                file: "manifests".to_owned(),
                reason: format!("the batch names {} partitions, the operator has {}", manifests.len(), self.count),
            });
        }
        self.open.clear();
        for (partition, manifest) in (0..self.count).zip(manifests) {
            let mut store = opener.open(&self.uid, partition, manifest)?;
            let family = store.family(&self.family)?;
            self.open.push(Partition { store, family });
        }
        self.keys = self.open.iter().map(|partition| partition.store.metrics().keys).sum();
        self.change = 0;
        Ok(())
    }

    /// The open partitions; all of them, or none before `open`.
    pub(crate) fn all(&mut self) -> &mut [Partition] {
        &mut self.open
    }

    /// The open partitions, to be looked at.
    pub(crate) fn open_partitions(&self) -> &[Partition] {
        &self.open
    }

    /// Takes the open partitions out; [`give_back`](Self::give_back) must follow.
    pub(crate) fn take_open(&mut self) -> Vec<Partition> {
        std::mem::take(&mut self.open)
    }

    /// Puts back what [`take_open`](Self::take_open) took.
    pub(crate) fn give_back(&mut self, open: Vec<Partition>) {
        self.open = open;
    }

    /// Takes note that the batch added or removed keys.
    pub(crate) fn count_change(&mut self, added: u64, removed: u64) {
        self.change += added as i64 - removed as i64;
    }

    /// Keys as the open batch leaves them.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.saturating_add_signed(self.change)
    }

    /// What the stores weighed when the batch was prepared.
    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    pub(crate) fn prepare(&mut self) -> Result<Vec<StateManifest>, StateError> {
        let started = Instant::now();
        let manifests = self.open.iter_mut().map(|partition| partition.store.prepare()).collect::<Result<_, _>>()?;
        let commit_ms = started.elapsed().as_millis() as u64;
        self.totals = Totals { keys: self.keys(), commit_ms, ..Totals::default() };
        for weight in self.open.iter().map(|partition| partition.store.metrics()) {
            self.totals.memory_bytes += weight.memory_bytes;
            self.totals.spilled_keys += weight.spilled_keys;
            self.totals.spilled_bytes += weight.spilled_bytes;
        }
        Ok(manifests)
    }

    pub(crate) fn commit(&mut self) {
        self.open.iter_mut().for_each(|partition| partition.store.commit());
        self.keys = self.keys();
        self.change = 0;
    }

    pub(crate) fn abort(&mut self) {
        self.open.iter_mut().for_each(|partition| partition.store.abort());
        self.change = 0;
    }

    pub(crate) fn retain(&mut self, retained: &[Vec<&StateManifest>]) -> Result<(), StateError> {
        self.open.iter_mut().zip(retained).try_for_each(|(partition, manifests)| partition.store.retain(manifests))
    }
}
