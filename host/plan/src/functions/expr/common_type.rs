//! The type that two operands are brought to before they are compared, combined or put into one column.
//!
//! Pure functions over types; the analyzer rule and the functions' own coercion ask them. `None` means that the two
//! have nothing in common, and the query is refused.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};

use super::decimal_type::{self, Digits};

/// The type of Spark's TIMESTAMP.
pub(crate) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Whether the type is STRING in any of Arrow's layouts.
pub(crate) fn is_string(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether the type is BINARY in any of Arrow's layouts.
pub(crate) fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

fn is_fractional(data_type: &DataType) -> bool {
    data_type.is_floating() || matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..))
}

fn is_atomic(data_type: &DataType) -> bool {
    !data_type.is_nested() && !data_type.is_null()
}

/// The decimal digits of a decimal or integer type.
pub(crate) fn digits(data_type: &DataType) -> Option<Digits> {
    match data_type {
        DataType::Decimal128(precision, scale) => Some((*precision, *scale)),
        DataType::Decimal256(precision, scale) => Some(((*precision).min(38), *scale)),
        other => decimal_type::of_integer(other),
    }
}

fn integer_rank(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::Int8 => Some(1),
        DataType::Int16 | DataType::UInt8 => Some(2),
        DataType::Int32 | DataType::UInt16 => Some(3),
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => Some(4),
        _ => None,
    }
}

fn integer_of_rank(rank: u8) -> DataType {
    match rank {
        1 => DataType::Int8,
        2 => DataType::Int16,
        3 => DataType::Int32,
        _ => DataType::Int64,
    }
}

/// The common type of two numbers.
pub(crate) fn numeric(left: &DataType, right: &DataType, ansi: bool) -> Option<DataType> {
    if left == right && left.is_numeric() {
        return Some(left.clone());
    }
    if let (Some(l), Some(r)) = (integer_rank(left), integer_rank(right)) {
        return Some(integer_of_rank(l.max(r)));
    }
    let is_decimal = |t: &DataType| matches!(t, DataType::Decimal128(..) | DataType::Decimal256(..));
    if !left.is_numeric() || !right.is_numeric() {
        None
    } else if left.is_floating() || right.is_floating() {
        let single = |t: &DataType| matches!(t, DataType::Float32 | DataType::Float16);
        let both_single = single(left) && single(right);
        let integer_with_single = (single(left) || single(right)) && (left.is_integer() || right.is_integer());
        let narrow = both_single || (integer_with_single && !ansi);
        Some(if narrow && !is_decimal(left) && !is_decimal(right) { DataType::Float32 } else { DataType::Float64 })
    } else {
        let (precision, scale) = decimal_type::wider(digits(left)?, digits(right)?);
        Some(DataType::Decimal128(precision, scale))
    }
}

/// The common type of CASE branches, `coalesce` arguments, array elements and columns of set operations.
pub(crate) fn widest(left: &DataType, right: &DataType, ansi: bool) -> Option<DataType> {
    if left == right || right.is_null() {
        return Some(left.clone());
    }
    if left.is_null() {
        return Some(right.clone());
    }
    if let Some(common) = without_string(left, right, ansi) {
        return Some(common);
    }
    match (is_string(left), is_string(right)) {
        (true, true) => Some(DataType::Utf8),
        (true, false) => with_string(right, ansi),
        (false, true) => with_string(left, ansi),
        (false, false) => nested(left, right, &|l, r| widest(l, r, ansi)),
    }
}

fn with_string(other: &DataType, ansi: bool) -> Option<DataType> {
    if !is_atomic(other) {
        return None;
    }
    if !ansi {
        return (!is_binary(other) && *other != DataType::Boolean).then_some(DataType::Utf8);
    }
    Some(match other {
        t if t.is_integer() => DataType::Int64,
        t if is_fractional(t) => DataType::Float64,
        t => t.clone(),
    })
}

fn without_string(left: &DataType, right: &DataType, ansi: bool) -> Option<DataType> {
    if let Some(number) = numeric(left, right, ansi) {
        return Some(number);
    }
    match (left, right) {
        (DataType::Date32 | DataType::Timestamp(..), DataType::Date32 | DataType::Timestamp(..)) => {
            let zoned = [left, right].iter().any(|t| matches!(t, DataType::Timestamp(_, Some(_))));
            Some(if zoned { timestamp() } else { DataType::Timestamp(TimeUnit::Microsecond, None) })
        }
        (l, r) if is_binary(l) && is_binary(r) => Some(DataType::Binary),
        _ => None,
    }
}

fn nested(
    left: &DataType,
    right: &DataType,
    inner: &dyn Fn(&DataType, &DataType) -> Option<DataType>,
) -> Option<DataType> {
    let merged = |l: &Field, r: &Field| {
        let common = inner(l.data_type(), r.data_type())?;
        Some(Arc::new(Field::new(l.name(), common, l.is_nullable() || r.is_nullable())))
    };
    match (left, right) {
        (
            DataType::List(l) | DataType::LargeList(l) | DataType::FixedSizeList(l, _),
            DataType::List(r) | DataType::LargeList(r) | DataType::FixedSizeList(r, _),
        ) => Some(DataType::List(merged(l, r)?)),
        (DataType::Struct(l), DataType::Struct(r)) if l.len() == r.len() => {
            let fields: Option<Vec<_>> = l.iter().zip(r.iter()).map(|(l, r)| merged(l, r)).collect();
            Some(DataType::Struct(fields?.into()))
        }
        (DataType::Map(l, sorted), DataType::Map(r, _)) => Some(DataType::Map(merged(l, r)?, *sorted)),
        _ => None,
    }
}

/// The type that two operands of a comparison are brought to.
pub(crate) fn comparison(left: &DataType, right: &DataType, ansi: bool) -> Option<DataType> {
    if ansi {
        return widest(left, right, ansi);
    }
    let (string, other) = match (is_string(left), is_string(right)) {
        (true, false) => (true, right),
        (false, true) => (true, left),
        _ => (false, left),
    };
    if string && is_atomic(other) {
        return Some(if is_fractional(other) { DataType::Float64 } else { other.clone() });
    }
    match (left, right) {
        (DataType::Boolean, number) | (number, DataType::Boolean) if number.is_numeric() => Some(number.clone()),
        _ => widest(left, right, ansi),
    }
}

/// The common type of many, in order; `None` when two have nothing in common.
pub(crate) fn widest_of<'a>(types: impl IntoIterator<Item = &'a DataType>, ansi: bool) -> Option<DataType> {
    types.into_iter().try_fold(DataType::Null, |widest_so_far, next| widest(&widest_so_far, next, ansi))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_beside_a_number_becomes_bigint_or_double() {
        assert_eq!(widest(&DataType::Utf8, &DataType::Int32, true), Some(DataType::Int64));
        assert_eq!(widest(&DataType::Decimal128(5, 1), &DataType::Utf8, true), Some(DataType::Float64));
        assert_eq!(widest(&DataType::Utf8, &DataType::Date32, true), Some(DataType::Date32));
    }

    #[test]
    fn without_ansi_a_string_wins_in_columns_and_yields_in_comparisons() {
        assert_eq!(widest(&DataType::Utf8, &DataType::Int32, false), Some(DataType::Utf8));
        assert_eq!(comparison(&DataType::Utf8, &DataType::Int32, false), Some(DataType::Int32));
    }

    #[test]
    fn an_integer_beside_a_decimal_becomes_a_decimal() {
        assert_eq!(widest(&DataType::Int32, &DataType::Decimal128(6, 2), true), Some(DataType::Decimal128(12, 2)));
        assert_eq!(widest(&DataType::Decimal128(6, 2), &DataType::Float32, true), Some(DataType::Float64));
    }

    #[test]
    fn types_without_anything_in_common_are_refused() {
        assert_eq!(widest(&DataType::Boolean, &DataType::Int32, true), None);
        assert_eq!(widest(&DataType::Date32, &DataType::Int32, true), None);
    }
}
