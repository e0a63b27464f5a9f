//! The proleptic Gregorian calendar as integers: days, months, weeks, and microseconds of UTC.
//!
//! Where it stands: under every function of dates and timestamps.
//!
//! Rule of its life: pure arithmetic over the whole range of the types, no library's narrower range; what leaves the
//! range is an error that says so.

use datafusion::common::{Result, exec_datafusion_err, exec_err};

/// Microseconds of one second.
pub(crate) const SECOND: i64 = 1_000_000;
/// Microseconds of one minute.
pub(crate) const MINUTE: i64 = 60 * SECOND;
/// Microseconds of one hour.
pub(crate) const HOUR: i64 = 60 * MINUTE;
/// Microseconds of one day.
pub(crate) const DAY: i64 = 24 * HOUR;

/// Days since 1970-01-01 of a date that is known to exist.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * 146_097 + day_of_cycle - 719_468
}

/// Year, month and day of days since 1970-01-01.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let cycle = days.div_euclid(146_097);
    let day_of_cycle = days.rem_euclid(146_097);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_cycle + cycle * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Whether the year has a 29th of February.
pub(crate) fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Number of days of a month.
pub(crate) fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of a date given by its parts, `None` when there is no such date.
pub(crate) fn checked_days(year: i64, month: i64, day: i64) -> Option<i64> {
    let exists = (1..=12).contains(&month) && day >= 1 && day <= month_length(year, month);
    (exists && year.abs() < 6_000_000).then(|| days_of(year, month, day))
}

/// Monday = 0 … Sunday = 6.
pub(crate) fn weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7)
}

/// 1 … 366.
pub(crate) fn day_of_year(days: i64) -> i64 {
    let (year, _, _) = civil(days);
    days - days_of(year, 1, 1) + 1
}

/// ISO year and week: weeks start on Monday, week 1 has the year's first Thursday.
pub(crate) fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - weekday(days) + 3;
    let (year, _, _) = civil(thursday);
    (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
}

/// Days moved by whole months; the day is clipped to the month's end.
pub(crate) fn add_months(days: i64, months: i64) -> i64 {
    let (year, month, day) = civil(days);
    let total = year * 12 + month - 1 + months;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    days_of(year, month, day.min(month_length(year, month)))
}

/// Days as a DATE.
pub(crate) fn date(days: i64) -> Result<i32> {
    i32::try_from(days)
        .map_err(|_| exec_datafusion_err!("[DATETIME_OVERFLOW] the date {days} days from 1970-01-01 is out of range"))
}

/// The date of an instant.
pub(crate) fn day_of(micros: i64) -> Result<i32> {
    date(micros.div_euclid(DAY))
}

/// The instant at which a date starts.
pub(crate) fn midnight(days: i64) -> Result<i64> {
    days.checked_mul(DAY).map_or_else(|| out_of_range(days), Ok)
}

fn out_of_range<T>(days: i64) -> Result<T> {
    exec_err!("[DATETIME_OVERFLOW] the timestamp {days} days from 1970-01-01 is out of range")
}

/// An instant moved by months (clipped), days and microseconds.
pub(crate) fn shift(micros: i64, months: i64, days: i64, extra: i64) -> Result<i64> {
    let mut day = micros.div_euclid(DAY);
    if months != 0 {
        day = add_months(day, months);
    }
    day.checked_add(days)
        .and_then(|day| day.checked_mul(DAY))
        .and_then(|start| start.checked_add(micros.rem_euclid(DAY)))
        .and_then(|moved| moved.checked_add(extra))
        .map_or_else(|| exec_err!("[DATETIME_OVERFLOW] the timestamp arithmetic leaves the range of TIMESTAMP"), Ok)
}

/// Whole months from one instant to another, towards zero. A day that has not come round to the earlier time of day does
/// not count.
pub(crate) fn months_between_whole(from: i64, to: i64) -> i64 {
    let from_day = from.div_euclid(DAY);
    let mut to_day = to.div_euclid(DAY);
    let (from_time, to_time) = (from.rem_euclid(DAY), to.rem_euclid(DAY));
    if to_day > from_day && to_time < from_time {
        to_day -= 1;
    } else if to_day < from_day && to_time > from_time {
        to_day += 1;
    }
    let packed = |days| {
        let (year, month, day) = civil(days);
        (year * 12 + month - 1) * 32 + day
    };
    (packed(to_day) - packed(from_day)) / 32
}

/// Length of a month when comparing fractions of months.
const MONTH_OF_31_DAYS: f64 = 31.0 * 86_400.0;

/// Months from `from` to `to` with Spark's rule: month ends and equal days of month count as whole months, any other
/// rest is a part of 31 days.
pub(crate) fn months_between(to: i64, from: i64, round: bool) -> f64 {
    let (day1, day2) = (to.div_euclid(DAY), from.div_euclid(DAY));
    let (y1, m1, d1) = civil(day1);
    let (y2, m2, d2) = civil(day2);
    #[expect(clippy::cast_precision_loss, reason = "months of the range of TIMESTAMP are far below 2^53")]
    let months = ((y1 - y2) * 12 + m1 - m2) as f64;
    if d1 == d2 || (d1 == month_length(y1, m1) && d2 == month_length(y2, m2)) {
        return months;
    }
    let (seconds1, seconds2) = (to.rem_euclid(DAY) / SECOND, from.rem_euclid(DAY) / SECOND);
    #[expect(clippy::cast_precision_loss, reason = "at most 31 days of seconds")]
    let rest = ((d1 - d2) * 86_400 + seconds1 - seconds2) as f64;
    let exact = months + rest / MONTH_OF_31_DAYS;
    if round { (exact * 1e8).round() / 1e8 } else { exact }
}

/// A unit to which dates and timestamps are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// No cut at all.
    Microsecond,
    /// 1000 microseconds.
    Millisecond,
    /// Seconds.
    Second,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
    /// Days.
    Day,
    /// Weeks that start on Monday.
    Week,
    /// Months.
    Month,
    /// Quarters.
    Quarter,
    /// Years.
    Year,
}

impl Unit {
    /// The unit of a truncation's name.
    pub(crate) fn of_truncation(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "MICROSECOND" => Self::Microsecond,
            "MILLISECOND" => Self::Millisecond,
            "SECOND" => Self::Second,
            "MINUTE" => Self::Minute,
            "HOUR" => Self::Hour,
            "DAY" | "DD" => Self::Day,
            "WEEK" => Self::Week,
            "MON" | "MONTH" | "MM" => Self::Month,
            "QUARTER" => Self::Quarter,
            "YEAR" | "YYYY" | "YY" => Self::Year,
            _ => return None,
        })
    }

    /// The first day of the week, month, quarter or year.
    pub(crate) fn cut_days(self, days: i64) -> i64 {
        match self {
            Self::Week => days - weekday(days),
            Self::Month => {
                let (_, _, day) = civil(days);
                days - day + 1
            }
            Self::Quarter => {
                let (year, month, _) = civil(days);
                days_of(year, (month - 1) / 3 * 3 + 1, 1)
            }
            Self::Year => {
                let (year, _, _) = civil(days);
                days_of(year, 1, 1)
            }
            _ => days,
        }
    }

    /// The unit's start at or before the instant.
    pub(crate) fn cut(self, micros: i64) -> Result<i64> {
        let step = match self {
            Self::Microsecond => 1,
            Self::Millisecond => 1000,
            Self::Second => SECOND,
            Self::Minute => MINUTE,
            Self::Hour => HOUR,
            _ => return midnight(self.cut_days(micros.div_euclid(DAY))),
        };
        match micros.checked_sub(micros.rem_euclid(step)) {
            Some(start) => Ok(start),
            None => exec_err!("[DATETIME_OVERFLOW] the start of the unit is out of the range of TIMESTAMP"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse_over_leap_years_and_before_the_common_era() {
        for days in (-1_000_000..1_000_000).step_by(37) {
            let (year, month, day) = civil(days);
            assert_eq!(checked_days(year, month, day), Some(days), "{year}-{month}-{day}");
        }
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(checked_days(2023, 2, 29), None);
        assert_eq!(checked_days(2024, 2, 29), Some(19_782));
    }

    #[test]
    fn the_iso_year_of_a_week_may_differ_from_the_date_s_year() {
        assert_eq!(iso_week(days_of(2021, 1, 1)), (2020, 53));
        assert_eq!(iso_week(days_of(2024, 12, 30)), (2025, 1));
    }

    #[test]
    fn whole_months_are_counted_towards_zero() {
        let at = |y, m, d| days_of(y, m, d) * DAY;
        assert_eq!(months_between_whole(at(2024, 1, 31), at(2024, 2, 29)), 0);
        assert_eq!(months_between_whole(at(2024, 3, 31), at(2024, 2, 29)), -1);
        assert_eq!(months_between_whole(at(2024, 1, 15), at(2025, 1, 15)), 12);
        assert_eq!(months_between_whole(at(2024, 1, 15) + 1, at(2025, 1, 15)), 11);
    }
}
