//! The gap of a session as its row says it: an interval string.
//!
//! Strict, as Spark's cast of a string to an interval: what is no interval is no gap, and its row is in no session. The
//! lenient spellings of durations are for literals, where a mistake can be told.

use crate::functions::text::time::calendar::shift;
use arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::Result;

/// A gap: months and days follow the calendar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Gap {
    months: i32,
    days: i32,
    micros: i64,
}

impl Gap {
    pub(crate) fn of_micros(micros: i64) -> Self {
        Self { micros, ..Self::default() }
    }

    pub(crate) fn of_interval(interval: IntervalMonthDayNano) -> Self {
        Self { months: interval.months, days: interval.days, micros: interval.nanoseconds / 1000 }
    }

    /// The time one gap after `time`, in microseconds.
    ///
    /// # Errors
    /// When it leaves the range of TIMESTAMP.
    pub(crate) fn after(self, time: i64) -> Result<i64> {
        shift(time, i64::from(self.months), i64::from(self.days), self.micros)
    }

    /// Whether every time lies before the one that is a gap after it.
    pub(crate) fn is_ahead(self) -> bool {
        self.months >= 0 && self.days >= 0 && self.micros >= 0 && self != Self::default()
    }

    /// Parses `[interval] [sign] number unit …`; only seconds may have a fraction.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let body = match lower.strip_prefix("interval") {
            Some(body) if body.starts_with(char::is_whitespace) => body,
            Some(_) => return None,
            None => &lower,
        };
        let mut rest = body.trim_start();
        if rest.is_empty() {
            return None;
        }
        let mut gap = Self::default();
        while !rest.is_empty() {
            let (is_negative, unsigned) = match rest.strip_prefix('-') {
                Some(unsigned) => (true, unsigned),
                None => (false, rest.strip_prefix('+').unwrap_or(rest)),
            };
            let (number, after) = unsigned.trim_start().split_once(char::is_whitespace)?;
            let after = after.trim_start();
            let (unit, next) = after.split_once(char::is_whitespace).unwrap_or((after, ""));
            gap.add(is_negative, number, unit)?;
            rest = next.trim_start();
        }
        Some(gap)
    }

    fn add(&mut self, is_negative: bool, number: &str, unit: &str) -> Option<()> {
        let (whole, fraction) = match number.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (number, None),
        };
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || (whole.is_empty() && fraction.is_none_or(str::is_empty)) {
            return None;
        }
        let sign = if is_negative { -1 } else { 1 };
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()?.checked_mul(sign)? };
        let unit = unit.strip_suffix('s').unwrap_or(unit);
        let micros = match unit {
            "year" | "month" => {
                let months = i32::try_from(whole.checked_mul(if unit == "year" { 12 } else { 1 })?).ok()?;
                self.months = self.months.checked_add(months)?;
                return fraction.is_none().then_some(());
            }
            "week" | "day" => {
                let days = i32::try_from(whole.checked_mul(if unit == "week" { 7 } else { 1 })?).ok()?;
                self.days = self.days.checked_add(days)?;
                return fraction.is_none().then_some(());
            }
            "hour" => 3_600_000_000,
            "minute" => 60_000_000,
            "second" => 1_000_000,
            "millisecond" => 1_000,
            "microsecond" => 1,
            _ => return None,
        };
        let part = match fraction {
            None => 0,
            Some(digits) if unit == "second" && is_digits(digits) && digits.len() <= 9 => {
                sign * format!("{digits:0<6}")[..6].parse::<i64>().ok()?
            }
            Some(_) => return None,
        };
        self.micros = self.micros.checked_add(whole.checked_mul(micros)?)?.checked_add(part)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_sparks_interval_strings() {
        for (text, months, days, micros) in [
            ("5 minutes", 0, 0, 300_000_000),
            (" Interval 1 HOUR  -30 minutes ", 0, 0, 1_800_000_000),
            ("- 5 minutes", 0, 0, -300_000_000),
            ("1.5 seconds", 0, 0, 1_500_000),
            ("-.000001 second", 0, 0, -1),
            ("1 year 2 months 1 week 1 day", 14, 8, 0),
            ("250 milliseconds 7 microseconds", 0, 0, 250_007),
            ("0 seconds", 0, 0, 0),
        ] {
            assert_eq!(Gap::parse(text), Some(Gap { months, days, micros }), "{text}");
        }
        for text in [
            "",
            "interval",
            "intervall 5 minutes",
            "5",
            "5minutes",
            "5 m",
            "1.5 minutes",
            "five minutes",
            "5 minutes and",
            ". seconds",
            "1 . seconds",
            "99999999999999999999 days",
            "9999999999 days",
        ] {
            assert_eq!(Gap::parse(text), None, "{text}");
        }
    }

    #[test]
    fn months_follow_the_calendar() {
        let january_31 = 30 * 86_400_000_000;
        let a_month = Gap::parse("1 month").unwrap();
        assert_eq!(a_month.after(january_31).unwrap(), 58 * 86_400_000_000);
        assert!(a_month.after(i64::MAX - 1).is_err());
    }
}
