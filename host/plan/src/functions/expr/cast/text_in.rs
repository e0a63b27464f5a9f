//! Text as values: what a cast from STRING accepts.
//!
//! Pure functions from a trimmed-or-not string to a value or `None`; the caller decides whether `None` is an error.

use std::borrow::Cow;
use std::str::FromStr;

use super::calendar::{MICROS_PER_DAY, MICROS_PER_SECOND, days_from_civil};
use crate::functions::text::time::zone;

/// Strips blanks and control characters from both ends.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ' || ('\u{7f}'..='\u{9f}').contains(&c) || c.is_whitespace())
}

/// An integer; `fraction_allowed` (ANSI off) accepts and cuts off digits behind a point.
pub(crate) fn integer(text: &str, fraction_allowed: bool) -> Option<i64> {
    let text = trimmed(text);
    let whole = match text.split_once('.') {
        Some((whole, fraction)) if fraction_allowed && fraction.bytes().all(|b| b.is_ascii_digit()) => {
            if matches!(whole, "" | "+" | "-") {
                return (whole.is_empty() || !fraction.is_empty()).then_some(0);
            }
            whole
        }
        _ => text,
    };
    let digits = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    whole.parse().ok()
}

/// A double: Java's number syntax and the words for the special values.
pub(crate) fn double(text: &str) -> Option<f64> {
    numeric_text(text)?.parse().ok()
}

/// A float, rounded once from the text.
pub(crate) fn float(text: &str) -> Option<f32> {
    numeric_text(text)?.parse().ok()
}

fn numeric_text(text: &str) -> Option<Cow<'_, str>> {
    let text = trimmed(text);
    let bytes = text.as_bytes();
    let plain = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'+' | b'-' | b'e' | b'E');
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return Some(Cow::Borrowed(text));
    }
    let lower = text.to_ascii_lowercase();
    match lower.strip_prefix(['+', '-']).unwrap_or(&lower) {
        "inf" | "infinity" => return Some(Cow::Owned(lower)),
        "nan" if lower == "nan" => return Some(Cow::Owned(lower)),
        _ => {}
    }
    // Java's type suffix.
    let number = text.strip_suffix(['d', 'D', 'f', 'F'])?;
    let ends_well = number.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    (ends_well && number.bytes().all(|b| plain(&b))).then_some(Cow::Borrowed(number))
}

/// Why a text is no decimal of the asked type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoDecimal {
    /// Not a number.
    Malformed,
    /// A number with too many digits.
    TooLarge,
}

/// A decimal of the scale, rounded half up; the precision is the caller's to check.
pub(crate) fn decimal(text: &str, scale: i8) -> Result<i128, NoDecimal> {
    let text = trimmed(text);
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent: i64 = match exponent {
        None => 0,
        Some(digits) => i32::from_str(digits).map_err(|_| NoDecimal::Malformed)?.into(),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return Err(NoDecimal::Malformed);
    }
    // The digits d1 d2 … with the point behind `point` of them; `kept` of them are in front of the rounding place.
    let point = whole.len() as i64 + exponent;
    let kept = point + i64::from(scale);
    let mut value: i128 = 0;
    let mut round_up = false;
    for (index, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
        let digit = i128::from(digit - b'0');
        match (index as i64).cmp(&kept) {
            std::cmp::Ordering::Less => {
                value = value.checked_mul(10).and_then(|v| v.checked_add(digit)).ok_or(NoDecimal::TooLarge)?;
            }
            std::cmp::Ordering::Equal => round_up = digit >= 5,
            std::cmp::Ordering::Greater => break,
        }
    }
    let missing = kept - (whole.len() + fraction.len()) as i64;
    if missing > 0 && value != 0 {
        let factor = u32::try_from(missing).ok().and_then(|zeros| 10_i128.checked_pow(zeros));
        value = factor.and_then(|f| value.checked_mul(f)).ok_or(NoDecimal::TooLarge)?;
    }
    if round_up {
        value = value.checked_add(1).ok_or(NoDecimal::TooLarge)?;
    }
    Ok(if negative { -value } else { value })
}

/// A boolean word.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match trimmed(text).to_ascii_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// The day of `yyyy`, `yyyy-[m]m`, `yyyy-[m]m-[d]d` or the latter followed by a blank or `T` and anything.
pub(crate) fn date(text: &str) -> Option<i32> {
    let bytes = trimmed(text).as_bytes();
    let (sign, mut at) = match bytes.first()? {
        b'-' => (-1, 1),
        b'+' => (1, 1),
        _ => (1, 0),
    };
    let mut segments = [1_i64; 3];
    let (mut segment, mut value, mut digits) = (0, 0_i64, 0);
    let enough = |segment: usize, digits: usize| {
        if segment == 0 { (4..=7).contains(&digits) } else { (1..=2).contains(&digits) }
    };
    while at < bytes.len() && segment < 3 && !matches!(bytes[at], b' ' | b'T') {
        match bytes[at] {
            b'-' if segment < 2 => {
                if !enough(segment, digits) {
                    return None;
                }
                segments[segment] = value;
                (segment, value, digits) = (segment + 1, 0, 0);
            }
            digit @ b'0'..=b'9' if digits < 7 => {
                value = value * 10 + i64::from(digit - b'0');
                digits += 1;
            }
            _ => return None,
        }
        at += 1;
    }
    if !enough(segment, digits) || (segment < 2 && at < bytes.len()) {
        return None;
    }
    segments[segment] = value;
    days_from_civil(sign * segments[0], segments[1], segments[2]).and_then(|days| i32::try_from(days).ok())
}

/// Microseconds since 1970 of Spark's timestamp forms; a time alone is on `today` (days since 1970).
pub(crate) fn timestamp(text: &str, today: i64) -> Option<i64> {
    match local_timestamp(text, today)? {
        (local, None) => Some(local),
        (local, Some(name)) => zone::zone(trimmed(name))?.to_utc(local),
    }
}

/// As [`timestamp`], what clocks show there, and the zone or offset behind it.
pub(crate) fn local_timestamp(text: &str, today: i64) -> Option<(i64, Option<&str>)> {
    let text = trimmed(text);
    let bytes = text.as_bytes();
    let (sign, mut at) = match bytes.first()? {
        b'-' => (-1, 1),
        b'+' => (1, 1),
        _ => (1, 0),
    };
    let signed = at == 1;
    // Year, month, day, hour, minute, second, fraction.
    let mut segments = [1_i64, 1, 1, 0, 0, 0, 0];
    let (mut segment, mut value, mut digits) = (0, 0_i64, 0_usize);
    let (mut fraction_digits, mut time_only, mut zone) = (0, false, None);
    let enough = |segment: usize, digits: usize| match segment {
        0 => (4..=6).contains(&digits),
        6 => true,
        _ => (1..=2).contains(&digits),
    };
    while at < bytes.len() {
        let byte = bytes[at];
        if byte.is_ascii_digit() {
            if segment != 6 || digits < 6 {
                if digits >= 7 {
                    return None;
                }
                value = value * 10 + i64::from(byte - b'0');
                fraction_digits += u32::from(segment == 6);
            }
            digits += 1;
            at += 1;
            continue;
        }
        if at == 0 && byte == b'T' {
            time_only = true;
            segment = 3;
            at += 1;
            continue;
        }
        let next = match (segment, byte) {
            (0, b':') if !signed => {
                time_only = true;
                segment = 3;
                4
            }
            (0 | 1, b'-') => segment + 1,
            (2, b' ' | b'T') => 3,
            (3 | 4, b':') => segment + 1,
            (5, b'.') => 6,
            (5 | 6, _) => {
                zone = Some(text.get(at..)?);
                break;
            }
            _ => return None,
        };
        if !enough(segment, digits) {
            return None;
        }
        segments[segment] = value;
        (segment, value, digits) = (next, 0, 0);
        at += 1;
    }
    if !enough(segment, digits) {
        return None;
    }
    segments[segment] = value;
    let [year, month, day, hour, minute, second, fraction] = segments;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = fraction * 10_i64.pow(6 - fraction_digits.min(6));
    let days = if time_only { today } else { days_from_civil(sign * year, month, day)? };
    let local = days
        .checked_mul(MICROS_PER_DAY)?
        .checked_add(((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction)?;
    Some((local, zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_trim_blanks_and_refuse_anything_but_digits() {
        assert_eq!(integer(" 42 ", false), Some(42));
        assert_eq!(integer("+5", false), Some(5));
        assert_eq!(integer("-9223372036854775808", false), Some(i64::MIN));
        for bad in ["", "-", "3.9", "12x", "1 2", "0x1F", "9223372036854775808"] {
            assert_eq!(integer(bad, false), None, "{bad}");
        }
        assert_eq!(integer("3.9", true), Some(3));
        assert_eq!(integer("3.x", true), None);
    }

    #[test]
    fn doubles_know_exponents_suffixes_and_special_words() {
        assert_eq!(double(" 1e3 "), Some(1000.0));
        assert_eq!(double("1.5d"), Some(1.5));
        assert_eq!(double("-Infinity"), Some(f64::NEG_INFINITY));
        assert!(double("NaN").is_some_and(f64::is_nan));
        for bad in ["", "abc", "e", "1e", "-nan", "2024-01-31", "d"] {
            assert_eq!(double(bad), None, "{bad}");
        }
    }

    #[test]
    fn decimals_round_half_up_and_understand_exponents() {
        assert_eq!(decimal("1.005", 2), Ok(101));
        assert_eq!(decimal("-1.005", 2), Ok(-101));
        assert_eq!(decimal("0.004", 2), Ok(0));
        assert_eq!(decimal("0.0005", 2), Ok(0));
        assert_eq!(decimal("1.2e3", 1), Ok(12_000));
        assert_eq!(decimal("12e-3", 2), Ok(1));
        assert_eq!(decimal(".5", 0), Ok(1));
        assert_eq!(decimal("1e999999", 2), Err(NoDecimal::TooLarge));
        assert_eq!(decimal("x", 2), Err(NoDecimal::Malformed));
        assert_eq!(decimal(".", 2), Err(NoDecimal::Malformed));
    }

    #[test]
    fn dates_may_be_shortened_and_followed_by_a_time() {
        assert_eq!(date("2024"), Some(19_723));
        assert_eq!(date("2024-7"), Some(19_905));
        assert_eq!(date(" 2024-02-29 12:30:00"), Some(19_782));
        assert_eq!(date("2024-03-01T00:00:00.123+02:00"), Some(19_783));
        for bad in ["", "24", "2024-", "2024-02-30", "2024-1-1x", "99999999", "2024 "] {
            assert_eq!(date(bad).is_some(), bad == "2024 ", "{bad}");
        }
    }

    #[test]
    fn timestamps_know_fractions_zones_and_shortened_forms() {
        let day = 19_783 * MICROS_PER_DAY;
        assert_eq!(timestamp("2024-03-01T00:00:00.123+02:00", 0), Some(day - 7_200_000_000 + 123_000));
        assert_eq!(timestamp("2024-03-01 1:2:3", 0), Some(day + 3_723_000_000));
        assert_eq!(timestamp("2024-03", 0), Some(day));
        assert_eq!(timestamp("2024-03-01 00:00:00.1234567Z", 0), Some(day + 123_456));
        assert_eq!(timestamp("2024-03-01 00:00:00 UTC+1", 0), Some(day - 3_600_000_000));
        assert_eq!(timestamp("2024-03-01 01:00:00 Europe/Berlin", 0), Some(day));
        assert_eq!(timestamp("2024-03-01 09:00:00 JST", 0), Some(day));
        assert_eq!(timestamp("12:30", 1), Some(MICROS_PER_DAY + 45_000_000_000));
        for bad in
            ["", "abc", "12", "1.5", "1e3", "99999999999", "2024-03-01 25:00:00", "2024-03-01 00:00:00 Nowhere/X"]
        {
            assert_eq!(timestamp(bad, 0), None, "{bad}");
        }
    }

    #[test]
    fn a_time_that_clocks_leave_out_is_later() {
        let utc = timestamp("2024-03-10 07:30:00", 0);
        assert_eq!(timestamp("2024-03-10 02:30:00 America/New_York", 0), utc);
    }
}
