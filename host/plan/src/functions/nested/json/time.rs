//! Dates and times in JSON strings: `2024-05-01`, `2024-05-01T12:00:00.25+02:00`, `2024-05-01 12:00`.

use chrono::{NaiveDate, NaiveTime};

const DAY_US: i64 = 86_400_000_000;

/// Days since 1970 of a date; a time behind it is cut off.
pub(super) fn date(text: &str) -> Option<i32> {
    let text = text.trim();
    let (date, _) = split(text);
    let days = calendar_day(date)?.signed_duration_since(NaiveDate::default()).num_days();
    i32::try_from(days).ok()
}

/// Microseconds since 1970 of a time in UTC, or in the zone that is written behind it.
pub(super) fn timestamp(text: &str) -> Option<i64> {
    let (date, rest) = split(text.trim());
    let days = calendar_day(date)?.signed_duration_since(NaiveDate::default()).num_days();
    let (clock, offset) = rest.map_or(Some((0, 0)), time_of_day)?;
    days.checked_mul(DAY_US)?.checked_add(clock)?.checked_sub(offset)
}

fn split(text: &str) -> (&str, Option<&str>) {
    match text.find(['T', ' ']) {
        Some(at) => (&text[..at], Some(text[at + 1..].trim_start())),
        None => (text, None),
    }
}

/// `year`, `year-month` or `year-month-day`.
fn calendar_day(text: &str) -> Option<NaiveDate> {
    let mut parts = text.split('-');
    let year = parts.next().filter(|part| (4..=6).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()))?;
    let mut small = || match parts.next() {
        None => Some(1),
        Some(part) if (1..=2).contains(&part.len()) => part.parse::<u32>().ok(),
        Some(_) => None,
    };
    let (month, day) = (small()?, small()?);
    if parts.next().is_some() {
        return None;
    }
    NaiveDate::from_ymd_opt(year.parse().ok()?, month, day)
}

/// Microseconds of the clock time, and of the zone's offset.
fn time_of_day(text: &str) -> Option<(i64, i64)> {
    let zone_at = text.find(['Z', '+', '-', ' ', 'U', 'G']).unwrap_or(text.len());
    let (clock, zone) = (&text[..zone_at], text[zone_at..].trim());
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let parts: Vec<u32> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let (hour, minute, second) = match parts.as_slice() {
        [hour, minute] if fraction.is_empty() => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}")[..6].parse().ok()?;
    NaiveTime::from_hms_opt(hour, minute, second)?;
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Some((seconds * 1_000_000 + micros, offset(zone)?))
}

/// Microseconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    let zone = zone.strip_prefix("UTC").or_else(|| zone.strip_prefix("GMT")).unwrap_or(zone);
    if zone.is_empty() || zone == "Z" {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if rest.len() == 4 => rest.split_at_checked(2)?,
        None => (rest, "0"),
    };
    let (hours, minutes) = (hours.parse::<i64>().ok()?, minutes.parse::<i64>().ok()?);
    ((0..=18).contains(&hours) && (0..60).contains(&minutes)).then_some(sign * (hours * 60 + minutes) * 60_000_000)
}
