//! Rows that came in are put into the state of their side.

use super::fault::StateFault;
use super::incoming::{Groups, Incoming};
use super::probe::read_counts;
use super::side::{Families, Side, second_of};
use crate::event_order::NEVER;
use crate::partitions::Partition;
use arrow::array::UInt32Array;
use arrow::compute::take_arrays;
use arrow::error::ArrowError;
use millstream_state::ByteRows;

/// Why rows could not be kept.
pub(super) enum KeepError {
    /// The rows have no byte form.
    Rows(ArrowError),
    /// The state cannot be used.
    State(StateFault),
}

impl<E: Into<StateFault>> From<E> for KeepError {
    fn from(error: E) -> Self {
        Self::State(error.into())
    }
}

impl Side {
    /// Stores those rows of `groups` that `wanted` names; answers how many.
    pub(super) fn keep(
        &self,
        incoming: &Incoming,
        groups: &Groups,
        wanted: impl Fn(usize) -> bool,
        partition: &mut Partition,
        families: Families,
    ) -> Result<u64, KeepError> {
        let mut counts = read_counts(&partition.store.get_many(families.counts, &groups.keys)?)?;
        let mut kept: Vec<u32> = Vec::with_capacity(groups.rows.len());
        let (mut names, mut times, mut time_values) = (ByteRows::new(), ByteRows::new(), ByteRows::new());
        let (mut changed, mut new_counts) = (ByteRows::new(), ByteRows::new());
        for (group, count) in counts.iter_mut().enumerate() {
            let key = groups.keys.row(group);
            let before = *count;
            for &row in groups.rows_of(group).iter().filter(|row| wanted(**row as usize)) {
                let number = count.to_be_bytes();
                names.push_parts(&[key, &number]);
                if let Some(&time) = incoming.times.get(row as usize).filter(|time| **time != NEVER) {
                    times.push_parts(&[&second_of(time).to_be_bytes(), key, &number]);
                    time_values.push(&time.to_be_bytes());
                }
                kept.push(row);
                *count = count.checked_add(1).ok_or_else(|| {
                    KeepError::Rows(ArrowError::InvalidArgumentError("a key has more than 2^32 rows".to_owned()))
                })?;
            }
            if *count > before {
                changed.push(key);
                new_counts.push(&count.to_be_bytes());
            }
        }
        if kept.is_empty() {
            return Ok(0);
        }
        let encoded = if kept.len() == incoming.matched.len() && kept.is_sorted() {
            self.row_codec.encode(&incoming.columns)
        } else {
            let rows = UInt32Array::from_iter_values(kept.iter().copied());
            take_arrays(&incoming.columns, &rows, None).and_then(|columns| self.row_codec.encode(&columns))
        };
        let encoded = encoded.map_err(KeepError::Rows)?;
        let mut values = ByteRows::with_capacity(kept.len(), kept.len() * 32);
        for (place, row) in kept.iter().enumerate() {
            values.push_parts(&[self.flag(incoming.matched[*row as usize]), encoded.row(place)]);
        }
        partition.store.put_many(families.counts, &changed, &new_counts)?;
        partition.store.put_many(families.rows, &names, &values)?;
        if !times.is_empty() {
            partition.store.put_many(families.times, &times, &time_values)?;
        }
        Ok(kept.len() as u64)
    }
}
