//! Arrow arrays → buffers.
//!
//! Buffers are shared with the arrays, except where a slice forces a copy: bitmaps that do not start at a byte, and
//! offsets that do not start at 0.

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef};
use arrow::util::display::FormatOptions;

use super::format;

/// The column as the agreed type: dictionaries, views, other offsets and time zones are decoded.
pub(crate) fn normalise(column: &ArrayRef, field: &FieldRef) -> Result<ArrayRef, String> {
    if column.data_type() == field.data_type() {
        return Ok(ArrayRef::clone(column));
    }
    let options = CastOptions { safe: false, format_options: FormatOptions::default() };
    cast_with_options(column, field.data_type(), &options)
        .map_err(|e| format!("argument `{}` is {}, not {}: {e}", field.name(), column.data_type(), field.data_type()))
}

/// Appends the buffers of `array` in pre-order.
pub(crate) fn encode(array: &ArrayRef, out: &mut Vec<Buffer>) -> Result<(), String> {
    out.push(array.nulls().filter(|nulls| nulls.null_count() > 0).map_or_else(no_bytes, validity));
    match array.data_type() {
        DataType::Boolean => out.push(bits(array.as_boolean().values())),
        DataType::Utf8 => {
            let strings = array.as_string::<i32>();
            push_bytes(strings.offsets(), strings.values(), out);
        }
        DataType::Binary => {
            let bytes = array.as_binary::<i32>();
            push_bytes(bytes.offsets(), bytes.values(), out);
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (start, end) = bounds(list.offsets());
            out.push(rebased(list.offsets()));
            encode(&list.values().slice(start, end - start), out)?;
        }
        DataType::Struct(_) => {
            for column in array.as_struct().columns() {
                encode(column, out)?;
            }
        }
        other => {
            let width = format::width(other).ok_or_else(|| format!("{other} cannot cross the boundary"))?;
            let data = array.to_data();
            let bytes = data
                .buffers()
                .first()
                .map_or_else(no_bytes, |values| values.slice_with_length(data.offset() * width, data.len() * width));
            out.push(bytes);
        }
    }
    Ok(())
}

/// How many bytes [`encode`] would pass, about: bitmaps are counted whether or not there are nulls.
pub(crate) fn encoded_len(array: &ArrayRef) -> usize {
    let rows = array.len();
    let own = match array.data_type() {
        DataType::Boolean => rows / 8,
        DataType::Utf8 => {
            let (start, end) = bounds(array.as_string::<i32>().offsets());
            4 * rows + end - start
        }
        DataType::Binary => {
            let (start, end) = bounds(array.as_binary::<i32>().offsets());
            4 * rows + end - start
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (start, end) = bounds(list.offsets());
            4 * rows + encoded_len(&list.values().slice(start, end - start))
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(encoded_len).sum(),
        other => format::width(other).unwrap_or(0) * rows,
    };
    own + rows / 8
}

fn no_bytes() -> Buffer {
    Buffer::from_vec(Vec::<u8>::new())
}

fn validity(nulls: &NullBuffer) -> Buffer {
    bits(nulls.inner())
}

fn bits(bits: &BooleanBuffer) -> Buffer {
    let bytes = bits.len().div_ceil(8);
    if bits.offset().is_multiple_of(8) {
        bits.inner().slice_with_length(bits.offset() / 8, bytes)
    } else {
        bits.sliced().slice_with_length(0, bytes)
    }
}

fn bounds(offsets: &OffsetBuffer<i32>) -> (usize, usize) {
    let edge = |offset: Option<&i32>| offset.map_or(0, |offset| usize::try_from(*offset).unwrap_or(0));
    (edge(offsets.first()), edge(offsets.last()))
}

fn rebased(offsets: &OffsetBuffer<i32>) -> Buffer {
    match offsets.first() {
        None => Buffer::from_vec(vec![0i32]),
        Some(0) => offsets.inner().inner().clone(),
        Some(first) => Buffer::from_vec(offsets.iter().map(|offset| offset - first).collect::<Vec<i32>>()),
    }
}

fn push_bytes(offsets: &OffsetBuffer<i32>, values: &Buffer, out: &mut Vec<Buffer>) {
    let (start, end) = bounds(offsets);
    out.push(rebased(offsets));
    out.push(values.slice_with_length(start, end - start));
}

/// An array of `rows` nulls or defaults, for results of rows that were never computed.
pub(crate) fn nulls(data_type: &DataType, rows: usize) -> ArrayRef {
    make_array(arrow::array::ArrayData::new_null(data_type, rows))
}
