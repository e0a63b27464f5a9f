//! Folding a row's columns into a running hash, whatever their types.
//!
//! Where it stands: between the columns of `hash` and `xxhash64` and the two algorithms.
//!
//! Rule of its life: each value is hashed with the result so far as its seed; NULL leaves it unchanged; nested values are
//! folded element by element. Small integers, booleans and dates count as INT, timestamps and short decimals as BIGINT,
//! long decimals as their shortest big-endian bytes, `-0.0` as `0.0`.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_err};

/// An algorithm that continues a running hash.
pub(super) trait Algorithm: Copy {
    /// The hash of an INT.
    fn int(self, value: i32) -> Self;
    /// The hash of a BIGINT.
    fn long(self, value: i64) -> Self;
    /// The hash of bytes.
    fn bytes(self, value: &[u8]) -> Self;
}

/// Continues every row's hash with a column; `stride` 0 stands for one value of all rows.
pub(super) fn fold_column<H: Algorithm>(array: &ArrayRef, stride: usize, hashes: &mut [H]) -> Result<()> {
    macro_rules! plain {
        ($array:expr, $step:expr) => {{
            let array = $array;
            for (row, hash) in hashes.iter_mut().enumerate() {
                let index = row * stride;
                if !array.is_null(index) {
                    *hash = $step(*hash, array.value(index));
                }
            }
            Ok(())
        }};
    }
    match array.data_type() {
        DataType::Int32 => plain!(array.as_primitive::<Int32Type>(), |h: H, v| h.int(v)),
        DataType::Int64 => plain!(array.as_primitive::<Int64Type>(), |h: H, v| h.long(v)),
        DataType::Utf8 => plain!(array.as_string::<i32>(), |h: H, v: &str| h.bytes(v.as_bytes())),
        _ => {
            for (row, hash) in hashes.iter_mut().enumerate() {
                *hash = fold(array, row * stride, *hash)?;
            }
            Ok(())
        }
    }
}

fn double_bits(value: f64) -> i64 {
    let value = if value == 0.0 { 0.0 } else { value };
    if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits().cast_signed() }
}

fn float_bits(value: f32) -> i32 {
    let value = if value == 0.0 { 0.0 } else { value };
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits().cast_signed() }
}

/// The shortest two's complement, most significant byte first.
fn shortest(value: i128, buffer: &mut [u8; 16]) -> &[u8] {
    *buffer = value.to_be_bytes();
    let mut start = 0;
    while start < 15 {
        let redundant = if value < 0 { 0xFF } else { 0 };
        let sign_kept = (buffer[start + 1] & 0x80 != 0) == (value < 0);
        if buffer[start] != redundant || !sign_kept {
            break;
        }
        start += 1;
    }
    &buffer[start..]
}

/// Continues one hash with one value.
fn fold<H: Algorithm>(array: &ArrayRef, index: usize, hash: H) -> Result<H> {
    if array.is_null(index) {
        return Ok(hash);
    }
    Ok(match array.data_type() {
        DataType::Null => hash,
        DataType::Boolean => hash.int(i32::from(array.as_boolean().value(index))),
        DataType::Int8 => hash.int(i32::from(array.as_primitive::<Int8Type>().value(index))),
        DataType::Int16 => hash.int(i32::from(array.as_primitive::<Int16Type>().value(index))),
        DataType::Int32 => hash.int(array.as_primitive::<Int32Type>().value(index)),
        DataType::Int64 => hash.long(array.as_primitive::<Int64Type>().value(index)),
        DataType::Float32 => hash.int(float_bits(array.as_primitive::<Float32Type>().value(index))),
        DataType::Float64 => hash.long(double_bits(array.as_primitive::<Float64Type>().value(index))),
        DataType::Date32 => hash.int(array.as_primitive::<Date32Type>().value(index)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            hash.long(array.as_primitive::<TimestampMicrosecondType>().value(index))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            hash.long(array.as_primitive::<DurationMicrosecondType>().value(index))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(index);
            hash.long(value.nanoseconds / 1000).int(value.days).int(value.months)
        }
        DataType::Decimal128(precision, _) => {
            let value = array.as_primitive::<Decimal128Type>().value(index);
            match i64::try_from(value) {
                Ok(value) if *precision <= 18 => hash.long(value),
                _ => hash.bytes(shortest(value, &mut [0; 16])),
            }
        }
        DataType::Utf8 => hash.bytes(array.as_string::<i32>().value(index).as_bytes()),
        DataType::LargeUtf8 => hash.bytes(array.as_string::<i64>().value(index).as_bytes()),
        DataType::Utf8View => hash.bytes(array.as_string_view().value(index).as_bytes()),
        DataType::Binary => hash.bytes(array.as_binary::<i32>().value(index)),
        DataType::LargeBinary => hash.bytes(array.as_binary::<i64>().value(index)),
        DataType::BinaryView => hash.bytes(array.as_binary_view().value(index)),
        DataType::List(_) => fold_all(&array.as_list::<i32>().value(index), hash)?,
        DataType::LargeList(_) => fold_all(&array.as_list::<i64>().value(index), hash)?,
        DataType::FixedSizeList(_, _) => fold_all(&array.as_fixed_size_list().value(index), hash)?,
        DataType::Struct(_) => {
            let mut hash = hash;
            for column in array.as_struct().columns() {
                hash = fold(column, index, hash)?;
            }
            hash
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(index);
            let mut hash = hash;
            for entry in 0..entries.len() {
                for column in entries.columns() {
                    hash = fold(column, entry, hash)?;
                }
            }
            hash
        }
        other => {
            return exec_err!("[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] a value of type {other} cannot be hashed");
        }
    })
}

fn fold_all<H: Algorithm>(elements: &ArrayRef, hash: H) -> Result<H> {
    (0..elements.len()).try_fold(hash, |hash, index| fold(elements, index, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_bytes_keep_the_sign() {
        for (value, bytes) in [
            (0_i128, &[0_u8][..]),
            (127, &[127]),
            (128, &[0, 128]),
            (-1, &[255]),
            (-128, &[128]),
            (-129, &[255, 127]),
            (256, &[1, 0]),
        ] {
            assert_eq!(shortest(value, &mut [0; 16]), bytes, "{value}");
        }
    }

    #[test]
    fn floating_zeros_and_nans_have_one_form() {
        assert_eq!(double_bits(-0.0), 0);
        assert_eq!(float_bits(-0.0), 0);
        assert_eq!(double_bits(f64::from_bits(0xfff8_0000_0000_0001)), 0x7ff8_0000_0000_0000);
    }
}
