//! Rows that can match no more leave the state.
//!
//! By the time in their key whole tables go. By a column of their own, the order of times names the rows; in each key the
//! last rows then take the numbers of those that left, so that numbers stay without gaps. Either way the work is that of
//! the rows that leave.

use super::fault::StateFault;
use super::probe::{PIECE, read_counts};
use super::side::{Expiry, Families, Side, second_of};
use crate::event_order::NEVER;
use crate::partitions::Partition;
use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use hashbrown::HashMap;
use millstream_state::ByteRows;

/// Takes the columns of rows that leave without a match, and how many they are.
pub(super) type Unmatched<'a> = dyn FnMut(Vec<ArrayRef>, usize) -> Result<(), ArrowError> + 'a;

/// Gathers unmatched rows and hands them on in batches.
struct Gather<'a, 'b> {
    side: &'a Side,
    rows: ByteRows,
    unmatched: &'a mut Unmatched<'b>,
}

impl Gather<'_, '_> {
    fn see(&mut self, value: &[u8]) -> Result<(), StateFault> {
        let (matched, row) = self.side.open_value(value)?;
        if matched {
            return Ok(());
        }
        self.rows.push(row);
        if self.rows.len() == PIECE { self.hand_on() } else { Ok(()) }
    }

    fn hand_on(&mut self) -> Result<(), StateFault> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let columns = self.side.row_codec.decode(self.rows.iter())?;
        (self.unmatched)(columns, self.rows.len())?;
        self.rows.clear();
        Ok(())
    }
}

impl Side {
    /// Removes the rows whose time is at or before `through`; of a preserved side those without a match are handed to
    /// `unmatched`. Answers how many left.
    pub(super) fn evict(
        &self,
        through: u64,
        partition: &mut Partition,
        families: Families,
        unmatched: &mut Unmatched<'_>,
    ) -> Result<u64, StateFault> {
        let mut gather = Gather { side: self, rows: ByteRows::new(), unmatched };
        match self.expiry {
            Expiry::Never => Ok(0),
            Expiry::ByKey(_) => evict_keys(through, partition, families, &mut gather),
            Expiry::ByTime { .. } => self.evict_rows(through, partition, families, &mut gather),
        }
    }

    fn evict_rows(
        &self,
        through: u64,
        partition: &mut Partition,
        families: Families,
        gather: &mut Gather<'_, '_>,
    ) -> Result<u64, StateFault> {
        let names = take_times(through, partition, families)?;
        if names.is_empty() {
            return Ok(0);
        }
        if self.is_preserved {
            for value in partition.store.get_many(families.rows, &names)? {
                gather.see(value.ok_or_else(missing)?)?;
            }
            gather.hand_on()?;
        }
        self.close_gaps(&names, partition, families)?;
        Ok(names.len() as u64)
    }

    /// Removes rows by their names, whose times are `times` if rows of this side leave by their own time.
    pub(super) fn remove(
        &self,
        names: &ByteRows,
        times: &[u64],
        partition: &mut Partition,
        families: Families,
    ) -> Result<(), StateFault> {
        if names.is_empty() {
            return Ok(());
        }
        let mut entries = ByteRows::new();
        for (name, time) in names.iter().zip(times).filter(|(_, time)| **time != NEVER) {
            entries.push_parts(&[&second_of(*time).to_be_bytes(), name]);
        }
        partition.store.delete_many(families.times, &entries)?;
        self.close_gaps(names, partition, families)
    }

    /// Removes rows by their names, and gives the numbers that became free to the last rows of their keys.
    fn close_gaps(&self, names: &ByteRows, partition: &mut Partition, families: Families) -> Result<(), StateFault> {
        let mut leaving: HashMap<&[u8], Vec<u32>> = HashMap::new();
        for name in names.iter() {
            let (key, number) = split_name(name)?;
            leaving.entry(key).or_default().push(number);
        }
        let leaving: Vec<(&[u8], Vec<u32>)> = leaving.into_iter().collect();
        let mut keys = ByteRows::new();
        leaving.iter().for_each(|(key, _)| keys.push(key));
        let counts = read_counts(&partition.store.get_many(families.counts, &keys)?)?;
        let (mut empty, mut shrunk, mut new_counts) = (ByteRows::new(), ByteRows::new(), ByteRows::new());
        let (mut gone, mut moved_from, mut moved_to) = (ByteRows::new(), ByteRows::new(), ByteRows::new());
        for ((key, mut numbers), count) in leaving.into_iter().zip(counts) {
            let left = count.checked_sub(numbers.len() as u32).ok_or_else(missing)?;
            match left {
                0 => empty.push(key),
                _ => {
                    shrunk.push(key);
                    new_counts.push(&left.to_be_bytes());
                }
            }
            (left..count).for_each(|number| gone.push_parts(&[key, &number.to_be_bytes()]));
            numbers.sort_unstable();
            let free = numbers.partition_point(|number| *number < left);
            let staying = (left..count).filter(|number| numbers[free..].binary_search(number).is_err());
            for (from, to) in staying.zip(&numbers[..free]) {
                moved_from.push_parts(&[key, &from.to_be_bytes()]);
                moved_to.push_parts(&[key, &to.to_be_bytes()]);
            }
        }
        let mut values = ByteRows::new();
        for value in partition.store.get_many(families.rows, &moved_from)? {
            values.push(value.ok_or_else(missing)?);
        }
        self.rename_times((&moved_from, &moved_to), &values, partition, families)?;
        partition.store.delete_many(families.rows, &gone)?;
        partition.store.put_many(families.rows, &moved_to, &values)?;
        partition.store.delete_many(families.counts, &empty)?;
        partition.store.put_many(families.counts, &shrunk, &new_counts)?;
        Ok(())
    }

    /// Gives rows that moved their new names in the order of times.
    fn rename_times(
        &self,
        (from, to): (&ByteRows, &ByteRows),
        values: &ByteRows,
        partition: &mut Partition,
        families: Families,
    ) -> Result<(), StateFault> {
        if values.is_empty() {
            return Ok(());
        }
        let rows = values.iter().map(|value| self.open_value(value).map(|(_, row)| row));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let columns = self.row_codec.decode(rows.into_iter())?;
        let times = self.own_times(&columns);
        let (mut old, mut new, mut new_times) = (ByteRows::new(), ByteRows::new(), ByteRows::new());
        for (row, time) in times.into_iter().enumerate().filter(|(_, time)| *time != NEVER) {
            let second = second_of(time).to_be_bytes();
            old.push_parts(&[&second, from.row(row)]);
            new.push_parts(&[&second, to.row(row)]);
            new_times.push(&time.to_be_bytes());
        }
        partition.store.delete_many(families.times, &old)?;
        partition.store.put_many(families.times, &new, &new_times)?;
        Ok(())
    }
}

fn evict_keys(
    through: u64,
    partition: &mut Partition,
    families: Families,
    gather: &mut Gather<'_, '_>,
) -> Result<u64, StateFault> {
    if gather.side.is_preserved {
        let mut failure = None;
        partition.store.scan_through(families.rows, through, &mut |_, value| {
            if failure.is_none() {
                failure = gather.see(value).err();
            }
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        gather.hand_on()?;
    }
    partition.store.delete_through(families.counts, through)?;
    Ok(partition.store.delete_through(families.rows, through)?)
}

/// Takes the names of the rows whose time is at or before `through` out of the order of times.
fn take_times(through: u64, partition: &mut Partition, families: Families) -> Result<ByteRows, StateFault> {
    let last = second_of(through);
    let (mut names, mut of_last) = (ByteRows::new(), ByteRows::new());
    let mut damaged = false;
    partition.store.scan_through(families.times, last, &mut |entry, time| match (
        entry.split_first_chunk::<8>(),
        <[u8; 8]>::try_from(time),
    ) {
        (Some((second, name)), Ok(time)) if u64::from_be_bytes(time) <= through => {
            names.push(name);
            if u64::from_be_bytes(*second) == last {
                of_last.push(entry);
            }
        }
        (Some(_), Ok(_)) => {}
        _ => damaged = true,
    })?;
    if damaged {
        return Err(ArrowError::ParseError("an entry in the order of times is too short".to_owned()).into());
    }
    if let Some(before) = last.checked_sub(1) {
        partition.store.delete_through(families.times, before)?;
    }
    partition.store.delete_many(families.times, &of_last)?;
    Ok(names)
}

fn split_name(name: &[u8]) -> Result<(&[u8], u32), ArrowError> {
    name.split_last_chunk::<4>().map(|(key, number)| (key, u32::from_be_bytes(*number))).ok_or_else(missing)
}

fn missing() -> ArrowError {
    ArrowError::ParseError("a row that was counted is missing".to_owned())
}
