//! Text into numbers, dates and times by Spark's cast rules, shared by the decoders.
//!
//! Every function answers `None` for text that is no such value; none of them panics.

use chrono::NaiveDate;

/// Days since 1970 of `yyyy`, `yyyy-[m]m`, `yyyy-[m]m-[d]d`, the last also with a blank or `T` and more behind it.
pub fn parse_date(text: &str) -> Option<i32> {
    let text = text.trim();
    let body = match text.find([' ', 'T']) {
        Some(end) if text[..end].trim_start_matches(['+', '-']).matches('-').count() == 2 => &text[..end],
        Some(_) => return None,
        None => text,
    };
    days(body)
}

/// Days since 1970 of a date without anything behind it.
fn days(text: &str) -> Option<i32> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = digits.split('-');
    let year = parts.next()?;
    let year = number(year, 4, 7)? as i32 * sign;
    let month = parts.next().map_or(Some(1), |part| number(part, 1, 2))?;
    let day = parts.next().map_or(Some(1), |part| number(part, 1, 2))?;
    if parts.next().is_some() {
        return None;
    }
    let since_1970 = NaiveDate::from_ymd_opt(year, month, day)?.signed_duration_since(NaiveDate::default());
    i32::try_from(since_1970.num_days()).ok()
}

/// An unsigned number of `least` to `most` ASCII digits.
fn number(text: &str, least: usize, most: usize) -> Option<u32> {
    let fits = (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

/// Microseconds since 1970 of a date, or of a date and `[h]h[:[m]m[:[s]s[.fraction][zone]]]` behind a blank or
/// `T`. Without a zone the time is UTC; zones are `Z`, `UTC`, `GMT`, `UT` and offsets.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let (local, offset_s) = parse_parts(text)?;
    local.checked_sub(offset_s.unwrap_or(0).checked_mul(1_000_000)?)
}

/// As [`parse_timestamp`], for a timestamp without time zone: text that names a zone is refused.
pub fn parse_timestamp_ntz(text: &str) -> Option<i64> {
    let (local, offset_s) = parse_parts(text)?;
    offset_s.is_none().then_some(local)
}

fn parse_parts(text: &str) -> Option<(i64, Option<i64>)> {
    let text = text.trim();
    let (date, time) = match text.find([' ', 'T']) {
        None => (text, ""),
        Some(at) => (&text[..at], &text[at + 1..]),
    };
    let midnight = i64::from(days(date)?).checked_mul(86_400_000_000)?;
    if time.is_empty() {
        return Some((midnight, None));
    }
    let (clock, zone) = split_zone(time)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.split(':');
    let hour = number(parts.next()?, 1, 2)?;
    let minute = parts.next().map(|part| number(part, 1, 2));
    let second = parts.next().map(|part| number(part, 1, 2));
    let has_seconds = second.is_some();
    if parts.next().is_some() || (!has_seconds && (!fraction.is_empty() || zone.is_some())) {
        return None;
    }
    let (minute, second) = (minute.unwrap_or(Some(0))?, second.unwrap_or(Some(0))?);
    if hour > 23 || minute > 59 || second > 59 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut micros: i64 = 0;
    for place in 0..6 {
        micros = micros * 10 + fraction.as_bytes().get(place).map_or(0, |byte| i64::from(byte - b'0'));
    }
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    let local = midnight.checked_add(seconds * 1_000_000 + micros)?;
    Some((local, zone))
}

/// The clock part and the offset (seconds east) that `time` ends with.
fn split_zone(time: &str) -> Option<(&str, Option<i64>)> {
    match time.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')) {
        None => Some((time, None)),
        Some(at) => Some((&time[..at], Some(parse_zone(time[at..].trim())?))),
    }
}

/// Seconds east of UTC of a zone that has a fixed offset.
fn parse_zone(zone: &str) -> Option<i64> {
    let offset = ["UTC", "GMT", "UT"].iter().find_map(|name| zone.strip_prefix(name)).unwrap_or(zone);
    if offset.is_empty() {
        return (!zone.is_empty()).then_some(0);
    }
    if offset == "Z" {
        return (zone == "Z").then_some(0);
    }
    let (sign, digits) = match offset.as_bytes()[0] {
        b'+' => (1, &offset[1..]),
        b'-' => (-1, &offset[1..]),
        _ => return None,
    };
    let (hours, minutes, seconds) = if digits.contains(':') {
        let mut parts = digits.split(':');
        let hours = number(parts.next()?, 1, 2)?;
        let minutes = number(parts.next()?, 1, 2)?;
        let seconds = parts.next().map_or(Some(0), |part| number(part, 2, 2))?;
        if parts.next().is_some() {
            return None;
        }
        (hours, minutes, seconds)
    } else {
        number(digits, 1, 6)?;
        match digits.len() {
            1 | 2 => (number(digits, 1, 2)?, 0, 0),
            4 => (number(&digits[..2], 2, 2)?, number(&digits[2..], 2, 2)?, 0),
            6 => (number(&digits[..2], 2, 2)?, number(&digits[2..4], 2, 2)?, number(&digits[4..], 2, 2)?),
            _ => return None,
        }
    };
    let total = i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds);
    (minutes < 60 && seconds < 60 && total <= 18 * 3600).then_some(sign * total)
}

/// The unscaled value of a decimal of that precision and scale, rounded half up; `None` when it does not fit.
pub fn parse_decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let text = text.trim();
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], body[at + 1..].parse::<i64>().ok()?),
        None => (body, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).skip_while(|byte| *byte == b'0').collect();
    if digits.is_empty() {
        return Some(0);
    }
    let shift = exponent.checked_sub(fraction.len() as i64)?.checked_add(i64::from(scale))?;
    let kept = (digits.len() as i64).checked_add(shift)?;
    if kept > i64::from(precision) {
        return None;
    }
    let mut value: i128 = 0;
    for place in 0..kept.max(0) as usize {
        value = value * 10 + digits.get(place).map_or(0, |byte| i128::from(byte - b'0'));
    }
    if kept >= 0 && digits.get(kept as usize).is_some_and(|byte| *byte >= b'5') {
        value += 1;
    }
    if value >= 10_i128.checked_pow(u32::from(precision))? {
        return None;
    }
    Some(if negative { -value } else { value })
}

/// Java's names of the special doubles.
pub(crate) fn special_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "+INF" | "+Infinity" | "Infinity" | "INF" => Some(f64::INFINITY),
        "-INF" | "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_the_forms_of_a_cast() {
        for (text, days) in [
            ("1970-01-01", Some(0)),
            ("1970-1-2", Some(1)),
            ("1971", Some(365)),
            ("1970-02", Some(31)),
            (" 1970-01-02T10:00 ", Some(1)),
            ("1970-01-02 anything", Some(1)),
            ("-0001-01-01", Some(-719_893)),
            ("1970-13-01", None),
            ("70-01-01", None),
            ("1970-01-01-01", None),
            ("1970-01 x", None),
            ("", None),
        ] {
            assert_eq!(parse_date(text), days, "{text}");
        }
    }

    #[test]
    fn timestamps_with_and_without_zone() {
        for (text, micros) in [
            ("1970-01-01T00:00:01Z", Some(1_000_000)),
            ("1970-01-01 00:00:01.25", Some(1_250_000)),
            ("1970-01-01T00:00:01.1234567Z", Some(1_123_456)),
            ("1970-01-01T01:00:00+01:00", Some(0)),
            ("1970-01-01T01:00:00 UTC+1", Some(0)),
            ("1970-01-01T00:00:00-0030", Some(1_800_000_000)),
            ("1970-01-01 1", Some(3_600_000_000)),
            ("1970-01-01T00:01", Some(60_000_000)),
            ("1970", Some(0)),
            ("1970-01-01T24:00:00Z", None),
            ("1970-01-01T00:00Z", None),
            ("1970-01-01T00:00:00Zulu", None),
            ("1970-01-01T00:00:00+19:00", None),
            ("yesterday", None),
            ("９９９９-01-01", None),
            ("9999999-01-01", None),
        ] {
            assert_eq!(parse_timestamp(text), micros, "{text}");
        }
        assert_eq!(parse_timestamp_ntz("1970-01-01T00:00:01"), Some(1_000_000));
        assert_eq!(parse_timestamp_ntz("1970-01-01T00:00:01Z"), None);
    }

    #[test]
    fn decimals_round_half_up_and_must_fit() {
        for (text, value) in [
            ("1.25", Some(125)),
            ("1.255", Some(126)),
            ("-1.255", Some(-126)),
            ("1e2", Some(10_000)),
            ("999.994", Some(99_999)),
            ("999.995", None),
            ("0.004", Some(0)),
            ("0.005", Some(1)),
            ("0.0005", Some(0)),
            ("1e-400", Some(0)),
            ("1e400", None),
            ("1e99999999999999999999", None),
            (".5", Some(50)),
            (".", None),
            ("1,5", None),
            ("", None),
        ] {
            assert_eq!(parse_decimal(text, 5, 2), value, "{text}");
        }
        assert_eq!(parse_decimal("99999999999999999999999999999999999999", 38, 0), Some(10_i128.pow(38) - 1));
    }
}
