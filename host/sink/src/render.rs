//! Values as Spark writes them: numbers in Java's form, dates and times in ISO's.
//!
//! Shared by the connectors that write text; what stands around a value is their business.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Timelike};

/// A double with the fewest digits that read back as the same: `1.0`, `1.0E10`, `NaN`.
pub(crate) fn double(value: f64) -> String {
    let plain = (1e-3..1e7).contains(&value.abs());
    java(
        value.is_nan(),
        value.is_infinite(),
        value < 0.0,
        value == 0.0 || plain,
        value.to_string(),
        format!("{value:e}"),
    )
}

/// As [`double`], for a float.
pub(crate) fn float(value: f32) -> String {
    let plain = (1e-3..1e7).contains(&value.abs());
    java(
        value.is_nan(),
        value.is_infinite(),
        value < 0.0,
        value == 0.0 || plain,
        value.to_string(),
        format!("{value:e}"),
    )
}

fn java(nan: bool, infinite: bool, negative: bool, plain: bool, digits: String, scientific: String) -> String {
    if nan {
        return "NaN".to_owned();
    }
    if infinite {
        return if negative { "-Infinity" } else { "Infinity" }.to_owned();
    }
    if plain {
        return if digits.contains('.') { digits } else { digits + ".0" };
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let fraction = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{fraction}E{exponent}")
}

/// `2024-05-01`.
pub(crate) fn date(days: i32) -> String {
    let date = NaiveDate::default().checked_add_signed(chrono::TimeDelta::days(days.into()));
    date.map_or_else(
        || format!("{days} days"),
        |date| format!("{}-{:02}-{:02}", year(date.year()), date.month(), date.day()),
    )
}

fn year(year: i32) -> String {
    if year > 9999 {
        format!("+{year}")
    } else if year < 0 {
        format!("-{:04}", -year)
    } else {
        format!("{year:04}")
    }
}

/// `2024-05-01 12:00:00.25`: no zeros at the end of the fraction.
pub(crate) fn timestamp(micros: i64) -> String {
    let Some(time) = time(micros) else { return format!("{micros} microseconds") };
    let mut text = join(&time, ' ');
    let fraction = time.nanosecond() / 1000;
    if fraction > 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text
}

/// `2024-05-01T12:00:00.250`, without a zone.
pub(crate) fn iso_timestamp(micros: i64) -> String {
    match time(micros) {
        Some(time) => format!("{}.{:03}", join(&time, 'T'), time.nanosecond() / 1_000_000),
        None => format!("{micros} microseconds"),
    }
}

fn time(micros: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|time| time.naive_utc())
}

fn join(time: &NaiveDateTime, between: char) -> String {
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    format!("{}-{:02}-{:02}{between}{hour:02}:{minute:02}:{second:02}", year(time.year()), time.month(), time.day())
}

/// The microseconds of a timestamp of any unit.
pub(crate) fn micros(array: &dyn Array, unit: TimeUnit, row: usize) -> i64 {
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row).saturating_mul(1_000_000),
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row).saturating_mul(1000),
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(row),
        TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1000),
    }
}

/// Base64 with the standard alphabet and padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().chain([0, 0].iter()).take(3).fold(0_usize, |word, byte| word << 8 | usize::from(*byte));
        for place in 0..4 {
            let letter = char::from(ALPHABET[word >> (18 - 6 * place) & 63]);
            text.push(if place <= group.len() { letter } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_have_javas_form() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.001, "0.001"),
            (0.0009, "9.0E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (-1.5e10, "-1.5E10"),
            (1.25e-7, "1.25E-7"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double(value), text);
        }
        assert_eq!(float(0.1), "0.1");
        assert_eq!(float(1.5e9), "1.5E9");
    }

    #[test]
    fn times_and_bytes_have_their_forms() {
        assert_eq!(timestamp(1_714_564_800_000_000), "2024-05-01 12:00:00");
        assert_eq!(timestamp(1_714_564_800_250_000), "2024-05-01 12:00:00.25");
        assert_eq!(timestamp(-1), "1969-12-31 23:59:59.999999");
        assert_eq!(iso_timestamp(1_714_564_800_250_999), "2024-05-01T12:00:00.250");
        assert_eq!(timestamp(i64::MAX), format!("{} microseconds", i64::MAX));
        assert_eq!(date(19_844), "2024-05-01");
        assert_eq!(date(i32::MAX), format!("{} days", i32::MAX));
        assert_eq!(["", "f", "fo", "foo"].map(|text| base64(text.as_bytes())), ["", "Zg==", "Zm8=", "Zm9v"]);
    }
}
