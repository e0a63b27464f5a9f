//! Durations as Spark users write them: `10 seconds`, `5 minutes`, `1 hour 30 minutes`, `250 ms`.
//!
//! Source of the semantics: Spark's interval strings without months and years, which have no fixed length.

/// The text is no duration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not a duration: {reason}")]
pub struct DurationError {
    text: String,
    reason: String,
}

/// Parses a duration into microseconds; negative parts are allowed (a window's start offset may be).
///
/// A leading `interval` is accepted. Units: microseconds, milliseconds, seconds, minutes, hours, days,
/// weeks, singular, plural and the short forms `us ms s m h d`.
///
/// # Errors
/// When a number or unit is missing or unknown; months and years are named as not allowed.
pub fn parse_micros(text: &str) -> Result<i64, DurationError> {
    let fail = |reason: &str| DurationError { text: text.to_owned(), reason: reason.to_owned() };
    let lower = text.trim().to_ascii_lowercase();
    let body = lower.strip_prefix("interval").unwrap_or(&lower).trim();
    let mut rest = body.trim_matches('\'').trim();
    if rest.is_empty() {
        return Err(fail("it is empty; write for example `10 seconds`"));
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits =
            rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+')).unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| fail("a number is expected before each unit"))?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let micros = match &rest[..letters] {
            "us" | "microsecond" | "microseconds" => 1.0,
            "ms" | "millisecond" | "milliseconds" => 1e3,
            "s" | "sec" | "secs" | "second" | "seconds" => 1e6,
            "m" | "min" | "mins" | "minute" | "minutes" => 60e6,
            "h" | "hour" | "hours" => 3600e6,
            "d" | "day" | "days" => 86_400e6,
            "week" | "weeks" => 604_800e6,
            "month" | "months" | "year" | "years" => {
                return Err(fail("months and years have no fixed length; use days or smaller units"));
            }
            "" => return Err(fail("a unit is missing; write for example `10 seconds`")),
            unit => return Err(fail(&format!("`{unit}` is no unit; use microseconds to weeks"))),
        };
        rest = rest[letters..].trim_start();
        let part = number * micros;
        if part.abs() >= i64::MAX as f64 {
            return Err(fail("it is too long"));
        }
        total = total.checked_add(part.round() as i64).ok_or_else(|| fail("it is too long"))?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_spark_users_write_them() {
        for (text, micros) in [
            ("10 seconds", 10_000_000),
            ("interval 5 minutes", 300_000_000),
            ("1 hour 30 minutes", 5_400_000_000),
            ("250ms", 250_000),
            ("-5 minutes", -300_000_000),
            ("0 seconds", 0),
            ("1 day", 86_400_000_000),
        ] {
            assert_eq!(parse_micros(text), Ok(micros), "{text}");
        }
        for text in ["", "ten", "10", "1 month", "5 parsecs", "99999999999999 weeks"] {
            assert!(parse_micros(text).is_err(), "{text}");
        }
    }
}
