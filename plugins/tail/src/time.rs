//! Times as RFC 3339 writes them: `2026-05-01T09:00:00.25+02:00`.

use millstream_sdk::Timestamp;

/// The time that a text is, if it is one.
pub(crate) fn rfc3339(text: &str) -> Option<Timestamp> {
    let (date, rest) = (text.get(..10)?, text.get(10..)?);
    let rest = rest.strip_prefix(['T', 't'])?;
    let (clock, rest) = (rest.get(..8)?, rest.get(8..)?);
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(clock, ':')?;
    let is_date = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            (micros(rest.get(..digits)?)?, rest.get(digits..)?)
        }
        None => (0, rest),
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?;
    Some(Timestamp(seconds * 1_000_000 + fraction))
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let mut parts = text.split(between).map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    });
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

fn micros(digits: &str) -> Option<i64> {
    let cut = digits.get(..digits.len().min(6))?;
    let scale = 10_i64.pow(6 - u32::try_from(cut.len()).ok()?);
    Some(cut.parse::<i64>().ok()? * scale)
}

/// Seconds east of Greenwich.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
    let number = |text: &str| (text.len() == 2).then(|| text.parse::<i64>().ok()).flatten();
    Some(sign * (number(hours)? * 3600 + number(minutes)? * 60))
}

fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the day that comes and goes is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = |year: i64| 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    before(year) + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_what_they_are_in_greenwich() {
        let seconds = |text: &str| rfc3339(text).map(|at| at.0 as f64 / 1e6);
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(seconds("2026-05-01T09:00:00Z"), Some(1_777_626_000.0));
        assert_eq!(seconds("2026-05-01T09:00:00.25+02:00"), Some(1_777_618_800.25));
        assert_eq!(seconds("2024-02-29T23:59:59.123456789-00:30"), Some(1_709_252_999.123456));
        assert_eq!(seconds("1969-12-31T23:59:59Z"), Some(-1.0));
        for text in ["", "GET", "2026-05-01", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-05-01T24:00:00Z"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        for text in ["2026-05-01T09:00:00", "2026-05-01T09:00:00+2:00", "2026-05-01T09:00:00.Q", "+026-05-01T09:00:00Z"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(seconds("ä026-05-01T09:00:00Z"), None);
    }
}
