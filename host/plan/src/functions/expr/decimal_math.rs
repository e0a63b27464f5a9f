//! Arithmetic on unscaled decimals: exact, then rounded half up to the result's scale.
//!
//! 128-bit while it lasts, 256-bit where an intermediate value is wider. `None` means that the result does not fit.

use arrow::datatypes::{i256, is_validate_decimal_precision};

/// The operation of a decimal expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecimalOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    PositiveRemainder,
}

/// 10 to the power; `None` beyond 38 digits or for a negative exponent.
pub(crate) fn pow10(exponent: i8) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// Quotient rounded half up (away from zero); the divisor is not zero.
fn divided(value: i128, divisor: i128) -> i128 {
    let (quotient, remainder) = (value / divisor, value % divisor);
    let up = remainder.unsigned_abs() >= divisor.unsigned_abs() - remainder.unsigned_abs();
    if remainder != 0 && up { quotient + if (value < 0) == (divisor < 0) { 1 } else { -1 } } else { quotient }
}

fn divided_wide(value: i256, divisor: i256) -> Option<i256> {
    let (quotient, remainder) = (value.checked_div(divisor)?, value.checked_rem(divisor)?);
    let (rest, size) = (remainder.checked_abs()?, divisor.checked_abs()?);
    if remainder != i256::ZERO && rest >= size.checked_sub(rest)? {
        let same_sign = value.is_negative() == divisor.is_negative();
        quotient.checked_add(if same_sign { i256::ONE } else { i256::MINUS_ONE })
    } else {
        Some(quotient)
    }
}

/// The value at another scale, rounded half up.
pub(crate) fn rescaled(value: i128, from: i8, to: i8) -> Option<i128> {
    if to >= from {
        if value == 0 { Some(0) } else { value.checked_mul(pow10(to - from)?) }
    } else {
        Some(pow10(from - to).map_or(0, |unit| divided(value, unit)))
    }
}

fn pow10_wide(exponent: i32) -> Option<i256> {
    i256::from_i128(10).checked_pow(u32::try_from(exponent).ok()?)
}

fn rescaled_wide(value: i256, from: i32, to: i32) -> Option<i256> {
    if to >= from { value.checked_mul(pow10_wide(to - from)?) } else { divided_wide(value, pow10_wide(from - to)?) }
}

/// A decimal expression prepared for its operand and result types.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecimalArithmetic {
    op: DecimalOp,
    left_scale: i8,
    right_scale: i8,
    precision: u8,
    scale: i8,
}

impl DecimalArithmetic {
    /// Prepares the operation.
    pub(crate) fn new(op: DecimalOp, left_scale: i8, right_scale: i8, (precision, scale): (u8, i8)) -> Self {
        Self { op, left_scale, right_scale, precision, scale }
    }

    /// The unscaled result; the divisor of a division or remainder is not zero.
    pub(crate) fn evaluate(&self, left: i128, right: i128) -> Option<i128> {
        let result = match self.narrow(left, right) {
            Some(value) => value,
            None => self.wide(left, right)?.to_i128()?,
        };
        is_validate_decimal_precision(result, self.precision).then_some(result)
    }

    fn narrow(&self, left: i128, right: i128) -> Option<i128> {
        let common = self.left_scale.max(self.right_scale);
        let aligned = || {
            Some((
                left.checked_mul(pow10(common - self.left_scale)?)?,
                right.checked_mul(pow10(common - self.right_scale)?)?,
            ))
        };
        match self.op {
            DecimalOp::Add => {
                let (left, right) = aligned()?;
                rescaled(left.checked_add(right)?, common, self.scale)
            }
            DecimalOp::Subtract => {
                let (left, right) = aligned()?;
                rescaled(left.checked_sub(right)?, common, self.scale)
            }
            DecimalOp::Multiply => {
                rescaled(left.checked_mul(right)?, self.left_scale.checked_add(self.right_scale)?, self.scale)
            }
            DecimalOp::Divide => {
                let shift = i32::from(self.scale) - i32::from(self.left_scale) + i32::from(self.right_scale);
                if shift < 0 {
                    return None;
                }
                Some(divided(left.checked_mul(pow10(i8::try_from(shift).ok()?)?)?, right))
            }
            DecimalOp::Remainder => {
                let (left, right) = aligned()?;
                rescaled(left.checked_rem(right)?, common, self.scale)
            }
            DecimalOp::PositiveRemainder => {
                let (left, right) = aligned()?;
                let rest = left.checked_rem(right)?;
                let rest = if rest < 0 { rest.checked_add(right)?.checked_rem(right)? } else { rest };
                rescaled(rest, common, self.scale)
            }
        }
    }

    fn wide(&self, left: i128, right: i128) -> Option<i256> {
        let (left_scale, right_scale, scale) =
            (i32::from(self.left_scale), i32::from(self.right_scale), i32::from(self.scale));
        let common = left_scale.max(right_scale);
        let (left, right) = (i256::from_i128(left), i256::from_i128(right));
        let aligned_left = || left.checked_mul(pow10_wide(common - left_scale)?);
        let aligned_right = || right.checked_mul(pow10_wide(common - right_scale)?);
        match self.op {
            DecimalOp::Add => rescaled_wide(aligned_left()?.checked_add(aligned_right()?)?, common, scale),
            DecimalOp::Subtract => rescaled_wide(aligned_left()?.checked_sub(aligned_right()?)?, common, scale),
            DecimalOp::Multiply => rescaled_wide(left.checked_mul(right)?, left_scale + right_scale, scale),
            DecimalOp::Divide => {
                let shift = scale - left_scale + right_scale;
                if shift >= 0 {
                    divided_wide(left.checked_mul(pow10_wide(shift)?)?, right)
                } else {
                    divided_wide(left, right.checked_mul(pow10_wide(-shift)?)?)
                }
            }
            DecimalOp::Remainder => rescaled_wide(aligned_left()?.checked_rem(aligned_right()?)?, common, scale),
            DecimalOp::PositiveRemainder => {
                let divisor = aligned_right()?;
                let rest = aligned_left()?.checked_rem(divisor)?;
                let rest = if rest.is_negative() { rest.checked_add(divisor)?.checked_rem(divisor)? } else { rest };
                rescaled_wide(rest, common, scale)
            }
        }
    }

    /// The integral part of the quotient.
    pub(crate) fn integral_quotient(&self, left: i128, right: i128) -> Option<i128> {
        let common = i32::from(self.left_scale.max(self.right_scale));
        let left = i256::from_i128(left).checked_mul(pow10_wide(common - i32::from(self.left_scale))?)?;
        let right = i256::from_i128(right).checked_mul(pow10_wide(common - i32::from(self.right_scale))?)?;
        left.checked_div(right)?.to_i128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_rounded_half_up_away_from_zero() {
        let divide = DecimalArithmetic::new(DecimalOp::Divide, 3, 2, (21, 12));
        assert_eq!(divide.evaluate(2_250, 7), Some(32_142_857_142_857));
        assert_eq!(divide.evaluate(-7_125, 250), Some(-2_850_000_000_000));
        assert_eq!(rescaled(1_005, 3, 2), Some(101));
        assert_eq!(rescaled(-1_005, 3, 2), Some(-101));
        assert_eq!(rescaled(1_004, 3, 2), Some(100));
    }

    #[test]
    fn products_wider_than_128_bits_are_rounded_to_the_result_scale() {
        let nines = 10_i128.pow(37);
        let multiply = DecimalArithmetic::new(DecimalOp::Multiply, 20, 20, (38, 6));
        assert_eq!(multiply.evaluate(nines, 10_i128.pow(20)), Some(10_i128.pow(23)));
        assert_eq!(multiply.evaluate(nines, nines), None);
    }

    #[test]
    fn a_sum_with_too_many_digits_has_no_result() {
        let add = DecimalArithmetic::new(DecimalOp::Add, 0, 0, (38, 0));
        assert_eq!(add.evaluate(10_i128.pow(38) - 1, 1), None);
        assert_eq!(add.evaluate(10_i128.pow(38) - 2, 1), Some(10_i128.pow(38) - 1));
    }

    #[test]
    fn the_positive_remainder_takes_the_divisors_sign_only_when_needed() {
        let pmod = DecimalArithmetic::new(DecimalOp::PositiveRemainder, 1, 0, (3, 1));
        assert_eq!(pmod.evaluate(-75, 2), Some(5));
        assert_eq!(pmod.evaluate(75, 2), Some(15));
    }
}
