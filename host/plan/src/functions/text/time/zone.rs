//! Time zones by name or offset, Java's short names among them, and moving between local time and UTC.
//!
//! Where it stands: under casts of text to TIMESTAMP and the `*_utc_timestamp` functions. Everything else here is UTC.
//!
//! Rule of its life: a local time that does not exist is moved later by the gap, one that exists twice is the earlier.

use arrow::array::timezone::Tz;
use chrono::{DateTime, NaiveDateTime, Offset, TimeZone};

use super::calendar::SECOND;

/// A time zone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Zone {
    /// A fixed number of seconds ahead of UTC.
    Fixed(i64),
    /// A region with its history of offsets.
    Region(Tz),
}

/// Java's short names of zones, `ZoneId.SHORT_IDS`; the last three are offsets all year.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
    ("EST", "-05:00"),
    ("MST", "-07:00"),
    ("HST", "-10:00"),
];

/// Reads `Z`, `UTC`, `GMT+8`, `+02:00`, `+2`, `-0330`, `Europe/Berlin`, `PST`.
pub(crate) fn zone(text: &str) -> Option<Zone> {
    let text = text.trim();
    let text = SHORT_NAMES.iter().find_map(|&(short, long)| (short == text).then_some(long)).unwrap_or(text);
    if matches!(text, "Z" | "UTC" | "GMT" | "UT") {
        return Some(Zone::Fixed(0));
    }
    for prefix in ["UTC", "GMT", "UT"] {
        if let Some(rest) = text.strip_prefix(prefix)
            && rest.starts_with(['+', '-'])
        {
            return fixed(rest).map(Zone::Fixed);
        }
    }
    if text.starts_with(['+', '-']) {
        return fixed(text).map(Zone::Fixed);
    }
    text.parse::<Tz>().ok().map(Zone::Region)
}

/// Seconds of `+h`, `+hh`, `+hhmm`, `+hh:mm`, `+hh:mm:ss`.
pub(crate) fn fixed(text: &str) -> Option<i64> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let parts: Vec<&str> = if digits.contains(':') {
        digits.split(':').collect()
    } else {
        match digits.len() {
            1 | 2 => vec![digits],
            4 => vec![digits.get(..2)?, digits.get(2..)?],
            6 => vec![digits.get(..2)?, digits.get(2..4)?, digits.get(4..)?],
            _ => return None,
        }
    };
    if parts.len() > 3 {
        return None;
    }
    let mut seconds = 0;
    for (part, unit) in parts.iter().zip([3600, 60, 1]) {
        if part.is_empty() || part.len() > 2 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let value: i64 = part.parse().ok()?;
        if unit < 3600 && value > 59 {
            return None;
        }
        seconds += value * unit;
    }
    (seconds <= 18 * 3600).then_some(sign * seconds)
}

impl Zone {
    /// Seconds ahead of UTC at an instant.
    pub(crate) fn offset_at(self, micros: i64) -> Option<i64> {
        match self {
            Self::Fixed(seconds) => Some(seconds),
            Self::Region(tz) => {
                let utc = naive(micros)?;
                Some(i64::from(tz.offset_from_utc_datetime(&utc).fix().local_minus_utc()))
            }
        }
    }

    /// The instant at which clocks of the zone show this local time.
    pub(crate) fn to_utc(self, local: i64) -> Option<i64> {
        let offset = match self {
            Self::Fixed(seconds) => seconds,
            Self::Region(tz) => match tz.offset_from_local_datetime(&naive(local)?).earliest() {
                Some(offset) => i64::from(offset.fix().local_minus_utc()),
                // In a gap the offset before it counts.
                None => self.offset_at(local.checked_sub(24 * 3600 * SECOND)?)?,
            },
        };
        local.checked_sub(offset * SECOND)
    }

    /// What clocks of the zone show at an instant.
    pub(crate) fn to_local(self, micros: i64) -> Option<i64> {
        micros.checked_add(self.offset_at(micros)? * SECOND)
    }
}

fn naive(micros: i64) -> Option<NaiveDateTime> {
    Some(DateTime::from_timestamp_micros(micros)?.naive_utc())
}

#[cfg(test)]
mod tests {
    use super::super::calendar::{DAY, HOUR, days_of};
    use super::*;

    #[test]
    fn offsets_are_read_in_all_their_spellings_and_refused_when_senseless() {
        for (text, seconds) in [("+2", 7200), ("+02:00", 7200), ("-0330", -12_600), ("+00:00", 0)] {
            assert_eq!(fixed(text), Some(seconds), "{text}");
        }
        for text in ["2", "+19:00", "+1:99", "+", "+é", "+1:2:3:4"] {
            assert_eq!(fixed(text), None, "{text}");
        }
        assert!(zone("Nowhere/City").is_none());
    }

    #[test]
    fn short_names_are_javas() {
        let summer = days_of(2024, 7, 1) * DAY;
        for (name, hours) in [("PST", -7), ("CST", -5), ("EST", -5), ("MST", -7), ("HST", -10), ("JST", 9)] {
            assert_eq!(zone(name).and_then(|zone| zone.offset_at(summer)), Some(hours * 3_600), "{name}");
        }
        for (name, region) in SHORT_NAMES {
            assert!(zone(name).is_some(), "{name} is {region}");
        }
    }

    #[test]
    fn a_local_time_in_the_gap_moves_later() {
        let berlin = zone("Europe/Berlin").unwrap();
        let gap = days_of(2024, 3, 31) * DAY + 2 * HOUR + HOUR / 2;
        assert_eq!(berlin.to_utc(gap), Some(days_of(2024, 3, 31) * DAY + HOUR + HOUR / 2));
        assert_eq!(berlin.to_local(days_of(2024, 7, 1) * DAY), Some(days_of(2024, 7, 1) * DAY + 2 * HOUR));
    }
}
