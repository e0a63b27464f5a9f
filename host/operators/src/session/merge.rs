//! Merges the groups of a batch with the stored sessions of their keys.
//!
//! ```text
//!   keys ──get_many──► ranges of their sessions ─┐
//!   ranges of the batch's groups ────────────────┴─► runs ──► sessions that change
//!                                                               │
//!   states of those that are stored ◄──get_many─────────────────┤
//!   merged states ──put_many──► sessions, ranges                ▼
//!                                              stored ones that went into others are removed
//! ```
//!
//! What a batch costs is proportional to the keys that it touches and the sessions that change, whatever else is stored;
//! a stored session that nothing new touches is not read.

use super::plan::SessionPlan;
use super::ranges::{Piece, Range, Run, push_ranges, read_ranges, runs};
use crate::OperatorError;
use crate::aggregate::partial::Groups;
use crate::partitions::Partition;
use crate::row_codec::{EncodedRows, partition_of};
use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::{interleave, take};
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use millstream_state::{ByteRows, StateError};
use millstream_wasm::Scope;

/// What merging did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Merged {
    /// Sessions of the touched keys: each counts as written, whether it changed or not (Spark's `numRowsUpdated`).
    pub(super) updated: u64,
    /// Stored sessions that none of the same start follows (Spark's `numRowsRemoved`).
    pub(super) removed: u64,
    /// Sessions more than before, or less.
    pub(super) change: i64,
}

/// The batch's groups, with what merging asks of every row.
struct Batch<'a> {
    groups: &'a Groups,
    owners: EncodedRows,
    ranges: Vec<Option<Range>>,
}

/// The keys of a partition that the batch touches, in the order in which it names them.
#[derive(Default)]
struct Touched {
    keys: ByteRows,
    /// For each a row of the batch that has it.
    rows: Vec<usize>,
    pieces: Vec<Piece>,
}

/// The sessions that change: those of a partition's keys, and the stored ones that went into them.
#[derive(Default)]
struct Changed {
    /// Key and range of each session.
    sessions: Vec<(usize, Range)>,
    /// Key and range of the stored sessions that are part of one, and the session that they are part of.
    stored: Vec<(usize, Range, usize)>,
    /// The states to be merged: (0, index in `stored`) or (1, row of the batch), in the order of merging.
    order: Vec<(usize, usize)>,
    /// The session of each of them.
    slots: Vec<usize>,
}

impl SessionPlan {
    /// Merges the groups of a batch into all partitions. Groups without a session are in none, as rows without time.
    pub(super) fn merge(&self, groups: &Groups, partitions: &mut [Partition]) -> Result<Merged, OperatorError> {
        let owners = self.encode_owners(&groups.keys).map_err(|error| self.groups.failed(error))?;
        let batch = Batch { groups, owners, ranges: self.ranges_of(&groups.keys) };
        let mut merged = Merged::default();
        let shares = batch.share_out(partitions.len());
        for (number, (touched, partition)) in (0..).zip(shares.into_iter().zip(partitions)) {
            if touched.rows.is_empty() {
                continue;
            }
            let scope = Scope::current().partition(number);
            let part = scope.enter(|| self.merge_share(partition, &batch, touched))?;
            merged.updated += part.updated;
            merged.removed += part.removed;
            merged.change += part.change;
        }
        Ok(merged)
    }

    fn merge_share(
        &self,
        partition: &mut Partition,
        batch: &Batch<'_>,
        mut touched: Touched,
    ) -> Result<Merged, OperatorError> {
        let family = partition.store.family(&self.ranges).map_err(|source| self.unusable(source))?;
        let mut before = Vec::with_capacity(touched.rows.len());
        for (key, list) in partition
            .store
            .get_many(family, &touched.keys)
            .map_err(|source| self.unusable(source))?
            .into_iter()
            .enumerate()
        {
            let list = read_ranges(list.unwrap_or_default());
            let list = list.ok_or_else(|| self.damaged("the sessions of a key are no list of ranges"))?;
            touched.pieces.extend(list.iter().map(|&range| Piece { key, range, row: None }));
            before.push(list);
        }
        let runs = runs(&mut touched.pieces);
        let changed = Changed::among(&runs, &touched.pieces);
        self.store_sessions(partition, batch, &touched, &changed)?;
        let (mut keys, mut lists) = (ByteRows::new(), ByteRows::new());
        for of_key in runs.chunk_by(|one, next| one.key == next.key) {
            let key = of_key[0].key;
            let after: Vec<Range> = of_key.iter().map(|run| run.range).collect();
            if after != before[key] {
                keys.push(touched.keys.row(key));
                push_ranges(&after, &mut lists);
            }
        }
        partition.store.put_many(family, &keys, &lists).map_err(|source| self.unusable(source))?;
        let stored: usize = before.iter().map(Vec::len).sum();
        let replaced = changed.stored.iter().filter(|(_, range, at)| range.start == changed.sessions[*at].1.start);
        Ok(Merged {
            updated: runs.len() as u64,
            removed: (changed.stored.len() - replaced.count()) as u64,
            change: runs.len() as i64 - stored as i64,
        })
    }

    /// Writes the sessions that change and removes the stored ones that are now part of others.
    fn store_sessions(
        &self,
        partition: &mut Partition,
        batch: &Batch<'_>,
        touched: &Touched,
        changed: &Changed,
    ) -> Result<(), OperatorError> {
        let columns_of = |sessions: &mut dyn Iterator<Item = (usize, Range)>| {
            let (keys, ranges): (Vec<usize>, Vec<Range>) = sessions.unzip();
            let rows = UInt32Array::from_iter_values(keys.iter().map(|key| touched.rows[*key] as u32));
            let keys = batch.groups.keys.iter().map(|column| take(column, &rows, None));
            self.with_ranges(keys.collect::<Result<_, _>>()?, ranges.iter().copied())
        };
        let failed = |error: ArrowError| self.groups.failed(error);
        let stored = columns_of(&mut changed.stored.iter().map(|(key, range, _)| (*key, *range))).map_err(failed)?;
        let stored = self.session_keys(&stored)?;
        let values = partition.store.get_many(partition.family, &stored).map_err(|source| self.unusable(source))?;
        if values.iter().any(Option::is_none) {
            return Err(self.damaged("a session that its key names is missing"));
        }
        let old = self.groups.functions.codec.decode(values.into_iter().flatten());
        let old = old.map_err(|error| self.groups.unreadable(error))?;
        let states =
            self.merge_states(&old, &batch.groups.states, changed).map_err(|error| self.groups.failed(error))?;
        let columns = columns_of(&mut changed.sessions.iter().copied()).map_err(failed)?;
        let keys = self.session_keys(&columns)?;
        let encoded = self.groups.functions.codec.encode(&states).map_err(failed)?;
        let mut values = ByteRows::with_capacity(keys.len(), keys.len() * 16);
        (0..keys.len()).for_each(|row| values.push(encoded.row(row)));
        let mut gone = ByteRows::new();
        for ((_, range, session), key) in changed.stored.iter().zip(stored.iter()) {
            if *range != changed.sessions[*session].1 {
                gone.push(key);
            }
        }
        partition.store.delete_many(partition.family, &gone).map_err(|source| self.unusable(source))?;
        partition.store.put_many(partition.family, &keys, &values).map_err(|source| self.unusable(source))?;
        Ok(())
    }

    /// The states of the sessions that change.
    fn merge_states(
        &self,
        stored: &[ArrayRef],
        batch: &[ArrayRef],
        changed: &Changed,
    ) -> Result<Vec<ArrayRef>, DataFusionError> {
        let in_order = |(stored, batch): (&ArrayRef, &ArrayRef)| interleave(&[stored, batch], &changed.order);
        let states = stored.iter().zip(batch).map(in_order).collect::<Result<Vec<_>, _>>()?;
        if changed.order.len() == changed.sessions.len() {
            return Ok(states);
        }
        let functions = &self.groups.functions;
        let mut accumulators = functions.accumulators()?;
        functions.merge(&mut accumulators, &states, &changed.slots, changed.sessions.len())?;
        functions.states(accumulators)
    }

    pub(super) fn unusable(&self, source: StateError) -> OperatorError {
        OperatorError::State { operator: self.groups.description.clone(), source }
    }
}

impl Batch<'_> {
    /// The touched keys of each partition, with the pieces that the batch adds to them.
    fn share_out(&self, partitions: usize) -> Vec<Touched> {
        let mut shares: Vec<Touched> = (0..partitions).map(|_| Touched::default()).collect();
        let mut numbers: HashMap<&[u8], (usize, usize)> = HashMap::new();
        for (row, range) in self.ranges.iter().enumerate() {
            let Some(range) = *range else { continue };
            let owner = self.owners.row(row);
            let (share, key) = match numbers.entry(owner) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let share = partition_of(owner, partitions as u32);
                    let number = (share, shares[share].rows.len());
                    shares[share].keys.push(owner);
                    shares[share].rows.push(row);
                    *new.insert(number)
                }
            };
            shares[share].pieces.push(Piece { key, range, row: Some(row) });
        }
        shares
    }
}

impl Changed {
    /// Those of `runs` that hold a piece of the batch.
    fn among(runs: &[Run], pieces: &[Piece]) -> Self {
        let mut changed = Self::default();
        for run in runs {
            let pieces = &pieces[run.pieces.clone()];
            if pieces.iter().all(|piece| piece.row.is_none()) {
                continue;
            }
            let slot = changed.sessions.len();
            changed.sessions.push((run.key, run.range));
            for piece in pieces {
                changed.slots.push(slot);
                changed.order.push(match piece.row {
                    Some(row) => (1, row),
                    None => (0, changed.stored.len()),
                });
                if piece.row.is_none() {
                    changed.stored.push((piece.key, piece.range, slot));
                }
            }
        }
        changed
    }
}
