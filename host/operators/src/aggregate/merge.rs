//! Merges the groups of a batch into the state of a partition, and reads groups back for the result.
//!
//! ```text
//!   keys ──get_many──► old states ─┐
//!   partial states ────────────────┴─merge──► new states ──put_many──► store
//! ```
//!
//! Old states are merged first, so that functions which depend on the order of arrival keep it.

use super::functions::Functions;
use super::keys::KeyColumns;
use super::lane::{Lane, each_lane, slice_of};
use super::partial::Groups;
use crate::partitions::Partition;
use crate::row_codec::{EncodedRows, RowCodec, partition_of};
use crate::{OperatorError, StatePart};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take_arrays;
use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use millstream_state::{ByteRows, StateError};
use millstream_wasm::{PluginSlot, Scope, Slice};
use std::sync::Arc;

/// Groups read back from the store are given out in batches of this many.
pub(crate) const ROWS_OUT: usize = 16_384;

/// From this many groups on, partitions are merged by several threads.
const GROUPS_FOR_THREADS: usize = 20_000;

/// The parts of an aggregate that do not change during a run; threads share it.
pub(crate) struct AggregatePlan {
    pub(crate) keys: KeyColumns,
    pub(crate) functions: Functions,
    pub(crate) output: SchemaRef,
    pub(crate) description: String,
    /// The plugins whose functions are among the functions.
    pub(crate) plugins: Vec<Arc<PluginSlot>>,
    /// The key that has no say in where the others belong, and the form of the others; `None` when all keys decide.
    pub(crate) owners: Option<(usize, RowCodec)>,
}

/// So many groups are merged at a time: few enough that their rows of state, once read, are near when they are written.
const GROUPS_AT_ONCE: usize = 1024;

/// Groups of one partition, with the bytes of their keys.
struct Piece {
    groups: Groups,
    keys: ByteRows,
}

/// What merging did.
#[derive(Default)]
pub(crate) struct Merged {
    /// The touched groups with their new states, a part per partition.
    pub(crate) touched: Vec<Groups>,
    /// Groups that were not in the store before.
    pub(crate) added: u64,
    /// Groups written.
    pub(crate) updated: u64,
}

impl AggregatePlan {
    /// The columns of the keys under the names of the result, which are those that the user knows.
    pub(crate) fn named_keys(&self) -> Vec<FieldRef> {
        let named = self.keys.fields().iter().zip(self.output.fields());
        named.map(|(key, output)| Arc::new(key.as_ref().clone().with_name(output.name()))).collect()
    }

    /// The states as a part of a value.
    pub(crate) fn state_part(&self) -> StatePart {
        StatePart::row_of_plugins(self.functions.state_fields(), self.functions.plugin_columns())
    }

    /// The slice of the keys that a candidate computes, while one does. A single group is never one.
    pub(crate) fn slice(&self) -> Option<Slice> {
        slice_of(&self.plugins).filter(|_| !self.keys.is_global())
    }

    /// The bytes of what decides where keys belong.
    pub(crate) fn owner_bytes(&self, keys: &[ArrayRef]) -> Result<EncodedRows, DataFusionError> {
        let Some((left_out, codec)) = &self.owners else { return self.keys.encode(keys) };
        let mut columns = keys.to_vec();
        columns.remove(*left_out);
        Ok(codec.encode(&columns)?)
    }

    pub(crate) fn failed(&self, error: impl Into<DataFusionError>) -> OperatorError {
        OperatorError::from_expression(&self.description, error.into())
    }

    pub(crate) fn unreadable(&self, source: ArrowError) -> OperatorError {
        OperatorError::StateRow { operator: self.description.clone(), source }
    }

    /// The state store failed.
    pub(super) fn state_failed(&self, source: StateError) -> OperatorError {
        OperatorError::State { operator: self.description.clone(), source }
    }

    /// Drops the groups that are late: whose event time is at or before the watermark. Answers how many.
    pub(crate) fn drop_late(&self, groups: &mut Groups, passed: u64) -> Result<u64, OperatorError> {
        let Some(prefixes) = self.keys.prefixes(&groups.keys) else { return Ok(0) };
        let late = prefixes.iter().filter(|&&prefix| prefix <= passed).count();
        if late > 0 {
            let kept = (0..groups.len as u32).zip(&prefixes).filter(|(_, prefix)| **prefix > passed);
            *groups = self.pick(groups, &kept.map(|(row, _)| row).collect::<Vec<_>>())?;
        }
        Ok(late as u64)
    }

    fn pick(&self, groups: &Groups, rows: &[u32]) -> Result<Groups, OperatorError> {
        let indices = UInt32Array::from_iter_values(rows.iter().copied());
        let take = |columns: &[ArrayRef]| take_arrays(columns, &indices, None).map_err(|error| self.failed(error));
        Ok(Groups { keys: take(&groups.keys)?, states: take(&groups.states)?, len: rows.len() })
    }

    /// Merges the groups of a batch into all partitions.
    pub(crate) fn merge(&self, groups: Groups, partitions: &mut [Partition]) -> Result<Merged, OperatorError> {
        let many = groups.len >= GROUPS_FOR_THREADS;
        let shares = self.share_out(groups, partitions.len())?;
        let scope = Scope::current();
        let numbered = (0..).map(|number| scope.partition(number)).zip(partitions).zip(shares);
        let mut work: Vec<_> = numbered.filter(|(_, share)| !share.is_empty()).collect();
        let threads = match many && work.len() > 1 {
            true => std::thread::available_parallelism().map_or(1, usize::from).min(work.len()),
            false => 1,
        };
        let mut merged = Merged::default();
        if threads < 2 {
            for ((scope, partition), share) in work {
                merged.join(scope.enter(|| self.merge_share(partition, share))?);
            }
            return Ok(merged);
        }
        let mut hands: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
        for (turn, job) in work.drain(..).enumerate() {
            hands[turn % threads].push(job);
        }
        let parts: Vec<Result<Merged, OperatorError>> = std::thread::scope(|scope| {
            let running: Vec<_> = hands
                .into_iter()
                .map(|jobs| {
                    scope.spawn(move || {
                        let mut merged = Merged::default();
                        for ((scope, partition), share) in jobs {
                            merged.join(scope.enter(|| self.merge_share(partition, share))?);
                        }
                        Ok(merged)
                    })
                })
                .collect();
            running
                .into_iter()
                .map(|hand| hand.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        for part in parts {
            merged.join(part?);
        }
        Ok(merged)
    }

    /// Gives every group to the partition that owns its key, in pieces.
    fn share_out(&self, groups: Groups, partitions: usize) -> Result<Vec<Vec<Piece>>, OperatorError> {
        if partitions == 1 {
            let pieces = groups.pieces(GROUPS_AT_ONCE).map(|groups| {
                let keys = self.keys.bytes(&groups.keys, groups.len).map_err(|error| self.failed(error))?;
                Ok(Piece { groups, keys })
            });
            return Ok(vec![pieces.collect::<Result<_, OperatorError>>()?]);
        }
        let encoded = self.keys.encode(&groups.keys).map_err(|error| self.failed(error))?;
        let prefixes = self.keys.prefixes(&groups.keys);
        let key_of = |keys: &mut ByteRows, row: usize| match &prefixes {
            Some(prefixes) => keys.push_parts(&[&prefixes[row].to_be_bytes(), encoded.row(row)]),
            None => keys.push(encoded.row(row)),
        };
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); partitions];
        for row in 0..groups.len {
            rows[partition_of(encoded.row(row), partitions as u32)].push(row as u32);
        }
        let piece = |rows: &[u32]| {
            let mut keys = ByteRows::with_capacity(rows.len(), rows.len() * 32);
            rows.iter().for_each(|&row| key_of(&mut keys, row as usize));
            Ok(Piece { groups: self.pick(&groups, rows)?, keys })
        };
        rows.iter().map(|rows| rows.chunks(GROUPS_AT_ONCE).map(piece).collect()).collect()
    }

    fn merge_share(&self, partition: &mut Partition, share: Vec<Piece>) -> Result<Merged, OperatorError> {
        let mut merged = Merged::default();
        for piece in share {
            merged.join(self.merge_piece(partition, piece)?);
        }
        Ok(merged)
    }

    fn merge_piece(&self, partition: &mut Partition, piece: Piece) -> Result<Merged, OperatorError> {
        let Piece { mut groups, keys } = piece;
        let old = partition.store.get_many(partition.family, &keys).map_err(|error| self.state_failed(error))?;
        let known: Vec<usize> =
            old.iter().enumerate().filter_map(|(row, value)| value.is_some().then_some(row)).collect();
        let added = (groups.len - known.len()) as u64;
        if !known.is_empty() {
            let values = old.iter().filter_map(|value| *value);
            let old_states = self.functions.codec.decode(values).map_err(|error| self.unreadable(error))?;
            groups.states = self.merge_states(&old_states, &known, &groups).map_err(|error| self.failed(error))?;
        }
        drop(old);
        let encoded = self.functions.codec.encode(&groups.states).map_err(|error| self.failed(error))?;
        let values = encoded.into_byte_rows(groups.len);
        partition.store.put_many(partition.family, &keys, &values).map_err(|error| self.state_failed(error))?;
        Ok(Merged { added, updated: groups.len as u64, touched: vec![groups] })
    }

    /// The states of the groups with the old states of the groups in rows `known` added, in the order of the groups.
    fn merge_states(
        &self,
        old: &[ArrayRef],
        known: &[usize],
        groups: &Groups,
    ) -> Result<Vec<ArrayRef>, DataFusionError> {
        // Old states come first, and at each step only groups that have a state may be counted: so the accumulators see
        // the known groups as the first ones.
        let mut slots = vec![usize::MAX; groups.len];
        known.iter().enumerate().for_each(|(slot, &row)| slots[row] = slot);
        let free = slots.iter_mut().filter(|slot| **slot == usize::MAX);
        free.enumerate().for_each(|(new, slot)| *slot = known.len() + new);
        let mut accumulators = self.functions.accumulators()?;
        let old_slots: Vec<usize> = (0..known.len()).collect();
        self.functions.merge(&mut accumulators, old, &old_slots, known.len())?;
        self.functions.merge(&mut accumulators, &groups.states, &slots, groups.len)?;
        let states = self.functions.states(accumulators)?;
        if known.len() == groups.len {
            return Ok(states);
        }
        let order = UInt32Array::from_iter_values(slots.iter().map(|&slot| slot as u32));
        Ok(take_arrays(&states, &order, None)?)
    }

    /// The result rows of groups.
    pub(crate) fn rows(&self, groups: Groups) -> Result<RecordBatch, OperatorError> {
        let results = self.functions.results(&groups.states, groups.len).map_err(|error| self.failed(error))?;
        let mut columns = groups.keys;
        columns.extend(results);
        let options = RecordBatchOptions::new().with_row_count(Some(groups.len));
        RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)
            .map_err(|error| self.failed(error))
    }

    /// The result rows of a partition's groups: of those whose event time is at or before `through`, or of all.
    pub(crate) fn read(
        &self,
        partition: &Partition,
        through: Option<u64>,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), OperatorError> {
        let (mut keys, mut values) = (ByteRows::new(), ByteRows::new());
        let mut failure = None;
        let mut visit = |key: &[u8], value: &[u8]| {
            if failure.is_some() {
                return;
            }
            keys.push(key);
            values.push(value);
            if keys.len() == ROWS_OUT {
                failure = self.read_rows(&keys, &values, out).err();
                keys.clear();
                values.clear();
            }
        };
        let read = match through {
            Some(through) => partition.store.scan_through(partition.family, through, &mut visit),
            None => partition.store.scan(partition.family, &mut visit),
        };
        read.map_err(|error| self.state_failed(error))?;
        match failure {
            Some(error) => Err(error),
            None if keys.is_empty() => Ok(()),
            None => self.read_rows(&keys, &values, out),
        }
    }

    fn read_rows(&self, keys: &ByteRows, values: &ByteRows, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        let columns = self.keys.decode(keys.iter()).map_err(|error| self.unreadable(error))?;
        let states = self.functions.codec.decode(values.iter()).map_err(|error| self.unreadable(error))?;
        self.give_out(Groups { keys: columns, states, len: keys.len() }, out)
    }

    /// The result rows of groups that were read, each by the code that its key runs in.
    pub(crate) fn give_out(&self, groups: Groups, out: &mut Vec<RecordBatch>) -> Result<(), OperatorError> {
        let slice = self.slice();
        if slice.is_none() {
            out.push(self.rows(groups)?);
            return Ok(());
        }
        each_lane(slice, |lane| {
            let Some((slice, is_slice)) = lane else { return Ok(()) };
            let lane = Lane { slice, is_slice, bytes: &|keys| self.owner_bytes(keys) };
            let mine = lane.rows(&groups.keys, groups.len).map_err(|error| self.failed(error))?;
            if !mine.is_empty() {
                out.push(self.rows(self.pick(&groups, &mine)?)?);
            }
            Ok(())
        })
    }
}

impl Merged {
    fn join(&mut self, other: Self) {
        self.touched.extend(other.touched);
        self.added += other.added;
        self.updated += other.updated;
    }
}
