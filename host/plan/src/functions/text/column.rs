//! Building result columns row by row without allocating per row.
//!
//! Where it stands: the last step of every function's body.
//!
//! Rule of its life: a row's closure says its value, NULL or an error; the builder keeps the buffers.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, BooleanBuilder, PrimitiveBuilder, StringBuilder};
use arrow::datatypes::{ArrowPrimitiveType, TimestampMicrosecondType};
use datafusion::common::{Result, exec_err};

/// Most bytes of one column of texts; offsets are 32-bit.
const MOST_BYTES: usize = i32::MAX as usize;
/// Most bytes of one computed text.
const MOST_BYTES_OF_ONE: usize = 1 << 28;

/// Refuses a text that would be longer than a row may hold, before it is made.
pub(crate) fn check_size(function: &str, bytes: usize) -> Result<()> {
    if bytes > MOST_BYTES_OF_ONE {
        return exec_err!(
            "[COLLECTION_SIZE_LIMIT_EXCEEDED.FUNCTION] `{function}` would make a value of {bytes} bytes; the most is \
             {MOST_BYTES_OF_ONE}"
        );
    }
    Ok(())
}

/// Counts a column's bytes so that its offsets cannot overflow.
struct Budget(usize);

impl Budget {
    fn take(&mut self, bytes: usize) -> Result<()> {
        self.0 += bytes;
        if self.0 > MOST_BYTES {
            return exec_err!("one batch's column of texts is larger than 2 GiB; make the batches smaller");
        }
        Ok(())
    }
}

/// A STRING column; the closure appends the row's text to the cleared scratch string.
pub(crate) fn texts(rows: usize, mut row: impl FnMut(usize, &mut String) -> Result<Option<()>>) -> Result<ArrayRef> {
    let mut builder = StringBuilder::with_capacity(rows, rows * 8);
    let mut scratch = String::new();
    let mut budget = Budget(0);
    for index in 0..rows {
        scratch.clear();
        match row(index, &mut scratch)? {
            Some(()) => {
                budget.take(scratch.len())?;
                builder.append_value(&scratch);
            }
            None => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// A STRING column of slices that live elsewhere.
pub(crate) fn slices<'a>(rows: usize, mut row: impl FnMut(usize) -> Result<Option<&'a str>>) -> Result<ArrayRef> {
    let mut builder = StringBuilder::with_capacity(rows, rows * 8);
    let mut budget = Budget(0);
    for index in 0..rows {
        let value = row(index)?;
        budget.take(value.map_or(0, str::len))?;
        builder.append_option(value);
    }
    Ok(Arc::new(builder.finish()))
}

/// A BINARY column; the closure appends to the cleared scratch buffer.
pub(crate) fn binaries(
    rows: usize,
    mut row: impl FnMut(usize, &mut Vec<u8>) -> Result<Option<()>>,
) -> Result<ArrayRef> {
    let mut builder = BinaryBuilder::with_capacity(rows, rows * 8);
    let mut scratch = Vec::new();
    let mut budget = Budget(0);
    for index in 0..rows {
        scratch.clear();
        match row(index, &mut scratch)? {
            Some(()) => {
                budget.take(scratch.len())?;
                builder.append_value(&scratch);
            }
            None => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// A BOOLEAN column.
pub(crate) fn bools(rows: usize, mut row: impl FnMut(usize) -> Result<Option<bool>>) -> Result<ArrayRef> {
    let mut builder = BooleanBuilder::with_capacity(rows);
    for index in 0..rows {
        builder.append_option(row(index)?);
    }
    Ok(Arc::new(builder.finish()))
}

/// A column of numbers or dates.
pub(crate) fn values<P: ArrowPrimitiveType>(
    rows: usize,
    mut row: impl FnMut(usize) -> Result<Option<P::Native>>,
) -> Result<ArrayRef> {
    let mut builder = PrimitiveBuilder::<P>::with_capacity(rows);
    for index in 0..rows {
        builder.append_option(row(index)?);
    }
    Ok(Arc::new(builder.finish()))
}

/// A TIMESTAMP column of microseconds in UTC.
pub(crate) fn timestamps(rows: usize, mut row: impl FnMut(usize) -> Result<Option<i64>>) -> Result<ArrayRef> {
    let mut builder = PrimitiveBuilder::<TimestampMicrosecondType>::with_capacity(rows);
    for index in 0..rows {
        builder.append_option(row(index)?);
    }
    Ok(Arc::new(builder.finish().with_timezone("UTC")))
}
