//! Writing numbers, dates and timestamps without a pattern, as casts to STRING do.
//!
//! Where it stands: implicit casts of arguments to STRING, `from_unixtime` without a pattern.
//!
//! Rule of its life: appends to the row's scratch text, never fails.

use std::fmt::Write as _;

use super::calendar::{DAY, HOUR, MINUTE, SECOND, civil};

/// `2024-05-01`; years beyond four digits carry their sign.
pub(crate) fn write_date(days: i64, out: &mut String) {
    let (year, month, day) = civil(days);
    write_year(year, 4, out);
    // Writing to a String cannot fail.
    let _ = write!(out, "-{month:02}-{day:02}");
}

/// A year padded to `width` digits, with a sign when it is negative or longer.
pub(crate) fn write_year(year: i64, width: usize, out: &mut String) {
    if year < 0 {
        out.push('-');
    } else if year.checked_ilog10().map_or(1, |l| l as usize + 1) > width && width >= 4 {
        out.push('+');
    }
    let _ = write!(out, "{:0width$}", year.unsigned_abs());
}

/// `2024-05-01 12:00:00.25`, the fraction without trailing zeros.
pub(crate) fn write_timestamp(micros: i64, out: &mut String) {
    write_date(micros.div_euclid(DAY), out);
    let time = micros.rem_euclid(DAY);
    let _ = write!(out, " {:02}:{:02}:{:02}", time / HOUR, time % HOUR / MINUTE, time % MINUTE / SECOND);
    let fraction = time % SECOND;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// The shortest text that reads back as the same DOUBLE: plain from 0.001 to 10^7, else with an exponent.
pub(crate) fn write_double(value: f64, out: &mut String) {
    let size = value.abs();
    if value.is_nan() {
        out.push_str("NaN");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    } else if size == 0.0 || (1e-3..1e7).contains(&size) {
        let _ = write!(out, "{value:?}");
    } else {
        write_scientific(&format!("{value:e}"), out);
    }
}

/// As [`write_double`], of a FLOAT.
pub(crate) fn write_float(value: f32, out: &mut String) {
    let size = value.abs();
    if value.is_finite() && (size == 0.0 || (1e-3..1e7).contains(&size)) {
        let _ = write!(out, "{value:?}");
    } else if value.is_finite() {
        write_scientific(&format!("{value:e}"), out);
    } else {
        write_double(f64::from(value), out);
    }
}

fn write_scientific(text: &str, out: &mut String) {
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            out.push_str(mantissa);
            if !mantissa.contains('.') {
                out.push_str(".0");
            }
            out.push('E');
            out.push_str(exponent);
        }
        None => out.push_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(value: f64) -> String {
        let mut out = String::new();
        write_double(value, &mut out);
        out
    }

    #[test]
    fn doubles_change_to_an_exponent_outside_the_plain_range() {
        for (value, text) in [
            (1.0, "1.0"),
            (1e7, "1.0E7"),
            (9_999_999.0, "9999999.0"),
            (1e-4, "1.0E-4"),
            (-0.0, "-0.0"),
            (1.25e10, "1.25E10"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn timestamps_drop_trailing_zeros_of_the_fraction() {
        let mut out = String::new();
        write_timestamp(-500_000, &mut out);
        assert_eq!(out, "1969-12-31 23:59:59.5");
    }
}
