//! Columns on their way to a guest and back: the buffers of a call, how large a call is, rows that a guest never sees,
//! and the row errors of an answer.

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::compute;
use arrow::datatypes::{Field, FieldRef};
use std::ops::Range;

use crate::call::{Failure, cut};
use crate::layout::decode::{self, Buffers};
use crate::layout::encode;
use crate::limits::PluginLimits;
use crate::wire;

/// Rows that failed, with the guest's words; ascending.
pub(super) type RowErrors = Vec<(u32, String)>;

/// Columns as the agreed types, checked to be `rows` long.
pub(super) fn normalised(columns: &[ArrayRef], fields: &[FieldRef], rows: usize) -> Result<Vec<ArrayRef>, String> {
    if columns.len() != fields.len() {
        return Err(format!("{} columns instead of {}", columns.len(), fields.len()));
    }
    if u32::try_from(rows).is_err() {
        return Err(format!("{rows} rows in one batch"));
    }
    if let Some(column) = columns.iter().find(|column| column.len() != rows) {
        return Err(format!("a column of {} rows in a batch of {rows}", column.len()));
    }
    columns.iter().zip(fields).map(|(column, field)| encode::normalise(column, field)).collect()
}

/// The buffers of columns of equal length.
pub(super) struct Encoded {
    rows: u32,
    buffers: Vec<Buffer>,
}

impl Encoded {
    pub(super) fn of(columns: &[ArrayRef], rows: usize) -> Result<Self, Failure> {
        let mut buffers = Vec::new();
        for column in columns {
            encode::encode(column, &mut buffers).map_err(Failure::Engine)?;
        }
        let rows = u32::try_from(rows).map_err(|_| Failure::Engine(format!("{rows} rows in one call")))?;
        Ok(Self { rows, buffers })
    }

    pub(super) fn slices(&self) -> Vec<&[u8]> {
        self.buffers.iter().map(Buffer::as_slice).collect()
    }

    /// The batch, whose buffers are `slices`.
    pub(super) fn batch<'a>(&self, slices: &'a [&'a [u8]]) -> wire::BatchRef<'a> {
        wire::BatchRef { rows: self.rows, buffers: slices }
    }
}

/// Row or group numbers as a guest gets them.
pub(super) fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// How many rows of `rest` go into one call by the limits.
pub(super) fn call_len(columns: &[ArrayRef], rest: Range<usize>, limits: &PluginLimits) -> usize {
    let mut len = rest.len().min(limits.rows_per_call.max(1));
    let bytes = |len| columns.iter().map(|column| encode::encoded_len(&column.slice(rest.start, len))).sum::<usize>();
    while len > 1 && bytes(len) > limits.argument_bytes_per_call {
        len = len.div_ceil(2);
    }
    len
}

/// The rows of a range.
pub(super) fn sliced(columns: &[ArrayRef], range: &Range<usize>) -> Vec<ArrayRef> {
    columns.iter().map(|column| column.slice(range.start, range.len())).collect()
}

/// The rows that are null in no column, when there are others.
pub(super) fn rows_without_nulls(columns: &[ArrayRef]) -> Option<Vec<u32>> {
    let union = columns.iter().fold(None, |all, column| {
        NullBuffer::union(all.as_ref(), column.nulls().filter(|nulls| nulls.null_count() > 0))
    });
    Some((0..).zip(union?.iter()).filter_map(|(row, valid)| valid.then_some(row)).collect())
}

/// Those rows of the columns.
pub(super) fn taken(columns: &[ArrayRef], rows: &[u32]) -> Result<Vec<ArrayRef>, Failure> {
    let places = UInt32Array::from(rows.to_vec());
    let taken = columns.iter().map(|column| compute::take(column, &places, None)).collect::<Result<Vec<_>, _>>();
    taken.map_err(|e| Failure::Engine(e.to_string()))
}

/// The columns of an answer of `rows` rows.
pub(super) fn decoded(fields: &[FieldRef], answer: wire::Batch, rows: usize) -> Result<Vec<ArrayRef>, String> {
    let mut buffers = Buffers::new(answer.buffers);
    let columns =
        fields.iter().map(|field| decode::column(field, rows, &mut buffers)).collect::<Result<Vec<_>, _>>()?;
    buffers.finish()?;
    Ok(columns)
}

/// The states of `groups` groups.
pub(super) fn states(fields: &[FieldRef], answer: wire::Batch, groups: usize) -> Result<Vec<ArrayRef>, String> {
    if answer.rows as usize != groups {
        return Err(format!("{} states for {groups} groups", answer.rows));
    }
    decoded(fields, answer, groups)
}

/// One column from its parts.
pub(super) fn joined(field: &Field, parts: &[&ArrayRef]) -> Result<ArrayRef, String> {
    match parts {
        [] => Ok(encode::nulls(field.data_type(), 0)),
        [one] => Ok(ArrayRef::clone(one)),
        many => {
            let many: Vec<&dyn Array> = many.iter().map(|part| part.as_ref()).collect();
            compute::concat(&many).map_err(|e| e.to_string())
        }
    }
}

/// The rows of `rows` that a guest named as failed, each once, ascending.
pub(super) fn row_errors(errors: Vec<wire::RowError>, rows: usize) -> Result<RowErrors, String> {
    if let Some(error) = errors.iter().find(|error| error.row as usize >= rows) {
        return Err(format!("row {} of {rows} is said to have failed", error.row));
    }
    let mut errors: RowErrors = errors.into_iter().map(|error| (error.row, cut(&error.message))).collect();
    errors.sort_by_key(|(row, _)| *row);
    errors.dedup_by_key(|(row, _)| *row);
    Ok(errors)
}
