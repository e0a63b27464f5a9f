//! Bit operations: `& | ^ ~`, shifts with Java's masking of the distance, `bit_count`, `getbit`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::kernels::bitwise::{bitwise_and, bitwise_not, bitwise_or, bitwise_xor};
use arrow::compute::{binary, try_binary};
use arrow::datatypes::{DataType, Int8Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::exec_err;
use datafusion::error::Result;

use super::common_type::{is_string, numeric};
use super::fault::{fault, raise};
use super::function::{Call, Row, shape};
use super::type_name::shown_type;

/// The family's functions.
pub(super) const ROWS: &[Row] = &[
    Row::new(AND, two_integers, shape::first, |call| pairwise(call, Pairwise::And)),
    Row::new(OR, two_integers, shape::first, |call| pairwise(call, Pairwise::Or)),
    Row::new(XOR, two_integers, shape::first, |call| pairwise(call, Pairwise::Xor)),
    Row::new("bitwise_not", one_integer, shape::first, not),
    Row::new(SHIFT_LEFT, shift_types, shape::first, |call| {
        shift(call, |v, by| v.wrapping_shl(by), |v, by| v.wrapping_shl(by))
    }),
    Row::new(SHIFT_RIGHT, shift_types, shape::first, |call| {
        shift(call, |v, by| v.wrapping_shr(by), |v, by| v.wrapping_shr(by))
    }),
    Row::new("shiftrightunsigned", shift_types, shape::first, |call| {
        shift(call, |v, by| (v as u32).wrapping_shr(by) as i32, |v, by| (v as u64).wrapping_shr(by) as i64)
    }),
    Row::new("bit_count", countable, shape::int, count),
    Row::new("getbit", bit_types, tinyint, bit).also(&["bit_get"]),
];

/// The name of `&`.
pub(super) const AND: &str = "bitwise_and";
/// The name of `|`.
pub(super) const OR: &str = "bitwise_or";
/// The name of `^`.
pub(super) const XOR: &str = "bitwise_xor";

/// The name of `<<`.
pub(super) const SHIFT_LEFT: &str = "shiftleft";
/// The name of `>>`.
pub(super) const SHIFT_RIGHT: &str = "shiftright";

/// The row of a name.
pub(super) fn row(name: &str) -> Option<Row> {
    ROWS.iter().find(|row| row.name == name).copied()
}

fn integer_of(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(data_type.clone()),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => Some(DataType::Int64),
        t if t.is_null() => Some(DataType::Int32),
        t if is_string(t) => Some(DataType::Int64),
        _ => None,
    }
}

fn two_integers(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
    let [left, right] = types else { return None };
    let common = numeric(&integer_of(left)?, &integer_of(right)?, ansi)?;
    Some(vec![common.clone(), common])
}

fn one_integer(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    let [one] = types else { return None };
    Some(vec![integer_of(one)?])
}

/// INT or BIGINT, and the distance.
fn shift_types(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    let [value, by] = types else { return None };
    integer_of(by)?;
    let value = if integer_of(value)? == DataType::Int64 { DataType::Int64 } else { DataType::Int32 };
    Some(vec![value, DataType::Int32])
}

fn countable(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    match types {
        [DataType::Boolean] => Some(vec![DataType::Boolean]),
        [one] => Some(vec![integer_of(one)?]),
        _ => None,
    }
}

fn bit_types(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    let [value, position] = types else { return None };
    integer_of(position)?;
    Some(vec![integer_of(value)?, DataType::Int32])
}

fn tinyint(_: &[DataType], _: &[Option<&datafusion::common::ScalarValue>]) -> Result<DataType> {
    Ok(DataType::Int8)
}

#[derive(Clone, Copy)]
enum Pairwise {
    And,
    Or,
    Xor,
}

/// Calls the block with the Arrow type of the first argument.
macro_rules! by_width {
    ($call:expr, $kind:ident => $body:expr) => {
        match $call.arrays[0].data_type() {
            DataType::Int8 => {
                type $kind = Int8Type;
                $body
            }
            DataType::Int16 => {
                type $kind = Int16Type;
                $body
            }
            DataType::Int32 => {
                type $kind = Int32Type;
                $body
            }
            DataType::Int64 => {
                type $kind = Int64Type;
                $body
            }
            other => return exec_err!("a value of type {} has no bits", shown_type(other)),
        }
    };
}

fn pairwise(call: &Call<'_>, operation: Pairwise) -> Result<ArrayRef> {
    by_width!(call, Kind => {
        let (left, right) = (call.arrays[0].as_primitive::<Kind>(), call.arrays[1].as_primitive::<Kind>());
        let result = match operation {
            Pairwise::And => bitwise_and(left, right),
            Pairwise::Or => bitwise_or(left, right),
            Pairwise::Xor => bitwise_xor(left, right),
        };
        Ok(Arc::new(result.map_err(raise)?) as ArrayRef)
    })
}

fn not(call: &Call<'_>) -> Result<ArrayRef> {
    by_width!(call, Kind => {
        Ok(Arc::new(bitwise_not(call.arrays[0].as_primitive::<Kind>()).map_err(raise)?) as ArrayRef)
    })
}

/// The distance counts modulo the width, as in Java.
fn shift(call: &Call<'_>, narrow: impl Fn(i32, u32) -> i32, wide: impl Fn(i64, u32) -> i64) -> Result<ArrayRef> {
    let by = call.arrays[1].as_primitive::<Int32Type>();
    let value = &call.arrays[0];
    Ok(match value.data_type() {
        DataType::Int64 => {
            let result =
                binary::<_, _, _, Int64Type>(value.as_primitive::<Int64Type>(), by, |v, by| wide(v, by as u32));
            Arc::new(result.map_err(raise)?)
        }
        _ => {
            let result =
                binary::<_, _, _, Int32Type>(value.as_primitive::<Int32Type>(), by, |v, by| narrow(v, by as u32));
            Arc::new(result.map_err(raise)?)
        }
    })
}

fn count(call: &Call<'_>) -> Result<ArrayRef> {
    if call.arrays[0].data_type() == &DataType::Boolean {
        return Ok(arrow::compute::cast(&call.arrays[0], &DataType::Int32)?);
    }
    by_width!(call, Kind => {
        // Counted on the value as BIGINT, so a negative TINYINT has 64 bits to count.
        let counts = call.arrays[0].as_primitive::<Kind>().unary::<_, Int32Type>(|v| (i128::from(v) as i64).count_ones() as i32);
        Ok(Arc::new(counts) as ArrayRef)
    })
}

fn bit(call: &Call<'_>) -> Result<ArrayRef> {
    by_width!(call, Kind => {
        let (values, positions) = (call.arrays[0].as_primitive::<Kind>(), call.arrays[1].as_primitive::<Int32Type>());
        let width = (std::mem::size_of::<<Kind as arrow::datatypes::ArrowPrimitiveType>::Native>() * 8) as i32;
        let bits = try_binary::<_, _, _, Int8Type>(values, positions, |value, position| {
            if (0..width).contains(&position) {
                Ok((i128::from(value) >> position & 1) as i8)
            } else {
                Err(fault(format!("[INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE] the bit position {position} is not within 0 and {}", width - 1)))
            }
        });
        Ok(Arc::new(bits.map_err(raise)?) as ArrayRef)
    })
}
