//! Rows that came in meet the rows that the other side has stored.
//!
//! ```text
//!   keys ──get_many──► counts ──► names of rows ──get_many──► rows ──decode──► columns
//!                                                                                │
//!   rows that came in ──────────────── pairs with equal keys ◄──────────────────┘
//!                                        │ condition, over columns
//!                                        ▼
//!                                      matches ──► out;  flags of stored rows, or their removal ──► state
//! ```
//!
//! Stored rows are read in pieces and pairs are looked at in pieces, so that a key with many rows on both sides needs
//! no more memory than one with few.

use super::condition::Condition;
use super::fault::StateFault;
use super::incoming::{Groups, Incoming};
use super::side::{Families, Side, Which};
use crate::partitions::Partition;
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{filter, take_arrays};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use millstream_state::{ByteRows, StateError};
use std::ops::Range;
use std::sync::Arc;

/// Stored rows are read and pairs are looked at this many at a time.
pub(super) const PIECE: usize = 16_384;

/// Why a join could not go on.
pub(super) enum ProbeError {
    /// The condition failed on the data.
    Condition(DataFusionError),
    /// The state cannot be used.
    State(StateFault),
}

impl From<DataFusionError> for ProbeError {
    fn from(error: DataFusionError) -> Self {
        Self::Condition(error)
    }
}

impl From<StateFault> for ProbeError {
    fn from(fault: StateFault) -> Self {
        Self::State(fault)
    }
}

impl From<StateError> for ProbeError {
    fn from(error: StateError) -> Self {
        Self::State(error.into())
    }
}

impl From<ArrowError> for ProbeError {
    fn from(error: ArrowError) -> Self {
        Self::Condition(error.into())
    }
}

fn unreadable(error: ArrowError) -> ProbeError {
    ProbeError::State(StateFault::Unreadable(error))
}

/// How matches come out.
#[derive(Clone, Copy)]
pub(super) enum Emit<'a> {
    /// Both rows side by side.
    Pairs(&'a SchemaRef),
    /// Of rows that came in, only that they matched: they are given out by the caller.
    Marks,
    /// Stored rows, which have then done their duty and leave the state.
    Released(&'a SchemaRef),
}

/// What a probe needs beside the rows.
pub(super) struct Probe<'a> {
    /// The side that the stored rows are of.
    pub(super) other: &'a Side,
    pub(super) condition: Option<&'a Condition>,
    pub(super) emit: Emit<'a>,
}

/// Some stored rows of one group.
struct Piece {
    group: usize,
    /// Their numbers.
    numbers: Range<u32>,
}

/// Stored rows as columns.
struct Stored {
    columns: Vec<ArrayRef>,
    /// Which had matched before.
    matched_before: Vec<bool>,
    matched: Vec<bool>,
}

/// Stored rows that leave because they matched.
#[derive(Default)]
struct Released {
    names: ByteRows,
    times: Vec<u64>,
}

impl Released {
    fn join(&mut self, more: Self) {
        more.names.iter().for_each(|name| self.names.push(name));
        self.times.extend(more.times);
    }
}

impl Probe<'_> {
    /// Lets the rows of `groups` meet the stored rows of the other side; answers how many stored rows were removed.
    pub(super) fn run(
        &self,
        incoming: &mut Incoming,
        groups: &Groups,
        partition: &mut Partition,
        families: Families,
        out: &mut Vec<RecordBatch>,
    ) -> Result<u64, ProbeError> {
        let counts = read_counts(&partition.store.get_many(families.counts, &groups.keys)?).map_err(unreadable)?;
        let mut released = Released::default();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut room = PIECE as u32;
        for (group, &count) in counts.iter().enumerate().filter(|(group, _)| groups.can_match[*group]) {
            let mut from = 0;
            while from < count {
                let to = count.min(from.saturating_add(room));
                pieces.push(Piece { group, numbers: from..to });
                room -= to - from;
                from = to;
                if room == 0 {
                    let values = self.meet(&pieces, incoming, groups, (partition, families), out)?;
                    released.join(values);
                    pieces.clear();
                    room = PIECE as u32;
                }
            }
        }
        if !pieces.is_empty() {
            released.join(self.meet(&pieces, incoming, groups, (partition, families), out)?);
        }
        // Only now: the rows that stay are numbered anew.
        self.other.remove(&released.names, &released.times, partition, families)?;
        Ok(released.names.len() as u64)
    }

    fn meet(
        &self,
        pieces: &[Piece],
        incoming: &mut Incoming,
        groups: &Groups,
        (partition, families): (&mut Partition, Families),
        out: &mut Vec<RecordBatch>,
    ) -> Result<Released, ProbeError> {
        let mut names = ByteRows::new();
        for piece in pieces {
            let key = groups.keys.row(piece.group);
            piece.numbers.clone().for_each(|number| names.push_parts(&[key, &number.to_be_bytes()]));
        }
        let values = partition.store.get_many(families.rows, &names)?;
        let mut stored = self.read(&values).map_err(unreadable)?;
        self.pair(pieces, incoming, groups, &mut stored, out)?;
        let mut released = Released::default();
        let newly: Vec<usize> =
            (0..stored.matched.len()).filter(|row| stored.matched[*row] && !stored.matched_before[*row]).collect();
        if newly.is_empty() {
            return Ok(released);
        }
        if let Emit::Released(schema) = self.emit {
            let rows = UInt32Array::from_iter_values(newly.iter().map(|row| *row as u32));
            let columns = take_arrays(&stored.columns, &rows, None)?;
            released.times = self.other.own_times(&columns);
            newly.iter().for_each(|row| released.names.push(names.row(*row)));
            out.push(batch(schema, columns, newly.len())?);
        } else if self.other.is_preserved {
            let (mut keys, mut flagged) = (ByteRows::new(), ByteRows::new());
            for row in newly {
                let value = values[row].unwrap_or_default();
                let (_, bytes) = self.other.open_value(value).map_err(unreadable)?;
                keys.push(names.row(row));
                flagged.push_parts(&[self.other.flag(true), bytes]);
            }
            drop(values);
            partition.store.put_many(families.rows, &keys, &flagged)?;
        }
        Ok(released)
    }

    fn read(&self, values: &[Option<&[u8]>]) -> Result<Stored, ArrowError> {
        let mut matched_before = Vec::with_capacity(values.len());
        let mut rows = Vec::with_capacity(values.len());
        for value in values {
            let value = value.ok_or_else(|| ArrowError::ParseError("a row that was counted is missing".to_owned()))?;
            let (matched, row) = self.other.open_value(value)?;
            matched_before.push(matched);
            rows.push(row);
        }
        let columns = self.other.row_codec.decode(rows.into_iter())?;
        Ok(Stored { columns, matched: matched_before.clone(), matched_before })
    }

    /// Looks at all pairs of rows that came in and stored rows with the same key.
    fn pair(
        &self,
        pieces: &[Piece],
        incoming: &mut Incoming,
        groups: &Groups,
        stored: &mut Stored,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), ProbeError> {
        let first_only = matches!(self.emit, Emit::Released(_));
        let marks_only = matches!(self.emit, Emit::Marks);
        let (mut came, mut there): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut start = 0;
        for piece in pieces {
            let end = start + (piece.numbers.end - piece.numbers.start);
            for &row in groups.rows_of(piece.group) {
                if marks_only && incoming.matched[row as usize] {
                    continue;
                }
                for number in start..end {
                    if first_only && stored.matched[number as usize] {
                        continue;
                    }
                    came.push(row);
                    there.push(number);
                    if came.len() == PIECE {
                        self.judge(&mut came, &mut there, incoming, stored, out)?;
                    }
                }
            }
            start = end;
        }
        self.judge(&mut came, &mut there, incoming, stored, out)
    }

    /// Finds the matches among candidate pairs, and forgets the pairs.
    fn judge(
        &self,
        came: &mut Vec<u32>,
        there: &mut Vec<u32>,
        incoming: &mut Incoming,
        stored: &mut Stored,
        out: &mut Vec<RecordBatch>,
    ) -> Result<(), ProbeError> {
        if came.is_empty() {
            return Ok(());
        }
        let mut came: UInt32Array = std::mem::take(came).into();
        let mut there: UInt32Array = std::mem::take(there).into();
        if let Some(condition) = self.condition {
            let (mine, theirs) = ((incoming.columns.as_slice(), &came), (stored.columns.as_slice(), &there));
            let holds = match self.other.which {
                Which::Right => condition.holds(mine, theirs)?,
                Which::Left => condition.holds(theirs, mine)?,
            };
            if holds.true_count() < holds.len() {
                (came, there) = (kept(&came, &holds)?, kept(&there, &holds)?);
            }
        }
        came.values().iter().for_each(|row| incoming.matched[*row as usize] = true);
        there.values().iter().for_each(|row| stored.matched[*row as usize] = true);
        if let Emit::Pairs(schema) = self.emit
            && !came.is_empty()
        {
            let mine = take_arrays(&incoming.columns, &came, None)?;
            let theirs = take_arrays(&stored.columns, &there, None)?;
            let columns = match self.other.which {
                Which::Right => mine.into_iter().chain(theirs).collect(),
                Which::Left => theirs.into_iter().chain(mine).collect(),
            };
            out.push(batch(schema, columns, came.len())?);
        }
        Ok(())
    }
}

fn kept(rows: &UInt32Array, holds: &BooleanArray) -> Result<UInt32Array, ArrowError> {
    let kept = filter(rows, holds)?;
    Ok(arrow::array::AsArray::as_primitive(&kept).clone())
}

/// Rows with the columns of the result.
pub(super) fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// How many rows there are of each key.
pub(super) fn read_counts(values: &[Option<&[u8]>]) -> Result<Vec<u32>, ArrowError> {
    let count = |value: &Option<&[u8]>| match value {
        None => Ok(0),
        Some(bytes) => <[u8; 4]>::try_from(*bytes).map(u32::from_be_bytes).map_err(|_| {
            ArrowError::ParseError(format!("the number of rows of a key has {} bytes instead of 4", bytes.len()))
        }),
    };
    values.iter().map(count).collect()
}
