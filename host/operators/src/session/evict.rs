//! Closes the sessions that the watermark passed.
//!
//! Sessions lie in the store by their end, so what is looked at is what goes. Their keys keep the ranges of the sessions
//! that stay, or are forgotten with the last one.

use super::plan::SessionPlan;
use super::ranges::{Range, push_ranges, read_ranges};
use crate::OperatorError;
use crate::aggregate::merge::ROWS_OUT;
use crate::aggregate::partial::Groups;
use crate::event_order::ordered;
use crate::partitions::Partition;
use arrow::array::RecordBatch;
use hashbrown::HashSet;
use millstream_state::ByteRows;

impl SessionPlan {
    /// Removes the sessions that end at or before `through`, and gives them out; answers how many there were.
    pub(super) fn close(
        &self,
        partition: &mut Partition,
        through: u64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<u64, OperatorError> {
        let (mut keys, mut values) = (ByteRows::new(), ByteRows::new());
        partition
            .store
            .scan_through(partition.family, through, &mut |key, value| {
                keys.push(key);
                values.push(value);
            })
            .map_err(|source| self.unusable(source))?;
        let mut owners = HashSet::new();
        for from in (0..keys.len()).step_by(ROWS_OUT) {
            let rows = from..keys.len().min(from + ROWS_OUT);
            let columns = self.groups.keys.decode(rows.clone().map(|row| keys.row(row)));
            let columns = columns.map_err(|error| self.groups.unreadable(error))?;
            let states = self.groups.functions.codec.decode(rows.clone().map(|row| values.row(row)));
            let states = states.map_err(|error| self.groups.unreadable(error))?;
            let encoded = self.encode_owners(&columns).map_err(|error| self.groups.failed(error))?;
            owners.extend((0..rows.len()).map(|row| encoded.row(row).to_vec()));
            self.groups.give_out(Groups { keys: columns, states, len: rows.len() }, out)?;
        }
        self.forget_ranges(partition, through, owners)?;
        partition.store.delete_through(partition.family, through).map_err(|source| self.unusable(source))
    }

    /// Takes the ranges that end at or before `through` out of the lists of `owners`.
    fn forget_ranges(
        &self,
        partition: &mut Partition,
        through: u64,
        owners: HashSet<Vec<u8>>,
    ) -> Result<(), OperatorError> {
        if owners.is_empty() {
            return Ok(());
        }
        let family = partition.store.family(&self.ranges).map_err(|source| self.unusable(source))?;
        let mut keys = ByteRows::new();
        owners.iter().for_each(|owner| keys.push(owner));
        let (mut kept, mut lists, mut gone) = (ByteRows::new(), ByteRows::new(), ByteRows::new());
        for (key, list) in
            keys.iter().zip(partition.store.get_many(family, &keys).map_err(|source| self.unusable(source))?)
        {
            let list = list.ok_or_else(|| self.damaged("a session belongs to a key that is missing"))?;
            let ranges = read_ranges(list);
            let ranges = ranges.ok_or_else(|| self.damaged("the sessions of a key are no list of ranges"))?;
            let open: Vec<Range> = ranges.into_iter().filter(|range| ordered(range.end) > through).collect();
            if open.is_empty() {
                gone.push(key);
            } else {
                kept.push(key);
                push_ranges(&open, &mut lists);
            }
        }
        partition.store.put_many(family, &kept, &lists).map_err(|source| self.unusable(source))?;
        partition.store.delete_many(family, &gone).map_err(|source| self.unusable(source))?;
        Ok(())
    }
}
