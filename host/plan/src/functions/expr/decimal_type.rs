//! Precision and scale of decimal results, with precision loss allowed (Spark's default).

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};

const MAX: i32 = DECIMAL128_MAX_PRECISION as i32;
/// Digits behind the point that are kept when a result is too wide.
const KEPT_SCALE: i32 = 6;

/// Precision and scale.
pub(crate) type Digits = (u8, i8);

/// The decimal type that holds every value of an integer type.
pub(crate) fn of_integer(data_type: &DataType) -> Option<Digits> {
    match data_type {
        DataType::Int8 => Some((3, 0)),
        DataType::Int16 | DataType::UInt8 => Some((5, 0)),
        DataType::Int32 | DataType::UInt16 => Some((10, 0)),
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => Some((20, 0)),
        _ => None,
    }
}

/// The smallest decimal type of an integer literal.
pub(crate) fn of_literal(value: i64) -> Digits {
    let digits = value.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
    (u8::try_from(digits).unwrap_or(20), 0)
}

fn within(precision: i32, scale: i32) -> Digits {
    let precision = precision.clamp(1, MAX);
    (precision as u8, scale.clamp(0, precision) as i8)
}

/// Cuts a result type that is too wide: integral digits win, but at least six digits behind the point stay.
fn adjusted(precision: i32, scale: i32) -> Digits {
    if precision <= MAX {
        return within(precision, scale);
    }
    let integral = precision - scale;
    within(MAX, (MAX - integral).max(scale.min(KEPT_SCALE)))
}

/// The common type of two decimals (CASE branches, set operations, comparisons).
pub(crate) fn wider(left: Digits, right: Digits) -> Digits {
    let scale = i32::from(left.1.max(right.1));
    let integral = (i32::from(left.0) - i32::from(left.1)).max(i32::from(right.0) - i32::from(right.1));
    let precision = integral + scale;
    if precision <= MAX { within(precision, scale) } else { within(MAX, scale - (precision - MAX)) }
}

/// The type of `l + r` and `l - r`.
pub(crate) fn sum(left: Digits, right: Digits) -> Digits {
    let scale = i32::from(left.1.max(right.1));
    let integral = (i32::from(left.0) - i32::from(left.1)).max(i32::from(right.0) - i32::from(right.1));
    adjusted(integral + scale + 1, scale)
}

/// The type of `l * r`.
pub(crate) fn product(left: Digits, right: Digits) -> Digits {
    adjusted(i32::from(left.0) + i32::from(right.0) + 1, i32::from(left.1) + i32::from(right.1))
}

/// The type of `l / r`.
pub(crate) fn quotient(left: Digits, right: Digits) -> Digits {
    let integral = i32::from(left.0) - i32::from(left.1) + i32::from(right.1);
    let scale = (i32::from(left.1) + i32::from(right.0) + 1).max(6);
    adjusted(integral + scale, scale)
}

/// The type of `l % r` and `pmod(l, r)`.
pub(crate) fn remainder(left: Digits, right: Digits) -> Digits {
    let scale = i32::from(left.1.max(right.1));
    let integral = (i32::from(left.0) - i32::from(left.1)).min(i32::from(right.0) - i32::from(right.1));
    adjusted(integral + scale, scale)
}

/// The type of `round`, `bround`, `floor` and `ceil` of a decimal to `scale` digits.
pub(crate) fn rounded(of: Digits, scale: i32) -> Digits {
    let integral = i32::from(of.0) - i32::from(of.1) + 1;
    if scale < 0 {
        within(integral.max(-scale.max(-MAX) + 1), 0)
    } else {
        let scale = scale.min(i32::from(of.1));
        within(integral + scale, scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_types_follow_the_operands_digits() {
        assert_eq!(sum((10, 3), (8, 2)), (11, 3));
        assert_eq!(product((10, 3), (8, 2)), (19, 5));
        assert_eq!(quotient((10, 3), (8, 2)), (21, 12));
        assert_eq!(remainder((10, 3), (8, 2)), (9, 3));
        assert_eq!(rounded((10, 3), 1), (9, 1));
        assert_eq!(rounded((10, 3), 0), (8, 0));
        assert_eq!(rounded((10, 3), -2), (8, 0));
    }

    #[test]
    fn results_wider_than_38_digits_lose_digits_behind_the_point() {
        assert_eq!(product((38, 10), (38, 10)), (38, 6));
        assert_eq!(sum((38, 10), (38, 10)), (38, 9));
        assert_eq!(quotient((38, 10), (38, 10)), (38, 6));
        assert_eq!(wider((38, 0), (38, 38)), (38, 0));
    }

    #[test]
    fn a_literal_takes_as_many_digits_as_it_has() {
        assert_eq!(of_literal(0), (1, 0));
        assert_eq!(of_literal(-3), (1, 0));
        assert_eq!(of_literal(100), (3, 0));
        assert_eq!(of_literal(i64::MIN), (19, 0));
    }
}
