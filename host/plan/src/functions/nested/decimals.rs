//! Decimals in texts that carry values, as JSON and CSV read them: digits, a point, an exponent, and nothing around them.

/// The unscaled number, rounded half up to the scale; `None` when it has more digits than the type.
pub(super) fn unscaled(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    // The digits as one number, which is to be shifted by some places.
    let shift = i64::from(scale) + i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
    let digits: String = whole.chars().chain(fraction.chars()).skip_while(|&c| c == '0').collect();
    let limit = 10_i128.checked_pow(u32::from(precision))?;
    let unscaled = if digits.is_empty() {
        0
    } else if shift >= 0 {
        if digits.len() > 38 || shift > 38 {
            return None;
        }
        digits.parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)?
    } else {
        let dropped = usize::try_from(-shift).ok()?;
        if dropped > digits.len() {
            0
        } else {
            let (kept, rest) = digits.split_at(digits.len() - dropped);
            let kept: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
            kept + i128::from(rest.starts_with(|c| c >= '5'))
        }
    };
    (unscaled < limit).then_some(if negative { -unscaled } else { unscaled })
}
